//! Words in lines of a width, where escape sequences take no room.

/// Letters on the widest line; all we print are one column wide.
pub(super) fn width_of(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Words in lines of at most `width` letters, where escape sequences take no room.
pub(super) fn wrap(text: &str, width: usize, first: &str, indent: &str) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    let mut used = width_of(first);
    let mut fresh = true;
    for word in text.split_whitespace() {
        let visible = visible(word);
        if !fresh && used + 1 + visible > width {
            lines.push(indent.to_owned());
            used = width_of(indent);
            fresh = true;
        }
        if let Some(line) = lines.last_mut() {
            if !fresh {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += visible;
            fresh = false;
        }
    }
    lines
}

/// Letters of a word without its escape sequences, which are all of the form `ESC [ … m`.
fn visible(word: &str) -> usize {
    let mut letters = 0;
    let mut hidden = false;
    for c in word.chars() {
        match c {
            '\u{1b}' => hidden = true,
            'm' if hidden => hidden = false,
            _ if !hidden => letters += 1,
            _ => {}
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_at_the_width_and_keep_their_indent() {
        assert_eq!(wrap("aa bb cc dd", 8, "- ", "  "), ["- aa bb", "  cc dd"]);
        assert_eq!(wrap("\u{1b}[1maaaa\u{1b}[0m bb", 7, "", ""), ["\u{1b}[1maaaa\u{1b}[0m bb"]);
    }
}

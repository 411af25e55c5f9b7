//! Text wrapping that ignores escape sequences, and replacement of control characters in untrusted
//! text.

use unicode_width::UnicodeWidthChar;

use crate::units::is_command;

/// Width of the widest line in columns.
pub(crate) fn width_of(text: &str) -> usize {
    text.lines().map(visible).max().unwrap_or(0)
}

/// Text shortened to a width. The beginning and the end are kept because they distinguish the
/// levels of a parameter.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let text = harmless(text, false);
    if visible(&text) <= most {
        return text;
    }
    let end = (most - 1) / 2;
    let fitting = |space: usize| {
        let mut used = 0;
        move |c: &char| {
            used += c.width().unwrap_or(0);
            used <= space
        }
    };
    let head: String = text.chars().take_while(fitting(most - 1 - end)).collect();
    let tail: Vec<char> = text.chars().rev().take_while(fitting(end)).collect();
    head.chars().chain(std::iter::once('…')).chain(tail.into_iter().rev()).collect()
}

/// Lines of a text of at most `width` columns, without counting escape sequences. `first` begins
/// the first line, and `indent` the others. Words wider than a line are broken.
pub fn wrap(text: &str, width: usize, first: &str, indent: &str) -> Vec<String> {
    let longest = width.saturating_sub(width_of(indent).max(width_of(first))).max(1);
    filled(text.split_whitespace().flat_map(|word| broken(word, longest)), width, first, indent)
}

/// Text wrapped at `width` columns. Wider words are not broken.
pub(crate) fn wrap_words(text: &str, width: usize) -> Vec<String> {
    filled(text.split_whitespace().map(str::to_owned), width, "", "")
}

fn filled(
    words: impl Iterator<Item = String>,
    width: usize,
    first: &str,
    indent: &str,
) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    let mut used = width_of(first);
    let mut empty = true;
    for word in words {
        let visible = visible(&word);
        if !empty && used + 1 + visible > width {
            lines.push(indent.to_owned());
            used = width_of(indent);
            empty = true;
        }
        if let Some(line) = lines.last_mut() {
            if !empty {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += visible;
            empty = false;
        }
    }
    lines
}

/// A word in pieces of at most `longest` columns. A broken word loses its style; styled words are
/// short.
fn broken(word: &str, longest: usize) -> Vec<String> {
    if visible(word) <= longest {
        return vec![word.to_owned()];
    }
    let (mut pieces, mut piece, mut used) = (Vec::new(), String::new(), 0);
    for c in unstyled(word).chars() {
        let width = c.width().unwrap_or(0);
        if used + width > longest && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        piece.push(c);
        used += width;
    }
    pieces.push(piece);
    pieces
}

/// Width of a line without styles.
fn visible(line: &str) -> usize {
    // Per character: only some terminals combine adjacent characters.
    unstyled(line).chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// A line without known styles. Other escape sequences are shown.
fn unstyled(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        match style(rest) {
            Some((_, after)) => rest = after,
            None => {
                text.push(shown(c));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    text
}

/// Code of the known style at the start of a text, and the rest.
fn style(text: &str) -> Option<(&str, &str)> {
    let (code, after) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    STYLES.contains(&code).then_some((code, after))
}

/// Known styles, as codes between `ESC [` and `m`.
const STYLES: [&str; 4] = ["0", "1", "1;32", "1;33"];

/// Text without terminal commands other than known styles, and without these unless `styles` is
/// set. Other characters of [`is_command`] are replaced by `�`. Open styles end with the text.
pub fn harmless(line: &str, styles: bool) -> String {
    let mut text = String::with_capacity(line.len());
    let (mut rest, mut open) = (line, false);
    while let Some(c) = rest.chars().next() {
        match style(rest).filter(|_| styles) {
            Some((code, after)) => {
                text.push_str(&rest[..rest.len() - after.len()]);
                open = code != "0";
                rest = after;
            }
            None => {
                text.push(shown(c));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    if open {
        text.push_str("\u{1b}[0m");
    }
    text
}

/// A character as written to the terminal.
fn shown(c: char) -> char {
    if is_command(c) && c != '\n' { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_at_the_width_and_keep_their_indent() {
        assert_eq!(wrap("aa bb cc dd", 8, "- ", "  "), ["- aa bb", "  cc dd"]);
        assert_eq!(wrap("\u{1b}[1maaaa\u{1b}[0m bb", 7, "", ""), ["\u{1b}[1maaaa\u{1b}[0m bb"]);
        assert_eq!(wrap("abcdefgh ij", 6, "- ", "  "), ["- abcd", "  efgh", "  ij"]);
        assert_eq!(wrap_words("abcdefgh ij", 6), ["abcdefgh", "ij"]);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(width_of("ab\n日本語"), 6);
        assert_eq!(wrap("日本語", 4, "", ""), ["日本", "語"]);
    }

    #[test]
    fn only_known_styles_pass() {
        let title = "\u{1b}[1mbold\u{1b}[0m \u{1b}[2J\u{1b}]0;x\u{7} \u{202e}abc\r";
        let shown = harmless(title, true);
        assert_eq!(
            shown,
            "\u{1b}[1mbold\u{1b}[0m \u{fffd}[2J\u{fffd}]0;x\u{fffd} \u{fffd}abc\u{fffd}"
        );
        assert!(!harmless(title, false).contains('\u{1b}'));
        assert_eq!(harmless("\u{1b}[1mopen", true), "\u{1b}[1mopen\u{1b}[0m");
    }
}

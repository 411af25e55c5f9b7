//! Lists of words as text: command lines, and rows of `key=value` words.
//!
//! Words are separated by blanks. Single or double quotes keep blanks and line breaks within a
//! word, and adjacent quoted parts form one word. No other character has a meaning: there are no
//! escapes, variables, or patterns. Each line is one list.

use crate::workload::ValueError;

/// Splits a text into lines of words. Empty lines are omitted.
///
/// # Errors
/// [`ValueError`] if a quote is not closed.
pub fn split(text: &str) -> Result<Vec<Vec<String>>, ValueError> {
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars().chain(['\n']) {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, c) if c.is_whitespace() => {
                line.extend(word.take());
                if c == '\n' && !line.is_empty() {
                    lines.push(std::mem::take(&mut line));
                }
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        None => Ok(lines),
        Some(quote) => Err(ValueError::new(format!("the quote {quote} is not closed"))
            .hint("add the second quote; a word with one kind of quote needs the other around it")),
    }
}

/// Text of a line of words, with quotes only where they are necessary. [`split`] reverses it.
pub fn join<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quoted(word.as_ref())).collect();
    words.join(" ")
}

/// Canonical text of lines of words.
pub fn join_lines(lines: &[Vec<String>]) -> String {
    lines.iter().map(join).collect::<Vec<_>>().join("\n")
}

fn quoted(word: &str) -> String {
    let special = |c: char| c.is_whitespace() || matches!(c, '\'' | '"');
    if !word.is_empty() && !word.contains(special) {
        return word.to_owned();
    }
    // Parts without single quotes are in single quotes, and single quotes in double quotes.
    let parts: Vec<String> = word.split('\'').map(|part| format!("'{part}'")).collect();
    parts.join("\"'\"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blanks_outside_quotes_separate_words() {
        let line = |text| split(text).unwrap().remove(0);
        assert_eq!(line("git clone  'a b' c"), ["git", "clone", "a b", "c"]);
        assert_eq!(line("sh -c \"echo 'x'\""), ["sh", "-c", "echo 'x'"]);
        assert_eq!(line("a'b 'c \\n ''"), ["ab c", "\\n", ""]);
        assert_eq!(split("a b\n\n c\n").unwrap().len(), 2);
        assert!(split("echo 'x").is_err());
        assert_eq!(join(["sh", "-c", "it's \"so\""]), "sh -c 'it'\"'\"'s \"so\"'");
    }

    proptest! {
        #[test]
        fn joined_words_are_split_again(lines in prop::collection::vec(
            prop::collection::vec(any::<String>(), 1..4), 0..4,
        )) {
            prop_assert_eq!(split(&join_lines(&lines)).unwrap(), lines);
        }
    }
}

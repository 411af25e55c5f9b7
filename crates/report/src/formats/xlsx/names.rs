//! Names of sheets: valid and unique.
//!
//! A valid name has 1 to 31 UTF-16 units, none of `[ ] : * ? / \`, and no apostrophe at either end.
//! It is not `History`, and differs from all others by more than case. `Worksheet::set_name` of
//! `rust_xlsxwriter` checks the same rules.

use std::collections::HashSet;

use crate::units::one_line;

/// Maximum length of a name in UTF-16 units.
const UNITS: usize = 31;

/// Names that are in use, in lower case.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// New unique name for a sheet with this title.
    pub(super) fn give(&mut self, title: &str) -> String {
        let plain = plain(title);
        let mut name = cut(&plain, UNITS);
        let mut number = 1_u32;
        while !self.0.insert(name.to_lowercase()) {
            number += 1;
            let tail = format!(" {number}");
            name = format!("{}{tail}", cut(&plain, UNITS - tail.len()));
        }
        name
    }
}

/// Title with invalid characters replaced.
fn plain(title: &str) -> String {
    let allowed = |c: char| match c {
        '[' | '{' => '(',
        ']' | '}' => ')',
        ':' | '*' | '?' | '/' | '\\' | '\'' => ' ',
        // XML forbids both characters.
        '\u{fffe}' | '\u{ffff}' => ' ',
        other => other,
    };
    let plain = one_line(&title.chars().map(allowed).collect::<String>());
    match plain.to_lowercase().as_str() {
        "" => "sheet".into(),
        "history" => format!("{plain} (sheet)"),
        _ => plain,
    }
}

/// Truncates a text to a number of UTF-16 units. Trailing spaces are removed, and if the text is
/// truncated, also commas and underscores.
fn cut(text: &str, units: usize) -> String {
    let mut left = units;
    let fits = |c: &char| {
        let fits = c.len_utf16() <= left;
        left = left.saturating_sub(c.len_utf16());
        fits
    };
    let cut: String = text.chars().take_while(fits).collect();
    let plain = cut.trim_end();
    match plain.trim_end_matches([' ', ',', '_']) {
        short if cut.len() < text.len() && !short.is_empty() => short.to_owned(),
        _ => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_xlsxwriter::Worksheet;

    use super::*;

    #[test]
    fn names_are_truncated_titles() {
        let mut names = Names::default();
        assert_eq!(names.give("Table 1. Writing: copies=8"), "Table 1. Writing copies=8");
        assert_eq!(
            names.give("Writing: iozone block_size=1MiB, file_size=16GiB"),
            "Writing iozone block_size=1MiB"
        );
        assert_eq!(
            names.give("writing: iozone block_size=1MiB, file_size=8GiB"),
            "writing iozone block_size=1Mi 2"
        );
        assert_eq!(names.give("History"), "History (sheet)");
        assert_eq!(names.give("'*:'"), "sheet");
    }

    proptest! {
        // Checking a name creates a sheet, which is slow.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_titles_get_names_that_are_allowed_and_unique(
            titles in prop::collection::vec("\\PC{0,40}|[a-c:\\[\\]*?/\\\\']{0,3}|.{30,33}", 1..20)
        ) {
            let mut names = Names::default();
            let mut given = HashSet::new();
            for title in titles {
                let name = names.give(&title);
                prop_assert!((1..=UNITS).contains(&name.encode_utf16().count()), "{name}");
                prop_assert!(Worksheet::new().set_name(&name).is_ok(), "{name}");
                prop_assert!(given.insert(name.to_lowercase()), "{name} twice");
            }
        }
    }
}

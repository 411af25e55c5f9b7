//! Which of two releases is newer, and whether a release is one that a user means.
//!
//! Texts enter and an order leaves. Releases are what `uname -r` says: the version of the kernel
//! (`6.1.0`, `6.12-rc3`), and behind it what each distribution likes.

use std::cmp::Reverse;

/// A release in the order of newness. Of equal numbers the shorter one is taken for newer: variants
/// (`-rt`, `-cloud`, `-debug`) have longer names than the kernel that they are a variant of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Newness<'a> {
    version: Vec<u64>,
    /// A candidate is older than its release.
    candidate: u64,
    /// All further numbers: builds and patches of the distribution.
    builds: Vec<u64>,
    length: Reverse<usize>,
    text: &'a str,
}

/// How new a release is.
pub(crate) fn newness(text: &str) -> Newness<'_> {
    let end = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
    let mut version: Vec<u64> = numbers(&text[..end]).collect();
    while version.pop_if(|last| *last == 0).is_some() {}
    let rest = &text[end..];
    let candidate = rest.strip_prefix("-rc").and_then(|rest| numbers(rest).next());
    Newness {
        version,
        candidate: candidate.unwrap_or(u64::MAX),
        builds: numbers(rest).collect(),
        length: Reverse(text.len()),
        text,
    }
}

/// The numbers in a text; one of more than 64 bits is as good as infinite.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let numbers = text.split(|one: char| !one.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.map(|digits| digits.parse().unwrap_or(u64::MAX))
}

/// Whether a user who says `wanted` means `release`: it is that, or begins with it, where no number
/// is cut (`6.1` is no beginning of `6.12`).
pub(crate) fn is_meant(wanted: &str, release: &str) -> bool {
    let digit = |one: Option<char>| one.is_some_and(|one| one.is_ascii_digit());
    release
        .strip_prefix(wanted)
        .is_some_and(|rest| !(digit(wanted.chars().next_back()) && digit(rest.chars().next())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        let ascending = [
            "5.10.0-9-amd64",
            "5.10.0-28-amd64",
            "6.1-rc3",
            "6.1.0-9-amd64",
            "6.1.0-50-cloud-amd64",
            "6.1.0-50-rt-amd64",
            "6.1.0-50-amd64",
            "6.1.176",
            "6.12-rc1",
            "6.12.0-rc10",
            "6.12",
            "6.12.117+deb12-amd64",
            "6.14.0-100.fc42.x86_64",
            "99999999999999999999999.1",
        ];
        for pair in ascending.windows(2) {
            assert!(newness(pair[0]) < newness(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn a_beginning_cuts_no_number() {
        assert!(is_meant("6.1", "6.1.0-50-amd64"));
        assert!(is_meant("6.1.0-5", "6.1.0-5-amd64"));
        assert!(is_meant("6.1.0-50-amd64", "6.1.0-50-amd64"));
        assert!(!is_meant("6.1", "6.12.117+deb12-amd64"));
        assert!(!is_meant("6.1.0-5", "6.1.0-50-amd64"));
        assert!(!is_meant("6.1.0-50-amd64", "6.1.0-50"));
    }

    proptest! {
        #[test]
        fn any_text_has_its_place(one: String, other: String) {
            prop_assert_eq!(newness(&one) == newness(&other), one == other);
            prop_assert!(is_meant(&one, &one));
        }
    }
}

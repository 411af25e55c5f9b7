//! Order of kernel releases, and matching of a release by a prefix.
//!
//! A release is the output of `uname -r`: the kernel version (`6.1.0`, `6.12-rc3`) and a suffix of
//! the distribution.

use std::cmp::Reverse;

/// Sort key of a release, oldest first. With equal numbers, a longer release is treated as older:
/// variants (`-rt`, `-cloud`, `-debug`) have longer names than the standard kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReleaseOrder<'a> {
    version: Vec<u64>,
    /// Number of a release candidate, which is older than its release.
    candidate: u64,
    /// All numbers after the version, such as builds and patches of the distribution.
    builds: Vec<u64>,
    length: Reverse<usize>,
    text: &'a str,
}

/// Sort key of a release, oldest first.
pub(crate) fn release_order(text: &str) -> ReleaseOrder<'_> {
    let end = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
    let mut version: Vec<u64> = numbers(&text[..end]).collect();
    while version.pop_if(|last| *last == 0).is_some() {}
    let rest = &text[end..];
    let candidate = rest.strip_prefix("-rc").and_then(|rest| numbers(rest).next());
    ReleaseOrder {
        version,
        candidate: candidate.unwrap_or(u64::MAX),
        builds: numbers(rest).collect(),
        length: Reverse(text.len()),
        text,
    }
}

/// Numbers in a text. Numbers of more than 64 bits are replaced by the maximum.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let numbers = text.split(|one: char| !one.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.map(|digits| digits.parse().unwrap_or(u64::MAX))
}

/// True if `release` is `wanted` or begins with it at a number boundary (`6.1` does not match
/// `6.12`).
pub(crate) fn matches_release(wanted: &str, release: &str) -> bool {
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
    fn releases_are_ordered_by_number() {
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
            assert!(release_order(pair[0]) < release_order(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn a_prefix_ends_at_a_number_boundary() {
        assert!(matches_release("6.1", "6.1.0-50-amd64"));
        assert!(matches_release("6.1.0-5", "6.1.0-5-amd64"));
        assert!(matches_release("6.1.0-50-amd64", "6.1.0-50-amd64"));
        assert!(!matches_release("6.1", "6.12.117+deb12-amd64"));
        assert!(!matches_release("6.1.0-5", "6.1.0-50-amd64"));
        assert!(!matches_release("6.1.0-50-amd64", "6.1.0-50"));
    }

    proptest! {
        #[test]
        fn the_order_of_any_texts_is_total(one: String, other: String) {
            prop_assert_eq!(release_order(&one) == release_order(&other), one == other);
            prop_assert!(matches_release(&one, &one));
        }
    }
}

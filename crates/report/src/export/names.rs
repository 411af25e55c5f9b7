//! File names of charts: short, safe, and unique.

use std::collections::BTreeSet;

use crate::figures::Kind;

/// Maximum length of the part of a name that comes from the figure's ID; a hash, the kind, and a
/// number may follow. Filesystems allow 255 bytes per name, the ustar format 100.
const LETTERS_MAX: usize = 80;

/// Names that are in use.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// Name for a figure: its ID and its kind in lower-case letters, digits, and single dashes. A
    /// truncated ID is followed by its hash, so that the name does not depend on other figures. A
    /// name that is in use gets a number.
    pub(super) fn take(&mut self, id: &str, kind: Kind) -> String {
        let mut stem = plain(id);
        if stem.len() > LETTERS_MAX {
            // `plain` returns ASCII, so that any position is a character boundary.
            stem.truncate(LETTERS_MAX);
            stem = format!("{}-{:08x}", stem.trim_end_matches('-'), hash(id));
        }
        let kind = kind.name();
        // The kind is not appended twice.
        let name = match stem
            .strip_suffix(kind)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('-'))
        {
            true => stem,
            false => format!("{stem}-{kind}").trim_start_matches('-').to_owned(),
        };
        let mut numbered = name.clone();
        let mut number = 2;
        while !self.taken.insert(numbered.clone()) {
            numbered = format!("{name}-{number}");
            number += 1;
        }
        numbered
    }
}

/// Lower-case ASCII letters and digits, with one dash for each run of other characters.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// 32-bit FNV-1a hash (RFC 9923).
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_test_and_kind() {
        let mut names = Names::default();
        assert_eq!(names.take("iozone--write", Kind::Ranking), "iozone-write-ranking");
        assert_eq!(names.take("iozone--write", Kind::Ranking), "iozone-write-ranking-2");
        assert_eq!(
            names.take("../../etc/passwd", Kind::ParameterSweep),
            "etc-passwd-parameter-sweep"
        );
        assert_eq!(names.take("", Kind::ParameterSweep), "parameter-sweep");
        assert_eq!(names.take("clients-scaling", Kind::Scaling), "clients-scaling");
        assert_eq!(names.take("a--cpu-time", Kind::CpuTime), "a-cpu-time");
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vector of RFC 9923.
        assert_eq!(hash("foobar"), 0xbf9c_f968);
    }

    proptest! {
        #[test]
        fn every_name_is_safe_and_given_once(ids in prop::collection::vec(".{0,200}", 1..20)) {
            let mut names = Names::default();
            let mut seen = BTreeSet::new();
            for id in ids {
                let name = names.take(&id, Kind::Settings);
                prop_assert!(name.len() <= 128, "{name}");
                let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                prop_assert!(name.chars().all(safe) && !name.starts_with('-'), "{name}");
                prop_assert!(seen.insert(name));
            }
        }
    }
}

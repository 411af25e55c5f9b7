//! Comparison of module names and aliases, as in modprobe.

/// Replaces each `-` of a name by `_`, except in brackets, which contain ranges of a pattern.
/// modprobe(8): "there is no difference between _ and - in module names"; brackets:
/// `alias_normalize` of kmod's `libkmod/libkmod-util.c`.
pub(crate) fn normalized(name: &str) -> String {
    let mut bracket = false;
    let mut normal = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '[' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
        normal.push(if letter == '-' && !bracket { '_' } else { letter });
    }
    normal
}

/// Name of the module in a file: the part before `.ko`, normalized. `None` for other files, and for
/// names that no build produces. For example, a name with a space could not be part of a list of
/// names.
pub(crate) fn of_file(file_name: &str) -> Option<String> {
    let stem = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"]
        .iter()
        .find_map(|ending| file_name.strip_suffix(ending))?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+.".contains(&byte);
    (!stem.is_empty() && stem.bytes().all(allowed)).then(|| normalized(stem))
}

/// True if a name matches the pattern of an alias, both normalized: `*` matches any characters, `?`
/// one character, `[0-9a]` a character in the brackets, `[!0-9a]` a character not in them, and `\`
/// escapes the next character. The rules are those of fnmatch(3) without flags, as in modprobe. An
/// unclosed bracket matches itself.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut read) = (0, 0);
    // Positions in pattern and name from which to retry if the part after the last `*` does not
    // match. Each retry begins one character later in the name.
    let mut retry: Option<(usize, usize)> = None;
    while read < name.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            retry = Some((at, read));
            continue;
        }
        match one(&pattern[at..], name[read]) {
            Some(used) => {
                at += used;
                read += 1;
            }
            None => match retry {
                Some((after_star, from)) => {
                    at = after_star;
                    read = from + 1;
                    retry = Some((after_star, read));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&letter| letter == b'*')
}

/// Length of the first element of the pattern if it matches this character, otherwise `None`.
fn one(pattern: &[u8], letter: u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'\\' => match pattern.get(1) {
            Some(&next) => (next == letter).then_some(2),
            None => (letter == b'\\').then_some(1),
        },
        b'[' => {
            // The first character of a bracket may be `]` itself.
            let inverted = matches!(pattern.get(1), Some(b'!' | b'^'));
            let start = if inverted { 2 } else { 1 };
            let Some(end) = (start + 1..pattern.len()).find(|&at| pattern[at] == b']') else {
                return (letter == b'[').then_some(1);
            };
            (in_set(&pattern[start..end], letter) != inverted).then_some(end + 1)
        }
        other => (other == letter).then_some(1),
    }
}

/// True if a character is in the set between brackets.
fn in_set(mut set: &[u8], letter: u8) -> bool {
    while let [first, rest @ ..] = set {
        if let [b'-', last, after @ ..] = rest {
            if (*first..=*last).contains(&letter) {
                return true;
            }
            set = after;
        } else {
            if *first == letter {
                return true;
            }
            set = rest;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dashes_equal_underscores_outside_of_brackets() {
        assert_eq!(normalized("dm-log-writes"), "dm_log_writes");
        assert_eq!(normalized("x-[0-9]-y"), "x_[0-9]_y");
        assert_eq!(of_file("crc32c-intel.ko.xz").unwrap(), "crc32c_intel");
        assert_eq!(of_file("nls_utf8.ko").unwrap(), "nls_utf8");
        for other in ["modules.dep", ".ko", "x.ko.bz2", "ko", "x.ko.xz.sig", "a b.ko", "a\tb.ko"] {
            assert_eq!(of_file(other), None, "{other}");
        }
    }

    #[test]
    fn patterns_match_like_fnmatch() {
        for (pattern, name, expected) in [
            ("fs_xfs", "fs_xfs", true),
            ("fs_xfs", "fs_xf", false),
            ("block_major_7_*", "block_major_7_0", true),
            ("block_major_7_*", "block_major_70", false),
            ("*", "", true),
            ("a*b*c", "a_b_b_c", true),
            ("a*b*c", "a_c_b", false),
            ("?s", "fs", true),
            ("?s", "s", false),
            ("cpu[0-9]x", "cpu7x", true),
            ("cpu[0-9]x", "cpuax", false),
            ("cpu[!0-9]x", "cpuax", true),
            ("[]a]", "]", true),
            ("[a", "[a", true),
            ("[", "[", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("\\", "\\", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_can_be_matched(
            pattern in "[a-c*?\\[\\]!\\\\-]{0,30}",
            name in "[a-c\\[\\]-]{0,60}",
        ) {
            let _matches = matches(&pattern, &name);
        }

        #[test]
        fn a_name_matches_itself_and_its_prefix_with_a_star(name in "[a-z_0-9]{0,20}", cut: usize) {
            prop_assert!(matches(&name, &name));
            let cut = cut % (name.len() + 1);
            let pattern = format!("{}*", &name[..cut]);
            prop_assert!(matches(&pattern, &name));
            let longer = format!("{name}x");
            prop_assert!(!matches(&name, &longer));
        }

        #[test]
        fn many_stars_take_polynomial_time(stars in 1..40_usize) {
            // An exponential search would not finish.
            let pattern = "*a".repeat(stars) + "b";
            prop_assert!(!matches(&pattern, &"a".repeat(400)));
        }
    }
}

//! Numbers, sizes, and words of printed results.

use std::collections::BTreeMap;

use model::{Bytes, Nanos, Value};

use super::ImportError;

/// Bytes per KiB, MiB, and GiB.
pub(super) const KIB: f64 = 1024.0;
pub(super) const MIB: f64 = 1024.0 * KIB;
pub(super) const GIB: f64 = 1024.0 * MIB;

/// Nanoseconds per unit of time.
pub(super) const MICROSECOND: f64 = 1e3;
pub(super) const MILLISECOND: f64 = 1e6;
pub(super) const SECOND: f64 = 1e9;

/// Number from 0 to 10^15 at a place in a file.
pub(super) fn number(place: impl FnOnce() -> String, text: &str) -> Result<f64, ImportError> {
    let parsed = text.trim().parse::<f64>().ok().filter(|own| (0.0..=1e15).contains(own));
    parsed.ok_or_else(|| ImportError::Field {
        place: place(),
        expected: "a number",
        found: text.chars().take(40).flat_map(char::escape_debug).collect(),
    })
}

/// Time of a number of seconds.
pub(super) fn nanos(seconds: f64) -> Nanos {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and a negative number is none"
    )]
    let whole = (seconds * SECOND).round() as u64;
    Nanos(whole)
}

/// Place of a line, from 1.
pub(super) fn line(number: usize) -> impl Fn() -> String {
    move || format!("line {number}")
}

/// Printed size such as `256 KiB`, `1.00 MiB`, or `262144 bytes`, with units of 1024.
pub(super) fn size(text: &str) -> Option<Value> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let power = match unit.trim().to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b')
    {
        "" | "yte" | "ytes" | "bytes" | "byte" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * 1024f64.powi(power);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2^60")]
    let whole = |bytes: f64| bytes.round() as u64;
    (0.0..=1.15e18).contains(&bytes).then(|| Value::Size(Bytes(whole(bytes))))
}

/// Printed count.
pub(super) fn count(text: &str) -> Option<Value> {
    text.trim().parse().ok().map(Value::Count)
}

/// Name of a phase: lowercase letters, digits, and hyphens.
pub(super) fn slug(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().take(200) {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "all".into() } else { name.into() }
}

/// Parameters that are known.
pub(super) fn known<const N: usize>(all: [(&str, Option<Value>); N]) -> BTreeMap<String, Value> {
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The first 1000 characters of a text, which each measurement of a file has.
pub(super) fn short(text: &str) -> String {
    text.chars().take(1000).collect()
}

/// Words of a command line that are not the program, and not paths of files under test.
pub(super) fn arguments(line: &str, of_paths: &[&str]) -> String {
    let mut all = Vec::new();
    let mut is_path = false;
    for word in line.split_whitespace().skip(1) {
        let word = word.trim_matches('\'');
        if std::mem::take(&mut is_path) {
            continue;
        }
        if of_paths.contains(&word) {
            is_path = true;
            continue;
        }
        if !word.contains('/') {
            all.push(word);
        }
    }
    short(&all.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        for (text, bytes) in [
            ("262144 bytes", 262_144),
            ("256 KiB", 262_144),
            ("1.50 MiB", 1_572_864),
            ("10 GiB", 10 << 30),
            ("1TiB", 1 << 40),
            ("16Kb", 16_384),
            ("4096", 4096),
        ] {
            assert_eq!(size(text), Some(Value::Size(Bytes(bytes))), "{text}");
        }
        for text in ["", "x", "-1", "1 XiB", "9e99 GiB", "99999999999 TiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_phases_have_letters_and_hyphens() {
        assert_eq!(slug("Directory creation:"), "directory-creation");
        assert_eq!(slug(" WRITE (I/O) "), "write-i-o");
        assert_eq!(slug("…"), "all");
    }

    #[test]
    fn paths_are_left_out_of_arguments() {
        let line = "/usr/bin/ior -w -t 1M -o /mnt/x/file -F '-e' /dev/null";
        assert_eq!(arguments(line, &["-o"]), "-w -t 1M -F -e");
    }
}

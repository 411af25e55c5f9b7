//! Types for sizes, times, counts, ratios, and the scale of a plan.
//!
//! All values are in base units (bytes, nanoseconds, operations). [`Bytes::parse`],
//! [`Nanos::parse`], and [`Scale::parse`] parse text; `Display` writes the canonical spelling. Only
//! [`Bytes::rough`] rounds; crate `report` rounds all other values for display.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, Sub},
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Size or amount of data, in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Duration or instant, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// Number of operations.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Ops(pub u64);

/// Dimensionless fraction or ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ratio(pub f64);

/// Error of parsing a size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SizeError {
    /// The unit can mean a power of 1000 or a power of 1024.
    #[error(
        "`{text}` is ambiguous: {decimal} or {binary} bytes; write `{number}{prefix_binary}iB` \
         for {binary}, or `{decimal}B`"
    )]
    Ambiguous {
        /// The text as given.
        text: String,
        /// Number part.
        number: u64,
        /// Letter of the binary unit (`K`, `M`, `G`, `T`, `P`).
        prefix_binary: char,
        /// Size if the unit is a power of 1000.
        decimal: u64,
        /// Size if the unit is a power of 1024.
        binary: u64,
    },
    /// Unknown unit.
    #[error("`{text}` has the unknown unit `{unit}`; use B, KiB, MiB, GiB, or TiB, such as `4KiB`")]
    Unit {
        /// The text as given.
        text: String,
        /// The unit as given.
        unit: String,
    },
    /// No integer at the start.
    #[error("`{text}` is not a size; use an integer and a unit, such as `4KiB`")]
    Number {
        /// The text as given.
        text: String,
    },
    /// The size exceeds 64 bits.
    #[error("`{text}` is too large; use a size below 16 EiB")]
    TooLarge {
        /// The text as given.
        text: String,
    },
}

/// Binary units, smallest first: letter and power of two.
const UNITS: [(char, u32); 5] = [('K', 10), ('M', 20), ('G', 30), ('T', 40), ('P', 50)];

impl Bytes {
    /// One kibibyte.
    pub const KIB: u64 = 1 << 10;
    /// One mebibyte.
    pub const MIB: u64 = 1 << 20;
    /// One gibibyte.
    pub const GIB: u64 = 1 << 30;

    /// `n` kibibytes.
    pub const fn kib(n: u64) -> Self {
        Self(n * Self::KIB)
    }

    /// `n` mebibytes.
    pub const fn mib(n: u64) -> Self {
        Self(n * Self::MIB)
    }

    /// `n` gibibytes.
    pub const fn gib(n: u64) -> Self {
        Self(n * Self::GIB)
    }

    /// Parses a size.
    ///
    /// `4KiB`, `4k`, and `4K` are 4096 bytes: a single letter is binary, as in fio and IOzone.
    /// `512` and `512B` are bytes. `4KB` is rejected as ambiguous.
    ///
    /// # Errors
    /// [`SizeError`], whose message includes a hint.
    pub fn parse(text: &str) -> Result<Self, SizeError> {
        let trimmed = text.trim();
        let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = trimmed.split_at(digits);
        let unit = unit.trim_start();
        if number.is_empty() || unit.starts_with(['.', ',']) {
            return Err(SizeError::Number { text: text.into() });
        }
        let too_large = || SizeError::TooLarge { text: text.into() };
        let number: u64 = number.parse().map_err(|_| too_large())?;
        let unknown = || SizeError::Unit { text: text.into(), unit: unit.into() };
        if unit.is_empty() || unit.eq_ignore_ascii_case("b") {
            return Ok(Self(number));
        }
        let prefix = unit.chars().next().ok_or_else(unknown)?;
        let (letter, shift) = UNITS
            .into_iter()
            .find(|(letter, _)| letter.eq_ignore_ascii_case(&prefix))
            .ok_or_else(unknown)?;
        let binary = number.checked_mul(1 << shift).ok_or_else(too_large)?;
        let rest = &unit[prefix.len_utf8()..];
        if rest.is_empty() || rest.eq_ignore_ascii_case("i") || rest.eq_ignore_ascii_case("ib") {
            return Ok(Self(binary));
        }
        if rest.eq_ignore_ascii_case("b") {
            let decimal = number.saturating_mul(1000u64.pow(shift / 10));
            return Err(SizeError::Ambiguous {
                text: text.into(),
                number,
                prefix_binary: letter,
                decimal,
                binary,
            });
        }
        Err(unknown())
    }

    /// Size times a scale, rounded down to bytes.
    pub fn scaled(self, scale: Scale) -> Self {
        let wide = u128::from(self.0) * u128::from(scale.numerator) / u128::from(scale.denominator);
        Self(u64::try_from(wide).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// Rounded size for messages: the canonical spelling if it has at most four digits, otherwise
    /// an approximation with one decimal place.
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    pub fn rough(self) -> String {
        let exact = self.to_string();
        let unit = UNITS.into_iter().rev().find(|(_, shift)| self.0 >> shift > 0);
        match unit {
            Some((letter, shift)) if exact.matches(|c: char| c.is_ascii_digit()).count() > 4 => {
                format!("about {:.1} {letter}iB", self.0 as f64 / (1u64 << shift) as f64)
            }
            _ => exact,
        }
    }
}

/// Number with a noun in the singular or plural: `1 trial`, `3 trials`.
pub fn plural(n: impl Into<u64>, noun: &str) -> String {
    let n = n.into();
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

impl fmt::Display for Bytes {
    /// Canonical spelling: integer with the largest possible binary unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS
            .into_iter()
            .rev()
            .find(|(_, shift)| self.0 != 0 && self.0.is_multiple_of(1 << shift));
        match unit {
            Some((letter, shift)) => write!(f, "{}{letter}iB", self.0 >> shift),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Bytes {
    type Output = Self;
    /// Saturates at zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self(0), Add::add)
    }
}

impl Add for Ops {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Error of parsing a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimeError {
    /// No integer at the start.
    #[error(
        "`{0}` is not a duration; use an integer and ns, us, ms, s, min, or h, such as `500ms`"
    )]
    Form(String),
    /// A negative number.
    #[error("`{0}` is negative; use a duration such as `10s`")]
    Negative(String),
    /// A decimal fraction.
    #[error("`{0}` is not an integer number of its unit; use a smaller unit, such as `1500ms`")]
    Fraction(String),
    /// An integer without a unit.
    #[error("`{0}` has no unit; use ns, us, ms, s, min, or h, such as `{0}s`")]
    NoUnit(String),
    /// Unknown unit.
    #[error("`{text}` has the unknown unit `{unit}`; use ns, us, ms, s, min, or h, such as `10s`")]
    Unit {
        /// The text as given.
        text: String,
        /// The unit as given.
        unit: String,
    },
    /// The duration exceeds 64 bits of nanoseconds.
    #[error("`{0}` is too long; use a duration below 584 years")]
    TooLong(String),
}

/// Units of time, smallest first: spelling and nanoseconds.
const TIMES: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl Nanos {
    /// Parses a duration: an integer and a unit, such as `500ms`, `10s`, or `2min`. `µs` is the
    /// same as `us`. Zero does not require a unit.
    ///
    /// # Errors
    /// [`TimeError`], whose message includes a hint.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let trimmed = text.trim();
        let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = trimmed.split_at(digits);
        let unit = match unit.trim_start() {
            "\u{b5}s" | "\u{3bc}s" => "us",
            "" if number.trim_start_matches('0').is_empty() => "ns",
            unit => unit,
        };
        let known = TIMES.into_iter().find(|(name, _)| *name == unit);
        let (Some((_, length)), false) = (known, number.is_empty()) else {
            return Err(match (number, unit.chars().next()) {
                ("", Some('-')) => TimeError::Negative(text.into()),
                ("", _) => TimeError::Form(text.into()),
                (_, None) => TimeError::NoUnit(text.into()),
                (_, Some('.' | ',')) => TimeError::Fraction(text.into()),
                _ => TimeError::Unit { text: text.into(), unit: unit.into() },
            });
        };
        let number: Option<u64> = number.parse().ok();
        let nanos = number.and_then(|number| number.checked_mul(length));
        nanos.map(Self).ok_or_else(|| TimeError::TooLong(text.into()))
    }

    /// Duration in seconds.
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact below 104 days, relative error 1e-16 above"
    )]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Nanos {
    /// Canonical spelling: integer with the largest possible unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |unit: &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(unit.1);
        match TIMES.iter().rev().find(whole) {
            Some((name, length)) => write!(f, "{}{name}", self.0 / length),
            None => f.write_str("0s"),
        }
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    /// Saturates at zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self(0), Add::add)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Scale of a plan: a factor for all sizes that are amounts of work or of memory. A common factor
/// keeps their ratios constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    numerator: u32,
    denominator: u32,
}

/// Error of parsing a scale.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a scale; use `1`, `2`, or a fraction such as `1/64`")]
pub struct ScaleError(String);

impl Scale {
    /// Unchanged sizes.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// Parses `N` or `N/D`, both positive.
    ///
    /// # Errors
    /// [`ScaleError`], whose message includes a hint.
    pub fn parse(text: &str) -> Result<Self, ScaleError> {
        let error = || ScaleError(text.into());
        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        let part =
            |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(error);
        Ok(Self { numerator: part(numerator)?, denominator: part(denominator)? })
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            _ => write!(f, "{}/{}", self.numerator, self.denominator),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        let answer = match Bytes::parse(text) {
            Ok(bytes) => format!("{} = {bytes}", bytes.0),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&answer);
    }

    #[test]
    fn rough_sizes_have_at_most_four_digits() {
        let words = [1000, 107_374_182, 838_860 << 10, 24 << 30, 24105 << 20].map(Bytes);
        let words = words.map(Bytes::rough);
        let expected = ["1000B", "about 102.4 MiB", "about 819.2 MiB", "24GiB", "about 23.5 GiB"];
        assert_eq!(words, expected);
    }

    #[test]
    fn sizes_accept_common_spellings() {
        check("4KiB", expect!["4096 = 4KiB"]);
        check("4k", expect!["4096 = 4KiB"]);
        check("16 MiB", expect!["16777216 = 16MiB"]);
        check("512", expect!["512 = 512B"]);
        check("1536B", expect!["1536 = 1536B"]);
        check("0", expect!["0 = 0B"]);
        check(
            "4KB",
            expect!["`4KB` is ambiguous: 4000 or 4096 bytes; write `4KiB` for 4096, or `4000B`"],
        );
        check(
            "4q",
            expect!["`4q` has the unknown unit `q`; use B, KiB, MiB, GiB, or TiB, such as `4KiB`"],
        );
        check("big", expect!["`big` is not a size; use an integer and a unit, such as `4KiB`"]);
        check(
            "1.5MiB",
            expect!["`1.5MiB` is not a size; use an integer and a unit, such as `4KiB`"],
        );
        check("-4k", expect!["`-4k` is not a size; use an integer and a unit, such as `4KiB`"]);
        check("99999999TiB", expect!["`99999999TiB` is too large; use a size below 16 EiB"]);
    }

    #[test]
    fn scale_keeps_ratios() {
        let scale = Scale::parse("1/64").unwrap();
        assert_eq!(Bytes::gib(16).scaled(scale), Bytes::mib(256));
        assert_eq!(Bytes::mib(1).scaled(scale), Bytes::kib(16));
        assert!(Scale::parse("0").is_err() && Scale::parse("1/0").is_err());
        assert!(Scale::parse("half").is_err());
    }

    #[test]
    fn durations_are_integers_with_a_unit() {
        let read = |text: &str| match Nanos::parse(text) {
            Ok(time) => format!("{} = {time}", time.0),
            Err(error) => error.to_string(),
        };
        let texts = [
            "500ms", "90 s", "120s", "7\u{b5}s", "0", "0s", "1h", "5", "s", "1.5s", "-5s", "10sec",
            "9999999h",
        ];
        let lines: Vec<_> = texts.into_iter().map(read).collect();
        expect![[r#"
            500000000 = 500ms
            90000000000 = 90s
            120000000000 = 2min
            7000 = 7us
            0 = 0s
            0 = 0s
            3600000000000 = 1h
            `5` has no unit; use ns, us, ms, s, min, or h, such as `5s`
            `s` is not a duration; use an integer and ns, us, ms, s, min, or h, such as `500ms`
            `1.5s` is not an integer number of its unit; use a smaller unit, such as `1500ms`
            `-5s` is negative; use a duration such as `10s`
            `10sec` has the unknown unit `sec`; use ns, us, ms, s, min, or h, such as `10s`
            `9999999h` is too long; use a duration below 584 years"#]]
        .assert_eq(&lines.join("\n"));
    }

    proptest::proptest! {
        #[test]
        fn the_canonical_duration_is_reversible(nanos: u64) {
            proptest::prop_assert_eq!(Nanos::parse(&Nanos(nanos).to_string()), Ok(Nanos(nanos)));
        }

        #[test]
        fn the_canonical_size_is_reversible(bytes: u64) {
            proptest::prop_assert_eq!(Bytes::parse(&Bytes(bytes).to_string()), Ok(Bytes(bytes)));
        }
    }
}

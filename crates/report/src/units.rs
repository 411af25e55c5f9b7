//! Display units and digits. No other module contains display units.
//!
//! Values are in base units; results are text. Sizes and bandwidths have binary prefixes (KiB,
//! MiB/s), counts, rates, and times decimal ones. All values of a column have the same unit. The
//! confidence interval limits the digits: its half-width is rounded to two significant digits, and
//! the value to the same decimal place.

use std::collections::BTreeMap;

use analysis::{Interval, Summary};
use model::{Bytes, Metric, Nanos, metric::Unit};

/// Display unit: values are divided by `divisor`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    divisor: f64,
    /// Printed unit; empty for plain counts.
    pub(crate) name: &'static str,
    /// Base unit of the values.
    pub(crate) unit: Unit,
}

const KIB: f64 = 1024.0;
const SIZES: [(f64, &str); 5] = [
    (1.0, "B"),
    (KIB, "KiB"),
    (KIB * KIB, "MiB"),
    (KIB * KIB * KIB, "GiB"),
    (KIB * KIB * KIB * KIB, "TiB"),
];
const BANDWIDTHS: [(f64, &str); 5] = [
    (1.0, "B/s"),
    (KIB, "KiB/s"),
    (KIB * KIB, "MiB/s"),
    (KIB * KIB * KIB, "GiB/s"),
    (KIB * KIB * KIB * KIB, "TiB/s"),
];
const RATES: [(f64, &str); 3] = [(1.0, "ops/s"), (1e3, "k ops/s"), (1e6, "M ops/s")];
const COMMITS: [(f64, &str); 3] = [(1.0, "commits/s"), (1e3, "k commits/s"), (1e6, "M commits/s")];
const DELIVERIES: [(f64, &str); 3] =
    [(1.0, "deliveries/s"), (1e3, "k deliveries/s"), (1e6, "M deliveries/s")];
const TIMES: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
const SHARES: [(f64, &str); 1] = [(0.01, "%")];
const RATIOS: [(f64, &str); 1] = [(1.0, "×")];
const FREQUENCIES: [(f64, &str); 4] = [(1.0, "Hz"), (1e3, "kHz"), (1e6, "MHz"), (1e9, "GHz")];
const INSTRUCTIONS: [(f64, &str); 4] =
    [(1.0, "instr"), (1e3, "k instr"), (1e6, "M instr"), (1e9, "G instr")];
const COUNTS: [(f64, &str); 3] = [(1.0, ""), (1e3, "k"), (1e6, "M")];

/// Display units of a base unit, smallest first, as divisor and name.
fn scales(unit: Unit) -> &'static [(f64, &'static str)] {
    match unit {
        Unit::Bytes => &SIZES,
        Unit::BytesPerSecond => &BANDWIDTHS,
        Unit::OpsPerSecond => &RATES,
        Unit::CommitsPerSecond => &COMMITS,
        Unit::DeliveriesPerSecond => &DELIVERIES,
        Unit::Nanoseconds => &TIMES,
        Unit::Count => &COUNTS,
        Unit::Fraction => &SHARES,
        Unit::Ratio => &RATIOS,
        Unit::Hertz => &FREQUENCIES,
        Unit::Instructions => &INSTRUCTIONS,
    }
}

impl Scale {
    /// Seconds for durations of any length, for tables whose rows are added up.
    pub(crate) const SECONDS: Self = Self { divisor: 1e9, name: "s", unit: Unit::Nanoseconds };

    /// Nanoseconds for durations of any length, for logarithmic axes.
    pub(crate) const NANOSECONDS: Self = Self { divisor: 1.0, name: "ns", unit: Unit::Nanoseconds };

    /// Common unit of these values: the largest unit in which the largest value is at least 1. A
    /// smaller unit is used if the smallest value would be below 0.1 and the largest stays below
    /// 10,000.
    pub(crate) fn of(unit: Unit, values: impl Iterator<Item = f64> + Clone) -> Self {
        let scales = scales(unit);
        let positive = values.filter(|value| *value > 0.0);
        let largest = positive.clone().fold(0.0, f64::max);
        let smallest = positive.fold(f64::INFINITY, f64::min);
        let fits = |(divisor, _): &&(f64, &'static str)| largest / divisor >= 1.0;
        let mut index = scales.iter().rposition(|scale| fits(&scale)).unwrap_or(0);
        while index > 0
            && smallest / scales[index].0 < 0.1
            && largest / scales[index - 1].0 < 10_000.0
        {
            index -= 1;
        }
        let (divisor, name) = scales[index];
        Self { divisor, name, unit }
    }

    /// Common unit of values of different tests: the largest unit in which all values are at least
    /// 1 and below 10,000, or at least 0.1 if there is none. `None` if they differ too much for a
    /// common unit.
    pub(crate) fn of_all(unit: Unit, values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let fit = |least: f64| {
            let mut scales = scales(unit).iter().rev();
            let (divisor, name) = *scales.find(|(divisor, _)| {
                let mut shown = values.clone().filter(|value| *value > 0.0);
                shown.all(|value| (least..10_000.0).contains(&(value / divisor)))
            })?;
            Some(Self { divisor, name, unit })
        };
        values.clone().find(|value| *value > 0.0)?;
        fit(1.0).or_else(|| fit(0.1))
    }

    /// Display unit of a base unit by its printed name, as in column headers.
    pub(crate) fn named(unit: Unit, printed: &str) -> Option<Self> {
        let found = scales(unit).iter().find(|(_, name)| *name == printed);
        found.map(|&(divisor, name)| Self { divisor, name, unit })
    }

    /// Value in this unit.
    pub(crate) fn number(self, value: f64) -> f64 {
        value / self.divisor
    }

    /// Value in this unit with three significant digits, for axes and for values without an
    /// interval.
    pub(crate) fn rough(self, value: f64) -> String {
        if self.is_whole(value) {
            return fixed(value, 0);
        }
        let value = self.number(value);
        fixed(value, significant(value, 3).clamp(0, 6))
    }

    /// True for an integer count without a prefix, which has no decimal places.
    fn is_whole(self, value: f64) -> bool {
        self.unit == Unit::Count && self.name.is_empty() && value.fract() == 0.0
    }

    /// Summary in this unit, with the digits that its interval allows.
    pub(crate) fn shown(self, summary: &Summary) -> Shown {
        let value = self.number(summary.median);
        let Some(interval) = summary.interval else {
            return Shown { value: self.rough(summary.median), interval: None, relative: None };
        };
        let (low, high) = (self.number(interval.low), self.number(interval.high));
        let whole = self.is_whole(summary.median)
            && [interval.low, interval.high].into_iter().all(|end| self.is_whole(end));
        let decimals = match decimals(value, (high - value).max(value - low)) {
            decimals if whole => decimals.min(0),
            decimals => decimals,
        };
        let interval = Some((fixed(low, decimals), fixed(high, decimals)));
        let relative = summary.half_width().map(|width| percent(width.0));
        Shown { value: fixed(value, decimals), interval, relative }
    }
}

/// Summary as text, without the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Median.
    pub(crate) value: String,
    /// Lower and upper end of the confidence interval.
    pub(crate) interval: Option<(String, String)>,
    /// Longer side of the interval in percent of the median.
    pub(crate) relative: Option<String>,
}

/// Decimal places of a value with this half-width of its interval. Negative places round to tens,
/// hundreds, and so on. A value without spread has four significant digits, others at most four.
fn decimals(value: f64, half_width: f64) -> i32 {
    if half_width > 0.0 {
        significant(half_width, 2).min(6).min(significant(value, 4).max(0))
    } else {
        significant(value, 4).clamp(0, 6)
    }
}

/// Decimal places for this many significant digits.
pub(crate) fn significant(value: f64, digits: i32) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a decimal exponent is within ±324")]
    let exponent = value.abs().log10().floor() as i32;
    digits - 1 - exponent
}

/// Number with this many decimal places. Negative places round to tens, hundreds, and so on.
pub(crate) fn fixed(value: f64, decimals: i32) -> String {
    match usize::try_from(decimals) {
        Ok(decimals) => format!("{value:.decimals$}"),
        Err(_) => {
            let step = 10f64.powi(-decimals);
            format!("{:.0}", (value / step).round() * step)
        }
    }
}

/// Fraction in percent with two significant digits and at most two decimal places: `2.3 %`, `15 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    format!("{} %", fixed(value, significant(value, 2).clamp(0, 2)))
}

/// Fraction in percent with the digits that its interval allows: at most one decimal place, or two
/// below 1 %. Example: `12.1 % [9.2 to 15.3 %]`.
pub(crate) fn percents(share: f64, interval: Option<Interval>) -> String {
    let Some(Interval { low, high, .. }) = interval else {
        return percent(share);
    };
    let half_width = (high - share).max(share - low) * 100.0;
    let most = if share.abs() < 0.01 { 2 } else { 1 };
    let places = decimals(share * 100.0, half_width).clamp(0, most);
    let [share, low, high] = [share, low, high].map(|share| fixed(share * 100.0, places));
    format!("{share} % [{low} to {high} %]")
}

/// p-value as text: `= 0.012`, `< 0.001`.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("= {}", fixed(p, 3)) }
}

/// Ratio with the digits that its interval allows: `×1.073 [1.052, 1.094]`.
pub(crate) fn ratio(value: f64, interval: Option<Interval>) -> String {
    let Some(Interval { low, high, .. }) = interval else {
        return format!("×{}", fixed(value, 2));
    };
    let places = decimals(value, (high - value).max(value - low)).clamp(0, 4);
    format!("×{} [{}, {}]", fixed(value, places), fixed(low, places), fixed(high, places))
}

/// Ratio as text: `3.1 times as long [2.8, 3.4]`, with the digits that its interval allows.
pub(crate) fn times(value: f64, interval: Option<Interval>, as_what: &str) -> String {
    let text = ratio(value, interval);
    let (value, interval) = text.split_once(' ').unwrap_or((&text, ""));
    format!("{} times {as_what} {interval}", value.trim_start_matches('×')).trim_end().to_owned()
}

/// Ratio to a named baseline: `1.38 × ext4 [1.21, 1.52]`. With `turned`, the inverse of the value
/// and of its interval.
pub(crate) fn ratio_of(value: f64, interval: Option<Interval>, turned: bool, name: &str) -> String {
    let turn = |value: f64| if turned { 1.0 / value } else { value };
    let value = turn(value);
    let Some(Interval { low, high, .. }) = interval else {
        return format!("{} × {name}", fixed(value, 2));
    };
    let (low, high) = if turned { (turn(high), turn(low)) } else { (low, high) };
    let places = decimals(value, (high - value).max(value - low)).clamp(0, 3);
    let [value, low, high] = [value, low, high].map(|value| fixed(value, places));
    format!("{value} × {name} [{low}, {high}]")
}

/// Time as `2026-11-21 20:31 UTC`.
///
/// The date is computed in the proleptic Gregorian calendar with years that start on 1 March, so
/// that the leap day is the last day of its year. There are 719 468 days from 0000-03-01 to
/// 1970-01-01. Source: `civil_from_days` in Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms".
pub(crate) fn utc(instant: Nanos) -> String {
    let seconds = instant.0 / 1_000_000_000;
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (rest / 3600, rest % 3600 / 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Duration in its two largest units, or in seconds below one minute: `2 h 05 min`, `3 min 20 s`,
/// `12.5 s`.
pub fn duration(time: Nanos) -> String {
    let seconds = time.0 / 1_000_000_000;
    match seconds {
        0..60 => format!("{:.1} s", time.seconds()),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Size with three significant digits, in the largest unit in which it is at least 1: `640 MiB`.
pub fn bytes(size: Bytes) -> String {
    alone(Unit::Bytes, size.0 as f64)
}

/// Bandwidth, given in bytes per second, with three significant digits: `1.21 GiB/s`.
pub fn bandwidth(bytes_per_second: f64) -> String {
    alone(Unit::BytesPerSecond, bytes_per_second)
}

/// Value of a metric, given in its base unit, with three significant digits and a suitable unit:
/// `310 k ops/s`, `1.84 ms`, `12.0 %`.
pub fn quantity(metric: Metric, value: f64) -> String {
    alone(metric.spec().unit, value)
}

/// Value with three significant digits in a suitable unit. Ratios are written as `×1.31`.
pub(crate) fn alone(unit: Unit, value: f64) -> String {
    let scale = Scale::of(unit, std::iter::once(value));
    if unit == Unit::Ratio {
        return format!("{}{}", scale.name, scale.rough(value));
    }
    format!("{} {}", scale.rough(value), scale.name).trim_end().to_owned()
}

/// Time in UTC as `20261121t203105`, for the names of files and runs.
pub fn stamp(instant: Nanos) -> String {
    let seconds = instant.0 / 1_000_000_000;
    let minute: String = utc(instant).chars().filter(char::is_ascii_digit).collect();
    let (day, time) = minute.split_at(8);
    format!("{day}t{time}{:02}", seconds % 60)
}

/// Untrusted text as one line without the characters of [`is_command`], so that it can neither
/// break a table nor control a terminal. Runs of white space become one space. Letters of all
/// scripts are kept.
pub(crate) fn one_line(text: &str) -> String {
    let plain = text.replace(is_command, " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True for characters that affect the display instead of being shown: control characters, line and
/// paragraph separators, marks and overrides of text direction (unicode.org/reports/tr9), and other
/// invisible format characters, which make different names look alike (unicode.org/reports/tr36,
/// section 2.5).
pub fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Number with a noun in the singular or plural: `1 test`, `3 tests`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    model::units::plural(n as u64, noun)
}

/// Values grouped by key, in the order of the first value of each key.
pub(crate) fn grouped<K: Ord + Clone, V>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    for (key, value) in pairs {
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Smallest and largest count: `8`, or `6 to 8`; `0` without any.
pub(crate) fn span(counts: impl Iterator<Item = u32> + Clone) -> String {
    match (counts.clone().min(), counts.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (least, _) => least.unwrap_or(0).to_string(),
    }
}

/// Distinct values, in the order of their first occurrence.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for one in all {
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known
}

/// Text with its first letter in upper case.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Text as part of an anchor: ASCII lower-case letters and digits, with a dash for each other
/// character.
pub(crate) fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(plain).collect()
}

/// Label of a metric: `durable throughput`.
pub(crate) fn metric_label(metric: Metric) -> String {
    // Names of percentiles and of the CPU differ from the labels in more than underscores.
    let words = metric.name().replace("p999", "p99.9").replace("cpu", "CPU").replace('_', " ");
    if metric.spec().unit != Unit::Instructions {
        return words;
    }
    // The instructions are those of a guest, not of the host.
    words.replace("instructions", "guest instructions").replace("per op", "per operation")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_values_have_a_separate_unit() {
        assert_eq!(bytes(Bytes::mib(640)), "640 MiB");
        assert_eq!(bandwidth(1.5 * KIB), "1.50 KiB/s");
        assert_eq!(quantity(Metric::WriteAmplification, 1.306), "×1.31");
        assert_eq!(quantity(Metric::WriteAmplification, 0.043), "×0.0430");
        assert_eq!(quantity(Metric::CpuFrequency, 2.4e9), "2.40 GHz");
        assert_eq!(quantity(Metric::CpuFrequency, 800e6), "800 MHz");
        assert_eq!(quantity(Metric::InstructionsPerOp, 4_221.4), "4.22 k instr");
        assert_eq!(quantity(Metric::StepInstructions, 41_836_229.0), "41.8 M instr");
        assert_eq!(stamp(Nanos(1_767_225_667_000_000_000)), "20260101t000107");
    }

    #[test]
    fn values_of_different_tests_have_a_common_unit_if_they_are_legible_in_it() {
        let unit = |values: &[f64]| {
            let scale = Scale::of_all(Unit::BytesPerSecond, values.iter().copied());
            scale.map(|scale| scale.name)
        };
        let mib = 1024.0 * 1024.0;
        assert_eq!(unit(&[2048.0 * mib]), Some("GiB/s"));
        assert_eq!(unit(&[97.0 * mib, 2217.0 * mib]), Some("MiB/s"));
        assert_eq!(unit(&[300.0 * mib, 20_000.0 * mib]), Some("GiB/s"));
        assert_eq!(unit(&[2.29 * mib, 18_227.0 * mib]), None);
        assert_eq!(unit(&[0.0]), None);
    }

    fn shown(unit: Unit, median: f64, low: f64, high: f64) -> String {
        let interval = Some(Interval { low, high, level: 0.95 });
        let summary =
            Summary { n: 12, median, interval, min: low, max: high, warnings: Vec::new() };
        let scale = Scale::of(unit, [median].into_iter());
        let shown = scale.shown(&summary);
        let (low, high) = shown.interval.unwrap();
        format!("{} {} [{low}, {high}]", shown.value, scale.name)
    }

    #[test]
    fn digits_follow_the_interval() {
        let gib = KIB * KIB * KIB;
        assert_eq!(
            shown(Unit::BytesPerSecond, 1.8731 * gib, 1.8421 * gib, 1.9039 * gib),
            "1.873 GiB/s [1.842, 1.904]"
        );
        assert_eq!(shown(Unit::Nanoseconds, 1.84e6, 1.5e6, 2.15e6), "1.84 ms [1.50, 2.15]");
        assert_eq!(
            shown(Unit::BytesPerSecond, 8000.0 * 1e3, 6000.0 * 1e3, 9000.0 * 1e3),
            "7.6 MiB/s [5.7, 8.6]"
        );
        assert_eq!(shown(Unit::Count, 65536.0, 65536.0, 65536.0), "65.54 k [65.54, 65.54]");
    }

    #[test]
    fn counts_that_are_whole_have_no_decimals() {
        assert_eq!(shown(Unit::Count, 210.0, 210.0, 210.0), "210  [210, 210]");
        assert_eq!(shown(Unit::Count, 210.0, 208.0, 213.0), "210  [208, 213]");
        assert_eq!(shown(Unit::Count, 3.2, 3.1, 3.3), "3.20  [3.10, 3.30]");
        assert_eq!(quantity(Metric::MajorFaults, 3.0), "3");
    }

    #[test]
    fn digits_are_limited() {
        assert_eq!(shown(Unit::Fraction, 0.31, 0.309_999_99, 0.31), "31.00 % [31.00, 31.00]");
    }

    #[test]
    fn wide_intervals_round_to_tens() {
        assert_eq!(fixed(1843.0, decimals(1843.0, 300.0)), "1840");
    }

    #[test]
    fn a_column_has_one_scale_that_serves_its_smallest_value_too() {
        let mib = KIB * KIB;
        let scale = |values: &[f64]| Scale::of(Unit::BytesPerSecond, values.iter().copied()).name;
        assert_eq!(scale(&[80.0 * mib, 2048.0 * mib]), "MiB/s");
        assert_eq!(scale(&[800.0 * mib, 2048.0 * mib]), "GiB/s");
        assert_eq!(scale(&[]), "B/s");
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        let at = |seconds: u64| utc(Nanos(seconds * 1_000_000_000));
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(at(951_868_800), "2000-03-01 00:00 UTC");
        assert_eq!(at(1_795_293_060), "2026-11-21 20:31 UTC");
    }

    #[test]
    fn ratios_and_percents() {
        let interval = Some(Interval { low: 1.052, high: 1.094, level: 0.95 });
        assert_eq!(ratio(1.073, interval), "×1.073 [1.052, 1.094]");
        assert_eq!((percent(0.023), percent(0.15)), ("2.3 %".into(), "15 %".into()));
        let interval = |low, high| Some(Interval { low, high, level: 0.95 });
        assert_eq!(percents(0.121, interval(0.09, 0.154)), "12.1 % [9.0 to 15.4 %]");
        assert_eq!(percents(0.121, interval(-0.09, 0.31)), "12 % [-9 to 31 %]");
        assert_eq!(percents(0.0038, interval(0.0035, 0.0041)), "0.38 % [0.35 to 0.41 %]");
        assert_eq!(percents(0.121, None), "12 %");
    }

    #[test]
    fn foreign_text_stays_on_its_line() {
        assert_eq!(one_line("mkfs: no\n\tspace \u{1b}[31m"), "mkfs: no space [31m");
        assert_eq!(one_line("a\u{202e}b\u{2028}c\u{2066}d\u{5d0}"), "a b c d\u{5d0}");
    }
}

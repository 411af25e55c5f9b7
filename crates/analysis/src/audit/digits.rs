//! Analysis of digits: slips between two numbers, and endings of means.

use std::collections::BTreeMap;

use super::{Cause, Finding, number, printed::Printed};

/// Minimum number of values for an analysis of endings.
const VALUES: usize = 20;
/// Probability above which common endings may be due to chance and are not reported.
const BY_CHANCE: f64 = 1e-6;
/// Maximum number of integers per mean that is detected.
const PARTS: u32 = 10;

/// Endings of means of a few integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Number of integers per mean: 3 for endings .00, .33, and .66; 1 if all numbers end in zeros.
    pub of: u32,
    /// True if the means were truncated (.66), false if they were rounded (.67); `None` if both
    /// give the same endings.
    pub cut: Option<bool>,
}

/// Minimum number of digits for a slip: shorter numbers differ in a single digit by chance.
const DIGITS: usize = 3;

/// Slip between two numbers printed for the same quantity: one digit differs, or two neighboring
/// digits are swapped.
pub(super) fn slip(first: f64, second: f64, places: usize) -> Option<Cause> {
    let (a, b) = (format!("{first:.places$}"), format!("{second:.places$}"));
    if a.len() != b.len() {
        return None;
    }
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).collect::<Vec<_>>();
    let (a, b) = (digits(&a), digits(&b));
    let zeros = |digits: &[u8]| digits.iter().take_while(|digit| **digit == b'0').count();
    if a.len() - zeros(&a).min(zeros(&b)) < DIGITS {
        return None;
    }
    let differ: Vec<usize> = (0..a.len().min(b.len())).filter(|at| a[*at] != b[*at]).collect();
    match differ[..] {
        [position] => Some(Cause::OneDigit { position }),
        [left, right] if left + 1 == right && a[left] == b[right] && a[right] == b[left] => {
            Some(Cause::Swapped { position: left })
        }
        _ => None,
    }
}

/// Decimal places of the numbers of a statistic: the usual number of places, else the largest.
fn places(printed: &Printed<'_>, statistic: &str) -> usize {
    let usual = printed.styles.get(statistic).and_then(|style| style.decimals);
    let own = || {
        let cells = (0..printed.cells.len()).filter(|cell| printed.statistic(*cell) == statistic);
        cells.map(|cell| number::places(&printed.cells[cell].printed)).max().unwrap_or(0)
    };
    usual.unwrap_or_else(own)
}

/// Decimal places of each statistic, and the step between neighboring numbers: a unit of the last
/// place, or 1/n if the endings are those of means of n integers.
pub(super) fn scales<'a>(printed: &Printed<'a>) -> BTreeMap<&'a str, (usize, f64)> {
    let scale = |statistic: &&'a str| {
        let places = places(printed, statistic);
        let step = match parts(printed, statistic, places) {
            Some((parts, _)) => 1.0 / f64::from(parts.of),
            None => 10_f64.powi(-i32::try_from(places).unwrap_or(i32::MAX)),
        };
        (*statistic, (places, step))
    };
    printed.styles.keys().map(scale).collect()
}

/// Statistics whose endings are those of means of a few integers.
pub(super) fn granular(printed: &Printed<'_>) -> Vec<Finding> {
    let found = printed.styles.keys().filter_map(|statistic| {
        let (parts, values) = parts(printed, statistic, places(printed, statistic))?;
        Some(Finding::Granular { statistic: (*statistic).to_owned(), parts, values })
    });
    found.collect()
}

/// Smallest number of integers whose means have the endings of all values of a statistic, and the
/// number of values. `None` unless almost all numbers have the same one to six decimal places.
fn parts(printed: &Printed<'_>, statistic: &str, places: usize) -> Option<(Parts, usize)> {
    let style = printed.styles.get(statistic)?;
    let scale = 10_u32.pow(u32::try_from(style.decimals.filter(|n| (1..=6).contains(n))?).ok()?);
    let mut endings: BTreeMap<u32, usize> = BTreeMap::new();
    for cell in printed.firsts() {
        if printed.statistic(cell) == statistic {
            *endings.entry(ending(printed.values[cell]?, places)?).or_default() += 1;
        }
    }
    let values = endings.values().sum();
    if values < VALUES {
        return None;
    }
    let fits = |of: u32, up: u32| {
        // `up` is 0 if numbers are truncated, and half of the divisor, `of * 2`, if they are
        // rounded.
        let of_parts: Vec<u32> = (0..of).map(|part| (part * scale * 2 + up) / (of * 2)).collect();
        let by_chance = f64::from(of) / f64::from(scale);
        let lucky = by_chance.powf(values as f64) < BY_CHANCE;
        lucky && endings.keys().all(|ending| of_parts.contains(ending))
    };
    (1..=PARTS.min(scale - 1)).find_map(|of| {
        let cut = match (fits(of, 0), fits(of, of)) {
            (true, true) => None,
            (true, false) => Some(true),
            (false, true) => Some(false),
            (false, false) => return None,
        };
        Some((Parts { of, cut }, values))
    })
}

/// Digits after the decimal point.
fn ending(value: f64, places: usize) -> Option<u32> {
    format!("{value:.places$}").split_once('.')?.1.parse().ok()
}

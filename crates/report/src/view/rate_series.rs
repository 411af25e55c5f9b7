//! Rate over time within the repetitions of a test.
//!
//! The input is the [`Series`] of the measured trials, whose intervals may differ in length. In a
//! [`RateSeries`], all filesystems have intervals of the same length, so that their variation is
//! comparable. Rates are in base units.

use model::{metric::Unit, phase::Series};

use super::{
    points::{Entry, Status, Test},
    sample_index::SampleIndex,
};

/// Minimum number of intervals that at least one filesystem must have.
const LEAST: usize = 5;

/// Maximum number of intervals, limited by the width of a panel in pixels.
const MOST: u64 = 120;

/// Rates of a test over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RateSeries {
    /// Length of an interval in nanoseconds.
    pub(crate) interval: u64,
    /// [`Unit::BytesPerSecond`] or [`Unit::OpsPerSecond`].
    pub(crate) unit: Unit,
    /// By index of the filesystem.
    pub(crate) lines: Vec<RateLine>,
    /// Filesystems without a line, with the reason.
    pub(crate) absent: Vec<(usize, String)>,
}

/// One filesystem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RateLine {
    pub(crate) filesystem: usize,
    /// Repetitions.
    pub(crate) n: u32,
    /// Median, minimum, and maximum of each interval over the repetitions that have the interval.
    /// The line ends at the last interval that at least half of the repetitions have.
    pub(crate) rates: Vec<[f64; 3]>,
    /// Number of repetitions whose last part was faster than the first, and number whose last part
    /// was slower.
    pub(crate) turns: (u32, u32),
}

/// Number of parts of a repetition, of which the first and the last are compared. It is the number
/// of rounds in the SNIA Solid State Storage Performance Test Specification (v2.0.1, 2.1.24).
const ROUNDS: usize = 5;

/// Ratio of the last part of a series to the first. `None` if the first part is zero or the series
/// has fewer intervals than parts.
pub(crate) fn moved(rates: impl ExactSizeIterator<Item = f64> + Clone) -> Option<f64> {
    let each = rates.len() / ROUNDS;
    let last: f64 = rates.clone().skip(rates.len() - each).sum();
    let first: f64 = rates.take(each).sum();
    (first > 0.0).then(|| last / first)
}

/// Rate over time of a test, if recorded.
pub(crate) fn rate_series(test: &Test, sample_index: &SampleIndex) -> Option<RateSeries> {
    let mut own: Vec<(&Entry, Vec<&Series>)> = Vec::new();
    for entry in test.entries.iter().filter(|entry| entry.status == Status::Measured) {
        let all = sample_index.measured(entry.cell).flat_map(|trial| &trial.series);
        let all = all.filter(|(phase, series)| *phase == test.name && series.interval.0 > 0);
        own.push((entry, all.map(|(_, series)| series).collect()));
    }
    own.sort_by_key(|(entry, _)| entry.filesystem);
    let all = || own.iter().flat_map(|(_, repetitions)| repetitions);
    let interval = interval(all().copied())?;
    // The rate of work that transfers no bytes, such as creating files, is in operations.
    let moves = test.metric.spec().unit == Unit::BytesPerSecond;
    let moves = moves && all().any(|series| series.bytes.iter().any(|bytes| *bytes > 0));
    let line = |(entry, repetitions): &(&Entry, Vec<&Series>)| {
        let each: Vec<Vec<f64>> =
            repetitions.iter().map(|own| joined(own, interval, moves)).collect();
        let turned = |which: fn(f64) -> bool| {
            let turns = each.iter().filter_map(|own| moved(own.iter().copied()));
            u32::try_from(turns.filter(|ratio| which(*ratio)).count()).unwrap_or(u32::MAX)
        };
        RateLine {
            filesystem: entry.filesystem,
            n: u32::try_from(repetitions.len()).unwrap_or(u32::MAX),
            rates: rates(&each),
            turns: (turned(|ratio| ratio > 1.0), turned(|ratio| ratio < 1.0)),
        }
    };
    let mut lines: Vec<RateLine> = own.iter().map(line).collect();
    lines.retain(|line| !line.rates.is_empty());
    lines.iter().any(|line| line.rates.len() >= LEAST).then(|| RateSeries {
        interval,
        unit: if moves { Unit::BytesPerSecond } else { Unit::OpsPerSecond },
        absent: test.absent(
            |filesystem| lines.iter().any(|line| line.filesystem == filesystem),
            "shorter than two intervals",
        ),
        lines,
    })
}

/// Common interval length in nanoseconds: the longest of any repetition, doubled until the longest
/// repetition has at most [`MOST`] intervals. Lengths are normally powers of two of the same base.
/// Otherwise, the work of an interval counts for the common interval in which it starts. `None`
/// without any series.
fn interval<'a>(all: impl Iterator<Item = &'a Series> + Clone) -> Option<u64> {
    let mut interval = all.clone().map(|series| series.interval.0).max()?;
    let length = |series: &Series| series.interval.0.saturating_mul(series.ops.len() as u64);
    let longest = all.map(length).max()?;
    while longest / interval > MOST {
        interval = interval.checked_mul(2)?;
    }
    Some(interval)
}

/// Rate in each complete interval of a repetition, in bytes per second if `moves`, otherwise in
/// operations per second. The last interval may be incomplete and is omitted.
fn joined(series: &Series, interval: u64, moves: bool) -> Vec<f64> {
    let work = if moves { &series.bytes } else { &series.ops };
    let mut sums: Vec<u64> = Vec::new();
    for (at, work) in (0_u64..).zip(work) {
        let Ok(place) = usize::try_from(at * series.interval.0 / interval) else { break };
        if sums.len() <= place {
            sums.resize(place + 1, 0);
        }
        sums[place] += work;
    }
    sums.pop();
    sums.into_iter().map(|sum| sum as f64 * 1e9 / interval as f64).collect()
}

fn rates(repetitions: &[Vec<f64>]) -> Vec<[f64; 3]> {
    let mut lengths: Vec<usize> = repetitions.iter().map(Vec::len).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    // Number of intervals that at least half of the repetitions have.
    let longest = lengths.get(lengths.len().div_ceil(2).wrapping_sub(1)).copied().unwrap_or(0);
    let mut rates = Vec::with_capacity(longest);
    for at in 0..longest {
        let mut now: Vec<f64> = repetitions.iter().filter_map(|own| own.get(at).copied()).collect();
        now.sort_by(f64::total_cmp);
        if let (Some(least), Some(most)) = (now.first(), now.last()) {
            let (low, high) = ((now.len() - 1) / 2, now.len() / 2);
            rates.push([(now[low] + now[high]) / 2.0, *least, *most]);
        }
    }
    rates
}

#[cfg(test)]
mod tests;

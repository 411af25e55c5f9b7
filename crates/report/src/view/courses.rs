//! The course of a test: work over time within the repeats.
//!
//! [`Series`] of the measured trials enter, each with intervals of its own length; for each test
//! there leaves at most one [`Courses`], in which all filesystems have intervals of one length, so
//! that they scatter alike, and whose rates are in base units.

use model::{metric::Unit, phase::Series};

use super::{
    points::{Entry, Status, Suite, Test},
    pool::Pool,
};

/// Intervals that some filesystem must have: of fewer no course is seen.
const LEAST: usize = 5;

/// Intervals that the longest course has at most: a panel is not much wider in pixels.
const MOST: u64 = 120;

/// How the work of a test went over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Courses {
    /// Length of an interval in nanoseconds.
    pub(crate) interval: u64,
    /// Bytes or operations per second.
    pub(crate) unit: Unit,
    /// By index of the filesystem.
    pub(crate) lines: Vec<Course>,
    /// Filesystems that are not among them, and why.
    pub(crate) absent: Vec<(usize, String)>,
}

/// One filesystem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Course {
    pub(crate) filesystem: usize,
    /// Repeats.
    pub(crate) n: u32,
    /// Median, least, and most of the repeats that were still at work, for each interval from the
    /// start on as long as at least half of the repeats were.
    pub(crate) rates: Vec<[f64; 3]>,
    /// Repeats whose last part went faster than their first, and slower.
    pub(crate) turns: (u32, u32),
}

/// Parts of a course whose first and last are held against each other: the rounds of the SNIA Solid
/// State Storage Performance Test Specification (v2.0.1, 2.1.24).
const ROUNDS: usize = 5;

/// The last part of a course over its first; `None` where either is nothing or there are fewer
/// intervals than parts.
pub(crate) fn moved(rates: impl ExactSizeIterator<Item = f64> + Clone) -> Option<f64> {
    let each = rates.len() / ROUNDS;
    let last: f64 = rates.clone().skip(rates.len() - each).sum();
    let first: f64 = rates.take(each).sum();
    (first > 0.0).then(|| last / first)
}

/// For each suite and each test of its points, in their order: its course, if it has one.
pub(crate) fn courses(suites: &[Suite], pool: &Pool) -> Vec<Vec<Option<Courses>>> {
    let of_suite = |suite: &Suite| {
        let tests = suite.points.iter().flat_map(|point| &point.tests);
        tests.map(|test| of_test(test, pool)).collect()
    };
    suites.iter().map(of_suite).collect()
}

fn of_test(test: &Test, pool: &Pool) -> Option<Courses> {
    let mut own: Vec<(&Entry, Vec<&Series>)> = Vec::new();
    for entry in test.entries.iter().filter(|entry| entry.status == Status::Measured) {
        let all = pool.measured(entry.cell).flat_map(|trial| &trial.series);
        let all = all.filter(|(phase, series)| *phase == test.name && series.interval.0 > 0);
        own.push((entry, all.map(|(_, series)| series).collect()));
    }
    own.sort_by_key(|(entry, _)| entry.filesystem);
    let all = || own.iter().flat_map(|(_, repeats)| repeats);
    let interval = interval(all().copied())?;
    // Work that moves no bytes, such as making files, is told in operations.
    let moves = test.metric.spec().unit == Unit::BytesPerSecond;
    let moves = moves && all().any(|series| series.bytes.iter().any(|bytes| *bytes > 0));
    let course = |(entry, repeats): &(&Entry, Vec<&Series>)| {
        let each: Vec<Vec<f64>> = repeats.iter().map(|own| joined(own, interval, moves)).collect();
        let turned = |which: fn(f64) -> bool| {
            let turns = each.iter().filter_map(|own| moved(own.iter().copied()));
            u32::try_from(turns.filter(|ratio| which(*ratio)).count()).unwrap_or(u32::MAX)
        };
        Course {
            filesystem: entry.filesystem,
            n: u32::try_from(repeats.len()).unwrap_or(u32::MAX),
            rates: rates(&each),
            turns: (turned(|ratio| ratio > 1.0), turned(|ratio| ratio < 1.0)),
        }
    };
    let mut lines: Vec<Course> = own.iter().map(course).collect();
    lines.retain(|line| !line.rates.is_empty());
    lines.iter().any(|line| line.rates.len() >= LEAST).then(|| Courses {
        interval,
        unit: if moves { Unit::BytesPerSecond } else { Unit::OpsPerSecond },
        absent: absent(test, &lines),
        lines,
    })
}

/// The length that all intervals are brought to: the longest of any repeat, doubled until the
/// longest repeat has few enough of them. Every length is one of the doublings of the same
/// shortest one; where it is not, work is shown less than half an interval off.
fn interval<'a>(all: impl Iterator<Item = &'a Series> + Clone) -> Option<u64> {
    let mut interval = all.clone().map(|series| series.interval.0).max()?;
    let length = |series: &Series| series.interval.0.saturating_mul(series.ops.len() as u64);
    let longest = all.map(length).max()?;
    while longest / interval > MOST {
        interval = interval.checked_mul(2)?;
    }
    Some(interval)
}

/// The rate in each whole interval of a repeat; the last one, which may be cut short, is left out.
#[expect(clippy::cast_precision_loss, reason = "work of an interval, below 2^53")]
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

fn rates(repeats: &[Vec<f64>]) -> Vec<[f64; 3]> {
    let mut lengths: Vec<usize> = repeats.iter().map(Vec::len).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    // As many intervals as at least half of the repeats have.
    let longest = lengths.get(lengths.len().div_ceil(2).wrapping_sub(1)).copied().unwrap_or(0);
    let mut rates = Vec::with_capacity(longest);
    for at in 0..longest {
        let mut now: Vec<f64> = repeats.iter().filter_map(|own| own.get(at).copied()).collect();
        now.sort_by(f64::total_cmp);
        if let (Some(least), Some(most)) = (now.first(), now.last()) {
            let (low, high) = ((now.len() - 1) / 2, now.len() / 2);
            rates.push([(now[low] + now[high]) / 2.0, *least, *most]);
        }
    }
    rates
}

/// Filesystems of the test without a course.
fn absent(test: &Test, lines: &[Course]) -> Vec<(usize, String)> {
    let drawn = |entry: &&Entry| lines.iter().any(|line| line.filesystem == entry.filesystem);
    let reason = |entry: &Entry| match &entry.status {
        Status::Nothing(reason) => (entry.filesystem, reason.clone()),
        Status::Measured => (entry.filesystem, "shorter than two intervals".into()),
    };
    let mut absent: Vec<_> =
        test.entries.iter().filter(|entry| !drawn(entry)).map(reason).collect();
    absent.sort_by_key(|(filesystem, _)| *filesystem);
    absent
}

#[cfg(test)]
mod tests;

//! Latencies as curves: percentiles of every repeat, and the distribution of all operations.
//!
//! Histograms of the measured trials enter, once for each number of the report; for each test there
//! leave as many [`Curves`] as kinds of operations were timed apart. Nothing leaves for tests whose
//! operations are too few to carry more than the lowest percentiles: two dots are no curve.

use analysis::percentiles;
use model::{
    Clock, Histogram,
    record::{Times, TimesOf},
};

use super::{
    points::{Entry, Status, Suite, Test},
    pool::Pool,
};

/// The percentiles of a ladder; each is one nine more.
pub(crate) const LADDER: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Percentiles that some filesystem has to have: p99, which takes 1000 operations in every repeat.
const RUNGS: usize = 3;

/// The part of all operations that the axis of a distribution leaves out at either end: one
/// operation of a million that took a second would press all others into a corner.
pub(crate) const CUT: f64 = 0.001;

/// Half pixels of a distribution, across and up: what lies nearer to the point before is left out.
const GRAIN: (f64, f64) = (1200.0, 480.0);

/// Times of one kind of operations at one test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curves {
    pub(crate) of: TimesOf,
    /// The operations were due at instants of a schedule, and their times count from then.
    pub(crate) scheduled: bool,
    /// By index of the filesystem.
    pub(crate) lines: Vec<Curve>,
    /// Common ends of the axis of distributions, as decimal logarithms of nanoseconds.
    pub(crate) range: (f32, f32),
    /// Filesystems that are not among them, and why.
    pub(crate) absent: Vec<(usize, String)>,
}

/// One filesystem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) filesystem: usize,
    /// Repeats.
    pub(crate) n: u32,
    /// Operations of all repeats.
    pub(crate) operations: u64,
    /// The first percentiles of [`LADDER`], as many as the operations carry.
    pub(crate) rungs: Vec<Rung>,
    /// Decimal logarithm of nanoseconds, and the part of the operations that took at most as long;
    /// both ascending.
    pub(crate) cumulated: Vec<(f32, f32)>,
}

/// A percentile over the repeats, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rung {
    pub(crate) median: f64,
    /// Ends of the 95 % interval of the median, where there are enough repeats for one.
    pub(crate) interval: Option<(f64, f64)>,
    /// Least and most of the repeats.
    pub(crate) range: (f64, f64),
}

/// For each suite and each test of its points, in their order: its curves. Where instructions were
/// counted there are none: the curves are of times.
pub(crate) fn curves(suites: &[Suite], pool: &Pool) -> Vec<Vec<Vec<Curves>>> {
    let of_suite = |suite: &Suite| {
        let tests = suite.points.iter().flat_map(|point| &point.tests);
        tests.map(|test| of_test(test, pool)).collect()
    };
    suites.iter().map(of_suite).collect()
}

/// The times of one filesystem at a test: those of every measured repeat.
type Timed<'a> = (&'a Entry, Vec<&'a Times>);

fn of_test(test: &Test, pool: &Pool) -> Vec<Curves> {
    if pool.clock == Clock::Instructions {
        return Vec::new();
    }
    let mut timed: Vec<Timed> = Vec::new();
    for entry in test.entries.iter().filter(|entry| entry.status == Status::Measured) {
        let all = pool.measured(entry.cell).flat_map(|trial| &trial.histograms);
        timed.push((entry, all.filter(|times| times.phase == test.name).collect()));
    }
    timed.sort_by_key(|(entry, _)| entry.filesystem);
    let has = |of: TimesOf| {
        let mut all = timed.iter().flat_map(|(_, times)| times);
        all.any(|times| times.of == of && times.histogram.count() > 0)
    };
    let apart = has(TimesOf::Read) && has(TimesOf::Write);
    let kinds: &[TimesOf] = if apart { &[TimesOf::Read, TimesOf::Write] } else { &[TimesOf::All] };
    let scheduled = has(TimesOf::Service);
    let each = kinds.iter().filter_map(|of| of_kind(*of, &timed, scheduled));
    each.map(|own| Curves { absent: absent(test, &own), ..own }).collect()
}

fn of_kind<'a>(of: TimesOf, timed: &[Timed<'a>], scheduled: bool) -> Option<Curves> {
    let kind = |(entry, times): &Timed<'a>| -> Option<(usize, Vec<&'a Histogram>)> {
        let own = times.iter().filter(|times| times.of == of);
        let own = own.map(|times| &times.histogram);
        let own: Vec<&Histogram> = own.filter(|histogram| histogram.count() > 0).collect();
        (!own.is_empty()).then_some((entry.filesystem, own))
    };
    let repeats: Vec<(usize, Vec<&Histogram>)> = timed.iter().filter_map(kind).collect();
    let ladders: Vec<Vec<Rung>> = repeats.iter().map(|(_, own)| ladder(own)).collect();
    if ladders.iter().all(|ladder| ladder.len() < RUNGS) {
        return None;
    }
    let merged: Vec<Histogram> = repeats.iter().map(|(_, own)| all_of(own)).collect();
    let range = range(&merged);
    let mut lines = Vec::new();
    for (((filesystem, own), rungs), merged) in repeats.iter().zip(ladders).zip(&merged) {
        lines.push(Curve {
            filesystem: *filesystem,
            n: u32::try_from(own.len()).unwrap_or(u32::MAX),
            operations: merged.count(),
            rungs,
            // One distribution alone says nothing that the ladder does not.
            cumulated: if repeats.len() > 1 { cumulated(merged, range) } else { Vec::new() },
        });
    }
    Some(Curves { of, scheduled, lines, range, absent: Vec::new() })
}

/// The percentiles that the operations of every repeat carry, from the lowest on.
fn ladder(repeats: &[&Histogram]) -> Vec<Rung> {
    let rung = |(_, q): &(&str, f64)| {
        let summary = percentiles::over_runs(repeats.iter().copied(), *q).ok()?;
        Some(Rung {
            median: summary.median,
            interval: summary.interval.map(|ends| (ends.low, ends.high)),
            range: (summary.min, summary.max),
        })
    };
    // A time of less than the clock can tell has no place on a logarithmic axis.
    LADDER.iter().map_while(rung).take_while(|rung| rung.range.0 > 0.0).collect()
}

fn all_of(repeats: &[&Histogram]) -> Histogram {
    let mut merged = Histogram::default();
    repeats.iter().for_each(|repeat| merged.merge(repeat));
    merged
}

/// Ends of the axis that all distributions share.
fn range(all: &[Histogram]) -> (f32, f32) {
    let end = |q: f64| {
        let ends = all.iter().filter_map(move |own| own.quantile(q));
        ends.map(|nanos| logarithm(nanos.0))
    };
    let low = end(CUT).fold(f32::INFINITY, f32::min);
    let high = end(1.0 - CUT).fold(f32::NEG_INFINITY, f32::max);
    // A line in the middle, where all operations took equally long.
    if high - low < 0.1 { (low - 0.05, high + 0.05) } else { (low, high) }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a place on an axis, good to a pixel"
)]
fn logarithm(nanos: u64) -> f32 {
    (nanos.max(1) as f64).log10() as f32
}

/// The cumulated distribution within a range: each counter of the histogram is a ramp as wide as
/// what it counts.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a place on an axis, good to a pixel"
)]
fn cumulated(histogram: &Histogram, (low, high): (f32, f32)) -> Vec<(f32, f32)> {
    let total = histogram.count() as f64;
    let grain = (f64::from(high - low) / GRAIN.0, 1.0 / GRAIN.1);
    let mut curve: Vec<(f32, f32)> = Vec::new();
    let mut add = |nanos: u64, seen: u64| {
        let point = (logarithm(nanos).clamp(low, high), (seen as f64 / total) as f32);
        let far = |last: &(f32, f32)| {
            f64::from(point.0 - last.0) >= grain.0 || f64::from(point.1 - last.1) >= grain.1
        };
        // Where many steps fall into one, the last of them is where the curve goes on.
        if curve.last().is_none_or(far) {
            curve.push(point);
        } else if let Some(last) = curve.last_mut().filter(|last| last.0 == point.0) {
            last.1 = point.1;
        }
    };
    let mut seen = 0;
    for (nanos, count) in histogram.buckets() {
        add(nanos.0, seen);
        seen += count;
        // A counter is at most 1/128 of its values wide.
        add(nanos.0 + (nanos.0 >> 7), seen);
    }
    curve
}

/// Filesystems of the test without a curve.
fn absent(test: &Test, curves: &Curves) -> Vec<(usize, String)> {
    let drawn = |entry: &Entry| {
        let line = curves.lines.iter().find(|line| line.filesystem == entry.filesystem);
        line.is_some_and(|line| !line.rungs.is_empty())
    };
    let mut absent: Vec<(usize, String)> = Vec::new();
    for entry in test.entries.iter().filter(|entry| !drawn(entry)) {
        let reason = match &entry.status {
            Status::Nothing(reason) => reason.clone(),
            Status::Measured => "too few operations were timed".into(),
        };
        absent.push((entry.filesystem, reason));
    }
    absent.sort_by_key(|(filesystem, _)| *filesystem);
    absent
}

#[cfg(test)]
mod tests;

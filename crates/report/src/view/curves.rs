//! Latency curves: percentiles per repetition, summarized, and the distribution of all operations.
//!
//! The input is the histograms of the measured trials. Each test has one [`Curves`] per type of
//! operation that was timed separately, or none if there are too few operations for p99.

use analysis::percentiles;
use model::{
    Clock, Histogram,
    record::{HistogramKind, PhaseHistogram},
};

use super::{
    points::{Entry, Status, Test},
    sample_index::SampleIndex,
};

/// Percentiles of a curve.
pub(crate) const LADDER: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Minimum number of percentiles that at least one filesystem must have: up to p99, which needs
/// 1000 operations in every repetition.
const PERCENTILES_MIN: usize = 3;

/// Fraction of the operations beyond each end of the axis of a distribution. Without this cut, a
/// single slow operation would determine the range.
pub(crate) const CUT: f64 = 0.001;

/// Resolution of a distribution in half pixels, horizontal and vertical. Points closer than half a
/// pixel in both directions are omitted.
const GRAIN: (f64, f64) = (1200.0, 480.0);

/// Latency curves of one type of operation in one test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curves {
    pub(crate) of: HistogramKind,
    /// True in an open loop: latencies are measured from the scheduled start.
    pub(crate) scheduled: bool,
    /// By index of the filesystem.
    pub(crate) lines: Vec<Curve>,
    /// Common axis range of the distributions, as decimal logarithms of nanoseconds.
    pub(crate) range: (f32, f32),
    /// Filesystems without a curve, with the reason.
    pub(crate) absent: Vec<(usize, String)>,
}

/// One filesystem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) filesystem: usize,
    /// Repetitions.
    pub(crate) n: u32,
    /// Operations of all repetitions.
    pub(crate) operations: u64,
    /// Percentiles of [`LADDER`] for which there are enough operations.
    pub(crate) percentiles: Vec<PercentilePoint>,
    /// Decimal logarithm of nanoseconds, and fraction of the operations at or below it; ascending.
    pub(crate) cumulated: Vec<(f32, f32)>,
}

/// A percentile over the repetitions, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PercentilePoint {
    pub(crate) median: f64,
    /// 95 % confidence interval of the median, if there are enough repetitions.
    pub(crate) interval: Option<(f64, f64)>,
    /// Minimum and maximum of the repetitions.
    pub(crate) range: (f64, f64),
}

/// Histograms of one filesystem in a test, of all measured repetitions.
type Timed<'a> = (&'a Entry, Vec<&'a PhaseHistogram>);

/// Curves of a test; none in icount guests, which have no times.
pub(crate) fn curves(test: &Test, sample_index: &SampleIndex) -> Vec<Curves> {
    if sample_index.clock == Clock::Instructions {
        return Vec::new();
    }
    let mut timed: Vec<Timed> = Vec::new();
    for entry in test.entries.iter().filter(|entry| entry.status == Status::Measured) {
        let all = sample_index.measured(entry.cell).flat_map(|trial| &trial.histograms);
        timed.push((entry, all.filter(|times| times.phase == test.name).collect()));
    }
    timed.sort_by_key(|(entry, _)| entry.filesystem);
    let has = |of: HistogramKind| {
        let mut all = timed.iter().flat_map(|(_, times)| times);
        all.any(|times| times.kind == of && times.histogram.count() > 0)
    };
    let apart = has(HistogramKind::Read) && has(HistogramKind::Write);
    let kinds: &[HistogramKind] =
        if apart { &[HistogramKind::Read, HistogramKind::Write] } else { &[HistogramKind::All] };
    let scheduled = has(HistogramKind::ServiceTime);
    let each = kinds.iter().filter_map(|of| of_kind(*of, &timed, scheduled));
    each.map(|own| {
        let drawn = |filesystem| {
            let mut lines = own.lines.iter().filter(|line| !line.percentiles.is_empty());
            lines.any(|line| line.filesystem == filesystem)
        };
        Curves { absent: test.absent(drawn, "too few operations were timed"), ..own }
    })
    .collect()
}

fn of_kind<'a>(of: HistogramKind, timed: &[Timed<'a>], scheduled: bool) -> Option<Curves> {
    let kind = |(entry, times): &Timed<'a>| -> Option<(usize, Vec<&'a Histogram>)> {
        let own = times.iter().filter(|times| times.kind == of);
        let own = own.map(|times| &times.histogram);
        let own: Vec<&Histogram> = own.filter(|histogram| histogram.count() > 0).collect();
        (!own.is_empty()).then_some((entry.filesystem, own))
    };
    let repetitions: Vec<(usize, Vec<&Histogram>)> = timed.iter().filter_map(kind).collect();
    let ladders: Vec<Vec<PercentilePoint>> =
        repetitions.iter().map(|(_, own)| ladder(own)).collect();
    if ladders.iter().all(|ladder| ladder.len() < PERCENTILES_MIN) {
        return None;
    }
    let merged: Vec<Histogram> = repetitions.iter().map(|(_, own)| all_of(own)).collect();
    let range = range(&merged);
    let mut lines = Vec::new();
    for (((filesystem, own), percentiles), merged) in repetitions.iter().zip(ladders).zip(&merged) {
        lines.push(Curve {
            filesystem: *filesystem,
            n: u32::try_from(own.len()).unwrap_or(u32::MAX),
            operations: merged.count(),
            percentiles,
            // The distribution of a single filesystem is omitted, because it repeats the
            // percentiles.
            cumulated: if repetitions.len() > 1 { cumulated(merged, range) } else { Vec::new() },
        });
    }
    Some(Curves { of, scheduled, lines, range, absent: Vec::new() })
}

/// Percentiles in nanoseconds, ascending, for which every repetition has enough operations.
fn ladder(repetitions: &[&Histogram]) -> Vec<PercentilePoint> {
    let point = |(_, q): &(&str, f64)| {
        let summary = percentiles::over_runs(repetitions.iter().copied(), *q).ok()?;
        Some(PercentilePoint {
            median: summary.median,
            interval: summary.interval.map(|ends| (ends.low, ends.high)),
            range: (summary.min, summary.max),
        })
    };
    // A time below the clock resolution is zero and has no position on a logarithmic axis.
    LADDER.iter().map_while(point).take_while(|point| point.range.0 > 0.0).collect()
}

fn all_of(repetitions: &[&Histogram]) -> Histogram {
    let mut merged = Histogram::default();
    repetitions.iter().for_each(|repetition| merged.merge(repetition));
    merged
}

/// Common axis range of all distributions, as decimal logarithms of nanoseconds.
fn range(all: &[Histogram]) -> (f32, f32) {
    let end = |q: f64| {
        let ends = all.iter().filter_map(move |own| own.quantile(q));
        ends.map(|nanos| logarithm(nanos.0))
    };
    let low = end(CUT).fold(f32::INFINITY, f32::min);
    let high = end(1.0 - CUT).fold(f32::NEG_INFINITY, f32::max);
    // If all operations took equally long, the curve is a vertical line in the middle of the axis.
    if high - low < 0.1 { (low - 0.05, high + 0.05) } else { (low, high) }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a position on an axis with pixel accuracy"
)]
fn logarithm(nanos: u64) -> f32 {
    (nanos.max(1) as f64).log10() as f32
}

/// Cumulative distribution within a range ([`Curve::cumulated`]). Each histogram bucket is a ramp
/// over its width.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a position on an axis with pixel accuracy"
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
        // Of several steps at one position, the last one counts.
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
        // The width of a bucket is at most 1/128 of its value.
        add(nanos.0 + (nanos.0 >> 7), seen);
    }
    curve
}

#[cfg(test)]
mod tests;

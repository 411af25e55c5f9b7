//! Latencies of a direction, merged over the workers of a job.

use model::{
    Histogram, Metric,
    record::{HistogramKind, PhaseHistogram},
};

use super::document::{Side, SyncSide, Times};
use crate::imports::Measurement;

/// Kind of latency in a direction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// From the start of the operation to its completion (lat).
    Latency,
    /// From the submission to the completion (clat).
    Completion,
    /// Duration of the submission (slat).
    Submission,
}

/// Maximum number of values of a histogram in a run file.
const COUNT_MAX: u64 = 1 << 48;

/// Latencies of one kind.
pub(super) struct Merged<'a> {
    /// Latencies of each worker, the number of values, and nanoseconds per unit.
    all: Vec<(&'a Times, f64, f64)>,
}

impl<'a> Merged<'a> {
    /// Latencies of one kind in these directions.
    pub(super) fn new(sides: &[&'a Side], kind: Kind) -> Self {
        let own = |side: &&'a Side| {
            let (new, old) = match kind {
                Kind::Latency => (&side.lat_ns, &side.lat),
                Kind::Completion => (&side.clat_ns, &side.clat),
                Kind::Submission => (&side.slat_ns, &side.slat),
            };
            let unit = if new.is_some() { 1.0 } else { 1e3 };
            let times = new.as_ref().or(old.as_ref())?;
            Some((times, times.count.unwrap_or(side.total_ios), unit))
        };
        Self { all: sides.iter().filter_map(own).filter(|(_, count, _)| *count > 0.0).collect() }
    }

    /// Latencies of sync calls.
    pub(super) fn of_sync(sides: &[&'a SyncSide]) -> Self {
        let own = |side: &&'a SyncSide| {
            let times = side.lat_ns.as_ref()?;
            Some((times, times.count.unwrap_or(side.total_ios), 1.0))
        };
        Self { all: sides.iter().filter_map(own).filter(|(_, count, _)| *count > 0.0).collect() }
    }

    /// Mean in nanoseconds. fio writes zeros for a latency that it did not measure.
    pub(super) fn mean(&self) -> Option<f64> {
        let mut sums = (0.0, 0.0);
        for (times, count, unit) in &self.all {
            sums.0 += times.mean? * unit * count;
            sums.1 += count;
        }
        (sums.0 > 0.0).then(|| sums.0 / sums.1)
    }

    /// Maximum in nanoseconds.
    pub(super) fn max(&self) -> Option<f64> {
        let all = self.all.iter().filter_map(|(times, _, unit)| Some(times.max? * unit));
        all.reduce(f64::max)
    }

    /// True if percentiles or a histogram of all workers together are known.
    pub(super) fn has_percentiles(&self) -> bool {
        match &self.all[..] {
            [(times, _, unit)] => !times.percentile.is_empty() || has_bins(times, *unit),
            all => !all.is_empty() && all.iter().all(|(times, _, unit)| has_bins(times, *unit)),
        }
    }

    /// Adds percentiles, and the histogram if the document has its bins. Percentiles
    /// that the document lacks, such as those of several workers, are computed from the histogram.
    pub(super) fn add(
        &self,
        measurement: &mut Measurement,
        phase: &str,
        kind: HistogramKind,
        percentiles: &[(Metric, f64)],
    ) {
        let histogram = self.histogram();
        for (metric, percent) in percentiles {
            let printed = match &self.all[..] {
                [(times, _, unit)] => percentile(times, *percent).map(|value| value * unit),
                _ => None,
            };
            let counted = || {
                let time = histogram.as_ref()?.quantile(percent / 100.0)?;
                Some(time.seconds() * 1e9)
            };
            if let Some(value) = printed.or_else(counted) {
                measurement.sample(phase, *metric, value);
            }
        }
        if let Some(histogram) = histogram {
            measurement.histograms.push(PhaseHistogram { phase: phase.into(), kind, histogram });
        }
    }

    /// Histogram of all workers; `None` if one has no bins.
    pub(super) fn histogram(&self) -> Option<Histogram> {
        if self.all.is_empty() || !self.all.iter().all(|(times, _, unit)| has_bins(times, *unit)) {
            return None;
        }
        let mut counters: Vec<(u32, u64)> =
            self.all.iter().flat_map(|(times, ..)| times.bins.0.iter().copied()).collect();
        counters.sort_unstable_by_key(|(index, _)| *index);
        counters.dedup_by(|next, last| {
            let same = next.0 == last.0;
            if same {
                last.1 = last.1.saturating_add(next.1);
            }
            same
        });
        let count = counters.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        let count = count.filter(|count| *count <= COUNT_MAX)?;
        let min = self.all.iter().filter_map(|(times, ..)| times.min).reduce(f64::min);
        let (min, max) = (whole(min.unwrap_or_default()), whole(self.max()?));
        let range = u128::from(min) * u128::from(count)..=u128::from(max) * u128::from(count);
        if range.is_empty() {
            return None;
        }
        let sum = self.mean().unwrap_or_default() * count as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and the sum is limited by the range"
        )]
        let sum = (sum as u128).clamp(*range.start(), *range.end());
        let counters = counters.into_iter().map(|(index, count)| (index as usize, count));
        Some(Histogram::assembled(counters, sum, min, max))
    }
}

/// True if the bins are in nanoseconds. Up to 2.x, fio numbered them.
fn has_bins(times: &Times, unit: f64) -> bool {
    !times.bins.0.is_empty() && unit == 1.0
}

/// Value of a percentile in the unit of the document.
fn percentile(times: &Times, percent: f64) -> Option<f64> {
    let own = |key: &str| key.parse::<f64>().is_ok_and(|key| (key - percent).abs() < 1e-6);
    times.percentile.iter().find(|(key, _)| own(key)).map(|(_, value)| value.0)
}

/// Nearest integer; 0 for negative numbers.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

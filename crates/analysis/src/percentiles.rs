//! Latency percentiles: one per run, summarized over the runs.
//!
//! Takes one histogram per run of a cell and returns a [`Summary`] in nanoseconds. Operations of
//! one run wait for each other and for the same flushes, so they are not independent. Each run is
//! therefore one observation. An interval that treats operations as independent would be too narrow
//! by orders of magnitude.

use model::Histogram;

use crate::{
    NotEstimable, Summary,
    summary::{LEVEL, needed},
};

/// Number of operations that must exceed a percentile.
const BEYOND: f64 = 10.0;

/// True if the number of operations supports the percentile `q` (0.99 for p99): at least ten of
/// them exceed it. p99 needs 1000, p99.9 needs 10,000.
pub fn enough(count: u64, q: f64) -> bool {
    // The tolerance covers the rounding of fractions such as 0.999.
    count as f64 * (1.0 - q) >= BEYOND - 1e-6
}

/// Percentile `q` of each run, in nanoseconds, summarized over the runs.
///
/// # Errors
/// [`NotEstimable::Operations`] if any run has too few operations for the percentile, and
/// [`NotEstimable::Repetitions`] without runs.
pub fn over_runs<'a>(
    runs: impl IntoIterator<Item = &'a Histogram>,
    q: f64,
) -> Result<Summary, NotEstimable> {
    let mut values = Vec::new();
    let mut least: Option<u64> = None;
    for run in runs {
        let count = run.count();
        match enough(count, q).then(|| run.quantile(q)).flatten() {
            Some(nanos) => values.push(nanos.seconds() * 1e9),
            None => least = Some(least.map_or(count, |least| least.min(count))),
        }
    }
    if let Some(least) = least {
        return Err(NotEstimable::Operations { least, needed: operations(q) });
    }
    Summary::new(&values).map_err(|_| NotEstimable::Repetitions { least: 0, needed: needed(LEVEL) })
}

/// Number of operations needed for a percentile; `u64::MAX` for the maximum, which no number of
/// operations supports.
fn operations(q: f64) -> u64 {
    let operations = (BEYOND / (1.0 - q) - 1e-6).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, which is what the maximum takes"
    )]
    let operations = operations as u64;
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(operations: u64, each: u64) -> Histogram {
        let mut histogram = Histogram::new();
        (0..operations).for_each(|at| histogram.record(each + at % 100));
        histogram
    }

    #[test]
    fn ten_operations_lie_beyond() {
        for (q, takes) in [(0.5, 20), (0.9, 100), (0.99, 1000), (0.999, 10_000), (0.9999, 100_000)]
        {
            assert!(enough(takes, q) && !enough(takes - 1, q), "{q}");
            assert_eq!(operations(q), takes, "{q}");
        }
        assert!(!enough(0, 0.5) && !enough(u64::MAX, 1.0) && !enough(1000, f64::NAN));
        assert_eq!(operations(1.0), u64::MAX);
    }

    #[test]
    fn every_run_counts_once() {
        // The longer run does not weigh more: the median of 100, 200, 300 µs.
        let runs = [run(1000, 100_000), run(100_000, 200_000), run(1000, 300_000)];
        let summary = over_runs(&runs, 0.99).unwrap();
        assert_eq!((summary.n, summary.interval), (3, None));
        assert!((summary.median / 200_000.0 - 1.0).abs() < 0.01, "{summary:?}");
    }

    #[test]
    fn one_short_run_withholds_the_percentile() {
        let runs = [run(10_000, 100), run(900, 100), run(950, 100)];
        let refused = over_runs(&runs, 0.99);
        assert_eq!(refused, Err(NotEstimable::Operations { least: 900, needed: 1000 }));
        assert!(over_runs(&runs, 0.9).is_ok());
        assert!(matches!(over_runs(&[], 0.5), Err(NotEstimable::Repetitions { least: 0, .. })));
        assert!(matches!(over_runs(&runs, f64::NAN), Err(NotEstimable::Operations { .. })));
    }
}

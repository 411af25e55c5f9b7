//! Steady state of the rate of a time-based phase.
//!
//! Computes the [`Drift`] of the rate of operations over time, which is compared with the
//! [`limits`] of a profile. Only the measured part of a phase is evaluated, so the ramp-up is
//! excluded.
//!
//! The criterion is from the SNIA Solid State Storage Performance Test Specification (v2.0.1,
//! 2.1.24): over five consecutive rounds, the values stay within 20 % of their mean, and the line
//! fitted to them changes by at most 10 % of the mean. In the specification, a round is a separate
//! run. Here the measured time of one run is divided into five rounds. The limits therefore apply
//! to the run as a whole, however long it is.

use model::{Profile, Ratio, phase::Series};

/// Number of rounds.
const ROUNDS: usize = 5;

/// Minimum number of intervals. It keeps the part of the series small that does not fill five
/// rounds.
const LEAST_INTERVALS: usize = 10;

/// Minimum number of operations, a hundred per interval. A round then has 200 operations. Their
/// number scatters by 7 % if service times are exponential, and less if they are more regular.
const LEAST_OPS: u64 = 100 * LEAST_INTERVALS as u64;

/// Minimum duration of all rounds in nanoseconds. A shorter phase shows effects of the scheduler
/// instead of the periodic work of a filesystem.
const LEAST_TIME: u64 = 1_000_000_000;

/// Change of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Largest round minus the smallest, relative to the mean.
    pub range: Ratio,
    /// Change of the least-squares line from the first round to the last, relative to the mean;
    /// negative if the rate fell.
    pub slope: Ratio,
}

impl Drift {
    /// True if range and slope are within the limits.
    pub fn within(self, limits: Self) -> bool {
        self.range <= limits.range && self.slope.0.abs() <= limits.slope.0
    }
}

/// Limits for a steady state: those of the specification, or half of them for profile rigorous.
pub fn limits(profile: Profile) -> Drift {
    match profile {
        Profile::Quick | Profile::Standard => Drift { range: Ratio(0.20), slope: Ratio(0.10) },
        Profile::Rigorous => Drift { range: Ratio(0.10), slope: Ratio(0.05) },
    }
}

/// Drift of the rate of operations over the measured time; `None` if the time is too short or there
/// are too few operations.
///
/// The last interval is omitted, because it may be incomplete. Intervals at the beginning are
/// omitted if the number of intervals is not a multiple of five.
pub fn drift(series: &Series) -> Option<Drift> {
    let (_, whole) = series.ops.split_last()?;
    let each = whole.len() / ROUNDS;
    let total: u64 = whole.iter().sum();
    let window = (each * ROUNDS) as u64 * series.interval.0;
    if whole.len() < LEAST_INTERVALS || total < LEAST_OPS || window < LEAST_TIME {
        return None;
    }
    let rounds: Vec<f64> = whole[whole.len() - each * ROUNDS..].chunks(each).map(sum).collect();
    moved(&rounds)
}

/// Range and slope of rounds of equal length; `None` if they contain no operations.
fn moved(rounds: &[f64]) -> Option<Drift> {
    let places = || (0u32..).map(f64::from).zip(rounds);
    let n = f64::from(crate::count(rounds.len()));
    let mean = rounds.iter().sum::<f64>() / n;
    if n < 2.0 || mean <= 0.0 {
        return None;
    }
    let most = rounds.iter().copied().fold(f64::MIN, f64::max);
    let least = rounds.iter().copied().fold(f64::MAX, f64::min);
    let middle = (n - 1.0) / 2.0;
    let covariance: f64 = places().map(|(at, value)| (at - middle) * (value - mean)).sum();
    let variance: f64 = places().map(|(at, _)| (at - middle).powi(2)).sum();
    let slope = covariance / variance * (n - 1.0);
    Some(Drift { range: Ratio((most - least) / mean), slope: Ratio(slope / mean) })
}

#[expect(clippy::cast_precision_loss, reason = "operations of a phase, below 2^53")]
fn sum(ops: &[u64]) -> f64 {
    ops.iter().sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use model::Nanos;
    use proptest::prelude::*;

    use super::*;

    /// Series with intervals of the given milliseconds.
    fn series(millis: u64, ops: Vec<u64>) -> Series {
        let bytes = vec![0; ops.len()];
        Series { start: Nanos(0), interval: Nanos(millis * 1_000_000), ops, bytes }
    }

    fn near(a: Ratio, b: f64) -> bool {
        (a.0 - b).abs() < 1e-9
    }

    #[test]
    fn an_even_rate_is_steady_and_its_cut_end_does_not_matter() {
        let mut ops = vec![1000; 500];
        ops.push(3);
        let drift = drift(&series(4, ops)).unwrap();
        assert_eq!(drift, Drift { range: Ratio(0.0), slope: Ratio(0.0) });
        assert!(drift.within(limits(Profile::Rigorous)));
    }

    #[test]
    fn a_falling_rate_is_detected_by_its_slope() {
        // Five rounds of 100 intervals: 1200, 1100, 1000, 900, 800.
        let ops: Vec<u64> = (0..501).map(|at| 1200 - at / 100 * 100).collect();
        let drift = drift(&series(4, ops)).unwrap();
        assert!(near(drift.range, 0.4) && near(drift.slope, -0.4), "{drift:?}");
        assert!(!drift.within(limits(Profile::Quick)));
    }

    #[test]
    fn a_dip_in_the_middle_is_detected_by_its_range() {
        let rounds = [1000, 1000, 700, 1000, 1000];
        let ops: Vec<u64> = (0..501).map(|at| rounds[(at / 100).min(4)]).collect();
        let drift = drift(&series(4, ops)).unwrap();
        assert!(near(drift.slope, 0.0) && near(drift.range, 300.0 / 940.0), "{drift:?}");
        assert!(!drift.within(limits(Profile::Standard)));
    }

    #[test]
    fn the_rigorous_profile_allows_half() {
        let rounds = [1000, 1010, 1020, 1030, 1130];
        let ops: Vec<u64> = (0..501).map(|at| rounds[(at / 100).min(4)]).collect();
        let drift = drift(&series(4, ops)).unwrap();
        assert!(drift.range.0 > 0.10 && drift.slope.0 > 0.05, "{drift:?}");
        assert!(!drift.within(limits(Profile::Rigorous)));
        let drift = Drift { slope: Ratio(-0.099), range: Ratio(0.199) };
        assert!(drift.within(limits(Profile::Standard)));
    }

    #[test]
    fn what_is_too_short_or_too_little_is_not_judged() {
        assert_eq!(drift(&Series::default()), None);
        assert_eq!(drift(&series(4, vec![1000; 200])), None, "0.8 s");
        assert_eq!(drift(&series(200, vec![1000; 10])), None, "nine whole intervals");
        assert_eq!(drift(&series(200, vec![1000; 11])).map(|drift| drift.range), Some(Ratio(0.0)));
        assert_eq!(drift(&series(20, vec![9; 111])), None);
        assert!(drift(&series(20, vec![10; 111])).is_some());
        assert_eq!(drift(&series(20, vec![0; 111])), None);
    }

    proptest! {
        #[test]
        fn neither_the_unit_of_work_nor_the_unit_of_time_matters(
            ops in prop::collection::vec(100u64..10_000, 11..300), factor in 1u64..50
        ) {
            let plain = drift(&series(200, ops.clone()));
            let more = ops.iter().map(|ops| ops * factor).collect();
            let scaled = drift(&series(400, more));
            let (plain, scaled) = (plain.unwrap(), scaled.unwrap());
            prop_assert!((plain.range.0 - scaled.range.0).abs() < 1e-9);
            prop_assert!((plain.slope.0 - scaled.slope.0).abs() < 1e-9);
            prop_assert!(plain.range.0 >= 0.0 && plain.slope.0.abs() <= 2.0 * plain.range.0);
        }

        #[test]
        fn time_turned_around_turns_the_slope_around(
            rounds in prop::collection::vec(1u32..1000, 5)
        ) {
            let values: Vec<f64> = rounds.iter().copied().map(f64::from).collect();
            let reversed: Vec<f64> = values.iter().rev().copied().collect();
            let (there, back) = (moved(&values).unwrap(), moved(&reversed).unwrap());
            prop_assert!((there.slope.0 + back.slope.0).abs() < 1e-9);
            prop_assert!((there.range.0 - back.range.0).abs() < 1e-9);
        }
    }
}

//! Slowdown of a workload by others that run at the same time.
//!
//! The input is the repetitions of the workload alone and those together with the others. Both
//! cells have one trial in each round. A slowdown above 1 is worse, for metrics of either
//! direction. The comparison is that of [`crate::compare`]; only its direction differs.

use model::{Ratio, metric::Better};

use crate::{
    Error,
    compare::{Comparer, Comparison},
    summary::Interval,
    sweep::Repetition,
};

/// Slowdown with its comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowdown {
    /// Hodges–Lehmann ratio; above 1 means that the workload is worse together with the others.
    pub ratio: Ratio,
    /// 95 % interval of the ratio; `None` if there are too few values.
    pub interval: Option<Interval>,
    /// Comparison of the workload together with others (second) with itself alone (first).
    pub comparison: Comparison,
}

/// Slowdown of one metric at the equivalence margin.
///
/// # Errors
/// [`Error`] if a list is empty or has a value that is not finite and positive.
pub fn slowdown(
    comparer: &mut Comparer,
    alone: &[Repetition],
    together: &[Repetition],
    better: Better,
    margin: Ratio,
) -> Result<Slowdown, Error> {
    let comparison = comparer.compare_repetitions(alone, together, better, margin)?;
    let inverse = |Interval { low, high, level }: Interval| Interval {
        low: 1.0 / high,
        high: 1.0 / low,
        level,
    };
    Ok(Slowdown {
        ratio: Ratio(1.0 / comparison.ratio.0),
        interval: comparison.interval.map(inverse),
        comparison,
    })
}

#[cfg(test)]
mod tests {
    use model::Histogram;

    use super::*;
    use crate::compare::{Side, Verdict};

    /// p99 of 4000 operations of a simulated device per trial, in ten rounds. The service times are
    /// exponential with the mean `share`, so a device that gives a workload one third of its time
    /// has service times, and percentiles, that are three times as long. Each round drifts by up to
    /// 10 %, and each trial differs by about 3 %.
    fn trials(random: &mut fastrand::Rng, share: f64) -> Vec<Repetition> {
        let trial = |round: u32| {
            let drift = 1.0 + 0.1 * f64::from(round) / 10.0;
            let noise: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let mean = 1e6 * share * drift * (0.03 * noise).exp();
            let mut times = Histogram::new();
            for _ in 0..4000 {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ns")]
                times.record((-mean * (1.0 - random.f64()).ln()) as u64);
            }
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let value = times.quantile(0.99).expect("it is not empty").0 as f64;
            Repetition { block: Some(round), value }
        };
        (0..10).map(trial).collect()
    }

    fn of(seed: u64, share: f64) -> Slowdown {
        let mut random = fastrand::Rng::with_seed(seed);
        let (alone, together) = (trials(&mut random, 1.0), trials(&mut random, share));
        let margin = Ratio(0.05);
        slowdown(&mut Comparer::new(), &alone, &together, Better::Lower, margin).unwrap()
    }

    #[test]
    fn a_known_share_of_a_device_is_within_the_interval() {
        for share in [1.5, 3.0] {
            let within = |seed: &u64| {
                let interval = of(*seed, share).interval.unwrap();
                (interval.low..=interval.high).contains(&share)
            };
            let covered = (0..100).filter(within).count();
            assert!(covered >= 90, "{covered} of 100 intervals contain {share}");
        }
    }

    #[test]
    fn equal_cells_rarely_differ() {
        let differs =
            |seed: &u64| matches!(of(*seed, 1.0).comparison.verdict, Verdict::Differs { .. });
        let different = (1000..1100).filter(differs).count();
        assert!(different <= 5, "{different} of 100 equal pairs differ");
    }

    #[test]
    fn above_1_is_worse_for_rates_and_for_latencies() {
        let all = |values: [f64; 6]| -> Vec<Repetition> {
            (0..)
                .zip(values)
                .map(|(round, value)| Repetition { block: Some(round), value })
                .collect()
        };
        let low = all([10.0, 10.1, 9.9, 10.2, 9.8, 10.0]);
        let high = all([30.0, 30.3, 29.7, 30.6, 29.4, 30.0]);
        let mut comparer = Comparer::new();
        let mut of = |alone: &[Repetition], together: &[Repetition], better| {
            slowdown(&mut comparer, alone, together, better, Ratio(0.05)).unwrap()
        };
        let worse = [of(&low, &high, Better::Lower), of(&high, &low, Better::Higher)];
        for slowdown in &worse {
            assert!((slowdown.ratio.0 - 3.0).abs() < 0.01, "{slowdown:?}");
            let Interval { low, high, .. } = slowdown.interval.unwrap();
            assert!(low > 2.5 && low < 3.0 && high > 3.0 && high < 3.5);
            let verdict = slowdown.comparison.verdict;
            assert!(matches!(verdict, Verdict::Differs { side: Side::Worse, .. }));
        }
        assert!(of(&high, &low, Better::Lower).ratio.0 < 1.0);
    }
}

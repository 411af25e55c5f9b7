//! Equivalence of two methods that measured the same quantity in pairs.
//!
//! The estimate is the Hodges–Lehmann estimator of the signed-rank test on the logarithms of the
//! ratios within the pairs: the median of all n(n+1)/2 Walsh averages. The interval consists of the
//! Walsh averages between two order statistics (Hollander and Wolfe, "Nonparametric Statistical
//! Methods", sections 3.2 and 3.3). With W the signed-rank statistic under no difference and M =
//! n(n+1)/2, the interval from the k-th smallest to the k-th largest average covers the ratio with
//! probability 1 - 2 P(W <= k - 1). The largest k with at least the level is used.
//!
//! A 90 % interval within ±δ is the result of two one-sided tests at 5 % each (Schuirmann, Journal
//! of Pharmacokinetics and Biopharmaceutics 15, 1987).

use model::Ratio;

use crate::{Error, count, median, sorted, summary::Interval};

/// Level of the interval.
pub const LEVEL: f64 = 0.90;

/// Maximum number of pairs of the exact distribution. The counts are exact in `f64` up to 2^53.
const EXACT: usize = 50;

/// Result of a comparison of pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Ratio of the first to the second method.
    pub ratio: Ratio,
    /// Interval of the ratio at [`LEVEL`]; `None` with fewer than five pairs.
    pub interval: Option<Interval>,
    /// Number of pairs.
    pub pairs: u32,
    /// Verdict.
    pub verdict: Verdict,
}

/// Verdict of a comparison of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is within the margin.
    Equivalent,
    /// The whole interval is outside the margin.
    Different,
    /// The interval includes the margin.
    Inconclusive {
        /// Approximate number of pairs for a verdict; `None` if the ratio is too close to the
        /// margin.
        needed: Option<u32>,
    },
}

/// Compares pairs of positive values, first to second, at a margin δ (0.05 for 5 %).
///
/// # Errors
/// [`Error`] if there are no pairs or a value is not finite and positive.
pub fn compare(pairs: &[(f64, f64)], margin: Ratio) -> Result<Agreement, Error> {
    let mut logs = Vec::with_capacity(pairs.len());
    for (index, (first, second)) in pairs.iter().enumerate() {
        let bad = [first, second].into_iter().find(|value| !(value.is_finite() && **value > 0.0));
        if let Some(value) = bad {
            return Err(Error::NotPositive { index, value: *value });
        }
        logs.push((first / second).ln());
    }
    let averages = sorted(&walsh(&logs))?;
    let estimate = median(&averages);
    let limit = (1.0 + margin.0).ln();
    let ends = order(logs.len()).map(|k| (averages[k - 1], averages[averages.len() - k]));
    let verdict = match ends {
        Some((low, high)) if -limit < low && high < limit => Verdict::Equivalent,
        Some((low, high)) if limit < low || high < -limit => Verdict::Different,
        _ => Verdict::Inconclusive { needed: needed(ends, estimate, limit, logs.len()) },
    };
    let interval =
        ends.map(|(low, high)| Interval { low: low.exp(), high: high.exp(), level: LEVEL });
    Ok(Agreement { ratio: Ratio(estimate.exp()), interval, pairs: count(logs.len()), verdict })
}

/// Walsh averages: means of all pairs of values, each with itself included.
fn walsh(values: &[f64]) -> Vec<f64> {
    let with = |(at, one): (usize, &f64)| {
        let one = *one;
        values[at..].iter().map(move |other| one.midpoint(*other))
    };
    values.iter().enumerate().flat_map(with).collect()
}

/// Largest k with P(W <= k - 1) <= (1 - level) / 2; `None` if there is none.
fn order(n: usize) -> Option<usize> {
    let tail = (1.0 - LEVEL) / 2.0;
    let all = n * (n + 1) / 2;
    if n > EXACT {
        // Normal approximation with continuity correction, 1.645 for 5 %.
        let (n, all) = (n as f64, all as f64);
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return Some(whole(all / 2.0 - 0.5 - 1.645 * deviation));
    }
    // Number of subsets of 1 … n with each sum.
    let mut ways = vec![0.0_f64; all + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..=all).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let total = 2.0_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut below = 0.0;
    let within = ways.iter().take_while(|own| {
        below += **own / total;
        below <= tail
    });
    Some(within.count()).filter(|k| *k > 0)
}

/// Number of pairs at which the interval, whose width falls with the square root, ends within or
/// outside the margin.
fn needed(ends: Option<(f64, f64)>, estimate: f64, limit: f64, pairs: usize) -> Option<u32> {
    /// Number of pairs above which no advice is given.
    const MOST: f64 = 1000.0;
    let (low, high) = ends?;
    let half = (high - low) / 2.0;
    let room = (limit - estimate.abs()).abs();
    let pairs = pairs as f64 * (half / room).powi(2);
    (pairs.is_finite() && pairs < MOST).then(|| count(whole(pairs.ceil())))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn whole(value: f64) -> usize {
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values of the signed-rank statistic at 5 % (Hollander and Wolfe, table A.4): the
    /// largest c with P(W <= c) <= 0.05, plus one.
    #[test]
    fn order_statistics_match_published_tables() {
        let published = [(5, 1), (6, 3), (8, 6), (10, 11), (12, 18), (15, 31), (20, 61)];
        for (n, k) in published {
            assert_eq!(order(n), Some(k), "n = {n}");
        }
        assert_eq!(order(4), None);
        let (exact, approximate) = (order(50).unwrap(), order(51).unwrap());
        assert!((exact..exact + 25).contains(&approximate), "{exact} {approximate}");
    }

    #[test]
    fn the_ratio_is_the_median_of_the_walsh_averages() {
        let pairs: Vec<_> = [1.0, 2.0, 4.0].map(|value: f64| (value, 1.0)).into();
        let found = compare(&pairs, Ratio(0.05)).unwrap();
        assert!((found.ratio.0 - 2.0).abs() < 1e-12);
        assert_eq!(found.interval, None);
        assert!(compare(&[], Ratio(0.05)).is_err() && compare(&[(0.0, 1.0)], Ratio(0.05)).is_err());
    }

    /// Fraction of runs of 12 pairs with each verdict, with noise of 3 % in both methods.
    fn simulated(ratio: f64) -> (u32, u32) {
        let mut random = fastrand::Rng::with_seed(1);
        let mut noise = || {
            let sum: f64 = (0..12).map(|_| random.f64()).sum();
            1.0 + 0.03 * (sum - 6.0)
        };
        let mut verdicts = (0, 0);
        for _ in 0..1000 {
            let pairs: Vec<_> = (0..12).map(|_| (ratio * noise(), noise())).collect();
            match compare(&pairs, Ratio(0.05)).unwrap().verdict {
                Verdict::Equivalent => verdicts.0 += 1,
                Verdict::Different => verdicts.1 += 1,
                Verdict::Inconclusive { .. } => {}
            }
        }
        verdicts
    }

    #[test]
    fn equal_methods_are_equivalent_and_a_difference_of_10_percent_is_found() {
        let (equivalent, different) = simulated(1.0);
        assert!(equivalent >= 950 && different == 0, "{equivalent} {different}");
        let (equivalent, different) = simulated(0.9);
        assert!(equivalent == 0 && different >= 950, "{equivalent} {different}");
        // At the margin, each one-sided test errs in at most 5 %.
        let (equivalent, _) = simulated(1.05);
        assert!(equivalent <= 60, "{equivalent}");
    }
}

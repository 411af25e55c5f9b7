//! Block bootstrap: estimates how much a statistic would vary if the run were repeated.
//!
//! Input is the levels of a [`Sweep`] or lists of repetitions. Each resample is a weight per
//! repetition: the number of times the repetition is in the resample. Example: a resample of the
//! blocks 1, 2, 3 may be 1, 3, 3; the weights of all repetitions are then 1 in block 1, 0 in block
//! 2, and 2 in block 3. Whole blocks are drawn, because all trials of a block have its effect in
//! common (Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8).
//! Without blocks, the repetitions of each level are drawn separately.
//!
//! A resample in which a level has no repetition is drawn again. This is rare, because resampling
//! requires at least as many blocks per level as the confidence interval of a median.

pub(crate) mod halves;
pub(crate) mod paired;

use std::collections::BTreeMap;

use crate::{
    Interval, NotEstimable, count,
    summary::{LEVEL, needed},
    sweep::{Repetition, Sweep},
};

/// Resamples per interval.
pub(crate) const RESAMPLES: u32 = 4000;

/// Number of times each repetition of each level is in a resample.
pub(crate) type Weights = Vec<Vec<u32>>;

/// Draws resamples of one or more sweeps together.
pub(crate) struct Resampler {
    /// Strata of units: one stratum with the blocks of each run, and one with the repetitions of
    /// each list without blocks. A unit contains the list and the index of each of its repetitions.
    strata: Vec<Vec<Vec<(usize, usize)>>>,
    weights: Weights,
    least: u32,
    rng: fastrand::Rng,
}

impl Resampler {
    /// Resampler for the levels of all sweeps in sequence. Blocks of the same number are the same
    /// block, in all sweeps.
    ///
    /// # Errors
    /// [`NotEstimable::Repetitions`] if a level has too few blocks (or repetitions, if blocks are
    /// unknown).
    pub(crate) fn new(sweeps: &[&Sweep], seed: u64) -> Result<Self, NotEstimable> {
        let of_sweep = |sweep: &&'_ Sweep| {
            let blocked = sweep.blocked();
            sweep
                .levels()
                .iter()
                .map(|level| (level.repetitions.clone(), blocked))
                .collect::<Vec<_>>()
        };
        let lists: Vec<(Vec<Repetition>, bool)> = sweeps.iter().flat_map(of_sweep).collect();
        let run = |blocked: bool| blocked.then_some(0);
        Self::of_lists(lists.iter().map(|(list, blocked)| (list.as_slice(), run(*blocked))), seed)
    }

    /// Resampler for lists of repetitions, each with the run of its blocks; `None` if the blocks
    /// are unknown or ignored. Weights are in the given order. Blocks of the same run and number
    /// are the same block. The blocks of each run are drawn separately, so that a resample has as
    /// many blocks of each run as the data.
    ///
    /// # Errors
    /// As [`Resampler::new`], for lists instead of levels.
    pub(crate) fn of_lists<'a>(
        lists: impl Iterator<Item = (&'a [Repetition], Option<u8>)>,
        seed: u64,
    ) -> Result<Self, NotEstimable> {
        let mut runs: BTreeMap<u8, BTreeMap<u32, Vec<(usize, usize)>>> = BTreeMap::new();
        let mut strata = Vec::new();
        let mut weights = Vec::new();
        let mut least = usize::MAX;
        for (repetitions, run) in lists {
            let at = weights.len();
            weights.push(vec![0; repetitions.len()]);
            if let Some(run) = run {
                let blocks = runs.entry(run).or_default();
                let mut seen: Vec<u32> =
                    repetitions.iter().filter_map(|repetition| repetition.block).collect();
                for (index, block) in seen.iter().enumerate() {
                    blocks.entry(*block).or_default().push((at, index));
                }
                seen.sort_unstable();
                seen.dedup();
                least = least.min(seen.len());
            } else {
                least = least.min(repetitions.len());
                strata.push((0..repetitions.len()).map(|index| vec![(at, index)]).collect());
            }
        }
        let (least, needed) = (count(least), needed(LEVEL));
        if least < needed {
            return Err(NotEstimable::Repetitions { least, needed });
        }
        strata.extend(runs.into_values().map(|blocks| blocks.into_values().collect()));
        Ok(Self { strata, weights, least, rng: fastrand::Rng::with_seed(seed) })
    }

    /// Fewest blocks of a level, or repetitions if blocks are unknown.
    pub(crate) fn least(&self) -> u32 {
        self.least
    }

    /// Calls a function with each of [`RESAMPLES`] resamples.
    pub(crate) fn each(mut self, mut see: impl FnMut(&Weights)) {
        for _ in 0..RESAMPLES {
            self.draw();
            while self.weights.iter().any(|level| level.iter().all(|weight| *weight == 0)) {
                self.draw();
            }
            see(&self.weights);
        }
    }

    fn draw(&mut self) {
        self.weights.iter_mut().for_each(|level| level.fill(0));
        for stratum in &self.strata {
            for _ in 0..stratum.len() {
                for (level, index) in &stratum[self.rng.usize(0..stratum.len())] {
                    self.weights[*level][*index] += 1;
                }
            }
        }
    }
}

/// Interval between symmetric percentiles, for statistics made of medians. The values are in any
/// order; at least one is required.
pub(crate) fn percentile_interval(values: Vec<f64>) -> Interval {
    between(values, (1.0 - LEVEL) / 2.0)
}

/// Interval between more extreme percentiles, for statistics that depend on every value, such as
/// slopes. With n blocks, the spread of resamples is too small by a factor of sqrt((n - 1) / n),
/// and Student's distribution applies instead of the normal one. Both require more extreme
/// percentiles. The percentiles are at Φ(-sqrt(n / (n - 1)) t(n - 1, 97.5 %)) (Hesterberg, "What
/// Teachers Should Know About the Bootstrap", The American Statistician 69, 2015, "expanded
/// percentile").
pub(crate) fn expanded_interval(values: Vec<f64>, blocks: u32) -> Interval {
    /// Lower percentiles for 6 to 40 blocks; for more blocks, the last value is conservative. From
    /// `scipy.stats`: `norm.cdf(-(n / (n - 1)) ** 0.5 * t.ppf(0.975, n - 1))`.
    const TAILS: [f64; 35] = [
        0.00243, 0.00411, 0.00574, 0.00722, 0.00855, 0.00972, 0.01076, 0.01167, 0.01248, 0.01321,
        0.01386, 0.01444, 0.01497, 0.01544, 0.01588, 0.01628, 0.01665, 0.01698, 0.01729, 0.01758,
        0.01785, 0.01810, 0.01833, 0.01855, 0.01875, 0.01895, 0.01913, 0.01930, 0.01946, 0.01961,
        0.01975, 0.01989, 0.02002, 0.02014, 0.02026,
    ];
    let place = blocks.saturating_sub(6) as usize;
    between(values, TAILS[place.min(TAILS.len() - 1)])
}

fn between(mut values: Vec<f64>, tail: f64) -> Interval {
    values.sort_by(f64::total_cmp);
    Interval { low: quantile(&values, tail), high: quantile(&values, 1.0 - tail), level: LEVEL }
}

/// Quantile of ascending values with linear interpolation: type 7 of Hyndman and Fan, "Sample
/// Quantiles in Statistical Packages", The American Statistician 50, 1996.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the slice, because the share is from 0 to 1"
    )]
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = place - place.floor();
    // A difference between two infinities is not a number.
    if part == 0.0 || sorted[below] == sorted[above] {
        return sorted[below];
    }
    sorted[below] * (1.0 - part) + sorted[above] * part
}

/// Median of ascending weighted values with the given total weight. Values of weight `passed`, at
/// most the lower half, are before the first value of the iterator.
pub(crate) fn weighted_median(
    sorted: impl Iterator<Item = (f64, u32)>,
    mut passed: u64,
    total: u64,
) -> f64 {
    let (lower, upper) = ((total - 1) / 2, total / 2);
    let mut low = None;
    for (value, weight) in sorted {
        passed += u64::from(weight);
        if low.is_none() && passed > lower {
            low = Some(value);
        }
        if passed > upper {
            return f64::midpoint(low.unwrap_or(value), value);
        }
    }
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trend::{Level, Repetition};

    fn sweep(blocks: &[Option<u32>]) -> Sweep {
        let level = |at: f64| Level {
            at,
            repetitions: blocks
                .iter()
                .map(|block| Repetition { block: *block, value: at })
                .collect(),
        };
        Sweep::new(vec![level(1.0), level(2.0)]).unwrap()
    }

    #[test]
    fn blocks_stay_whole() {
        let blocks: Vec<_> = (0..6).map(Some).collect();
        let mut seen = 0;
        Resampler::new(&[&sweep(&blocks)], 1).unwrap().each(|weights| {
            assert_eq!(weights[0], weights[1]);
            assert_eq!(weights[0].iter().sum::<u32>(), 6);
            seen += 1;
        });
        assert_eq!(seen, RESAMPLES);
    }

    #[test]
    fn without_blocks_each_level_is_drawn_on_its_own() {
        let mut apart = 0;
        Resampler::new(&[&sweep(&[None; 6])], 1).unwrap().each(|weights| {
            assert!(weights.iter().all(|level| level.iter().sum::<u32>() == 6));
            apart += u32::from(weights[0] != weights[1]);
        });
        assert!(apart > RESAMPLES / 2);
    }

    #[test]
    fn five_blocks_are_too_few() {
        let blocks: Vec<_> = (0..10).map(|i| Some(i / 2)).collect();
        let refused = Resampler::new(&[&sweep(&blocks)], 1).err();
        assert_eq!(refused, Some(NotEstimable::Repetitions { least: 5, needed: 6 }));
    }

    #[test]
    fn few_blocks_make_the_interval_wider() {
        let values: Vec<f64> = (0..=100_000).map(f64::from).collect();
        let low = |blocks| expanded_interval(values.clone(), blocks).low.round();
        assert_eq!([low(6), low(7), low(40), low(99)], [243.0, 411.0, 2026.0, 2026.0]);
        assert_eq!(percentile_interval(values.clone()).low.round(), 2500.0);
    }

    #[test]
    fn quantiles_and_medians_match_manual_results() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[1.0, f64::INFINITY, f64::INFINITY], 0.9), f64::INFINITY);
        assert_eq!(
            weighted_median([(1.0, 0), (2.0, 1), (5.0, 1), (9.0, 0)].into_iter(), 0, 2),
            3.5
        );
        assert_eq!(weighted_median([(1.0, 2), (2.0, 1)].into_iter(), 0, 3), 1.0);
        assert_eq!(weighted_median([(3.0, 1), (4.0, 1)].into_iter(), 2, 5), 3.0);
    }
}

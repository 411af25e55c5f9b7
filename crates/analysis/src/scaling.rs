//! Scaling of a rate with the number of clients: saturation, efficiency, and drops.
//!
//! Takes the values of one filesystem at several numbers of clients as a [`Curve`] and returns a
//! [`Scaling`]: medians, the saturation level, efficiency, and rise and fall by the comparison of
//! [`crate::compare`]. In addition, a law is fitted ([`law`]). Reports show only admissible laws.
//! Two filesystems are compared by the difference of their efficiency at the same number of
//! clients. Coefficients of laws are not compared, because they depend on each other.
//!
//! # Rise and fall
//!
//! The peak is the level with the best median. *Rise* is the peak relative to the first level,
//! *fall* the last level relative to the peak. The peak was chosen as the best of k levels. A rise
//! or a fall is therefore significant only if its p-value times k - 1 is at most 5 % (Bonferroni).
//! In addition, its verdict at the effective margin δ′ must be a difference that may exceed δ′.
//!
//! # Saturation
//!
//! The saturation level is the smallest level whose median reaches 95 % of the best median. Its
//! uncertainty is its range over resampled blocks, which is wide if the top of the curve is flat.

use model::{Ratio, metric::Better};

use crate::{
    Comparer, Comparison, Error, Interval, NotEstimable, Side, Size, Summary, Verdict,
    bootstrap::{Resampler, Weights, percentile_interval, weighted_median},
    count, median,
    ranks::FAMILY_ERROR,
    summary::{LEVEL, needed},
    trend::{self, Repetition, Sweep, Trend},
};

pub mod law;
pub use law::{Fit, Law, Laws, Peak};

/// Fraction of the best median that a saturated level reaches.
pub const SATURATED: f64 = 0.95;

/// Values measured at one number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Number of clients, at least 1.
    pub clients: u32,
    /// Trials, at least one, in any order.
    pub repetitions: Vec<Repetition>,
}

/// One metric of one filesystem over numbers of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    sweep: Sweep,
    clients: Vec<u32>,
    better: Better,
}

/// Scaling analysis of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// Levels, ascending by clients; never empty.
    pub points: Vec<Point>,
    /// Index of the best median; of equal medians, the one with the fewest clients.
    pub peak: usize,
    /// Index of the smallest level whose median reaches 95 % of the best median. If lower is
    /// better, its median times 95 % is at most the best median.
    pub saturation: usize,
    /// 95 % range of the saturation level in clients, by resampling blocks.
    pub saturation_range: Result<(u32, u32), NotEstimable>,
    /// Peak relative to the first level, a ratio above 1; `None` if the peak is the first level.
    pub rise: Option<Comparison>,
    /// Last level relative to the peak. A ratio below 1 is a fall. `None` if the peak is the last
    /// level.
    pub fall: Option<Comparison>,
    /// Shape of the curve. Not estimable with too few repetitions, or if the comparisons are
    /// inconclusive.
    pub shape: Result<ScalingShape, NotEstimable>,
    /// Trend of the metric over all levels.
    pub trend: Result<Trend, NotEstimable>,
    /// Number of clients that efficiency refers to: the smallest level, which should be one client.
    pub base: u32,
    /// Linear, Amdahl's, and the universal scalability law, if they can be fitted.
    pub laws: Result<Laws, NotEstimable>,
}

/// Results at one number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Number of clients.
    pub clients: u32,
    /// Summary of the values.
    pub summary: Summary,
    /// Efficiency; not estimable if the metric is not a rate.
    pub efficiency: Result<Efficiency, NotEstimable>,
}

/// Efficiency E(N) = X(N) N0 / (N X(N0)), computed from medians X and the smallest level N0, which
/// should be 1. With N0 = 1, it is the rate of N clients as a fraction of N times the rate of one
/// client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Estimate; exactly 1 at the smallest level.
    pub value: Ratio,
    /// 95 % interval by resampling blocks; needs 6 repetitions.
    pub interval: Result<Interval, NotEstimable>,
}

/// Shape of a curve. Rise and fall are defined in the module documentation; both are significant at
/// δ′ after Bonferroni's adjustment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalingShape {
    /// Rises up to the last level tested, which is [`Scaling::saturation`].
    Rises,
    /// Rises up to [`Scaling::saturation`], without a significant fall up to the last level.
    Saturates,
    /// Rises up to [`Scaling::peak`], then falls.
    RisesAndFalls,
    /// Falls from the first level, or from a peak that is not better than the first level by more
    /// than δ′.
    Falls,
    /// Neither rises nor falls: the first and the last level are within δ′ of the peak.
    Flat,
}

/// Comparison of two curves at one number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Number of clients.
    pub clients: u32,
    /// Efficiency of the second curve minus that of the first: 0.1 for 10 percentage points.
    pub difference: Result<f64, NotEstimable>,
    /// 95 % interval by resampling blocks, jointly for blocks that both curves have. The difference
    /// is significant if the interval excludes 0.
    pub interval: Result<Interval, NotEstimable>,
}

impl Curve {
    /// Checks the levels, in any order. Levels of the same number of clients are merged. A metric
    /// without direction is treated as "higher is better", but has no efficiency and no law.
    ///
    /// # Errors
    /// As [`Sweep::new`].
    pub fn new(levels: Vec<Level>, better: Better) -> Result<Self, Error> {
        let mut clients: Vec<u32> = levels.iter().map(|level| level.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        let place = |level: Level| trend::Level {
            at: f64::from(level.clients),
            repetitions: level.repetitions,
        };
        let sweep = Sweep::new(levels.into_iter().map(place).collect())?;
        Ok(Self { sweep, clients, better })
    }

    /// Analyzes the curve at the effective margin δ′ (0.05 for 5 %). The seed determines all random
    /// draws.
    ///
    /// # Errors
    /// Only errors that [`Curve::new`] excludes.
    pub fn scaling(
        &self,
        comparer: &mut Comparer,
        margin: Ratio,
        seed: u64,
    ) -> Result<Scaling, Error> {
        let values: Vec<Vec<f64>> = self.sweep.levels().iter().map(trend::Level::values).collect();
        let medians: Vec<f64> = values.iter().map(|values| median(values)).collect();
        let (peak, saturation) = self.tops(&medians);
        let last = values.len() - 1;
        let mut compare = |first: usize, second: usize| {
            (first != second)
                .then(|| comparer.compare(&values[first], &values[second], self.better, margin))
                .transpose()
        };
        let (rise, fall) = (compare(0, peak)?, compare(peak, last)?);
        let resampled = Resampled::new(self, seed);
        let points = values
            .iter()
            .enumerate()
            .map(|(at, values)| {
                let value = Ratio(self.efficiency(&medians, at));
                let interval =
                    resampled.as_ref().map(|r| r.efficiency(at)).map_err(|reason| *reason);
                Ok(Point {
                    clients: self.clients[at],
                    summary: Summary::new(values)?,
                    efficiency: self.a_rate().map(|()| Efficiency { value, interval }),
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Scaling {
            points,
            peak,
            saturation,
            saturation_range: resampled.map(|r| r.saturation(&self.clients)),
            shape: self.shape([peak, saturation], rise.as_ref(), fall.as_ref()),
            rise,
            fall,
            trend: self.sweep.trend(seed),
            base: self.clients[0],
            laws: self.a_rate().and_then(|()| law::laws(&self.sweep, &self.clients, seed)),
        })
    }

    /// Efficiency of the second curve minus that of the first, at each number of clients of either
    /// curve, ascending. Blocks of the same number are the same block, so both curves must come
    /// from one run.
    pub fn efficiency_differences(first: &Self, second: &Self, seed: u64) -> Vec<Difference> {
        let mut clients: Vec<u32> = first.clients.iter().chain(&second.clients).copied().collect();
        clients.sort_unstable();
        clients.dedup();
        let curves = [first, second];
        let common = if first.clients[0] == second.clients[0] {
            first.a_rate().and_then(|()| second.a_rate())
        } else {
            Err(NotEstimable::NotShared)
        };
        let places: Vec<Result<[usize; 2], NotEstimable>> = clients
            .iter()
            .map(|clients| {
                common?;
                let place = |curve: &Self| curve.clients.binary_search(clients).ok();
                place(first)
                    .zip(place(second))
                    .map(<[usize; 2]>::from)
                    .ok_or(NotEstimable::NotShared)
            })
            .collect();
        let sorted = curves.map(Self::values_by_level);
        let own = curves.map(|curve| {
            curve.sweep.levels().iter().map(|level| median(&level.values())).collect::<Vec<f64>>()
        });
        let of = |medians: &[Vec<f64>; 2], at: [usize; 2]| {
            second.efficiency(&medians[1], at[1]) - first.efficiency(&medians[0], at[0])
        };
        let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); places.len()];
        let resampler = Resampler::new(&[&first.sweep, &second.sweep], seed);
        let resampled = resampler.map(|resampler| {
            resampler.each(|weights| {
                let (one, other) = weights.split_at(first.clients.len());
                let medians = [medians(&sorted[0], one), medians(&sorted[1], other)];
                for (drawn, place) in drawn.iter_mut().zip(&places) {
                    if let Ok(at) = place {
                        drawn.push(of(&medians, *at));
                    }
                }
            });
        });
        let difference =
            |((clients, place), drawn): ((u32, Result<[usize; 2], NotEstimable>), _)| {
                let interval = place.and(resampled).map(|()| percentile_interval(drawn));
                Difference { clients, difference: place.map(|at| of(&own, at)), interval }
            };
        clients.into_iter().zip(places).zip(drawn).map(difference).collect()
    }

    fn values_by_level(&self) -> Vec<Vec<f64>> {
        self.sweep.levels().iter().map(trend::Level::values).collect()
    }

    /// Checks that the metric is a rate, which efficiency and laws require.
    fn a_rate(&self) -> Result<(), NotEstimable> {
        match self.better {
            Better::Higher => Ok(()),
            Better::Lower | Better::Neither => Err(NotEstimable::NotARate),
        }
    }

    /// Indexes of the peak and of the saturation level, from the medians of all levels.
    fn tops(&self, medians: &[f64]) -> (usize, usize) {
        let score = |value: f64| match self.better {
            Better::Lower => value.recip(),
            Better::Higher | Better::Neither => value,
        };
        let mut peak = 0;
        for (at, value) in medians.iter().enumerate() {
            if score(*value) > score(medians[peak]) {
                peak = at;
            }
        }
        let reached = SATURATED * score(medians[peak]);
        (peak, medians.iter().position(|value| score(*value) >= reached).unwrap_or(peak))
    }

    fn efficiency(&self, medians: &[f64], at: usize) -> f64 {
        let share = f64::from(self.clients[0]) / f64::from(self.clients[at]);
        medians[at] / medians[0] * share
    }

    fn shape(
        &self,
        [peak, saturation]: [usize; 2],
        rise: Option<&Comparison>,
        fall: Option<&Comparison>,
    ) -> Result<ScalingShape, NotEstimable> {
        let levels = self.sweep.levels();
        let last = levels.len() - 1;
        if last == 0 {
            return Err(NotEstimable::Levels { levels: 1, needed: 2 });
        }
        let least = [0, peak, last].map(|at| count(levels[at].repetitions.len())).into_iter().min();
        let (least, needed) = (least.unwrap_or(0), needed(LEVEL));
        if least < needed {
            return Err(NotEstimable::Repetitions { least, needed });
        }
        let rises = rise.is_some_and(|rise| shown(rise, Side::Better, last));
        let falls = fall.is_some_and(|fall| shown(fall, Side::Worse, last));
        match (rises, falls) {
            (true, true) => Ok(ScalingShape::RisesAndFalls),
            (true, false) if saturation == last => Ok(ScalingShape::Rises),
            (true, false) => Ok(ScalingShape::Saturates),
            // If the peak is not the first level, there may be an undetected rise.
            (false, true) if peak == 0 || rise.is_some_and(negligible) => Ok(ScalingShape::Falls),
            (false, false) if [rise, fall].into_iter().flatten().all(negligible) => {
                Ok(ScalingShape::Flat)
            }
            (false, true | false) => Err(NotEstimable::Inconclusive),
        }
    }
}

/// True if a comparison with the best of `levels` other levels shows a difference in the wanted
/// direction that may exceed the margin.
fn shown(comparison: &Comparison, wanted: Side, levels: usize) -> bool {
    match comparison.verdict {
        Verdict::Differs { side, size: Size::AtLeast | Size::Uncertain } => {
            side == wanted && comparison.p * levels as f64 <= FAMILY_ERROR
        }
        Verdict::Differs { size: Size::Negligible, .. }
        | Verdict::Equivalent
        | Verdict::Inconclusive { .. } => false,
    }
}

/// True if a comparison shows that the difference does not exceed the margin.
fn negligible(comparison: &Comparison) -> bool {
    match comparison.verdict {
        Verdict::Equivalent | Verdict::Differs { size: Size::Negligible, .. } => true,
        Verdict::Differs { .. } | Verdict::Inconclusive { .. } => false,
    }
}

/// Median of each level in one resample. Values must be ascending within their level.
fn medians(values: &[Vec<f64>], weights: &[Vec<u32>]) -> Vec<f64> {
    let of_level = |(values, weights): (&Vec<f64>, &Vec<u32>)| {
        let total = weights.iter().copied().map(u64::from).sum();
        weighted_median(values.iter().copied().zip(weights.iter().copied()), 0, total)
    };
    values.iter().zip(weights).map(of_level).collect()
}

/// Efficiency and saturation over resampled blocks.
struct Resampled {
    /// Efficiencies of each level, one per resample.
    efficiencies: Vec<Vec<f64>>,
    /// Number of resamples in which each level is the saturation level.
    saturations: Vec<u32>,
}

impl Resampled {
    fn new(curve: &Curve, seed: u64) -> Result<Self, NotEstimable> {
        let resampler = Resampler::new(&[&curve.sweep], seed)?;
        let values = curve.values_by_level();
        let mut own = Self {
            efficiencies: vec![Vec::new(); values.len()],
            saturations: vec![0; values.len()],
        };
        resampler.each(|weights: &Weights| {
            let medians = medians(&values, weights);
            for (at, drawn) in own.efficiencies.iter_mut().enumerate() {
                drawn.push(curve.efficiency(&medians, at));
            }
            own.saturations[curve.tops(&medians).1] += 1;
        });
        Ok(own)
    }

    fn efficiency(&self, at: usize) -> Interval {
        percentile_interval(self.efficiencies[at].clone())
    }

    /// Smallest and largest saturation level in clients, each with at most 2.5 % of the resamples
    /// beyond it.
    fn saturation(&self, clients: &[u32]) -> (u32, u32) {
        let tail = (1.0 - LEVEL) / 2.0 * f64::from(self.saturations.iter().sum::<u32>());
        let end = |places: &mut dyn Iterator<Item = usize>| {
            let mut passed = 0;
            for at in places {
                passed += self.saturations[at];
                if f64::from(passed) > tail {
                    return clients[at];
                }
            }
            clients[0]
        };
        (end(&mut (0..clients.len())), end(&mut (0..clients.len()).rev()))
    }
}

#[cfg(test)]
mod tests;

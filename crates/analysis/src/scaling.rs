//! How a rate grows with the number of clients: up to where more of them pay, and what then.
//!
//! The values of one filesystem at several numbers of clients enter as a [`Curve`]; a [`Scaling`]
//! leaves. The data speak first: medians, the level that saturates, rise and fall by the comparison
//! of [`crate::compare`], efficiency. A law is fitted beside them ([`law`]) and may be shown only
//! where it is admissible. Two filesystems are compared by the difference of their efficiency at
//! the same number of clients, since coefficients of laws depend on each other.
//!
//! # Rise and fall
//!
//! The peak is the level with the best median. *Rise* is the peak against the first level, *fall*
//! the last level against the peak. Since the peak was chosen as the best of k levels, either
//! counts as shown only if its p-value times k - 1 is at most 5 % (Bonferroni), and if the verdict
//! at the working threshold δ′ is that it may matter.
//!
//! # Saturation
//!
//! The smallest level whose median reaches 95 % of the best. Its range over resampled blocks tells
//! how far that level is settled: a flat top leaves it wide.

use model::{Ratio, metric::Better};

use crate::{
    Absent, Comparer, Comparison, Error, Interval, Side, Size, Summary, Verdict,
    bootstrap::{Resampler, Weights, percentile_interval, weighted_median},
    count, median,
    ranks::FAMILY_ERROR,
    summary::{LEVEL, needed},
    trend::{self, Repeat, Sweep, Trend},
};

pub mod law;
pub use law::{Fit, Law, Laws, Peak};

/// Part of the best median that counts as reaching it.
pub const SATURATED: f64 = 0.95;

/// The values measured at one number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// How many clients, at least 1.
    pub clients: u32,
    /// Its trials, at least one, in any order.
    pub repeats: Vec<Repeat>,
}

/// One metric of one filesystem over numbers of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    sweep: Sweep,
    clients: Vec<u32>,
    better: Better,
}

/// What a curve tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// The levels, ascending by clients; never empty.
    pub points: Vec<Point>,
    /// Index of the best median; of equal ones the fewest clients.
    pub peak: usize,
    /// Index of the smallest level whose median reaches 95 % of the best (with a metric of which
    /// less is better, whose best is 95 % of its median).
    pub saturation: usize,
    /// The 95 % range of that level in clients, by resampling blocks.
    pub saturation_range: Result<(u32, u32), Absent>,
    /// The peak against the first level, ratio above 1; `None` if the peak is the first.
    pub rise: Option<Comparison>,
    /// The last level against the peak, so that a ratio below 1 is the fall; `None` if the peak is
    /// the last.
    pub fall: Option<Comparison>,
    /// The shape in one word; absent where repeats are too few or nothing is decided.
    pub course: Result<Course, Absent>,
    /// Whether the metric rises or falls over all levels.
    pub trend: Result<Trend, Absent>,
    /// The clients that efficiency refers to: the smallest level, which should be 1.
    pub base: u32,
    /// Linear, Amdahl's, and the universal scalability law; absent where they cannot be fitted.
    pub laws: Result<Laws, Absent>,
}

/// One number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// How many clients.
    pub clients: u32,
    /// Its values.
    pub summary: Summary,
    /// Efficiency; absent when the metric is no rate.
    pub efficiency: Result<Efficiency, Absent>,
}

/// E(N) = X(N) N0 / (N X(N0)) of the medians, with the smallest level N0, which should be 1: which
/// part of N times the rate of one client is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// The estimate; exactly 1 at the smallest level.
    pub value: Ratio,
    /// Its 95 % interval by resampling blocks; from 6 repeats on.
    pub interval: Result<Interval, Absent>,
}

/// The shape of a curve. A rise or fall is one that the comparison at δ′ tells apart, after
/// Bonferroni's correction for the levels among which the peak was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Up to the last level tested: [`Scaling::saturation`] is the last.
    Rises,
    /// Up to [`Scaling::saturation`], and no fall is shown until the last.
    Saturates,
    /// Up to [`Scaling::peak`], then down by [`Scaling::fall`].
    RisesAndFalls,
    /// Down from the start, or from a level that is no better than it by what matters.
    Falls,
    /// Neither: first and last level are within δ′ of the peak. More clients do not pay.
    Flat,
}

/// Two curves at one number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// How many clients.
    pub clients: u32,
    /// Efficiency of the second minus that of the first: 0.1 for 10 percentage points.
    pub difference: Result<f64, Absent>,
    /// Its 95 % interval by resampling blocks, which are the same for both curves where both name
    /// them. The two are told apart where it excludes 0.
    pub interval: Result<Interval, Absent>,
}

impl Curve {
    /// Checks the levels, in any order. Levels of the same number of clients become one. A metric
    /// without direction is read as "higher is better", and has no efficiency and no law.
    ///
    /// # Errors
    /// As [`Sweep::new`].
    pub fn new(levels: Vec<Level>, better: Better) -> Result<Self, Error> {
        let mut clients: Vec<u32> = levels.iter().map(|level| level.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        let place =
            |level: Level| trend::Level { at: f64::from(level.clients), repeats: level.repeats };
        let sweep = Sweep::new(levels.into_iter().map(place).collect())?;
        Ok(Self { sweep, clients, better })
    }

    /// Everything that can be told of the curve, at the working threshold δ′ (0.05 for 5 %). The
    /// seed settles all draws.
    ///
    /// # Errors
    /// None that [`Curve::new`] has not refused already.
    pub fn scaling(
        &self,
        comparer: &mut Comparer,
        threshold: Ratio,
        seed: u64,
    ) -> Result<Scaling, Error> {
        let values: Vec<Vec<f64>> = self.sweep.levels().iter().map(trend::Level::values).collect();
        let medians: Vec<f64> = values.iter().map(|values| median(values)).collect();
        let (peak, saturation) = self.tops(&medians);
        let last = values.len() - 1;
        let mut compare = |first: usize, second: usize| {
            (first != second)
                .then(|| comparer.compare(&values[first], &values[second], self.better, threshold))
                .transpose()
        };
        let (rise, fall) = (compare(0, peak)?, compare(peak, last)?);
        let resampled = Resampled::new(self, seed);
        let points = values
            .iter()
            .enumerate()
            .map(|(at, values)| {
                let value = Ratio(self.efficiency(&medians, at));
                let interval = resampled.as_ref().map(|r| r.efficiency(at)).map_err(|why| *why);
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
            course: self.course([peak, saturation], rise.as_ref(), fall.as_ref()),
            rise,
            fall,
            trend: self.sweep.trend(seed),
            base: self.clients[0],
            laws: self.a_rate().and_then(|()| law::laws(&self.sweep, &self.clients, seed)),
        })
    }

    /// How much more efficient the second curve is than the first at each number of clients of
    /// either, ascending. Curves are compared by this, never by coefficients of fitted laws. Blocks
    /// of the same number are taken to be the same block, so both have to come from one run.
    pub fn efficiency_differences(first: &Self, second: &Self, seed: u64) -> Vec<Difference> {
        let mut clients: Vec<u32> = first.clients.iter().chain(&second.clients).copied().collect();
        clients.sort_unstable();
        clients.dedup();
        let curves = [first, second];
        let common = if first.clients[0] == second.clients[0] {
            first.a_rate().and_then(|()| second.a_rate())
        } else {
            Err(Absent::NotShared)
        };
        let places: Vec<Result<[usize; 2], Absent>> = clients
            .iter()
            .map(|clients| {
                common?;
                let place = |curve: &Self| curve.clients.binary_search(clients).ok();
                place(first).zip(place(second)).map(<[usize; 2]>::from).ok_or(Absent::NotShared)
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
        let difference = |((clients, place), drawn): ((u32, Result<[usize; 2], Absent>), _)| {
            let interval = place.and(resampled).map(|()| percentile_interval(drawn));
            Difference { clients, difference: place.map(|at| of(&own, at)), interval }
        };
        clients.into_iter().zip(places).zip(drawn).map(difference).collect()
    }

    fn values_by_level(&self) -> Vec<Vec<f64>> {
        self.sweep.levels().iter().map(trend::Level::values).collect()
    }

    /// Whether efficiency and laws have a meaning.
    fn a_rate(&self) -> Result<(), Absent> {
        match self.better {
            Better::Higher => Ok(()),
            Better::Lower | Better::Neither => Err(Absent::NotARate),
        }
    }

    /// Indexes of the peak and of the level that saturates, from the medians of all levels.
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

    fn course(
        &self,
        [peak, saturation]: [usize; 2],
        rise: Option<&Comparison>,
        fall: Option<&Comparison>,
    ) -> Result<Course, Absent> {
        let levels = self.sweep.levels();
        let last = levels.len() - 1;
        if last == 0 {
            return Err(Absent::Levels { levels: 1, needed: 2 });
        }
        let least = [0, peak, last].map(|at| count(levels[at].repeats.len())).into_iter().min();
        let (least, needed) = (least.unwrap_or(0), needed(LEVEL));
        if least < needed {
            return Err(Absent::Repeats { least, needed });
        }
        let rises = rise.is_some_and(|rise| shown(rise, Side::Better, last));
        let falls = fall.is_some_and(|fall| shown(fall, Side::Worse, last));
        match (rises, falls) {
            (true, true) => Ok(Course::RisesAndFalls),
            (true, false) if saturation == last => Ok(Course::Rises),
            (true, false) => Ok(Course::Saturates),
            // Where the best is not the first, a rise may be there that was not shown.
            (false, true) if peak == 0 || rise.is_some_and(negligible) => Ok(Course::Falls),
            (false, false) if [rise, fall].into_iter().flatten().all(negligible) => {
                Ok(Course::Flat)
            }
            (false, true | false) => Err(Absent::Undecided),
        }
    }
}

/// Whether a comparison with the best of so many other levels shows a difference that may matter.
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

/// Whether a comparison shows that there is no difference that matters.
fn negligible(comparison: &Comparison) -> bool {
    match comparison.verdict {
        Verdict::Equivalent | Verdict::Differs { size: Size::Negligible, .. } => true,
        Verdict::Differs { .. } | Verdict::Inconclusive { .. } => false,
    }
}

/// The median of each level in one resample; values ascend within their level.
fn medians(values: &[Vec<f64>], weights: &[Vec<u32>]) -> Vec<f64> {
    let of_level = |(values, weights): (&Vec<f64>, &Vec<u32>)| {
        let total = weights.iter().copied().map(u64::from).sum();
        weighted_median(values.iter().copied().zip(weights.iter().copied()), 0, total)
    };
    values.iter().zip(weights).map(of_level).collect()
}

/// Efficiency and saturation over resampled blocks.
struct Resampled {
    /// The efficiencies of each level.
    efficiencies: Vec<Vec<f64>>,
    /// How often each level was the one that saturates.
    saturations: Vec<u32>,
}

impl Resampled {
    fn new(curve: &Curve, seed: u64) -> Result<Self, Absent> {
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

    /// The fewest and the most clients after at most 2.5 % are left out on either side.
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

//! Resamples of many lists, made side by side.
//!
//! Lists of repeats enter as in [`super::Resampler`]; what leaves is the weights of [`SIDE`]
//! resamples at a time, by unit (a block, or one repeat of a list whose blocks are unknown) instead
//! of by repeat. Thousands of lists that share their blocks share their weights, and what is done
//! to one resample is done to all of them in step, which the processor does several at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use wide::{i16x16, i32x16};

use super::{
    RESAMPLES,
    halves::{Halves, Lanes},
};
use crate::{
    Absent, count,
    summary::{LEVEL, needed},
    trend::Repeat,
};

/// Resamples that are made side by side: what is counted of them fits into two registers of any
/// 64-bit processor.
pub(crate) const SIDE: usize = 16;

const _: () = assert!((RESAMPLES as usize).is_multiple_of(SIDE), "the last ones would be left out");

/// How often a unit is in each of the resamples. Signed, since that is what processors compare at
/// once, and short, since they do more of those at once; of n units, one comes k times with a
/// probability below 1/k!.
pub(crate) type Beside = [i16; SIDE];

/// Lists whose repeats are drawn by units.
pub(crate) struct Units {
    /// Units that replace each other.
    strata: Vec<Range<usize>>,
    /// The unit of each repeat of each list.
    lists: Vec<Vec<usize>>,
    /// For each list the first one of the same units.
    alike: Vec<usize>,
    /// The units of lists that lack some of their stratum, and so may be empty in a resample.
    partial: BTreeSet<Vec<usize>>,
    least: u32,
}

impl Units {
    /// The units of lists, each with the run that its blocks are of, or `None` if they are unknown
    /// or do not count. Blocks of the same run and number are the same block; those of each run
    /// replace each other alone, so that a resample has as many of each run as there were.
    ///
    /// # Errors
    /// [`Absent::Repeats`] when a list has too few blocks (or repeats, where blocks are unknown).
    pub(crate) fn of_lists<'a>(
        lists: impl Iterator<Item = (&'a [Repeat], Option<u8>)> + Clone,
    ) -> Result<Self, Absent> {
        let mut runs: BTreeMap<u8, BTreeSet<u32>> = BTreeMap::new();
        for (repeats, run) in lists.clone() {
            let Some(run) = run else { continue };
            runs.entry(run).or_default().extend(repeats.iter().filter_map(|repeat| repeat.block));
        }
        let mut own = Self {
            strata: Vec::new(),
            lists: Vec::new(),
            alike: Vec::new(),
            partial: BTreeSet::new(),
            least: u32::MAX,
        };
        let mut units = 0..0;
        let mut after = |length: usize, strata: &mut Vec<Range<usize>>| {
            units = units.end..units.end + length;
            strata.push(units.clone());
            units.clone()
        };
        let of_run: BTreeMap<u8, (Range<usize>, Vec<u32>)> = runs
            .into_iter()
            .map(|(run, blocks)| {
                (run, (after(blocks.len(), &mut own.strata), blocks.into_iter().collect()))
            })
            .collect();
        for (repeats, run) in lists {
            let list: Vec<usize> = match run.and_then(|run| of_run.get(&run)) {
                None => after(repeats.len(), &mut own.strata).collect(),
                Some((units, blocks)) => {
                    let blocks_of = repeats.iter().filter_map(|repeat| repeat.block);
                    let place = |block: u32| blocks.partition_point(|other| *other < block);
                    let list: Vec<usize> =
                        blocks_of.map(|block| units.start + place(block)).collect();
                    let distinct: BTreeSet<usize> = list.iter().copied().collect();
                    own.least = own.least.min(count(distinct.len()));
                    if distinct.len() < units.len() {
                        own.partial.insert(distinct.into_iter().collect());
                    }
                    list
                }
            };
            own.least = own.least.min(count(list.len()));
            own.lists.push(list);
        }
        let mut first: BTreeMap<&[usize], usize> = BTreeMap::new();
        let alike = own.lists.iter().enumerate();
        own.alike = alike.map(|(at, list)| *first.entry(list).or_insert(at)).collect();
        let needed = needed(LEVEL);
        match own.least {
            least if least < needed => Err(Absent::Repeats { least, needed }),
            _ => Ok(own),
        }
    }

    /// The fewest blocks of a list, or repeats where blocks are unknown.
    pub(crate) fn least(&self) -> u32 {
        self.least
    }

    /// The unit of each repeat of a list, in their order.
    pub(crate) fn of_list(&self, list: usize) -> &[usize] {
        &self.lists[list]
    }

    /// How many repeats of each list are in each of some resamples.
    pub(crate) fn totals(&self, weights: &[Beside]) -> Vec<[i32; SIDE]> {
        let mut totals: Vec<[i32; SIDE]> = Vec::with_capacity(self.lists.len());
        for (at, (list, alike)) in self.lists.iter().zip(&self.alike).enumerate() {
            let mut sum = [0; SIDE];
            if *alike < at {
                sum = totals[*alike];
            } else {
                for unit in list {
                    let weights = weights[*unit].iter().copied();
                    sum.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += i32::from(weight));
                }
            }
            totals.push(sum);
        }
        totals
    }

    /// Shows [`RESAMPLES`] draws to a function, [`SIDE`] at a time: how often each unit is in each
    /// of them. No list is empty in any.
    pub(crate) fn each(&self, seed: u64, mut see: impl FnMut(&[Beside])) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let units = self.strata.iter().map(|stratum| stratum.end).max().unwrap_or(0);
        let mut weights = vec![[0; SIDE]; units];
        for _ in 0..RESAMPLES as usize / SIDE {
            for at in 0..SIDE {
                self.draw(&mut weights, at, &mut rng);
                let empty = |weights: &[Beside], list: &[usize]| {
                    list.iter().all(|unit| weights[*unit][at] == 0)
                };
                while self.partial.iter().any(|list| empty(&weights, list)) {
                    self.draw(&mut weights, at, &mut rng);
                }
            }
            see(&weights);
        }
    }

    fn draw(&self, weights: &mut [Beside], at: usize, rng: &mut fastrand::Rng) {
        weights.iter_mut().for_each(|unit| unit[at] = 0);
        for stratum in &self.strata {
            for _ in stratum.clone() {
                weights[rng.usize(stratum.clone())][at] += 1;
            }
        }
    }
}

/// The medians of ascending values in each resample, where value i weighs what its two units weigh
/// together. All first units weigh `totals.0` together, all second ones `totals.1`, which is more
/// than nothing, and their product less than 2^31.
pub(crate) fn medians(
    values: &[(f64, u32, u32)],
    weights: &[Beside],
    totals: (&[i32; SIDE], &[i32; SIDE]),
) -> [f64; SIDE] {
    let mut total = *totals.0;
    total.iter_mut().zip(totals.1).for_each(|(total, other)| *total = total.saturating_mul(*other));
    let short = |count: usize| i16::try_from(count).is_ok();
    let most = total.iter().copied().max().unwrap_or(0);
    if short(values.len()) && i16::try_from(most).is_ok() {
        at_half::<i16x16>(values, weights, &total)
    } else {
        at_half::<i32x16>(values, weights, &total)
    }
}

/// [`medians`] by sums that hold all totals and the number of values.
fn at_half<L: Lanes>(
    values: &[(f64, u32, u32)],
    weights: &[Beside],
    total: &[i32; SIDE],
) -> [f64; SIDE] {
    /// So often it is asked whether all medians were passed.
    const STRIDE: usize = 16;
    let mut halves = Halves::<L>::new(total);
    for some in values.chunks(STRIDE) {
        for (_, first, second) in some {
            let (first, second) = (&weights[*first as usize], &weights[*second as usize]);
            halves.pass(L::weight_of_two(first, second));
        }
        if halves.done() {
            break;
        }
    }
    let last = values.len() - 1;
    let value = |place: usize| values[place.min(last)].0;
    halves.places().map(|(low, high)| f64::midpoint(value(low), value(high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::{Resampler, weighted_median};

    fn list(blocks: impl Iterator<Item = u32>) -> Vec<Repeat> {
        blocks.map(|block| Repeat { block: Some(block), value: 1.0 }).collect()
    }

    fn mean_weight(seen: &[f64], n: usize) -> Vec<f64> {
        seen.iter().map(|sum| sum / n as f64).collect()
    }

    #[test]
    fn as_the_resampler_draws() {
        let (whole, part, other) = (list(0..9), list(2..9), list(3..13));
        let lists = || [(&*whole, Some(0)), (&*part, Some(0)), (&*other, Some(1))].into_iter();
        let units = Units::of_lists(lists()).unwrap();
        assert_eq!((units.least(), units.of_list(1)), (7, &[2, 3, 4, 5, 6, 7, 8][..]));
        let (mut ours, mut resamples) = (vec![0.0; 7], 0);
        units.each(1, |weights| {
            resamples += SIDE;
            (0..SIDE).for_each(|at| {
                let sum = |list: usize| -> i16 {
                    units.of_list(list).iter().map(|unit| weights[*unit][at]).sum()
                };
                assert_eq!((sum(0), sum(2)), (9, 10));
                assert!(sum(1) > 0);
                let own = units.of_list(1).iter().map(|unit| f64::from(weights[*unit][at]));
                ours.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            });
        });
        assert_eq!(resamples, RESAMPLES as usize);
        let (mut theirs, mut n) = (vec![0.0; 7], 0);
        Resampler::of_lists(lists(), 2).unwrap().each(|weights| {
            n += 1;
            theirs.iter_mut().zip(&weights[1]).for_each(|(sum, own)| *sum += f64::from(*own));
        });
        // Each unit is there once on average, with a standard error of 1 / sqrt(4000).
        for mean in mean_weight(&ours, resamples).into_iter().chain(mean_weight(&theirs, n)) {
            assert!((mean - 1.0).abs() < 0.06, "{mean}");
        }
    }

    #[test]
    fn lists_without_blocks_are_drawn_on_their_own() {
        let repeats = vec![Repeat { block: None, value: 1.0 }; 6];
        let units = Units::of_lists([(&*repeats, None), (&*repeats, None)].into_iter()).unwrap();
        assert_eq!(units.of_list(1), [6, 7, 8, 9, 10, 11]);
        let few = [(&repeats[..5], None)].into_iter();
        let refused = Units::of_lists(few).err();
        assert_eq!(refused, Some(Absent::Repeats { least: 5, needed: 6 }));
    }

    #[test]
    fn medians_are_those_of_one_resample_after_the_other() {
        let repeats = list(0..7);
        let units = Units::of_lists([(&*repeats, Some(0))].into_iter()).unwrap();
        let mut rng = fastrand::Rng::with_seed(4);
        let mut values: Vec<(f64, u32, u32)> =
            (0..49).map(|pair| (f64::from(rng.u8(0..20)), pair / 7, pair % 7)).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        units.each(5, |weights| {
            let found = medians(&values, weights, (&[7; SIDE], &[7; SIDE]));
            let long = at_half::<i32x16>(&values, weights, &[49; SIDE]);
            for at in 0..SIDE {
                let weight = |unit: u32| u32::try_from(weights[unit as usize][at]).unwrap();
                let one = values.iter().map(|(value, i, j)| (*value, weight(*i) * weight(*j)));
                assert_eq!(found[at], weighted_median(one, 0, 49));
                assert_eq!(found[at], long[at]);
            }
        });
    }
}

//! Resamples of many lists, several at a time.
//!
//! Takes lists of repetitions like [`super::Resampler`], but yields one weight per unit, for
//! [`SIDE`] resamples at a time. A unit is a block, or one repetition of a list whose blocks are
//! unknown. Lists with common blocks share the weights. Each operation applies to several resamples
//! at once, so the compiler can use vector instructions.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use wide::{i16x16, i32x16};

use super::{
    RESAMPLES,
    halves::{Halves, Lanes, halved},
};
use crate::{
    NotEstimable, count,
    summary::{LEVEL, needed},
    sweep::Repetition,
};

/// Number of resamples per step. Their weights fit into two registers of any 64-bit processor.
pub(crate) const SIDE: usize = 16;

const _: () = assert!((RESAMPLES as usize).is_multiple_of(SIDE), "the last ones would be left out");

/// Number of times a unit is in each of [`SIDE`] resamples. The numbers are signed, because vector
/// comparisons are signed. They are short, so that a vector contains more of them. They do not
/// overflow: the probability that a unit occurs k times is below 1/k!.
pub(crate) type PairedWeights = [i16; SIDE];

/// Lists of repetitions that are drawn by units.
pub(crate) struct Units {
    /// Ranges of exchangeable units: those of each run, and those of each list without blocks.
    strata: Vec<Range<usize>>,
    /// Unit of each repetition of each list.
    lists: Vec<Vec<usize>>,
    /// Index of the first list with the same units, for each list.
    alike: Vec<usize>,
    /// Sets of units of lists that lack some units of their stratum. Such a list can be empty in a
    /// resample.
    partial: BTreeSet<Vec<usize>>,
    least: u32,
}

impl Units {
    /// Units of lists. Each list is given with the run of its blocks, or `None` if the blocks are
    /// unknown or ignored. Blocks of the same run and number are the same block. The blocks of each
    /// run are drawn separately, so that a resample has as many blocks of each run as the data.
    ///
    /// # Errors
    /// [`NotEstimable::Repetitions`] if a list has too few blocks (or repetitions, if blocks are
    /// unknown).
    pub(crate) fn of_lists<'a>(
        lists: impl Iterator<Item = (&'a [Repetition], Option<u8>)> + Clone,
    ) -> Result<Self, NotEstimable> {
        let mut runs: BTreeMap<u8, BTreeSet<u32>> = BTreeMap::new();
        for (repetitions, run) in lists.clone() {
            let Some(run) = run else { continue };
            runs.entry(run)
                .or_default()
                .extend(repetitions.iter().filter_map(|repetition| repetition.block));
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
        for (repetitions, run) in lists {
            let list: Vec<usize> = match run.and_then(|run| of_run.get(&run)) {
                None => after(repetitions.len(), &mut own.strata).collect(),
                Some((units, blocks)) => {
                    let blocks_of = repetitions.iter().filter_map(|repetition| repetition.block);
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
            least if least < needed => Err(NotEstimable::Repetitions { least, needed }),
            _ => Ok(own),
        }
    }

    /// Fewest blocks of a list, or repetitions if blocks are unknown.
    pub(crate) fn least(&self) -> u32 {
        self.least
    }

    /// Unit of each repetition of a list, in order.
    pub(crate) fn of_list(&self, list: usize) -> &[usize] {
        &self.lists[list]
    }

    /// Calls a function with [`RESAMPLES`] resamples, [`SIDE`] at a time, as weights of the units.
    /// No list is empty in any resample.
    pub(crate) fn each(&self, seed: u64, mut see: impl FnMut(&[PairedWeights])) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let units = self.strata.iter().map(|stratum| stratum.end).max().unwrap_or(0);
        let mut weights = vec![[0; SIDE]; units];
        for _ in 0..RESAMPLES as usize / SIDE {
            for at in 0..SIDE {
                self.draw(&mut weights, at, &mut rng);
                let empty = |weights: &[PairedWeights], list: &[usize]| {
                    list.iter().all(|unit| weights[*unit][at] == 0)
                };
                while self.partial.iter().any(|list| empty(&weights, list)) {
                    self.draw(&mut weights, at, &mut rng);
                }
            }
            see(&weights);
        }
    }

    fn draw(&self, weights: &mut [PairedWeights], at: usize, rng: &mut fastrand::Rng) {
        weights.iter_mut().for_each(|unit| unit[at] = 0);
        for stratum in &self.strata {
            for _ in stratum.clone() {
                weights[rng.usize(stratum.clone())][at] += 1;
            }
        }
    }
}

/// Values derived from two lists, one value for each pair of their repetitions.
pub(crate) struct Paired {
    /// Half of each value, ascending.
    halved: Vec<f64>,
    /// Index of the pair of each value in [`Products`].
    places: Vec<u32>,
    /// Indexes of the two lists. Lists with the same units are represented by the first of them.
    lists: [usize; 2],
}

impl Paired {
    /// Paired values from ascending values, each with the indexes of its repetitions in the first
    /// and in the second list.
    pub(crate) fn new(
        units: &Units,
        lists: [usize; 2],
        values: impl ExactSizeIterator<Item = (f64, [u32; 2])> + Clone,
    ) -> Self {
        let second = count(units.of_list(lists[1]).len());
        Self {
            halved: halved(values.clone().map(|(value, _)| value), 0.0),
            places: values.map(|(_, [one, other])| one * second + other).collect(),
            lists: lists.map(|list| units.alike[list]),
        }
    }
}

/// Weights of all pairs of repetitions of two lists in some resamples. They are kept, because the
/// next two lists may have the same units.
#[derive(Default)]
pub(crate) struct Products {
    lists: Option<[usize; 2]>,
    /// Sum of all products in each resample.
    total: [i32; SIDE],
    /// Products, ordered by the repetition of the first list, if sums of 16 bits do not overflow.
    short: Vec<i16x16>,
    /// Products in 32 bits otherwise.
    long: Vec<i32x16>,
}

impl Products {
    /// Medians of paired values in resamples with these unit weights. No list may be empty in any
    /// of the resamples, and there must be fewer than 2^31 pairs.
    pub(crate) fn medians(
        &mut self,
        paired: &Paired,
        units: &Units,
        weights: &[PairedWeights],
    ) -> [f64; SIDE] {
        if self.lists != Some(paired.lists) {
            self.multiply(paired.lists.map(|list| units.of_list(list)), weights);
            self.lists = Some(paired.lists);
        }
        match self.long.is_empty() {
            true => at_half(&self.short, paired, &self.total),
            false => at_half(&self.long, paired, &self.total),
        }
    }

    fn multiply(&mut self, [first, second]: [&[usize]; 2], weights: &[PairedWeights]) {
        let total = |list: &[usize]| {
            let mut total = [0i32; SIDE];
            for unit in list {
                let weights = weights[*unit].iter().copied();
                total.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += i32::from(weight));
            }
            total
        };
        self.total = total(first);
        let others = total(second);
        self.total.iter_mut().zip(others).for_each(|(sum, other)| *sum = sum.saturating_mul(other));
        self.short.clear();
        self.long.clear();
        let short = |count: usize| i16::try_from(count).is_ok();
        let most = self.total.iter().copied().max().unwrap_or(0);
        if short(first.len() * second.len()) && i16::try_from(most).is_ok() {
            products(&mut self.short, [first, second], weights);
        } else {
            products(&mut self.long, [first, second], weights);
        }
    }
}

/// Products of the weights of all pairs of units.
fn products<L: Lanes>(products: &mut Vec<L>, units: [&[usize]; 2], weights: &[PairedWeights]) {
    let [first, second] = units.map(|units| units.iter().map(|unit| &weights[*unit]));
    for one in first {
        products.extend(second.clone().map(|other| L::weight_of_two(one, other)));
    }
}

/// [`Products::medians`] with sums of type `L`, which is wide enough for all totals and for the
/// number of values.
fn at_half<L: Lanes>(products: &[L], paired: &Paired, total: &[i32; SIDE]) -> [f64; SIDE] {
    /// Number of values between two checks that all medians were passed.
    const STRIDE: usize = 16;
    let mut halves = Halves::<L>::new(total);
    for places in paired.places.chunks(STRIDE) {
        places.iter().for_each(|place| halves.pass(products[*place as usize]));
        if halves.done() {
            break;
        }
    }
    halves.medians(&paired.halved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::{Resampler, weighted_median};

    fn list(blocks: impl Iterator<Item = u32>) -> Vec<Repetition> {
        blocks.map(|block| Repetition { block: Some(block), value: 1.0 }).collect()
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
        // Each unit occurs once on average, with a standard error of 1 / sqrt(4000).
        for mean in mean_weight(&ours, resamples).into_iter().chain(mean_weight(&theirs, n)) {
            assert!((mean - 1.0).abs() < 0.06, "{mean}");
        }
    }

    #[test]
    fn lists_without_blocks_are_drawn_on_their_own() {
        let repetitions = vec![Repetition { block: None, value: 1.0 }; 6];
        let units =
            Units::of_lists([(&*repetitions, None), (&*repetitions, None)].into_iter()).unwrap();
        assert_eq!(units.of_list(1), [6, 7, 8, 9, 10, 11]);
        let few = [(&repetitions[..5], None)].into_iter();
        let refused = Units::of_lists(few).err();
        assert_eq!(refused, Some(NotEstimable::Repetitions { least: 5, needed: 6 }));
    }

    #[test]
    fn medians_are_those_of_one_resample_after_the_other() {
        let (repetitions, fewer) = (list(0..7), list(2..7));
        let lists = [&*repetitions, &fewer, &repetitions].map(|list| (list, Some(0)));
        let units = Units::of_lists(lists.into_iter()).err();
        assert_eq!(units, Some(NotEstimable::Repetitions { least: 5, needed: 6 }));
        let (repetitions, fewer) = (list(0..8), list(2..8));
        let lists = [&*repetitions, &fewer, &repetitions].map(|list| (list, Some(0)));
        let units = Units::of_lists(lists.into_iter()).unwrap();
        let mut rng = fastrand::Rng::with_seed(4);
        let mut values = |lists: [usize; 2]| {
            let [first, second] = lists.map(|list| count(units.of_list(list).len()));
            let pairs = (0..first).flat_map(|one| (0..second).map(move |other| [one, other]));
            let mut values: Vec<(f64, [u32; 2])> =
                pairs.map(|pair| (f64::from(rng.u8(0..20)), pair)).collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            (Paired::new(&units, lists, values.iter().copied()), values)
        };
        let all = [[0, 2], [0, 1], [1, 2], [1, 0], [2, 1]].map(|lists| (lists, values(lists)));
        units.each(5, |weights| {
            let mut products = Products::default();
            for (lists, (paired, values)) in &all {
                let found = products.medians(paired, &units, weights);
                let [first, second] = lists.map(|list| units.of_list(list));
                let mut long = Vec::new();
                super::products::<i32x16>(&mut long, [first, second], weights);
                let long = at_half(&long, paired, &products.total);
                for at in 0..SIDE {
                    let weight = |unit: usize| u32::try_from(weights[unit][at]).unwrap();
                    let both = |[one, other]: [u32; 2]| {
                        weight(first[one as usize]) * weight(second[other as usize])
                    };
                    let one = values.iter().map(|(value, pair)| (*value, both(*pair)));
                    let total = one.clone().map(|(_, weight)| u64::from(weight)).sum();
                    assert_eq!(found[at], weighted_median(one, 0, total));
                    assert_eq!(found[at], long[at]);
                }
            }
        });
    }
}

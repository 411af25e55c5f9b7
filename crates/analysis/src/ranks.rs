//! Ranking of a family of cells, with ties if cells do not differ significantly.
//!
//! Input is one list of values per cell; the result is a [`Ranking`]. Cells are ordered by median.
//! All pairs are compared, and their p-values are adjusted together, so findings hold for the whole
//! family. There is a single winner only if the top group has one member. Ranks are neither
//! averaged nor summed over workloads.
//!
//! Values are not aligned. Alignment by blocks ([`crate::blocks`]) is only for single pairs of
//! cells in a run that drifts, and only the caller knows whether the run drifts.
//!
//! Families do not depend on each other nor on the [`Comparer`], so several threads with one
//! `Comparer` each can rank them with the same result.

use model::{Ratio, metric::Better};

use self::letters::letters;
use crate::{
    Error, blocks,
    compare::{Comparer, Comparison, Side, Size, Verdict},
    family::holm,
    median,
    rank_bootstrap::RankBootstrap,
    sample::Sample,
    sorted,
    sweep::Repetition,
};

mod letters;

/// Family-wise error rate of the findings about one family.
pub const FAMILY_ERROR: f64 = 0.05;

/// Comparison of two cells of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Index of the cell with the better median.
    pub better: usize,
    /// Index of the other cell.
    pub other: usize,
    /// Comparison of `better` with `other`. A ratio above 1 favors `better`.
    pub comparison: Comparison,
    /// p-value after Holm's adjustment over all pairs of the family.
    pub p_holm: f64,
}

impl Pair {
    /// True if the two cells differ significantly: the adjusted p-value is at most [`FAMILY_ERROR`]
    /// and the verdict is a difference. A small p-value is not sufficient with too few values, or
    /// if methods disagree about the direction. Methods that disagree only about the size do not
    /// prevent significance.
    pub fn is_significant(&self) -> bool {
        let differs = matches!(self.comparison.verdict, Verdict::Differs { .. });
        differs && self.p_holm <= FAMILY_ERROR
    }

    /// True if `better` is significantly better by a difference that may exceed δ.
    pub fn beats(&self) -> bool {
        let matters = matches!(
            self.comparison.verdict,
            Verdict::Differs { side: Side::Better, size: Size::AtLeast | Size::Uncertain }
        );
        matters && self.is_significant()
    }

    /// True if the two cells differ significantly in the direction opposite to their order: the
    /// cell with the better median is the worse one. No finding may then depend on their order.
    pub fn is_contradictory(&self) -> bool {
        let worse = matches!(self.comparison.verdict, Verdict::Differs { side: Side::Worse, .. });
        worse && self.is_significant()
    }

    /// Other cell of the pair, if the given cell is one of the two.
    fn with(&self, cell: usize) -> Option<usize> {
        match () {
            () if self.better == cell => Some(self.other),
            () if self.other == cell => Some(self.better),
            () => None,
        }
    }
}

/// Ranked family. Indexes refer to the ranked slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// All cells, best median first; equal medians keep their order.
    pub order: Vec<usize>,
    /// Top group, best first: the best cell, all cells that do not differ significantly from it,
    /// and all cells that differ from it by less than δ (equivalent or negligible).
    pub top: Vec<usize>,
    /// Bottom group, worst first: the worst cell, all cells that do not differ significantly from
    /// it, and all cells that differ from it by less than δ. There is a single worst cell only if
    /// the group has one member.
    pub bottom: Vec<usize>,
    /// Letters of each cell, by its index. Cells that share a letter do not differ significantly.
    pub letters: Vec<String>,
    /// Probability that each cell has the best median, by its index: over 4000 seeded resamples of
    /// blocks with replacement, the same blocks for all cells. If a block is unknown, the
    /// repetitions of each cell are resampled separately. Tied cells share a resample.
    pub first: Vec<Ratio>,
    /// 90 % interval of the rank of each cell, by its index, over the same resamples. The first
    /// rank is 1.
    pub places: Vec<(u32, u32)>,
    /// All pairs, the cell with the better median first.
    pub pairs: Vec<Pair>,
}

impl Ranking {
    /// Pair of two cells, in either order.
    pub fn pair(&self, one: usize, other: usize) -> Option<&Pair> {
        let wanted =
            |pair: &&Pair| [(one, other), (other, one)].contains(&(pair.better, pair.other));
        self.pairs.iter().find(wanted)
    }
}

/// Ranks cells by the values of one metric at the equivalence margin δ. If all lists have the same
/// length, the values at each index belong to the same block and are resampled jointly. Otherwise
/// blocks are unknown. No [`crate::Check`] is made, unlike in [`rank_repetitions`].
///
/// # Errors
/// [`Error`] if a list is empty or has a value that is not finite and positive.
pub fn rank(
    comparer: &mut Comparer,
    cells: &[&[f64]],
    better: Better,
    margin: Ratio,
) -> Result<Ranking, Error> {
    let joint = cells.windows(2).all(|two| two[0].len() == two[1].len());
    let repetition = |(index, value): (usize, &f64)| Repetition {
        block: u32::try_from(index).ok().filter(|_| joint),
        value: *value,
    };
    let lists: Vec<Vec<Repetition>> =
        cells.iter().map(|values| values.iter().enumerate().map(repetition).collect()).collect();
    let lists: Vec<&[Repetition]> = lists.iter().map(Vec::as_slice).collect();
    ranked(comparer, &lists, better, margin, Checks::None)
}

/// Ranks cells by repetitions with known blocks and checks each pair with other methods
/// ([`crate::Check`]). A pair does not differ significantly if one of the methods has the opposite
/// direction. Values are not aligned, see the module. Cost: about 5 ms for 10 cells of 100
/// repetitions, a third of it for the resamples.
///
/// # Errors
/// [`Error`] if a list is empty or has a value that is not finite and positive.
pub fn rank_repetitions(
    comparer: &mut Comparer,
    cells: &[&[Repetition]],
    better: Better,
    margin: Ratio,
) -> Result<Ranking, Error> {
    ranked(comparer, cells, better, margin, Checks::All)
}

/// Ranks as [`rank_repetitions`], but compares each pair in its common blocks only
/// ([`crate::blocks::shared`]). Required for a run that may have drifted
/// ([`crate::drift::Drift::suspected`]): a drift in the later blocks affects only the cells that
/// were still open then.
///
/// Order, P(first), and rank intervals use the blocks common to all cells of the family, or all
/// values if there are too few such blocks. A pair may have more common blocks than the family. Its
/// comparison may therefore contradict the order ([`Pair::is_contradictory`]).
///
/// # Errors
/// [`Error`] if a list is empty or has a value that is not finite and positive.
pub fn rank_shared(
    comparer: &mut Comparer,
    cells: &[&[Repetition]],
    better: Better,
    margin: Ratio,
) -> Result<Ranking, Error> {
    ranked(comparer, cells, better, margin, Checks::AllInSharedBlocks)
}

/// Methods used to compare the pairs of a family.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    /// Only the test.
    None,
    /// The test and the other methods.
    All,
    /// The test and the other methods, each pair in its common blocks.
    AllInSharedBlocks,
}

fn ranked(
    comparer: &mut Comparer,
    cells: &[&[Repetition]],
    better: Better,
    margin: Ratio,
    checks: Checks,
) -> Result<Ranking, Error> {
    let of = |cell: &&[Repetition]| Sample::of_repetitions(cell, better);
    let samples = cells.iter().map(of).collect::<Result<Vec<Sample>, Error>>()?;
    let shared = checks == Checks::AllInSharedBlocks && blocks::unequal(cells);
    let family = shared.then(|| blocks::shared(cells)).flatten();
    let ordered: Vec<&[Repetition]> = match &family {
        Some(family) => family.iter().map(Vec::as_slice).collect(),
        None => cells.to_vec(),
    };
    let order = order(&ordered, better)?;
    let rank_bootstrap = RankBootstrap::new(&samples.iter().collect::<Vec<_>>());
    let placed = family.is_some().then(|| ordered.iter().map(of).collect::<Result<Vec<_>, _>>());
    let placed = placed.transpose()?.map(|own| RankBootstrap::new(&own.iter().collect::<Vec<_>>()));
    let placed = placed.as_ref().unwrap_or(&rank_bootstrap);
    let mut pairs = Vec::new();
    for (place, &first) in order.iter().enumerate() {
        for &other in &order[place + 1..] {
            let own = shared.then(|| unequal(cells[other], cells[first])).flatten();
            let comparison = match own {
                Some([other, first]) => {
                    comparer.compare_repetitions(&other, &first, better, margin)?
                }
                None => {
                    let p = (checks != Checks::None).then(|| rank_bootstrap.p(other, first));
                    comparer.judge(&samples[other], &samples[first], margin, p)
                }
            };
            let p_holm = comparison.p;
            pairs.push(Pair { better: first, other, comparison, p_holm });
        }
    }
    let raw: Vec<f64> = pairs.iter().map(|pair| pair.comparison.p).collect();
    for (pair, p) in pairs.iter_mut().zip(holm(&raw)) {
        pair.p_holm = p;
    }
    let apart: Vec<(usize, usize)> = pairs
        .iter()
        .filter(|pair| pair.is_significant())
        .map(|pair| (pair.better, pair.other))
        .collect();
    Ok(Ranking {
        top: beside(order.iter().copied(), &pairs),
        bottom: beside(order.iter().rev().copied(), &pairs),
        letters: letters(&order, &apart),
        first: placed.first(),
        places: placed.places(),
        order,
        pairs,
    })
}

/// Repetitions of two cells in their common blocks. `None` if their blocks are the same, or if
/// there are too few common blocks.
fn unequal(one: &[Repetition], other: &[Repetition]) -> Option<[Vec<Repetition>; 2]> {
    let pair = [one, other];
    let shared = blocks::unequal(&pair).then(|| blocks::shared(&pair)).flatten()?;
    <[Vec<Repetition>; 2]>::try_from(shared).ok()
}

/// Cells by median, best first.
fn order(cells: &[&[Repetition]], better: Better) -> Result<Vec<usize>, Error> {
    let of = |cell: &&[Repetition]| {
        let values: Vec<f64> = cell.iter().map(|repetition| repetition.value).collect();
        Ok(median(&sorted(&values)?))
    };
    let medians = cells.iter().map(of).collect::<Result<Vec<f64>, Error>>()?;
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by(|a, b| match better {
        Better::Lower => medians[*a].total_cmp(&medians[*b]),
        Better::Higher | Better::Neither => medians[*b].total_cmp(&medians[*a]),
    });
    Ok(order)
}

/// Group of the first cell of an order: the cell, and all other cells except those with a
/// significant difference that may exceed δ.
fn beside(mut order: impl Iterator<Item = usize>, pairs: &[Pair]) -> Vec<usize> {
    let Some(end) = order.next() else {
        return Vec::new();
    };
    let near = |cell: &usize| {
        let pair = pairs.iter().find(|pair| pair.with(end) == Some(*cell));
        pair.is_some_and(|pair| !pair.beats())
    };
    std::iter::once(end).chain(order.filter(near)).collect()
}

#[cfg(test)]
mod tests;

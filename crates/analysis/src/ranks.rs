//! A family of cells in order, with ties where the data do not separate them.
//!
//! One list of values for each cell enters; a [`Ranking`] leaves. Cells are ordered by median; all
//! pairs are compared and corrected together, so a claim about the family holds for the family. A
//! single winner exists only when the top group has one member. Ranks are never averaged over
//! workloads, and no points are given.
//!
//! Values are taken as they are: alignment of blocks ([`crate::blocks`]) is a matter of single
//! pairs and of data that drift, and the caller knows whether they do.
//!
//! Families do not depend on each other, nor on the [`Comparer`] that compares them, so many of
//! them may be ranked in threads, each with a `Comparer` of its own, with the same outcome.

use model::{Ratio, metric::Better};

use self::{letters::letters, standing::Standing};
use crate::{
    Error, blocks,
    compare::{Comparer, Comparison, Sample, Side, Size, Verdict},
    family::holm,
    median, sorted,
    trend::Repeat,
};

mod letters;
pub(crate) mod standing;

/// Family-wise error rate of the claims about one family.
pub const FAMILY_ERROR: f64 = 0.05;

/// Two cells of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Index of the better cell by median.
    pub better: usize,
    /// Index of the other.
    pub other: usize,
    /// The better against the other: a ratio above 1 is in favor of `better`.
    pub comparison: Comparison,
    /// p-value after Holm's correction for all pairs of the family.
    pub p_holm: f64,
}

impl Pair {
    /// Whether the two are told apart: at [`FAMILY_ERROR`], and by a verdict that says so. A small
    /// p-value alone is not enough where too few values or ratios on both sides of 1 forbid a
    /// verdict; ratios that only disagree about the size forbid none.
    pub fn separated(&self) -> bool {
        let differs = matches!(self.comparison.verdict, Verdict::Differs { .. });
        differs && self.p_holm <= FAMILY_ERROR
    }

    /// Whether the better by median is told apart from the other as the better one, by a difference
    /// that may matter.
    fn beats(&self) -> bool {
        let matters = matches!(
            self.comparison.verdict,
            Verdict::Differs { side: Side::Better, size: Size::AtLeast | Size::Uncertain }
        );
        matters && self.separated()
    }

    /// Whether the two are told apart against the order: the better by median is the worse one.
    /// Nothing may be said then that rests on the order of the two.
    pub fn reversed(&self) -> bool {
        let worse = matches!(self.comparison.verdict, Verdict::Differs { side: Side::Worse, .. });
        worse && self.separated()
    }

    /// The other of the two, if this is a pair of that cell.
    fn with(&self, cell: usize) -> Option<usize> {
        match () {
            () if self.better == cell => Some(self.other),
            () if self.other == cell => Some(self.better),
            () => None,
        }
    }
}

/// The family in order. Indexes are those of the slice that was ranked.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// All cells, best median first; equal medians keep their order.
    pub order: Vec<usize>,
    /// The best cell, all not told apart from it, and all that differ from it by less than δ for
    /// certain (equivalent, or a negligible difference); best first.
    pub top: Vec<usize>,
    /// The worst cell, all not told apart from it, and all that differ from it by less than δ for
    /// certain; worst first. A single worst exists only when this has one member.
    pub bottom: Vec<usize>,
    /// Compact letters of each cell, by its index: cells that share a letter were not told apart.
    pub letters: Vec<String>,
    /// How often each cell has the best median, by its index, when blocks are drawn anew with
    /// replacement: 4000 seeded resamples, the same blocks for all cells. Where a block is unknown
    /// the repeats of each cell are drawn on their own. Ties share the win.
    pub first: Vec<Ratio>,
    /// The places of each cell, from 1, by its index: the middle 90 % over the same resamples.
    pub places: Vec<(u32, u32)>,
    /// All pairs; the better cell by median comes first in each.
    pub pairs: Vec<Pair>,
}

impl Ranking {
    /// The pair of two cells, in whichever order it is kept.
    pub fn pair(&self, one: usize, other: usize) -> Option<&Pair> {
        let wanted =
            |pair: &&Pair| [(one, other), (other, one)].contains(&(pair.better, pair.other));
        self.pairs.iter().find(wanted)
    }
}

/// Ranks cells by the values of one metric, at the practical threshold δ. Lists of equal length are
/// resampled jointly, value i of each being the same block of the run; of lists of different
/// lengths no block is known. No [`crate::Check`] is made; [`rank_repeats`] makes them.
///
/// # Errors
/// [`Error`] when a list is empty or holds a value that is not finite and positive.
pub fn rank(
    comparer: &mut Comparer,
    cells: &[&[f64]],
    better: Better,
    threshold: Ratio,
) -> Result<Ranking, Error> {
    let joint = cells.windows(2).all(|two| two[0].len() == two[1].len());
    let repeat = |(index, value): (usize, &f64)| Repeat {
        block: u32::try_from(index).ok().filter(|_| joint),
        value: *value,
    };
    let lists: Vec<Vec<Repeat>> =
        cells.iter().map(|values| values.iter().enumerate().map(repeat).collect()).collect();
    let lists: Vec<&[Repeat]> = lists.iter().map(Vec::as_slice).collect();
    ranked(comparer, &lists, better, threshold, Checks::None)
}

/// Ranks cells by repeats that know their blocks, and holds other ways to compare against each pair
/// ([`crate::Check`]); a pair of which one disagrees and points to the other side is not told
/// apart. Values are taken as they are, see the module. Cost: for 10 cells of 100 repeats some 5
/// ms, a third of it for the resamples.
///
/// # Errors
/// [`Error`] when a list is empty or holds a value that is not finite and positive.
pub fn rank_repeats(
    comparer: &mut Comparer,
    cells: &[&[Repeat]],
    better: Better,
    threshold: Ratio,
) -> Result<Ranking, Error> {
    ranked(comparer, cells, better, threshold, Checks::All)
}

/// Ranks as [`rank_repeats`], but compares each pair in those blocks that both have
/// ([`crate::blocks::shared`]), as a run takes that may have drifted
/// ([`crate::drift::Drift::suspected`]): what it did to the later blocks of one cell it did not do
/// to another that was closed before. Order, P(first), and places are of the blocks that all cells
/// of the family have, so that they rest on what the comparisons rest on; where these are too few,
/// of all values. A pair that shares more blocks than the family does may still be told apart
/// against the order ([`Pair::reversed`]).
///
/// # Errors
/// [`Error`] when a list is empty or holds a value that is not finite and positive.
pub fn rank_shared(
    comparer: &mut Comparer,
    cells: &[&[Repeat]],
    better: Better,
    threshold: Ratio,
) -> Result<Ranking, Error> {
    ranked(comparer, cells, better, threshold, Checks::AllInSharedBlocks)
}

/// How the pairs of a family are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    /// By the test alone.
    None,
    /// With other ways held against it.
    All,
    /// So, too, and each pair in the blocks that both have.
    AllInSharedBlocks,
}

fn ranked(
    comparer: &mut Comparer,
    cells: &[&[Repeat]],
    better: Better,
    threshold: Ratio,
    checks: Checks,
) -> Result<Ranking, Error> {
    let of = |cell: &&[Repeat]| Sample::of_repeats(cell, better);
    let samples = cells.iter().map(of).collect::<Result<Vec<Sample>, Error>>()?;
    let shared = checks == Checks::AllInSharedBlocks && blocks::unequal(cells);
    let family = shared.then(|| blocks::shared(cells)).flatten();
    let ordered: Vec<&[Repeat]> = match &family {
        Some(family) => family.iter().map(Vec::as_slice).collect(),
        None => cells.to_vec(),
    };
    let order = order(&ordered, better)?;
    let standing = Standing::new(&samples.iter().collect::<Vec<_>>());
    let placed = family.is_some().then(|| ordered.iter().map(of).collect::<Result<Vec<_>, _>>());
    let placed = placed.transpose()?.map(|own| Standing::new(&own.iter().collect::<Vec<_>>()));
    let placed = placed.as_ref().unwrap_or(&standing);
    let mut pairs = Vec::new();
    for (place, &first) in order.iter().enumerate() {
        for &other in &order[place + 1..] {
            let own = shared.then(|| unequal(cells[other], cells[first])).flatten();
            let comparison = match own {
                Some([other, first]) => {
                    comparer.compare_repeats(&other, &first, better, threshold)?
                }
                None => {
                    let p = (checks != Checks::None).then(|| standing.p(other, first));
                    comparer.judge(&samples[other], &samples[first], threshold, p)
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
        .filter(|pair| pair.separated())
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

/// The repeats of two cells in the blocks that both have, where they do not have the same.
fn unequal(one: &[Repeat], other: &[Repeat]) -> Option<[Vec<Repeat>; 2]> {
    let pair = [one, other];
    let shared = blocks::unequal(&pair).then(|| blocks::shared(&pair)).flatten()?;
    <[Vec<Repeat>; 2]>::try_from(shared).ok()
}

/// The cells by their medians, best first.
fn order(cells: &[&[Repeat]], better: Better) -> Result<Vec<usize>, Error> {
    let of = |cell: &&[Repeat]| {
        let values: Vec<f64> = cell.iter().map(|repeat| repeat.value).collect();
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

/// The first of an order and all that are not shown to differ from it by what may matter.
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

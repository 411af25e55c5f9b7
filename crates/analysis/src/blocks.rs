//! Alignment by block: removes the common effect of a block from two cells.
//!
//! Input is the repetitions of all cells of a run; the result is the aligned repetitions of two
//! cells. A block is a pass over all cells, so a temporarily slower machine affects all cells of a
//! block. The effect of a block is estimated from the other cells: it is the median of their
//! distances, in logarithms, from their own medians. This effect is subtracted from both compared
//! cells. Example: if the other cells are 0.03 below their medians in block 4, 0.03 is added to the
//! logarithms of the compared cells in block 4.
//!
//! The two compared cells are excluded from the estimate. With an ordinary fit that includes them,
//! rank tests had 8 to 16 % false positives with three cells per block; without them, at most
//! 4.4 %. The medians of the other cells are those in the evaluated blocks, so an effect is
//! relative to these blocks. Cells that were aligned in different blocks must therefore not be
//! compared. [`align`] aligns two cells in the same blocks, [`align_family`] a family of cells.
//!
//! Alignment is useful only if the run as a whole drifted (by a test, p < 1 %). The caller decides,
//! because only the caller has the whole run. Without drift, alignment only adds the noise of the
//! other cells. With drift, the power of twelve cells of 8 repetitions rose from 87 to 95 %.
//! Without alignment, random order keeps the test valid and drift makes it conservative.
//!
//! A ranking uses raw values ([`crate::ranks::rank_repetitions`]). Each pair of cells is aligned by
//! different other cells. With aligned values, a cell would have a different median in each pair,
//! so cells could not be sorted by their medians.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    median,
    summary::{LEVEL, needed},
    sweep::Repetition,
};

/// Minimum number of other cells that estimate the effect of a block. With only two to four other
/// cells, tests of bimodal data lost power.
pub const OTHERS_MIN: usize = 8;

/// Repetitions of two cells with the block effects divided out, by block. Only blocks that both
/// cells have are kept, and only other cells that have all of these blocks estimate the effects.
/// Each effect is thus estimated from the same cells. Several repetitions of a cell in one block
/// are replaced by their geometric mean.
///
/// `None` if fewer than [`OTHERS_MIN`] other cells have these blocks, if the two cells have no
/// common block or are the same, or if a repetition of either cell has no block or no logarithm. A
/// comparison of the raw values then reports a missing logarithm as an error.
pub fn align(
    cells: &[Vec<Repetition>],
    first: usize,
    second: usize,
) -> Option<(Vec<Repetition>, Vec<Repetition>)> {
    let (one, other) = (logarithms(cells.get(first)?)?, logarithms(cells.get(second)?)?);
    let shared: Vec<u32> = one.keys().filter(|block| other.contains_key(block)).copied().collect();
    if first == second || shared.is_empty() {
        return None;
    }
    let apart = |(index, _): &(usize, &Vec<Repetition>)| *index != first && *index != second;
    let others = cells.iter().enumerate().filter(apart).map(|(_, cell)| cell.as_slice());
    let effects = effects(others, &shared)?;
    Some((without(&one, &effects)?, without(&other, &effects)?))
}

/// Repetitions of a family of cells with the block effects divided out, by block, like [`align`]
/// for two cells. Only blocks that all cells of the family have are kept ([`shared`]), and the same
/// other cells estimate all effects. If each cell were aligned in all of its blocks, a cell that
/// was closed early would differ from a cell that was closed late by the drift between early and
/// late blocks.
///
/// `None` if the family has too few common blocks, if fewer than [`OTHERS_MIN`] other cells have
/// all of them, or if a repetition has no logarithm.
pub fn align_family(
    cells: &[&[Repetition]],
    others: &[Vec<Repetition>],
) -> Option<Vec<Vec<Repetition>>> {
    let logs: Vec<BTreeMap<u32, f64>> =
        shared(cells)?.iter().map(|cell| logarithms(cell)).collect::<Option<_>>()?;
    let blocks: Vec<u32> = logs.first()?.keys().copied().collect();
    let effects = effects(others.iter().map(Vec::as_slice), &blocks)?;
    logs.iter().map(|own| without(own, &effects)).collect()
}

/// Effects of the given blocks, estimated from the other cells that have all of them.
fn effects<'a>(
    others: impl Iterator<Item = &'a [Repetition]>,
    blocks: &[u32],
) -> Option<Vec<(u32, f64)>> {
    let residuals: Vec<Vec<f64>> =
        others.filter_map(|cell| residuals(&logarithms(cell)?, blocks)).collect();
    if residuals.len() < OTHERS_MIN {
        return None;
    }
    let effect = |at: usize| middle(residuals.iter().map(|cell| cell[at]));
    Some(blocks.iter().enumerate().map(|(at, block)| (*block, effect(at))).collect())
}

/// Cell without the effects of its blocks.
fn without(logs: &BTreeMap<u32, f64>, effects: &[(u32, f64)]) -> Option<Vec<Repetition>> {
    let block = |(block, effect): &(u32, f64)| {
        Some(Repetition { block: Some(*block), value: crate::bounded(logs.get(block)? - effect).0 })
    };
    effects.iter().map(block).collect()
}

/// Repetitions of the cells in their common blocks, by block. A drift affects the later blocks
/// more, and a cell that was closed early does not have these blocks. Pairs of equal cells that
/// were closed at different interim analyses were simulated with a drift of 6 % over ten blocks and
/// a scatter of 4 %. One pair in six differed significantly. With common blocks only, it was one
/// pair in twenty (`docs/method/calibration.md`).
///
/// `None` if there are fewer common blocks than a confidence interval needs, or if a block is
/// unknown.
pub fn shared(cells: &[&[Repetition]]) -> Option<Vec<Vec<Repetition>>> {
    let of = |cell: &&[Repetition]| cell.iter().map(|repetition| repetition.block).collect();
    let every: Vec<BTreeSet<Option<u32>>> = cells.iter().map(of).collect();
    let mut blocks = every.first()?.clone();
    every.iter().for_each(|own| blocks.retain(|block| own.contains(block)));
    let known = every.iter().all(|own| !own.contains(&None));
    if !known || crate::count(blocks.len()) < needed(LEVEL) {
        return None;
    }
    let kept = |cell: &&[Repetition]| {
        cell.iter().filter(|repetition| blocks.contains(&repetition.block)).copied().collect()
    };
    Some(cells.iter().map(kept).collect())
}

/// Repetitions of the cells that can be compared: all of them, or those of [`shared`] if the run
/// may have drifted ([`crate::drift::Drift::suspected`]) and the cells have different blocks.
/// `None` if there are too few common blocks for a valid comparison.
pub fn comparable(cells: &[&[Repetition]], suspected: bool) -> Option<Vec<Vec<Repetition>>> {
    if suspected && unequal(cells) {
        return shared(cells);
    }
    Some(cells.iter().map(|cell| cell.to_vec()).collect())
}

/// True if the cells do not all have the same blocks.
pub fn unequal(cells: &[&[Repetition]]) -> bool {
    let of = |cell: &[Repetition]| {
        cell.iter().map(|repetition| repetition.block).collect::<BTreeSet<_>>()
    };
    cells.windows(2).any(|two| of(two[0]) != of(two[1]))
}

/// Mean logarithm of each block.
fn logarithms(cell: &[Repetition]) -> Option<BTreeMap<u32, f64>> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for repetition in cell {
        let sound = repetition.value.is_finite() && repetition.value > 0.0;
        blocks.entry(repetition.block.filter(|_| sound)?).or_default().push(repetition.value.ln());
    }
    let mean = |logs: Vec<f64>| crate::sample::sum(logs.iter().copied()) / logs.len() as f64;
    Some(blocks.into_iter().map(|(block, logs)| (block, mean(logs))).collect())
}

/// Distance of a cell from its own median in each of these blocks; `None` if it lacks one of them.
fn residuals(logs: &BTreeMap<u32, f64>, blocks: &[u32]) -> Option<Vec<f64>> {
    let own: Vec<f64> =
        blocks.iter().map(|block| logs.get(block).copied()).collect::<Option<_>>()?;
    let center = middle(own.iter().copied());
    Some(own.into_iter().map(|log| log - center).collect())
}

/// Median of finite values in any order. Requires at least one value.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    median(&values)
}

#[cfg(test)]
mod tests;

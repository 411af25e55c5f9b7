//! What a block did to all of its trials, taken out of two cells.
//!
//! The repeats of all cells of a run enter; those of two leave, aligned. A block is a pass over all
//! cells, so a machine that is slower for a while is slower for a whole block. In each block the
//! others tell by how much: the block's effect is the median, over the other cells, of how far
//! their logarithm lies from the cell's own median. It is taken from both cells alike.
//!
//! The two cells themselves do not take part in finding it. With an ordinary fit, in which they do,
//! rank tests gave 8 to 16 % false positives with three cells in a block; without them at most 4.4
//! %. The others are centered on the blocks that are looked at, so an effect is one against these
//! blocks: cells are compared after alignment in the same blocks only, two of them by [`align`], a
//! family by [`align_family`].
//!
//! When to use it: only where the run as a whole drifted (by a test, p < 1 %), and that is for the
//! caller to decide, who sees the whole run. Without drift, alignment only adds the noise of the
//! others; with it, twelve cells of 8 repeats regained a power of 95 % from 87 %. Left unaligned,
//! random order keeps the test valid and makes it merely conservative. A ranking is of raw values
//! ([`crate::ranks::rank_repeats`]): each pair would be aligned by other cells, and the medians
//! that order them would not belong to the same values any more.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    median,
    summary::{LEVEL, needed},
    trend::Repeat,
};

/// Fewer other cells than this are too few to tell what a block did: with two to four of them power
/// was lost on bimodal data.
pub const OTHERS_MIN: usize = 8;

/// The repeats of two of the cells with the effect of their blocks divided out, by block. Only
/// blocks that both have are kept, and only cells that have all of these tell their effect, so that
/// each block is judged by the same cells. Several repeats of a cell in one block become their
/// geometric mean.
///
/// `None` where fewer than [`OTHERS_MIN`] other cells have these blocks, where the two have none in
/// common or are the same, or where a repeat of either has no block or no logarithm; comparing raw
/// values then says what is wrong with them.
pub fn align(
    cells: &[Vec<Repeat>],
    first: usize,
    second: usize,
) -> Option<(Vec<Repeat>, Vec<Repeat>)> {
    let (one, other) = (logarithms(cells.get(first)?)?, logarithms(cells.get(second)?)?);
    let shared: Vec<u32> = one.keys().filter(|block| other.contains_key(block)).copied().collect();
    if first == second || shared.is_empty() {
        return None;
    }
    let apart = |(index, _): &(usize, &Vec<Repeat>)| *index != first && *index != second;
    let others = cells.iter().enumerate().filter(apart).map(|(_, cell)| cell.as_slice());
    let effects = effects(others, &shared)?;
    Some((without(&one, &effects)?, without(&other, &effects)?))
}

/// The repeats of a family of cells with the effect of their blocks divided out, by block, as
/// [`align`] does for two. Only blocks that all of them have are kept ([`shared`]), and the same
/// others tell of the same blocks for each: were every cell aligned in its own blocks, what the
/// machine did between the earlier ones and the later ones would stay as a difference between a
/// cell that was closed early and one that was not.
///
/// `None` where too few blocks are shared, fewer than [`OTHERS_MIN`] others have all of these, or a
/// repeat has no logarithm.
pub fn align_family(cells: &[&[Repeat]], others: &[Vec<Repeat>]) -> Option<Vec<Vec<Repeat>>> {
    let logs: Vec<BTreeMap<u32, f64>> =
        shared(cells)?.iter().map(|cell| logarithms(cell)).collect::<Option<_>>()?;
    let blocks: Vec<u32> = logs.first()?.keys().copied().collect();
    let effects = effects(others.iter().map(Vec::as_slice), &blocks)?;
    logs.iter().map(|own| without(own, &effects)).collect()
}

/// What each of some blocks did, by those of the others that have all of them.
fn effects<'a>(
    others: impl Iterator<Item = &'a [Repeat]>,
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

/// A cell without the effects of its blocks.
fn without(logs: &BTreeMap<u32, f64>, effects: &[(u32, f64)]) -> Option<Vec<Repeat>> {
    let block = |(block, effect): &(u32, f64)| {
        Some(Repeat { block: Some(*block), value: crate::bounded(logs.get(block)? - effect).0 })
    };
    effects.iter().map(block).collect()
}

/// The repeats of some cells in those blocks that all of them have, by block: what a machine that
/// drifted did to the later blocks of one cell, it did not do to a cell that was closed before, and
/// that difference is none of theirs. With a drift of 6 % in ten blocks and a scatter of 4 %, one
/// in six equal pairs whose repeats ended at different looks was called different, and one in
/// twenty by shared blocks alone (`docs/method/calibration.md`).
///
/// `None` where fewer than an interval takes are shared, or a block is unknown.
pub fn shared(cells: &[&[Repeat]]) -> Option<Vec<Vec<Repeat>>> {
    let of = |cell: &&[Repeat]| cell.iter().map(|repeat| repeat.block).collect();
    let every: Vec<BTreeSet<Option<u32>>> = cells.iter().map(of).collect();
    let mut blocks = every.first()?.clone();
    every.iter().for_each(|own| blocks.retain(|block| own.contains(block)));
    let known = every.iter().all(|own| !own.contains(&None));
    if !known || crate::count(blocks.len()) < needed(LEVEL) {
        return None;
    }
    let kept = |cell: &&[Repeat]| {
        cell.iter().filter(|repeat| blocks.contains(&repeat.block)).copied().collect()
    };
    Some(cells.iter().map(kept).collect())
}

/// The repeats of some cells as they may be compared: all of them, or, where the run may have
/// drifted ([`crate::drift::Drift::suspected`]) and the cells do not have the same blocks, those of
/// [`shared`]. `None` where these are too few; no comparison is fair then.
pub fn comparable(cells: &[&[Repeat]], suspected: bool) -> Option<Vec<Vec<Repeat>>> {
    if suspected && unequal(cells) {
        return shared(cells);
    }
    Some(cells.iter().map(|cell| cell.to_vec()).collect())
}

/// Whether a block is known that not all of the cells have.
pub fn unequal(cells: &[&[Repeat]]) -> bool {
    let of = |cell: &[Repeat]| cell.iter().map(|repeat| repeat.block).collect::<BTreeSet<_>>();
    cells.windows(2).any(|two| of(two[0]) != of(two[1]))
}

/// The mean logarithm of each block.
fn logarithms(cell: &[Repeat]) -> Option<BTreeMap<u32, f64>> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for repeat in cell {
        let sound = repeat.value.is_finite() && repeat.value > 0.0;
        blocks.entry(repeat.block.filter(|_| sound)?).or_default().push(repeat.value.ln());
    }
    let mean = |logs: Vec<f64>| crate::compare::sum(logs.iter().copied()) / logs.len() as f64;
    Some(blocks.into_iter().map(|(block, logs)| (block, mean(logs))).collect())
}

/// How far a cell lies from its own median in each of these blocks; `None` if it lacks one.
fn residuals(logs: &BTreeMap<u32, f64>, blocks: &[u32]) -> Option<Vec<f64>> {
    let own: Vec<f64> =
        blocks.iter().map(|block| logs.get(block).copied()).collect::<Option<_>>()?;
    let center = middle(own.iter().copied());
    Some(own.into_iter().map(|log| log - center).collect())
}

/// The median of finite values in any order; there is at least one.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    median(&values)
}

#[cfg(test)]
mod tests;

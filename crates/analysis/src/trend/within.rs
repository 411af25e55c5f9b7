//! Values permuted within their blocks: what the medians of levels would be if levels did nothing.
//!
//! A level keeps as many values as it has, and a block keeps its own, so that whatever the machine
//! did from block to block is in every draw. Where blocks are unknown, all values are one block.

use std::collections::BTreeMap;

use super::Sweep;

/// Draws behind a percentile or a p-value. A share of 5 % is then known to ±0.7 %, one of 1 % to
/// ±0.3 %.
const DRAWS: u32 = 4000;

/// One value for each repeat of a sweep, to be permuted.
pub(super) struct Within {
    values: Vec<f64>,
    /// The values of each level, as a range of their places.
    ends: Vec<usize>,
    /// Places of each block.
    blocks: Vec<Vec<usize>>,
    /// One level, to be sorted; kept to save allocations.
    level: Vec<f64>,
}

impl Within {
    /// What a function makes of each repeat, by its level and its value.
    pub(super) fn new(sweep: &Sweep, of: impl Fn(usize, f64) -> f64) -> Self {
        let (mut values, mut ends) = (Vec::new(), Vec::new());
        let mut blocks: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
        for (at, level) in sweep.levels.iter().enumerate() {
            for repeat in &level.repeats {
                let block = repeat.block.filter(|_| sweep.blocked);
                blocks.entry(block).or_default().push(values.len());
                values.push(of(at, repeat.value));
            }
            ends.push(values.len());
        }
        Self { values, ends, blocks: blocks.into_values().collect(), level: Vec::new() }
    }

    /// Shows the medians of the levels to a function, draw by draw.
    pub(super) fn each(mut self, seed: u64, mut see: impl FnMut(&[f64])) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut medians = vec![0.0; self.ends.len()];
        for _ in 0..DRAWS {
            for block in &self.blocks {
                for end in (1..block.len()).rev() {
                    self.values.swap(block[end], block[rng.usize(0..=end)]);
                }
            }
            let mut from = 0;
            for (median, end) in medians.iter_mut().zip(&self.ends) {
                self.level.clear();
                self.level.extend_from_slice(&self.values[from..*end]);
                self.level.sort_unstable_by(f64::total_cmp);
                *median = crate::median(&self.level);
                from = *end;
            }
            see(&medians);
        }
    }
}

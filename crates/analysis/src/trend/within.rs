//! Permutation of values within their blocks: medians of levels under the null hypothesis.
//!
//! The sizes of levels and the values of each block are kept, so every draw includes the
//! differences between blocks. If blocks are unknown, all values belong to one block.

use std::collections::BTreeMap;

use super::Sweep;

/// Number of draws for a percentile or a p-value. A fraction of 5 % is then known to ±0.7 %, a
/// fraction of 1 % to ±0.3 %.
const DRAWS: u32 = 4000;

/// One value per repetition of a sweep, to be permuted.
pub(super) struct Within {
    values: Vec<f64>,
    /// End of the index range of the values of each level.
    ends: Vec<usize>,
    /// Indexes of the values of each block.
    blocks: Vec<Vec<usize>>,
    /// Values of one level, sorted; kept to save allocations.
    level: Vec<f64>,
}

impl Within {
    /// Values computed by a function from the level and the value of each repetition.
    pub(super) fn new(sweep: &Sweep, of: impl Fn(usize, f64) -> f64) -> Self {
        let (mut values, mut ends) = (Vec::new(), Vec::new());
        let mut blocks: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
        for (at, level) in sweep.levels.iter().enumerate() {
            for repetition in &level.repetitions {
                let block = repetition.block.filter(|_| sweep.blocked());
                blocks.entry(block).or_default().push(values.len());
                values.push(of(at, repetition.value));
            }
            ends.push(values.len());
        }
        Self { values, ends, blocks: blocks.into_values().collect(), level: Vec::new() }
    }

    /// Calls a function with the medians of the levels of each draw.
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

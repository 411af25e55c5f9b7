//! Random draws of a mix: the operation by its weight, and its file.

use std::ops::Range;

use fastrand::Rng;
use model::phase::{Mix, MixOp};

use crate::patterns::{
    alias::Alias,
    draw::{below, generator},
};

/// Seed constant that separates a mix from the access patterns of streams with the same seed.
const PURPOSE: u64 = 0x006d_6978;

/// Draws and population of one worker.
pub(super) struct Draw {
    ops: Box<[MixOp]>,
    weights: Alias,
    random: Rng,
    /// Numbers of the existing files.
    pub(super) window: Range<u64>,
}

impl Draw {
    /// Initial state of a worker.
    pub(super) fn new(mix: &Mix, worker: u32) -> Self {
        let weights: Vec<f64> = mix.weights.iter().map(|(_, weight)| f64::from(*weight)).collect();
        Self {
            ops: mix.weights.iter().map(|(op, _)| *op).collect(),
            weights: Alias::new(&weights),
            random: generator(mix.set.seed, worker, PURPOSE),
            window: 0..mix.set.files,
        }
    }

    /// Next operation and the number of its file. The window already reflects the operation, so the
    /// caller must execute it or stop. A rename moves the oldest file to the number after the
    /// window.
    #[inline]
    pub(super) fn next(&mut self) -> (MixOp, u64) {
        let drawn = self.ops[self.weights.choose(self.random.u64(..))];
        let op = if self.window.is_empty() { MixOp::Create } else { drawn };
        let Range { start, end } = self.window;
        match op {
            MixOp::Stat | MixOp::Open | MixOp::Read | MixOp::Chmod => {
                (op, start + below(self.random.u64(..), end - start))
            }
            MixOp::Create => {
                self.window.end += 1;
                (op, end)
            }
            MixOp::Unlink => {
                self.window.start += 1;
                (op, start)
            }
            MixOp::Rename => {
                self.window = start + 1..end + 1;
                (op, start)
            }
        }
    }
}

//! What comes next: an operation by its weight, and the file it is for.

use std::ops::Range;

use fastrand::Rng;
use model::phase::{Mix, MixOp};

use crate::patterns::{
    alias::Alias,
    draw::{below, generator},
};

/// Tells a mix from the orders of streams that have the same seed.
const PURPOSE: u64 = 0x006d_6978;

/// The draws of one worker, and its population.
pub(super) struct Draw {
    ops: Box<[MixOp]>,
    weights: Alias,
    random: Rng,
    /// Numbers of the files that are there.
    pub(super) window: Range<u64>,
}

impl Draw {
    /// Of a worker, at the start.
    pub(super) fn new(mix: &Mix, worker: u32) -> Self {
        let weights: Vec<f64> = mix.weights.iter().map(|(_, weight)| f64::from(*weight)).collect();
        Self {
            ops: mix.weights.iter().map(|(op, _)| *op).collect(),
            weights: Alias::new(&weights),
            random: generator(mix.set.seed, worker, PURPOSE),
            window: 0..mix.set.files,
        }
    }

    /// The next operation and the number of its file; the caller carries it out, or stops. That of
    /// a rename is the oldest, which gets the number at the end that the window had.
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

//! Runs pattern: sequential operations, interrupted by jumps to random blocks.
//!
//! With a jump at every third operation, the first of which is one, blocks are r, r+1, r+2, s, s+1,
//! s+2, … With a chance, a pass starts at a random block or at block 0. At the end of the part, a
//! run jumps.

use fastrand::Rng;
use model::phase::Jump;

use super::{
    BlockSpan,
    bijection::Bijection,
    draw::{Chance, below},
};

/// One pass; see the module.
#[derive(Debug)]
pub(super) struct Runs {
    rule: Rule,
    // First block of the next operation of the run.
    next: u64,
    left: u64,
    blocks: u64,
    jumps: Jumps,
}

#[derive(Debug)]
enum Rule {
    Every { every: u64, left: u64, repeats: bool },
    Chance(Chance),
}

/// Source of random blocks.
#[derive(Debug)]
enum Jumps {
    Draws,
    Unique { order: Bijection, next: u64 },
}

impl Runs {
    /// `n` operations. With `unique`, the jumps of the pass are to different blocks.
    pub(super) fn new(n: u64, jump: Jump, unique: bool, random: &mut Rng) -> Self {
        let every = |every: u64, repeats| Rule::Every { every, left: 1, repeats };
        let rule = match jump {
            Jump::Every(ops) => every(ops.max(1), false),
            Jump::EveryRepeated(ops) => every(ops.max(1), true),
            Jump::Chance(chance) => Rule::Chance(Chance::new(chance)),
        };
        let jumps = match unique {
            true => Jumps::Unique { order: Bijection::new(n, random), next: 0 },
            false => Jumps::Draws,
        };
        Self { rule, next: 0, left: n, blocks: n, jumps }
    }

    /// `count` blocks of the run or at a random place, or fewer at the end of the part.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64) -> Option<BlockSpan> {
        self.left = self.left.checked_sub(1)?;
        let (jumps, repeats) = match &mut self.rule {
            Rule::Every { every, left, repeats } => {
                *left -= 1;
                let jumps = *left == 0;
                if jumps {
                    *left = *every;
                }
                (jumps, *repeats)
            }
            Rule::Chance(chance) => (chance.happens(random), false),
        };
        if jumps || self.next >= self.blocks {
            self.next = self.jumps.draw(random, self.blocks);
        }
        let first = self.next;
        let count = count.min(self.blocks - first);
        if !repeats {
            self.next = first + count;
        }
        Some(BlockSpan { first, count })
    }
}

impl Jumps {
    fn draw(&mut self, random: &mut Rng, blocks: u64) -> u64 {
        match self {
            Self::Draws => below(random.u64(..), blocks),
            Self::Unique { order, next } => {
                let block = order.at(*next);
                *next = if *next + 1 == blocks { 0 } else { *next + 1 };
                block
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(n: u64, jump: Jump, unique: bool) -> Vec<u64> {
        let mut random = Rng::with_seed(3);
        let mut runs = Runs::new(n, jump, unique, &mut random);
        std::iter::from_fn(|| runs.next(&mut random, 1)).map(|span| span.first).collect()
    }

    #[test]
    fn runs_of_operations_follow_each_other_or_repeat() {
        let found = places(4096, Jump::Every(4), true);
        assert_eq!(found.len(), 4096);
        let mut starts = Vec::new();
        for run in found.chunks(4) {
            starts.push(run[0]);
            let follows = run.windows(2).all(|pair| pair[1] == pair[0] + 1 || pair[0] == 4095);
            assert!(follows, "{run:?}");
        }
        let mut again = places(4096, Jump::EveryRepeated(4), true);
        assert!(again.chunks(4).all(|run| run.iter().all(|block| *block == run[0])));
        again.dedup();
        assert_eq!(again.len(), 1024, "different places");
        assert!(starts.windows(2).any(|pair| pair[1] < pair[0]), "random places");
    }

    #[test]
    fn a_chance_selects_the_operations_that_jump() {
        let found = places(100_000, Jump::Chance(0.25), false);
        let jumps = found.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        // Four standard deviations of 100000 draws.
        assert!((24_450..=25_550).contains(&jumps), "{jumps}");
        assert_eq!(places(5, Jump::Chance(0.0), true), [0, 1, 2, 3, 4]);
    }
}

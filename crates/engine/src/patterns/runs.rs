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
    // Jumps are to multiples of this number of blocks.
    alignment: u64,
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
    /// `n` operations. With `unique`, the jumps of the pass are to different blocks, in this order.
    pub(super) fn new(n: u64, alignment: u64, jump: Jump, unique: Option<Bijection>) -> Self {
        let every = |every: u64, repeats| Rule::Every { every, left: 1, repeats };
        let rule = match jump {
            Jump::Every(ops) => every(ops.max(1), false),
            Jump::EveryRepeated(ops) => every(ops.max(1), true),
            Jump::Chance(chance) => Rule::Chance(Chance::new(chance)),
        };
        let jumps = match unique {
            Some(order) => Jumps::Unique { order, next: 0 },
            None => Jumps::Draws,
        };
        Self { rule, next: 0, left: n, blocks: n, alignment, jumps }
    }

    /// True if the next operation is at a random place. Called once per operation.
    #[inline]
    pub(super) fn jumps(&mut self, random: &mut Rng) -> bool {
        let jumps = match &mut self.rule {
            Rule::Every { every, left, .. } => {
                *left -= 1;
                let jumps = *left == 0;
                if jumps {
                    *left = *every;
                }
                jumps
            }
            Rule::Chance(chance) => chance.happens(random),
        };
        jumps || self.next >= self.blocks
    }

    /// `count` blocks of the run or at a random place, or fewer at the end of the part.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Rng, count: u64, jumps: bool) -> Option<BlockSpan> {
        self.left = self.left.checked_sub(1)?;
        if jumps {
            let places = self.blocks / self.alignment;
            self.next = self.jumps.draw(random, places) * self.alignment;
        }
        let first = self.next;
        let count = count.min(self.blocks - first);
        if !matches!(self.rule, Rule::Every { repeats: true, .. }) {
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
        let unique = unique.then(|| Bijection::new(n, &mut random));
        let mut runs = Runs::new(n, 1, jump, unique);
        let mut next = || {
            let jumps = runs.jumps(&mut random);
            runs.next(&mut random, 1, jumps)
        };
        std::iter::from_fn(|| next().map(|span| span.first)).collect()
    }

    #[test]
    fn jumps_are_aligned_and_have_sizes_of_their_kind() {
        let mut random = Rng::with_seed(3);
        let mut runs = Runs::new(1000, 4, Jump::Chance(0.3), None);
        let mut end = 0;
        for _ in 0..1000 {
            let jumps = runs.jumps(&mut random);
            let span = runs.next(&mut random, if jumps { 8 } else { 1 }, jumps).unwrap();
            match jumps {
                true => {
                    assert!(span.first.is_multiple_of(4) && span.count == 8.min(1000 - span.first))
                }
                false => assert_eq!((span.first, span.count), (end, 1)),
            }
            end = span.first + span.count;
        }
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

//! Times of operations by type, in little memory.
//!
//! A histogram has 58 KiB of counters, and only a few of its 58 octaves are used. A client has 18
//! types of operations, so its histograms would need 1 MiB, and there are hundreds of clients.
//! Here, a block of 512 bytes contains the 32-bit counters of one octave, and is allocated when the
//! octave first occurs. A client uses some hundred blocks. The address space for all blocks is
//! reserved at the start, but takes no memory until it is used.

use model::{Histogram, phase::ReplayOp};

/// Number of counters per octave, and of octaves of a histogram ([`Histogram::counter`]).
const EACH: usize = 128;
const OCTAVES: usize = 58;
const KINDS: usize = ReplayOp::ALL.len();
const NONE: u16 = u16::MAX;

/// Times of all types of operations.
pub(super) struct Times {
    blocks: Vec<[u32; EACH]>,
    // Block of each octave of a type.
    of: [[u16; OCTAVES]; KINDS],
    exact: [Exact; KINDS],
    // Types and counters that overflowed: each entry stands for another 2^32 operations.
    full: Vec<(usize, usize)>,
}

/// Exact values in addition to the counters.
#[derive(Clone, Copy)]
struct Exact {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Times {
    /// Creates empty times.
    pub(super) fn new() -> Self {
        Self {
            blocks: Vec::with_capacity(OCTAVES * KINDS),
            of: [[NONE; OCTAVES]; KINDS],
            exact: [Exact { count: 0, sum: 0, min: u64::MAX, max: 0 }; KINDS],
            full: Vec::new(),
        }
    }

    /// Records the time of an operation in nanoseconds.
    #[inline]
    pub(super) fn record(&mut self, kind: ReplayOp, nanos: u64) {
        let kind = kind as usize;
        let counter = Histogram::counter(nanos);
        let mut block = self.of[kind][counter / EACH];
        if block == NONE {
            block = self.add_block(kind, counter / EACH);
        }
        let value = &mut self.blocks[usize::from(block)][counter % EACH];
        *value = value.wrapping_add(1);
        if *value == 0 {
            self.note_full(kind, counter);
        }
        let exact = &mut self.exact[kind];
        exact.count += 1;
        exact.sum += u128::from(nanos);
        exact.min = exact.min.min(nanos);
        exact.max = exact.max.max(nanos);
    }

    #[cold]
    fn add_block(&mut self, kind: usize, octave: usize) -> u16 {
        let block = u16::try_from(self.blocks.len()).expect("at most OCTAVES * KINDS");
        // There is space for all of them.
        self.blocks.push([0; EACH]);
        self.of[kind][octave] = block;
        block
    }

    /// Called once in 2^32 operations; the only allocation.
    #[cold]
    fn note_full(&mut self, kind: usize, counter: usize) {
        self.full.push((kind, counter));
    }

    /// Histogram of each type that occurred.
    pub(super) fn by_kind(&self) -> Vec<(ReplayOp, Histogram)> {
        let kinds = ReplayOp::ALL.into_iter();
        let happened = kinds.filter(|kind| self.exact[*kind as usize].count > 0);
        happened.map(|kind| (kind, self.merged(|other| other == kind))).collect()
    }

    /// Histogram of the selected types together.
    pub(super) fn merged(&self, takes: impl Fn(ReplayOp) -> bool) -> Histogram {
        let kinds: Vec<usize> = ReplayOp::ALL
            .into_iter()
            .filter(|kind| takes(*kind))
            .map(|kind| kind as usize)
            .collect();
        let mut exact = Exact { count: 0, sum: 0, min: u64::MAX, max: 0 };
        for own in kinds.iter().map(|kind| &self.exact[*kind]) {
            exact.count += own.count;
            exact.sum += own.sum;
            (exact.min, exact.max) = (exact.min.min(own.min), exact.max.max(own.max));
        }
        let counters = (0..OCTAVES * EACH).filter_map(|counter| {
            let value: u64 = kinds.iter().map(|kind| self.value(*kind, counter)).sum();
            (value > 0).then_some((counter, value))
        });
        Histogram::assembled(counters, exact.sum, exact.min, exact.max)
    }

    fn value(&self, kind: usize, counter: usize) -> u64 {
        let block = self.of[kind][counter / EACH];
        let block = if block == NONE { None } else { Some(&self.blocks[usize::from(block)]) };
        let value = block.map_or(0, |block| u64::from(block[counter % EACH]));
        let full = self.full.iter().filter(|full| **full == (kind, counter)).count() as u64;
        value + (full << 32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_counter_keeps_its_count() {
        let mut times = Times::new();
        times.record(ReplayOp::Find, 7);
        times.blocks[0][7] = u32::MAX;
        times.exact[ReplayOp::Find as usize].count = u64::from(u32::MAX);
        times.record(ReplayOp::Find, 7);
        let merged = times.merged(|kind| kind == ReplayOp::Find);
        assert_eq!(merged.count(), 1 << 32);
        assert_eq!(merged.buckets().collect::<Vec<_>>(), [(model::Nanos(7), 1 << 32)]);
    }

    proptest! {
        #[test]
        fn they_are_the_histograms_of_their_kinds(
            values in prop::collection::vec((0usize..KINDS, any::<u64>()), 0..300)
        ) {
            let mut times = Times::new();
            let mut own: Vec<Histogram> = vec![Histogram::default(); KINDS];
            for (kind, value) in &values {
                times.record(ReplayOp::ALL[*kind], *value);
                own[*kind].record(*value);
            }
            let room = times.blocks.capacity();
            prop_assert_eq!(room, OCTAVES * KINDS, "nothing was allocated");
            let by_kind = times.by_kind();
            let expected: Vec<_> = ReplayOp::ALL.into_iter().zip(own.clone())
                .filter(|(_, histogram)| histogram.count() > 0).collect();
            prop_assert_eq!(by_kind, expected);
            let mut all = Histogram::default();
            own.iter().for_each(|histogram| all.merge(histogram));
            prop_assert_eq!(times.merged(|_| true), all);
        }
    }
}

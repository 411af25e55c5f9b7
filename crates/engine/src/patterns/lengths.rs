//! Lengths of operations, drawn by weight.

use fastrand::Rng;
use model::phase::Length;

use super::alias::Alias;

/// Lengths in records, ready to draw from.
#[derive(Debug)]
pub(super) struct Lengths {
    records: Box<[u64]>,
    alias: Alias,
}

impl Lengths {
    /// `None` where every operation moves one record. No length is longer than the part, of so many
    /// records.
    pub(super) fn new(lengths: &[Length], part: u64) -> Option<Self> {
        if lengths.is_empty() {
            return None;
        }
        let records = lengths.iter().map(|length| u64::from(length.records).min(part)).collect();
        let weights: Vec<f64> = lengths.iter().map(|length| f64::from(length.weight)).collect();
        Some(Self { records, alias: Alias::new(&weights) })
    }

    /// One length.
    #[inline]
    pub(super) fn draw(&self, random: &mut Rng) -> u64 {
        self.records[self.alias.choose(random.u64(..))]
    }
}

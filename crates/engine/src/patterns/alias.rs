//! Weighted choice in constant time: Walker's alias method (ACM TOMS 3, 1977), with Vose's
//! construction of the table (IEEE TSE 17, 1991).
//!
//! A table has one cell per item, and all cells are equally likely. A cell selects its own item
//! below a threshold, and another item above the threshold. Example: items with the weights 3 and 1
//! have two cells. Cell 0 always selects item 0. Cell 1 selects item 1 below a threshold of one
//! half, otherwise item 0. Item 1 thus has a probability of 1/4. A choice takes one random 64-bit
//! word, which is multiplied by the number of cells. The upper half of the product is the index of
//! the cell. The upper 32 bits of the lower half are compared with the threshold. With the word 0.7
//! · 2^64 and two cells, the product is 1.4 · 2^64: cell 1, and 0.4 is below its threshold, so the
//! choice is item 1.

use std::hint::select_unpredictable;

/// Alias table.
#[derive(Debug)]
pub(crate) struct Alias {
    cells: Box<[Cell]>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    // Below the threshold, the choice is the item of this cell, otherwise the other item. The unit
    // is 2^-32 of a cell.
    threshold: u32,
    other: u32,
}

impl Alias {
    /// Table for fewer than 2^32 weights. No weight is negative, and at least one is positive.
    ///
    /// Rounding of thresholds changes no probability by more than 2^-32.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "fewer items than 2^32; a fraction below 1 is below 2^32 when scaled"
    )]
    pub(crate) fn new(weights: &[f64]) -> Self {
        let n = weights.len();
        let total: f64 = weights.iter().sum();
        // Weights in units of a cell.
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / total * n as f64).collect();
        // Items that remain at the end differ from a whole cell by rounding only and get a whole
        // cell.
        let whole = |item: usize| Cell { threshold: u32::MAX, other: item as u32 };
        let mut cells: Box<[Cell]> = (0..n).map(whole).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|item| shares[*item] < 1.0);
        while let Some(donor) = large.last().copied()
            && let Some(taker) = small.pop()
        {
            let threshold = (shares[taker] * 4_294_967_296.0) as u32;
            cells[taker] = Cell { threshold, other: donor as u32 };
            shares[donor] -= 1.0 - shares[taker];
            if shares[donor] < 1.0 {
                large.pop();
                small.push(donor);
            }
        }
        Self { cells }
    }

    /// Index of the weight that this word selects.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "halves and quarters of 128 bits")]
    pub(crate) fn choose(&self, word: u64) -> usize {
        let product = u128::from(word) * self.cells.len() as u128;
        let item = (product >> 64) as usize;
        let cell = self.cells[item];
        let own = ((product as u64 >> 32) as u32) < cell.threshold;
        // A branch would be unpredictable.
        select_unpredictable(own, item, cell.other as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Probabilities of the table by item.
    fn probabilities(alias: &Alias) -> Vec<f64> {
        let mut shares = vec![0.0; alias.cells.len()];
        for (item, cell) in alias.cells.iter().enumerate() {
            let own = f64::from(cell.threshold) / 4_294_967_296.0;
            shares[item] += own;
            shares[cell.other as usize] += 1.0 - own;
        }
        shares.into_iter().map(|share| share / alias.cells.len() as f64).collect()
    }

    #[test]
    fn items_without_weight_are_never_chosen() {
        for weights in [vec![1.0, 0.0], vec![0.0, 0.0, 0.0, 3.0, 0.0], vec![1e-300, 1e300]] {
            let alias = Alias::new(&weights);
            let heaviest = weights.iter().position(|weight| *weight >= 1.0).unwrap();
            let step = u64::MAX / 1000;
            assert!((0..1000).all(|i| alias.choose(i * step) == heaviest));
            assert_eq!(alias.choose(u64::MAX), heaviest);
        }
    }

    #[test]
    fn choices_follow_the_table() {
        let weights = [1.0, 2.0, 3.0, 4.0, 0.5];
        let alias = Alias::new(&weights);
        let mut counts = [0u32; 5];
        // Evenly spaced words match every probability to within a few words.
        for i in 0..1_000_000u64 {
            counts[alias.choose(i * (u64::MAX / 1_000_000))] += 1;
        }
        for (count, weight) in counts.into_iter().zip(weights) {
            assert!((f64::from(count) - weight / 10.5 * 1e6).abs() < 10.0, "{counts:?}");
        }
    }

    proptest! {
        #[test]
        fn the_table_holds_the_weights(weights in prop::collection::vec(0.0f64..100.0, 1..300)) {
            prop_assume!(weights.iter().any(|weight| *weight > 0.0));
            let total: f64 = weights.iter().sum();
            for (found, weight) in probabilities(&Alias::new(&weights)).iter().zip(&weights) {
                prop_assert!((found - weight / total).abs() < 2f64.powi(-32));
            }
        }
    }
}

//! The order of trials: randomised complete blocks.
//!
//! A block is every open cell once, in an order of its own drawn from the run's seed and the
//! block's number, so a resumed run draws the same order, unless a cell failed in the block that
//! was cut. Cells that all run in every block see the same drift of the machine, which then cancels
//! in their ratios (Abedi and Brecht, ICPE 2017, call it randomised multiple interleaved trials).

/// The cells of a block, shuffled.
pub(super) fn block(seed: u64, block: u32, cells: &[usize]) -> Vec<usize> {
    let mut order = cells.to_vec();
    // The odd constant keeps neighbouring blocks far apart in seed space (it is 2^64 / golden
    // ratio).
    let stream = u64::from(block).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    fastrand::Rng::with_seed(seed ^ stream).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_every_cell_once_and_an_order_of_its_own() {
        let cells: Vec<usize> = (0..20).collect();
        let first = block(7, 0, &cells);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, cells);
        assert_eq!(first, block(7, 0, &cells), "the same seed gives the same order");
        assert_ne!(first, block(7, 1, &cells));
        assert_ne!(first, block(8, 0, &cells));
    }

    #[test]
    fn no_cell_has_a_favourite_place() {
        let cells: Vec<usize> = (0..4).collect();
        let mut places = [0u32; 4];
        for number in 0..4000 {
            let order = block(1, number, &cells);
            places[order.iter().position(|cell| *cell == 0).unwrap()] += 1;
        }
        // Binomial(4000, 1/4): mean 1000, standard deviation 27; five of them either way.
        assert!(places.iter().all(|count| (863..=1137).contains(count)), "{places:?}");
    }
}

//! Trial order: randomized complete blocks.
//!
//! A round (block) contains every open cell once, in an order drawn from the seed of the run and
//! the number of the round. A resumed run therefore draws the same order, unless a cell failed in
//! the interrupted round. All cells of a round are exposed to nearly the same drift of the machine,
//! which therefore cancels in their ratios (randomized multiple interleaved trials: Abedi and
//! Brecht, ICPE 2017).

/// Cells of a round in random order.
pub(super) fn block(seed: u64, block: u32, cells: &[usize]) -> Vec<usize> {
    let mut order = cells.to_vec();
    // Multiplication by an odd constant (2^64 / golden ratio) gives adjacent rounds very different
    // seeds.
    let stream = u64::from(block).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    fastrand::Rng::with_seed(seed ^ stream).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_contains_every_cell_once_in_random_order() {
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
    fn positions_are_uniform() {
        let cells: Vec<usize> = (0..4).collect();
        let mut places = [0u32; 4];
        for number in 0..4000 {
            let order = block(1, number, &cells);
            places[order.iter().position(|cell| *cell == 0).unwrap()] += 1;
        }
        // Binomial(4000, 1/4): mean 1000, standard deviation 27; the limits are five of them away.
        assert!(places.iter().all(|count| (863..=1137).contains(count)), "{places:?}");
    }
}

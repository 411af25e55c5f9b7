//! Permutation of 0..n without a table, for any n: a keyed generalized Feistel network with cycle
//! walking (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002).
//!
//! A number is a pair of digits: `low`, with `bits` binary places, and `high`, in base `rows`.
//! Example: for n = 10, `bits` is 2 and `rows` is 3, so 7 = 1 · 4 + 3 has `high` 1 and `low` 3. A
//! round computes a word from one digit and a key, and adds the word to the other digit, modulo the
//! base of that digit. Subtracting the same word inverts the round. There are 12 pairs in the
//! example, so the result may be 10 or 11. Such a result is mapped again until it is below n, which
//! yields a permutation of 0..n. There are fewer than `n + 2^bits` pairs, and 2^bits is about the
//! square root of n. About one in `sqrt(n)` results is therefore mapped again (for n < 64 up to
//! half of them).
//!
//! Two rounds make each digit depend on both digits. Four rounds are a compromise between quality
//! and time in the loop. Neighboring numbers look independent. A defect remains: if two numbers
//! have the same `low`, the difference between their `high` is kept with a probability of 2^-bits.

use std::hint::select_unpredictable;

use fastrand::Rng;

/// Permutation; see the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bijection {
    n: u64,
    bits: u32,
    mask: u64,
    rows: u64,
    keys: [[u64; 2]; 2],
}

impl Bijection {
    /// Permutation of 0..n with keys drawn from a generator.
    pub(crate) fn new(n: u64, random: &mut Rng) -> Self {
        let digits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let bits = digits.div_ceil(2);
        let mask = (1 << bits) - 1;
        let rows = (n >> bits) + u64::from(n & mask != 0);
        Self { n, bits, mask, rows, keys: [[(); 2]; 2].map(|pair| pair.map(|()| random.u64(..))) }
    }

    /// Image of a number below n.
    #[inline]
    pub(crate) fn at(&self, number: u64) -> u64 {
        let mut image = self.network(number);
        while image >= self.n {
            image = self.network(image);
        }
        image
    }

    #[inline]
    fn network(&self, number: u64) -> u64 {
        let (mut low, mut high) = (number & self.mask, number >> self.bits);
        for keys in &self.keys {
            high += (blend(low, keys[0]) * self.rows) >> 32;
            high = select_unpredictable(high >= self.rows, high.wrapping_sub(self.rows), high);
            low = (low + blend(high, keys[1])) & self.mask;
        }
        (high << self.bits) | low
    }
}

/// 32-bit hash of a digit and a key: two multiplications by odd constants (of SplitMix64), with the
/// upper half moved down between the multiplications.
#[inline]
fn blend(digit: u64, key: u64) -> u64 {
    let word = digit.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(key);
    (word ^ (word >> 32)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::patterns::index;

    impl Bijection {
        /// Inverse of [`Self::at`].
        fn origin(&self, image: u64) -> u64 {
            let mut number = self.undone(image);
            while number >= self.n {
                number = self.undone(number);
            }
            number
        }

        fn undone(&self, number: u64) -> u64 {
            let (mut low, mut high) = (number & self.mask, number >> self.bits);
            for keys in self.keys.iter().rev() {
                low = low.wrapping_sub(blend(high, keys[1])) & self.mask;
                let added = (blend(low, keys[0]) * self.rows) >> 32;
                high = if high >= added { high - added } else { high + self.rows - added };
            }
            (high << self.bits) | low
        }
    }

    fn images(n: u64, key: u64) -> Vec<u64> {
        let bijection = Bijection::new(n, &mut fastrand::Rng::with_seed(key));
        (0..n).map(|number| bijection.at(number)).collect()
    }

    /// Chi-square of counts with equal expectation, in standard deviations from its mean.
    fn deviation(counts: &[u64]) -> f64 {
        let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let chi: f64 = counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum();
        let freedom = counts.len() as f64 - 1.0;
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn each_number_occurs_once() {
        for n in (0..300).chain([1000, 1024, 1025, 4095, 65_537, 100_003]) {
            for key in 0..4 {
                let mut images = images(n, key);
                images.sort_unstable();
                assert!(images.into_iter().eq(0..n), "n = {n}");
            }
        }
    }

    #[test]
    fn all_permutations_of_four_numbers_occur() {
        let mut counts = std::collections::BTreeMap::<_, u64>::new();
        for key in 0..24_000 {
            *counts.entry(images(4, key)).or_default() += 1;
        }
        // Networks on such small ranges prefer some permutations; none is missing.
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| (500..2000).contains(count)), "{counts:?}");
    }

    #[test]
    fn neighbors_look_independent() {
        const BINS: u64 = 64;
        for n in [1 << 16, 100_003, 1 << 20, (1 << 20) + 1] {
            for lag in [1, 2, 3, 5, 16, 31, 100, 1000] {
                let (mut steps, mut pairs) = (vec![0; 64], vec![0; 64]);
                for key in 0..4 {
                    let images = images(n, key);
                    for (a, b) in images.iter().zip(&images[lag..]) {
                        steps[index((b + n - a) % n * BINS / n)] += 1;
                        pairs[index(a * 8 / n * 8 + b * 8 / n)] += 1;
                    }
                }
                for counts in [steps, pairs] {
                    let deviation = deviation(&counts);
                    assert!(deviation.abs() < 5.0, "n = {n}, lag {lag}: {deviation}");
                }
            }
        }
    }

    #[test]
    fn images_under_other_keys_look_independent() {
        let n = 1_000_003;
        for number in [0, 1, 4096, n - 1] {
            let mut counts = vec![0; 64];
            for key in 0..64_000 {
                let image = Bijection::new(n, &mut fastrand::Rng::with_seed(key)).at(number);
                counts[index(image * 64 / n)] += 1;
            }
            assert!(deviation(&counts).abs() < 5.0, "number {number}");
        }
    }

    proptest! {
        #[test]
        fn each_image_has_one_origin(
            (n, number) in (1u64..=1 << 52).prop_flat_map(|n| (Just(n), 0..n)),
            key: u64,
        ) {
            let bijection = Bijection::new(n, &mut fastrand::Rng::with_seed(key));
            let image = bijection.at(number);
            prop_assert!(image < n);
            prop_assert_eq!(bijection.origin(image), number);
        }

        #[test]
        fn so_it_is_near_powers_of_two(bits in 1u32..=52, off in -2i64..=2, key: u64, word: u64) {
            let n = (1u64 << bits).saturating_add_signed(off).max(1);
            let number = word % n;
            let bijection = Bijection::new(n, &mut fastrand::Rng::with_seed(key));
            let image = bijection.at(number);
            prop_assert!(image < n);
            prop_assert_eq!(bijection.origin(image), number);
            prop_assert!(n < 64 || bijection.rows << bijection.bits <= n + n / 2);
        }
    }
}

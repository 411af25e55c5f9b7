//! Draws: generators for each purpose, and what is made of their words without dividing.
//!
//! Words come from wyrand (`fastrand`). It is seeded with a mix of everything that tells one
//! sequence from another, so that neighboring seeds, workers, and passes have nothing in common.

use fastrand::Rng;

/// The generator of everything that a worker draws in a pass, all in the order of the visits: the
/// mix of the seed, to which the worker is added and mixed, to which the pass is added and mixed.
pub(crate) fn generator(seed: u64, worker: u32, pass: u64) -> Rng {
    let worker = mix(mix(seed).wrapping_add(u64::from(worker)));
    Rng::with_seed(mix(worker.wrapping_add(pass)))
}

/// The generator of what all workers and passes have in common.
pub(super) fn common(seed: u64) -> Rng {
    Rng::with_seed(mix(!seed))
}

/// The output function of SplitMix64 (Steele, Lea, and Flood, OOPSLA 2014) with its increment: a
/// bijection in which each bit of the input changes each of the output with probability 1/2.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A word mapped to 0..n: the upper half of its product with n. Each value has `floor(2^64 / n)`
/// words or one more, so probabilities are within a share of `n / 2^64` of each other.
#[inline]
pub(crate) fn below(word: u64, n: u64) -> u64 {
    ((u128::from(word) * u128::from(n)) >> 64) as u64
}

/// Something that happens with a given probability, kept in units of 2^-32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// Of this probability within 0..=1, to the nearest unit; 0 never happens and 1 always does.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=1, so the product lies within 0..=2^32"
    )]
    pub(super) fn new(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64)
    }

    /// Whether it happens this time.
    #[inline]
    pub(super) fn happens(self, random: &mut Rng) -> bool {
        random.u64(..) >> 32 < self.0
    }
}

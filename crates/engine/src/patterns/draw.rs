//! Random draws: generators per purpose, and mappings of their words without division.
//!
//! Words are from wyrand (`fastrand`), seeded with a mix of all parameters of a sequence, so that
//! neighboring seeds, workers, and passes are unrelated.

use fastrand::Rng;

/// Generator for all draws of a worker in a pass, in the order of the operations. Its seed is
/// `mix(mix(mix(seed) + worker) + pass)`.
pub(crate) fn generator(seed: u64, worker: u32, pass: u64) -> Rng {
    let worker = mix(mix(seed).wrapping_add(u64::from(worker)));
    Rng::with_seed(mix(worker.wrapping_add(pass)))
}

/// Generator for draws that all workers and passes share.
pub(super) fn common(seed: u64) -> Rng {
    Rng::with_seed(mix(!seed))
}

/// Output function of SplitMix64 (Steele, Lea, and Flood, OOPSLA 2014) with its increment: a
/// bijection in which each input bit changes each output bit with probability 1/2.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Maps a random word to 0..n: the upper half of its product with n. Each value results from
/// `floor(2^64 / n)` words or one more, so the relative difference of probabilities is at most `n /
/// 2^64`.
#[inline]
pub(crate) fn below(word: u64, n: u64) -> u64 {
    ((u128::from(word) * u128::from(n)) >> 64) as u64
}

/// Event with a given probability in units of 2^-32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    /// Event with this probability from 0 to 1, to the nearest unit; 0 never occurs and 1 always
    /// does.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped, so the product is at most 2^32"
    )]
    pub(super) fn new(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64)
    }

    /// Draws the event.
    #[inline]
    pub(super) fn happens(self, random: &mut Rng) -> bool {
        random.u64(..) >> 32 < self.0
    }
}

//! Weighted medians of many resamples of one list at once.
//!
//! All resamples have the same sorted values, but different weights. Values are passed in order,
//! with their weights in all resamples ([`Halves::pass`]). [`Halves::medians`] then reads the
//! medians from the [`halved`] values.
//!
//! All operations are sums and comparisons of 16 or 32 bits, which vectorize on any 64-bit
//! processor and have the same result on all of them.

use wide::{i16x16, i32x16};

use super::paired::{PairedWeights, SIDE};

/// Vector with one integer for each of [`SIDE`] resamples.
pub(crate) trait Lanes: Copy {
    /// Vector of these integers, saturated to the width of a lane.
    fn of(values: &[i32; SIDE]) -> Self;
    /// Weight of an item that belongs to one unit.
    fn weight(unit: &PairedWeights) -> Self;
    /// Weight of an item that belongs to two units: the product of their weights.
    fn weight_of_two(first: &PairedWeights, second: &PairedWeights) -> Self;
    /// Sum of two vectors, which must not overflow.
    fn plus(self, other: Self) -> Self;
    /// Adds one to each lane in which `one` is less than `than`.
    fn and_one_where_less(self, one: Self, than: Self) -> Self;
    /// True if all integers are less than those of `than`.
    fn all_less(self, than: Self) -> bool;
    /// True if any integer is less than that of `than`.
    fn any_less(self, than: Self) -> bool;
    /// Integers as indexes.
    fn places(self) -> [usize; SIDE];
}

/// Implements [`Lanes`] for a SIMD type of weights and the integer type of its lanes.
macro_rules! lanes {
    ($lanes:ty, $of_weight:expr, $of_whole:expr, $to_place:expr) => {
        impl Lanes for $lanes {
            fn of(values: &[i32; SIDE]) -> Self {
                Self::new(values.map($of_whole))
            }

            fn weight(unit: &PairedWeights) -> Self {
                Self::new(unit.map($of_weight))
            }

            fn weight_of_two(first: &PairedWeights, second: &PairedWeights) -> Self {
                Self::weight(first) * Self::weight(second)
            }

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn and_one_where_less(self, one: Self, than: Self) -> Self {
                // True has all bits set, which is -1 as an integer.
                self - one.simd_lt(than)
            }

            fn all_less(self, than: Self) -> bool {
                self.simd_lt(than).all()
            }

            fn any_less(self, than: Self) -> bool {
                self.simd_lt(than).any()
            }

            fn places(self) -> [usize; SIDE] {
                self.to_array().map($to_place)
            }
        }
    };
}

lanes!(i16x16, |weight| weight, |value| i16::try_from(value).unwrap_or(i16::MAX), |place| {
    usize::from(place.unsigned_abs())
});
lanes!(i32x16, i32::from, |value| value, |place| place.unsigned_abs() as usize);

/// Half of each ascending value relative to a center, from which medians are read. The last value
/// is repeated, for resamples without any weight.
pub(crate) fn halved(values: impl ExactSizeIterator<Item = f64>, center: f64) -> Vec<f64> {
    let mut halved = Vec::with_capacity(values.len() + 1);
    halved.extend(values.map(|value| (value - center) / 2.0));
    halved.extend(halved.last().copied());
    halved
}

/// Progress of resamples towards half of their weight.
pub(crate) struct Halves<L> {
    /// Weight of the values passed so far.
    passed: L,
    /// Weight at which the lower middle value is reached.
    low: L,
    /// Weight at which the upper middle value is reached.
    high: L,
    /// Number of values before the lower middle value.
    below: L,
    /// Number of values before the upper middle value.
    up_to: L,
}

impl<L: Lanes> Halves<L> {
    /// State before the first value. `total` is the total weight of each resample.
    pub(crate) fn new(total: &[i32; SIDE]) -> Self {
        let none = L::of(&[0; SIDE]);
        Self {
            passed: none,
            low: L::of(&total.map(|total| total / 2 + total % 2)),
            high: L::of(&total.map(|total| total / 2 + 1)),
            below: none,
            up_to: none,
        }
    }

    /// Passes the first values at once, at a third of the cost. If a resample reaches its lower
    /// middle value among these values, returns false and passes no value.
    pub(crate) fn skip(&mut self, weights: impl ExactSizeIterator<Item = L>) -> bool {
        let values = [i32::try_from(weights.len()).unwrap_or(i32::MAX); SIDE];
        let passed = weights.fold(self.passed, L::plus);
        let none_at_half = passed.all_less(self.low);
        if none_at_half {
            let values = L::of(&values);
            (self.passed, self.below, self.up_to) = (passed, values, values);
        }
        none_at_half
    }

    /// Passes the next value.
    pub(crate) fn pass(&mut self, weight: L) {
        self.passed = self.passed.plus(weight);
        self.below = self.below.and_one_where_less(self.passed, self.low);
        self.up_to = self.up_to.and_one_where_less(self.passed, self.high);
    }

    /// True if all resamples have reached their upper middle value, so that further values change
    /// nothing.
    pub(crate) fn done(&self) -> bool {
        !self.passed.any_less(self.high)
    }

    /// Median of each resample that has reached its upper middle value. Arbitrary for a resample
    /// without any weight.
    pub(crate) fn medians(&self, halved: &[f64]) -> [f64; SIDE] {
        let (below, up_to) = (self.below.places(), self.up_to.places());
        std::array::from_fn(|at| halved[below[at]] + halved[up_to[at]])
    }
}

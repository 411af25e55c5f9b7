//! Where many resamples of one list come to half of their weight, in step.
//!
//! A list's values in order stand still; what differs from resample to resample is how much each of
//! them weighs. Weights enter value by value ([`Halves::pass`]), for all resamples at once; the
//! medians leave ([`Halves::medians`]), read from the [`halved`] values.
//!
//! All of it is sums and comparisons of 16 or 32 bits, which any 64-bit processor does several at a
//! time, and which are the same whoever does them.

use wide::{i16x16, i32x16};

use super::beside::{Beside, SIDE};

/// A whole number for each of [`SIDE`] resamples.
pub(crate) trait Lanes: Copy {
    /// From numbers; of one that is too large, the largest there is.
    fn of(values: &[i32; SIDE]) -> Self;
    /// How much something weighs that is drawn with a unit.
    fn weight(unit: &Beside) -> Self;
    /// How much something weighs that is drawn with two units, their product.
    fn weight_of_two(first: &Beside, second: &Beside) -> Self;
    /// The sums with other numbers; they are known to fit.
    fn plus(self, other: Self) -> Self;
    /// These, one more wherever the first of the two others is less than the second.
    fn and_one_where_less(self, one: Self, than: Self) -> Self;
    /// Whether each is less than its counterpart.
    fn all_less(self, than: Self) -> bool;
    /// Whether any is.
    fn any_less(self, than: Self) -> bool;
    /// As indexes.
    fn places(self) -> [usize; SIDE];
}

/// Implements [`Lanes`] for numbers made of a weight and of a whole number, which become places.
macro_rules! lanes {
    ($lanes:ty, $of_weight:expr, $of_whole:expr, $to_place:expr) => {
        impl Lanes for $lanes {
            fn of(values: &[i32; SIDE]) -> Self {
                Self::new(values.map($of_whole))
            }

            fn weight(unit: &Beside) -> Self {
                Self::new(unit.map($of_weight))
            }

            fn weight_of_two(first: &Beside, second: &Beside) -> Self {
                Self::weight(first) * Self::weight(second)
            }

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn and_one_where_less(self, one: Self, than: Self) -> Self {
                // What is true has all bits set, which is -1.
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

/// Half of each of some ascending values, about a center: what medians are read from. The last
/// stands there twice, for resamples without any weight.
pub(crate) fn halved(values: impl ExactSizeIterator<Item = f64>, center: f64) -> Vec<f64> {
    let mut halved = Vec::with_capacity(values.len() + 1);
    halved.extend(values.map(|value| (value - center) / 2.0));
    halved.extend(halved.last().copied());
    halved
}

/// Resamples on the way to their halves.
pub(crate) struct Halves<L> {
    /// The weight of the values passed so far.
    passed: L,
    /// A value is the lower middle one if this weight is reached with it.
    low: L,
    /// The same of the upper middle one.
    high: L,
    /// How many values lie wholly below the half.
    below: L,
    /// How many lie up to it.
    up_to: L,
}

impl<L: Lanes> Halves<L> {
    /// Before the first value, of resamples that weigh so much in all.
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

    /// Passes many values from the first one on, of which it is likely that none is near any half:
    /// that costs a third. Gives false, and has passed none, if it was not so.
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

    /// Whether all halves were passed, so that further values change nothing.
    pub(crate) fn done(&self) -> bool {
        !self.passed.any_less(self.high)
    }

    /// The median of each resample of values, once its half was passed; without any weight it is
    /// some value.
    pub(crate) fn medians(&self, halved: &[f64]) -> [f64; SIDE] {
        let (below, up_to) = (self.below.places(), self.up_to.places());
        std::array::from_fn(|at| halved[below[at]] + halved[up_to[at]])
    }
}

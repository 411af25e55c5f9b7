//! A latency histogram with a stated error, exact under merging.
//!
//! # The counters
//!
//! Values are integer nanoseconds. Below 2^7 each value has its own counter. Above, each power of
//! two (octave) is cut into 2^7 = 128 counters of equal width:
//!
//! ```text
//! index(v) = v                                          if v < 128
//!          = ((e + 1) << 7) | ((v >> e) & 127)          with e = floor(log2 v) - 7
//! ```
//!
//! A counter of octave e covers `2^e` values starting at `(128 + m) << e`, so its width is at most
//! 1/128 = 0.78 % of its values, and the midpoint we answer is at most 0.39 % away from the true
//! value. 58 octaves reach the whole `u64` range with 7424 counters (58 KiB).
//!
//! Worked example: v = 1_000_000. floor(log2 v) = 19, e = 12, v >> 12 = 244 = 128 + 116, so the
//! index is (13 << 7) | 116 = 1780. The counter covers 244 << 12 = 999_424 up to 1_003_519; its
//! midpoint 1_001_471 is 0.15 % off.
//!
//! In memory a histogram that counts has all counters; one that was read back has those that are
//! not zero, until it is told to count on.
//!
//! Count, sum, minimum and maximum are kept exactly beside the counters. Merging adds counters, so
//! a merged histogram equals the histogram of the concatenated values, bit for bit.
//!
//! # The stored form
//!
//! [`Histogram::encode`]: LEB128 varints. Version (1), count, sum (low then high 64 bits), min,
//! max, then for each non-empty counter the gap to the previous non-empty index and its count.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::Nanos;

const LINEAR_BITS: u32 = 7;
const LINEAR: u64 = 1 << LINEAR_BITS;
const COUNTERS: usize = ((64 - LINEAR_BITS as usize) + 1) << LINEAR_BITS;
const FORMAT: u64 = 1;

/// More than a histogram ever counts: ten years of a million each second. What is read back is
/// merged, and sums of such numbers must stay far from the end of theirs.
const MOST: u64 = 1 << 48;

/// The largest relative distance between a recorded value and the answer for its counter.
pub const RELATIVE_ERROR: f64 = 1.0 / 256.0;

/// Counts of durations in nanoseconds; see the module for layout and error.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct Histogram {
    // All of them, or none while `filled` has those that are not zero.
    counters: Box<[u64]>,
    // Index and count, ascending; empty while `counters` is not.
    filled: Box<[(u32, u64)]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Why stored bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end inside a number.
    #[error("the bytes end early")]
    Truncated,
    /// Written by a newer format.
    #[error("format {0} is unknown; this version reads format {FORMAT}")]
    Format(u64),
    /// A counter lies outside the table, or counters, count, sum, and extremes disagree.
    #[error("its numbers do not add up")]
    Damaged,
}

impl Default for Histogram {
    /// An empty histogram that has no counters yet: it allocates them with the first value or merge
    /// that it gets.
    fn default() -> Self {
        Self {
            counters: Box::default(),
            filled: Box::default(),
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

/// Equal when they hold the same values, in whichever form.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let exact = |h: &Self| (h.count, h.sum, h.min, h.max);
        exact(self) == exact(other) && self.filled().eq(other.filled())
    }
}

impl Eq for Histogram {}

/// As [`Histogram::encode`] has it.
impl From<Histogram> for Vec<u8> {
    fn from(histogram: Histogram) -> Self {
        histogram.encode()
    }
}

impl TryFrom<Vec<u8>> for Histogram {
    type Error = DecodeError;
    fn try_from(bytes: Vec<u8>) -> Result<Self, DecodeError> {
        Self::decode(&bytes)
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min", &self.min)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

impl Histogram {
    /// An empty histogram that is ready to count: allocates its 58 KiB here and never again.
    pub fn new() -> Self {
        Self { counters: vec![0; COUNTERS].into(), ..Self::default() }
    }

    /// Which counter a value is counted in: see the module. For those who keep counters of their
    /// own, to be put together by [`Self::assembled`].
    #[inline]
    pub fn counter(value_ns: u64) -> usize {
        index(value_ns)
    }

    /// The histogram with these counters (index and count, ascending, none of them zero), and the
    /// exact sum and extremes of what they counted; small in memory, as one that was read back.
    ///
    /// # Panics
    /// If an index does not ascend, or is beyond the last counter.
    pub fn assembled(
        counters: impl Iterator<Item = (usize, u64)>,
        sum: u128,
        min_ns: u64,
        max_ns: u64,
    ) -> Self {
        let mut filled: Vec<(u32, u64)> = Vec::new();
        let mut total = 0;
        for (index, count) in counters {
            assert!(index < COUNTERS && count > 0, "a counter of the table that counted");
            let index = u32::try_from(index).expect("below COUNTERS");
            assert!(filled.last().is_none_or(|(last, _)| *last < index), "counters ascend");
            filled.push((index, count));
            total += count;
        }
        let counters = Box::default();
        Self { counters, filled: filled.into(), count: total, sum, min: min_ns, max: max_ns }
    }

    /// Counts one value, in nanoseconds. Never allocates, but for the first value counted by a
    /// histogram that was decoded or made by default.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts one value so many times; `n` is at least 1.
    #[inline]
    pub fn record_n(&mut self, value_ns: u64, n: u64) {
        let index = index(value_ns);
        match self.counters.get_mut(index) {
            Some(counter) => *counter += n,
            None => self.all_counters()[index] += n,
        }
        self.count += n;
        self.sum += u128::from(value_ns) * u128::from(n);
        self.min = self.min.min(value_ns);
        self.max = self.max.max(value_ns);
    }

    /// Adds everything `other` holds; the order of merging does not matter.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let counters = self.all_counters();
        other.filled().for_each(|(index, count)| counters[index] += count);
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value recorded, exact; `None` when empty.
    pub fn min(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.min))
    }

    /// The largest value recorded, exact; `None` when empty.
    pub fn max(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.max))
    }

    /// The arithmetic mean, exact up to rounding; `None` when empty.
    pub fn mean(&self) -> Option<Nanos> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The value at quantile `q` in 0..=1: the smallest counter that has at least `ceil(q * count)`
    /// values at or below it, answered by its midpoint and clamped to the exact extremes.
    ///
    /// `None` when empty.
    ///
    /// # Panics
    /// If `q` is not within 0..=1.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        assert!((0.0..=1.0).contains(&q), "a quantile lies within 0..=1");
        let rank = rank(q, self.count);
        let mut seen = 0;
        for (index, counter) in self.filled() {
            seen += counter;
            if seen >= rank {
                return Some(Nanos(midpoint(index).clamp(self.min, self.max)));
            }
        }
        None
    }

    /// Non-empty counters as (lowest value in nanoseconds, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.filled().map(|(index, counter)| (Nanos(lowest(index)), counter))
    }

    /// Indexes and counts of the counters that are not zero, ascending.
    fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let dense = self.counters.iter().copied().enumerate().filter(|(_, counter)| *counter > 0);
        dense.chain(self.filled.iter().map(|(index, counter)| (*index as usize, *counter)))
    }

    /// Every counter, to be counted on.
    #[cold]
    fn all_counters(&mut self) -> &mut [u64] {
        if self.counters.is_empty() {
            self.counters = vec![0; COUNTERS].into();
            for (index, counter) in std::mem::take(&mut self.filled) {
                self.counters[index as usize] = counter;
            }
        }
        &mut self.counters
    }

    /// The stored form; see the module.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves, on purpose")]
        let halves = [self.sum as u64, (self.sum >> 64) as u64];
        for number in [FORMAT, self.count, halves[0], halves[1], self.min, self.max] {
            put(&mut bytes, number);
        }
        let mut previous = 0;
        for (index, counter) in self.filled() {
            put(&mut bytes, (index - previous) as u64);
            put(&mut bytes, counter);
            previous = index;
        }
        bytes
    }

    /// Reads the stored form back, into some 16 bytes for each different value: a run has many
    /// thousands of them.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes were cut, damaged, or written by a newer format.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut next = || take(&mut bytes);
        let format = next()?;
        if format != FORMAT {
            return Err(DecodeError::Format(format));
        }
        let count = next()?;
        let sum = u128::from(next()?) | u128::from(next()?) << 64;
        let (min, max) = (next()?, next()?);
        let mut filled: Vec<(u32, u64)> = Vec::new();
        let (mut index, mut total) = (0u32, 0u64);
        while !bytes.is_empty() {
            let gap = u32::try_from(take(&mut bytes)?).map_err(|_| DecodeError::Damaged)?;
            let counter = take(&mut bytes)?;
            index = index.checked_add(gap).ok_or(DecodeError::Damaged)?;
            let again = gap == 0 && !filled.is_empty();
            if again || counter == 0 || index as usize >= COUNTERS {
                return Err(DecodeError::Damaged);
            }
            filled.push((index, counter));
            total = total.checked_add(counter).ok_or(DecodeError::Damaged)?;
        }
        // Sums and extremes as far as they follow from the count; a histogram of nothing has none.
        let within = u128::from(min) * u128::from(count)..=u128::from(max) * u128::from(count);
        let possible = count == 0 || (min <= max && within.contains(&sum));
        if total != count || count > MOST || !possible {
            return Err(DecodeError::Damaged);
        }
        Ok(Self { counters: Box::default(), filled: filled.into(), count, sum, min, max })
    }
}

/// Which of `count` sorted values, from 1, stands at quantile `q`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rank: rounding by one among 2^53 values moves no quantile"
)]
fn rank(q: f64, count: u64) -> u64 {
    ((q * count as f64).ceil() as u64).clamp(1, count.max(1))
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "an index below COUNTERS")]
fn index(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() - LINEAR_BITS;
    ((u64::from(octave + 1) << LINEAR_BITS) | ((value >> octave) & (LINEAR - 1))) as usize
}

fn lowest(index: usize) -> u64 {
    let index = index as u64;
    match index >> LINEAR_BITS {
        0 => index,
        group => (LINEAR | (index & (LINEAR - 1))) << (group - 1),
    }
}

fn midpoint(index: usize) -> u64 {
    let width = match index >> LINEAR_BITS {
        0 => 1,
        group => 1u64 << (group - 1),
    };
    lowest(index) + (width - 1) / 2
}

/// Appends a number as a LEB128 varint.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "the low seven bits, on purpose")]
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 128 here")]
    bytes.push(number as u8);
}

/// Takes a LEB128 varint off the front.
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(DecodeError::Truncated)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(DecodeError::Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn the_worked_example_of_the_essay_holds() {
        assert_eq!(index(1_000_000), 1780);
        assert_eq!((lowest(1780), midpoint(1780)), (999_424, 1_001_471));
    }

    #[test]
    fn the_last_counter_is_the_largest_value() {
        assert_eq!(index(u64::MAX), COUNTERS - 1);
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!((of(&[]).quantile(0.5), of(&[]).mean(), of(&[]).max()), (None, None, None));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = of(&[1, 2, 3_000_000]).encode();
        assert_eq!(Histogram::decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Truncated));
        assert_eq!(Histogram::decode(&[9]), Err(DecodeError::Format(9)));
        let mut more = bytes.clone();
        more.extend([1, 1]);
        assert_eq!(Histogram::decode(&more), Err(DecodeError::Damaged));
    }

    #[test]
    fn a_counter_named_twice_or_in_vain_is_damage() {
        // Format, count, sum in two halves, min, max; then gap and count of each counter.
        assert_eq!(Histogram::decode(&[1, 2, 10, 0, 5, 5, 5, 1, 0, 1]), Err(DecodeError::Damaged));
        assert_eq!(Histogram::decode(&[1, 1, 5, 0, 5, 5, 5, 1, 1, 0]), Err(DecodeError::Damaged));
        assert_eq!(Histogram::decode(&[1, 1, 5, 0, 5, 5, 5, 1]), Ok(of(&[5])));
    }

    #[test]
    fn numbers_that_cannot_be_of_one_histogram_are_damage() {
        let decoded =
            |sum: u8, min: u8, max: u8| Histogram::decode(&[1, 2, sum, 0, min, max, 5, 2]);
        assert!(decoded(10, 5, 5).is_ok());
        for (sum, min, max) in [(10, 6, 5), (9, 5, 5), (11, 5, 5), (0, 5, 5)] {
            assert_eq!(decoded(sum, min, max), Err(DecodeError::Damaged), "{sum} {min} {max}");
        }
        // A count that no merge could add to: 2^60 of the value 0.
        let mut bytes = vec![1];
        put(&mut bytes, 1 << 60);
        bytes.extend([0, 0, 0, 0, 0]);
        put(&mut bytes, 1 << 60);
        assert_eq!(Histogram::decode(&bytes), Err(DecodeError::Damaged));
    }

    #[test]
    fn what_was_read_back_is_small() {
        let read = Histogram::decode(&of(&[1, 2, 3_000_000]).encode()).unwrap();
        assert_eq!((read.counters.len(), read.filled.len()), (0, 3));
    }

    proptest! {
        #[test]
        fn what_was_read_back_counts_on(before: Vec<u64>, after: Vec<u64>) {
            let mut read = Histogram::decode(&of(&before).encode()).unwrap();
            prop_assert_eq!(&read, &of(&before));
            let mut merged = read.clone();
            merged.merge(&Histogram::decode(&of(&after).encode()).unwrap());
            after.iter().for_each(|value| read.record(*value));
            prop_assert_eq!(&read, &of(&[before, after].concat()));
            prop_assert_eq!(merged, read);
        }

        #[test]
        fn the_error_bound_holds(value: u64) {
            let answer = midpoint(index(value));
            prop_assert!(answer.abs_diff(value) as f64 <= RELATIVE_ERROR * value as f64);
        }

        #[test]
        fn merging_equals_concatenating(a: Vec<u64>, b: Vec<u64>) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }

        #[test]
        fn the_stored_form_reads_back(values: Vec<u64>) {
            let histogram = of(&values);
            prop_assert_eq!(Histogram::decode(&histogram.encode()), Ok(histogram));
        }

        #[test]
        fn quantiles_are_within_the_bound_of_the_sorted_values(
            mut values in prop::collection::vec(0u64..1 << 40, 1..200), q in 0.0f64..=1.0
        ) {
            let answer = of(&values).quantile(q).unwrap().0;
            values.sort_unstable();
            let truth = values[usize::try_from(rank(q, values.len() as u64)).unwrap() - 1];
            prop_assert!(answer.abs_diff(truth) as f64 <= RELATIVE_ERROR * truth as f64 + 1.0);
        }
    }
}

//! Latency histogram with a bounded relative error and exact merging.
//!
//! # Counters
//!
//! Values are integer nanoseconds. Each value below 2^7 has a separate counter. Above 2^7, each
//! power of two (octave) is divided into 2^7 = 128 counters of equal width:
//!
//! ```text
//! index(v) = v                                          if v < 128
//!          = ((e + 1) << 7) | ((v >> e) & 127)          with e = floor(log2 v) - 7
//! ```
//!
//! A counter of octave e covers `2^e` values starting at `(128 + m) << e`, so its width is at most
//! 1/128 = 0.78 % of its values. Quantiles return the midpoint of a counter, which is at most
//! 0.39 % from the true value. 58 octaves cover the whole `u64` range with 7424 counters (58 KiB).
//!
//! Example: v = 1_000_000. floor(log2 v) = 19, e = 12, v >> 12 = 244 = 128 + 116, so the
//! index is (13 << 7) | 116 = 1780. The counter covers 244 << 12 = 999_424 up to 1_003_519; its
//! midpoint 1_001_471 is 0.15 % off.
//!
//! A new histogram has all counters in memory. A decoded histogram contains only the counters that
//! are not zero, until values are recorded in it or merged into it.
//!
//! Count, sum, minimum, and maximum are stored exactly. Merging adds counters, so a merged
//! histogram is identical to the histogram of all values.
//!
//! # Stored form
//!
//! [`Histogram::encode`] writes LEB128 varints: version (1), count, sum (low, then high 64 bits),
//! minimum, maximum. Then, for each non-empty counter, the distance of its index from the previous
//! non-empty index, and its count.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::Nanos;

const LINEAR_BITS: u32 = 7;
const LINEAR: u64 = 1 << LINEAR_BITS;
const COUNTERS: usize = ((64 - LINEAR_BITS as usize) + 1) << LINEAR_BITS;
const FORMAT: u64 = 1;

/// Maximum count of a decoded histogram: about nine years of a million values per second. The limit
/// prevents an overflow of sums when decoded histograms are merged.
const MAX_COUNT: u64 = 1 << 48;

/// Maximum relative distance between a recorded value and the midpoint of its counter.
pub const RELATIVE_ERROR: f64 = 1.0 / 256.0;

/// Counts of durations in nanoseconds; the module documentation describes counters and error.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct Histogram {
    // All counters; empty if `filled` contains those that are not zero.
    counters: Box<[u64]>,
    // Index and count of the counters that are not zero, ascending; empty if `counters` is not.
    filled: Box<[(u32, u64)]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Error of decoding a stored histogram or series.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end within a number.
    #[error("the data is truncated")]
    Truncated,
    /// The format is unknown, for example because a newer version wrote it.
    #[error("format {0} is unknown; this version reads format {FORMAT}")]
    Format(u64),
    /// A counter is outside the table, or counters, count, sum, and extremes are inconsistent.
    #[error("the counters, count, sum, minimum, and maximum are inconsistent")]
    Damaged,
}

impl Default for Histogram {
    /// Empty histogram without counters: the first value or merge allocates them.
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

/// Compares counts and exact values, regardless of the form in memory.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let exact = |h: &Self| (h.count, h.sum, h.min, h.max);
        exact(self) == exact(other) && self.filled().eq(other.filled())
    }
}

impl Eq for Histogram {}

/// See [`Histogram::encode`].
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
    /// Empty histogram with all counters. Allocates 58 KiB; recording does not allocate.
    pub fn new() -> Self {
        Self { counters: vec![0; COUNTERS].into(), ..Self::default() }
    }

    /// Index of the counter of a value. Callers that count without a histogram can create one with
    /// [`Self::assembled`].
    #[inline]
    pub fn counter(value_ns: u64) -> usize {
        index(value_ns)
    }

    /// Histogram from counters (index and count, ascending, none zero) and the exact sum and
    /// extremes of the counted values. It has the size in memory of a decoded histogram.
    ///
    /// # Panics
    /// If indexes are not ascending, an index is not below the number of counters, or a count is 0.
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

    /// Records one value, in nanoseconds. Allocates only for the first value of a histogram that
    /// was decoded or created by default.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Records one value `n` times; `n` is at least 1.
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

    /// Adds all values of `other`; the result does not depend on the order of merging.
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

    /// Number of recorded values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest recorded value, exact; `None` if empty.
    pub fn min(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.min))
    }

    /// Largest recorded value, exact; `None` if empty.
    pub fn max(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.max))
    }

    /// Arithmetic mean, exact up to rounding; `None` if empty.
    pub fn mean(&self) -> Option<Nanos> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// Value at quantile `q`, 0 to 1. Counters are added in ascending order until the sum reaches
    /// `ceil(q * count)`. The result is the midpoint of the last added counter, clamped to the
    /// exact minimum and maximum.
    ///
    /// `None` if empty.
    ///
    /// # Panics
    /// If `q` is less than 0 or greater than 1.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        assert!((0.0..=1.0).contains(&q), "quantile {q} is not from 0 to 1");
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

    /// All counters; allocates them if necessary.
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

    /// Stored form, as described in the module documentation.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        #[expect(clippy::cast_possible_truncation, reason = "split into two halves")]
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

    /// Decodes the stored form. The histogram takes only about 16 bytes per non-empty counter,
    /// because a run has many thousands of histograms.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are truncated, damaged, or of another format.
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
        // The sum must be between count · min and count · max, unless the histogram is empty.
        let within = u128::from(min) * u128::from(count)..=u128::from(max) * u128::from(count);
        let possible = count == 0 || (min <= max && within.contains(&sum));
        if total != count || count > MAX_COUNT || !possible {
            return Err(DecodeError::Damaged);
        }
        Ok(Self { counters: Box::default(), filled: filled.into(), count, sum, min, max })
    }
}

/// Rank, from 1, of quantile `q` among `count` sorted values.
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
        #[expect(clippy::cast_possible_truncation, reason = "the low seven bits")]
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 128 here")]
    bytes.push(number as u8);
}

/// Removes a LEB128 varint from the front.
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
    fn the_example_of_the_module_is_correct() {
        assert_eq!(index(1_000_000), 1780);
        assert_eq!((lowest(1780), midpoint(1780)), (999_424, 1_001_471));
    }

    #[test]
    fn the_last_counter_covers_the_largest_value() {
        assert_eq!(index(u64::MAX), COUNTERS - 1);
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!((of(&[]).quantile(0.5), of(&[]).mean(), of(&[]).max()), (None, None, None));
    }

    #[test]
    fn damaged_bytes_are_rejected() {
        let bytes = of(&[1, 2, 3_000_000]).encode();
        assert_eq!(Histogram::decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Truncated));
        assert_eq!(Histogram::decode(&[9]), Err(DecodeError::Format(9)));
        let mut more = bytes.clone();
        more.extend([1, 1]);
        assert_eq!(Histogram::decode(&more), Err(DecodeError::Damaged));
    }

    #[test]
    fn repeated_and_empty_counters_are_rejected() {
        // Format, count, sum in two halves, min, max; then gap and count of each counter.
        assert_eq!(Histogram::decode(&[1, 2, 10, 0, 5, 5, 5, 1, 0, 1]), Err(DecodeError::Damaged));
        assert_eq!(Histogram::decode(&[1, 1, 5, 0, 5, 5, 5, 1, 1, 0]), Err(DecodeError::Damaged));
        assert_eq!(Histogram::decode(&[1, 1, 5, 0, 5, 5, 5, 1]), Ok(of(&[5])));
    }

    #[test]
    fn inconsistent_numbers_are_rejected() {
        let decoded =
            |sum: u8, min: u8, max: u8| Histogram::decode(&[1, 2, sum, 0, min, max, 5, 2]);
        assert!(decoded(10, 5, 5).is_ok());
        for (sum, min, max) in [(10, 6, 5), (9, 5, 5), (11, 5, 5), (0, 5, 5)] {
            assert_eq!(decoded(sum, min, max), Err(DecodeError::Damaged), "{sum} {min} {max}");
        }
        // A count above the maximum: 2^60 times the value 0.
        let mut bytes = vec![1];
        put(&mut bytes, 1 << 60);
        bytes.extend([0, 0, 0, 0, 0]);
        put(&mut bytes, 1 << 60);
        assert_eq!(Histogram::decode(&bytes), Err(DecodeError::Damaged));
    }

    #[test]
    fn decoded_histograms_are_small() {
        let read = Histogram::decode(&of(&[1, 2, 3_000_000]).encode()).unwrap();
        assert_eq!((read.counters.len(), read.filled.len()), (0, 3));
    }

    proptest! {
        #[test]
        fn decoded_histograms_can_record_and_merge(before: Vec<u64>, after: Vec<u64>) {
            let mut read = Histogram::decode(&of(&before).encode()).unwrap();
            prop_assert_eq!(&read, &of(&before));
            let mut merged = read.clone();
            merged.merge(&Histogram::decode(&of(&after).encode()).unwrap());
            after.iter().for_each(|value| read.record(*value));
            prop_assert_eq!(&read, &of(&[before, after].concat()));
            prop_assert_eq!(merged, read);
        }

        #[test]
        fn midpoints_are_within_the_error_bound(value: u64) {
            let answer = midpoint(index(value));
            prop_assert!(answer.abs_diff(value) as f64 <= RELATIVE_ERROR * value as f64);
        }

        #[test]
        fn merging_equals_concatenation(a: Vec<u64>, b: Vec<u64>) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }

        #[test]
        fn the_stored_form_is_reversible(values: Vec<u64>) {
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

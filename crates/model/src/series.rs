//! Work over time: merging the series of several workers, and the stored form.
//!
//! Each worker records a series from its own start. In a long loop, the length of its intervals
//! doubles repeatedly. [`Series::merged`] converts all series to the longest interval among them.
//! Before the addition, each series is moved by a whole number of intervals to its start time. Its
//! position is therefore wrong by at most half an interval.
//!
//! # Stored form
//!
//! [`Series::encode`] writes LEB128 varints: format (1), start and length of an interval in
//! nanoseconds, number of intervals, then the operations and bytes of each interval.

use crate::{
    histogram::{DecodeError, put, take},
    phase::Series,
    units::Nanos,
};

const FORMAT: u64 = 1;

impl Series {
    /// Sum of the series of all workers; empty if no worker has a series.
    pub fn merged<'a>(workers: impl IntoIterator<Item = &'a Self>) -> Self {
        let filled = |series: &&Self| series.interval > Nanos(0) && !series.ops.is_empty();
        let workers: Vec<&Self> = workers.into_iter().filter(filled).collect();
        let mut all = Self {
            start: workers.iter().map(|series| series.start).min().unwrap_or_default(),
            interval: workers.iter().map(|series| series.interval).max().unwrap_or_default(),
            ..Self::default()
        };
        workers.iter().for_each(|series| all.add(series));
        all
    }

    /// Adds the work of another series, which must not start earlier or have longer intervals.
    fn add(&mut self, other: &Self) {
        let late = (other.start - self.start).0;
        let shift = (late + self.interval.0 / 2) / self.interval.0;
        for (at, (ops, bytes)) in (0..).zip(other.ops.iter().zip(&other.bytes)) {
            let at = shift + at * other.interval.0 / self.interval.0;
            let Ok(at) = usize::try_from(at) else { continue };
            if self.ops.len() <= at {
                self.ops.resize(at + 1, 0);
                self.bytes.resize(at + 1, 0);
            }
            self.ops[at] += ops;
            self.bytes[at] += bytes;
        }
    }

    /// Stored form, as described in the module documentation.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + 4 * self.ops.len());
        for number in [FORMAT, self.start.0, self.interval.0, self.ops.len() as u64] {
            put(&mut bytes, number);
        }
        for (ops, moved) in self.ops.iter().zip(&self.bytes) {
            put(&mut bytes, *ops);
            put(&mut bytes, *moved);
        }
        bytes
    }

    /// Decodes the stored form.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are truncated, damaged, or of another format.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let format = take(&mut bytes)?;
        if format != FORMAT {
            return Err(DecodeError::Format(format));
        }
        let (start, interval) = (Nanos(take(&mut bytes)?), Nanos(take(&mut bytes)?));
        let intervals = take(&mut bytes)?;
        let mut series = Self { start, interval, ..Self::default() };
        for _ in 0..intervals {
            series.ops.push(take(&mut bytes)?);
            series.bytes.push(take(&mut bytes)?);
        }
        // Readers compute the sum of the counts and the end of the series, so none of these may
        // overflow.
        let sum =
            |counts: &[u64]| counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
        let end = interval.0.checked_mul(intervals).and_then(|all| start.0.checked_add(all));
        let timed = interval.0 > 0 || intervals == 0;
        match (sum(&series.ops), sum(&series.bytes), end) {
            (Some(_), Some(_), Some(_)) if timed && bytes.is_empty() => Ok(series),
            _ => Err(DecodeError::Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn series(start: u64, interval: u64, ops: &[u64]) -> Series {
        let bytes = ops.iter().map(|ops| ops * 10).collect();
        Series { start: Nanos(start), interval: Nanos(interval), ops: ops.to_vec(), bytes }
    }

    #[test]
    fn workers_are_brought_to_one_interval_and_aligned() {
        let early = series(100, 10, &[1, 2, 3, 4]);
        let late = series(119, 20, &[5, 6]);
        let merged = Series::merged([&early, &late, &Series::default()]);
        assert_eq!(merged, series(100, 20, &[3, 12, 6]));
        assert_eq!(Series::merged([]), Series::default());
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = series(1, 2, &[3]).encode();
        assert_eq!(Series::decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Truncated));
        assert_eq!(Series::decode(&[9]), Err(DecodeError::Format(9)));
        assert_eq!(Series::decode(&[bytes, vec![0]].concat()), Err(DecodeError::Damaged));
        // Two intervals of length zero, and sums that overflow.
        assert_eq!(Series::decode(&[1, 5, 0, 2, 1, 1, 1, 1]), Err(DecodeError::Damaged));
        let (mut much, most) = (series(5, 10, &[1, 1]), u64::MAX);
        much.bytes = vec![most, 1];
        assert_eq!(Series::decode(&much.encode()), Err(DecodeError::Damaged));
        much = series(most - 10, 10, &[1, 1]);
        assert_eq!(Series::decode(&much.encode()), Err(DecodeError::Damaged));
    }

    proptest! {
        #[test]
        fn the_stored_form_reads_back(
            start in 0..1u64 << 62, interval in 1..1u64 << 55,
            ops in prop::collection::vec(0u64..1 << 50, 0..40)
        ) {
            let series = series(start, interval, &ops);
            prop_assert_eq!(Series::decode(&series.encode()), Ok(series));
        }

        #[test]
        fn nothing_is_lost_by_merging(
            workers in prop::collection::vec(
                (0u64..1000, 0u32..4, prop::collection::vec(0u64..100, 0..20)), 0..5
            )
        ) {
            let all: Vec<Series> =
                workers.iter().map(|(start, k, ops)| series(*start, 10 << k, ops)).collect();
            let merged = Series::merged(&all);
            let total = |series: &Series| series.ops.iter().sum::<u64>();
            prop_assert_eq!(total(&merged), all.iter().map(total).sum::<u64>());
            prop_assert_eq!(merged.bytes.iter().sum::<u64>(), total(&merged) * 10);
        }
    }
}

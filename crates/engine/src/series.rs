//! Counted operations by interval, in constant memory.
//!
//! The series starts with [`BINS`] intervals of one millisecond. When they are used up, neighbors
//! are joined and the interval doubles: after a minute it is 64 ms, after an hour 4 s. Nothing is
//! allocated during the phase. In a long phase, at least half of the bins are used.

use model::{Nanos, phase::Series};

const BINS: usize = 1024;
const SHORTEST: Nanos = Nanos(1_000_000);

/// Time series that is being recorded.
#[derive(Debug)]
pub(crate) struct Recorder {
    series: Series,
    bins: usize,
    // Totals at the last border.
    ops: u64,
    bytes: u64,
}

impl Recorder {
    /// Allocates all memory.
    pub(crate) fn new() -> Self {
        let series = Series {
            interval: SHORTEST,
            ops: vec![0; BINS],
            bytes: vec![0; BINS],
            ..Series::default()
        };
        Self { series, bins: 0, ops: 0, bytes: 0 }
    }

    /// Starts counting. Returns the first border.
    pub(crate) fn start(&mut self, now: Nanos) -> Nanos {
        self.series.start = now;
        (self.bins, self.ops, self.bytes) = (0, 0, 0);
        self.border()
    }

    fn border(&self) -> Nanos {
        self.series.start + Nanos(self.series.interval.0 * (self.bins as u64 + 1))
    }

    /// Closes all intervals that end at or before `now` with the totals so far. Returns the next
    /// border.
    #[cold]
    pub(crate) fn roll(&mut self, now: Nanos, ops: u64, bytes: u64) -> Nanos {
        loop {
            let border = self.border();
            if border > now {
                return border;
            }
            self.close(ops, bytes);
            if self.bins == BINS {
                self.join();
            }
        }
    }

    fn close(&mut self, ops: u64, bytes: u64) {
        self.series.ops[self.bins] = ops - self.ops;
        self.series.bytes[self.bins] = bytes - self.bytes;
        (self.ops, self.bytes) = (ops, bytes);
        self.bins += 1;
    }

    fn join(&mut self) {
        for bins in [&mut self.series.ops, &mut self.series.bytes] {
            for pair in 0..BINS / 2 {
                bins[pair] = bins[2 * pair] + bins[2 * pair + 1];
            }
        }
        self.bins = BINS / 2;
        self.series.interval.0 *= 2;
    }

    /// Series up to now. Its last interval may be incomplete.
    pub(crate) fn finish(mut self, ops: u64, bytes: u64) -> Series {
        if ops > self.ops || self.bins == 0 {
            self.close(ops, bytes);
        }
        self.series.ops.truncate(self.bins);
        self.series.bytes.truncate(self.bins);
        self.series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_stalls_and_doublings_preserve_the_totals() {
        let mut recorder = Recorder::new();
        let mut border = recorder.start(Nanos(5_000_000));
        let (mut ops, mut now) = (0, Nanos(5_000_000));
        // 10 s of one operation per millisecond, and a stall of 3 s in between.
        while now < Nanos(15_005_000_000) {
            now = now + Nanos(if ops == 4000 { 3_000_000_000 } else { 1_000_000 });
            if now >= border {
                border = recorder.roll(now, ops, ops * 10);
                assert!(border > now);
            }
            ops += 1;
        }
        let series = recorder.finish(ops, ops * 10);
        assert_eq!(series.ops.iter().sum::<u64>(), ops);
        assert_eq!(series.bytes.iter().sum::<u64>(), ops * 10);
        assert_eq!((series.start, series.interval), (Nanos(5_000_000), Nanos(16_000_000)));
        assert!((BINS / 2..=BINS).contains(&series.ops.len()));
        let idle = series.ops.iter().filter(|ops| **ops == 0).count();
        assert!((186..=188).contains(&idle), "3 s are 187.5 intervals: {idle}");
    }

    #[test]
    fn a_short_loop_has_one_interval() {
        let mut recorder = Recorder::new();
        recorder.start(Nanos(0));
        let series = recorder.finish(7, 70);
        assert_eq!((series.ops, series.bytes), (vec![7], vec![70]));
    }
}

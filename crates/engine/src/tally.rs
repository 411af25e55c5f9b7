//! What a worker counts while it makes or uses entries: operations and bytes, their times, and how
//! they are spread over the time of the phase.
//!
//! Data enters as instants, and leaves as a [`WorkerResult`]. Everything is allocated when it is
//! made.

use model::{
    Bytes, Histogram, Nanos, Ops,
    phase::{Latencies, Moved, WorkerResult},
};

use crate::{clock::Usage, series::Recorder};

/// What an operation counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// It leaves the filesystem as it was.
    Read,
    /// It changes the filesystem.
    Write,
}

/// Counters and clock of the loop.
pub(crate) struct Tally {
    stopped: bool,
    started: Nanos,
    clock: Nanos,
    counted_until: Nanos,
    // Operations and bytes.
    read: (u64, u64),
    written: (u64, u64),
    uncounted: u64,
    latencies: Latencies,
    recorder: Recorder,
    border: Nanos,
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        let zero = Nanos(0);
        let latencies =
            Latencies { read: Histogram::new(), write: Histogram::new(), ..Latencies::default() };
        Self {
            stopped: false,
            started: zero,
            clock: zero,
            counted_until: zero,
            read: (0, 0),
            written: (0, 0),
            uncounted: 0,
            latencies,
            recorder: Recorder::new(),
            border: zero,
        }
    }

    /// The loop begins.
    pub(crate) fn start(&mut self, clock: Nanos) {
        (self.started, self.clock, self.counted_until) = (clock, clock, clock);
        self.border = self.recorder.start(clock);
    }

    /// Counting ends with what was done before this instant.
    pub(crate) fn stop(&mut self, clock: Nanos) {
        if !self.stopped {
            self.stopped = true;
            self.counted_until = clock;
        }
    }

    /// Whether counting has ended.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// When the last operation ended.
    pub(crate) fn clock(&self) -> Nanos {
        self.clock
    }

    /// One operation was done between the last instant and this one, and moved so many bytes.
    pub(crate) fn add(&mut self, clock: Nanos, counts: Counts, bytes: u64) {
        let begun = self.clock;
        if !self.stopped {
            let histogram = match counts {
                Counts::Read => &mut self.latencies.read,
                Counts::Write => &mut self.latencies.write,
            };
            histogram.record((clock - begun).0);
        }
        self.add_many(clock, counts, 1, bytes);
    }

    /// Several were done, whose times nobody asks for.
    pub(crate) fn add_many(&mut self, clock: Nanos, counts: Counts, ops: u64, bytes: u64) {
        self.clock = clock;
        if self.stopped {
            if counts == Counts::Write {
                self.uncounted += bytes;
            }
            return;
        }
        if clock >= self.border {
            let (ops, bytes) = self.sum();
            self.border = self.recorder.roll(clock, ops, bytes);
        }
        let moved = match counts {
            Counts::Read => &mut self.read,
            Counts::Write => &mut self.written,
        };
        moved.0 += ops;
        moved.1 += bytes;
        self.counted_until = clock;
    }

    fn sum(&self) -> (u64, u64) {
        (self.read.0 + self.written.0, self.read.1 + self.written.1)
    }

    /// The result of a worker that used so much of its CPU.
    pub(crate) fn finish(self, worker: u32, usage: Usage) -> WorkerResult {
        let (ops, bytes) = self.sum();
        let moved = |(ops, bytes)| Moved { ops: Ops(ops), bytes: Bytes(bytes) };
        WorkerResult {
            worker,
            started: self.started,
            loop_time: self.counted_until - self.started,
            uncounted_time: self.clock - self.counted_until,
            flush_time: Nanos(0),
            close_time: Nanos(0),
            read: moved(self.read),
            written: moved(self.written),
            uncounted: Bytes(self.uncounted),
            would_block: Ops(0),
            unexpected: Ops(0),
            ticked: None,
            user_time: usage.user,
            system_time: usage.system,
            voluntary_switches: usage.voluntary,
            involuntary_switches: usage.involuntary,
            latencies: self.latencies,
            series: self.recorder.finish(ops, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_stop_does_not_count() {
        let mut tally = Tally::new();
        tally.start(Nanos(100));
        tally.add(Nanos(130), Counts::Read, 7);
        tally.add(Nanos(200), Counts::Write, 5);
        tally.stop(Nanos(210));
        tally.add(Nanos(250), Counts::Write, 9);
        assert!(tally.stopped());
        assert_eq!(tally.clock(), Nanos(250));
        let result = tally.finish(3, Usage::default());
        assert_eq!((result.read.ops, result.read.bytes), (Ops(1), Bytes(7)));
        assert_eq!((result.written.ops, result.written.bytes), (Ops(1), Bytes(5)));
        assert_eq!((result.uncounted, result.worker), (Bytes(9), 3));
        assert_eq!((result.loop_time, result.uncounted_time), (Nanos(110), Nanos(40)));
        let longest = (result.latencies.read.max(), result.latencies.write.max());
        assert_eq!(longest, (Some(Nanos(30)), Some(Nanos(70))));
        assert_eq!(result.series.ops, [2]);
    }

    #[test]
    fn operations_without_times_are_counted_alone() {
        let mut tally = Tally::new();
        tally.start(Nanos(0));
        tally.add_many(Nanos(1000), Counts::Write, 64, 640);
        let result = tally.finish(0, Usage::default());
        assert_eq!((result.ops(), result.bytes()), (Ops(64), Bytes(640)));
        assert_eq!(result.latencies.write.count(), 0);
    }
}

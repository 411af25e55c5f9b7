//! Counters of a worker that creates or uses entries: operations and bytes, their times, and their
//! distribution over time.
//!
//! The input are instants, the output is a [`WorkerResult`]. All memory is allocated on creation.

use model::{
    Bytes, Histogram, Nanos, Ops,
    phase::{Latencies, Moved, WorkerResult},
};

use crate::{clock::Usage, series::Recorder};

/// Class of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// It does not change the filesystem.
    Read,
    /// It changes the filesystem.
    Write,
}

/// Counters and clock of the loop.
pub(crate) struct OpCounters {
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

impl OpCounters {
    /// Creates empty counters.
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

    /// Starts the loop.
    pub(crate) fn start(&mut self, clock: Nanos) {
        (self.started, self.clock, self.counted_until) = (clock, clock, clock);
        self.border = self.recorder.start(clock);
    }

    /// Ends counting before this instant.
    pub(crate) fn stop(&mut self, clock: Nanos) {
        if !self.stopped {
            self.stopped = true;
            self.counted_until = clock;
        }
    }

    /// True if counting has ended.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }

    /// End of the last operation.
    pub(crate) fn clock(&self) -> Nanos {
        self.clock
    }

    /// Counts one operation that ended at this instant and moved `bytes` bytes.
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

    /// Counts several operations whose times are not recorded.
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

    /// Result of a worker with this CPU usage.
    pub(crate) fn finish(self, worker: u32, usage: Usage) -> WorkerResult {
        let (ops, bytes) = self.sum();
        let moved = |(ops, bytes)| Moved { ops: Ops(ops), bytes: Bytes(bytes) };
        WorkerResult {
            worker,
            started: self.started,
            loop_time: self.counted_until - self.started,
            uncounted_time: self.clock - self.counted_until,
            end_sync_time: Nanos(0),
            close_time: Nanos(0),
            read: moved(self.read),
            written: moved(self.written),
            uncounted: Bytes(self.uncounted),
            eagain_reads: Ops(0),
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
    fn operations_after_the_stop_do_not_count() {
        let mut counters = OpCounters::new();
        counters.start(Nanos(100));
        counters.add(Nanos(130), Counts::Read, 7);
        counters.add(Nanos(200), Counts::Write, 5);
        counters.stop(Nanos(210));
        counters.add(Nanos(250), Counts::Write, 9);
        assert!(counters.stopped());
        assert_eq!(counters.clock(), Nanos(250));
        let result = counters.finish(3, Usage::default());
        assert_eq!((result.read.ops, result.read.bytes), (Ops(1), Bytes(7)));
        assert_eq!((result.written.ops, result.written.bytes), (Ops(1), Bytes(5)));
        assert_eq!((result.uncounted, result.worker), (Bytes(9), 3));
        assert_eq!((result.loop_time, result.uncounted_time), (Nanos(110), Nanos(40)));
        let longest = (result.latencies.read.max(), result.latencies.write.max());
        assert_eq!(longest, (Some(Nanos(30)), Some(Nanos(70))));
        assert_eq!(result.series.ops, [2]);
    }

    #[test]
    fn operations_without_times_are_only_counted() {
        let mut counters = OpCounters::new();
        counters.start(Nanos(0));
        counters.add_many(Nanos(1000), Counts::Write, 64, 640);
        let result = counters.finish(0, Usage::default());
        assert_eq!((result.ops(), result.bytes()), (Ops(64), Bytes(640)));
        assert_eq!(result.latencies.write.count(), 0);
    }
}

//! Counters and times of a worker.

use model::{
    Bytes, Histogram, Nanos, Ops,
    phase::{Latencies, Moved, Tree, WorkerResult},
};

use crate::{clock::Usage, series::Recorder};

/// Counters and clock of the loop.
pub(super) struct Count {
    changes: bool,
    /// True if counting has ended, although the work may continue.
    pub(super) stopped: bool,
    started: Nanos,
    /// End of the last operation.
    pub(super) clock: Nanos,
    counted_until: Nanos,
    ops: u64,
    read: u64,
    written: u64,
    uncounted: u64,
    latency: Histogram,
    recorder: Recorder,
    border: Nanos,
}

impl Count {
    /// Allocates all memory.
    pub(super) fn new(tree: &Tree) -> Self {
        let zero = Nanos(0);
        Self {
            changes: tree.steps.iter().any(|step| step.changes()),
            stopped: false,
            started: zero,
            clock: zero,
            counted_until: zero,
            ops: 0,
            read: 0,
            written: 0,
            uncounted: 0,
            latency: Histogram::new(),
            recorder: Recorder::new(),
            border: zero,
        }
    }

    /// Starts the loop.
    pub(super) fn start(&mut self, clock: Nanos) {
        (self.started, self.clock, self.counted_until) = (clock, clock, clock);
        self.border = self.recorder.start(clock);
    }

    /// Ends counting before this instant.
    pub(super) fn stop(&mut self, clock: Nanos) {
        if !self.stopped {
            self.stopped = true;
            self.counted_until = clock;
        }
    }

    /// Counts one entry that started at `begun`.
    #[inline]
    pub(super) fn add(&mut self, begun: Nanos, clock: Nanos, read: u64, written: u64) {
        self.clock = clock;
        if self.stopped {
            self.uncounted += written;
            return;
        }
        if clock >= self.border {
            self.border = self.recorder.roll(clock, self.ops, self.read + self.written);
        }
        self.ops += 1;
        self.read += read;
        self.written += written;
        self.latency.record(clock.0 - begun.0);
        self.counted_until = clock;
    }

    /// Result, if the work after the last operation ended at `ended`.
    pub(super) fn finish(self, worker: u32, ended: Nanos, usage: Usage) -> WorkerResult {
        let ops = |counts: bool| Ops(if counts { self.ops } else { 0 });
        let mut latencies = Latencies::default();
        *(if self.changes { &mut latencies.write } else { &mut latencies.read }) = self.latency;
        WorkerResult {
            worker,
            started: self.started,
            loop_time: self.counted_until - self.started,
            uncounted_time: self.clock - self.counted_until,
            end_sync_time: ended - self.clock,
            close_time: Nanos(0),
            read: Moved { ops: ops(!self.changes), bytes: Bytes(self.read) },
            written: Moved { ops: ops(self.changes), bytes: Bytes(self.written) },
            uncounted: Bytes(self.uncounted),
            eagain_reads: Ops(0),
            unexpected: Ops(0),
            ticked: None,
            user_time: usage.user,
            system_time: usage.system,
            voluntary_switches: usage.voluntary,
            involuntary_switches: usage.involuntary,
            latencies,
            series: self.recorder.finish(self.ops, self.read + self.written),
        }
    }
}

//! Counters and times of a client.

use model::{
    Bytes, Nanos, Ops,
    phase::{Moved, ReplayOp, Ticked, Until, WorkerResult},
};

use super::times::Times;
use crate::{clock::Usage, series::Recorder};

/// Instant that is never reached.
const NEVER: Nanos = Nanos(u64::MAX);
const SECOND: u64 = 1_000_000_000;

/// Completed operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Type of the operation.
    pub(super) kind: ReplayOp,
    /// Start of its latency.
    pub(super) begun: Nanos,
    /// End of the operation.
    pub(super) clock: Nanos,
    /// Requested bytes.
    pub(super) bytes: u64,
    /// True if the status is that of the loadfile.
    pub(super) expected: bool,
}

/// Counters and clock of the loop.
pub(super) struct Count {
    until: Until,
    counting: bool,
    started: Nanos,
    counted_until: Nanos,
    /// End of the last operation.
    pub(super) clock: Nanos,
    // Operations and bytes.
    read: (u64, u64),
    written: (u64, u64),
    unexpected: u64,
    times: Times,
    recorder: Recorder,
    ticked: Option<Ticked>,
    // Earliest of the following instants, at which something other than counting happens.
    event: Nanos,
    ramp_end: Nanos,
    series_border: Nanos,
    tick: Nanos,
    // Time of a tick: whole seconds, the same for all clients.
    tick_elapsed: Nanos,
    deadline: Nanos,
}

impl Count {
    /// Allocates all memory.
    pub(super) fn new(until: Until) -> Self {
        let zero = Nanos(0);
        Self {
            until,
            counting: false,
            started: zero,
            counted_until: zero,
            clock: zero,
            read: (0, 0),
            written: (0, 0),
            unexpected: 0,
            times: Times::new(),
            recorder: Recorder::new(),
            ticked: None,
            event: NEVER,
            ramp_end: NEVER,
            series_border: NEVER,
            tick: NEVER,
            tick_elapsed: zero,
            deadline: NEVER,
        }
    }

    /// Starts the loop.
    pub(super) fn start(&mut self, clock: Nanos) {
        (self.started, self.counted_until, self.clock) = (clock, clock, clock);
        match self.until {
            Until::Time { ramp, run } => {
                self.deadline = clock + ramp + run;
                self.ramp_end = clock + ramp;
                // Full seconds before the end. They start at the end of the ramp time, not with the
                // first operation after it: the instant is the same for all clients.
                let whole = run.0.saturating_sub(1) / SECOND * SECOND;
                if whole > 0 {
                    self.tick_elapsed = Nanos(whole);
                    self.tick = self.ramp_end + self.tick_elapsed;
                }
                if ramp == Nanos(0) {
                    self.begin_counting(clock);
                }
            }
            Until::Replayed(_) => self.begin_counting(clock),
        }
        self.set_event();
    }

    /// End of the loop at the latest.
    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Counts an operation. Returns true if the loop continues.
    #[inline]
    pub(super) fn add(&mut self, done: Done) -> bool {
        self.clock = done.clock;
        // An operation that spans the end of the ramp time is not part of the result.
        let counts = self.counting;
        if done.clock >= self.event {
            self.pass_events();
        }
        if !counts {
            return self.should_continue();
        }
        let moved = if done.kind.changes() { &mut self.written } else { &mut self.read };
        moved.0 += 1;
        moved.1 += done.bytes;
        self.unexpected += u64::from(!done.expected);
        self.times.record(done.kind, done.clock.0.saturating_sub(done.begun.0));
        self.counted_until = done.clock;
        self.should_continue()
    }

    /// Records idle time until this instant. Returns true if the loop continues.
    pub(super) fn idle(&mut self, clock: Nanos) -> bool {
        self.clock = clock;
        if clock >= self.event {
            self.pass_events();
        }
        if self.counting {
            self.counted_until = clock;
        }
        self.should_continue()
    }

    #[inline]
    fn should_continue(&self) -> bool {
        self.clock < self.deadline
    }

    #[cold]
    fn pass_events(&mut self) {
        let clock = self.clock;
        if clock >= self.ramp_end {
            self.begin_counting(clock);
        }
        let (ops, bytes) = self.sum();
        if clock >= self.tick {
            self.ticked = Some(Ticked { elapsed: self.tick_elapsed, bytes: Bytes(bytes) });
            self.tick = NEVER;
        }
        if clock >= self.series_border {
            self.series_border = self.recorder.roll(clock, ops, bytes);
        }
        self.set_event();
    }

    /// Starts counting operations that begin after this instant.
    fn begin_counting(&mut self, clock: Nanos) {
        self.ramp_end = NEVER;
        self.counting = true;
        (self.started, self.counted_until) = (clock, clock);
        self.series_border = self.recorder.start(clock);
    }

    fn set_event(&mut self) {
        self.event = self.ramp_end.min(self.series_border).min(self.tick);
    }

    fn sum(&self) -> (u64, u64) {
        (self.read.0 + self.written.0, self.read.1 + self.written.1)
    }

    /// Result of a client with this CPU usage.
    pub(super) fn finish(self, worker: u32, usage: Usage) -> WorkerResult {
        let (ops, bytes) = self.sum();
        // A client that ended before has moved all of its bytes by then.
        let at_end = || Ticked { elapsed: self.tick_elapsed, bytes: Bytes(bytes) };
        let ticked = self.ticked.or_else(|| (self.tick != NEVER).then(at_end));
        let moved = |(ops, bytes)| Moved { ops: Ops(ops), bytes: Bytes(bytes) };
        let mut latencies = model::phase::Latencies {
            by_kind: self.times.by_kind(),
            ..model::phase::Latencies::default()
        };
        latencies.read = self.times.merged(|kind| !kind.changes());
        latencies.write = self.times.merged(ReplayOp::changes);
        WorkerResult {
            worker,
            started: self.started,
            loop_time: self.counted_until - self.started,
            uncounted_time: self.clock - self.counted_until,
            end_sync_time: Nanos(0),
            close_time: Nanos(0),
            read: moved(self.read),
            written: moved(self.written),
            uncounted: Bytes(0),
            eagain_reads: Ops(0),
            unexpected: Ops(self.unexpected),
            ticked,
            user_time: usage.user,
            system_time: usage.system,
            voluntary_switches: usage.voluntary,
            involuntary_switches: usage.involuntary,
            latencies,
            series: self.recorder.finish(ops, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn done(kind: ReplayOp, begun: u64, clock: u64, bytes: u64) -> Done {
        Done { kind, begun: Nanos(begun), clock: Nanos(clock), bytes, expected: true }
    }

    fn timed(ramp: u64, run: u64) -> Count {
        let mut count = Count::new(Until::Time { ramp: Nanos(ramp * MS), run: Nanos(run * MS) });
        count.start(Nanos(0));
        count
    }

    /// One operation per 100 ms, whose bytes are its number.
    fn fill(count: &mut Count, until: u64) -> u64 {
        let mut number = 0;
        loop {
            number += 1;
            let (begun, clock) = ((number - 1) * 100 * MS, number * 100 * MS);
            if !count.add(done(ReplayOp::WriteX, begun, clock, number)) {
                assert_eq!(clock, until * MS);
                return number;
            }
        }
    }

    #[test]
    fn the_ramp_time_does_not_count() {
        let mut count = timed(500, 2000);
        assert_eq!(fill(&mut count, 2500), 25);
        let result = count.finish(3, Usage::default());
        assert_eq!(
            (result.worker, result.started, result.loop_time.0),
            (3, Nanos(500 * MS), 2000 * MS)
        );
        assert_eq!((result.written.ops, result.written.bytes), (Ops(20), Bytes((6..=25).sum())));
        assert_eq!(result.read, Moved::default());
        assert_eq!(result.latencies.write.count(), 20);
        assert_eq!(result.latencies.read.count(), 0);
        assert_eq!(result.latencies.by_kind[0].1, result.latencies.write);
        assert_eq!(result.series.bytes.iter().sum::<u64>(), result.written.bytes.0);
    }

    #[test]
    fn the_tick_is_the_last_full_second_before_the_end() {
        for (run, second, bytes) in [(2000, 1, 1..=9), (2500, 2, 1..=19), (3000, 2, 1..=19)] {
            let mut count = timed(0, run);
            fill(&mut count, run);
            let bytes = Bytes(bytes.sum());
            let ticked = Ticked { elapsed: Nanos(second * SECOND), bytes };
            assert_eq!(count.finish(0, Usage::default()).ticked, Some(ticked), "{run} ms");
        }
        let mut count = timed(0, 1000);
        fill(&mut count, 1000);
        assert_eq!(count.finish(0, Usage::default()).ticked, None);
    }

    #[test]
    fn a_client_that_is_slow_at_the_end_of_the_ramp_has_the_common_tick() {
        // The ramp ends at 500 ms, the tick is at 1500 ms, and the end at 2500 ms.
        for (slow_until, bytes) in [(600, 7), (1400, 7), (1501, 0), (2499, 0), (2600, 0)] {
            let mut count = timed(500, 2000);
            if count.add(done(ReplayOp::WriteX, 0, slow_until * MS, 100)) {
                let before = (slow_until + 10).min(1450).max(slow_until);
                assert!(count.add(done(ReplayOp::WriteX, slow_until * MS, before * MS, 7)));
                count.add(done(ReplayOp::WriteX, before * MS, 2700 * MS, 9));
            }
            let ticked = Ticked { elapsed: Nanos(SECOND), bytes: Bytes(bytes) };
            assert_eq!(count.finish(0, Usage::default()).ticked, Some(ticked), "{slow_until} ms");
        }
        // The tick is also reported if it was never passed.
        let mut count = timed(500, 2000);
        assert!(count.add(done(ReplayOp::WriteX, 0, 500 * MS, 100)));
        assert!(count.add(done(ReplayOp::WriteX, 500 * MS, 700 * MS, 5)));
        let ticked = Ticked { elapsed: Nanos(SECOND), bytes: Bytes(5) };
        assert_eq!(count.finish(0, Usage::default()).ticked, Some(ticked));
    }

    #[test]
    fn a_replay_that_ends_with_the_loadfile_counts_all_operations() {
        let mut count = Count::new(Until::Replayed(1));
        count.start(Nanos(7));
        assert!(count.add(done(ReplayOp::Find, 7, 9, 0)));
        assert!(count.add(Done { expected: false, ..done(ReplayOp::Flush, 9, 20, 0) }));
        let result = count.finish(0, Usage::default());
        assert_eq!(
            (result.read.ops, result.written.ops, result.unexpected),
            (Ops(1), Ops(1), Ops(1))
        );
        assert_eq!((result.loop_time, result.ticked), (Nanos(13), None));
    }
}

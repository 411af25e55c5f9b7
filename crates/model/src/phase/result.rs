//! Result of a phase: integers and histograms, before they become metrics with units.

use serde::{Deserialize, Serialize};

use super::{FileCall, ReplayOp};
use crate::{
    environment::Environment,
    histogram::Histogram,
    metric::Metric,
    units::{Bytes, Nanos, Ops},
};

/// Result of one worker. Instants are CLOCK_MONOTONIC nanoseconds of the measuring host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerResult {
    /// Index of the worker.
    pub worker: u32,
    /// Start of the loop. With a ramp time, start of the measurement.
    pub started: Nanos,
    /// Duration of the counted part of the loop.
    pub loop_time: Nanos,
    /// Duration of the rest of the loop, after the measurement stopped. [`Self::uncounted`] was
    /// written in this time. The final sync starts when the loop ends.
    pub uncounted_time: Nanos,
    /// Duration of the sync after the loop; zero if there was none.
    pub end_sync_time: Nanos,
    /// Duration of close.
    pub close_time: Nanos,
    /// Counted reads.
    pub read: Moved,
    /// Counted writes.
    pub written: Moved,
    /// Bytes written after the measurement stopped, including the operation in progress. The final
    /// sync makes them durable, but they are not part of the rate.
    pub uncounted: Bytes,
    /// Reads with `RWF_NOWAIT` that returned EAGAIN.
    pub eagain_reads: Ops,
    /// Operations that are missing in the logs, because their memory was full.
    #[serde(default)]
    pub unlogged: Ops,
    /// Operations of a replay whose status differs from that in the loadfile.
    #[serde(default)]
    pub unexpected: Ops,
    /// Count up to the last full second, as reported by dbench. Only for replays that end by time.
    #[serde(default)]
    pub ticked: Option<Ticked>,
    /// Work up to the deadline of the phase, or to the end of the worker if it ended earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_deadline: Option<AtDeadline>,
    /// CPU time of the worker in user mode, from the start of the loop (ramp time included) to
    /// close.
    pub user_time: Nanos,
    /// CPU time of the worker in the kernel, from the start of the loop (ramp time included) to
    /// close.
    pub system_time: Nanos,
    /// Voluntary context switches: the worker waited.
    pub voluntary_switches: u64,
    /// Involuntary context switches: another task used the CPU.
    pub involuntary_switches: u64,
    /// Latencies by kind.
    #[serde(skip)]
    pub latencies: Latencies,
    /// Counted work over time.
    pub series: Series,
    /// Start of the loop, ramp time included; only if there are events.
    #[serde(default)]
    pub begun: Nanos,
    /// Maintenance actions, counted or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

impl WorkerResult {
    /// Counted operations.
    pub fn ops(&self) -> Ops {
        self.read.ops + self.written.ops
    }

    /// Counted bytes.
    pub fn bytes(&self) -> Bytes {
        self.read.bytes + self.written.bytes
    }

    /// True if the worker wrote anything, counted or not.
    pub fn writes(&self) -> bool {
        self.written.ops.0 > 0 || self.uncounted.0 > 0
    }
}

/// Maintenance action that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Start.
    pub begun: Nanos,
    /// Duration.
    pub elapsed: Nanos,
    /// Error; empty on success.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Number of operations and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Operations.
    pub ops: Ops,
    /// Bytes.
    pub bytes: Bytes,
}

/// Work up to a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtDeadline {
    /// Time since the start of the measurement, until the last operation that started before the
    /// deadline had ended.
    pub elapsed: Nanos,
    /// Operations and bytes.
    pub moved: Moved,
}

/// Bytes up to an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticked {
    /// Time since the start of the measurement.
    pub elapsed: Nanos,
    /// Bytes up to the instant.
    pub bytes: Bytes,
}

/// Latencies of counted operations by kind. An empty histogram means that no operation of this kind
/// was timed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Reads: from submission, or in an open loop from the scheduled start, to completion.
    pub read: Histogram,
    /// Writes: from submission, or in an open loop from the scheduled start, to completion.
    pub write: Histogram,
    /// Service time of all reads and writes, open loop only: from start of service to completion,
    /// as a closed loop would measure.
    pub service: Histogram,
    /// Service time of reads, only of open loops of workers that read and write.
    pub service_read: Histogram,
    /// Service time of writes of the same loops.
    pub service_write: Histogram,
    /// Submission latency, engines with a queue only: until the kernel accepted the operation.
    pub submit: Histogram,
    /// Completion latency, engines with a queue only: from submission to completion.
    pub complete: Histogram,
    /// Sync calls in the loop.
    pub flush: Histogram,
    /// Replays only: latencies of the same operations as in `read` and `write`, by operation. In
    /// the order of [`ReplayOp::ALL`], without operations that did not occur.
    pub by_kind: Vec<(ReplayOp, Histogram)>,
    /// Replays of recordings only: latencies of the same operations as in `read` and `write`, by
    /// system call, in the order of [`FileCall::ALL`].
    pub by_call: Vec<(FileCall, Histogram)>,
}

impl Latencies {
    /// Names and histograms, in the order of the fields. Only `read` and `write` are latencies of
    /// operations. The other histograms contain other times of the same operations, or the sync
    /// calls between them.
    pub fn each(&self) -> [(&'static str, &Histogram); 8] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("service", &self.service),
            ("service-read", &self.service_read),
            ("service-write", &self.service_write),
            ("submission", &self.submit),
            ("completion", &self.complete),
            ("sync", &self.flush),
        ]
    }

    /// Mutable version of [`Self::each`].
    pub fn each_mut(&mut self) -> [(&'static str, &mut Histogram); 8] {
        [
            ("read", &mut self.read),
            ("write", &mut self.write),
            ("service", &mut self.service),
            ("service-read", &mut self.service_read),
            ("service-write", &mut self.service_write),
            ("submission", &mut self.submit),
            ("completion", &mut self.complete),
            ("sync", &mut self.flush),
        ]
    }

    /// All operations, reads and writes.
    pub fn operations(&self) -> Histogram {
        let mut all = Histogram::default();
        all.merge(&self.read);
        all.merge(&self.write);
        all
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        for ((_, own), (_, other)) in self.each_mut().into_iter().zip(other.each()) {
            own.merge(other);
        }
        for (call, other) in &other.by_call {
            match self.by_call.binary_search_by_key(call, |(own, _)| *own) {
                Ok(index) => self.by_call[index].1.merge(other),
                Err(index) => self.by_call.insert(index, (*call, other.clone())),
            }
        }
        for (op, other) in &other.by_kind {
            match self.by_kind.binary_search_by_key(op, |(own, _)| *own) {
                Ok(index) => self.by_kind[index].1.merge(other),
                Err(index) => self.by_kind.insert(index, (*op, other.clone())),
            }
        }
    }
}

/// Counted work per time interval, in constant memory: if all intervals are in use, neighboring
/// intervals are merged and the duration of an interval doubles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Start of the first interval.
    pub start: Nanos,
    /// Duration of an interval; zero if there is no series.
    pub interval: Nanos,
    /// Operations that ended in each interval.
    pub ops: Vec<u64>,
    /// Bytes of those operations.
    pub bytes: Vec<u64>,
}

/// Number that a program printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    /// Name; `None` for the primary metric of the phase.
    pub name: Option<String>,
    /// Metric.
    pub metric: Metric,
    /// Value in the unit of the metric.
    pub value: f64,
}

/// Result of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseResult {
    /// Results of the workers, by index; empty for work without workers.
    pub workers: Vec<WorkerResult>,
    /// Facts that are known only after the phase, such as the loadfile that was used.
    pub facts: Environment,
    /// Numbers that the programs of a command printed.
    pub reported: Vec<Reported>,
    /// Time from the release of the barrier to the end of the last close. For work without workers,
    /// its duration.
    pub wall_time: Nanos,
    /// True if the rate became steady; `None` for streams without a
    /// [condition](super::Stream::steady_state).
    pub steady: Option<bool>,
}

impl PhaseResult {
    /// Creates a result without facts.
    pub fn new(workers: Vec<WorkerResult>, wall_time: Nanos) -> Self {
        Self { workers, wall_time, ..Self::default() }
    }

    /// Counted bytes of all workers.
    pub fn bytes(&self) -> Bytes {
        self.workers.iter().map(WorkerResult::bytes).sum()
    }

    /// Counted operations of all workers.
    pub fn ops(&self) -> Ops {
        Ops(self.workers.iter().map(|worker| worker.ops().0).sum())
    }

    /// Latencies of all workers.
    pub fn latencies(&self) -> Latencies {
        let mut merged = Latencies::default();
        self.workers.iter().for_each(|worker| merged.merge(&worker.latencies));
        merged
    }

    /// Start skew: time between the first and the last worker's start.
    pub fn start_skew(&self) -> Nanos {
        spread(self.workers.iter().map(|worker| worker.started))
    }

    /// End skew: time between the first and the last worker's counted end.
    pub fn end_skew(&self) -> Nanos {
        spread(self.workers.iter().map(|worker| worker.started + worker.loop_time))
    }
}

fn spread(instants: impl Iterator<Item = Nanos> + Clone) -> Nanos {
    instants.clone().max().unwrap_or_default() - instants.min().unwrap_or_default()
}

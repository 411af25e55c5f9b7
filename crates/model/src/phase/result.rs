//! What a phase did: integers and histograms, before they get names and units.

use serde::{Deserialize, Serialize};

use super::ReplayOp;
use crate::{
    environment::Environment,
    histogram::Histogram,
    units::{Bytes, Nanos, Ops},
};

/// What one worker did. Instants are CLOCK_MONOTONIC nanoseconds of the measuring host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerResult {
    /// Its index.
    pub worker: u32,
    /// When its loop began; with a ramp-up, when counting began.
    pub started: Nanos,
    /// Length of the counted part of the loop.
    pub loop_time: Nanos,
    /// Length of the rest of the loop, after counting had stopped: the time of
    /// [`Self::uncounted`]. The flush begins at its end.
    pub uncounted_time: Nanos,
    /// Length of the flush after the loop; zero if there was none.
    pub flush_time: Nanos,
    /// Length of the close.
    pub close_time: Nanos,
    /// Counted reads.
    pub read: Moved,
    /// Counted writes.
    pub written: Moved,
    /// Bytes written after counting had stopped, the operation in progress included; part of what
    /// the flush made durable, not part of the rate.
    pub uncounted: Bytes,
    /// Reads with `RWF_NOWAIT` that were answered "it would block".
    pub would_block: Ops,
    /// Operations of a replay that went otherwise than their load file has it.
    #[serde(default)]
    pub unexpected: Ops,
    /// Replays that end by time: what was counted until the last whole second before the end, which
    /// is what the classic tool tells.
    #[serde(default)]
    pub ticked: Option<Ticked>,
    /// CPU time of the worker in user mode, from loop start (ramp-up included) to close.
    pub user_time: Nanos,
    /// CPU time of the worker in the kernel, from loop start (ramp-up included) to close.
    pub system_time: Nanos,
    /// Context switches because the worker waited.
    pub voluntary_switches: u64,
    /// Context switches because others wanted its CPU.
    pub involuntary_switches: u64,
    /// Its times, by what was timed.
    #[serde(skip)]
    pub latencies: Latencies,
    /// How the counted work was spread over time.
    pub series: Series,
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

    /// Whether it wrote anything, counted or not.
    pub fn writes(&self) -> bool {
        self.written.ops.0 > 0 || self.uncounted.0 > 0
    }
}

/// Operations and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// How many operations.
    pub ops: Ops,
    /// How many bytes.
    pub bytes: Bytes,
}

/// What was counted until an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticked {
    /// The instant, from the start of counting.
    pub elapsed: Nanos,
    /// Bytes until then.
    pub bytes: Bytes,
}

/// Times of counted operations, by what was timed; a histogram without values means that nothing of
/// the kind was timed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Reads, from the instant the worker turned to them, or from the instant they were due where
    /// the pace is an open loop, to their completion.
    pub read: Histogram,
    /// Writes, likewise.
    pub write: Histogram,
    /// Open loop only: the same operations from the instant the worker turned to them, which is all
    /// that a closed loop would have seen.
    pub service: Histogram,
    /// Queues only: until the kernel had taken the operation.
    pub submit: Histogram,
    /// Queues only: from then on to its completion.
    pub complete: Histogram,
    /// Flushes inside the loop.
    pub flush: Histogram,
    /// Replays only: the same operations as in `read` and `write`, by kind, in the order of
    /// [`ReplayOp::ALL`]; those that did not happen are left out.
    pub by_kind: Vec<(ReplayOp, Histogram)>,
}

impl Latencies {
    /// Names and histograms, in the order of the fields; `read` and `write` make up the latency of
    /// operations, the others are about the same operations or the flushes between them.
    pub fn each(&self) -> [(&'static str, &Histogram); 6] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("service", &self.service),
            ("submit", &self.submit),
            ("complete", &self.complete),
            ("flush", &self.flush),
        ]
    }

    /// The same, to be changed.
    pub fn each_mut(&mut self) -> [(&'static str, &mut Histogram); 6] {
        [
            ("read", &mut self.read),
            ("write", &mut self.write),
            ("service", &mut self.service),
            ("submit", &mut self.submit),
            ("complete", &mut self.complete),
            ("flush", &mut self.flush),
        ]
    }

    /// All operations, reads and writes.
    pub fn operations(&self) -> Histogram {
        let mut all = Histogram::default();
        all.merge(&self.read);
        all.merge(&self.write);
        all
    }

    /// Adds everything `other` holds.
    pub fn merge(&mut self, other: &Self) {
        for ((_, own), (_, other)) in self.each_mut().into_iter().zip(other.each()) {
            own.merge(other);
        }
        for (op, other) in &other.by_kind {
            match self.by_kind.binary_search_by_key(op, |(own, _)| *own) {
                Ok(index) => self.by_kind[index].1.merge(other),
                Err(index) => self.by_kind.insert(index, (*op, other.clone())),
            }
        }
    }
}

/// Counted work by interval of time, in constant memory: when the intervals run out, neighbors are
/// joined and the interval doubles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Start of the first interval.
    pub start: Nanos,
    /// Length of an interval; zero if there is no series.
    pub interval: Nanos,
    /// Operations that ended in each interval.
    pub ops: Vec<u64>,
    /// Bytes of those operations.
    pub bytes: Vec<u64>,
}

/// What a phase did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseResult {
    /// One entry for each worker, by index; none for work that has no workers.
    pub workers: Vec<WorkerResult>,
    /// Facts about the work that only doing it could tell, such as which load file was read.
    pub facts: Environment,
    /// From the release of the barrier to the end of the last worker's close, or the time the work
    /// took.
    pub wall_time: Nanos,
}

impl PhaseResult {
    /// What these workers did, in this time, without further facts.
    pub fn new(workers: Vec<WorkerResult>, wall_time: Nanos) -> Self {
        Self { workers, wall_time, facts: Environment::default() }
    }

    /// Counted bytes of all workers.
    pub fn bytes(&self) -> Bytes {
        self.workers.iter().map(WorkerResult::bytes).sum()
    }

    /// Counted operations of all workers.
    pub fn ops(&self) -> Ops {
        Ops(self.workers.iter().map(|worker| worker.ops().0).sum())
    }

    /// Times of all workers.
    pub fn latencies(&self) -> Latencies {
        let mut merged = Latencies::default();
        self.workers.iter().for_each(|worker| merged.merge(&worker.latencies));
        merged
    }

    /// How far apart the workers started: last start minus first start.
    pub fn start_skew(&self) -> Nanos {
        spread(self.workers.iter().map(|worker| worker.started))
    }

    /// How far apart the workers were done counting: last end minus first end.
    pub fn end_skew(&self) -> Nanos {
        spread(self.workers.iter().map(|worker| worker.started + worker.loop_time))
    }
}

fn spread(instants: impl Iterator<Item = Nanos> + Clone) -> Nanos {
    instants.clone().max().unwrap_or_default() - instants.min().unwrap_or_default()
}

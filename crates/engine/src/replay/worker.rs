//! Worker that runs a client of a replay: preparation, loop, and result.

use model::{
    Nanos, Ops,
    phase::{Latencies, ReplayOp, Until, WorkerResult},
};
use rustix::process::{Pid, getppid, test_kill_process};

use super::{
    Program, ReplayPhase,
    calls::Refused,
    client::{Client, Outcome},
    program::Op,
    times::Times,
};
use crate::{
    clock::now,
    counter::{Counter, Limits},
    driver::{Seat, WorkerLoop},
    error::{Failure, Fault},
    io::Kind,
    pace::Pacer,
};

/// Prepares names and memory, and runs the loop in the calling thread.
pub(super) fn perform(phase: &ReplayPhase<'_>, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
    let ReplayPhase { replay, program, directory, made } = *phase;
    let (time, left) = match replay.until {
        Until::Replayed(times) => (None, times),
        Until::Time { ramp, run } => (Some((ramp, run)), u64::MAX),
    };
    let limits = Limits { time, ticks: true, ..Limits::default() };
    let counter = Counter::new(seat.control, seat.slot, limits, Latencies::default());
    let run = Run {
        program,
        client: Client::new(replay, program, seat.worker, directory, made)?,
        pacer: pacer(phase),
        left,
        unexpected: 0,
        times: Times::new(),
        parent: if replay.parent_check { getppid() } else { None },
        seat,
    };
    seat.run(run, counter)
}

/// Start times of a client's operations.
fn pacer(ReplayPhase { replay, program, .. }: &ReplayPhase<'_>) -> Pacer {
    match replay.rate {
        Some(rate) => Pacer::limit(rate),
        None if replay.use_timestamps => {
            let last = program.ops().iter().filter_map(Op::due).max().unwrap_or(0);
            Pacer::timestamps(micros(last))
        }
        None => Pacer::Free,
    }
}

/// Converts microseconds.
fn micros(micros: u64) -> Nanos {
    Nanos(micros.saturating_mul(1000).min(u64::MAX / 2))
}

/// Prepared client. Each call of `advance` runs the loadfile once.
struct Run<'a> {
    program: &'a Program,
    client: Client,
    pacer: Pacer,
    // Repetitions of the loadfile that are left.
    left: u64,
    unexpected: u64,
    times: Times,
    // Process to check before each operation, if any.
    parent: Option<Pid>,
    seat: &'a Seat<'a>,
}

impl WorkerLoop for Run<'_> {
    type Error = Failure;

    fn start(&mut self) -> Nanos {
        let clock = now();
        self.pacer.start(clock, 0, 1);
        clock
    }

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        self.left -= 1;
        if !self.once(counter)? || self.left == 0 {
            return Ok(false);
        }
        self.client.rewind();
        self.pacer.rewind();
        Ok(true)
    }

    fn report(self, result: &mut WorkerResult) -> Result<(), Failure> {
        result.unexpected = Ops(self.unexpected);
        result.latencies = Latencies {
            read: self.times.merged(|kind| !kind.changes()),
            write: self.times.merged(ReplayOp::changes),
            by_kind: self.times.by_kind(),
            ..Latencies::default()
        };
        Ok(())
    }
}

impl Run<'_> {
    /// Runs the loadfile once. Returns false if the time has elapsed.
    fn once(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        let program = self.program;
        let free = self.pacer.free() && self.parent.is_none();
        for (index, op) in program.ops().iter().enumerate() {
            let mut begun = counter.clock;
            if !free {
                match self.begin(counter, op)? {
                    Some(instant) => begun = instant,
                    None => return Ok(false),
                }
            }
            let kind = op.kind();
            let Outcome { expected, bytes } = if kind == ReplayOp::Sleep {
                counter.nap(now() + micros(op.offset)).map_err(|fault| self.failure(fault))?;
                Outcome { expected: true, bytes: 0 }
            } else {
                match self.client.execute(kind, op) {
                    Ok(outcome) => outcome,
                    Err(refused) => return Err(self.refused(refused, index)),
                }
            };
            counter.at(now()).map_err(|fault| self.failure(fault))?;
            let class = if kind.changes() { Kind::Write } else { Kind::Read };
            if counter.tally(class, 1, bytes) {
                self.unexpected += u64::from(!expected);
                self.times.record(kind, counter.clock.0.saturating_sub(begun.0));
            }
            counter.publish();
            counter.ramp();
            if counter.over {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for the scheduled start of an operation, and returns the start of its latency; `None`
    /// if the time limit expires first.
    fn begin(&mut self, counter: &mut Counter<'_>, op: &Op) -> Result<Option<Nanos>, Failure> {
        let stamp = op.due().map(micros);
        let due = self.pacer.due_stamped(counter.clock, moves(op), stamp);
        if due > counter.clock && !counter.wait(due).map_err(|fault| self.failure(fault))? {
            return Ok(None);
        }
        if let Some(parent) = self.parent {
            // The result is irrelevant; the call is made for its cost.
            let _ = test_kill_process(parent);
        }
        let begun = now();
        Ok(Some(if self.pacer.open() { due.min(begun) } else { begun }))
    }

    #[cold]
    fn refused(&self, Refused { operation, errno }: Refused, index: usize) -> Failure {
        let line = self.program.line(index);
        let fault = Fault::Line { operation, line, errno: errno.raw_os_error() };
        Failure { fault, path: self.client.path(&self.program.ops()[index]) }
    }

    #[cold]
    fn failure(&self, fault: Fault) -> Failure {
        self.seat.failure(fault)
    }
}

/// Bytes that an operation requests to read or write.
fn moves(op: &Op) -> usize {
    let moves = matches!(op.kind(), ReplayOp::ReadX | ReplayOp::WriteX);
    if moves { op.size as usize } else { 0 }
}

//! Client of a replay: from names and memory to the end.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use model::{
    Nanos,
    phase::{Replay, ReplayOp, Until, WorkerKind, WorkerResult},
};
use rustix::process::{Pid, getppid, test_kill_process};

use super::{
    Program,
    calls::Refused,
    client::{Client, Outcome},
    count::{Count, Done},
    pace::{Pacer, micros, wait},
    program::Op,
    root::{self, Identity},
};
use crate::{
    affinity,
    barrier::{ABORT, ControlBlock, WorkerSlot},
    clock::{Usage, now},
    error::Fault,
    tree::Failure,
};

/// Does the work of one client in the calling thread, and aborts the others if it fails.
pub(crate) fn perform(
    replay: &Replay,
    program: &Program,
    worker: u32,
    directory: &Path,
    made: Identity,
    control: &ControlBlock,
) -> Result<WorkerResult, Failure> {
    let result = timeline(replay, program, worker, directory, made, control);
    match &result {
        Ok(_) | Err(Failure { fault: Fault::Aborted, .. }) => {}
        Err(_) => control.fail(worker),
    }
    result
}

/// names, memory │ barrier │ loop.
fn timeline(
    replay: &Replay,
    program: &Program,
    worker: u32,
    directory: &Path,
    made: Identity,
    control: &ControlBlock,
) -> Result<WorkerResult, Failure> {
    let path = root::path(directory);
    let at_root = |fault| Failure { fault, path: path.clone() };
    affinity::apply(replay.workers, worker).map_err(at_root)?;
    if replay.workers.kind == WorkerKind::Thread {
        affinity::own_descriptors();
    }
    let mut run = Run {
        program,
        client: Client::new(replay, program, worker, directory, made)?,
        pacer: Pacer::new(replay, program),
        count: Count::new(replay.until),
        parent: if replay.parent_check { getppid() } else { None },
        slot: control.slot(worker),
        signal: control.signal(),
        moved: 0,
        done: 0,
    };
    control.arrive().map_err(at_root)?;

    let before = Usage::of_this_thread();
    run.all(replay.until)?;
    let usage = Usage::of_this_thread().since(before);
    control.slot(worker).end(run.count.clock);
    Ok(run.count.finish(worker, usage))
}

/// Loop of a client.
struct Run<'a> {
    program: &'a Program,
    client: Client,
    pacer: Pacer,
    count: Count,
    // Process to check before each operation, if any.
    parent: Option<Pid>,
    slot: &'a WorkerSlot,
    signal: &'a AtomicU32,
    moved: u64,
    done: u64,
}

impl Run<'_> {
    /// Runs the loadfile as many times as the replay requests.
    fn all(&mut self, until: Until) -> Result<(), Failure> {
        let mut left = match until {
            Until::Replayed(times) => times,
            Until::Time { .. } => u64::MAX,
        };
        let clock = now();
        self.count.start(clock);
        self.pacer.start(clock);
        while self.once()? {
            left -= 1;
            if left == 0 {
                break;
            }
            self.client.rewind();
            self.pacer.rewind();
        }
        Ok(())
    }

    /// Runs the loadfile once. Returns false if the time has elapsed.
    fn once(&mut self) -> Result<bool, Failure> {
        let program = self.program;
        let free = self.pacer.free() && self.parent.is_none();
        for (index, op) in program.ops().iter().enumerate() {
            let mut begun = self.count.clock;
            if !free {
                match self.begin(op)? {
                    Some(instant) => begun = instant,
                    None => return Ok(false),
                }
            }
            let kind = op.kind();
            let Outcome { expected, bytes } = if kind == ReplayOp::Sleep {
                Outcome { expected: self.sleep(op)?, bytes: 0 }
            } else {
                match self.client.execute(kind, op) {
                    Ok(outcome) => outcome,
                    Err(refused) => return Err(self.failed(refused, index)),
                }
            };
            let clock = now();
            self.moved += bytes;
            self.done += 1;
            self.slot.bytes.store(self.moved, Relaxed);
            self.slot.done.store(self.done, Relaxed);
            if self.signal.load(Relaxed) & ABORT != 0 {
                return Err(self.aborted());
            }
            if !self.count.add(Done { kind, begun, clock, bytes, expected }) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits for the scheduled start of an operation, and returns the start of its latency; `None`
    /// if the time elapses before.
    fn begin(&mut self, op: &Op) -> Result<Option<Nanos>, Failure> {
        let due = self.pacer.due(op, self.count.clock);
        if due > self.count.clock {
            if !wait(due.min(self.count.deadline()), self.signal) {
                return Err(self.aborted());
            }
            if !self.count.idle(now()) {
                return Ok(None);
            }
        }
        if let Some(parent) = self.parent {
            // The result is irrelevant; the call is made for its cost.
            let _ = test_kill_process(parent);
        }
        let begun = now();
        self.pacer.begun(begun, moves(op.kind(), op));
        Ok(Some(self.pacer.counts_from(due, begun)))
    }

    fn sleep(&mut self, op: &Op) -> Result<bool, Failure> {
        let until = now() + micros(op.offset);
        if wait(until.min(self.count.deadline()), self.signal) {
            return Ok(true);
        }
        Err(self.aborted())
    }

    #[cold]
    fn failed(&self, Refused { operation, errno }: Refused, index: usize) -> Failure {
        let line = self.program.line(index);
        let fault = Fault::Line { operation, line, errno: errno.raw_os_error() };
        Failure { fault, path: self.client.path(&self.program.ops()[index]) }
    }

    #[cold]
    fn aborted(&self) -> Failure {
        Failure { fault: Fault::Aborted, path: self.client.root().to_path_buf() }
    }
}

/// Bytes that an operation requests to read or write.
fn moves(kind: ReplayOp, op: &Op) -> u64 {
    if matches!(kind, ReplayOp::ReadX | ReplayOp::WriteX) { u64::from(op.size) } else { 0 }
}

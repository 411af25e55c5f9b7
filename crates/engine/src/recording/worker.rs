//! Worker of a replay: waits, pauses, operations, and their times.
#![expect(clippy::wildcard_enum_match_arm, reason = "the other calls need no special handling")]

use std::{hint, num::NonZeroUsize, os::fd::AsRawFd, path::Path, time::Duration};

use model::{
    Histogram, Nanos, Ops,
    phase::{FileCall, Latencies, TraceTiming, WorkerResult},
};
use rustix::process::{getegid, geteuid};
use trace::{Step, Wait};

use super::{
    TracePhase,
    calls::{BUFFER, Caller, Outcome},
    files,
    outcome::{agrees, is_fatal, is_unsupported},
    raw::enter,
};
use crate::{
    affinity::{own_descriptors, wake_exactly},
    clock::now,
    counter::{Counter, Limits},
    driver::{Seat, WorkerLoop},
    error::{Failure, Fault, Memory, Operation},
    io::Kind,
    mapping::Pages,
};

/// Loads of a counter before a worker sleeps.
const SPINS: u32 = 100;

/// Longest sleep between two checks for an interruption.
const NAP: Duration = Duration::from_millis(50);

/// Longest time without progress of any worker that this one waits for.
const STUCK: Nanos = Nanos(60_000_000_000);

/// Longest pause that a worker spins through.
const SPUN: Nanos = Nanos(100_000);

/// Differences that a worker keeps for the summary.
const KEPT: usize = 4096;

/// Prepares memory and runs the operations of a worker.
pub(super) fn perform(phase: &TracePhase<'_>, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
    let steps = &phase.program.workers;
    let steps = steps.get(seat.worker as usize).map_or(&[][..], Vec::as_slice);
    let largest = usize::try_from(phase.program.transfer).unwrap_or(BUFFER).clamp(4096, BUFFER);
    let length = largest + (1 << 20);
    let nonzero = NonZeroUsize::new(length).unwrap_or(NonZeroUsize::MIN);
    let mut pages = Pages::new(nonzero).map_err(|errno| {
        let (bytes, errno) = (length as u64, errno.raw_os_error());
        seat.failure(Fault::Memory { what: Memory::Buffers, bytes, errno })
    })?;
    let buffer = pages.bytes_mut();
    buffer.copy_from_slice(&files::data(phase.replay.seed, seat.worker, length));
    wake_exactly();
    if phase.has_one_worker() {
        own_descriptors();
    }
    let root = files::open_root(phase.path)?;
    let descriptors = files::open_directory(Path::new("/proc/thread-self/fd"))?;
    enter(root.as_raw_fd(), phase.confined).map_err(|errno| {
        seat.failure(Fault::Os { operation: Operation::Open, offset: None, errno })
    })?;
    let owner = (geteuid().as_raw(), getegid().as_raw());
    let mut times: Vec<Option<Box<Histogram>>> = vec![None; FileCall::ALL.len()];
    for step in steps {
        times[step.op.call as usize].get_or_insert_with(|| Box::new(Histogram::new()));
    }
    let run = Run {
        phase,
        seat,
        steps,
        next: 0,
        caller: Caller { phase, root, descriptors, buffer, owner, copied: 0 },
        times,
        unexpected: 0,
        unsupported: 0,
        not_done: 0,
        differences: Vec::with_capacity(KEPT),
        started: Nanos(0),
    };
    let counter = Counter::new(seat.control, seat.slot, Limits::default(), Latencies::default());
    let result = seat.run(run, counter);
    if phase.has_one_worker() {
        phase.close();
    }
    result
}

struct Run<'a> {
    phase: &'a TracePhase<'a>,
    seat: &'a Seat<'a>,
    steps: &'a [Step],
    next: usize,
    caller: Caller<'a>,
    /// Latencies by the number of the call.
    times: Vec<Option<Box<Histogram>>>,
    unexpected: u64,
    /// Those of them that the filesystem does not support.
    unsupported: u64,
    not_done: u64,
    /// Index of a step, and its result.
    differences: Vec<(usize, i64)>,
    started: Nanos,
}

impl WorkerLoop for Run<'_> {
    type Error = Failure;

    fn start(&mut self) -> Nanos {
        self.started = now();
        self.started
    }

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        let Some(step) = self.steps.get(self.next) else { return Ok(false) };
        let begun = self.begin(step, counter)?;
        let outcome = self.caller.execute(step);
        counter.at(now()).map_err(|fault| self.seat.failure(fault))?;
        let op = &step.op;
        let class = if op.call.changes() { Kind::Write } else { Kind::Read };
        match outcome {
            Outcome::Result(result) => {
                if !agrees(op, result) {
                    self.differs(step, result)?;
                }
                let bytes = if result > 0 { op.bytes().min(result.unsigned_abs()) } else { 0 };
                if counter.tally(class, 1, bytes)
                    && let Some(times) = &mut self.times[op.call as usize]
                {
                    times.record(counter.clock.0.saturating_sub(begun.0));
                }
            }
            Outcome::NotDone => self.not_done += 1,
            Outcome::LeftOut => {}
        }
        self.next += 1;
        self.publish();
        counter.publish();
        Ok(true)
    }

    fn report(self, result: &mut WorkerResult) -> Result<(), Failure> {
        result.unexpected = Ops(self.unexpected + self.not_done);
        let merged = |changes: bool| {
            let mut all = Histogram::new();
            let calls = FileCall::ALL.iter().zip(&self.times);
            for (_, times) in calls.filter(|(call, _)| call.changes() == changes) {
                times.iter().for_each(|own| all.merge(own));
            }
            all
        };
        result.latencies =
            Latencies { read: merged(false), write: merged(true), ..Latencies::default() };
        let calls = FileCall::ALL.iter().copied().zip(self.times);
        result.latencies.by_call = calls
            .filter_map(|(call, times)| Some((call, *times?)))
            .filter(|(_, times)| times.count() > 0)
            .collect();
        let mut all = self.phase.differences.lock().unwrap_or_else(|it| it.into_inner());
        for (index, got) in self.differences {
            all.add(&self.steps[index].op, got);
        }
        all.not_done += self.not_done;
        all.unsupported += self.unsupported;
        all.copied += self.caller.copied;
        Ok(())
    }
}

impl Run<'_> {
    /// Waits and pauses before an operation. Returns the begin of its latency.
    fn begin(&mut self, step: &Step, counter: &mut Counter<'_>) -> Result<Nanos, Failure> {
        let mut begun = counter.clock;
        if step.waits > 0 {
            let first = step.first_wait as usize;
            for wait in &self.phase.program.waits[first..first + step.waits as usize] {
                self.wait(*wait, counter)?;
            }
            begun = now();
        }
        let pause = match self.phase.replay.timing {
            TraceTiming::Asap => return Ok(begun),
            TraceTiming::Think => begun + Nanos(step.op.think),
            TraceTiming::Recorded => self.started + Nanos(step.op.begin),
        };
        let late = pause <= begun;
        if pause > begun {
            if pause - begun > SPUN {
                counter.wait(pause).map_err(|fault| self.seat.failure(fault))?;
            }
            while now() < pause {
                hint::spin_loop();
            }
        }
        Ok(match self.phase.replay.timing {
            // A delay counts as latency.
            TraceTiming::Recorded if late => pause.max(self.started),
            _ => now(),
        })
    }

    /// Waits until another worker has completed a number of operations.
    fn wait(&self, wait: Wait, counter: &Counter<'_>) -> Result<(), Failure> {
        let done = &self.phase.done[wait.worker as usize];
        for _ in 0..SPINS {
            if done.count() >= wait.done {
                return Ok(());
            }
            hint::spin_loop();
        }
        // Of all workers, because the awaited one may itself wait for another.
        let progress = || -> u64 { self.phase.done.iter().map(|it| u64::from(it.count())).sum() };
        let (mut since, mut last) = (now(), progress());
        while !done.sleep(wait.done, NAP) {
            counter.check().map_err(|fault| self.seat.failure(fault))?;
            let (clock, all) = (now(), progress());
            if all != last {
                (last, since) = (all, clock);
            } else if clock - since > STUCK && self.is_stuck() {
                let (operation, errno) = (Operation::Wait, libc::ETIMEDOUT);
                return Err(self.seat.failure(Fault::Os { operation, offset: None, errno }));
            }
        }
        Ok(())
    }

    /// True if no pause is longer than the limit, so that other workers must have ended.
    fn is_stuck(&self) -> bool {
        self.phase.replay.timing == TraceTiming::Asap
    }

    /// Publishes that an operation is done.
    fn publish(&self) {
        if self.phase.has_one_worker() {
            return;
        }
        let count = u32::try_from(self.next).unwrap_or(u32::MAX);
        self.phase.done[self.seat.worker as usize].publish(count);
    }

    #[cold]
    fn differs(&mut self, step: &Step, got: i64) -> Result<(), Failure> {
        if is_fatal(&step.op, got) {
            let errno = i32::try_from(-got).unwrap_or(libc::EIO);
            let operation = operation(step.op.call);
            return Err(self.seat.failure(Fault::Os { operation, offset: None, errno }));
        }
        self.unexpected += 1;
        self.unsupported += u64::from(is_unsupported(got) || is_unsupported(step.op.result));
        if self.differences.len() < KEPT {
            self.differences.push((self.next, got));
        }
        Ok(())
    }
}

/// Name of a call in errors.
fn operation(call: FileCall) -> Operation {
    match call {
        FileCall::Open | FileCall::Chdir => Operation::Open,
        FileCall::Mkdir => Operation::MakeDirectory,
        FileCall::Mknod => Operation::MakeNode,
        FileCall::Rename => Operation::Rename,
        FileCall::Link => Operation::Link,
        FileCall::Symlink => Operation::SymbolicLink,
        FileCall::Fsync | FileCall::Fdatasync | FileCall::Syncfs | FileCall::SyncRange => {
            Operation::Sync
        }
        FileCall::Read | FileCall::Pread => Operation::Read,
        _ => Operation::Write,
    }
}

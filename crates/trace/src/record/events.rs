//! Events of traced programs: stops at calls, new threads, executed programs, and ends.

use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
};

use rustix::process::{Pid, Signal, kill_process};
use sys::ptrace::{self, ARCHITECTURE, Change, Resume, Stop, StopCost, Syscall};

use super::{Recorder, memory::Stopped, pin::Pin, process::Clock, tasks::Tasks};
use crate::TraceError;

/// Results of calls that the kernel restarts or interrupts: `ERESTARTSYS` to
/// `ERESTART_RESTARTBLOCK` (include/linux/errno.h).
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// Recording in progress.
pub(super) struct Session {
    pub(super) tasks: Tasks,
    /// New threads that stopped before their creation was reported.
    early: Vec<i32>,
    /// Number of calls that were stopped.
    calls: u64,
    /// Those of them of threads on the CPU of the recorder.
    calls_pinned: u64,
    /// CPU time of the recorded calls, without that of the stops.
    calls_cpu: u64,
    costs: StopCosts,
    pin: Pin,
    waiting: Option<fn(usize)>,
}

/// Name of the program of a process.
pub(super) fn program_name(process: i32) -> String {
    let name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

/// Costs of the stops of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopCosts {
    /// On the CPU of the recorder.
    pinned: StopCost,
    /// On another CPU.
    apart: StopCost,
}

impl StopCosts {
    /// Measures the costs.
    pub(super) fn measure(filter: &[libc::sock_filter]) -> io::Result<Self> {
        let apart = ptrace::stop_cost(filter, libc::SYS_read, |_| ())?;
        let mut pin = Pin::default();
        let pinned = ptrace::stop_cost(filter, libc::SYS_read, |tid| pin.called(tid))?;
        Ok(Self { pinned, apart })
    }

    fn of(&self, pinned: bool) -> StopCost {
        if pinned { self.pinned } else { self.apart }
    }

    /// Mean of a number of calls, some of them pinned.
    fn mean(&self, pinned: u64, all: u64) -> StopCost {
        let [rest, all] = [all.saturating_sub(pinned), all.max(1)].map(u128::from);
        let mean = |part: fn(&StopCost) -> u64| {
            let sum = u128::from(part(&self.pinned)) * u128::from(pinned)
                + u128::from(part(&self.apart)) * rest;
            u64::try_from(sum / all).unwrap_or(u64::MAX)
        };
        StopCost {
            cpu: mean(|it| it.cpu),
            call: mean(|it| it.call),
            elapsed: mean(|it| it.elapsed),
        }
    }
}

impl Session {
    pub(super) fn new(recorder: Recorder, costs: StopCosts, waiting: Option<fn(usize)>) -> Self {
        let (early, pin) = (Vec::new(), Pin::default());
        Self {
            tasks: Tasks { recorder, tracees: HashMap::new(), ended: HashMap::new() },
            early,
            calls: 0,
            calls_pinned: 0,
            calls_cpu: 0,
            costs,
            pin,
            waiting,
        }
    }

    /// Records until all traced programs have ended. Returns the exit status of the first.
    pub(super) fn run(&mut self, child: i32) -> Result<i32, TraceError> {
        let mut status = None;
        resume(child, Resume::Run, 0)?;
        while let Some((tid, change)) = ptrace::wait().map_err(TraceError::Trace)? {
            match change {
                Change::Exited(code) | Change::Killed(code) => {
                    self.pin.ended(tid);
                    self.tasks.ended(tid);
                    if tid == child {
                        let killed = matches!(change, Change::Killed(_));
                        status = Some(if killed { 128 + code } else { code });
                        if let (Some(waiting), 1..) = (self.waiting, self.processes().len()) {
                            waiting(self.processes().len());
                        }
                    }
                }
                Change::Stopped(stop) => self.stopped(tid, stop)?,
                Change::Asked(signal) => {
                    if status.is_some() || signal == libc::SIGTERM {
                        self.kill();
                    }
                }
            }
        }
        let recorder = &mut self.tasks.recorder;
        recorder.add_fact("calls_stopped", self.calls);
        let cost = self.costs.mean(self.calls_pinned, self.calls);
        recorder.add_fact("stop_cost_ns", cost.cpu);
        recorder.add_fact("call_cost_ns", cost.elapsed);
        recorder.add_fact("calls_cpu_ns", self.calls_cpu);
        Ok(status.unwrap_or(0))
    }

    /// Processes that run.
    fn processes(&self) -> BTreeSet<i32> {
        self.tasks.tracees.values().map(|tracee| tracee.process).collect()
    }

    /// Kills all traced processes.
    fn kill(&mut self) {
        let processes = self.processes();
        if !processes.is_empty() {
            self.tasks.recorder.add_fact("processes_killed", processes.len() as u64);
        }
        for process in processes.into_iter().chain(self.early.drain(..)) {
            if let Some(process) = Pid::from_raw(process) {
                // It may have ended.
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }

    fn stopped(&mut self, tid: i32, stop: Stop) -> Result<(), TraceError> {
        match stop {
            Stop::Entry => self.entry(tid),
            Stop::Exit => self.exit(tid),
            Stop::Created(child) => {
                self.pin.created(tid, child);
                let name = |process| program_name(process);
                self.tasks.created(tid, child, name, Clock::of_task);
                if let Some(index) = self.early.iter().position(|early| *early == child) {
                    self.early.swap_remove(index);
                    resume(child, Resume::Run, 0)?;
                }
                resume(tid, Resume::Run, 0)
            }
            Stop::Executed(former) => {
                if former != tid && former != 0 {
                    self.pin.renumbered(former, tid);
                }
                self.tasks.executed(tid, former, program_name(tid));
                resume(tid, Resume::Run, 0)
            }
            Stop::New if !self.tasks.tracees.contains_key(&tid) => {
                self.early.push(tid);
                Ok(())
            }
            Stop::New => resume(tid, Resume::Run, 0),
            Stop::Group => resume(tid, Resume::Listen, 0),
            Stop::Signal(signal) => resume(tid, Resume::Run, signal),
        }
    }

    fn entry(&mut self, tid: i32) -> Result<(), TraceError> {
        let syscall = match ptrace::syscall(tid) {
            Ok(syscall) => syscall,
            Err(error) => return gone(error),
        };
        // Interface x32 has its own numbers.
        if syscall.arch != ARCHITECTURE || syscall.number & 0x4000_0000 != 0 {
            return Err(TraceError::Trace(io::Error::other("a program has 32 bits")));
        }
        let Some(mut tracee) = self.tasks.tracees.remove(&tid) else {
            return resume(tid, Resume::Run, 0);
        };
        let cost = self.costs.of(self.pin.holds(tid)).cpu;
        self.pin.called(tid);
        let begin = self.tasks.recorder.now();
        self.calls += 1;
        self.calls_pinned += u64::from(self.pin.holds(tid));
        self.watch(tid, &syscall);
        let memory = Stopped { tid, process: tracee.process };
        let mut pending = self.tasks.entry(&mut tracee, &memory, &syscall);
        let how = if pending.is_some() { Resume::UntilExit } else { Resume::Run };
        match pending.as_mut().and_then(|pending| pending.op.as_mut()) {
            Some(op) => (op.begin, op.think) = (begin, tracee.think(cost)),
            None => tracee.skipped += 1,
        }
        tracee.pending = pending;
        self.tasks.tracees.insert(tid, tracee);
        resume(tid, how, 0)
    }

    /// Denies asynchronous interfaces, and hides the pinning of threads.
    fn watch(&mut self, tid: i32, syscall: &Syscall) {
        match syscall.number.cast_signed() {
            libc::SYS_io_uring_setup | libc::SYS_io_setup => {
                self.tasks.recorder.add_fact("rings_denied", 1);
                // The thread was killed if this fails.
                let _ = ptrace::deny(tid);
            }
            libc::SYS_sched_getaffinity | libc::SYS_sched_setaffinity => self.pin.release(),
            _ => {}
        }
    }

    fn exit(&mut self, tid: i32) -> Result<(), TraceError> {
        let result = match ptrace::syscall(tid) {
            Ok(syscall) => syscall.result,
            Err(error) => return gone(error),
        };
        let end = self.tasks.recorder.now();
        if let Some(mut tracee) = self.tasks.tracees.remove(&tid) {
            if let Some(pending) = tracee.pending.take() {
                let optional = pending.is_optional();
                let operation = pending.op.is_some();
                let count = self.tasks.recorder.operations(tracee.task);
                if !RESTARTS.contains(&result) {
                    let memory = Stopped { tid, process: tracee.process };
                    self.tasks.complete(&tracee, &memory, pending, (result, end));
                }
                if optional && self.tasks.recorder.operations(tracee.task) == count {
                    // The pause continues.
                    tracee.skipped = tracee.skipped_before + 1;
                } else if operation {
                    let cost = self.costs.of(self.pin.holds(tid)).call;
                    let time = tracee.ended().saturating_sub(cost);
                    self.calls_cpu = self.calls_cpu.saturating_add(time);
                }
            }
            self.tasks.tracees.insert(tid, tracee);
        }
        resume(tid, Resume::Run, 0)
    }
}

/// Resumes a thread, unless it was killed: its end is reported by a later event.
fn resume(tid: i32, how: Resume, signal: i32) -> Result<(), TraceError> {
    ptrace::resume(tid, how, signal).or_else(gone)
}

fn gone(error: io::Error) -> Result<(), TraceError> {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(TraceError::Trace(error)),
    }
}

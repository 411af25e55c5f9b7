//! Events of traced programs: calls, new tasks, executed programs, and ends.

use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
};

use model::phase::FileCall;
use rustix::process::{Pid, Signal, kill_process};
use sys::ptrace::{self, ARCHITECTURE, Change, Resume, Stop, Syscall};

use super::{
    Recorder,
    entry::{self, Pending, Then},
    memory,
    pin::Pin,
    process::{Held, Tracee},
};
use crate::{NONE, Op, TraceError};

/// Flags of clone(2).
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_THREAD: u64 = 0x1_0000;

/// Results of calls that the kernel restarts or interrupts: `ERESTARTSYS` to
/// `ERESTART_RESTARTBLOCK` (include/linux/errno.h).
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// Recording in progress.
pub(super) struct Session {
    pub(super) recorder: Recorder,
    pub(super) tracees: HashMap<i32, Tracee>,
    /// New threads that stopped before their creation was reported.
    early: Vec<i32>,
    pin: Pin,
    waiting: Option<fn(usize)>,
}

/// Name of the program of a process.
pub(super) fn program_name(process: i32) -> String {
    let name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

impl Session {
    pub(super) fn new(recorder: Recorder, waiting: Option<fn(usize)>) -> Self {
        let (tracees, early, pin) = (HashMap::new(), Vec::new(), Pin::default());
        Self { recorder, tracees, early, pin, waiting }
    }

    /// Records until all traced programs have ended. Returns the exit status of the first.
    pub(super) fn run(&mut self, child: i32) -> Result<i32, TraceError> {
        let mut status = None;
        resume(child, Resume::Run, 0)?;
        while let Some((tid, change)) = ptrace::wait().map_err(TraceError::Trace)? {
            match change {
                Change::Exited(code) | Change::Killed(code) => {
                    self.pin.ended(tid);
                    self.ended(tid);
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
        Ok(status.unwrap_or(0))
    }

    /// Processes that run.
    fn processes(&self) -> BTreeSet<i32> {
        self.tracees.values().map(|tracee| tracee.process).collect()
    }

    /// Kills all traced processes.
    fn kill(&mut self) {
        let processes = self.processes();
        if !processes.is_empty() {
            self.recorder.add_fact("processes_killed", processes.len() as u64);
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
                self.created(tid, child)?;
                resume(tid, Resume::Run, 0)
            }
            Stop::Executed(former) => {
                self.executed(tid, former);
                resume(tid, Resume::Run, 0)
            }
            Stop::New if !self.tracees.contains_key(&tid) => {
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
        let Some(mut tracee) = self.tracees.remove(&tid) else {
            return resume(tid, Resume::Run, 0);
        };
        self.pin.called(tid);
        let begin = self.recorder.now();
        self.recorder.add_fact("calls_stopped", 1);
        let mut pending = self
            .special(tid, &mut tracee, &syscall)
            .unwrap_or_else(|| entry::decode(&mut self.recorder, &tracee, tid, &syscall));
        let how = if pending.is_some() { Resume::UntilExit } else { Resume::Run };
        match pending.as_mut().and_then(|pending| pending.op.as_mut()) {
            Some(op) => (op.begin, op.think) = (begin, tracee.think(self.recorder.stop_cost.cpu)),
            None => tracee.skipped += 1,
        }
        tracee.pending = pending;
        self.tracees.insert(tid, tracee);
        resume(tid, how, 0)
    }

    /// Handles calls that close descriptors, create tasks, or are not recorded. Returns `None` for
    /// all other calls.
    fn special(
        &mut self,
        tid: i32,
        tracee: &mut Tracee,
        syscall: &Syscall,
    ) -> Option<Option<Pending>> {
        let Syscall { args, .. } = *syscall;
        let slot = |number: u64| {
            let number = (number & 0xffff_ffff) as u32 as i32;
            tracee.table.borrow().get(&number).copied()
        };
        match syscall.number.cast_signed() {
            libc::SYS_close => {
                let number = (args[0] & 0xffff_ffff) as u32 as i32;
                let held = tracee.table.borrow_mut().remove(&number);
                let Some(held) = held else { return Some(None) };
                if self.recorder.slots.drop(held.slot) {
                    let op = Op { fd: held.slot, ..Op::new(FileCall::Close) };
                    return Some(Some(Pending { op: Some(op), then: Then::Nothing }));
                }
                self.recorder.leave_out("close of a descriptor that another process has open");
            }
            libc::SYS_close_range => {
                const CLOEXEC: u64 = 4;
                let range = args[0]..=args[1];
                let numbers: Vec<i32> = tracee.table.borrow().keys().copied().collect();
                for number in numbers {
                    if !range.contains(&u64::from(number.cast_unsigned())) {
                        continue;
                    }
                    if args[2] & CLOEXEC != 0 {
                        if let Some(held) = tracee.table.borrow_mut().get_mut(&number) {
                            held.cloexec = true;
                        }
                        continue;
                    }
                    let held = tracee.table.borrow_mut().remove(&number);
                    if let Some(held) = held {
                        self.release(tracee, held.slot);
                    }
                }
            }
            libc::SYS_io_uring_setup | libc::SYS_io_setup => {
                self.recorder.add_fact("rings_denied", 1);
                // The thread was killed if this fails.
                let _ = ptrace::deny(tid);
            }
            libc::SYS_sched_getaffinity | libc::SYS_sched_setaffinity => self.pin.release(),
            libc::SYS_clone => tracee.clone_flags = args[0],
            libc::SYS_clone3 => tracee.clone_flags = memory::number(tid, args[0]).unwrap_or(0),
            libc::SYS_unshare => {
                if args[0] & CLONE_FILES != 0 {
                    tracee.table = self.recorder.slots.copy(&tracee.table);
                }
                if args[0] & CLONE_FS != 0 {
                    tracee.place = self.recorder.slots.copy_place(&tracee.place);
                }
            }
            libc::SYS_sendfile if slot(args[0]).or(slot(args[1])).is_some() => {
                self.recorder.leave_out("sendfile");
            }
            libc::SYS_splice if slot(args[0]).or(slot(args[2])).is_some() => {
                self.recorder.leave_out("splice");
            }
            libc::SYS_getdents if slot(args[0]).is_some() => self.recorder.leave_out("getdents"),
            libc::SYS_ioctl if slot(args[0]).is_some() => self.recorder.leave_out("FICLONE"),
            libc::SYS_open_by_handle_at => self.recorder.leave_out("open_by_handle_at"),
            libc::SYS_sendfile | libc::SYS_splice | libc::SYS_getdents | libc::SYS_ioctl => {}
            _ => return None,
        }
        Some(None)
    }

    fn exit(&mut self, tid: i32) -> Result<(), TraceError> {
        let result = match ptrace::syscall(tid) {
            Ok(syscall) => syscall.result,
            Err(error) => return gone(error),
        };
        let end = self.recorder.now();
        if let Some(mut tracee) = self.tracees.remove(&tid) {
            if let Some(pending) = tracee.pending.take() {
                let operation = pending.op.is_some();
                if !RESTARTS.contains(&result) {
                    self.complete(tid, &tracee, pending, result, end);
                }
                if operation {
                    tracee.cpu = tracee.cpu_time();
                }
            }
            self.tracees.insert(tid, tracee);
        }
        resume(tid, Resume::Run, 0)
    }

    /// Records a call that returned.
    fn complete(&mut self, tid: i32, tracee: &Tracee, pending: Pending, result: i64, end: u64) {
        let Pending { op, then } = pending;
        let mut op = op.map(|op| Op { result, length: end.saturating_sub(op.begin), ..op });
        let number = i32::try_from(result).unwrap_or(-1);
        match then {
            Then::Nothing => {}
            Then::Bind { cloexec, path } => {
                if let (Some(op), true) = (&mut op, number >= 0) {
                    op.opened = self.recorder.slots.open(path);
                    let held = Held { slot: op.opened, cloexec };
                    self.bind(tracee, number, held);
                }
            }
            Then::Duplicate { recorded, cloexec } if number >= 0 => {
                let replaced = tracee.table.borrow_mut().remove(&number);
                if let Some(held) = replaced {
                    self.release(tracee, held.slot);
                    // The release ended later than the call.
                    if let Some(op) = &mut op {
                        (op.begin, op.length) = (self.recorder.now(), 0);
                    }
                }
                if let (Some(op), true) = (&mut op, recorded) {
                    let path = self.recorder.slots.path(op.fd).map(<[u8]>::to_vec);
                    op.opened = self.recorder.slots.open(path.unwrap_or_default());
                    tracee.table.borrow_mut().insert(number, Held { slot: op.opened, cloexec });
                }
            }
            Then::Duplicate { .. } => {}
            Then::Chdir => op = self.chdir(tid, tracee, op, result),
            Then::Umask(mask) => tracee.place.borrow_mut().umask = mask,
        }
        if let Some(op) = op {
            self.recorder.push(tracee.task, op);
        }
    }

    /// Binds a descriptor number. A number that is still bound was closed by a call that is not
    /// recorded.
    fn bind(&mut self, tracee: &Tracee, number: i32, held: Held) {
        let old = tracee.table.borrow_mut().insert(number, held);
        if let Some(old) = old {
            self.recorder.slots.drop(old.slot);
        }
    }

    /// Changes the working directory after a successful call.
    fn chdir(&mut self, tid: i32, tracee: &Tracee, op: Option<Op>, result: i64) -> Option<Op> {
        if result < 0 {
            return op;
        }
        let path = memory::directory(tid)?;
        let old = tracee.place.borrow().slot;
        let below = self.recorder.root.below(&path);
        let inside = below.as_ref().is_some_and(|rest| rest != b".");
        let mut op = op;
        let slot = match (&mut op, inside) {
            (Some(op), true) => {
                op.opened = self.recorder.slots.open(path.clone());
                op.opened
            }
            _ => NONE,
        };
        {
            let mut place = tracee.place.borrow_mut();
            (place.path, place.slot) = (path, slot);
        }
        if old != NONE && self.recorder.slots.drop(old) {
            // Recorded after the change itself.
            if let Some(op) = op {
                self.recorder.push(tracee.task, op);
            }
            self.release_now(tracee.task, old);
            return None;
        }
        op
    }

    /// Removes a reference to a descriptor that is closed without a call.
    fn release(&mut self, tracee: &Tracee, slot: u32) {
        if self.recorder.slots.drop(slot) {
            self.release_now(tracee.task, slot);
        }
    }

    fn release_now(&mut self, task: usize, slot: u32) {
        let begin = self.recorder.now();
        self.recorder.push(task, Op { fd: slot, begin, ..Op::new(FileCall::Release) });
    }

    fn created(&mut self, parent: i32, child: i32) -> Result<(), TraceError> {
        let Some(from) = self.tracees.get_mut(&parent) else { return Ok(()) };
        let flags = std::mem::take(&mut from.clone_flags);
        let thread = flags & CLONE_THREAD != 0;
        let (of, from_task) = (from.process, from.task);
        let table = match flags & CLONE_FILES {
            0 => self.recorder.slots.copy(&from.table),
            _ => from.table.clone(),
        };
        let place = match flags & CLONE_FS {
            0 => self.recorder.slots.copy_place(&from.place),
            _ => from.place.clone(),
        };
        if thread {
            from.split();
        }
        let process = if thread { of } else { child };
        let leader = self.tracees.get(&of).map(|leader| leader.task);
        let leader = if thread { leader.or(Some(from_task)) } else { None };
        let task = self.recorder.add_task(Some(from_task), leader, program_name(process));
        self.tracees.insert(child, Tracee::new(task, child, process, table, place));
        if let Some(index) = self.early.iter().position(|early| *early == child) {
            self.early.swap_remove(index);
            resume(child, Resume::Run, 0)?;
        }
        Ok(())
    }

    /// A process executed a program: descriptors are closed, and other threads have ended.
    fn executed(&mut self, tid: i32, former: i32) {
        if former != tid && former != 0 {
            self.ended(tid);
            self.pin.renumbered(former, tid);
            if let Some(tracee) = self.tracees.remove(&former) {
                self.tracees.insert(tid, tracee.renumbered(tid));
            }
        }
        let Some(mut tracee) = self.tracees.remove(&tid) else { return };
        tracee.pending = None;
        // execve(2) unshares the table.
        if std::rc::Rc::strong_count(&tracee.table) > 1 {
            tracee.table = self.recorder.slots.copy(&tracee.table);
        }
        let closed: Vec<(i32, u32)> = {
            let table = tracee.table.borrow();
            let closed = table.iter().filter(|(_, held)| held.cloexec);
            closed.map(|(number, held)| (*number, held.slot)).collect()
        };
        for (number, slot) in closed {
            tracee.table.borrow_mut().remove(&number);
            self.release(&tracee, slot);
        }
        self.recorder.tasks[tracee.task].name = program_name(tid);
        self.tracees.insert(tid, tracee);
    }

    /// A thread ended. Its descriptors are closed unless others share them.
    fn ended(&mut self, tid: i32) {
        let Some(tracee) = self.tracees.remove(&tid) else { return };
        if std::rc::Rc::strong_count(&tracee.table) == 1 {
            let slots: Vec<u32> = tracee.table.borrow().values().map(|held| held.slot).collect();
            for slot in slots {
                self.release(&tracee, slot);
            }
        }
        if std::rc::Rc::strong_count(&tracee.place) == 1 {
            let slot = tracee.place.borrow().slot;
            if slot != NONE {
                self.release(&tracee, slot);
            }
        }
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

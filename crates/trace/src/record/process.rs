//! State of traced tasks: calls in progress, and CPU time.

use std::{cell::RefCell, fs::File, os::unix::fs::FileExt, rc::Rc};

use sys::usage;

use super::entry::Pending;
use crate::descriptors::{Place, Table};

/// Source of the CPU time of a thread.
pub(crate) enum Clock {
    /// Not known.
    None,
    /// CPU time of its process, which has no other thread. Faster than a file.
    Process(u32),
    /// `schedstat` of the thread in /proc.
    File(Option<File>),
}

impl Clock {
    /// CPU time of a new thread of a process.
    pub(crate) fn of_task(process: i32, tid: i32) -> Self {
        match u32::try_from(process) {
            Ok(process) if tid == process.cast_signed() => Self::Process(process),
            _ => Self::of_thread(process, tid),
        }
    }

    fn of_thread(process: i32, tid: i32) -> Self {
        Self::File(File::open(format!("/proc/{process}/task/{tid}/schedstat")).ok())
    }
}

/// Traced thread.
pub(crate) struct Tracee {
    /// Number of its task.
    pub(crate) task: usize,
    /// ID of its process.
    pub(crate) process: i32,
    pub(crate) table: Table,
    pub(crate) place: Rc<RefCell<Place>>,
    /// Call in progress.
    pub(crate) pending: Option<Pending>,
    /// Flags of a clone(2) in progress.
    pub(crate) clone_flags: u64,
    /// Address at which that clone(2) lets the kernel clear the ID of a thread.
    pub(crate) clone_tid: u64,
    clock: Clock,
    /// Stops since the end of the previous operation that belong to no operation, in pairs of one
    /// call.
    pub(crate) skipped: u64,
    /// Value of [`Self::skipped`] before the call in progress.
    pub(crate) skipped_before: u64,
    /// CPU time at the end of the previous operation.
    cpu: u64,
    /// CPU time at the beginning of the operation in progress.
    entered: u64,
}

impl Tracee {
    pub(crate) fn new(
        task: usize,
        process: i32,
        table: Table,
        place: Rc<RefCell<Place>>,
        clock: Clock,
    ) -> Self {
        let (pending, clone_flags, clone_tid) = (None, 0, 0);
        let (skipped, skipped_before, cpu, entered) = (0, 0, 0, 0);
        Self {
            task,
            process,
            table,
            place,
            pending,
            clone_flags,
            clone_tid,
            clock,
            skipped,
            skipped_before,
            cpu,
            entered,
        }
    }

    /// The process gets another thread.
    pub(crate) fn split(&mut self) {
        if matches!(self.clock, Clock::Process(_)) {
            self.clock = Clock::of_thread(self.process, self.process);
        }
    }

    /// The same thread, which executed a program and has the ID of its process since.
    pub(crate) fn renumbered(self, tid: i32) -> Self {
        let clock = match self.clock {
            Clock::None => Clock::None,
            Clock::Process(_) | Clock::File(_) => Clock::of_thread(tid, tid),
        };
        Self { clock, process: tid, ..self }
    }

    /// CPU time since the previous operation, less that of the stops in between.
    pub(crate) fn think(&mut self, stop_cost: u64) -> u64 {
        self.skipped_before = std::mem::take(&mut self.skipped);
        let stops = 1 + self.skipped_before;
        self.entered = self.cpu_time();
        let time = self.entered.saturating_sub(self.cpu);
        time.saturating_sub(stops.saturating_mul(stop_cost))
    }

    /// CPU time of the operation in progress, which ends.
    pub(crate) fn ended(&mut self) -> u64 {
        self.cpu = self.cpu_time();
        self.cpu.saturating_sub(self.entered)
    }

    /// CPU time of the thread in nanoseconds; the previous value if it is not available.
    fn cpu_time(&self) -> u64 {
        let time = match &self.clock {
            Clock::None => 0,
            Clock::Process(process) => usage::process_time(*process).unwrap_or(0),
            Clock::File(file) => file.as_ref().map_or(0, first_number),
        };
        if time == 0 { self.cpu } else { time }
    }
}

/// Number at the start of a file; 0 if it cannot be read.
fn first_number(file: &File) -> u64 {
    let mut text = [0; 32];
    let read = file.read_at(&mut text, 0).unwrap_or(0);
    let digits = text[..read].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0u64, |time, digit| time.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

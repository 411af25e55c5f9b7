//! State of traced tasks: descriptors, working directories, and masks, with their sharing.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    fs::File,
    os::unix::fs::FileExt,
    rc::Rc,
};

use sys::usage;

use super::entry::Pending;
use crate::NONE;

/// Descriptor of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// Number of the descriptor in the recording.
    pub(super) slot: u32,
    /// True if execve(2) closes it.
    pub(super) cloexec: bool,
}

/// Descriptors of a process that refer to files below the root.
pub(super) type Table = Rc<RefCell<BTreeMap<i32, Held>>>;

/// Working directory and mask of a process (`fs_struct` of the kernel).
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Absolute path.
    pub(super) path: Vec<u8>,
    /// Descriptor of the recording for the directory; [`NONE`] for the root, and outside.
    pub(super) slot: u32,
    /// File mode creation mask.
    pub(super) umask: u32,
}

/// Source of the CPU time of a thread.
enum Clock {
    /// CPU time of its process, which has no other thread. Faster than a file.
    Process(u32),
    /// `schedstat` of the thread in /proc.
    File(Option<File>),
}

impl Clock {
    fn of_thread(process: i32, tid: i32) -> Self {
        Self::File(File::open(format!("/proc/{process}/task/{tid}/schedstat")).ok())
    }
}

/// Traced thread.
pub(super) struct Tracee {
    /// Number of its task.
    pub(super) task: usize,
    /// ID of its process.
    pub(super) process: i32,
    pub(super) table: Table,
    pub(super) place: Rc<RefCell<Place>>,
    /// Call in progress.
    pub(super) pending: Option<Pending>,
    /// Flags of a clone(2) in progress.
    pub(super) clone_flags: u64,
    clock: Clock,
    /// Stops since the end of the previous operation that belong to no operation, in pairs of one
    /// call.
    pub(super) skipped: u64,
    /// CPU time at the end of the previous operation.
    pub(super) cpu: u64,
}

impl Tracee {
    pub(super) fn new(
        task: usize,
        tid: i32,
        process: i32,
        table: Table,
        place: Rc<RefCell<Place>>,
    ) -> Self {
        let clock = match u32::try_from(process) {
            Ok(process) if tid == process.cast_signed() => Clock::Process(process),
            _ => Clock::of_thread(process, tid),
        };
        let (pending, clone_flags, skipped, cpu) = (None, 0, 0, 0);
        Self { task, process, table, place, pending, clone_flags, clock, skipped, cpu }
    }

    /// The process gets another thread.
    pub(super) fn split(&mut self) {
        if matches!(self.clock, Clock::Process(_)) {
            self.clock = Clock::of_thread(self.process, self.process);
        }
    }

    /// The same thread, which executed a program and has the ID of its process since.
    pub(super) fn renumbered(self, tid: i32) -> Self {
        Self { clock: Clock::of_thread(tid, tid), process: tid, ..self }
    }

    /// CPU time since the previous operation, less that of the stops in between.
    pub(super) fn think(&mut self, stop_cost: u64) -> u64 {
        let stops = 1 + std::mem::take(&mut self.skipped);
        let time = self.cpu_time().saturating_sub(self.cpu);
        time.saturating_sub(stops.saturating_mul(stop_cost))
    }

    /// CPU time of the thread in nanoseconds; the previous value if it is not available.
    pub(super) fn cpu_time(&self) -> u64 {
        let time = match &self.clock {
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

/// References to descriptors of the recording.
#[derive(Debug, Default)]
pub(super) struct Slots {
    references: HashMap<u32, u32>,
    /// Absolute paths of the descriptors when they were opened.
    paths: HashMap<u32, Vec<u8>>,
    last: u32,
}

impl Slots {
    /// New descriptor.
    pub(super) fn open(&mut self, path: Vec<u8>) -> u32 {
        self.last += 1;
        self.references.insert(self.last, 1);
        self.paths.insert(self.last, path);
        self.last
    }

    /// Adds a reference, such as that of a child process.
    pub(super) fn hold(&mut self, slot: u32) {
        if let Some(count) = self.references.get_mut(&slot) {
            *count += 1;
        }
    }

    /// Removes a reference. Returns true if it was the last.
    pub(super) fn drop(&mut self, slot: u32) -> bool {
        let Some(count) = self.references.get_mut(&slot) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        self.references.remove(&slot);
        self.paths.remove(&slot);
        true
    }

    pub(super) fn path(&self, slot: u32) -> Option<&[u8]> {
        self.paths.get(&slot).map(Vec::as_slice)
    }

    /// Copy of a table and a place for a child process.
    pub(super) fn copy(&mut self, table: &Table) -> Table {
        let copy = table.borrow().clone();
        copy.values().for_each(|held| self.hold(held.slot));
        Rc::new(RefCell::new(copy))
    }

    pub(super) fn copy_place(&mut self, place: &RefCell<Place>) -> Rc<RefCell<Place>> {
        let copy = place.borrow().clone();
        if copy.slot != NONE {
            self.hold(copy.slot);
        }
        Rc::new(RefCell::new(copy))
    }
}

//! Worker of a mix: barrier and loop over its operations.

use std::{
    ffi::CStr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use model::{
    Histogram, Nanos,
    phase::{Latencies, Mix, MixOp, Spread, Stonewall, WorkerResult},
};
use rustix::{
    fs::{AtFlags, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat},
    io::read,
};

use super::{draw::Draw, has};
use crate::{
    barrier::ControlBlock,
    calls::{self, again, failed, joined},
    clock::Clock,
    counter::{Counter, Limits},
    driver::{Seat, WorkerLoop},
    error::{Failure, Fault, Operation},
    io::{Kind, close},
    set::{Data, Lengths, Names, Uses, tag},
};

/// Mode that `chmod` sets, as [`model::phase::TreeStep::Chmod`].
const CHANGED: Mode = Mode::from_raw_mode(0o640);

/// Opens the directory of the set and runs the loop in the calling thread.
pub(super) fn perform(mix: &Mix, owner: u32, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
    let clock = Clock::new();
    let context = MixContext::new(mix, owner, seat)?;
    let draw = Draw::new(mix, seat.worker);
    let finish = mix.workers.stonewall == Stonewall::Finish;
    let time = mix.time.map(|limit| (limit.ramp, limit.run));
    let limits = Limits { time, finish, ..Limits::default() };
    let latencies =
        Latencies { read: Histogram::new(), write: Histogram::new(), ..Latencies::default() };
    let counter = Counter::new(seat.control, seat.slot, limits, latencies);
    let left = if mix.time.is_some() { u64::MAX } else { mix.ops };
    seat.run(MixLoop { seat, context, draw, time: clock, left }, counter)
}

/// Prepared worker.
struct MixLoop<'a> {
    seat: &'a Seat<'a>,
    context: MixContext<'a>,
    draw: Draw,
    time: Clock,
    left: u64,
}

impl WorkerLoop for MixLoop<'_> {
    type Error = Failure;

    fn start(&mut self) -> Nanos {
        self.time.now()
    }

    #[inline(always)]
    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        let (op, entry) = self.draw.next();
        let bytes = self.context.execute(op, entry, self.draw.window.end)?;
        counter
            .one(self.time.now(), kind(op), bytes, counter.clock)
            .map_err(|fault| self.seat.failure(fault))?;
        self.left -= 1;
        Ok(self.left > 0 && !counter.over)
    }
}

fn kind(op: MixOp) -> Kind {
    match op {
        MixOp::Stat | MixOp::Open | MixOp::Read => Kind::Read,
        MixOp::Chmod | MixOp::Create | MixOp::Unlink | MixOp::Rename => Kind::Write,
    }
}

/// Execution of operations: the directory of the set, and memory for all of them.
struct MixContext<'a> {
    control: &'a ControlBlock,
    path: &'a Path,
    root: OwnedFd,
    // Entries per directory; 0 if all are in the directory of the set.
    each: u64,
    names: Names,
    // Name of the file that a rename creates.
    new: Names,
    lengths: Lengths,
    data: Data,
}

impl<'a> MixContext<'a> {
    fn new(mix: &Mix, owner: u32, seat: &'a Seat<'_>) -> Result<Self, Failure> {
        let (set, path, control) = (&mix.set, &*seat.path, seat.control);
        let root = calls::root(path)?;
        let lengths = Lengths::new(set, owner);
        let (reads, creates) = (has(mix, MixOp::Read), !set.sizes.are_empty());
        // Reads end with a read of 0 bytes, so even empty files need a buffer.
        let least = u64::from(reads);
        let block_size = set.block_size.0.min(lengths.most().max(least));
        let uses = Uses { block_size, reads, writes: creates, tag: tag("mix") };
        let data = Data::new(set, seat.worker, uses)
            .ok_or_else(|| seat.failure(calls::memory(block_size)))?;
        let each = match set.spread {
            Spread::Flat => 0,
            Spread::Directories { each } => each.max(1),
            Spread::Tree(tree) => tree.each.max(1),
        };
        let (names, new) = (Names::new(set, owner), Names::new(set, owner));
        Ok(Self { control, path, root, each, names, new, lengths, data })
    }

    /// Runs an operation on the file of this number, and returns the number of bytes moved; `end`
    /// is the end of the window.
    ///
    /// Inlined into the loop: as a separate function, `execute` made a stat(2) on tmpfs take 1.2
    /// times as long in the kernel.
    #[inline(always)]
    fn execute(&mut self, op: MixOp, entry: u64, end: u64) -> Result<u64, Failure> {
        self.names.set(entry);
        let done = match op {
            MixOp::Stat => statat(&self.root, self.names.entry_name(), AtFlags::empty())
                .map(|_| 0)
                .map_err(|errno| Fault::whole(Operation::Examine, errno)),
            MixOp::Open => self.open().and_then(close).map(|()| 0),
            MixOp::Read => self.read(),
            MixOp::Chmod => chmodat(&self.root, self.names.entry_name(), CHANGED, AtFlags::empty())
                .map(|()| 0)
                .map_err(|errno| Fault::whole(Operation::ChangeMode, errno)),
            MixOp::Create => self.create(entry),
            MixOp::Unlink => unlinkat(&self.root, self.names.entry_name(), AtFlags::empty())
                .map(|()| 0)
                .map_err(|errno| Fault::whole(Operation::Unlink, errno)),
            MixOp::Rename => self.rename(end - 1),
        };
        done.map_err(|fault| Failure { fault, path: self.about() })
    }

    /// Path of an operation, for errors.
    fn about(&self) -> PathBuf {
        joined(self.path, self.names.entry_name())
    }

    fn open(&self) -> Result<OwnedFd, Fault> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        again(|| openat(&self.root, self.names.entry_name(), flags, Mode::empty()))
            .map_err(|errno| Fault::whole(Operation::Open, errno))
    }

    /// Reads to the end of the file: the length of a renamed file does not follow from its number.
    fn read(&mut self) -> Result<u64, Fault> {
        let file = self.open()?;
        let mut offset = 0;
        loop {
            let done = again(|| read(&file, &mut *self.data.read()))
                .map_err(|errno| failed(Operation::Read, offset, errno))?;
            offset += done as u64;
            if done == 0 {
                break;
            }
            self.poll()?;
        }
        close(file)?;
        Ok(offset)
    }

    fn create(&mut self, entry: u64) -> Result<u64, Fault> {
        enter(self.root.as_fd(), self.each, entry, &mut self.names)?;
        let size = self.lengths.of(entry);
        let file = calls::create(self.root.as_fd(), self.names.entry_name())?;
        calls::fill(&file, size, &mut self.data, self.control.signal())?;
        close(file)?;
        Ok(size)
    }

    fn rename(&mut self, to: u64) -> Result<u64, Fault> {
        self.new.set(to);
        enter(self.root.as_fd(), self.each, to, &mut self.new)?;
        renameat(&self.root, self.names.entry_name(), &self.root, self.new.entry_name())
            .map(|()| 0)
            .map_err(|errno| Fault::whole(Operation::Rename, errno))
    }

    /// Fails if the phase is aborted.
    fn poll(&self) -> Result<(), Fault> {
        let called_off = self.control.aborted();
        if called_off { Err(Fault::Aborted) } else { Ok(()) }
    }
}

/// Creates the directory of an entry if the entry is the first one in it.
fn enter(root: BorrowedFd<'_>, each: u64, entry: u64, names: &mut Names) -> Result<(), Fault> {
    if each > 0 && entry.is_multiple_of(each) {
        let directory: &CStr = names.directory();
        return calls::holder(root, directory);
    }
    Ok(())
}

//! Worker of a mix: barrier and loop over its operations.

use std::{
    ffi::CStr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use model::phase::{Mix, MixOp, Spread, Stonewall, WorkerKind, WorkerResult};
use rustix::{
    fs::{AtFlags, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat},
    io::read,
};

use super::{draw::Draw, has};
use crate::{
    EngineError, affinity,
    barrier::{ABORT, ControlBlock},
    clock::{Clock, Usage},
    counters::{Counts, OpCounters},
    error::{Fault, Operation},
    io::close,
    layout::calls::{self, again, error, failed, joined},
    set::{Data, Lengths, Names, Uses, WorkerEntries, tag},
};

/// Mode that `chmod` sets, as [`model::phase::TreeStep::Chmod`].
const CHANGED: Mode = Mode::from_raw_mode(0o640);

/// Does the work of one worker in the calling thread.
pub(super) fn perform(
    mix: &Mix,
    worker: u32,
    directory: &Path,
    control: &ControlBlock,
) -> Result<WorkerResult, EngineError> {
    let WorkerEntries { root: path, owner } = WorkerEntries::new(&mix.set, worker, directory);
    affinity::apply(mix.workers, worker).map_err(|fault| error(fault, path.clone()))?;
    if mix.workers.kind == WorkerKind::Thread {
        affinity::own_descriptors();
    }
    let mut time = Clock::new();
    let mut context = MixContext::new(mix, worker, owner, &path, control)?;
    let mut draw = Draw::new(mix, worker);
    let mut counters = OpCounters::new();
    control.arrive().map_err(|fault| error(fault, path.clone()))?;

    let before = Usage::of_this_thread();
    counters.start(time.now());
    run(mix, worker, &mut context, &mut draw, &mut time, &mut counters)?;
    if !counters.stopped() && mix.workers.stonewall != Stonewall::Off {
        control.stop();
    }
    let usage = Usage::of_this_thread().since(before);
    control.slot(worker).end(counters.clock());
    Ok(counters.finish(worker, usage))
}

fn run(
    mix: &Mix,
    worker: u32,
    context: &mut MixContext<'_>,
    draw: &mut Draw,
    time: &mut Clock,
    counters: &mut OpCounters,
) -> Result<(), EngineError> {
    let (slot, signal) = (context.control.slot(worker), context.control.signal());
    let mut moved = 0;
    for done in 1..=mix.ops {
        let (op, entry) = draw.next();
        let bytes = context.execute(op, entry, draw.window.end)?;
        let clock = time.now();
        moved += bytes;
        slot.bytes.store(moved, Relaxed);
        slot.done.store(done, Relaxed);
        let signal = signal.load(Relaxed);
        if signal & ABORT != 0 {
            return Err(EngineError::Interrupted);
        }
        if signal != 0 {
            counters.stop(clock);
        }
        counters.add(clock, counts(op), bytes);
        if counters.stopped() && mix.workers.stonewall != Stonewall::Finish {
            break;
        }
    }
    Ok(())
}

fn counts(op: MixOp) -> Counts {
    match op {
        MixOp::Stat | MixOp::Open | MixOp::Read => Counts::Read,
        MixOp::Chmod | MixOp::Create | MixOp::Unlink | MixOp::Rename => Counts::Write,
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
    fn new(
        mix: &Mix,
        worker: u32,
        owner: u32,
        path: &'a Path,
        control: &'a ControlBlock,
    ) -> Result<Self, EngineError> {
        let set = &mix.set;
        let root = calls::root(path)?;
        let lengths = Lengths::new(set, owner);
        let (reads, creates) = (has(mix, MixOp::Read), !set.sizes.are_empty());
        // Reads end with a read of 0 bytes, so even empty files need a buffer.
        let least = u64::from(reads);
        let block_size = set.block_size.0.min(lengths.most().max(least));
        let uses = Uses { block_size, reads, writes: creates, tag: tag("mix") };
        let data = Data::new(set, worker, uses).ok_or_else(|| calls::memory(block_size))?;
        let each = match set.spread {
            Spread::Flat => 0,
            Spread::Directories { each } => each.max(1),
        };
        let (names, new) = (Names::new(set, owner), Names::new(set, owner));
        Ok(Self { control, path, root, each, names, new, lengths, data })
    }

    /// Runs an operation on the file of this number, and returns the number of bytes moved; `end`
    /// is the end of the window.
    fn execute(&mut self, op: MixOp, entry: u64, end: u64) -> Result<u64, EngineError> {
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
        done.map_err(|fault| error(fault, self.about()))
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

/// Creates the directory of an entry that is the first in it.
fn enter(root: BorrowedFd<'_>, each: u64, entry: u64, names: &mut Names) -> Result<(), Fault> {
    if each > 0 && entry.is_multiple_of(each) {
        let directory: &CStr = names.directory();
        return calls::holder(root, directory);
    }
    Ok(())
}

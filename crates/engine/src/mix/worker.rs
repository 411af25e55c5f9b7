//! One worker of a mix: barrier, and the loop over its operations.

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
    EngineError,
    barrier::{ABORT, Board},
    clock::{Clock, Usage},
    error::{Fault, Operation},
    io::close,
    layout::calls::{self, again, error, failed, joined},
    seat,
    set::{Data, Lengths, Names, Place, Uses, tag},
    tally::{Counts, Tally},
};

/// What `chmod` makes of the mode of a file, as [`model::phase::TreeStep::Chmod`] does.
const CHANGED: Mode = Mode::from_raw_mode(0o640);

/// Does the work of one worker in the calling thread.
pub(super) fn perform(
    mix: &Mix,
    worker: u32,
    directory: &Path,
    board: &Board,
) -> Result<WorkerResult, EngineError> {
    let Place { root: path, owner } = Place::new(&mix.set, worker, directory);
    seat::sit(mix.workers, worker).map_err(|fault| error(fault, path.clone()))?;
    if mix.workers.kind == WorkerKind::Thread {
        seat::own_descriptors();
    }
    let mut time = Clock::new();
    let mut hand = Hand::new(mix, worker, owner, &path, board)?;
    let mut draw = Draw::new(mix, worker);
    let mut tally = Tally::new();
    board.arrive().map_err(|fault| error(fault, path.clone()))?;

    let before = Usage::of_this_thread();
    tally.start(time.now());
    run(mix, worker, &mut hand, &mut draw, &mut time, &mut tally)?;
    if !tally.stopped() && mix.workers.stonewall != Stonewall::Off {
        board.stop();
    }
    let usage = Usage::of_this_thread().since(before);
    board.lane(worker).end(tally.clock());
    Ok(tally.finish(worker, usage))
}

fn run(
    mix: &Mix,
    worker: u32,
    hand: &mut Hand<'_>,
    draw: &mut Draw,
    time: &mut Clock,
    tally: &mut Tally,
) -> Result<(), EngineError> {
    let (lane, signal) = (hand.board.lane(worker), hand.board.signal());
    let mut moved = 0;
    for done in 1..=mix.ops {
        let (op, entry) = draw.next();
        let bytes = hand.carry_out(op, entry, draw.window.end)?;
        let clock = time.now();
        moved += bytes;
        lane.bytes.store(moved, Relaxed);
        lane.done.store(done, Relaxed);
        let signal = signal.load(Relaxed);
        if signal & ABORT != 0 {
            return Err(EngineError::Interrupted);
        }
        if signal != 0 {
            tally.stop(clock);
        }
        tally.add(clock, counts(op), bytes);
        if tally.stopped() && mix.workers.stonewall != Stonewall::Finish {
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

/// What carries operations out: the directory of the set, and memory for all of them.
struct Hand<'a> {
    board: &'a Board,
    path: &'a Path,
    root: OwnedFd,
    // Entries of a directory; 0 where all lie in that of the set.
    each: u64,
    names: Names,
    // Of the file that a rename makes.
    new: Names,
    lengths: Lengths,
    data: Data,
}

impl<'a> Hand<'a> {
    fn new(
        mix: &Mix,
        worker: u32,
        owner: u32,
        path: &'a Path,
        board: &'a Board,
    ) -> Result<Self, EngineError> {
        let set = &mix.set;
        let root = calls::root(path)?;
        let lengths = Lengths::new(set, owner);
        let (reads, creates) = (has(mix, MixOp::Read), !set.sizes.are_empty());
        // Reading goes on until nothing comes, so it needs room even for what is empty.
        let least = u64::from(reads);
        let record = set.record.0.min(lengths.most().max(least));
        let uses = Uses { record, reads, writes: creates, tag: tag("mix") };
        let data = Data::new(set, worker, uses).ok_or_else(|| calls::memory(record))?;
        let each = match set.spread {
            Spread::Flat => 0,
            Spread::Directories { each } => each.max(1),
        };
        let (names, new) = (Names::new(set, owner), Names::new(set, owner));
        Ok(Self { board, path, root, each, names, new, lengths, data })
    }

    /// Does the operation to the file of this number, and tells how many bytes it moved; `end` is
    /// the end of the window.
    fn carry_out(&mut self, op: MixOp, entry: u64, end: u64) -> Result<u64, EngineError> {
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

    /// What an operation was about, for errors.
    fn about(&self) -> PathBuf {
        joined(self.path, self.names.entry_name())
    }

    fn open(&self) -> Result<OwnedFd, Fault> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        again(|| openat(&self.root, self.names.entry_name(), flags, Mode::empty()))
            .map_err(|errno| Fault::whole(Operation::Open, errno))
    }

    /// To the end, which is where nothing more comes: how long a file is that was renamed does not
    /// follow from its number.
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
            self.look()?;
        }
        close(file)?;
        Ok(offset)
    }

    fn create(&mut self, entry: u64) -> Result<u64, Fault> {
        enter(self.root.as_fd(), self.each, entry, &mut self.names)?;
        let size = self.lengths.of(entry);
        let file = calls::create(self.root.as_fd(), self.names.entry_name())?;
        calls::fill(&file, size, &mut self.data, self.board.signal())?;
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

    /// Gives up when the phase is called off.
    fn look(&self) -> Result<(), Fault> {
        let called_off = self.board.aborted();
        if called_off { Err(Fault::Aborted) } else { Ok(()) }
    }
}

/// Makes the directory of an entry that is the first in it, as the window comes there.
fn enter(root: BorrowedFd<'_>, each: u64, entry: u64, names: &mut Names) -> Result<(), Fault> {
    if each > 0 && entry.is_multiple_of(each) {
        let directory: &CStr = names.directory();
        return calls::holder(root, directory);
    }
    Ok(())
}

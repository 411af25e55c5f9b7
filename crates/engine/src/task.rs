//! Everyday tasks: what people do with files at the prompt, each done once and timed as a whole.
//!
//! Data enters as [`Task`] and leaves as [`PhaseResult`] with one worker. The task is done either
//! by this program, with the system calls that the everyday program would make and nothing else
//! ([`Method::Native`]), or by the everyday programs themselves ([`Method::Programs`]); what
//! prepares a measurement ([`Deed::Random`], [`Deed::Archive`], [`Deed::Fetch`]) is always done
//! here. When the task is over, and its time taken, everything that was written on the filesystem
//! under test is flushed by syncfs(2), timed apart.
//!
//! ```text
//! task ─ check ─ native ─┬─ entries (touch, mkdir, find, rm)
//!                        ├─ data (cp, dd, split, cat) ─ tree (cp -a)
//!                        ├─ pack, unpack ─ archive (tar, gzip)
//!                        └─ source (a tree like that of a kernel)
//!              └ programs ─ child (one process)
//! ```
//!
//! What the result counts:
//!
//! - operations: the entries below the directory that was made, listed, removed, packed, unpacked,
//!   or copied; copies and pieces; 1 for a file written or read. Programs do not tell what they do,
//!   so their entries are counted afterwards, and a tree that rm(1) removed counts as 1;
//! - bytes: data read from and written to files under test. What is read or written elsewhere says
//!   nothing about the filesystem under test and is not counted, nor is what a program does that
//!   cannot be told from its command and the sizes of the files it names;
//! - CPU time and context switches: of the task alone, without the flush, as time(1) has it; with
//!   programs those of the programs and of starting them.
//!
//! Not here: series over time and latencies, as a task is one operation to whoever waits for it;
//! owners, extended attributes, and hard links of copied and packed trees.

mod archive;
mod check;
mod child;
mod data;
mod entries;
mod hand;
mod native;
mod pack;
mod programs;
pub(crate) mod source;
mod tree;
mod unpack;

#[cfg(test)]
mod tests;

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use model::{
    Bytes, Nanos, Ops, PhaseResult,
    phase::{At, Deed, Method, Moved, Spot, Task, WorkerResult},
};
use rustix::fs::{Mode, OFlags, open, syncfs};

use crate::{
    Context, EngineError,
    barrier::Board,
    clock::{Usage, now},
    error::Operation,
    run::{attend, results},
};
use hand::{Hand, failed};

/// Does a task, in a thread of its own.
///
/// Names are below `context.directory` and, for [`At::Elsewhere`], below `elsewhere`, a directory
/// on another filesystem. The wall time of the result is that of the task and of the flush after
/// it; the result has no latencies and no series. What was written elsewhere is flushed as well,
/// when the clocks have stopped, so that it does not disturb the phase that follows.
///
/// # Errors
/// [`EngineError::Task`] before anything is touched if the task contradicts itself, or uses a
/// second place and there is none; [`EngineError::Io`] for the first call that the kernel refuses,
/// with operation and path, also when a name that is to be made is there already;
/// [`EngineError::Archive`] for an archive that cannot or must not be unpacked;
/// [`EngineError::Program`] and [`EngineError::ProgramFailed`] for programs that are missing or
/// answer with an error; [`EngineError::Interrupted`] if the caller asked to stop. What an
/// unfinished task has made stays.
pub fn run_task(
    task: &Task,
    elsewhere: Option<&Path>,
    context: &Context<'_>,
) -> Result<PhaseResult, EngineError> {
    check::check(task, elsewhere.is_some())?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let places = Places { target: context.directory, elsewhere };
    let board = Board::new(1).map_err(|fault| hand::fault(fault, context.directory))?;
    let board = Arc::new(board);
    context.progress.begin(Some(Arc::clone(&board)), total(&task.deed));
    let work = std::iter::once({
        let board = &*board;
        move || {
            let result = perform(task, places, board);
            match result {
                Ok(_) | Err(EngineError::Interrupted) => {}
                Err(_) => board.fail(0),
            }
            result
        }
    });
    let (_, outcomes) = attend(&board, context.interrupt, work)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let workers = results(outcomes, board.culprit())?;
    let wall_time = workers.iter().map(|worker| worker.loop_time + worker.flush_time).sum();
    Ok(PhaseResult::new(workers, wall_time))
}

/// The two places of a trial.
#[derive(Clone, Copy)]
struct Places<'a> {
    target: &'a Path,
    elsewhere: Option<&'a Path>,
}

impl Places<'_> {
    /// The directory of a place.
    fn root(&self, at: At) -> &Path {
        match at {
            At::Target => self.target,
            At::Elsewhere => self.elsewhere.expect("checked: there is a second place"),
        }
    }

    /// The path of a spot.
    fn path(&self, spot: &Spot) -> PathBuf {
        self.root(spot.at).join(&spot.name)
    }

    /// The path of a spot, and which of the two places it is in.
    fn place(&self, spot: &Spot) -> Place {
        Place { at: spot.at, path: self.path(spot) }
    }
}

/// A path, and which of the two places it is in.
struct Place {
    at: At,
    path: PathBuf,
}

/// The worker: what is not timed before, the task, the flush.
fn perform(task: &Task, places: Places<'_>, board: &Board) -> Result<WorkerResult, EngineError> {
    let changed = |at| check::changed(&task.deed).is_some_and(|changed| changed.at == at);
    let flushed = changed(At::Target).then(|| directory(places.target)).transpose()?;
    let later =
        changed(At::Elsewhere).then(|| directory(places.root(At::Elsewhere))).transpose()?;
    let mut hand = Hand::new(task.buffer, board)?;
    let programs = match task.method {
        Method::Programs { each } if !check::prepares(&task.deed) => Some(each),
        Method::Programs { .. } | Method::Native => None,
    };
    if programs.is_some() {
        programs::absent(&task.deed, places)?;
    }
    board.arrive().map_err(|fault| hand::fault(fault, places.target))?;

    let (before, started) = (Usage::of_this_thread(), now());
    match programs {
        None => native::perform(task, places, &mut hand)?,
        Some(each) => programs::perform(task, each, places, &mut hand)?,
    }
    let ended = now();
    let own = Usage::of_this_thread().since(before).within(ended - started);
    let usage = own.plus(hand.children);
    let mut flush_time = Nanos(0);
    if let Some(directory) = flushed {
        flush(&directory, places.target)?;
        flush_time = now() - ended;
    }
    board.lane(0).end(ended + flush_time);
    if let Some(directory) = later {
        flush(&directory, places.root(At::Elsewhere))?;
    }
    if programs.is_some() {
        programs::count(&task.deed, places, &mut hand)?;
    }
    let changes = check::changed(&task.deed).is_some();
    let ops = |counts: bool| Ops(if counts { hand.ops() } else { 0 });
    Ok(WorkerResult {
        started,
        loop_time: ended - started,
        flush_time,
        read: Moved { ops: ops(!changes), bytes: Bytes(hand.read) },
        written: Moved { ops: ops(changes), bytes: Bytes(hand.written) },
        user_time: usage.user,
        system_time: usage.system,
        voluntary_switches: usage.voluntary,
        involuntary_switches: usage.involuntary,
        ..WorkerResult::default()
    })
}

fn directory(path: &Path) -> Result<OwnedFd, EngineError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, path, errno))
}

/// syncfs(2): everything of the filesystem, and its journal, is on the device afterwards.
fn flush(directory: &OwnedFd, path: &Path) -> Result<(), EngineError> {
    syncfs(directory.as_fd()).map_err(|errno| failed(Operation::Flush, path, errno))
}

/// Bytes that the task moves, where its deed says it.
fn total(deed: &Deed) -> Bytes {
    match deed {
        Deed::Zeros { size, .. } | Deed::Random { size, .. } => *size,
        Deed::Touch { .. }
        | Deed::MakeDirectories { .. }
        | Deed::Find { .. }
        | Deed::RemoveTree { .. }
        | Deed::Copy { .. }
        | Deed::Unpack { .. }
        | Deed::Pack { .. }
        | Deed::CopyTree { .. }
        | Deed::Split { .. }
        | Deed::Read { .. }
        | Deed::Archive { .. }
        | Deed::Fetch { .. } => Bytes(0),
    }
}

//! Many files: the same steps for each of them, by workers that start together.
//!
//! Data enters as [`Tree`] and leaves as [`PhaseResult`]; one operation is all steps of one entry,
//! and its time goes from the end of the one before to its own end, so what little this program
//! does between two entries (it writes a short name) is part of it, and so is reading the
//! directory that an entry is found in. What the steps need is made before the clock starts
//! (directories if anything is put into them, data, memory), and a file system that lacks a step
//! is found out ([`probe()`]); between barrier and end a worker neither allocates nor locks.
//!
//! Names are relative to the directory of the set, which stays open: the kernel then walks at most
//! two components for each step, however deep the directory under test lies. The exceptions are
//! truncate(2), setxattr(2), and getxattr(2), which know no directories and get the whole path.
//! With the step `append` the file is opened with `O_APPEND`, and each write goes to its end. A
//! directory below that of the set is opened for the steps that flush or list it, and closed again,
//! which is part of their time.
//!
//! A worker is a thread or a process of its own, which does the same work in the same code
//! ([`perform`]).
//!
//! With [`Calls::Ring`](model::phase::Calls::Ring) the steps of an entry are linked in an io_uring,
//! and several entries are in flight ([`ring`]); an operation then goes from its submission to the
//! completion of its last step.
//!
//! Not here: verification, steps that differ from entry to entry (see `mix`).

mod check;
mod count;
mod end;
mod hand;
mod named;
mod probe;
mod ring;
#[cfg(test)]
mod tests;
mod truncate;
mod walk;
mod worker;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use model::{
    Bytes, PhaseResult,
    phase::{Files, Sharing, Stream, Tree, TreeStep, WorkerKind},
};

use crate::{
    Context, EngineError, Operation,
    barrier::Board,
    error::Fault,
    process::{Order, Process},
    run::{attend, results},
    set::Place,
};

pub(crate) use probe::probe;
pub(crate) use worker::perform;

/// What went wrong, and with which entry or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What went wrong.
    pub(crate) fault: Fault,
    /// With what.
    pub(crate) path: PathBuf,
}

impl Failure {
    /// The public error.
    pub(crate) fn into_error(self) -> EngineError {
        // No file of a tree is opened for direct I/O, which is all that a stream adds to an error.
        let stand_in = Stream::new(Files::One(String::new()), Bytes(0), Bytes(0));
        self.fault.into_error(&stand_in, &self.path)
    }
}

/// Does the steps of a tree to each of its files.
///
/// Entries are those of its set in `context.directory`. Operations count as written
/// if any step changes something, else as read; bytes count as what they were. Blocks until all
/// workers are done, also when one fails: the others are told at once.
///
/// # Errors
/// The error of the worker that failed first, with operation and path;
/// [`EngineError::Unsupported`] before anything is timed if the filesystem lacks a step;
/// [`EngineError::Entries`] if a directory that is listed holds fewer entries than the set says;
/// [`EngineError::Interrupted`] if the caller asked to stop; [`EngineError::Tree`] before anything
/// is touched if the tree contradicts itself.
pub fn run_tree(tree: &Tree, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(tree, context)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    probe(context.directory, &tree.set.name, &tree.steps)?;
    ring::supported(tree, context.directory)?;
    let count = tree.workers.count;
    let directory = context.directory;
    let refused = |fault| Failure { fault, path: directory.to_path_buf() }.into_error();
    let board = Arc::new(Board::new(count).map_err(refused)?);
    context.progress.begin(Some(Arc::clone(&board)), total(tree));
    let board = &*board;
    let (released, outcomes) = match tree.workers.kind {
        WorkerKind::Thread => {
            let work = (0..count).map(|worker| {
                move || perform(tree, worker, directory, board).map_err(Failure::into_error)
            });
            attend(board, context.interrupt, work)?
        }
        WorkerKind::Process => {
            let processes = Process::spawn_all(count, board, context.worker_command)?;
            let work = processes.into_iter().map(|process| {
                let order = Order::of_tree(tree, directory, process.worker, board);
                move || process.attend_tree(&order, board, Failure::into_error)
            });
            attend(board, context.interrupt, work)?
        }
    };
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let workers = results(outcomes, board.culprit())?;
    gone(tree, directory)?;
    Ok(PhaseResult::new(workers, board.last_end() - released))
}

/// Makes sure that a directory that workers share, and that the last of them was to remove, is no
/// longer there.
fn gone(tree: &Tree, directory: &Path) -> Result<(), EngineError> {
    if !tree.end.remove_directories || tree.set.sharing == Sharing::Private {
        return Ok(());
    }
    let Place { root, .. } = Place::new(&tree.set, 0, directory);
    if !root.exists() {
        return Ok(());
    }
    Err(EngineError::Io {
        operation: Operation::RemoveDirectory,
        path: root,
        offset: None,
        source: io::Error::from_raw_os_error(libc::ENOTEMPTY),
    })
}

/// Bytes that the phase moves if nothing stops it.
fn total(tree: &Tree) -> Bytes {
    let size = tree.set.sizes.mean().0;
    let moved = |step: TreeStep| {
        u64::from(matches!(step, TreeStep::Write | TreeStep::Read | TreeStep::Fetch))
    };
    let appended = |step: TreeStep| u64::from(step == TreeStep::Append);
    let times = |what: &dyn Fn(TreeStep) -> u64| tree.steps.iter().map(|step| what(*step)).sum();
    let entry = size
        .saturating_mul(times(&moved))
        .saturating_add(tree.set.record.0.saturating_mul(times(&appended)));
    let entries = tree.set.files.saturating_mul(u64::from(tree.workers.count));
    Bytes(entry.saturating_mul(entries).saturating_mul(tree.passes))
}

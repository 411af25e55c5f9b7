//! Metadata workloads: the same steps for each of many entries, by synchronized workers.
//!
//! The input is a [`Tree`], the output a [`PhaseResult`]. One operation is all steps of one entry.
//! Its time is from the end of the previous operation to its own end. The time therefore includes
//! the short work of fslab between two entries (writing a name) and reading the directory in which
//! an entry is found. Before the clock starts, the resources of the steps are prepared (data,
//! memory, and directories in which entries are created), and missing filesystem features are
//! detected ([`probe()`]). Between barrier and end, a worker neither allocates nor locks.
//!
//! Names are relative to the directory of the set, which stays open: the kernel then resolves at
//! most two components per step, regardless of the depth of the directory under test. The
//! exceptions are truncate(2), setxattr(2), and getxattr(2), which have no directory argument and
//! get the whole path. With the step `append`, the file is opened with `O_APPEND`, and each write
//! goes to the end of the file. Steps that sync or list a subdirectory of the set also open and
//! close it, which is part of their time.
//!
//! Worker threads and worker processes run the same code.
//!
//! With [`Calls::Ring`](model::phase::Calls::Ring), the steps of an entry are linked io_uring
//! requests, and several entries are in flight ([`ring`]). The time of an operation is then from
//! its submission to the completion of its last step.
//!
//! Not included: verification, and steps that differ between entries (see `mix`).

mod block;
mod check;
mod context;
mod end;
mod entry_count;
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
};

use model::{
    Bytes, PhaseResult,
    phase::{Sharing, Tree, TreeStep, WorkerResult, Workers},
};

use crate::{
    Context, EngineError, Operation,
    driver::{self, Phase, Seat, interrupted},
    error::Failure,
    process,
    set::WorkerEntries,
};

pub(crate) use probe::probe;

/// Runs the steps of a tree on each of its entries.
///
/// The entries are those of its set in `context.directory`. Operations count as writes if any step
/// changes the filesystem, otherwise as reads; bytes count as read or written by each step. Blocks
/// until all workers have ended. If one fails, the others are aborted immediately.
///
/// # Errors
/// The error of the worker that failed first, with operation and path;
/// [`EngineError::Unsupported`], before anything is timed, if the filesystem does not support a
/// step; [`EngineError::Entries`] if a listed directory has fewer entries than the set;
/// [`EngineError::Interrupted`] if `interrupt` was set; [`EngineError::Tree`], before anything is
/// changed, if the tree is invalid.
pub fn run_tree(tree: &Tree, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(tree, context)?;
    interrupted(context.interrupt)?;
    let directory = context.directory;
    let tree = &entry_count::resolved(tree, directory)?;
    // Several hosts probe at the same time.
    let name = match tree.workers.share {
        Some(share) => &format!("{}.{}", tree.set.name, share.first),
        None => &tree.set.name,
    };
    probe(directory, name, &tree.steps)?;
    ring::supported(tree, directory)?;
    let result = driver::run(&TreePhase { tree, directory }, context)?;
    check_removed(tree, directory)?;
    Ok(result)
}

/// Tree in a directory.
pub(crate) struct TreePhase<'a> {
    /// Steps and entries.
    pub(crate) tree: &'a Tree,
    /// Directory under test.
    pub(crate) directory: &'a Path,
}

impl Phase for TreePhase<'_> {
    type Error = Failure;

    fn workers(&self) -> Workers {
        self.tree.workers
    }

    fn total(&self) -> Bytes {
        total(self.tree)
    }

    fn path(&self, worker: u32) -> PathBuf {
        WorkerEntries::new(&self.tree.set, self.tree.owner(worker, 0), self.directory).root
    }

    fn job(&self) -> Option<process::Work> {
        Some(process::Work::Tree(Box::new(self.tree.clone())))
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
        let owner = self.tree.owner(seat.worker, 0);
        worker::perform(self.tree, owner, seat)
    }
}

/// Checks that the last worker has removed a directory that the workers share.
fn check_removed(tree: &Tree, directory: &Path) -> Result<(), EngineError> {
    if !tree.end.remove_directories || tree.set.sharing == Sharing::Private {
        return Ok(());
    }
    let WorkerEntries { root, .. } = WorkerEntries::new(&tree.set, 0, directory);
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

/// Bytes that the phase moves unless it is stopped.
fn total(tree: &Tree) -> Bytes {
    let size = tree.set.sizes.mean().0;
    let moved = |step: TreeStep| {
        use TreeStep::{Fetch, Read, ReadBlock, Write, WriteBlock};
        u64::from(matches!(step, Write | WriteBlock | Read | ReadBlock | Fetch))
    };
    let appended = |step: TreeStep| u64::from(step == TreeStep::Append);
    let times = |what: &dyn Fn(TreeStep) -> u64| tree.steps.iter().map(|step| what(*step)).sum();
    let entry = size
        .saturating_mul(times(&moved))
        .saturating_add(tree.set.block_size.0.saturating_mul(times(&appended)));
    let owners = tree.workers.count.saturating_mul(tree.selection.owners);
    let entries = tree.set.files.saturating_mul(u64::from(owners));
    Bytes(entry.saturating_mul(entries).saturating_mul(tree.passes))
}

//! Many files: the same steps for each of them, by workers with directories of their own.
//!
//! Data enters as [`Tree`] and leaves as [`PhaseResult`]; one operation is all steps of one file,
//! and its time goes from the end of the one before to its own end, so what little this program
//! does between two files (it writes three short names) is part of it. Directories are made, and
//! the order and the data drawn, before the clock starts; between barrier and end a worker neither
//! allocates nor locks.
//!
//! Names are relative to the worker's directory, which stays open: the kernel then walks two
//! components for each step, however deep the directory under test lies. Data are moved with
//! pread(2) and pwrite(2), so that steps do not depend on where others left the position; with the
//! step `append` the file is opened with `O_APPEND`, and each write goes to its end, as Linux does
//! (pwrite(2), BUGS). A directory is opened for the steps that flush or list it, and closed again,
//! which is part of their time.
//!
//! Not here: files that differ from one another, processes as workers, verification.

mod check;
mod data;
mod names;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use model::{
    Bytes, PhaseResult,
    phase::{Files, Stream, Tree, TreeStep},
};

use crate::{
    Context, EngineError,
    barrier::Board,
    error::Fault,
    run::{attend, results},
};

/// Does the steps of a tree to each of its files.
///
/// Files are `NAME.w/D/I` in `context.directory`, see [`Tree::name`]. Operations count as written
/// if any step changes something, else as read; bytes count as what they were. Blocks until all
/// workers are done, also when one fails: the others are told at once.
///
/// # Errors
/// The error of the worker that failed first, with operation and path; [`EngineError::Interrupted`]
/// if the caller asked to stop; [`EngineError::Tree`] before anything is touched if the tree
/// contradicts itself.
pub fn run_tree(tree: &Tree, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(tree)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let count = tree.workers.count;
    let board = Board::new(count).map_err(|fault| refused(fault, context))?;
    let board = Arc::new(board);
    context.progress.begin(Some(Arc::clone(&board)), total(tree));
    let work = (0..count).map(|worker| {
        let board = &*board;
        move || {
            let result = worker::perform(tree, worker, context.directory, board);
            match result {
                Ok(_) | Err(EngineError::Interrupted) => {}
                Err(_) => board.fail(worker),
            }
            result
        }
    });
    let (released, outcomes) = attend(&board, context.interrupt, work)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let workers = results(outcomes, board.culprit())?;
    Ok(PhaseResult { workers, wall_time: board.last_end() - released })
}

/// A stream to make errors with.
fn stand_in() -> Stream {
    Stream::new(Files::One(String::new()), Bytes(0), Bytes(0))
}

/// A fault of what is no file of the tree.
fn refused(fault: Fault, context: &Context<'_>) -> EngineError {
    worker::error(fault, context.directory.to_path_buf())
}

/// Bytes that the phase moves if nothing stops it.
fn total(tree: &Tree) -> Bytes {
    let each = |step: &TreeStep| match step {
        TreeStep::Write | TreeStep::Read => tree.size.0,
        TreeStep::Append => tree.record.0,
        TreeStep::Create
        | TreeStep::Open
        | TreeStep::Fsync
        | TreeStep::FsyncDirectory
        | TreeStep::Close
        | TreeStep::Stat
        | TreeStep::Chmod
        | TreeStep::Rename
        | TreeStep::RenameBack
        | TreeStep::Link
        | TreeStep::UnlinkLink
        | TreeStep::Unlink
        | TreeStep::List => 0,
    };
    let file = tree.steps.iter().map(each).fold(0, u64::saturating_add);
    let files = tree.files.saturating_mul(u64::from(tree.workers.count));
    Bytes(file.saturating_mul(files))
}

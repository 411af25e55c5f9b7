//! Mixes: operations drawn by weight on a population of files.
//!
//! Data enters as [`Mix`] and leaves as [`PhaseResult`]. The population of a worker is a window
//! over the numbers of its entries: a new file gets the number behind the window, the oldest file
//! leaves at its front, and so nothing is kept of any of them. Operations and files are drawn from
//! a generator of the worker's own, which is seeded from the set.
//!
//! `stat`, `open`, and `read` count as reads, the others as writes, and so do their times, each of
//! which goes from the end of the operation before to its own end. A window that moves on enters
//! new directories, whose mkdir(2) is part of the operation that needs it; directories that it has
//! left stay. Between barrier and end a worker neither allocates nor locks.
//!
//! Not here: making the population, and anything the steps of a tree do.

mod draw;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use model::{
    Bytes, PhaseResult,
    phase::{Mix, MixOp, Sharing, WorkerKind},
};

use crate::{
    Context, EngineError,
    barrier::Board,
    layout::{calls, check_set},
    run::{attend, results},
};

/// Does the operations of a mix.
///
/// The population is what a layout or a tree made of the same set in `context.directory`, and only
/// its first mix finds it as it was: the files of entries 0 to `files - 1` of each worker. An
/// operation that finds no file, because all were removed, is a `create` instead. Blocks until all
/// workers are done, also when one fails: the others are told at once.
///
/// # Errors
/// As [`crate::run_tree`].
pub fn run_mix(mix: &Mix, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check(mix)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let count = mix.workers.count;
    let board =
        Board::new(count).map_err(|fault| calls::error(fault, context.directory.to_path_buf()))?;
    let board = Arc::new(board);
    context.progress.begin(Some(Arc::clone(&board)), Bytes(0));
    let work = (0..count).map(|worker| {
        let board = &*board;
        move || {
            let result = worker::perform(mix, worker, context.directory, board);
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
    Ok(PhaseResult::new(workers, board.last_end() - released))
}

/// Makes sure that the mix can be run.
fn check(mix: &Mix) -> Result<(), EngineError> {
    let refuse = |problem, cure| Err(EngineError::Tree { problem, cure });
    if mix.workers.count == 0 {
        return refuse("it has no workers", "use at least one");
    }
    if mix.workers.kind == WorkerKind::Process {
        return refuse("its workers are processes", "use threads");
    }
    if mix.ops == 0 {
        return refuse("it has no operations", "use at least one");
    }
    if mix.weights.iter().all(|(_, weight)| *weight == 0) {
        return refuse("none of its operations has a weight", "give one of them at least 1");
    }
    let twice = |index: usize| {
        let (before, rest) = mix.weights.split_at(index);
        before.iter().any(|(op, _)| *op == rest[0].0)
    };
    if (0..mix.weights.len()).any(twice) {
        return refuse("one of its operations has two weights", "give each at most one");
    }
    if mix.set.record.0 == 0 && has(mix, MixOp::Read) {
        return refuse("its record is empty", "give the size of a record");
    }
    let moves = [MixOp::Create, MixOp::Unlink, MixOp::Rename].into_iter().any(|op| has(mix, op));
    if mix.set.sharing == Sharing::File && mix.workers.count > 1 && moves {
        return refuse(
            "its workers would remove each other's files",
            "use one worker, or sharing = \"directory\"",
        );
    }
    check_set(&mix.set)
}

/// Whether this operation is ever drawn.
fn has(mix: &Mix, op: MixOp) -> bool {
    mix.weights.iter().any(|(other, weight)| *other == op && *weight > 0)
}

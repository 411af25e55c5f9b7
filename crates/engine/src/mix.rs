//! Mixes: operations drawn by weight on a population of files.
//!
//! The input is a [`Mix`], the output a [`PhaseResult`]. The population of a worker is a window
//! over the numbers of its entries: a new file gets the number after the window, the oldest file
//! leaves at its front, so no state is kept per file. Operations and files are drawn from a
//! generator per worker, which is seeded from the file set.
//!
//! `stat`, `open`, and `read` count as reads, the others as writes. The time of an operation is
//! from the end of the previous operation to its own end. A window that advances enters new
//! directories, whose mkdir(2) is part of the operation that needs it; directories it has left
//! remain. Between barrier and end, a worker neither allocates nor locks.
//!
//! Not included: the creation of the population, and the steps of a tree.

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
    barrier::ControlBlock,
    layout::{calls, check_set},
    run::{results, run_threads},
};

/// Runs the operations of a mix.
///
/// The population is that of a layout or a tree of the same file set in `context.directory`, and is
/// unchanged only before the first mix: the files of entries 0 to `files - 1` of each worker. An
/// operation that finds no file, because all were removed, is a `create` instead. Blocks until all
/// workers have ended. If one fails, the others are aborted immediately.
///
/// # Errors
/// As [`crate::run_tree`].
pub fn run_mix(mix: &Mix, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check(mix)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let count = mix.workers.count;
    let control = ControlBlock::new(count)
        .map_err(|fault| calls::error(fault, context.directory.to_path_buf()))?;
    let control = Arc::new(control);
    context.progress.begin(Some(Arc::clone(&control)), Bytes(0));
    let work = (0..count).map(|worker| {
        let control = &*control;
        move || {
            let result = worker::perform(mix, worker, context.directory, control);
            match result {
                Ok(_) | Err(EngineError::Interrupted) => {}
                Err(_) => control.fail(worker),
            }
            result
        }
    });
    let (released, outcomes) = run_threads(&control, context.interrupt, work)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let workers = results(outcomes, control.first_failed_worker())?;
    Ok(PhaseResult::new(workers, control.last_end() - released))
}

/// Checks that the mix can be run.
fn check(mix: &Mix) -> Result<(), EngineError> {
    let reject = |problem, hint| Err(EngineError::Tree { problem, hint });
    if mix.workers.count == 0 {
        return reject("workers is 0", "set it to at least 1");
    }
    if mix.workers.kind == WorkerKind::Process {
        return reject("mixes do not support processes", "use worker_type thread");
    }
    if mix.ops == 0 {
        return reject("operations is 0", "set it to at least 1");
    }
    if mix.weights.iter().all(|(_, weight)| *weight == 0) {
        return reject("all weights are 0", "set one to at least 1");
    }
    let twice = |index: usize| {
        let (before, rest) = mix.weights.split_at(index);
        before.iter().any(|(op, _)| *op == rest[0].0)
    };
    if (0..mix.weights.len()).any(twice) {
        return reject("an operation has two weights", "use one weight per operation");
    }
    if mix.set.block_size.0 == 0 && has(mix, MixOp::Read) {
        return reject("block_size is 0", "set it to at least 1");
    }
    let moves = [MixOp::Create, MixOp::Unlink, MixOp::Rename].into_iter().any(|op| has(mix, op));
    if mix.set.sharing == Sharing::File && mix.workers.count > 1 && moves {
        return reject(
            "workers would remove each other's files",
            "use one worker, or sharing = \"directory\"",
        );
    }
    check_set(&mix.set)
}

/// True if this operation has a weight.
fn has(mix: &Mix, op: MixOp) -> bool {
    mix.weights.iter().any(|(other, weight)| *other == op && *weight > 0)
}

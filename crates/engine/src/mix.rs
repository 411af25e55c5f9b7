//! Mixes: operations drawn by weight on a population of files.
//!
//! The input is a [`Mix`], the output a [`PhaseResult`]. The files of a worker have consecutive
//! numbers, such as 100 to 199. A new file gets the next number, 200, and a removal removes the
//! lowest number, 100. No state is kept per file. Operations and files are drawn from a generator
//! per worker, which is seeded from the file set.
//!
//! `stat`, `open`, and `read` count as reads, the others as writes. The time of an operation is
//! from the end of the previous operation to its own end. If a new file needs a new directory, the
//! mkdir(2) is part of the operation. Directories that have become empty are not removed. Between
//! barrier and end, a worker neither allocates nor locks.
//!
//! Not included: the creation of the population, and the steps of a tree.

mod draw;
#[cfg(test)]
mod tests;
mod worker;

use std::path::{Path, PathBuf};

use model::{
    Bytes, PhaseResult,
    phase::{Mix, MixOp, Sharing, WorkerKind, WorkerResult, Workers},
};

use crate::{
    Context, EngineError,
    driver::{self, Phase, Seat},
    error::Failure,
    layout::check_set,
    set::WorkerEntries,
};

/// Runs the operations of a mix.
///
/// The population is created by an earlier layout or tree with the same file set in
/// `context.directory`: the files of entries 0 to `files - 1` of each worker. A mix changes the
/// population, so a second mix needs a new one. An operation that finds no file, because all were
/// removed, is a `create` instead. Blocks until all workers have ended. If one fails, the others
/// are aborted immediately.
///
/// # Errors
/// As [`crate::run_tree`].
pub fn run_mix(mix: &Mix, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check(mix)?;
    driver::run(&MixPhase { mix, directory: context.directory }, context)
}

/// Mix in a directory.
struct MixPhase<'a> {
    mix: &'a Mix,
    directory: &'a Path,
}

impl Phase for MixPhase<'_> {
    type Error = Failure;

    fn workers(&self) -> Workers {
        self.mix.workers
    }

    fn total(&self) -> Bytes {
        Bytes(0)
    }

    fn path(&self, worker: u32) -> PathBuf {
        WorkerEntries::new(&self.mix.set, worker, self.directory).root
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
        let owner = WorkerEntries::new(&self.mix.set, seat.worker, self.directory).owner;
        worker::perform(self.mix, owner, seat)
    }
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

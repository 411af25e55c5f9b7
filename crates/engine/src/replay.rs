//! Replays of loadfiles by many clients.
//!
//! The input is a [`Replay`], the output a [`PhaseResult`]. One operation is one line of the
//! loadfile. Its time is from the end of the previous operation to its own end, including the
//! lookup of its name. The loadfile is parsed once, before workers exist ([`load`]), into one piece
//! of memory that all clients share ([`program`]), be they threads or processes.
//!
//! All clients work in one directory, [`ROOT`] in the directory under test, as those of dbench do:
//! a loadfile gives each client a separate directory in it by the word `client1`, which is replaced
//! by the number of the client. That directory is new. The names of a program do not lead out of
//! it, and no operation creates links, so nothing outside can be changed. After all clients have
//! ended, it is removed with all its contents, which is not timed.
//!
//! An operation whose status deviates from the loadfile is counted, and the replay continues. If
//! the filesystem is full, broken, or read-only, the phase fails, because the rest would be
//! meaningless ([`calls::is_fatal`]).
//!
//! Between barrier and end, a client neither allocates nor locks.
//!
//! Not included: parsing of loadfiles, contents of files (zeros are written, as by dbench), and
//! verification.

mod calls;
mod check;
mod client;
mod count;
mod load;
mod names;
mod office;
mod pace;
mod program;
mod remove;
mod root;
#[cfg(test)]
mod tests;
mod times;
mod worker;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use model::{
    Bytes, PhaseResult,
    phase::{Replay, ReplayOp, TreeStep, Until, WorkerKind},
};

use crate::{
    Context, EngineError,
    barrier::ControlBlock,
    process::{Process, WorkerJob},
    run::{results, run_threads},
    tree::{Failure, probe},
};
pub(crate) use load::text_of;
pub use load::{check_load, inspect_load, write_load};
pub(crate) use program::Program;
pub(crate) use root::{Identity, ROOT};
pub(crate) use worker::perform;

/// Replays a loadfile.
///
/// Clients work in the directory `fslab-replay` in `context.directory`, which is created and then
/// removed, also if the replay fails; an interrupted replay leaves it to the next one. Operations
/// are counted as reads or writes by [`ReplayOp::changes`]; bytes are the requested bytes of reads
/// and writes. Blocks until all clients have ended. If one fails, the others are aborted
/// immediately.
///
/// # Errors
/// The errors of an invalid loadfile; the error of the client that failed first, with operation,
/// line, and path; [`EngineError::Replay`], before anything is changed, if the replay is invalid;
/// [`EngineError::Unsupported`], before anything is timed, if it needs extended attributes and the
/// filesystem does not support them; [`EngineError::Interrupted`] if `interrupt` was set.
pub fn run_replay(replay: &Replay, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(replay, context)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let program = load::load(&replay.loadfile)?;
    check::check_program(replay, &program)?;
    if replay.xattr {
        probe(context.directory, ROOT, &[TreeStep::SetXattr])?;
    }
    let made = root::make(context.directory, context.interrupt).map_err(Failure::into_error)?;
    let done = replayed(replay, &program, made, context);
    // The first failure is more informative than a failed removal.
    let removed = match &done {
        Err(EngineError::Interrupted) => Ok(()),
        Ok(_) | Err(_) => root::remove(context.directory, made, context.interrupt),
    };
    let mut result = done?;
    removed.map_err(Failure::into_error)?;
    result.facts = program.facts().clone();
    Ok(result)
}

/// Runs all clients.
fn replayed(
    replay: &Replay,
    program: &Program,
    made: Identity,
    context: &Context<'_>,
) -> Result<PhaseResult, EngineError> {
    let (count, directory) = (replay.workers.count, context.directory);
    let refused = |fault| Failure { fault, path: directory.to_path_buf() }.into_error();
    let control = Arc::new(ControlBlock::new(count).map_err(refused)?);
    context.progress.begin(Some(Arc::clone(&control)), total(replay, program));
    let control = &*control;
    let (released, outcomes) = match replay.workers.kind {
        WorkerKind::Thread => {
            let work = (0..count).map(|worker| {
                move || {
                    perform(replay, program, worker, directory, made, control)
                        .map_err(Failure::into_error)
                }
            });
            run_threads(control, context.interrupt, work)?
        }
        WorkerKind::Process => {
            let file = program.file();
            let processes =
                Process::spawn_sharing(count, control, Some(file), context.worker_command)?;
            let work = processes.into_iter().map(|process| {
                let order =
                    WorkerJob::of_replay(replay, (file, made), directory, process.worker, control);
                move || process.run_tree(&order, control, Failure::into_error)
            });
            run_threads(control, context.interrupt, work)?
        }
    };
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let workers = results(outcomes, control.first_failed_worker())?;
    Ok(PhaseResult::new(workers, control.last_end() - released))
}

/// Bytes that the phase moves unless it is stopped; zero if only time limits it.
fn total(replay: &Replay, program: &Program) -> Bytes {
    let Until::Replayed(times) = replay.until else { return Bytes(0) };
    let moves = |kind| matches!(kind, ReplayOp::ReadX | ReplayOp::WriteX);
    let ops = program.ops().iter().filter(|op| moves(op.kind()));
    let once: u64 = ops.map(|op| u64::from(op.size)).sum();
    Bytes(once.saturating_mul(times).saturating_mul(u64::from(replay.workers.count)))
}

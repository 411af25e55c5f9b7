//! Replays of load files by many clients.
//!
//! Data enters as [`Replay`] and leaves as [`PhaseResult`]; one operation is one line of the load
//! file, and its time goes from the end of the one before to its own end, the look at its name
//! included. The load file is read once, before any worker exists ([`load`]); what comes of it is
//! one piece of memory that all clients share ([`program`]), be they threads or processes.
//!
//! All clients work below one directory, [`ROOT`] in the directory under test, as those of the
//! classic tool do: a load file gives each client a directory of its own in there by the word
//! `client1`, which the number of the client replaces. That directory is new. The names of a
//! program do not lead out of it, and as there are no operations that make links, nothing outside
//! can be touched. When all clients are done it is removed with everything that is left in it,
//! which is not timed.
//!
//! An operation that goes otherwise than the load file has it is counted, and the replay goes on;
//! but where the filesystem is full, broken, or read-only the rest would mean nothing, and the
//! phase fails ([`calls::spoils`]).
//!
//! Between barrier and end a client neither allocates nor locks.
//!
//! Not here: text of load files, contents of files (what is written is zeros, as the classic tool
//! writes), and verification.

mod calls;
mod check;
mod client;
mod count;
mod load;
mod names;
mod office;
mod pace;
mod program;
mod root;
mod sweep;
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
    barrier::Board,
    process::{Order, Process},
    run::{attend, results},
    tree::{Failure, probe},
};
pub(crate) use load::text_of;
pub use load::{check_load, inspect_load, write_load};
pub(crate) use program::Program;
pub(crate) use root::{Identity, ROOT};
pub(crate) use worker::perform;

/// Replays a load file.
///
/// Clients work below the directory `fslab-replay` in `context.directory`, which is made anew and
/// removed again, also when the replay fails; an interrupted one leaves it to the next. Operations
/// count as [`ReplayOp::changes`] says; bytes are those that reads and writes ask for. Blocks until
/// all clients are done, also when one fails: the others are told at once.
///
/// # Errors
/// What the load file is refused for; the error of the client that failed first, with operation,
/// line, and path; [`EngineError::Replay`] before anything is touched if the replay contradicts
/// itself; [`EngineError::Unsupported`] before anything is timed if it asks for extended attributes
/// and the filesystem has none; [`EngineError::Interrupted`] if the caller asked to stop.
pub fn run_replay(replay: &Replay, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(replay, context)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let program = load::load(&replay.load)?;
    check::check_program(replay, &program)?;
    if replay.attributes {
        probe(context.directory, ROOT, &[TreeStep::SetXattr])?;
    }
    let made = root::make(context.directory, context.interrupt).map_err(Failure::into_error)?;
    let done = replayed(replay, &program, made, context);
    // What failed says more than what then cannot be removed.
    let removed = match &done {
        Err(EngineError::Interrupted) => Ok(()),
        Ok(_) | Err(_) => root::remove(context.directory, made, context.interrupt),
    };
    let mut result = done?;
    removed.map_err(Failure::into_error)?;
    result.facts = program.facts().clone();
    Ok(result)
}

/// All clients, from the first to the last.
fn replayed(
    replay: &Replay,
    program: &Program,
    made: Identity,
    context: &Context<'_>,
) -> Result<PhaseResult, EngineError> {
    let (count, directory) = (replay.workers.count, context.directory);
    let refused = |fault| Failure { fault, path: directory.to_path_buf() }.into_error();
    let board = Arc::new(Board::new(count).map_err(refused)?);
    context.progress.begin(Some(Arc::clone(&board)), total(replay, program));
    let board = &*board;
    let (released, outcomes) = match replay.workers.kind {
        WorkerKind::Thread => {
            let work = (0..count).map(|worker| {
                move || {
                    perform(replay, program, worker, directory, made, board)
                        .map_err(Failure::into_error)
                }
            });
            attend(board, context.interrupt, work)?
        }
        WorkerKind::Process => {
            let file = program.file();
            let processes =
                Process::spawn_sharing(count, board, Some(file), context.worker_command)?;
            let work = processes.into_iter().map(|process| {
                let order =
                    Order::of_replay(replay, (file, made), directory, process.worker, board);
                move || process.attend_tree(&order, board, Failure::into_error)
            });
            attend(board, context.interrupt, work)?
        }
    };
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let workers = results(outcomes, board.culprit())?;
    Ok(PhaseResult::new(workers, board.last_end() - released))
}

/// Bytes that the phase moves if nothing stops it; zero where only time does.
fn total(replay: &Replay, program: &Program) -> Bytes {
    let Until::Replayed(times) = replay.until else { return Bytes(0) };
    let moves = |kind| matches!(kind, ReplayOp::ReadX | ReplayOp::WriteX);
    let ops = program.ops().iter().filter(|op| moves(op.kind()));
    let once: u64 = ops.map(|op| u64::from(op.size)).sum();
    Bytes(once.saturating_mul(times).saturating_mul(u64::from(replay.workers.count)))
}

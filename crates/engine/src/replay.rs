//! Replays of loadfiles by many clients.
//!
//! The input is a [`Replay`], the output a [`PhaseResult`]. One operation is one line of the
//! loadfile. Its time is from the end of the previous operation to its own end, including the
//! lookup of its name. The loadfile is parsed once, before workers exist ([`load`]), into one piece
//! of memory ([`program`]). All clients share it, whether they are threads or processes.
//!
//! All clients work in one directory, [`ROOT`] in the directory under test, as the clients of
//! dbench do. The word `client1` in names of the loadfile is replaced by `client` and the number of
//! the client, so that each client has a separate subdirectory. [`ROOT`] is newly created. The
//! names of a program do not lead out of [`ROOT`], and no operation creates links, so nothing
//! outside can be changed. After all clients have ended, [`ROOT`] is removed with all its contents,
//! which is not timed.
//!
//! An operation whose status deviates from the loadfile is counted as unexpected, and the replay
//! continues. If the filesystem is full, broken, or read-only, the phase fails, because the rest
//! would be meaningless ([`calls::is_fatal`]).
//!
//! Between barrier and end, a client neither allocates nor locks.
//!
//! Not included: parsing of loadfiles, contents of files (zeros are written, as by dbench), and
//! verification.

mod calls;
mod check;
mod client;
mod load;
mod names;
mod office;
mod program;
mod remove;
mod root;
#[cfg(test)]
mod tests;
mod times;
mod worker;

use std::{
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use model::{
    Bytes, PhaseResult,
    phase::{Replay, ReplayOp, TreeStep, Until, WorkerResult, Workers},
};

use crate::{
    Context, EngineError,
    driver::{self, Phase, Seat, interrupted},
    error::Failure,
    process::{self, Identity},
    tree::probe,
};
pub(crate) use load::text_of;
pub use load::{check_load, inspect_load, installed_load, write_load};
pub(crate) use program::Program;
pub(crate) use root::ROOT;

/// Replays a loadfile.
///
/// Clients work in the directory `fslab-replay` in `context.directory`, which is created and then
/// removed, even if the replay fails. An interrupted replay leaves the directory, and the next
/// replay removes it. Operations are counted as reads or writes by [`ReplayOp::changes`]; bytes are
/// the requested bytes of reads and writes. Blocks until all clients have ended. If one fails, the
/// others are aborted immediately.
///
/// # Errors
/// The errors of an invalid loadfile; the error of the client that failed first, with operation,
/// line, and path; [`EngineError::Replay`], before anything is changed, if the replay is invalid;
/// [`EngineError::Unsupported`], before anything is timed, if it needs extended attributes and the
/// filesystem does not support them; [`EngineError::Interrupted`] if `interrupt` was set.
pub fn run_replay(replay: &Replay, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(replay, context)?;
    interrupted(context.interrupt)?;
    let program = &load::load(&replay.loadfile)?;
    check::check_program(replay, program)?;
    let directory = context.directory;
    if replay.xattr {
        probe(directory, ROOT, &[TreeStep::SetXattr])?;
    }
    let made = root::make(directory, context.interrupt)?;
    let done = driver::run(&ReplayPhase { replay, program, directory, made }, context);
    // The first failure is more informative than a failed removal.
    let removed = match &done {
        Err(EngineError::Interrupted) => Ok(()),
        Ok(_) | Err(_) => root::remove(directory, made, context.interrupt),
    };
    let mut result = done?;
    removed?;
    result.facts = program.facts().clone();
    Ok(result)
}

/// Replay in a directory.
pub(crate) struct ReplayPhase<'a> {
    /// Parameters.
    pub(crate) replay: &'a Replay,
    /// Operations of the loadfile.
    pub(crate) program: &'a Program,
    /// Directory under test.
    pub(crate) directory: &'a Path,
    /// Root directory that was created for the replay.
    pub(crate) made: Identity,
}

impl Phase for ReplayPhase<'_> {
    type Error = Failure;

    fn workers(&self) -> Workers {
        self.replay.workers
    }

    fn total(&self) -> Bytes {
        total(self.replay, self.program)
    }

    fn path(&self, _worker: u32) -> PathBuf {
        root::path(self.directory)
    }

    fn job(&self) -> Option<process::Work> {
        let program = self.program.file().as_raw_fd();
        Some(process::Work::Replay(Box::new(self.replay.clone()), program, self.made))
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
        worker::perform(self, seat)
    }
}

/// Bytes that the phase moves unless it is stopped; zero if only time limits it.
fn total(replay: &Replay, program: &Program) -> Bytes {
    let Until::Replayed(times) = replay.until else { return Bytes(0) };
    let moves = |kind| matches!(kind, ReplayOp::ReadX | ReplayOp::WriteX);
    let ops = program.ops().iter().filter(|op| moves(op.kind()));
    let once: u64 = ops.map(|op| u64::from(op.size)).sum();
    Bytes(once.saturating_mul(times).saturating_mul(u64::from(replay.workers.count)))
}

//! Streams: transfers of blocks by synchronized workers, each in one file or several.

use std::path::{Path, PathBuf};

use model::{
    Bytes, PhaseResult,
    phase::{
        AccessPattern, Bound, FileSharing, SteadyState, Stream, WorkerKind, WorkerResult, Workers,
    },
};

use crate::{
    Context, CrashState, EngineError,
    barrier::ControlBlock,
    clock::now,
    crash_report,
    driver::{self, Phase, Seat, interrupted},
    error::{Failure, Operation},
    io::prepare,
    patterns::Prepared,
    process,
    worker::Assignment,
};

mod check;
#[cfg(test)]
mod tests;

/// Runs the workers of a stream and returns their results.
///
/// Files are `directory` joined with [`FileSharing::names`]. [`IoEngineKind::Null`] does not access
/// any file. Blocks until all workers have ended. If one fails, the others are aborted immediately.
///
/// # Errors
/// The error of the worker that failed first; [`EngineError::Interrupted`] if `interrupt` was set;
/// [`EngineError::Stream`], before anything is changed, if the stream is invalid.
pub fn run(stream: &Stream, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(stream, context)?;
    let directory = context.directory;
    if context.state.is_some() {
        crash_report::check(stream, &paths(&stream.files, stream.workers.count, directory))?;
    }
    interrupted(context.interrupt)?;
    prepare(stream, &paths(&stream.files, stream.workers.count, directory))?;
    let phase = match stream.workers.kind {
        WorkerKind::Thread => StreamPhase::prepared(stream, directory)?,
        WorkerKind::Process => StreamPhase { stream, directory, prepared: None, state: None },
    };
    driver::run(&StreamPhase { state: context.state, ..phase }, context)
}

/// Stream in a directory.
pub(crate) struct StreamPhase<'a> {
    stream: &'a Stream,
    directory: &'a Path,
    // Data for its access pattern, if workers are threads.
    prepared: Option<Prepared>,
    state: Option<&'a CrashState>,
}

impl<'a> StreamPhase<'a> {
    /// Stream whose workers run in this process.
    pub(crate) fn prepared(stream: &'a Stream, directory: &'a Path) -> Result<Self, Failure> {
        let path = directory.join(stream.files.name(0));
        let prepared = Prepared::new(stream).map_err(|fault| fault.of_stream(stream, &path))?;
        Ok(Self { stream, directory, prepared: Some(prepared), state: None })
    }
}

impl Phase for StreamPhase<'_> {
    type Error = Failure;

    // A worker opens its files before the clock starts, and may use pipes and rings.
    const OWN_DESCRIPTORS: bool = false;

    fn workers(&self) -> Workers {
        self.stream.workers
    }

    fn total(&self) -> Bytes {
        total(self.stream)
    }

    fn path(&self, worker: u32) -> PathBuf {
        self.directory.join(self.stream.files.name(worker))
    }

    fn control(&self) -> Result<ControlBlock, EngineError> {
        match self.state {
            Some(state) => crash_report::begin(state, self.stream, self.directory),
            None => driver::control(self),
        }
    }

    fn job(&self) -> Option<process::Work> {
        Some(process::Work::Stream(Box::new(self.stream.clone())))
    }

    fn steady_state(&self) -> Option<SteadyState> {
        self.stream.steady_state
    }

    fn has_flow(&self) -> bool {
        self.stream.flow.is_some()
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
        let prepared = self.prepared.as_ref().expect("prepared where workers run");
        let names = self.stream.files.names(seat.worker);
        let paths: Vec<PathBuf> = names.iter().map(|name| self.directory.join(name)).collect();
        Assignment { stream: self.stream, seat, prepared, paths: &paths }.perform()
    }
}

/// Removes the files in `context.directory` that a stream with this number of workers created.
///
/// The result has no workers; its wall time covers the unlink(2) calls.
///
/// # Errors
/// [`EngineError::Io`] for the first file that cannot be removed or is missing;
/// [`EngineError::Interrupted`] if `interrupt` was set.
pub fn remove(
    files: &FileSharing,
    workers: u32,
    context: &Context<'_>,
) -> Result<PhaseResult, EngineError> {
    context.progress.begin(None, Bytes(0));
    let paths = paths(files, workers, context.directory);
    let started = now();
    for path in paths {
        interrupted(context.interrupt)?;
        rustix::fs::unlink(&path).map_err(|errno| EngineError::Io {
            operation: Operation::Unlink,
            path,
            offset: None,
            source: errno.into(),
        })?;
    }
    Ok(PhaseResult::new(Vec::new(), now() - started))
}

fn paths(files: &FileSharing, workers: u32, directory: &Path) -> Vec<PathBuf> {
    let all = (0..workers).flat_map(|worker| files.names(worker));
    let mut paths: Vec<PathBuf> = all.map(|name| directory.join(name)).collect();
    let mut known = std::collections::HashSet::new();
    paths.retain(|path| known.insert(path.clone()));
    paths
}

/// Bytes that the phase moves unless it is stopped; zero if only time limits it.
fn total(stream: &Stream) -> Bytes {
    let blocks = stream.region_size().0 / stream.block_size.0;
    let blocks = blocks.saturating_mul(u64::from(stream.files.per_worker()));
    let pass = stream.block_size.0.saturating_mul(blocks);
    let each = match stream.bound {
        // The trace determines the number and length of the operations.
        _ if stream.access_pattern == AccessPattern::Trace => 0,
        Bound::Once | Bound::Deadline(_) if stream.files.divides_file() => return Bytes(pass),
        Bound::Once | Bound::Deadline(_) => pass,
        // If the stream has several operation lengths, they are random, and the sum is approximate.
        Bound::Together(ops) => return Bytes(stream.block_size.0.saturating_mul(ops)),
        Bound::Ops(ops) => stream.block_size.0.saturating_mul(ops),
        Bound::Amount(amount) => {
            let bytes = stream.block_size.0.saturating_mul(amount.ops).min(amount.bytes.0);
            if bytes == u64::MAX { 0 } else { bytes }
        }
        Bound::Time { .. } => 0,
    };
    Bytes(each.saturating_mul(u64::from(stream.workers.count)))
}

//! Coordinator of a stream phase: starts the workers and collects their results.
//!
//! The coordinator is the calling thread. It sleeps while the workers run and checks every 50 ms
//! for an interruption.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use model::{
    Bytes, PhaseResult,
    phase::{AccessPattern, Bound, FileSharing, Stream, WorkerKind, WorkerResult},
};

use crate::{
    EngineError, Progress,
    barrier::ControlBlock,
    clock::now,
    crash_report::{self, CrashState},
    error::{Fault, Operation},
    patterns::Prepared,
    process::{self, Process},
    worker::Assignment,
};

/// Parameters of a phase in addition to its description.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Directory under test, which exists.
    pub directory: &'a Path,
    /// Progress of the phase.
    pub progress: &'a Progress,
    /// Set by the caller, from any thread or signal handler, to stop the phase within about 50 ms
    /// and one operation per worker.
    pub interrupt: &'a AtomicBool,
    /// State file for verifying the files after a crash, see [`crate::crash_report`].
    pub state: Option<&'a CrashState>,
    /// Program and arguments of a worker process, which must call [`crate::worker_process`], such
    /// as `["/proc/self/exe", "worker"]`. Empty if no stream uses processes.
    pub worker_command: &'a [OsString],
}

/// Runs the workers of a stream and returns their results.
///
/// Files are `directory` joined with [`FileSharing::name`]. [`IoEngineKind::Null`] does not access
/// any file. Blocks until all workers have ended. If one fails, the others are aborted immediately.
///
/// # Errors
/// The error of the worker that failed first; [`EngineError::Interrupted`] if `interrupt` was set;
/// [`EngineError::Stream`], before anything is changed, if the stream is invalid.
pub fn run(stream: &Stream, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(stream, context)?;
    if context.state.is_some() {
        crash_report::check(
            stream,
            &self::paths(&stream.files, stream.workers.count, context.directory),
        )?;
    }
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let count = stream.workers.count;
    let paths = paths(&stream.files, count, context.directory);
    let fault = |fault: Fault| fault.into_error(stream, &paths[0]);
    let control = Arc::new(match context.state {
        None => ControlBlock::new(count).map_err(fault)?,
        Some(state) => crash_report::begin(state, stream, context.directory)?,
    });
    context.progress.begin(Some(Arc::clone(&control)), total(stream));

    let (released, outcomes) = match stream.workers.kind {
        WorkerKind::Thread => {
            let prepared = Prepared::new(stream).map_err(fault)?;
            let (control, prepared) = (&*control, &prepared);
            let work = paths.iter().zip(0..).map(|(path, worker)| {
                move || {
                    Assignment { stream, worker, path, control, prepared }
                        .perform()
                        .map_err(|fault| fault.into_error(stream, path))
                }
            });
            run_threads(control, context.interrupt, work)?
        }
        WorkerKind::Process => {
            let processes = Process::spawn_all(count, &control, context.worker_command)?;
            let (control, paths) = (&*control, &paths);
            let work = processes.into_iter().zip(paths).map(|(process, path)| {
                let order =
                    process::WorkerJob::new(stream, context.directory, process.worker, control);
                move || process.run_stream(&order, control, |fault| fault.into_error(stream, path))
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
        if context.interrupt.load(Relaxed) {
            return Err(EngineError::Interrupted);
        }
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
    (0..workers).map(|worker| directory.join(files.name(worker))).collect()
}

/// Bytes that the phase moves unless it is stopped; zero if only time limits it.
fn total(stream: &Stream) -> Bytes {
    let blocks = stream.size.0 / stream.block_size.0;
    let pass = stream.block_size.0.saturating_mul(blocks);
    let each = match stream.bound {
        // The trace determines the number and length of the operations.
        _ if stream.access_pattern == AccessPattern::Trace => 0,
        Bound::Once if matches!(stream.files, FileSharing::Segmented(_)) => {
            return Bytes(pass);
        }
        Bound::Once => pass,
        // Operation lengths are random, so the sum is approximate if there are several.
        Bound::Together(ops) => return Bytes(stream.block_size.0.saturating_mul(ops)),
        Bound::Ops(ops) => stream.block_size.0.saturating_mul(ops),
        Bound::Time { .. } => 0,
    };
    Bytes(each.saturating_mul(u64::from(stream.workers.count)))
}

mod check;

/// Result of one worker.
pub(crate) type Outcome = Result<WorkerResult, EngineError>;

/// Runs each piece of work in a thread, opens the gate when all workers are ready, and waits for
/// all of them. Returns the instant at which the gate opened and the results in order.
pub(crate) fn run_threads<W>(
    control: &ControlBlock,
    interrupt: &AtomicBool,
    work: impl Iterator<Item = W>,
) -> Result<(model::Nanos, Vec<Outcome>), EngineError>
where
    W: FnOnce() -> Outcome + Send,
{
    let poll = || {
        if interrupt.load(Relaxed) && !control.aborted() {
            control.abort();
        }
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (work, worker) in work.zip(0..) {
            let guard = DoneGuard { control, worker };
            let builder = thread::Builder::new().name(format!("worker-{worker}"));
            let thread = builder.spawn_scoped(scope, move || {
                let _guard = guard;
                work()
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    control.abort();
                    return Err(EngineError::Spawn { worker, program: "thread".into(), source });
                }
            }
        }
        control.wait_ready(poll);
        let released = control.release();
        control.wait_finished(poll);
        let join = |thread: thread::ScopedJoinHandle<'_, Outcome>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok((released, threads.into_iter().map(join).collect()))
    })
}

/// Marks a worker as ended when dropped, even if it panics.
struct DoneGuard<'a> {
    control: &'a ControlBlock,
    worker: u32,
}

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.control.fail(self.worker);
        }
        self.control.finish();
    }
}

/// Results of all workers, or the error of the worker that failed first; later failures are
/// consequences.
pub(crate) fn results(
    outcomes: Vec<Outcome>,
    first_failed_worker: Option<u32>,
) -> Result<Vec<WorkerResult>, EngineError> {
    let mut errors = Vec::new();
    let mut results = Vec::new();
    for (outcome, worker) in outcomes.into_iter().zip(0..) {
        match outcome {
            Ok(result) => results.push(result),
            Err(error) => errors.push((worker, error)),
        }
    }
    let first =
        errors.iter().position(|(worker, _)| Some(*worker) == first_failed_worker).unwrap_or(0);
    match errors.into_iter().nth(first) {
        Some((_, error)) => Err(error),
        None => Ok(results),
    }
}

#[cfg(test)]
mod tests;

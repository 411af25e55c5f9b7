//! Phases: starts the workers of a stream, attends to them, and collects their results.
//!
//! The coordinator is the calling thread. It sleeps while the workers work, and looks up every 50
//! ms to see whether the caller wants to stop.

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
    phase::{Access, Bound, Files, Stream, WorkerKind, WorkerResult},
};

use crate::{
    EngineError, Progress,
    barrier::Board,
    clock::now,
    error::{Fault, Operation},
    patterns::Prepared,
    process::{self, Process},
    survival::{self, CrashState},
    worker::Assignment,
};

/// What a phase needs beside its description.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The directory under test; it exists.
    pub directory: &'a Path,
    /// Where to show how far the phase is.
    pub progress: &'a Progress,
    /// Set by the caller, from any thread or signal handler, to stop the phase within about 50 ms
    /// and one operation of each worker.
    pub interrupt: &'a AtomicBool,
    /// Where to keep what is needed to judge the files after a crash, see [`crate::survival`].
    pub state: Option<&'a CrashState>,
    /// Program and arguments of a worker process, which must call [`crate::worker_process`]: such
    /// as `["/proc/self/exe", "worker"]`. Empty if no stream asks for processes.
    pub worker_command: &'a [OsString],
}

/// Runs the workers of a stream and tells what they did.
///
/// Files are `directory` joined with [`Files::name`]. With [`Interface::Null`] no file is touched.
/// Blocks until all workers are done, also when one fails: the others are told at once.
///
/// # Errors
/// The error of the worker that failed first, [`EngineError::Interrupted`] if the caller asked to
/// stop, [`EngineError::Stream`] before anything is touched if the stream contradicts itself.
pub fn run(stream: &Stream, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check::check(stream, context)?;
    if context.state.is_some() {
        survival::check(
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
    let board = Arc::new(match context.state {
        None => Board::new(count).map_err(fault)?,
        Some(state) => survival::begin(state, stream, context.directory)?,
    });
    context.progress.begin(Some(Arc::clone(&board)), total(stream));

    let (released, outcomes) = match stream.workers.kind {
        WorkerKind::Thread => {
            let prepared = Prepared::new(stream).map_err(fault)?;
            let (board, prepared) = (&*board, &prepared);
            let work = paths.iter().zip(0..).map(|(path, worker)| {
                move || {
                    Assignment { stream, worker, path, board, prepared }
                        .perform()
                        .map_err(|fault| fault.into_error(stream, path))
                }
            });
            attend(board, context.interrupt, work)?
        }
        WorkerKind::Process => {
            let processes = Process::spawn_all(count, &board, context.worker_command)?;
            let (board, paths) = (&*board, &paths);
            let work = processes.into_iter().zip(paths).map(|(process, path)| {
                let order = process::Order::new(stream, context.directory, process.worker, board);
                move || process.attend(&order, board, |fault| fault.into_error(stream, path))
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

/// Removes the files that a stream of so many workers left in `context.directory`.
///
/// The result has no workers; its wall time covers the unlink(2) calls.
///
/// # Errors
/// [`EngineError::Io`] for the first file that cannot be removed, a missing one included;
/// [`EngineError::Interrupted`] if the caller asked to stop.
pub fn remove(
    files: &Files,
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

fn paths(files: &Files, workers: u32, directory: &Path) -> Vec<PathBuf> {
    (0..workers).map(|worker| directory.join(files.name(worker))).collect()
}

/// Bytes that the phase moves if nothing stops it; zero where only time does.
fn total(stream: &Stream) -> Bytes {
    let records = stream.size.0 / stream.record.0;
    let pass = stream.record.0.saturating_mul(records);
    let each = match stream.bound {
        // Its list says how much, and in lengths of its own.
        _ if stream.access == Access::Replay => 0,
        Bound::Once if matches!(stream.files, Files::Split(_)) => {
            return Bytes(pass);
        }
        Bound::Once => pass,
        // Lengths are drawn, so this is about right where there are several.
        Bound::Together(ops) => return Bytes(stream.record.0.saturating_mul(ops)),
        Bound::Ops(ops) => stream.record.0.saturating_mul(ops),
        Bound::Time { .. } => 0,
    };
    Bytes(each.saturating_mul(u64::from(stream.workers.count)))
}

mod check;

/// What became of one worker.
pub(crate) type Outcome = Result<WorkerResult, EngineError>;

/// Runs each piece of work in a thread, opens the gate when all workers are ready, and waits for
/// all. Answers when the gate was opened, and the outcomes in order.
pub(crate) fn attend<W>(
    board: &Board,
    interrupt: &AtomicBool,
    work: impl Iterator<Item = W>,
) -> Result<(model::Nanos, Vec<Outcome>), EngineError>
where
    W: FnOnce() -> Outcome + Send,
{
    let look = || {
        if interrupt.load(Relaxed) && !board.aborted() {
            board.abort();
        }
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (work, worker) in work.zip(0..) {
            let attendance = Attendance { board, worker };
            let builder = thread::Builder::new().name(format!("worker-{worker}"));
            let thread = builder.spawn_scoped(scope, move || {
                let _attendance = attendance;
                work()
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    board.abort();
                    return Err(EngineError::Spawn { worker, program: "thread".into(), source });
                }
            }
        }
        board.wait_ready(look);
        let released = board.release();
        board.wait_finished(look);
        let join = |thread: thread::ScopedJoinHandle<'_, Outcome>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok((released, threads.into_iter().map(join).collect()))
    })
}

/// Tells the board when a worker is done, even when it panics.
struct Attendance<'a> {
    board: &'a Board,
    worker: u32,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.board.fail(self.worker);
        }
        self.board.finish();
    }
}

/// The results if all have one; else the error of the culprit, as others only followed.
pub(crate) fn results(
    outcomes: Vec<Outcome>,
    culprit: Option<u32>,
) -> Result<Vec<WorkerResult>, EngineError> {
    let mut errors = Vec::new();
    let mut results = Vec::new();
    for (outcome, worker) in outcomes.into_iter().zip(0..) {
        match outcome {
            Ok(result) => results.push(result),
            Err(error) => errors.push((worker, error)),
        }
    }
    let first = errors.iter().position(|(worker, _)| Some(*worker) == culprit).unwrap_or(0);
    match errors.into_iter().nth(first) {
        Some((_, error)) => Err(error),
        None => Ok(results),
    }
}

#[cfg(test)]
mod tests;

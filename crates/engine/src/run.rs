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
    phase::{Files, Fill, Interface, Presence, Stream, WorkerKind, WorkerResult},
};

use crate::{
    EngineError, Progress,
    barrier::Board,
    clock::now,
    error::{Fault, Operation},
    patterns::permutation,
    process::{self, Process},
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
    check(stream, context)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let count = stream.workers.count;
    let paths = paths(&stream.files, count, context.directory);
    let fault = |fault: Fault| fault.into_error(stream, &paths[0]);
    let board = Arc::new(Board::new(count).map_err(fault)?);
    let records = stream.size.0 / stream.record.0;
    let total = stream.record.0.saturating_mul(records).saturating_mul(u64::from(count));
    context.progress.begin(Some(Arc::clone(&board)), Bytes(total));

    let (released, outcomes) = match stream.workers.kind {
        WorkerKind::Thread => {
            let permutation = permutation(stream.access, records).map_err(fault)?;
            let (board, permutation) = (&*board, &*permutation);
            let work = paths.iter().zip(0..).map(|(path, worker)| {
                move || {
                    Assignment { stream, worker, path, board, permutation }
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
    Ok(PhaseResult { workers, wall_time: board.last_end() - released })
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
    Ok(PhaseResult { workers: Vec::new(), wall_time: now() - started })
}

fn paths(files: &Files, workers: u32, directory: &Path) -> Vec<PathBuf> {
    (0..workers).map(|worker| directory.join(files.name(worker))).collect()
}

/// Refuses streams that contradict themselves.
fn check(stream: &Stream, context: &Context<'_>) -> Result<(), EngineError> {
    let workers = stream.workers;
    let readers = (0..workers.count).any(|worker| stream.direction.reads(worker));
    let entropy = match stream.fill {
        Fill::Random { entropy, .. } => entropy,
        Fill::PagePattern => 0.0,
    };
    let open = stream.open;
    let problem = if stream.record.0 == 0 {
        Some(("its record is empty", "give the size of a record"))
    } else if stream.size < stream.record {
        Some(("its files are smaller than one record", "use larger files or a smaller record"))
    } else if workers.count == 0 {
        Some(("it has no workers", "use at least one"))
    } else if workers.count > 1 && matches!(stream.files, Files::One(_)) {
        Some(("it has several workers for one file", "give each worker a file of its own"))
    } else if !(0.0..=1.0).contains(&entropy) {
        Some(("its share of random bytes is not a share", "use a number within 0..=1"))
    } else if readers && open.presence == Presence::Fresh && stream.interface != Interface::Null {
        Some(("it reads files that it has just created", "write them in a phase before"))
    } else if stream.interface == Interface::Stdio && (open.direct || open.sync) {
        Some((
            "streams of the C library open without O_DIRECT and O_SYNC",
            "set direct and sync to false, or use another interface",
        ))
    } else if stream.interface == Interface::Null && stream.verify && readers {
        Some(("the null interface has no content to verify", "set verify to false"))
    } else if workers.kind == WorkerKind::Process && context.worker_command.is_empty() {
        Some(("it wants processes and has no command for them", "use threads"))
    } else {
        None
    };
    problem.map_or(Ok(()), |(problem, cure)| Err(EngineError::Stream { problem, cure }))
}

type Outcome = Result<WorkerResult, EngineError>;

/// Runs each piece of work in a thread, opens the gate when all workers are ready, and waits for
/// all. Answers when the gate was opened, and the outcomes in order.
fn attend<W>(
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
fn results(outcomes: Vec<Outcome>, culprit: Option<u32>) -> Result<Vec<WorkerResult>, EngineError> {
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

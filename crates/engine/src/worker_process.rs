//! Worker processes: code of the child; see [`crate::process`].
#![expect(unsafe_code, reason = "descriptors that come as numbers")]

use std::{
    ffi::OsStr,
    io::{self, Write},
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    sync::Arc,
};

use model::phase::WorkerResult;

use crate::{
    EngineError,
    barrier::ControlBlock,
    driver,
    error::Failure,
    flow::Flows,
    process::{Work, WorkerJob, WorkerReply},
    replay::{Program, ReplayPhase},
    run::StreamPhase,
    tree::TreePhase,
};

/// Entry point of a worker process. Reads the job from standard input, runs it, and writes the
/// result to standard output. The failure of a job is also a result.
///
/// Call it once, at the start of a process that [`Context::worker_command`] starts. No other code
/// of the process may use standard input and output.
///
/// [`Context::worker_command`]: crate::Context::worker_command
///
/// # Errors
/// [`EngineError::Protocol`] or [`EngineError::Pipe`] if the communication with the parent fails.
/// The process should then exit with a nonzero status.
pub fn worker_process() -> Result<(), EngineError> {
    let mut line = String::new();
    let unread = |source| EngineError::Pipe { worker: 0, source };
    io::stdin().read_line(&mut line).map_err(unread)?;
    let (worker, job): (u32, WorkerJob) = serde_json::from_str(&line)
        .map_err(|source| EngineError::Protocol { worker: 0, source })?;
    let reply = WorkerReply::of(run_job(worker, &job));
    let mut line =
        serde_json::to_vec(&reply).map_err(|source| EngineError::Protocol { worker, source })?;
    line.push(b'\n');
    io::stdout().write_all(&line).map_err(|source| EngineError::Pipe { worker, source })
}

/// Runs the job of a worker.
fn run_job(worker: u32, job: &WorkerJob) -> Result<WorkerResult, Failure> {
    let directory = Path::new(OsStr::from_bytes(&job.directory));
    let count = match &job.work {
        Work::Stream(stream) => stream.workers.local(),
        Work::Tree(tree) => tree.workers.local(),
        Work::Replay(replay, ..) => replay.workers.local(),
    };
    let failure = |fault| Failure { fault, path: directory.to_path_buf() };
    // SAFETY: the parent left this descriptor open and named it in the job. Nothing else in this
    // process uses the number, and this function runs once.
    let file = unsafe { OwnedFd::from_raw_fd(job.control) };
    let control = ControlBlock::attach(file, count, job.kept).map_err(failure)?;
    let flows = job.flows.map(|descriptor| {
        // SAFETY: as for the control block.
        Flows::attach(unsafe { OwnedFd::from_raw_fd(descriptor) }).map(Arc::new)
    });
    let flows = flows.transpose().inspect_err(|_| control.fail(worker)).map_err(failure)?;
    let flows = flows.as_ref();
    match &job.work {
        Work::Stream(stream) => {
            let phase = StreamPhase::prepared(stream, directory);
            let phase = phase.inspect_err(|_| control.fail(worker))?;
            driver::work(&phase, worker, &control, flows)
        }
        Work::Tree(tree) => driver::work(&TreePhase { tree, directory }, worker, &control, flows),
        Work::Replay(replay, program, made) => {
            // SAFETY: as for the control block.
            let file = unsafe { OwnedFd::from_raw_fd(*program) };
            let program = Program::attach(file).inspect_err(|_| control.fail(worker));
            let program = &program.map_err(failure)?;
            let phase = ReplayPhase { replay, program, directory, made: *made };
            driver::work(&phase, worker, &control, flows)
        }
    }
}

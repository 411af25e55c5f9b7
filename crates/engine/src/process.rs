//! Worker processes: code of the parent and of the child.
//!
//! The parent starts the worker command once per worker, writes one line of JSON to its standard
//! input ([`WorkerJob`]), and reads one line from its standard output ([`WorkerReply`]). All other
//! communication (ready, start, stop, progress) uses the control block. The child inherits the file
//! of the block under the descriptor number given in the job. A child runs the same code as a
//! worker thread, so any difference between the two is caused by the kernel. The job is a stream,
//! whose only file the parent knows, or a tree or replay, for which the reply contains the path
//! that failed. For a replay, the child also inherits the memory that holds its operations.
//!
//! A child asks the kernel to kill it when the thread that started it ends. A killed run therefore
//! leaves no worker processes behind.
#![expect(unsafe_code, reason = "pre_exec, and a descriptor that comes as a number")]

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::{
            ffi::{OsStrExt, OsStringExt},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use model::{
    Histogram,
    phase::{Latencies, Replay, ReplayOp, Stream, Tree, WorkerResult},
};
use rustix::process::{
    Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_parent_process_death_signal,
    setrlimit,
};
use serde::{Deserialize, Serialize};

use crate::{
    EngineError,
    barrier::ControlBlock,
    error::Fault,
    patterns::Prepared,
    replay::{self, Identity, Program},
    tree::{self, Failure},
    worker::Assignment,
};

/// Job description that the parent writes to the standard input of a worker process.
#[derive(Serialize, Deserialize)]
pub(crate) struct WorkerJob {
    work: Work,
    /// Directory under test as bytes, because a path need not be UTF-8.
    directory: Vec<u8>,
    worker: u32,
    /// Descriptor number of the control block, and true if the block outlives the phase.
    control: RawFd,
    kept: bool,
}

/// Work of the phase.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Stream(Box<Stream>),
    Tree(Box<Tree>),
    /// Replay, descriptor number of its program, and the root directory created for it.
    Replay(Box<Replay>, RawFd, Identity),
}

impl WorkerJob {
    /// Job of one worker of a stream.
    pub(crate) fn new(
        stream: &Stream,
        directory: &Path,
        worker: u32,
        control: &ControlBlock,
    ) -> Self {
        Self::of(Work::Stream(Box::new(stream.clone())), directory, worker, control)
    }

    /// Job of one worker of a tree.
    pub(crate) fn of_tree(
        tree: &Tree,
        directory: &Path,
        worker: u32,
        control: &ControlBlock,
    ) -> Self {
        Self::of(Work::Tree(Box::new(tree.clone())), directory, worker, control)
    }

    /// Job of one client of a replay; `file` holds the program and the root was created for it.
    pub(crate) fn of_replay(
        replay: &Replay,
        (program, made): (BorrowedFd<'_>, Identity),
        directory: &Path,
        worker: u32,
        control: &ControlBlock,
    ) -> Self {
        let work = Work::Replay(Box::new(replay.clone()), program.as_raw_fd(), made);
        Self::of(work, directory, worker, control)
    }

    fn of(work: Work, directory: &Path, worker: u32, control: &ControlBlock) -> Self {
        Self {
            work,
            directory: directory.as_os_str().as_bytes().to_vec(),
            worker,
            control: control.file().as_raw_fd(),
            kept: control.is_kept(),
        }
    }
}

/// Reply that a child writes to its standard output.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WorkerReply {
    /// Result, and its histograms, which are not part of a serialized result: stored form in
    /// hexadecimal, in the order of [`Latencies::each`], followed by those by operation type.
    Done {
        result: Box<WorkerResult>,
        latencies: Vec<String>,
        #[serde(default)]
        by_kind: Vec<(ReplayOp, String)>,
    },
    /// The worker failed.
    Fault(Fault),
    /// The worker failed on this path (as bytes).
    Failure { fault: Fault, path: Vec<u8> },
}

/// Running child process. It is killed and reaped on drop unless it has ended.
pub(crate) struct Process {
    /// Index of the worker.
    pub(crate) worker: u32,
    child: Child,
}

impl Process {
    /// Starts all workers of a phase. If one fails to start, the others are killed.
    pub(crate) fn spawn_all(
        count: u32,
        control: &ControlBlock,
        command: &[OsString],
    ) -> Result<Vec<Self>, EngineError> {
        Self::spawn_sharing(count, control, None, command)
    }

    /// Like [`Self::spawn_all`]; the children inherit one more file.
    pub(crate) fn spawn_sharing(
        count: u32,
        control: &ControlBlock,
        file: Option<BorrowedFd<'_>>,
        command: &[OsString],
    ) -> Result<Vec<Self>, EngineError> {
        raise_file_limit(count);
        let file = file.map(|file| file.as_raw_fd());
        (0..count).map(|worker| Self::spawn(worker, control, file, command)).collect()
    }

    fn spawn(
        worker: u32,
        control: &ControlBlock,
        file: Option<RawFd>,
        command: &[OsString],
    ) -> Result<Self, EngineError> {
        let (program, arguments) = command.split_first().expect("checked with the stream");
        let parent = getpid();
        let control_fd = control.file().as_raw_fd();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: the closure runs between fork and exec and makes a few async-signal-safe system
        // calls. It neither allocates nor takes locks. The descriptors are open, because the parent
        // borrows control block and file while it spawns, and fork copies the descriptor table.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have died before the previous call.
                if getppid() != Some(parent) {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                file.map_or(Ok(()), keep_open)?;
                keep_open(control_fd)
            });
        }
        let child = command.spawn().map_err(|source| EngineError::Spawn {
            worker,
            program: program.clone(),
            source,
        })?;
        Ok(Self { worker, child })
    }

    /// Sends the job of a stream to the child and waits for its reply. Without a reply, the failure
    /// is recorded in the control block. `error` adds the path of the file.
    pub(crate) fn run_stream(
        self,
        job: &WorkerJob,
        control: &ControlBlock,
        error: impl Fn(Fault) -> EngineError,
    ) -> Result<WorkerResult, EngineError> {
        self.collect(job, control, |fault, _| error(fault))
    }

    /// Like [`Self::run_stream`] for a tree.
    pub(crate) fn run_tree(
        self,
        job: &WorkerJob,
        control: &ControlBlock,
        error: impl Fn(Failure) -> EngineError,
    ) -> Result<WorkerResult, EngineError> {
        self.collect(job, control, |fault, path| error(Failure { fault, path }))
    }

    fn collect(
        mut self,
        job: &WorkerJob,
        control: &ControlBlock,
        error: impl Fn(Fault, PathBuf) -> EngineError,
    ) -> Result<WorkerResult, EngineError> {
        let reply = self.exchange(job);
        if reply.is_err() {
            control.fail(self.worker);
        }
        let (fault, path) = match reply? {
            WorkerReply::Fault(fault) => (fault, OsString::from_vec(job.directory.clone())),
            WorkerReply::Failure { fault, path } => (fault, OsString::from_vec(path)),
            WorkerReply::Done { mut result, latencies, by_kind } => {
                result.latencies = decode(&latencies, &by_kind).ok_or_else(|| {
                    let source = serde::de::Error::custom("invalid histogram");
                    control.fail(self.worker);
                    EngineError::Protocol { worker: self.worker, source }
                })?;
                return Ok(*result);
            }
        };
        // The child recorded the failure itself, unless it could not map the control block.
        if fault != Fault::Aborted {
            control.fail(self.worker);
        }
        Err(error(fault, path.into()))
    }

    fn exchange(&mut self, job: &WorkerJob) -> Result<WorkerReply, EngineError> {
        let worker = self.worker;
        let pipe = |source| EngineError::Pipe { worker, source };
        let protocol = |source| EngineError::Protocol { worker, source };
        let mut line = serde_json::to_vec(job).map_err(protocol)?;
        line.push(b'\n');
        let mut input = self.child.stdin.take().expect("piped by spawn, taken once");
        // A child that has died cannot read. Its exit status is more informative than EPIPE.
        match input.write_all(&line) {
            Err(source) if source.kind() != io::ErrorKind::BrokenPipe => return Err(pipe(source)),
            _ => drop(input),
        }
        let mut text = Vec::new();
        let mut output = self.child.stdout.take().expect("piped by spawn, taken once");
        output.read_to_end(&mut text).map_err(pipe)?;
        let status = self.child.wait().map_err(pipe)?;
        if !status.success() || text.is_empty() {
            return Err(EngineError::WorkerDied { worker, status });
        }
        serde_json::from_slice(&text).map_err(protocol)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls are harmless for a child that was waited for; std remembers its status.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Open descriptors of a process besides two pipes per worker.
const OTHERS: u64 = 64;

/// Raises the limit of open files as far as permitted to what this number of workers needs: two
/// pipes each. The usual limit of 1024 is for programs that use select(2).
fn raise_file_limit(workers: u32) {
    let needed = u64::from(workers) * 2 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
        // If the limit is too low, an error names the worker that cannot be started.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit });
    }
}

/// Keeps a descriptor open across exec.
fn keep_open(fd: RawFd) -> io::Result<()> {
    // SAFETY: F_SETFD without flags changes only the flag of this descriptor.
    match unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Entry point of a worker process. Reads the job from standard input, runs it, and writes the
/// result to standard output. A failed job is a result, too.
///
/// Call it once, first in a process that [`Context::worker_command`] starts. Nothing else may use
/// standard input and output.
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
    let job: WorkerJob = serde_json::from_str(&line)
        .map_err(|source| EngineError::Protocol { worker: 0, source })?;
    let worker = job.worker;
    let reply = match run_job(&job) {
        Ok(result) => {
            let encoded = |(_, histogram): (_, &Histogram)| encode_hex(&histogram.encode());
            let latencies = result.latencies.each().map(encoded).into();
            let by_kind = result.latencies.by_kind.iter();
            let by_kind = by_kind.map(|(kind, own)| (*kind, encode_hex(&own.encode()))).collect();
            WorkerReply::Done { result: Box::new(result), latencies, by_kind }
        }
        Err(reply) => reply,
    };
    let mut line =
        serde_json::to_vec(&reply).map_err(|source| EngineError::Protocol { worker, source })?;
    line.push(b'\n');
    io::stdout().write_all(&line).map_err(|source| EngineError::Pipe { worker, source })
}

/// Runs the job; an error is the reply to send instead of a result.
fn run_job(job: &WorkerJob) -> Result<WorkerResult, WorkerReply> {
    let workers = match &job.work {
        Work::Stream(stream) => stream.workers,
        Work::Tree(tree) => tree.workers,
        Work::Replay(replay, ..) => replay.workers,
    };
    // SAFETY: the parent left this descriptor open and named it in the job. Nothing else in this
    // process uses the number, and this function runs once.
    let file = unsafe { OwnedFd::from_raw_fd(job.control) };
    let control =
        ControlBlock::attach(file, workers.count, job.kept).map_err(WorkerReply::Fault)?;
    let directory = Path::new(OsStr::from_bytes(&job.directory));
    let worker = job.worker;
    let failed = |Failure { fault, path }| WorkerReply::Failure {
        fault,
        path: path.into_os_string().into_vec(),
    };
    match &job.work {
        Work::Stream(stream) => {
            stream_worker(stream, directory, worker, &control).map_err(WorkerReply::Fault)
        }
        Work::Tree(tree) => tree::perform(tree, worker, directory, &control).map_err(failed),
        Work::Replay(replay, program, made) => {
            // SAFETY: as for the control block.
            let file = unsafe { OwnedFd::from_raw_fd(*program) };
            let adopted = Program::attach(file).inspect_err(|_| control.fail(worker));
            let program = adopted.map_err(WorkerReply::Fault)?;
            replay::perform(replay, &program, worker, directory, *made, &control).map_err(failed)
        }
    }
}

fn stream_worker(
    stream: &Stream,
    directory: &Path,
    worker: u32,
    control: &ControlBlock,
) -> Result<WorkerResult, Fault> {
    let prepared = Prepared::new(stream).inspect_err(|_| control.fail(worker))?;
    let path = directory.join(stream.files.name(worker));
    Assignment { stream, worker, path: &path, control, prepared: &prepared }.perform()
}

fn decode(texts: &[String], by_kind: &[(ReplayOp, String)]) -> Option<Latencies> {
    let mut latencies = Latencies::default();
    if texts.len() != latencies.each().len() {
        return None;
    }
    for ((_, histogram), text) in latencies.each_mut().into_iter().zip(texts) {
        *histogram = Histogram::decode(&decode_hex(text)?).ok()?;
    }
    for (kind, text) in by_kind {
        latencies.by_kind.push((*kind, Histogram::decode(&decode_hex(text)?).ok()?));
    }
    Some(latencies)
}

fn encode_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.len().is_multiple_of(2).then(|| text.as_bytes().chunks(2).map(pair).collect())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_hexadecimal_is_rejected() {
        assert_eq!(decode_hex("0"), None);
        assert_eq!(decode_hex("0g"), None);
        assert_eq!(decode_hex("00ff"), Some(vec![0, 255]));
    }

    proptest! {
        #[test]
        fn hexadecimal_reads_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode_hex(&encode_hex(&bytes)), Some(bytes));
        }
    }
}

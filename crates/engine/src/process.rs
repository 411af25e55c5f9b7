//! Worker processes: code of the parent, and the messages between it and the child
//! ([`crate::worker_process`]).
//!
//! The parent starts the worker command once per worker, writes one line of JSON to its standard
//! input (the index of the worker and a [`WorkerJob`]), and reads one line from its standard output
//! ([`WorkerReply`]). All other communication (ready, start, stop, progress) uses the control
//! block. The child inherits the file of the block under the descriptor number given in the job. A
//! child runs the same code as a worker thread, so any difference between the results of threads
//! and processes is caused by the kernel. The child also inherits the counts of flows, and for a
//! replay the memory that
//! holds its operations.
//!
//! The kernel kills a child when the thread that started it ends (prctl(2)). A killed run therefore
//! leaves no worker processes behind.
#![expect(unsafe_code, reason = "pre_exec and fcntl(2)")]

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::{ffi::OsStrExt, ffi::OsStringExt, process::CommandExt},
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use model::{
    Histogram,
    phase::{Latencies, Replay, ReplayOp, Stream, Tree, WorkerResult},
};
use rustix::{
    fs::Stat,
    process::{
        Resource, Rlimit, Signal, getpid, getppid, getrlimit, set_parent_process_death_signal,
        setrlimit,
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    EngineError,
    barrier::ControlBlock,
    error::{Failure, Fault},
    flow::Flows,
};

/// Job of a worker process.
#[derive(Serialize, Deserialize)]
pub(crate) struct WorkerJob {
    /// Work of the phase.
    pub(crate) work: Work,
    /// Directory under test as bytes, because a path need not be UTF-8.
    pub(crate) directory: Vec<u8>,
    /// Descriptor number of the control block.
    pub(crate) control: RawFd,
    /// True if the block outlives the phase.
    pub(crate) kept: bool,
    /// Descriptor number of the counts of the flows, if the phase has one.
    #[serde(default)]
    pub(crate) flows: Option<RawFd>,
}

/// Work of the phase.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    /// Stream.
    Stream(Box<Stream>),
    /// Tree.
    Tree(Box<Tree>),
    /// Replay, descriptor number of its program, and the root directory created for it.
    Replay(Box<Replay>, RawFd, Identity),
}

/// Identity of the directory that was created for a phase. Another directory at its path could
/// contain links that a worker would follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Identity of the directory with this status.
    pub(crate) fn of(status: &Stat) -> Self {
        Self { device: status.st_dev, inode: status.st_ino }
    }
}

impl WorkerJob {
    /// Job of all workers of a phase.
    pub(crate) fn new(
        work: Work,
        directory: &Path,
        control: &ControlBlock,
        flows: Option<&Arc<Flows>>,
    ) -> Self {
        Self {
            work,
            directory: directory.as_os_str().as_bytes().to_vec(),
            control: control.file().as_raw_fd(),
            kept: control.is_kept(),
            flows: flows.map(|flows| flows.file().as_raw_fd()),
        }
    }

    /// File that the child inherits besides the control block.
    fn file(&self) -> Option<RawFd> {
        match &self.work {
            Work::Replay(_, program, _) => Some(*program),
            Work::Stream(_) | Work::Tree(_) => None,
        }
    }
}

/// Reply that a child writes to its standard output.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerReply {
    /// Result without its histograms. Histograms are sent separately, in their stored form, in
    /// hexadecimal.
    Done {
        /// Result without histograms.
        result: Box<WorkerResult>,
        /// Histograms of all operations, in the order of [`Latencies::each`].
        latencies: Vec<String>,
        /// Histograms by operation type.
        #[serde(default)]
        by_kind: Vec<(ReplayOp, String)>,
    },
    /// The worker failed on this path (as bytes).
    Failure {
        /// Fault.
        fault: Fault,
        /// Path.
        path: Vec<u8>,
    },
}

impl WorkerReply {
    /// Reply with the result of a worker.
    pub(crate) fn of(result: Result<WorkerResult, Failure>) -> Self {
        match result {
            Ok(result) => {
                let encoded = |histogram: &Histogram| hex::encode(histogram.encode());
                let latencies = result.latencies.each().map(|(_, own)| encoded(own)).into();
                let by_kind = result.latencies.by_kind.iter();
                let by_kind = by_kind.map(|(kind, own)| (*kind, encoded(own))).collect();
                Self::Done { result: Box::new(result), latencies, by_kind }
            }
            Err(Failure { fault, path }) => {
                Self::Failure { fault, path: path.into_os_string().into_vec() }
            }
        }
    }
}

/// Running child process. It is killed and reaped on drop unless it has ended.
pub(crate) struct Process {
    worker: u32,
    child: Child,
}

impl Process {
    /// Starts all workers of a phase. If one fails to start, the others are killed.
    pub(crate) fn spawn_all(
        count: u32,
        job: &WorkerJob,
        command: &[OsString],
    ) -> Result<Vec<Self>, EngineError> {
        raise_file_limit(count);
        (0..count).map(|worker| Self::spawn(worker, job, command)).collect()
    }

    fn spawn(worker: u32, job: &WorkerJob, command: &[OsString]) -> Result<Self, EngineError> {
        let (program, arguments) = command.split_first().expect("checked with the stream");
        let parent = getpid();
        let (control, file, flows) = (job.control, job.file(), job.flows);
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: the closure runs between fork and exec and makes a few async-signal-safe system
        // calls. It neither allocates nor takes locks. The descriptors are open, because the parent
        // keeps all of them while it spawns, and fork copies the descriptor table.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have died before the previous call.
                if getppid() != Some(parent) {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                file.map_or(Ok(()), keep_open)?;
                flows.map_or(Ok(()), keep_open)?;
                keep_open(control)
            });
        }
        let child = command.spawn().map_err(|source| EngineError::Spawn {
            worker,
            program: program.clone(),
            source,
        })?;
        Ok(Self { worker, child })
    }

    /// Sends the job to the child and waits for its reply. A failure is recorded in the control
    /// block.
    pub(crate) fn run(
        mut self,
        job: &WorkerJob,
        control: &ControlBlock,
    ) -> Result<WorkerResult, EngineError> {
        let worker = self.worker;
        let answer = self.exchange(job).and_then(|reply| match reply {
            WorkerReply::Failure { fault, path } => {
                Err(Failure { fault, path: OsString::from_vec(path).into() }.into())
            }
            WorkerReply::Done { mut result, latencies, by_kind } => {
                result.latencies = decode(&latencies, &by_kind).ok_or_else(|| {
                    let source = serde::de::Error::custom("invalid histogram");
                    EngineError::Protocol { worker, source }
                })?;
                Ok(*result)
            }
        });
        // A child records its failure itself, unless it could not map the control block or died.
        // Recording it again has no effect.
        if !matches!(answer, Ok(_) | Err(EngineError::Interrupted)) {
            control.fail(worker);
        }
        answer
    }

    fn exchange(&mut self, job: &WorkerJob) -> Result<WorkerReply, EngineError> {
        let worker = self.worker;
        let pipe = |source| EngineError::Pipe { worker, source };
        let protocol = |source| EngineError::Protocol { worker, source };
        let mut line = serde_json::to_vec(&(worker, job)).map_err(protocol)?;
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

/// Raises the soft limit of open files for this number of workers (two pipes per worker), but not
/// above the hard limit. The usual soft limit of 1024 is for programs that use select(2).
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

fn decode(texts: &[String], by_kind: &[(ReplayOp, String)]) -> Option<Latencies> {
    let mut latencies = Latencies::default();
    if texts.len() != latencies.each().len() {
        return None;
    }
    for ((_, histogram), text) in latencies.each_mut().into_iter().zip(texts) {
        *histogram = Histogram::decode(&hex::decode(text).ok()?).ok()?;
    }
    for (kind, text) in by_kind {
        latencies.by_kind.push((*kind, Histogram::decode(&hex::decode(text).ok()?).ok()?));
    }
    Some(latencies)
}

//! Workers that are processes: the parent's side and the child's.
//!
//! The parent starts the worker command once for each worker, writes one line of JSON to its
//! standard input ([`Order`]), and reads one line from its standard output ([`Answer`]). Everything
//! in between (ready, go, stop, progress) goes through the control block, whose file the child
//! inherits under the number that the order names. A child does the same work in the same code as a
//! thread, so the difference between the two is the kernel's. The work is a stream, whose one file
//! the parent knows, or a tree or a replay, where the answer says what failed; of a replay, the
//! child also inherits the memory that has its operations.
//!
//! A child asks the kernel to be killed when the thread that started it ends, so a killed run
//! leaves no worker behind.
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
    barrier::Board,
    error::Fault,
    patterns::Prepared,
    replay::{self, Identity, Program},
    tree::{self, Failure},
    worker::Assignment,
};

/// What a child is told.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    work: Work,
    /// The directory under test: bytes, as a path need not be text.
    directory: Vec<u8>,
    worker: u32,
    /// Number of the descriptor of the control block, and whether that outlives the phase.
    board: RawFd,
    kept: bool,
}

/// What the phase is.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Stream(Box<Stream>),
    Tree(Box<Tree>),
    /// With the number of the descriptor of its program, and the root that was made for it.
    Replay(Box<Replay>, RawFd, Identity),
}

impl Order {
    /// The order for one worker of a stream.
    pub(crate) fn new(stream: &Stream, directory: &Path, worker: u32, board: &Board) -> Self {
        Self::of(Work::Stream(Box::new(stream.clone())), directory, worker, board)
    }

    /// The order for one worker of a tree.
    pub(crate) fn of_tree(tree: &Tree, directory: &Path, worker: u32, board: &Board) -> Self {
        Self::of(Work::Tree(Box::new(tree.clone())), directory, worker, board)
    }

    /// The order for one client of a replay, whose program is in this file and whose root is this.
    pub(crate) fn of_replay(
        replay: &Replay,
        (program, made): (BorrowedFd<'_>, Identity),
        directory: &Path,
        worker: u32,
        board: &Board,
    ) -> Self {
        let work = Work::Replay(Box::new(replay.clone()), program.as_raw_fd(), made);
        Self::of(work, directory, worker, board)
    }

    fn of(work: Work, directory: &Path, worker: u32, board: &Board) -> Self {
        Self {
            work,
            directory: directory.as_os_str().as_bytes().to_vec(),
            worker,
            board: board.file().as_raw_fd(),
            kept: board.is_kept(),
        }
    }
}

/// What a child answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// The result, and the stored forms of its histograms in hexadecimal and in the order of
    /// [`Latencies::each`], as they are no part of a serialized result; then those by kind.
    Done {
        result: Box<WorkerResult>,
        latencies: Vec<String>,
        #[serde(default)]
        by_kind: Vec<(ReplayOp, String)>,
    },
    /// Why there is none.
    Fault(Fault),
    /// Why there is none, with the path in bytes.
    Failure { fault: Fault, path: Vec<u8> },
}

/// A running child; killed and reaped on drop if it has not ended.
pub(crate) struct Process {
    /// Index of the worker.
    pub(crate) worker: u32,
    child: Child,
}

impl Process {
    /// Starts all workers of a phase; if one does not start, the others are killed.
    pub(crate) fn spawn_all(
        count: u32,
        board: &Board,
        command: &[OsString],
    ) -> Result<Vec<Self>, EngineError> {
        Self::spawn_sharing(count, board, None, command)
    }

    /// The same, where the children inherit one more file.
    pub(crate) fn spawn_sharing(
        count: u32,
        board: &Board,
        file: Option<BorrowedFd<'_>>,
        command: &[OsString],
    ) -> Result<Vec<Self>, EngineError> {
        make_room(count);
        let file = file.map(|file| file.as_raw_fd());
        (0..count).map(|worker| Self::spawn(worker, board, file, command)).collect()
    }

    fn spawn(
        worker: u32,
        board: &Board,
        file: Option<RawFd>,
        command: &[OsString],
    ) -> Result<Self, EngineError> {
        let (program, arguments) = command.split_first().expect("checked with the stream");
        let parent = getpid();
        let board_fd = board.file().as_raw_fd();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: the closure runs between fork and exec and makes a few system calls, which are
        // async-signal-safe; it neither allocates nor takes locks. The descriptors are open there:
        // the parent borrows board and file while it spawns, and fork copies the table.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have died before that call.
                if getppid() != Some(parent) {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                file.map_or(Ok(()), keep_open)?;
                keep_open(board_fd)
            });
        }
        let child = command.spawn().map_err(|source| EngineError::Spawn {
            worker,
            program: program.clone(),
            source,
        })?;
        Ok(Self { worker, child })
    }

    /// Gives the child its order for a stream, waits for its answer, and tells the board if it has
    /// none; `error` knows the file.
    pub(crate) fn attend(
        self,
        order: &Order,
        board: &Board,
        error: impl Fn(Fault) -> EngineError,
    ) -> Result<WorkerResult, EngineError> {
        self.obeyed(order, board, |fault, _| error(fault))
    }

    /// The same for a tree.
    pub(crate) fn attend_tree(
        self,
        order: &Order,
        board: &Board,
        error: impl Fn(Failure) -> EngineError,
    ) -> Result<WorkerResult, EngineError> {
        self.obeyed(order, board, |fault, path| error(Failure { fault, path }))
    }

    fn obeyed(
        mut self,
        order: &Order,
        board: &Board,
        error: impl Fn(Fault, PathBuf) -> EngineError,
    ) -> Result<WorkerResult, EngineError> {
        let answer = self.converse(order);
        if answer.is_err() {
            board.fail(self.worker);
        }
        let (fault, path) = match answer? {
            Answer::Fault(fault) => (fault, OsString::from_vec(order.directory.clone())),
            Answer::Failure { fault, path } => (fault, OsString::from_vec(path)),
            Answer::Done { mut result, latencies, by_kind } => {
                result.latencies = decode(&latencies, &by_kind).ok_or_else(|| {
                    let source = serde::de::Error::custom("a histogram is damaged");
                    board.fail(self.worker);
                    EngineError::Protocol { worker: self.worker, source }
                })?;
                return Ok(*result);
            }
        };
        // The child has said so itself, unless it could not even map the board.
        if fault != Fault::Aborted {
            board.fail(self.worker);
        }
        Err(error(fault, path.into()))
    }

    fn converse(&mut self, order: &Order) -> Result<Answer, EngineError> {
        let worker = self.worker;
        let pipe = |source| EngineError::Pipe { worker, source };
        let protocol = |source| EngineError::Protocol { worker, source };
        let mut line = serde_json::to_vec(order).map_err(protocol)?;
        line.push(b'\n');
        let mut input = self.child.stdin.take().expect("piped by spawn, taken once");
        // A child that is dead already cannot read; how it died says more than the broken pipe.
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
        // Both are harmless for a child that was waited for; std remembers its status.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Descriptors that a process has beside two pipes for each worker.
const OTHERS: u64 = 64;

/// Raises the limit of open files, as far as this process may, to what so many workers need: two
/// pipes each. The usual limit of 1024 is for programs that still use select(2).
fn make_room(workers: u32) {
    let needed = u64::from(workers) * 2 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
        // Where it is too little, a worker is named that cannot be started.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit });
    }
}

/// Lets a descriptor survive exec.
fn keep_open(fd: RawFd) -> io::Result<()> {
    // SAFETY: F_SETFD with no flags touches nothing but the flag of this descriptor.
    match unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The whole life of a worker process: reads its order from standard input, works, and writes its
/// answer to standard output. A fault of the work is an answer, too.
///
/// To be called once, first thing in a process that [`Context::worker_command`] starts; nothing
/// else may use standard input and output.
///
/// [`Context::worker_command`]: crate::Context::worker_command
///
/// # Errors
/// [`EngineError::Protocol`] or [`EngineError::Pipe`] when parent and child cannot talk; the
/// process should then exit with a status other than 0.
pub fn worker_process() -> Result<(), EngineError> {
    let mut line = String::new();
    let unread = |source| EngineError::Pipe { worker: 0, source };
    io::stdin().read_line(&mut line).map_err(unread)?;
    let order: Order = serde_json::from_str(&line)
        .map_err(|source| EngineError::Protocol { worker: 0, source })?;
    let worker = order.worker;
    let answer = match obey(&order) {
        Ok(result) => {
            let encoded = |(_, histogram): (_, &Histogram)| encode_hex(&histogram.encode());
            let latencies = result.latencies.each().map(encoded).into();
            let by_kind = result.latencies.by_kind.iter();
            let by_kind = by_kind.map(|(kind, own)| (*kind, encode_hex(&own.encode()))).collect();
            Answer::Done { result: Box::new(result), latencies, by_kind }
        }
        Err(answer) => answer,
    };
    let mut line =
        serde_json::to_vec(&answer).map_err(|source| EngineError::Protocol { worker, source })?;
    line.push(b'\n');
    io::stdout().write_all(&line).map_err(|source| EngineError::Pipe { worker, source })
}

/// The result, or the answer that is given instead.
fn obey(order: &Order) -> Result<WorkerResult, Answer> {
    let workers = match &order.work {
        Work::Stream(stream) => stream.workers,
        Work::Tree(tree) => tree.workers,
        Work::Replay(replay, ..) => replay.workers,
    };
    // SAFETY: the parent left this descriptor open for us and named it in the order; nothing else
    // in this process knows the number, and this function runs once.
    let file = unsafe { OwnedFd::from_raw_fd(order.board) };
    let board = Board::adopt(file, workers.count, order.kept).map_err(Answer::Fault)?;
    let directory = Path::new(OsStr::from_bytes(&order.directory));
    let worker = order.worker;
    let failed =
        |Failure { fault, path }| Answer::Failure { fault, path: path.into_os_string().into_vec() };
    match &order.work {
        Work::Stream(stream) => {
            stream_worker(stream, directory, worker, &board).map_err(Answer::Fault)
        }
        Work::Tree(tree) => tree::perform(tree, worker, directory, &board).map_err(failed),
        Work::Replay(replay, program, made) => {
            // SAFETY: as of the board.
            let file = unsafe { OwnedFd::from_raw_fd(*program) };
            let adopted = Program::adopt(file).inspect_err(|_| board.fail(worker));
            let program = adopted.map_err(Answer::Fault)?;
            replay::perform(replay, &program, worker, directory, *made, &board).map_err(failed)
        }
    }
}

fn stream_worker(
    stream: &Stream,
    directory: &Path,
    worker: u32,
    board: &Board,
) -> Result<WorkerResult, Fault> {
    let prepared = Prepared::new(stream).inspect_err(|_| board.fail(worker))?;
    let path = directory.join(stream.files.name(worker));
    Assignment { stream, worker, path: &path, board, prepared: &prepared }.perform()
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
    fn damaged_hexadecimal_is_refused() {
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

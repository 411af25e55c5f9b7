//! Recorder: runs a program under ptrace(2) and records its operations below a directory.
//!
//! Each chosen system call stops its thread twice. At the beginning, the recorder reads the
//! arguments and names and looks up the descriptors. At the end, it reads the result, takes the
//! time before the thread continues, and binds new descriptors. If an operation B began after an
//! operation A because of the result of A, the recorded end of A is therefore not later than the
//! begin of B.
//!
//! Names are compared with the root without regard to symbolic links. io_uring and Linux AIO are
//! denied with `ENOSYS`, so that programs use other calls. Calls that a replay does not know are
//! counted by name.

mod baseline;
pub(crate) mod chosen;
mod entry;
mod events;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod names;
mod pin;
pub(crate) mod process;
mod scan;
pub(crate) mod sockets;
pub(crate) mod tasks;

use std::{
    collections::BTreeMap,
    ffi::{CString, OsString},
    fs, io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use rustix::time::{ClockId, clock_gettime};
use sys::ptrace;

use self::{
    events::{Session, StopCosts},
    messages::Messages,
    process::Clock,
};
use crate::{
    NONE, Op, Recording, Task, TraceError, columns,
    descriptors::Slots,
    paths::{self, Paths, Root},
};

/// Program to record, and its root.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory below which operations are recorded.
    pub root: PathBuf,
    /// Program and its arguments.
    pub command: Vec<OsString>,
    /// Number of runs without the recorder before the recording. Their CPU time corrects the pauses
    /// of a replay.
    pub baseline: u32,
    /// Called with the number of processes that the program started and that still run when it
    /// ended. They are recorded until they end, or until a signal asks this process to end.
    pub waiting: Option<fn(usize)>,
}

/// Result of a recording.
#[derive(Debug)]
pub struct Recorded {
    /// Operations.
    pub recording: Recording,
    /// Exit status of the program; 128 plus the signal that ended it.
    pub status: i32,
}

/// Data of a recording in progress.
pub(crate) struct Recorder {
    root: Root,
    paths: Paths,
    slots: Slots,
    messages: Messages,
    tasks: Vec<RecordedTask>,
    /// Calls that are not recorded, by name.
    left_out: BTreeMap<&'static str, u64>,
    facts: BTreeMap<&'static str, u64>,
    started: u64,
    /// Current time of a log; `None`: the clock.
    instant: Option<u64>,
    /// True if a FIFO may be below the root.
    fifos: bool,
}

/// Task whose older operations are compressed.
#[derive(Default)]
struct RecordedTask {
    parent: u32,
    /// Creator, and the number of its operations at the creation.
    created_after: Option<(usize, usize)>,
    process: u32,
    begin: u64,
    name: String,
    chunks: Vec<(Vec<u8>, usize)>,
    ops: Vec<Op>,
}

impl Recorder {
    /// Time since the start of the recording.
    fn now(&self) -> u64 {
        self.instant.unwrap_or_else(|| now().saturating_sub(self.started))
    }

    /// Recorder of a log, with the names of its root.
    pub(crate) fn of_log(root: Vec<Vec<u8>>) -> Self {
        Self::new(Root::new(root), Paths::default(), Some(0))
    }

    fn new(root: Root, paths: Paths, instant: Option<u64>) -> Self {
        Self {
            root,
            paths,
            slots: Slots::default(),
            messages: Messages::default(),
            tasks: Vec::new(),
            left_out: BTreeMap::new(),
            facts: BTreeMap::new(),
            started: now(),
            instant,
            fifos: false,
        }
    }

    /// Current time of a log.
    pub(crate) fn instant(&self) -> u64 {
        self.instant.unwrap_or(0)
    }

    /// Advances the time of a log. It does not go back.
    pub(crate) fn advance(&mut self, instant: u64) {
        self.instant = Some(self.instant().max(instant));
    }

    /// Number of operations of a task.
    pub(crate) fn operations(&self, task: usize) -> usize {
        let task = &self.tasks[task];
        task.chunks.iter().map(|(_, count)| count).sum::<usize>() + task.ops.len()
    }

    fn leave_out(&mut self, name: &'static str) {
        *self.left_out.entry(name).or_default() += 1;
    }

    fn add_fact(&mut self, name: &'static str, value: u64) {
        let fact = self.facts.entry(name).or_default();
        *fact = fact.saturating_add(value);
    }

    /// Recording of the collected tasks.
    pub(crate) fn finish(self, nodes: Vec<crate::Node>) -> Result<Recording, TraceError> {
        let mut recording = Recording { nodes, paths: self.paths.all, ..Recording::default() };
        for task in self.tasks {
            let mut ops = Vec::new();
            for (blob, count) in &task.chunks {
                ops.extend(columns::decode(blob, *count)?);
            }
            ops.extend(task.ops);
            let RecordedTask { parent, process, begin, name, .. } = task;
            recording.tasks.push(Task { parent, process, begin, name, ops });
        }
        for (name, count) in self.left_out {
            recording.facts.insert(format!("not_recorded.{name}"), count.to_string());
        }
        for (name, value) in self.facts {
            recording.facts.insert(name.to_owned(), value.to_string());
        }
        Ok(recording)
    }

    fn push(&mut self, task: usize, op: Op) {
        let task = &mut self.tasks[task];
        task.ops.push(op);
        if task.ops.len() == columns::MOST {
            task.chunks.push((columns::encode(&task.ops), task.ops.len()));
            task.ops.clear();
        }
    }

    fn add_task(&mut self, parent: Option<usize>, process: Option<usize>, name: String) -> usize {
        let number = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
        let index = self.tasks.len();
        let begin = self.now();
        self.tasks.push(RecordedTask {
            parent: parent.map_or(NONE, number),
            created_after: parent.map(|parent| (parent, self.operations(parent))),
            process: number(process.unwrap_or(index)),
            begin,
            name,
            ..RecordedTask::default()
        });
        index
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.wrapping_mul(1_000_000_000).wrapping_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Runs a program and records its operations, until it and all programs that it started have ended.
///
/// SIGTERM ends the programs, and so do SIGINT and SIGQUIT after the first program has ended; until
/// then, the programs get these signals from the terminal. The recording is then incomplete.
///
/// # Errors
/// [`TraceError::Program`] if the program cannot be started; [`TraceError::Interrupted`] if a
/// signal arrives before it is started; [`TraceError::Root`] if the root cannot be read;
/// [`TraceError::Trace`] if the kernel does not allow tracing.
pub fn record(settings: &Settings) -> Result<Recorded, TraceError> {
    let root_error = |source| TraceError::Root { path: settings.root.clone(), source };
    let real = fs::canonicalize(&settings.root).map_err(root_error)?;
    let given = std::path::absolute(&settings.root).map_err(root_error)?;
    let name = settings.command.first().cloned().unwrap_or_default();
    let failed = |source| TraceError::Program { program: name.display().to_string(), source };
    let program = find(&name).map_err(failed)?;
    let text = |word: &OsString| {
        CString::new(word.as_bytes()).map_err(|_| failed(io::ErrorKind::InvalidInput.into()))
    };
    let words = settings.command.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let baseline =
        baseline::measure(&program, &settings.command, settings.baseline).map_err(failed)?;
    let program = text(&program.into_os_string())?;
    let mut paths = Paths::default();
    let nodes = scan::scan(&real, &mut paths).map_err(root_error)?;
    let names =
        vec![real.as_os_str().as_bytes().to_vec(), paths::normal(given.as_os_str().as_bytes())];
    let mut recorder = Recorder::new(Root::new(names), paths, None);
    recorder.fifos = nodes.iter().any(|node| node.kind == crate::NodeKind::Fifo);
    ptrace::report_signals();
    let directory = std::env::current_dir().map_err(failed)?;
    let filter = ptrace::filter(&chosen::calls());
    let not_started = |source: io::Error| match source.kind() == io::ErrorKind::Interrupted {
        true => TraceError::Interrupted,
        false => failed(source),
    };
    let costs = StopCosts::measure(&filter).map_err(not_started)?;
    let mut session = Session::new(recorder, costs, settings.waiting);
    let child = ptrace::spawn(&program, &words, &filter).map_err(not_started)?;
    session.tasks.recorder.started = now();
    session.first(child, directory.into_os_string().into_vec());
    let status = session.run(child)?;
    let elapsed = session.tasks.recorder.now();
    let mut recording = session.tasks.recorder.finish(nodes)?;
    let words: Vec<String> =
        settings.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let facts = &mut recording.facts;
    let mut set = |key: &str, value: String| facts.insert(key.to_owned(), value);
    set("program", model::words::join(&words));
    set("root", real.display().to_string());
    set("elapsed_ns", elapsed.to_string());
    set("status", status.to_string());
    if let Some(baseline) = baseline {
        set("baseline_elapsed_ns", baseline.elapsed.to_string());
        set("baseline_user_ns", baseline.user.to_string());
        set("baseline_system_ns", baseline.system.to_string());
    }
    set("recorder", format!("fslab {}", env!("CARGO_PKG_VERSION")));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    set("kernel", kernel.trim().to_owned());
    set("user", if rustix::process::geteuid().is_root() { "root" } else { "other" }.to_owned());
    Ok(Recorded { recording, status })
}

/// File mode creation mask of this process, which the program inherits.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

/// Path of a program: as given if it contains a slash, otherwise the first executable file of this
/// name in the directories of `PATH`.
fn find(name: &OsString) -> io::Result<PathBuf> {
    let path = Path::new(name);
    if name.as_bytes().contains(&b'/') {
        return Ok(path.to_owned());
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let executes = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    std::env::split_paths(&directories)
        .map(|directory| directory.join(path))
        .find(executes)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

impl Session {
    /// Registers the program itself, which is stopped.
    fn first(&mut self, child: i32, directory: Vec<u8>) {
        let name = events::program_name(child);
        let clock = Clock::of_task(child, child);
        self.tasks.first(child, name, (directory, umask()), clock);
    }
}

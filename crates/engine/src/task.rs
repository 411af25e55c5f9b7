//! Everyday file tasks, each done once and timed as a whole.
//!
//! The input is a [`Task`], the output a [`PhaseResult`] with one worker. The task is done either
//! by fslab, with only the system calls of the standard program ([`Method::Native`]), or by the
//! standard programs ([`Method::Programs`]). Operations that prepare a measurement
//! ([`TaskOperation::Random`], [`TaskOperation::Archive`], [`TaskOperation::Fetch`]) are always
//! native. After the task, and outside of its time, all data written to the filesystem under test
//! is synced by syncfs(2), timed separately.
//!
//! ```text
//! task ─ check ─ native ─┬─ entries (touch, mkdir, find, rm)
//!                        ├─ data (cp, dd, split, cat) ─ tree (cp -a)
//!                        ├─ pack, unpack ─ archive (tar, gzip)
//!                        └─ source (tree similar to that of a kernel)
//!              └ programs ─ child (one process)
//! ```
//!
//! Counters of the result:
//!
//! - operations: entries created, listed, removed, packed, unpacked, or copied below the directory;
//!   copies and pieces; 1 for a file written or read. Programs do not report their operations, so
//!   their entries are counted afterwards, and a tree removed by rm(1) counts as 1;
//! - bytes: data read from and written to files under test. I/O in the external directory is not
//!   counted. For programs, the bytes follow from the command line and the sizes of its files;
//!   other bytes are not counted;
//! - CPU time and context switches: of the task only, without the sync, as reported by time(1).
//!   Starting programs is included.
//!
//! Not included: time series and latencies, because a task is one operation to its user; owners,
//! extended attributes, and hard links of copied and packed trees.

mod archive;
mod check;
mod child;
mod context;
mod data;
mod entries;
mod native;
mod pack;
mod programs;
pub(crate) mod source;
mod tree;
mod unpack;

#[cfg(test)]
mod tests;

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use model::{
    Bytes, Nanos, Ops, PhaseResult,
    phase::{
        Latencies, Method, Moved, Series, Task, TaskOperation, TaskPath, TaskRoot, WorkerResult,
        Workers,
    },
};
use rustix::fs::{Mode, OFlags, open, syncfs};

use crate::{
    Context, EngineError,
    clock::{Usage, now},
    counter::{Counter, Limits},
    driver::{self, Ended, Phase, Seat, WorkerLoop, interrupted},
    error::Operation,
};
use context::{TaskContext, failed};

/// Runs a task in a separate thread.
///
/// Names are relative to `context.directory` and, for [`TaskRoot::External`], to the external
/// directory on another filesystem. The wall time of the result covers the task and the sync after
/// it. The result has no latencies and no time series. Data written to the external directory is
/// synced, too, but not timed, so that it does not disturb the next phase.
///
/// # Errors
/// [`EngineError::Task`], before anything is changed, if the task is invalid, or needs an external
/// directory and there is none; [`EngineError::Io`] for the first failed system call, with
/// operation and path, also if a name to be created exists; [`EngineError::Archive`] for an archive
/// that cannot or must not be unpacked; [`EngineError::Program`] and [`EngineError::ProgramFailed`]
/// for programs that are missing or fail; [`EngineError::Interrupted`] if `interrupt` was set.
/// Files created by an incomplete task are kept.
pub fn run_task(
    task: &Task,
    external: Option<&Path>,
    context: &Context<'_>,
) -> Result<PhaseResult, EngineError> {
    check::check(task, external.is_some())?;
    interrupted(context.interrupt)?;
    let directories = TaskDirectories { target: context.directory, external };
    let PhaseResult { workers, .. } = driver::run(&TaskPhase { task, directories }, context)?;
    let wall_time = workers.iter().map(|worker| worker.loop_time + worker.end_sync_time).sum();
    Ok(PhaseResult::new(workers, wall_time))
}

/// Task in its directories.
struct TaskPhase<'a> {
    task: &'a Task,
    directories: TaskDirectories<'a>,
}

impl Phase for TaskPhase<'_> {
    type Error = EngineError;

    // Programs inherit the descriptors of this process.
    const OWN_DESCRIPTORS: bool = false;

    fn workers(&self) -> Workers {
        Workers::ONE
    }

    fn total(&self) -> Bytes {
        total(&self.task.operation)
    }

    fn path(&self, _worker: u32) -> PathBuf {
        self.directories.target.to_path_buf()
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, EngineError> {
        let work = TaskLoop::new(self.task, self.directories, seat)?;
        let latencies = Latencies::default();
        seat.run(work, Counter::new(seat.control, seat.slot, Limits::default(), latencies))
    }
}

/// Directories of a trial.
#[derive(Clone, Copy)]
struct TaskDirectories<'a> {
    target: &'a Path,
    external: Option<&'a Path>,
}

impl TaskDirectories<'_> {
    /// Path of a root directory.
    fn root(&self, at: TaskRoot) -> &Path {
        match at {
            TaskRoot::Target => self.target,
            TaskRoot::External => self.external.expect("checked: there is an external directory"),
        }
    }

    /// Path of a file.
    fn path(&self, task_path: &TaskPath) -> PathBuf {
        self.root(task_path.root).join(&task_path.name)
    }

    /// Path of a file with its root.
    fn resolve(&self, task_path: &TaskPath) -> ResolvedPath {
        ResolvedPath { at: task_path.root, path: self.path(task_path) }
    }
}

/// Path, and the root directory that contains it.
struct ResolvedPath {
    at: TaskRoot,
    path: PathBuf,
}

/// Prepared task, done by one call of `advance`.
struct TaskLoop<'a> {
    task: &'a Task,
    directories: TaskDirectories<'a>,
    context: TaskContext<'a>,
    // For programs: true for one program per file. `None` if system calls are used.
    programs: Option<bool>,
    // Directories whose filesystems are synced after the task: timed, and then untimed.
    flushed: Option<OwnedFd>,
    later: Option<OwnedFd>,
    // Usage at the start; after the task, usage of the task.
    usage: Usage,
}

impl<'a> TaskLoop<'a> {
    fn new(
        task: &'a Task,
        directories: TaskDirectories<'a>,
        seat: &Seat<'a>,
    ) -> Result<Self, EngineError> {
        let changed =
            |at| check::changed(&task.operation).is_some_and(|changed| changed.root == at);
        let opened = |at| changed(at).then(|| directory(directories.root(at))).transpose();
        let programs = match task.method {
            Method::Programs { per_file: each } if !check::is_preparation(&task.operation) => {
                Some(each)
            }
            Method::Programs { .. } | Method::Native => None,
        };
        if programs.is_some() {
            programs::check_absent(&task.operation, directories)?;
        }
        Ok(Self {
            task,
            directories,
            context: TaskContext::new(task.block_size, seat.control)?,
            programs,
            flushed: opened(TaskRoot::Target)?,
            later: opened(TaskRoot::External)?,
            usage: Usage::default(),
        })
    }
}

impl WorkerLoop for TaskLoop<'_> {
    type Error = EngineError;

    fn start(&mut self) -> Nanos {
        self.usage = Usage::of_this_thread();
        now()
    }

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, EngineError> {
        let Self { task, directories, context, .. } = self;
        match self.programs {
            None => native::perform(task, *directories, context)?,
            Some(each) => programs::perform(task, each, *directories, context)?,
        }
        let started = std::mem::replace(&mut counter.clock, now());
        let own = Usage::of_this_thread().since(self.usage).within(counter.clock - started);
        self.usage = own.plus(context.children);
        Ok(false)
    }

    /// Syncs the filesystem under test, which is not part of the usage of the task.
    fn finish(&mut self, ended: Nanos) -> Result<Ended, EngineError> {
        let mut synced = ended;
        if let Some(directory) = self.flushed.take() {
            sync_filesystem(&directory, self.directories.target)?;
            synced = now();
        }
        Ok(Ended { synced, closed: synced })
    }

    fn report(self, result: &mut WorkerResult) -> Result<(), EngineError> {
        let Self { task, directories, mut context, usage, .. } = self;
        if let Some(directory) = self.later {
            sync_filesystem(&directory, directories.root(TaskRoot::External))?;
        }
        if self.programs.is_some() {
            programs::count(&task.operation, directories, &mut context)?;
        }
        let (ops, none) = (Ops(context.ops()), Ops(0));
        let changes = check::changed(&task.operation).is_some();
        let (reads, writes) = if changes { (none, ops) } else { (ops, none) };
        result.read = Moved { ops: reads, bytes: Bytes(context.read) };
        result.written = Moved { ops: writes, bytes: Bytes(context.written) };
        (result.user_time, result.system_time) = (usage.user, usage.system);
        result.voluntary_switches = usage.voluntary;
        result.involuntary_switches = usage.involuntary;
        result.series = Series::default();
        Ok(())
    }
}

fn directory(path: &Path) -> Result<OwnedFd, EngineError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, path, errno))
}

/// syncfs(2): writes all data and the journal of the filesystem to the device.
fn sync_filesystem(directory: &OwnedFd, path: &Path) -> Result<(), EngineError> {
    syncfs(directory.as_fd()).map_err(|errno| failed(Operation::Sync, path, errno))
}

/// Bytes that the task moves, if given by its operation.
fn total(operation: &TaskOperation) -> Bytes {
    match operation {
        TaskOperation::Zeros { size, .. } | TaskOperation::Random { size, .. } => *size,
        TaskOperation::Touch { .. }
        | TaskOperation::MakeDirectories { .. }
        | TaskOperation::Find { .. }
        | TaskOperation::RemoveTree { .. }
        | TaskOperation::Copy { .. }
        | TaskOperation::Unpack { .. }
        | TaskOperation::Pack { .. }
        | TaskOperation::CopyTree { .. }
        | TaskOperation::Split { .. }
        | TaskOperation::Read { .. }
        | TaskOperation::Archive { .. }
        | TaskOperation::Fetch { .. } => Bytes(0),
    }
}

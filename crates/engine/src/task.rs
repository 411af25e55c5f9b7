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
//!   counted, nor are bytes of programs that do not follow from the command line and the sizes of
//!   its files;
//! - CPU time and context switches: of the task only, without the sync, as reported by time(1);
//!   with programs, of the programs and of starting them.
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
    sync::{Arc, atomic::Ordering::Relaxed},
};

use model::{
    Bytes, Nanos, Ops, PhaseResult,
    phase::{Method, Moved, Task, TaskOperation, TaskPath, TaskRoot, WorkerResult},
};
use rustix::fs::{Mode, OFlags, open, syncfs};

use crate::{
    Context, EngineError,
    barrier::ControlBlock,
    clock::{Usage, now},
    error::Operation,
    run::{results, run_threads},
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
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let directories = TaskDirectories { target: context.directory, external };
    let control = ControlBlock::new(1).map_err(|fault| context::fault(fault, context.directory))?;
    let control = Arc::new(control);
    context.progress.begin(Some(Arc::clone(&control)), total(&task.operation));
    let work = std::iter::once({
        let control = &*control;
        move || {
            let result = perform(task, directories, control);
            match result {
                Ok(_) | Err(EngineError::Interrupted) => {}
                Err(_) => control.fail(0),
            }
            result
        }
    });
    let (_, outcomes) = run_threads(&control, context.interrupt, work)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let workers = results(outcomes, control.first_failed_worker())?;
    let wall_time = workers.iter().map(|worker| worker.loop_time + worker.end_sync_time).sum();
    Ok(PhaseResult::new(workers, wall_time))
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

/// Work of the worker: untimed preparation, task, sync.
fn perform(
    task: &Task,
    directories: TaskDirectories<'_>,
    control: &ControlBlock,
) -> Result<WorkerResult, EngineError> {
    let changed = |at| check::changed(&task.operation).is_some_and(|changed| changed.root == at);
    let flushed = changed(TaskRoot::Target).then(|| directory(directories.target)).transpose()?;
    let later = changed(TaskRoot::External)
        .then(|| directory(directories.root(TaskRoot::External)))
        .transpose()?;
    let mut context = TaskContext::new(task.block_size, control)?;
    let programs = match task.method {
        Method::Programs { per_file: each } if !check::is_preparation(&task.operation) => {
            Some(each)
        }
        Method::Programs { .. } | Method::Native => None,
    };
    if programs.is_some() {
        programs::check_absent(&task.operation, directories)?;
    }
    control.arrive().map_err(|fault| context::fault(fault, directories.target))?;

    let (before, started) = (Usage::of_this_thread(), now());
    match programs {
        None => native::perform(task, directories, &mut context)?,
        Some(each) => programs::perform(task, each, directories, &mut context)?,
    }
    let ended = now();
    let own = Usage::of_this_thread().since(before).within(ended - started);
    let usage = own.plus(context.children);
    let mut flush_time = Nanos(0);
    if let Some(directory) = flushed {
        sync_filesystem(&directory, directories.target)?;
        flush_time = now() - ended;
    }
    control.slot(0).end(ended + flush_time);
    if let Some(directory) = later {
        sync_filesystem(&directory, directories.root(TaskRoot::External))?;
    }
    if programs.is_some() {
        programs::count(&task.operation, directories, &mut context)?;
    }
    let changes = check::changed(&task.operation).is_some();
    let ops = |counts: bool| Ops(if counts { context.ops() } else { 0 });
    Ok(WorkerResult {
        started,
        loop_time: ended - started,
        end_sync_time: flush_time,
        read: Moved { ops: ops(!changes), bytes: Bytes(context.read) },
        written: Moved { ops: ops(changes), bytes: Bytes(context.written) },
        user_time: usage.user,
        system_time: usage.system,
        voluntary_switches: usage.voluntary,
        involuntary_switches: usage.involuntary,
        ..WorkerResult::default()
    })
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

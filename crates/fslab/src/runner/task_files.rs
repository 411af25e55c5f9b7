//! Files that a task reads and creates, and the external directory that some tasks need.
//!
//! The rig owns the external directory. Each trial has a subdirectory in it, because the files that
//! a task creates must not exist yet.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use model::{
    Phase,
    phase::{Task, TaskOperation, TaskPath, TaskRoot, Work},
};

/// Paths that an operation reads.
fn sources(operation: &TaskOperation) -> Vec<&TaskPath> {
    match operation {
        TaskOperation::Copy { from, .. } | TaskOperation::CopyTree { from, .. } => vec![from],
        TaskOperation::Unpack { archive, .. } => vec![archive],
        TaskOperation::Find { directory } | TaskOperation::Pack { directory, .. } => {
            vec![directory]
        }
        TaskOperation::Split { file, .. } | TaskOperation::Read { file } => vec![file],
        TaskOperation::Touch { .. }
        | TaskOperation::MakeDirectories { .. }
        | TaskOperation::RemoveTree { .. }
        | TaskOperation::Zeros { .. }
        | TaskOperation::Random { .. }
        | TaskOperation::Archive { .. }
        | TaskOperation::Fetch { .. } => Vec::new(),
    }
}

/// Paths that an operation creates or changes.
fn products(operation: &TaskOperation) -> Vec<&TaskPath> {
    match operation {
        TaskOperation::Touch { directory, .. }
        | TaskOperation::MakeDirectories { directory, .. }
        | TaskOperation::RemoveTree { directory } => vec![directory],
        TaskOperation::Copy { to, .. } | TaskOperation::CopyTree { to, .. } => vec![to],
        TaskOperation::Unpack { into, .. } | TaskOperation::Split { into, .. } => vec![into],
        TaskOperation::Pack { archive, .. }
        | TaskOperation::Archive { archive, .. }
        | TaskOperation::Fetch { archive, .. } => {
            vec![archive]
        }
        TaskOperation::Zeros { file, .. } | TaskOperation::Random { file, .. } => vec![file],
        TaskOperation::Find { .. } | TaskOperation::Read { .. } => Vec::new(),
    }
}

/// Reports whether a task reads from the filesystem under test.
pub(super) fn reads_target(task: &Task) -> bool {
    sources(&task.operation).iter().any(|path| path.root == TaskRoot::Target)
}

/// Reports whether a task creates or changes files on the filesystem under test.
pub(super) fn writes_target(task: &Task) -> bool {
    products(&task.operation).iter().any(|path| path.root == TaskRoot::Target)
}

/// Reports whether a phase needs a directory on another filesystem.
pub(crate) fn needs_external_directory(phase: &Phase) -> bool {
    let external = |task: &Task| {
        let mut spots = sources(&task.operation).into_iter().chain(products(&task.operation));
        spots.any(|path| path.root == TaskRoot::External)
    };
    // The home directory of the programs of a command is in it.
    matches!(phase.work, Work::Command(_)) || phase.work.task().is_some_and(external)
}

/// Subdirectory of a trial in the external directory, removed with its content when dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Creates a subdirectory of the external directory. The rig removes the external directory at
    /// the end of the run; after a kill, `fslab clean` does.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        // Each trial gets a new name, so that files that a trial could not remove do not affect the
        // next trial.
        static TRIALS: AtomicU64 = AtomicU64::new(0);
        let trial = TRIALS.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("trial-{trial}"));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "the directory stays until the run \
                                                              ends");
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, phase::Method};

    use super::*;

    fn task(operation: TaskOperation) -> Task {
        Task { operation, method: Method::Native, block_size: Bytes::kib(128), seed: 0 }
    }

    fn spot(at: TaskRoot) -> TaskPath {
        TaskPath { root: at, name: "x".into() }
    }

    #[test]
    fn a_copy_reads_from_one_filesystem_and_writes_to_the_other() {
        let copy =
            |from, to| task(TaskOperation::Copy { from: spot(from), to: spot(to), times: 1 });
        let inward = copy(TaskRoot::External, TaskRoot::Target);
        assert!(!reads_target(&inward) && writes_target(&inward));
        let outward = copy(TaskRoot::Target, TaskRoot::External);
        assert!(reads_target(&outward) && !writes_target(&outward));
        let read = task(TaskOperation::Read { file: spot(TaskRoot::Target) });
        assert!(reads_target(&read) && !writes_target(&read));
        let phase = |task| Phase {
            name: "p".into(),
            group: "tasks".into(),
            role: model::phase::Role::Measure,
            cache: model::phase::Cache::Unchanged,
            work: Work::Task(task),
            timed: model::phase::Timed::default(),
            directory: None,
            together: None,
        };
        assert!(
            needs_external_directory(&phase(inward)) && needs_external_directory(&phase(outward))
        );
        assert!(!needs_external_directory(&phase(read)));
    }

    #[test]
    fn every_trial_finds_its_directory_empty() {
        let external = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let scratch = Scratch::new(external.path()).unwrap();
            assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
            fs::write(scratch.path().join("x"), "left").unwrap();
        }
        assert_eq!(fs::read_dir(external.path()).unwrap().count(), 0);
    }
}

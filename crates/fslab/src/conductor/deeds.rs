//! What a task reads and what it makes, and the second place that some tasks need.
//!
//! Tasks enter; their spots leave. The directory elsewhere is the rig's; a trial has one of its own
//! in it, since whatever a task makes must not be there yet.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use model::{
    Phase,
    phase::{At, Deed, Spot, Task, Work},
};

/// What a deed reads.
fn sources(deed: &Deed) -> Vec<&Spot> {
    match deed {
        Deed::Copy { from, .. } | Deed::CopyTree { from, .. } => vec![from],
        Deed::Unpack { archive, .. } => vec![archive],
        Deed::Find { directory } | Deed::Pack { directory, .. } => vec![directory],
        Deed::Split { file, .. } | Deed::Read { file } => vec![file],
        Deed::Touch { .. }
        | Deed::MakeDirectories { .. }
        | Deed::RemoveTree { .. }
        | Deed::Zeros { .. }
        | Deed::Random { .. }
        | Deed::Archive { .. }
        | Deed::Fetch { .. } => Vec::new(),
    }
}

/// What a deed makes or changes.
fn products(deed: &Deed) -> Vec<&Spot> {
    match deed {
        Deed::Touch { directory, .. }
        | Deed::MakeDirectories { directory, .. }
        | Deed::RemoveTree { directory } => vec![directory],
        Deed::Copy { to, .. } | Deed::CopyTree { to, .. } => vec![to],
        Deed::Unpack { into, .. } | Deed::Split { into, .. } => vec![into],
        Deed::Pack { archive, .. }
        | Deed::Archive { archive, .. }
        | Deed::Fetch { archive, .. } => {
            vec![archive]
        }
        Deed::Zeros { file, .. } | Deed::Random { file, .. } => vec![file],
        Deed::Find { .. } | Deed::Read { .. } => Vec::new(),
    }
}

/// Whether a task reads from the filesystem under test.
pub(super) fn reads_target(task: &Task) -> bool {
    sources(&task.deed).iter().any(|spot| spot.at == At::Target)
}

/// Whether a task makes or changes something on the filesystem under test.
pub(super) fn writes_target(task: &Task) -> bool {
    products(&task.deed).iter().any(|spot| spot.at == At::Target)
}

/// Whether a phase needs a directory on another filesystem.
pub(crate) fn needs_elsewhere(phase: &Phase) -> bool {
    match &phase.work {
        Work::Task(task) => {
            let mut spots = sources(&task.deed).into_iter().chain(products(&task.deed));
            spots.any(|spot| spot.at == At::Elsewhere)
        }
        Work::Stream(_)
        | Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Remove { .. } => false,
    }
}

/// A trial's own directory elsewhere, removed with all below it when dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Made anew in the rig's directory, which is removed with the rig, also after a kill.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn new(elsewhere: &Path) -> io::Result<Self> {
        // What a trial could not remove must not stop the next.
        static TRIALS: AtomicU64 = AtomicU64::new(0);
        let trial = TRIALS.fetch_add(1, Ordering::Relaxed);
        let path = elsewhere.join(format!("trial-{trial}"));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "left until the run ends");
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, phase::Method};

    use super::*;

    fn task(deed: Deed) -> Task {
        Task { deed, method: Method::Native, buffer: Bytes::kib(128), seed: 0 }
    }

    fn spot(at: At) -> Spot {
        Spot { at, name: "x".into() }
    }

    #[test]
    fn a_copy_reads_on_one_side_and_writes_on_the_other() {
        let copy = |from, to| task(Deed::Copy { from: spot(from), to: spot(to), times: 1 });
        let inward = copy(At::Elsewhere, At::Target);
        assert!(!reads_target(&inward) && writes_target(&inward));
        let outward = copy(At::Target, At::Elsewhere);
        assert!(reads_target(&outward) && !writes_target(&outward));
        let read = task(Deed::Read { file: spot(At::Target) });
        assert!(reads_target(&read) && !writes_target(&read));
        let phase = |task| Phase {
            name: "p".into(),
            group: "tasks".into(),
            role: model::phase::Role::Measure,
            cache: model::phase::Cache::AsLeft,
            work: Work::Task(task),
            timed: model::phase::Timed::default(),
        };
        assert!(needs_elsewhere(&phase(inward)) && needs_elsewhere(&phase(outward)));
        assert!(!needs_elsewhere(&phase(read)));
    }

    #[test]
    fn every_trial_finds_its_directory_empty() {
        let elsewhere = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let scratch = Scratch::new(elsewhere.path()).unwrap();
            assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
            fs::write(scratch.path().join("x"), "left").unwrap();
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}

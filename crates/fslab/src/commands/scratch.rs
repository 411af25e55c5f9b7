//! Temporary run files of `fslab bench` without `-o`.
//!
//! Each temporary run has a directory with a random name. The first file in this directory is a
//! record with the directory's device and inode, which its process locks (flock(2)). [`clean`]
//! removes a temporary run only if its record is valid and not locked, so that files of a running
//! process and files not created by fslab are never removed.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use sys::whole::Fresh;

/// Parent directory of all temporary runs, in the state directory or in memory.
pub(super) const DIRECTORY: &str = "scratch";
/// Record in the directory of a temporary run.
const RECORD: &str = "owner";
/// First words of a record.
const FORMAT: &str = "fslab scratch run 1";
/// The run file, and the files that SQLite creates for it.
const RUN: &str = "run.fslab";
const FILES: [&str; 4] = [RUN, "run.fslab-wal", "run.fslab-shm", "run.fslab-journal"];

/// Maximum number of retries if another process removes the empty parent directory.
const TRIES: u32 = 100;

/// Temporary run of this process, removed when dropped.
pub(super) struct Scratch {
    directory: PathBuf,
    record: File,
}

impl Scratch {
    /// Creates a directory for a temporary run below `within`/[`DIRECTORY`].
    ///
    /// # Errors
    /// If the directory or its record cannot be created, or the record cannot be locked.
    pub(super) fn new(within: &Path) -> io::Result<Self> {
        let all = within.join(DIRECTORY);
        let mut private = DirBuilder::new();
        private.mode(0o700);
        let mut tries = 0;
        loop {
            fs::create_dir_all(within)?;
            let parent = private.recursive(true).create(&all);
            let directory = all.join(format!("{:016x}", fastrand::u64(..)));
            let made = parent
                .and_then(|()| private.recursive(false).create(&directory))
                .and_then(|()| Self::record(&directory));
            match made {
                Ok(record) => return Ok(Self { directory, record }),
                // Another process may remove the parent directory while it is empty.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates the record, which is locked before it gets its name.
    fn record(directory: &Path) -> io::Result<File> {
        let fresh = Fresh::beside(&directory.join(RECORD), 0o600)?;
        fresh.file().try_lock()?;
        fresh.file().write_all(record(&fs::symlink_metadata(directory)?).as_bytes())?;
        fresh.place_new()
    }

    /// Path of the run file, which does not exist yet.
    pub(super) fn run_file(&self) -> PathBuf {
        self.directory.join(RUN)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.directory, &self.record) {
            tracing::warn!("cannot remove {}: {error}", self.directory.display());
        }
        // Succeeds only if this was the last temporary run.
        let _others = self.directory.parent().map(fs::remove_dir);
    }
}

fn record(directory: &fs::Metadata) -> String {
    format!("{FORMAT} {}:{}\n", directory.dev(), directory.ino())
}

/// Removes a temporary run whose record `held` is locked, unless its directory was replaced.
fn remove(directory: &Path, held: &File) -> io::Result<()> {
    if !sys::whole::is(&directory.join(RECORD), held) {
        return Err(io::Error::other("it was replaced"));
    }
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    let names: Vec<_> = entries.iter().map(|entry| entry.file_name()).collect();
    if !names.iter().all(|name| name.to_str().is_some_and(ours)) {
        return Err(io::Error::other("it contains files not created by fslab"));
    }
    for name in names.iter().filter(|name| *name != RECORD) {
        fs::remove_file(directory.join(name))?;
    }
    fs::remove_file(directory.join(RECORD))?;
    fs::remove_dir(directory)
}

/// Reports whether fslab creates files of this name in the directory of a temporary run.
fn ours(name: &str) -> bool {
    let temporary = name.starts_with(".run.fslab.") && name.ends_with(".part");
    name == RECORD || FILES.contains(&name) || temporary
}

/// Result of cleaning a directory of temporary runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cleaned {
    /// Removed directories.
    pub(super) removed: Vec<PathBuf>,
    /// Remaining entries with reasons.
    pub(super) left: Vec<(PathBuf, String)>,
}

/// Removes the temporary runs of this user below `within`/[`DIRECTORY`] whose processes have ended.
pub(super) fn clean(within: &Path) -> Cleaned {
    let all = within.join(DIRECTORY);
    let mut cleaned = Cleaned::default();
    let entries = fs::read_dir(&all).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let removed = orphan(&path).and_then(|record| match record {
            Some(record) => remove(&path, &record).map(|()| true),
            None => Ok(false),
        });
        match removed {
            Ok(true) => cleaned.removed.push(path),
            Ok(false) => {}
            Err(error) => cleaned.left.push((path, error.to_string())),
        }
    }
    let _others = fs::remove_dir(&all);
    cleaned
}

/// Locked record of a temporary run whose process has ended; `None` if the process still runs.
fn orphan(directory: &Path) -> io::Result<Option<File>> {
    let metadata = fs::symlink_metadata(directory)?;
    let user = rustix::process::geteuid().as_raw();
    let unknown = || Err(io::Error::other("fslab has no record of it"));
    if !metadata.is_dir() || metadata.uid() != user {
        return unknown();
    }
    let mut options = File::options();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.read(true).custom_flags(flags).open(directory.join(RECORD));
    let Ok(mut file) = file else { return unknown() };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut text = String::new();
    let _unread = Read::by_ref(&mut file).take(256).read_to_string(&mut text);
    let own = file.metadata()?;
    if text != record(&metadata) || !own.is_file() || own.uid() != user {
        return unknown();
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Leaves the files of a killed process without its lock.
    fn killed(within: &Path) -> PathBuf {
        let scratch = Scratch::new(within).unwrap();
        fs::write(scratch.run_file(), "run").unwrap();
        fs::write(scratch.directory.join("run.fslab-wal"), "log").unwrap();
        let directory = scratch.directory.clone();
        let scratch = std::mem::ManuallyDrop::new(scratch);
        scratch.record.unlock().unwrap();
        directory
    }

    #[test]
    fn temporary_runs_of_dead_processes_are_removed() {
        let state = tempfile::tempdir_in("/var/tmp").unwrap();
        let living = Scratch::new(state.path()).unwrap();
        fs::write(living.run_file(), "run").unwrap();
        let dead = killed(state.path());
        let cleaned = clean(state.path());
        assert_eq!(cleaned, Cleaned { removed: vec![dead.clone()], left: Vec::new() });
        assert!(!dead.exists() && living.run_file().exists());
        drop(living);
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_recorded_directories_are_removed_by_clean() {
        let state = tempfile::tempdir_in("/var/tmp").unwrap();
        let all = state.path().join(DIRECTORY);
        let (dead, other) = (killed(state.path()), killed(state.path()));
        // A copy has a different identity than its record.
        let copy = all.join("0123456789abcdef");
        fs::create_dir(&copy).unwrap();
        for name in [RUN, RECORD] {
            fs::copy(dead.join(name), copy.join(name)).unwrap();
        }
        fs::write(all.join("bench-2024-ext4.fslab"), "mine").unwrap();
        fs::create_dir(all.join("empty")).unwrap();
        symlink(&other, all.join("link")).unwrap();
        fs::write(other.join("notes"), "mine").unwrap();
        let linked = all.join("linked-record");
        fs::create_dir(&linked).unwrap();
        symlink(dead.join(RECORD), linked.join(RECORD)).unwrap();
        let cleaned = clean(state.path());
        assert_eq!(cleaned.removed, [dead]);
        let mut left: Vec<_> = cleaned.left.into_iter().map(|(path, _)| path).collect();
        left.sort();
        let mut kept = [
            copy.clone(),
            all.join("bench-2024-ext4.fslab"),
            all.join("empty"),
            all.join("link"),
            linked,
            other.clone(),
        ];
        kept.sort();
        assert_eq!(left, kept);
        assert!(copy.join(RUN).exists() && other.join("notes").exists());
        assert!(other.join(RUN).exists(), "all files remain");
    }

    #[test]
    fn a_replaced_temporary_run_is_not_removed() {
        let state = tempfile::tempdir_in("/var/tmp").unwrap();
        let scratch = Scratch::new(state.path()).unwrap();
        let directory = scratch.directory.clone();
        fs::rename(&directory, state.path().join("moved")).unwrap();
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(RUN), "mine").unwrap();
        drop(scratch);
        assert!(directory.join(RUN).exists() && state.path().join("moved").exists());
    }
}

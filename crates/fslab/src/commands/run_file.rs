//! Working and final path of the run file.
//!
//! The run file must not be on the filesystem under test, because storing a trial would become part
//! of the load. If the plan uses devices or images, such a path is rejected. A directory under
//! test, however, is often on the only filesystem that its user may write to. In this case, the run
//! file is written in memory (`/dev/shm`, tmpfs(5)) and copied to its final path when the run ends
//! or is interrupted. After a kill the working copy remains in memory under a name derived from the
//! final path, and `--resume` finds it.
//!
//! The run file of a resumed run is copied into memory. The file at the final path stays until it
//! is replaced as a whole, so a power loss costs at most the trials of this session. If both files
//! exist, their contents determine the newer file: both must belong to the same run, and the newer
//! file must contain all trials of the other file. Otherwise an error is reported; a file of
//! another run is never replaced.

use std::{
    fs::{self, DirBuilder},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use anyhow::Context;
use model::{
    RunRecord,
    record::{CellState, RunInfo},
    storage::StorageKind,
};
use store::{Lock, StoreError};
use sys::whole::Fresh;

use super::scratch::{self, Scratch};
use crate::exit::Failure;

/// Directory in memory in which every user may create a directory.
const MEMORY: &str = "/dev/shm";

/// Final and working path of a run file, which are usually the same. Dropping it moves a working
/// copy in use to its final path, even if the run failed.
#[derive(Debug)]
pub(super) struct RunFilePath {
    begun: bool,
    /// Path requested by the user.
    pub(super) place: PathBuf,
    /// Path that is written during the run.
    pub(super) working: PathBuf,
}

impl RunFilePath {
    /// Paths for a run file and a storage. Creates no file.
    ///
    /// # Errors
    /// If the current directory is unknown.
    pub(super) fn choose(place: &Path, storage: &StorageKind) -> anyhow::Result<Self> {
        let working = match storage {
            StorageKind::Directory { path } if same_device(place, Path::new(path)) => {
                in_memory(place)?
            }
            // A killed run may be in memory although its final path is no longer under test.
            StorageKind::Directory { .. }
            | StorageKind::Image { .. }
            | StorageKind::Devices { .. }
            | StorageKind::Levels { .. } => Self::find(place),
        };
        Ok(Self { begun: false, place: place.into(), working })
    }

    /// File to read: the file at the final path, or a newer working copy in memory.
    pub(super) fn find(place: &Path) -> PathBuf {
        let working = in_memory(place).ok().filter(|file| memory().is_ok() && exists(file));
        let Some(working) = working else { return place.into() };
        match exists(place).then(|| newer(place, &working)) {
            None | Some(Ok(Newer::Working)) => working,
            Some(Ok(Newer::Place) | Err(_)) => place.into(),
        }
    }

    /// Checks that no working copy of another run exists.
    ///
    /// # Errors
    /// If a killed run of this name is in memory.
    pub(super) fn free(&self) -> Result<(), Failure> {
        if self.working == self.place || !exists(&self.working) {
            return Ok(());
        }
        Err(Failure::usage(anyhow::anyhow!(
            "a killed run of this name is in memory ({}); resume it with fslab run --resume {}",
            self.working.display(),
            self.place.display()
        )))
    }

    /// Prepares the working copy, if there is one. For a resumed run, it gets the content of the
    /// file at the final path.
    ///
    /// # Errors
    /// If the copy cannot be written, or the newer of the two files cannot be determined.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        if self.working == self.place {
            return Ok(());
        }
        let directory = memory_made()?;
        if exists(&self.place) {
            if exists(&self.working) && matches!(self.newer()?, Newer::Place) {
                let _held = Lock::take(&self.working)?;
                self.forget()?;
            }
            if !exists(&self.working) {
                let image = store::image(&self.place)?;
                let copied = new(&self.working, &image);
                copied.with_context(|| {
                    format!("copying {} into {}", self.place.display(), directory.display())
                })?;
            }
        }
        let place = std::path::absolute(&self.place)?;
        sys::whole::write(&note(&self.working), place.as_os_str().as_bytes())?;
        self.begun = true;
        Ok(())
    }

    fn newer(&self) -> anyhow::Result<Newer> {
        newer(&self.place, &self.working).with_context(|| {
            format!(
                "a killed run of the same name is in memory ({}); move one of the two to another \
                 directory",
                self.working.display()
            )
        })
    }

    /// Moves the file to its final path: a copy replaces the existing file as a whole, then the
    /// working copy is removed.
    ///
    /// # Errors
    /// If the final path cannot be written or contains another run. The working copy is then kept.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        if self.working == self.place {
            return Ok(());
        }
        // Locking fails if another process is resuming the run.
        let _held = Lock::take(&self.working)?;
        let copied = || format!("copying {} to {}", self.working.display(), self.place.display());
        let image = store::image(&self.working)?;
        match fs::canonicalize(&self.place) {
            Ok(place) => {
                let old = fs::symlink_metadata(&place)?;
                anyhow::ensure!(
                    matches!(self.newer()?, Newer::Working),
                    "{} contains trials that {} does not have",
                    place.display(),
                    self.working.display()
                );
                replace(&place, &old, &image).with_context(copied)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                new(&self.place, &image).with_context(copied)?;
            }
            Err(error) => return Err(anyhow::Error::from(error).context(copied())),
        }
        Ok(self.forget()?)
    }

    /// Removes the working copy. The caller must hold its lock.
    fn forget(&self) -> io::Result<()> {
        for name in ["-wal", "-shm", ""] {
            let mut file = self.working.as_os_str().to_owned();
            file.push(name);
            gone(fs::remove_file(PathBuf::from(file)))?;
        }
        gone(fs::remove_file(note(&self.working)))
    }
}

impl Drop for RunFilePath {
    fn drop(&mut self) {
        if !self.begun || !exists(&self.working) {
            return;
        }
        match self.end() {
            Err(error) if matches!(error.downcast_ref(), Some(StoreError::Busy(_))) => {}
            Err(error) => {
                let (file, error) = (self.working.display(), format!("{error:#}"));
                tracing::warn!(error, "the run file stays in memory: {file}");
            }
            Ok(()) => {}
        }
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Writes a new file.
fn new(place: &Path, image: &[u8]) -> io::Result<()> {
    let fresh = Fresh::beside(place, 0o644)?;
    fresh.file().write_all(image)?;
    fresh.place_new().map(drop)
}

/// Replaces a file, unless it has changed since it was compared.
fn replace(place: &Path, compared: &fs::Metadata, image: &[u8]) -> io::Result<()> {
    let fresh = Fresh::beside(place, 0o600)?;
    fresh.file().write_all(image)?;
    fresh.file().set_permissions(compared.permissions())?;
    let now = fs::symlink_metadata(place)?;
    if (now.dev(), now.ino(), now.mtime(), now.mtime_nsec())
        != (compared.dev(), compared.ino(), compared.mtime(), compared.mtime_nsec())
    {
        return Err(io::Error::other("the file was replaced during the comparison"));
    }
    fresh.replace().map(drop)
}

/// Newer of two files, which contains all trials of the other file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Newer {
    Place,
    /// Also used if both are equal.
    Working,
}

/// Determines the newer of two files from their contents.
///
/// # Errors
/// If the files belong to different runs, each has trials that the other does not have, or a file
/// cannot be read.
fn newer(place: &Path, working: &Path) -> anyhow::Result<Newer> {
    let (there, here) = (store::read(place)?, store::read(working)?);
    let begun = |run: &RunRecord| RunInfo { ended_unix: None, ..run.info.clone() };
    let shared = there.trials.len().min(here.trials.len());
    anyhow::ensure!(
        begun(&there) == begun(&here) && there.trials[..shared] == here.trials[..shared],
        "{} contains another run, {}",
        place.display(),
        there.info.id
    );
    let held = |run: &RunRecord| {
        let closed = run.cells.iter().filter(|cell| cell.state != CellState::Open).count();
        (run.trials.len(), closed, run.info.ended_unix.is_some())
    };
    Ok(if held(&there) > held(&here) { Newer::Place } else { Newer::Working })
}

/// Checks, as root, that no other user could have written a run file, because a resumed run runs
/// the programs of the plan as root.
///
/// # Errors
/// If another user owns the file or may write to it.
pub(super) fn trusted(path: &Path) -> Result<(), Failure> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let user = rustix::process::geteuid();
    let why = if metadata.uid() != user.as_raw() {
        format!("user {} owns it", metadata.uid())
    } else if metadata.mode() & 0o022 != 0 {
        "other users may write to it".to_owned()
    } else {
        return Ok(());
    };
    if !user.is_root() || !metadata.is_file() {
        return Ok(());
    }
    let shown = path.display();
    Err(Failure::usage(anyhow::anyhow!(
        "{shown} is not resumed as root: {why}, and its plan would run programs as root; check the \
         plan (sqlite3 {shown} \"SELECT value FROM run WHERE key = 'plan_text'\"), then change the \
         owner: chown root {shown}; chmod go-w {shown}"
    )))
}

/// Checks that the run file can be created before anything is measured.
///
/// # Errors
/// If no file can be created at this path.
pub(super) fn writable(path: &Path) -> Result<(), Failure> {
    let probe = Fresh::beside(path, 0o600);
    let parent = path.parent().filter(|parent| *parent != Path::new("") && !parent.is_dir());
    probe.map(drop).map_err(|source| match parent {
        Some(parent) => Failure::usage(anyhow::anyhow!(
            "the run file {} cannot be written: {} is not a directory; use another path with -o, \
             or create the directory",
            path.display(),
            parent.display()
        )),
        None => Failure::usage(anyhow::Error::new(source).context(format!(
            "the run file {} cannot be written; use another path with -o",
            path.display()
        ))),
    })
}

/// Temporary run file: in the state directory, or in memory if the state directory is on the
/// filesystem under test.
///
/// # Errors
/// If no directory for the file can be created.
pub(super) fn scratch(state: &Path, directory: &Path) -> anyhow::Result<Scratch> {
    let made =
        fs::create_dir_all(state).and_then(|()| match same_device(&state.join("x"), directory) {
            true => {
                memory_made().map_err(io::Error::other).and_then(|memory| Scratch::new(&memory))
            }
            false => Scratch::new(state),
        });
    made.with_context(|| {
        format!(
            "cannot create a run file in the state directory {}; use another one with \
             --state-directory or $FSLAB_STATE",
            state.display()
        )
    })
}

/// Removes temporary run files for `fslab clean`. Returns a line for each of them, and for each
/// working copy of a killed run, which is kept.
pub(super) fn clean(state: &Path) -> Vec<String> {
    let memory = memory();
    let places = [Some(state), memory.as_deref().ok()];
    let mut lines = Vec::new();
    for cleaned in places.into_iter().flatten().map(scratch::clean) {
        lines.extend(cleaned.removed.iter().map(|path| format!("removed: {}", path.display())));
        let left = cleaned.left.iter();
        lines.extend(left.map(|(path, why)| format!("not removed: {}: {why}", path.display())));
    }
    let entries = memory.ok().and_then(|memory| fs::read_dir(memory).ok());
    let files = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|name| name == "fslab")).collect();
    runs.sort();
    lines.extend(runs.iter().filter_map(|file| in_memory_line(file)));
    lines
}

/// Line about a working copy in memory; `None` if a process is writing it. A working copy is never
/// removed, because it may be the only copy.
fn in_memory_line(working: &Path) -> Option<String> {
    let shown = working.display();
    if matches!(Lock::take(working), Err(StoreError::Busy(_))) {
        return None;
    }
    let place = fs::read(note(working)).map(std::ffi::OsString::from_vec).map(PathBuf::from);
    let place = place.unwrap_or_else(|_| working.to_owned());
    let place = place.display();
    Some(format!(
        "not removed: {shown}: run file of a killed run, final path {place}; resume it with fslab \
         run --resume {place}"
    ))
}

/// File next to a working copy that contains its final path.
fn note(working: &Path) -> PathBuf {
    working.with_added_extension("place")
}

/// Directory of this user in memory.
///
/// # Errors
/// If the directory does not exist, or another user owns it or may write to it. That is possible
/// because all users can write to its parent directory.
fn memory() -> anyhow::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let directory = Path::new(MEMORY).join(format!("fslab-{user}"));
    let metadata = fs::symlink_metadata(&directory);
    let metadata = metadata.with_context(|| format!("opening {}", directory.display()))?;
    anyhow::ensure!(
        metadata.is_dir() && metadata.uid() == user && metadata.permissions().mode() & 0o022 == 0,
        "{} is not a private directory of this user; use a run file on another filesystem with -o",
        directory.display()
    );
    Ok(directory)
}

fn memory_made() -> anyhow::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let directory = Path::new(MEMORY).join(format!("fslab-{user}"));
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(anyhow::Error::from(error).context(format!("creating {}", directory.display())))
        }
        Ok(()) | Err(_) => memory(),
    }
}

fn in_memory(place: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(place).context("reading the current directory")?;
    let mut hasher = DefaultHasher::new();
    absolute.hash(&mut hasher);
    let name = absolute.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let user = rustix::process::geteuid().as_raw();
    let file = format!("{name}-{:016x}.fslab", hasher.finish());
    Ok(Path::new(MEMORY).join(format!("fslab-{user}")).join(file))
}

/// Reports whether a file is on the filesystem of a directory. The file need not exist, because its
/// parent directory is checked.
fn same_device(file: &Path, directory: &Path) -> bool {
    let parent = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) | None => Path::new("."),
    };
    match (fs::metadata(parent), fs::metadata(directory)) {
        (Ok(file), Ok(directory)) => file.dev() == directory.dev(),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

#[cfg(test)]
mod tests;

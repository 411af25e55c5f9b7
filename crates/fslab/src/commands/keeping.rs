//! Where a run file is while it is written, and where it is in the end.
//!
//! The filesystem under test must not carry the run file: keeping a trial would then be part of the
//! load. For a device or an image that is a refusal. A directory, though, often lies on the only
//! filesystem its user may write to; its run file is kept in memory (`/dev/shm`, tmpfs(5)) while
//! the run goes on, and moved to its place when it ends or is interrupted. After a kill it is still
//! there, under a name made from the final path, and `--resume` finds it.

use std::{
    fs::{self, DirBuilder},
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use model::storage::Place;

/// A directory in memory that every user may make a directory in.
const MEMORY: &str = "/dev/shm";

/// The two places of a run file; often one. Once begun it goes to its place in the end, whatever
/// the end.
#[derive(Debug)]
pub(super) struct Keeping {
    begun: bool,
    /// Where the user wants it.
    pub(super) place: PathBuf,
    /// Where it is written.
    pub(super) working: PathBuf,
}

impl Keeping {
    /// The places for a run file and a storage. Nothing is made yet.
    ///
    /// # Errors
    /// When the current directory cannot be told.
    pub(super) fn choose(place: &Path, storage: &Place) -> anyhow::Result<Self> {
        let working = match storage {
            Place::Directory { path } if same_device(place, Path::new(path)) => in_memory(place)?,
            Place::Directory { .. } | Place::Image { .. } | Place::Devices { .. } => place.into(),
        };
        Ok(Self { begun: false, place: place.into(), working })
    }

    /// The file to read when a run is to go on: in its place, or still in memory after a kill.
    pub(super) fn find(place: &Path) -> PathBuf {
        match in_memory(place) {
            Ok(working) if !place.exists() && working.exists() => working,
            Ok(_) | Err(_) => place.into(),
        }
    }

    /// Makes ready for writing, with what was written before if the run goes on.
    ///
    /// # Errors
    /// When memory cannot take it.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        self.begun = true;
        if self.working == self.place {
            return Ok(());
        }
        if let Some(directory) = self.working.parent() {
            let made = DirBuilder::new().mode(0o700).recursive(true).create(directory);
            made.with_context(|| format!("making {}", directory.display()))?;
            // The directory is open to all users: one that somebody else made is no place to trust.
            let metadata = fs::symlink_metadata(directory)?;
            let own = metadata.uid() == rustix::process::geteuid().as_raw();
            anyhow::ensure!(
                own && metadata.is_dir(),
                "{} belongs to somebody else; name a run file on another filesystem with -o",
                directory.display()
            );
        }
        if self.place.exists() && !self.working.exists() {
            relocate(&self.place, &self.working)?;
        }
        Ok(())
    }

    /// Brings the file to its place.
    ///
    /// # Errors
    /// When it cannot be written there; it then stays where it is.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        if self.working == self.place {
            return Ok(());
        }
        relocate(&self.working, &self.place)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if !self.begun || !self.working.exists() {
            return;
        }
        if let Err(error) = self.end() {
            tracing::warn!(error = format!("{error:#}"), "the run file stays where it is");
        }
    }
}

/// Moves a file to another filesystem: whole under another name, then renamed.
fn relocate(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let moved = fs::copy(from, &partial)
        .and_then(|_| fs::File::open(&partial)?.sync_all())
        .and_then(|()| fs::rename(&partial, to))
        .and_then(|()| fs::remove_file(from));
    moved.with_context(|| format!("moving {} to {}", from.display(), to.display()))
}

/// Removes what killed runs of `fslab bench` left: run files that nobody asked for. Names them.
pub(super) fn forget(state: &Path) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folders = [state.to_owned(), Path::new(MEMORY).join(format!("fslab-{user}"))];
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
    let files = files.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let left = files.filter(|path| owner(path).is_some_and(|process| !alive(process)));
    left.filter(|path| fs::remove_file(path).is_ok()).collect()
}

/// The process in the name of a run file that nobody asked for; see [`scratch`].
fn owner(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    // SQLite's own files beside it end in `-wal` and `-shm`.
    let rest = name.strip_prefix(SCRATCH).filter(|rest| rest.contains(".fslab"))?;
    rest.split('-').next()?.parse().ok()
}

fn alive(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// How names of run files begin that nobody asked for.
const SCRATCH: &str = "bench-";

/// A name for a run file that nobody asked for, of this process.
pub(super) fn scratch() -> String {
    format!("{SCRATCH}{}-{:08x}.fslab", std::process::id(), fastrand::u32(..))
}

fn in_memory(place: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(place).context("asking for the current directory")?;
    let mut hasher = DefaultHasher::new();
    absolute.hash(&mut hasher);
    let name = absolute.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let user = rustix::process::geteuid().as_raw();
    let file = format!("{name}-{:016x}.fslab", hasher.finish());
    Ok(Path::new(MEMORY).join(format!("fslab-{user}")).join(file))
}

/// Whether two paths lie on one filesystem; a file that is not there yet counts as its directory.
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
mod tests {
    use super::*;

    #[test]
    fn only_a_run_file_on_the_filesystem_under_test_is_kept_in_memory() {
        let scratch = tempfile::tempdir_in("/var/tmp").unwrap();
        let place = scratch.path().join("a.fslab");
        let directory = |path: &Path| Place::Directory { path: path.display().to_string() };
        let here = Keeping::choose(&place, &directory(scratch.path())).unwrap();
        assert!(here.working.starts_with(MEMORY), "{here:?}");
        let elsewhere = Keeping::choose(&place, &directory(Path::new("/proc"))).unwrap();
        assert_eq!(elsewhere.working, place);
        let device = Place::Devices { paths: vec!["/dev/sdb".into()] };
        assert_eq!(Keeping::choose(&place, &device).unwrap().working, place);
    }

    #[test]
    fn what_a_killed_bench_left_is_removed_and_nothing_else() {
        let state = tempfile::tempdir_in("/var/tmp").unwrap();
        // Process ids end well below this (PID_MAX_LIMIT, include/linux/threads.h).
        let dead = ["bench-4294967294-0a.fslab", "bench-4294967294-0a.fslab-wal"];
        let kept =
            [scratch(), "run.fslab".into(), "bench-x.fslab".into(), "bench-4294967294".into()];
        for name in dead.iter().copied().chain(kept.iter().map(String::as_str)) {
            fs::write(state.path().join(name), "").unwrap();
        }
        let mut gone = forget(state.path());
        gone.retain(|path| path.starts_with(state.path()));
        gone.sort();
        assert_eq!(gone, dead.map(|name| state.path().join(name)));
        assert!(kept.iter().all(|name| state.path().join(name).exists()));
    }

    #[test]
    fn a_run_file_comes_to_its_place_and_is_found_before_that() {
        let scratch = tempfile::tempdir_in("/var/tmp").unwrap();
        let place = scratch.path().join("a.fslab");
        let here = Place::Directory { path: scratch.path().display().to_string() };
        let mut keeping = Keeping::choose(&place, &here).unwrap();
        keeping.begin().unwrap();
        fs::write(&keeping.working, "run").unwrap();
        assert_eq!(Keeping::find(&place), keeping.working);
        keeping.end().unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "run");
        assert_eq!(Keeping::find(&place), place);
        keeping.begin().unwrap();
        assert!(keeping.working.exists() && !place.exists(), "going on moves it back");
        let working = keeping.working.clone();
        drop(keeping);
        assert!(place.exists() && !working.exists(), "also when the run ends badly");
    }
}

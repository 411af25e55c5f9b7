//! Cache of unpacked and built kernels: one directory per package, image, or build. The name of a
//! directory is the SHA-256 of the package or image, or of the source and configuration of a build.
//!
//! A directory is created under a temporary name, written, synced, and renamed, so that it is
//! either complete or absent. If two processes create the same directory, the second process uses
//! the directory of the first and removes its own. A process locks a directory that it creates with
//! flock(2), so that other processes can detect and remove directories of processes that have
//! ended. Complete directories are never removed by fslab; users may remove them when no guest
//! runs.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};

use super::source::Source;
use crate::GuestError;

/// Directory of this cache format. Increase the number if the selection or layout of the files
/// changes.
const DIRECTORY: &str = "kernels-1";
/// Name prefix of incomplete directories.
const UNFINISHED: &str = ".unfinished-";
/// File that identifies an incomplete directory as created by fslab: it contains the directory's
/// device and inode.
const MARKER: &str = ".made";
/// File with the manifest of a directory.
const MANIFEST: &str = "manifest";
/// Maximum size of a manifest, which names each patch of a built kernel.
const MANIFEST_MAX: u64 = 1 << 20;

/// Cache of unpacked and built kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Creates a cache in a directory, which need not exist yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Default cache directory of this user (XDG Base Directory Specification): `fslab` below
    /// `$XDG_CACHE_HOME` or `~/.cache`; `/var/cache/fslab` for users without a home directory.
    pub fn default_directory() -> PathBuf {
        let absolute = |name| {
            std::env::var_os(name).map(PathBuf::from).filter(|directory| directory.is_absolute())
        };
        default_directory(absolute("XDG_CACHE_HOME"), absolute("HOME"))
    }

    /// Directory of the cache.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory of a hash and its manifest. If the directory does not exist, `make`
    /// writes its files into an empty directory and returns the manifest.
    pub(crate) fn get_or_create(
        &self,
        hash: &str,
        make: impl FnOnce(&Path) -> Result<CacheManifest, GuestError>,
    ) -> Result<(PathBuf, CacheManifest), GuestError> {
        let kernels = self.directory.join(DIRECTORY);
        let whole = kernels.join(hash);
        if whole.exists() {
            return CacheManifest::read(&whole).map(|manifest| (whole, manifest));
        }
        fs::create_dir_all(&kernels).map_err(GuestError::io(format!(
            "cannot create the cache {} (set XDG_CACHE_HOME to use another directory)",
            kernels.display()
        )))?;
        remove_unfinished(&kernels);
        let unfinished = Unfinished::new(&kernels)?;
        let manifest = make(&unfinished.path)?;
        unfinished.finish(&manifest, &whole)?;
        CacheManifest::read(&whole).map(|manifest| (whole, manifest))
    }

    /// All complete directories with their manifests, in the order of their names. Damaged
    /// directories are skipped; [`Self::get_or_create`] reports them.
    pub(crate) fn manifests(&self) -> Vec<(PathBuf, CacheManifest)> {
        let entries = fs::read_dir(self.directory.join(DIRECTORY)).into_iter().flatten().flatten();
        let mut directories: Vec<PathBuf> = entries
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| entry.path())
            .collect();
        directories.sort();
        let read = |directory: PathBuf| {
            CacheManifest::read(&directory).ok().map(|manifest| (directory, manifest))
        };
        directories.into_iter().filter_map(read).collect()
    }
}

fn default_directory(caches: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    caches
        .or_else(|| home.map(|home| home.join(".cache")))
        .unwrap_or_else(|| PathBuf::from("/var/cache"))
        .join("fslab")
}

/// Manifest of a cache directory: lines `key=value` in the order of the fields. The keys `origin`,
/// `source`, `config`, and `changes` are present only if they have a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheManifest {
    /// Release of the kernel, or of the modules if there is no kernel.
    pub(crate) release: String,
    /// Architecture of the kernel, [`super::Architecture::name`]; empty without a kernel.
    pub(crate) architecture: String,
    /// Name of the boot file in the directory; empty without a kernel.
    pub(crate) image: String,
    /// Name of the modules directory in the directory; empty without modules.
    pub(crate) modules: String,
    /// Name of the source file, for messages.
    pub(crate) origin: String,
    /// SHA-256 of the source of a kernel built by fslab, in hexadecimal.
    pub(crate) source: String,
    /// SHA-256 of the build configuration of a kernel built by fslab, including its changes.
    pub(crate) config: String,
    /// Patches and options that the user added to a kernel built by fslab, for messages.
    pub(crate) changes: String,
}

impl CacheManifest {
    /// True if fslab built the kernel.
    pub(crate) fn is_built(&self) -> bool {
        !self.source.is_empty()
    }

    /// True if the directory contains a kernel from a package. Other directories contain kernels
    /// built by fslab, modules only, or extracted images of installed kernels, which have no
    /// origin.
    pub(crate) fn is_package(&self) -> bool {
        !self.is_built() && !self.image.is_empty() && !self.origin.is_empty()
    }

    fn to_text(&self) -> String {
        let Self { release, architecture, image, modules, origin, source, config, changes } = self;
        let mut text = format!(
            "release={release}\narchitecture={architecture}\nimage={image}\nmodules={modules}\n"
        );
        let optional = [("origin", origin), ("source", source), ("config", config)];
        for (key, value) in optional.into_iter().chain([("changes", changes)]) {
            if !value.is_empty() {
                // File names may contain line feeds.
                let plain = value.replace(char::is_control, "?");
                text.push_str(&format!("{key}={plain}\n"));
            }
        }
        text
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut lines = text.split_terminator('\n').peekable();
        let mut value = |key: &str| {
            let own =
                |line: &&str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with('='));
            lines.next_if(own).map(|line| line[key.len() + 1..].to_owned())
        };
        let manifest = Self {
            release: value("release")?,
            architecture: value("architecture")?,
            image: value("image")?,
            modules: value("modules")?,
            origin: value("origin").unwrap_or_default(),
            source: value("source").unwrap_or_default(),
            config: value("config").unwrap_or_default(),
            changes: value("changes").unwrap_or_default(),
        };
        lines.next().is_none().then_some(manifest)
    }

    /// Reads the manifest of a directory and checks that its files exist.
    fn read(directory: &Path) -> Result<Self, GuestError> {
        let mut text = String::new();
        let read = File::open(directory.join(MANIFEST))
            .and_then(|file| file.take(MANIFEST_MAX).read_to_string(&mut text));
        let exists = |name: &str| name.is_empty() || directory.join(name).exists();
        let manifest = read.ok().and_then(|_| Self::of_text(&text));
        manifest.filter(|manifest| exists(&manifest.image) && exists(&manifest.modules)).ok_or_else(
            || {
                let why = "was modified after it was unpacked; remove it, fslab then recreates it";
                GuestError::Malformed { path: directory.to_owned(), why: why.to_owned() }
            },
        )
    }
}

/// Directory under construction. Dropping it removes the directory unless it is finished.
struct Unfinished {
    path: PathBuf,
    /// Locked while open.
    directory: File,
    finished: bool,
}

impl Unfinished {
    fn new(kernels: &Path) -> Result<Self, GuestError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let random = fastrand::u64(..);
            let name = format!("{UNFINISHED}{}-{number}-{random:x}", std::process::id());
            let path = kernels.join(name);
            let context = || GuestError::io(format!("cannot create {}", path.display()));
            fs::create_dir(&path).map_err(context())?;
            let Ok(directory) = File::open(&path) else { continue };
            // A process that removes abandoned directories may hold the lock; another name is then
            // used. On a filesystem without locks, abandoned directories cannot be detected and are
            // not removed.
            let lock = flock(&directory, FlockOperation::NonBlockingLockExclusive);
            if lock != Err(rustix::io::Errno::WOULDBLOCK) && path.exists() {
                identity(&directory)
                    .and_then(|identity| fs::write(path.join(MARKER), identity))
                    .map_err(context())?;
                return Ok(Self { path, directory, finished: false });
            }
        }
    }

    /// Completes the directory and renames it, unless another process has created a directory of
    /// that name.
    fn finish(mut self, manifest: &CacheManifest, whole: &Path) -> Result<(), GuestError> {
        let path = self.path.join(MANIFEST);
        fs::write(&path, manifest.to_text())
            .and_then(|()| fs::remove_file(self.path.join(MARKER)))
            .map_err(GuestError::io(format!("cannot write {}", path.display())))?;
        // After a power failure, the name must not exist without its contents.
        rustix::fs::syncfs(&self.directory).map_err(|error| {
            GuestError::io(format!("cannot sync {}", path.display()))(error.into())
        })?;
        match fs::rename(&self.path, whole) {
            Ok(()) => self.finished = true,
            Err(_) if whole.exists() => {}
            Err(error) => {
                return Err(GuestError::io(format!("cannot create {}", whole.display()))(error));
            }
        }
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!("cannot remove {}: {error}", self.path.display());
        }
    }
}

/// Removes directories of processes that have ended. The name is not sufficient: the directory must
/// be unlocked and either contain its marker or be empty.
fn remove_unfinished(kernels: &Path) {
    let Ok(entries) = fs::read_dir(kernels) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let path = entry.path();
        let Ok(directory) = File::open(&path) else { continue };
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let made = fs::read_to_string(path.join(MARKER)).ok();
        let ours = made.is_some() && made == identity(&directory).ok();
        let removed = if ours { fs::remove_dir_all(&path) } else { fs::remove_dir(&path) };
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {error}", path.display());
        }
    }
}

/// Device and inode of a directory.
fn identity(directory: &File) -> io::Result<String> {
    directory.metadata().map(|facts| format!("{}:{}", facts.dev(), facts.ino()))
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn hash(source: Source<'_>, file: &File) -> Result<String, GuestError> {
    let mut hasher = Sha256::new();
    let mut stream = source.watched(file, u64::MAX);
    let mut buffer = vec![0; 1 << 18];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(source.failed(error)),
        }
    }
    Ok(hex::encode(hasher.finalize()))
}

#[cfg(test)]
mod tests;

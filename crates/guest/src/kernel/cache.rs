//! What was unpacked is kept: one folder for each package or image, named by its SHA-256.
//!
//! A folder is made under another name, written, synced, and renamed, so that it is whole or not
//! there. Two processes may make the same one at once: the second finds the first's and removes its
//! own. One that makes a folder holds an flock(2) on it, so that what the dead left can be told
//! from it and is removed by the next one. Whole folders are never removed; users may, at any time
//! when no guest runs.

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

/// The folder of this kind of contents. What is kept of a package, and how, is part of the name:
/// another way needs another number.
const FOLDER: &str = "kernels-1";
/// Begins the names of folders that are not whole.
const UNFINISHED: &str = ".unfinished-";
/// The file that shows that an unfinished folder was made here: the folder's device and inode.
const MADE: &str = ".made";
/// The file in a folder that says what is in it.
const CARD: &str = "card";
/// Bytes of it that are read.
const CARD_MAX: u64 = 4096;

/// Where unpacked kernels are kept, by the SHA-256 of what they came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// One in a directory, which need not be there yet.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Where caches of this user belong (XDG Base Directory Specification): `fslab` below
    /// `$XDG_CACHE_HOME` or `~/.cache`; `/var/cache/fslab` for whoever has no home.
    pub fn default_directory() -> PathBuf {
        let absolute = |name| {
            std::env::var_os(name).map(PathBuf::from).filter(|directory| directory.is_absolute())
        };
        default_directory(absolute("XDG_CACHE_HOME"), absolute("HOME"))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Gives the folder of a hash and its card, and makes them first if they are not there.
    /// `make` writes into the empty folder that it is given, and returns the card.
    pub(crate) fn folder(
        &self,
        hash: &str,
        make: impl FnOnce(&Path) -> Result<Card, GuestError>,
    ) -> Result<(PathBuf, Card), GuestError> {
        let kernels = self.directory.join(FOLDER);
        let whole = kernels.join(hash);
        if whole.exists() {
            return Card::read(&whole).map(|card| (whole, card));
        }
        fs::create_dir_all(&kernels).map_err(GuestError::io(format!(
            "making the cache {} (XDG_CACHE_HOME may name another directory)",
            kernels.display()
        )))?;
        remove_unfinished(&kernels);
        let unfinished = Unfinished::new(&kernels)?;
        let card = make(&unfinished.path)?;
        unfinished.finish(&card, &whole)?;
        Card::read(&whole).map(|card| (whole, card))
    }

    /// All whole folders with their cards, in the order of their names. What cannot be read, or is
    /// not what it was, is left out: whoever needs it is told.
    pub(crate) fn cards(&self) -> Vec<(PathBuf, Card)> {
        let entries = fs::read_dir(self.directory.join(FOLDER)).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| entry.path())
            .collect();
        folders.sort();
        let read = |folder: PathBuf| Card::read(&folder).ok().map(|card| (folder, card));
        folders.into_iter().filter_map(read).collect()
    }
}

fn default_directory(caches: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    caches
        .or_else(|| home.map(|home| home.join(".cache")))
        .unwrap_or_else(|| PathBuf::from("/var/cache"))
        .join("fslab")
}

/// What is in a folder of the cache: lines `key=value`, in this order; those from `origin` on only
/// where there is something to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Card {
    /// The release of the kernel, or of the modules if there is no kernel.
    pub(crate) release: String,
    /// What the kernel was built for, [`super::Architecture::name`]; empty without one.
    pub(crate) architecture: String,
    /// The file that is booted, by its name in the folder; empty without one.
    pub(crate) image: String,
    /// The folder of the modules, by its name in the folder; empty without any.
    pub(crate) modules: String,
    /// The name of the file that it came from, for people.
    pub(crate) origin: String,
    /// Of a kernel that was built here: the SHA-256 of its source, in hexadecimal.
    pub(crate) source: String,
    /// Of a kernel that was built here: the SHA-256 of how it was to be built.
    pub(crate) config: String,
}

impl Card {
    /// Whether the kernel was built here.
    pub(crate) fn is_built(&self) -> bool {
        !self.source.is_empty()
    }

    /// Whether it holds a kernel from a package. A kernel that was built here has an entry too, and
    /// so has the unpacked image of an installed kernel, which has no origin.
    pub(crate) fn is_package(&self) -> bool {
        !self.is_built() && !self.image.is_empty() && !self.origin.is_empty()
    }

    fn to_text(&self) -> String {
        let Self { release, architecture, image, modules, origin, source, config } = self;
        let mut text = format!(
            "release={release}\narchitecture={architecture}\nimage={image}\nmodules={modules}\n"
        );
        for (key, value) in [("origin", origin), ("source", source), ("config", config)] {
            if !value.is_empty() {
                // Names of files may have line feeds.
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
        let card = Self {
            release: value("release")?,
            architecture: value("architecture")?,
            image: value("image")?,
            modules: value("modules")?,
            origin: value("origin").unwrap_or_default(),
            source: value("source").unwrap_or_default(),
            config: value("config").unwrap_or_default(),
        };
        lines.next().is_none().then_some(card)
    }

    /// Reads that of a folder, and looks whether all it names is there.
    fn read(folder: &Path) -> Result<Self, GuestError> {
        let mut text = String::new();
        let read = File::open(folder.join(CARD))
            .and_then(|file| file.take(CARD_MAX).read_to_string(&mut text));
        let there = |name: &str| name.is_empty() || folder.join(name).exists();
        let card = read.ok().and_then(|_| Self::of_text(&text));
        card.filter(|card| there(&card.image) && there(&card.modules)).ok_or_else(|| {
            let why = "is not what was unpacked there any more; remove it, and it is made anew";
            GuestError::Malformed { path: folder.to_owned(), why: why.to_owned() }
        })
    }
}

/// A folder that is being made. Dropping it removes it.
struct Unfinished {
    path: PathBuf,
    /// Locked as long as it is open.
    folder: File,
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
            let making = || GuestError::io(format!("making {}", path.display()));
            fs::create_dir(&path).map_err(making())?;
            let Ok(folder) = File::open(&path) else { continue };
            // Whoever removes what the dead left may hold the lock already; then there is a next
            // name. A filesystem without locks cannot tell the dead, so nothing is removed there.
            let lock = flock(&folder, FlockOperation::NonBlockingLockExclusive);
            if lock != Err(rustix::io::Errno::WOULDBLOCK) && path.exists() {
                identity(&folder)
                    .and_then(|identity| fs::write(path.join(MADE), identity))
                    .map_err(making())?;
                return Ok(Self { path, folder, finished: false });
            }
        }
    }

    /// Makes it what it was made for, unless another one was quicker.
    fn finish(mut self, card: &Card, whole: &Path) -> Result<(), GuestError> {
        let path = self.path.join(CARD);
        fs::write(&path, card.to_text())
            .and_then(|()| fs::remove_file(self.path.join(MADE)))
            .map_err(GuestError::io(format!("writing {}", path.display())))?;
        // A name must not outlive a power failure that its contents did not.
        rustix::fs::syncfs(&self.folder)
            .map_err(|error| GuestError::io(format!("syncing {}", path.display()))(error.into()))?;
        match fs::rename(&self.path, whole) {
            Ok(()) => self.finished = true,
            Err(_) if whole.exists() => {}
            Err(error) => {
                return Err(GuestError::io(format!("making {}", whole.display()))(error));
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

/// Removes the folders of processes that are no more. A name proves nothing: the folder has to be
/// unlocked and to hold the record of its own making, or nothing.
fn remove_unfinished(kernels: &Path) {
    let Ok(entries) = fs::read_dir(kernels) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let path = entry.path();
        let Ok(folder) = File::open(&path) else { continue };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let made = fs::read_to_string(path.join(MADE)).ok();
        let ours = made.is_some() && made == identity(&folder).ok();
        let removed = if ours { fs::remove_dir_all(&path) } else { fs::remove_dir(&path) };
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {error}", path.display());
        }
    }
}

/// Device and inode of a folder.
fn identity(folder: &File) -> io::Result<String> {
    folder.metadata().map(|facts| format!("{}:{}", facts.dev(), facts.ino()))
}

/// The SHA-256 of a file, in hexadecimal.
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
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;

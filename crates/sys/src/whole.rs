//! Atomic creation of files, and removal of files by identity.
//!
//! Content is written to a new file with a random name in the target directory. It is opened with
//! `O_EXCL` and `O_NOFOLLOW`, so a file that another user placed there is not truncated, and a link
//! is not followed. The file is synced and renamed, then the directory is synced. At any time, also
//! after a full disk, a kill, or a power failure, the path has either the complete old or the
//! complete new file.
//!
//! A kill before the rename leaves the new file under its temporary name, `.NAME.RANDOM.part`. No
//! command removes files by such a name.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Maximum bytes of the target's name in a temporary name, which may have 255 (NAME_MAX, limits.h).
const NAME_BYTES: usize = 200;

/// Maximum number of random names that are tried.
const TRIES: u32 = 100;

/// New file in the directory of its target. Dropping it removes the file unless it was renamed.
#[derive(Debug)]
pub struct Fresh {
    file: File,
    path: PathBuf,
    place: PathBuf,
}

impl Fresh {
    /// Creates an empty file in the directory of a target; the mode is subject to the umask.
    ///
    /// # Errors
    /// If the directory is not writable, or the target has no name.
    pub fn beside(place: &Path, mode: u32) -> io::Result<Self> {
        let mut tries = 0;
        loop {
            let path = Self::name(place)?;
            match create(&path, mode) {
                Ok(file) => return Ok(Self { file, path, place: place.into() }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Random name for a temporary file next to a target: `.NAME.RANDOM.part`.
    ///
    /// # Errors
    /// If the target has no name.
    pub fn name(place: &Path) -> io::Result<PathBuf> {
        let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?.as_bytes();
        let mut own = OsString::from(".");
        own.push(OsStr::from_bytes(&name[..name.len().min(NAME_BYTES)]));
        own.push(format!(".{:016x}.part", RandomState::new().build_hasher().finish()));
        Ok(place.with_file_name(own))
    }

    /// Adopts a complete and closed file that a library created under a name from [`Self::name`].
    ///
    /// # Errors
    /// If it cannot be opened or is a link.
    pub fn adopt(path: PathBuf, place: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path)?;
        Ok(Self { file, path, place: place.into() })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Renames the file to its target durably, replacing an existing file.
    ///
    /// # Errors
    /// If it cannot be synced or renamed, or the temporary name refers to another file.
    pub fn replace(self) -> io::Result<File> {
        self.put(|from, to| fs::rename(from, to))
    }

    /// Renames the file to its target durably, if the target does not exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the target exists; otherwise errors of
    /// [`Self::replace`].
    pub fn place_new(self) -> io::Result<File> {
        self.put(|from, to| {
            match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
                // Not every filesystem supports the flag (rename(2)); link(2) then fails if the
                // target exists. On filesystems that also lack link(2), the check and the rename
                // are not atomic.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    match fs::hard_link(from, to) {
                        Ok(()) => fs::remove_file(from),
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                        Err(_) if to.symlink_metadata().is_ok() => {
                            Err(io::ErrorKind::AlreadyExists.into())
                        }
                        Err(_) => fs::rename(from, to),
                    }
                }
                other => Ok(other?),
            }
        })
    }

    fn put(self, rename: impl FnOnce(&Path, &Path) -> io::Result<()>) -> io::Result<File> {
        self.file.sync_all()?;
        if !is(&self.path, &self.file) {
            return Err(io::Error::other(format!("{} was replaced", self.path.display())));
        }
        rename(&self.path, &self.place)?;
        sync_directory(&self.place)?;
        self.file.try_clone()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _gone = remove(&self.path, &self.file);
    }
}

/// Creates an empty file. An existing file is not opened, and a link is not followed.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(mode);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

/// True if a name refers to an open file; links are not followed.
pub fn is(path: &Path, file: &File) -> bool {
    let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let named = path.symlink_metadata().map(id).ok();
    named.is_some() && named == file.metadata().map(id).ok()
}

/// Removes a name if it still refers to an open file; true if it was removed.
///
/// # Errors
/// If it cannot be removed.
pub fn remove(path: &Path, file: &File) -> io::Result<bool> {
    match is(path, file) {
        true => fs::remove_file(path).map(|()| true),
        false => Ok(false),
    }
}

/// Syncs the directory of a file.
///
/// # Errors
/// If the directory cannot be opened or synced.
pub fn sync_directory(file: &Path) -> io::Result<()> {
    let parent = file.parent().filter(|parent| *parent != Path::new(""));
    match File::open(parent.unwrap_or(Path::new(".")))?.sync_all() {
        // Filesystems without fsync(2) of directories return EINVAL.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        synced => synced,
    }
}

/// Writes a file at a user-specified path. An existing file is replaced and its mode is kept.
///
/// If the path is a link, its target is replaced, unless the kernel would not follow the link
/// because another user owns it in a world-writable sticky directory (`protected_symlinks`,
/// sysctl/fs.rst). A file that is not regular (a pipe, a device such as /dev/null) is written
/// directly.
///
/// # Errors
/// If it cannot be written; an existing file is then unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (place, mode) = match fs::metadata(path) {
        Ok(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(old) if !old.is_file() => {
            return OpenOptions::new().write(true).open(path)?.write_all(bytes);
        }
        Ok(old) => (followed(path)?, Some(old.permissions())),
        Err(_) => (path.to_owned(), None),
    };
    let fresh = Fresh::beside(&place, 0o666)?;
    fresh.file().write_all(bytes)?;
    mode.map_or(Ok(()), |mode| fresh.file().set_permissions(mode))?;
    fresh.replace().map(drop)
}

fn followed(path: &Path) -> io::Result<PathBuf> {
    let link = path.symlink_metadata()?;
    if !link.is_symlink() {
        return Ok(path.to_owned());
    }
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = fs::metadata(parent.unwrap_or(Path::new(".")))?;
    let shared = directory.permissions().mode() & 0o1002 == 0o1002;
    let user = rustix::process::geteuid().as_raw();
    if shared && link.uid() != user && link.uid() != directory.uid() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is a symbolic link of another user in a world-writable directory",
        ));
    }
    fs::canonicalize(path)
}

#[cfg(test)]
mod tests;

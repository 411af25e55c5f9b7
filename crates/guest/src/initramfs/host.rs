//! Programs and files of the host, put into the archive where the guest finds them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use super::libraries::{Libraries, read};
use super::newc::Archive;
use super::program::{Kind, Linkage, kind, of_env};
use super::sha256;
use crate::GuestError;

/// Directories of the guest's `PATH`.
const ON_PATH: [&str; 2] = ["usr/sbin", "usr/bin"];
/// How many scripts may be each other's interpreters; the kernel follows five (execve(2)).
const SCRIPTS_MAX: usize = 5;

/// How it begins when not the script itself cannot be had.
const INTERPRETER: &str = "its interpreter";

/// An archive that files of the host are put into.
pub(super) struct Host {
    archive: Archive,
    libraries: Libraries,
    /// The machine of this binary, which those of programs must be.
    machine: Option<u16>,
    /// Where files are, by device and inode: hard links are put once, and linked.
    inodes: BTreeMap<(u64, u64), String>,
    hashes: BTreeMap<String, String>,
}

impl Host {
    /// Goes on with an archive.
    pub(super) fn new(archive: Archive) -> Self {
        let libraries = Libraries::of_host();
        let (inodes, hashes) = Default::default();
        Self { archive, libraries, machine: None, inodes, hashes }
    }

    /// The archive, and what is in it.
    pub(super) fn finish(self) -> (Archive, BTreeMap<String, String>) {
        (self.archive, self.hashes)
    }

    /// Puts a program of the host, by name or absolute path, so that the guest finds its name.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub(super) fn put_program(&mut self, name: &str) -> Result<(), String> {
        let path = find(OsStr::new(name))?;
        let mut parts = Vec::new();
        self.gather(&path, &mut parts, SCRIPTS_MAX)?;
        for path in &parts {
            self.put(path)?;
        }
        // Other names in the guest's PATH, for a program that is elsewhere on the host.
        let Some(file_name) = path.file_name().and_then(OsStr::to_str) else { return Ok(()) };
        if !ON_PATH.iter().any(|place| self.archive.has(&format!("{place}/{file_name}"))) {
            let target = format!("/{}", self.put(&path)?);
            self.archive.link(&format!("usr/bin/{file_name}"), &target)?;
        }
        Ok(())
    }

    /// Collects what a program consists of, so that nothing is put if a part is missing.
    fn gather(
        &mut self,
        path: &Path,
        parts: &mut Vec<PathBuf>,
        scripts: usize,
    ) -> Result<(), String> {
        let real = fs::canonicalize(path).map_err(|error| format!("it cannot be read: {error}"))?;
        match kind(&read(&real)?)? {
            Kind::Elf(linkage) => self.gather_libraries(&real, &linkage, parts)?,
            Kind::Script(_, _) if scripts == 0 => {
                return Err("it is a script of a script, and so on".to_owned());
            }
            Kind::Script(interpreter, argument) => {
                // Of interpreters of interpreters, the last one is told.
                let whose = |why: String| {
                    let (path, last) = (interpreter.display(), why.starts_with(INTERPRETER));
                    if last { why } else { format!("{INTERPRETER} {path}: {why}") }
                };
                self.gather(&interpreter, parts, scripts - 1).map_err(whose)?;
                let env = interpreter.file_name() == Some(OsStr::new("env"));
                if let Some(name) = argument.as_ref().filter(|_| env).and_then(of_env) {
                    let whose = |why| format!("{INTERPRETER} {}: {why}", name.display());
                    let found = find(&name).map_err(whose)?;
                    self.gather(&found, parts, scripts - 1).map_err(whose)?;
                }
            }
        }
        parts.push(path.to_owned());
        Ok(())
    }

    /// Collects the loader and the libraries of a program.
    fn gather_libraries(
        &mut self,
        path: &Path,
        linkage: &Linkage,
        parts: &mut Vec<PathBuf>,
    ) -> Result<(), String> {
        if *self.machine.get_or_insert(linkage.machine) != linkage.machine {
            return Err("it is for another kind of processor".to_owned());
        }
        parts.extend(linkage.loader.clone());
        for library in self.libraries.closure(path, linkage)? {
            if !library.by_itself {
                self.put_shared(&library.path)?;
            }
            parts.push(library.path);
        }
        Ok(())
    }

    /// Puts the loader and the libraries of a program.
    pub(super) fn put_libraries(&mut self, path: &Path, linkage: &Linkage) -> Result<(), String> {
        // A program that was replaced while it runs has no path, and can be read all the same.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut parts = Vec::new();
        self.gather_libraries(&real, linkage, &mut parts)?;
        parts.iter().try_for_each(|part| self.put(part).map(drop))
    }

    /// Makes a library known to loaders in directories where each looks by itself: the guest has no
    /// `/etc/ld.so.cache`, which would name what the guest does not have.
    fn put_shared(&mut self, path: &Path) -> Result<(), String> {
        let target = format!("/{}", self.put(path)?);
        let Some(name) = path.file_name().and_then(OsStr::to_str) else { return Ok(()) };
        for directory in ["usr/lib", "usr/lib64"] {
            let link = format!("{directory}/{name}");
            if !self.archive.has(&link) {
                self.archive.link(&link, &target)?;
            }
        }
        Ok(())
    }

    /// Puts a file of the host by all its names: its own, and those of the links that led to it.
    /// Returns where it is.
    fn put(&mut self, path: &Path) -> Result<String, String> {
        let failed = |error| format!("{} cannot be read: {error}", path.display());
        let real = fs::canonicalize(path).map_err(failed)?;
        let facts = fs::metadata(&real).map_err(failed)?;
        let inode = (facts.dev(), facts.ino());
        let place = place(&real)?;
        let at = match self.inodes.get(&inode) {
            Some(at) => at.clone(),
            None => {
                let bytes = read(&real).map_err(|why| format!("{}: {why}", real.display()))?;
                let mode = if facts.mode() & 0o111 == 0 { 0o644 } else { 0o755 };
                self.put_bytes(&place, mode, &bytes)?;
                self.inodes.insert(inode, place.clone());
                place.clone()
            }
        };
        let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
        let through = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
        // With `..` it is reached through directories that are there, and `through` is its name.
        let plain = path.components().all(|part| part != Component::ParentDir);
        let given = plain.then(|| path.components().collect());
        for name in [Some(real), through, given].into_iter().flatten() {
            let name = self::place(&name)?;
            if !self.archive.has(&name) {
                self.archive.link(&name, &format!("/{at}"))?;
            }
        }
        Ok(at)
    }

    /// Puts a file, and remembers its hash.
    pub(super) fn put_bytes(&mut self, name: &str, mode: u32, bytes: &[u8]) -> Result<(), String> {
        self.archive.file(name, mode, bytes)?;
        self.hashes.insert(format!("/{name}"), sha256(bytes));
        Ok(())
    }

    /// Puts a file where it is, if it is there.
    pub(super) fn put_file(&mut self, file: &str) -> Result<(), GuestError> {
        let path = Path::new(file);
        let malformed = |why: String| GuestError::Malformed { path: path.to_owned(), why };
        if !path.exists() {
            return Ok(());
        }
        let there = place(path).map_err(malformed)?;
        if there.starts_with(MOVED) {
            return Err(GuestError::Missing {
                what: format!("a guest mounts something over {file}"),
                cure: "put the file elsewhere, such as below /etc".to_owned(),
            });
        }
        self.put(path).map(drop).map_err(malformed)
    }
}

/// Where a program is, by name or absolute path.
fn find(name: &OsStr) -> Result<PathBuf, String> {
    let is_program = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(name);
    if path.is_absolute() {
        return Some(path.to_owned())
            .filter(|path| is_program(path))
            .ok_or_else(|| "it is not there, or cannot be executed".to_owned());
    }
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return Err("it is neither a name nor an absolute path".to_owned());
    }
    let missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    sys::program::find(&name.to_string_lossy()).map_err(|error| match missing(&error) {
        true => "it is not installed".to_owned(),
        false => error.to_string(),
    })
}

/// Where the guest mounts something, so that what is there before cannot be seen.
const HIDDEN: [&str; 6] = ["dev", "mnt", "proc", "run", "sys", "tmp"];
/// Directories that are links into `/usr` in the guest.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];
/// Where things are that cannot be where they are on the host.
const MOVED: &str = "usr/lib/fslab/host/";

/// Where in the archive a file of the host is, without the leading slash.
fn place(path: &Path) -> Result<String, String> {
    let odd = || format!("{} is not absolute, or its name is no text", path.display());
    let name = path.strip_prefix("/").ok().and_then(Path::to_str).ok_or_else(odd)?;
    let first = name.split('/').next().unwrap_or_default();
    if MERGED.contains(&first) {
        Ok(format!("usr/{name}"))
    } else if HIDDEN.contains(&first) {
        Ok(format!("{MOVED}{name}"))
    } else {
        Ok(name.to_owned())
    }
}

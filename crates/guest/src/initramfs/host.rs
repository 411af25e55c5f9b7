//! Copies programs and files of the host to the paths where the guest finds them.

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
/// Maximum nesting of interpreters that are scripts; the kernel follows five (execve(2)).
const SCRIPTS_MAX: usize = 5;

/// Prefix of an error that concerns an interpreter instead of the script.
const INTERPRETER: &str = "its interpreter";

/// Archive to which files of the host are added.
pub(super) struct Host {
    archive: Archive,
    libraries: Libraries,
    /// ELF machine of this binary, which programs must match.
    machine: Option<u16>,
    /// Paths by device and inode, so that hard links are stored once.
    inodes: BTreeMap<(u64, u64), String>,
    hashes: BTreeMap<String, String>,
}

impl Host {
    /// Creates the state that adds files to `archive`.
    pub(super) fn new(archive: Archive) -> Self {
        let libraries = Libraries::of_host();
        let (inodes, hashes) = Default::default();
        Self { archive, libraries, machine: None, inodes, hashes }
    }

    /// Returns the archive and the hashes of its files.
    pub(super) fn finish(self) -> (Archive, BTreeMap<String, String>) {
        (self.archive, self.hashes)
    }

    /// Adds a program of the host, by name or absolute path, such that the guest finds it by name.
    ///
    /// # Errors
    /// The reason why the program is not available.
    pub(super) fn put_program(&mut self, name: &str) -> Result<(), String> {
        let path = find(OsStr::new(name))?;
        let mut parts = Vec::new();
        self.gather(&path, &mut parts, SCRIPTS_MAX)?;
        for path in &parts {
            self.put(path)?;
        }
        // A program outside the directories of the guest's PATH gets a link in them.
        let Some(file_name) = path.file_name().and_then(OsStr::to_str) else { return Ok(()) };
        if !ON_PATH.iter().any(|place| self.archive.has(&format!("{place}/{file_name}"))) {
            let target = format!("/{}", self.put(&path)?);
            self.archive.link(&format!("usr/bin/{file_name}"), &target)?;
        }
        Ok(())
    }

    /// Collects the files of a program, so that they are added only if none is missing. Only
    /// libraries outside the default directories are added at once.
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
                return Err("scripts are nested too deeply".to_owned());
            }
            Kind::Script(interpreter, argument) => {
                // Of nested interpreters, only the innermost is reported.
                let context = |why: String| {
                    let (path, last) = (interpreter.display(), why.starts_with(INTERPRETER));
                    if last { why } else { format!("{INTERPRETER} {path}: {why}") }
                };
                self.gather(&interpreter, parts, scripts - 1).map_err(context)?;
                let env = interpreter.file_name() == Some(OsStr::new("env"));
                if let Some(name) = argument.as_ref().filter(|_| env).and_then(of_env) {
                    let context = |why| format!("{INTERPRETER} {}: {why}", name.display());
                    let found = find(&name).map_err(context)?;
                    self.gather(&found, parts, scripts - 1).map_err(context)?;
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
            return Err("it is for another CPU architecture".to_owned());
        }
        parts.extend(linkage.loader.clone());
        for library in self.libraries.closure(path, linkage)? {
            if !library.on_default_path {
                self.put_shared(&library.path)?;
            }
            parts.push(library.path);
        }
        Ok(())
    }

    /// Adds the loader and the libraries of a program.
    pub(super) fn put_libraries(&mut self, path: &Path, linkage: &Linkage) -> Result<(), String> {
        // If the file of a program was replaced while the program runs, the path of the program
        // cannot be resolved, but the file can be read.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut parts = Vec::new();
        self.gather_libraries(&real, linkage, &mut parts)?;
        parts.iter().try_for_each(|part| self.put(part).map(drop))
    }

    /// Adds a library, and links to it in the default directories of loaders. The links are
    /// required because the guest has no `/etc/ld.so.cache`. The file of the host would list
    /// libraries that the guest lacks.
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

    /// Adds a file of the host at its real path, and a link at each other path by which it was
    /// reached. Returns its path in the archive.
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
        // For a path with `..`, the link at `through` is sufficient.
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

    /// Adds a file and records its hash.
    pub(super) fn put_bytes(&mut self, name: &str, mode: u32, bytes: &[u8]) -> Result<(), String> {
        self.archive.file(name, mode, bytes)?;
        self.hashes.insert(format!("/{name}"), sha256(bytes));
        Ok(())
    }

    /// Adds a file at its path, if it exists.
    pub(super) fn put_file(&mut self, file: &str) -> Result<(), GuestError> {
        let path = Path::new(file);
        let malformed = |why: String| GuestError::Malformed { path: path.to_owned(), why };
        if !path.exists() {
            return Ok(());
        }
        let target = place(path).map_err(malformed)?;
        if target.starts_with(MOVED) {
            return Err(GuestError::Missing {
                what: format!("{file} is below a mount point of the guest"),
                hint: "move the file to another directory, such as /etc".to_owned(),
            });
        }
        self.put(path).map(drop).map_err(malformed)
    }
}

/// Path of a program, by name or absolute path.
fn find(name: &OsStr) -> Result<PathBuf, String> {
    let is_program = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(name);
    if path.is_absolute() {
        return Some(path.to_owned())
            .filter(|path| is_program(path))
            .ok_or_else(|| "it does not exist or is not executable".to_owned());
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

/// Mount points of the guest, which hide the files of the initramfs.
const HIDDEN: [&str; 6] = ["dev", "mnt", "proc", "run", "sys", "tmp"];
/// Directories that are links into `/usr` in the guest.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];
/// Directory of files that cannot have the same path as on the host.
const MOVED: &str = "usr/lib/fslab/host/";

/// Path of a host file in the archive, without the leading slash.
fn place(path: &Path) -> Result<String, String> {
    let invalid = || format!("{} is not absolute, or not UTF-8", path.display());
    let name = path.strip_prefix("/").ok().and_then(Path::to_str).ok_or_else(invalid)?;
    let first = name.split('/').next().unwrap_or_default();
    if MERGED.contains(&first) {
        Ok(format!("usr/{name}"))
    } else if HIDDEN.contains(&first) {
        Ok(format!("{MOVED}{name}"))
    } else {
        Ok(name.to_owned())
    }
}

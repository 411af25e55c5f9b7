//! Search for the libraries of a program by the rules of its loader; ld.so(8).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::program::{Kind, Linkage, kind};
use crate::modules::names::matches;

/// Maximum nesting of included configuration files; those of glibc have one level.
const INCLUDES_MAX: usize = 8;
/// Maximum size of a file that is read, in bytes.
pub(super) const FILE_MAX: u64 = 1 << 30;

/// Search directories of libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Libraries {
    /// Directories of the host's loader configuration, followed by the built-in directories of
    /// loaders.
    directories: Vec<PathBuf>,
}

/// Library that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Library {
    /// Path by which the loader opens the library.
    pub(super) path: PathBuf,
    /// True if a loader without configuration finds the library: the program refers to it by path
    /// or by its search path, or the library is in a default directory.
    pub(super) on_default_path: bool,
}

impl Libraries {
    /// Search directories of this host.
    pub(super) fn of_host() -> Self {
        let mut directories = configured(Path::new("/etc/ld.so.conf"));
        let musl = format!("/etc/ld-musl-{}.path", std::env::consts::ARCH);
        directories.extend(configured(Path::new(&musl)));
        directories.extend(built_in());
        Self { directories }
    }

    /// Finds the libraries of a file and, recursively, the libraries that they need.
    ///
    /// # Errors
    /// The name of a missing library.
    pub(super) fn closure(&self, path: &Path, linkage: &Linkage) -> Result<Vec<Library>, String> {
        let mut found: Vec<Library> = Vec::new();
        let mut seen = BTreeSet::new();
        // Only the RPATH of the program itself is inherited, because libraries with an RPATH are
        // rare.
        let inherited = expanded(&linkage.rpath, path);
        let mut next = vec![(path.to_owned(), linkage.clone())];
        while let Some((path, linkage)) = next.pop() {
            for name in &linkage.needed {
                if !seen.insert(name.clone()) {
                    continue;
                }
                let (library, its) = self
                    .find(name, &path, &linkage, &inherited)
                    .ok_or_else(|| format!("its library {} is missing", name.display()))?;
                next.push((library.path.clone(), its));
                found.push(library);
            }
        }
        Ok(found)
    }

    fn find(
        &self,
        name: &OsStr,
        by: &Path,
        linkage: &Linkage,
        inherited: &[PathBuf],
    ) -> Option<(Library, Linkage)> {
        let fits = |path: &Path| library(path).filter(|its| its.machine == linkage.machine);
        if name.as_bytes().contains(&b'/') {
            let path = PathBuf::from(name);
            let linkage = fits(&path).filter(|_| path.is_absolute())?;
            return Some((Library { path, on_default_path: true }, linkage));
        }
        let mut own = expanded(&linkage.rpath, by);
        if linkage.runpath.is_empty() {
            own.extend_from_slice(inherited);
        }
        own.extend(expanded(&linkage.runpath, by));
        let own = own.iter().map(|directory| (directory, true));
        let default = built_in();
        let shared =
            self.directories.iter().map(|directory| (directory, default.contains(directory)));
        own.chain(shared).find_map(|(directory, on_default_path)| {
            let path = directory.join(name);
            fits(&path).map(|linkage| (Library { path, on_default_path }, linkage))
        })
    }
}

/// Linkage of a file, if it is an ELF file.
fn library(path: &Path) -> Option<Linkage> {
    match kind(&read(path).ok()?).ok()? {
        Kind::Elf(linkage) => Some(linkage),
        Kind::Script(..) => None,
    }
}

/// Reads a regular file up to [`FILE_MAX`] bytes.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let facts = fs::metadata(path).map_err(|error| format!("it cannot be read: {error}"))?;
    if !facts.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if facts.len() > FILE_MAX {
        return Err(format!("it is longer than {} MiB", FILE_MAX >> 20));
    }
    fs::read(path).map_err(|error| format!("it cannot be read: {error}"))
}

/// Expands the directories of a file; ld.so(8), "Dynamic string tokens". `$ORIGIN` is the file's
/// own directory. The value of `$LIB` depends on the distribution, so all known values are tried.
/// Relative directories are skipped, because they depend on the working directory.
fn expanded(directories: &[OsString], path: &Path) -> Vec<PathBuf> {
    let origin = path.parent().unwrap_or(Path::new("/"));
    let arch = std::env::consts::ARCH;
    let multiarch = format!("lib/{arch}-linux-gnu");
    let mut all = Vec::new();
    for directory in directories {
        for lib in [multiarch.as_str(), "lib64", "lib"] {
            let mut bytes = directory.as_bytes().to_vec();
            for (token, value) in [
                ("ORIGIN", origin.as_os_str().as_bytes()),
                ("LIB", lib.as_bytes()),
                ("PLATFORM", arch.as_bytes()),
            ] {
                bytes = replaced(&bytes, format!("${{{token}}}").as_bytes(), value);
                bytes = replaced(&bytes, format!("${token}").as_bytes(), value);
            }
            let directory = PathBuf::from(OsString::from_vec(bytes));
            if directory.is_absolute() && !all.contains(&directory) {
                all.push(directory);
            }
        }
    }
    all
}

fn replaced(text: &[u8], token: &[u8], value: &[u8]) -> Vec<u8> {
    let mut result = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(token.len()).position(|window| window == token) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(value);
        rest = &rest[at + token.len()..];
    }
    result.extend_from_slice(rest);
    result
}

/// Built-in directories of loaders below `/` and `/usr`: the directory of the architecture in
/// Debian's glibc, `lib64` in other builds of glibc, and `lib` in musl.
fn built_in() -> Vec<PathBuf> {
    let multiarch = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let below = |root: &str| [&*multiarch, "lib64", "lib"].map(|lib| Path::new(root).join(lib));
    [below("/"), below("/usr")].concat()
}

/// Directories of a loader configuration and of the files that it includes; ldconfig(8).
fn configured(file: &Path) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    read_configuration(file, 0, &mut directories);
    directories
}

fn read_configuration(file: &Path, depth: usize, directories: &mut Vec<PathBuf>) {
    let Ok(text) = read(file) else { return };
    let text = String::from_utf8_lossy(&text);
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(patterns) = line.strip_prefix("include").filter(|p| p.starts_with([' ', '\t']))
        {
            for pattern in patterns.split_whitespace() {
                // A relative name refers to the directory of this file.
                let pattern = file.parent().unwrap_or(Path::new("/")).join(pattern);
                for included in glob(&pattern) {
                    if depth < INCLUDES_MAX {
                        read_configuration(&included, depth + 1, directories);
                    }
                }
            }
            continue;
        }
        // `hwcap` lines are from old versions of glibc and contain no directory.
        if line.starts_with("hwcap") {
            continue;
        }
        for directory in line.split([':', ',', ' ', '\t']).filter(|d| d.starts_with('/')) {
            // Older entries may have the form `DIRECTORY=TYPE`.
            let directory = PathBuf::from(directory.split('=').next().unwrap_or_default());
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
    }
}

/// Files whose last component matches a pattern, sorted, as returned by glob(3).
fn glob(pattern: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(last)) = (pattern.parent(), pattern.file_name()) else {
        return Vec::new();
    };
    let last = last.to_string_lossy();
    let fits = |path: &PathBuf| {
        let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
        !name.starts_with('.') && matches(&last, &name)
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(fits).collect();
    files.sort();
    files
}

#[cfg(test)]
#[path = "libraries/tests.rs"]
mod tests;

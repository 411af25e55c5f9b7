//! Reads the directory of a kernel's modules and its lists of built-in modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

use super::file::{self, Info, is_requestable};
use super::names::{normalized, of_file};
use super::{Index, Module};
use crate::GuestError;
use crate::kernel::keep::is_kept;

/// Maximum depth of directories; the modules of distributions need seven.
const DEPTH_MAX: usize = 24;
/// Maximum number of modules; distributions have about 7,000.
const COUNT_MAX: usize = 100_000;
/// Maximum size of a list of built-in modules in bytes; the list of Linux 6.12 has 400 KiB.
const LIST_MAX: u64 = 64 << 20;

/// Modules in a directory.
#[derive(Debug)]
pub(super) struct Listing {
    /// File of each module, as a path below the directory. If several files contain a module of the
    /// same name, a file in `updates` is used, as by depmod (depmod.d(5), `search`), otherwise the
    /// first file by path.
    files: BTreeMap<String, PathBuf>,
    /// Fingerprint of the directory: a hash of names, sizes, and times, in hexadecimal.
    pub(super) fingerprint: String,
}

/// Lists the modules of a directory and the lists of built-in modules.
pub(super) fn list(root: &Path) -> Result<Listing, GuestError> {
    let mut found = Vec::new();
    walk(root, Path::new(""), 0, &mut found)?;
    let rank = |path: &PathBuf| (!path.starts_with("updates"), path.clone());
    found.sort_by_cached_key(|(path, _, _)| rank(path));
    let mut hash = Sha256::new();
    let mut files = BTreeMap::new();
    for (path, size, time) in found {
        hash.update(path.as_os_str().as_bytes());
        hash.update(format!("\0{size} {time}\n"));
        if let Some(name) = path.file_name().and_then(|name| name.to_str()).and_then(of_file) {
            files.entry(name).or_insert(path);
        }
    }
    Ok(Listing { files, fingerprint: hex::encode(hash.finalize()) })
}

/// Path below the directory, size, and modification time in nanoseconds.
type Entry = (PathBuf, u64, i128);

fn walk(root: &Path, below: &Path, depth: usize, found: &mut Vec<Entry>) -> Result<(), GuestError> {
    let directory = root.join(below);
    let failed = || GuestError::io(format!("cannot list the modules in {}", directory.display()));
    for entry in fs::read_dir(&directory).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type().map_err(failed())?;
        // Links to directories are not followed: `build` and `source` point to the kernel headers.
        // Links to files are followed: they are modules of another kernel with the same interface
        // (weak-modules(8) of Fedora).
        if kind.is_dir() {
            if depth < DEPTH_MAX {
                walk(root, &path, depth + 1, found)?;
            }
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let list = depth == 0 && (name == "modules.builtin" || name == "modules.builtin.modinfo");
        if !list && (of_file(name).is_none() || is_excluded(&path)) {
            continue;
        }
        let Ok(facts) = fs::metadata(directory.join(name)) else { continue };
        if facts.is_file() {
            let time = i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec());
            found.push((path, facts.size(), time));
        }
        if found.len() > COUNT_MAX {
            let why = format!("it contains more than {COUNT_MAX} modules");
            return Err(GuestError::Malformed { path: root.to_owned(), why });
        }
    }
    Ok(())
}

/// True if a module belongs to the kernel package and is excluded from unpacked packages. Most
/// modules of a distribution are drivers of hardware that no guest has, and decompressing them
/// would take most of the time.
fn is_excluded(path: &Path) -> bool {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    path.starts_with("kernel") && !parts.is_some_and(|parts| is_kept(&parts))
}

/// Reads the modules of a listing, with one thread per CPU and at most eight threads.
pub(super) fn index(root: &Path, listing: &Listing) -> Result<Index, GuestError> {
    let files: Vec<(&String, &PathBuf)> = listing.files.iter().collect();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let work = || -> Result<Vec<(String, PathBuf, Info)>, GuestError> {
        let mut read = Vec::new();
        while let Some((name, path)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            read.push(((*name).clone(), (*path).clone(), file::info(&root.join(path))?));
        }
        Ok(read)
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect()
    });
    let mut index = Index { directory: root.to_owned(), ..Index::default() };
    for part in parts {
        for (name, file, info) in part? {
            let aliases = info.aliases.into_iter().map(|alias| (alias, name.clone()));
            index.aliases.extend(aliases);
            let Info { depends, pre, post, .. } = info;
            index.modules.insert(name, Module { file, depends, pre, post });
        }
    }
    index.aliases.sort();
    index.aliases.dedup();
    read_built_in(root, &mut index)?;
    Ok(index)
}

/// Reads `modules.builtin`, a list of paths, and `modules.builtin.modinfo` (since Linux 5.2), which
/// contains strings `module.key=value`, each ended by a NUL (`Documentation/kbuild/kbuild.rst` of
/// the kernel).
fn read_built_in(root: &Path, index: &mut Index) -> Result<(), GuestError> {
    if let Some(list) = read_list(&root.join("modules.builtin"))? {
        let name = |line: &str| of_file(line.trim().rsplit('/').next().unwrap_or_default());
        let list = String::from_utf8_lossy(&list);
        index.built_in = Some(list.lines().filter_map(name).collect::<BTreeSet<_>>());
    }
    if let Some(list) = read_list(&root.join("modules.builtin.modinfo"))? {
        for text in list.split(|&byte| byte == 0) {
            let text = String::from_utf8_lossy(text);
            let Some((_, key)) = text.split_once('.') else { continue };
            if let Some(alias) = key.strip_prefix("alias=").filter(|alias| is_requestable(alias)) {
                index.built_in_aliases.push(normalized(alias));
            }
        }
        index.built_in_aliases.sort();
        index.built_in_aliases.dedup();
    }
    Ok(())
}

/// Reads a list; `None` if it does not exist.
fn read_list(path: &Path) -> Result<Option<Vec<u8>>, GuestError> {
    match fs::metadata(path) {
        Ok(facts) if facts.len() > LIST_MAX => {
            let why = format!("it is longer than {} MiB", LIST_MAX >> 20);
            Err(GuestError::Malformed { path: path.to_owned(), why })
        }
        Ok(facts) if facts.is_file() => fs::read(path)
            .map(Some)
            .map_err(GuestError::io(format!("cannot read {}", path.display()))),
        _ => Ok(None),
    }
}

//! Generated source tree written directly into a directory. A plan uses it to fill a filesystem
//! before a conversion or a snapshot.
//!
//! The input is a number of files and a seed. The output is the same tree as after unpacking the
//! archive of the same number and seed ([`crate::task::source`]). Nothing is timed or synced.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, OpenOptionsExt, symlink},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use crate::{
    EngineError,
    error::Operation,
    task::source::{self, Sink},
};

/// Creates a directory and writes a tree with this number of files into it. A link is not counted
/// as a file.
///
/// # Errors
/// [`EngineError::Io`] for the first failed call, also if the directory exists;
/// [`EngineError::Interrupted`] if `interrupt` is set, which is checked after each entry. Entries
/// written before are kept.
pub fn populate(
    directory: &Path,
    files: u64,
    seed: u64,
    interrupt: &AtomicBool,
) -> Result<(), EngineError> {
    source::tree(files, seed, &mut Disk { root: directory, open: None, interrupt })
}

/// Writer of a tree to a directory.
struct Disk<'a> {
    root: &'a Path,
    /// File that is being written, and its path.
    open: Option<(File, PathBuf)>,
    interrupt: &'a AtomicBool,
}

impl Disk<'_> {
    fn path(&self, path: &[u8]) -> PathBuf {
        match source::below_root(path) {
            [] => self.root.to_path_buf(),
            below => self.root.join(OsStr::from_bytes(below)),
        }
    }
}

impl Sink for Disk<'_> {
    fn directory(&mut self, path: &[u8]) -> Result<(), EngineError> {
        let path = self.path(path);
        let made = std::fs::DirBuilder::new().mode(0o755).create(&path);
        made.map_err(|source| failed(Operation::MakeDirectory, &path, source))
    }

    fn link(&mut self, path: &[u8], target: &[u8]) -> Result<(), EngineError> {
        let path = self.path(path);
        let made = symlink(OsStr::from_bytes(target), &path);
        made.map_err(|source| failed(Operation::SymbolicLink, &path, source))
    }

    fn file(&mut self, path: &[u8], _size: u64) -> Result<(), EngineError> {
        let path = self.path(path);
        let mut options = File::options();
        let file = options.write(true).create_new(true).mode(0o644).open(&path);
        let file = file.map_err(|source| failed(Operation::Open, &path, source))?;
        self.open = Some((file, path));
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let Some((file, path)) = &mut self.open else { return Ok(()) };
        file.write_all(bytes).map_err(|source| failed(Operation::Write, path, source))
    }

    fn end(&mut self) -> Result<(), EngineError> {
        self.open = None;
        Ok(())
    }

    fn done(&mut self) -> Result<(), EngineError> {
        if self.interrupt.load(Relaxed) { Err(EngineError::Interrupted) } else { Ok(()) }
    }
}

fn failed(operation: Operation, path: &Path, source: io::Error) -> EngineError {
    EngineError::Io { operation, path: path.to_path_buf(), offset: None, source }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use model::phase::Compression;
    use tempfile::TempDir;

    use super::*;

    /// All entries below a directory: contents of files, targets of links, `None` for directories.
    fn entries(root: &Path, below: &Path, into: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
        for entry in fs::read_dir(root.join(below)).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (below.join(entry.file_name()), entry.file_type().unwrap());
            if kind.is_dir() {
                entries(root, &path, into);
                into.insert(path, None);
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                into.insert(path, Some(target.into_os_string().into_encoded_bytes()));
            } else {
                into.insert(path, Some(fs::read(entry.path()).unwrap()));
            }
        }
    }

    #[test]
    fn the_tree_equals_the_unpacked_archive() {
        let directory = TempDir::new().unwrap();
        let tree = directory.path().join("linux");
        populate(&tree, 500, 7, &AtomicBool::new(false)).unwrap();
        let mut written = BTreeMap::new();
        entries(&tree, Path::new(""), &mut written);
        let archive = source::tests::archive(500, 7, Compression::None);
        tar::Archive::new(&archive[..]).unpack(directory.path()).unwrap();
        let mut unpacked = BTreeMap::new();
        entries(&directory.path().join("source"), Path::new(""), &mut unpacked);
        assert_eq!(written, unpacked);
        let files = written.values().filter(|content| content.is_some()).count();
        assert!((500..=501).contains(&files), "{files}");
    }

    #[test]
    fn populate_creates_its_directory_and_can_be_interrupted() {
        let directory = TempDir::new().unwrap();
        let stopped = populate(&directory.path().join("a"), 9, 0, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(EngineError::Interrupted)));
        let there = populate(directory.path(), 9, 0, &AtomicBool::new(false)).unwrap_err();
        let EngineError::Io { path, source, .. } = &there else { panic!("{there}") };
        assert_eq!(
            (path.as_path(), source.kind()),
            (directory.path(), io::ErrorKind::AlreadyExists)
        );
    }
}

//! Walks of directory trees; symbolic links are not followed.

use std::{collections::HashSet, fs, io, os::unix::fs::MetadataExt as _, path::Path};

use model::Bytes;

use super::UnreadablePath;

/// Calls `visit` for every regular file in a directory tree.
pub(super) fn each_file(directory: &Path, visit: &mut dyn FnMut(&Path)) -> io::Result<()> {
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in directory.read_dir()? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                visit(&entry.path());
            }
        }
    }
    Ok(())
}

/// Total size of all regular files in a directory tree; a file with several hard links counts once.
/// Entries of the top directory whose names are in `except` are omitted.
pub(super) fn sizes(directory: &Path, except: &[&str]) -> Result<Bytes, UnreadablePath> {
    let mut sum = Bytes(0);
    let mut linked = HashSet::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(current) = pending.pop() {
        let failed = |source| UnreadablePath { path: current.clone(), source };
        for entry in current.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let left_out = || except.iter().any(|name| entry.file_name() == *name);
            if current == directory && left_out() {
                continue;
            }
            let failed = |source| UnreadablePath { path: entry.path(), source };
            let meta = entry.metadata().map_err(failed)?;
            if meta.is_dir() {
                pending.push(entry.path());
            } else if meta.is_file() && is_first_link(&meta, &mut linked) {
                sum = sum + Bytes(meta.len());
            }
        }
    }
    Ok(sum)
}

/// True unless the file was already counted under another hard link.
fn is_first_link(meta: &fs::Metadata, linked: &mut HashSet<(u64, u64)>) -> bool {
    meta.nlink() < 2 || linked.insert((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn each_file_counts_once_and_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let other = tempfile::NamedTempFile::new().unwrap();
        fs::write(&other, [0; 1000]).unwrap();
        fs::create_dir_all(at("sub/fill")).unwrap();
        fs::create_dir(at("fill")).unwrap();
        fs::write(at("one"), [0; 1]).unwrap();
        fs::hard_link(at("one"), at("sub/same")).unwrap();
        fs::write(at("sub/fill/two"), [0; 20]).unwrap();
        fs::write(at("fill/left-out"), [0; 300]).unwrap();
        fs::write(directory.path().join(std::ffi::OsStr::from_bytes(b"\xff")), [0; 4000]).unwrap();
        std::os::unix::fs::symlink(other.path(), at("link")).unwrap();
        assert_eq!(sizes(directory.path(), &["fill"]).unwrap(), Bytes(4021));
        let UnreadablePath { path, source } = sizes(&at("none"), &[]).unwrap_err();
        assert_eq!((path, source.kind()), (at("none"), io::ErrorKind::NotFound));
    }
}

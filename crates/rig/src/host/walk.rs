//! Walking directory trees; links are never followed.

use std::{collections::HashSet, fs, io, os::unix::fs::MetadataExt as _, path::Path};

use model::Bytes;

use super::Unread;

/// Calls `visit` with every regular file below a directory.
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

/// Sizes of all regular files below a directory, each file once however many names it has.
/// Names in `except` are left out where they stand in the directory itself.
pub(super) fn sizes(directory: &Path, except: &[&str]) -> Result<Bytes, Unread> {
    let mut sum = Bytes(0);
    let mut linked = HashSet::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(folder) = pending.pop() {
        let failed = |source| Unread { path: folder.clone(), source };
        for entry in folder.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let left_out = || except.iter().any(|name| entry.file_name() == *name);
            if folder == directory && left_out() {
                continue;
            }
            let failed = |source| Unread { path: entry.path(), source };
            let meta = entry.metadata().map_err(failed)?;
            if meta.is_dir() {
                pending.push(entry.path());
            } else if meta.is_file() && once(&meta, &mut linked) {
                sum = sum + Bytes(meta.len());
            }
        }
    }
    Ok(sum)
}

/// Whether a file has not been seen under another name.
fn once(meta: &fs::Metadata, linked: &mut HashSet<(u64, u64)>) -> bool {
    meta.nlink() < 2 || linked.insert((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn files_are_added_up_once_and_links_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let other = tempfile::NamedTempFile::new().unwrap();
        fs::write(&other, [0; 1000]).unwrap();
        fs::create_dir_all(at("sub/fill")).unwrap();
        fs::create_dir(at("fill")).unwrap();
        fs::write(at("one"), [0; 1]).unwrap();
        fs::hard_link(at("one"), at("sub/same")).unwrap();
        fs::write(at("sub/fill/two"), [0; 20]).unwrap();
        fs::write(at("fill/left-out"), [0; 300]).unwrap();
        fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff")), [0; 4000]).unwrap();
        std::os::unix::fs::symlink(other.path(), at("link")).unwrap();
        assert_eq!(sizes(folder.path(), &["fill"]).unwrap(), Bytes(4021));
        let Unread { path, source } = sizes(&at("none"), &[]).unwrap_err();
        assert_eq!((path, source.kind()), (at("none"), io::ErrorKind::NotFound));
    }
}

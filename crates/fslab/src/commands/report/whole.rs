//! Files that are there whole or not at all.
//!
//! What is written goes into a file beside its place, to the disk, and then under its name by
//! rename(2), so that whoever looks sees the old file or the new one, and a full disk or a kill
//! leaves the old one. What is no file (a pipe, a device such as /dev/null) is written to as it is.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::exit::Failure;

/// Writes a file, over the one that was there.
///
/// # Errors
/// When it cannot be written; what was there is then as before.
pub(in crate::commands) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = match fs::metadata(path) {
        Ok(old) if old.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(old) if !old.is_file() => {
            OpenOptions::new().write(true).open(path).and_then(|mut to| to.write_all(bytes))
        }
        // A link is followed: the file that it leads to is written anew.
        Ok(old) => fs::canonicalize(path).and_then(|to| replace(&to, bytes, Some(&old))),
        Err(_) => replace(path, bytes, None),
    };
    written.with_context(|| format!("writing the report {}", path.display()))?;
    Ok(())
}

/// Writes beside a place, then renames.
fn replace(place: &Path, bytes: &[u8], old: Option<&fs::Metadata>) -> io::Result<()> {
    let (beside, mut file) = beside(place)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| old.map_or(Ok(()), |old| file.set_permissions(old.permissions())))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, place));
    if written.is_err() {
        let _gone = fs::remove_file(&beside);
    }
    written
}

/// A new file in the directory of a place, under a name that none had.
fn beside(place: &Path) -> io::Result<(PathBuf, fs::File)> {
    let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let process = std::process::id();
    let mut number = 0_u32;
    loop {
        let mut own = std::ffi::OsString::from(".");
        own.push(name);
        own.push(format!(".{process}-{number}.part"));
        let path = place.with_file_name(own);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode_and_its_links() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a.csv"), directory.path().join("link"));
        write(&file, b"old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(directory.path()), ["a.csv", "link"], "nothing is left beside");
    }

    #[test]
    fn what_cannot_be_replaced_stays_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("d")).unwrap();
        assert!(write(&directory.path().join("d"), b"x").is_err());
        assert!(write(&directory.path().join("none/a"), b"x").is_err());
        assert_eq!(names(directory.path()), ["d"]);
        assert_eq!(names(&directory.path().join("d")), [""; 0]);
        write(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}

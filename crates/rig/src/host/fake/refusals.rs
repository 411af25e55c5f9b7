//! Scripted errors of reads and writes on a simulated host.
//!
//! The rules by which the kernel accepts and changes settings are in [`super::rules`].

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

/// Reads and writes that fail.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    reads: BTreeMap<PathBuf, i32>,
    once_written: BTreeMap<PathBuf, i32>,
    /// Error number and remaining number of failures, by file and text to write.
    texts: BTreeMap<(PathBuf, String), (i32, u32)>,
}

impl Refusals {
    /// Makes all further reads of a file fail with this error number.
    pub(super) fn fail_read(&mut self, path: PathBuf, error: i32) {
        self.reads.insert(path, error);
    }

    /// Makes reads of a file fail with this error number after the next write of the file.
    pub(super) fn fail_read_after_write(&mut self, path: PathBuf, error: i32) {
        self.once_written.insert(path, error);
    }

    /// Makes the next `times` writes of this text to a file fail with this error number.
    pub(super) fn fail_write(&mut self, path: PathBuf, text: &str, error: i32, times: u32) {
        self.texts.insert((path, text.to_owned()), (error, times));
    }

    /// Result of a read.
    ///
    /// # Errors
    /// The scripted error.
    pub(super) fn read(&self, path: &Path) -> io::Result<()> {
        match self.reads.get(path) {
            Some(error) => Err(io::Error::from_raw_os_error(*error)),
            None => Ok(()),
        }
    }

    /// Result of a write.
    ///
    /// # Errors
    /// The scripted error.
    pub(super) fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let scripted = self.texts.get_mut(&(path.to_owned(), text.to_owned()));
        if let Some((error, left)) = scripted.filter(|(_, left)| *left > 0) {
            *left -= 1;
            return Err(io::Error::from_raw_os_error(*error));
        }
        if let Some(error) = self.once_written.remove(path) {
            self.fail_read(path.to_owned(), error);
        }
        Ok(())
    }
}

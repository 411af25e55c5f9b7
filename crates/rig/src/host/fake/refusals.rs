//! What a file of the machine refuses, as a test has scripted it.
//!
//! Paths, texts, and error numbers enter; the answer to a read or a write leaves. What a setting
//! takes by itself is in [`super::rules`].

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
    /// Texts that a file does not take: the error number, and how often still.
    texts: BTreeMap<(PathBuf, String), (i32, u32)>,
}

impl Refusals {
    /// Reads of the file fail from now on.
    pub(super) fn refuse(&mut self, path: PathBuf, error: i32) {
        self.reads.insert(path, error);
    }

    /// Reads of the file fail once it has been written.
    pub(super) fn refuse_once_written(&mut self, path: PathBuf, error: i32) {
        self.once_written.insert(path, error);
    }

    /// So many writes of this text to the file fail.
    pub(super) fn decline(&mut self, path: PathBuf, text: &str, error: i32, times: u32) {
        self.texts.insert((path, text.to_owned()), (error, times));
    }

    /// The answer to a read.
    ///
    /// # Errors
    /// The scripted one.
    pub(super) fn read(&self, path: &Path) -> io::Result<()> {
        match self.reads.get(path) {
            Some(error) => Err(io::Error::from_raw_os_error(*error)),
            None => Ok(()),
        }
    }

    /// The answer to a write.
    ///
    /// # Errors
    /// The scripted one.
    pub(super) fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let scripted = self.texts.get_mut(&(path.to_owned(), text.to_owned()));
        if let Some((error, left)) = scripted.filter(|(_, left)| *left > 0) {
            *left -= 1;
            return Err(io::Error::from_raw_os_error(*error));
        }
        if let Some(error) = self.once_written.remove(path) {
            self.refuse(path.to_owned(), error);
        }
        Ok(())
    }
}

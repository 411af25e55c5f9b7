//! State file of a phase for the verification after a crash ([`crate::crash_report`]).

use std::{
    fs::File,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::EngineError;

/// State file created by this process.
#[derive(Debug)]
pub struct CrashState {
    path: PathBuf,
    file: File,
}

impl CrashState {
    /// Creates an empty state file. An existing file is not replaced, because it may belong to a
    /// crash that is still to be verified.
    ///
    /// # Errors
    /// [`EngineError::StateExists`] if the path exists, [`EngineError::State`] if the file cannot
    /// be created.
    pub fn create(path: &Path) -> Result<Self, EngineError> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true).custom_flags(libc::O_NOFOLLOW);
        match options.open(path) {
            Ok(file) => Ok(Self { path: path.into(), file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(EngineError::StateExists { path: path.into() })
            }
            Err(source) => Err(EngineError::State { path: path.into(), source }),
        }
    }

    /// Removes the file, unless the path belongs to another file by now.
    ///
    /// # Errors
    /// [`EngineError::State`] if it cannot be removed.
    pub fn remove(&self) -> Result<(), EngineError> {
        let removed = sys::whole::remove(&self.path, &self.file);
        removed.map(drop).map_err(|source| EngineError::State { path: self.path.clone(), source })
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

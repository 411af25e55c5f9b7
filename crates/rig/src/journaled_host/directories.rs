//! Directories that undo removes, empty or with their contents.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::JournaledHost;
use crate::{
    error::RigError,
    host::Identity,
    undo::{Change, MARKER, Step},
};

impl JournaledHost {
    /// Creates a directory that undo removes if it is empty.
    pub(crate) fn directory(&mut self, path: &Path) -> Result<Step, RigError> {
        let change = |identity| Change::Directory { path: path.to_owned(), identity };
        self.vacant(path).map_err(failed_directory(path))?;
        let step = self.journal.plan(change(None))?;
        let (made, _) =
            self.execute(format!("mkdir {}", path.display()), |host| host.make_directory(path));
        self.undo_on_error(step, made).map_err(failed_directory(path))?;
        self.identify(step, path, change)?;
        Ok(step)
    }

    /// Creates a directory that undo removes with all its contents.
    pub(crate) fn tree(&mut self, path: &Path, token: &str) -> Result<Step, RigError> {
        let step = self.marked_tree(path, token)?;
        self.identify(step, path, |identity| tree(path, token, identity))?;
        Ok(step)
    }

    /// As [`Self::tree`], on a filesystem that may be mounted again before the undo: its device
    /// number may then differ, so undo depends on the marker only.
    pub(crate) fn marked_tree(&mut self, path: &Path, token: &str) -> Result<Step, RigError> {
        self.vacant(path).map_err(failed_directory(path))?;
        let step = self.journal.plan(tree(path, token, None))?;
        let (made, _) = self.execute(format!("mkdir {}", path.display()), |host| {
            host.make_directory(path)?;
            host.create(&path.join(MARKER), token)
        });
        self.undo_on_error(step, made).map_err(failed_directory(path))?;
        Ok(step)
    }
}

fn tree(path: &Path, token: &str, identity: Option<Identity>) -> Change {
    Change::Tree { path: path.to_owned(), token: token.to_owned(), identity }
}

fn failed_directory(path: &Path) -> impl FnOnce(io::Error) -> RigError {
    let path = PathBuf::from(path);
    move |source| RigError::Directory { path, source }
}

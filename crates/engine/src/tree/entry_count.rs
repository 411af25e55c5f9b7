//! Number of entries that a phase with a time limit has created, for later phases.
//!
//! The number is the content of a file next to the directories of the set, which is written and
//! read outside of the measured time.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use model::phase::{EntryCount, Tree};

use crate::{
    EngineError, Operation,
    error::{Failure, Fault},
};

fn file(tree: &Tree, directory: &Path) -> PathBuf {
    directory.join(format!("{}.count", tree.set.name))
}

/// Stores the number of entries of each worker; `root` is the directory of a worker's set.
pub(super) fn write(tree: &Tree, root: &Path, count: u64) -> Result<(), Failure> {
    let path = file(tree, root.parent().unwrap_or(root));
    fs::write(&path, count.to_string()).map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Failure { fault: Fault::Os { operation: Operation::Write, offset: None, errno }, path }
    })
}

/// Tree with the number of entries that exist.
///
/// # Errors
/// If the number was not stored.
pub(super) fn resolved(tree: &Tree, directory: &Path) -> Result<Tree, EngineError> {
    let mut tree = tree.clone();
    if tree.selection.count == EntryCount::Stored {
        let path = file(&tree, directory);
        let text = fs::read_to_string(&path);
        let count = text
            .and_then(|text| text.parse().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL)));
        tree.set.files = count.map_err(|source| EngineError::Io {
            operation: Operation::Read,
            path,
            offset: None,
            source,
        })?;
    }
    Ok(tree)
}

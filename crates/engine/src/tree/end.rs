//! Work after the last entry of a worker.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use model::phase::{Sharing, Tree};
use rustix::{
    fs::{AtFlags, rmdir, sync, unlinkat},
    io::Errno,
};

use super::context::TreeContext;
use crate::{
    barrier::ABORT,
    error::{Failure, Fault, Operation},
    set::{directories, each},
};

/// Removes directories and syncs, as requested by the tree.
///
/// If workers share directories, each of them tries to remove all: directories that others still
/// use or have removed are skipped. The last worker finds all of them empty.
pub(super) fn end(
    tree: &Tree,
    context: &mut TreeContext<'_>,
    signal: &AtomicU32,
) -> Result<(), Failure> {
    if tree.end.remove_directories {
        let shared = tree.set.sharing != Sharing::Private;
        let each = each(&tree.set);
        for directory in 0..directories(&tree.set) {
            if signal.load(Relaxed) & ABORT != 0 {
                let path = context.root().to_path_buf();
                return Err(Failure { fault: Fault::Aborted, path });
            }
            context.names.enter(directory.saturating_mul(each));
            let answer = unlinkat(&context.root, context.names.directory(), AtFlags::REMOVEDIR);
            removed(answer, shared).map_err(|fault| context.at_directory(fault))?;
        }
        removed(rmdir(context.root()), shared)
            .map_err(|fault| Failure { fault, path: context.root().to_path_buf() })?;
    }
    if tree.end.sync {
        sync();
    }
    Ok(())
}

fn removed(answer: Result<(), Errno>, shared: bool) -> Result<(), Fault> {
    match answer {
        Ok(()) => Ok(()),
        // Errors of rmdir(2) for a directory that is not empty (POSIX allows two) or does not
        // exist.
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) if shared => Ok(()),
        Err(errno) => Err(Fault::whole(Operation::RemoveDirectory, errno)),
    }
}

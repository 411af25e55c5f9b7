//! What follows the last entry of a worker.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use model::phase::{Sharing, Tree};
use rustix::{
    fs::{AtFlags, rmdir, sync, unlinkat},
    io::Errno,
};

use super::{Failure, hand::Hand};
use crate::{
    barrier::ABORT,
    error::{Fault, Operation},
    set::{directories, each},
};

/// Removes directories, and brings everything to the devices, as the tree says.
///
/// Where workers share directories, each of them tries all: what others still use, or have removed,
/// is left to them. The last one finds all of them empty.
pub(super) fn end(tree: &Tree, hand: &mut Hand<'_>, signal: &AtomicU32) -> Result<(), Failure> {
    if tree.end.remove_directories {
        let shared = tree.set.sharing != Sharing::Private;
        let each = each(&tree.set);
        for directory in 0..directories(&tree.set) {
            if signal.load(Relaxed) & ABORT != 0 {
                let path = hand.root().to_path_buf();
                return Err(Failure { fault: Fault::Aborted, path });
            }
            hand.names.enter(directory.saturating_mul(each));
            let answer = unlinkat(&hand.root, hand.names.directory(), AtFlags::REMOVEDIR);
            removed(answer, shared).map_err(|fault| hand.at_directory(fault))?;
        }
        removed(rmdir(hand.root()), shared)
            .map_err(|fault| Failure { fault, path: hand.root().to_path_buf() })?;
    }
    if tree.end.sync {
        sync();
    }
    Ok(())
}

fn removed(answer: Result<(), Errno>, shared: bool) -> Result<(), Fault> {
    match answer {
        Ok(()) => Ok(()),
        // rmdir(2): POSIX lets a filesystem choose between the first two.
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) if shared => Ok(()),
        Err(errno) => Err(Fault::whole(Operation::RemoveDirectory, errno)),
    }
}

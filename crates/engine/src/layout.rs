//! Layouts: entries for later phases, made by as many threads as there are processors.
//!
//! Data enters as [`Layout`] and leaves as [`PhaseResult`], whose workers are the makers; one
//! operation is one entry. The work is handed out in directories: a maker takes the next one from a
//! counter that all share, makes it, and all entries in it. Where all entries of an owner lie in
//! one directory, whole owners are handed out, and where all owners share it, one maker makes
//! everything: the kernel locks a directory while an entry is made in it (`inode_lock` around
//! `vfs_create`, fs/namei.c), so a second maker would only wait.
//!
//! Names are relative to the directory at hand, which stays open, and nothing is kept of an entry
//! that is made. The clock is read once for some dozens of entries: times of single ones are for
//! phases that measure.
//!
//! Not here: anything that comes after the making, and attributes.

pub(crate) mod calls;
mod maker;
#[cfg(test)]
mod tests;

use std::{
    num::NonZeroU32,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use model::{
    Bytes, PhaseResult,
    phase::{Fill, Item, Layout, Set, Sharing},
};
use rustix::{
    fs::{AtFlags, CWD, FileType, mknodat, unlinkat},
    io::Errno,
    thread::sched_getaffinity,
};

use crate::{
    Context, EngineError,
    barrier::Board,
    run::{attend, results},
    set,
};

/// Makes the entries of a layout.
///
/// They are those of its set in `context.directory`, for workers 0 to [`Layout::owners`] - 1; names
/// and sizes are those that [`crate::run_tree`] gives them. Operations and bytes count as written.
/// Blocks until all makers are done, also when one fails: the others are told at once. What was
/// made until then stays.
///
/// # Errors
/// As [`crate::run_tree`]; an entry that is there already is one.
pub fn run_layout(layout: &Layout, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check(layout)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    make(&Work::new(layout, context.directory), context)
}

/// Makes them by so many makers as there are processors.
fn make(work: &Work<'_>, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    let count = makers(work.units);
    let board =
        Board::new(count).map_err(|fault| calls::error(fault, context.directory.to_path_buf()))?;
    let board = Arc::new(board);
    context.progress.begin(Some(Arc::clone(&board)), total(work.layout));
    let makers = (0..count).map(|worker| {
        let board = &*board;
        move || {
            let result = maker::perform(work, worker, board);
            match result {
                Ok(_) | Err(EngineError::Interrupted) => {}
                Err(_) => board.fail(worker),
            }
            result
        }
    });
    let (released, outcomes) = attend(&board, context.interrupt, makers)?;
    if context.interrupt.load(Relaxed) {
        return Err(EngineError::Interrupted);
    }
    let workers = results(outcomes, board.culprit())?;
    Ok(PhaseResult::new(workers, board.last_end() - released))
}

/// What all makers share.
struct Work<'a> {
    layout: &'a Layout,
    directory: &'a Path,
    // Owners of entries, and directories of each of them, or of all where they share them.
    owners: u32,
    directories: u64,
    // Pieces of work, and the next one to be taken.
    units: u64,
    next: AtomicU64,
    // Whether mknod(2) makes regular files here.
    nodes: bool,
}

impl<'a> Work<'a> {
    fn new(layout: &'a Layout, directory: &'a Path) -> Self {
        let set = &layout.set;
        let directories = set::directories(set).max(1);
        let (owners, units) = match set.sharing {
            Sharing::Private => {
                (layout.owners, u64::from(layout.owners).saturating_mul(directories))
            }
            Sharing::Directory => (layout.owners, directories),
            Sharing::File => (1, directories),
        };
        let nodes = layout.item == Item::File && makes_nodes(set, directory);
        Self { layout, directory, owners, directories, units, next: AtomicU64::new(0), nodes }
    }
}

/// Whether mknod(2) makes regular files in this directory. A filter of system calls may forbid it,
/// and so may a filesystem of the user's; open(2), which is used instead, then tells what is wrong
/// if that does not work either.
fn makes_nodes(set: &Set, directory: &Path) -> bool {
    let probe = directory.join(format!("{}.probe", set.name));
    match mknodat(CWD, &probe, FileType::RegularFile, calls::FILE, 0) {
        Ok(()) => unlinkat(CWD, &probe, AtFlags::empty()).is_ok(),
        Err(errno) => errno == Errno::EXIST,
    }
}

/// One for each processor that this process may use, if there is so much to do.
fn makers(units: u64) -> u32 {
    let processors = sched_getaffinity(None).map_or(1, |set| set.count());
    let units = NonZeroU32::try_from(u32::try_from(units).unwrap_or(u32::MAX));
    processors.clamp(1, units.map_or(1, NonZeroU32::get))
}

/// Makes sure that there is something to do, and that it can be done.
fn check(layout: &Layout) -> Result<(), EngineError> {
    let refuse = |problem, cure| Err(EngineError::Tree { problem, cure });
    if layout.owners == 0 {
        return refuse("its entries have no owners", "use at least one");
    }
    check_set(&layout.set)
}

/// Makes sure that a set of files can exist.
pub(crate) fn check_set(set: &Set) -> Result<(), EngineError> {
    let refuse = |problem, cure| Err(EngineError::Tree { problem, cure });
    if set.files == 0 {
        return refuse("it has no files", "use at least one");
    }
    if set.record.0 == 0 && !set.sizes.are_empty() {
        return refuse("its record is empty", "give the size of a record");
    }
    if set.name.is_empty() || set.name.contains('/') {
        return refuse("its name is no file name", "use letters, digits, and dashes");
    }
    let Fill::Random { entropy, duplicates } = set.fill else { return Ok(()) };
    if !(0.0..=1.0).contains(&entropy) {
        return refuse("its share of random bytes is not a share", "use a number within 0..=1");
    }
    if duplicates != 0.0 {
        return refuse("its files have no duplicates", "set duplicates to 0");
    }
    Ok(())
}

/// Bytes that the phase writes if nothing stops it.
fn total(layout: &Layout) -> Bytes {
    let owners = if layout.set.sharing == Sharing::File { 1 } else { layout.owners };
    let size = match layout.item {
        Item::File => layout.set.sizes.mean().0,
        Item::Directory | Item::Symlink => 0,
    };
    Bytes(size.saturating_mul(layout.set.files).saturating_mul(u64::from(owners)))
}

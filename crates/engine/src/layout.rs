//! Layouts: creation of entries for later phases, with one thread per CPU.
//!
//! The input is a [`Layout`], the output a [`PhaseResult`] whose workers are the threads. One
//! operation is one entry. An owner is the worker of a later phase that uses the entries. The unit
//! of work is a directory: a thread takes the next unit from a shared counter, and creates the
//! directory and all entries in it. If all entries of an owner are in one directory, the unit is an
//! owner. If all owners share that directory, one thread creates everything. A second thread would
//! only wait, because the kernel locks a directory while an entry is created in it (`inode_lock`
//! around `vfs_create`, fs/namei.c).
//!
//! Names are relative to the directory of the unit, which stays open, and no state is kept per
//! entry. The clock is read once per batch of entries. Single entries are not timed; other phases
//! do that.
//!
//! Not included: operations after the creation, and attributes.

mod entry_writer;
#[cfg(test)]
mod tests;

use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::atomic::AtomicU64,
};

use model::{
    Bytes, PhaseResult,
    phase::{DataPattern, Item, Layout, Set, Sharing, Spread, WorkerResult, Workers},
};
use rustix::{
    fs::{AtFlags, CWD, FileType, mknodat, unlinkat},
    io::Errno,
    thread::sched_getaffinity,
};

use crate::{
    Context, EngineError, calls,
    driver::{self, Phase, Seat, interrupted},
    error::Failure,
    set,
};

/// Creates the entries of a layout.
///
/// The entries are those of its file set in `context.directory`, for workers 0 to
/// [`Layout::owners`] - 1, with the same names and sizes as in [`crate::run_tree`]. Operations and
/// bytes count as written. Blocks until all threads have ended. If one fails, the others are
/// aborted immediately. Entries created before are kept.
///
/// # Errors
/// As [`crate::run_tree`]; an existing entry is an error.
pub fn run_layout(layout: &Layout, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    check(layout)?;
    interrupted(context.interrupt)?;
    driver::run(&Work::new(layout, context.directory), context)
}

impl Phase for Work<'_> {
    type Error = Failure;

    fn workers(&self) -> Workers {
        Workers::threads(makers(self.units))
    }

    fn total(&self) -> Bytes {
        total(self.layout)
    }

    fn path(&self, _worker: u32) -> PathBuf {
        self.directory.to_path_buf()
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
        entry_writer::perform(self, seat)
    }
}

/// State shared by all threads.
struct Work<'a> {
    layout: &'a Layout,
    directory: &'a Path,
    // Number of owners, and number of directories: per owner, or in total if the owners share them.
    owners: u32,
    directories: u64,
    // Number of units of work, and index of the next one.
    units: u64,
    next: AtomicU64,
    // True if mknod(2) creates regular files here.
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

/// True if mknod(2) creates regular files in this directory. A system call filter or a FUSE
/// filesystem may reject mknod(2). Then open(2) is used; if open(2) fails as well, its error is
/// reported.
fn makes_nodes(set: &Set, directory: &Path) -> bool {
    let probe = directory.join(format!("{}.probe", set.name));
    match mknodat(CWD, &probe, FileType::RegularFile, calls::FILE, 0) {
        Ok(()) => unlinkat(CWD, &probe, AtFlags::empty()).is_ok(),
        Err(errno) => errno == Errno::EXIST,
    }
}

/// Number of threads: one per CPU of this process, at most one per unit.
fn makers(units: u64) -> u32 {
    let cpus = sched_getaffinity(None).map_or(1, |set| set.count());
    let units = NonZeroU32::try_from(u32::try_from(units).unwrap_or(u32::MAX));
    cpus.clamp(1, units.map_or(1, NonZeroU32::get))
}

/// Checks that the layout is not empty and can be created.
fn check(layout: &Layout) -> Result<(), EngineError> {
    let reject = |problem, hint| Err(EngineError::Tree { problem, hint });
    if layout.owners == 0 {
        return reject("owners is 0", "set it to at least 1");
    }
    check_set(&layout.set)
}

/// Checks that a file set is valid.
pub(crate) fn check_set(set: &Set) -> Result<(), EngineError> {
    let reject = |problem, hint| Err(EngineError::Tree { problem, hint });
    if set.files == 0 {
        return reject("files is 0", "set it to at least 1");
    }
    if set.block_size.0 == 0 && !set.sizes.are_empty() {
        return reject("block_size is 0", "set it to at least 1");
    }
    if matches!(set.spread, Spread::Tree(_)) {
        return reject("the directories of a tree do not exist", "create them by another phase");
    }
    if set.name.is_empty() || set.name.contains('/') {
        return reject("the name of the file set is invalid", "use letters, digits, and dashes");
    }
    let DataPattern::Random { incompressible_fraction: entropy, duplicate_fraction: duplicates } =
        set.data
    else {
        return Ok(());
    };
    if !(0.0..=1.0).contains(&entropy) {
        return reject("incompressible_fraction is out of range", "use a number from 0 to 1");
    }
    if duplicates != 0.0 {
        return reject("file sets do not support duplicates", "set duplicate_fraction to 0");
    }
    Ok(())
}

/// Bytes that the phase writes unless it is stopped.
fn total(layout: &Layout) -> Bytes {
    let owners = if layout.set.sharing == Sharing::File { 1 } else { layout.owners };
    let size = match layout.item {
        Item::File => layout.set.sizes.mean().0,
        Item::Directory | Item::Symlink => 0,
    };
    Bytes(size.saturating_mul(layout.set.files).saturating_mul(u64::from(owners)))
}

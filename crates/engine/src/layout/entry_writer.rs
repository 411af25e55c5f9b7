//! Thread of a layout: takes directories, and creates them and their entries until none is left.

use std::{
    ffi::CStr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use model::phase::{Item, Latencies, Set, Sharing, Spread, WorkerResult};
use rustix::fs::{FileType, Mode, OFlags, mkdirat, mknodat, openat, symlinkat};

use super::Work;
use crate::{
    calls::{self, again, joined},
    clock::now,
    counter::{Counter, Limits},
    driver::{Seat, WorkerLoop},
    error::{Failure, Fault, Operation},
    io::{Kind, close},
    set::{Data, Lengths, Names, Uses, WorkerEntries, each, tag},
};

/// Entries between two clock reads.
const BATCH: u64 = 64;

/// Mode of entries that are directories, see [`model::phase::TreeStep::Mkdir`].
const DIRECTORY: Mode = Mode::from_raw_mode(0o700);

/// Creates directories and entries in the calling thread.
pub(super) fn perform(work: &Work<'_>, seat: &Seat<'_>) -> Result<WorkerResult, Failure> {
    let writer = EntryWriter::new(work, seat)?;
    // Single operations are not timed.
    let latencies = Latencies::default();
    seat.run(writer, Counter::new(seat.control, seat.slot, Limits::default(), latencies))
}

/// Writer of entries: the open directories, and memory for all of them.
struct EntryWriter<'a> {
    work: &'a Work<'a>,
    seat: &'a Seat<'a>,
    // Directory of the set of the current owner.
    root: Option<(WorkerEntries, OwnedFd)>,
    names: Names,
    lengths: Lengths,
    data: Data,
    // Entries and bytes since the last clock read.
    pending: (u64, u64),
}

impl WorkerLoop for EntryWriter<'_> {
    type Error = Failure;

    /// Creates one unit of work: the entries of one owner, or of all owners, in one directory.
    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, Failure> {
        let unit = self.work.next.fetch_add(1, Relaxed);
        if unit >= self.work.units {
            return Ok(false);
        }
        let directory = unit % self.work.directories;
        let owners = match self.work.layout.set.sharing {
            Sharing::Private | Sharing::File => {
                let owner = u32::try_from(unit / self.work.directories);
                let owner = owner.expect("units are owners times directories");
                owner..owner + 1
            }
            Sharing::Directory => 0..self.work.owners,
        };
        for owner in owners {
            self.select(owner)?;
            self.fill(counter, directory)?;
        }
        Ok(true)
    }
}

impl<'a> EntryWriter<'a> {
    fn new(work: &'a Work<'a>, seat: &'a Seat<'a>) -> Result<Self, Failure> {
        let set = &work.layout.set;
        let lengths = Lengths::new(set, 0);
        let block_size = set.block_size.0.min(lengths.most());
        let writes = work.layout.item == Item::File && !set.sizes.are_empty();
        let uses = Uses { block_size, reads: false, writes, tag: tag("layout") };
        let data = Data::new(set, seat.worker, uses)
            .ok_or_else(|| seat.failure(calls::memory(block_size)))?;
        let names = Names::new(set, 0);
        Ok(Self { work, seat, root: None, names, lengths, data, pending: (0, 0) })
    }

    /// Selects the names, sizes, and the directory of the set of this owner.
    fn select(&mut self, owner: u32) -> Result<(), Failure> {
        let set = &self.work.layout.set;
        let place = WorkerEntries::new(set, owner, self.work.directory);
        if self.root.as_ref().is_some_and(|(at, _)| *at == place) {
            return Ok(());
        }
        self.names = Names::new(set, owner);
        self.lengths.select(owner);
        let root = match self.root.take() {
            Some((at, root)) if at.root == place.root => root,
            Some(_) | None => calls::root(&place.root)?,
        };
        self.root = Some((place, root));
        Ok(())
    }

    /// Creates a directory of the current owner, and its entries.
    fn fill(&mut self, counter: &mut Counter<'_>, directory: u64) -> Result<(), Failure> {
        let set = &self.work.layout.set;
        let (place, root) = self.root.take().expect("an owner is selected");
        let first = directory.saturating_mul(each(set));
        let last = first.saturating_add(each(set)).min(set.files);
        self.names.set(first);
        let holder = holder(root.as_fd(), set, &mut self.names).map_err(|fault| Failure {
            fault,
            path: joined(&place.root, self.names.directory()),
        })?;
        let at = holder.as_ref().map_or(root.as_fd(), AsFd::as_fd);
        // A name includes the entry's directory. That directory is open, so only the rest is used.
        let skip = holder.as_ref().map_or(0, |_| self.names.directory().to_bytes().len() + 1);
        for entry in first..last {
            self.names.set(entry);
            self.entry(at, skip, entry)
                .and_then(|()| if self.pending.0 == BATCH { self.count(counter) } else { Ok(()) })
                .and_then(|()| counter.check())
                .map_err(|fault| {
                    let path = joined(&place.root, self.names.entry_name());
                    Failure { fault, path }
                })?;
        }
        self.count(counter).map_err(|fault| self.seat.failure(fault))?;
        self.root = Some((place, root));
        Ok(())
    }

    /// Creates one entry, whose name in `directory` begins after `skip` bytes of its whole name.
    fn entry(&mut self, directory: BorrowedFd<'_>, skip: usize, entry: u64) -> Result<(), Fault> {
        let name = self.names.entry_name().to_bytes_with_nul().get(skip..);
        let name = name.and_then(|name| CStr::from_bytes_with_nul(name).ok());
        let name = name.expect("the name follows a directory and a slash");
        let signal = self.seat.control.signal();
        let bytes = match self.work.layout.item {
            Item::File => {
                let size = self.lengths.of(entry);
                if size == 0 && self.work.nodes {
                    node(directory, name)?;
                } else {
                    file(directory, name, size, &mut self.data, signal)?;
                }
                size
            }
            Item::Directory => {
                let made = again(|| mkdirat(directory, name, DIRECTORY));
                made.map_err(|errno| Fault::whole(Operation::MakeDirectory, errno))?;
                0
            }
            Item::Symlink => {
                let made = again(|| symlinkat(c"target", directory, name));
                made.map_err(|errno| Fault::whole(Operation::SymbolicLink, errno))?;
                0
            }
        };
        self.pending.0 += 1;
        self.pending.1 += bytes;
        Ok(())
    }

    /// Reads the clock, and counts and publishes the work since the last read.
    fn count(&mut self, counter: &mut Counter<'_>) -> Result<(), Fault> {
        let (ops, bytes) = std::mem::take(&mut self.pending);
        counter.at(now())?;
        counter.tally(Kind::Write, ops, bytes);
        counter.publish();
        Ok(())
    }
}

/// Creates the directory of the current entry and opens it; `None` if the entry is in the directory
/// of the set.
fn holder(root: BorrowedFd<'_>, set: &Set, names: &mut Names) -> Result<Option<OwnedFd>, Fault> {
    match set.spread {
        Spread::Flat => Ok(None),
        Spread::Directories { .. } | Spread::Tree(_) => {
            let name = names.directory();
            calls::holder(root, name)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = again(|| openat(root, name, flags, Mode::empty()));
            opened.map(Some).map_err(|errno| Fault::whole(Operation::Open, errno))
        }
    }
}

fn node(directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Fault> {
    again(|| mknodat(directory, name, FileType::RegularFile, calls::FILE, 0))
        .map_err(|errno| Fault::whole(Operation::MakeNode, errno))
}

fn file(
    directory: BorrowedFd<'_>,
    name: &CStr,
    size: u64,
    data: &mut Data,
    signal: &AtomicU32,
) -> Result<(), Fault> {
    let file = calls::create(directory, name)?;
    calls::fill(&file, size, data, signal)?;
    close(file)
}

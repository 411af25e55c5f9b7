//! Order in which a worker processes its entries.
//!
//! No state is kept per entry: numbers are counted, or permuted without a table, and names returned
//! by readdir(3) are processed as they come. There is one exception: if the steps create names in
//! the directory that is being listed, the listing might contain the new names. The directory is
//! then listed completely before its first entry is processed, and the numbers of its entries are
//! stored.

use std::mem::MaybeUninit;

use fastrand::Rng;
use model::{
    Nanos,
    phase::{EntryCount, Tree, TreeOrder, TreeStep},
};
use rustix::{fs::RawDir, io::Errno};

use super::worker::Run;
use crate::{
    counter::Counter,
    error::{Failure, Fault, Memory, Operation},
    io::close,
    patterns::Bijection,
    set::{directories, each},
};

/// Buffer size for getdents64(2), as used by readdir(3) of the C library.
pub(super) const LISTING: usize = 32 << 10;

/// Maximum bytes of the entry numbers of a directory that is listed completely.
pub(super) const MOST: u64 = 64 << 20;

/// True if a directory must be listed completely before its first entry is processed: names created
/// during a listing may be part of it (readdir(3)).
pub(super) fn lists_whole(tree: &Tree) -> bool {
    tree.order == TreeOrder::Listed && tree.steps.iter().any(|step| adds(*step))
}

/// True if a step creates a name in the directory of the entry.
pub(super) fn adds(step: TreeStep) -> bool {
    matches!(
        step,
        TreeStep::Create
            | TreeStep::OpenCreate
            | TreeStep::Rename
            | TreeStep::RenameBack
            | TreeStep::RenameRing
            | TreeStep::Link
            | TreeStep::LinkFirst
            | TreeStep::SymlinkFirst
            | TreeStep::Symlink
            | TreeStep::Mknod
            | TreeStep::Mkdir
    )
}

/// Maximum number of a worker's entries in one directory.
pub(super) fn most_entries(tree: &Tree) -> u64 {
    each(&tree.set).min(tree.set.files)
}

/// Memory for listings, allocated before the clock starts.
pub(super) struct Room {
    names: Box<[MaybeUninit<u8>]>,
    numbers: Vec<u64>,
}

impl Room {
    /// Memory as needed by the tree; none if it lists nothing.
    pub(super) fn new(tree: &Tree) -> Result<Self, Fault> {
        let listing = if tree.order == TreeOrder::Listed { LISTING } else { 0 };
        let mut numbers = Vec::new();
        if lists_whole(tree) {
            let entries = most_entries(tree);
            let short = |_| Fault::Memory {
                what: Memory::Listing,
                bytes: entries.saturating_mul(8),
                errno: libc::ENOMEM,
            };
            let entries = usize::try_from(entries).unwrap_or(usize::MAX);
            numbers.try_reserve_exact(entries).map_err(short)?;
        }
        Ok(Self { names: vec![MaybeUninit::uninit(); listing].into_boxed_slice(), numbers })
    }
}

/// Runs a pass over all entries. Returns true if the loop continues.
pub(super) fn walk(
    run: &mut Run<'_>,
    counter: &mut Counter<'_>,
    room: &mut Room,
    pass: u64,
) -> Result<bool, Failure> {
    let mut on = true;
    for turn in 0..run.tree.selection.owners {
        if run.tree.selection.owners > 1 {
            run.context.select_owner(run.tree.owner(run.seat.worker, turn));
        }
        on = match run.tree.order {
            TreeOrder::Creation => created(run, counter)?,
            TreeOrder::Descending => descending(run, counter)?,
            TreeOrder::Random => shuffled(run, counter, pass)?,
            TreeOrder::Listed => listed(run, counter, room)?,
        };
        if !on {
            break;
        }
    }
    // The next pass uses the same entries, so all entries must be complete.
    run.drain(counter)?;
    Ok(on)
}

fn created(run: &mut Run<'_>, counter: &mut Counter<'_>) -> Result<bool, Failure> {
    if let EntryCount::Until(time) = run.tree.selection.count {
        return created_until(run, counter, time);
    }
    for entry in 0..run.tree.set.files {
        run.context.select(entry);
        if !run.entry(counter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Up to a time limit, and then to the largest number of entries that a worker has reached by then.
/// The time of waiting for the other workers is not part of an operation.
fn created_until(
    run: &mut Run<'_>,
    counter: &mut Counter<'_>,
    time: Nanos,
) -> Result<bool, Failure> {
    let (mut entry, mut end, limit) = (0, run.tree.set.files, counter.clock + time);
    while entry < end && counter.clock < limit {
        run.context.select(entry);
        entry += 1;
        if !run.entry(counter)? {
            return Ok(false);
        }
    }
    // A worker that has visited all entries knows the largest number.
    let agreed =
        counter.at_deadline(entry, entry == end).map_err(|fault| run.seat.failure(fault))?;
    if let Some(largest) = agreed {
        end = largest;
        counter.clock = run.now();
    }
    run.reached = end;
    for entry in entry..end {
        run.context.select(entry);
        if !run.entry(counter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn descending(run: &mut Run<'_>, counter: &mut Counter<'_>) -> Result<bool, Failure> {
    for entry in (0..run.tree.set.files).rev() {
        run.context.select(entry);
        if !run.entry(counter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order depends on worker, pass, and steps, so that two phases on the same set have different
/// orders, as in bonnie++, which shuffles for each phase.
fn shuffled(run: &mut Run<'_>, counter: &mut Counter<'_>, pass: u64) -> Result<bool, Failure> {
    let tree = run.tree;
    let steps = tree.steps.iter().fold(0x7265_6530, |sum: u64, step| {
        let place = TreeStep::ALL.iter().position(|other| other == step).unwrap_or(0);
        sum.wrapping_mul(0x0000_0100_0000_01B3).wrapping_add(place as u64)
    });
    let turn = (u64::from(run.seat.worker) << 32).wrapping_add(pass);
    let seed = tree.set.seed ^ steps ^ turn.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let order = Bijection::new(tree.set.files, &mut Rng::with_seed(seed));
    for place in 0..tree.set.files {
        run.context.select(order.at(place));
        if !run.entry(counter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn listed(run: &mut Run<'_>, counter: &mut Counter<'_>, room: &mut Room) -> Result<bool, Failure> {
    let tree = run.tree;
    let (count, each) = (directories(&tree.set).max(1), each(&tree.set));
    let whole = lists_whole(tree);
    for directory in 0..count {
        let first = directory.saturating_mul(each);
        let span = Span { first, entries: each.min(tree.set.files - first) };
        run.context.names.enter(first);
        let on = match whole {
            true => list_whole(run, counter, room, span)?,
            false => list_along(run, counter, room, span)?,
        };
        if !on {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Entries of one directory.
#[derive(Clone, Copy)]
struct Span {
    first: u64,
    entries: u64,
}

impl Span {
    fn has(self, entry: u64) -> bool {
        entry.wrapping_sub(self.first) < self.entries
    }

    /// Checks that all entries were found.
    fn complete(self, found: u64, run: &mut Run<'_>) -> Result<(), Failure> {
        if found == self.entries {
            return Ok(());
        }
        run.context.names.enter(self.first);
        Err(run.context.at_directory(Fault::Entries { found, expected: self.entries }))
    }
}

/// Processes each entry as it is listed.
fn list_along(
    run: &mut Run<'_>,
    counter: &mut Counter<'_>,
    room: &mut Room,
    span: Span,
) -> Result<bool, Failure> {
    let directory =
        run.context.open_directory().map_err(|fault| run.context.at_directory(fault))?;
    let mut names = RawDir::new(&directory, &mut room.names);
    let mut found = 0;
    while let Some(name) = names.next() {
        let name = match name {
            Ok(name) => name,
            // After the last entry was unlinked, another worker that shares the directory may
            // remove it. getdents(2) of a removed directory returns ENOENT.
            Err(Errno::NOENT) => break,
            Err(errno) => {
                run.context.names.enter(span.first);
                return Err(run.context.at_directory(Fault::whole(Operation::List, errno)));
            }
        };
        let name = name.file_name().to_bytes();
        let entry = run.context.names.entry(name).filter(|entry| span.has(*entry));
        let Some(entry) = entry else { continue };
        run.context.select_found(entry, name, found == 0);
        found += 1;
        if !run.entry(counter)? {
            return Ok(false);
        }
    }
    close(directory).map_err(|fault| run.context.at_directory(fault))?;
    span.complete(found, run)?;
    Ok(true)
}

/// Lists all entries, and then processes them in that order.
fn list_whole(
    run: &mut Run<'_>,
    counter: &mut Counter<'_>,
    room: &mut Room,
    span: Span,
) -> Result<bool, Failure> {
    let directory =
        run.context.open_directory().map_err(|fault| run.context.at_directory(fault))?;
    let mut names = RawDir::new(&directory, &mut room.names);
    room.numbers.clear();
    let mut found = 0;
    while let Some(name) = names.next() {
        let name =
            name.map_err(|errno| run.context.at_directory(Fault::whole(Operation::List, errno)))?;
        let entry = run.context.names.entry(name.file_name().to_bytes());
        if let Some(entry) = entry.filter(|entry| span.has(*entry)) {
            found += 1;
            // An excess of entries is reported below; the memory is for the expected number.
            if room.numbers.len() < room.numbers.capacity() {
                room.numbers.push(entry);
            }
        }
    }
    close(directory).map_err(|fault| run.context.at_directory(fault))?;
    span.complete(found, run)?;
    for (index, entry) in room.numbers.iter().enumerate() {
        run.context.select_listed(*entry, index == 0);
        if !run.entry(counter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

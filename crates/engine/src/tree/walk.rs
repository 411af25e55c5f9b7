//! The order in which a worker goes through its entries.
//!
//! Nothing is kept of the entries: numbers are counted, or go through a permutation without a
//! table, and names that readdir(3) answers are taken as they come. Only where the steps put names
//! into the directory that is being listed, so that it might answer what was just made, are the
//! numbers of one directory's entries kept.

use std::mem::MaybeUninit;

use fastrand::Rng;
use model::phase::{Tree, TreeOrder, TreeStep};
use rustix::fs::RawDir;

use super::{Failure, worker::Run};
use crate::{
    error::{Fault, Memory, Operation},
    io::close,
    patterns::Bijection,
    set::{directories, each},
};

/// Room for the names that one getdents64(2) answers: what the C library takes for readdir(3).
pub(super) const LISTING: usize = 32 << 10;

/// The most bytes for the numbers of the entries of a directory that is listed whole.
pub(super) const MOST: u64 = 64 << 20;

/// Whether a directory has to be listed whole before its first entry is touched: names that appear
/// during a listing may be part of it (readdir(3)).
pub(super) fn lists_whole(tree: &Tree) -> bool {
    tree.order == TreeOrder::Listed && tree.steps.iter().any(|step| adds(*step))
}

/// Whether a step puts a name into the directory of the entry.
pub(super) fn adds(step: TreeStep) -> bool {
    matches!(
        step,
        TreeStep::Create
            | TreeStep::Rename
            | TreeStep::RenameBack
            | TreeStep::Link
            | TreeStep::LinkFirst
            | TreeStep::SymlinkFirst
            | TreeStep::Symlink
            | TreeStep::Mknod
            | TreeStep::Mkdir
    )
}

/// Entries of a worker in one directory, at most.
pub(super) fn most_entries(tree: &Tree) -> u64 {
    each(&tree.set).min(tree.set.files)
}

/// Memory for listings, made before the clock starts.
pub(super) struct Room {
    names: Box<[MaybeUninit<u8>]>,
    numbers: Vec<u64>,
}

impl Room {
    /// As much as the tree needs; none if it lists nothing.
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

/// All passes over all entries; whether all of it counted.
pub(super) fn walk(run: &mut Run<'_>, room: &mut Room) -> Result<bool, Failure> {
    for pass in 0..run.tree.passes {
        let on = match run.tree.order {
            TreeOrder::Created => created(run)?,
            TreeOrder::Shuffled => shuffled(run, pass)?,
            TreeOrder::Listed => listed(run, room)?,
        };
        // The entries of the next pass are those of this one.
        run.settle()?;
        if !on {
            break;
        }
    }
    Ok(!run.count.stopped)
}

fn created(run: &mut Run<'_>) -> Result<bool, Failure> {
    for entry in 0..run.tree.set.files {
        run.hand.turn_to(entry);
        if !run.entry()? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// In an order of the worker, the pass, and the steps, so that two phases on the same set do not go
/// the same way, as they do not in the classic tools, which shuffle anew.
fn shuffled(run: &mut Run<'_>, pass: u64) -> Result<bool, Failure> {
    let tree = run.tree;
    let steps = tree.steps.iter().fold(0x7265_6530, |sum: u64, step| {
        let place = TreeStep::ALL.iter().position(|other| other == step).unwrap_or(0);
        sum.wrapping_mul(0x0000_0100_0000_01B3).wrapping_add(place as u64)
    });
    let turn = (u64::from(run.worker) << 32).wrapping_add(pass);
    let seed = tree.set.seed ^ steps ^ turn.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let order = Bijection::new(tree.set.files, &mut Rng::with_seed(seed));
    for place in 0..tree.set.files {
        run.hand.turn_to(order.at(place));
        if !run.entry()? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn listed(run: &mut Run<'_>, room: &mut Room) -> Result<bool, Failure> {
    let tree = run.tree;
    let (count, each) = (directories(&tree.set).max(1), each(&tree.set));
    let whole = lists_whole(tree);
    for directory in 0..count {
        let first = directory.saturating_mul(each);
        let span = Span { first, entries: each.min(tree.set.files - first) };
        run.hand.names.enter(first);
        let on = match whole {
            true => list_whole(run, room, span)?,
            false => list_along(run, room, span)?,
        };
        if !on {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The entries of one directory.
#[derive(Clone, Copy)]
struct Span {
    first: u64,
    entries: u64,
}

impl Span {
    fn has(self, entry: u64) -> bool {
        entry.wrapping_sub(self.first) < self.entries
    }

    /// Makes sure that all were found.
    fn complete(self, found: u64, run: &mut Run<'_>) -> Result<(), Failure> {
        if found == self.entries {
            return Ok(());
        }
        run.hand.names.enter(self.first);
        Err(run.hand.at_directory(Fault::Entries { found, expected: self.entries }))
    }
}

/// Handles each entry as it is listed.
fn list_along(run: &mut Run<'_>, room: &mut Room, span: Span) -> Result<bool, Failure> {
    let directory = run.hand.open_directory().map_err(|fault| run.hand.at_directory(fault))?;
    let mut names = RawDir::new(&directory, &mut room.names);
    let mut found = 0;
    while let Some(name) = names.next() {
        let name = match name {
            Ok(name) => name,
            Err(errno) => {
                run.hand.names.enter(span.first);
                return Err(run.hand.at_directory(Fault::whole(Operation::List, errno)));
            }
        };
        let name = name.file_name().to_bytes();
        let entry = run.hand.names.entry(name).filter(|entry| span.has(*entry));
        let Some(entry) = entry else { continue };
        run.hand.turn_to_found(entry, name, found == 0);
        found += 1;
        if !run.entry()? {
            return Ok(false);
        }
    }
    close(directory).map_err(|fault| run.hand.at_directory(fault))?;
    span.complete(found, run)?;
    Ok(true)
}

/// Lists everything, and then handles each entry in that order.
fn list_whole(run: &mut Run<'_>, room: &mut Room, span: Span) -> Result<bool, Failure> {
    let directory = run.hand.open_directory().map_err(|fault| run.hand.at_directory(fault))?;
    let mut names = RawDir::new(&directory, &mut room.names);
    room.numbers.clear();
    let mut found = 0;
    while let Some(name) = names.next() {
        let name =
            name.map_err(|errno| run.hand.at_directory(Fault::whole(Operation::List, errno)))?;
        let entry = run.hand.names.entry(name.file_name().to_bytes());
        if let Some(entry) = entry.filter(|entry| span.has(*entry)) {
            found += 1;
            // More than there can be is a fault that is told below; the room is for these.
            if room.numbers.len() < room.numbers.capacity() {
                room.numbers.push(entry);
            }
        }
    }
    close(directory).map_err(|fault| run.hand.at_directory(fault))?;
    span.complete(found, run)?;
    for (index, entry) in room.numbers.iter().enumerate() {
        run.hand.turn_to_listed(*entry, index == 0);
        if !run.entry()? {
            return Ok(false);
        }
    }
    Ok(true)
}

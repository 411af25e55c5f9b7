//! Names, directories, and sizes of the entries of a file set. All follow from the number of an
//! entry, so that ten million entries need no more memory than ten.
//!
//! [`WorkerEntries`] provides the directory of a worker, [`Names`] the names, [`Lengths`] the
//! sizes. All are created before the clock starts. Inside the loop they neither allocate nor use
//! floating-point arithmetic.

mod data;
mod entry_data;
mod lengths;
mod names;

use std::path::{Path, PathBuf};

use model::phase::{Set, Sharing, Spread};

pub(crate) use data::{Data, Uses, tag};
pub(crate) use entry_data::EntryData;
pub(crate) use lengths::Lengths;
pub(crate) use names::{ACROSS, Names, ROOM};

/// Location of the entries of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerEntries {
    /// Directory of the set that this worker uses.
    pub(crate) root: PathBuf,
    /// Owner of its entries: the worker itself, or 0 if all workers share the entries.
    pub(crate) owner: u32,
}

impl WorkerEntries {
    /// Location of a worker's entries in the directory under test.
    pub(crate) fn new(set: &Set, worker: u32, directory: &Path) -> Self {
        match set.sharing {
            Sharing::Private => {
                Self { root: directory.join(format!("{}.{worker}", set.name)), owner: worker }
            }
            Sharing::Directory => Self { root: directory.join(&set.name), owner: worker },
            Sharing::File => Self { root: directory.join(&set.name), owner: 0 },
        }
    }
}

/// Number of subdirectories of the set that hold its entries; 0 if the set holds them itself.
pub(crate) fn directories(set: &Set) -> u64 {
    match set.spread {
        Spread::Flat => 0,
        Spread::Directories { each } => set.files.div_ceil(each.max(1)),
        Spread::Tree(tree) => set.files.div_ceil(tree.each.max(1)),
    }
}

/// Entries per directory.
pub(crate) fn each(set: &Set) -> u64 {
    match set.spread {
        Spread::Flat => set.files,
        Spread::Directories { each } => each.max(1),
        Spread::Tree(tree) => tree.each.max(1),
    }
}

/// 64 random bits of an entry, from a separate stream per purpose: two rounds of SplitMix64's
/// mixing function (Steele, Lea, and Flood, OOPSLA 2014).
pub(crate) fn drawn(seed: u64, owner: u32, entry: u64, purpose: u64) -> u64 {
    draw(stream(seed, owner, purpose), entry)
}

/// Seed that all entries of an owner share for one purpose.
fn stream(seed: u64, owner: u32, purpose: u64) -> u64 {
    let worker = u64::from(owner).wrapping_mul(0xD1B5_4A32_D192_ED03);
    mixed(seed ^ worker ^ purpose)
}

/// 64 random bits of an entry of this stream.
#[inline]
fn draw(stream: u64, entry: u64) -> u64 {
    mixed(stream.wrapping_add(entry))
}

pub(crate) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

//! Trees of directories that contain the entries of a set, and the selection of entries by workers,
//! as in mdtest.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Tree of directories. Directory 0 is the root, and the children of directory k are the
/// directories `k * branching + 1` to `k * branching + branching`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryTree {
    /// Levels below the root, at most [`Self::DEEPEST`].
    pub depth: u32,
    /// Children of each directory above the lowest level, at least 1.
    pub branching: u32,
    /// Entries per directory, at least 1.
    pub each: u64,
    /// Only directories of the lowest level contain entries.
    pub leaves_only: bool,
}

impl DirectoryTree {
    /// Maximum depth, so that paths are shorter than `PATH_MAX`.
    pub const DEEPEST: u32 = 64;

    /// Maximum number of directories.
    pub const MOST: u64 = 1 << 32;

    /// Number of directories; saturates at [`u64::MAX`].
    pub fn directories(&self) -> u64 {
        let level = |level| u64::from(self.branching).saturating_pow(level);
        (0..=self.depth).map(level).fold(0, u64::saturating_add)
    }

    /// Number of the first directory that contains entries.
    pub fn first(&self) -> u64 {
        match (self.leaves_only, self.depth) {
            (true, 1..) => Self { depth: self.depth - 1, ..*self }.directories(),
            (true, 0) | (false, _) => 0,
        }
    }

    /// Number of directories that contain entries.
    pub fn holders(&self) -> u64 {
        self.directories() - self.first()
    }
}

/// Entries that each worker of a tree visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Worker w visits the entries of worker `w + shift`, modulo the number of workers.
    pub shift: u32,
    /// Number of workers whose entries each worker visits one after another, at least 1.
    pub owners: u32,
    /// Number of entries of each worker.
    pub count: EntryCount,
}

impl Default for Selection {
    fn default() -> Self {
        Self { shift: 0, owners: 1, count: EntryCount::All }
    }
}

impl Selection {
    /// True if each worker visits its entries, and no others.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Number of entries of a set that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryCount {
    /// [`super::Set::files`].
    #[default]
    All,
    /// After this time, each worker continues up to the largest number that any worker had reached
    /// by then, as mdtest does with a stonewall. The number is stored in the test directory, in
    /// file `NAME.count`.
    Until(Nanos),
    /// The number stored by an earlier phase.
    Stored,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(depth: u32, branching: u32, leaves_only: bool) -> DirectoryTree {
        DirectoryTree { depth, branching, each: 1, leaves_only }
    }

    #[test]
    fn directories_are_counted_by_level() {
        for (depth, branching, all, leaves) in
            [(0, 1, 1, 1), (3, 1, 4, 1), (1, 5, 6, 5), (2, 3, 13, 9), (3, 2, 15, 8)]
        {
            assert_eq!(tree(depth, branching, false).directories(), all);
            assert_eq!(tree(depth, branching, false).holders(), all);
            assert_eq!(tree(depth, branching, true).holders(), leaves);
            assert_eq!(tree(depth, branching, true).first(), all - leaves);
        }
        assert_eq!(tree(64, 1000, false).directories(), u64::MAX);
    }
}

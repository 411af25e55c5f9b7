//! Differences between a block that was read and the block that was written.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

/// Difference between a block on storage and the block that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// All zeros: never written, or lost.
    Hole,
    /// The checksum does not match the content: torn or modified.
    Damaged,
    /// Intact block of another file or run.
    Foreign,
    /// Intact block of this file from another offset.
    Misplaced {
        /// Offset for which the block was written.
        belongs: u64,
    },
    /// Intact block at its offset, but from a write before the last durable one.
    Stale {
        /// Number of the worker's write that produced the block.
        found: u64,
        /// Number of the last durable write to this block.
        durable: u64,
    },
    /// The block cannot be read.
    Unreadable {
        /// Error of read(2).
        errno: i32,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hole => f.write_str("all zeros"),
            Self::Damaged => f.write_str("checksum mismatch"),
            Self::Foreign => f.write_str("written for another file or with another seed"),
            Self::Misplaced { belongs } => write!(f, "written for offset {belongs}"),
            Self::Stale { found, durable } => {
                write!(
                    f,
                    "from write {found} (0: before the phase), but write {durable} was \
                     durable"
                )
            }
            Self::Unreadable { errno } => {
                write!(f, "unreadable: {}", io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

//! Differences between a block that was read and the one that was written.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

/// Difference between a block and what was written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// All zeros: it was never written, or what was written is lost.
    Hole,
    /// Its checksum does not fit its content: torn, or changed.
    Damaged,
    /// A whole block of another file or run.
    Foreign,
    /// A whole block of this file that belongs elsewhere.
    Misplaced {
        /// The offset it was written for.
        belongs: u64,
    },
    /// A whole block in its place, but from an earlier write than the last that was durable.
    Stale {
        /// Count of the worker's write it comes from.
        found: u64,
        /// Count of the last write there that was durable.
        durable: u64,
    },
    /// It cannot be read.
    Unreadable {
        /// The kernel's answer.
        errno: i32,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hole => f.write_str("it is all zeros"),
            Self::Damaged => f.write_str("its checksum does not fit its content"),
            Self::Foreign => f.write_str("it was written for another file, or with another seed"),
            Self::Misplaced { belongs } => write!(f, "it was written for offset {belongs}"),
            Self::Stale { found, durable } => {
                write!(
                    f,
                    "it is from write {found} (0: before the phase), and write {durable} was \
                     durable"
                )
            }
            Self::Unreadable { errno } => {
                write!(f, "it cannot be read: {}", io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

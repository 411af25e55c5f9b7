//! What can be wrong with a list of operations that a stream replays.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a line of a list of operations cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListProblem {
    /// It is not an operation.
    Syntax,
    /// Its length is zero.
    Nothing,
    /// It is longer than the operations of the stream.
    Long {
        /// Bytes of the longest operation of the stream.
        longest: u64,
    },
    /// It goes beyond the whole records of the worker's part of the file.
    Beyond {
        /// Bytes of these.
        end: u64,
    },
    /// It reads, and the worker does not.
    Reads,
    /// It writes, and the worker does not.
    Writes,
    /// It is the last one, and there was no operation.
    Empty,
}

impl fmt::Display for ListProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax => f.write_str(
                "expected `read OFFSET LENGTH` or `write OFFSET LENGTH`, in bytes, or a comment \
                 after `#`",
            ),
            Self::Nothing => f.write_str("the length is zero; move at least one byte"),
            Self::Long { longest } => write!(
                f,
                "the operation is longer than the longest of the stream, {longest} bytes; use a \
                 record as long as the longest operation of the list"
            ),
            Self::Beyond { end } => write!(
                f,
                "the operation goes beyond the whole records of the file, {end} bytes; use a \
                 larger file"
            ),
            Self::Reads => f.write_str(
                "it reads, and the worker only writes; let the stream mix reads and writes",
            ),
            Self::Writes => f.write_str(
                "it writes, and the worker only reads; let the stream mix reads and writes",
            ),
            Self::Empty => f.write_str("the list ends without an operation; give it at least one"),
        }
    }
}

//! Errors in a trace.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Problem of a line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceProblem {
    /// Not an operation.
    Syntax,
    /// Length of zero.
    Nothing,
    /// Longer than the longest operation of the stream.
    Long {
        /// Bytes of the longest operation of the stream.
        longest: u64,
    },
    /// Beyond the whole blocks of the worker's segment of the file.
    Beyond {
        /// Bytes of these blocks.
        end: u64,
    },
    /// A read, but the worker only writes.
    Reads,
    /// A write, but the worker only reads.
    Writes,
    /// End of a trace without operations.
    Empty,
}

impl fmt::Display for TraceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax => f.write_str(
                "expected `read OFFSET LENGTH` or `write OFFSET LENGTH`, in bytes, or a comment \
                 after `#`",
            ),
            Self::Nothing => f.write_str("the length is 0; use at least 1 byte"),
            Self::Long { longest } => write!(
                f,
                "the operation is longer than {longest} bytes, the longest operation of the \
                 stream; use a block_size of at least the longest operation of the trace"
            ),
            Self::Beyond { end } => write!(
                f,
                "the operation extends beyond the whole blocks of the file, {end} bytes; use a \
                 larger file_size"
            ),
            Self::Reads => f.write_str("a read, but the worker only writes; use direction mixed"),
            Self::Writes => f.write_str("a write, but the worker only reads; use direction mixed"),
            Self::Empty => f.write_str("the trace has no operations; add at least one"),
        }
    }
}

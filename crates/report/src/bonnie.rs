//! Records of bonnie++: comma-separated lines that bonnie++ prints and other programs read.
//!
//! [`read`] parses text to [`Record`]s, [`write`] formats a record as a line, and [`text()`] as
//! tables. [`export`] converts a run of fslab to records, so that tools for bonnie++ can show it.
//! [`crate::imports`] converts records to a run, so that reports can show them. The module neither
//! measures nor opens files. Values that a record does not contain stay unknown.
//!
//! The layouts are those of bonnie++ 1.03, 1.96, 1.97, and 1.98; 2.00 and 2.00a also print the
//! layout of 1.98. Sources: bonnie++(8) and the header lines of its CSV.

mod export;
mod read;
mod text;
mod write;

#[cfg(test)]
pub(crate) mod tests;

use model::{Bytes, Nanos};

pub(crate) use export::{SUITE, short_phase};
pub use export::{export, median, records};
pub use read::{ReadError, read};
pub use text::text;
pub use write::{header, write};

/// Phases in the order of the fields of a record, with their names in suite `bonnie`.
pub const PHASES: [&str; 12] = [
    "putc",
    "put-block",
    "rewrite",
    "getc",
    "get-block",
    "seeks",
    "seq-create",
    "seq-stat",
    "seq-delete",
    "ran-create",
    "ran-stat",
    "ran-delete",
];

/// Number of [`PHASES`] on the large file. The other phases use many files.
const IO_PHASES: usize = 6;

/// Index of the random seeks in [`PHASES`], the only phase of the large file that is measured in
/// operations.
pub(crate) const SEEKS: usize = 5;

/// Layout of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 27 fields, without version and latencies.
    V103,
    /// 48 fields.
    V196,
    /// The 48 fields of 1.96 with another version field.
    V197,
    /// 50 fields: those of 1.97, and the numbers of seeks and of seek processes.
    V198,
}

impl Format {
    /// First field of a record. Records of 1.03 do not contain it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V103 => "1.03",
            Self::V196 => "1.96",
            Self::V197 => "1.97",
            Self::V198 => "1.98",
        }
    }
}

/// Number in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Figure {
    /// Empty field: the phase did not run, or the number was not measured.
    #[default]
    Empty,
    /// Plus signs: the phase took less than 0.5 s, and bonnie++ does not print its number.
    Short,
    /// Printed number.
    Known(f64),
}

impl Figure {
    /// Printed number.
    pub(crate) fn known(self) -> Option<f64> {
        match self {
            Self::Known(value) => Some(value),
            Self::Empty | Self::Short => None,
        }
    }
}

/// Results of one phase in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhaseFigures {
    /// KiB/s for phases that move the large file, otherwise seeks or files per second.
    pub rate: Figure,
    /// CPU time over elapsed time in percent of one CPU.
    pub cpu: Figure,
    /// Longest operation.
    pub latency: Option<Nanos>,
}

/// Type and maximum size of the files in the file phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Largest {
    /// Regular files of at most this many bytes.
    Bytes(u64),
    /// Hard links to one file.
    Link,
    /// Symbolic links to one file.
    Symlink,
}

/// Record of bonnie++.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Layout that the record was read from or is to be written in.
    pub format: Format,
    /// Version of the program that measured, such as `2.00a`.
    pub version: String,
    /// Name of the record, often the host name.
    pub name: String,
    /// Concurrency option of bonnie++, which has no effect there.
    pub concurrency: Option<u64>,
    /// Random seed: a number or the name of a file with numbers; empty if not recorded.
    pub seed: String,
    /// Size of the large file.
    pub file: Option<Bytes>,
    /// Bytes per I/O call of the block phases.
    pub chunk: Option<Bytes>,
    /// Number of random seeks.
    pub seeks: Option<u64>,
    /// Number of seek processes or threads.
    pub seekers: Option<u64>,
    /// Number of files in units of 1024.
    pub files: Option<u64>,
    /// Size of the largest file, or type of the links.
    pub largest: Option<Largest>,
    /// Size of the smallest file in bytes.
    pub smallest: Option<u64>,
    /// Number of directories that contain the files.
    pub directories: Option<u64>,
    /// Bytes per I/O call of the file phases.
    pub file_chunk: Option<u64>,
    /// Results of [`PHASES`], in the same order.
    pub phases: [PhaseFigures; 12],
}

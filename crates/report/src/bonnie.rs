//! Records of bonnie++: comma-separated lines that many programs and old results are made of.
//!
//! Text enters through [`read`] and becomes [`Record`]s; [`write`] makes text of them again. A run
//! of fslab becomes records through [`export`], so that the tools made for them can show it, and
//! records become a run through [`import`], so that old results can be read with the tables of
//! today. Nothing here measures or opens a file. What a record does not say stays unknown.
//!
//! The layouts are facts of the programs that print them: bonnie++ 1.03, 1.96, 1.97, and 1.98,
//! whose records 2.00 and 2.00a print as well (bonnie++(8), and the header lines of its CSV).

mod export;
mod import;
mod read;
mod write;

#[cfg(test)]
pub(crate) mod tests;

use model::{Bytes, Nanos};

pub use export::{ExportError, export};
pub use import::{Importing, import};
pub use read::{ReadError, read};
pub use write::write;

/// The phases in the order of the fields of a record, by the names that suite `bonnie` gives them.
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

/// Number of [`PHASES`] of the large file; the others use many files.
const IO_PHASES: usize = 6;

/// Index in [`PHASES`] of the random seeks, the only phase of the large file measured in
/// operations.
const SEEKS: usize = 5;

/// A layout of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 27 fields without a version and without latencies.
    V103,
    /// 48 fields.
    V196,
    /// The same 48 fields; only the number differs, for a mistake of 1.96 that was mended.
    V197,
    /// 50 fields: how many seeks by how many processes came in.
    V198,
}

impl Format {
    /// The first field of its records, but for 1.03, whose records have none.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V103 => "1.03",
            Self::V196 => "1.96",
            Self::V197 => "1.97",
            Self::V198 => "1.98",
        }
    }
}

/// One number of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Figure {
    /// An empty field: the phase did not run, or was not measured.
    #[default]
    Empty,
    /// Plus signs: the phase ran and took less than half a second, so its number was withheld.
    Short,
    /// The number.
    Known(f64),
}

/// Results of one phase in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PhaseFigures {
    /// KiB/s for phases that move a large file, else seeks or files per second.
    pub rate: Figure,
    /// CPU time over elapsed time in percent of one CPU.
    pub cpu: Figure,
    /// The longest operation.
    pub latency: Option<Nanos>,
}

/// Type of the files of the file phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Largest {
    /// Regular files of at most this many bytes.
    Bytes(u64),
    /// Hard links to one file.
    Link,
    /// Symbolic links to one file.
    Symlink,
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The layout it was read from, or is written in.
    pub format: Format,
    /// Version of the program that measured: `2.00a`.
    pub version: String,
    /// Name given to the record, often that of the machine.
    pub name: String,
    /// Concurrency as given to the program, which never made use of it.
    pub concurrency: Option<u64>,
    /// Random seed: a number, or the name of a file of numbers; empty if not recorded.
    pub seed: String,
    /// Size of the large file.
    pub file: Option<Bytes>,
    /// Bytes of one call of the block phases.
    pub chunk: Option<Bytes>,
    /// Number of random seeks.
    pub seeks: Option<u64>,
    /// Number of seek processes or threads.
    pub seekers: Option<u64>,
    /// Number of files, in units of 1024.
    pub files: Option<u64>,
    /// Size of the largest file, or what kind of link they are.
    pub largest: Option<Largest>,
    /// Size of the smallest file in bytes.
    pub smallest: Option<u64>,
    /// Number of directories the files are spread over.
    pub directories: Option<u64>,
    /// Bytes per I/O call of the file phases.
    pub file_chunk: Option<u64>,
    /// The figures of [`PHASES`], in their order.
    pub phases: [PhaseFigures; 12],
}

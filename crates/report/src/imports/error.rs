//! Errors of importers.

use thiserror::Error;

use crate::bonnie::ReadError;

/// Reason that a file cannot be imported. Messages contain the place in the file, not its path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImportError {
    /// The file is not valid JSON, or a value has another type.
    #[error("line {line}, column {column}: {what}")]
    Json {
        /// Line number, from 1.
        line: usize,
        /// Column number, from 1.
        column: usize,
        /// Error of the parser.
        what: String,
    },
    /// The file is not valid XML.
    #[error("line {line}, column {column}: {what}")]
    Xml {
        /// Line number, from 1.
        line: u32,
        /// Column number, from 1.
        column: u32,
        /// Error of the parser.
        what: String,
    },
    /// The file ends in the middle of a document.
    #[error("line {line}: the file ends before its JSON document is complete; export it again")]
    Truncated {
        /// Number of the last line.
        line: usize,
    },
    /// A document has no results.
    #[error("{place}: {what}")]
    Nothing {
        /// Place in the file.
        place: String,
        /// Missing part.
        what: &'static str,
    },
    /// A field has an invalid value.
    #[error("{place}: expected {expected}, found `{found}`")]
    Field {
        /// Line and field, or path of the key.
        place: String,
        /// Expected content.
        expected: &'static str,
        /// Actual content.
        found: String,
    },
    /// A terse line has a version that is not supported.
    #[error(
        "line {line}: terse version {version} is not supported; run fio with --terse-version=3 or \
         --output-format=json"
    )]
    TerseVersion {
        /// Line number, from 1.
        line: usize,
        /// Version.
        version: char,
    },
    /// Numbers of a file contradict each other.
    #[error("{place}: {what}")]
    Contradiction {
        /// Place in the file.
        place: String,
        /// Both numbers and a hint.
        what: String,
    },
    /// Two records may be repetitions or parallel workers.
    #[error(
        "lines {first} and {second} are both job `{job}` of group {group}: either two runs of fio, \
         or workers of one run; write each run to a separate file"
    )]
    Ambiguous {
        /// Line of the first record.
        first: usize,
        /// Line of the second record.
        second: usize,
        /// Name of the job.
        job: String,
        /// Reporting group.
        group: String,
    },
    /// See [`ReadError`].
    #[error(transparent)]
    Bonnie(#[from] ReadError),
}

impl ImportError {
    /// True if the file may be of another format.
    pub fn is_of_format(&self) -> bool {
        matches!(self, Self::Bonnie(ReadError::Line { .. } | ReadError::Empty))
    }

    /// True if the file has several fields per line, as CSV of bonnie++ has.
    pub fn is_table(&self) -> bool {
        matches!(self, Self::Bonnie(ReadError::Line { fields, .. }) if *fields > 5)
    }
}

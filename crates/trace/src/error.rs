//! Errors of recordings.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Error when a recording is made, read, or compiled.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("cannot read or write the recording {}: {source}; check the path and its permissions", path.display())]
    File {
        /// Recording.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The file is not a recording of this version.
    #[error("not a recording: {0}; use a file written by `fslab record`")]
    NotARecording(String),
    /// The content is invalid.
    #[error("the recording is damaged: {0}; record the program again")]
    Damaged(String),
    /// The recording requests what a replay does not do.
    #[error("the recording cannot be replayed: {0}")]
    Refused(String),
    /// SQLite failed.
    #[error("the recording is damaged: {0}; record the program again")]
    Database(#[from] rusqlite::Error),
    /// The log cannot be imported.
    #[error("cannot import the log: {0}")]
    Log(String),
    /// The program cannot be found or started.
    #[error("cannot start {program}: {source}; check its name and permissions")]
    Program {
        /// Program.
        program: String,
        /// Cause.
        source: io::Error,
    },
    /// A signal arrived before the program was started.
    #[error("interrupted before the program was started")]
    Interrupted,
    /// The root directory cannot be read.
    #[error("cannot use {} as the root of the recording: {source}; set --root to a directory", path.display())]
    Root {
        /// Directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The kernel refused a request of ptrace(2).
    #[error("recording: {0}; programs that use ptrace, and 32-bit programs, cannot be recorded")]
    Trace(#[source] io::Error),
    /// This machine cannot record.
    #[error("fslab records programs on x86-64 only; record the program on such a machine")]
    Machine,
}

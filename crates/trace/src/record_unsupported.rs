//! Recorder on machines on which it is not available.

use std::{ffi::OsString, path::PathBuf};

use crate::{Recording, TraceError};

/// Program to record, and its root.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory below which operations are recorded.
    pub root: PathBuf,
    /// Program and its arguments.
    pub command: Vec<OsString>,
    /// Number of runs without the recorder before the recording.
    pub baseline: u32,
    /// Called with the number of processes that still run when the program has ended.
    pub waiting: Option<fn(usize)>,
}

/// Result of a recording.
#[derive(Debug)]
pub struct Recorded {
    /// Operations.
    pub recording: Recording,
    /// Exit status of the program; 128 plus the signal that ended it.
    pub status: i32,
}

/// Returns an error.
///
/// # Errors
/// [`TraceError::Machine`].
pub fn record(_settings: &Settings) -> Result<Recorded, TraceError> {
    Err(TraceError::Machine)
}

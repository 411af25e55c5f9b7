//! Arguments of `fslab record` and `fslab trace`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};

/// `fslab record`
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// Recording to write [default: PROGRAM.fstrace].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Record operations below this directory [default: the current directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) command: Vec<OsString>,
}

/// `fslab trace`
#[derive(Debug, Args)]
pub(crate) struct Trace {
    /// Command.
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// Commands of `fslab trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Summarize a recording: operations, bytes, tasks, and what was not recorded.
    Show {
        /// Recording.
        file: PathBuf,
    },
    /// Check that a recording can be read and replayed.
    Check {
        /// Recording.
        file: PathBuf,
    },
    /// Print the operations of a recording, one JSON object per line.
    Dump {
        /// Recording.
        file: PathBuf,
    },
}

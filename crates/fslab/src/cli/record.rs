//! Arguments of `fslab record` and `fslab trace`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};
use model::Nanos;

use super::parse::duration;

/// `fslab record`
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// Recording to write [default: PROGRAM.fstrace].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Record operations below this directory [default: the current directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Run the program this number of times without recording first. Its CPU time then limits the
    /// pauses of a replay with `timing=think`. The program must do the same work each time.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) baseline: u32,
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
    /// Write a copy without names: paths, programs, and arguments become random text.
    ///
    /// Each name becomes another one of the same length, so that the replay does the same work.
    /// Common endings such as .c remain, and so do sizes, times, and the shape of the tree, which
    /// may identify a program. The key is not kept.
    Anonymize {
        /// Recording.
        file: PathBuf,
        /// Recording to write.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Write the reads, writes, and syncs of a recording as an iolog of fio, version 2.
    ///
    /// An iolog has no processes, times, and directories: all operations are in the order in which
    /// they ended. Other calls are left out and counted.
    Iolog {
        /// Recording.
        file: PathBuf,
        /// Iolog to write.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Write the operations of a part of the time as a new recording.
    ///
    /// The files that exist when the part begins are those that the replay creates first.
    Slice {
        /// Recording.
        file: PathBuf,
        /// Begin of the part, since the recording started.
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
        from: Nanos,
        /// End of the part [default: end of the recording].
        #[arg(long, value_name = "TIME", value_parser = duration)]
        to: Option<Nanos>,
        /// Recording to write.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

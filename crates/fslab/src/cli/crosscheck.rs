//! Arguments of `fslab crosscheck` and `fslab export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::Ratio;

use super::{
    Changes,
    parse::{percent, repetitions, setting},
};

/// `fslab crosscheck`
#[derive(Clone, Debug, Args)]
pub(crate) struct Crosscheck {
    /// Workload of suite stream (`fslab list workloads stream`), the suite itself, or a job file of
    /// fio with one section.
    pub(crate) workload: String,
    /// Writable directory to measure.
    pub(crate) directory: PathBuf,
    /// Number of pairs.
    #[arg(long, value_name = "N", default_value = "12")]
    #[arg(value_parser = repetitions, allow_hyphen_values = true)]
    pub(crate) pairs: u32,
    /// Smallest difference of throughput and median latency that matters. That of the 99th
    /// percentile is three times as large.
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    #[arg(value_parser = percent, allow_hyphen_values = true)]
    pub(crate) margin: Ratio,
    /// Measured time, such as 10s.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) runtime: Option<String>,
    /// Size of each file, such as 1GiB.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) file_size: Option<String>,
    /// Set a parameter of the workload, such as block_size=64KiB. Each value of a list is a test.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Name or absolute path of fio.
    #[arg(long = "with", value_name = "FIO", default_value = "fio")]
    pub(crate) fio: String,
    /// Keep the results in this run file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print only the result.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print progress as JSON lines on stderr, and the result as JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fslab export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Plan file, built-in plan, or workloads of suite stream.
    #[arg(required = true, value_name = "PLAN|WORKLOAD")]
    pub(crate) plan: Vec<String>,
    /// Format.
    #[arg(long, value_enum, default_value_t = ExportFormat::Fio)]
    pub(crate) format: ExportFormat,
    /// Directory for the files, one per workload and combination of its parameters [default:
    /// print them].
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

/// Formats of exported workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Job file of fio.
    Fio,
}

//! Arguments of `fslab report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `fslab report`
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Run file, or published results such as tasks-2006@published.
    pub(crate) run: PathBuf,
    /// Write the HTML report to this file. -o, --charts, and --format may be used with it.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Export all charts as SVG and PNG to this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) charts: Option<PathBuf>,
    /// Write to this file, or to stdout if it is `-`. The extension sets the format.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Include the ranking of every test.
    #[arg(long)]
    pub(crate) detail: bool,
}

/// Report formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One row per sample.
    Csv,
    /// Summaries, test results, warnings (docs/schemas/report-1.json).
    Json,
    /// Tables.
    Md,
    /// Workbook.
    Xlsx,
    /// CSV rows, typed.
    Parquet,
    /// Text exposition format.
    Prometheus,
    /// Layout of IOzone (suite iozone).
    Iozone,
    /// Layout of dbench (suite dbench).
    Dbench,
    /// Tables of mdtest (suite mdtest).
    Mdtest,
    /// Text of fio (suites stream and fio).
    Fio,
    /// Terse output of fio, version 3 (suites stream and fio).
    FioTerse,
    /// JSON of fio; each job is the median repetition of a cell (suites stream and fio).
    FioJson,
    /// Like fio-json, with histograms.
    #[value(name = "fio-json+")]
    FioJsonPlus,
    /// Layout of bonnie++ 1.98 (suite bonnie).
    Bonnie,
    /// Layout of bonnie++ 1.96 (suite bonnie).
    #[value(name = "bonnie-1.96")]
    Bonnie196,
}

//! Arguments of `fslab list`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `fslab list`
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct List {
    /// Kind of items.
    #[arg(value_enum, value_name = "KIND")]
    pub(crate) kind: Listed,
    /// Name of a suite, or a word that narrows the list.
    #[arg(value_name = "NAME|WORD")]
    pub(crate) word: Option<String>,
    /// Additional filesystem definitions (TOML).
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,
}

/// Kinds of items of `fslab list`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Listed {
    /// Catalog and availability here.
    Filesystems,
    /// Suites with parameters.
    Suites,
    /// Presets.
    Workloads,
    /// Built-in plans.
    Plans,
    /// System settings and availability here.
    Settings,
    /// Metrics with unit, direction, meaning.
    Metrics,
    /// Warnings with hints.
    Warnings,
    /// Built-in published results.
    Published,
    /// Chart kinds.
    Charts,
    /// Published studies whose tables a report can reproduce.
    Studies,
}

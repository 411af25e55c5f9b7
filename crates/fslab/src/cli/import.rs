//! Arguments of `fslab import`.

use std::path::PathBuf;

use clap::Args;

use super::parse::setting;

/// `fslab import`
#[derive(Debug, Args)]
pub(crate) struct Import {
    // The help lists the formats of the table of importers.
    #[arg(required = true, value_name = "FILE", help = import_formats())]
    pub(crate) files: Vec<PathBuf>,
    /// Configuration names: one per record of bonnie++, otherwise one per file. Records with
    /// the same name are repetitions [default: names in the files].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) names: Vec<String>,
    /// Configuration name of each file: the part of its path that matches, or the group `name` of
    /// the pattern, such as '(?<name>ext4|xfs)'.
    #[arg(long, value_name = "REGEX", conflicts_with = "names")]
    pub(crate) name_from: Option<String>,
    /// State a condition that the files do not contain, such as kernel=6.1. Reports show it as
    /// stated by the user.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) state: Vec<(String, String)>,
    /// Directory of a log of strace: its operations below this directory become a recording for
    /// suite `replay`. Write the log by `strace -f -ttt -T -y -o FILE PROGRAM`.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["names", "name_from", "state"])]
    pub(crate) root: Option<PathBuf>,
    /// Run file [default: first file with .fslab], or recording of a log [default: file with
    /// .fstrace].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Help text of the files to import.
fn import_formats() -> String {
    let titles = report::imports::titles().replace("; ", ", ");
    format!(
        "Results of another benchmark, or `-` for stdin: {titles}; or a log of strace, blkparse, or fio (iolog)"
    )
}

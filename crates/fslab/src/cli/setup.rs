//! Command line of the commands about the installation: documentation, completions, doctor.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};

/// `fslab doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `fslab docs`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fslab docs --man ~/.local/share/man && man fslab-run")]
pub(crate) struct Docs {
    /// Directory of the pages.
    pub(crate) directory: PathBuf,
    /// Write manual pages, in subdirectories man1, man5, and man7.
    #[arg(long, conflicts_with = "check")]
    pub(crate) man: bool,
    /// Only check whether the pages are up to date.
    #[arg(long)]
    pub(crate) check: bool,
}

/// `fslab completions`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    fslab completions bash > ~/.local/share/bash-completion/completions/fslab\n  \
    fslab completions zsh > ~/.zfunc/_fslab      (with ~/.zfunc in fpath)\n  \
    fslab completions fish > ~/.config/fish/completions/fslab.fish")]
pub(crate) struct Completions {
    /// Shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Shells with completion.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    /// bash 4.4 or newer.
    Bash,
    /// zsh.
    Zsh,
    /// fish 3.0 or newer.
    Fish,
}

/// `fslab complete`
#[derive(Debug, Args)]
pub(crate) struct Complete {
    /// Words of the command line up to the cursor.
    #[arg(last = true, value_name = "WORD")]
    pub(crate) words: Vec<OsString>,
}

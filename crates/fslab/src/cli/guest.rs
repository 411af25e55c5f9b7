//! What can be typed after `fslab guest`.

use std::ffi::OsString;

use clap::{Args, Subcommand};

/// `fslab guest`
#[derive(Debug, Args)]
pub(crate) struct Guest {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: GuestCommand,
}

/// What to do about guests.
#[derive(Debug, Subcommand)]
pub(crate) enum GuestCommand {
    /// Say which kinds of guests run here, with which kernels, and what they can measure.
    ///
    /// Each kind is tried, and where it does not run the reason is told with what would help. For
    /// each kernel that can be named, the filesystems are listed that it has and whose mkfs is on
    /// this host.
    #[command(after_help = "Example:\n  fslab guest check && fslab demo --guest auto")]
    Check,
    /// Kernels for guests: list them, or build one for user-mode Linux.
    #[command(arg_required_else_help = true)]
    Kernel(Kernel),
}

/// `fslab guest kernel`
#[derive(Debug, Args)]
pub(crate) struct Kernel {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: KernelCommand,
}

/// What to do about kernels.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Build a kernel for user-mode Linux from a distribution's source, and keep it in the cache.
    ///
    /// It boots several times as fast as the packaged one, has all filesystems of its version built
    /// in, and has room for the registers of every processor. That takes a compiler (make, gcc,
    /// flex, bison, bc), 2 GiB for a while, and some 14 minutes of one processor; no rights.
    /// `--guest uml` takes it from then on, and the same is not built twice.
    #[command(after_help = "Examples:\n  \
        apt-get download linux-source-6.1      (no rights are needed)\n  \
        fslab guest kernel build --source linux-source-6.1_*.deb\n  \
        fslab run plan.toml --guest uml --kernel 6.1\n\n\
        Exit status: 0 built or found again, 2 source, program, or room is missing, 3 it cannot \
        be built, 130 interrupted.")]
    Build(Build),
    /// List the kernels that can be named: installed, built here, or of packages kept in the cache.
    #[command(after_help = "Example:\n  fslab guest kernel list")]
    List,
}

/// `fslab guest kernel build`
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The source: linux-source-VERSION.tar.xz, the package it is in, an unpacked folder, or the
    /// version of an installed one [default: the newest installed].
    #[arg(long, value_name = "FILE|FOLDER|VERSION")]
    pub(crate) source: Option<OsString>,
    /// How many files to compile at once [default: as many as there are processors].
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
}

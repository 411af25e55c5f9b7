//! Command line of `fslab guest`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};
use guest::build::KernelOption;

/// `fslab guest`
#[derive(Debug, Args)]
pub(crate) struct Guest {
    /// Command.
    #[command(subcommand)]
    pub(crate) command: GuestCommand,
}

/// Commands of `fslab guest`.
#[derive(Debug, Subcommand)]
pub(crate) enum GuestCommand {
    /// Check which kinds of guests run here and which filesystems they can measure.
    ///
    /// Prints the reason and a hint for each unsupported kind, and for each known kernel the
    /// filesystems whose mkfs program is installed.
    #[command(after_help = "Example:\n  fslab guest check && fslab demo --guest auto")]
    Check,
    /// List or build guest kernels.
    #[command(arg_required_else_help = true)]
    Kernel(Kernel),
}

/// `fslab guest kernel`
#[derive(Debug, Args)]
pub(crate) struct Kernel {
    /// Command.
    #[command(subcommand)]
    pub(crate) command: KernelCommand,
}

/// Commands of `fslab guest kernel`.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Build a user-mode Linux kernel from distribution source and cache it.
    ///
    /// Boots faster than the packaged kernel, has all filesystems built in, supports CPUs with AMX.
    /// Needs make, gcc, flex, bison, bc, 2 GiB, and about 15 minutes; no root.
    #[command(after_help = "Examples:\n  \
        apt-get download linux-source-6.1      (no root required)\n  \
        fslab guest kernel build --source linux-source-6.1_*.deb\n  \
        fslab run plan.toml --guest uml --kernel 6.1\n  \
        fslab guest kernel build --patch reiser4.patch.gz --config REISER4_FS=y\n\n\
        Exit status: 0 built or cached, 2 missing source, program, or disk space, or a patch or \
        option that cannot be applied, 3 build failed, 130 interrupted.")]
    Build(Build),
    /// List known kernels: installed, built, or from cached packages.
    #[command(after_help = "Example:\n  fslab guest kernel list")]
    List,
}

/// `fslab guest kernel build`
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// linux-source-VERSION.tar.xz, its package, a directory, or an installed version [default:
    /// newest].
    #[arg(long, value_name = "FILE|DIRECTORY|VERSION")]
    pub(crate) source: Option<OsString>,
    /// Patch to apply to the source: a unified diff for patch -p1, or compressed (.gz, .xz, .zst).
    /// Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) patch: Vec<PathBuf>,
    /// Kernel option to set: y, n, a number, or a string in double quotes. Repeatable.
    #[arg(long, value_name = "OPTION=VALUE", value_parser = KernelOption::parse)]
    pub(crate) config: Vec<KernelOption>,
    /// Parallel compile jobs [default: number of CPUs].
    #[arg(long, value_name = "N", value_parser = super::parse::jobs)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) jobs: Option<u16>,
}

//! Arguments for runs on several hosts.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Hosts of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Hosts {
    /// Hosts that mount the directory `storage.cluster`, separated by commas. One process per host
    /// is started with the launcher of the MPI library.
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', conflicts_with = "hostfile")]
    pub(crate) hosts: Vec<String>,
    /// File with one host per line; a host file of Open MPI or MPICH is accepted.
    #[arg(long, value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,
    /// Command that starts one process per host [default: mpirun, in a Slurm allocation srun]. A
    /// command with {hosts} (their number) or {list} (their names) starts all processes itself,
    /// such as 'srun -N {hosts} --ntasks-per-node=1'.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) launcher: Option<String>,
}

/// `fslab cluster`
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

/// Commands of `fslab cluster`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Check the MPI library, the clocks, and the mount on each host.
    Check(ClusterCheck),
}

/// `fslab cluster check`
#[derive(Debug, Args)]
pub(crate) struct ClusterCheck {
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    /// Directory of the cluster filesystem. Its mount is checked on each host, with a small file
    /// that the first host writes and removes.
    pub(crate) directory: Option<PathBuf>,
}

//! Messages between the hosts of a run.
//!
//! A run on several hosts has one process per host, its agent. Program `fslab-mpi` connects the
//! agents with the process that conducts the run. It opens the MPI library of the site at run time
//! and transports bytes; their meaning belongs to crate `fslab`.
//!
//! ```text
//! conductor ── Unix socket ── rank 0 ══ MPI ══ rank 1 … N ── pipes ── agents
//! ```
//!
//! [`Fabric`] is the interface of the transport: a sleeping barrier, a broadcast, and a gather.
//! Program `fslab-mpi` implements it with MPI, and [`InProcess`] with threads. [`relay()`]
//! exchanges the messages in rounds; a round that does not end is the sign that a host was lost.
//! [`clock`] measures the offsets of the clocks.
#![forbid(unsafe_code)]

pub mod clock;
mod fabric;
mod in_process;
mod relay;
#[cfg(test)]
mod tests;
mod wire;

pub use fabric::{Fabric, FabricError, Patience};
pub use in_process::InProcess;
pub use relay::{Endpoint, Member, Pulse, RelayError, ToConductor, ToRelay, relay};
pub use wire::{read_frame, write_frame};

/// Time without a completed round after which a host counts as lost. A round takes at most about a
/// second.
pub const LOST_AFTER: std::time::Duration = std::time::Duration::from_secs(8);

/// Exit status of a relay that lost its fabric.
pub const EXIT_LOST: u8 = 3;

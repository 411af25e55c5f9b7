//! Runs on several hosts: the hosts of a plan, and the results of each host.

use serde::{Deserialize, Serialize};

use crate::{
    activity::SystemActivity,
    histogram::Histogram,
    phase::Series,
    units::{Bytes, Nanos, Ops},
};

/// Hosts that mount the directory of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterHosts {
    /// Names of the hosts; empty if the command line names them.
    pub hosts: Vec<String>,
    /// Command that starts one process per host; `None` for mpirun. `{hosts}` is the number of
    /// hosts, `{list}` their names, separated by commas.
    pub launcher: Option<String>,
}

/// Hosts by which reads are shifted unless a workload sets `reader_shift`.
pub const READER_SHIFT: u32 = 1;

/// Results of one host in a phase. Instants are in the time of the conducting host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// Phase.
    pub phase: String,
    /// Index of the host among those of the run.
    pub index: u32,
    /// Name of the host.
    pub host: String,
    /// Counted operations of its workers.
    pub ops: Ops,
    /// Counted bytes of its workers.
    pub bytes: Bytes,
    /// Start of its first worker.
    pub started: Nanos,
    /// End of its last worker, after the final sync.
    pub ended: Nanos,
    /// Clock of the host minus clock of the conducting host, in nanoseconds.
    pub clock_offset: i64,
    /// Largest possible error of `clock_offset`.
    pub clock_bound: Nanos,
    /// Latencies of all operations of its workers.
    pub histogram: Histogram,
    /// Work of its workers over time.
    pub series: Series,
    /// Traffic of its network interfaces; `None` if the kernel does not provide it.
    pub network: Option<Network>,
    /// System activity of the host.
    pub activity: SystemActivity,
}

impl HostResult {
    /// Time from the start of the first worker to the end of the last one.
    pub fn span(&self) -> Nanos {
        self.ended - self.started
    }
}

/// Traffic of all network interfaces of a host except the loopback interface (/proc/net/dev), and
/// TCP retransmissions (/proc/net/snmp).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Bytes received.
    pub received: Bytes,
    /// Bytes sent.
    pub sent: Bytes,
    /// Packets received.
    pub packets_received: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// TCP segments sent again.
    pub retransmitted: u64,
}

impl Network {
    /// Traffic since an earlier reading.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            received: self.received - before.received,
            sent: self.sent - before.sent,
            packets_received: self.packets_received.saturating_sub(before.packets_received),
            packets_sent: self.packets_sent.saturating_sub(before.packets_sent),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
        }
    }
}

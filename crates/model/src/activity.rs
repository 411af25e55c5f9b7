//! System activity: devices, CPU time, stall times, and kernel messages recorded while one step of
//! a trial ran.
//!
//! The rig records it from kernel interfaces, the store keeps it with the trial, and the runner
//! derives samples and warnings from it. A value that the kernel does not provide is `None`, never
//! 0, and is listed in [`SystemActivity::unavailable`].

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// System activity recorded during a phase or a lifecycle step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemActivity {
    /// Length of the recorded window. It starts before worker setup and ends when the last worker
    /// has ended, so it is slightly longer than the timed region.
    pub window: Nanos,
    /// Block devices: those of the filesystem first, each followed by the devices below it.
    pub devices: Vec<DeviceActivity>,
    /// Devices of the stack without I/O counters. Sums over `devices` are incomplete if there are
    /// any.
    pub without_counters: Vec<DeviceWithoutCounters>,
    /// CPU time by consumer.
    pub cpu: Option<CpuActivity>,
    /// Page faults of the workload.
    pub faults: Option<Faults>,
    /// Pressure stall information of the whole machine.
    pub pressure: Option<Pressure>,
    /// Values sampled at intervals.
    pub gauges: GaugeSeries,
    /// Number of CPU throttling events (temperature or power limit).
    pub throttled: Option<u64>,
    /// Traffic of the clients of network filesystems, and of RDMA ports, if there are any.
    pub clients: Vec<ClientActivity>,
    /// Kernel messages about the filesystem or its devices, and messages that report an error.
    pub log: Vec<LogLine>,
    /// Monitoring overhead.
    pub overhead: Option<Overhead>,
    /// Values that are not available, with the reason and a hint.
    pub unavailable: Vec<Unavailable>,
}

impl SystemActivity {
    /// True if the window is at least ten times the resolution of the idle time, which advances in
    /// ticks. Shorter windows are too short for the counters of [`HostCpu`].
    pub fn has_host_counters(&self) -> bool {
        let step = self.cpu.as_ref().map(|cpu| cpu.host.resolution.0);
        step.is_some_and(|step| self.window.0 >= step.saturating_mul(10))
    }
}

/// Traffic of the client of a network filesystem on this host (all its mounts), or of all RDMA
/// ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientActivity {
    /// `NFS`, `Lustre`, or `RDMA`.
    pub name: String,
    /// Bytes read from servers, or received.
    pub read: Bytes,
    /// Bytes written to servers, or sent.
    pub written: Bytes,
    /// Requests, if they are counted.
    pub requests: Option<u64>,
    /// Requests that were sent again, if they are counted.
    pub retransmissions: Option<u64>,
}

impl ClientActivity {
    /// No traffic.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Adds the traffic of another host to that of the same name.
    pub fn add(all: &mut Vec<Self>, other: &Self) {
        let Some(own) = all.iter_mut().find(|own| own.name == other.name) else {
            return all.push(other.clone());
        };
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        own.read = own.read + other.read;
        own.written = own.written + other.written;
        own.requests = sum(own.requests, other.requests);
        own.retransmissions = sum(own.retransmissions, other.retransmissions);
    }
}

/// I/O of one block device. The counters are those of Documentation/admin-guide/iostats.rst.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceActivity {
    /// Kernel name.
    pub name: String,
    /// 0: a device of the filesystem; 1: the device below it (the disk of a partition, the disk
    /// that holds an image); and so on.
    pub depth: u32,
    /// Bytes read.
    pub read: Bytes,
    /// Bytes written.
    pub written: Bytes,
    /// Read requests completed.
    pub reads: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Read requests merged with an adjacent request before they reached the device.
    pub reads_merged: u64,
    /// Write requests merged with an adjacent request before they reached the device.
    pub writes_merged: u64,
    /// Bytes discarded; `None` before Linux 4.18.
    pub discarded: Option<Bytes>,
    /// Flush requests completed; `None` before Linux 5.5.
    pub flushes: Option<u64>,
    /// Time that requests spent in the device and its queue, summed over requests.
    pub queue_time: Nanos,
    /// Time with at least one request in flight.
    pub busy: Nanos,
}

/// Block device without I/O counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceWithoutCounters {
    /// Kernel name.
    pub name: String,
    /// Same meaning as [`DeviceActivity::depth`].
    pub depth: u32,
}

/// CPU time by consumer, from the run time that the scheduler accounts for each task. It does not
/// depend on ticks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuActivity {
    /// Workload: fslab without its monitor threads, its worker processes, and the programs that
    /// they run.
    pub workload: Nanos,
    /// Monitoring: the threads of fslab that record and display.
    pub monitoring: Nanos,
    /// Kernel threads with CPU time, in descending order.
    pub kernel: Vec<KernelThread>,
    /// Other processes with the most CPU time, in descending order.
    pub others: Vec<OtherProcess>,
    /// CPU time of all other processes, including those in `others`.
    pub others_total: Nanos,
    /// Whole machine.
    pub host: HostCpu,
}

/// Kernel threads of one kind, and the CPU time of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Origin of the work.
    pub origin: Origin,
    /// Name without the instance number: `jbd2/loop0`, `kworker btrfs-endio`.
    pub name: String,
    /// CPU time.
    pub time: Nanos,
}

/// Origin of a kernel thread's work, derived from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Journal or log of a filesystem.
    Journal,
    /// Writeback of dirty pages.
    Writeback,
    /// Filesystem workers: allocation, checksums, compression, I/O completion.
    Filesystem,
    /// Deferred filesystem work: inode tables, discards, cleaning.
    Deferred,
    /// Block layer and its softirqs.
    Block,
    /// Loop devices.
    Loop,
    /// Layers between filesystem and disk: device mapper, md, dm-crypt.
    Stack,
    /// Memory reclaim and compaction.
    Reclaim,
    /// Workqueues shared by the whole kernel. Filesystems queue some work there (btrfs: reclaim of
    /// metadata space), but the thread name does not identify the filesystem.
    Shared,
    /// Other kernel threads, most likely unrelated to the workload.
    Other,
}

impl Origin {
    /// All origins in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Journal,
        Self::Writeback,
        Self::Filesystem,
        Self::Deferred,
        Self::Block,
        Self::Loop,
        Self::Stack,
        Self::Reclaim,
        Self::Shared,
        Self::Other,
    ];

    /// Name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Writeback => "writeback",
            Self::Filesystem => "filesystem",
            Self::Deferred => "deferred",
            Self::Block => "block",
            Self::Loop => "loop",
            Self::Stack => "stack",
            Self::Reclaim => "reclaim",
            Self::Shared => "shared",
            Self::Other => "other",
        }
    }

    /// True if the CPU time is attributed to the workload.
    pub const fn attributed(self) -> bool {
        !matches!(self, Self::Shared | Self::Other)
    }
}

/// Process unrelated to the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Process name.
    pub name: String,
    /// Control group, unless it is the root group or unknown.
    pub group: Option<String>,
    /// CPU time.
    pub time: Nanos,
}

/// CPU time of the whole machine, summed over CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostCpu {
    /// Online CPUs.
    pub processors: u32,
    /// Non-idle time: window times CPUs minus idle and iowait.
    pub busy: Nanos,
    /// Idle time with outstanding I/O. Approximate, because I/O is not bound to a CPU.
    pub iowait: Nanos,
    /// Hard and soft interrupts; `None` if the kernel does not account them separately.
    pub interrupts: Option<Nanos>,
    /// Time stolen by the hypervisor.
    pub steal: Nanos,
    /// Resolution of `busy` and of all values computed from it.
    pub resolution: Nanos,
}

impl CpuActivity {
    /// CPU time of attributed kernel threads.
    pub fn attributed(&self) -> Nanos {
        self.kernel.iter().filter(|thread| thread.origin.attributed()).map(|t| t.time).sum()
    }

    /// CPU time of all other kernel threads.
    pub fn kernel_other(&self) -> Nanos {
        self.kernel.iter().filter(|thread| !thread.origin.attributed()).map(|t| t.time).sum()
    }

    /// CPU time of the kernel threads of one origin.
    pub fn of(&self, origin: Origin) -> Nanos {
        self.kernel.iter().filter(|thread| thread.origin == origin).map(|t| t.time).sum()
    }

    /// Attributed CPU time: the workload and attributed kernel threads.
    pub fn attributed_total(&self) -> Nanos {
        self.workload + self.attributed()
    }

    /// CPU time of all tasks.
    pub fn accounted(&self) -> Nanos {
        self.attributed_total() + self.kernel_other() + self.monitoring + self.others_total
    }

    /// Busy time that belongs to no task, in nanoseconds: interrupts on idle CPUs, and tasks that
    /// started and ended between two samples. Negative if tick-based and task-based counts
    /// disagree.
    pub fn unattributed(&self) -> i64 {
        let signed = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
        signed(self.host.busy).saturating_sub(signed(self.accounted()))
    }
}

/// Page faults (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Faults {
    /// Faults served without device I/O.
    pub minor: u64,
    /// Faults that read from a device.
    pub major: u64,
}

/// Pressure stall information (Documentation/accounting/psi.rst): stall times of the whole machine
/// within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pressure {
    /// Time in which at least one task waited for a CPU.
    pub cpu_some: Nanos,
    /// Time in which at least one task waited for memory.
    pub memory_some: Nanos,
    /// Time in which all non-idle tasks waited for memory.
    pub memory_full: Nanos,
    /// Time in which at least one task waited for I/O.
    pub io_some: Nanos,
    /// Time in which all non-idle tasks waited for I/O.
    pub io_full: Nanos,
}

/// Periodically sampled values. Every list is empty or has the length of `times`. If the lists
/// become long, every second value is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GaugeSeries {
    /// Times of the samples since the start of the window.
    pub times: Vec<Nanos>,
    /// Dirty memory of the machine in bytes (`Dirty` of /proc/meminfo).
    pub dirty: Vec<u64>,
    /// Memory under writeback in bytes (`Writeback` of /proc/meminfo).
    pub writeback: Vec<u64>,
    /// Mean CPU frequency in Hz; empty if not available.
    pub frequency: Vec<u64>,
}

/// Kernel message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Log level, 0 (emergency) to 7 (debug), see syslog(2).
    pub level: u8,
    /// True for an error of the filesystem or its devices, which fails the trial.
    pub fatal: bool,
    /// Message text.
    pub text: String,
}

/// Monitoring overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// CPU time of the monitor threads within the window.
    pub cpu: Nanos,
    /// Resident memory of fslab at the start of the window, before workload buffers are allocated.
    pub memory: Bytes,
    /// Number of samples taken.
    pub samples: u64,
}

/// Value that is not available.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unavailable {
    /// Name of the value: `PSI`, `flush requests of vda`.
    pub what: String,
    /// Reason and hint.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_and_unattributed_time_add_up_to_host_time() {
        let thread = |origin, time| KernelThread { origin, name: "k".into(), time: Nanos(time) };
        let cpu = CpuActivity {
            workload: Nanos(100),
            monitoring: Nanos(5),
            kernel: vec![
                thread(Origin::Journal, 20),
                thread(Origin::Other, 7),
                thread(Origin::Journal, 3),
            ],
            others_total: Nanos(11),
            host: HostCpu { busy: Nanos(150), ..HostCpu::default() },
            ..CpuActivity::default()
        };
        assert_eq!(cpu.attributed(), Nanos(23));
        assert_eq!(cpu.of(Origin::Journal), Nanos(23));
        assert_eq!(cpu.attributed_total(), Nanos(123));
        assert_eq!(cpu.unattributed(), 150 - (100 + 5 + 23 + 7 + 11));
        let more = CpuActivity { workload: Nanos(200), ..cpu };
        assert!(more.unattributed() < 0);
    }

    #[test]
    fn missing_fields_get_defaults() {
        let activity: SystemActivity = serde_json::from_str(r#"{"window": 5}"#).unwrap();
        assert_eq!(activity, SystemActivity { window: Nanos(5), ..SystemActivity::default() });
        for origin in Origin::ALL {
            let name = serde_json::Value::String(origin.name().into());
            assert_eq!(serde_json::from_value::<Origin>(name).ok(), Some(origin));
        }
    }
}

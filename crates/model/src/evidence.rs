//! What the machine did while one step of a trial ran: the evidence beside its numbers.
//!
//! Collected by the rig from what the kernel tells, stored with the trial, judged and turned into
//! samples by the conductor. What the kernel does not tell is `None` and stands in
//! [`Evidence::absent`]; it is never a zero.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// What was seen between the start and the end of a phase or a life-cycle step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Length of the window in which all below was counted: it begins before the workers are set up
    /// and ends after the last of them is done, so it is a little longer than what was timed.
    pub window: Nanos,
    /// The devices: those of the filesystem first, each followed by what it lies on.
    pub devices: Vec<DeviceWork>,
    /// Devices of the stack that did not tell what they did: a sum over the others is not the
    /// whole.
    pub uncounted: Vec<Uncounted>,
    /// CPU time by who used it.
    pub cpu: Option<CpuWork>,
    /// Page faults of the workload.
    pub faults: Option<Faults>,
    /// Time lost to waiting for a resource, of the whole machine.
    pub pressure: Option<Pressure>,
    /// What was looked at again and again.
    pub gauges: Gauges,
    /// Times that a processor was slowed down for its temperature or power.
    pub throttled: Option<u64>,
    /// Lines of the kernel's log about the filesystem or its devices, or that tell of an error.
    pub log: Vec<LogLine>,
    /// What it cost to look.
    pub overhead: Option<Overhead>,
    /// What could not be seen, and what would help, in words.
    pub absent: Vec<Absent>,
}

impl Evidence {
    /// Whether the window is long enough for what the machine counts in steps: at least ten times
    /// the resolution of its idle time.
    pub fn tells_of_host(&self) -> bool {
        let step = self.cpu.as_ref().map(|cpu| cpu.host.resolution.0);
        step.is_some_and(|step| self.window.0 >= step.saturating_mul(10))
    }
}

/// What one block device did. Counters as in Documentation/admin-guide/iostats.rst.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceWork {
    /// The kernel's name.
    pub name: String,
    /// 0 for a device that the filesystem is on, 1 for what that lies on (the disk of a partition,
    /// the disk that holds an image), and so on.
    pub depth: u32,
    /// Bytes read.
    pub read: Bytes,
    /// Bytes written.
    pub written: Bytes,
    /// Read requests completed.
    pub reads: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Reads that were joined with a neighbor before they reached the device.
    pub reads_merged: u64,
    /// Writes that were joined with a neighbor before they reached the device.
    pub writes_merged: u64,
    /// Bytes discarded; `None` before Linux 4.18.
    pub discarded: Option<Bytes>,
    /// Flush requests completed; `None` before Linux 5.5.
    pub flushes: Option<u64>,
    /// Time that requests spent in the device and its queue, summed over requests.
    pub queue_time: Nanos,
    /// Time during which at least one request was there.
    pub busy: Nanos,
}

/// A device that did not tell what it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncounted {
    /// The kernel's name.
    pub name: String,
    /// As in [`DeviceWork::depth`].
    pub depth: u32,
}

/// CPU time by who used it. For each task the scheduler's own sum of run time, not ticks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuWork {
    /// The workload: this process without what watches it, its worker processes, and the programs
    /// it ran.
    pub workload: Nanos,
    /// What watched: the threads of this process that sample and show.
    pub watching: Nanos,
    /// Kernel threads, most time first; those that used none are left out.
    pub kernel: Vec<KernelThread>,
    /// Other processes, most time first, the first few by name.
    pub others: Vec<OtherProcess>,
    /// All other processes, those named above included.
    pub others_total: Nanos,
    /// The machine as a whole.
    pub host: HostCpu,
}

/// A kind of kernel thread and what all of that kind used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Why it works.
    pub origin: Origin,
    /// Its name without the number that tells it from its like: `jbd2/loop0`,
    /// `kworker btrfs-endio`.
    pub name: String,
    /// CPU time.
    pub time: Nanos,
}

/// What a kernel thread works for, told from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The journal or log of a filesystem.
    Journal,
    /// Writing dirty pages back.
    Writeback,
    /// Workers of a filesystem: allocation, checksums, compression, end of I/O.
    Filesystem,
    /// What a filesystem puts off: inode tables, discards, cleaning.
    Background,
    /// The block layer and its interrupts' soft halves.
    Block,
    /// Loop devices.
    Loop,
    /// Layers between filesystem and disk: device mapper, RAID, encryption.
    Stack,
    /// Reclaiming and compacting memory.
    Reclaim,
    /// Queues that the whole kernel shares. Filesystems put some of their work there, as btrfs does
    /// with making room for metadata; a thread's name does not tell whose it was.
    Shared,
    /// Anything else of the kernel, most likely not caused by the workload.
    Other,
}

impl Origin {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Journal,
        Self::Writeback,
        Self::Filesystem,
        Self::Background,
        Self::Block,
        Self::Loop,
        Self::Stack,
        Self::Reclaim,
        Self::Shared,
        Self::Other,
    ];

    /// Its word in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Writeback => "writeback",
            Self::Filesystem => "filesystem",
            Self::Background => "background",
            Self::Block => "block",
            Self::Loop => "loop",
            Self::Stack => "stack",
            Self::Reclaim => "reclaim",
            Self::Shared => "shared",
            Self::Other => "other",
        }
    }

    /// Whether its time counts as caused by the workload.
    pub const fn attributed(self) -> bool {
        !matches!(self, Self::Shared | Self::Other)
    }
}

/// A process that is none of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Its name.
    pub name: String,
    /// Its control group, if the kernel tells one other than the root.
    pub group: Option<String>,
    /// CPU time.
    pub time: Nanos,
}

/// CPU time of the whole machine, over all processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostCpu {
    /// Processors in use.
    pub processors: u32,
    /// Time not idle: the window times processors, less idle and waiting for I/O.
    pub busy: Nanos,
    /// Idle while a request was outstanding; a hint only, since nothing binds it to a processor.
    pub iowait: Nanos,
    /// Interrupts and their soft halves; `None` where the kernel does not account them apart.
    pub interrupts: Option<Nanos>,
    /// Time the hypervisor gave to others.
    pub steal: Nanos,
    /// The step in which `busy` is counted; the sums cannot agree better than this.
    pub resolution: Nanos,
}

impl CpuWork {
    /// Kernel threads that the workload is taken to have caused.
    pub fn attributed(&self) -> Nanos {
        self.kernel.iter().filter(|thread| thread.origin.attributed()).map(|t| t.time).sum()
    }

    /// Kernel threads that it is not.
    pub fn kernel_other(&self) -> Nanos {
        self.kernel.iter().filter(|thread| !thread.origin.attributed()).map(|t| t.time).sum()
    }

    /// All kernel threads of one origin.
    pub fn of(&self, origin: Origin) -> Nanos {
        self.kernel.iter().filter(|thread| thread.origin == origin).map(|t| t.time).sum()
    }

    /// The workload with the kernel threads it caused.
    pub fn caused(&self) -> Nanos {
        self.workload + self.attributed()
    }

    /// Everything that some task is known to have used.
    pub fn known(&self) -> Nanos {
        self.caused() + self.kernel_other() + self.watching + self.others_total
    }

    /// What no task accounts for: interrupts on idle processors, and tasks that came and went
    /// between two looks. Nanoseconds; negative where the two ways of counting disagree.
    pub fn unattributed(&self) -> i64 {
        let signed = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
        signed(self.host.busy).saturating_sub(signed(self.known()))
    }
}

/// Page faults (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Faults {
    /// Served without reading a device.
    pub minor: u64,
    /// Had to read a device.
    pub major: u64,
}

/// Pressure stall information (Documentation/accounting/psi.rst): how long tasks of the machine
/// were held up within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pressure {
    /// At least one task waited for a processor.
    pub cpu_some: Nanos,
    /// At least one task waited for memory.
    pub memory_some: Nanos,
    /// All tasks that were not idle waited for memory.
    pub memory_full: Nanos,
    /// At least one task waited for I/O.
    pub io_some: Nanos,
    /// All tasks that were not idle waited for I/O.
    pub io_full: Nanos,
}

/// Values looked at again and again: `at[i]` is when, from the start of the window, and every other
/// list that is not empty has as many values. Thinned out by halves as they get many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gauges {
    /// When.
    pub at: Vec<Nanos>,
    /// Bytes of memory that wait for being written back, of the whole machine (`Dirty` of
    /// /proc/meminfo).
    pub dirty: Vec<u64>,
    /// Bytes of memory being written back, of the whole machine (`Writeback`).
    pub writeback: Vec<u64>,
    /// Mean frequency of the processors in Hz; empty where the kernel does not tell.
    pub frequency: Vec<u64>,
}

/// A line of the kernel's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Its severity, 0 (emergency) to 7 (debug), syslog(2).
    pub level: u8,
    /// Whether it tells of an error of the filesystem or its devices, so that the trial cannot
    /// stand.
    pub fatal: bool,
    /// What it says.
    pub text: String,
}

/// What it cost to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// CPU time of the threads that watched, within the window.
    pub cpu: Nanos,
    /// Resident memory of this process as the window began: all of the program but the buffers of
    /// the workload.
    pub memory: Bytes,
    /// How often it was looked.
    pub looks: u64,
}

/// Something that could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Absent {
    /// What: `pressure`, `flush counts of vda`.
    pub what: String,
    /// Why, and what would help.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_host() {
        let thread = |origin, time| KernelThread { origin, name: "k".into(), time: Nanos(time) };
        let cpu = CpuWork {
            workload: Nanos(100),
            watching: Nanos(5),
            kernel: vec![
                thread(Origin::Journal, 20),
                thread(Origin::Other, 7),
                thread(Origin::Journal, 3),
            ],
            others_total: Nanos(11),
            host: HostCpu { busy: Nanos(150), ..HostCpu::default() },
            ..CpuWork::default()
        };
        assert_eq!(cpu.attributed(), Nanos(23));
        assert_eq!(cpu.of(Origin::Journal), Nanos(23));
        assert_eq!(cpu.caused(), Nanos(123));
        assert_eq!(cpu.unattributed(), 150 - (100 + 5 + 23 + 7 + 11));
        let more = CpuWork { workload: Nanos(200), ..cpu };
        assert!(more.unattributed() < 0);
    }

    #[test]
    fn an_older_record_reads_with_what_it_lacks_absent() {
        let evidence: Evidence = serde_json::from_str(r#"{"window": 5}"#).unwrap();
        assert_eq!(evidence, Evidence { window: Nanos(5), ..Evidence::default() });
        for origin in Origin::ALL {
            let word = serde_json::Value::String(origin.name().into());
            assert_eq!(serde_json::from_value::<Origin>(word).ok(), Some(origin));
        }
    }
}

//! Workers of a phase.

use serde::{Deserialize, Serialize};

/// Workers of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workers {
    /// Number of workers, at least 1.
    pub count: u32,
    /// Kind of the workers.
    pub kind: WorkerKind,
    /// Behavior when the first worker finishes.
    pub stonewall: Stonewall,
    /// CPU affinity.
    pub pin: Pin,
    /// I/O priority; `None`: the default of the process.
    pub io_priority: Option<IoPriority>,
    /// Change of the nice value of the workers, -40 to 40 (nice(2)).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nice: i8,
    /// Workers of this host if the phase runs on several hosts; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<WorkerShare>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is that of serde")]
fn is_zero(number: &i8) -> bool {
    *number == 0
}

/// Workers of one host, of a phase that runs on several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerShare {
    /// Index of the first worker.
    pub first: u32,
    /// Number of workers.
    pub count: u32,
    /// Number by which indices are shifted, modulo the number of all workers. Names, data, and
    /// parts of files depend on the index, so a shifted worker reads what a worker of another host
    /// wrote.
    pub shift: u32,
}

impl Workers {
    /// One thread.
    pub const ONE: Self = Self::threads(1);

    /// Threads without other options.
    pub const fn threads(count: u32) -> Self {
        Self {
            count,
            kind: WorkerKind::Thread,
            stonewall: Stonewall::Off,
            pin: Pin::Free,
            io_priority: None,
            nice: 0,
            share: None,
        }
    }

    /// Number of workers on this host.
    pub fn local(&self) -> u32 {
        self.share.map_or(self.count, |share| share.count)
    }

    /// Index among all workers of the worker with this index on this host.
    pub fn index(&self, local: u32) -> u32 {
        match self.share {
            None => local,
            Some(WorkerShare { first, shift, .. }) => {
                let index = u64::from(first) + u64::from(local) + u64::from(shift);
                u32::try_from(index % u64::from(self.count.max(1))).unwrap_or(local)
            }
        }
    }
}

/// Kind of worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerKind {
    /// A thread of this process.
    Thread,
    /// A separate process.
    Process,
}

/// Behavior of the other workers when the first one finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stonewall {
    /// All workers continue to their end, and all their operations are measured.
    Off,
    /// All workers stop. Their operations in progress are not measured.
    Stop,
    /// The measurement stops, but all workers complete their files for later phases.
    Finish,
}

/// CPU affinity of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// Any CPU of the process.
    #[default]
    Free,
    /// One CPU per worker, round-robin over the CPUs of the process.
    Each,
    /// These CPUs for all workers.
    Shared(CpuList),
    /// One of these CPUs per worker, round-robin.
    Split {
        /// CPUs.
        cpus: CpuList,
        /// Place in the list of the CPU of worker 0.
        first: u32,
    },
    /// The CPUs of these NUMA nodes for all workers.
    Nodes(CpuList),
}

/// List of CPUs, or of NUMA nodes, numbered as in the kernel, from 0 to 1023.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u32>", from = "Vec<u32>")]
pub struct CpuList([u64; 16]);

impl CpuList {
    /// Largest number of a CPU.
    pub const LARGEST: u32 = 1023;

    /// CPUs in ascending order.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        (0..=Self::LARGEST).filter(|cpu| self.0[*cpu as usize / 64] >> (cpu % 64) & 1 == 1)
    }
}

impl From<Vec<u32>> for CpuList {
    /// Numbers above [`CpuList::LARGEST`] are ignored.
    fn from(cpus: Vec<u32>) -> Self {
        let mut list = [0; 16];
        for cpu in cpus.into_iter().filter(|cpu| *cpu <= Self::LARGEST) {
            list[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Self(list)
    }
}

impl From<CpuList> for Vec<u32> {
    fn from(list: CpuList) -> Self {
        list.cpus().collect()
    }
}

/// Class and level of ioprio_set(2), which only some I/O schedulers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoPriority {
    /// Real-time class, 0 (highest) to 7; requires CAP_SYS_ADMIN or CAP_SYS_NICE.
    RealTime(u8),
    /// Best-effort class, 0 (highest) to 7; the default is 4.
    BestEffort(u8),
    /// Idle class.
    Idle,
}

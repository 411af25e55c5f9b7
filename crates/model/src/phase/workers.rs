//! Who does the work of a phase.

use serde::{Deserialize, Serialize};

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workers {
    /// How many, at least 1.
    pub count: u32,
    /// Threads of one process, or processes.
    pub kind: WorkerKind,
    /// The first worker to finish ends the counting for all: readers stop, creating writers go on
    /// uncounted until their file is whole.
    pub stonewall: Stonewall,
    /// Which CPU a worker may use.
    pub pin: Pin,
    /// What the I/O scheduler is told; `None`: the default of the process.
    pub io_priority: Option<IoPriority>,
}

impl Workers {
    /// One thread.
    pub const ONE: Self = Self::threads(1);

    /// So many threads, everything else off.
    pub const fn threads(count: u32) -> Self {
        Self {
            count,
            kind: WorkerKind::Thread,
            stonewall: Stonewall::Off,
            pin: Pin::Free,
            io_priority: None,
        }
    }
}

/// What a worker is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerKind {
    /// A thread of this process.
    Thread,
    /// A process of its own.
    Process,
}

/// What happens to the others when the first worker is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stonewall {
    /// Nothing; everyone finishes and everything counts.
    Off,
    /// Everyone stops at once; the record in progress does not count.
    Stop,
    /// Counting stops; the work goes on so that later phases find it done.
    Finish,
}

/// Which CPU a worker may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// Any that the process may use.
    #[default]
    Free,
    /// One: worker w has the w-th of those that the process may use, round and round.
    Each,
}

/// Class and level of ioprio_set(2); only some I/O schedulers look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoPriority {
    /// Before all others; needs CAP_SYS_ADMIN or CAP_SYS_NICE. 0 (first) to 7.
    RealTime(u8),
    /// The usual class. 0 (first) to 7; 4 is the default.
    BestEffort(u8),
    /// Only when nobody else wants the device.
    Idle,
}

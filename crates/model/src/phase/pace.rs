//! Pacing of the operations of a stream.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// Pacing of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Closed loop: an operation starts when the previous one completes or, with io_uring, when an
    /// operation in flight completes.
    #[default]
    Free,
    /// Closed loop with pauses. A pause begins when no operation is in flight.
    Think {
        /// Operations between two pauses, at least 1.
        ops: u64,
        /// Length of a pause.
        pause: Nanos,
        /// Part of a pause during which the worker uses the CPU.
        #[serde(default, skip_serializing_if = "is_zero")]
        spin: Nanos,
        /// Operations are counted when they complete, instead of when they are issued.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        completed: bool,
        /// Time between two pauses, in addition to the number of operations; 0: no such limit.
        #[serde(default, skip_serializing_if = "is_zero")]
        every: Nanos,
    },
    /// Closed loop with a maximum rate: a late operation delays all operations after it.
    Limit(Rate),
    /// Open loop: operations start on schedule, even if earlier operations are late. Latency is
    /// measured from the scheduled start.
    Open {
        /// Arrival rate.
        rate: Rate,
        /// Arrival process.
        arrivals: Arrivals,
    },
    /// Open loop with a schedule for reads and another one for writes. The schedules determine the
    /// direction of each operation, also with [`super::Direction::Mixed`].
    OpenByDirection {
        /// Arrival rate of reads.
        reads: Rate,
        /// Arrival rate of writes.
        writes: Rate,
        /// Arrival process of both.
        arrivals: Arrivals,
    },
}

impl Pace {
    /// True if operations start on schedule.
    pub fn is_open(self) -> bool {
        match self {
            Self::Open { .. } | Self::OpenByDirection { .. } => true,
            Self::Free | Self::Think { .. } | Self::Limit(_) => false,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(time: &Nanos) -> bool {
    *time == Nanos(0)
}

/// Total rate of all workers, which share it equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// Operations per second, at least 1.
    Ops(u64),
    /// Bytes per second, at least 1.
    Bytes(Bytes),
}

/// Share of the operations of all workers with the same flow in phases that start together. A
/// worker starts an operation only while its part of them is at most its weight, divided by the
/// weights of all workers that have not ended (fio `flow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Number of the flow, below [`Flow::COUNT`].
    pub number: u32,
    /// Weight of each worker, at least 1.
    pub weight: u32,
    /// Time between two checks while a worker waits; 0: as short as possible.
    pub sleep: Nanos,
}

impl Flow {
    /// Number of flows of phases that start together.
    pub const COUNT: u32 = 64;
}

/// Minimum rates of a worker after its first two seconds (fio `rate_min`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimumRate {
    /// Rate of reads; `None`: any.
    pub reads: Option<Rate>,
    /// Rate of writes; `None`: any.
    pub writes: Option<Rate>,
    /// Time between two checks, each of the rate since the previous one.
    pub cycle: Nanos,
}

/// Arrival process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Equal intervals.
    Constant,
    /// Exponentially distributed intervals (Poisson process), as from many independent users.
    Poisson,
}

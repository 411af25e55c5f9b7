//! One step of a trial: what a suite asks for ([`Phase`]) and what the engine answers
//! ([`PhaseResult`]).
//!
//! A phase is plain data, complete and free of choices: the engine turns it into a concrete loop
//! before the clock starts. Its timeline for one worker:
//!
//! ```text
//! open · fsync · priming read │ barrier │ loop │ flush │ close │
//!           not timed                   t0     t1      t2      t3
//! ```
//!
//! All four instants are kept, whatever the suite calls its timed region; [`Timed`] says which of
//! the segments make up the suite's own number.

mod interface;
mod replay;
mod result;
mod stream;
mod task;
mod tree;
mod workers;

use serde::{Deserialize, Serialize};

pub use interface::{Advice, CallFlags, CopyCall, Interface, Ring};
pub use replay::{Durability, Load, Replay, ReplayOp, Until};
pub use result::{Latencies, Moved, PhaseResult, Series, Ticked, WorkerResult};
pub use stream::{
    Access, Amount, Arrivals, Bound, Direction, Files, Fill, Flush, FlushCall, FlushEvery, Length,
    Open, Pace, Presence, Rate, Stream,
};
pub use task::{At, Compression, Deed, Method, Spot, Task};
pub use tree::{
    Calls, Item, Layout, Mix, MixOp, Naming, Set, Sharing, Sizes, Spread, Tree, TreeEnd, TreeOrder,
    TreeStep,
};
pub use workers::{IoPriority, Pin, Stonewall, WorkerKind, Workers};

use crate::metric::Metric;

/// One step of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name, unique within the trial, kebab-case: `write`, `random-read`.
    pub name: String,
    /// The heading under which tables collect it with its like: `writing`, `reading`.
    pub group: String,
    /// What it is for.
    pub role: Role,
    /// What the caches must hold before it starts.
    pub cache: Cache,
    /// What it does.
    pub work: Work,
    /// Which segments belong to the suite's own timed region.
    pub timed: Timed,
}

impl Phase {
    /// The metric this phase is judged by: durable throughput where all workers write a given
    /// amount, nothing of it twice ([`Stream::writes_once`]), and flush, unless the suite follows a
    /// classic tool that takes a tick off its times; files of a tree and tickets per second; the
    /// time of a task; what a replay reads and writes; else the throughput of the timed region.
    pub fn primary(&self) -> Metric {
        match &self.work {
            Work::Stream(stream)
                if stream.direction == Direction::Write
                    && stream.flush != Flush::None
                    && stream.bound == Bound::Once
                    && stream.writes_once()
                    && !self.timed.tick_subtracted =>
            {
                Metric::DurableThroughput
            }
            Work::Stream(stream) if !stream.moves() || stream.access == Access::Tickets => {
                Metric::OpsRate
            }
            Work::Stream(_) | Work::Replay(_) => Metric::Throughput,
            Work::Tree(_) | Work::Mix(_) => Metric::OpsRate,
            Work::Task(_) | Work::Layout(_) | Work::Remove { .. } => Metric::Elapsed,
        }
    }
}

/// What a phase is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Lays out what later phases need; its numbers are not results.
    Prepare,
    /// Its numbers are results.
    Measure,
}

/// The state of the caches before a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Nothing of the filesystem under test in memory: written back, remounted or dropped,
    /// verified.
    Cold,
    /// All that the phase reads is in memory, since a phase before has read or written it;
    /// verified by what the devices read.
    Warm,
    /// Whatever the phase before left there; part of what the phase measures.
    AsLeft,
}

impl Cache {
    /// Its word in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::AsLeft => "as-left",
        }
    }
}

/// What a phase does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Workers read or write records of files.
    Stream(Stream),
    /// Workers do the same steps to each of many entries.
    Tree(Tree),
    /// Workers do operations drawn by weight to a population of files.
    Mix(Mix),
    /// Entries are made for later phases.
    Layout(Layout),
    /// Clients replay a load file.
    Replay(Replay),
    /// One worker does one everyday task.
    Task(Task),
    /// Removes the files of a stream.
    Remove {
        /// Which files.
        files: Files,
        /// How many.
        workers: u32,
    },
}

impl Work {
    /// How many workers it has: one where that is not said, as for the programs of a task, and
    /// [`u32::MAX`] where there are as many as processors.
    pub fn workers(&self) -> u32 {
        match self {
            Self::Stream(stream) => stream.workers.count,
            Self::Tree(tree) => tree.workers.count,
            Self::Mix(mix) => mix.workers.count,
            Self::Layout(_) => u32::MAX,
            Self::Replay(replay) => replay.workers.count,
            Self::Task(_) => 1,
            Self::Remove { workers, .. } => *workers,
        }
    }
}

/// Which segments after the loop count into the suite's own number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// The flush counts.
    pub flush: bool,
    /// The close counts.
    pub close: bool,
    /// One clock tick is taken off the elapsed time, as one of the classic tools does.
    pub tick_subtracted: bool,
}

#[cfg(test)]
mod tests;

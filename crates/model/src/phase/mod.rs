//! Phases of a trial. A suite defines a [`Phase`], and the engine returns a [`PhaseResult`].
//!
//! A phase is plain data that determines all work, so the engine can prepare a specialized loop
//! before the clock starts. Timeline of one worker:
//!
//! ```text
//! open · fsync · priming read │ barrier │ loop │ sync │ close │
//!           not timed                   t0     t1     t2      t3
//! ```
//!
//! All four instants are recorded. [`Timed`] selects the segments that the suite includes in its
//! timed region.

mod action;
mod coherence;
pub mod command;
mod handling;
mod hierarchy;
mod interface;
mod limit;
mod mail;
mod operation_log;
mod pace;
mod recording;
mod replay;
mod result;
mod sharing;
mod sqlite;
mod steady;
mod stream;
mod sync;
mod task;
mod together;
mod tree;
mod verify;
mod workers;

use serde::{Deserialize, Serialize};

pub use action::{Action, Maintenance};
pub use coherence::{Change, Coherence};
pub use command::Command;
pub use handling::{Allocation, FileAdvice, FileHandling, PassStart, Region};
pub use hierarchy::{DirectoryTree, EntryCount, Selection};
pub use interface::{
    Advice, Aio, CallFlags, Completions, CopyCall, EngineFiles, EngineProperties, IoEngineKind,
    NameCall, Ring, SpaceCall,
};
pub use limit::WorkLimit;
pub use mail::{Mail, MailFormat};
pub use operation_log::{HistogramLog, OperationLog};
pub use pace::{Arrivals, Flow, MinimumRate, Pace, Rate};
pub use recording::{FileCall, TraceOrder, TraceReplay, TraceTiming};
pub use replay::{Durability, Load, Replay, ReplayOp, Until};
pub use result::{
    AtDeadline, Event, Latencies, Moved, PhaseResult, Reported, Series, Ticked, WorkerResult,
};
pub use sharing::{FileOrder, FileSharing, SeveralFiles};
pub use sqlite::{JournalMode, Sqlite, Synchronous, TransactionMix};
pub use steady::{SteadyChange, SteadyLimit, SteadyRate, SteadyState};
pub use stream::{
    AccessPattern, Bound, DataPattern, Direction, FileCreation, Jump, Length, Open, Stream, Zone,
};
pub use sync::{EndSync, RangeSync, SyncCall, SyncEvery, SyncInterval};
pub use task::{Compression, Method, Task, TaskOperation, TaskPath, TaskRoot};
pub use together::{
    GROUP, GroupEnd, Part, TimeLimit, Together, UNLIMITED, is_group, is_later_group_of, later_group,
};
pub use tree::{
    Calls, Item, Layout, Mix, MixOp, Naming, Set, Sharing, Sizes, Spread, Tree, TreeEnd, TreeOrder,
    TreeStep,
};
pub use verify::VerifyBacklog;
pub use workers::{CpuList, IoPriority, Pin, Stonewall, WorkerKind, WorkerShare, Workers};

use crate::{metric::Metric, units::Nanos};

/// Phase of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name, unique within the trial, kebab-case: `write`, `random-read`.
    pub name: String,
    /// Table group: `writing`, `reading`.
    pub group: String,
    /// Role.
    pub role: Role,
    /// Cache state before the phase.
    pub cache: Cache,
    /// Work.
    pub work: Work,
    /// Segments of the timed region of the suite.
    pub timed: Timed,
    /// Subdirectory of the test directory in which the phase runs. `None`: the test directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Group of phases that start together; `None` if the phase runs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
}

impl Phase {
    /// Role of the measurements in reports. Those of background phases are not results.
    pub fn result_role(&self) -> Role {
        match self.together {
            Some(Together { part: Part::Background, .. }) => Role::Prepare,
            Some(Together { part: Part::Measured, .. }) | None => self.role,
        }
    }

    /// Name of the test of a number that a program printed.
    pub fn number(&self, name: &str) -> String {
        format!("{}.{name}", self.name)
    }

    /// Numbers with separate tests: their names and metrics.
    pub fn numbers(&self) -> Vec<(String, Metric)> {
        let Work::Command(command) = &self.work else { return Vec::new() };
        let test = |number: &command::Number| (self.number(&number.name), number.kind.metric());
        command.other_numbers().map(test).collect()
    }

    /// Primary metric:
    ///
    /// - commits per second if all workers write and sync each write ([`Stream::commits`]), unless
    ///   a clock tick is subtracted, and for SQLite transactions that are synced
    ///   ([`Sqlite::commits`]);
    /// - the metric that a command names ([`Command::primary`]);
    /// - deliveries per second for mail, and for trees whose files are written, synced, and renamed
    ///   ([`Tree::delivers`]);
    /// - durable throughput for other streams that make one pass of writes, end with a sync, and
    ///   overwrite no block ([`Stream::writes_once`]), unless a clock tick is subtracted as in
    ///   IOzone;
    /// - operations per second for other streams that transfer no data or use
    ///   [`AccessPattern::Tickets`], for other trees, and for mixes;
    /// - throughput of the timed region for all other streams, and for replays;
    /// - mean latency for maintenance actions, median latency for coherence;
    /// - elapsed time for tasks, layouts, replays of recordings, and removals.
    pub fn primary(&self) -> Metric {
        match &self.work {
            Work::Stream(stream) if stream.commits() && self.timed == Timed::default() => {
                Metric::CommitRate
            }
            Work::Stream(stream)
                if stream.direction == Direction::Write
                    && stream.end_sync != EndSync::None
                    && stream.bound.is_one_pass()
                    && stream.writes_once()
                    && !self.timed.tick_subtracted =>
            {
                Metric::DurableThroughput
            }
            Work::Stream(stream)
                if !stream.moves() || stream.access_pattern == AccessPattern::Tickets =>
            {
                Metric::OpsRate
            }
            Work::Stream(_) | Work::Replay(_) => Metric::Throughput,
            Work::Tree(tree) if tree.delivers() => Metric::DeliveryRate,
            Work::Mail(_) => Metric::DeliveryRate,
            Work::Sqlite(sqlite) if sqlite.commits() && sqlite.only_updates() => Metric::CommitRate,
            Work::Tree(_) | Work::Mix(_) | Work::Sqlite(_) => Metric::OpsRate,
            Work::Maintenance(_) => Metric::LatencyMean,
            Work::Coherence(_) => Metric::LatencyP50,
            Work::Command(command) => command.primary(),
            Work::Task(_) | Work::Layout(_) | Work::Trace(_) | Work::Remove { .. } => {
                Metric::Elapsed
            }
        }
    }
}

/// Role of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Prepares later phases; its measurements are not results.
    Prepare,
    /// Its measurements are results.
    Measure,
}

/// Cache state before a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// No data or metadata of the filesystem under test is cached. Dirty data is written back, the
    /// filesystem is remounted or caches are dropped, and device reads verify the state.
    Cold,
    /// An earlier phase has cached all data that this phase reads. Device reads verify the state.
    Warm,
    /// Unchanged since the previous phase: cached data is part of the measurement.
    Unchanged,
}

impl Cache {
    /// Name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Work of a phase.
#[expect(clippy::large_enum_variant, reason = "a trial has few phases, most of them streams")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Workers read or write blocks of files.
    Stream(Stream),
    /// Workers perform the same steps on many entries.
    Tree(Tree),
    /// Workers perform weighted random operations on a population of files.
    Mix(Mix),
    /// Creates entries for later phases.
    Layout(Layout),
    /// Clients replay a loadfile.
    Replay(Replay),
    /// One worker performs an everyday task.
    Task(Task),
    /// Programs of the user.
    Command(Box<Command>),
    /// Transactions on a SQLite database.
    Sqlite(Sqlite),
    /// Messages are delivered to a mailbox and read from it.
    Mail(Mail),
    /// Replays the recorded operations of a program.
    Trace(TraceReplay),
    /// Maintenance actions on the mounted filesystem.
    Maintenance(Maintenance),
    /// One worker changes files, and the others wait until they see each change.
    Coherence(Coherence),
    /// Removes the files of a stream.
    Remove {
        /// Files to remove.
        files: FileSharing,
        /// Number of workers of the stream.
        workers: u32,
    },
}

impl Work {
    /// Number of workers: 1 for a task, [`u32::MAX`] for a layout and a command, which
    /// may use all CPUs.
    pub fn workers(&self) -> u32 {
        match self {
            Self::Stream(stream) => stream.workers.count,
            Self::Tree(tree) => tree.workers.count,
            Self::Mix(mix) => mix.workers.count,
            Self::Layout(_) => u32::MAX,
            Self::Replay(replay) => replay.workers.count,
            Self::Coherence(coherence) => coherence.workers.count,
            Self::Sqlite(sqlite) => sqlite.workers,
            Self::Mail(mail) => mail.deliverers.saturating_add(mail.readers),
            Self::Task(_) | Self::Maintenance(_) => 1,
            // The programs determine the number of their processes.
            Self::Command(_) | Self::Trace(_) => u32::MAX,
            Self::Remove { workers, .. } => *workers,
        }
    }

    /// Stream; `None` for other work.
    pub fn stream(&self) -> Option<&Stream> {
        if let Self::Stream(stream) = self { Some(stream) } else { None }
    }

    /// Task; `None` for other work.
    pub fn task(&self) -> Option<&Task> {
        if let Self::Task(task) = self { Some(task) } else { None }
    }

    /// File set on which the work is performed; `None` if it has no file set.
    pub fn set(&self) -> Option<&Set> {
        match self {
            Self::Tree(tree) => Some(&tree.set),
            Self::Mix(mix) => Some(&mix.set),
            Self::Layout(layout) => Some(&layout.set),
            Self::Stream(_)
            | Self::Replay(_)
            | Self::Task(_)
            | Self::Command(_)
            | Self::Sqlite(_)
            | Self::Mail(_)
            | Self::Trace(_)
            | Self::Maintenance(_)
            | Self::Coherence(_)
            | Self::Remove { .. } => None,
        }
    }

    /// Time at which the workers agree on a number of operations.
    pub fn deadline(&self) -> Option<Nanos> {
        if let Self::Stream(Stream { bound: Bound::Deadline(time), .. })
        | Self::Tree(Tree {
            selection: Selection { count: EntryCount::Until(time), .. },
            ..
        }) = self
        {
            return Some(*time);
        }
        None
    }

    /// Ramp time and runtime, if the work is limited by time.
    pub fn time_limit(&self) -> Option<TimeLimit> {
        match self {
            Self::Mix(mix) => mix.time,
            Self::Sqlite(sqlite) => sqlite.time,
            Self::Mail(mail) => mail.time,
            Self::Maintenance(maintenance) => Some(maintenance.time),
            Self::Stream(stream) => match stream.bound {
                Bound::Time { ramp, run } => Some(TimeLimit { ramp, run }),
                Bound::Amount(amount) => amount.time,
                Bound::Once | Bound::Ops(_) | Bound::Together(_) | Bound::Deadline(_) => None,
            },
            Self::Replay(replay) => match replay.until {
                Until::Time { ramp, run } => Some(TimeLimit { ramp, run }),
                Until::Replayed(_) => None,
            },
            Self::Tree(_)
            | Self::Layout(_)
            | Self::Task(_)
            | Self::Command(_)
            | Self::Trace(_)
            | Self::Coherence(_)
            | Self::Remove { .. } => None,
        }
    }
}

/// Segments after the loop that belong to the timed region of the suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// Includes the final sync.
    pub sync: bool,
    /// Includes close.
    pub close: bool,
    /// Subtracts one clock tick from the elapsed time, as in IOzone.
    pub tick_subtracted: bool,
}

#[cfg(test)]
mod tests;

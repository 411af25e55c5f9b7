//! Run as data, which crate `store` writes and crate `report` reads.

use serde::{Deserialize, Serialize};

use crate::{
    activity::SystemActivity,
    cell::{Cell, CellId},
    cluster::HostResult,
    environment::Environment,
    histogram::Histogram,
    metric::Metric,
    phase::{Cache, FileCall, ReplayOp, Role, Series},
    plan::Profile,
    sample::Sample,
    study::Study,
    units::{Nanos, Scale},
    warning::Warning,
};

/// Complete run.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Identity and parameters of the run.
    pub info: RunInfo,
    /// Host environment at the start.
    pub environment: Environment,
    /// Cells in plan order.
    pub cells: Vec<CellRecord>,
    /// Trials in the order of execution.
    pub trials: Vec<TrialRecord>,
    /// Warnings about the run as a whole.
    pub warnings: Vec<Warning>,
}

/// Identity and parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Unique name of the run: start time and random suffix, in lower-case letters, digits, and
    /// dashes.
    pub id: String,
    /// Title of the plan.
    pub title: String,
    /// Name of the plan: a built-in plan, or a file name.
    pub plan_name: String,
    /// Text of the plan file, byte for byte.
    pub plan_text: String,
    /// Plan keys overridden on the command line, as (key, value).
    pub overrides: Vec<(String, String)>,
    /// Scale of the run.
    pub scale: Scale,
    /// Precision profile.
    pub profile: Profile,
    /// Fixed number of repetitions, if set by the plan.
    pub repetitions: Option<u32>,
    /// Seed of the trial order and of the written data.
    pub seed: u64,
    /// Published study whose tables and charts come first in the report.
    #[serde(default)]
    pub study: Option<Study>,
    /// Description of the storage.
    pub storage: String,
    /// Start, in nanoseconds since 1970-01-01 UTC.
    pub started_unix: Nanos,
    /// End, in nanoseconds since 1970-01-01 UTC; `None` if the run did not complete.
    pub ended_unix: Option<Nanos>,
    /// Version and commit of fslab.
    pub program: String,
}

/// Cell with its state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellRecord {
    /// ID of the cell.
    pub id: CellId,
    /// Definition of the cell.
    pub cell: Cell,
    /// Short name of the workload: the preset or suite, and the parameters that the plan varies.
    pub label: String,
    /// State of the cell.
    pub state: CellState,
    /// Phases in order.
    pub phases: Vec<PhaseInfo>,
}

/// Properties of a phase that reports use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseInfo {
    /// Name of the phase.
    pub name: String,
    /// Heading of the table that contains the phase.
    pub group: String,
    /// Role of the phase.
    pub role: Role,
    /// Primary metric.
    pub primary: Metric,
    /// Cache state before the phase; `None` for imported runs.
    #[serde(default)]
    pub cache: Option<Cache>,
}

/// State of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum CellState {
    /// Not closed: more repetitions follow.
    Open,
    /// Closed by the stopping rule or by the time limit.
    Done {
        /// Rule that closed the cell, with its values.
        reason: String,
    },
    /// Not measured because the filesystem is not available.
    Skipped {
        /// Reason and hint.
        reason: String,
    },
    /// Closed after a failure.
    Failed {
        /// Failure.
        reason: String,
    },
}

/// One execution of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Index of the cell in [`RunRecord::cells`].
    pub cell: usize,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Number of invalid trials of this repetition that preceded this one.
    pub attempt: u32,
    /// Start, in nanoseconds since 1970-01-01 UTC.
    pub started_unix: Nanos,
    /// Duration, including preparation and cleanup.
    pub elapsed: Nanos,
    /// Outcome.
    pub outcome: Outcome,
    /// Samples.
    pub samples: Vec<Sample>,
    /// Histograms of the measured phases, merged over workers.
    pub histograms: Vec<PhaseHistogram>,
    /// Completed operations and bytes over time of each measured phase, merged over workers.
    pub series: Vec<(String, Series)>,
    /// System activity of each measured phase and lifecycle step.
    pub activity: Vec<(String, SystemActivity)>,
    /// Warnings with their phases; `None` for the whole trial.
    pub warnings: Vec<(Option<String>, Warning)>,
    /// Changes of the machine, in order.
    pub actions: Vec<Action>,
    /// Environment facts that differ from those of the run.
    pub environment: Environment,
    /// Results of each host and measured phase; empty for a run on one host.
    #[serde(default)]
    pub hosts: Vec<HostResult>,
}

/// Histogram of one kind of latency in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseHistogram {
    /// Phase.
    pub phase: String,
    /// Kind of latency.
    pub kind: HistogramKind,
    /// Histogram over all workers.
    pub histogram: Histogram,
}

/// Kind of latency in a histogram; see [`crate::phase::Latencies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum HistogramKind {
    /// All operations, reads and writes.
    All,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Open loop only: time from start of service to completion.
    ServiceTime,
    /// Open loop of reads and writes only: service time of the reads.
    ServiceTimeOfReads,
    /// Open loop of reads and writes only: service time of the writes.
    ServiceTimeOfWrites,
    /// `io_uring` only: time of the submission.
    Submission,
    /// `io_uring` only: time from submission to completion.
    Completion,
    /// Sync calls in the loop.
    Sync,
    /// Replays only: operations of one type.
    Op(ReplayOp),
    /// Replays of recordings only: system calls of one kind.
    Call(FileCall),
}

impl HistogramKind {
    /// Kinds other than [`Self::Op`]: all operations, then the histograms of
    /// [`crate::phase::Latencies::each`] in their order.
    pub const ALL: [Self; 9] = [
        Self::All,
        Self::Read,
        Self::Write,
        Self::ServiceTime,
        Self::ServiceTimeOfReads,
        Self::ServiceTimeOfWrites,
        Self::Submission,
        Self::Completion,
        Self::Sync,
    ];

    /// Name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Read => "read",
            Self::Write => "write",
            Self::ServiceTime => "service",
            Self::ServiceTimeOfReads => "service-read",
            Self::ServiceTimeOfWrites => "service-write",
            Self::Submission => "submission",
            Self::Completion => "completion",
            Self::Sync => "sync",
            Self::Op(op) => op.word(),
            Self::Call(call) => call.word(),
        }
    }
}

impl From<HistogramKind> for &'static str {
    fn from(kind: HistogramKind) -> Self {
        kind.name()
    }
}

impl TryFrom<String> for HistogramKind {
    type Error = String;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let every = Self::ALL.into_iter().chain(ReplayOp::ALL.map(Self::Op));
        let every = every.chain(FileCall::ALL.iter().map(|call| Self::Call(*call)));
        let found = every.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("unknown histogram kind `{text}`"))
    }
}

/// Outcome of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// All phases completed.
    Measured,
    /// A phase or step failed. Samples of earlier phases are stored, but not used.
    Failed {
        /// Phase or step, and the chain of causes.
        reason: String,
    },
    /// A predefined disturbance invalidated the trial, regardless of its result. Its samples are
    /// stored, but not used, and the repetition is rerun.
    Invalid {
        /// Disturbance.
        reason: String,
    },
}

/// Change of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Command line, or description of a system call.
    pub description: String,
    /// Duration.
    pub elapsed: Nanos,
    /// Exit status and end of the error output; empty on success.
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Latencies;

    #[test]
    fn histogram_kinds_match_latencies_and_parse() {
        let latencies = Latencies::default();
        let names = latencies.each().map(|(name, _)| name);
        assert_eq!(HistogramKind::ALL.map(HistogramKind::name)[1..], names);
        for kind in HistogramKind::ALL {
            let name = serde_json::Value::String(kind.name().into());
            assert_eq!(serde_json::from_value::<HistogramKind>(name).ok(), Some(kind));
        }
    }
}

//! A whole run as data: what the store keeps and the report reads.

use serde::{Deserialize, Serialize};

use crate::{
    cell::{Cell, CellId},
    environment::Environment,
    evidence::Evidence,
    histogram::Histogram,
    metric::Metric,
    phase::{Cache, ReplayOp, Role, Series},
    plan::Profile,
    sample::Sample,
    study::Study,
    units::{Nanos, Scale},
    warning::Warning,
};

/// Everything that is known of a run.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// The run itself.
    pub info: RunInfo,
    /// The host at the start.
    pub environment: Environment,
    /// The cells, in plan order.
    pub cells: Vec<CellRecord>,
    /// The trials, in the order they were made.
    pub trials: Vec<TrialRecord>,
    /// Warnings about the run as a whole.
    pub warnings: Vec<Warning>,
}

/// What was asked for, and by what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Unique name of the run: start time and random tail, in lower-case letters, digits and
    /// dashes.
    pub id: String,
    /// The plan's title.
    pub title: String,
    /// The plan's name: a ready plan, or a file name.
    pub plan_name: String,
    /// The plan, byte for byte.
    pub plan_text: String,
    /// Settings given on the command line on top of the plan, as (key, value).
    pub amendments: Vec<(String, String)>,
    /// The scale it was run at.
    pub scale: Scale,
    /// How sure the run wants to be.
    pub profile: Profile,
    /// A fixed number of repeats, if the plan sets one.
    pub repeats: Option<u32>,
    /// The seed of order and data.
    pub seed: u64,
    /// The published study whose tables and charts the report shows first; `None` in most runs.
    #[serde(default)]
    pub view: Option<Study>,
    /// What lies under the filesystems, in words.
    pub storage: String,
    /// Start, in nanoseconds since 1970-01-01 UTC.
    pub started_unix: Nanos,
    /// End, if the run came to it.
    pub ended_unix: Option<Nanos>,
    /// Version and commit of the program that measured.
    pub program: String,
}

/// One cell and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellRecord {
    /// Its id.
    pub id: CellId,
    /// The cell.
    pub cell: Cell,
    /// Short name of its workload: suite and the parameters that the plan varies.
    pub label: String,
    /// What became of it.
    pub state: CellState,
    /// Its phases, in order.
    pub phases: Vec<PhaseInfo>,
}

/// One phase of a cell, as the report needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseInfo {
    /// Its name.
    pub name: String,
    /// The heading under which tables collect it.
    pub group: String,
    /// What it is for.
    pub role: Role,
    /// The metric it is judged by.
    pub primary: Metric,
    /// What the caches held before it; `None` in runs that did not keep it.
    #[serde(default)]
    pub cache: Option<Cache>,
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum CellState {
    /// More repeats are to come.
    Open,
    /// Enough repeats, by the rule named.
    Done {
        /// Which rule, with its figures.
        rule: String,
    },
    /// Never measured: the filesystem cannot be had here.
    Skipped {
        /// Why, and what would help.
        reason: String,
    },
    /// Given up after a failure.
    Failed {
        /// What failed.
        reason: String,
    },
}

/// One repeat of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Index of its cell in [`RunRecord::cells`].
    pub cell: usize,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// How many trials of this repeat were invalid before it.
    pub attempt: u32,
    /// Start, in nanoseconds since 1970-01-01 UTC.
    pub started_unix: Nanos,
    /// How long it took, preparation and undoing included.
    pub elapsed: Nanos,
    /// What became of it.
    pub outcome: Outcome,
    /// Its samples.
    pub samples: Vec<Sample>,
    /// Times of its measured phases, merged over workers.
    pub histograms: Vec<Times>,
    /// Counted work of its measured phases over time, merged over workers, by phase.
    pub series: Vec<(String, Series)>,
    /// What the machine did meanwhile, by measured phase or life-cycle step.
    pub evidence: Vec<(String, Evidence)>,
    /// Its warnings: the phase, or `None` for the whole trial.
    pub warnings: Vec<(Option<String>, Warning)>,
    /// What was done to the machine, in order.
    pub actions: Vec<Action>,
    /// Facts that differ from the run's.
    pub environment: Environment,
}

/// How long things of one kind took in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The phase.
    pub phase: String,
    /// What was timed.
    pub of: TimesOf,
    /// The times, of all workers.
    pub histogram: Histogram,
}

/// What was timed; see [`crate::phase::Latencies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum TimesOf {
    /// All operations, reads and writes.
    All,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Open loop only: operations from the instant the worker turned to them.
    Service,
    /// Queues only: until the kernel had taken the operation.
    Submit,
    /// Queues only: from then on to its completion.
    Complete,
    /// Flushes inside the loop.
    Flush,
    /// Replays only: operations of one kind.
    Op(ReplayOp),
}

impl TimesOf {
    /// Those that are of any kind: all operations, then the parts of
    /// [`crate::phase::Latencies::each`] in their order.
    pub const ALL: [Self; 7] = [
        Self::All,
        Self::Read,
        Self::Write,
        Self::Service,
        Self::Submit,
        Self::Complete,
        Self::Flush,
    ];

    /// Its word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Read => "read",
            Self::Write => "write",
            Self::Service => "service",
            Self::Submit => "submit",
            Self::Complete => "complete",
            Self::Flush => "flush",
            Self::Op(op) => op.word(),
        }
    }
}

impl From<TimesOf> for &'static str {
    fn from(of: TimesOf) -> Self {
        of.name()
    }
}

impl TryFrom<String> for TimesOf {
    type Error = String;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let every = Self::ALL.into_iter().chain(ReplayOp::ALL.map(Self::Op));
        let found = every.into_iter().find(|of| of.name() == text);
        found.ok_or_else(|| format!("nothing is timed as `{text}`"))
    }
}

/// What became of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// All phases ended well.
    Measured,
    /// Something failed; samples up to there are kept but not counted.
    Failed {
        /// The phase or step, and the chain of causes.
        reason: String,
    },
    /// Measured, while the machine did something that the run had declared before to spoil a
    /// measurement, whatever its result; its samples are kept but not counted, and the repeat is
    /// made again.
    Invalid {
        /// What the machine did.
        reason: String,
    },
}

/// One thing done to the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// What was done: a command line, or a system call in words.
    pub what: String,
    /// How long it took.
    pub elapsed: Nanos,
    /// Exit status and last words if it failed, else empty.
    pub trouble: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Latencies;

    #[test]
    fn what_was_timed_has_the_words_of_the_engine() {
        let latencies = Latencies::default();
        let words = latencies.each().map(|(name, _)| name);
        assert_eq!(TimesOf::ALL.map(TimesOf::name)[1..], words);
        for of in TimesOf::ALL {
            let word = serde_json::Value::String(of.name().into());
            assert_eq!(serde_json::from_value::<TimesOf>(word).ok(), Some(of));
        }
    }
}

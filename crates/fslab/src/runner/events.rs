//! Events of a run: the screen, the JSON lines, and the tests read the same events.

use std::{path::Path, time::Duration};

use model::{
    Metric, Nanos, Profile, Ratio,
    record::{CellRecord, Outcome},
};

use super::{RunSummary, progress::CellProgress};

/// Event of a run.
///
/// Order: `RunStarted`; any `Skipped`; `Progress` before each round; for each trial `TrialStarted`,
/// pairs of `PhaseStarted` and `PhaseEnded`, `Progress`, `TrialEnded`; `CellDone` between trials;
/// `Forecast` once, after the pilot rounds; `RunEnded` last.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// The run starts or continues.
    RunStarted {
        /// The run file.
        run_file: &'a Path,
        /// Storage under test.
        storage: &'a str,
        /// Trials already stored.
        done: usize,
    },
    /// A filesystem that is not available; all its cells are skipped.
    Skipped {
        /// The filesystem.
        filesystem: &'a str,
        /// The reason, with a hint.
        reason: &'a str,
    },
    /// Trials so far, and an estimate of the rest.
    Progress(RunProgress<'a>),
    /// A trial starts.
    TrialStarted {
        /// Filesystem.
        filesystem: &'a str,
        /// Workload.
        label: &'a str,
        /// True for an A/A duplicate.
        aa_duplicate: bool,
        /// Repetition, from 0.
        repetition: u32,
    },
    /// A phase or a lifecycle step starts.
    PhaseStarted {
        /// Name of the phase.
        name: &'a str,
        /// Runtime of its workers including the ramp time, if it is fixed.
        time: Option<Nanos>,
    },
    /// A measured phase ended successfully.
    PhaseEnded {
        /// Name of the phase.
        name: &'a str,
        /// Primary metric.
        metric: Metric,
        /// Value in the unit of the metric.
        value: f64,
    },
    /// A trial was stored.
    TrialEnded {
        /// Filesystem.
        filesystem: &'a str,
        /// Workload.
        label: &'a str,
        /// True for an A/A duplicate.
        aa_duplicate: bool,
        /// Repetition, from 0.
        repetition: u32,
        /// Duration of the trial.
        elapsed: Nanos,
        /// Outcome of the trial.
        outcome: &'a Outcome,
    },
    /// A cell was closed.
    CellDone {
        /// Filesystem.
        filesystem: &'a str,
        /// Workload.
        label: &'a str,
        /// True for an A/A duplicate.
        aa_duplicate: bool,
        /// Reason that closed the cell.
        reason: &'a str,
    },
    /// Forecast after the pilot rounds.
    Forecast(Forecast),
    /// The session ended.
    RunEnded {
        /// Result of the run.
        tally: RunSummary,
        /// Duration of this session.
        elapsed: Duration,
    },
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunProgress<'a> {
    /// Cells with their states.
    pub(crate) cells: &'a [CellRecord],
    /// Progress of each cell.
    pub(crate) progress: &'a [CellProgress],
    /// Precision target.
    pub(crate) profile: Profile,
    /// Fixed number of repetitions.
    pub(crate) repetitions: Option<u32>,
    /// Number of stored trials.
    pub(crate) done: usize,
    /// Estimate of the rest.
    pub(crate) remaining: Remaining,
}

/// Estimate of the trials of a run and of the time left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remaining {
    /// If every open cell closes at its next evaluation.
    pub(crate) least: Extent,
    /// If every cell closes as its spread so far suggests, or at the time limit. `None` before the
    /// pilot rounds, unless the number of repetitions is fixed.
    pub(crate) expected: Option<Extent>,
    /// If every cell reaches the maximum number of repetitions.
    pub(crate) most: Extent,
}

/// Number of trials of the whole run, stored ones included, and the time that the rest takes if
/// trials take as long as earlier ones; at most the rest of the time limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Number of trials.
    pub(crate) trials: usize,
    /// Time left.
    pub(crate) time: Nanos,
}

/// Forecast for the rest of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forecast {
    /// Number of trials of the whole run if every open cell closes at its next evaluation.
    pub(crate) least: usize,
    /// Number of trials if every cell closes as its spread so far suggests, or at the time limit.
    pub(crate) expected: usize,
    /// Number of trials if every cell reaches the maximum number of repetitions.
    pub(crate) most: usize,
    /// Duration of the remaining trials, if their number is as expected and they take as long as
    /// the earlier trials of their cells; at most the rest of the time limit.
    pub(crate) time: Nanos,
    /// True if the run is expected to reach its time limit.
    pub(crate) over_time_limit: bool,
    /// Smallest detectable difference between two cells at the expected repetitions, over the tests
    /// of all cells. `None` if no cell gets enough repetitions for a confidence interval.
    pub(crate) detectable: Option<Detectable>,
    /// Each open cell: filesystem, workload, and the number of repetitions at which it is expected
    /// to close.
    pub(crate) cells: Vec<(String, String, u32)>,
}

/// Detectable difference over the tests of all cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Detectable {
    /// Median.
    pub(crate) median: Ratio,
    /// Maximum.
    pub(crate) worst: Ratio,
    /// Filesystem, workload, and phase of the maximum.
    pub(crate) at: String,
}

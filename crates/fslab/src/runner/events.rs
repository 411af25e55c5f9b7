//! Events of a run: the screen, the JSON lines, and the tests read the same ones.

use std::{path::Path, time::Duration};

use model::{Metric, Nanos, Ratio, record::Outcome};

use super::RunSummary;

/// Event of a run.
///
/// Order: `RunStarted`; any `Skipped`; `Planned` before each round; for each trial `TrialStarted`,
/// pairs of `PhaseStarted` and `PhaseEnded`, `TrialEnded`; `CellDone` between trials; `Forecast`
/// once, after the pilot rounds; `RunEnded` last.
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
    /// Minimum number of trials, including the stored ones; updated after each round.
    Planned {
        /// Number of trials.
        trials: usize,
    },
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

//! Everything a run has to tell: the screen, the JSON lines and the tests read the same events.

use std::{path::Path, time::Duration};

use model::{Metric, Nanos, Ratio, record::Outcome};

use super::Tally;

/// One thing that happened.
///
/// Order: `RunStarted`, any `Skipped`, `Planned` before each block, then for each trial
/// `TrialStarted`, its `PhaseStarted` and `PhaseEnded` in pairs, `TrialEnded`; `CellDone` between
/// trials; `Forecast` once, after the first blocks; `RunEnded` last.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// The run begins, or goes on.
    RunStarted {
        /// The run file.
        run_file: &'a Path,
        /// What lies under the filesystems.
        storage: &'a str,
        /// Trials kept already.
        done: usize,
    },
    /// A filesystem that cannot be had here; all its cells are skipped.
    Skipped {
        /// The filesystem.
        filesystem: &'a str,
        /// Why, and what would help.
        reason: &'a str,
    },
    /// How many trials there will be at the least, those kept included; known better after each
    /// block.
    Planned {
        /// Trials in all.
        trials: usize,
    },
    /// A trial begins.
    TrialStarted {
        /// Its filesystem.
        filesystem: &'a str,
        /// Its workload.
        label: &'a str,
        /// Whether its cell is a second one of the same.
        twin: bool,
        /// Which repeat, from 0.
        repeat: u32,
    },
    /// A phase, or a step around the phases, begins.
    PhaseStarted {
        /// Its name.
        name: &'a str,
        /// How long its workers work, ramp-up included, where that is given.
        time: Option<Nanos>,
    },
    /// A measured phase ended well.
    PhaseEnded {
        /// Its name.
        name: &'a str,
        /// What it is judged by.
        metric: Metric,
        /// The value, in the metric's unit.
        value: f64,
    },
    /// A trial was kept.
    TrialEnded {
        /// Its filesystem.
        filesystem: &'a str,
        /// Its workload.
        label: &'a str,
        /// Whether its cell is a second one of the same.
        twin: bool,
        /// Which repeat, from 0.
        repeat: u32,
        /// How long it took.
        elapsed: Nanos,
        /// What became of it.
        outcome: &'a Outcome,
    },
    /// A cell has enough repeats.
    CellDone {
        /// Its filesystem.
        filesystem: &'a str,
        /// Its workload.
        label: &'a str,
        /// Whether it is a second one of the same.
        twin: bool,
        /// The rule that says so.
        rule: &'a str,
    },
    /// What the first blocks let expect of the rest.
    Forecast(Forecast),
    /// The run is over.
    RunEnded {
        /// How.
        tally: Tally,
        /// How long this start took.
        elapsed: Duration,
    },
}

/// What the first blocks let expect of the rest of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forecast {
    /// Trials of the whole run, those made included, if every open cell ends at its next look.
    pub(crate) least: usize,
    /// The same if every cell ends where its spread so far lets expect, or where the budget does.
    pub(crate) expected: usize,
    /// The same if every cell goes to the end.
    pub(crate) most: usize,
    /// How long the trials to come take, if they are as many as expected and take as long as those
    /// of their cells did, within what the budget leaves.
    pub(crate) time: Nanos,
    /// Whether the budget ends the run before.
    pub(crate) over_budget: bool,
    /// The smallest difference between two cells that can be told at the expected repeats, for each
    /// test of each cell; `None` if no cell gets enough of them for an interval.
    pub(crate) detectable: Option<Detectable>,
    /// Each open cell: filesystem, workload, and the repeats at which it is expected to close.
    pub(crate) cells: Vec<(String, String, u32)>,
}

/// The smallest difference that can be told, over the tests of all cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Detectable {
    /// The median.
    pub(crate) median: Ratio,
    /// The largest.
    pub(crate) worst: Ratio,
    /// Where that is: filesystem, workload, and phase.
    pub(crate) at: String,
}

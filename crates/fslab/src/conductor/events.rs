//! Everything a run has to tell: the screen, the JSON lines and the tests read the same events.

use std::{path::Path, time::Duration};

use model::{Metric, Nanos, record::Outcome};

use super::Tally;

/// One thing that happened.
///
/// Order: `RunStarted`, any `Skipped`, `Planned` before each block, then for each trial
/// `TrialStarted`, its `PhaseStarted` and `PhaseEnded` in pairs, `TrialEnded`; `CellDone` between
/// trials; `RunEnded` last.
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
        /// The rule that says so.
        rule: &'a str,
    },
    /// The run is over.
    RunEnded {
        /// How.
        tally: Tally,
        /// How long this start took.
        elapsed: Duration,
    },
}

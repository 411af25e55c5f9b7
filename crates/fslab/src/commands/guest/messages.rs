//! What this binary on the host and this binary in a guest say to each other.
//!
//! Both are the same program, so there are no versions of it: JSON of their own types.

use model::{
    Cell, Environment, Place, RunRecord, Warning,
    record::{CellRecord, RunInfo, TrialRecord},
};
use serde::{Deserialize, Serialize};

/// From the host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Make ready.
    Begin(Box<Begin>),
    /// Make one trial.
    Trial {
        /// Its cell, as the guest knows it: without the kernel.
        cell: Box<Cell>,
        /// The index of the cell in the run.
        index: usize,
        /// Which repeat.
        repeat: u32,
    },
}

/// What a guest has to know of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Begin {
    /// The run: its plan, amendments, and scale.
    pub(super) info: RunInfo,
    /// The user's own catalogue of filesystems.
    pub(super) filesystems: Option<String>,
    /// The disks, as the guest has them.
    pub(super) place: Place,
    /// What is known of the run already; empty in its first guest.
    pub(super) environment: Environment,
}

/// From the guest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It is ready.
    Begun(Box<Begun>),
    /// A trial.
    Trial(Box<TrialRecord>),
    /// It cannot be done.
    Failed(String),
}

/// What a guest finds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    /// The cells of the plan, each open or skipped, without kernels, twins, and repetition.
    pub(super) cells: Vec<CellRecord>,
    /// What it is.
    pub(super) environment: Environment,
    /// What is wrong with its storage.
    pub(super) warnings: Vec<Warning>,
}

impl Begin {
    /// A run without trials, as whoever makes them wants it.
    pub(super) fn record(&self, environment: Environment) -> RunRecord {
        RunRecord {
            info: self.info.clone(),
            environment,
            cells: Vec::new(),
            trials: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

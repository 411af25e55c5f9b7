//! Messages between this program on the host and in a guest.
//!
//! Both sides are the same binary, so messages are internal types as JSON, without a protocol
//! version.

use model::{
    Cell, Environment, RunRecord, StorageKind, Warning,
    record::{CellRecord, RunInfo, TrialRecord},
};
use serde::{Deserialize, Serialize};

/// Message from the host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Start of the run.
    StartRun(Box<StartRun>),
    /// Request for one trial.
    Trial {
        /// Cell of the trial, without the kernel.
        cell: Box<Cell>,
        /// Index of the cell in the run.
        index: usize,
        /// Index of the repetition.
        repetition: u32,
    },
}

/// Run parameters for a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StartRun {
    /// Metadata of the run: plan, overrides, and scale.
    pub(super) info: RunInfo,
    /// Additional filesystem definitions.
    pub(super) filesystems: Option<String>,
    /// Disks as seen inside the guest.
    pub(super) place: StorageKind,
    /// Environment facts known so far; empty in the first guest.
    pub(super) environment: Environment,
}

/// Message from the guest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The guest is ready.
    RunStarted(Box<RunStarted>),
    /// Result of a trial.
    Trial(Box<TrialRecord>),
    /// The request failed.
    Failed(String),
}

/// Result of the start of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunStarted {
    /// Cells of the plan, each open or skipped, without kernels, A/A duplicates, and equal cells.
    pub(super) cells: Vec<CellRecord>,
    /// Environment facts of the guest.
    pub(super) environment: Environment,
    /// Warnings about the storage in the guest.
    pub(super) warnings: Vec<Warning>,
}

impl StartRun {
    /// Run record without cells and trials.
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

//! Messages between the conductor of a run and the agents on its hosts.
//!
//! Both sides are the same version of this program, so messages are internal types as JSON. A
//! message of the conductor reaches all agents.

use std::collections::BTreeMap;

use model::{
    Cell, Environment, Nanos, Warning,
    record::{RunInfo, TrialRecord},
};
use serde::{Deserialize, Serialize};

use crate::runner::hosts::HostPhase;

/// Message of the conductor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Start of a session: the version of the conductor, and the ranks of the hosts in their order.
    Hello { program: String, ranks: Vec<usize> },
    /// Request for the mount of a directory.
    Mount { path: String },
    /// Request to the first host to write a token to this file.
    WriteToken { file: String, token: String },
    /// Request to read the token.
    ReadToken { file: String },
    /// Request to the first host to remove the file.
    RemoveToken { file: String },
    /// Start of the run.
    StartRun(Box<StartRun>),
    /// Request for one trial on the first hosts.
    Trial { number: u64, cell: Box<Cell>, index: usize, repetition: u32, hosts: u32 },
    /// Directory of the trial, created by the first host.
    Directory { path: String },
    /// All hosts have reached this step.
    Proceed { step: u64 },
    /// Start of the workers, as an instant of each host's clock.
    Start { step: u64, instants: Vec<Nanos> },
    /// Largest number of operations of a worker at the deadline of the phase.
    Agreed { step: u64, operations: u64 },
    /// The trial ends, because another host failed.
    Cancel,
}

/// Run parameters for an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StartRun {
    /// Metadata of the run: plan, overrides, and scale.
    pub(super) info: RunInfo,
    /// Additional filesystem definitions.
    pub(super) filesystems: Option<String>,
    /// Environment facts known so far; empty in the first session.
    pub(super) environment: Environment,
}

impl StartRun {
    /// Start without a plan, for a check that does not start a run.
    pub(super) fn empty() -> Self {
        let info = RunInfo {
            id: String::new(),
            title: String::new(),
            plan_name: String::new(),
            plan_text: String::new(),
            overrides: Vec::new(),
            scale: model::Scale::ONE,
            profile: model::Profile::Quick,
            repetitions: None,
            seed: 0,
            study: None,
            storage: String::new(),
            started_unix: Nanos(0),
            ended_unix: None,
            program: String::new(),
        };
        Self { info, filesystems: None, environment: Environment::default() }
    }
}

/// Message of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The agent is ready.
    Hello { program: String, host: String },
    /// Mount of the directory.
    Mounted(Result<Mount, String>),
    /// The token was written, read, or removed.
    Token(Result<String, String>),
    /// The storage is claimed.
    RunStarted(Box<Result<RunStarted, String>>),
    /// Directory of this host in the trial.
    Directory { path: String },
    /// This host has reached a step.
    Reached { step: u64, name: String },
    /// The workers are prepared. The deadline is the time from the start at which they agree on a
    /// number of operations.
    Prepared { step: u64, deadline: Option<Nanos> },
    /// The workers of this host have reached the deadline; largest number of operations of one.
    AtDeadline { step: u64, operations: u64 },
    /// This host got the start after the instant, by this time.
    Missed { by: Nanos },
    /// Result of a measured phase.
    Phase(Box<HostPhase>),
    /// End of the trial; `None` if it was canceled.
    TrialEnded(Box<Option<TrialRecord>>),
}

/// Mount of a directory on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mount {
    /// Filesystem type.
    pub(super) kind: String,
    /// Source, such as `server:/volume`.
    pub(super) source: String,
    /// Mount point.
    pub(super) mount_point: String,
    /// ID of the filesystem (statfs(2)).
    pub(super) id: String,
}

/// Result of the start of a run on one host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RunStarted {
    /// Environment facts of the host.
    pub(super) environment: Environment,
    /// Warnings about the storage.
    pub(super) warnings: Vec<Warning>,
}

/// Offsets of clocks by host: clock of the host minus clock of the conductor, and bound.
pub(super) type Clocks = BTreeMap<usize, (i64, Nanos)>;

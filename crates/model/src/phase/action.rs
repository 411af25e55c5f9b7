//! Maintenance actions on a mounted filesystem, at given times.

use serde::{Deserialize, Serialize};

use super::{command::Argv, together::TimeLimit};
use crate::units::Nanos;

/// Actions of one worker, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    /// Action.
    pub action: Action,
    /// Start of the first action, after the start of the phase.
    pub at: Nanos,
    /// Time between the starts of two actions; the next one starts late if the previous one takes
    /// longer. Zero: each starts when the previous one ends.
    pub every: Nanos,
    /// Maximum number of actions; 0: until the time limit.
    pub count: u64,
    /// Time limit. Actions that start before its end are completed. Those that start after its
    /// ramp time are measured.
    pub time: TimeLimit,
}

/// Maintenance action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Discards free space: `FITRIM`, as fstrim(8).
    Trim,
    /// syncfs(2).
    Sync,
    /// Creates a read-only snapshot; btrfs only.
    Snapshot,
    /// Reads all data and verifies its checksums: `btrfs scrub`; btrfs only.
    Scrub,
    /// Removes one of the trees that an earlier phase created ([`Self::tree`]).
    Remove,
    /// Runs a program.
    Run(Argv),
}

impl Action {
    /// Names in plans.
    pub const NAMES: [&str; 6] = ["trim", "sync", "snapshot", "scrub", "remove", "run"];

    /// Name in a plan.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Trim => Self::NAMES[0],
            Self::Sync => Self::NAMES[1],
            Self::Snapshot => Self::NAMES[2],
            Self::Scrub => Self::NAMES[3],
            Self::Remove => Self::NAMES[4],
            Self::Run(_) => Self::NAMES[5],
        }
    }

    /// Name of the tree that the action with this index removes.
    pub fn tree(index: u64) -> String {
        format!("tree.{index}")
    }
}

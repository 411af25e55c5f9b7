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
    /// True if an action that fails does not fail the trial.
    #[serde(default)]
    pub may_fail: bool,
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
    /// Writes incompressible data to a new file until this percentage of the space is used, as
    /// df(1) calculates it, or until no space is left. The file is synced.
    Fill(u8),
    /// Freezes the filesystem, and thaws it after this time: `FIFREEZE` and `FITHAW`, as
    /// fsfreeze(8).
    Freeze(Nanos),
    /// Runs a program.
    Run(Argv),
}

impl Action {
    /// Names in plans.
    pub const NAMES: [&str; 8] =
        ["trim", "sync", "snapshot", "scrub", "remove", "fill", "freeze", "run"];

    /// Name in a plan.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Trim => Self::NAMES[0],
            Self::Sync => Self::NAMES[1],
            Self::Snapshot => Self::NAMES[2],
            Self::Scrub => Self::NAMES[3],
            Self::Remove => Self::NAMES[4],
            Self::Fill(_) => Self::NAMES[5],
            Self::Freeze(_) => Self::NAMES[6],
            Self::Run(_) => Self::NAMES[7],
        }
    }

    /// True if the action disturbs other users of the filesystem.
    pub const fn is_intrusive(&self) -> bool {
        matches!(self, Self::Fill(_) | Self::Freeze(_))
    }

    /// Name of the tree that the action with this index removes.
    pub fn tree(index: u64) -> String {
        format!("tree.{index}")
    }
}

//! Coherence: the time until a change by one worker is visible to the others.

use serde::{Deserialize, Serialize};

use super::workers::Workers;
use crate::units::Nanos;

/// Changes by worker 0 at given times, for which the other workers wait.
///
/// Change i starts `interval · (i + 1)` after the start of the phase. If the workers are on several
/// hosts, those on the host of worker 0 do not wait for changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coherence {
    /// Change.
    pub change: Change,
    /// Number of changes, each of another file.
    pub changes: u64,
    /// Time between the starts of two changes.
    pub interval: Nanos,
    /// Pause of a waiting worker between two checks.
    pub poll_interval: Nanos,
    /// Time from the start of a change after which a worker fails that has not seen the change.
    pub timeout: Nanos,
    /// Workers; at least 2.
    pub workers: Workers,
}

/// Change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A file is created.
    Create,
    /// A file becomes larger.
    Append,
    /// Bytes of a file are overwritten.
    Overwrite,
    /// A file is renamed.
    Rename,
    /// A file is removed.
    Unlink,
}

impl Change {
    /// All changes.
    pub const ALL: [Self; 5] =
        [Self::Create, Self::Append, Self::Overwrite, Self::Rename, Self::Unlink];

    /// Name in plans and of phases.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Append => "append",
            Self::Overwrite => "overwrite",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
        }
    }
}

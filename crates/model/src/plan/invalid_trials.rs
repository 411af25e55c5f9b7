//! Handling of invalid trials.

use serde::{Deserialize, Serialize};

/// Handling of trials that a disturbance of the machine invalidated, regardless of their result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvalidTrials {
    /// Exclude and rerun them.
    Rerun,
    /// Keep them, with their warnings.
    Keep,
}

impl InvalidTrials {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Rerun, Self::Keep];

    /// Name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rerun => "rerun",
            Self::Keep => "keep",
        }
    }

    /// Value of this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.name() == name)
    }
}

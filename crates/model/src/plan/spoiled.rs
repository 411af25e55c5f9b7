//! What becomes of trials that the machine spoiled.

use serde::{Deserialize, Serialize};

/// What becomes of a trial during which the machine did something that spoils a measurement,
/// whatever its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spoiled {
    /// It is invalid, and made again.
    Repeat,
    /// It counts, with its warnings.
    Keep,
}

impl Spoiled {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Repeat, Self::Keep];

    /// Its word in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Keep => "keep",
        }
    }

    /// The one of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|spoiled| spoiled.name() == name)
    }
}

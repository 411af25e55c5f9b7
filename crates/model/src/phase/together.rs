//! Phases that start together.
//!
//! Consecutive phases of a trial with the same [`Together::group`] are one group. All their workers
//! are prepared first, and then start at one barrier. Each phase has separate workers, results, and
//! histograms. System activity belongs to the group ([`GROUP`]), because a device does not know for
//! which phase it works.
//!
//! ```text
//! log   prepared │ ramp        │ counted                │
//! bulk  prepared │ start delay │ ramp │ counted         │
//!                common start         all ramps end      first end of a measured phase
//! ```

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Name under which samples and system activity of a whole group are stored.
pub const GROUP: &str = "together";

/// Name under which samples and system activity of a later group of a trial are stored: [`GROUP`]
/// and the names of its phases.
pub fn later_group<'a>(phases: impl IntoIterator<Item = &'a str>) -> String {
    phases.into_iter().fold(GROUP.to_owned(), |name, phase| format!("{name} {phase}"))
}

/// True for the name of a group.
pub fn is_group(name: &str) -> bool {
    name.split(' ').next() == Some(GROUP)
}

/// True for the name of a later group that contains a phase.
pub fn is_later_group_of(name: &str, phase: &str) -> bool {
    is_group(name) && name.split(' ').skip(1).any(|own| own == phase)
}

/// Position of a phase in a group of phases that start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// Number of the group. Consecutive phases with the same number start together.
    pub group: u32,
    /// Time between the common start and the start of this phase.
    pub start_delay: Nanos,
    /// The delay counts from the start of the first measured phase of the trial instead. A delay
    /// that is over at the common start is none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_trial: bool,
    /// Phase whose end starts this phase, as its place in the group; `None`: the common start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// Role in the group.
    pub part: Part,
    /// Effect of the end of this phase.
    #[serde(default, skip_serializing_if = "GroupEnd::is_first")]
    pub end: GroupEnd,
}

/// Effect of the end of a measured phase on its group. [`GroupEnd::First`] is that of all phases of
/// a group, or of none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupEnd {
    /// The group ends: background phases stop, and phases that have not started do not start.
    #[default]
    First,
    /// None.
    Each,
    /// All other phases stop after their current operations.
    StopAll,
}

impl GroupEnd {
    /// True for the default.
    pub fn is_first(&self) -> bool {
        *self == Self::First
    }
}

/// Role of a phase in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Its measurements are results. The group ends when the first of these phases ends.
    Measured,
    /// Load for the measured phases. It repeats until the group ends, and its measurements are
    /// stored, but they are not results.
    Background,
}

impl Part {
    /// All roles.
    pub const ALL: [Self; 2] = [Self::Measured, Self::Background];

    /// Name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Background => "background",
        }
    }
}

/// Time limit of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimit {
    /// Ramp time, which is not measured.
    pub ramp: Nanos,
    /// Measured time.
    pub run: Nanos,
}

/// Runtime of a background phase that only the end of its group limits.
pub const UNLIMITED: Nanos = Nanos(1 << 60);

//! A plan: what to measure, on what, and how sure to be.
//!
//! A plan enters as TOML text ([`Plan::parse`]) and leaves as values. Reading is total: every key
//! and value is checked against [`KEYS`], the tables of the suites and the names of the
//! filesystems, and the first thing that is wrong comes back as a [`PlanError`] that knows its
//! place in the text. Nothing about the host is decided here.

mod keys;
mod parse;
mod profile;
mod settings;
mod spoiled;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use keys::{KEYS, KeySpec};
pub use profile::Profile;
pub use spoiled::Spoiled;

use crate::{
    cell::{FilesystemLevel, Fullness, Isolation, Twins},
    clock::Clock,
    factor::Factor,
    guest::{GuestDisk, GuestKind},
    storage::Storage,
    study::Study,
    units::Nanos,
    workload::{Point, Recipe, SuiteSpec, Value},
};

/// What the words of a plan may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary<'a> {
    /// The suites.
    pub suites: &'a [&'static SuiteSpec],
    /// The workloads with names of their own; their suites are among those above.
    pub recipes: &'a [Recipe],
    /// The names of the filesystems of the catalogue.
    pub filesystems: &'a [&'a str],
}

/// A plan as it was written, checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it asks, in words.
    pub title: String,
    /// How sure it wants to be.
    pub profile: Profile,
    /// A fixed number of repeats of each cell instead of the profile's adaptive rule.
    pub repeats: Option<u32>,
    /// Which cells are measured twice; `None`: as [`Plan::twins`] has it.
    pub twins: Option<Twins>,
    /// How long the trials of the run may take together; cells that are still open then are closed
    /// as they are. `None`: as long as it takes.
    pub budget: Option<Nanos>,
    /// What becomes of trials that the machine spoiled; `None`: as [`Plan::spoiled`] has it.
    pub spoiled: Option<Spoiled>,
    /// The seed of order and data, if the plan fixes it.
    pub seed: Option<u64>,
    /// Check each filesystem, read-only, after its trial.
    pub fsck: bool,
    /// What separates one trial from the next.
    pub isolation: Isolation,
    /// The throw-away machine that it is measured in; `None` for this machine itself.
    pub guest: Option<GuestKind>,
    /// Its disk, if it counts instructions.
    pub guest_disk: GuestDisk,
    /// What lies under the filesystems.
    pub storage: Storage,
    /// The published study whose tables and charts the report puts first.
    pub view: Option<Study>,
    /// The filesystem axis, at least one level.
    pub filesystems: Vec<FilesystemLevel>,
    /// The workload axis, at least one entry.
    pub workloads: Vec<WorkloadEntry>,
    /// The I/O scheduler axis; empty when the plan leaves the scheduler alone.
    pub schedulers: Vec<String>,
    /// The axis of how full the filesystem is beforehand; empty when it is as mkfs left it.
    pub fullness: Vec<Fullness>,
    /// The axes of settings of the machine, in the order written, each with its values.
    pub factors: Vec<(Factor, Vec<Value>)>,
    /// Scales with names of their own.
    pub scales: Vec<NamedScale>,
}

/// A scale with a name: what of the plan it sets to something else, as [`Plan::set`] takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedScale {
    /// Its name, as `--scale` takes it; not a number.
    pub name: String,
    /// Keys and values, in the order written; `scale` among them is the scale of sizes.
    pub settings: Vec<(String, String)>,
    /// Where it stands in the text.
    pub span: Range<usize>,
}

/// One entry of the workload axis: a suite or a recipe and, for the parameters the plan names, the
/// values to sweep.
#[derive(Clone, Debug)]
pub struct WorkloadEntry {
    /// The suite.
    pub suite: &'static SuiteSpec,
    /// The recipe it is, if it was named by one.
    pub recipe: Option<String>,
    /// What holds for the parameters that the plan does not name, not scaled: the recipe's point or
    /// the suite's defaults.
    pub base: Point,
    /// Parameter name to its values, in the order written; one value is no sweep.
    pub values: Vec<(String, Vec<Value>)>,
    /// Its own I/O schedulers instead of the plan's; `None` where it has none of its own.
    pub schedulers: Option<Vec<String>>,
    /// Its own settings of the machine, each instead of the plan's.
    pub factors: Vec<(Factor, Vec<Value>)>,
    /// Where it stands in the text.
    pub span: Range<usize>,
}

/// What is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// What is wrong.
    pub message: String,
    /// The bytes of the plan text it is about; empty at 0 when it is about the whole.
    pub span: Range<usize>,
    /// What to do about it.
    pub cure: Option<String>,
}

impl Plan {
    /// Which cells are measured twice: as the plan says, else none where a first look is enough or
    /// too few repeats are made to compare, one for the standard profile, and one of each workload
    /// where differences of 2 % are to be told.
    pub fn twins(&self) -> Twins {
        self.twins.unwrap_or(match self.profile {
            Profile::Quick => Twins::None,
            Profile::Standard | Profile::Rigorous if self.few() => Twins::None,
            Profile::Standard => Twins::One,
            Profile::Rigorous => Twins::Each,
        })
    }

    /// What becomes of trials that the machine spoiled: as the plan says, else they are kept where
    /// a first look is enough or too few repeats are made to compare, and made again elsewhere.
    pub fn spoiled(&self) -> Spoiled {
        self.spoiled.unwrap_or(match self.profile {
            Profile::Quick => Spoiled::Keep,
            Profile::Standard | Profile::Rigorous if self.few() => Spoiled::Keep,
            Profile::Standard | Profile::Rigorous => Spoiled::Repeat,
        })
    }

    /// What the clock counts by which it is measured.
    pub fn clock(&self) -> Clock {
        match self.guest {
            Some(GuestKind::Counted) if self.guest_disk.latency() == Nanos(0) => {
                Clock::Instructions
            }
            Some(GuestKind::Counted) => Clock::Virtual,
            Some(GuestKind::Auto | GuestKind::Kvm | GuestKind::Uml | GuestKind::Tcg) | None => {
                Clock::Wall
            }
        }
    }

    /// Whether fewer repeats are made than an interval needs.
    fn few(&self) -> bool {
        self.repeats.is_some_and(|repeats| repeats < 6)
    }

    /// The scale of that name.
    pub fn named_scale(&self, name: &str) -> Option<&NamedScale> {
        self.scales.iter().find(|scale| scale.name == name)
    }
}

impl PlanError {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, cure: None }
    }

    pub(crate) fn cure(self, cure: impl Into<String>) -> Self {
        Self { cure: Some(cure.into()), ..self }
    }

    /// Line and column (both from 1, the column in characters) of the place in `text`.
    pub fn position(&self, text: &str) -> (usize, usize) {
        let before = &text[..self.span.start.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

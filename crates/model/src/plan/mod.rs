//! Plans: workloads, filesystems, storage, and precision of a run.
//!
//! [`Plan::parse`] converts TOML text to values. It checks all keys and values against [`KEYS`],
//! the tables of the suites, and the names of the filesystems. It returns the first error that it
//! finds as a [`PlanError`] with the position. Parsing does not depend on the host.

mod consistent;
mod invalid_trials;
mod keys;
mod parse;
mod profile;
mod settings;
#[cfg(test)]
mod tests;
pub mod together;

use std::ops::Range;

pub use invalid_trials::InvalidTrials;
pub use keys::{KEYS, KeySpec};
pub use profile::Profile;
pub use settings::OVERRIDES;

use crate::{
    cell::{AaControl, FilesystemLevel, FillLevel, Isolation},
    clock::Clock,
    cluster::ClusterHosts,
    design::{Design, OptionAxis},
    guest::{GuestDisk, GuestKind},
    mount_commands::MountedType,
    setting::SystemSetting,
    storage::Storage,
    study::Study,
    units::Nanos,
    workload::{Preset, SuiteSpec, Value, WorkloadParameters},
};

/// Names that a plan may use: suites, presets, and filesystems.
#[derive(Clone, Copy, Debug)]
pub struct KnownNames<'a> {
    /// Suites.
    pub suites: &'a [&'static SuiteSpec],
    /// Presets of these suites.
    pub presets: &'a [Preset],
    /// Names of the filesystem types of the catalog.
    pub filesystems: &'a [&'a str],
    /// Those of these types that a command mounts.
    pub mounted: &'a [MountedType],
}

/// Parsed and checked plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Title of the report.
    pub title: String,
    /// Precision profile.
    pub profile: Profile,
    /// Fixed number of repetitions per cell; `None` for the adaptive rule of the profile.
    pub repetitions: Option<u32>,
    /// Cells measured twice as A/A control; `None` for the default of [`Plan::aa_control`].
    pub aa_control: Option<AaControl>,
    /// Time limit for all trials of the run. Cells that are still open when it expires are closed
    /// with the data they have. `None` for unlimited.
    pub time_limit: Option<Nanos>,
    /// Handling of invalid trials; `None` for the default of [`Plan::invalid_trials`].
    pub invalid_trials: Option<InvalidTrials>,
    /// Seed of the trial order and of the written data; `None` for a random seed.
    pub seed: Option<u64>,
    /// Check each filesystem after its trial.
    pub fsck: bool,
    /// Isolation between trials.
    pub isolation: Isolation,
    /// Guest of the trials; `None` for this machine.
    pub guest: Option<GuestKind>,
    /// Disk of an icount guest.
    pub guest_disk: GuestDisk,
    /// Storage under the filesystems.
    pub storage: Storage,
    /// Hosts that mount the directory of the storage; `None` for a run on this host.
    pub cluster: Option<ClusterHosts>,
    /// Published study whose tables and charts come first in the report.
    pub study: Option<Study>,
    /// Filesystem axis, at least one level.
    pub filesystems: Vec<FilesystemLevel>,
    /// Types of the catalog that a command mounts, for [`Plan::consistent`].
    pub mounted_types: Vec<MountedType>,
    /// Workload axis, at least one entry.
    pub workloads: Vec<WorkloadEntry>,
    /// I/O scheduler axis; empty if the scheduler is unchanged.
    pub schedulers: Vec<String>,
    /// Fill level axis; empty if filesystems are not filled.
    pub fill_levels: Vec<FillLevel>,
    /// Axes of system settings with their values, in text order.
    pub system_settings: Vec<(SystemSetting, Vec<Value>)>,
    /// Varied options of mkfs and mount, in text order.
    pub options: Vec<OptionAxis>,
    /// Design of the options; `None` for all combinations, if there are few.
    pub design: Option<Design>,
    /// Named scales.
    pub scales: Vec<NamedScale>,
}

/// Named set of overrides for [`Plan::set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedScale {
    /// Name for `--scale`; not a number.
    pub name: String,
    /// Keys and values, in text order. The value of key `scale` is the factor for sizes.
    pub settings: Vec<(String, String)>,
    /// Position in the text.
    pub span: Range<usize>,
}

/// Entry of the workload axis: a suite or a preset, and the parameter values of the plan.
#[derive(Clone, Debug)]
pub struct WorkloadEntry {
    /// Suite.
    pub suite: &'static SuiteSpec,
    /// Name of the preset, if any.
    pub preset: Option<String>,
    /// Unscaled values of the preset, or the defaults of the suite. Values of the plan replace
    /// them.
    pub base: WorkloadParameters,
    /// Parameter values of the plan, in text order. A list of several values is a sweep.
    pub values: Vec<(String, Vec<Value>)>,
    /// I/O schedulers of this workload; `None` for those of the plan.
    pub schedulers: Option<Vec<String>>,
    /// System settings of this workload, which replace those of the plan.
    pub system_settings: Vec<(SystemSetting, Vec<Value>)>,
    /// Members of workloads that run together; `None` for a single workload.
    pub together: Option<together::TogetherEntry>,
    /// Position in the text.
    pub span: Range<usize>,
}

/// Error in a plan, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// Message.
    pub message: String,
    /// Byte range in the plan text; 0 to 0 for the whole plan.
    pub span: Range<usize>,
    /// Hint.
    pub hint: Option<String>,
}

impl Plan {
    /// A/A control of the plan. The default is none for profile quick or below 6 repetitions, one
    /// for standard, and one per workload for rigorous.
    pub fn aa_control(&self) -> AaControl {
        self.aa_control.unwrap_or(match self.profile {
            Profile::Quick => AaControl::None,
            Profile::Standard | Profile::Rigorous if self.has_few_repetitions() => AaControl::None,
            Profile::Standard => AaControl::One,
            Profile::Rigorous => AaControl::PerWorkload,
        })
    }

    /// Handling of invalid trials. The default is to keep them for profile quick or below 6
    /// repetitions, and to rerun them otherwise.
    pub fn invalid_trials(&self) -> InvalidTrials {
        self.invalid_trials.unwrap_or(match self.profile {
            Profile::Quick => InvalidTrials::Keep,
            Profile::Standard | Profile::Rigorous if self.has_few_repetitions() => {
                InvalidTrials::Keep
            }
            Profile::Standard | Profile::Rigorous => InvalidTrials::Rerun,
        })
    }

    /// Clock of the trials.
    pub fn clock(&self) -> Clock {
        match self.guest {
            Some(GuestKind::Icount) if self.guest_disk.latency() == Nanos(0) => Clock::Instructions,
            Some(GuestKind::Icount) => Clock::Virtual,
            Some(GuestKind::Auto | GuestKind::Kvm | GuestKind::Uml | GuestKind::Tcg) | None => {
                Clock::Wall
            }
        }
    }

    /// True if there are too few repetitions for a confidence interval.
    fn has_few_repetitions(&self) -> bool {
        self.repetitions.is_some_and(|repetitions| repetitions < 6)
    }

    /// Scale of this name.
    pub fn named_scale(&self, name: &str) -> Option<&NamedScale> {
        self.scales.iter().find(|scale| scale.name == name)
    }
}

impl PlanError {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Line and column of the error in `text`, both counted from 1. Columns count characters.
    pub fn position(&self, text: &str) -> (usize, usize) {
        let before = &text[..self.span.start.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

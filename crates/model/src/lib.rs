//! Types that all other crates of fslab use: plans, cells, phases, results, metrics, and warnings.
//!
//! A plan varies several axes, such as the filesystem and the workload; the values of an axis are
//! its levels. A cell is one combination of levels. A trial measures a cell once, and consists of
//! phases.
//!
//! Input is the text of a plan ([`plan::Plan::parse`]), or values that other crates measured. The
//! crate reads no clock, file, environment variable, or random device. The same input therefore has
//! the same output on every host, so cells of different runs can be matched by [`cell::CellId`].
#![forbid(unsafe_code)]

pub mod activity;
pub mod cell;
mod clock;
pub mod cluster;
pub mod design;
pub mod environment;
pub mod file_type;
mod guest;
pub mod histogram;
pub mod matrix;
pub mod metric;
mod mount_commands;
mod options;
pub mod phase;
pub mod plan;
pub mod record;
pub mod sample;
mod series;
pub mod setting;
pub mod storage;
mod study;
pub mod suggest;
pub mod units;
pub mod warning;
pub mod words;
pub mod workload;

pub use activity::SystemActivity;
pub use cell::{
    AaControl, BlockRange, Cell, CellId, FilesystemLevel, FillLevel, Isolation, Layer, SetupStep,
};
pub use clock::Clock;
pub use cluster::{ClusterHosts, HostResult};
pub use environment::Environment;
pub use guest::{GuestDevice, GuestDisk, GuestKind};
pub use histogram::Histogram;
pub use metric::Metric;
pub use mount_commands::{
    MOUNT_PLACEHOLDERS, MountCommands, MountedType, STEP_PLACEHOLDERS, unknown_placeholder,
};
pub use options::{OptionOf, VariedOptions};
pub use phase::{Phase, PhaseResult};
pub use plan::{KnownNames, Plan, PlanError, Profile};
pub use record::RunRecord;
pub use sample::Sample;
pub use setting::{SystemSetting, SystemSettings};
pub use storage::{Allocation, Storage, StorageKind, StorageLevel};
pub use study::Study;
pub use units::{Bytes, Nanos, Ops, Ratio, Scale};
pub use warning::Warning;
pub use workload::{SuiteSpec, Value, WorkloadParameters};

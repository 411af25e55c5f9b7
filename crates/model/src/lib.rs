//! The nouns of fslab and nothing else: every other crate speaks in these types.
//!
//! Data enters as the text of a plan ([`plan::Plan::parse`]) or as values other crates measured,
//! and leaves as values. Nothing here reads a clock, a file, the environment or a random device:
//! the same input gives the same output on every host, which is what lets two runs join by
//! [`cell::CellId`].
#![forbid(unsafe_code)]

pub mod activity;
pub mod cell;
mod clock;
pub mod environment;
mod guest;
pub mod histogram;
pub mod matrix;
pub mod metric;
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
pub mod workload;

pub use activity::SystemActivity;
pub use cell::{
    AaControl, BlockRange, Cell, CellId, FilesystemLevel, FillLevel, Isolation, Layer, SetupStep,
};
pub use clock::Clock;
pub use environment::Environment;
pub use guest::{GuestDevice, GuestDisk, GuestKind};
pub use histogram::Histogram;
pub use metric::Metric;
pub use phase::{Phase, PhaseResult};
pub use plan::{KnownNames, Plan, PlanError, Profile};
pub use record::RunRecord;
pub use sample::Sample;
pub use setting::{SystemSetting, SystemSettings};
pub use storage::{Allocation, Storage, StorageKind};
pub use study::Study;
pub use units::{Bytes, Nanos, Ops, Ratio, Scale};
pub use warning::Warning;
pub use workload::{SuiteSpec, Value, WorkloadParameters};

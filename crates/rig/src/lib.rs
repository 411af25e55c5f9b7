//! Storage and system access: devices, filesystems, mounts, caches, system settings, and their
//! restoration.
//!
//! A run opens one [`Rig`] for its [`model::Storage`]. For each trial, [`Rig::instance`] creates
//! and mounts a new filesystem ([`MountedFilesystem`]), and [`MountedFilesystem::finish`] unmounts
//! it. The [`Catalog`] defines the filesystem types; [`Catalog::availability`] reports whether this
//! machine can create a given type.
//!
//! An [`ActivityMonitor`] records the system activity during a phase or a lifecycle step: device
//! I/O, CPU time, pressure stall information, and kernel log messages.
//!
//! All access to the machine goes through the trait [`Host`], so that the logic can be tested on a
//! [`FakeHost`]. Every change of the machine is written to the undo journal ([`undo`]) before the
//! change is made; [`undo::clean`] undoes the changes of a killed run. [`guard`] decides which
//! devices and files may be formatted.
//!
//! Not in this crate: measurement (`engine`), the order of trials (the runner), signal handling
//! (after a signal, the caller drops the rig), and all `unsafe` code (`sys`).
#![forbid(unsafe_code)]

mod activity;
mod availability;
mod base;
mod caches;
pub mod catalog;
mod cgroup;
mod device;
mod error;
#[cfg(any(test, feature = "simulated"))]
#[doc(hidden)]
pub mod fuzz;
pub mod guard;
pub mod host;
mod instance;
mod journaled_host;
pub mod layers;
mod medium;
mod memory;
mod missing;
mod monitor_thread;
pub mod mount;
mod options;
pub mod probe;
pub mod programs;
pub mod resume;
mod settings;
pub mod setup;
pub mod signature;
mod storage;
mod sysfs;
pub mod undo;

pub use activity::{ActivityMonitor, KernelLogMonitor};
pub use catalog::{Catalog, CatalogError, Filesystem};
pub use error::RigError;
#[cfg(any(test, feature = "simulated"))]
pub use host::FakeHost;
pub use host::{Host, ProgramTime, RealHost};
pub use instance::{FinishReport, InstanceSpec, MountedFilesystem, Space, SpaceUsage, Step};
pub use journaled_host::Write;
pub use missing::Availability;
pub use monitor_thread::{MonitorThread, monitor_cpu_time};
pub use options::{ResolvedOptions, resolve_options};
pub use settings::{
    SettingChange,
    support::{PlannedValue, Support, planned_values, setting_support, settings},
};
pub use storage::{Rig, RigOptions};
pub use sysfs::DeviceCounters;

//! Storage and system access: devices, filesystems, mounts, caches, system settings, and their
//! restoration.
//!
//! A run opens one [`Rig`] over its [`model::Storage`]. Each trial takes a [`MountedFilesystem`]
//! from it, a newly created filesystem, and returns it with [`MountedFilesystem::finish`]. The
//! [`Catalog`] defines the filesystem types; [`Catalog::availability`] reports which of them this
//! machine can create.
//!
//! An [`ActivityMonitor`] records the system activity during a step.
//!
//! All access to the machine goes through the trait [`Host`], so that the logic can be tested on a
//! [`FakeHost`]. Every change is written to the undo journal ([`undo`]) before it is made;
//! [`undo::clean`] undoes the changes of a killed run. [`guard`] decides which devices and files
//! may be formatted.
//!
//! Outside of this crate: measurement (`engine`), the order of trials (the runner), signal handling
//! (the caller drops the rig), and all `unsafe` code (`sys`).
#![forbid(unsafe_code)]

mod activity;
mod availability;
mod caches;
pub mod catalog;
mod cgroup;
mod device;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod guard;
pub mod host;
mod instance;
mod journaled_host;
pub mod layers;
mod memory;
pub mod mount;
mod options;
pub mod probe;
pub mod resume;
mod settings;
pub mod setup;
pub mod signature;
mod storage;
pub mod undo;

pub use activity::{ActivityMonitor, KernelLogMonitor, MonitorThread, monitor_cpu_time};
pub use availability::Availability;
pub use catalog::{Catalog, CatalogError, Filesystem};
pub use device::DeviceCounters;
pub use error::RigError;
pub use host::{FakeHost, Host, RealHost};
pub use instance::{
    FinishReport, InstanceSpec, MountedFilesystem, ProgramTime, Space, SpaceUsage, Step,
};
pub use options::{ResolvedOptions, resolve_options};
pub use settings::{
    SettingChange, Write,
    support::{PlannedValue, Support, planned_values, setting_support, settings},
};
pub use storage::{Rig, RigOptions};

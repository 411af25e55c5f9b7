//! WHERE: devices, filesystems, mounts, caches, knobs; and putting it all back.
//!
//! A run opens one [`Rig`] over its [`model::Storage`]; each trial takes a [`Mounted`] instance
//! from it, a freshly made filesystem, and gives it back with [`Mounted::finish`]. Which
//! filesystems there are says the [`Catalogue`]; whether this machine can make them says
//! [`Catalogue::availability`].
//!
//! While a step runs, a [`Watch`] collects what the machine does meanwhile.
//!
//! Everything that touches the machine goes through the trait [`Host`], so that the logic can be
//! tested on a [`FakeHost`], and every change is written to the undo journal ([`undo`]) before it
//! is made. What a killed run left behind, [`undo::clean`] puts back. What may be formatted at all,
//! [`guard`] decides.
//!
//! Deliberately not here: measuring (the engine's), choosing the order of trials (the conductor's),
//! signals (the caller drops the rig), and any `unsafe` (`sys` has it).
#![forbid(unsafe_code)]

mod availability;
mod bench;
mod caches;
pub mod catalogue;
mod cgroup;
mod device;
mod error;
mod evidence;
#[doc(hidden)]
pub mod fuzz;
pub mod guard;
pub mod host;
mod instance;
mod knobs;
pub mod layers;
mod memory;
pub mod mount;
mod options;
pub mod probe;
pub mod resume;
pub mod setup;
pub mod signature;
mod storage;
pub mod undo;

pub use availability::Availability;
pub use catalogue::{Catalogue, CatalogueError, Filesystem};
pub use device::DeviceCounters;
pub use error::RigError;
pub use evidence::{Listener, Watch, Watcher, watching};
pub use host::{FakeHost, Host, RealHost};
pub use instance::{Finish, Mounted, Occupancy, ProgramTime, Space, Step, Wanted};
pub use knobs::{
    Intent, Write,
    ability::{Ability, Intended, abilities, intended, settings},
};
pub use options::{InForce, in_force};
pub use storage::{Rig, RigOptions};

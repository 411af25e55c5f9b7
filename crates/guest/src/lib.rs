//! Guests: temporary virtual machines that boot a kernel with this binary as their init process.
//!
//! The inputs on the host are a [`Kernel`], an initramfs with the programs and modules that
//! filesystems need, and image files as disks. The result is a running [`Machine`], which answers
//! requests until it is dropped. In the guest, the binary is the init process ([`in_guest`]) and
//! passes each request to a worker. Crate `fslab` defines the contents of requests and replies.
//!
//! Guests do not need root and have no network device. A guest ends when the process that booted it
//! ends for any reason ([`supervisor`]).
#![forbid(unsafe_code)]

pub mod build;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod in_guest;
pub mod initramfs;
pub mod kernel;
pub mod kvm;
pub mod machine;
mod mailbox;
pub mod modules;
pub mod supervisor;

pub use error::GuestError;
pub use kernel::{Architecture, Cache, Kernel, KernelQuery};
pub use machine::{Disk, Engine, GuestSpec, Limits, Machine, Memory, Ready, memory_available};

#[cfg(test)]
#[path = "../tests/boot/packages.rs"]
mod packages;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

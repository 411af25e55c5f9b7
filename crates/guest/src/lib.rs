//! Elsewhere: a throw-away machine that boots a kernel, with this very binary as its first process.
//!
//! On the host enter a [`Kernel`], the programs and modules that filesystems need, and image files
//! as disks; a running [`Machine`] leaves, which answers requests until it is dropped. Inside, the
//! binary is the first process ([`inside`]) and hands each request to whoever works there. What is
//! in a request, and in its answer, is up to the binary.
//!
//! Nothing here needs root, no machine gets a network, and none outlives the process that booted
//! it, however that ends ([`cage`]).
#![forbid(unsafe_code)]

pub mod build;
pub mod cage;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod initramfs;
pub mod inside;
pub mod kernel;
pub mod kvm;
pub mod machine;
mod mailbox;
pub mod modules;

pub use error::GuestError;
pub use kernel::{Architecture, Cache, Kernel, Named};
pub use machine::{Disk, Engine, Limits, Machine, Memory, Ready, Wanted, memory_available};

#[cfg(test)]
#[path = "../tests/boot/packages.rs"]
mod packages;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

//! Kernel calls that rustix lacks: loop devices, block device ioctls, what of a file is in memory,
//! what tasks have used, namespaces, and virtual processors. And the programs of the machine, with
//! the check of paths that only root can change, files that are there whole or not at all, and
//! reads that neither wait nor go on without end.
//!
//! Data enters as open file descriptors or device paths and leaves as plain values; errors are the
//! kernel's own [`std::io::Error`]. Each call names its man page or kernel source. Apart
//! from [`program`] and [`trust`], nothing here decides anything: the callers decide what may be
//! attached, discarded or flushed.
//!
//! Kernel 5.8 or newer is needed for [`loop_device`]; [`cache`] uses `cachestat` (6.5) where it
//! can.
//!
//! `unsafe` is allowed here, one block a call, each with the invariant it rests on.

pub mod block;
pub mod cache;
pub mod child;
pub mod entropy;
pub mod input;
#[cfg(target_arch = "x86_64")]
pub mod kvm;
pub mod lock;
pub mod loop_device;
pub mod namespaces;
pub mod orders;
pub mod program;
pub mod trust;
pub mod usage;
pub mod whole;

use std::ffi::c_long;

/// Turns the answer of a raw call into a result: -1 stands for the error in `errno`.
fn checked(answer: c_long) -> std::io::Result<c_long> {
    if answer == -1 { Err(std::io::Error::last_os_error()) } else { Ok(answer) }
}

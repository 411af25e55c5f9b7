//! System calls that rustix lacks: loop devices, ioctls of devices and filesystems, page cache
//! residency,
//! resource usage of tasks, record locks, namespaces, and virtual CPUs. The crate also searches for
//! programs, checks that only root can change a path, creates files atomically, and reads files
//! with a size limit and without blocking.
//!
//! Data enters as open file descriptors or device paths and is returned as plain values; errors are
//! [`std::io::Error`] of the kernel. Each call names its manual page or kernel source. Apart from
//! [`program`] and [`trust`], this crate has no policy: the callers decide what may be attached,
//! discarded, or flushed.
//!
//! [`loop_device`] requires Linux 5.8; [`cache`] uses `cachestat` (6.5) if available.
//!
//! `unsafe` is allowed in this crate. Each block has a comment that states why it is sound.

pub mod block;
pub mod block_ioctl;
pub mod cache;
pub mod child;
pub mod entropy;
pub mod fs_ioctl;
pub mod input;
#[cfg(target_arch = "x86_64")]
pub mod kvm;
pub mod lock;
pub mod loop_device;
pub mod namespaces;
pub mod program;
pub mod ptrace;
pub mod trust;
pub mod usage;
pub mod whole;

use std::ffi::c_long;

/// Converts the return value of a raw call to a result: -1 indicates an error in `errno`.
fn checked(answer: c_long) -> std::io::Result<c_long> {
    if answer == -1 { Err(std::io::Error::last_os_error()) } else { Ok(answer) }
}

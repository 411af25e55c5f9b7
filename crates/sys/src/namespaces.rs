//! Namespaces of one's own (user_namespaces(7), pid_namespaces(7), mount_namespaces(7)).
//!
//! rustix has the call, as an unsafe function: with other flags than these it can take open files
//! away from other threads.

use rustix::{
    io,
    thread::{UnshareFlags, unshare_unsafe},
};

/// Moves this process to a user namespace of its own, and its future children to a pid namespace
/// of their own; `mounts` adds a mount namespace. No right is needed, but systems may refuse it.
///
/// The first child becomes the first process of the pid namespace: when it ends, the kernel kills
/// all others in there, and no more can be started (pid_namespaces(7)).
///
/// # Errors
/// The kernel's: `EPERM` or `ENOSPC` where it is refused, `EINVAL` for a process with threads.
pub fn enter(mounts: bool) -> io::Result<()> {
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWPID;
    if mounts {
        flags |= UnshareFlags::NEWNS;
    }
    // SAFETY: the flags are without `FILES`, so no thread loses a file descriptor that it holds,
    // which is what makes the call unsafe.
    unsafe { unshare_unsafe(flags) }
}

//! Namespaces of a process (user_namespaces(7), pid_namespaces(7), mount_namespaces(7),
//! network_namespaces(7)).
//!
//! rustix has the call as an unsafe function only: with other flags, it can close open files of
//! other threads.

use rustix::{
    io,
    thread::{UnshareFlags, unshare_unsafe},
};

/// Namespaces in addition to the pid namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Additional {
    /// User namespace, which makes privileges unnecessary. Without it, the call requires
    /// `CAP_SYS_ADMIN`.
    pub user: bool,
    /// Mount namespace.
    pub mounts: bool,
    /// Network namespace, which has only a loopback device that is down, and an IPC namespace for
    /// System V IPC and POSIX message queues.
    pub network: bool,
}

/// Moves the future children of this process to a new pid namespace, and this process to new
/// namespaces of the `additional` kinds. If the system refuses, nothing changes.
///
/// The first child becomes the init process of the pid namespace: when it ends, the kernel kills
/// all others in the namespace, and no more can be started (pid_namespaces(7)).
///
/// # Errors
/// Errors of the kernel: `EPERM` or `ENOSPC` if refused, `EINVAL` for a process with threads if
/// `additional.user` is set.
pub fn enter(additional: Additional) -> io::Result<()> {
    let mut flags = UnshareFlags::NEWPID;
    flags.set(UnshareFlags::NEWUSER, additional.user);
    flags.set(UnshareFlags::NEWNS, additional.mounts);
    flags.set(UnshareFlags::NEWNET | UnshareFlags::NEWIPC, additional.network);
    // SAFETY: without the flag `FILES`, no thread loses a file descriptor that it uses, which is
    // what makes the call unsafe.
    unsafe { unshare_unsafe(flags) }
}

//! Namespaces of a process (user_namespaces(7), pid_namespaces(7), mount_namespaces(7),
//! network_namespaces(7)).
//!
//! rustix has the call, as an unsafe function: with other flags than these it can take open files
//! away from other threads.

use rustix::{
    io,
    thread::{UnshareFlags, unshare_unsafe},
};

/// Namespaces besides that of process ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Further {
    /// A user namespace, with which no right is needed. Without it the call takes `CAP_SYS_ADMIN`.
    pub user: bool,
    /// A mount namespace.
    pub mounts: bool,
    /// A network namespace, which has only a loopback device that is down, and one for System V
    /// IPC and POSIX message queues.
    pub network: bool,
}

/// Moves the future children of this process to a new pid namespace, and this process to new
/// namespaces of the kinds in `further`. Systems may refuse it; nothing has changed then.
///
/// The first child becomes the first process of the pid namespace: when it ends, the kernel kills
/// all others in there, and no more can be started (pid_namespaces(7)).
///
/// # Errors
/// The kernel's: `EPERM` or `ENOSPC` if it is refused, `EINVAL` for a process with threads and
/// `further.user`.
pub fn enter(further: Further) -> io::Result<()> {
    let mut flags = UnshareFlags::NEWPID;
    flags.set(UnshareFlags::NEWUSER, further.user);
    flags.set(UnshareFlags::NEWNS, further.mounts);
    flags.set(UnshareFlags::NEWNET | UnshareFlags::NEWIPC, further.network);
    // SAFETY: the flags are without `FILES`, so no thread loses a file descriptor that it holds,
    // which is what makes the call unsafe.
    unsafe { unshare_unsafe(flags) }
}

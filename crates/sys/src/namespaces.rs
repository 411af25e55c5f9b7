//! Namespaces of a process (user_namespaces(7), pid_namespaces(7), mount_namespaces(7),
//! network_namespaces(7)).
//!
//! rustix provides unshare(2) only as an unsafe function, because one of its flags can close files
//! that other threads use.

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
    /// Network namespace and IPC namespace. The only network device is a loopback device that is
    /// down. The IPC namespace isolates System V IPC and POSIX message queues.
    pub network: bool,
}

/// Moves the future children of this process to a new pid namespace, and this process to new
/// namespaces of the `additional` kinds. If the system refuses, nothing changes.
///
/// The first child becomes the init process of the pid namespace. When the init process ends, the
/// kernel kills all other processes of the namespace, and no new process can be started in it
/// (pid_namespaces(7)).
///
/// # Errors
/// Errors of the kernel: `EPERM` or `ENOSPC` if refused; `EINVAL` if `additional.user` is set and
/// the process has several threads.
pub fn enter(additional: Additional) -> io::Result<()> {
    let mut flags = UnshareFlags::NEWPID;
    flags.set(UnshareFlags::NEWUSER, additional.user);
    flags.set(UnshareFlags::NEWNS, additional.mounts);
    flags.set(UnshareFlags::NEWNET | UnshareFlags::NEWIPC, additional.network);
    // SAFETY: the call is unsafe because the flag `FILES` can close descriptors that other threads
    // use; that flag is not set.
    unsafe { unshare_unsafe(flags) }
}

/// Activates the loopback device of the network namespace of this process (netdevice(7)). Requires
/// `CAP_NET_ADMIN` in this namespace.
///
/// # Errors
/// Errors of the kernel: `EPERM` without the capability.
pub fn activate_loopback() -> std::io::Result<()> {
    // SAFETY: the calls read and write the request, which lives longer; the socket is closed once.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        crate::checked(socket.into())?;
        let flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
        request.ifr_ifru.ifru_flags = flags;
        let set =
            crate::checked(libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw mut request).into());
        libc::close(socket);
        set.map(|_| ())
    }
}

//! ioctls of mounted filesystems: trim free space, create a snapshot of a btrfs subvolume, freeze
//! and thaw.
//!
//! All change state and require privileges. Kernel source: `fs/ioctl.c`, `fs/ext4/ioctl.c`,
//! `fs/btrfs/ioctl.c`; numbers: `include/uapi/linux/fs.h`, `include/uapi/linux/btrfs.h`.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    ioctl::{NoArg, Opcode, Setter, Updater, ioctl, opcode},
    process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid},
};

use crate::checked;

/// `_IOWR('X', 121, struct fstrim_range)`.
const FITRIM: Opcode = opcode::read_write::<[u64; 3]>(b'X', 121);
/// `_IOWR('X', 119, int)`.
const FIFREEZE: Opcode = opcode::read_write::<libc::c_int>(b'X', 119);
/// `_IOWR('X', 120, int)`.
const FITHAW: Opcode = opcode::read_write::<libc::c_int>(b'X', 120);
/// `_IOW(BTRFS_IOCTL_MAGIC, 23, struct btrfs_ioctl_vol_args_v2)`.
const SNAP_CREATE_V2: Opcode = opcode::write::<VolumeArguments>(0x94, 23);
/// `BTRFS_SUBVOL_RDONLY`.
const READ_ONLY: u64 = 1 << 1;
/// Bytes of a name in [`VolumeArguments`].
const NAME: usize = 4040;

/// `struct btrfs_ioctl_vol_args_v2`.
#[repr(C)]
struct VolumeArguments {
    fd: i64,
    transid: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; NAME],
}

/// Discards the free space of the filesystem of an open file or directory. Returns the number of
/// discarded bytes.
///
/// # Errors
/// Errors of `ioctl(2)`: `EOPNOTSUPP` and `ENOTTY` if the filesystem or its device does not
/// support it, `EPERM` without privileges.
pub fn trim(file: BorrowedFd<'_>) -> io::Result<u64> {
    // Start, length, and minimum length of a free range.
    let mut range = [0, u64::MAX, 0];
    // SAFETY: FITRIM reads and writes three u64 (`ext4_ioctl` and others), which the updater
    // passes.
    unsafe { ioctl(file, Updater::<FITRIM, [u64; 3]>::new(&mut range)) }?;
    Ok(range[1])
}

/// Creates a read-only snapshot of a btrfs subvolume with this name in an open directory.
///
/// # Errors
/// `EINVAL` for a name that is empty, too long, or has a slash, and if `subvolume` is not the root
/// of a subvolume; `ENOTTY` on other filesystems; other errors of `ioctl(2)`.
pub fn snapshot(
    subvolume: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    name: &str,
) -> io::Result<()> {
    if name.is_empty() || name.len() >= NAME || name.contains(['/', '\0']) {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let mut arguments = VolumeArguments {
        fd: i64::from(subvolume.as_fd().as_raw_fd()),
        transid: 0,
        flags: READ_ONLY,
        unused: [0; 4],
        name: [0; NAME],
    };
    arguments.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: SNAP_CREATE_V2 reads a `btrfs_ioctl_vol_args_v2` (`btrfs_ioctl_snap_create_v2`),
    // whose layout is that of the argument. It writes nothing without BTRFS_SUBVOL_CREATE_ASYNC,
    // which Linux 5.7 removed. The name ends with a zero, because it is shorter than the array.
    unsafe { ioctl(directory, Setter::<SNAP_CREATE_V2, VolumeArguments>::new(arguments)) }?;
    Ok(())
}

/// Interval in which [`freeze`] checks if it should end.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Exit status of the freezing process after it was stopped. Error numbers are less.
const STOPPED: libc::c_int = 255;

/// Freezes the filesystem of an open directory, and thaws it after `time`, or when `stopped`
/// returns true. Returns true if it was frozen for the whole time.
///
/// A child process does both. It thaws the filesystem immediately if the calling thread ends, so
/// that the filesystem is not left frozen if this process is killed.
///
/// # Errors
/// Errors of `ioctl(2)`: `EBUSY` if the filesystem is frozen, `EOPNOTSUPP` if it does not support
/// this, `EPERM` without privileges; [`io::ErrorKind::Interrupted`] if the child was killed; the
/// filesystem is then thawed.
pub fn freeze(
    directory: BorrowedFd<'_>,
    time: Duration,
    stopped: impl Fn() -> bool,
) -> io::Result<bool> {
    let root = directory.as_raw_fd();
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    let parent = std::process::id().cast_signed();
    // SAFETY: the child makes system calls only, which are async-signal-safe, on memory that was
    // prepared before, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { hold(root, &time, parent) }
    }
    let child = Pid::from_raw(i32::try_from(checked(child.into())?).unwrap_or_default());
    let child = child.ok_or(io::ErrorKind::NotFound)?;
    if let Ok(ended) = pidfd_open(child, PidfdFlags::empty()) {
        let mut ended = [PollFd::new(&ended, PollFlags::IN)];
        // On an error, waitpid(2) waits.
        while matches!(poll(&mut ended, Some(&NAP)), Ok(0) | Err(rustix::io::Errno::INTR)) {
            if stopped() {
                // Fails only if the child has ended.
                let _ = kill_process(child, Signal::TERM);
            }
        }
    }
    let status = loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            status => break status?.and_then(|(_, status)| status.exit_status()),
        }
    };
    match status {
        Some(0) => Ok(true),
        Some(STOPPED) => Ok(false),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => {
            thaw(directory)?;
            Err(io::Error::new(io::ErrorKind::Interrupted, "the freezing process was killed"))
        }
    }
}

/// Child of [`freeze`]: freezes, waits for `time` or SIGTERM, thaws, and exits with the error
/// number.
///
/// The kernel sends the signal if the thread that called fork(2) ends. Descriptors do not show
/// this: if another thread of a killed process waits for the filesystem, they remain open.
///
/// # Safety
/// Only in a process that has one thread and does not share memory.
unsafe fn hold(root: libc::c_int, time: &libc::timespec, parent: libc::pid_t) -> ! {
    // SAFETY: system calls on integers and on live memory of this function.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigfillset(&raw mut signals);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const signals, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong);
        if libc::getppid() != parent {
            libc::_exit(STOPPED);
        }
        // Signals to the process group are for the parent.
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"fsthaw".as_ptr());
        // Locks on open files end with the parent.
        if root > 0 {
            libc::syscall(libc::SYS_close_range, 0, root - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, root + 1, libc::c_int::MAX, 0);
        let errno = || *libc::__errno_location();
        if libc::ioctl(root, FIFREEZE as _, 0) != 0 {
            libc::_exit(errno());
        }
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGTERM);
        let stopped = libc::sigtimedwait(&raw const signals, std::ptr::null_mut(), time);
        let thawed = libc::ioctl(root, FITHAW as _, 0);
        libc::_exit(match thawed {
            0 if stopped == libc::SIGTERM => STOPPED,
            0 => 0,
            _ => errno(),
        })
    }
}

/// Thaws the filesystem of an open directory if it is frozen.
///
/// # Errors
/// Errors of `ioctl(2)`, for instance `EPERM` without privileges.
pub fn thaw(directory: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: FITHAW has no argument (`ioctl_fsthaw`).
    match unsafe { ioctl(directory, NoArg::<FITHAW>::new()) } {
        // Not frozen (`thaw_super`, fs/super.c).
        Err(rustix::io::Errno::INVAL) => Ok(()),
        thawed => Ok(thawed?),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, mem::size_of};

    use super::*;

    #[test]
    fn the_layout_and_the_numbers_are_those_of_the_kernel() {
        assert_eq!(size_of::<VolumeArguments>(), 4096);
        assert_eq!(FITRIM, 0xc018_5879);
        assert_eq!((FIFREEZE, FITHAW), (0xc004_5877, 0xc004_5878));
        assert_eq!(SNAP_CREATE_V2, 0x5000_9417);
    }

    #[test]
    fn unsuitable_filesystems_and_names_are_errors() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let file = File::open(directory.path()).unwrap();
        assert!(trim(file.as_fd()).is_err(), "tmpfs has no device");
        assert!(snapshot(file.as_fd(), file.as_fd(), "a/b").is_err());
        assert!(snapshot(file.as_fd(), file.as_fd(), "one").is_err(), "tmpfs has no subvolumes");
    }
}

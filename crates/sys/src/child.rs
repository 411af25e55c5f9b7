//! Child programs: their user, termination with the parent, and resource usage (wait4(2)).
//!
//! The wait of the standard library returns only the exit status. wait4(2) also reports the
//! resource usage of this child. `RUSAGE_CHILDREN` is not suitable, because it includes children
//! for which other threads wait.

use std::{
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child, Command, ExitStatus},
    time::Duration,
};

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::checked;

/// Exit status and resource usage of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Exit status.
    pub status: ExitStatus,
    /// CPU time in user mode of the program and of all programs that it waited for (`RUSAGE_BOTH`
    /// in `wait_task_zombie`, `kernel/exit.c`).
    pub user: Duration,
    /// CPU time in kernel mode of the same programs. The sum of `user` and `system` is measured by
    /// the scheduler. The kernel splits it in proportion to ticks, unless it accounts every
    /// transition between the modes (`cputime_adjust`, `kernel/sched/cputime.c`).
    pub system: Duration,
    /// Voluntary context switches (`ru_nvcsw`).
    pub voluntary: u64,
    /// Involuntary context switches (`ru_nivcsw`).
    pub involuntary: u64,
}

/// Makes the kernel kill a program when the thread that started the program ends, even if the whole
/// process was killed (`PR_SET_PDEATHSIG`, prctl(2)).
///
/// Otherwise no process would wait for the program, and it could change files that are being
/// restored. Programs that change their user or privileges, such as set-user-ID programs, are not
/// killed.
pub fn dies_with_parent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: the closure runs between fork and exec and makes two system calls, which are
    // async-signal-safe; it neither allocates nor takes locks.
    unsafe {
        command.pre_exec(move || {
            let signal = libc::c_ulong::try_from(libc::SIGKILL).unwrap_or(9);
            if libc::prctl(libc::PR_SET_PDEATHSIG, signal) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have ended before prctl(2).
            if libc::getppid().cast_unsigned() != parent {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        });
    }
}

/// User and groups of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User ID.
    pub user: u32,
    /// Group ID.
    pub group: u32,
    /// Supplementary group IDs.
    pub groups: Vec<u32>,
}

/// Changes the identity of this process and clears its capability bounding set, so that programs
/// executed later have no capabilities, even as root. If the user is not root, the kernel also
/// removes the current capabilities (capabilities(7)). A change of the user or group cancels
/// [`dies_with_parent`], so request it again afterwards.
///
/// # Errors
/// Errors of the kernel: `EPERM` without the privileges to do this, `EINVAL` if the user namespace
/// lacks the IDs. After an error, the identity may be changed in part.
pub fn become_identity(identity: &Identity) -> io::Result<()> {
    let Identity { user, group, groups } = identity;
    for number in 0..u64::BITS {
        // Fails for numbers above the last capability of the kernel.
        let capability = CapabilitySet::from_bits_retain(1 << number);
        let _ = remove_capability_from_bounding_set(capability);
    }
    // SAFETY: `setgroups` reads as many IDs as the length says, from live memory; the other calls
    // take integers.
    unsafe {
        checked(libc::setgroups(groups.len(), groups.as_ptr()).into())?;
        checked(libc::setresgid(*group, *group, *group).into())?;
        checked(libc::setresuid(*user, *user, *user).into())?;
    }
    Ok(())
}

/// Makes a program start with this identity, as by [`become_identity`].
pub fn starts_as(command: &mut Command, identity: Identity) {
    // SAFETY: the closure runs between fork and exec and makes system calls only, which are
    // async-signal-safe; it neither allocates nor takes locks.
    unsafe {
        command.pre_exec(move || become_identity(&identity));
    }
}

/// Waits for a child to end. Consumes the child because it cannot be waited for twice.
///
/// # Errors
/// `ECHILD` if another thread has waited for the child, or if `SIGCHLD` is ignored (the kernel then
/// discards exit statuses).
pub fn wait(child: Child) -> io::Result<Ended> {
    let pid = child.id().cast_signed();
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live memory of the type that the call writes. The process is
        // a child of this process that no other thread waits for, because `child` is owned here.
        let answer = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if answer == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: a struct of integers, zeroed before and written by the call.
    let usage = unsafe { usage.assume_init() };
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        voluntary: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
        involuntary: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
    })
}

/// Converts a time reported by the kernel, which is not negative and has less than a million
/// microseconds.
fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Instant};

    use super::*;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        use std::os::unix::process::ExitStatusExt as _;
        let start = || {
            let mut command = Command::new("sleep");
            command.arg("600");
            dies_with_parent(&mut command);
            command.spawn().unwrap()
        };
        let child = std::thread::spawn(start).join().unwrap();
        assert_eq!(wait(child).unwrap().status.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn status_and_cpu_time_of_a_program_are_reported() {
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; exit 3";
        let start = Instant::now();
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let ended = wait(child).unwrap();
        let elapsed = start.elapsed();
        assert_eq!(ended.status.code(), Some(3));
        let cpu = ended.user + ended.system;
        assert!(cpu > Duration::ZERO && cpu <= elapsed, "{cpu:?} of {elapsed:?}");
    }

    #[test]
    fn a_killed_program_has_no_exit_code() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        child.kill().unwrap();
        assert_eq!(wait(child).unwrap().status.code(), None);
    }
}

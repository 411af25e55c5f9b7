//! Resource usage of processes and threads: CPU time, page faults.
//!
//! CPU time here is the run time in nanoseconds that the scheduler measures (`sum_exec_runtime`),
//! not the ticks of `/proc`: `kernel/time/posix-cpu-timers.c`, function `cpu_clock_sample_group`.
//! Any process may read the CPU time of any other process; permissions are not checked
//! (`pid_for_clock`).

use std::{ffi::c_int, io, mem::MaybeUninit};

/// `CPUCLOCK_SCHED | CPUCLOCK_PERTHREAD` of `include/linux/posix-timers_types.h`: the scheduler's
/// clock of one thread. The upper bits of a clock ID are the inverted task ID. C libraries contain
/// these numbers, so they are a stable interface of the kernel.
const THREAD_CLOCK: c_int = 2 | 4;
/// `CPUCLOCK_SCHED`: the scheduler's clock of a whole process.
const PROCESS_CLOCK: c_int = 2;

/// CPU time of a process since its start, in nanoseconds. Includes all of its threads, also those
/// that have ended. Works for kernel threads and zombies.
///
/// # Errors
/// `EINVAL` if there is no process of that ID.
pub fn process_time(process: u32) -> io::Result<u64> {
    read(clock(process, PROCESS_CLOCK)?)
}

/// CPU time of a thread of this process since the start of the thread, in nanoseconds.
///
/// # Errors
/// `EINVAL` if this process has no thread of that ID.
pub fn thread_time(thread: u32) -> io::Result<u64> {
    read(clock(thread, THREAD_CLOCK)?)
}

fn clock(task: u32, kind: c_int) -> io::Result<libc::clockid_t> {
    let task = c_int::try_from(task).map_err(|_| io::ErrorKind::InvalidInput)?;
    // Task IDs have at most 22 bits (PID_MAX_LIMIT in include/linux/threads.h).
    Ok((!task).wrapping_shl(3) | kind)
}

fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: clock_gettime writes one timespec through its second argument, which is large enough;
    // it returns EINVAL for a clock that does not exist.
    let answer = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the kernel has filled it in.
    let time = unsafe { time.assume_init() };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec)))
}

/// Processes whose resources are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageScope {
    /// This process, all threads.
    This,
    /// Children that have ended and were waited for, and their children recursively.
    EndedChildren,
}

/// Resource usage of getrusage(2), limited to the fields that Linux maintains and fslab uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPU time in nanoseconds, in steps of a microsecond.
    pub time: u64,
    /// Part of `time` in user mode.
    pub user: u64,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
}

/// Resource usage since the start of the process.
///
/// # Errors
/// None are known on Linux.
pub fn resources(scope: UsageScope) -> io::Result<Resources> {
    let who = match scope {
        UsageScope::This => libc::RUSAGE_SELF,
        UsageScope::EndedChildren => libc::RUSAGE_CHILDREN,
    };
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage writes one rusage through its second argument, which is large enough.
    let answer = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the kernel has filled it in.
    let usage = unsafe { usage.assume_init() };
    let count = |value: i64| u64::try_from(value).unwrap_or(0);
    let nanos = |time: libc::timeval| {
        count(time.tv_sec).saturating_mul(1_000_000_000) + count(time.tv_usec).saturating_mul(1000)
    };
    Ok(Resources {
        time: nanos(usage.ru_utime).saturating_add(nanos(usage.ru_stime)),
        user: nanos(usage.ru_utime),
        voluntary: count(usage.ru_nvcsw),
        involuntary: count(usage.ru_nivcsw),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_library(process: libc::pid_t) -> libc::clockid_t {
        let mut clock = 0;
        // SAFETY: it writes one clock number through its second argument.
        assert_eq!(unsafe { libc::clock_getcpuclockid(process, &raw mut clock) }, 0);
        clock
    }

    #[test]
    fn clocks_equal_those_of_the_c_library() {
        let own = std::process::id();
        let expected = by_library(libc::pid_t::try_from(own).unwrap());
        assert_eq!(clock(own, PROCESS_CLOCK).unwrap(), expected);
        assert_eq!(clock(1, PROCESS_CLOCK).unwrap(), by_library(1));
    }

    #[test]
    fn time_increases_with_work_of_a_thread() {
        let thread = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let own = std::process::id();
        let (before, thread_before) = (process_time(own).unwrap(), thread_time(thread).unwrap());
        let mut sum = 0u64;
        while thread_time(thread).unwrap() - thread_before < 2_000_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        assert!(process_time(own).unwrap() - before >= 2_000_000);
        assert!(resources(UsageScope::This).unwrap().time >= 2_000_000);
    }

    #[test]
    fn nonexistent_tasks_have_no_time() {
        assert!(process_time(0x3f_ffff).is_err() && thread_time(1 << 31).is_err());
        // The init process is not a thread of this process.
        assert!(thread_time(1).is_err());
    }

    #[test]
    fn children_are_included_after_wait() {
        let before = resources(UsageScope::EndedChildren).unwrap();
        assert!(std::process::Command::new("true").status().unwrap().success());
        let after = resources(UsageScope::EndedChildren).unwrap();
        assert!(after.minor_faults > before.minor_faults && after.time >= before.time);
    }
}

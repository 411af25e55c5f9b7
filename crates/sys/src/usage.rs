//! What processes and threads have used: exact CPU time, page faults.
//!
//! CPU time here is the scheduler's own sum of run time in nanoseconds (`sum_exec_runtime`), not
//! the ticks of `/proc`: `kernel/time/posix-cpu-timers.c`, function `cpu_clock_sample_group`. Every
//! process may ask for that of every other; no permission is checked (`pid_for_clock`).

use std::{ffi::c_int, io, mem::MaybeUninit};

/// `CPUCLOCK_SCHED | CPUCLOCK_PERTHREAD` of `include/linux/posix-timers_types.h`: the scheduler's
/// clock of one thread. The upper bits are the inverted number of the task. C libraries compile
/// these numbers in, so they are part of the kernel's interface.
const THREAD_CLOCK: c_int = 2 | 4;
/// `CPUCLOCK_SCHED`: the scheduler's clock of a whole process.
const PROCESS_CLOCK: c_int = 2;

/// CPU time of a process since its start in nanoseconds, all of its threads and those that have
/// ended together. Works for kernel threads and for zombies.
///
/// # Errors
/// `EINVAL` when there is no process of that number.
pub fn process_time(process: u32) -> io::Result<u64> {
    read(clock(process, PROCESS_CLOCK)?)
}

/// CPU time of a thread of this very process since its start, in nanoseconds.
///
/// # Errors
/// `EINVAL` when this process has no thread of that number.
pub fn thread_time(thread: u32) -> io::Result<u64> {
    read(clock(thread, THREAD_CLOCK)?)
}

fn clock(task: u32, kind: c_int) -> io::Result<libc::clockid_t> {
    let task = c_int::try_from(task).map_err(|_| io::ErrorKind::InvalidInput)?;
    // Task numbers have at most 22 bits (PID_MAX_LIMIT in include/linux/threads.h).
    Ok((!task).wrapping_shl(3) | kind)
}

fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: clock_gettime writes one timespec through its second argument, which has room for it;
    // a clock that does not exist is answered with EINVAL.
    let answer = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the kernel has filled it in.
    let time = unsafe { time.assume_init() };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Ok(part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec)))
}

/// Whose resources are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This process, all threads.
    This,
    /// Its children that have ended and were waited for, with theirs in turn.
    EndedChildren,
}

/// What getrusage(2) counts, as far as Linux keeps it and it is of use here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPU time in nanoseconds, in steps of a microsecond.
    pub time: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that had to read.
    pub major_faults: u64,
}

/// What this process or its children have used since they began.
///
/// # Errors
/// None is known on Linux.
pub fn resources(whose: Whose) -> io::Result<Resources> {
    let who = match whose {
        Whose::This => libc::RUSAGE_SELF,
        Whose::EndedChildren => libc::RUSAGE_CHILDREN,
    };
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage writes one rusage through its second argument, which has room for it.
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
    fn clocks_are_those_of_the_c_library() {
        let own = std::process::id();
        let expected = by_library(libc::pid_t::try_from(own).unwrap());
        assert_eq!(clock(own, PROCESS_CLOCK).unwrap(), expected);
        assert_eq!(clock(1, PROCESS_CLOCK).unwrap(), by_library(1));
    }

    #[test]
    fn time_grows_with_work_and_a_thread_is_within_its_process() {
        let thread = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let own = std::process::id();
        let (before, thread_before) = (process_time(own).unwrap(), thread_time(thread).unwrap());
        let mut sum = 0u64;
        while thread_time(thread).unwrap() - thread_before < 2_000_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        assert!(process_time(own).unwrap() - before >= 2_000_000);
        assert!(resources(Whose::This).unwrap().time >= 2_000_000);
    }

    #[test]
    fn nobody_has_no_time() {
        assert!(process_time(0x3f_ffff).is_err() && thread_time(1 << 31).is_err());
        // The first process is no thread of ours.
        assert!(thread_time(1).is_err());
    }

    #[test]
    fn children_count_once_they_were_waited_for() {
        let before = resources(Whose::EndedChildren).unwrap();
        assert!(std::process::Command::new("true").status().unwrap().success());
        let after = resources(Whose::EndedChildren).unwrap();
        assert!(after.minor_faults > before.minor_faults && after.time >= before.time);
    }
}

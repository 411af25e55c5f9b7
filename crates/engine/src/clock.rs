//! Time: the monotonic clock, its overhead, and the resource usage of a worker.
//!
//! [`now`] can be used everywhere. [`Clock`] returns the same time at about half of the cost in
//! loops whose operations are system calls.
#![expect(unsafe_code, reason = "getrusage(2) has no safe form")]

use std::time::Duration;

use model::Nanos;
use rustix::{
    thread::nanosleep,
    time::{ClockId, Timespec, clock_gettime},
};

mod ticks;

pub(crate) use ticks::Clock;

/// CLOCK_MONOTONIC in nanoseconds since an arbitrary start that all processes of one boot share.
/// Read through the vDSO, without a system call (clock_gettime(2), vdso(7)).
#[inline]
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    #[expect(clippy::cast_sign_loss, reason = "the monotonic clock starts at zero at boot")]
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Resolution and overhead of [`now`] on this host. Loops over blocks read [`now`]. Loops over
/// entries of a file set read [`Clock`], whose overhead is smaller if it counts CPU ticks and
/// otherwise the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockFacts {
    /// Smallest difference above zero between two consecutive readings. If the clock ticks faster
    /// than it can be read, this is the duration of the fastest reading.
    pub resolution: Nanos,
    /// Median difference between two consecutive readings: the duration of a reading.
    pub cost: Nanos,
}

/// Measures the clock; takes less than a millisecond.
pub fn clock() -> ClockFacts {
    let reads: Vec<Nanos> = (0..4097).map(|_| now()).collect();
    facts(&reads)
}

/// Facts derived from at least two consecutive reads.
fn facts(reads: &[Nanos]) -> ClockFacts {
    let mut steps: Vec<Nanos> = reads.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    let resolution = steps.iter().copied().find(|step| step.0 > 0).unwrap_or_default();
    ClockFacts { resolution, cost: steps[steps.len() / 2] }
}

/// Maximum time from the end of a sleep until the thread runs. [`sleep_until`] wakes up this early
/// and polls the clock.
pub(crate) const AWAKE: Nanos = Nanos(60_000);

/// Sleeps until an instant and returns the time, which is that instant or later. The last 60 µs are
/// spent polling, because a timer and the scheduler take about that long to wake a thread.
pub(crate) fn sleep_until(instant: Nanos) -> Nanos {
    let mut clock = now();
    while clock < instant {
        if instant - clock > AWAKE {
            let length = Duration::from_nanos((instant - clock - AWAKE).0);
            // The loop handles sleeps that a signal interrupted.
            let _ = nanosleep(&Timespec::try_from(length).unwrap_or_default());
        } else {
            std::hint::spin_loop();
        }
        clock = now();
    }
    clock
}

/// Resource usage of the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// CPU time in user mode.
    pub(crate) user: Nanos,
    /// CPU time in the kernel.
    pub(crate) system: Nanos,
    /// Voluntary context switches.
    pub(crate) voluntary: u64,
    /// Involuntary context switches.
    pub(crate) involuntary: u64,
    // CLOCK_THREAD_CPUTIME_ID at the reading; zero for programs.
    clock: Nanos,
}

impl Usage {
    /// Usage since an earlier reading. The sum of user and system time is taken from the thread's
    /// CPU clock and divided like the times of getrusage(2), which the kernel derives from ticks.
    /// If the kernel has counted no tick, all time counts as system time, because a worker spends
    /// most of its time in the kernel.
    pub(crate) fn since(self, before: Self) -> Self {
        let exact = self.clock - before.clock;
        let (user, system) = (self.user - before.user, self.system - before.system);
        let user = match (user + system).0 {
            0 => Nanos(0),
            all => Nanos(part(exact.0, user.0, all)),
        };
        Self {
            user,
            system: exact - user,
            clock: exact,
            voluntary: self.voluntary - before.voluntary,
            involuntary: self.involuntary - before.involuntary,
        }
    }

    /// Limits the CPU time to `elapsed`. The CPU time was read before the first and after the last
    /// reading of the clock. It therefore includes about a microsecond of overhead, which is
    /// significant for a short task.
    pub(crate) fn within(self, elapsed: Nanos) -> Self {
        if self.clock <= elapsed || self.clock.0 == 0 {
            return self;
        }
        let user = Nanos(part(elapsed.0, self.user.0, self.clock.0));
        Self { user, system: elapsed - user, clock: elapsed, ..self }
    }

    /// Sum of two usages.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
            clock: self.clock,
        }
    }

    /// getrusage(2) with `RUSAGE_THREAD`, also for worker processes, because a worker process runs
    /// one thread. The kernel splits the CPU time into user and system time by its ticks
    /// (`cputime_adjust` in kernel/sched/cputime.c), and updates the CPU time of a running thread
    /// only at ticks. CLOCK_THREAD_CPUTIME_ID is always exact.
    pub(crate) fn of_this_thread() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is valid for one rusage, which is all the kernel writes.
        let answer = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        assert_eq!(answer, 0, "getrusage(RUSAGE_THREAD) with a valid pointer cannot fail");
        // SAFETY: all-zero is a valid rusage, and the kernel has filled it.
        let usage = Self::from_kernel(&unsafe { usage.assume_init() });
        let time = clock_gettime(ClockId::ThreadCPUTime);
        #[expect(clippy::cast_sign_loss, reason = "CPU times are not negative")]
        let clock = Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
        Self { clock, ..usage }
    }

    /// Usage of a program that has ended.
    pub(crate) fn of_program(ended: &sys::child::Ended) -> Self {
        Self {
            user: ended.user.into(),
            system: ended.system.into(),
            voluntary: ended.voluntary,
            involuntary: ended.involuntary,
            clock: Nanos(0),
        }
    }

    /// Converts an rusage of a thread.
    fn from_kernel(usage: &libc::rusage) -> Self {
        let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        Self {
            user: nanos(usage.ru_utime),
            system: nanos(usage.ru_stime),
            voluntary: count(usage.ru_nvcsw),
            involuntary: count(usage.ru_nivcsw),
            clock: Nanos(0),
        }
    }
}

/// `whole` times `some` divided by `all`, which is not zero and not less than `some`.
fn part(whole: u64, some: u64, all: u64) -> u64 {
    let part = u128::from(whole) * u128::from(some) / u128::from(all);
    u64::try_from(part).unwrap_or(whole)
}

fn nanos(time: libc::timeval) -> Nanos {
    #[expect(clippy::cast_sign_loss, reason = "CPU times are not negative")]
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_the_smallest_step_and_the_median() {
        let reads = [0, 0, 10, 15, 35, 55].map(Nanos);
        assert_eq!(facts(&reads), ClockFacts { resolution: Nanos(5), cost: Nanos(10) });
        let stuck = [3, 3, 3].map(Nanos);
        assert_eq!(facts(&stuck), ClockFacts { resolution: Nanos(0), cost: Nanos(0) });
    }

    #[test]
    fn the_clock_is_monotonic_and_advances() {
        let first = now();
        assert!(clock().resolution > Nanos(0));
        assert!(now() > first);
    }

    #[test]
    fn work_uses_cpu_time() {
        let before = Usage::of_this_thread();
        let (mut sum, started) = (0u64, now());
        (0..10_000u64).for_each(|n| sum = std::hint::black_box(sum ^ n));
        let used = Usage::of_this_thread().since(before);
        let (used, elapsed) = (used.user + used.system, now() - started);
        // Less than a tick, and still measured; the readings themselves are included.
        assert!((1..=elapsed.0 + 1_000_000).contains(&used.0), "{used} of {elapsed}");
    }

    #[test]
    fn the_cpu_time_is_exact_and_its_split_proportional() {
        let reading = |user, system, clock| Usage {
            user: Nanos(user),
            system: Nanos(system),
            clock: Nanos(clock),
            ..Usage::default()
        };
        let used = reading(14, 26, 1080).since(reading(10, 20, 1000));
        assert_eq!((used.user, used.system), (Nanos(32), Nanos(48)));
        let short = reading(10, 20, 1003).since(reading(10, 20, 1000));
        assert_eq!((short.user, short.system), (Nanos(0), Nanos(3)));
    }
}

//! Time: the monotonic clock, what reading it costs, and what a worker uses.
//!
//! [`now`] serves everywhere; [`Clock`] tells the same time at about half of the cost to loops
//! whose operations are system calls.
#![expect(unsafe_code, reason = "getrusage(2) has no safe form")]

use std::time::Duration;

use model::Nanos;
use rustix::{
    thread::nanosleep,
    time::{ClockId, Timespec, clock_gettime},
};

mod ticks;

pub(crate) use ticks::Clock;

/// CLOCK_MONOTONIC, in nanoseconds since an arbitrary start that all processes of one boot share;
/// read through the vDSO, without a system call (clock_gettime(2), vdso(7)).
#[inline]
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    #[expect(clippy::cast_sign_loss, reason = "the monotonic clock starts at zero at boot")]
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// What the clock can resolve and what reading it costs on this host: that of [`now`], which loops
/// over records read. The one of loops over entries costs less where it counts ticks, and as much
/// where it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockFacts {
    /// The smallest step seen between two reads. Not finer than [`Self::cost`] on hosts whose clock
    /// ticks faster than it can be read.
    pub resolution: Nanos,
    /// The median distance of two reads that follow each other.
    pub cost: Nanos,
}

/// Measures the clock; takes well under a millisecond.
pub fn clock() -> ClockFacts {
    let reads: Vec<Nanos> = (0..4097).map(|_| now()).collect();
    facts(&reads)
}

/// The facts told by consecutive reads; at least two.
fn facts(reads: &[Nanos]) -> ClockFacts {
    let mut steps: Vec<Nanos> = reads.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    let resolution = steps.iter().copied().find(|step| step.0 > 0).unwrap_or_default();
    ClockFacts { resolution, cost: steps[steps.len() / 2] }
}

/// A sleep of a thread may last this much longer than asked for; the rest is spent looking at the
/// clock.
pub(crate) const AWAKE: Nanos = Nanos(60_000);

/// Sleeps until an instant and tells the time, which is that instant or later. The last 60 µs are
/// spent awake, since a timer and the scheduler take about that long to wake a thread.
pub(crate) fn sleep_until(instant: Nanos) -> Nanos {
    let mut clock = now();
    while clock < instant {
        if instant - clock > AWAKE {
            let length = Duration::from_nanos((instant - clock - AWAKE).0);
            // Cut short by a signal: the loop sees to it.
            let _ = nanosleep(&Timespec::try_from(length).unwrap_or_default());
        } else {
            std::hint::spin_loop();
        }
        clock = now();
    }
    clock
}

/// What the calling thread has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// CPU time in user mode.
    pub(crate) user: Nanos,
    /// CPU time in the kernel.
    pub(crate) system: Nanos,
    /// Context switches because it waited.
    pub(crate) voluntary: u64,
    /// Context switches because others wanted its CPU.
    pub(crate) involuntary: u64,
    // CLOCK_THREAD_CPUTIME_ID at the reading; zero of programs.
    clock: Nanos,
}

impl Usage {
    /// What was used since an earlier reading. The sum is that of the thread's CPU clock; the
    /// kernel tells the split by what its ticks have met, so of a time shorter than a tick, all
    /// counts where the next tick will most likely be: in the kernel, where a worker works.
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

    /// At most so much CPU time: the readings stand around those of the clock, so that their own
    /// microsecond is no part of what is timed, and of a short task that is seen.
    pub(crate) fn within(self, elapsed: Nanos) -> Self {
        if self.clock <= elapsed || self.clock.0 == 0 {
            return self;
        }
        let user = Nanos(part(elapsed.0, self.user.0, self.clock.0));
        Self { user, system: elapsed - user, clock: elapsed, ..self }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user: self.user + other.user,
            system: self.system + other.system,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
            clock: self.clock,
        }
    }

    /// getrusage(2) with `RUSAGE_THREAD`, which serves threads and processes alike, as a worker
    /// process works in one thread. The kernel splits a sum between user and system by its ticks
    /// (`cputime_adjust` in kernel/sched/cputime.c), and of a running thread brings that sum up to
    /// date at ticks only; CLOCK_THREAD_CPUTIME_ID is exact at any moment.
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

    /// What a program used that has ended.
    pub(crate) fn of_program(ended: &sys::child::Ended) -> Self {
        Self {
            user: ended.user.into(),
            system: ended.system.into(),
            voluntary: ended.voluntary,
            involuntary: ended.involuntary,
            clock: Nanos(0),
        }
    }

    /// What an rusage says of a thread.
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

/// `whole` times `some` over `all`, which is not zero and not less than `some`.
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
    fn this_clock_moves_and_never_goes_back() {
        let first = now();
        assert!(clock().resolution > Nanos(0));
        assert!(now() > first);
    }

    #[test]
    fn work_costs_cpu_time() {
        let before = Usage::of_this_thread();
        let (mut sum, started) = (0u64, now());
        (0..10_000u64).for_each(|n| sum = std::hint::black_box(sum ^ n));
        let used = Usage::of_this_thread().since(before);
        let (used, elapsed) = (used.user + used.system, now() - started);
        // Less than a tick, and told all the same; the readings themselves are part of it.
        assert!((1..=elapsed.0 + 1_000_000).contains(&used.0), "{used} of {elapsed}");
    }

    #[test]
    fn the_sum_is_exact_and_the_split_is_in_proportion() {
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

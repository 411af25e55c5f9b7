//! Time: the monotonic clock, what reading it costs, and CPU time of a worker.
#![expect(unsafe_code, reason = "getrusage(2) has no safe form")]

use model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, in nanoseconds since an arbitrary start that all processes of one boot share;
/// read through the vDSO, without a system call (clock_gettime(2), vdso(7)).
#[inline]
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    #[expect(clippy::cast_sign_loss, reason = "the monotonic clock starts at zero at boot")]
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// What the clock can resolve and what reading it costs on this host.
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

/// CPU time of the calling thread so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuTime {
    /// In user mode.
    pub(crate) user: Nanos,
    /// In the kernel.
    pub(crate) system: Nanos,
}

impl CpuTime {
    /// getrusage(2) with `RUSAGE_THREAD`, which serves threads and processes alike, as a worker
    /// process works in one thread. The kernel splits an exact sum between user and system by its
    /// ticks (`cputime_adjust` in kernel/sched/cputime.c), so the split is coarse for short times.
    pub(crate) fn of_this_thread() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is valid for one rusage, which is all the kernel writes.
        let answer = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        assert_eq!(answer, 0, "getrusage(RUSAGE_THREAD) with a valid pointer cannot fail");
        // SAFETY: all-zero is a valid rusage, and the kernel has filled it.
        let usage = unsafe { usage.assume_init() };
        Self { user: nanos(usage.ru_utime), system: nanos(usage.ru_stime) }
    }
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
        let before = CpuTime::of_this_thread();
        let mut sum = 0u64;
        loop {
            (0..1_000_000u64).for_each(|n| sum = std::hint::black_box(sum ^ n));
            let after = CpuTime::of_this_thread();
            if after.user + after.system > before.user + before.system {
                break;
            }
        }
    }
}

//! Time: the monotonic clock, what reading it costs, CPU time of a worker, and the ceiling of the
//! generator itself.
#![expect(unsafe_code, reason = "getrusage(2) has no safe form")]

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

use model::{
    Bytes, Nanos, Ops,
    phase::{Access, Direction, Files, Fill, Flush, Interface, Open, Stream, Workers},
};
use rustix::time::{ClockId, clock_gettime};

use crate::{Context, EngineError, Progress};

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

/// How fast the loop goes when the operations cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// Operations done.
    pub ops: Ops,
    /// Time they took.
    pub elapsed: Nanos,
}

impl Ceiling {
    /// Operations per second that the generator alone can reach with one worker.
    #[expect(clippy::cast_precision_loss, reason = "a rate, far below 2^53 operations")]
    pub fn ops_per_second(self) -> f64 {
        self.ops.0 as f64 / self.elapsed.seconds()
    }

    /// Nanoseconds that the generator adds to each operation.
    #[expect(clippy::cast_precision_loss, reason = "a mean, far below 2^53 nanoseconds")]
    pub fn nanos_per_op(self) -> f64 {
        self.elapsed.0 as f64 / self.ops.0 as f64
    }
}

/// Runs the loop of a sequential, stamped write on the null engine, long enough (20 ms) for the
/// clock not to matter. Stamping costs most of all that a loop does apart from verifying, so other
/// streams of this record size do not cost more.
///
/// # Errors
/// [`EngineError`] when memory or a thread cannot be had, or `record` is zero.
pub fn ceiling(record: Bytes) -> Result<Ceiling, EngineError> {
    let mut records = 1 << 10;
    loop {
        let stream = null_stream(record, records);
        let command: [OsString; 0] = [];
        let context = Context {
            directory: Path::new("."),
            progress: &Progress::default(),
            interrupt: &AtomicBool::new(false),
            worker_command: &command,
        };
        let result = crate::run(&stream, &context)?;
        let elapsed = result.workers.iter().map(|worker| worker.loop_time).max();
        let elapsed = elapsed.unwrap_or_default();
        if elapsed >= Nanos(20_000_000) || records >= 1 << 30 {
            return Ok(Ceiling { ops: result.ops(), elapsed });
        }
        records *= 4;
    }
}

fn null_stream(record: Bytes, records: u64) -> Stream {
    Stream {
        files: Files::One("null".into()),
        size: Bytes(record.0.saturating_mul(records)),
        record,
        direction: Direction::Write,
        access: Access::Sequential,
        interface: Interface::Null,
        open: Open::default(),
        fill: Fill::Random { entropy: 1.0, seed: 0 },
        verify: false,
        flush: Flush::None,
        workers: Workers::ONE,
    }
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
    fn the_ceiling_says_how_many_operations_took_how_long() {
        let ceiling = ceiling(Bytes::kib(4)).unwrap();
        assert!(ceiling.elapsed >= Nanos(20_000_000));
        let product = ceiling.ops_per_second() * ceiling.nanos_per_op();
        assert!((product / 1e9 - 1.0).abs() < 1e-9);
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

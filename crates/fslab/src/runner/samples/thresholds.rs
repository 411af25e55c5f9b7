//! Thresholds of the warnings about a measured phase, with their reasons.
//!
//! | warning | condition | phases |
//! |---|---|---|
//! | `short-phase` | the judged time is below [`SHORT`] | all |
//! | `slow-clock` | reading the clock takes more than [`CLOCK_SHARE`] of the median operation | all |
//! | `generator-bound` | the I/O loop takes more than [`GENERATOR_SHARE`] of the worker time | unpaced streams |
//! | `cache-not-cold` | less than [`COLD_SHARE`] of the distinct bytes read came from the devices | cold reads and updates |
//! | `cache-not-warm` | less than [`WARM_SHARE`] of the bytes read came from memory | warm |
//! | `partly-cached` | the fraction from memory is within [`MIXED`] | buffered reads that are not warm, unless `cache-not-cold` applies |
//! | `cpu-bound` | workers, or one kind of kernel thread, used [`CPU_BOUND`] of their maximum | all that are not warm |
//! | `other-cpu-load` | other processes used more than [`OTHER_CPU`] of the CPU time | all |
//! | `other-io-load` | a lower device moved more than the devices above it explain, see [`OTHER_IO`] | stacked devices |
//! | `resource-pressure` | some task waited for memory more than [`PRESSURE_MEMORY`], for a CPU more than [`PRESSURE_CPU`] of the time | all; memory unless the plan limits it |
//! | `cpu-steal` | the hypervisor stole more than [`STEAL`] of the CPU time | all |
//! | `cpu-throttled` | any event | all |
//! | `not-steady-state` | [`analysis::steady`] | limited by time |
//! | `unwritten-data` | dirty memory grew by more than [`DIRTY`] of the written bytes | writes through the page cache without a sync |
//! | `reduced-writes` | the devices wrote less than [`SHRUNK`] bytes per byte | writes that end on the devices and overwrite nothing |
//! | `implausible-result` | faster than [`MEMORY_TOLERANCE`] times the memory rate, from [`BEYOND_CACHES`] on | streams through the page cache or a mapping |
//! | `implausible-result` | direct reads of at least [`LEAST_ASKED`] of which the devices delivered less than [`DIRECT_SHARE`] | direct reads that are not cold |
//! | `implausible-result` | random reads more than [`RANDOM_FASTER`] times as fast as sequential ones, both less than [`UNCACHED`] from memory | pairs of one trial |
//! | `deferred-work` | deferred work took more than [`BACKGROUND_SHARE`] of the time or [`BACKGROUND_TIME`] | all |
//! | `kernel-message` | a line of level [`LOG_LEVEL`] or more severe | all, and the lifecycle steps |

use model::{Bytes, Nanos, Ratio};

/// A scheduling delay of a millisecond is a tenth of it.
pub(super) const SHORT: Nanos = Nanos(10_000_000);

/// The time of every operation includes two clock readings, whose cost varies by about as much as
/// its mean.
pub(super) const CLOCK_SHARE: f64 = 0.02;

/// Maximum fraction of the worker time used by the load generator.
pub(super) const GENERATOR_SHARE: Ratio = Ratio(0.05);

/// Minimum fraction of a cold read from the device; the rest allows for rounding by read-ahead.
pub(super) const COLD_SHARE: f64 = 0.95;

/// Minimum fraction of a warm read from memory. One read in a hundred from a disk takes as long as
/// thousands from memory, so a smaller fraction is another experiment.
pub(super) const WARM_SHARE: Ratio = Ratio(0.99);

/// Fractions from memory at which a read measures neither memory nor the devices: the result
/// depends on the memory size.
pub(super) const MIXED: std::ops::RangeInclusive<f64> = 0.05..=0.95;

/// Fraction of the CPU time from which on the CPU is the bottleneck; the rest is lost at the start
/// and the end.
pub(super) const CPU_BOUND: f64 = 0.95;

/// Maximum fraction of the CPU time used by other processes, about the load of an idle system.
pub(super) const OTHER_CPU: Ratio = Ratio(0.02);

/// Limits of the I/O of a lower device beyond that of the devices above it.
pub(super) const OTHER_IO: Allowance = Allowance {
    // A filesystem below an image maps its blocks and writes the map.
    share: 0.05,
    // One journal commit per flush: descriptor, inode, extents, bitmap, and commit, of 4 KiB each,
    // plus a reserve.
    each_flush: Bytes::kib(32),
    // Partition tables, superblocks, and a commit that was due.
    always: Bytes::mib(1),
};

/// Allowed I/O beyond the accounted bytes: the sum of the fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Fraction of the bytes of the devices above.
    pub(super) share: f64,
    /// Bytes per completed flush.
    pub(super) each_flush: Bytes,
    /// Constant part.
    pub(super) always: Bytes,
}

/// Maximum fraction of the time in which some task may wait for memory.
pub(super) const PRESSURE_MEMORY: Ratio = Ratio(0.01);

/// Maximum fraction of the time in which some task may wait for a CPU; workers and the kernel
/// threads that they wake always wait a little.
pub(super) const PRESSURE_CPU: Ratio = Ratio(0.20);

/// Maximum fraction of the CPU time stolen by the hypervisor.
pub(super) const STEAL: Ratio = Ratio(0.005);

/// Maximum fraction of the written bytes that are only in memory at the end.
pub(super) const DIRTY: f64 = 0.05;

/// Device bytes per byte written; metadata only adds to them.
pub(super) const SHRUNK: Ratio = Ratio(0.9);

/// Smaller amounts do not show data reduction by the devices: the data may be inside an inode.
pub(super) const LEAST_SHRUNK: f64 = 1_048_576.0;

/// Tolerance above the measured memory rate, which is a single measurement of one thread.
pub(super) const MEMORY_TOLERANCE: f64 = 1.5;

/// Smaller files may fit in the CPU caches.
pub(super) const BEYOND_CACHES: Bytes = Bytes::mib(64);

/// Requested bytes above which the requests in flight cannot distort the device counters.
pub(super) const LEAST_ASKED: f64 = 16_777_216.0;

/// Minimum fraction of direct reads that the devices must deliver.
pub(super) const DIRECT_SHARE: f64 = 0.5;

/// Maximum ratio of the rates of random and sequential reads of the same blocks.
pub(super) const RANDOM_FASTER: f64 = 1.25;

/// Fraction from memory below which a read is treated as a device read.
pub(super) const UNCACHED: f64 = 0.05;

/// Maximum fraction of the time used by deferred work.
pub(super) const BACKGROUND_SHARE: f64 = 0.01;

/// Maximum time of deferred work, regardless of the length of the phase.
pub(super) const BACKGROUND_TIME: Nanos = Nanos(10_000_000);

/// Warnings and more severe messages (syslog(2)); mounts are logged as notices.
pub(super) const LOG_LEVEL: u8 = 4;

/// Fragments of lines that do not affect the result: the device does not support a type of request
/// (`BLK_STS_NOTSUPP` in block/blk-core.c), and the kernel used another one. Example: mkfs requests
/// zeros from an image without discard.
pub(super) const LOG_HARMLESS: &str = "operation not supported error";

/// Maximum idle fraction of the CPU of an icount guest. Short probes repeat within 1 %, so idle
/// time should not affect them.
pub(super) const IDLE: Ratio = Ratio(0.01);

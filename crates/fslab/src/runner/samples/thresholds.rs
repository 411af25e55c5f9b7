//! Thresholds of the warnings about a measured phase, with their reasons.
//!
//! | warning | condition | phases |
//! |---|---|---|
//! | `short-phase` | the time is below [`SHORT`] | all |
//! | `slow-clock` | reading the clock takes more than [`CLOCK_SHARE`] of the median operation | all |
//! | `generator-bound` | the I/O loop takes more than [`GENERATOR_SHARE`] of the worker time | unpaced streams |
//! | `cache-not-cold` | less than [`COLD_SHARE`] of the distinct bytes read came from the devices | cold reads and updates |
//! | `cache-not-warm` | less than [`WARM_SHARE`] of the bytes read came from memory | warm phases |
//! | `partly-cached` | the cache hit ratio is within [`MIXED`] | buffered reads that are not warm, unless `cache-not-cold` applies |
//! | `cpu-bound` | workers, or one kind of kernel thread, used [`CPU_BOUND`] of the CPU time that they can use | phases that move data and are not warm |
//! | `other-cpu-load` | other processes used more than [`OTHER_CPU`] of the CPU time | all |
//! | `other-io-load` | a lower device moved more than the devices above it explain, see [`OTHER_IO`] | stacked devices |
//! | `resource-pressure` | some task waited for memory for more than [`PRESSURE_MEMORY`] of the time, or for a CPU for more than [`PRESSURE_CPU`] | all; for memory only if the plan does not limit it |
//! | `cpu-steal` | the hypervisor stole more than [`STEAL`] of the CPU time | all |
//! | `cpu-throttled` | any throttling event | all |
//! | `not-steady-state` | limits of [`analysis::steady`] | streams limited by time |
//! | `unwritten-data` | dirty memory grew by more than [`DIRTY`] of the written bytes | writes through the page cache without a sync |
//! | `reduced-writes` | the devices wrote less than [`SHRUNK`] bytes per byte | writes that end on the devices and overwrite nothing |
//! | `implausible-result` | faster than [`MEMORY_TOLERANCE`] times the memory rate, with more than [`BEYOND_CACHES`] of data | streams through the page cache or a mapping |
//! | `implausible-result` | direct reads of at least [`LEAST_ASKED`] of which the devices delivered less than [`DIRECT_SHARE`] | direct reads that are not cold |
//! | `implausible-result` | random reads more than [`RANDOM_FASTER`] times as fast as sequential reads, both with a cache hit ratio below [`UNCACHED`] | pairs of phases of a trial |
//! | `deferred-work` | deferred work took more CPU time than [`BACKGROUND_TIME`] or [`BACKGROUND_SHARE`] of the phase | all |
//! | `kernel-message` | a line of level [`LOG_LEVEL`] or more severe | all, and the lifecycle steps |

use model::{Bytes, Nanos, Ratio};

/// Minimum time of a phase: the loop or, if the primary metric is durable throughput, the time
/// until the final sync returned. A scheduling delay of a millisecond is a tenth of this minimum.
pub(super) const SHORT: Nanos = Nanos(10_000_000);

/// Maximum cost of a clock reading, as a fraction of the median latency. The latency of every
/// operation includes two clock readings, whose cost varies by about as much as its mean.
pub(super) const CLOCK_SHARE: f64 = 0.02;

/// Maximum fraction of the worker time used by the load generator.
pub(super) const GENERATOR_SHARE: Ratio = Ratio(0.05);

/// Minimum fraction of a cold read that the devices must deliver. The remaining 5 % allow for
/// rounding by read-ahead.
pub(super) const COLD_SHARE: f64 = 0.95;

/// Minimum fraction of a warm read that must come from memory. One read from a disk takes as long
/// as thousands of reads from memory, so with a smaller fraction the phase would measure the disk.
pub(super) const WARM_SHARE: Ratio = Ratio(0.99);

/// Cache hit ratios at which a read measures neither memory nor the devices, because the result
/// depends on the memory size.
pub(super) const MIXED: std::ops::RangeInclusive<f64> = 0.05..=0.95;

/// Minimum fraction of the available CPU time at which the CPU is regarded as the bottleneck. The
/// remaining 5 % are lost at the start and the end of a phase.
pub(super) const CPU_BOUND: f64 = 0.95;

/// Maximum fraction of the CPU time used by other processes. Idle systems have about this load.
pub(super) const OTHER_CPU: Ratio = Ratio(0.02);

/// Limits of the I/O of a lower device that the devices above it do not explain.
pub(super) const OTHER_IO: Allowance = Allowance {
    // The filesystem that stores an image file also writes the mapping of the file's blocks.
    share: 0.05,
    // One journal commit per flush: blocks of 4 KiB for descriptor, inode, extents, bitmap, and
    // commit, plus a reserve.
    each_flush: Bytes::kib(32),
    // Partition tables, superblocks, and one periodic commit.
    always: Bytes::mib(1),
};

/// Allowed I/O beyond the explained bytes: the sum of the three parts.
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
/// threads that they wake always wait for short times.
pub(super) const PRESSURE_CPU: Ratio = Ratio(0.20);

/// Maximum fraction of the CPU time stolen by the hypervisor.
pub(super) const STEAL: Ratio = Ratio(0.005);

/// Maximum fraction of the written bytes that are only in memory at the end of the phase.
pub(super) const DIRTY: f64 = 0.05;

/// Minimum number of device bytes per byte written. Metadata only increases the number.
pub(super) const SHRUNK: Ratio = Ratio(0.9);

/// Minimum number of written bytes to detect data reduction. Smaller amounts may be stored inside
/// an inode.
pub(super) const LEAST_SHRUNK: f64 = 1_048_576.0;

/// Tolerance factor of the memory rate, which is a single measurement of one thread.
pub(super) const MEMORY_TOLERANCE: f64 = 1.5;

/// Maximum size of files that may fit in the CPU caches.
pub(super) const BEYOND_CACHES: Bytes = Bytes::mib(64);

/// Minimum number of requested bytes at which the requests in flight do not distort the device
/// counters.
pub(super) const LEAST_ASKED: f64 = 16_777_216.0;

/// Minimum fraction of the bytes of direct reads that the devices must deliver.
pub(super) const DIRECT_SHARE: f64 = 0.5;

/// Maximum ratio of the rates of random and sequential reads of the same blocks.
pub(super) const RANDOM_FASTER: f64 = 1.25;

/// Cache hit ratio below which a read is treated as a device read.
pub(super) const UNCACHED: f64 = 0.05;

/// Maximum fraction of the time used by deferred work.
pub(super) const BACKGROUND_SHARE: f64 = 0.01;

/// Maximum time of deferred work, regardless of the length of the phase.
pub(super) const BACKGROUND_TIME: Nanos = Nanos(10_000_000);

/// Log level of warnings (syslog(2)). More severe messages have lower levels; mounts are logged as
/// notices, which have a higher level.
pub(super) const LOG_LEVEL: u8 = 4;

/// Fragment of messages that do not affect the result: the device does not support a type of
/// request (`BLK_STS_NOTSUPP` in block/blk-core.c), and the kernel used another type. Example: mkfs
/// writes zeros with a request that an image without discards does not support.
pub(super) const LOG_HARMLESS: &str = "operation not supported error";

/// Maximum idle fraction of the CPU of an icount guest. Short probes are repeatable within 1 %,
/// which idle time must not affect.
pub(super) const IDLE: Ratio = Ratio(0.01);

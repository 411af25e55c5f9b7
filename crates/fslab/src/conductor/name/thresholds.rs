//! From which value on something is wrong: every threshold of the warnings about a measured phase,
//! with its reason.
//!
//! | warning | fires when | for which phases |
//! |---|---|---|
//! | W-SHORT | the judged time is below [`SHORT`] | all |
//! | W-CLOCK | reading the clock takes more than [`CLOCK_SHARE`] of the median operation | all |
//! | W-GENBOUND | the loop itself takes more than [`GENERATOR_SHARE`] of the workers' time | streams without pace |
//! | W-CACHE | less than [`COLD_SHARE`] of the different bytes read came from the devices | cold reads and updates |
//! | W-NOTWARM | less than [`WARM_SHARE`] of the bytes read came from memory | warm |
//! | W-MIXED | the part from memory lies within [`MIXED`] | buffered reads that are not warm, unless W-CACHE says so already |
//! | W-CPUBOUND | workers, or one kind of kernel thread, used [`CPU_BOUND`] of what they can | all that are not warm |
//! | W-FOREIGN | other processes used more than [`FOREIGN_CPU`] of the machine's time | all |
//! | W-FOREIGNIO | a lower device moved more than the devices above it explain, see [`FOREIGN_IO`] | with devices on devices |
//! | W-PSI | some task waited for memory more than [`PRESSURE_MEMORY`], for a processor more than [`PRESSURE_CPU`] of the time | all; memory unless the plan limits it |
//! | W-STEAL | the hypervisor gave more than [`STEAL`] of the machine's time to others | all |
//! | W-THROTTLE | any event | all |
//! | W-NOSTEADY | [`analysis::steady`] | bound by time |
//! | W-DIRTY | memory that waits for being written back grew by more than [`DIRTY`] of what was written | writes through the page cache without a flush |
//! | W-SHRUNK | the devices wrote less than [`SHRUNK`] bytes for each byte | writes that end on the devices and overwrite nothing |
//! | W-IMPOSSIBLE | faster than [`MEMORY_TOLERANCE`] times what memory gives, from [`BEYOND_CACHES`] on | streams through the page cache or a mapping |
//! | W-IMPOSSIBLE | direct reads of [`LEAST_ASKED`] or more of which the devices delivered less than [`DIRECT_SHARE`] | direct reads that are not cold |
//! | W-IMPOSSIBLE | random reads more than [`RANDOM_FASTER`] times as fast as sequential ones, both less than [`UNCACHED`] from memory | pairs of one trial |
//! | W-BACKGROUND | what was put off took more than [`BACKGROUND_SHARE`] of the time or [`BACKGROUND_TIME`] | all |
//! | W-KLOG | a line of level [`LOG_LEVEL`] or graver | all, and the steps around them |

use model::{Bytes, Nanos, Ratio};

/// A scheduling hiccup of a millisecond is a tenth of it.
pub(super) const SHORT: Nanos = Nanos(10_000_000);

/// Two reads of the clock stand in every operation's time, and what they cost varies by about as
/// much as they cost.
pub(super) const CLOCK_SHARE: f64 = 0.02;

/// Part of the workers' time that the load generator may take.
pub(super) const GENERATOR_SHARE: Ratio = Ratio(0.05);

/// Part of a cold read that must come from the device; the rest is what read-ahead rounds.
pub(super) const COLD_SHARE: f64 = 0.95;

/// Part of a warm read that must come from memory: one read in a hundred from a disk takes as long
/// as thousands from memory, so less than this is another experiment.
pub(super) const WARM_SHARE: Ratio = Ratio(0.99);

/// Within this a read is neither of memory nor of the devices, and where in it is up to the size of
/// the memory.
pub(super) const MIXED: std::ops::RangeInclusive<f64> = 0.05..=0.95;

/// Part of a processor's time from which on it is the limit; the rest is lost to starting and
/// ending.
pub(super) const CPU_BOUND: f64 = 0.95;

/// Part of the machine's time that other processes may use: about what a quiet system uses itself.
pub(super) const FOREIGN_CPU: Ratio = Ratio(0.02);

/// What a lower device may move beyond the devices above it.
pub(super) const FOREIGN_IO: Allowance = Allowance {
    // A filesystem below an image maps its blocks and writes the map.
    share: 0.05,
    // A commit of its journal for each flush: descriptor, inode, extents, bitmap, and commit, of
    // 4 KiB each, and a few to spare.
    each_flush: Bytes::kib(32),
    // Partition tables, superblocks, and a commit that was due.
    always: Bytes::mib(1),
};

/// What may be moved beyond what is accounted for: the sum of its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Part of the bytes of the devices above.
    pub(super) share: f64,
    /// For each flush that they completed.
    pub(super) each_flush: Bytes,
    /// In any case.
    pub(super) always: Bytes,
}

/// Part of the time in which some task may wait for memory.
pub(super) const PRESSURE_MEMORY: Ratio = Ratio(0.01);

/// Part of the time in which some task may wait for a processor; workers and the kernel threads
/// that they wake always do for a little.
pub(super) const PRESSURE_CPU: Ratio = Ratio(0.20);

/// Part of the machine's time that the hypervisor may give to others.
pub(super) const STEAL: Ratio = Ratio(0.005);

/// Part of what was written that may be in memory only at the end.
pub(super) const DIRTY: f64 = 0.05;

/// Bytes the devices write for each byte written; metadata only adds to it.
pub(super) const SHRUNK: Ratio = Ratio(0.9);

/// Less than this says nothing on what the devices make of data: it may lie in an inode.
pub(super) const LEAST_SHRUNK: f64 = 1_048_576.0;

/// How far the measured speed of memory may be exceeded: it was measured by one thread, once.
pub(super) const MEMORY_TOLERANCE: f64 = 1.5;

/// Files below this may lie in the caches of the processors.
pub(super) const BEYOND_CACHES: Bytes = Bytes::mib(64);

/// Bytes asked for from which on counters of the devices cannot be off by what was in flight.
pub(super) const LEAST_ASKED: f64 = 16_777_216.0;

/// Part of direct reads that the devices must deliver.
pub(super) const DIRECT_SHARE: f64 = 0.5;

/// How much faster random reads may be than sequential ones of the same records.
pub(super) const RANDOM_FASTER: f64 = 1.25;

/// Part from memory below which a read is taken to come from the devices.
pub(super) const UNCACHED: f64 = 0.05;

/// Part of the time that what was put off may take.
pub(super) const BACKGROUND_SHARE: f64 = 0.01;

/// Time that what was put off may take, however long the phase.
pub(super) const BACKGROUND_TIME: Nanos = Nanos(10_000_000);

/// Warnings and all that is graver (syslog(2)); mounts are told as notices.
pub(super) const LOG_LEVEL: u8 = 4;

/// Words of a line that says nothing of the number: a device was asked for a kind of request that
/// it does not have (`BLK_STS_NOTSUPP` in block/blk-core.c), as mkfs asks an image that offers no
/// discard for zeros, and the kernel did it in another way.
pub(super) const LOG_HARMLESS: &str = "operation not supported error";

/// Part of a phase for which the processor of a guest that counts instructions may have nothing to
/// do. Tight probes repeat within 1 %, and this should not be what moves them.
pub(super) const IDLE: Ratio = Ratio(0.01);

//! Streams: block I/O on files.

use serde::{Deserialize, Serialize};

use super::{
    handling::{FileHandling, Region},
    interface::IoEngineKind,
    limit::WorkLimit,
    operation_log::OperationLog,
    pace::{Flow, MinimumRate, Pace},
    sharing::FileSharing,
    steady::SteadyState,
    sync::{EndSync, SyncEvery, SyncInterval},
    verify::VerifyBacklog,
    workers::Workers,
};
use crate::units::{Bytes, Nanos};

/// Block I/O on files by workers that start together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Files and their sharing.
    pub files: FileSharing,
    /// Size of each file. Only whole blocks are accessed: `floor(size / block_size)`.
    pub size: Bytes,
    /// Bytes per operation and unit of offsets. `block_sizes` can make operations larger.
    pub block_size: Bytes,
    /// Weighted sizes of operations; if empty, each operation is one block.
    pub block_sizes: Vec<Length>,
    /// Weighted sizes of the writes of a mixed stream, if they differ from those of the reads,
    /// which are `block_sizes`; otherwise empty. Random operations then start at multiples of the
    /// smallest size of their direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_sizes: Vec<Length>,
    /// Weighted sizes of the operations of [`AccessPattern::Runs`] that jump, if they differ from
    /// those of the others, which are `block_sizes`; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jump_sizes: Vec<Length>,
    /// Direction of the operations.
    pub direction: Direction,
    /// Order of offsets.
    pub access_pattern: AccessPattern,
    /// Zones of [`AccessPattern::Zones`] in the order of the file, otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// Random operations start at multiples of this number of blocks, at least 1. Only the patterns
    /// with repeated offsets have another value than 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub offset_alignment: u32,
    /// Path of the trace for [`AccessPattern::Trace`], otherwise empty. The trace is text with one
    /// operation per line, `read OFFSET LENGTH` or `write OFFSET LENGTH`, in bytes.
    pub trace_file: String,
    /// I/O interface.
    pub io_engine: IoEngineKind,
    /// Open options.
    pub open: Open,
    /// Content of written blocks. Verification expects this content in the blocks that are read.
    pub data: DataPattern,
    /// Bytes that are repeated in written blocks of random data, except for the headers; empty:
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pattern: Vec<u8>,
    /// Seed of the data and of random offsets, sizes, directions, and arrivals.
    pub seed: u64,
    /// Seed of the keys in block headers; `None`: `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_seed: Option<u64>,
    /// Checks the header of every block read. A difference fails the phase. The check is part of
    /// the loop time.
    pub verify: bool,
    /// Reads of written blocks in the loop, which check them; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_backlog: Option<VerifyBacklog>,
    /// Only the operations of the last pass that reads of written blocks in another stream
    /// ([`Self::verify_backlog`]) have left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_of: Option<VerifyBacklog>,
    /// Sync calls in the loop.
    pub sync_every: Option<SyncEvery>,
    /// Sync after the loop, before close.
    pub end_sync: EndSync,
    /// Pacing of operations.
    pub pace: Pace,
    /// Share of the operations of a flow; `None`: independent of other phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// Minimum rates of each worker; a slower one fails the phase. `None`: any rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_rate: Option<MinimumRate>,
    /// End of the loop.
    pub bound: Bound,
    /// Ends the loop earlier, when the rate is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<SteadyState>,
    /// Workers.
    pub workers: Workers,
    /// Allocation, region, and cached pages of the files; `None`: whole files, without calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_handling: Option<FileHandling>,
    /// Logs of single operations; `None`: no logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_log: Option<Box<OperationLog>>,
}

impl Stream {
    /// Stream of one worker that makes one sequential pass of pread(2), without pacing.
    pub fn new(files: FileSharing, size: Bytes, block_size: Bytes) -> Self {
        Self {
            files,
            size,
            block_size,
            block_sizes: Vec::new(),
            write_sizes: Vec::new(),
            jump_sizes: Vec::new(),
            direction: Direction::Read,
            access_pattern: AccessPattern::Sequential,
            zones: Vec::new(),
            offset_alignment: 1,
            trace_file: String::new(),
            io_engine: IoEngineKind::Offset,
            open: Open::default(),
            data: DataPattern::default(),
            pattern: Vec::new(),
            seed: 0,
            header_seed: None,
            verify: false,
            verify_backlog: None,
            rest_of: None,
            sync_every: None,
            end_sync: EndSync::None,
            pace: Pace::Free,
            flow: None,
            minimum_rate: None,
            bound: Bound::Once,
            steady_state: None,
            workers: Workers::ONE,
            file_handling: None,
            operation_log: None,
        }
    }

    /// True if data is transferred. The null engine and io_uring NOPs transfer no data.
    pub fn moves(&self) -> bool {
        self.io_engine.properties().moves
    }

    /// True if all workers write and each write is synced before the next one of its worker.
    pub fn commits(&self) -> bool {
        let synced = self
            .sync_every
            .is_some_and(|every| every.after == SyncInterval::Ops(1) && every.call.is_durable());
        let durable = self.io_engine.properties().durable_writes;
        self.direction == Direction::Write
            && self.verify_backlog.is_none()
            && self.moves()
            && self.access_pattern != AccessPattern::Tickets
            && (synced || durable || self.open.sync || self.open.dsync)
    }

    /// True if no block is overwritten before it is synced. Data that is overwritten in the page
    /// cache never becomes durable. Blocks are overwritten by access patterns that repeat blocks,
    /// and by bounds other than one pass. Direct and synchronous writes each reach the device, so
    /// the result is true for both.
    pub fn writes_once(&self) -> bool {
        let overwritten = match self.access_pattern {
            AccessPattern::Random
            | AccessPattern::SameBlock
            | AccessPattern::Tickets
            | AccessPattern::Zipf { .. }
            | AccessPattern::Pareto { .. }
            | AccessPattern::Hotspot { .. }
            | AccessPattern::Normal { .. }
            | AccessPattern::Zones
            | AccessPattern::Skip { .. }
            | AccessPattern::Runs { .. } => true,
            AccessPattern::Sequential
            | AccessPattern::SequentialPerDirection
            | AccessPattern::Backward
            | AccessPattern::Stride { .. }
            | AccessPattern::IozonePermutation
            | AccessPattern::Permutation
            | AccessPattern::Append
            | AccessPattern::Trace => false,
        };
        let through = self.open.direct || self.open.sync || self.open.dsync;
        through || (self.bound.is_one_pass() && !overwritten)
    }

    /// Bytes of each file that a worker accesses, except in segmented files.
    pub fn region_size(&self) -> Bytes {
        self.region().map_or(self.size, |region| region.size)
    }

    /// Part of the file that a worker accesses; `None`: the whole file.
    pub fn region(&self) -> Option<Region> {
        self.file_handling.and_then(|handling| handling.region)
    }

    /// Largest operation: the maximum of [`Self::block_sizes`], [`Self::write_sizes`], and
    /// [`Self::jump_sizes`], or one block.
    pub fn longest_operation(&self) -> Bytes {
        let sizes = self.block_sizes.iter().chain(&self.write_sizes).chain(&self.jump_sizes);
        let blocks = sizes.map(|length| length.blocks).max().unwrap_or(1);
        Bytes(self.block_size.0 * u64::from(blocks))
    }
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is that of serde")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Weighted operation size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Length {
    /// Size in blocks, at least 1.
    pub blocks: u32,
    /// Weight, at least 1.
    pub weight: u32,
}

/// Read, write, or mixed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Every worker reads.
    Read,
    /// Every worker writes.
    Write,
    /// Workers 0, 2, 4, … only read, the others only write.
    Alternate,
    /// This many workers only read, the others only write.
    FirstRead(u32),
    /// Each operation of a worker is a read with this probability (0 to 1), otherwise a write.
    Mixed(f64),
    /// Each operation reads its block and, with this probability (0 to 1), changes one byte and
    /// writes the block back: read(2), lseek(2), write(2). An operation that writes back counts as
    /// one write of its bytes. Requires [`IoEngineKind::Position`] and content without headers.
    Update(f64),
}

impl Direction {
    /// True if this worker reads, possibly in addition to writes.
    pub fn reads(self, worker: u32) -> bool {
        match self {
            Self::Read => true,
            Self::Write => false,
            Self::Alternate => worker.is_multiple_of(2),
            Self::FirstRead(readers) => worker < readers,
            Self::Mixed(share) => share > 0.0,
            Self::Update(share) => share < 1.0,
        }
    }

    /// True if this worker writes, possibly in addition to reads.
    pub fn writes(self, worker: u32) -> bool {
        match self {
            Self::Mixed(share) => share < 1.0,
            Self::Update(share) => share > 0.0,
            Self::Read | Self::Write | Self::Alternate | Self::FirstRead(_) => !self.reads(worker),
        }
    }
}

/// Order of accesses to the n blocks of a file, or of the segment of a worker.
///
/// A pass has n accesses. Deterministic patterns are the same in each pass. Random patterns depend
/// only on the seed of the stream, the worker, and the pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessPattern {
    /// 0, 1, …, n-1.
    Sequential,
    /// Reads are sequential among reads, and writes among writes; both start at block 0. A pass has
    /// n accesses in total.
    SequentialPerDirection,
    /// n-1, …, 1, 0.
    Backward,
    /// n accesses to block 0.
    SameBlock,
    /// Stride of IOzone: from block p to p + stride. If p + 1 + stride >= n - 1, the next access is
    /// to the next start block (1, 2, …). If n <= stride, all accesses are to block 0.
    Stride {
        /// Distance in blocks.
        blocks: u64,
    },
    /// Each block once, in the permutation of IOzone, which is the same on every host and in every
    /// run: MT19937-64 with the key array {0x12345, 0x23456, 0x34567, 0x45678}; for each i from 0
    /// to n-1, blocks i and (next mod n) are swapped. Takes 8 bytes of memory per block.
    IozonePermutation,
    /// Each block once per pass, in a different permutation for each worker and pass. An operation
    /// of several blocks ends before a block that was accessed. Memory is constant, or one bit per
    /// block if operations can have several blocks.
    Permutation,
    /// Uniform and independent: some blocks repeat, others are skipped.
    Random,
    /// Independent accesses by Zipf's law: the r-th most popular block has weight `r^-theta`.
    /// Popular blocks are scattered over the file.
    Zipf {
        /// Exponent, 0 to 10; 0 is uniform, 0.99 is usual for web and key-value workloads.
        theta: f64,
    },
    /// Independent accesses, self-similar (Gray et al., SIGMOD 1994): a fraction `1 - share` of the
    /// accesses is to a fraction `share` of the blocks, recursively. Popular blocks are scattered
    /// over the file.
    Pareto {
        /// Greater than 0 and less than 0.5; 0.2 is the 80/20 rule.
        share: f64,
    },
    /// Independent accesses with a hotspot at the start of the file.
    Hotspot {
        /// Fraction of the file in the hotspot, greater than 0 and less than 1.
        space: f64,
        /// Fraction of the accesses to the hotspot, 0 to 1.
        visits: f64,
    },
    /// Independent accesses: the block is `round(n x)`, where x is the mean of twelve uniform
    /// numbers from 0 to 1 plus a uniform number from `-deviation / 2` to `deviation / 2` (fio
    /// `normal`). Popular blocks are scattered over the file.
    Normal {
        /// Width of the added number, 0 to 1.
        deviation: f64,
    },
    /// Independent accesses to the zones of [`Stream::zones`], uniform within a zone.
    Zones,
    /// Each operation starts `blocks` blocks after the end of the previous one, or before it if
    /// negative. The first is at block 0. After the end of the file, the next is at block 0, and
    /// before its start, at the end plus `blocks`. An operation at the end of the file ends the
    /// pass (fio `rw=read:8k`).
    Skip {
        /// Distance in blocks, not 0.
        blocks: i64,
    },
    /// Sequential operations, interrupted by jumps to random blocks (fio
    /// `rw=randread:8`, `percentage_random`).
    Runs {
        /// Selection of the operations that jump.
        jump: Jump,
        /// Jumps within a pass are to different blocks.
        unique: bool,
    },
    /// Appends to the file, which is opened with `O_APPEND`.
    Append,
    /// Operations of [`Stream::trace_file`], with their order, directions, and lengths.
    Trace,
    /// Random seeks of bonnie++, which it calls tickets: r is uniform from 0 to 2^31 - 1, and the
    /// block is r mod n. With [`Direction::Update`], the block is written back if and only if r is
    /// a multiple of ten, regardless of the probability. If n is even, r mod n is even for every
    /// multiple of ten, so only even-numbered blocks are written.
    Tickets,
}

/// Selection of the operations of [`AccessPattern::Runs`] that jump to a random block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jump {
    /// The first of every n operations; the others follow the previous one.
    Every(u64),
    /// The first of every n operations; the others repeat the previous one.
    EveryRepeated(u64),
    /// Each operation with this probability, 0 to 1; the others follow the previous one.
    Chance(f64),
}

/// Zone of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Relative number of accesses to this zone.
    pub weight: u32,
    /// Size in blocks.
    pub blocks: u64,
}

/// Open options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Creation or reuse of the file.
    pub creation: FileCreation,
    /// `O_DIRECT`: bypasses the page cache.
    pub direct: bool,
    /// `O_SYNC`: every write is durable before it returns, with all metadata.
    pub sync: bool,
    /// `O_DSYNC`: every write is durable before it returns, with the metadata needed to read it.
    pub dsync: bool,
    /// Untimed fsync(2) after open.
    pub fsync: bool,
    /// Untimed read of the first block.
    pub read_first_block: bool,
    /// As in bonnie++, opens files with `O_RDWR` even if they are only read, and creates them with
    /// mode 0600 instead of 0640.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
}

/// Creation or reuse of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileCreation {
    /// The file must exist.
    #[default]
    Existing,
    /// The file is created if it is missing, otherwise used unchanged.
    Any,
    /// An existing file is unlinked (untimed), then the file is created.
    Fresh,
    /// A file with at least [`Stream::size`] is complete: its worker does nothing. Any other file
    /// is created as with `Fresh`. For layouts.
    Complete,
}

/// Content of written blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataPattern {
    /// A fraction of random bytes in every 4 KiB, otherwise zeros. Every 4 KiB starts with a header
    /// of file, offset, and generation; if blocks are smaller, every block does. The blocks of a
    /// run therefore differ, unless `duplicate_fraction` is set.
    Random {
        /// Fraction of random bytes, 0 to 1. 1 is incompressible.
        incompressible_fraction: f64,
        /// Fraction of blocks, 0 to 1, that deduplication finds identical to others.
        duplicate_fraction: f64,
    },
    /// The same eight bytes at the start of every page, otherwise zeros, as in IOzone. The data is
    /// highly compressible, and all pages are equal.
    PagePattern,
    /// Data of bonnie++: zeros with incremented bytes. A worker has one buffer, and increments its
    /// byte `i mod block_size` before writing the i-th block. With [`IoEngineKind::Bytewise`], byte
    /// i of each block is `i mod 128` instead.
    Marks,
}

impl Default for DataPattern {
    /// Incompressible data without duplicates.
    fn default() -> Self {
        Self::Random { incompressible_fraction: 1.0, duplicate_fraction: 0.0 }
    }
}

/// End of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// After one pass.
    #[default]
    Once,
    /// After this many operations of each worker. Passes repeat until then.
    Ops(u64),
    /// After this many operations of all workers in total, which use a common counter. Passes
    /// repeat until then.
    Together(u64),
    /// After an amount of work of each worker or a time, the earlier of both. Passes repeat until
    /// then.
    Amount(WorkLimit),
    /// After a time. Passes repeat until then.
    Time {
        /// Ramp time, which is not measured.
        ramp: Nanos,
        /// Measured time.
        run: Nanos,
    },
    /// After one pass, or a time at which each worker continues up to the largest number of
    /// operations that any worker had completed by then, as IOR does with a stonewall and wear-out.
    Deadline(Nanos),
}

impl Bound {
    /// True if each worker makes at most one pass.
    pub fn is_one_pass(self) -> bool {
        matches!(self, Self::Once | Self::Deadline(_))
    }
}

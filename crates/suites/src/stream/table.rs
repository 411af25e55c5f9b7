//! Table of the parameters of the suite.

use model::{
    Bytes, SuiteSpec,
    workload::{Kind, ParameterSpec},
};

use super::text::{read_block_sizes, read_interval, read_path, read_rate};
use crate::{
    load_generator::{GENERATOR, PROGRAM},
    parameter,
};

pub(super) const SPEC: SuiteSpec = SuiteSpec {
    name: "stream",
    title: "Block I/O on files: pattern, sizes, I/O engine, rate, durability.",
    source: "fslab; calls as in the Linux manual pages",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

const FILE: Kind = Kind::Size { min: Bytes(512), scales: true };
const BLOCK: Kind = Kind::Size { min: Bytes(1), scales: false };
const OPS: Kind = Kind::Amount { min: 0, max: u64::MAX };
const BLOCK_SIZES: Kind =
    Kind::Text { takes: "weighted sizes such as \"4KiB:3,64KiB:1\"", read: read_block_sizes };
const RATE: Kind = Kind::Text { takes: "\"1000/s\", \"10MiB/s\", or \"0\"", read: read_rate };
const INTERVAL: Kind = Kind::Text {
    takes: "operations such as \"1\", a size such as \"1MiB\", or \"0\"",
    read: read_interval,
};
const PATH: Kind = Kind::Text { takes: "a path", read: read_path };

const PATTERNS: &[&str] = &[
    "sequential",
    "backward",
    "same-block",
    "strided",
    "iozone-permutation",
    "permutation",
    "random",
    "zipf",
    "pareto",
    "hotspot",
    "append",
    "trace",
];

const ENGINES: &[&str] = &[
    "pread",
    "read",
    "stdio",
    "preadv2",
    "mmap",
    "io_uring",
    "io_submit",
    "copy_file_range",
    "sendfile",
    "splice",
    "null",
];

const IO_PRIORITIES: &[&str] = &[
    "none", "idle", "be-0", "be-1", "be-2", "be-3", "be-4", "be-5", "be-6", "be-7", "rt-0", "rt-1",
    "rt-2", "rt-3", "rt-4", "rt-5", "rt-6", "rt-7",
];

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("file_size", FILE, "512MiB", "Size of each file."),
    parameter("sharing", Kind::Word(&["per-worker", "shared", "segmented", "interleaved"]), "per-worker", "One file per worker, one shared file, or one shared file with a segment per worker or with alternating blocks (IOR: segmented, strided)."),
    parameter("overwrite", Kind::Flag, "true", "Overwrite existing files, or create new ones (fio `overwrite`)."),
    parameter("block_size", BLOCK, "4KiB", "Bytes per I/O call."),
    parameter("block_size_split", BLOCK_SIZES, "", "Weighted block sizes (fio `bssplit`), multiples of `block_size`. Empty: all calls have `block_size`."),
    parameter("direction", Kind::Word(&["read", "write", "mixed", "separate"]), "read", "`mixed`: drawn per operation; `separate`: each worker only reads or only writes."),
    parameter("read_fraction", Kind::Fraction, "0.7", "Fraction of reads if mixed."),
    parameter("readers", Kind::Count { min: 0, max: 1024 }, "0", "Number of reading workers if separate; 0: every other worker."),
    parameter("access_pattern", Kind::Word(PATTERNS), "sequential", "Order of offsets. `random` may repeat blocks; `permutation` covers each block once per pass."),
    parameter("stride", Kind::Count { min: 1, max: u64::MAX }, "17", "Distance in blocks if strided."),
    parameter("zipf_theta", Kind::Number { min: 0.0, max: 10.0 }, "0.99", "Exponent of the zipf distribution; 0 is uniform."),
    parameter("pareto_h", Kind::Fraction, "0.2", "Pareto distribution: this fraction of the blocks gets all but this fraction of the accesses; below 0.5."),
    parameter("hotspot_data_fraction", Kind::Fraction, "0.1", "Fraction of the file in the hotspot."),
    parameter("hotspot_access_fraction", Kind::Fraction, "0.9", "Fraction of the accesses to the hotspot."),
    parameter("trace_file", PATH, "", "Trace: lines `read OFFSET LENGTH` or `write OFFSET LENGTH`, in bytes. No operation may be longer than `block_size` or the largest size of `block_size_split`."),
    parameter("io_engine", Kind::Word(ENGINES), "pread", "I/O interface: pread/pwrite, read/write with lseek, stdio, preadv2/pwritev2, mmap, io_uring, Linux AIO (io_submit), a copy in the kernel, or none."),
    parameter("queue_depth", Kind::Count { min: 1, max: 32_768 }, "1", "Operations in flight per worker (io_uring, io_submit)."),
    parameter("submit_batch", Kind::Count { min: 0, max: 32_768 }, "1", "Operations per submission (io_uring, io_submit). 0: all free slots of the queue, with fewer system calls; operations then complete together, and the device may be idle between batches."),
    parameter("fixed_buffers", Kind::Flag, "true", "Registered buffers and file (io_uring)."),
    parameter("sqpoll", Kind::Flag, "false", "A kernel thread polls the submission queue (io_uring)."),
    parameter("iopoll", Kind::Flag, "false", "Poll for completions (io_uring with direct I/O)."),
    parameter("linked_fdatasync", Kind::Flag, "false", "fdatasync linked to each write (io_uring)."),
    parameter("nop", Kind::Flag, "false", "IORING_OP_NOP instead of each transfer: the overhead of io_uring."),
    parameter("nowait", Kind::Flag, "false", "RWF_NOWAIT (preadv2). Calls that return EAGAIN are counted and retried without it."),
    parameter("hipri", Kind::Flag, "false", "RWF_HIPRI: poll for completion (preadv2 with direct I/O)."),
    parameter("uncached", Kind::Flag, "false", "RWF_DONTCACHE: remove pages from the page cache after the transfer (preadv2)."),
    parameter("madvise", Kind::Word(&["normal", "sequential", "random", "willneed", "populate"]), "normal", "madvise(2) of the mapping (mmap)."),
    parameter("direct", Kind::Flag, "false", "Open with O_DIRECT."),
    parameter("o_sync", Kind::Flag, "false", "Open with O_SYNC."),
    parameter("o_dsync", Kind::Flag, "false", "Open with O_DSYNC; with preadv2, RWF_DSYNC for each write."),
    parameter("fsync_after_open", Kind::Flag, "false", "Untimed fsync after open."),
    parameter("read_first_block", Kind::Flag, "false", "Untimed read of the first block by reading workers."),
    parameter("fsync_every", INTERVAL, "0", "Sync after this many writes or bytes of a worker; 0: never."),
    parameter("fsync_call", Kind::Word(&["fsync", "fdatasync", "sync_file_range"]), "fdatasync", "Call of `fsync_every`. sync_file_range writes back data only: no metadata, no flush of the device cache."),
    parameter("end_fsync", Kind::Word(&["none", "fsync", "fdatasync"]), "fsync", "Final sync after writes (fio `end_fsync`)."),
    parameter("rate", RATE, "0", "Target rate of all workers, in operations or bytes per second; 0: unlimited."),
    parameter("arrivals", Kind::Word(&["closed-loop", "constant", "poisson"]), "closed-loop", "Arrival process if `rate` is set (fio `rate_process`). closed-loop: a late operation delays the following ones; otherwise operations start on schedule, regardless of earlier ones."),
    parameter("think_time", Kind::Time, "0s", "Pause between operations."),
    parameter("think_time_every", Kind::Count { min: 1, max: u64::MAX }, "1", "Operations between pauses."),
    parameter("runtime", Kind::Time, "0s", "Measured time; passes repeat until it is over. 0s: one pass."),
    parameter("operations", OPS, "0", "Operations per worker; 0: off."),
    parameter("ramp_time", Kind::Time, "0s", "Time before the measurement starts."),
    parameter("workers", Kind::Count { min: 1, max: 1024 }, "1", "Number of workers."),
    parameter("worker_type", Kind::Word(&["thread", "process"]), "thread", "Kind of worker."),
    parameter("stonewall", Kind::Word(&["off", "stop", "finish"]), "off", "When the first worker finishes, stop the others, or let them finish without measuring them."),
    parameter("stonewall_time", Kind::Time, "0s", "After this time, each worker continues up to the largest number of operations that any worker had completed by then (IOR `-D` with `stoneWallingWearOut`). 0s: off."),
    parameter("pin", Kind::Flag, "false", "Pin each worker to a CPU, round-robin."),
    parameter("io_priority", Kind::Word(IO_PRIORITIES), "none", "Class and level of ioprio_set(2): idle, best effort (be), or real time (rt)."),
    parameter("cache", Kind::Word(&["cold", "unchanged", "warm"]), "cold", "Cache state before each measured phase: cold, unchanged since the layout, or warm (files read once)."),
    parameter("incompressible_fraction", Kind::Fraction, "1.0", "Fraction of random bytes (rest zero)."),
    parameter("duplicate_fraction", Kind::Fraction, "0.0", "Fraction of identical blocks (fio `dedupe_percentage`)."),
    GENERATOR,
    PROGRAM,
    parameter("verify", Kind::Flag, "false", "Check every block read."),
];

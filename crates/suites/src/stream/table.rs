//! The parameters of the suite.

use model::{
    Bytes, SuiteSpec,
    workload::{Kind, ParameterSpec},
};

use super::text::{read_amount, read_lengths, read_path, read_rate};
use crate::parameter;

pub(super) const SPEC: SuiteSpec = SuiteSpec {
    name: "stream",
    title: "One measured loop over the records of files: order, lengths, calls, queue, pace, \
            durability, and workers as asked.",
    source: "fslab's own; each call as in its Linux manual page",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

const FILE: Kind = Kind::Size { min: Bytes(512), scales: true };
const RECORD: Kind = Kind::Size { min: Bytes(1), scales: false };
const OPS: Kind = Kind::Amount { min: 0, max: u64::MAX };
const LENGTHS: Kind =
    Kind::Text { takes: "sizes with weights such as \"4KiB:3,64KiB:1\"", read: read_lengths };
const RATE: Kind = Kind::Text { takes: "\"1000/s\", \"10MiB/s\", or \"0\"", read: read_rate };
const AMOUNT: Kind = Kind::Text {
    takes: "operations such as \"1\", a size such as \"1MiB\", or \"0\"",
    read: read_amount,
};
const PATH: Kind = Kind::Text { takes: "a path", read: read_path };

const ACCESS: &[&str] = &[
    "sequential",
    "backward",
    "same-record",
    "strided",
    "shuffled",
    "permuted",
    "random",
    "zipf",
    "pareto",
    "hot",
    "append",
    "replay",
];

const ENGINES: &[&str] = &[
    "pread",
    "read",
    "stdio",
    "preadv2",
    "mmap",
    "io_uring",
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
    parameter("file", FILE, "512MiB", "Size of each file."),
    parameter("files", Kind::Word(&["own", "shared", "split"]), "own", "A file for each worker; or one for all, each going over the whole of it (shared) or over a part of its own (split)."),
    parameter("fresh", Kind::Flag, "false", "Write files that are not there yet, rather than overwrite laid-out ones; append to empty ones."),
    parameter("record", RECORD, "4KiB", "Size of one record: the grain of places, and of one operation unless `lengths` says more."),
    parameter("lengths", LENGTHS, "", "Lengths of operations, multiples of the record, each with its weight; empty: one record."),
    parameter("direction", Kind::Word(&["read", "write", "mixed", "apart"]), "read", "mixed: each operation is drawn; apart: some workers read, the others write."),
    parameter("read_share", Kind::Share, "0.7", "Share of reads when mixed."),
    parameter("readers", Kind::Count { min: 0, max: 1024 }, "0", "How many workers read when apart; 0: every other one."),
    parameter("access", Kind::Word(ACCESS), "sequential", "The order of records."),
    parameter("stride", Kind::Count { min: 1, max: u64::MAX }, "17", "Distance in records when strided."),
    parameter("theta", Kind::Number { min: 0.0, max: 10.0 }, "0.99", "Exponent of zipf; 0 is uniform."),
    parameter("pareto_share", Kind::Share, "0.2", "Of pareto: all but this share of the visits go to this share of the records; below 0.5."),
    parameter("hot_space", Kind::Share, "0.1", "Share of the file that is hot."),
    parameter("hot_visits", Kind::Share, "0.9", "Share of the visits that go to the hot part."),
    parameter("list", PATH, "", "Of replay: the file with a line `read OFFSET LENGTH` or `write OFFSET LENGTH`, in bytes, for each operation, none longer than the record or the longest of `lengths`."),
    parameter("engine", Kind::Word(ENGINES), "pread", "The calls: pread/pwrite, read/write with lseek, stdio, preadv2/pwritev2, mmap, io_uring, a copy inside the kernel, or none."),
    parameter("depth", Kind::Count { min: 1, max: 32_768 }, "1", "Operations in flight, io_uring."),
    parameter("batch", Kind::Count { min: 0, max: 32_768 }, "0", "Operations handed over at once, io_uring; 0: as many as there is room for."),
    parameter("registered", Kind::Flag, "true", "Buffers and file registered beforehand, io_uring."),
    parameter("sqpoll", Kind::Flag, "false", "A kernel thread polls the submission queue, io_uring."),
    parameter("iopoll", Kind::Flag, "false", "Completions are polled for, io_uring with direct I/O."),
    parameter("linked_sync", Kind::Flag, "false", "Each write is linked with an fdatasync, io_uring."),
    parameter("nop", Kind::Flag, "false", "IORING_OP_NOP in place of every transfer: what the ring costs."),
    parameter("nowait", Kind::Flag, "false", "RWF_NOWAIT first, preadv2; what would block is counted and done again without."),
    parameter("hipri", Kind::Flag, "false", "RWF_HIPRI: poll for completion, preadv2 with direct I/O."),
    parameter("uncached", Kind::Flag, "false", "RWF_DONTCACHE: through the page cache and out of it at once, preadv2."),
    parameter("advice", Kind::Word(&["normal", "sequential", "random", "will-need", "populate"]), "normal", "madvise of the mapping, mmap."),
    parameter("direct", Kind::Flag, "false", "Open with O_DIRECT, around the page cache."),
    parameter("sync", Kind::Flag, "false", "Open with O_SYNC."),
    parameter("dsync", Kind::Flag, "false", "Open with O_DSYNC; with preadv2, RWF_DSYNC for each write."),
    parameter("open_fsync", Kind::Flag, "false", "fsync right after opening, not timed."),
    parameter("prime", Kind::Flag, "false", "Readers read the first record before the clock starts."),
    parameter("flush_every", AMOUNT, "0", "Make durable after so many writes, or so many bytes written, of a worker; 0: never."),
    parameter("flush_call", Kind::Word(&["fsync", "fdatasync", "range"]), "fdatasync", "The call for that; range is sync_file_range, which leaves metadata and the device's cache alone."),
    parameter("flush", Kind::Word(&["none", "fsync", "fdatasync"]), "fsync", "What follows the loop if anything was written."),
    parameter("rate", RATE, "0", "Operations or bytes per second of all workers together; 0: as fast as possible."),
    parameter("arrivals", Kind::Word(&["closed", "constant", "poisson"]), "closed", "closed: the rate is a limit, and a late operation delays those after it; otherwise operations are due whatever became of those before."),
    parameter("think", Kind::Time, "0s", "Pause between operations."),
    parameter("think_every", Kind::Count { min: 1, max: u64::MAX }, "1", "Operations between two pauses."),
    parameter("time", Kind::Time, "0s", "Counted time; the order starts over as often as needed. 0s: one pass."),
    parameter("operations", OPS, "0", "Operations of each worker instead of one pass or a time; 0: off."),
    parameter("ramp", Kind::Time, "0s", "The first so long of a timed loop is not counted."),
    parameter("workers", Kind::Count { min: 1, max: 1024 }, "1", "How many workers."),
    parameter("worker", Kind::Word(&["thread", "process"]), "thread", "What a worker is."),
    parameter("stonewall", Kind::Word(&["off", "stop", "finish"]), "off", "When the first worker is done the others stop, or go on uncounted."),
    parameter("pin", Kind::Flag, "false", "Each worker on a CPU of its own, round and round."),
    parameter("io_priority", Kind::Word(IO_PRIORITIES), "none", "Class and level of ioprio_set: idle, best effort, real time."),
    parameter("cache", Kind::Word(&["cold", "as-left", "warm"]), "cold", "Empty the caches before the measured phase, leave them as the layout did, or read the files once."),
    parameter("entropy", Kind::Share, "1.0", "Share of random bytes in the data; the rest is zero."),
    parameter("duplicates", Kind::Share, "0.0", "Share of records that are all equal."),
    parameter("verify", Kind::Flag, "false", "Check every block read by its header."),
];

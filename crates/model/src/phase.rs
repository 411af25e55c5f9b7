//! One step of a trial: what a suite asks for ([`Phase`]) and what the engine answers
//! ([`PhaseResult`]).
//!
//! A phase is plain data, complete and free of choices: the engine turns it into a concrete loop
//! before the clock starts. Its timeline for one worker:
//!
//! ```text
//! open · fsync · priming read │ barrier │ loop │ flush │ close │
//!           not timed                   t0     t1      t2      t3
//! ```
//!
//! All four instants are kept, whatever the suite calls its timed region; [`Timed`] says which of
//! the segments make up the suite's own number.

use serde::{Deserialize, Serialize};

use crate::{
    histogram::Histogram,
    metric::Metric,
    units::{Bytes, Nanos, Ops},
};

/// One step of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name, unique within the trial, kebab-case: `write`, `random-read`.
    pub name: String,
    /// The heading under which tables collect it with its like: `writing`, `reading`.
    pub group: String,
    /// What it is for.
    pub role: Role,
    /// What the caches must hold before it starts.
    pub cache: Cache,
    /// What it does.
    pub work: Work,
    /// Which segments belong to the suite's own timed region.
    pub timed: Timed,
}

impl Phase {
    /// The metric this phase is judged by: durable throughput where all workers write and flush,
    /// unless the suite follows a classic tool that takes a tick off its times; else the throughput
    /// of the timed region.
    pub fn primary(&self) -> Metric {
        match &self.work {
            Work::Stream(stream)
                if stream.direction == Direction::Write
                    && stream.flush == Flush::Fsync
                    && !self.timed.tick_subtracted =>
            {
                Metric::DurableThroughput
            }
            Work::Stream(_) => Metric::Throughput,
            Work::Remove { .. } => Metric::Elapsed,
        }
    }
}

/// What a phase is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Lays out what later phases need; its numbers are not results.
    Prepare,
    /// Its numbers are results.
    Measure,
}

/// The state of the caches before a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Nothing of the filesystem under test in memory: written back, remounted or dropped,
    /// verified.
    Cold,
    /// Whatever the phase before left there; part of what the phase measures.
    AsLeft,
}

/// What a phase does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Workers read or write records of files, one file each.
    Stream(Stream),
    /// Removes the files of a stream.
    Remove {
        /// Which files.
        files: Files,
        /// How many.
        workers: u32,
    },
}

/// Which segments after the loop count into the suite's own number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// The flush counts.
    pub flush: bool,
    /// The close counts.
    pub close: bool,
    /// One clock tick is taken off the elapsed time, as one of the classic tools does.
    pub tick_subtracted: bool,
}

/// Names of the files of a stream, in the directory under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// One file of this name; one worker.
    One(String),
    /// `PREFIX.0`, `PREFIX.1` … one for each worker.
    PerWorker(String),
}

impl Files {
    /// The file name of a worker.
    pub fn name(&self, worker: u32) -> String {
        match self {
            Self::One(name) => name.clone(),
            Self::PerWorker(prefix) => format!("{prefix}.{worker}"),
        }
    }
}

/// Records of files, read or written in a given order by workers that start together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// The files.
    pub files: Files,
    /// Size of each file. Only whole records are touched: `floor(size / record)`.
    pub size: Bytes,
    /// Size of one record, which is one operation.
    pub record: Bytes,
    /// Who reads and who writes.
    pub direction: Direction,
    /// The order of records.
    pub access: Access,
    /// The calls used.
    pub interface: Interface,
    /// How the files are opened.
    pub open: Open,
    /// What is written, and expected when reading is verified.
    pub fill: Fill,
    /// Compare every record read with what was written; a difference fails the phase. Takes time
    /// inside the loop.
    pub verify: bool,
    /// What follows the loop, before close.
    pub flush: Flush,
    /// Who does the work.
    pub workers: Workers,
}

/// Who reads and who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Every worker reads.
    Read,
    /// Every worker writes.
    Write,
    /// Workers 0, 2, 4 … read, the others write, each for the whole phase.
    Alternate,
    /// The first so many workers read, the others write.
    FirstRead(u32),
}

impl Direction {
    /// Whether this worker reads.
    pub fn reads(self, worker: u32) -> bool {
        match self {
            Self::Read => true,
            Self::Write => false,
            Self::Alternate => worker.is_multiple_of(2),
            Self::FirstRead(readers) => worker < readers,
        }
    }
}

/// The order in which the records 0..n of a file are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// 0, 1, … n-1.
    Sequential,
    /// n-1, … 1, 0.
    Backward,
    /// n visits of record 0.
    SameRecord,
    /// The classic stride: from record p on to p + stride, wrapping to the next start (1, 2, …)
    /// when p + 1 + stride >= n - 1; with n <= stride every visit is to record 0.
    Stride {
        /// Distance in records.
        records: u64,
    },
    /// Every record once, in a permutation that is the same on every host and in every run:
    /// MT19937-64 seeded by the key array {0x12345, 0x23456, 0x34567, 0x45678}; for i in 0..n,
    /// records i and (next mod n) trade places.
    Shuffled,
}

/// The calls that move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// pread(2) and pwrite(2).
    Offset,
    /// read(2) and write(2), with lseek(2) where the order needs it, inside the loop.
    Position,
    /// fread(3) and fwrite(3) of the C library, its buffer one record long.
    Stdio,
    /// No call at all: what the loop itself costs.
    Null,
}

/// How files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Whether the file may, must or must not be there.
    pub presence: Presence,
    /// `O_DIRECT`: around the page cache.
    pub direct: bool,
    /// `O_SYNC`: every write durable before it returns.
    pub sync: bool,
    /// fsync(2) right after opening, not timed.
    pub fsync: bool,
    /// Read the first record before the clock starts.
    pub prime: bool,
}

/// Whether a file is expected to be there when it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It must exist.
    #[default]
    Existing,
    /// It is created if missing, and used as it is otherwise.
    Any,
    /// An old one is unlinked first, not timed; then it is created.
    Fresh,
}

/// The content of written records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Random bytes for this share of every 4 KiB and zeros for the rest; every 512 bytes carry a
    /// stamp of seed, file and offset, so no two blocks of a run are equal. 1.0 cannot be
    /// compressed.
    Random {
        /// Share of random bytes within 0..=1.
        entropy: f64,
        /// Seed of the bytes.
        seed: u64,
    },
    /// The same eight bytes at the start of every page and zeros elsewhere, as one of the classic
    /// tools writes: almost perfectly compressible, every page equal.
    PagePattern,
}

/// What follows the loop, before close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// Nothing: written data may still be in memory when the phase ends.
    None,
    /// fsync(2) (after fflush(3) with stdio).
    Fsync,
}

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workers {
    /// How many, at least 1.
    pub count: u32,
    /// Threads of one process, or processes.
    pub kind: WorkerKind,
    /// The first worker to finish ends the counting for all: readers stop, creating writers go on
    /// uncounted until their file is whole.
    pub stonewall: Stonewall,
}

impl Workers {
    /// One thread.
    pub const ONE: Self = Self { count: 1, kind: WorkerKind::Thread, stonewall: Stonewall::Off };
}

/// What a worker is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerKind {
    /// A thread of this process.
    Thread,
    /// A process of its own.
    Process,
}

/// What happens to the others when the first worker is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stonewall {
    /// Nothing; everyone finishes and everything counts.
    Off,
    /// Everyone stops at once; the record in progress does not count.
    Stop,
    /// Counting stops; the work goes on so that later phases find it done.
    Finish,
}

/// What one worker did. Instants are CLOCK_MONOTONIC nanoseconds of the measuring host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerResult {
    /// Its index.
    pub worker: u32,
    /// Whether it read.
    pub reads: bool,
    /// When its loop began.
    pub started: Nanos,
    /// Length of the counted part of the loop.
    pub loop_time: Nanos,
    /// Length of the rest of the loop, after counting had stopped: the time of
    /// [`Self::uncounted`]. The flush begins at its end.
    pub uncounted_time: Nanos,
    /// Length of the flush; zero if there was none.
    pub flush_time: Nanos,
    /// Length of the close.
    pub close_time: Nanos,
    /// Counted operations.
    pub ops: Ops,
    /// Counted bytes.
    pub bytes: Bytes,
    /// Bytes moved after counting had stopped, the operation in progress included; part of what the
    /// flush made durable, not part of the rate.
    pub uncounted: Bytes,
    /// CPU time of the worker in user mode, from loop start to close.
    pub user_time: Nanos,
    /// CPU time of the worker in the kernel, from loop start to close.
    pub system_time: Nanos,
    /// Service time of each counted operation (completion minus issue).
    #[serde(skip)]
    pub latency: Histogram,
}

/// What a phase did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseResult {
    /// One entry for each worker, by index; at least one for a stream, none for other work.
    pub workers: Vec<WorkerResult>,
    /// From the release of the barrier to the end of the last worker's close, or the time the work
    /// took.
    pub wall_time: Nanos,
}

impl PhaseResult {
    /// Counted bytes of all workers.
    pub fn bytes(&self) -> Bytes {
        self.workers.iter().map(|worker| worker.bytes).sum()
    }

    /// Counted operations of all workers.
    pub fn ops(&self) -> Ops {
        Ops(self.workers.iter().map(|worker| worker.ops.0).sum())
    }

    /// Service times of all workers.
    pub fn latency(&self) -> Histogram {
        let mut merged = Histogram::new();
        self.workers.iter().for_each(|worker| merged.merge(&worker.latency));
        merged
    }

    /// How far apart the workers started: last start minus first start.
    pub fn start_skew(&self) -> Nanos {
        let starts = || self.workers.iter().map(|worker| worker.started.0);
        Nanos(starts().max().unwrap_or(0) - starts().min().unwrap_or(0))
    }
}

//! Records of files, moved by workers: everything that can be said of such work before it starts.

use serde::{Deserialize, Serialize};

use super::{
    interface::{Interface, Ring},
    workers::Workers,
};
use crate::units::{Bytes, Nanos};

/// Records of files, read or written in a given order by workers that start together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// The files.
    pub files: Files,
    /// Size of each file. Only whole records are touched: `floor(size / record)`.
    pub size: Bytes,
    /// Size of one record: the grain of places, and of one operation unless `lengths` says more.
    pub record: Bytes,
    /// How many records one operation moves.
    pub lengths: Vec<Length>,
    /// Who reads and who writes.
    pub direction: Direction,
    /// The order of records.
    pub access: Access,
    /// Path of the list that [`Access::Replay`] goes through, empty otherwise: a text with one
    /// operation in each line, `read OFFSET LENGTH` or `write OFFSET LENGTH`, in bytes.
    pub list: String,
    /// The calls used.
    pub interface: Interface,
    /// How the files are opened.
    pub open: Open,
    /// What is written, and expected when reading is verified.
    pub fill: Fill,
    /// Seed of the data and of everything drawn: places, lengths, directions, arrivals.
    pub seed: u64,
    /// Check every block read by its header; a difference fails the phase. Takes time inside the
    /// loop.
    pub verify: bool,
    /// Durability inside the loop.
    pub flush_every: Option<FlushEvery>,
    /// What follows the loop, before close.
    pub flush: Flush,
    /// When operations begin.
    pub pace: Pace,
    /// When the loop ends.
    pub bound: Bound,
    /// Who does the work.
    pub workers: Workers,
}

impl Stream {
    /// One worker that reads a file sequentially with pread(2), once, as fast as it can: the stream
    /// that all others are variations of.
    pub fn new(files: Files, size: Bytes, record: Bytes) -> Self {
        Self {
            files,
            size,
            record,
            lengths: Vec::new(),
            direction: Direction::Read,
            access: Access::Sequential,
            list: String::new(),
            interface: Interface::Offset,
            open: Open::default(),
            fill: Fill::default(),
            seed: 0,
            verify: false,
            flush_every: None,
            flush: Flush::None,
            pace: Pace::Free,
            bound: Bound::Once,
            workers: Workers::ONE,
        }
    }

    /// Whether any bytes move: not on the null interface, nor through a ring of NOPs.
    pub fn moves(&self) -> bool {
        !matches!(self.interface, Interface::Null | Interface::Ring(Ring { nop: true, .. }))
    }

    /// Whether what is written is not overwritten before it is flushed: bytes that only the page
    /// cache ever saw were not made durable. Orders that are drawn come to some records twice, and
    /// a bound other than one pass to all of them; writing through the cache has no such bytes.
    pub fn writes_once(&self) -> bool {
        let drawn = match self.access {
            Access::Random
            | Access::Tickets
            | Access::Zipf { .. }
            | Access::Pareto { .. }
            | Access::Hot { .. } => true,
            Access::Sequential
            | Access::Backward
            | Access::SameRecord
            | Access::Stride { .. }
            | Access::Shuffled
            | Access::Permuted
            | Access::Append
            | Access::Replay => false,
        };
        let through = self.open.direct || self.open.sync || self.open.dsync;
        through || (self.bound == Bound::Once && !drawn)
    }

    /// The largest operation: the longest of [`Self::lengths`], or one record.
    pub fn longest(&self) -> Bytes {
        let records = self.lengths.iter().map(|length| length.records).max().unwrap_or(1);
        Bytes(self.record.0 * u64::from(records))
    }
}

/// Names of the files of a stream, in the directory under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// One file of this name; one worker.
    One(String),
    /// `PREFIX.0`, `PREFIX.1` … one for each worker.
    PerWorker(String),
    /// One file for all workers, each going over the whole of it.
    Shared(String),
    /// One file for all workers, each with a part of its own: worker w of n has the whole records
    /// `w * floor(records / n)` up to the next worker's.
    Split(String),
}

impl Files {
    /// The file name of a worker.
    pub fn name(&self, worker: u32) -> String {
        match self {
            Self::One(name) | Self::Shared(name) | Self::Split(name) => name.clone(),
            Self::PerWorker(prefix) => format!("{prefix}.{worker}"),
        }
    }

    /// Number of different files that so many workers have.
    pub fn count(&self, workers: u32) -> u32 {
        match self {
            Self::One(_) | Self::Shared(_) | Self::Split(_) => 1,
            Self::PerWorker(_) => workers,
        }
    }
}

/// One of the lengths that operations have, drawn by weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Length {
    /// Length in records, at least 1.
    pub records: u32,
    /// How often, relative to the other weights; at least 1.
    pub weight: u32,
}

/// Who reads and who writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Every operation of every worker is drawn: a read with this probability within 0..=1, else a
    /// write.
    Mixed(f64),
    /// Every operation reads its record, and with this probability it then changes one byte of it
    /// and writes it back to the same place: read(2), lseek(2) back, write(2). Such an operation
    /// counts as a write of its bytes, once. [`Interface::Position`] alone, and content without
    /// headers.
    Update(f64),
}

impl Direction {
    /// Whether this worker reads, perhaps beside writing.
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

    /// Whether this worker writes, perhaps beside reading.
    pub fn writes(self, worker: u32) -> bool {
        match self {
            Self::Mixed(share) => share < 1.0,
            Self::Update(share) => share > 0.0,
            Self::Read | Self::Write | Self::Alternate | Self::FirstRead(_) => !self.reads(worker),
        }
    }
}

/// The order in which the records 0..n of a file (or of a worker's part of it) are visited.
///
/// Orders with n visits are gone through once, or again and again when [`Bound::Time`] asks for it;
/// the others are drawn, n visits for one pass. What is drawn depends on the seed of the stream,
/// the worker, and the pass alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// records i and (next mod n) trade places. Takes 8 bytes of memory for each record.
    Shuffled,
    /// Every record once for each pass, in a permutation of its own for each worker and pass, in
    /// constant memory.
    Permuted,
    /// Uniform and independent: some records come twice, others not at all.
    Random,
    /// Independent with Zipf's law: the r-th most popular record has weight `r^-theta`; popular
    /// records are scattered over the file.
    Zipf {
        /// Exponent, within 0..=10; 0 is uniform, 0.99 the usual stand-in for web and key-value
        /// traffic.
        theta: f64,
    },
    /// Independent and self-similar (Gray et al., SIGMOD 1994): of all visits, `1 - share` go to
    /// that share of the records, and the same again within it. Popular records are scattered.
    Pareto {
        /// Within 0..0.5 (exclusive); 0.2 is the 80/20 rule.
        share: f64,
    },
    /// Independent, with a hot zone at the start of the file and a cold one behind it.
    Hot {
        /// Share of the file that is hot, within 0..1 (exclusive).
        space: f64,
        /// Share of the visits that go to it, within 0..=1.
        visits: f64,
    },
    /// Sequential from the end of the file on, which is opened with `O_APPEND`.
    Append,
    /// The operations of [`Stream::list`], in its order, directions, and lengths.
    Replay,
    /// Tickets: a number r is drawn from 0..2^31, uniform; the record is r mod n. With
    /// [`Direction::Update`] the record is written back exactly if r is a multiple of ten, whatever
    /// the share says, as one of the classic tools does: of an even number of records only those
    /// with even numbers are ever written.
    Tickets,
}

/// How files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Whether the file may, must or must not be there.
    pub presence: Presence,
    /// `O_DIRECT`: around the page cache.
    pub direct: bool,
    /// `O_SYNC`: every write durable before it returns, with all metadata.
    pub sync: bool,
    /// `O_DSYNC`: every write durable before it returns, with the metadata needed to read it.
    pub dsync: bool,
    /// fsync(2) right after opening, not timed.
    pub fsync: bool,
    /// Read the first record before the clock starts.
    pub prime: bool,
    /// As programs open files that are theirs alone: with `O_RDWR`, also by those that only read,
    /// and new files with mode 0600 instead of 0640.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
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
    /// Random bytes for a share of every 4 KiB and zeros for the rest; every 4 KiB, or every record
    /// where that is less, begin with a header of file, offset, and generation, so no two blocks of
    /// a run are equal but those that are asked to be.
    Random {
        /// Share of random bytes within 0..=1. 1.0 cannot be compressed.
        entropy: f64,
        /// Share of records within 0..=1 that are all equal: what deduplication would find.
        duplicates: f64,
    },
    /// The same eight bytes at the start of every page and zeros elsewhere, as one of the classic
    /// tools writes: almost perfectly compressible, every page equal.
    PagePattern,
    /// Zeros, but for one byte more of each record: before the i-th record of a worker is written,
    /// byte `i mod record` of its one buffer is increased by one, as one of the classic tools does.
    /// With [`Interface::Bytewise`] byte i of each record is `i mod 128` instead, as there.
    Marks,
}

impl Default for Fill {
    /// Neither compressible nor with duplicates.
    fn default() -> Self {
        Self::Random { entropy: 1.0, duplicates: 0.0 }
    }
}

/// Durability inside the loop: after so much written by a worker, a call, timed on its own and
/// part of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushEvery {
    /// How much is written between two calls.
    pub after: Amount,
    /// The call.
    pub call: FlushCall,
}

/// So much written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Operations.
    Ops(u64),
    /// Bytes.
    Bytes(Bytes),
}

/// A call that brings written data to the device. With a queue of operations the worker first waits
/// for those in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushCall {
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// sync_file_range(2) over what was written since the last one, waiting before and after: the
    /// data alone, neither metadata nor the device's own cache.
    Range,
}

/// What follows the loop, before close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// Nothing: written data may still be in memory when the phase ends.
    None,
    /// fsync(2) (after fflush(3) with stdio).
    Fsync,
    /// fdatasync(2) (after fflush(3) with stdio).
    Fdatasync,
}

/// When operations begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As soon as the one before is done (or the queue has room): closed loop.
    #[default]
    Free,
    /// Closed loop with a pause: after every so many operations the worker thinks.
    Think {
        /// Operations between two pauses, at least 1.
        ops: u64,
        /// Length of a pause.
        pause: Nanos,
    },
    /// Closed loop, at most this fast: an operation that comes late delays all that follow.
    Limit(Rate),
    /// Open loop: operations are due at given instants, whatever became of those before. Latency
    /// counts from the instant an operation was due.
    Open {
        /// How many are due.
        rate: Rate,
        /// How they are spread.
        arrivals: Arrivals,
    },
}

/// Work per second of all workers together, each having the same part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// Operations per second, at least 1.
    Ops(u64),
    /// Bytes per second, at least 1.
    Bytes(Bytes),
}

/// How due instants are spread over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal distances.
    Constant,
    /// At exponentially distributed distances, drawn: a Poisson process, as many independent users
    /// make.
    Poisson,
}

/// When the loop ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// After one pass over the order.
    #[default]
    Once,
    /// After so many operations of each worker; the order starts over as often as needed.
    Ops(u64),
    /// After so many operations of all workers together: each takes the next one when it has done
    /// the one before. The order starts over as often as needed.
    Together(u64),
    /// After a time; the order starts over as often as needed.
    Time {
        /// Ramp-up: the first so long of the loop is not counted.
        ramp: Nanos,
        /// The counted time.
        run: Nanos,
    },
}

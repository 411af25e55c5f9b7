//! Logs of the operations of a worker, in the form of fio.
//!
//! Entries are kept in memory that is reserved before the loop, and written to files after it. With
//! an interval, an entry is the mean of the operations that ended in it, as in fio: the operation
//! that ends after the interval is still part of it. Rates of an incomplete last interval are not
//! written, but its latencies are.
//!
//! ```text
//! milliseconds, value, direction (0 read, 1 write), bytes or 0, [offset,] priority
//! ```

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use model::{
    Bytes, Nanos,
    phase::{Bound, OperationLog as Settings, Stream},
};
use rustix::fs::{FlockOperation, flock};

use crate::{
    error::{Failure, Fault, Memory, Operation},
    file_offset::within,
    io::Kind,
};

mod histograms;

use histograms::Histograms;

/// Maximum memory of the logs of all workers of a stream.
const MOST: Bytes = Bytes::gib(1);

/// Times of a completed operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Start of its service.
    pub(crate) issued: Nanos,
    /// Instant at which the kernel had accepted it; the start, for synchronous engines.
    pub(crate) accepted: Nanos,
    /// End.
    pub(crate) ended: Nanos,
    /// True if it counts.
    pub(crate) counts: bool,
}

/// Operation, or the operations of one direction in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    // Time since the start of the loop.
    ended: u64,
    // Time from the start to the end; of several operations, their sum or maximum.
    latency: u64,
    // As `latency`, from the start to the acceptance.
    submit: u64,
    // Sum or maximum of the rest.
    complete: u64,
    // Offset; of an interval, its length.
    offset: u64,
    bytes: u64,
    ops: u32,
    writes: bool,
    // True for the incomplete last interval.
    partial: bool,
}

/// Log of a worker.
#[derive(Debug)]
pub(crate) struct OperationLog {
    settings: Settings,
    worker: u32,
    entries: Vec<Entry>,
    missing: u64,
    started: Nanos,
    // Reads and writes of the current interval, and its start.
    sums: [Entry; 2],
    begun: u64,
    // True if the engine has a queue.
    queues: bool,
    histograms: Option<Box<Histograms>>,
}

impl OperationLog {
    /// Log of a worker; `None` if the stream has none.
    ///
    /// # Errors
    /// [`Fault::Memory`] if the memory cannot be reserved.
    pub(crate) fn new(
        stream: &Stream,
        worker: u32,
        queues: bool,
    ) -> Result<Option<Box<Self>>, Fault> {
        let Some(mut settings) = stream.operation_log.as_deref().cloned() else { return Ok(None) };
        let count = stream.workers.count;
        let memory = |bytes| Fault::Memory { what: Memory::Log, bytes, errno: libc::ENOMEM };
        let histograms = settings.histograms.take().map(|settings| {
            let own = Histograms::new(settings, count);
            own.map(Box::new).ok_or_else(|| memory(Histograms::MOST.0))
        });
        let histograms = histograms.transpose()?;
        let single = [&settings.bandwidth, &settings.operations, &settings.latency]
            .iter()
            .any(|own| own.is_some());
        let size = size_of::<Entry>() as u64;
        let room = MOST.0 / size / u64::from(stream.workers.count.max(1));
        let pass = (stream.region_size().0 / stream.block_size.0.max(1))
            .saturating_mul(u64::from(stream.files.per_worker()));
        let expected = match stream.bound {
            Bound::Once | Bound::Deadline(_) => pass,
            Bound::Ops(ops) => ops,
            Bound::Amount(amount) => amount.ops.min(amount.bytes.0 / stream.block_size.0.max(1)),
            Bound::Together(_) | Bound::Time { .. } => room,
        };
        // Each written block is read once.
        let reads = if stream.verify_backlog.is_some() { expected } else { 0 };
        let expected = expected.saturating_add(reads);
        let room = if single { room.min(expected.saturating_add(2)) } else { 0 };
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let mut entries = Vec::new();
        entries.try_reserve_exact(room).map_err(|_| memory(room as u64 * size))?;
        let writes = Entry { writes: true, ..Entry::default() };
        let sums = [Entry::default(), writes];
        let started = Nanos(0);
        Ok(Some(Box::new(Self {
            settings,
            worker,
            entries,
            missing: 0,
            started,
            sums,
            begun: 0,
            queues,
            histograms,
        })))
    }

    /// Starts the time of the entries.
    pub(crate) fn start(&mut self, clock: Nanos) {
        self.started = clock;
    }

    /// Adds an operation.
    pub(crate) fn add(&mut self, kind: Kind, offset: u64, bytes: u64, times: Times) {
        if !times.counts {
            return;
        }
        let latency = times.ended.0.saturating_sub(times.issued.0);
        let submit = times.accepted.0.saturating_sub(times.issued.0).min(latency);
        let entry = Entry {
            ended: times.ended.0.saturating_sub(self.started.0),
            latency,
            submit,
            complete: latency - submit,
            offset: within(offset),
            bytes,
            ops: 1,
            writes: kind == Kind::Write,
            partial: false,
        };
        if let Some(own) = &mut self.histograms
            && !own.add(entry.writes, bytes, entry.complete, entry.ended)
        {
            self.missing += 1;
        }
        if self.entries.capacity() == 0 {
            return;
        }
        if self.settings.interval == Nanos(0) {
            self.push(entry);
            return;
        }
        let sum = &mut self.sums[usize::from(entry.writes)];
        let join =
            |sum: u64, own: u64| if self.settings.maximum { sum.max(own) } else { sum + own };
        (sum.latency, sum.submit) = (join(sum.latency, latency), join(sum.submit, submit));
        sum.complete = join(sum.complete, entry.complete);
        (sum.bytes, sum.ops) = (sum.bytes + bytes, sum.ops + 1);
        if entry.ended - self.begun.min(entry.ended) >= self.settings.interval.0 {
            self.end_interval(entry.ended, false);
        }
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() < self.entries.capacity() {
            self.entries.push(entry);
        } else {
            self.missing += u64::from(entry.ops);
        }
    }

    fn end_interval(&mut self, ended: u64, partial: bool) {
        for direction in 0..2 {
            let sum = self.sums[direction];
            if sum.ops > 0 {
                self.push(Entry { ended, offset: ended - self.begun, partial, ..sum });
            }
            self.sums[direction] = Entry { writes: direction == 1, ..Entry::default() };
        }
        self.begun = ended - ended % self.settings.interval.0;
    }

    /// Writes the files, and returns the number of operations that are missing.
    ///
    /// # Errors
    /// The file that cannot be written.
    pub(crate) fn write(mut self, ended: Nanos) -> Result<u64, Failure> {
        if self.settings.interval > Nanos(0) {
            self.end_interval(ended.0.saturating_sub(self.started.0), true);
        }
        for (name, prefix, value) in self.files() {
            self.write_one(&prefix, name, |writer| self.lines(writer, value))?;
        }
        if let Some(own) = &self.histograms {
            self.write_one(own.path(), "clat_hist", |writer| own.lines(writer))?;
        }
        Ok(self.missing)
    }

    /// Names, paths, and values of the files.
    fn files(&self) -> Vec<(&'static str, String, Value)> {
        let Settings { bandwidth, operations, latency, .. } = &self.settings;
        let mut all: Vec<(&'static str, String, Value)> = Vec::new();
        let (bytes, ops): (Value, Value) = match self.settings.interval {
            Nanos(0) => (own_bandwidth, |_| Some(1)),
            _ => (mean_bandwidth, mean_rate),
        };
        all.extend(bandwidth.clone().map(|prefix| ("bw", prefix, bytes)));
        all.extend(operations.clone().map(|prefix| ("iops", prefix, ops)));
        if let Some(prefix) = latency {
            let mean = if self.settings.maximum { value_of } else { mean_of };
            all.push(("lat", prefix.clone(), mean(Part::Latency)));
            all.push(("slat", prefix.clone(), mean(Part::Submit)));
            all.push(("clat", prefix.clone(), mean(Part::Complete)));
        }
        if !self.queues {
            // As in fio, this file is empty.
            all.iter_mut().filter(|own| own.0 == "slat").for_each(|own| own.2 = |_| None);
        }
        all
    }

    fn write_one(
        &self,
        prefix: &str,
        name: &str,
        lines: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let number = match self.settings.per_worker {
            true => format!(".{}", self.settings.first + self.worker),
            false => String::new(),
        };
        let path = PathBuf::from(format!("{prefix}_{name}{number}.log"));
        self.fill(&path, lines).map_err(|error| Failure {
            fault: Fault::Os {
                operation: Operation::Write,
                offset: None,
                errno: error.raw_os_error().unwrap_or(libc::EINVAL),
            },
            path,
        })
    }

    /// Writes the lines of a file.
    fn fill(
        &self,
        path: &Path,
        lines: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o644).custom_flags(libc::O_NOFOLLOW);
        match self.settings.per_worker {
            true => options.truncate(true),
            false => options.append(true),
        };
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        flock(&file, FlockOperation::LockExclusive)?;
        let mut writer = BufWriter::with_capacity(1 << 20, &file);
        lines(&mut writer)?;
        writer.flush()
    }

    fn lines(&self, writer: &mut impl Write, value: Value) -> io::Result<()> {
        for entry in &self.entries {
            let Some(value) = value(entry) else { continue };
            let (time, direction) = (entry.ended / 1_000_000, u8::from(entry.writes));
            let (bytes, offset) = match self.settings.interval {
                Nanos(0) => (entry.bytes, entry.offset),
                _ => (0, 0),
            };
            match self.settings.offsets {
                true => writeln!(writer, "{time}, {value}, {direction}, {bytes}, {offset}, 0")?,
                false => writeln!(writer, "{time}, {value}, {direction}, {bytes}, 0")?,
            }
        }
        Ok(())
    }
}

/// Value of an entry; `None` if the log has no line for it.
type Value = fn(&Entry) -> Option<u64>;

/// Part of a latency.
#[derive(Clone, Copy)]
enum Part {
    Latency,
    Submit,
    Complete,
}

fn value_of(part: Part) -> Value {
    match part {
        Part::Latency => |entry| Some(entry.latency),
        Part::Submit => |entry| Some(entry.submit),
        Part::Complete => |entry| Some(entry.complete),
    }
}

fn mean_of(part: Part) -> Value {
    match part {
        Part::Latency => |entry| Some(mean(entry.latency, entry.ops)),
        Part::Submit => |entry| Some(mean(entry.submit, entry.ops)),
        Part::Complete => |entry| Some(mean(entry.complete, entry.ops)),
    }
}

/// Mean, rounded.
fn mean(sum: u64, ops: u32) -> u64 {
    let ops = u64::from(ops.max(1));
    (sum + ops / 2) / ops
}

/// KiB per second of one operation.
fn own_bandwidth(entry: &Entry) -> Option<u64> {
    Some(per_second(entry.bytes, entry.latency) / 1024)
}

fn mean_bandwidth(entry: &Entry) -> Option<u64> {
    (!entry.partial).then(|| per_second(entry.bytes, entry.offset) / 1024)
}

fn mean_rate(entry: &Entry) -> Option<u64> {
    (!entry.partial).then(|| per_second(u64::from(entry.ops), entry.offset))
}

/// Amount per second, from the amount in a time in nanoseconds.
fn per_second(amount: u64, time: u64) -> u64 {
    let rate = u128::from(amount) * 1_000_000_000 / u128::from(time.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

//! Coherence: worker 0 changes files, and the other workers wait until they see each change.
//!
//! The input is a [`Coherence`], the output a [`PhaseResult`]. Change i starts at a fixed time, so
//! the latency of a waiting worker is from the start of the change to the end of the check that saw
//! it. It includes the change itself, and at most one pause between checks. A worker checks each
//! file once before its change, so that clients of a network filesystem have cached the old state.
//! Each sighting counts as a read without bytes; the changes are not counted.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use model::{
    Bytes, Histogram, Nanos, PhaseResult,
    phase::{Change, Coherence, Latencies, WorkerKind, WorkerResult, Workers},
};

use crate::{
    Context, EngineError,
    clock::{now, sleep_until},
    counter::{Counter, Limits},
    driver::{self, Phase, Seat, WorkerLoop},
    io::Kind,
    set::drawn,
};

/// Size of each file before its change.
const SIZE: usize = 4096;

/// Purpose of the random pauses.
const PAUSE: u64 = 0x7061_7573_6500_0000;

/// Byte of a file before and after it is overwritten.
const OLD: u8 = b'0';
const NEW: u8 = b'1';

/// Changes files in `context.directory`, and measures when the other workers see the changes.
///
/// # Errors
/// [`EngineError::Coherence`] if a change fails or is not seen in time, and
/// [`EngineError::Interrupted`].
pub fn run_coherence(
    coherence: &Coherence,
    context: &Context<'_>,
) -> Result<PhaseResult, EngineError> {
    let reject = |problem, hint| Err(EngineError::Tree { problem, hint });
    if coherence.workers.count < 2 {
        return reject("workers is 1, and no worker waits for the changes", "set it to at least 2");
    }
    if coherence.workers.kind == WorkerKind::Process {
        return reject("coherence does not support processes", "use worker_type thread");
    }
    let base = OnceLock::new();
    driver::run(&CoherencePhase { coherence, directory: context.directory, base }, context)
}

struct CoherencePhase<'a> {
    coherence: &'a Coherence,
    directory: &'a Path,
    /// Start of the phase, the same for all workers of this host.
    base: OnceLock<Nanos>,
}

impl Phase for CoherencePhase<'_> {
    type Error = EngineError;

    const OWN_DESCRIPTORS: bool = false;

    fn workers(&self) -> Workers {
        self.coherence.workers
    }

    fn total(&self) -> Bytes {
        Bytes(0)
    }

    fn path(&self, _worker: u32) -> PathBuf {
        self.directory.join(self.coherence.change.name())
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, EngineError> {
        let (coherence, start) = (self.coherence, &self.base);
        let files = Files::new(coherence.change, self.directory);
        let latencies = Latencies { read: Histogram::new(), ..Latencies::default() };
        let counter = Counter::new(seat.control, seat.slot, Limits::default(), latencies);
        if seat.worker == 0 {
            files.create(coherence.changes)?;
            return seat
                .run(Writer { coherence, seat, files, start, base: Nanos(0), done: 0 }, counter);
        }
        // Workers on the host of worker 0 have nothing to wait for if there are other hosts.
        let local = coherence.workers.share.is_some_and(|share| share.first == 0);
        let opened = if local { coherence.changes } else { 0 };
        let pending = VecDeque::with_capacity(8);
        let base = Nanos(0);
        let observer = Observer { coherence, seat, files, start, base, opened, pending, checks: 0 };
        seat.run(observer, counter)
    }
}

/// Files of a phase.
struct Files {
    change: Change,
    directory: PathBuf,
}

impl Files {
    fn new(change: Change, directory: &Path) -> Self {
        Self { change, directory: directory.join(change.name()) }
    }

    fn path(&self, index: u64) -> PathBuf {
        self.directory.join(index.to_string())
    }

    /// Name of a file after it is created or renamed.
    fn new_path(&self, index: u64) -> PathBuf {
        self.directory.join(format!("{index}.new"))
    }

    fn failed(&self, source: io::Error) -> EngineError {
        EngineError::Coherence { path: self.directory.clone(), source }
    }

    /// Creates the files that will be changed.
    fn create(&self, count: u64) -> Result<(), EngineError> {
        let create = |index| {
            if self.change == Change::Create {
                return Ok(());
            }
            let mut file = File::create_new(self.path(index))?;
            file.write_all(&[OLD; SIZE])?;
            file.sync_all()
        };
        let directory = fs::create_dir(&self.directory);
        directory.and_then(|()| (0..count).try_for_each(create)).map_err(|error| self.failed(error))
    }

    /// Makes a change. The file is closed, because network filesystems write data back then.
    fn change(&self, index: u64) -> io::Result<()> {
        let path = self.path(index);
        match self.change {
            Change::Create => File::create_new(self.new_path(index)).map(drop),
            Change::Append => OpenOptions::new().append(true).open(path)?.write_all(&[NEW; SIZE]),
            Change::Overwrite => {
                OpenOptions::new().write(true).open(path)?.write_all_at(&[NEW; SIZE], 0)
            }
            Change::Rename => fs::rename(path, self.new_path(index)),
            Change::Unlink => fs::remove_file(path),
        }
    }

    /// True if the change is visible.
    fn is_changed(&self, index: u64) -> io::Result<bool> {
        let path = self.path(index);
        let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let changed = match self.change {
            Change::Create | Change::Rename => {
                return fs::exists(self.new_path(index));
            }
            Change::Unlink => {
                // A client that does not see the directory does not see the change either.
                return Ok(!fs::exists(&path)? && fs::exists(&self.directory)?);
            }
            Change::Append => fs::metadata(path).map(|file| file.len() > SIZE as u64),
            Change::Overwrite => {
                // A reader has to open the file to see what another client has written
                // (close-to-open consistency, nfs(5)).
                let mut first = [OLD];
                let read = File::open(path).and_then(|file| file.read_exact_at(&mut first, 0));
                read.map(|()| first == [NEW])
            }
        };
        changed.or_else(|error| if missing(&error) { Ok(false) } else { Err(error) })
    }
}

/// Start of a change.
fn due(coherence: &Coherence, base: Nanos, index: u64) -> Nanos {
    base + Nanos(coherence.interval.0.saturating_mul(index + 1))
}

/// Worker that makes the changes.
struct Writer<'a> {
    coherence: &'a Coherence,
    seat: &'a Seat<'a>,
    files: Files,
    start: &'a OnceLock<Nanos>,
    base: Nanos,
    done: u64,
}

impl WorkerLoop for Writer<'_> {
    type Error = EngineError;

    fn start(&mut self) -> Nanos {
        self.base = *self.start.get_or_init(now);
        now()
    }

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, EngineError> {
        if self.done == self.coherence.changes {
            return Ok(false);
        }
        let fault = |fault| EngineError::from(self.seat.failure(fault));
        if !counter.wait(due(self.coherence, self.base, self.done)).map_err(fault)? {
            return Ok(false);
        }
        self.files.change(self.done).map_err(|error| self.files.failed(error))?;
        counter.at(now()).map_err(fault)?;
        self.done += 1;
        Ok(true)
    }
}

/// Worker that waits for the changes.
struct Observer<'a> {
    coherence: &'a Coherence,
    seat: &'a Seat<'a>,
    files: Files,
    start: &'a OnceLock<Nanos>,
    base: Nanos,
    /// Number of changes that the worker has waited for, or is waiting for.
    opened: u64,
    /// Changes that it has not seen.
    pending: VecDeque<u64>,
    /// Number of checks with a pause after them.
    checks: u64,
}

impl Observer<'_> {
    /// Random pause before the next check, between half and one and a half `poll_interval`: checks
    /// at regular times would always be at the same time after a change.
    fn pause(&mut self) -> Nanos {
        self.checks += 1;
        let Nanos(mean) = self.coherence.poll_interval;
        Nanos(mean / 2 + drawn(0, self.seat.worker, self.checks, PAUSE) % mean.max(1))
    }

    /// Checks all pending changes once.
    fn check(&mut self, counter: &mut Counter<'_>) -> Result<(), EngineError> {
        for _ in 0..self.pending.len() {
            let Some(index) = self.pending.pop_front() else { break };
            let due = due(self.coherence, self.base, index);
            let seen = self.files.is_changed(index).map_err(|error| self.files.failed(error))?;
            let ended = now();
            if seen {
                // Clocks of two hosts differ by a few microseconds.
                let one = counter.one(ended, Kind::Read, 0, due.min(ended));
                one.map_err(|fault| self.seat.failure(fault))?;
            } else if ended > due + self.coherence.timeout {
                let seconds = self.coherence.timeout.0 as f64 / 1e9;
                let text = format!(
                    "file {index} was not seen as changed {seconds} s after the start of the \
                     change; raise `timeout`, or mount with a shorter cache time (actimeo of \
                     nfs(5))"
                );
                return Err(self.files.failed(io::Error::new(io::ErrorKind::TimedOut, text)));
            } else {
                self.pending.push_back(index);
            }
        }
        Ok(())
    }
}

impl WorkerLoop for Observer<'_> {
    type Error = EngineError;

    fn start(&mut self) -> Nanos {
        self.base = *self.start.get_or_init(now);
        now()
    }

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, EngineError> {
        let fault = |fault| EngineError::from(self.seat.failure(fault));
        let (coherence, base) = (self.coherence, self.base);
        let Coherence { changes, interval, .. } = *coherence;
        // A file is checked from half an interval before its change on.
        let opens = |index| due(coherence, base, index) - Nanos(interval.0 / 2);
        while self.opened < changes && opens(self.opened) <= counter.clock {
            self.pending.push_back(self.opened);
            self.opened += 1;
        }
        self.check(counter)?;
        if self.pending.is_empty() && self.opened == changes {
            return Ok(false);
        }
        let clock = now();
        counter.at(clock).map_err(fault)?;
        let next = if self.opened < changes { opens(self.opened) } else { Nanos(u64::MAX) };
        let pause = if self.pending.is_empty() { next } else { next.min(clock + self.pause()) };
        // An aborted phase is detected within one pause.
        counter.at(sleep_until(pause.min(clock + NAP))).map_err(fault)?;
        Ok(true)
    }
}

/// Longest sleep between two checks of the signals.
const NAP: Nanos = Nanos(50_000_000);

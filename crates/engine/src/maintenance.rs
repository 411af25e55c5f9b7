//! Maintenance actions at given times: trim, sync, snapshot, scrub, removal of a tree, filling,
//! freezing, or a program.
//!
//! The input is a [`Maintenance`], the output a [`PhaseResult`] with one worker. Each action is one
//! operation, counted as a write without bytes, and its latency is its duration. The result also
//! lists each action with its start ([`Event`]). An action that fails ends the phase, unless it may
//! fail; then it is listed and not counted.
//!
//! The scrub and the program of `run` are child processes. They are killed at the end of a group of
//! phases, and when the phase is aborted.

#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{self, Write},
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use model::{
    Bytes, Histogram, Nanos, PhaseResult,
    phase::{Action, Event, Latencies, Maintenance, WorkerResult, Workers, command::fill},
};

use crate::{
    Context, EngineError,
    buffer::random,
    clock::now,
    counter::{Counter, Limits},
    driver::{self, Phase, Seat, WorkerLoop},
    io::Kind,
};

/// Inode of the root of a btrfs subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
const SUBVOLUME: u64 = 256;

/// Interval in which a child process is checked.
const NAP: Duration = Duration::from_millis(2);

/// Bytes per write when filling, after which the phase may end.
const CHUNK: usize = 1 << 20;

/// Runs maintenance actions on the filesystem of `context.directory`.
///
/// # Errors
/// [`EngineError::Unsupported`] if the filesystem does not support the action,
/// [`EngineError::Maintenance`] for the first action that fails, and [`EngineError::Interrupted`].
pub fn run_maintenance(
    maintenance: &Maintenance,
    context: &Context<'_>,
) -> Result<PhaseResult, EngineError> {
    driver::run(&MaintenancePhase { maintenance, directory: context.directory }, context)
}

struct MaintenancePhase<'a> {
    maintenance: &'a Maintenance,
    directory: &'a Path,
}

impl Phase for MaintenancePhase<'_> {
    type Error = EngineError;

    const OWN_DESCRIPTORS: bool = false;

    fn workers(&self) -> Workers {
        Workers::ONE
    }

    fn total(&self) -> Bytes {
        Bytes(0)
    }

    fn path(&self, _worker: u32) -> PathBuf {
        self.directory.to_owned()
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, EngineError> {
        let Self { maintenance, directory } = *self;
        let limit = maintenance.time;
        let work = MaintenanceLoop {
            maintenance,
            seat,
            target: Target::new(&maintenance.action, directory)?,
            base: Nanos(0),
            done: 0,
            events: Vec::new(),
        };
        let latencies = Latencies { write: Histogram::new(), ..Latencies::default() };
        let limits = Limits { time: Some((limit.ramp, limit.run)), ..Limits::default() };
        seat.run(work, Counter::new(seat.control, seat.slot, limits, latencies))
    }
}

/// Object of the actions.
struct Target<'a> {
    directory: &'a Path,
    opened: File,
    /// Root of the btrfs subvolume that contains the directory, for snapshots.
    subvolume: Option<File>,
}

impl<'a> Target<'a> {
    fn new(action: &Action, directory: &'a Path) -> Result<Self, EngineError> {
        let failed = |source| EngineError::Maintenance { action: action.name(), source };
        let opened = File::open(directory).map_err(failed)?;
        let btrfs = |what| match is_btrfs(&opened) {
            true => Ok(()),
            false => {
                Err(EngineError::Unsupported { what, source: io::ErrorKind::Unsupported.into() })
            }
        };
        let mut subvolume = None;
        match action {
            Action::Snapshot => {
                btrfs("a snapshot")?;
                // The directory is the root, or one of the directories in it.
                let root = directory.ancestors().take(2).find_map(|path| {
                    let file = File::open(path).ok()?;
                    (file.metadata().ok()?.ino() == SUBVOLUME).then_some(file)
                });
                let missing =
                    || io::Error::other("the directory is not in the root of a subvolume");
                subvolume = Some(root.ok_or_else(missing).map_err(failed)?);
            }
            Action::Scrub => btrfs("a scrub")?,
            Action::Trim | Action::Sync | Action::Remove => {}
            Action::Fill(_) | Action::Freeze(_) | Action::Run(_) => {}
        }
        Ok(Self { directory, opened, subvolume })
    }
}

fn is_btrfs(file: &File) -> bool {
    /// `BTRFS_SUPER_MAGIC`, include/uapi/linux/magic.h.
    const MAGIC: u64 = 0x9123_683e;
    let magic = rustix::fs::fstatfs(file).map(|statistics| statistics.f_type);
    magic.is_ok_and(|magic| u64::try_from(magic) == Ok(MAGIC))
}

/// Prepared worker.
struct MaintenanceLoop<'a> {
    maintenance: &'a Maintenance,
    seat: &'a Seat<'a>,
    target: Target<'a>,
    /// Start of the loop.
    base: Nanos,
    done: u64,
    events: Vec<Event>,
}

impl MaintenanceLoop<'_> {
    /// Runs the next action. Returns false if the end of the group stopped it.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] and [`EngineError::Maintenance`].
    fn act(&self, counter: &Counter<'_>) -> Result<bool, EngineError> {
        let action = &self.maintenance.action;
        let target = &self.target;
        let done = match action {
            Action::Trim => sys::fs_ioctl::trim(target.opened.as_fd()).map(drop),
            Action::Sync => rustix::fs::syncfs(&target.opened).map_err(io::Error::from),
            Action::Snapshot => {
                let subvolume = target.subvolume.as_ref().expect("checked before the start");
                let name = format!("snapshot-{}", self.done);
                sys::fs_ioctl::snapshot(subvolume.as_fd(), target.opened.as_fd(), &name)
            }
            Action::Remove => {
                std::fs::remove_dir_all(target.directory.join(Action::tree(self.done)))
            }
            Action::Fill(percent) => match self.fill(*percent, counter) {
                Ok(false) => return self.ended(counter),
                filled => filled.map(drop),
            },
            Action::Freeze(time) => {
                let stopped = || counter.is_stopped();
                let time = Duration::from_nanos(time.0);
                match sys::fs_ioctl::freeze(target.opened.as_fd(), time, stopped) {
                    Ok(false) if stopped() => return self.ended(counter),
                    Ok(false) => Err(io::Error::other("another process ended it by SIGTERM")),
                    frozen => frozen.map(drop),
                }
            }
            Action::Scrub => {
                let directory = target.directory.display().to_string();
                let words = ["btrfs", "scrub", "start", "-B", &directory];
                return self.program(&words.map(str::to_owned), counter);
            }
            Action::Run(words) => {
                let directory = target.directory.display().to_string();
                let value = |name: &str| (name == "target").then(|| directory.clone());
                let filled = words.iter().map(|word| fill(word, value));
                let filled = filled.collect::<Result<Vec<_>, _>>().map_err(io::Error::other);
                return self.program(&filled.map_err(|error| self.failed(error))?, counter);
            }
        };
        match done {
            Ok(()) => Ok(true),
            Err(source) if is_unsupported(&source) && self.done == 0 => {
                Err(EngineError::Unsupported { what: action.name(), source })
            }
            Err(source) => Err(self.failed(source)),
        }
    }

    fn failed(&self, source: io::Error) -> EngineError {
        EngineError::Maintenance { action: self.maintenance.action.name(), source }
    }

    /// Fails if the phase is aborted; false otherwise.
    fn ended(&self, counter: &Counter<'_>) -> Result<bool, EngineError> {
        counter.check().map_err(|fault| self.seat.failure(fault))?;
        Ok(false)
    }

    /// Writes a file until `percent` of the space is used, or until no space is left, and syncs it.
    /// Returns false if the phase ends before.
    fn fill(&self, percent: u8, counter: &Counter<'_>) -> io::Result<bool> {
        let path = self.target.directory.join(format!("fill.{}", self.done));
        match self.write(&path, percent, counter) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            filled => return filled,
        }
        // There may be no space for the file itself, or for data that was not written yet.
        match File::open(&path).and_then(|file| file.sync_all()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(true),
            synced => synced.map(|()| true),
        }
    }

    /// Part of [`Self::fill`] that may fail because no space is left.
    fn write(&self, path: &Path, percent: u8, counter: &Counter<'_>) -> io::Result<bool> {
        let mut file = File::create_new(path)?;
        let mut chunk = vec![0; CHUNK];
        let mut written = 0;
        loop {
            // Some filesystems only know the used space after this.
            file.sync_all()?;
            let mut left = free_above(&file, percent)?;
            if left == 0 {
                return Ok(true);
            }
            while left > 0 {
                if counter.is_stopped() {
                    return Ok(false);
                }
                let length = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
                random(&mut chunk, CHUNK, (self.done << 48) ^ written);
                file.write_all(&chunk[..length])?;
                (left, written) = (left - length as u64, written + length as u64);
            }
        }
    }

    /// Runs a program to its end, and fails unless its exit status is 0.
    fn program(&self, words: &[String], counter: &Counter<'_>) -> Result<bool, EngineError> {
        let failed = |source| self.failed(source);
        let (name, arguments) =
            words.split_first().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let named =
            |error: io::Error| failed(io::Error::new(error.kind(), format!("{name}: {error}")));
        let mut command: Command = sys::program::command(name).map_err(named)?;
        command.args(arguments).current_dir(self.target.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = Killed(command.spawn().map_err(named)?);
        loop {
            match child.0.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(true),
                Some(status) => {
                    let text = format!("`{}`: {status}", model::words::join(words));
                    return Err(failed(io::Error::other(text)));
                }
                None if counter.is_stopped() => return self.ended(counter),
                None => std::thread::sleep(NAP),
            }
        }
    }
}

/// Child process that is killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both calls are harmless for a child that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes until `percent` of the space is used, in whole blocks. As for df(1), the space is the sum
/// of the used blocks and those available to users.
fn free_above(file: &File, percent: u8) -> io::Result<u64> {
    let statistics = rustix::fs::fstatvfs(file)?;
    let used = statistics.f_blocks.saturating_sub(statistics.f_bfree);
    let space = u128::from(used) + u128::from(statistics.f_bavail);
    let goal = u64::try_from(space * u128::from(percent) / 100).unwrap_or(u64::MAX);
    Ok(goal.saturating_sub(used).saturating_mul(statistics.f_frsize))
}

fn is_unsupported(error: &io::Error) -> bool {
    let codes = [rustix::io::Errno::OPNOTSUPP, rustix::io::Errno::NOTTY];
    codes.iter().any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

impl WorkerLoop for MaintenanceLoop<'_> {
    type Error = EngineError;

    fn start(&mut self) -> Nanos {
        self.base = now();
        self.base
    }

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, EngineError> {
        let fault = |fault| EngineError::from(self.seat.failure(fault));
        let Maintenance { at, every, count, may_fail, .. } = *self.maintenance;
        if counter.over || (count > 0 && self.done >= count) {
            return Ok(false);
        }
        let due = self.base + at + Nanos(every.0.saturating_mul(self.done));
        if due > counter.clock && !counter.wait(due).map_err(fault)? {
            return Ok(false);
        }
        let begun = now();
        counter.clock = begun;
        let error = match self.act(counter) {
            Ok(true) => String::new(),
            Ok(false) => return Ok(false),
            Err(EngineError::Maintenance { source, .. }) if may_fail => source.to_string(),
            Err(error) => return Err(error),
        };
        let ended = now();
        let succeeded = error.is_empty();
        self.events.push(Event { begun, elapsed: ended - begun, error });
        self.done += 1;
        if succeeded {
            counter.one(ended, Kind::Write, 0, begun).map_err(fault)?;
        } else {
            counter.at(ended).map_err(fault)?;
            counter.ramp();
        }
        Ok(!counter.over)
    }

    fn report(self, result: &mut WorkerResult) -> Result<(), EngineError> {
        (result.begun, result.events) = (self.base, self.events);
        Ok(())
    }
}

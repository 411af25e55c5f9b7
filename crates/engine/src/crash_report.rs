//! Verification after a crash: every block covered by a sync is read again.
//!
//! # State file
//!
//! A phase with a state file keeps the control block ([`crate::barrier`]) in that file and writes
//! it with msync(2) after each sync inside the loop. After a crash, the file shows how many
//! operations each worker had completed and how many of them were durable. The last bytes of the
//! file, after the control block, contain the stream and its directory:
//!
//! ```text
//! 0 …            control block
//! len            JSON: version, stream, directory
//! size - 8 …     length of the JSON, little endian
//! ```
//!
//! The state file must not be on the filesystem under test. The time of writing it is part of the
//! loop, but not of any operation.
//!
//! # Verification
//!
//! Offsets, lengths, and directions follow from the stream. The same sequence of operations is
//! therefore generated again, without executing it. An operation counts as durable if the worker
//! completed a later fsync(2) or fdatasync(2). For each block, the file must contain the last
//! durable write or a later write of the phase; the block header identifies the write
//! ([`crate::payload`]).
//!
//! A block is torn if it is neither intact nor zero, and a write to it may have begun after the
//! last sync. Torn blocks are counted separately: a filesystem that writes data in place does not
//! prevent them.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::{Path, PathBuf},
};

use model::{
    Bytes,
    phase::{AccessPattern, FileCreation, FileSharing, Stream, SyncInterval},
};
use serde::{Deserialize, Serialize};

use crate::{
    CrashState, EngineError, Operation,
    barrier::ControlBlock,
    error::{Difference, Fault},
    io::{Kind, depth},
    patterns::{Order, Prepared},
    payload::{self, Verifier},
};

/// Version of the state file.
const VERSION: u32 = 1;

/// Maximum number of lost blocks that are listed.
const LISTED_LOSSES: usize = 20;

#[derive(Serialize, Deserialize)]
struct Trailer {
    version: u32,
    stream: Stream,
    /// Directory under test as bytes, because a path need not be UTF-8.
    directory: Vec<u8>,
}

/// Result of a verification after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashReport {
    /// Operations completed by the workers.
    pub done: u64,
    /// Operations covered by a completed sync.
    pub durable: u64,
    /// Blocks that had to be durable and were verified.
    pub blocks: u64,
    /// Blocks that may have been overwritten during the crash and have neither the old nor the new
    /// content.
    pub torn: u64,
    /// Durable blocks without the last durable content or a later one.
    pub lost: u64,
    /// Lost blocks that cannot be read.
    pub unreadable: u64,
    /// The first lost blocks, at most 20.
    pub losses: Vec<LostBlock>,
}

/// Durable block that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostBlock {
    /// Path of the file.
    pub path: PathBuf,
    /// Offset of the block.
    pub offset: Bytes,
    /// Difference found.
    pub difference: Difference,
}

/// Writes the state file of a phase, replacing that of an earlier phase.
pub(crate) fn begin(
    state: &CrashState,
    stream: &Stream,
    directory: &Path,
) -> Result<ControlBlock, EngineError> {
    let path = state.path();
    let failed = |source| EngineError::State { path: path.into(), source };
    let trailer = Trailer {
        version: VERSION,
        stream: stream.clone(),
        directory: directory.as_os_str().as_bytes().to_vec(),
    };
    let json = serde_json::to_vec(&trailer).map_err(|error| failed(error.into()))?;
    let mut file = state.file().try_clone().map_err(failed)?;
    file.set_len(0).map_err(failed)?;
    let control = ControlBlock::file_len(stream.workers.count);
    file.set_len(control).map_err(failed)?;
    file.seek(SeekFrom::Start(control)).map_err(failed)?;
    file.write_all(&json).map_err(failed)?;
    file.write_all(&(json.len() as u64).to_le_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let control = ControlBlock::kept(file.into(), stream.workers.count);
    control.map_err(|fault| fault.of_stream(stream, path).into())
}

/// Verifies the files of a phase with a state file, after a crash or at any time when the phase
/// does not run.
///
/// # Errors
/// [`EngineError::State`] if the state cannot be read, [`EngineError::Stream`] if the blocks of the
/// stream have no headers, [`EngineError::Io`] if a file under test may not be opened. Blocks that
/// cannot be read count as lost.
pub fn crash_report(state: &Path) -> Result<CrashReport, EngineError> {
    crash_report_within(state, LIMITS)
}

/// [`crash_report`] with other limits.
pub(crate) fn crash_report_within(
    state: &Path,
    limits: Limits,
) -> Result<CrashReport, EngineError> {
    let (trailer, control) = read(state)?;
    let Trailer { stream, directory, .. } = trailer;
    if !payload::has_headers(&stream) || !stream.moves() {
        return Err(EngineError::Stream {
            problem: "the blocks of the stream have no headers",
            hint: "use random content and a block_size of at least 64",
        });
    }
    let directory = PathBuf::from(std::ffi::OsStr::from_bytes(&directory));
    if !directory.is_dir() {
        return Err(EngineError::Gone { path: directory });
    }
    let mut crash_report = CrashReport::default();
    let mut judgement =
        BlockState { stream: &stream, control: &control, crash_report: &mut crash_report };
    for worker in 0..stream.workers.count {
        if stream.direction.writes(worker) {
            let path = directory.join(stream.files.name(worker));
            if !limits.allow(&stream, control_counts(judgement.control, worker)) {
                let large = io::Error::new(io::ErrorKind::InvalidData, "implausibly large counts");
                return Err(EngineError::State { path: state.into(), source: large });
            }
            judgement.worker(worker, &path).map_err(|fault| fault.of_stream(&stream, &path))?;
        }
    }
    Ok(crash_report)
}

/// Operations that a worker has completed.
fn control_counts(control: &ControlBlock, worker: u32) -> u64 {
    control.slot(worker).counts().0
}

/// Sizes above which a state is rejected. Verification of a damaged state could otherwise take all
/// memory or never end.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Blocks of one file.
    pub(crate) blocks: u64,
    /// Operations of one worker.
    pub(crate) ops: u64,
}

/// Blocks: a file of 1 TiB in blocks of 4 KiB, for which the report takes 4 GiB of memory.
/// Operations: three days at a million operations per second.
const LIMITS: Limits = Limits { blocks: 1 << 28, ops: 1 << 38 };

impl Limits {
    /// True if a worker with this many completed operations stays within the limits.
    fn allow(self, stream: &Stream, done: u64) -> bool {
        let block = Verifier::new(stream, 0).block_size() as u64;
        let ops = done.saturating_add(in_flight(stream));
        let appends = stream.access_pattern == AccessPattern::Append;
        let appended = ops.saturating_mul(stream.longest_operation().0);
        let end = if appends { appended } else { stream.size.0 };
        ops <= self.ops && end / block.max(1) <= self.blocks
    }
}

/// Operations that a worker may have completed after its last sync.
fn in_flight(stream: &Stream) -> u64 {
    let until_next_sync = match stream.sync_every.map(|every| every.after) {
        Some(SyncInterval::Ops(ops)) => ops,
        Some(SyncInterval::Bytes(bytes)) => bytes.0.div_ceil(stream.block_size.0.max(1)),
        None => 0,
    };
    until_next_sync.saturating_add(u64::from(depth(stream.io_engine)))
}

fn read(state: &Path) -> Result<(Trailer, ControlBlock), EngineError> {
    let failed = |source| EngineError::State { path: state.into(), source };
    let damaged = || failed(io::Error::new(io::ErrorKind::InvalidData, "not a crash state"));
    let mut file = File::options().read(true).write(true).open(state).map_err(failed)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let (rest, len) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| damaged())?;
    let begin = rest.len().checked_sub(len).ok_or_else(damaged)?;
    let trailer: Trailer = serde_json::from_slice(&rest[begin..]).map_err(|_| damaged())?;
    let control = ControlBlock::file_len(trailer.stream.workers.count);
    if trailer.version != VERSION || begin as u64 != control {
        return Err(damaged());
    }
    let control = ControlBlock::kept(file.into(), trailer.stream.workers.count);
    let control = control.map_err(|fault| fault.of_stream(&trailer.stream, state))?;
    Ok((trailer, control))
}

/// Number of the last durable write to a block, and of the last write. The writes of a worker are
/// numbered from 1; 0 means none.
#[derive(Clone, Copy, Default)]
struct Writes {
    durable: u64,
    last: u64,
}

/// Origin of the content of an intact block.
enum Written {
    /// Duplicate, whose write is unknown.
    Duplicate,
    /// Write with this number; 0 before the phase.
    At(u64),
}

struct BlockState<'a> {
    stream: &'a Stream,
    control: &'a ControlBlock,
    crash_report: &'a mut CrashReport,
}

impl BlockState<'_> {
    fn worker(&mut self, worker: u32, path: &Path) -> Result<(), Fault> {
        let slot = self.control.slot(worker);
        let (done, durable) = slot.counts();
        let generation = slot.generation();
        self.crash_report.done += done;
        self.crash_report.durable += durable;
        let check = Verifier::new(self.stream, worker);
        let blocks = self.writes(worker, slot.start(), durable, done, check.block_size() as u64)?;
        let file = match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // The error concerns this process, not the blocks.
            Err(error) if NOT_OPENED.contains(&errno(&error)) => {
                return Err(fault(Operation::Open, None, &error));
            }
            Err(error) => Err(errno(&error)),
        };
        let mut bytes = vec![0; check.block_size()];
        for (block, writes) in (0u64..).zip(blocks) {
            if writes.durable == 0 {
                continue;
            }
            let offset = block * bytes.len() as u64;
            bytes.fill(0);
            let read = match &file {
                Ok(Some(file)) => fill(file, &mut bytes, offset),
                Ok(None) => Ok(()),
                Err(errno) => Err(*errno),
            };
            if let Err(errno) = read {
                self.crash_report.blocks += 1;
                self.crash_report.unreadable += 1;
                self.lose(path, offset, Difference::Unreadable { errno });
                continue;
            }
            let found = check.block(offset, &bytes);
            // The difference is 0 for writes before the phase.
            let found = found.map(|found| match found {
                0 => Written::Duplicate,
                found => Written::At(found.saturating_sub(generation)),
            });
            self.block(path, offset, writes, found);
        }
        Ok(())
    }

    /// Numbers of the writes to each block of a worker. Operations after the completed ones are
    /// included if they may have been started, because the state file was written at the last sync.
    fn writes(
        &self,
        worker: u32,
        start: u64,
        durable: u64,
        done: u64,
        block: u64,
    ) -> Result<Vec<Writes>, Fault> {
        let prepared = Prepared::new(self.stream)?;
        let mut order = Order::new(self.stream, worker, start, &prepared)?;
        let mut blocks: Vec<Writes> = Vec::new();
        let mut generation = 0;
        for op in 0..done + in_flight(self.stream) {
            let Some(visit) = order.next() else { break };
            if visit.kind == Kind::Read {
                continue;
            }
            generation += 1;
            let first = visit.offset / block;
            let end = (visit.offset + visit.len as u64) / block;
            let len = usize::try_from(end).unwrap_or(usize::MAX);
            if blocks.len() < len {
                blocks.resize(len, Writes::default());
            }
            for index in first..end {
                let writes = &mut blocks[usize::try_from(index).unwrap_or(usize::MAX)];
                writes.last = generation;
                if op < durable {
                    writes.durable = generation;
                }
            }
        }
        Ok(blocks)
    }

    fn block(
        &mut self,
        path: &Path,
        offset: u64,
        writes: Writes,
        found: Result<Written, Difference>,
    ) {
        self.crash_report.blocks += 1;
        let difference = match found {
            Ok(Written::Duplicate) => return,
            Ok(Written::At(count)) if (writes.durable..=writes.last).contains(&count) => return,
            Ok(Written::At(found)) if found > writes.last => Difference::Foreign,
            Ok(Written::At(found)) => Difference::Stale { found, durable: writes.durable },
            Err(Difference::Damaged) if writes.last > writes.durable => {
                self.crash_report.torn += 1;
                return;
            }
            Err(difference) => difference,
        };
        self.lose(path, offset, difference);
    }

    fn lose(&mut self, path: &Path, offset: u64, difference: Difference) {
        self.crash_report.lost += 1;
        if self.crash_report.losses.len() < LISTED_LOSSES {
            let (path, offset) = (path.to_path_buf(), Bytes(offset));
            self.crash_report.losses.push(LostBlock { path, offset, difference });
        }
    }
}

/// Reads the data at `offset`. Bytes beyond the end of the file are unchanged.
///
/// # Errors
/// The errno of a failed read.
fn fill(file: &File, bytes: &mut [u8], offset: u64) -> Result<(), i32> {
    let mut moved = 0;
    while moved < bytes.len() {
        let place = offset + moved as u64;
        match file.read_at(&mut bytes[moved..], place) {
            Ok(0) => return Ok(()),
            Ok(count) => moved += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(errno(&error)),
        }
    }
    Ok(())
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Errors of open(2) that concern the process, not the file.
const NOT_OPENED: [i32; 5] = [libc::EACCES, libc::EPERM, libc::EMFILE, libc::ENFILE, libc::ENOMEM];

fn fault(operation: Operation, offset: Option<u64>, error: &io::Error) -> Fault {
    Fault::Os { operation, offset, errno: errno(error) }
}

/// Rejects streams whose durable blocks are unknown or cannot be verified.
pub(crate) fn check(stream: &Stream, paths: &[PathBuf]) -> Result<(), EngineError> {
    let syncs = stream.sync_every.is_some_and(|every| every.call.is_durable());
    let writers =
        (0..stream.workers.count).filter(|worker| stream.direction.writes(*worker)).count();
    let engine = stream.io_engine.properties();
    let moves = engine.moves && engine.own_data;
    let problem = if !payload::has_headers(stream) {
        Some(("its blocks have no headers", "use random content and a larger block_size"))
    } else if !syncs {
        Some(("it never syncs", "set fsync_every and fsync_call fsync or fdatasync"))
    } else if writers > 1 && matches!(stream.files, FileSharing::Shared(_)) {
        Some(("workers overwrite each other's blocks", "set sharing to per-worker or segmented"))
    } else if stream.files.several().is_some() {
        Some(("workers have several files", "use one file per worker"))
    } else if !moves || stream.access_pattern == AccessPattern::Trace {
        Some(("it writes no blocks", "use another io_engine or access_pattern"))
    } else if stream.access_pattern == AccessPattern::Append
        && !paths.iter().all(|path| ends_whole(stream, path))
    {
        Some(("it appends to a file that ends within a block", "start with a new file"))
    } else {
        None
    };
    problem.map_or(Ok(()), |(problem, hint)| Err(EngineError::Stream { problem, hint }))
}

/// True if a file is missing, will be replaced, or ends at a block boundary.
fn ends_whole(stream: &Stream, path: &Path) -> bool {
    let block = Verifier::new(stream, 0).block_size() as u64;
    let len = std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0);
    stream.open.creation == FileCreation::Fresh || len.is_multiple_of(block)
}

#[cfg(test)]
mod tests;

//! What a crash left: every block that a flush had covered is looked at again.
//!
//! # The state file
//!
//! A phase that is given a path for its state keeps the control block ([`crate::barrier`]) there
//! instead of in memory alone, and syncs it (msync(2)) after each flush inside the loop, so it says
//! after a crash how many operations each worker had done and how many of them were durable. Behind
//! the control block, in the last bytes of the file, stand the stream and its directory:
//!
//! ```text
//! 0 …            control block
//! len            JSON: version, stream, directory
//! size - 8 …     length of the JSON, little endian
//! ```
//!
//! The state must not lie on the filesystem under test. Syncing it takes time of the loop, but of
//! no operation.
//!
//! # The judgement
//!
//! Places, lengths, and directions follow from the stream, so the same operations are gone through
//! again without doing them. A worker's operations before its last completed fsync(2) or
//! fdatasync(2) are durable, and nothing else is called so. For each block the last durable write
//! is known, and what the file holds must be that write or a later one of the phase: the header
//! names it ([`crate::payload`]). A block that is neither whole nor zero although it may have been
//! overwritten after the last flush is torn, which no filesystem rules out for data written in
//! place; it is counted apart.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use model::{
    Bytes,
    phase::{Access, Amount, Files, FlushCall, Interface, Presence, Stream},
};
use serde::{Deserialize, Serialize};

use crate::{
    EngineError, Operation,
    barrier::Board,
    error::{Difference, Fault},
    io::Kind,
    patterns::{Order, Prepared},
    payload::{self, Check},
    worker::depth,
};

/// Version of the state file.
const VERSION: u32 = 1;

/// The first so many losses are told one by one.
const TOLD: usize = 20;

#[derive(Serialize, Deserialize)]
struct Trailer {
    version: u32,
    stream: Stream,
    /// The directory under test: bytes, as a path need not be text.
    directory: Vec<u8>,
}

/// What was found after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survival {
    /// Operations that the workers had done.
    pub done: u64,
    /// How many of these a completed flush covered.
    pub durable: u64,
    /// Blocks that had to be there, and were looked at.
    pub blocks: u64,
    /// Blocks of these that were being overwritten and are neither the old nor the new content.
    pub torn: u64,
    /// How many of these are lost.
    pub lost: u64,
    /// Lost blocks that cannot be read.
    pub unreadable: u64,
    /// The first losses.
    pub losses: Vec<Loss>,
}

/// A block that was durable and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file.
    pub path: PathBuf,
    /// Where the block begins.
    pub offset: Bytes,
    /// What is there instead.
    pub difference: Difference,
}

/// A state file that this process has made.
#[derive(Debug)]
pub struct CrashState {
    path: PathBuf,
    file: File,
}

impl CrashState {
    /// Makes an empty state file. One that exists may be of the crash that is to be judged.
    ///
    /// # Errors
    /// [`EngineError::StateExists`] if the name is in use, [`EngineError::State`] when the file
    /// cannot be made.
    pub fn create(path: &Path) -> Result<Self, EngineError> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true).custom_flags(libc::O_NOFOLLOW);
        match options.open(path) {
            Ok(file) => Ok(Self { path: path.into(), file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(EngineError::StateExists { path: path.into() })
            }
            Err(source) => Err(EngineError::State { path: path.into(), source }),
        }
    }

    /// Removes the file, unless the name is that of another file by now.
    ///
    /// # Errors
    /// [`EngineError::State`] when it cannot be removed.
    pub fn remove(&self) -> Result<(), EngineError> {
        let removed = sys::whole::remove(&self.path, &self.file);
        removed.map(drop).map_err(|source| EngineError::State { path: self.path.clone(), source })
    }
}

/// Fills the state file of a phase, in place of what an earlier phase has left there.
pub(crate) fn begin(
    state: &CrashState,
    stream: &Stream,
    directory: &Path,
) -> Result<Board, EngineError> {
    let path = &state.path;
    let failed = |source| EngineError::State { path: path.clone(), source };
    let trailer = Trailer {
        version: VERSION,
        stream: stream.clone(),
        directory: directory.as_os_str().as_bytes().to_vec(),
    };
    let json = serde_json::to_vec(&trailer).map_err(|error| failed(error.into()))?;
    let mut file = state.file.try_clone().map_err(failed)?;
    file.set_len(0).map_err(failed)?;
    let control = Board::file_len(stream.workers.count);
    file.set_len(control).map_err(failed)?;
    file.seek(SeekFrom::Start(control)).map_err(failed)?;
    file.write_all(&json).map_err(failed)?;
    file.write_all(&(json.len() as u64).to_le_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let board = Board::kept(file.into(), stream.workers.count);
    board.map_err(|fault| fault.into_error(stream, path))
}

/// Looks at what a phase with a state file has left, after a crash or at any time when it does not
/// run any more.
///
/// # Errors
/// [`EngineError::State`] when the state cannot be read, [`EngineError::Stream`] when the stream
/// has no headers to go by, [`EngineError::Io`] when a file under test may not be opened. Blocks
/// that cannot be read are lost.
pub fn survival(state: &Path) -> Result<Survival, EngineError> {
    let (trailer, board) = read(state)?;
    let Trailer { stream, directory, .. } = trailer;
    if !payload::has_headers(&stream) || stream.interface == Interface::Null {
        return Err(EngineError::Stream {
            problem: "its blocks have no headers to judge them by",
            cure: "use random content, records of at least 64 bytes, and real files",
        });
    }
    let directory = PathBuf::from(std::ffi::OsStr::from_bytes(&directory));
    if !directory.is_dir() {
        return Err(EngineError::Gone { path: directory });
    }
    let mut survival = Survival::default();
    let mut judgement = Judgement { stream: &stream, board: &board, survival: &mut survival };
    for worker in 0..stream.workers.count {
        if stream.direction.writes(worker) {
            let path = directory.join(stream.files.name(worker));
            judgement.worker(worker, &path).map_err(|fault| fault.into_error(&stream, &path))?;
        }
    }
    Ok(survival)
}

fn read(state: &Path) -> Result<(Trailer, Board), EngineError> {
    let failed = |source| EngineError::State { path: state.into(), source };
    let damaged =
        || failed(io::Error::new(io::ErrorKind::InvalidData, "it is no state of a phase"));
    let mut file = File::options().read(true).write(true).open(state).map_err(failed)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let (rest, len) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| damaged())?;
    let begin = rest.len().checked_sub(len).ok_or_else(damaged)?;
    let trailer: Trailer = serde_json::from_slice(&rest[begin..]).map_err(|_| damaged())?;
    let control = Board::file_len(trailer.stream.workers.count);
    if trailer.version != VERSION || begin as u64 != control {
        return Err(damaged());
    }
    let board = Board::kept(file.into(), trailer.stream.workers.count);
    let board = board.map_err(|fault| fault.into_error(&trailer.stream, state))?;
    Ok((trailer, board))
}

/// Writes to one block: the last that was durable, and the last at all; counted from 1.
#[derive(Clone, Copy, Default)]
struct Writes {
    durable: u64,
    last: u64,
}

/// Where the content of a whole block comes from.
enum Written {
    /// A duplicate, which does not tell.
    Duplicate,
    /// The write of this count; 0 before the phase.
    At(u64),
}

struct Judgement<'a> {
    stream: &'a Stream,
    board: &'a Board,
    survival: &'a mut Survival,
}

impl Judgement<'_> {
    fn worker(&mut self, worker: u32, path: &Path) -> Result<(), Fault> {
        let lane = self.board.lane(worker);
        let (done, durable) = lane.counts();
        let generation = lane.generation();
        self.survival.done += done;
        self.survival.durable += durable;
        let check = Check::new(self.stream, worker);
        let blocks = self.writes(worker, lane.start(), durable, done, check.block_size() as u64)?;
        let file = match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // That says something of this process, and nothing of the blocks.
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
                self.survival.blocks += 1;
                self.survival.unreadable += 1;
                self.lose(path, offset, Difference::Unreadable { errno });
                continue;
            }
            let found = check.block(offset, &bytes);
            // 0 for what is from before the phase.
            let found = found.map(|found| match found {
                0 => Written::Duplicate,
                found => Written::At(found.saturating_sub(generation)),
            });
            self.block(path, offset, writes, found);
        }
        Ok(())
    }

    /// Goes through the operations of a worker, and through those that may have been on their way
    /// beyond the ones known to be done: the state is as old as the last flush.
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
        let until_next_flush = match self.stream.flush_every.map(|every| every.after) {
            Some(Amount::Ops(ops)) => ops,
            Some(Amount::Bytes(bytes)) => bytes.0.div_ceil(self.stream.record.0),
            None => 0,
        };
        let under_way = until_next_flush + u64::from(depth(self.stream.interface));
        let mut blocks: Vec<Writes> = Vec::new();
        let mut generation = 0;
        for op in 0..done + under_way {
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
        self.survival.blocks += 1;
        let difference = match found {
            Ok(Written::Duplicate) => return,
            Ok(Written::At(count)) if (writes.durable..=writes.last).contains(&count) => return,
            Ok(Written::At(found)) if found > writes.last => Difference::Foreign,
            Ok(Written::At(found)) => Difference::Stale { found, durable: writes.durable },
            Err(Difference::Damaged) if writes.last > writes.durable => {
                self.survival.torn += 1;
                return;
            }
            Err(difference) => difference,
        };
        self.lose(path, offset, difference);
    }

    fn lose(&mut self, path: &Path, offset: u64, difference: Difference) {
        self.survival.lost += 1;
        if self.survival.losses.len() < TOLD {
            let (path, offset) = (path.to_path_buf(), Bytes(offset));
            self.survival.losses.push(Loss { path, offset, difference });
        }
    }
}

/// Reads what there is at `offset`; what lies behind the end of the file stays as it was.
///
/// # Errors
/// The error number of a read that failed.
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

/// Errors of open(2) that are of the process, not of the file.
const NOT_OPENED: [i32; 5] = [libc::EACCES, libc::EPERM, libc::EMFILE, libc::ENFILE, libc::ENOMEM];

fn fault(operation: Operation, offset: Option<u64>, error: &io::Error) -> Fault {
    Fault::Os { operation, offset, errno: errno(error) }
}

/// Refuses a stream where it cannot be told what is durable, or where it must be.
pub(crate) fn check(stream: &Stream, paths: &[PathBuf]) -> Result<(), EngineError> {
    let flushes = stream.flush_every.is_some_and(|every| every.call != FlushCall::Range);
    let writers =
        (0..stream.workers.count).filter(|worker| stream.direction.writes(*worker)).count();
    let moves = match stream.interface {
        Interface::Ring(ring) => !ring.nop,
        Interface::Copy(_) | Interface::Null => false,
        Interface::Offset
        | Interface::Position
        | Interface::Bytewise
        | Interface::Stdio
        | Interface::Vector(_)
        | Interface::Mmap(_) => true,
    };
    let problem = if !payload::has_headers(stream) {
        Some(("its blocks have no headers", "use random content and larger records"))
    } else if !flushes {
        Some(("nothing in it is known to be durable", "flush every so often: fsync or fdatasync"))
    } else if writers > 1 && matches!(stream.files, Files::Shared(_)) {
        Some(("its workers overwrite each other's blocks", "give each a file or a part of its own"))
    } else if !moves || stream.access == Access::Replay {
        Some(("it does not write blocks of its own", "write by another interface or order"))
    } else if stream.access == Access::Append && !paths.iter().all(|path| ends_whole(stream, path))
    {
        Some(("it appends to a file that ends within a block", "begin with a fresh file"))
    } else {
        None
    };
    problem.map_or(Ok(()), |(problem, cure)| Err(EngineError::Stream { problem, cure }))
}

/// Whether a file is missing, or about to be, or ends where a block does.
fn ends_whole(stream: &Stream, path: &Path) -> bool {
    let block = Check::new(stream, 0).block_size() as u64;
    let len = std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0);
    stream.open.presence == Presence::Fresh || len.is_multiple_of(block)
}

#[cfg(test)]
mod tests;

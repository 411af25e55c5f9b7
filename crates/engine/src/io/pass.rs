//! Calls of [`FileHandling`]: allocation of files, cached pages, and advice.
#![expect(unsafe_code, reason = "posix_fallocate(3) has no safe form")]

use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use model::phase::{
    Allocation, FileAdvice, FileCreation, FileHandling, FileSharing, PassStart, Stream, SyncCall,
};
use rustix::{
    fs::{
        Advice, FallocateFlags, FileType, Mode, OFlags, fadvise, fallocate, fstat, ftruncate, stat,
    },
    io::Errno,
};

use super::{
    AccessMode,
    open::{self},
    sync::close,
};
use crate::error::{Failure, Fault, Operation};

/// Instant at which an engine makes calls on its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassPoint {
    /// After the file was opened, before the clock starts.
    Opened,
    /// At the start of a pass after the first one. No operation is in flight.
    Next,
    /// After the final sync.
    Ended,
}

/// Calls on the file of a worker.
#[derive(Debug)]
pub(crate) struct PassCalls {
    stream: Stream,
    handling: FileHandling,
    path: PathBuf,
    mode: AccessMode,
    // First byte of the region, and number of bytes to the end of the file.
    region: (u64, u64),
    // Calls on each of several files; empty for one file.
    files: Vec<PassCalls>,
}

impl PassCalls {
    /// Calls of a worker; `None` if the stream requests none.
    pub(crate) fn new(
        stream: &Stream,
        worker: u32,
        paths: &[PathBuf],
        mode: AccessMode,
    ) -> Option<Self> {
        let several = stream.files.several().is_some();
        let handling = match stream.file_handling {
            Some(handling) => handling,
            None if several => FileHandling::default(),
            None => return None,
        };
        let start = handling.region.map_or(0, |region| region.start(worker));
        // The names of all files are not copied for each file.
        let stream = Stream { files: FileSharing::One(String::new()), ..stream.clone() };
        let of = |path: &PathBuf| Self {
            stream: stream.clone(),
            handling,
            path: path.clone(),
            mode,
            region: (start, stream.size.0.saturating_sub(start)),
            files: Vec::new(),
        };
        let files = if several { paths.iter().map(of).collect() } else { Vec::new() };
        Some(Self { files, ..of(paths.first()?) })
    }

    /// Calls on one of several files.
    pub(super) fn file(&self, number: usize) -> &Self {
        self.files.get(number).unwrap_or(self)
    }

    /// Sync of a file before it is closed.
    pub(super) fn end_sync(&self) -> Option<SyncCall> {
        self.stream.end_sync.call()
    }

    /// True if a pass after the first one, or an operation on another file, starts with calls.
    pub(crate) fn between_passes(&self) -> bool {
        if !self.files.is_empty() {
            return true;
        }
        match self.handling.pass_start {
            PassStart::Continue => false,
            PassStart::Invalidate => self.handling.invalidate,
            PassStart::Reopen | PassStart::Recreate => true,
        }
    }

    /// Makes the calls of this point.
    pub(crate) fn make(&self, file: &mut OwnedFd, point: PassPoint) -> Result<(), Fault> {
        match point {
            PassPoint::Opened => self.opened(file),
            PassPoint::Next => match self.handling.pass_start {
                PassStart::Continue => Ok(()),
                PassStart::Invalidate => self.invalidate(file),
                PassStart::Reopen | PassStart::Recreate => {
                    if self.handling.pass_start == PassStart::Recreate {
                        open::remove(&self.path)?;
                    }
                    let mut stream = self.stream.clone();
                    if stream.open.creation == FileCreation::Fresh {
                        stream.open.creation = FileCreation::Any;
                    }
                    let again = open::open(&stream, &self.path, self.mode)?;
                    close(std::mem::replace(file, again))?;
                    self.invalidate(file)?;
                    self.advise(file)
                }
            },
            PassPoint::Ended if self.handling.drop_after => {
                drop_pages(file, (0, self.stream.size.0))
            }
            PassPoint::Ended => Ok(()),
        }
    }

    fn opened(&self, file: &OwnedFd) -> Result<(), Fault> {
        if self.stream.open.creation == FileCreation::Fresh {
            allocate(file, self.handling.allocate, self.stream.size.0)?;
            // The size is final before the first write, also if the last block is incomplete.
            extend(file, self.stream.size.0)?;
            return Ok(());
        }
        self.invalidate(file)?;
        self.advise(file)
    }

    fn invalidate(&self, file: &OwnedFd) -> Result<(), Fault> {
        if self.handling.invalidate { drop_pages(file, self.region) } else { Ok(()) }
    }

    fn advise(&self, file: &OwnedFd) -> Result<(), Fault> {
        let advice = match self.handling.advice {
            None => return Ok(()),
            Some(FileAdvice::Sequential) => Advice::Sequential,
            Some(FileAdvice::Random) => Advice::Random,
        };
        advise(file, self.region, advice)
    }
}

fn drop_pages(file: &OwnedFd, region: (u64, u64)) -> Result<(), Fault> {
    advise(file, region, Advice::DontNeed)
}

fn advise(file: &OwnedFd, (offset, len): (u64, u64), advice: Advice) -> Result<(), Fault> {
    let len = std::num::NonZeroU64::new(len);
    fadvise(file, offset, len, advice).map_err(|errno| Fault::whole(Operation::Advise, errno))
}

fn extend(file: &OwnedFd, size: u64) -> Result<(), Fault> {
    ftruncate(file, size).map_err(|errno| Fault::whole(Operation::Extend, errno))
}

fn allocate(file: &OwnedFd, how: Allocation, size: u64) -> Result<(), Fault> {
    let answer = match how {
        Allocation::None => Ok(()),
        Allocation::Native => fallocate(file, FallocateFlags::empty(), 0, size),
        Allocation::Keep => fallocate(file, FallocateFlags::KEEP_SIZE, 0, size),
        Allocation::Truncate => return extend(file, size),
        Allocation::Posix => {
            let len = libc::off64_t::try_from(size).unwrap_or(libc::off64_t::MAX);
            // SAFETY: the call takes no pointers; the descriptor is open while it is borrowed.
            match unsafe { libc::posix_fallocate64(file.as_raw_fd(), 0, len) } {
                0 => Ok(()),
                errno => Err(Errno::from_raw_os_error(errno)),
            }
        }
    };
    match answer {
        // Not supported by the filesystem; fio continues as well.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) if how != Allocation::Posix => Ok(()),
        answer => answer.map_err(|errno| Fault::whole(Operation::Allocate, errno)),
    }
}

/// Creates and allocates the files of a stream that only writes, before its workers start. Files
/// that are large enough are not changed.
///
/// # Errors
/// The first call that failed.
pub(crate) fn prepare(stream: &Stream, paths: &[PathBuf]) -> Result<(), Failure> {
    let Some(handling) = stream.file_handling else { return Ok(()) };
    if stream.open.creation != FileCreation::Any {
        return Ok(());
    }
    for path in paths {
        one(stream, handling, path).map_err(|fault| Failure { fault, path: path.clone() })?;
    }
    Ok(())
}

fn one(stream: &Stream, handling: FileHandling, path: &Path) -> Result<(), Fault> {
    if length(path).is_some_and(|length| length >= stream.size.0) {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))
        .map_err(|errno| Fault::whole(Operation::Open, errno))?;
    allocate(&file, handling.allocate, stream.size.0)?;
    drop_pages(&file, (0, stream.size.0))?;
    close(file)
}

/// Length of an existing regular file.
fn length(path: &Path) -> Option<u64> {
    let status = stat(path).ok()?;
    let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    regular.then(|| u64::try_from(status.st_size).unwrap_or(0))
}

/// True if a file with this path is as long as the files of the stream
/// ([`FileCreation::Complete`]).
pub(crate) fn is_complete(stream: &Stream, path: &Path) -> bool {
    length(path).is_some_and(|length| length >= stream.size.0)
}

/// Rejects an open file that is not regular, such as a device, if the stream has
/// [`FileHandling`].
pub(super) fn check_regular(stream: &Stream, file: &OwnedFd) -> Result<(), Fault> {
    if stream.file_handling.is_none() {
        return Ok(());
    }
    let status = fstat(file).map_err(|errno| Fault::whole(Operation::Examine, errno))?;
    let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    if regular { Ok(()) } else { Err(Fault::whole(Operation::Open, Errno::INVAL)) }
}

//! The calls that layouts and mixes have in common, and what becomes of their refusals.

use std::{
    ffi::{CStr, OsStr},
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use model::{
    Bytes,
    phase::{Files, Stream},
};
use rustix::{
    fs::{Mode, OFlags, mkdir, mkdirat, open, openat},
    io::{Errno, write},
};

use crate::{
    EngineError,
    barrier::ABORT,
    error::{Fault, Operation},
    set::Data,
};

/// The mode of files: they are nobody else's, see [`model::phase::TreeStep::Create`].
pub(crate) const FILE: Mode = Mode::from_raw_mode(0o600);

/// The mode of the directories that hold entries.
const HOLDER: Mode = Mode::from_raw_mode(0o700);

/// Makes the directory of a set and opens it; one that is there is as good.
pub(crate) fn root(path: &Path) -> Result<OwnedFd, EngineError> {
    let at = |operation| move |errno| error(Fault::whole(operation, errno), path.to_path_buf());
    made(mkdir(path, HOLDER)).map_err(at(Operation::MakeDirectory))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(at(Operation::Open))
}

/// Makes a directory that holds entries; one that is there is as good.
pub(crate) fn holder(root: BorrowedFd<'_>, name: &CStr) -> Result<(), Fault> {
    made(mkdirat(root, name, HOLDER)).map_err(|errno| Fault::whole(Operation::MakeDirectory, errno))
}

/// A new file, open for writing.
pub(crate) fn create(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Fault> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(directory, name, flags, FILE).map_err(|errno| Fault::whole(Operation::Open, errno))
}

/// Writes so many bytes from the start, record by record; gives up at the next record when the
/// phase is called off.
pub(crate) fn fill(
    file: &OwnedFd,
    size: u64,
    data: &mut Data,
    signal: &AtomicU32,
) -> Result<(), Fault> {
    let operation = Operation::Write;
    let mut offset = 0;
    while offset < size {
        let left = usize::try_from(size - offset).unwrap_or(usize::MAX);
        let bytes = data.write(left.min(data.record()));
        match again(|| write(file, bytes)) {
            Ok(0) => return Err(Fault::Nothing { operation, offset }),
            Ok(done) => offset += done as u64,
            Err(errno) => return Err(failed(operation, offset, errno)),
        }
        if signal.load(Relaxed) & ABORT != 0 {
            return Err(Fault::Aborted);
        }
    }
    Ok(())
}

/// Makes an interrupted call again.
pub(crate) fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// A directory that an earlier phase has made is as good as a new one.
fn made(answer: Result<(), Errno>) -> Result<(), Errno> {
    if answer == Err(Errno::EXIST) { Ok(()) } else { answer }
}

/// A name of the set in `root`, for errors.
pub(crate) fn joined(root: &Path, name: &CStr) -> PathBuf {
    root.join(OsStr::from_bytes(name.to_bytes()))
}

/// A refusal at a place of a file.
pub(crate) fn failed(operation: Operation, offset: u64, errno: Errno) -> Fault {
    Fault::Os { operation, offset: Some(offset), errno: errno.raw_os_error() }
}

/// There is not so much memory.
pub(crate) fn memory(bytes: u64) -> EngineError {
    let source = std::io::ErrorKind::OutOfMemory.into();
    EngineError::Memory { what: "buffers", bytes: Bytes(bytes), source }
}

/// The public error of a fault about `path`.
pub(crate) fn error(fault: Fault, path: PathBuf) -> EngineError {
    // No file of a set is opened for direct I/O, which is all that a stream adds to an error.
    let stream = Stream::new(Files::One(String::new()), Bytes(0), Bytes(0));
    fault.into_error(&stream, &path)
}

//! System calls on the entries of a set, and conversion of their errors.

use std::{
    ffi::{CStr, OsStr},
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use rustix::{
    fs::{Mode, OFlags, mkdir, mkdirat, open, openat},
    io::{Errno, write},
};

use crate::{
    barrier::ABORT,
    error::{Failure, Fault, Memory, Operation},
    set::Data,
};

/// Mode of files, see [`model::phase::TreeStep::Create`].
pub(crate) const FILE: Mode = Mode::from_raw_mode(0o600);

/// Mode of directories that hold entries.
const HOLDER: Mode = Mode::from_raw_mode(0o700);

/// Creates the directory of a file set if it does not exist, and opens it.
pub(crate) fn root(path: &Path) -> Result<OwnedFd, Failure> {
    let at = |operation| {
        move |errno| Failure { fault: Fault::whole(operation, errno), path: path.to_path_buf() }
    };
    made(mkdir(path, HOLDER)).map_err(at(Operation::MakeDirectory))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(at(Operation::Open))
}

/// Creates a directory that holds entries if it does not exist.
pub(crate) fn holder(root: BorrowedFd<'_>, name: &CStr) -> Result<(), Fault> {
    made(mkdirat(root, name, HOLDER)).map_err(|errno| Fault::whole(Operation::MakeDirectory, errno))
}

/// Creates a file and opens it for writing.
pub(crate) fn create(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Fault> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(directory, name, flags, FILE).map_err(|errno| Fault::whole(Operation::Open, errno))
}

/// Writes `size` bytes from the start, block by block. Stops at the next block if the phase is
/// aborted.
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
        let bytes = data.write(left.min(data.block_size()));
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

/// Repeats an interrupted call.
#[inline]
pub(crate) fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// Ignores an existing directory, which an earlier phase has created.
pub(crate) fn made(answer: Result<(), Errno>) -> Result<(), Errno> {
    if answer == Err(Errno::EXIST) { Ok(()) } else { answer }
}

/// Path of an entry of the file set in `root`, for errors.
pub(crate) fn joined(root: &Path, name: &CStr) -> PathBuf {
    root.join(OsStr::from_bytes(name.to_bytes()))
}

/// Fault of an operation at an offset.
pub(crate) fn failed(operation: Operation, offset: u64, errno: Errno) -> Fault {
    Fault::Os { operation, offset: Some(offset), errno: errno.raw_os_error() }
}

/// Fault for memory that is not available.
pub(crate) fn memory(bytes: u64) -> Fault {
    Fault::Memory { what: Memory::Buffers, bytes, errno: libc::ENOMEM }
}

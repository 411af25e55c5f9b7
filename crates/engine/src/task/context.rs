//! Context of task operations: buffer, counters, interruption, and errors.

use std::{
    ffi::CStr,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use model::{Bytes, phase::TaskRoot};
use rustix::{
    fs::{FileType, Mode, OFlags, RawDir, openat},
    io::Errno,
    path::Arg,
};

use crate::{
    EngineError,
    barrier::{ABORT, ControlBlock, WorkerSlot},
    clock::Usage,
    error::{Failure, Operation},
};

/// Buffer size for getdents64(2), as used by readdir(3) of the C library.
const LISTING: usize = 32 << 10;

/// Context of a task.
pub(super) struct TaskContext<'a> {
    slot: &'a WorkerSlot,
    signal: &'a AtomicU32,
    /// Buffer; limits the size of a read or write call.
    pub(super) buffer: Box<[u8]>,
    /// Bytes of data read from files under test.
    pub(super) read: u64,
    /// Bytes of data written to files under test.
    pub(super) written: u64,
    /// Resource usage of programs.
    pub(super) children: Usage,
    moved: u64,
    ops: u64,
}

impl<'a> TaskContext<'a> {
    /// Creates a context with a buffer of that size and zero counters.
    pub(super) fn new(buffer: Bytes, control: &'a ControlBlock) -> Result<Self, EngineError> {
        let no_memory = || EngineError::Memory {
            what: "buffers",
            bytes: buffer,
            source: std::io::ErrorKind::OutOfMemory.into(),
        };
        let len = usize::try_from(buffer.0).map_err(|_| no_memory())?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(len).map_err(|_| no_memory())?;
        memory.resize(len, 0);
        Ok(Self {
            slot: control.slot(0),
            signal: control.signal(),
            buffer: memory.into_boxed_slice(),
            read: 0,
            written: 0,
            children: Usage::default(),
            moved: 0,
            ops: 0,
        })
    }

    /// Checks for an interruption.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if the caller requested it.
    pub(super) fn poll(&self) -> Result<(), EngineError> {
        if self.signal.load(Relaxed) & ABORT != 0 {
            return Err(EngineError::Interrupted);
        }
        Ok(())
    }

    /// Counts completed operations.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub(super) fn done(&mut self, ops: u64) -> Result<(), EngineError> {
        self.ops += ops;
        self.slot.done.store(self.ops, Relaxed);
        self.poll()
    }

    /// Completed operations.
    pub(super) fn ops(&self) -> u64 {
        self.ops
    }

    /// Counts bytes read in this root directory.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub(super) fn has_read(&mut self, at: TaskRoot, bytes: u64) -> Result<(), EngineError> {
        if at == TaskRoot::Target {
            self.read += bytes;
        }
        self.progress(bytes)
    }

    /// Counts bytes written in this root directory.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub(super) fn has_written(&mut self, at: TaskRoot, bytes: u64) -> Result<(), EngineError> {
        if at == TaskRoot::Target {
            self.written += bytes;
        }
        self.progress(bytes)
    }

    fn progress(&mut self, bytes: u64) -> Result<(), EngineError> {
        self.moved += bytes;
        self.slot.bytes.store(self.moved, Relaxed);
        self.poll()
    }
}

/// Name in a directory.
pub(super) struct Entry {
    /// Name.
    pub(super) name: Box<CStr>,
    /// File type.
    pub(super) kind: FileType,
}

/// All names of an open directory except `.` and `..`, in the order of the filesystem. They are
/// read completely before any is processed, so that a directory does not change while it is read.
/// The type is determined by fstatat(2) if the directory does not provide it.
pub(super) fn entries(directory: &OwnedFd, path: &Path) -> Result<Vec<Entry>, EngineError> {
    let mut names = Vec::new();
    let mut memory = vec![MaybeUninit::uninit(); LISTING];
    let mut raw = RawDir::new(directory, &mut memory);
    while let Some(entry) = raw.next() {
        let entry = entry.map_err(|errno| failed(Operation::List, path, errno))?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        names.push(Entry { name: name.into(), kind: entry.file_type() });
    }
    for entry in names.iter_mut().filter(|entry| entry.kind == FileType::Unknown) {
        entry.kind = kind(directory, &entry.name, path)?;
    }
    Ok(names)
}

/// Type of a name, without following symbolic links.
fn kind(directory: &OwnedFd, name: &CStr, path: &Path) -> Result<FileType, EngineError> {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let status = rustix::fs::statat(directory, name, flags)
        .map_err(|errno| failed(Operation::Examine, &below(path, name), errno))?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

/// Opens a directory below an open one, without following symbolic links.
pub(super) fn open_directory(
    parent: impl AsFd,
    name: impl Arg,
    path: &Path,
) -> Result<OwnedFd, EngineError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, path, errno))
}

/// Path of a name, for errors.
pub(super) fn below(path: &Path, name: &CStr) -> PathBuf {
    path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// Repeats an interrupted call.
pub(super) fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// Closes a file, which may report that written data was lost.
pub(super) fn close(file: OwnedFd, path: &Path) -> Result<(), EngineError> {
    let closed = crate::io::close(file);
    closed.map_err(|fault| Failure { fault, path: path.to_path_buf() }.into())
}

/// Error of a failed system call.
pub(super) fn failed(operation: Operation, path: &Path, errno: Errno) -> EngineError {
    let (path, source) = (path.to_path_buf(), errno.into());
    EngineError::Io { operation, path, offset: None, source }
}

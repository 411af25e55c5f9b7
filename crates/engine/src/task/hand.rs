//! What every deed has at hand: a buffer, counters, the signal to stop, and words for errors.

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

use model::{
    Bytes,
    phase::{At, Files, Stream},
};
use rustix::{
    fs::{FileType, Mode, OFlags, RawDir, openat},
    io::Errno,
    path::Arg,
};

use crate::{
    EngineError,
    barrier::{ABORT, Board, Lane},
    clock::Usage,
    error::{Fault, Operation},
};

/// Room for the names that one getdents64(2) answers: what the C library takes for readdir(3).
const LISTING: usize = 32 << 10;

/// What every deed has at hand.
pub(super) struct Hand<'a> {
    lane: &'a Lane,
    signal: &'a AtomicU32,
    /// One call that reads or writes moves at most this.
    pub(super) buffer: Box<[u8]>,
    /// Bytes of data read from files under test.
    pub(super) read: u64,
    /// Bytes of data written to files under test.
    pub(super) written: u64,
    /// What programs used.
    pub(super) children: Usage,
    moved: u64,
    ops: u64,
}

impl<'a> Hand<'a> {
    /// With a buffer of that size, and nothing counted.
    pub(super) fn new(buffer: Bytes, board: &'a Board) -> Result<Self, EngineError> {
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
            lane: board.lane(0),
            signal: board.signal(),
            buffer: memory.into_boxed_slice(),
            read: 0,
            written: 0,
            children: Usage::default(),
            moved: 0,
            ops: 0,
        })
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if the caller asked to stop.
    pub(super) fn look(&self) -> Result<(), EngineError> {
        if self.signal.load(Relaxed) & ABORT != 0 {
            return Err(EngineError::Interrupted);
        }
        Ok(())
    }

    /// So many operations are done.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub(super) fn done(&mut self, ops: u64) -> Result<(), EngineError> {
        self.ops += ops;
        self.lane.done.store(self.ops, Relaxed);
        self.look()
    }

    /// Operations done.
    pub(super) fn ops(&self) -> u64 {
        self.ops
    }

    /// So many bytes of data were read there.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub(super) fn has_read(&mut self, at: At, bytes: u64) -> Result<(), EngineError> {
        if at == At::Target {
            self.read += bytes;
        }
        self.progress(bytes)
    }

    /// So many bytes of data were written there.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub(super) fn has_written(&mut self, at: At, bytes: u64) -> Result<(), EngineError> {
        if at == At::Target {
            self.written += bytes;
        }
        self.progress(bytes)
    }

    fn progress(&mut self, bytes: u64) -> Result<(), EngineError> {
        self.moved += bytes;
        self.lane.bytes.store(self.moved, Relaxed);
        self.look()
    }
}

/// One name in a directory.
pub(super) struct Entry {
    /// The name.
    pub(super) name: Box<CStr>,
    /// What has it.
    pub(super) kind: FileType,
}

/// All names of an open directory but `.` and `..`, in the order in which the filesystem lists
/// them. They are read to the end before anything is done to them, so that a directory does not
/// change while it is read. The type is asked for by fstatat(2) where the directory does not tell
/// it.
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

/// The type of what has a name, symbolic links not followed.
fn kind(directory: &OwnedFd, name: &CStr, path: &Path) -> Result<FileType, EngineError> {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let status = rustix::fs::statat(directory, name, flags)
        .map_err(|errno| failed(Operation::Examine, &below(path, name), errno))?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

/// Opens a directory below an open one, symbolic links not followed.
pub(super) fn open_directory(
    parent: impl AsFd,
    name: impl Arg,
    path: &Path,
) -> Result<OwnedFd, EngineError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map_err(|errno| failed(Operation::Open, path, errno))
}

/// The path of a name, for errors.
pub(super) fn below(path: &Path, name: &CStr) -> PathBuf {
    path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// Makes an interrupted call again.
pub(super) fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// Closes a file; only then may the filesystem say that something written was lost.
pub(super) fn close(file: OwnedFd, path: &Path) -> Result<(), EngineError> {
    crate::io::close(file).map_err(|answer| fault(answer, path))
}

/// The error of a call that the kernel refused.
pub(super) fn failed(operation: Operation, path: &Path, errno: Errno) -> EngineError {
    let (path, source) = (path.to_path_buf(), errno.into());
    EngineError::Io { operation, path, offset: None, source }
}

/// The public error of a fault about `path`.
pub(super) fn fault(fault: Fault, path: &Path) -> EngineError {
    // Nothing here is opened for direct I/O, which is all that a stream adds to an error.
    let stand_in = Stream::new(Files::One(String::new()), Bytes(0), Bytes(0));
    fault.into_error(&stand_in, path)
}

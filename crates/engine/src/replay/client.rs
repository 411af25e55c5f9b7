//! Client of a replay: executes the operations of a loadfile by the system calls of a file server.
//!
//! The mapping of operations to calls is that of dbench's file backend, as its traces show. Every
//! operation on a name begins with a lookup of the name. If the name does not exist, its directory
//! is read until an entry matches the name regardless of case, as in a server with case-insensitive
//! clients. The lookup affects the time of an operation, but only the result of Qpathinfo.

use std::{
    ffi::{CStr, CString},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use model::phase::{Durability, Replay, ReplayOp};
use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RawDir, Stat, Timespec, Timestamps, XattrFlags, fdatasync,
        fgetxattr, fsetxattr, fstat, fstatvfs, fsync, getxattr, mkdirat, openat, renameat, statat,
        unlinkat, utimensat,
    },
    io::{Errno, pread, pwrite},
};

use super::{
    Program,
    calls::{Lock, Refused, classify, lock},
    names::Names,
    program::{Expected, NO_NAME, Op},
    remove::{RemoveError, RemoveWalk, What},
    root,
};
use crate::{
    calls::again,
    error::{Failure, Fault, Memory, Operation},
    io::close,
    process::Identity,
};

/// Modes of files, of opened directories, and of created directories.
const FILE: Mode = Mode::from_raw_mode(0o600);
const OPENED: Mode = Mode::RWXU;
const MADE: Mode = Mode::from_raw_mode(0o777);

/// Flags for opening a directory to read it.
const LISTED: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Bytes of directory entries per call, as in the C library.
const LISTING: usize = 32768;

/// Create disposition: create a missing file (`FILE_CREATE`), or truncate an existing one
/// (`FILE_OVERWRITE`, `FILE_OVERWRITE_IF`); \[MS-SMB2\] 2.2.13.
const CREATE: u32 = 2;
const OVERWRITE: [u32; 2] = [4, 5];
/// Create option: a directory (`FILE_DIRECTORY_FILE`).
const DIRECTORY: u32 = 1;

/// Extended attribute of a new file, and its value, which is as long as in dbench.
const ATTRIBUTE: &CStr = c"user.fslab.attributes";
const VALUE: [u8; 44] = [0; 44];

/// Seconds by which the times of last access and modification are set back.
const ACCESSED: i64 = 10;
const MODIFIED: i64 = 12;

/// Result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// True if the operation succeeded or failed as recorded in the loadfile.
    pub(super) expected: bool,
    /// Requested bytes of a read or write that did not fail. A short transfer counts completely, as
    /// in dbench.
    pub(super) bytes: u64,
}

/// Client of a replay.
pub(super) struct Client {
    root: OwnedFd,
    path: PathBuf,
    // Path at which a tree walk failed, relative to the name of the operation.
    below: PathBuf,
    names: Names,
    // Absolute paths, if attributes are used: these calls have no directory argument.
    whole: Box<[CString]>,
    files: Box<[Option<OwnedFd>]>,
    resolve: bool,
    durability: Durability,
    attributes: bool,
    // Never written, so only the shared page of zeros is used.
    zeros: Box<[u8]>,
    buffer: Box<[u8]>,
    listing: Box<[MaybeUninit<u8>]>,
}

impl Client {
    /// Opens the root and prepares the names.
    pub(super) fn new(
        replay: &Replay,
        program: &Program,
        worker: u32,
        directory: &Path,
        made: Identity,
    ) -> Result<Self, Failure> {
        let path = root::path(directory);
        let root = root::open_root(directory, made)?;
        let names =
            Names::new(program, worker).map_err(|fault| Failure { fault, path: path.clone() })?;
        let (zeros, buffer) = memory(program)
            .and_then(|zeros| Some((zeros, memory(program)?)))
            .ok_or_else(|| Failure { fault: short(program), path: path.clone() })?;
        let count = u32::try_from(program.names().len()).expect("their indices are of 32 bits");
        let whole = if replay.xattr { 0..count } else { 0..0 };
        let absolute = |name| {
            let path = names.joined(&path, name);
            CString::new(path.as_os_str().as_bytes()).expect("no part has a NUL")
        };
        Ok(Self {
            root,
            whole: whole.map(absolute).collect(),
            files: (0..program.slots()).map(|_| None).collect(),
            resolve: replay.resolve,
            durability: replay.durability,
            attributes: replay.xattr,
            zeros,
            buffer,
            listing: vec![MaybeUninit::uninit(); LISTING].into(),
            names,
            path,
            below: PathBuf::new(),
        })
    }

    /// Path of an operation, for errors.
    pub(super) fn path(&self, op: &Op) -> PathBuf {
        match op.name {
            NO_NAME => self.path.clone(),
            name if self.below.as_os_str().is_empty() => self.names.joined(&self.path, name),
            name => self.names.joined(&self.path, name).join(&self.below),
        }
    }

    /// Closes open files before the loadfile is repeated.
    pub(super) fn rewind(&mut self) {
        for file in self.files.iter_mut().filter_map(Option::take) {
            let _ = close(file);
        }
    }

    /// Executes an operation.
    #[inline]
    pub(super) fn execute(&mut self, kind: ReplayOp, op: &Op) -> Result<Outcome, Refused> {
        match kind {
            ReplayOp::ReadX => self.read(op),
            ReplayOp::WriteX => self.write(op),
            ReplayOp::NTCreateX
            | ReplayOp::Close
            | ReplayOp::Rename
            | ReplayOp::Unlink
            | ReplayOp::Deltree
            | ReplayOp::Rmdir
            | ReplayOp::Mkdir
            | ReplayOp::Qpathinfo
            | ReplayOp::Qfileinfo
            | ReplayOp::Qfsinfo
            | ReplayOp::Sfileinfo
            | ReplayOp::Find
            | ReplayOp::LockX
            | ReplayOp::UnlockX
            | ReplayOp::Flush
            | ReplayOp::Sleep => Ok(Outcome { expected: self.without_bytes(kind, op)?, bytes: 0 }),
        }
    }

    /// Executes an operation that moves no bytes. Returns true if it succeeded or failed as
    /// recorded.
    #[inline]
    fn without_bytes(&mut self, kind: ReplayOp, op: &Op) -> Result<bool, Refused> {
        match kind {
            ReplayOp::NTCreateX => self.create(op),
            ReplayOp::Close => Ok(self.close(op)),
            ReplayOp::Qpathinfo => Ok(op.expected().allows(self.resolve(op.name)?)),
            ReplayOp::Find => self.find(op),
            ReplayOp::Qfileinfo => self.query_file(op),
            ReplayOp::Qfsinfo => {
                let status = classify(Operation::Examine, fstatvfs(&self.root))?;
                Ok(op.expected().allows(status.is_some()))
            }
            ReplayOp::Sfileinfo => self.set_times(op),
            ReplayOp::Flush => self.on_file(op, Operation::Sync, |file| again(|| fsync(file))),
            ReplayOp::LockX | ReplayOp::UnlockX => {
                let what = if kind == ReplayOp::LockX { Lock::Take } else { Lock::Give };
                self.on_file(op, Operation::Lock, |file| {
                    lock(file, what, op.offset, u64::from(op.size))
                })
            }
            ReplayOp::Rename => self.rename(op),
            ReplayOp::Unlink => self.unlink(op, Operation::Unlink, AtFlags::empty()),
            ReplayOp::Rmdir => self.unlink(op, Operation::RemoveDirectory, AtFlags::REMOVEDIR),
            ReplayOp::Mkdir => {
                self.resolve(op.name)?;
                // The directory may exist, so an error that is not fatal is ignored.
                let made = mkdirat(&self.root, self.names.path(op.name), MADE);
                classify(Operation::MakeDirectory, made).map(|_| true)
            }
            ReplayOp::Deltree => self.delete_tree(op),
            // The loop handles `Sleep`, and the caller reads and writes.
            ReplayOp::Sleep | ReplayOp::ReadX | ReplayOp::WriteX => Ok(true),
        }
    }

    /// Looks a name up. Returns true if the name exists, or if a name exists that differs only in
    /// case.
    fn resolve(&mut self, name: u32) -> Result<bool, Refused> {
        let status = statat(&self.root, self.names.path(name), AtFlags::empty());
        if classify(Operation::Examine, status)?.is_some() {
            if self.attributes {
                // Directories and older files have no attributes.
                let _ = getxattr(&*self.whole[name as usize], ATTRIBUTE, &mut [0; VALUE.len()]);
            }
            return Ok(true);
        }
        if !self.resolve {
            return Ok(false);
        }
        let directory = self.names.path(self.names.parent(name));
        let base = self.names.base(name);
        let is_it = |entry: &CStr| entry.to_bytes().eq_ignore_ascii_case(base);
        list(&self.root, directory, &mut self.listing, is_it)
    }

    fn create(&mut self, op: &Op) -> Result<bool, Refused> {
        self.resolve(op.name)?;
        let path = self.names.path(op.name);
        let mut is_directory = op.second & DIRECTORY != 0;
        let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC;
        flags.set(OFlags::SYNC, self.durability.files);
        if op.size == CREATE || OVERWRITE.contains(&op.size) {
            flags |= OFlags::CREATE;
        }
        flags.set(OFlags::TRUNC, OVERWRITE.contains(&op.size));
        if is_directory {
            classify(Operation::MakeDirectory, mkdirat(&self.root, path, OPENED))?;
            flags = directory;
        }
        let mut opened = again(|| openat(&self.root, path, flags, FILE));
        if matches!(opened, Err(Errno::ISDIR)) {
            is_directory = true;
            opened = again(|| openat(&self.root, path, directory, FILE));
        }
        let Some(file) = classify(Operation::Open, opened)? else {
            return Ok(op.expected().allows(false));
        };
        let slot = self.files.get_mut(usize::from(op.slot));
        let (Some(slot), true) = (slot, op.expected().allows(true)) else {
            // The file was expected to be missing, so no operation closes it.
            let _ = close(file);
            return Ok(op.expected().allows(true));
        };
        let status = fstat(&file);
        if self.attributes && !is_directory {
            attribute(&file)?;
        }
        let before = slot.replace(file);
        classify(Operation::Examine, status)?;
        // If the slot still has an open file, that file is closed.
        before.map(close);
        Ok(true)
    }

    fn close(&mut self, op: &Op) -> bool {
        let file = self.files.get_mut(usize::from(op.slot)).and_then(Option::take);
        op.expected().allows(file.map(close).is_some_and(|closed| closed.is_ok()))
    }

    /// Runs a call on an open file. A file that could not be opened counts as a failure.
    #[inline]
    fn on_file<T>(
        &mut self,
        op: &Op,
        operation: Operation,
        call: impl FnOnce(&OwnedFd) -> Result<T, Errno>,
    ) -> Result<bool, Refused> {
        let Some(file) = opened(&self.files, op) else {
            return Ok(op.expected().allows(false));
        };
        Ok(op.expected().allows(classify(operation, call(file))?.is_some()))
    }

    fn read(&mut self, op: &Op) -> Result<Outcome, Refused> {
        let Some(file) = opened(&self.files, op) else { return Ok(not_open(op)) };
        let buffer = &mut self.buffer[..op.size as usize];
        let read = classify(Operation::Read, again(|| pread(file, &mut *buffer, op.offset)))?;
        let expected = match op.expected() {
            // Loadfiles of version 5 may contain zero for an unknown number of bytes.
            Expected::Success if op.second == 0 => read.is_some(),
            Expected::Success => read == Some(op.second as usize),
            // A server returns an error for a read beyond the end.
            Expected::Failure => read.is_none_or(|bytes| bytes == 0),
            Expected::Any => true,
        };
        Ok(Outcome { expected, bytes: read.map_or(0, |_| op.size.into()) })
    }

    fn write(&mut self, op: &Op) -> Result<Outcome, Refused> {
        let Some(file) = opened(&self.files, op) else { return Ok(not_open(op)) };
        let (mut done, size) = (0, op.size as usize);
        loop {
            let (rest, offset) = (&self.zeros[done..size], op.offset + done as u64);
            match classify(Operation::Write, again(|| pwrite(file, rest, offset)))? {
                // A filesystem that becomes full writes what fits, and returns the error in the
                // next call.
                Some(written) if written > 0 => done += written,
                Some(_) | None => break,
            }
            if done >= size {
                break;
            }
        }
        if self.durability.writes {
            classify(Operation::Sync, again(|| fsync(file)))?;
        }
        let whole = done == size;
        let bytes = if whole { op.size.into() } else { 0 };
        Ok(Outcome { expected: op.expected().allows(whole), bytes })
    }

    fn query_file(&mut self, op: &Op) -> Result<bool, Refused> {
        let attributes = self.attributes;
        self.on_file(op, Operation::Examine, |file| {
            let status = fstat(file)?;
            if attributes {
                let _ = fgetxattr(file, ATTRIBUTE, &mut [0; VALUE.len()]);
            }
            Ok(status)
        })
    }

    fn set_times(&mut self, op: &Op) -> Result<bool, Refused> {
        let Some(file) = opened(&self.files, op) else {
            return Ok(op.expected().allows(false));
        };
        if self.attributes {
            let _ = fgetxattr(file, ATTRIBUTE, &mut [0; VALUE.len()]);
        }
        let Some(status) = classify(Operation::Examine, fstat(file))? else {
            return Ok(op.expected().allows(false));
        };
        let path = self.names.path(op.name);
        let set = utimensat(&self.root, path, &set_back(&status), AtFlags::empty());
        let set = classify(Operation::SetTimes, set)?;
        if self.attributes {
            let set = fsetxattr(file, ATTRIBUTE, &VALUE, XattrFlags::empty());
            classify(Operation::SetAttribute, set)?;
        }
        Ok(op.expected().allows(set.is_some()))
    }

    fn find(&mut self, op: &Op) -> Result<bool, Refused> {
        self.resolve(op.name)?;
        // Without a wildcard it is a lookup of one name.
        if op.second != NO_NAME {
            let mut left = op.size;
            let directory = self.names.path(op.second);
            list(&self.root, directory, &mut self.listing, |_| {
                left = left.saturating_sub(1);
                left == 0
            })?;
        }
        // The loadfile does not contain the exact number of entries at the time of recording, so
        // the number found is not compared.
        Ok(true)
    }

    fn rename(&mut self, op: &Op) -> Result<bool, Refused> {
        self.resolve(op.name)?;
        self.resolve(op.second)?;
        let (from, to) = (self.names.path(op.name), self.names.path(op.second));
        let renamed = renameat(&self.root, from, &self.root, to);
        let renamed = classify(Operation::Rename, renamed)?.is_some();
        self.flush_directory(op.second)?;
        Ok(op.expected().allows(renamed))
    }

    fn unlink(&mut self, op: &Op, operation: Operation, flags: AtFlags) -> Result<bool, Refused> {
        self.resolve(op.name)?;
        let gone = unlinkat(&self.root, self.names.path(op.name), flags);
        let gone = classify(operation, gone)?.is_some();
        self.flush_directory(op.name)?;
        Ok(op.expected().allows(gone))
    }

    /// Syncs the directory of a name if the replay requests it.
    fn flush_directory(&self, name: u32) -> Result<(), Refused> {
        if !self.durability.directories {
            return Ok(());
        }
        let path = self.names.path(self.names.parent(name));
        let opened =
            again(|| openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()));
        if let Some(directory) = classify(Operation::Open, opened)? {
            classify(Operation::Sync, again(|| fdatasync(&directory)))?;
            let _ = close(directory);
        }
        Ok(())
    }

    /// Removes all files below a directory, if it exists.
    fn delete_tree(&mut self, op: &Op) -> Result<bool, Refused> {
        let opened = root::open_beneath(&self.root, self.names.path(op.name));
        if let Some(directory) = classify(Operation::Open, opened)? {
            let walk = RemoveWalk { what: What::Files, should_continue: &|| true, shallow: None };
            walk.below(directory).map_err(|RemoveError { refused, below }| {
                self.below = below;
                refused
            })?;
        }
        Ok(true)
    }
}

/// File of a handle, if it could be opened.
#[inline]
fn opened<'a>(files: &'a [Option<OwnedFd>], op: &Op) -> Option<&'a OwnedFd> {
    files.get(usize::from(op.slot))?.as_ref()
}

/// Result of a read or write on a file that could not be opened: no call is made.
#[cold]
fn not_open(op: &Op) -> Outcome {
    Outcome { expected: op.expected().allows(false), bytes: 0 }
}

/// Reads a directory until an entry matches. Returns true if one does.
fn list(
    root: &OwnedFd,
    path: &CStr,
    listing: &mut [MaybeUninit<u8>],
    mut is_it: impl FnMut(&CStr) -> bool,
) -> Result<bool, Refused> {
    let opened = again(|| openat(root, path, LISTED, Mode::empty()));
    let Some(directory) = classify(Operation::Open, opened)? else { return Ok(false) };
    let mut found = false;
    let mut entries = RawDir::new(directory.as_fd(), listing);
    while let Some(entry) = entries.next() {
        let Some(entry) = classify(Operation::List, entry)? else { break };
        if is_it(entry.file_name()) {
            found = true;
            break;
        }
    }
    let _ = close(directory);
    Ok(found)
}

/// Sets the attribute of a file unless it has one.
fn attribute(file: &OwnedFd) -> Result<(), Refused> {
    if fgetxattr(file, ATTRIBUTE, &mut [0; VALUE.len()]) == Err(Errno::NODATA) {
        let set = fsetxattr(file, ATTRIBUTE, &VALUE, XattrFlags::empty());
        classify(Operation::SetAttribute, set)?;
    }
    Ok(())
}

/// Times of a file, set back by some seconds; whole seconds, as in utime(2).
fn set_back(status: &Stat) -> Timestamps {
    let back = |seconds, by| Timespec { tv_sec: seconds - by, tv_nsec: 0 };
    Timestamps {
        last_access: back(status.st_atime, ACCESSED),
        last_modification: back(status.st_mtime, MODIFIED),
    }
}

/// Zeros for the largest read or write. The pages are not accessed and take no memory yet.
fn memory(program: &Program) -> Option<Box<[u8]>> {
    // `vec!` would abort the process if a loadfile requests more memory than available.
    Vec::<u8>::new().try_reserve_exact(program.largest()).ok()?;
    Some(vec![0; program.largest()].into())
}

fn short(program: &Program) -> Fault {
    let bytes = program.largest() as u64;
    Fault::Memory { what: Memory::Buffers, bytes, errno: libc::ENOMEM }
}

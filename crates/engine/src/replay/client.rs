//! What does the operations of a load file: a file server's calls for each of them.
//!
//! The mapping of operations to calls is that of the classic tool's file backend, as its traces
//! show it. Every operation on a name begins with a look at it. Where it is not there, its
//! directory is read until a name is found that differs in the case of letters at most, as a server
//! must whose clients know no case; what was found makes no difference to the operation, it only
//! costs.

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
    calls::{Lock, Refused, again, judged, lock},
    names::Names,
    program::{Expected, NO_NAME, Op},
    root::{self, Identity},
    sweep::{Stuck, Sweep, What},
};
use crate::{
    error::{Fault, Memory, Operation},
    io::close,
    tree::Failure,
};

/// Modes of files, of directories that are opened, and of those that are made.
const FILE: Mode = Mode::from_raw_mode(0o600);
const OPENED: Mode = Mode::RWXU;
const MADE: Mode = Mode::from_raw_mode(0o777);

/// How a directory is opened to be read.
const LISTED: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Bytes of entries that are read at once, as the C library does.
const LISTING: usize = 32768;

/// Create disposition: a file that is not there is made (`FILE_CREATE`), or one that is there is
/// made empty (`FILE_OVERWRITE`, `FILE_OVERWRITE_IF`); \[MS-SMB2\] 2.2.13.
const CREATE: u32 = 2;
const OVERWRITE: [u32; 2] = [4, 5];
/// Create option: it is a directory (`FILE_DIRECTORY_FILE`).
const DIRECTORY: u32 = 1;

/// The attribute of a new file, and how much it holds, as the classic tool's.
const ATTRIBUTE: &CStr = c"user.fslab.attributes";
const VALUE: [u8; 44] = [0; 44];

/// Seconds that the times of last access and modification are set back.
const ACCESSED: i64 = 10;
const MODIFIED: i64 = 12;

/// How an operation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether as the load file has it.
    pub(super) expected: bool,
    /// Bytes that were asked for by a read or write which was made and not refused. One that was
    /// short counts as a whole, as the classic tool has it.
    pub(super) bytes: u64,
}

/// A client.
pub(super) struct Client {
    root: OwnedFd,
    path: PathBuf,
    // Where below the name of its operation a walk was refused.
    below: PathBuf,
    names: Names,
    // Absolute paths, where there are attributes: their calls know no directories.
    whole: Box<[CString]>,
    files: Box<[Option<OwnedFd>]>,
    resolve: bool,
    durability: Durability,
    attributes: bool,
    // Never written to, so it takes no memory but the page of zeros that all have.
    zeros: Box<[u8]>,
    buffer: Box<[u8]>,
    listing: Box<[MaybeUninit<u8>]>,
}

impl Client {
    /// Opens the root and makes the names.
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
        let whole = if replay.attributes { 0..count } else { 0..0 };
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
            attributes: replay.attributes,
            zeros,
            buffer,
            listing: vec![MaybeUninit::uninit(); LISTING].into(),
            names,
            path,
            below: PathBuf::new(),
        })
    }

    /// The directory below which it works.
    pub(super) fn root(&self) -> &Path {
        &self.path
    }

    /// What an operation is about, for errors.
    pub(super) fn path(&self, op: &Op) -> PathBuf {
        match op.name {
            NO_NAME => self.path.clone(),
            name if self.below.as_os_str().is_empty() => self.names.joined(&self.path, name),
            name => self.names.joined(&self.path, name).join(&self.below),
        }
    }

    /// Closes what is open, before the load file begins anew.
    pub(super) fn rewind(&mut self) {
        for file in self.files.iter_mut().filter_map(Option::take) {
            let _ = close(file);
        }
    }

    /// Does an operation.
    #[inline]
    pub(super) fn carry_out(&mut self, kind: ReplayOp, op: &Op) -> Result<Outcome, Refused> {
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

    /// Does an operation that moves no bytes; whether it went as the load file has it.
    #[inline]
    fn without_bytes(&mut self, kind: ReplayOp, op: &Op) -> Result<bool, Refused> {
        match kind {
            ReplayOp::NTCreateX => self.create(op),
            ReplayOp::Close => Ok(self.close(op)),
            ReplayOp::Qpathinfo => Ok(op.expected().allows(self.resolve(op.name)?)),
            ReplayOp::Find => self.find(op),
            ReplayOp::Qfileinfo => self.query_file(op),
            ReplayOp::Qfsinfo => {
                let told = judged(Operation::Examine, fstatvfs(&self.root))?;
                Ok(op.expected().allows(told.is_some()))
            }
            ReplayOp::Sfileinfo => self.set_times(op),
            ReplayOp::Flush => self.on_file(op, Operation::Flush, |file| again(|| fsync(file))),
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
                // Whether it was there already is not looked at.
                let made = mkdirat(&self.root, self.names.path(op.name), MADE);
                judged(Operation::MakeDirectory, made).map(|_| true)
            }
            ReplayOp::Deltree => self.delete_tree(op),
            // The loop sees to the first, and the caller to the others.
            ReplayOp::Sleep | ReplayOp::ReadX | ReplayOp::WriteX => Ok(true),
        }
    }

    /// Looks at a name; whether it, or one that differs in the case of letters, is there.
    fn resolve(&mut self, name: u32) -> Result<bool, Refused> {
        let told = statat(&self.root, self.names.path(name), AtFlags::empty());
        if judged(Operation::Examine, told)?.is_some() {
            if self.attributes {
                // Directories, and files of before, have none.
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
            judged(Operation::MakeDirectory, mkdirat(&self.root, path, OPENED))?;
            flags = directory;
        }
        let mut opened = again(|| openat(&self.root, path, flags, FILE));
        if matches!(opened, Err(Errno::ISDIR)) {
            is_directory = true;
            opened = again(|| openat(&self.root, path, directory, FILE));
        }
        let Some(file) = judged(Operation::Open, opened)? else {
            return Ok(op.expected().allows(false));
        };
        let slot = self.files.get_mut(usize::from(op.slot));
        let (Some(slot), true) = (slot, op.expected().allows(true)) else {
            // It was not to be there, so nobody will close it.
            let _ = close(file);
            return Ok(op.expected().allows(true));
        };
        let told = fstat(&file);
        if self.attributes && !is_directory {
            attribute(&file)?;
        }
        let before = slot.replace(file);
        judged(Operation::Examine, told)?;
        // One that was not closed, as its operation was not expected to go well.
        before.map(close);
        Ok(true)
    }

    fn close(&mut self, op: &Op) -> bool {
        let file = self.files.get_mut(usize::from(op.slot)).and_then(Option::take);
        op.expected().allows(file.map(close).is_some_and(|closed| closed.is_ok()))
    }

    /// Does something to an open file. One that could not be opened is as good as refused.
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
        Ok(op.expected().allows(judged(operation, call(file))?.is_some()))
    }

    fn read(&mut self, op: &Op) -> Result<Outcome, Refused> {
        let Some(file) = opened(&self.files, op) else { return Ok(not_open(op)) };
        let buffer = &mut self.buffer[..op.size as usize];
        let read = judged(Operation::Read, again(|| pread(file, &mut *buffer, op.offset)))?;
        let expected = match op.expected() {
            // Load files of version 5 may leave how much there was at zero: it is not told.
            Expected::Success if op.second == 0 => read.is_some(),
            Expected::Success => read == Some(op.second as usize),
            // A server answers a read beyond the end with an error.
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
            match judged(Operation::Write, again(|| pwrite(file, rest, offset)))? {
                // A filesystem that gets full writes what has room, and says why next time.
                Some(written) if written > 0 => done += written,
                Some(_) | None => break,
            }
            if done >= size {
                break;
            }
        }
        if self.durability.writes {
            judged(Operation::Flush, again(|| fsync(file)))?;
        }
        let whole = done == size;
        let bytes = if whole { op.size.into() } else { 0 };
        Ok(Outcome { expected: op.expected().allows(whole), bytes })
    }

    fn query_file(&mut self, op: &Op) -> Result<bool, Refused> {
        let attributes = self.attributes;
        self.on_file(op, Operation::Examine, |file| {
            let told = fstat(file)?;
            if attributes {
                let _ = fgetxattr(file, ATTRIBUTE, &mut [0; VALUE.len()]);
            }
            Ok(told)
        })
    }

    fn set_times(&mut self, op: &Op) -> Result<bool, Refused> {
        let Some(file) = opened(&self.files, op) else {
            return Ok(op.expected().allows(false));
        };
        if self.attributes {
            let _ = fgetxattr(file, ATTRIBUTE, &mut [0; VALUE.len()]);
        }
        let Some(told) = judged(Operation::Examine, fstat(file))? else {
            return Ok(op.expected().allows(false));
        };
        let path = self.names.path(op.name);
        let set = utimensat(&self.root, path, &set_back(&told), AtFlags::empty());
        let set = judged(Operation::SetTimes, set)?;
        if self.attributes {
            let set = fsetxattr(file, ATTRIBUTE, &VALUE, XattrFlags::empty());
            judged(Operation::SetAttribute, set)?;
        }
        Ok(op.expected().allows(set.is_some()))
    }

    fn find(&mut self, op: &Op) -> Result<bool, Refused> {
        self.resolve(op.name)?;
        // Without a wildcard it is a look at one name.
        if op.second != NO_NAME {
            let mut left = op.size;
            let directory = self.names.path(op.second);
            list(&self.root, directory, &mut self.listing, |_| {
                left = left.saturating_sub(1);
                left == 0
            })?;
        }
        // How many there were when the load file was recorded, it does not tell exactly.
        Ok(true)
    }

    fn rename(&mut self, op: &Op) -> Result<bool, Refused> {
        self.resolve(op.name)?;
        self.resolve(op.second)?;
        let (from, to) = (self.names.path(op.name), self.names.path(op.second));
        let renamed = renameat(&self.root, from, &self.root, to);
        let renamed = judged(Operation::Rename, renamed)?.is_some();
        self.flush_directory(op.second)?;
        Ok(op.expected().allows(renamed))
    }

    fn unlink(&mut self, op: &Op, operation: Operation, flags: AtFlags) -> Result<bool, Refused> {
        self.resolve(op.name)?;
        let gone = unlinkat(&self.root, self.names.path(op.name), flags);
        let gone = judged(operation, gone)?.is_some();
        self.flush_directory(op.name)?;
        Ok(op.expected().allows(gone))
    }

    /// Brings the directory of a name to the device, if the replay asks for that.
    fn flush_directory(&self, name: u32) -> Result<(), Refused> {
        if !self.durability.directories {
            return Ok(());
        }
        let path = self.names.path(self.names.parent(name));
        let opened =
            again(|| openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()));
        if let Some(directory) = judged(Operation::Open, opened)? {
            judged(Operation::Flush, again(|| fdatasync(&directory)))?;
            let _ = close(directory);
        }
        Ok(())
    }

    /// Removes all files below a directory, if it is there.
    fn delete_tree(&mut self, op: &Op) -> Result<bool, Refused> {
        let opened = root::open_beneath(&self.root, self.names.path(op.name));
        if let Some(directory) = judged(Operation::Open, opened)? {
            let sweep = Sweep { what: What::Files, goes_on: &|| true, shallow: None };
            sweep.below(directory).map_err(|Stuck { refused, below }| {
                self.below = below;
                refused
            })?;
        }
        Ok(true)
    }
}

/// The file of a handle, if it could be opened.
#[inline]
fn opened<'a>(files: &'a [Option<OwnedFd>], op: &Op) -> Option<&'a OwnedFd> {
    files.get(usize::from(op.slot))?.as_ref()
}

/// A read or write of a file that could not be opened: no call is made.
#[cold]
fn not_open(op: &Op) -> Outcome {
    Outcome { expected: op.expected().allows(false), bytes: 0 }
}

/// Reads a directory until an entry is the one; whether any was.
fn list(
    root: &OwnedFd,
    path: &CStr,
    listing: &mut [MaybeUninit<u8>],
    mut is_it: impl FnMut(&CStr) -> bool,
) -> Result<bool, Refused> {
    let opened = again(|| openat(root, path, LISTED, Mode::empty()));
    let Some(directory) = judged(Operation::Open, opened)? else { return Ok(false) };
    let mut found = false;
    let mut entries = RawDir::new(directory.as_fd(), listing);
    while let Some(entry) = entries.next() {
        let Some(entry) = judged(Operation::List, entry)? else { break };
        if is_it(entry.file_name()) {
            found = true;
            break;
        }
    }
    let _ = close(directory);
    Ok(found)
}

/// Gives a file its attribute if it has none.
fn attribute(file: &OwnedFd) -> Result<(), Refused> {
    if fgetxattr(file, ATTRIBUTE, &mut [0; VALUE.len()]) == Err(Errno::NODATA) {
        let set = fsetxattr(file, ATTRIBUTE, &VALUE, XattrFlags::empty());
        judged(Operation::SetAttribute, set)?;
    }
    Ok(())
}

/// The times of a file, set back by some seconds; whole ones, as utime(2) has them.
fn set_back(told: &Stat) -> Timestamps {
    let back = |seconds, by| Timespec { tv_sec: seconds - by, tv_nsec: 0 };
    Timestamps {
        last_access: back(told.st_atime, ACCESSED),
        last_modification: back(told.st_mtime, MODIFIED),
    }
}

/// Zeros for the largest read or write. They are not touched, and so take no memory yet.
fn memory(program: &Program) -> Option<Box<[u8]>> {
    // `vec!` would end the process where a load file asks for more than there is.
    Vec::<u8>::new().try_reserve_exact(program.largest()).ok()?;
    Some(vec![0; program.largest()].into())
}

fn short(program: &Program) -> Fault {
    let bytes = program.largest() as u64;
    Fault::Memory { what: Memory::Buffers, bytes, errno: libc::ENOMEM }
}

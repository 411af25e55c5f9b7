//! System calls of a replay, with the arguments of the recording.
//!
//! The calls are made directly, because their arguments are those of another program. A result is a
//! count or a negative error number.
#![expect(clippy::wildcard_enum_match_arm, reason = "the other calls need no special handling")]

use std::{
    ffi::CStr,
    os::fd::{AsRawFd, OwnedFd},
    sync::atomic::Ordering::{Acquire, Release},
};

use model::phase::FileCall;
use trace::{NO_FOLLOW, NONE, Op, Step};

use super::{
    TracePhase,
    files::MODES,
    raw::{
        XATTR_CALLS, call, clone, close, close_number, copy_range, digits, fd, flock, lock, map,
        one_name, sendfile, text, times, word, xattr,
    },
};

/// Maximum bytes of a buffer. Larger transfers use it repeatedly.
pub(super) const BUFFER: usize = 8 << 20;

const FCHMODAT2: i64 = 452;

/// Flags of open(2) that a replay uses.
const OPEN_FLAGS: u64 = (libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_DSYNC
    | libc::O_SYNC
    | libc::O_DIRECT
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_NOATIME
    | libc::O_PATH
    | libc::O_TMPFILE) as u64;

/// Result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Count, or negative error number.
    Result(i64),
    /// The descriptor is not open, because an earlier operation failed.
    NotDone,
    /// The operation is not replayed.
    LeftOut,
}

/// Name of a file for a call: a directory and a path, and a directory to close afterwards.
struct Name<'a> {
    directory: i32,
    path: &'a CStr,
    opened: i32,
}

impl Drop for Name<'_> {
    fn drop(&mut self) {
        if self.opened >= 0 {
            close_number(self.opened);
        }
    }
}

/// Executes operations.
pub(super) struct Caller<'a> {
    pub(super) phase: &'a TracePhase<'a>,
    /// Root of the replay.
    pub(super) root: OwnedFd,
    /// Descriptors of this thread, in /proc.
    pub(super) descriptors: OwnedFd,
    /// Page-aligned data to write, and memory for results.
    pub(super) buffer: &'a mut [u8],
    pub(super) owner: (u32, u32),
    /// Clones that were replayed as copies.
    pub(super) copied: u64,
}

impl Caller<'_> {
    /// Executes an operation.
    pub(super) fn execute(&mut self, step: &Step) -> Outcome {
        let op = &step.op;
        if op.path != NONE && op.fd != NONE && self.slot(op.fd).is_none() {
            return Outcome::NotDone;
        }
        let done = match op.call {
            FileCall::Open | FileCall::Chdir => self.open(step),
            FileCall::Rename | FileCall::Link => self.two_names(step),
            FileCall::Wait => Some(op.result),
            _ if op.path != NONE => self.by_name(step),
            _ => self.by_descriptor(op),
        };
        match done {
            Some(result) => Outcome::Result(result),
            None if [op.fd, op.fd2].iter().any(|fd| *fd != NONE && self.slot(*fd).is_none()) => {
                Outcome::NotDone
            }
            None => Outcome::LeftOut,
        }
    }

    /// Open descriptor with this number in the recording.
    fn slot(&self, number: u32) -> Option<i32> {
        let slot = self.phase.slots.get(number as usize)?;
        // Pairs with the store of the worker that opened it.
        let number = slot.load(Acquire);
        (number >= 0).then_some(number)
    }

    fn directory(&self, number: u32) -> Option<i32> {
        if number == NONE { Some(self.root.as_raw_fd()) } else { self.slot(number) }
    }

    /// Keeps a new descriptor. Returns the result of the call.
    fn keep(&self, op: &Op, result: i64) -> i64 {
        let Ok(number) = i32::try_from(result) else { return result };
        if number < 0 {
            return result;
        }
        match self.phase.slots.get(op.opened as usize).filter(|_| op.opened != NONE) {
            Some(slot) => {
                let old = slot.swap(number, Release);
                if old >= 0 {
                    close_number(old);
                }
                0
            }
            // The recorded call failed.
            None => close_number(number).min(0),
        }
    }

    /// Opens a file below a directory without following links.
    fn open_straight(&self, directory: i32, path: &CStr, flags: u64, mode: u64) -> i64 {
        // struct open_how: flags, mode, and RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS.
        let creates =
            flags & (libc::O_CREAT as u64 | (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64);
        let how = [flags, if creates != 0 { mode } else { 0 }, 0x08 | 0x04];
        let size = size_of_val(&how);
        call(libc::SYS_openat2, [fd(directory), text(path), how.as_ptr() as usize, size, 0, 0])
    }

    /// Name of the file of an operation; an error number if its directory cannot be opened.
    fn name(&self, number: u32, straight: u32, path: u32) -> Option<Result<Name<'_>, i64>> {
        let paths = &self.phase.paths;
        if self.phase.confined {
            let directory = self.directory(number)?;
            return Some(Ok(Name { directory, path: paths.whole(path), opened: -1 }));
        }
        let (directory, path) = match straight {
            NONE => (self.directory(number)?, path),
            straight => (self.root.as_raw_fd(), straight),
        };
        let (parent, last) = paths.split(path);
        let Some(parent) = parent else {
            return Some(Ok(Name { directory, path: last, opened: -1 }));
        };
        let flags = (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as u64;
        let opened = self.open_straight(directory, parent, flags, 0);
        Some(match i32::try_from(opened) {
            Ok(opened) if opened >= 0 => Ok(Name { directory: opened, path: last, opened }),
            _ => Err(opened),
        })
    }

    /// Opens the file of an operation by name.
    fn open_name(&self, step: &Step, flags: u64, mode: u64) -> Option<i64> {
        let op = &step.op;
        let paths = &self.phase.paths;
        let flags = flags | libc::O_CLOEXEC as u64;
        if self.phase.confined {
            let (directory, path) = (self.directory(op.fd)?, paths.whole(op.path));
            let args = [fd(directory), text(path), word(flags), word(mode), 0, 0];
            return Some(call(libc::SYS_openat, args));
        }
        let (directory, path) = match step.straight {
            NONE => (self.directory(op.fd)?, op.path),
            straight => (self.root.as_raw_fd(), straight),
        };
        Some(self.open_straight(directory, paths.whole(path), flags, mode))
    }

    fn open(&self, step: &Step) -> Option<i64> {
        let op = &step.op;
        let mut flags = match op.call {
            FileCall::Chdir => (libc::O_PATH | libc::O_DIRECTORY) as u64,
            _ => op.flags & OPEN_FLAGS,
        };
        flags |= u64::from(self.phase.open_flags.cast_unsigned());
        let path_only = libc::O_PATH as u64;
        if flags & path_only != 0 {
            flags &= (libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW) as u64;
        }
        let result = match op.path {
            NONE => {
                let number = self.slot(op.fd)?;
                let mut to = [0; 12];
                let path = digits(number, &mut to);
                let descriptors = self.descriptors.as_raw_fd();
                let flags = word(flags | libc::O_CLOEXEC as u64);
                call(libc::SYS_openat, [fd(descriptors), text(path), flags, 0, 0, 0])
            }
            _ => self.open_name(step, flags, op.offset & u64::from(MODES))?,
        };
        Some(self.keep(op, result))
    }

    fn two_names(&self, step: &Step) -> Option<i64> {
        let op = &step.op;
        let to = match self.name(op.fd2, step.straight2, op.path2)? {
            Ok(name) => name,
            Err(errno) => return Some(errno),
        };
        let (to_directory, to_path) = (fd(to.directory), text(to.path));
        if op.path == NONE {
            // A file without a name, see open(2), O_TMPFILE.
            let number = self.slot(op.fd)?;
            let mut digit = [0; 12];
            let path = digits(number, &mut digit);
            let follow = libc::AT_SYMLINK_FOLLOW as usize;
            let from = fd(self.descriptors.as_raw_fd());
            return Some(call(
                libc::SYS_linkat,
                [from, text(path), to_directory, to_path, follow, 0],
            ));
        }
        let from = match self.name(op.fd, step.straight, op.path)? {
            Ok(name) => name,
            Err(errno) => return Some(errno),
        };
        let (number, flags) = match op.call {
            FileCall::Rename => (libc::SYS_renameat2, word(op.flags & 7)),
            _ if op.flags & NO_FOLLOW == 0 && self.phase.confined => {
                (libc::SYS_linkat, libc::AT_SYMLINK_FOLLOW as usize)
            }
            _ => (libc::SYS_linkat, 0),
        };
        let args = [fd(from.directory), text(from.path), to_directory, to_path, flags, 0];
        Some(call(number, args))
    }

    /// Calls with one name.
    fn by_name(&mut self, step: &Step) -> Option<i64> {
        let op = step.op;
        match op.call {
            FileCall::Truncate => {
                return self.opened(step, libc::O_WRONLY | self.phase.open_flags, &|number| {
                    call(libc::SYS_ftruncate, [fd(number), word(op.size), 0, 0, 0, 0])
                });
            }
            FileCall::Statfs => {
                let buffer = self.buffer.as_mut_ptr() as usize;
                return self.opened(step, libc::O_PATH, &|number| {
                    call(libc::SYS_fstatfs, [fd(number), buffer, 0, 0, 0, 0])
                });
            }
            FileCall::Getxattr
            | FileCall::Setxattr
            | FileCall::Listxattr
            | FileCall::Removexattr => return self.xattr_by_name(step),
            FileCall::Chmod if !self.phase.confined => {
                let descriptors = self.descriptors.as_raw_fd();
                return self.opened(step, libc::O_PATH | libc::O_NOFOLLOW, &|number| {
                    let mut to = [0; 12];
                    let path = digits(number, &mut to);
                    let mode = word(op.offset & u64::from(MODES));
                    call(libc::SYS_fchmodat, [fd(descriptors), text(path), mode, 0, 0, 0])
                });
            }
            _ => {}
        }
        // Links are followed only where they cannot leave the root.
        let follows = self.phase.confined && op.flags & NO_FOLLOW == 0;
        let flags = if follows { 0 } else { libc::AT_SYMLINK_NOFOLLOW as usize };
        let buffer = self.buffer.as_mut_ptr() as usize;
        let size = word(op.size).min(self.buffer.len());
        let name = match self.name(op.fd, step.straight, op.path)? {
            Ok(name) => name,
            Err(errno) => return Some(errno),
        };
        let (directory, path) = (fd(name.directory), text(name.path));
        let mode = word(op.offset & u64::from(MODES));
        Some(match op.call {
            FileCall::Stat => call(libc::SYS_newfstatat, [directory, path, buffer, flags, 0, 0]),
            FileCall::Access if follows => {
                call(libc::SYS_faccessat, [directory, path, word(op.offset & 7), 0, 0, 0])
            }
            FileCall::Access => {
                call(libc::SYS_faccessat2, [directory, path, word(op.offset & 7), flags, 0, 0])
            }
            FileCall::Readlink => call(libc::SYS_readlinkat, [directory, path, buffer, size, 0, 0]),
            FileCall::Chmod if op.flags & NO_FOLLOW == 0 => {
                call(libc::SYS_fchmodat, [directory, path, mode, 0, 0, 0])
            }
            FileCall::Chmod => call(FCHMODAT2, [directory, path, mode, flags, 0, 0]),
            FileCall::Chown => {
                let (user, group) = self.owner;
                let ids = (user as usize, group as usize);
                call(libc::SYS_fchownat, [directory, path, ids.0, ids.1, flags, 0])
            }
            FileCall::Utimens => {
                let times = times(&op);
                call(libc::SYS_utimensat, [directory, path, times.as_ptr() as usize, flags, 0, 0])
            }
            FileCall::Symlink => {
                let target = text(self.phase.paths.whole(op.path2));
                call(libc::SYS_symlinkat, [target, directory, path, 0, 0, 0])
            }
            _ => return one_name(&op, directory, path),
        })
    }

    /// Opens the file of an operation for one call.
    fn opened(&self, step: &Step, flags: i32, then: &dyn Fn(i32) -> i64) -> Option<i64> {
        let opened = self.open_name(step, u64::from(flags.cast_unsigned()), 0)?;
        let Ok(number) = i32::try_from(opened) else { return Some(opened) };
        if number < 0 {
            return Some(opened);
        }
        let result = then(number);
        close_number(number);
        Some(result)
    }

    /// Calls for extended attributes have no variant with a directory on older kernels, so the
    /// directory becomes the working directory of this thread. Other calls do not use it.
    fn xattr_by_name(&mut self, step: &Step) -> Option<i64> {
        let op = &step.op;
        if !self.xattr_is_replayed(op) {
            return None;
        }
        let follows = self.phase.confined && op.flags & NO_FOLLOW == 0;
        let (buffer, length) = (self.buffer.as_mut_ptr() as usize, self.buffer.len());
        let attribute = if op.path2 == NONE { c"" } else { self.phase.paths.whole(op.path2) };
        let name = match self.name(op.fd, step.straight, op.path)? {
            Ok(name) => name,
            Err(errno) => return Some(errno),
        };
        let entered = call(libc::SYS_fchdir, [fd(name.directory), 0, 0, 0, 0, 0]);
        if entered < 0 {
            return Some(entered);
        }
        let calls = match follows {
            true => &XATTR_CALLS[0],
            false => &XATTR_CALLS[1],
        };
        Some(xattr(op, calls, text(name.path), attribute, (buffer, length)))
    }

    /// Only attributes of users are changed.
    fn xattr_is_replayed(&self, op: &Op) -> bool {
        let changes = matches!(op.call, FileCall::Setxattr | FileCall::Removexattr);
        if !changes {
            return true;
        }
        op.path2 != NONE && self.phase.paths.whole(op.path2).to_bytes().starts_with(b"user.")
    }

    /// Calls with a descriptor.
    #[expect(clippy::too_many_lines, reason = "one arm per system call")]
    fn by_descriptor(&mut self, op: &Op) -> Option<i64> {
        if matches!(op.call, FileCall::Close | FileCall::Release) {
            return close(self.phase.slots.get(op.fd as usize)?);
        }
        if op.call == FileCall::Syncfs && op.fd == NONE {
            return Some(call(libc::SYS_syncfs, [fd(self.root.as_raw_fd()), 0, 0, 0, 0, 0]));
        }
        let number = self.slot(op.fd)?;
        let file = fd(number);
        let buffer = self.buffer.as_mut_ptr() as usize;
        let size = word(op.size).min(self.buffer.len());
        let plain = |number, a, b, c| Some(call(number, [file, a, b, c, 0, 0]));
        match op.call {
            FileCall::Dup => {
                let copy = libc::F_DUPFD_CLOEXEC as usize;
                let result = call(libc::SYS_fcntl, [file, copy, 3, 0, 0, 0]);
                Some(self.keep(op, result))
            }
            FileCall::Read | FileCall::Write | FileCall::Pread | FileCall::Pwrite => {
                Some(self.transfer(op, file))
            }
            FileCall::Seek => plain(libc::SYS_lseek, word(op.offset), word(op.flags & 7), 0),
            FileCall::CopyRange => Some(copy_range(op, file, fd(self.slot(op.fd2)?))),
            FileCall::Sendfile => Some(sendfile(op, file, fd(self.slot(op.fd2)?))),
            FileCall::Clone => {
                let (result, copied) = clone(op, file, fd(self.slot(op.fd2)?));
                self.copied += u64::from(copied);
                Some(result)
            }
            FileCall::Ftruncate => plain(libc::SYS_ftruncate, word(op.size), 0, 0),
            FileCall::Fallocate => {
                plain(libc::SYS_fallocate, word(op.flags & 0x7f), word(op.offset), word(op.size))
            }
            FileCall::Fsync => plain(libc::SYS_fsync, 0, 0, 0),
            FileCall::Fdatasync => plain(libc::SYS_fdatasync, 0, 0, 0),
            FileCall::Syncfs => plain(libc::SYS_syncfs, 0, 0, 0),
            FileCall::SyncRange => {
                let flags = word(op.flags & 7);
                plain(libc::SYS_sync_file_range, word(op.offset), word(op.size), flags)
            }
            FileCall::Advise => {
                let advice = word(op.flags & 7);
                plain(libc::SYS_fadvise64, word(op.offset), word(op.size), advice)
            }
            FileCall::Fstat => plain(libc::SYS_fstat, buffer, 0, 0),
            FileCall::Statfs => plain(libc::SYS_fstatfs, buffer, 0, 0),
            FileCall::List => plain(libc::SYS_getdents64, buffer, size, 0),
            FileCall::Readlink => plain(libc::SYS_readlinkat, text(c""), buffer, size),
            FileCall::Fchmod => plain(libc::SYS_fchmod, word(op.offset & u64::from(MODES)), 0, 0),
            FileCall::Chmod => {
                let mut to = [0; 12];
                let path = digits(number, &mut to);
                let mode = word(op.offset & u64::from(MODES));
                let descriptors = fd(self.descriptors.as_raw_fd());
                Some(call(libc::SYS_fchmodat, [descriptors, text(path), mode, 0, 0, 0]))
            }
            FileCall::Stat => {
                let empty = libc::AT_EMPTY_PATH as usize;
                plain(libc::SYS_newfstatat, text(c""), buffer, empty)
            }
            FileCall::Access => {
                let mode = word(op.offset & 7);
                plain(libc::SYS_faccessat2, text(c""), mode, libc::AT_EMPTY_PATH as usize)
            }
            FileCall::Chown => {
                let (user, group) = self.owner;
                let empty = libc::AT_EMPTY_PATH as usize;
                let args = [file, text(c""), user as usize, group as usize, empty, 0];
                Some(call(libc::SYS_fchownat, args))
            }
            FileCall::Utimens => plain(libc::SYS_utimensat, 0, times(op).as_ptr() as usize, 0),
            FileCall::Getxattr
            | FileCall::Setxattr
            | FileCall::Listxattr
            | FileCall::Removexattr => {
                let name = if op.path2 == NONE { c"" } else { self.phase.paths.whole(op.path2) };
                let length = self.buffer.len();
                self.xattr_is_replayed(op)
                    .then(|| xattr(op, &XATTR_CALLS[2], file, name, (buffer, length)))
            }
            FileCall::Flock => Some(flock(op, file)),
            FileCall::Lock => Some(lock(op, file)),
            FileCall::Mmap => Some(map(op, file)),
            _ => None,
        }
    }

    /// Reads or writes.
    fn transfer(&mut self, op: &Op, file: usize) -> i64 {
        let buffer = self.buffer.as_mut_ptr() as usize;
        let size = word(op.size);
        if size <= self.buffer.len() {
            let number = match op.call {
                FileCall::Read => libc::SYS_read,
                FileCall::Write => libc::SYS_write,
                FileCall::Pread => libc::SYS_pread64,
                _ => libc::SYS_pwrite64,
            };
            // A different part of the data for each operation.
            let spare = self.buffer.len() - size;
            let start = match op.call {
                FileCall::Write | FileCall::Pwrite => word(op.begin) % (spare / 4096 + 1) * 4096,
                _ => 0,
            };
            return call(number, [file, buffer + start, size, word(op.offset), 0, 0]);
        }
        // The same buffer several times.
        let mut vector = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 128];
        let mut count = 0;
        let mut rest = size;
        while rest > 0 && count < vector.len() {
            let length = rest.min(self.buffer.len());
            vector[count] =
                libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: length };
            rest -= length;
            count += 1;
        }
        let number = match op.call {
            FileCall::Read => libc::SYS_readv,
            FileCall::Write => libc::SYS_writev,
            FileCall::Pread => libc::SYS_preadv,
            _ => libc::SYS_pwritev,
        };
        call(number, [file, vector.as_ptr() as usize, count, word(op.offset), 0, 0])
    }
}

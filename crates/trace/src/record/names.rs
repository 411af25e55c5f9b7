//! Decoding of system calls with the name of a file.
#![expect(clippy::wildcard_enum_match_arm, reason = "the other calls need no special handling")]

use model::phase::FileCall;

use super::{
    entry::{AT_EMPTY_PATH, AT_FDCWD, CLOEXEC, Call, Named, Pending, Then, fd, plain},
    memory,
};
use crate::{NO_FOLLOW, NODE_TYPES, NONE, Op};

const AT_REMOVEDIR: u64 = 0x200;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const SOCKET: u64 = libc::S_IFSOCK as u64;

impl Call<'_> {
    /// Extended attributes of a descriptor, or of a name (`Some(flags)`).
    pub(super) fn xattr(
        &mut self,
        call: FileCall,
        by_name: Option<u64>,
        size: u64,
        flags: u64,
    ) -> Option<Pending> {
        let op = match by_name {
            Some(_) => self.at(call, AT_FDCWD, self.args[0])?,
            None => self.of_fd(call)?,
        };
        let path2 = match call {
            FileCall::Listxattr => NONE,
            _ => {
                let name = self.memory.string(self.args[1])?;
                if name.is_empty() {
                    return None;
                }
                self.recorder.paths.number(&name)
            }
        };
        plain(Op { path2, size, flags: flags | by_name.unwrap_or(0), ..op })
    }

    /// Calls with the name of a file.
    #[expect(clippy::too_many_lines, reason = "one arm per system call")]
    pub(super) fn by_name(&mut self, number: i64) -> Option<Pending> {
        let args = self.args;
        let op = match number {
            libc::SYS_open => return self.open(AT_FDCWD, args[0], args[1], args[2]),
            libc::SYS_creat => {
                // O_CREAT | O_WRONLY | O_TRUNC
                return self.open(AT_FDCWD, args[0], 0o1101, args[1]);
            }
            libc::SYS_openat => return self.open(fd(args[0]), args[1], args[2], args[3]),
            libc::SYS_openat2 => {
                let mut how = [0; 24];
                self.read(args[2], &mut how)?;
                let (flags, mode) = (memory::word(&how, 0), memory::word(&how, 8));
                return self.open(fd(args[0]), args[1], flags, mode);
            }
            libc::SYS_stat => self.at(FileCall::Stat, AT_FDCWD, args[0])?,
            libc::SYS_lstat => {
                Op { flags: NO_FOLLOW, ..self.at(FileCall::Stat, AT_FDCWD, args[0])? }
            }
            libc::SYS_newfstatat => {
                self.at_flags(FileCall::Stat, FileCall::Fstat, args[1], args[3])?
            }
            libc::SYS_statx => self.at_flags(FileCall::Stat, FileCall::Fstat, args[1], args[2])?,
            libc::SYS_access => {
                Op { offset: args[1], ..self.at(FileCall::Access, AT_FDCWD, args[0])? }
            }
            libc::SYS_faccessat => {
                Op { offset: args[2], ..self.at(FileCall::Access, fd(args[0]), args[1])? }
            }
            libc::SYS_faccessat2 => {
                let (call, flags) = (FileCall::Access, args[3]);
                Op { offset: args[2], ..self.at_flags(call, call, args[1], flags)? }
            }
            libc::SYS_statfs => self.at(FileCall::Statfs, AT_FDCWD, args[0])?,
            libc::SYS_truncate => {
                Op { size: args[1], ..self.at(FileCall::Truncate, AT_FDCWD, args[0])? }
            }
            libc::SYS_readlink => {
                Op { size: args[2], ..self.at(FileCall::Readlink, AT_FDCWD, args[0])? }
            }
            libc::SYS_readlinkat => {
                Op { size: args[3], ..self.at(FileCall::Readlink, fd(args[0]), args[1])? }
            }
            libc::SYS_chmod => {
                Op { offset: args[1], ..self.at(FileCall::Chmod, AT_FDCWD, args[0])? }
            }
            libc::SYS_fchmodat => {
                Op { offset: args[2], ..self.at(FileCall::Chmod, fd(args[0]), args[1])? }
            }
            FCHMODAT2 => {
                let op = self.at_flags(FileCall::Chmod, FileCall::Fchmod, args[1], args[3])?;
                Op { offset: args[2], ..op }
            }
            libc::SYS_chown => self.at(FileCall::Chown, AT_FDCWD, args[0])?,
            libc::SYS_lchown => {
                Op { flags: NO_FOLLOW, ..self.at(FileCall::Chown, AT_FDCWD, args[0])? }
            }
            libc::SYS_fchownat => {
                self.at_flags(FileCall::Chown, FileCall::Chown, args[1], args[4])?
            }
            libc::SYS_utimensat => return self.utimens(),
            libc::SYS_utime | libc::SYS_utimes | libc::SYS_futimesat => {
                let (directory, path) = match number {
                    libc::SYS_futimesat => (fd(args[0]), args[1]),
                    _ => (AT_FDCWD, args[0]),
                };
                // Both times are now.
                Op { flags: NOW << 8, ..self.at(FileCall::Utimens, directory, path)? }
            }
            libc::SYS_getxattr => return self.xattr(FileCall::Getxattr, Some(0), args[3], 0),
            libc::SYS_lgetxattr => return self.xattr(FileCall::Getxattr, Some(1), args[3], 0),
            libc::SYS_setxattr => {
                return self.xattr(FileCall::Setxattr, Some(0), args[3], args[4] << 8);
            }
            libc::SYS_lsetxattr => {
                return self.xattr(FileCall::Setxattr, Some(1), args[3], args[4] << 8);
            }
            libc::SYS_removexattr => return self.xattr(FileCall::Removexattr, Some(0), 0, 0),
            libc::SYS_lremovexattr => return self.xattr(FileCall::Removexattr, Some(1), 0, 0),
            libc::SYS_listxattr => return self.xattr(FileCall::Listxattr, Some(0), args[2], 0),
            libc::SYS_llistxattr => return self.xattr(FileCall::Listxattr, Some(1), args[2], 0),
            _ => return self.changes_names(number),
        };
        plain(op)
    }

    /// Calls that add or remove names.
    fn changes_names(&mut self, number: i64) -> Option<Pending> {
        let args = self.args;
        match number {
            libc::SYS_mkdir => self.entry(FileCall::Mkdir, AT_FDCWD, args[0], args[1]),
            libc::SYS_mkdirat => self.entry(FileCall::Mkdir, fd(args[0]), args[1], args[2]),
            libc::SYS_rmdir => self.entry(FileCall::Rmdir, AT_FDCWD, args[0], 0),
            libc::SYS_unlink => self.entry(FileCall::Unlink, AT_FDCWD, args[0], 0),
            libc::SYS_unlinkat => {
                let removes = args[2] & AT_REMOVEDIR != 0;
                let call = if removes { FileCall::Rmdir } else { FileCall::Unlink };
                self.entry(call, fd(args[0]), args[1], 0)
            }
            libc::SYS_rename => {
                self.two(FileCall::Rename, (AT_FDCWD, args[0]), (AT_FDCWD, args[1]), 0)
            }
            libc::SYS_renameat | libc::SYS_renameat2 => {
                let flags = if number == libc::SYS_renameat { 0 } else { args[4] };
                self.two(FileCall::Rename, (fd(args[0]), args[1]), (fd(args[2]), args[3]), flags)
            }
            libc::SYS_link => {
                self.two(FileCall::Link, (AT_FDCWD, args[0]), (AT_FDCWD, args[1]), NO_FOLLOW)
            }
            libc::SYS_linkat => self.linkat(),
            libc::SYS_symlink => self.symlink(args[0], AT_FDCWD, args[1]),
            libc::SYS_symlinkat => self.symlink(args[0], fd(args[1]), args[2]),
            libc::SYS_mknod | libc::SYS_mknodat => {
                let (directory, path, mode) = match number {
                    libc::SYS_mknod => (AT_FDCWD, args[0], args[1]),
                    _ => (fd(args[0]), args[1], args[2]),
                };
                let path = self.memory.string(path)?;
                self.mknod((directory, &path), mode, Then::Nothing)
            }
            libc::SYS_bind => {
                let path = self.socket_name()?;
                // unix_bind_bsd() of Linux: the permissions of the socket that the mask leaves.
                let mode = self.memory.permissions(fd(args[0])).unwrap_or(0o777);
                self.mknod((AT_FDCWD, &path), SOCKET | u64::from(mode), Then::Name)
            }
            _ => None,
        }
    }

    /// Creation of a file of the type in its mode.
    fn mknod(&mut self, (directory, path): (i32, &[u8]), mode: u64, then: Then) -> Option<Pending> {
        let named = self.named_by(directory, path)?;
        let kind = match mode & u64::from(libc::S_IFMT) {
            0 => u64::from(libc::S_IFREG),
            kind => kind,
        };
        let is_fifo = kind == u64::from(libc::S_IFIFO);
        // A log does not show which descriptors are those of a FIFO.
        if is_fifo && self.recorder.instant.is_some() {
            self.recorder.leave_out("mknod of a FIFO");
            return None;
        }
        if [libc::S_IFBLK, libc::S_IFCHR].map(u64::from).contains(&kind) {
            self.recorder.leave_out("mknod of a device");
        }
        if !NODE_TYPES.contains(&kind) {
            return None;
        }
        self.recorder.fifos |= is_fifo;
        let op = Op { flags: kind, offset: self.mode(mode), ..self.op(FileCall::Mknod, &named) };
        Some(Pending { op: Some(op), then })
    }

    /// Path that bind(2) gives to a socket: `struct sockaddr_un` (unix(7)).
    fn socket_name(&self) -> Option<Vec<u8>> {
        let mut address = [0; 110];
        let length = address.len().min(usize::try_from(self.args[2]).ok()?);
        let read = self.memory.read(self.args[1], &mut address[..length]);
        let family = address[..read].first_chunk().copied().map(u16::from_ne_bytes)?;
        let name = address[2..read].split(|byte| *byte == 0).next()?;
        (i32::from(family) == libc::AF_UNIX).then(|| name.to_vec())
    }

    /// Mode with the mask of the process.
    fn mode(&self, mode: u64) -> u64 {
        mode & 0o7777 & !u64::from(self.tracee.place.borrow().umask)
    }

    fn open(&mut self, directory: i32, address: u64, flags: u64, mode: u64) -> Option<Pending> {
        let named = self.named(directory, address)?;
        let path = match &named {
            Named::Path { absolute, .. } => absolute.clone(),
            Named::Descriptor(slot) => self.recorder.slots.path(*slot)?.to_vec(),
        };
        let op = self.op(FileCall::Open, &named);
        let op = Op { flags: flags & !CLOEXEC, offset: self.mode(mode), ..op };
        Some(Pending { op: Some(op), then: Then::Bind { cloexec: flags & CLOEXEC != 0, path } })
    }

    /// Call that adds or removes one name.
    fn entry(
        &mut self,
        call: FileCall,
        directory: i32,
        address: u64,
        mode: u64,
    ) -> Option<Pending> {
        let named = self.named(directory, address)?;
        if self.is_root(&named) {
            self.recorder.leave_out("creation or removal of the root");
            return None;
        }
        let op = self.op(call, &named);
        plain(Op { offset: self.mode(mode), ..op })
    }

    /// Call with two names.
    fn two(
        &mut self,
        call: FileCall,
        from: (i32, u64),
        to: (i32, u64),
        flags: u64,
    ) -> Option<Pending> {
        let (from, to) = (self.named(from.0, from.1), self.named(to.0, to.1));
        self.pair(call, from, to, flags)
    }

    fn pair(
        &mut self,
        call: FileCall,
        from: Option<Named>,
        to: Option<Named>,
        flags: u64,
    ) -> Option<Pending> {
        let (Some(from), Some(to)) = (&from, &to) else {
            if from.or(to).is_some() {
                self.recorder.leave_out(match call {
                    FileCall::Rename => "rename to or from another directory",
                    _ => "link to or from another directory",
                });
            }
            return None;
        };
        // Names in /proc/self/fd exist, and are on another filesystem: these calls fail.
        let number = |named: &Named| matches!(named, Named::Descriptor(_));
        if number(to) || call == FileCall::Rename && number(from) {
            return None;
        }
        if self.is_root(from) || self.is_root(to) {
            self.recorder.leave_out("creation or removal of the root");
            return None;
        }
        let (first, second) = (self.op(call, from), self.op(call, to));
        plain(Op { fd2: second.fd, path2: second.path, flags, ..first })
    }

    fn linkat(&mut self) -> Option<Pending> {
        let [old, old_path, new, new_path, flags, _] = self.args;
        let empty = flags & AT_EMPTY_PATH != 0 && self.memory.string(old_path)?.is_empty();
        let from = match empty {
            true => self.slot(fd(old)).map(Named::Descriptor),
            false => self.named(fd(old), old_path),
        };
        let to = self.named(fd(new), new_path);
        let flags = if flags & AT_SYMLINK_FOLLOW != 0 { 0 } else { NO_FOLLOW };
        self.pair(FileCall::Link, from, to, flags)
    }

    fn symlink(&mut self, target: u64, directory: i32, path: u64) -> Option<Pending> {
        let target = self.memory.string(target)?;
        let named = self.named(directory, path)?;
        if target.is_empty() {
            return None;
        }
        let op = self.op(FileCall::Symlink, &named);
        plain(Op { path2: self.recorder.paths.number(&target), ..op })
    }

    fn utimens(&mut self) -> Option<Pending> {
        let [directory, path, times, flags, _, _] = self.args;
        let op = match path {
            0 => Op { fd: self.slot(fd(directory))?, ..Op::new(FileCall::Utimens) },
            _ => self.at_flags(FileCall::Utimens, FileCall::Utimens, path, flags)?,
        };
        if times == 0 {
            return plain(Op { flags: op.flags | NOW << 8, ..op });
        }
        let mut values = [0; 32];
        self.read(times, &mut values)?;
        let word = |at| memory::word(&values, at);
        plain(Op {
            offset: word(16),
            size: word(24),
            flags: op.flags | kind(word(8)) << 4 | kind(word(24)) << 8,
            ..op
        })
    }
}

/// Number of fchmodat2(2), which the C library does not define on all systems.
pub(crate) const FCHMODAT2: i64 = 452;

/// Kind of a time of utimensat(2): a value, now, or unchanged.
const NOW: u64 = 1;

fn kind(nanoseconds: u64) -> u64 {
    match nanoseconds {
        // UTIME_NOW, UTIME_OMIT
        0x3fff_ffff => NOW,
        0x3fff_fffe => 2,
        _ => 0,
    }
}

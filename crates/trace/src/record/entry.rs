//! Decoding of system calls at their beginning.
//!
//! Descriptors are looked up here, before the call: another thread may close or reuse a number
//! during the call.

use model::phase::FileCall;
use sys::ptrace::Syscall;

use super::{
    Recorder,
    chosen::FICLONE,
    memory::{self, Memory},
    messages::Object,
    process::Tracee,
};
use crate::{NO_FOLLOW, NO_OFFSET, NONE, Op, paths};

/// Change of descriptors and directories if the call succeeds.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    Nothing,
    /// The result is a new descriptor of a file with this path.
    Bind {
        cloexec: bool,
        path: Vec<u8>,
    },
    /// dup2(2): the result is a duplicate of a descriptor, or of one that is not recorded.
    Duplicate {
        recorded: bool,
        cloexec: bool,
    },
    /// The size of the operation is the number of transferred bytes, which may come from an object.
    Transfer(Option<Object>),
    /// The working directory changes.
    Chdir,
    /// The process waited for a child; the address of its status, from waitid(2).
    Wait(Option<u64>),
    /// The task received data.
    Receive(Object),
    /// socketpair(2) wrote two descriptors to this address.
    Pair(u64),
    /// The result is a connected socket.
    Accept,
    /// The task waited for the end of the thread with this task.
    Join(usize),
    /// The mask changes to this value.
    Umask(u32),
    /// bind(2) gives a socket a name.
    Name,
}

/// Call in progress.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// Operation; `None` if only [`Self::then`] matters.
    pub(crate) op: Option<Op>,
    pub(crate) then: Then,
}

impl Pending {
    /// True if the end of the call decides whether the operation is recorded. If it is not, the
    /// pause before the call continues.
    pub(crate) fn is_optional(&self) -> bool {
        let clone = self.op.is_some_and(|op| op.call == FileCall::Clone);
        let after = matches!(
            self.then,
            Then::Wait(_)
                | Then::Receive(_)
                | Then::Join(_)
                | Then::Transfer(_)
                | Then::Name
                | Then::Bind { .. }
        );
        clone || after
    }
}

/// File that a call names.
pub(super) enum Named {
    /// By a path, from a descriptor or [`NONE`] for the root.
    Path { fd: u32, path: Vec<u8>, absolute: Vec<u8> },
    /// By a path in /proc, or an empty path.
    Descriptor(u32),
}

pub(super) const AT_FDCWD: i32 = -100;
pub(super) const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
pub(super) const AT_EMPTY_PATH: u64 = 0x1000;
pub(super) const CLOEXEC: u64 = 0o2_000_000;

/// Descriptor number of an argument.
pub(super) fn fd(argument: u64) -> i32 {
    (argument & 0xffff_ffff) as u32 as i32
}

/// Arguments of one call.
pub(super) struct Call<'a> {
    pub(super) recorder: &'a mut Recorder,
    pub(super) tracee: &'a Tracee,
    pub(super) memory: &'a dyn Memory,
    pub(super) args: [u64; 6],
}

/// Decodes a call. Returns `None` if it does not concern files below the root.
pub(super) fn decode(
    recorder: &mut Recorder,
    tracee: &Tracee,
    memory: &dyn Memory,
    syscall: &Syscall,
) -> Option<Pending> {
    let mut call = Call { recorder, tracee, memory, args: syscall.args };
    let number = syscall.number.cast_signed();
    call.by_descriptor(number).or_else(|| call.by_name(number)).or_else(|| call.descriptors(number))
}

pub(super) fn plain(op: Op) -> Option<Pending> {
    Some(Pending { op: Some(op), then: Then::Nothing })
}

impl Call<'_> {
    /// Descriptor of the recording that a number refers to.
    pub(super) fn slot(&self, number: i32) -> Option<u32> {
        self.tracee.table.borrow().get(&number).map(|held| held.slot)
    }

    /// Operation on the descriptor in the first argument.
    pub(super) fn of_fd(&self, call: FileCall) -> Option<Op> {
        let slot = self.slot(fd(self.args[0]))?;
        Some(Op { fd: slot, ..Op::new(call) })
    }

    /// Reads bytes; `None` if none can be read.
    pub(super) fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        (self.memory.read(address, to) > 0).then_some(())
    }

    /// Sum of the lengths of an I/O vector.
    fn vector(&self) -> u64 {
        let count = usize::try_from(self.args[2]).unwrap_or(0).min(1024);
        let mut bytes = vec![0; count * 16];
        let read = self.memory.read(self.args[1], &mut bytes);
        let lengths = bytes[..read].chunks_exact(16).map(|one| memory::word(one, 8));
        lengths.fold(0u64, u64::saturating_add)
    }

    /// File that a path argument names.
    pub(super) fn named(&mut self, directory: i32, address: u64) -> Option<Named> {
        let path = self.memory.string(address)?;
        self.named_by(directory, &path)
    }

    /// File that a path names, from the descriptor of a directory.
    pub(super) fn named_by(&mut self, directory: i32, path: &[u8]) -> Option<Named> {
        if path.is_empty() {
            return None;
        }
        if let Some(number) = paths::descriptor(path, self.tracee.process) {
            return self.slot(number).map(Named::Descriptor);
        }
        let root = &self.recorder.root;
        if path[0] == b'/' {
            let rest = root.below(path)?;
            return Some(Named::Path { fd: NONE, path: rest, absolute: path.to_vec() });
        }
        let (slot, from) = match directory {
            AT_FDCWD => {
                let place = self.tracee.place.borrow();
                (place.slot, place.path.clone())
            }
            _ => match self.slot(directory) {
                Some(slot) => (slot, self.recorder.slots.path(slot)?.to_vec()),
                None => (NONE, self.memory.link(directory)?),
            },
        };
        let absolute = paths::normal(&paths::join(&from, path));
        let rest = root.below(&absolute)?;
        let inside = slot != NONE || root.below(&from).as_deref() == Some(b".");
        // A slash at the end requires a directory.
        let path = if inside { path.to_vec() } else { rest };
        Some(Named::Path { fd: slot, path, absolute })
    }

    /// Operation on a named file.
    pub(super) fn op(&mut self, call: FileCall, named: &Named) -> Op {
        match named {
            Named::Path { fd, path, .. } => {
                Op { fd: *fd, path: self.recorder.paths.number(path), ..Op::new(call) }
            }
            Named::Descriptor(slot) => Op { fd: *slot, ..Op::new(call) },
        }
    }

    /// Operation on the file that a path argument names.
    pub(super) fn at(&mut self, call: FileCall, directory: i32, address: u64) -> Option<Op> {
        let named = self.named(directory, address)?;
        Some(self.op(call, &named))
    }

    /// As [`Self::at`], with the flags of fstatat(2) and similar calls.
    pub(super) fn at_flags(
        &mut self,
        call: FileCall,
        by_fd: FileCall,
        address: u64,
        flags: u64,
    ) -> Option<Op> {
        let directory = fd(self.args[0]);
        if flags & AT_EMPTY_PATH != 0 && self.memory.string(address)?.is_empty() {
            return Some(Op { fd: self.slot(directory)?, ..Op::new(by_fd) });
        }
        let mut op = self.at(call, directory, address)?;
        if flags & AT_SYMLINK_NOFOLLOW != 0 {
            op.flags |= NO_FOLLOW;
        }
        Some(op)
    }

    /// True if an operation names the root itself, which a replay does not create or remove.
    pub(super) fn is_root(&self, named: &Named) -> bool {
        match named {
            Named::Path { absolute, .. } => {
                self.recorder.root.below(absolute).as_deref() == Some(b".")
            }
            Named::Descriptor(_) => false,
        }
    }

    /// Calls with a descriptor of a file.
    fn by_descriptor(&mut self, number: i64) -> Option<Pending> {
        let args = self.args;
        let moved = |op: Op, size, offset| plain(Op { size, offset, ..op });
        match number {
            libc::SYS_read => moved(self.of_fd(FileCall::Read)?, args[2], 0),
            libc::SYS_write => moved(self.of_fd(FileCall::Write)?, args[2], 0),
            libc::SYS_pread64 => moved(self.of_fd(FileCall::Pread)?, args[2], args[3]),
            libc::SYS_pwrite64 => moved(self.of_fd(FileCall::Pwrite)?, args[2], args[3]),
            libc::SYS_readv => moved(self.of_fd(FileCall::Read)?, self.vector(), 0),
            libc::SYS_writev => moved(self.of_fd(FileCall::Write)?, self.vector(), 0),
            libc::SYS_preadv | libc::SYS_preadv2 => match args[3] {
                NO_OFFSET => moved(self.of_fd(FileCall::Read)?, self.vector(), 0),
                offset => moved(self.of_fd(FileCall::Pread)?, self.vector(), offset),
            },
            libc::SYS_pwritev | libc::SYS_pwritev2 => match args[3] {
                NO_OFFSET => moved(self.of_fd(FileCall::Write)?, self.vector(), 0),
                offset => moved(self.of_fd(FileCall::Pwrite)?, self.vector(), offset),
            },
            libc::SYS_lseek => {
                plain(Op { offset: args[1], flags: args[2], ..self.of_fd(FileCall::Seek)? })
            }
            libc::SYS_copy_file_range => self.copy_range(),
            libc::SYS_sendfile => self.sendfile(),
            libc::SYS_splice => self.splice(),
            libc::SYS_ioctl => self.clone_range(),
            libc::SYS_ftruncate => plain(Op { size: args[1], ..self.of_fd(FileCall::Ftruncate)? }),
            libc::SYS_fallocate => plain(Op {
                flags: args[1],
                offset: args[2],
                size: args[3],
                ..self.of_fd(FileCall::Fallocate)?
            }),
            libc::SYS_fsync => plain(self.of_fd(FileCall::Fsync)?),
            libc::SYS_fdatasync => plain(self.of_fd(FileCall::Fdatasync)?),
            libc::SYS_syncfs => plain(self.of_fd(FileCall::Syncfs)?),
            libc::SYS_sync => plain(Op::new(FileCall::Syncfs)),
            libc::SYS_sync_file_range => plain(Op {
                offset: args[1],
                size: args[2],
                flags: args[3],
                ..self.of_fd(FileCall::SyncRange)?
            }),
            libc::SYS_fadvise64 => plain(Op {
                offset: args[1],
                size: args[2],
                flags: args[3],
                ..self.of_fd(FileCall::Advise)?
            }),
            // POSIX_FADV_WILLNEED
            libc::SYS_readahead => plain(Op {
                offset: args[1],
                size: args[2],
                flags: 3,
                ..self.of_fd(FileCall::Advise)?
            }),
            libc::SYS_fstat => plain(self.of_fd(FileCall::Fstat)?),
            libc::SYS_fstatfs => plain(self.of_fd(FileCall::Statfs)?),
            libc::SYS_getdents64 => plain(Op { size: args[2], ..self.of_fd(FileCall::List)? }),
            libc::SYS_fchmod => plain(Op { offset: args[1], ..self.of_fd(FileCall::Fchmod)? }),
            libc::SYS_fchown => plain(self.of_fd(FileCall::Chown)?),
            libc::SYS_flock => plain(Op { flags: args[1], ..self.of_fd(FileCall::Flock)? }),
            libc::SYS_fgetxattr => self.xattr(FileCall::Getxattr, None, args[3], 0),
            libc::SYS_fsetxattr => self.xattr(FileCall::Setxattr, None, args[3], args[4] << 8),
            libc::SYS_fremovexattr => self.xattr(FileCall::Removexattr, None, 0, 0),
            libc::SYS_flistxattr => plain(Op { size: args[2], ..self.of_fd(FileCall::Listxattr)? }),
            libc::SYS_mmap => self.mmap(),
            _ => None,
        }
    }

    fn copy_range(&mut self) -> Option<Pending> {
        let args = self.args;
        let (from, to) = (self.slot(fd(args[0])), self.slot(fd(args[2])));
        let (Some(from), Some(to)) = (from, to) else {
            if from.or(to).is_some() {
                self.recorder.leave_out("copy_file_range to or from another directory");
            }
            return None;
        };
        plain(Op {
            fd: from,
            fd2: to,
            offset: self.offset(args[1]),
            flags: self.offset(args[3]),
            size: args[4],
            ..Op::new(FileCall::CopyRange)
        })
    }

    /// Offset at an address, or [`NO_OFFSET`] for the position of the file.
    fn offset(&self, address: u64) -> u64 {
        match address {
            0 => NO_OFFSET,
            _ => self.memory.number(address).unwrap_or(NO_OFFSET),
        }
    }

    fn sendfile(&mut self) -> Option<Pending> {
        let [to, from, address, size, ..] = self.args;
        let offset = self.offset(address);
        if let (Some(from), Some(to)) = (self.slot(fd(from)), self.slot(fd(to))) {
            let op = Op { fd: from, fd2: to, offset, size, ..Op::new(FileCall::Sendfile) };
            return plain(Op { flags: NO_OFFSET, ..op });
        }
        self.transfer((from, offset), (to, NO_OFFSET))
    }

    fn splice(&mut self) -> Option<Pending> {
        let [from, start, to, end, ..] = self.args;
        self.transfer((from, self.offset(start)), (to, self.offset(end)))
    }

    /// Transfer between a file below the root and another file, such as a pipe: a read or a write.
    fn transfer(&mut self, from: (u64, u64), to: (u64, u64)) -> Option<Pending> {
        let (from, to) = ((fd(from.0), from.1), (fd(to.0), to.1));
        let op = |call, fd, offset| Op { fd, offset, ..Op::new(call) };
        let op = match (self.slot(from.0), self.slot(to.0)) {
            (Some(slot), _) if from.1 == NO_OFFSET => op(FileCall::Read, slot, 0),
            (Some(slot), _) => op(FileCall::Pread, slot, from.1),
            (None, Some(slot)) if to.1 == NO_OFFSET => op(FileCall::Write, slot, 0),
            (None, Some(slot)) => op(FileCall::Pwrite, slot, to.1),
            (None, None) => {
                self.send(to.0);
                return self.receive(from.0);
            }
        };
        if op.call.changes() {
            return Some(Pending { op: Some(op), then: Then::Transfer(self.source(from.0)) });
        }
        self.send(to.0);
        Some(Pending { op: Some(op), then: Then::Transfer(None) })
    }

    fn clone_range(&mut self) -> Option<Pending> {
        let [to, command, argument, ..] = self.args;
        let to = self.slot(fd(to))?;
        let (from, [offset, size, start]) = if command & 0xffff_ffff == u64::from(FICLONE) {
            (argument, [0; 3])
        } else {
            // struct file_clone_range (include/uapi/linux/fs.h).
            let field = |at| self.memory.number(argument.wrapping_add(at));
            (field(0)?, [field(8)?, field(16)?, field(24)?])
        };
        let Some(from) = self.slot(fd(from)) else {
            self.recorder.leave_out("FICLONE from another directory");
            return None;
        };
        let op = Op::new(FileCall::Clone);
        plain(Op { fd: from, fd2: to, offset, flags: start, size, ..op })
    }

    fn mmap(&mut self) -> Option<Pending> {
        let [_, size, protection, flags, number, offset] = self.args;
        let op = Op { fd: self.slot(fd(number))?, ..Op::new(FileCall::Mmap) };
        let shared = flags & 0xf != 2;
        if shared && protection & 2 != 0 {
            self.recorder.add_fact("mapped_writable_bytes", size);
        } else {
            self.recorder.add_fact("mapped_bytes", size);
        }
        plain(Op { size, offset, flags: protection & 0xff | (flags & 0xf) << 8, ..op })
    }

    /// Calls that change descriptors or directories.
    fn descriptors(&mut self, number: i64) -> Option<Pending> {
        let args = self.args;
        match number {
            libc::SYS_dup => self.duplicate(fd(args[0]), None, false),
            libc::SYS_dup2 if fd(args[0]) == fd(args[1]) => None,
            libc::SYS_dup2 => self.duplicate(fd(args[0]), Some(fd(args[1])), false),
            libc::SYS_dup3 => {
                self.duplicate(fd(args[0]), Some(fd(args[1])), args[2] & CLOEXEC != 0)
            }
            libc::SYS_fcntl => self.fcntl(),
            libc::SYS_chdir => {
                let op = self.at(FileCall::Chdir, AT_FDCWD, args[0]);
                Some(Pending { op, then: Then::Chdir })
            }
            libc::SYS_fchdir => {
                Some(Pending { op: self.of_fd(FileCall::Chdir), then: Then::Chdir })
            }
            libc::SYS_wait4 => {
                Some(Pending { op: Some(Op::new(FileCall::Wait)), then: Then::Wait(None) })
            }
            libc::SYS_waitid => {
                let then = Then::Wait(Some(args[2]));
                Some(Pending { op: Some(Op::new(FileCall::Wait)), then })
            }
            libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_recvmmsg => self.receive(fd(args[0])),
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_sendmmsg => {
                self.send(fd(args[0]));
                None
            }
            libc::SYS_socketpair => Some(Pending { op: None, then: Then::Pair(args[3]) }),
            libc::SYS_accept | libc::SYS_accept4 => Some(Pending { op: None, then: Then::Accept }),
            libc::SYS_umask => {
                let mask = u32::try_from(args[0] & 0o777).unwrap_or(0);
                Some(Pending { op: None, then: Then::Umask(mask) })
            }
            _ => None,
        }
    }

    fn duplicate(&mut self, from: i32, to: Option<i32>, cloexec: bool) -> Option<Pending> {
        let op = self.slot(from).map(|slot| Op { fd: slot, ..Op::new(FileCall::Dup) });
        let replaces = to.and_then(|to| self.slot(to)).is_some();
        if op.is_none() && !replaces {
            return None;
        }
        Some(Pending { then: Then::Duplicate { recorded: op.is_some(), cloexec }, op })
    }

    fn fcntl(&mut self) -> Option<Pending> {
        let number = fd(self.args[0]);
        match fd(self.args[1]) {
            libc::F_DUPFD => self.duplicate(number, None, false),
            libc::F_DUPFD_CLOEXEC => self.duplicate(number, None, true),
            libc::F_SETFD => {
                if let Some(held) = self.tracee.table.borrow_mut().get_mut(&number) {
                    held.cloexec = self.args[2] & 1 != 0;
                }
                None
            }
            _ => {
                let mut lock = [0; 32];
                let op = self.of_fd(FileCall::Lock)?;
                self.read(self.args[2], &mut lock)?;
                let kind = memory::word(&lock, 0);
                // Type, reference point of the start, and command.
                let flags = kind & 0xff | (kind >> 16 & 0xff) << 8 | (self.args[1] & 0xff) << 16;
                plain(Op {
                    flags,
                    offset: memory::word(&lock, 8),
                    size: memory::word(&lock, 16),
                    ..op
                })
            }
        }
    }
}

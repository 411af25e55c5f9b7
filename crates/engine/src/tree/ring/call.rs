//! Steps as io_uring requests: request, names, and expected result.

use io_uring::{opcode, squeue, types};
use model::phase::TreeStep;

use super::{
    Slot,
    memory::{Memory, Text, VALUE_ROOM},
};
use crate::{
    error::Operation,
    tree::{
        context::{DIRECTORY, FILE},
        named::{ATTRIBUTE, TARGET, VALUE},
    },
};

/// Step that io_uring supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Opens the file with these flags of open(2), as the direct descriptor of the slot.
    Open(i32),
    Close,
    Fsync,
    /// Allocates one block, with this mode of fallocate(2).
    Allocate(i32),
    Write,
    Read,
    Stat,
    /// Looks up a name that must not exist.
    StatMissing,
    Unlink(Text),
    Rmdir,
    /// Renames the first name to the second.
    Rename(Text, Text),
    Link,
    Symlink,
    Mkdir,
    SetXattr,
    GetXattr,
}

impl Call {
    /// Call of a step; `None` if the kernel has no request for it, or only one without a name.
    pub(super) fn of(step: TreeStep) -> Option<Self> {
        // Direct descriptors are not inherited, and O_CLOEXEC is rejected for them (EINVAL,
        // io_uring/openclose.c).
        Some(match step {
            TreeStep::Create => Self::Open(libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL),
            TreeStep::Open => Self::Open(libc::O_RDWR),
            TreeStep::OpenRead => Self::Open(libc::O_RDONLY),
            TreeStep::Write => Self::Write,
            TreeStep::Read => Self::Read,
            TreeStep::Fsync => Self::Fsync,
            TreeStep::Close => Self::Close,
            TreeStep::Stat => Self::Stat,
            TreeStep::StatMissing => Self::StatMissing,
            TreeStep::SetXattr => Self::SetXattr,
            TreeStep::GetXattr => Self::GetXattr,
            TreeStep::Allocate => Self::Allocate(0),
            TreeStep::PunchHole => {
                Self::Allocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
            }
            TreeStep::Rename => Self::Rename(Text::Entry, Text::New),
            TreeStep::RenameBack => Self::Rename(Text::New, Text::Entry),
            TreeStep::RenameAcross => Self::Rename(Text::Entry, Text::Across),
            TreeStep::Link => Self::Link,
            TreeStep::UnlinkLink => Self::Unlink(Text::Link),
            TreeStep::Symlink => Self::Symlink,
            TreeStep::Unlink => Self::Unlink(Text::Entry),
            TreeStep::Mkdir => Self::Mkdir,
            TreeStep::Rmdir => Self::Rmdir,
            TreeStep::MakeParent
            | TreeStep::OpenCreate
            | TreeStep::WriteBlock
            | TreeStep::ReadBlock
            | TreeStep::VerifyBlock
            | TreeStep::RenameRing
            | TreeStep::Append
            | TreeStep::Fetch
            | TreeStep::FsyncDirectory
            | TreeStep::Chmod
            | TreeStep::Chown
            | TreeStep::SetTimes
            | TreeStep::Truncate
            | TreeStep::LinkFirst
            | TreeStep::SymlinkFirst
            | TreeStep::Mknod
            | TreeStep::List => return None,
        })
    }

    /// Names used in addition to that of the entry.
    pub(super) fn others(self) -> impl Iterator<Item = Text> {
        let texts = match self {
            Self::Unlink(text) => [Some(text), None],
            Self::Rename(from, to) => [Some(from), Some(to)],
            Self::Link => [Some(Text::Link), None],
            Self::StatMissing => [Some(Text::Missing), None],
            Self::Open(_)
            | Self::Close
            | Self::Fsync
            | Self::Allocate(_)
            | Self::Write
            | Self::Read
            | Self::Stat
            | Self::Rmdir
            | Self::Symlink
            | Self::Mkdir
            | Self::SetXattr
            | Self::GetXattr => [None, None],
        };
        texts.into_iter().flatten()
    }

    /// Request number, and the feature that is missing without it: Linux supports requests on names
    /// since 5.11 (rename, unlink), 5.15 (mkdir, symlink, link), and 5.19 (attributes), all others
    /// since 5.6 (io_uring_enter(2)).
    pub(super) fn opcode(self) -> (u8, &'static str) {
        match self {
            Self::Open(_) => (opcode::OpenAt::CODE, "io_uring openat (Linux 5.6)"),
            Self::Close => (opcode::Close::CODE, "io_uring close (Linux 5.6)"),
            Self::Fsync => (opcode::Fsync::CODE, "io_uring fsync (Linux 5.1)"),
            Self::Allocate(_) => (opcode::Fallocate::CODE, "io_uring fallocate (Linux 5.6)"),
            Self::Write => (opcode::Write::CODE, "io_uring write (Linux 5.6)"),
            Self::Read => (opcode::Read::CODE, "io_uring read (Linux 5.6)"),
            Self::Stat | Self::StatMissing => (opcode::Statx::CODE, "io_uring statx (Linux 5.6)"),
            Self::Unlink(_) | Self::Rmdir => {
                (opcode::UnlinkAt::CODE, "io_uring unlinkat (Linux 5.11)")
            }
            Self::Rename(..) => (opcode::RenameAt::CODE, "io_uring renameat (Linux 5.11)"),
            Self::Link => (opcode::LinkAt::CODE, "io_uring linkat (Linux 5.15)"),
            Self::Symlink => (opcode::SymlinkAt::CODE, "io_uring symlinkat (Linux 5.15)"),
            Self::Mkdir => (opcode::MkDirAt::CODE, "io_uring mkdirat (Linux 5.15)"),
            Self::SetXattr => (opcode::SetXattr::CODE, "io_uring setxattr (Linux 5.19)"),
            Self::GetXattr => (opcode::GetXattr::CODE, "io_uring getxattr (Linux 5.19)"),
        }
    }

    /// Operation in an error.
    pub(super) fn operation(self) -> Operation {
        match self {
            Self::Open(_) => Operation::Open,
            Self::Close => Operation::Close,
            Self::Fsync => Operation::Sync,
            Self::Allocate(0) => Operation::Allocate,
            Self::Allocate(_) => Operation::PunchHole,
            Self::Write => Operation::Write,
            Self::Read => Operation::Read,
            Self::Stat | Self::StatMissing => Operation::Examine,
            Self::Unlink(_) => Operation::Unlink,
            Self::Rmdir => Operation::RemoveDirectory,
            Self::Rename(..) => Operation::Rename,
            Self::Link => Operation::Link,
            Self::Symlink => Operation::SymbolicLink,
            Self::Mkdir => Operation::MakeDirectory,
            Self::SetXattr => Operation::SetAttribute,
            Self::GetXattr => Operation::GetAttribute,
        }
    }

    /// True if the call transfers file data.
    pub(super) fn transfers(self) -> bool {
        matches!(self, Self::Write | Self::Read)
    }

    /// True if a result is the expected one with `rest` bytes left to move.
    #[inline]
    pub(super) fn succeeds(self, answer: i32, rest: u32) -> bool {
        match self {
            Self::Write | Self::Read => u32::try_from(answer) == Ok(rest),
            Self::StatMissing => answer == -libc::ENOENT,
            Self::Open(_)
            | Self::Close
            | Self::Fsync
            | Self::Allocate(_)
            | Self::Stat
            | Self::Unlink(_)
            | Self::Rmdir
            | Self::Rename(..)
            | Self::Link
            | Self::Symlink
            | Self::Mkdir
            | Self::SetXattr
            | Self::GetXattr => answer >= 0,
        }
    }

    /// Link to the following request: an expected error must not cancel it (io_uring_enter(2),
    /// `IOSQE_IO_HARDLINK`).
    pub(super) fn link(self) -> squeue::Flags {
        match self {
            Self::StatMissing => squeue::Flags::IO_HARDLINK,
            Self::Open(_)
            | Self::Close
            | Self::Fsync
            | Self::Allocate(_)
            | Self::Write
            | Self::Read
            | Self::Stat
            | Self::Unlink(_)
            | Self::Rmdir
            | Self::Rename(..)
            | Self::Link
            | Self::Symlink
            | Self::Mkdir
            | Self::SetXattr
            | Self::GetXattr => squeue::Flags::IO_LINK,
        }
    }

    /// Request for the entry in slot `number`, at step `index`, in the directory `at`; a block has
    /// `block_size` bytes.
    #[inline]
    pub(super) fn request(
        self,
        at: types::Fd,
        (number, index): (u32, u32),
        (memory, slot): (&Memory, &mut Slot),
        block_size: u64,
    ) -> squeue::Entry {
        let file = types::Fixed(number);
        let text = |text| memory.text(number, text);
        let (moved, rest) = (u64::from(slot.moved(index)), slot.rest(index));
        match self {
            Self::Open(flags) => {
                let target = types::DestinationSlot::try_from_slot_target(number).ok();
                opcode::OpenAt::new(at, text(Text::Entry))
                    .file_index(target)
                    .flags(flags)
                    .mode(FILE.as_raw_mode())
                    .build()
            }
            Self::Close => opcode::Close::new(file).build(),
            Self::Fsync => opcode::Fsync::new(file).build(),
            Self::Allocate(mode) => opcode::Fallocate::new(file, block_size).mode(mode).build(),
            Self::Write => opcode::Write::new(file, slot.source(index), rest).offset(moved).build(),
            Self::Read => opcode::Read::new(file, slot.target(index), rest).offset(moved).build(),
            Self::Stat => status(at, text(Text::Entry), memory, number),
            Self::StatMissing => status(at, text(Text::Missing), memory, number),
            Self::Unlink(name) => opcode::UnlinkAt::new(at, text(name)).build(),
            Self::Rmdir => {
                opcode::UnlinkAt::new(at, text(Text::Entry)).flags(libc::AT_REMOVEDIR).build()
            }
            Self::Rename(from, to) => opcode::RenameAt::new(at, text(from), at, text(to)).build(),
            Self::Link => opcode::LinkAt::new(at, text(Text::Entry), at, text(Text::Link)).build(),
            Self::Symlink => opcode::SymlinkAt::new(at, TARGET.as_ptr(), text(Text::Entry)).build(),
            Self::Mkdir => {
                opcode::MkDirAt::new(at, text(Text::Entry)).mode(DIRECTORY.as_raw_mode()).build()
            }
            Self::SetXattr => {
                let (name, path) = (ATTRIBUTE.as_ptr(), text(Text::Path));
                opcode::SetXattr::new(name, VALUE.as_ptr().cast(), path, 16).build()
            }
            Self::GetXattr => {
                let (name, path) = (ATTRIBUTE.as_ptr(), text(Text::Path));
                opcode::GetXattr::new(name, memory.value(number), path, VALUE_ROOM).build()
            }
        }
    }
}

/// Arguments of stat(2).
fn status(at: types::Fd, name: *const libc::c_char, memory: &Memory, number: u32) -> squeue::Entry {
    opcode::Statx::new(at, name, memory.status(number)).mask(libc::STATX_BASIC_STATS).build()
}

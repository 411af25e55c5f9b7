//! Detection of filesystem features that the steps of a phase need, on a temporary file before
//! anything is timed.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use model::phase::TreeStep;
use rustix::{
    fs::{
        AtFlags, FallocateFlags, FileType, Mode, OFlags, XattrFlags, chmodat, chownat, fallocate,
        getxattr, linkat, mknodat, open, openat, setxattr, symlinkat, unlinkat,
    },
    io::Errno,
    process::{getegid, geteuid},
};

use super::{
    context::FILE,
    named::{ATTRIBUTE, CHANGED, NO_DEVICE, TARGET, VALUE},
};
use crate::{EngineError, calls::again};

/// Bytes that are allocated or punched.
const SOME: u64 = 4096;

/// Tries each of `steps` that a filesystem may not support, on files in `directory` whose names
/// begin with a dot and `name`, and removes these files. If every filesystem supports the steps, no
/// file is created.
///
/// # Errors
/// [`EngineError::Unsupported`] for the first unsupported step. Other errors are ignored here; the
/// phase reports them.
pub(crate) fn probe(directory: &Path, name: &str, steps: &[TreeStep]) -> Result<(), EngineError> {
    if steps.iter().all(|step| missing_feature(*step).is_none()) {
        return Ok(());
    }
    // The phase will get the same error and report it with its own path.
    let Ok(probe) = Probe::new(directory, format!(".{name}.probe")) else { return Ok(()) };
    for step in steps {
        let Some(what) = missing_feature(*step) else { continue };
        match probe.attempt(*step) {
            Err(errno) if is_unsupported(errno) => {
                let source = io::Error::from(errno);
                return Err(EngineError::Unsupported { what, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Feature that is missing if a step is not supported; `None` for steps that are always supported.
fn missing_feature(step: TreeStep) -> Option<&'static str> {
    Some(match step {
        TreeStep::SetXattr | TreeStep::GetXattr => "user extended attributes",
        TreeStep::Link | TreeStep::UnlinkLink | TreeStep::LinkFirst => "hard links",
        TreeStep::Symlink | TreeStep::SymlinkFirst => "symbolic links",
        TreeStep::Allocate => "preallocation (fallocate)",
        TreeStep::PunchHole => "hole punching (fallocate)",
        TreeStep::Chmod => "file modes",
        TreeStep::Chown => "file owners",
        TreeStep::Mknod => "regular files by mknod",
        TreeStep::MakeParent
        | TreeStep::Create
        | TreeStep::OpenCreate
        | TreeStep::Open
        | TreeStep::OpenRead
        | TreeStep::Write
        | TreeStep::WriteBlock
        | TreeStep::Append
        | TreeStep::Read
        | TreeStep::ReadBlock
        | TreeStep::VerifyBlock
        | TreeStep::Fetch
        | TreeStep::Fsync
        | TreeStep::FsyncDirectory
        | TreeStep::Close
        | TreeStep::Stat
        | TreeStep::StatMissing
        | TreeStep::SetTimes
        | TreeStep::Truncate
        | TreeStep::Rename
        | TreeStep::RenameBack
        | TreeStep::RenameRing
        | TreeStep::RenameAcross
        | TreeStep::Unlink
        | TreeStep::Mkdir
        | TreeStep::Rmdir
        | TreeStep::List => return None,
    })
}

/// True if an error means that the filesystem does not support the call. EPERM is documented for
/// link(2), symlink(2), and mknod(2), and returned by vfat for modes and owners that it cannot
/// store. The file belongs to this process, so EPERM is not a missing permission.
fn is_unsupported(errno: Errno) -> bool {
    // ENOTSUP has the same number on Linux.
    matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY | Errno::PERM)
}

/// Test file, and its other names.
struct Probe<'a> {
    root: OwnedFd,
    directory: &'a Path,
    name: String,
    file: OwnedFd,
}

impl<'a> Probe<'a> {
    fn new(directory: &'a Path, name: String) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(directory, flags, Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = openat(&root, &name, flags, FILE)?;
        Ok(Self { root, directory, name, file })
    }

    fn at(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    fn other(&self) -> String {
        format!("{}.other", self.name)
    }

    /// Tries a step listed in [`missing_feature`].
    fn attempt(&self, step: TreeStep) -> Result<(), Errno> {
        let (at, name, other) = (self.at(), &self.name, self.other());
        let file = self.directory.join(name);
        let made = |answer: Result<(), Errno>| {
            answer.and_then(|()| unlinkat(at, &other, AtFlags::empty()))
        };
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match step {
            TreeStep::SetXattr => setxattr(&file, ATTRIBUTE, VALUE, XattrFlags::empty()),
            // A missing attribute shows that attributes are supported.
            TreeStep::GetXattr => match getxattr(&file, ATTRIBUTE, &mut [0; 64][..]) {
                Ok(_) | Err(Errno::NODATA) => Ok(()),
                Err(errno) => Err(errno),
            },
            TreeStep::Link | TreeStep::UnlinkLink | TreeStep::LinkFirst => {
                made(linkat(at, name, at, &other, AtFlags::empty()))
            }
            TreeStep::Symlink | TreeStep::SymlinkFirst => made(symlinkat(TARGET, at, &other)),
            TreeStep::Mknod => made(mknodat(at, &other, FileType::RegularFile, FILE, NO_DEVICE)),
            TreeStep::Chmod => chmodat(at, name, CHANGED, AtFlags::empty()),
            TreeStep::Chown => {
                chownat(at, name, Some(geteuid()), Some(getegid()), AtFlags::empty())
            }
            TreeStep::Allocate => again(|| fallocate(&self.file, FallocateFlags::empty(), 0, SOME)),
            TreeStep::PunchHole => again(|| fallocate(&self.file, hole, 0, SOME)),
            TreeStep::MakeParent
            | TreeStep::Create
            | TreeStep::OpenCreate
            | TreeStep::Open
            | TreeStep::OpenRead
            | TreeStep::Write
            | TreeStep::WriteBlock
            | TreeStep::Append
            | TreeStep::Read
            | TreeStep::ReadBlock
            | TreeStep::VerifyBlock
            | TreeStep::Fetch
            | TreeStep::Fsync
            | TreeStep::FsyncDirectory
            | TreeStep::Close
            | TreeStep::Stat
            | TreeStep::StatMissing
            | TreeStep::SetTimes
            | TreeStep::Truncate
            | TreeStep::Rename
            | TreeStep::RenameBack
            | TreeStep::RenameRing
            | TreeStep::RenameAcross
            | TreeStep::Unlink
            | TreeStep::Mkdir
            | TreeStep::Rmdir
            | TreeStep::List => Ok(()),
        }
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        // A file that cannot be removed is in the directory under test, which its owner cleans up.
        let _ = unlinkat(self.at(), &self.name, AtFlags::empty());
        let _ = unlinkat(self.at(), self.other(), AtFlags::empty());
    }
}

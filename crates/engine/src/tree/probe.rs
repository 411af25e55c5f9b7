//! Whether a filesystem has what the steps of a phase need, tried on a file of its own before
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
    hand::{FILE, again},
    named::{ATTRIBUTE, CHANGED, NO_DEVICE, TARGET, VALUE},
};
use crate::EngineError;

/// Bytes that are allocated, or given up.
const SOME: u64 = 4096;

/// Tries each of `steps` that a filesystem may lack, on files in `directory` whose names begin with
/// a dot and `name`, and that are removed again. Steps that all filesystems have make it touch
/// nothing.
///
/// # Errors
/// [`EngineError::Unsupported`] for the first step that the filesystem does not have. All other
/// trouble is left to the phase.
pub(crate) fn probe(directory: &Path, name: &str, steps: &[TreeStep]) -> Result<(), EngineError> {
    if steps.iter().all(|step| lacking(*step).is_none()) {
        return Ok(());
    }
    // What keeps the file from being made, the phase will meet itself, and name its own.
    let Ok(probe) = Probe::new(directory, format!(".{name}.probe")) else { return Ok(()) };
    for step in steps {
        let Some(what) = lacking(*step) else { continue };
        match probe.attempt(*step) {
            Err(errno) if lacks(errno) => {
                let source = io::Error::from(errno);
                return Err(EngineError::Unsupported { what, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// What a filesystem lacks that does not have a step; `None` if all have it.
fn lacking(step: TreeStep) -> Option<&'static str> {
    Some(match step {
        TreeStep::SetXattr | TreeStep::GetXattr => "extended attributes of users",
        TreeStep::Link | TreeStep::UnlinkLink | TreeStep::LinkFirst => "hard links",
        TreeStep::Symlink | TreeStep::SymlinkFirst => "symbolic links",
        TreeStep::Allocate => "allocation before writing (fallocate)",
        TreeStep::PunchHole => "punching of holes (fallocate)",
        TreeStep::Chmod => "modes of files",
        TreeStep::Chown => "owners of files",
        TreeStep::Mknod => "files made by mknod",
        TreeStep::MakeParent
        | TreeStep::Create
        | TreeStep::Open
        | TreeStep::OpenRead
        | TreeStep::Write
        | TreeStep::Append
        | TreeStep::Read
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
        | TreeStep::RenameAcross
        | TreeStep::Unlink
        | TreeStep::Mkdir
        | TreeStep::Rmdir
        | TreeStep::List => return None,
    })
}

/// Whether an answer says that the filesystem does not have the call at all. EPERM is what
/// link(2), symlink(2), and mknod(2) document for that, and what vfat answers to modes and owners
/// that it cannot store; the file is this process's own, so it is no lack of rights.
fn lacks(errno: Errno) -> bool {
    // ENOTSUP is the same number on Linux.
    matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY | Errno::PERM)
}

/// The file that is tried, and the names that come and go with it.
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

    /// One step that [`lacking`] names.
    fn attempt(&self, step: TreeStep) -> Result<(), Errno> {
        let (at, name, other) = (self.at(), &self.name, self.other());
        let file = self.directory.join(name);
        let made = |answer: Result<(), Errno>| {
            answer.and_then(|()| unlinkat(at, &other, AtFlags::empty()))
        };
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match step {
            TreeStep::SetXattr => setxattr(&file, ATTRIBUTE, VALUE, XattrFlags::empty()),
            // That there is none is an answer of a filesystem that has them.
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
            | TreeStep::Open
            | TreeStep::OpenRead
            | TreeStep::Write
            | TreeStep::Append
            | TreeStep::Read
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
        // What cannot be removed lies in the directory under test, which its owner cleans up.
        let _ = unlinkat(self.at(), &self.name, AtFlags::empty());
        let _ = unlinkat(self.at(), self.other(), AtFlags::empty());
    }
}

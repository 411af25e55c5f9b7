//! Steps on names. Each is the system call documented in [`model::phase::TreeStep`].

use rustix::{
    fs::{
        AtFlags, Dev, FileType, Mode, OFlags, Timespec, Timestamps, XattrFlags, chmodat, chownat,
        getxattr, linkat, mkdir, mkdirat, mknodat, openat, renameat, setxattr, statat, symlinkat,
        unlinkat, utimensat,
    },
    io::Errno,
};

use super::{
    context::{DIRECTORY, FILE, TreeContext},
    truncate::truncate,
};
use crate::{
    calls::made,
    error::{Fault, Operation},
    io::close,
};

/// Extended attribute that is set and read, and its value.
pub(super) const ATTRIBUTE: &std::ffi::CStr = c"user.fslab";
pub(super) const VALUE: &[u8; 16] = b"sixteen bytes ok";

/// Buffer size for the value.
const ROOM: usize = 64;

/// Mode set by chmod.
pub(super) const CHANGED: Mode = Mode::from_raw_mode(0o640);

/// Target of symbolic links.
pub(super) const TARGET: &std::ffi::CStr = c"target";

/// 2000-01-01 00:00:00 UTC as access and modification time.
const MILLENNIUM: Timestamps = {
    let time = Timespec { tv_sec: 946_684_800, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
};

/// Device number of a regular file.
pub(super) const NO_DEVICE: Dev = 0;

fn checked(answer: Result<(), Errno>, operation: Operation) -> Result<(), Fault> {
    answer.map_err(|errno| Fault::whole(operation, errno))
}

impl TreeContext<'_> {
    pub(super) fn make_parent(&mut self) -> Result<(), Fault> {
        if !self.begins() {
            return Ok(());
        }
        let answer = match self.names.parent() {
            Some(name) => mkdirat(&self.root, name, DIRECTORY),
            None => mkdir(self.root(), DIRECTORY),
        };
        checked(made(answer), Operation::MakeDirectory)
    }

    #[inline]
    pub(super) fn stat(&mut self) -> Result<(), Fault> {
        let status = statat(self.at(), self.names.entry_name(), AtFlags::empty())
            .map_err(|errno| Fault::whole(Operation::Examine, errno))?;
        self.stat_size = u64::try_from(status.st_size).unwrap_or(0);
        Ok(())
    }

    /// Fails if the name exists.
    pub(super) fn stat_missing(&mut self) -> Result<(), Fault> {
        let (_, name) = self.names.with(b".none");
        let errno = match statat(&self.root, name, AtFlags::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => errno,
            Ok(_) => Errno::EXIST,
        };
        Err(Fault::whole(Operation::Examine, errno))
    }

    pub(super) fn chmod(&mut self) -> Result<(), Fault> {
        let answer = chmodat(self.at(), self.names.entry_name(), CHANGED, AtFlags::empty());
        checked(answer, Operation::ChangeMode)
    }

    pub(super) fn chown(&mut self) -> Result<(), Fault> {
        let (user, group) = (Some(self.owner.0), Some(self.owner.1));
        let name = self.names.entry_name();
        checked(chownat(self.at(), name, user, group, AtFlags::empty()), Operation::ChangeOwner)
    }

    pub(super) fn set_times(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        checked(utimensat(self.at(), name, &MILLENNIUM, AtFlags::empty()), Operation::SetTimes)
    }

    pub(super) fn set_attribute(&mut self) -> Result<(), Fault> {
        let answer = setxattr(self.names.path(), ATTRIBUTE, VALUE, XattrFlags::empty());
        checked(answer, Operation::SetAttribute)
    }

    pub(super) fn get_attribute(&mut self) -> Result<(), Fault> {
        let mut value = [0; ROOM];
        let answer = getxattr(self.names.path(), ATTRIBUTE, &mut value[..]);
        checked(answer.map(drop), Operation::GetAttribute)
    }

    pub(super) fn truncate(&mut self) -> Result<(), Fault> {
        checked(truncate(self.names.path(), self.size / 2), Operation::Truncate)
    }

    pub(super) fn rename(&mut self) -> Result<(), Fault> {
        let (from, to) = self.names.with(b".new");
        checked(renameat(&self.root, from, &self.root, to), Operation::Rename)
    }

    pub(super) fn rename_back(&mut self) -> Result<(), Fault> {
        let (to, from) = self.names.with(b".new");
        checked(renameat(&self.root, from, &self.root, to), Operation::Rename)
    }

    /// Does nothing if there is only one entry.
    pub(super) fn rename_ring(&mut self) -> Result<(), Fault> {
        let (entry, entries) = (self.names.number(), self.entries);
        let ring = self.ring.as_mut().expect("created for this step");
        if entries < 2 {
            return Ok(());
        }
        let answer = if entry == 0 {
            let (from, to) = self.names.with(b"-XX");
            renameat(&self.root, from, &self.root, to)
        } else if entry + 1 < entries {
            ring.set(entry - 1);
            renameat(&self.root, self.names.entry_name(), &self.root, ring.entry_name())
        } else {
            // The last entry keeps its name.
            self.names.set(entry - 1);
            ring.set(0);
            renameat(&self.root, ring.with(b"-XX").1, &self.root, self.names.entry_name())
        };
        checked(answer, Operation::Rename)
    }

    pub(super) fn rename_across(&mut self) -> Result<(), Fault> {
        let (from, to) = self.names.across();
        checked(renameat(&self.root, from, &self.root, to), Operation::Rename)
    }

    pub(super) fn link(&mut self) -> Result<(), Fault> {
        let (from, to) = self.names.with(b".link");
        checked(linkat(&self.root, from, &self.root, to, AtFlags::empty()), Operation::Link)
    }

    pub(super) fn unlink_link(&mut self) -> Result<(), Fault> {
        let (_, name) = self.names.with(b".link");
        checked(unlinkat(&self.root, name, AtFlags::empty()), Operation::Unlink)
    }

    pub(super) fn link_first(&mut self) -> Result<(), Fault> {
        if self.names.number() == 0 {
            return self.make_first();
        }
        let (from, to) = (&*self.first, self.names.entry_name());
        checked(linkat(self.at(), from, self.at(), to, AtFlags::empty()), Operation::Link)
    }

    pub(super) fn symlink_first(&mut self) -> Result<(), Fault> {
        if self.names.number() == 0 {
            return self.make_first();
        }
        let name = self.names.entry_name();
        checked(symlinkat(&*self.to_first, self.at(), name), Operation::SymbolicLink)
    }

    fn make_first(&mut self) -> Result<(), Fault> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(self.at(), self.names.entry_name(), flags, FILE)
            .map_err(|errno| Fault::whole(Operation::Open, errno))?;
        close(file)
    }

    pub(super) fn symlink(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        checked(symlinkat(TARGET, self.at(), name), Operation::SymbolicLink)
    }

    #[inline]
    pub(super) fn unlink(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        checked(unlinkat(self.at(), name, AtFlags::empty()), Operation::Unlink)
    }

    pub(super) fn make_node(&mut self) -> Result<(), Fault> {
        let (name, kind) = (self.names.entry_name(), FileType::RegularFile);
        checked(mknodat(self.at(), name, kind, FILE, NO_DEVICE), Operation::MakeNode)
    }

    pub(super) fn make_directory(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        checked(mkdirat(self.at(), name, DIRECTORY), Operation::MakeDirectory)
    }

    pub(super) fn remove_directory(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        checked(unlinkat(self.at(), name, AtFlags::REMOVEDIR), Operation::RemoveDirectory)
    }
}

//! Steps on names. Each is the system call that its step is defined by, so what is not said here is
//! in [`model::phase::TreeStep`].

use rustix::{
    fs::{
        AtFlags, Dev, FileType, Mode, OFlags, Timespec, Timestamps, XattrFlags, chmodat, chownat,
        getxattr, linkat, mkdir, mkdirat, mknodat, openat, renameat, setxattr, statat, symlinkat,
        unlinkat, utimensat,
    },
    io::Errno,
};

use super::{
    hand::{DIRECTORY, FILE, Hand, made},
    truncate::truncate,
};
use crate::{
    error::{Fault, Operation},
    io::close,
};

/// The extended attribute that is set and read, and its value.
pub(super) const ATTRIBUTE: &std::ffi::CStr = c"user.fslab";
pub(super) const VALUE: &[u8; 16] = b"sixteen bytes ok";

/// Room for the value that is read.
const ROOM: usize = 64;

/// The mode that files are changed to.
pub(super) const CHANGED: Mode = Mode::from_raw_mode(0o640);

/// The text of symbolic links.
pub(super) const TARGET: &std::ffi::CStr = c"target";

/// 2000-01-01 00:00:00 UTC in seconds since 1970.
const MILLENNIUM: Timestamps = {
    let time = Timespec { tv_sec: 946_684_800, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
};

/// The device of what is none.
pub(super) const NO_DEVICE: Dev = 0;

fn told(answer: Result<(), Errno>, operation: Operation) -> Result<(), Fault> {
    answer.map_err(|errno| Fault::whole(operation, errno))
}

impl Hand<'_> {
    pub(super) fn make_parent(&mut self) -> Result<(), Fault> {
        if !self.begins() {
            return Ok(());
        }
        let answer = match self.names.parent() {
            Some(name) => mkdirat(&self.root, name, DIRECTORY),
            None => mkdir(self.root(), DIRECTORY),
        };
        told(made(answer), Operation::MakeDirectory)
    }

    #[inline]
    pub(super) fn stat(&mut self) -> Result<(), Fault> {
        let status = statat(self.at(), self.names.entry_name(), AtFlags::empty())
            .map_err(|errno| Fault::whole(Operation::Examine, errno))?;
        self.told = u64::try_from(status.st_size).unwrap_or(0);
        Ok(())
    }

    /// That it is not there is the answer looked for.
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
        told(answer, Operation::ChangeMode)
    }

    pub(super) fn chown(&mut self) -> Result<(), Fault> {
        let (user, group) = (Some(self.owner.0), Some(self.owner.1));
        let name = self.names.entry_name();
        told(chownat(self.at(), name, user, group, AtFlags::empty()), Operation::ChangeOwner)
    }

    pub(super) fn set_times(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        told(utimensat(self.at(), name, &MILLENNIUM, AtFlags::empty()), Operation::SetTimes)
    }

    pub(super) fn set_attribute(&mut self) -> Result<(), Fault> {
        let answer = setxattr(self.names.path(), ATTRIBUTE, VALUE, XattrFlags::empty());
        told(answer, Operation::SetAttribute)
    }

    pub(super) fn get_attribute(&mut self) -> Result<(), Fault> {
        let mut value = [0; ROOM];
        let answer = getxattr(self.names.path(), ATTRIBUTE, &mut value[..]);
        told(answer.map(drop), Operation::GetAttribute)
    }

    pub(super) fn truncate(&mut self) -> Result<(), Fault> {
        told(truncate(self.names.path(), self.size / 2), Operation::Truncate)
    }

    pub(super) fn rename(&mut self) -> Result<(), Fault> {
        let (from, to) = self.names.with(b".new");
        told(renameat(&self.root, from, &self.root, to), Operation::Rename)
    }

    pub(super) fn rename_back(&mut self) -> Result<(), Fault> {
        let (to, from) = self.names.with(b".new");
        told(renameat(&self.root, from, &self.root, to), Operation::Rename)
    }

    pub(super) fn rename_across(&mut self) -> Result<(), Fault> {
        let (from, to) = self.names.across();
        told(renameat(&self.root, from, &self.root, to), Operation::Rename)
    }

    pub(super) fn link(&mut self) -> Result<(), Fault> {
        let (from, to) = self.names.with(b".link");
        told(linkat(&self.root, from, &self.root, to, AtFlags::empty()), Operation::Link)
    }

    pub(super) fn unlink_link(&mut self) -> Result<(), Fault> {
        let (_, name) = self.names.with(b".link");
        told(unlinkat(&self.root, name, AtFlags::empty()), Operation::Unlink)
    }

    pub(super) fn link_first(&mut self) -> Result<(), Fault> {
        if self.names.number() == 0 {
            return self.make_first();
        }
        let (from, to) = (&*self.first, self.names.entry_name());
        told(linkat(self.at(), from, self.at(), to, AtFlags::empty()), Operation::Link)
    }

    pub(super) fn symlink_first(&mut self) -> Result<(), Fault> {
        if self.names.number() == 0 {
            return self.make_first();
        }
        let name = self.names.entry_name();
        told(symlinkat(&*self.to_first, self.at(), name), Operation::SymbolicLink)
    }

    fn make_first(&mut self) -> Result<(), Fault> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(self.at(), self.names.entry_name(), flags, FILE)
            .map_err(|errno| Fault::whole(Operation::Open, errno))?;
        close(file)
    }

    pub(super) fn symlink(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        told(symlinkat(TARGET, self.at(), name), Operation::SymbolicLink)
    }

    #[inline]
    pub(super) fn unlink(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        told(unlinkat(self.at(), name, AtFlags::empty()), Operation::Unlink)
    }

    pub(super) fn make_node(&mut self) -> Result<(), Fault> {
        let (name, kind) = (self.names.entry_name(), FileType::RegularFile);
        told(mknodat(self.at(), name, kind, FILE, NO_DEVICE), Operation::MakeNode)
    }

    pub(super) fn make_directory(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        told(mkdirat(self.at(), name, DIRECTORY), Operation::MakeDirectory)
    }

    pub(super) fn remove_directory(&mut self) -> Result<(), Fault> {
        let name = self.names.entry_name();
        told(unlinkat(self.at(), name, AtFlags::REMOVEDIR), Operation::RemoveDirectory)
    }
}

//! What does the steps: the entry at hand, the file that is open, and memory for all of them.
//!
//! In here are the steps of open files and of directories; those of names are in [`super::named`].

use std::{
    ffi::{CStr, OsStr},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use model::phase::{Spread, Tree, TreeOrder, TreeStep};
use rustix::{
    fs::{
        FallocateFlags, Gid, Mode, OFlags, RawDir, Uid, fallocate, fsync, mkdir, mkdirat, open,
        openat,
    },
    io::{Errno, pread, pwrite, read, write},
    process::{getegid, geteuid},
};

use super::{
    Failure,
    walk::{LISTING, adds},
};
use crate::{
    error::{Fault, Memory, Operation},
    io::close,
    set::{ACROSS, Data, Lengths, Names, Uses, directories, each, tag},
};

/// Modes of new directories, and of new files.
pub(super) const DIRECTORY: Mode = Mode::RWXU;
pub(super) const FILE: Mode = Mode::from_raw_mode(0o600);

/// See the module.
pub(super) struct Hand<'a> {
    path: &'a Path,
    pub(super) root: OwnedFd,
    pub(super) names: Names,
    pub(super) data: Data,
    pub(super) size: u64,
    /// Size of the file that the last stat told.
    pub(super) told: u64,
    /// Entry 0, and how a symbolic link leads to it.
    pub(super) first: Box<CStr>,
    pub(super) to_first: Box<CStr>,
    /// User and group of this process.
    pub(super) owner: (Uid, Gid),
    // Whether a listing told that the entry is the first one of its directory.
    found_first: bool,
    listed: bool,
    flat: bool,
    lengths: Lengths,
    traits: Box<[Trait]>,
    open: Option<OwnedFd>,
    listing: Box<[MaybeUninit<u8>]>,
    read: u64,
    written: u64,
}

/// What has to be known of a step beside its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Trait {
    // It opens a file that is appended to before it is closed.
    appends: bool,
    // Something was moved since the file was opened, so its position is not at its start.
    moved: bool,
}

impl<'a> Hand<'a> {
    /// Makes the directories that are not there yet, if anything is to be put into them.
    pub(super) fn new(
        tree: &Tree,
        worker: u32,
        owner: u32,
        path: &'a Path,
    ) -> Result<Self, Failure> {
        let set = &tree.set;
        let at = |operation| {
            move |errno| Failure { fault: Fault::whole(operation, errno), path: path.to_path_buf() }
        };
        let fills = tree.steps.iter().any(|step| adds(*step) || *step == TreeStep::RenameAcross);
        if fills {
            made(mkdir(path, DIRECTORY)).map_err(at(Operation::MakeDirectory))?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty()).map_err(at(Operation::Open))?;
        let mut names = Names::within(set, owner, path);
        if fills && !tree.steps.contains(&TreeStep::MakeParent) {
            make_directories(tree, &root, &mut names, path)?;
        }
        names.set(0);
        let first = Box::from(names.entry_name());
        let up = if set.spread == Spread::Flat { "" } else { "../" };
        let to_first = [up.as_bytes(), names.entry_name().to_bytes_with_nul()].concat();
        let to_first = CStr::from_bytes_with_nul(&to_first).expect("a name has no NUL").into();
        let lengths = Lengths::new(set, owner);
        let data = data(tree, worker, &lengths)
            .map_err(|fault| Failure { fault, path: path.to_path_buf() })?;
        let lists = tree.steps.contains(&TreeStep::List);
        let listing = vec![MaybeUninit::uninit(); if lists { LISTING } else { 0 }];
        Ok(Self {
            path,
            root,
            names,
            data,
            size: 0,
            told: 0,
            first,
            to_first,
            owner: (geteuid(), getegid()),
            found_first: false,
            listed: tree.order == TreeOrder::Listed,
            flat: set.spread == Spread::Flat,
            lengths,
            traits: traits(&tree.steps),
            open: None,
            listing: listing.into_boxed_slice(),
            read: 0,
            written: 0,
        })
    }

    /// The directory of the set.
    pub(super) fn root(&self) -> &'a Path {
        self.path
    }

    /// The entry of this number is next.
    #[inline]
    pub(super) fn turn_to(&mut self, entry: u64) {
        self.names.set(entry);
        self.size = self.lengths.of(entry);
    }

    /// The same for one of a directory that was listed; whether it is the first one there.
    pub(super) fn turn_to_listed(&mut self, entry: u64, first: bool) {
        self.found_first = first;
        self.turn_to(entry);
    }

    /// The same with the name that the directory has for it.
    pub(super) fn turn_to_found(&mut self, entry: u64, name: &[u8], first: bool) {
        self.found_first = first;
        self.names.set_found(entry, name);
        self.size = self.lengths.of(entry);
    }

    /// Whether the entry is the first one of its directory.
    pub(super) fn begins(&self) -> bool {
        if self.listed { self.found_first } else { self.names.begins() }
    }

    /// Bytes read and written since the last call.
    #[inline]
    pub(super) fn take_moved(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.read), std::mem::take(&mut self.written))
    }

    /// The failure of something done to the directory of the entry.
    #[cold]
    pub(super) fn at_directory(&mut self, fault: Fault) -> Failure {
        Failure { fault, path: self.directory_path() }
    }

    fn directory_path(&mut self) -> PathBuf {
        if self.flat { self.path.to_path_buf() } else { joined(self.path, self.names.directory()) }
    }

    /// What a step was about, for errors.
    pub(super) fn path(&mut self, step: TreeStep) -> PathBuf {
        if matches!(step, TreeStep::MakeParent | TreeStep::FsyncDirectory | TreeStep::List) {
            return self.directory_path();
        }
        let suffixes = [
            (TreeStep::StatMissing, &b".none"[..]),
            (TreeStep::RenameBack, b".new"),
            (TreeStep::UnlinkLink, b".link"),
        ];
        let name = match suffixes.iter().find(|(other, _)| *other == step) {
            Some((_, suffix)) => self.names.with(suffix).1,
            None => self.names.entry_name(),
        };
        joined(self.path, name)
    }

    /// One step of the entry at hand; `index` is its place among the steps.
    #[inline]
    pub(super) fn step(&mut self, step: TreeStep, index: usize) -> Result<(), Fault> {
        match step {
            TreeStep::MakeParent => self.make_parent(),
            TreeStep::Create => {
                self.open_file(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, index)
            }
            TreeStep::Open => self.open_file(OFlags::RDWR, index),
            TreeStep::OpenRead => self.open_file(OFlags::RDONLY, index),
            TreeStep::Write => self.write(index),
            TreeStep::Append => self.append(),
            TreeStep::Read => self.read(index),
            TreeStep::Fetch => self.fetch(),
            TreeStep::Fsync => flush(opened(&self.open)),
            TreeStep::FsyncDirectory => self.flush_directory(),
            TreeStep::Close => close(self.open.take().expect("checked: a file is open")),
            TreeStep::Stat => self.stat(),
            TreeStep::StatMissing => self.stat_missing(),
            TreeStep::Chmod => self.chmod(),
            TreeStep::Chown => self.chown(),
            TreeStep::SetTimes => self.set_times(),
            TreeStep::SetXattr => self.set_attribute(),
            TreeStep::GetXattr => self.get_attribute(),
            TreeStep::Truncate => self.truncate(),
            TreeStep::Allocate => self.allocate(FallocateFlags::empty(), Operation::Allocate),
            TreeStep::PunchHole => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                self.allocate(flags, Operation::PunchHole)
            }
            TreeStep::Rename => self.rename(),
            TreeStep::RenameBack => self.rename_back(),
            TreeStep::RenameAcross => self.rename_across(),
            TreeStep::Link => self.link(),
            TreeStep::UnlinkLink => self.unlink_link(),
            TreeStep::LinkFirst => self.link_first(),
            TreeStep::SymlinkFirst => self.symlink_first(),
            TreeStep::Symlink => self.symlink(),
            TreeStep::Unlink => self.unlink(),
            TreeStep::Mknod => self.make_node(),
            TreeStep::Mkdir => self.make_directory(),
            TreeStep::Rmdir => self.remove_directory(),
            TreeStep::List => self.list(),
        }
    }

    #[inline]
    fn open_file(&mut self, mut flags: OFlags, index: usize) -> Result<(), Fault> {
        flags.set(OFlags::APPEND, self.traits[index].appends);
        let file = openat(&self.root, self.names.entry_name(), flags | OFlags::CLOEXEC, FILE)
            .map_err(|errno| Fault::whole(Operation::Open, errno))?;
        self.open = Some(file);
        Ok(())
    }

    /// The directory of the entry.
    pub(super) fn open_directory(&mut self) -> Result<OwnedFd, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.root, self.names.directory(), flags, Mode::empty())
            .map_err(|errno| Fault::whole(Operation::Open, errno))
    }

    fn flush_directory(&mut self) -> Result<(), Fault> {
        if self.flat {
            return flush(&self.root);
        }
        let directory = self.open_directory()?;
        flush(&directory)?;
        close(directory)
    }

    /// The whole file, record by record.
    fn write(&mut self, index: usize) -> Result<(), Fault> {
        let placed = self.traits[index].moved;
        let mut offset = 0;
        while offset < self.size {
            let left = usize::try_from(self.size - offset).unwrap_or(usize::MAX);
            let at = placed.then_some(offset);
            offset += self.put(at, offset, left.min(self.data.record()))?;
        }
        Ok(())
    }

    /// One record, which the kernel puts to the end.
    fn append(&mut self) -> Result<(), Fault> {
        let mut left = self.data.record();
        while left > 0 {
            let done = self.put(None, self.size, left)?;
            left -= usize::try_from(done).unwrap_or(left);
        }
        Ok(())
    }

    /// write(2), or pwrite(2) where it goes to another place than the position; `offset` is for
    /// errors.
    fn put(&mut self, at: Option<u64>, offset: u64, len: usize) -> Result<u64, Fault> {
        let file = opened(&self.open);
        let bytes = self.data.write(len);
        let operation = Operation::Write;
        let call = || match at {
            None => write(file, bytes),
            Some(at) => pwrite(file, bytes, at),
        };
        match again(call) {
            Ok(0) => Err(Fault::Nothing { operation, offset }),
            Ok(done) => {
                self.written += done as u64;
                Ok(done as u64)
            }
            Err(errno) => Err(failed(operation, offset, errno)),
        }
    }

    /// To the end of the file, which a read tells that answers less than it was asked for.
    fn read(&mut self, index: usize) -> Result<(), Fault> {
        let placed = self.traits[index].moved;
        let file = opened(&self.open);
        let operation = Operation::Read;
        let record = self.data.record();
        let mut offset = 0;
        loop {
            let buffer = self.data.read();
            let done = again(|| match placed {
                false => read(file, &mut *buffer),
                true => pread(file, &mut *buffer, offset),
            })
            .map_err(|errno| failed(operation, offset, errno))?;
            offset += done as u64;
            if done < record {
                break;
            }
        }
        self.read += offset;
        if offset < self.size {
            return Err(Fault::Nothing { operation, offset });
        }
        Ok(())
    }

    /// So many bytes as the last stat told, of a file that is opened for it.
    fn fetch(&mut self) -> Result<(), Fault> {
        if self.told == 0 {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.root, self.names.entry_name(), flags, Mode::empty())
            .map_err(|errno| Fault::whole(Operation::Open, errno))?;
        let operation = Operation::Read;
        let mut offset = 0;
        while offset < self.told {
            let left = usize::try_from(self.told - offset).unwrap_or(usize::MAX);
            let buffer = self.data.read();
            let len = buffer.len().min(left);
            let done = again(|| read(&file, &mut buffer[..len]))
                .map_err(|errno| failed(operation, offset, errno))?;
            if done == 0 {
                return Err(Fault::Nothing { operation, offset });
            }
            offset += done as u64;
        }
        self.read += offset;
        close(file)
    }

    fn allocate(&mut self, flags: FallocateFlags, operation: Operation) -> Result<(), Fault> {
        let file = opened(&self.open);
        let len = self.data.record() as u64;
        again(|| fallocate(file, flags, 0, len)).map_err(|errno| Fault::whole(operation, errno))
    }

    /// All names of the directory of the entry.
    fn list(&mut self) -> Result<(), Fault> {
        let directory = self.open_directory()?;
        let mut entries = RawDir::new(&directory, &mut self.listing);
        while let Some(entry) = entries.next() {
            entry.map_err(|errno| Fault::whole(Operation::List, errno))?;
        }
        close(directory)
    }

    /// The directory of the set.
    #[inline]
    pub(super) fn at(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// The directories of the entries, and the one that they are renamed into.
fn make_directories(
    tree: &Tree,
    root: &OwnedFd,
    names: &mut Names,
    path: &Path,
) -> Result<(), Failure> {
    let make = |name: &CStr| {
        made(mkdirat(root, name, DIRECTORY)).map_err(|errno| Failure {
            fault: Fault::whole(Operation::MakeDirectory, errno),
            path: joined(path, name),
        })
    };
    let each = each(&tree.set);
    for directory in 0..directories(&tree.set) {
        names.enter(directory.saturating_mul(each));
        make(names.directory())?;
    }
    if tree.steps.contains(&TreeStep::RenameAcross) { make(ACROSS) } else { Ok(()) }
}

/// Memory for what is moved.
fn data(tree: &Tree, worker: u32, lengths: &Lengths) -> Result<Data, Fault> {
    Data::new(&tree.set, worker, uses(tree, lengths)).ok_or(short(tree))
}

/// That there is no memory for records so large.
pub(super) fn short(tree: &Tree) -> Fault {
    Fault::Memory { what: Memory::Buffers, bytes: tree.set.record.0, errno: libc::ENOMEM }
}

/// What the steps need memory for.
pub(super) fn uses(tree: &Tree, lengths: &Lengths) -> Uses {
    let has = |steps: &[TreeStep]| tree.steps.iter().any(|step| steps.contains(step));
    let record = tree.set.record.0;
    let reads = has(&[TreeStep::Read, TreeStep::Fetch]);
    // These are of one record whatever the sizes are. A read that is asked for more than there is
    // left tells that this was the end.
    let whole = has(&[TreeStep::Append, TreeStep::Allocate, TreeStep::PunchHole]);
    let most = if whole || reads { record } else { record.min(lengths.most()) };
    Uses {
        record: if reads { most.max(1) } else { most },
        reads,
        writes: has(&[TreeStep::Append, TreeStep::Write]),
        tag: tag(&format!("{:?} {:?}", tree.steps, tree.set.naming)),
    }
}

fn opened(file: &Option<OwnedFd>) -> &OwnedFd {
    file.as_ref().expect("checked: a file is open")
}

fn flush(file: &OwnedFd) -> Result<(), Fault> {
    again(|| fsync(file)).map_err(|errno| Fault::whole(Operation::Flush, errno))
}

/// What has to be known of each step.
fn traits(steps: &[TreeStep]) -> Box<[Trait]> {
    let opens = |step| matches!(step, TreeStep::Create | TreeStep::Open | TreeStep::OpenRead);
    let moves = |step| matches!(step, TreeStep::Write | TreeStep::Read | TreeStep::Append);
    let appended = |rest: &[TreeStep]| {
        rest.iter().take_while(|step| **step != TreeStep::Close).any(|s| *s == TreeStep::Append)
    };
    let mut moved = false;
    let known = |(index, step): (usize, &TreeStep)| {
        if opens(*step) {
            moved = false;
        }
        let before = moved;
        moved |= moves(*step);
        Trait { appends: opens(*step) && appended(&steps[index..]), moved: before }
    };
    steps.iter().enumerate().map(known).collect()
}

/// Makes an interrupted call again.
pub(super) fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// A directory that is there already is as good as a new one.
pub(super) fn made(answer: Result<(), Errno>) -> Result<(), Errno> {
    if answer == Err(Errno::EXIST) { Ok(()) } else { answer }
}

fn joined(root: &Path, name: &CStr) -> PathBuf {
    root.join(OsStr::from_bytes(name.to_bytes()))
}

fn failed(operation: Operation, offset: u64, errno: Errno) -> Fault {
    Fault::Os { operation, offset: Some(offset), errno: errno.raw_os_error() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_know_what_comes_and_what_was_before() {
        use TreeStep::{Append, Close, Create, Open, Read, Write};
        let known = |appends, moved| Trait { appends, moved };
        let (plain, placed) = (known(false, false), known(false, true));
        let steps = [Create, Write, Append, Close, Open, Read, Read, Close, Open, Write, Close];
        let expected = [
            known(true, false),
            plain,
            placed,
            placed,
            plain,
            plain,
            placed,
            placed,
            plain,
            plain,
            placed,
        ];
        assert_eq!(*traits(&steps), expected);
    }
}

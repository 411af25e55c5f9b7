//! Execution of steps: the current entry, the open file, and memory for both.
//!
//! This module contains the steps on open files and directories; those on names are in
//! [`super::named`].

use std::{
    ffi::CStr,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use model::phase::{Spread, Tree, TreeOrder, TreeStep};
use rustix::{
    fs::{
        FallocateFlags, Gid, Mode, OFlags, RawDir, Uid, fallocate, fsync, mkdir, mkdirat, open,
        openat,
    },
    io::{pread, pwrite, read, write},
    process::{getegid, geteuid},
};

use super::{
    block::blocks,
    walk::{LISTING, adds},
};
use crate::{
    calls::{again, failed, joined, made},
    error::{Failure, Fault, Memory, Operation},
    io::close,
    set::{ACROSS, Data, EntryData, Lengths, Names, Uses, directories, each, tag},
};

/// Modes of new directories and new files.
pub(super) const DIRECTORY: Mode = Mode::RWXU;
pub(super) const FILE: Mode = Mode::from_raw_mode(0o600);

/// Context of steps; see the module.
pub(super) struct TreeContext<'a> {
    path: &'a Path,
    pub(super) root: OwnedFd,
    pub(super) names: Names,
    pub(super) data: Data,
    pub(super) blocks: EntryData,
    /// Names of a second entry, if entries are renamed in a ring.
    pub(super) ring: Option<Box<Names>>,
    /// Number of entries of the owner.
    pub(super) entries: u64,
    pub(super) size: u64,
    /// File size reported by the last stat.
    pub(super) stat_size: u64,
    /// Entry 0, and the target of symbolic links to it.
    pub(super) first: Box<CStr>,
    pub(super) to_first: Box<CStr>,
    /// User and group of this process.
    pub(super) owner: (Uid, Gid),
    // True if the entry is the first one of a directory listing.
    found_first: bool,
    listed: bool,
    flat: bool,
    lengths: Lengths,
    step_infos: Box<[StepInfo]>,
    pub(super) open: Option<OwnedFd>,
    listing: Box<[MaybeUninit<u8>]>,
    pub(super) read: u64,
    pub(super) written: u64,
}

/// Properties of a step that depend on the other steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StepInfo {
    // The step opens a file that is appended to before it is closed.
    appends: bool,
    // Data was transferred since the file was opened, so its position is not at the start.
    moved: bool,
}

impl<'a> TreeContext<'a> {
    /// Prepares the context. Creates missing directories if steps create entries in them.
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
        let made_before = matches!(set.spread, Spread::Tree(_));
        if fills && !made_before && !tree.steps.contains(&TreeStep::MakeParent) {
            make_directories(tree, &root, &mut names, path)?;
        }
        names.set(0);
        let first = Box::from(names.entry_name());
        let up = if set.spread == Spread::Flat { "" } else { "../" };
        let to_first = [up.as_bytes(), names.entry_name().to_bytes_with_nul()].concat();
        let to_first = CStr::from_bytes_with_nul(&to_first).expect("a name has no NUL").into();
        let lengths = Lengths::new(set, owner);
        let at_path = |fault| Failure { fault, path: path.to_path_buf() };
        let data = data(tree, worker, &lengths).map_err(at_path)?;
        let blocks = blocks(tree).map_err(at_path)?;
        let ring = tree.steps.contains(&TreeStep::RenameRing);
        let lists = tree.steps.contains(&TreeStep::List);
        let listing = vec![MaybeUninit::uninit(); if lists { LISTING } else { 0 }];
        Ok(Self {
            path,
            root,
            names,
            data,
            blocks,
            ring: ring.then(|| Box::new(Names::new(set, owner))),
            entries: set.files,
            size: 0,
            stat_size: 0,
            first,
            to_first,
            owner: (geteuid(), getegid()),
            found_first: false,
            listed: tree.order == TreeOrder::Listed,
            flat: set.spread == Spread::Flat,
            lengths,
            step_infos: step_infos(&tree.steps),
            open: None,
            listing: listing.into_boxed_slice(),
            read: 0,
            written: 0,
        })
    }

    /// Directory of the set.
    pub(super) fn root(&self) -> &'a Path {
        self.path
    }

    /// Selects the entries of another worker. Their directory must be the same.
    pub(super) fn select_owner(&mut self, owner: u32) {
        self.names.select_owner(owner);
        self.lengths.select(owner);
        if let Some(ring) = &mut self.ring {
            ring.select_owner(owner);
        }
    }

    /// Selects the entry with this number.
    #[inline]
    pub(super) fn select(&mut self, entry: u64) {
        self.names.set(entry);
        self.size = self.lengths.of(entry);
    }

    /// Selects an entry of a listed directory; `first` for the first one.
    pub(super) fn select_listed(&mut self, entry: u64, first: bool) {
        self.found_first = first;
        self.select(entry);
    }

    /// Selects an entry by the name found in the directory.
    pub(super) fn select_found(&mut self, entry: u64, name: &[u8], first: bool) {
        self.found_first = first;
        self.names.set_found(entry, name);
        self.size = self.lengths.of(entry);
    }

    /// True if the entry is the first one of its directory.
    pub(super) fn begins(&self) -> bool {
        if self.listed { self.found_first } else { self.names.begins() }
    }

    /// Bytes read and written since the last call.
    #[inline]
    pub(super) fn take_bytes_moved(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.read), std::mem::take(&mut self.written))
    }

    /// Failure of an operation on the directory of the entry.
    #[cold]
    pub(super) fn at_directory(&mut self, fault: Fault) -> Failure {
        Failure { fault, path: self.directory_path() }
    }

    fn directory_path(&mut self) -> PathBuf {
        if self.flat { self.path.to_path_buf() } else { joined(self.path, self.names.directory()) }
    }

    /// Path of a step, for errors.
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

    /// Runs one step on the current entry; `index` is its position among the steps.
    #[inline]
    pub(super) fn step(&mut self, step: TreeStep, index: usize) -> Result<(), Fault> {
        match step {
            TreeStep::MakeParent => self.make_parent(),
            TreeStep::Create => {
                self.open_file(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, index)
            }
            TreeStep::OpenCreate => self.open_file(OFlags::RDWR | OFlags::CREATE, index),
            TreeStep::Open => self.open_file(OFlags::RDWR, index),
            TreeStep::OpenRead => self.open_file(OFlags::RDONLY, index),
            TreeStep::Write => self.write(index),
            TreeStep::WriteBlock => self.write_block(),
            TreeStep::Append => self.append(),
            TreeStep::Read => self.read(index),
            TreeStep::ReadBlock => self.read_block(),
            TreeStep::VerifyBlock => self.verify_block(),
            TreeStep::Fetch => self.fetch(),
            TreeStep::Fsync => sync_file(opened(&self.open)),
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
            TreeStep::RenameRing => self.rename_ring(),
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
        flags.set(OFlags::APPEND, self.step_infos[index].appends);
        let file = openat(&self.root, self.names.entry_name(), flags | OFlags::CLOEXEC, FILE)
            .map_err(|errno| Fault::whole(Operation::Open, errno))?;
        self.open = Some(file);
        Ok(())
    }

    /// Opens the directory of the entry.
    pub(super) fn open_directory(&mut self) -> Result<OwnedFd, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.root, self.names.directory(), flags, Mode::empty())
            .map_err(|errno| Fault::whole(Operation::Open, errno))
    }

    fn flush_directory(&mut self) -> Result<(), Fault> {
        if self.flat {
            return sync_file(&self.root);
        }
        let directory = self.open_directory()?;
        sync_file(&directory)?;
        close(directory)
    }

    /// Writes the whole file, block by block.
    fn write(&mut self, index: usize) -> Result<(), Fault> {
        let placed = self.step_infos[index].moved;
        let mut offset = 0;
        while offset < self.size {
            let left = usize::try_from(self.size - offset).unwrap_or(usize::MAX);
            let at = placed.then_some(offset);
            offset += self.put(at, offset, left.min(self.data.block_size()))?;
        }
        Ok(())
    }

    /// Writes one block, which the kernel appends.
    fn append(&mut self) -> Result<(), Fault> {
        let mut left = self.data.block_size();
        while left > 0 {
            let done = self.put(None, self.size, left)?;
            left -= usize::try_from(done).unwrap_or(left);
        }
        Ok(())
    }

    /// write(2), or pwrite(2) if `at` is given; `offset` is for errors.
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

    /// Reads to the end of the file, which a short read indicates.
    fn read(&mut self, index: usize) -> Result<(), Fault> {
        let placed = self.step_infos[index].moved;
        let file = opened(&self.open);
        let operation = Operation::Read;
        let block_size = self.data.block_size();
        let mut offset = 0;
        loop {
            let buffer = self.data.read();
            let done = again(|| match placed {
                false => read(file, &mut *buffer),
                true => pread(file, &mut *buffer, offset),
            })
            .map_err(|errno| failed(operation, offset, errno))?;
            offset += done as u64;
            if done < block_size {
                break;
            }
        }
        self.read += offset;
        if offset < self.size {
            return Err(Fault::Nothing { operation, offset });
        }
        Ok(())
    }

    /// Opens the file and reads the number of bytes reported by the last stat.
    fn fetch(&mut self) -> Result<(), Fault> {
        if self.stat_size == 0 {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.root, self.names.entry_name(), flags, Mode::empty())
            .map_err(|errno| Fault::whole(Operation::Open, errno))?;
        let operation = Operation::Read;
        let mut offset = 0;
        while offset < self.stat_size {
            let left = usize::try_from(self.stat_size - offset).unwrap_or(usize::MAX);
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
        let len = self.data.block_size() as u64;
        again(|| fallocate(file, flags, 0, len)).map_err(|errno| Fault::whole(operation, errno))
    }

    /// Lists all names of the directory of the entry.
    fn list(&mut self) -> Result<(), Fault> {
        let directory = self.open_directory()?;
        let mut entries = RawDir::new(&directory, &mut self.listing);
        while let Some(entry) = entries.next() {
            entry.map_err(|errno| Fault::whole(Operation::List, errno))?;
        }
        close(directory)
    }

    /// Descriptor of the directory of the set.
    #[inline]
    pub(super) fn at(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// Creates the directories of the entries, and the target directory of renames.
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

/// Allocates the memory for data transfers.
fn data(tree: &Tree, worker: u32, lengths: &Lengths) -> Result<Data, Fault> {
    Data::new(&tree.set, worker, uses(tree, lengths)).ok_or(short(tree))
}

/// Fault for a block size that does not fit in memory.
pub(super) fn short(tree: &Tree) -> Fault {
    Fault::Memory { what: Memory::Buffers, bytes: tree.set.block_size.0, errno: libc::ENOMEM }
}

/// Use of memory by the steps.
pub(super) fn uses(tree: &Tree, lengths: &Lengths) -> Uses {
    let has = |steps: &[TreeStep]| tree.steps.iter().any(|step| steps.contains(step));
    let block_size = tree.set.block_size.0;
    let reads = has(&[TreeStep::Read, TreeStep::Fetch]);
    // These steps use one block regardless of the file size. A read that requests more than the
    // rest detects the end of the file.
    let whole = has(&[TreeStep::Append, TreeStep::Allocate, TreeStep::PunchHole]);
    let most = if whole || reads { block_size } else { block_size.min(lengths.most()) };
    Uses {
        block_size: if reads { most.max(1) } else { most },
        reads,
        writes: has(&[TreeStep::Append, TreeStep::Write]),
        tag: tag(&format!("{:?} {:?}", tree.steps, tree.set.naming)),
    }
}

pub(super) fn opened(file: &Option<OwnedFd>) -> &OwnedFd {
    file.as_ref().expect("checked: a file is open")
}

fn sync_file(file: &OwnedFd) -> Result<(), Fault> {
    again(|| fsync(file)).map_err(|errno| Fault::whole(Operation::Sync, errno))
}

/// Determines the properties of each step.
fn step_infos(steps: &[TreeStep]) -> Box<[StepInfo]> {
    let opens = |step| {
        use TreeStep::{Create, Open, OpenCreate, OpenRead};
        matches!(step, Create | OpenCreate | Open | OpenRead)
    };
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
        StepInfo { appends: opens(*step) && appended(&steps[index..]), moved: before }
    };
    steps.iter().enumerate().map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_properties_depend_on_the_other_steps() {
        use TreeStep::{Append, Close, Create, Open, Read, Write};
        let known = |appends, moved| StepInfo { appends, moved };
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
        assert_eq!(*step_infos(&steps), expected);
    }
}

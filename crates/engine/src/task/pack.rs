//! Packing a directory with all below it, as `tar -c` does, and the tape that archives are written
//! on.

use std::{
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use model::phase::Compression;
use rustix::fs::{AtFlags, CWD, FileType, Stat, fstat, readlinkat, statat};
use tar::{EntryType, Header};

use super::{
    Place,
    archive::Output,
    data,
    hand::{Entry, Hand, below, entries, failed, open_directory},
    tree::strange,
};
use crate::{EngineError, error::Operation};

/// Unit of a tar archive.
const BLOCK: usize = 512;
/// An archive is filled up to a multiple of this, as tar(1) does: 20 blocks.
const RECORD: u64 = 20 * BLOCK as u64;
/// Name of the entries that hold names too long for a header (GNU tar manual, "Basic Tar Format").
const LONG: &str = "././@LongLink";

/// What a header says.
pub(super) struct Facts<'a> {
    /// What the entry is.
    pub(super) kind: EntryType,
    /// Its path.
    pub(super) path: &'a [u8],
    /// Where a symbolic link leads.
    pub(super) link: Option<&'a [u8]>,
    /// Permissions.
    pub(super) mode: u32,
    /// Owner and group.
    pub(super) owner: (u32, u32),
    /// Seconds since 1970.
    pub(super) mtime: u64,
    /// Bytes of data that follow.
    pub(super) size: u64,
}

/// A tar archive that is being written.
pub(super) struct Tape<'a> {
    output: Output<'a>,
    written: u64,
}

impl<'a> Tape<'a> {
    /// Begins with nothing on it.
    pub(super) fn new(output: Output<'a>) -> Self {
        Self { output, written: 0 }
    }

    /// Adds bytes.
    pub(super) fn put(&mut self, bytes: &[u8], hand: &mut Hand<'_>) -> Result<(), EngineError> {
        self.output.put(bytes)?;
        self.written += bytes.len() as u64;
        self.output.note(hand)
    }

    /// Adds the header of an entry; names that do not fit go before it, as GNU tar has them.
    pub(super) fn header(
        &mut self,
        facts: &Facts<'_>,
        hand: &mut Hand<'_>,
    ) -> Result<(), EngineError> {
        let mut header = Header::new_gnu();
        header.set_entry_type(facts.kind);
        let path = Path::new(OsStr::from_bytes(facts.path));
        if facts.path.len() > 100 || header.set_path(path).is_err() {
            self.long(EntryType::GNULongName, facts.path, hand)?;
            fill(&mut header.as_old_mut().name, facts.path);
        } else {
            // The crate leaves out what its idea of a path does not need, such as `./`.
            fill(&mut header.as_old_mut().name, facts.path);
        }
        if let Some(link) = facts.link {
            if link.len() > 100 {
                self.long(EntryType::GNULongLink, link, hand)?;
            }
            fill(&mut header.as_old_mut().linkname, link);
        }
        header.set_mode(facts.mode & 0o7777);
        header.set_uid(u64::from(facts.owner.0));
        header.set_gid(u64::from(facts.owner.1));
        header.set_mtime(facts.mtime);
        header.set_size(facts.size);
        header.set_cksum();
        self.put(header.as_bytes(), hand)
    }

    /// An entry that holds a name, ended by a NUL.
    fn long(
        &mut self,
        kind: EntryType,
        name: &[u8],
        hand: &mut Hand<'_>,
    ) -> Result<(), EngineError> {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        fill(&mut header.as_old_mut().name, LONG.as_bytes());
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(name.len() as u64 + 1);
        header.set_cksum();
        self.put(header.as_bytes(), hand)?;
        self.put(name, hand)?;
        self.put(&[0], hand)?;
        self.pad(hand)
    }

    /// Fills the block up with zeros.
    pub(super) fn pad(&mut self, hand: &mut Hand<'_>) -> Result<(), EngineError> {
        self.zeros(self.written.next_multiple_of(BLOCK as u64) - self.written, hand)
    }

    fn zeros(&mut self, mut left: u64, hand: &mut Hand<'_>) -> Result<(), EngineError> {
        let zeros = [0; BLOCK];
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            self.put(&zeros[..len], hand)?;
            left -= len as u64;
        }
        Ok(())
    }

    /// Adds the end of the archive: two blocks of zeros, and what fills the record.
    pub(super) fn finish(mut self, hand: &mut Hand<'_>) -> Result<(), EngineError> {
        let end = (self.written + 2 * BLOCK as u64).next_multiple_of(RECORD);
        self.zeros(end - self.written, hand)?;
        self.output.finish(hand)
    }
}

/// Copies as much of a name as fits into a field of zeros.
fn fill(field: &mut [u8], name: &[u8]) {
    field.fill(0);
    let len = field.len().min(name.len());
    field[..len].copy_from_slice(&name[..len]);
}

/// As `tar -c -C DIRECTORY .`: entries in the order in which directories list them, paths beginning
/// with `./`. What has several names is packed once for each.
pub(super) fn pack(
    directory: &Place,
    archive: &Place,
    compression: Compression,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let root = open_directory(CWD, &directory.path, &directory.path)?;
    let mut tape = Tape::new(Output::create(archive, compression, hand)?);
    let mut path = b"./".to_vec();
    add_directory(root, directory, &mut path, &mut tape, hand)?;
    tape.finish(hand)
}

/// Adds a directory and everything in it; `path` ends with a slash, and is the same afterwards.
fn add_directory(
    directory: OwnedFd,
    place: &Place,
    path: &mut Vec<u8>,
    tape: &mut Tape<'_>,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let status =
        fstat(&directory).map_err(|errno| failed(Operation::Examine, &place.path, errno))?;
    tape.header(&facts(EntryType::Directory, path, &status, 0), hand)?;
    for Entry { name, kind } in entries(&directory, &place.path)? {
        let len = path.len();
        path.extend_from_slice(name.to_bytes());
        let below = Place { at: place.at, path: below(&place.path, &name) };
        match kind {
            FileType::Directory => {
                path.push(b'/');
                let child = open_directory(&directory, &*name, &below.path)?;
                add_directory(child, &below, path, tape, hand)?;
            }
            FileType::RegularFile => {
                let (file, status) = data::open(&directory, &*name, &below.path)?;
                add_file(&file, &status, &below, path, tape, hand)?;
            }
            FileType::Symlink => {
                let examine = |errno| failed(Operation::Examine, &below.path, errno);
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                let status = statat(&directory, &*name, flags).map_err(examine)?;
                let text = readlinkat(&directory, &*name, Vec::new()).map_err(examine)?;
                let own = facts(EntryType::Symlink, path, &status, 0);
                tape.header(&Facts { link: Some(text.to_bytes()), ..own }, hand)?;
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => return Err(strange(&below.path)),
        }
        path.truncate(len);
        hand.done(1)?;
    }
    Ok(())
}

fn add_file(
    file: &OwnedFd,
    status: &Stat,
    place: &Place,
    path: &[u8],
    tape: &mut Tape<'_>,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let size = u64::try_from(status.st_size).unwrap_or(0);
    tape.header(&facts(EntryType::Regular, path, status, size), hand)?;
    let mut left = size;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let len = data::get(file, place, most, hand)?;
        if len == 0 {
            let offset = model::Bytes(size - left);
            return Err(EngineError::EndOfFile { path: place.path.clone(), offset });
        }
        tape.output.put(&hand.buffer[..len])?;
        tape.written += len as u64;
        tape.output.note(hand)?;
        left -= len as u64;
    }
    tape.pad(hand)
}

fn facts<'a>(kind: EntryType, path: &'a [u8], status: &Stat, size: u64) -> Facts<'a> {
    Facts {
        kind,
        path,
        link: None,
        mode: status.st_mode,
        owner: (status.st_uid, status.st_gid),
        mtime: u64::try_from(status.st_mtime).unwrap_or(0),
        size,
    }
}

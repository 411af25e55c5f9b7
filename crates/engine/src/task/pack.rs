//! Packing of a directory tree, as by `tar -c`, and the writer of tar archives.

use std::{
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use model::phase::Compression;
use rustix::fs::{AtFlags, CWD, FileType, Stat, fstat, readlinkat, statat};
use tar::{EntryType, Header};

use super::{
    ResolvedPath,
    archive::Output,
    context::{Entry, TaskContext, below, entries, failed, open_directory},
    data,
    tree::unsupported_type,
};
use crate::{EngineError, error::Operation};

/// Block size of a tar archive.
const BLOCK: usize = 512;
/// Archives are padded to a multiple of this, as by tar(1): 20 blocks.
const RECORD: u64 = 20 * BLOCK as u64;
/// Name of entries that contain names too long for a header (GNU tar manual, "Basic Tar Format").
const LONG: &str = "././@LongLink";

/// Fields of a header.
pub(super) struct Facts<'a> {
    /// Entry type.
    pub(super) kind: EntryType,
    /// Path.
    pub(super) path: &'a [u8],
    /// Target of a symbolic link.
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

/// Writer of a tar archive.
pub(super) struct TarWriter<'a> {
    output: Output<'a>,
    written: u64,
}

impl<'a> TarWriter<'a> {
    /// Starts an empty archive.
    pub(super) fn new(output: Output<'a>) -> Self {
        Self { output, written: 0 }
    }

    /// Appends bytes.
    pub(super) fn put(
        &mut self,
        bytes: &[u8],
        context: &mut TaskContext<'_>,
    ) -> Result<(), EngineError> {
        self.output.put(bytes)?;
        self.written += bytes.len() as u64;
        self.output.note(context)
    }

    /// Appends the header of an entry. Names that do not fit are appended before it, as by GNU tar.
    pub(super) fn header(
        &mut self,
        facts: &Facts<'_>,
        context: &mut TaskContext<'_>,
    ) -> Result<(), EngineError> {
        let mut header = Header::new_gnu();
        header.set_entry_type(facts.kind);
        let path = Path::new(OsStr::from_bytes(facts.path));
        if facts.path.len() > 100 || header.set_path(path).is_err() {
            self.long(EntryType::GNULongName, facts.path, context)?;
            fill(&mut header.as_old_mut().name, facts.path);
        } else {
            // The crate omits parts of a path that it considers redundant, such as `./`.
            fill(&mut header.as_old_mut().name, facts.path);
        }
        if let Some(link) = facts.link {
            if link.len() > 100 {
                self.long(EntryType::GNULongLink, link, context)?;
            }
            fill(&mut header.as_old_mut().linkname, link);
        }
        header.set_mode(facts.mode & 0o7777);
        header.set_uid(u64::from(facts.owner.0));
        header.set_gid(u64::from(facts.owner.1));
        header.set_mtime(facts.mtime);
        header.set_size(facts.size);
        header.set_cksum();
        self.put(header.as_bytes(), context)
    }

    /// Appends an entry that contains a name with a trailing NUL.
    fn long(
        &mut self,
        kind: EntryType,
        name: &[u8],
        context: &mut TaskContext<'_>,
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
        self.put(header.as_bytes(), context)?;
        self.put(name, context)?;
        self.put(&[0], context)?;
        self.pad(context)
    }

    /// Pads the last block with zeros.
    pub(super) fn pad(&mut self, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
        self.zeros(self.written.next_multiple_of(BLOCK as u64) - self.written, context)
    }

    fn zeros(&mut self, mut left: u64, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
        let zeros = [0; BLOCK];
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            self.put(&zeros[..len], context)?;
            left -= len as u64;
        }
        Ok(())
    }

    /// Appends the end of the archive: two blocks of zeros, and padding of the record.
    pub(super) fn finish(mut self, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
        let end = (self.written + 2 * BLOCK as u64).next_multiple_of(RECORD);
        self.zeros(end - self.written, context)?;
        self.output.finish(context)
    }
}

/// Copies as much of a name as fits in a zeroed field.
fn fill(field: &mut [u8], name: &[u8]) {
    field.fill(0);
    let len = field.len().min(name.len());
    field[..len].copy_from_slice(&name[..len]);
}

/// Packs a directory as `tar -c -C DIRECTORY .` does: entries in the order of the directories,
/// paths beginning with `./`. A file with several names is packed once per name.
pub(super) fn pack(
    directory: &ResolvedPath,
    archive: &ResolvedPath,
    compression: Compression,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let root = open_directory(CWD, &directory.path, &directory.path)?;
    let mut tape = TarWriter::new(Output::create(archive, compression, context)?);
    let mut path = b"./".to_vec();
    add_directory(root, directory, &mut path, &mut tape, context)?;
    tape.finish(context)
}

/// Appends a directory and its contents; `path` ends with a slash, and is unchanged afterwards.
fn add_directory(
    directory: OwnedFd,
    place: &ResolvedPath,
    path: &mut Vec<u8>,
    tape: &mut TarWriter<'_>,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let status =
        fstat(&directory).map_err(|errno| failed(Operation::Examine, &place.path, errno))?;
    tape.header(&facts(EntryType::Directory, path, &status, 0), context)?;
    for Entry { name, kind } in entries(&directory, &place.path)? {
        let len = path.len();
        path.extend_from_slice(name.to_bytes());
        let below = ResolvedPath { at: place.at, path: below(&place.path, &name) };
        match kind {
            FileType::Directory => {
                path.push(b'/');
                let child = open_directory(&directory, &*name, &below.path)?;
                add_directory(child, &below, path, tape, context)?;
            }
            FileType::RegularFile => {
                let (file, status) = data::open(&directory, &*name, &below.path)?;
                add_file(&file, &status, &below, path, tape, context)?;
            }
            FileType::Symlink => {
                let examine = |errno| failed(Operation::Examine, &below.path, errno);
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                let status = statat(&directory, &*name, flags).map_err(examine)?;
                let text = readlinkat(&directory, &*name, Vec::new()).map_err(examine)?;
                let own = facts(EntryType::Symlink, path, &status, 0);
                tape.header(&Facts { link: Some(text.to_bytes()), ..own }, context)?;
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => return Err(unsupported_type(&below.path)),
        }
        path.truncate(len);
        context.done(1)?;
    }
    Ok(())
}

fn add_file(
    file: &OwnedFd,
    status: &Stat,
    place: &ResolvedPath,
    path: &[u8],
    tape: &mut TarWriter<'_>,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let size = u64::try_from(status.st_size).unwrap_or(0);
    tape.header(&facts(EntryType::Regular, path, status, size), context)?;
    let mut left = size;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let len = data::get(file, place, most, context)?;
        if len == 0 {
            let offset = model::Bytes(size - left);
            return Err(EngineError::EndOfFile { path: place.path.clone(), offset });
        }
        tape.output.put(&context.buffer[..len])?;
        tape.written += len as u64;
        tape.output.note(context)?;
        left -= len as u64;
    }
    tape.pad(context)
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

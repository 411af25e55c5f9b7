//! Archives: what they are compressed with, reading and writing their bytes, and fetching one that
//! the user has.
//!
//! Archives are tar (POSIX.1-1988 ustar, with the extensions of GNU and POSIX.1-2001 that the crate
//! `tar` reads), plain or in gzip (RFC 1952). What else can hold one is recognized by its magic
//! number, to say how to unpack it first.

use std::{
    cell::Cell,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    os::fd::OwnedFd,
    path::Path,
    rc::Rc,
};

use flate2::{bufread::MultiGzDecoder, write::GzEncoder};
use model::phase::{At, Compression};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, SeekFrom, fstat, openat, seek},
    io::Errno,
};

use super::{
    Place, data,
    hand::{Hand, close, failed},
};
use crate::{EngineError, error::Operation};

/// What gzip(1) does if not told otherwise.
const LEVEL: u32 = 6;

/// Magic numbers: program, suffix, first bytes (RFC 8878 for zstd, the formats' own documents for
/// the others).
const OTHERS: &[(&str, &[u8])] = &[
    ("xz", &[0xFD, b'7', b'z', b'X', b'Z', 0]),
    ("zstd", &[0x28, 0xB5, 0x2F, 0xFD]),
    ("bzip2", b"BZh"),
    ("lzip", b"LZIP"),
    ("lzop", &[0x89, b'L', b'Z', b'O']),
    ("lz4", &[0x04, 0x22, 0x4D, 0x18]),
    ("compress", &[0x1F, 0x9D]),
    ("zip", b"PK\x03\x04"),
];

/// A file as something to read from, by one call for each call.
struct Source {
    file: OwnedFd,
    count: Rc<Cell<u64>>,
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let done = super::hand::again(|| rustix::io::read(&self.file, &mut *into))?;
        self.count.set(self.count.get() + done as u64);
        Ok(done)
    }
}

/// The content of an archive, and what was read of its file.
pub(super) struct Input {
    content: Box<dyn BufRead>,
    count: Rc<Cell<u64>>,
    at: At,
}

impl Input {
    /// Opens an archive, and looks what it is compressed with.
    pub(super) fn open(archive: &Place, hand: &Hand<'_>) -> Result<Self, EngineError> {
        let (file, _) = data::open(CWD, &archive.path, &archive.path)?;
        Self::new(file, archive, hand)
    }

    fn new(file: OwnedFd, archive: &Place, hand: &Hand<'_>) -> Result<Self, EngineError> {
        let count = Rc::new(Cell::new(0));
        let source = Source { file, count: Rc::clone(&count) };
        let mut plain = BufReader::with_capacity(hand.buffer.len().max(512), source);
        let first = plain.fill_buf().map_err(|error| unreadable(&archive.path, &error))?;
        if let Some((program, _)) = OTHERS.iter().find(|(_, magic)| first.starts_with(magic)) {
            return Err(compressed(&archive.path, program));
        }
        let content: Box<dyn BufRead> = if first.starts_with(&[0x1F, 0x8B]) {
            let room = hand.buffer.len().max(512);
            Box::new(BufReader::with_capacity(room, MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        Ok(Self { content, count, at: archive.at })
    }

    /// The content, and what tells how much of the file was read.
    pub(super) fn into_parts(self) -> (Box<dyn BufRead>, Reads) {
        (self.content, Reads { count: self.count, at: self.at })
    }
}

/// How much of an archive was read.
pub(super) struct Reads {
    count: Rc<Cell<u64>>,
    at: At,
}

impl Reads {
    /// Counts what was read since the last call.
    pub(super) fn note(&self, hand: &mut Hand<'_>) -> Result<(), EngineError> {
        hand.has_read(self.at, self.count.take())
    }
}

fn compressed(path: &Path, program: &str) -> EngineError {
    let shown = path.display();
    let cure = match program {
        "zip" => format!("unpack it, and pack the tree again with `tar -cf NAME.tar {shown}`"),
        "compress" => format!("unpack it first with `uncompress {shown}`, and name the .tar"),
        _ => format!("unpack it first with `{program} -d -k {shown}`, and name the .tar"),
    };
    let problem = format!("it is compressed by {program}, which fslab does not read");
    EngineError::Archive { path: path.to_path_buf(), problem, cure }
}

/// What went wrong with reading an archive: the kernel's answer, or what is in it.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> EngineError {
    if let Some(errno) = Errno::from_io_error(error) {
        return failed(Operation::Read, path, errno);
    }
    EngineError::Archive {
        path: path.to_path_buf(),
        problem: format!("it is damaged, or no tar archive: {error}"),
        cure: "look at it with `tar -tvf`, and name a tar archive, plain or in gzip".into(),
    }
}

/// Checks that a path holds an archive that can be unpacked here, and copies it as it is.
pub(super) fn fetch(given: &Path, to: &Place, hand: &mut Hand<'_>) -> Result<(), EngineError> {
    let wrong = |problem: &str| EngineError::Archive {
        path: given.to_path_buf(),
        problem: problem.into(),
        cure: "give the path of a tar archive that this user may read, or `generated`".into(),
    };
    // Not of the trial: bytes read from it are not counted.
    let place = Place { at: At::Elsewhere, path: given.to_path_buf() };
    let opened = || {
        openat(CWD, given, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
            match errno {
                Errno::NOENT => wrong("there is no such file"),
                errno => failed(Operation::Open, given, errno),
            }
        })
    };
    let file = opened()?;
    let status = fstat(&file).map_err(|errno| failed(Operation::Examine, given, errno))?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(wrong("it is no file"));
    }
    let (content, _) = Input::new(opened()?, &place, hand)?.into_parts();
    let mut archive = tar::Archive::new(content);
    let mut entries = archive.entries().map_err(|error| unreadable(given, &error))?;
    match entries.next() {
        Some(Ok(_)) => {}
        Some(Err(error)) => return Err(unreadable(given, &error)),
        None => return Err(wrong("there is nothing in it")),
    }
    seek(&file, SeekFrom::Start(0)).map_err(|errno| failed(Operation::Seek, given, errno))?;
    let target = data::create(CWD, &to.path, Mode::from_raw_mode(0o644), &to.path)?;
    data::pump(&file, &place, &target, (to.at, &to.path), hand)?;
    close(target, &to.path)?;
    hand.done(1)
}

/// A file as something to write to, by one call for each call.
struct Sink {
    file: OwnedFd,
    count: Rc<Cell<u64>>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = super::hand::again(|| rustix::io::write(&self.file, bytes))?;
        self.count.set(self.count.get() + done as u64);
        Ok(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An archive that is being written.
pub(super) struct Output<'a> {
    stream: Stream,
    count: Rc<Cell<u64>>,
    to: &'a Place,
}

enum Stream {
    Plain(BufWriter<Sink>),
    Gzip(Box<GzEncoder<BufWriter<Sink>>>),
}

impl<'a> Output<'a> {
    /// Creates an archive that must not exist; it is written by the buffer.
    pub(super) fn create(
        to: &'a Place,
        compression: Compression,
        hand: &Hand<'_>,
    ) -> Result<Self, EngineError> {
        let file = data::create(CWD, &to.path, Mode::from_raw_mode(0o666), &to.path)?;
        let count = Rc::new(Cell::new(0));
        let sink = Sink { file, count: Rc::clone(&count) };
        let writer = BufWriter::with_capacity(hand.buffer.len(), sink);
        let stream = match compression {
            Compression::None => Stream::Plain(writer),
            Compression::Gzip => {
                let level = flate2::Compression::new(LEVEL);
                Stream::Gzip(Box::new(GzEncoder::new(writer, level)))
            }
        };
        Ok(Self { stream, count, to })
    }

    /// Adds bytes to the content.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let answer = match &mut self.stream {
            Stream::Plain(writer) => writer.write_all(bytes),
            Stream::Gzip(encoder) => encoder.write_all(bytes),
        };
        answer.map_err(|error| unwritable(&self.to.path, error))
    }

    /// Counts what was written since the last call.
    pub(super) fn note(&self, hand: &mut Hand<'_>) -> Result<(), EngineError> {
        hand.has_written(self.to.at, self.count.take())
    }

    /// Writes what is left, and closes the file.
    pub(super) fn finish(self, hand: &mut Hand<'_>) -> Result<(), EngineError> {
        let path = &self.to.path;
        let writer = match self.stream {
            Stream::Plain(writer) => Ok(writer),
            Stream::Gzip(encoder) => encoder.finish(),
        };
        let sink = writer
            .and_then(|writer| writer.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(|error| unwritable(path, error))?;
        close(sink.file, path)?;
        hand.has_written(self.to.at, self.count.take())
    }
}

fn unwritable(path: &Path, source: io::Error) -> EngineError {
    let (operation, path) = (Operation::Write, path.to_path_buf());
    EngineError::Io { operation, path, offset: None, source }
}

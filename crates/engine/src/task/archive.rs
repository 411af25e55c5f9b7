//! Archives: compression, reading and writing of their bytes, and copying a given archive.
//!
//! Archives are tar (POSIX.1-1988 ustar, with the extensions of GNU and POSIX.1-2001 that the crate
//! `tar` reads), plain or in gzip (RFC 1952). Other formats are recognized by magic number for a
//! hint on unpacking them first.

use std::{
    cell::Cell,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    os::fd::OwnedFd,
    path::Path,
    rc::Rc,
};

use flate2::{bufread::MultiGzDecoder, write::GzEncoder};
use model::phase::{Compression, TaskRoot};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, SeekFrom, fstat, openat, seek},
    io::Errno,
};

use super::{
    ResolvedPath,
    context::{TaskContext, close, failed},
    data,
};
use crate::{EngineError, error::Operation};

/// Default level of gzip(1).
const LEVEL: u32 = 6;

/// Magic numbers: program, first bytes (RFC 8878 for zstd, format documentation for the others).
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

/// Reader of a file, with one system call per call.
struct Source {
    file: OwnedFd,
    count: Rc<Cell<u64>>,
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let done = crate::calls::again(|| rustix::io::read(&self.file, &mut *into))?;
        self.count.set(self.count.get() + done as u64);
        Ok(done)
    }
}

/// Content of an archive, and the number of bytes read of its file.
pub(super) struct Input {
    content: Box<dyn BufRead>,
    count: Rc<Cell<u64>>,
    at: TaskRoot,
}

impl Input {
    /// Opens an archive and detects its compression.
    pub(super) fn open(
        archive: &ResolvedPath,
        context: &TaskContext<'_>,
    ) -> Result<Self, EngineError> {
        let (file, _) = data::open(CWD, &archive.path, &archive.path)?;
        Self::new(file, archive, context)
    }

    fn new(
        file: OwnedFd,
        archive: &ResolvedPath,
        context: &TaskContext<'_>,
    ) -> Result<Self, EngineError> {
        let count = Rc::new(Cell::new(0));
        let source = Source { file, count: Rc::clone(&count) };
        let mut plain = BufReader::with_capacity(context.buffer.len().max(512), source);
        let first = plain.fill_buf().map_err(|error| unreadable(&archive.path, &error))?;
        if let Some((program, _)) = OTHERS.iter().find(|(_, magic)| first.starts_with(magic)) {
            return Err(compressed(&archive.path, program));
        }
        let content: Box<dyn BufRead> = if first.starts_with(&[0x1F, 0x8B]) {
            let room = context.buffer.len().max(512);
            Box::new(BufReader::with_capacity(room, MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        Ok(Self { content, count, at: archive.at })
    }

    /// Content, and the counter of bytes read.
    pub(super) fn into_parts(self) -> (Box<dyn BufRead>, Reads) {
        (self.content, Reads { count: self.count, at: self.at })
    }
}

/// Counter of the bytes read of an archive.
pub(super) struct Reads {
    count: Rc<Cell<u64>>,
    at: TaskRoot,
}

impl Reads {
    /// Counts the bytes read since the last call.
    pub(super) fn note(&self, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
        context.has_read(self.at, self.count.take())
    }
}

fn compressed(path: &Path, program: &str) -> EngineError {
    let shown = path.display();
    let hint = match program {
        "zip" => format!("unpack it, and pack the tree with `tar -cf NAME.tar {shown}`"),
        "compress" => format!("unpack it first with `uncompress {shown}`, and use the .tar"),
        _ => format!("unpack it first with `{program} -d -k {shown}`, and use the .tar"),
    };
    let problem = format!("compression by {program} is not supported");
    EngineError::Archive { path: path.to_path_buf(), problem, hint }
}

/// Error of reading an archive: a failed system call, or invalid content.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> EngineError {
    if let Some(errno) = Errno::from_io_error(error) {
        return failed(Operation::Read, path, errno);
    }
    EngineError::Archive {
        path: path.to_path_buf(),
        problem: format!("damaged, or not a tar archive: {error}"),
        hint: "check it with `tar -tvf`; use a tar archive, plain or compressed by gzip".into(),
    }
}

/// Checks that a path is an archive that can be unpacked, and copies it unchanged.
pub(super) fn fetch(
    given: &Path,
    to: &ResolvedPath,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let wrong = |problem: &str| EngineError::Archive {
        path: given.to_path_buf(),
        problem: problem.into(),
        hint: "use the path of a tar archive readable by this user, or `generated`".into(),
    };
    // The given archive is not part of the trial, so bytes read from it are not counted.
    let place = ResolvedPath { at: TaskRoot::External, path: given.to_path_buf() };
    let opened = || {
        openat(CWD, given, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
            match errno {
                Errno::NOENT => wrong("no such file"),
                errno => failed(Operation::Open, given, errno),
            }
        })
    };
    let file = opened()?;
    let status = fstat(&file).map_err(|errno| failed(Operation::Examine, given, errno))?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(wrong("not a regular file"));
    }
    let (content, _) = Input::new(opened()?, &place, context)?.into_parts();
    let mut archive = tar::Archive::new(content);
    let mut entries = archive.entries().map_err(|error| unreadable(given, &error))?;
    match entries.next() {
        Some(Ok(_)) => {}
        Some(Err(error)) => return Err(unreadable(given, &error)),
        None => return Err(wrong("the file is empty")),
    }
    seek(&file, SeekFrom::Start(0)).map_err(|errno| failed(Operation::Seek, given, errno))?;
    let target = data::create(CWD, &to.path, Mode::from_raw_mode(0o644), &to.path)?;
    data::pump(&file, &place, &target, (to.at, &to.path), context)?;
    close(target, &to.path)?;
    context.done(1)
}

/// Writer to a file, with one system call per call.
struct Sink {
    file: OwnedFd,
    count: Rc<Cell<u64>>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = crate::calls::again(|| rustix::io::write(&self.file, bytes))?;
        self.count.set(self.count.get() + done as u64);
        Ok(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Archive that is being written.
pub(super) struct Output<'a> {
    stream: Stream,
    count: Rc<Cell<u64>>,
    to: &'a ResolvedPath,
}

enum Stream {
    Plain(BufWriter<Sink>),
    Gzip(Box<GzEncoder<BufWriter<Sink>>>),
}

impl<'a> Output<'a> {
    /// Creates an archive that must not exist; it is written in units of the buffer.
    pub(super) fn create(
        to: &'a ResolvedPath,
        compression: Compression,
        context: &TaskContext<'_>,
    ) -> Result<Self, EngineError> {
        let file = data::create(CWD, &to.path, Mode::from_raw_mode(0o666), &to.path)?;
        let count = Rc::new(Cell::new(0));
        let sink = Sink { file, count: Rc::clone(&count) };
        let writer = BufWriter::with_capacity(context.buffer.len(), sink);
        let stream = match compression {
            Compression::None => Stream::Plain(writer),
            Compression::Gzip => {
                let level = flate2::Compression::new(LEVEL);
                Stream::Gzip(Box::new(GzEncoder::new(writer, level)))
            }
        };
        Ok(Self { stream, count, to })
    }

    /// Appends bytes to the content.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let answer = match &mut self.stream {
            Stream::Plain(writer) => writer.write_all(bytes),
            Stream::Gzip(encoder) => encoder.write_all(bytes),
        };
        answer.map_err(|error| unwritable(&self.to.path, error))
    }

    /// Counts the bytes written since the last call.
    pub(super) fn note(&self, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
        context.has_written(self.to.at, self.count.take())
    }

    /// Writes the remaining data, and closes the file.
    pub(super) fn finish(self, context: &mut TaskContext<'_>) -> Result<(), EngineError> {
        let path = &self.to.path;
        let writer = match self.stream {
            Stream::Plain(writer) => Ok(writer),
            Stream::Gzip(encoder) => encoder.finish(),
        };
        let sink = writer
            .and_then(|writer| writer.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(|error| unwritable(path, error))?;
        close(sink.file, path)?;
        context.has_written(self.to.at, self.count.take())
    }
}

fn unwritable(path: &Path, source: io::Error) -> EngineError {
    let (operation, path) = (Operation::Write, path.to_path_buf());
    EngineError::Io { operation, path, offset: None, source }
}

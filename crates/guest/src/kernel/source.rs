//! Reads and decompresses untrusted files, with support for interruption and a limit of the output
//! size. Errors become a [`GuestError`] with the path of the file.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::GuestError;

/// Maximum size of a file in bytes. It limits the time to hash a file before the file is unpacked.
/// The source of Linux has 1.5 GiB as a tar archive, packages have less than 1 GiB.
const FILE_MAX: u64 = 2 << 30;
/// Memory limit of an xz dictionary, in KiB. The kernel's `scripts/xz_wrap.sh` uses up to 128 MiB;
/// the format allows 4 GiB.
const XZ_MEMORY_KIB: u32 = 160 << 10;
/// Memory limit of a zstd window, in bytes: the maximum of `zstd -22 --ultra`, which compresses
/// kernels (`scripts/Makefile.lib`).
const ZSTD_WINDOW: u64 = 128 << 20;
/// Decompressed size of a block of the legacy lz4 format (`doc/lz4_Frame_format.md` of lz4).
const LZ4_BLOCK: usize = 8 << 20;
/// Maximum compressed size of a block in the legacy lz4 format: incompressible data grows by 1/255
/// and 16 bytes (`LZ4_compressBound` in `lz4.h`).
const LZ4_PACKED_MAX: usize = LZ4_BLOCK + LZ4_BLOCK / 255 + 16;

/// Maximum length of a quoted message of a decompression library, in characters.
const MESSAGE_MAX: usize = 120;

/// Compression of a stream, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    /// None or unknown.
    None,
    /// Gzip, RFC 1952.
    Gzip,
    /// The xz file format.
    Xz,
    /// Zstandard, RFC 8878.
    Zstd,
    /// The legacy frame of lz4, as written by `lz4 -l`.
    Lz4,
    /// Known but unsupported compression of this name.
    Unsupported(&'static str),
}

impl Compression {
    /// Size of the magic numbers.
    pub(super) const MAGIC: usize = 6;

    /// Detects the compression of a stream. The kernel build offers these compressions
    /// (`init/Kconfig`, "Kernel compression mode"). The magic numbers are from `lib/decompress.c`.
    pub(crate) fn of(first: &[u8]) -> Self {
        match first {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0x02, 0x21, 0x4c, 0x18, ..] => Self::Lz4,
            [b'B', b'Z', b'h', ..] => Self::Unsupported("bzip2"),
            [0x5d, 0, 0, ..] => Self::Unsupported("lzma"),
            [0x89, b'L', b'Z', b'O', ..] => Self::Unsupported("lzo"),
            _ => Self::None,
        }
    }
}

/// File to read, with its interrupt flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// Path of the file, for messages.
    pub(crate) path: &'a Path,
    /// Flag that interrupts reading.
    pub(crate) interrupt: &'a AtomicBool,
}

impl<'a> Source<'a> {
    /// Opens the file.
    pub(crate) fn open(self) -> Result<File, GuestError> {
        let file = sys::input::open(self.path).map_err(|error| self.failed(error))?;
        let length = file.metadata().map_err(|error| self.failed(error))?.len();
        match length > FILE_MAX {
            false => Ok(file),
            true => Err(self.malformed(format!("is larger than {} GiB", FILE_MAX >> 30))),
        }
    }

    /// Creates an error about the contents of the file.
    pub(crate) fn malformed(self, why: impl Into<String>) -> GuestError {
        GuestError::Malformed { path: self.path.to_owned(), why: why.into() }
    }

    /// Converts a read error. Errors with an error number come from a system call, others from a
    /// decompressor.
    pub(crate) fn failed(self, error: io::Error) -> GuestError {
        if self.interrupt.load(Ordering::Relaxed) {
            GuestError::Interrupted
        } else if error.raw_os_error().is_some() {
            GuestError::io(format!("cannot read {}", self.path.display()))(error)
        } else if error.kind() == io::ErrorKind::UnexpectedEof {
            self.malformed("is truncated; copy it again")
        } else if error.kind() == io::ErrorKind::OutOfMemory {
            self.malformed("requires too much memory to be decompressed")
        } else {
            // Some messages quote the input.
            let text = error.to_string();
            let printable = |one: char| if one.is_control() { '?' } else { one };
            let text: String = text.chars().map(printable).take(MESSAGE_MAX).collect();
            self.malformed(format!("cannot be unpacked: {text}"))
        }
    }

    /// Fails if the work was interrupted.
    pub(crate) fn check(self) -> Result<(), GuestError> {
        if self.interrupt.load(Ordering::Relaxed) { Err(GuestError::Interrupted) } else { Ok(()) }
    }

    /// Returns a decompressor of `stream`. More than `limit` decompressed bytes are an error.
    pub(crate) fn unpacked<R: Read + 'a>(
        self,
        mut stream: R,
        limit: u64,
    ) -> Result<Watched<'a, Box<dyn Read + 'a>>, GuestError> {
        let mut first = Vec::with_capacity(Compression::MAGIC);
        let magic = Compression::MAGIC as u64;
        stream.by_ref().take(magic).read_to_end(&mut first).map_err(|error| self.failed(error))?;
        let compression = Compression::of(&first);
        let whole = io::Cursor::new(first).chain(BufReader::with_capacity(1 << 16, stream));
        let inner: Box<dyn Read + 'a> = match compression {
            Compression::None => Box::new(whole),
            Compression::Gzip => Box::new(flate2::bufread::GzDecoder::new(whole)),
            Compression::Xz => Box::new(Xz::new(whole)),
            Compression::Zstd => Box::new(
                ruzstd::decoding::StreamingDecoder::new_with_max_window_size(whole, ZSTD_WINDOW)
                    .map_err(|error| self.failed(io::Error::other(error)))?,
            ),
            Compression::Lz4 => Box::new(Lz4::new(whole).map_err(|error| self.failed(error))?),
            Compression::Unsupported(name) => {
                let why =
                    format!("is compressed by {name}, which is not supported; decompress it first");
                return Err(self.malformed(why));
            }
        };
        Ok(self.watched(inner, limit))
    }

    /// Wraps `stream` in a reader that fails if the work is interrupted or after more than `limit`
    /// bytes.
    pub(crate) fn watched<R: Read>(self, stream: R, limit: u64) -> Watched<'a, R> {
        Watched { stream, left: limit, interrupt: self.interrupt }
    }

    /// Writes a stream into a new file and returns its length in bytes.
    pub(crate) fn write_to(
        self,
        stream: &mut dyn Read,
        to: &Path,
        mode: u32,
    ) -> Result<u64, GuestError> {
        let write = || GuestError::io(format!("cannot write {}", to.display()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        let mut file = options.open(to).map_err(write())?;
        let mut buffer = vec![0; 1 << 18];
        let mut length = 0;
        loop {
            self.check()?;
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(length),
                Ok(read) => {
                    file.write_all(&buffer[..read]).map_err(write())?;
                    length += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }
}

/// Stream that fails if it is too long or interrupted.
#[derive(Debug)]
pub(crate) struct Watched<'a, R> {
    stream: R,
    left: u64,
    interrupt: &'a AtomicBool,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Not `ErrorKind::Interrupted`, after which callers retry.
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.stream.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other("its decompressed size exceeds the limit")),
        }
        Ok(read)
    }
}

/// Decompressor of one xz stream. The library's own reader is generic: it would be compiled without
/// optimization in tests, as a part of this crate.
struct Xz<R> {
    stream: R,
    decoder: lzma_rust2::XzStream,
}

impl<R: BufRead> Xz<R> {
    fn new(stream: R) -> Self {
        Self { stream, decoder: lzma_rust2::XzStream::new_mem_limit(false, XZ_MEMORY_KIB) }
    }
}

impl<R: BufRead> Read for Xz<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let packed = self.stream.fill_buf()?;
            let last = packed.is_empty();
            let action = if last { lzma_rust2::Action::Finish } else { lzma_rust2::Action::Run };
            let done = self.decoder.process(packed, buffer, action)?;
            self.stream.consume(done.bytes_consumed);
            if done.bytes_produced > 0 || done.status == lzma_rust2::Status::StreamEnd {
                return Ok(done.bytes_produced);
            }
            if buffer.is_empty() {
                return Ok(0);
            }
            if last {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Decompressor of the legacy frame of lz4: a magic number, then blocks, each preceded by its
/// compressed length. A block has 8 MiB of decompressed data, the last block possibly less
/// (`doc/lz4_Frame_format.md` of lz4).
struct Lz4<R> {
    stream: R,
    packed: Vec<u8>,
    block: Vec<u8>,
    /// Read position in `block`, and its end.
    at: usize,
    end: usize,
}

impl<R: Read> Lz4<R> {
    fn new(mut stream: R) -> io::Result<Self> {
        stream.read_exact(&mut [0; 4])?;
        Ok(Self { stream, packed: Vec::new(), block: vec![0; LZ4_BLOCK], at: 0, end: 0 })
    }

    /// Decompresses the next block. An empty block is the end of the stream.
    fn next(&mut self) -> io::Result<()> {
        (self.at, self.end) = (0, 0);
        let mut length = Vec::with_capacity(4);
        self.stream.by_ref().take(4).read_to_end(&mut length)?;
        if length.is_empty() {
            return Ok(());
        }
        let length: [u8; 4] =
            length.try_into().map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let length = u32::from_le_bytes(length);
        if length as usize > LZ4_PACKED_MAX {
            return Err(io::Error::other("an lz4 block is too long"));
        }
        self.packed.clear();
        self.stream.by_ref().take(length.into()).read_to_end(&mut self.packed)?;
        if self.packed.len() < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.end = lz4_flex::block::decompress_into(&self.packed, &mut self.block)
            .map_err(io::Error::other)?;
        if self.end == 0 { Err(io::Error::other("an lz4 block is empty")) } else { Ok(()) }
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.end {
            self.next()?;
        }
        let length = buffer.len().min(self.end - self.at);
        buffer[..length].copy_from_slice(&self.block[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests;

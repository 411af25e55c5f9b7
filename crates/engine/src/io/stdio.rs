//! stdio streams: fopen(3), fread(3), fwrite(3).
//!
//! The stream gets a private buffer of exactly one block (setvbuf(3), `_IOFBF`), so with glibc one
//! call becomes one read(2) or write(2). The mode is `r+` for an existing file to be written, `w+`
//! for a new file to be written, `r` for a file to be read, and `a` for a file to be appended to.
//! Each mode also has `e` (close on exec). The C library opens without `O_DIRECT` and `O_SYNC`, and
//! creates files with mode 0666 minus the umask.
//!
//! glibc keeps the rest of a short write in its buffer and reports success. An error is then
//! reported later. If the next call reports it, the offset may be up to one block too high. If
//! flush or close reports it, there is no offset.
#![expect(unsafe_code, reason = "the C library")]

use std::{
    ffi::{CStr, CString},
    os::{fd::BorrowedFd, unix::ffi::OsStrExt},
    path::Path,
    ptr::NonNull,
};

use model::phase::{AccessPattern, FileCreation, Stream, SyncCall};
use rustix::{fs::stat, io::Errno};

use super::{
    Cause, Completion, IoEngine, IoFault, Kind, Op, Submitted,
    open::{self, AccessMode},
    sync::{self, Seeks, last_errno},
};
use crate::error::{Fault, Memory, Operation};

/// stdio stream and its buffer.
pub(crate) struct Stdio {
    // `None` after close.
    file: Option<NonNull<libc::FILE>>,
    seeks: Seeks,
    // Used by the C library until the stream is closed, which `Drop` does before this field is
    // dropped.
    _buffer: Box<[u8]>,
}

impl Stdio {
    /// Opens the file of a worker.
    pub(crate) fn open(stream: &Stream, path: &Path, mode: AccessMode) -> Result<Self, Fault> {
        open::prepare_presence(stream.open.creation, path)?;
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Fault::whole(Operation::Open, Errno::INVAL))?;
        let append = stream.access_pattern == AccessPattern::Append;
        let file = match (mode.writes(), stream.open.creation) {
            // `a` would create a file that must exist.
            (true, FileCreation::Existing) if append => {
                stat(path).map(drop).and_then(|()| fopen(&name, c"ae"))
            }
            (true, FileCreation::Any | FileCreation::Fresh | FileCreation::Complete) if append => {
                fopen(&name, c"ae")
            }
            (false, _) => fopen(&name, c"re"),
            (true, FileCreation::Existing) => fopen(&name, c"r+e"),
            (true, FileCreation::Any | FileCreation::Fresh | FileCreation::Complete) => {
                match fopen(&name, c"r+e") {
                    Err(Errno::NOENT) => fopen(&name, c"w+e"),
                    answer => answer,
                }
            }
        };
        let file = file.map_err(|errno| open::refused(stream, mode, errno))?;
        let mut engine =
            Self { file: Some(file), seeks: Seeks::of(stream), _buffer: Box::default() };
        engine.set_buffer(stream.block_size.0)?;
        open::check_length(stream, mode, engine.descriptor())?;
        Ok(engine)
    }

    fn set_buffer(&mut self, block_size: u64) -> Result<(), Fault> {
        let fault =
            || Fault::Memory { what: Memory::Buffers, bytes: block_size, errno: libc::ENOMEM };
        let len = usize::try_from(block_size).map_err(|_| fault())?;
        let mut buffer = vec![0u8; len].into_boxed_slice();
        // SAFETY: nothing was read or written, as setvbuf(3) requires. The buffer has `len` bytes
        // at an address that moving the box does not change, and `Drop` closes the stream before
        // the buffer is freed.
        let answer =
            unsafe { libc::setvbuf(self.raw(), buffer.as_mut_ptr().cast(), libc::_IOFBF, len) };
        if answer != 0 {
            return Err(fault());
        }
        self._buffer = buffer;
        Ok(())
    }

    fn raw(&self) -> *mut libc::FILE {
        self.file.expect("only `close` empties this, and it takes the engine").as_ptr()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the stream is open while `self` is borrowed, and so is its descriptor.
        unsafe { BorrowedFd::borrow_raw(libc::fileno(self.raw())) }
    }

    fn seek(&mut self, offset: u64) -> Result<(), Errno> {
        let offset = libc::off_t::try_from(offset).map_err(|_| Errno::OVERFLOW)?;
        // SAFETY: the stream is open.
        let answer = unsafe { libc::fseeko(self.raw(), offset, libc::SEEK_SET) };
        if answer == 0 { Ok(()) } else { Err(last_errno()) }
    }

    fn transfer(&mut self, op: &mut Op<'_>) -> Result<(), IoFault> {
        if self.seeks.needed(op) {
            self.seek(op.offset).map_err(|errno| IoFault {
                operation: Operation::Seek,
                moved: 0,
                cause: Cause::Os(errno),
            })?;
        }
        let (file, len, kind) = (self.raw(), op.len, op.kind);
        let bytes = op.bytes();
        match kind {
            Kind::Read => whole(file, Operation::Read, len, |done| {
                let rest = &mut bytes[done..];
                // SAFETY: `rest` is valid for its length, and the stream is open.
                unsafe { libc::fread(rest.as_mut_ptr().cast(), 1, rest.len(), file) }
            }),
            Kind::Write => whole(file, Operation::Write, len, |done| {
                let rest = &bytes[done..];
                // SAFETY: `rest` is valid for its length, and the stream is open.
                unsafe { libc::fwrite(rest.as_ptr().cast(), 1, rest.len(), file) }
            }),
        }
    }
}

/// Transfers `len` bytes: `call(done)` makes one call for the bytes after `done`.
///
/// The C library resumes short transfers itself, so a short count is the end of the file or an
/// error. The error flag must be checked even if some bytes were transferred. Otherwise the next
/// call would put the rest into the stream's buffer and report success.
#[inline]
fn whole(
    file: *mut libc::FILE,
    operation: Operation,
    len: usize,
    mut call: impl FnMut(usize) -> usize,
) -> Result<(), IoFault> {
    let mut moved = 0;
    loop {
        moved += call(moved);
        if moved == len {
            return Ok(());
        }
        let errno = last_errno();
        // SAFETY: the stream is open: both callers hold the engine.
        let failed = unsafe { libc::ferror(file) } != 0;
        let cause = if failed { Cause::Os(errno) } else { Cause::Nothing };
        if cause != Cause::Os(Errno::INTR) {
            return Err(IoFault { operation, moved: moved as u64, cause });
        }
        // SAFETY: as above.
        unsafe { libc::clearerr(file) };
    }
}

fn fopen(name: &CStr, mode: &CStr) -> Result<NonNull<libc::FILE>, Errno> {
    // SAFETY: both are C strings that outlive the call.
    let file = unsafe { libc::fopen(name.as_ptr(), mode.as_ptr()) };
    NonNull::new(file).ok_or_else(last_errno)
}

impl<'p> IoEngine<'p> for Stdio {
    #[inline]
    fn submit(&mut self, mut op: Op<'p>) -> Submitted<'p> {
        let result = self.transfer(&mut op);
        Submitted::Done(Completion { op, result })
    }

    fn rewind(&mut self) -> Result<(), Fault> {
        self.seeks.rewound();
        self.seek(0).map_err(|errno| Fault::whole(Operation::Seek, errno))
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        // SAFETY: the stream is open.
        if unsafe { libc::fflush(self.raw()) } != 0 {
            return Err(Fault::whole(Operation::Sync, last_errno()));
        }
        sync::make_durable(self.descriptor(), call, range)
    }

    fn close(mut self) -> Result<(), Fault> {
        let Some(file) = self.file.take() else { return Ok(()) };
        // SAFETY: taken out of `self`, so closed once; the buffer lives until the end of this call.
        if unsafe { libc::fclose(file.as_ptr()) } == 0 {
            return Ok(());
        }
        Err(Fault::whole(Operation::Close, last_errno()))
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // SAFETY: taken out of `self`, so closed once. A worker that drops an engine without
            // closing it has already failed; the result of fclose is irrelevant.
            unsafe { libc::fclose(file.as_ptr()) };
        }
    }
}

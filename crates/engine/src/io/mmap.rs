//! Loads and stores on a shared mapping of the whole file, mmap(2).
//!
//! A read copies from the mapping to the buffer, a write from the buffer to the mapping. A file to
//! be written is first extended to the length of its blocks if it is shorter (ftruncate(2)),
//! because a mapping cannot extend its file. The clock starts after the extension, mmap(2), and
//! madvise(2). The extension is a hole until it is written, and the filesystem allocates blocks in
//! the page fault or later. With [`Advice::Populate`] for writing, the filesystem allocates every
//! block before the clock starts, and every page is dirty.
//!
//! An I/O error is delivered as SIGBUS, which [`fault`] catches. The signal does not contain the
//! cause. If the file has become too short, the engine reports this. Otherwise it repeats the
//! transfer by a system call, which returns the kernel's error. An end of the file *within* a page
//! is not detected: the rest of the page reads as zeros, and stores to it are lost (mmap(2)).
#![expect(unsafe_code, reason = "loads and stores on a mapping, and calls that take addresses")]

mod fault;

use std::{
    num::NonZeroUsize,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    ptr,
    sync::atomic::{Ordering::SeqCst, compiler_fence},
};

use model::phase::{Advice, Stream, SyncCall};
use rustix::{
    fs::{FileType, fstat, ftruncate},
    io::{Errno, pread, pwrite},
    mm::{Advice as Madvice, MsyncFlags, madvise, msync},
    param::page_size,
};

use super::{
    Cause, Completion, IoEngine, IoFault, Kind, Op, PassCalls, PassPoint, Submitted,
    open::{self, AccessMode},
    resume, sync,
};
use crate::{
    error::{Fault, Operation},
    mapping::Mapping,
};

/// Mapped file.
pub(crate) struct Mmap {
    // Fields are dropped in this order: unregistered from the handler, unmapped, closed.
    registration: fault::Watch,
    mapping: Mapping,
    file: OwnedFd,
}

impl Mmap {
    /// Opens, extends, and maps the file of a worker.
    pub(crate) fn open(
        stream: &Stream,
        advice: Advice,
        path: &Path,
        mode: AccessMode,
    ) -> Result<Self, Fault> {
        let whole = |operation| move |errno| Fault::whole(operation, errno);
        let file = open::open(stream, path, mode)?;
        let needed = open::needed(stream);
        if mode.writes() {
            let status = fstat(&file).map_err(whole(Operation::Examine))?;
            let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
            if regular && u64::try_from(status.st_size).unwrap_or(0) < needed {
                ftruncate(&file, needed).map_err(whole(Operation::Extend))?;
            }
        }
        let len = usize::try_from(needed).ok().and_then(NonZeroUsize::new);
        let len = len.ok_or(Fault::whole(Operation::Map, Errno::NOMEM))?;
        let mapping =
            Mapping::of_file(file.as_fd(), len, mode.writes()).map_err(whole(Operation::Map))?;
        let registration = fault::Watch::of(mapping.base().as_ptr() as usize, len.get());
        let registration = registration.map_err(whole(Operation::Map))?;
        let engine = Self { registration, mapping, file };
        engine.advise(advice, mode).map_err(whole(Operation::Advise))?;
        Ok(engine)
    }

    fn advise(&self, advice: Advice, mode: AccessMode) -> Result<(), Errno> {
        let advice = match advice {
            Advice::Normal => return Ok(()),
            Advice::Sequential => Madvice::Sequential,
            Advice::Random => Madvice::Random,
            Advice::WillNeed => Madvice::WillNeed,
            Advice::Populate if mode.writes() => Madvice::LinuxPopulateWrite,
            Advice::Populate => Madvice::LinuxPopulateRead,
        };
        let (base, len) = (self.mapping.base().as_ptr().cast(), self.mapping.len());
        // SAFETY: the range is that of the mapping; none of these calls changes its content.
        unsafe { madvise(base, len, advice) }
    }

    #[inline]
    fn transfer(&mut self, op: &mut Op<'_>) -> Result<(), IoFault> {
        let (len, kind) = (op.len, op.kind);
        let operation = kind.operation();
        let offset = usize::try_from(op.offset).unwrap_or(usize::MAX);
        if offset.checked_add(len).is_none_or(|end| end > self.mapping.len()) {
            return Err(IoFault { operation, moved: 0, cause: Cause::Nothing });
        }
        let bytes = op.bytes().as_mut_ptr();
        // SAFETY: the range is inside the mapping, as just checked, and the mapping lives as long
        // as `self`. The buffer is `len` bytes long and separate from the mapping. Only streams
        // that write have write operations, and their mappings are writable. Other processes that
        // map the file may change it during the copy; the bytes are then a mixture, which only the
        // verification interprets.
        unsafe {
            let place = self.mapping.base().as_ptr().add(offset);
            match kind {
                Kind::Read => ptr::copy_nonoverlapping(place, bytes, len),
                Kind::Write => ptr::copy_nonoverlapping(bytes, place, len),
            }
        }
        // The handler runs in this thread, within the copy.
        compiler_fence(SeqCst);
        if self.registration.has_faulted() { Err(self.explain(op)) } else { Ok(()) }
    }

    /// Cause of a SIGBUS during a copy.
    #[cold]
    fn explain(&self, op: &mut Op<'_>) -> IoFault {
        let (kind, offset, len) = (op.kind, op.offset, op.len);
        let operation = kind.operation();
        let size = fstat(&self.file).map_or(0, |status| status.st_size);
        let there = u64::try_from(size).unwrap_or(0).saturating_sub(offset);
        if there < len as u64 {
            return IoFault { operation, moved: there, cause: Cause::Nothing };
        }
        let (file, bytes) = (&self.file, op.bytes());
        let answer = resume(operation, len, |done| match kind {
            Kind::Read => pread(file, &mut bytes[done..], offset + done as u64),
            Kind::Write => pwrite(file, &bytes[done..], offset + done as u64),
        });
        answer.err().unwrap_or(IoFault { operation, moved: 0, cause: Cause::Os(Errno::IO) })
    }

    /// msync(2) of the whole pages around a range.
    fn sync(&self, offset: usize, len: usize) -> Result<(), Fault> {
        let end = offset.saturating_add(len).min(self.mapping.len());
        let start = offset.min(end);
        let start = start - start % page_size();
        // SAFETY: the range is inside the mapping, and syncing changes nothing in memory.
        let answer = unsafe {
            let base = self.mapping.base().as_ptr().add(start);
            msync(base.cast(), end - start, MsyncFlags::SYNC)
        };
        answer.map_err(|errno| Fault::whole(Operation::Sync, errno))
    }
}

impl<'p> IoEngine<'p> for Mmap {
    #[inline]
    fn submit(&mut self, mut op: Op<'p>) -> Submitted<'p> {
        let result = self.transfer(&mut op);
        Submitted::Done(Completion { op, result })
    }

    fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        calls.make(&mut self.file, point)
    }

    fn make_durable(&mut self, call: SyncCall, (offset, len): (u64, u64)) -> Result<(), Fault> {
        let within = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        match call {
            SyncCall::Range(_) => self.sync(within(offset), within(len)),
            SyncCall::Fsync | SyncCall::Fdatasync | SyncCall::Syncfs => {
                self.sync(0, self.mapping.len())?;
                sync::make_durable(self.file.as_fd(), call, (0, 0))
            }
        }
    }

    fn close(self) -> Result<(), Fault> {
        let Self { registration, mapping, file } = self;
        drop(registration);
        drop(mapping);
        sync::close(file)
    }
}

//! Copies inside the kernel: copy_file_range(2), sendfile(2), or splice(2) through a pipe.
//!
//! An operation copies its bytes from the source to the same offset of the worker's file. The
//! source is the file with the suffix `.source`, which an earlier phase has written. Buffers are
//! returned unchanged; a later phase that reads the file verifies the data. copy_file_range(2) may
//! share blocks (reflink) instead of copying them; no data is moved in this case.
//!
//! sendfile(2) writes at the file position. An operation that does not follow the previous one
//! therefore begins with an lseek(2), which is part of the operation. The pipe for splice(2) is as
//! large as a block if the kernel allows it (`/proc/sys/fs/pipe-max-size`, 1 MiB unless root);
//! larger blocks take several calls.

use std::{
    ffi::OsString,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use model::phase::{CopyCall, Stream, SyncCall};
use rustix::{
    fs::{Mode, OFlags, SeekFrom, copy_file_range, fstat, seek, sendfile},
    io::Errno,
    pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice},
};

use super::{
    Cause, Completion, IoEngine, IoFault, Op, Submitted,
    open::{self, AccessMode},
    resume, sync,
};
use crate::error::{Fault, Operation};

/// Source, destination, and method of a copy.
pub(crate) struct Copy {
    source: OwnedFd,
    file: OwnedFd,
    route: CopyRoute,
}

enum CopyRoute {
    CopyFileRange,
    // With the position of the destination, if known.
    Sendfile { position: Option<u64> },
    Splice { from: OwnedFd, into: OwnedFd },
}

/// Source of a copy to `path`.
pub(crate) fn source_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".source");
    name.into()
}

impl Copy {
    /// Opens the source and the file of a worker.
    ///
    /// # Errors
    /// [`Fault::SourceNotLaidOut`] if the source is missing or too short, and errors of opening the
    /// worker's file.
    pub(crate) fn open(
        stream: &Stream,
        call: CopyCall,
        path: &Path,
        mode: AccessMode,
    ) -> Result<Self, Fault> {
        let source = open_source(stream, path)?;
        let file = open::open(stream, path, mode)?;
        let route = match call {
            CopyCall::CopyFileRange => CopyRoute::CopyFileRange,
            CopyCall::Sendfile => CopyRoute::Sendfile { position: None },
            CopyCall::Splice => {
                let (from, into) = pipe_with(PipeFlags::CLOEXEC)
                    .map_err(|errno| Fault::whole(Operation::Pipe, errno))?;
                let pipe_size = usize::try_from(stream.longest_operation().0).unwrap_or(usize::MAX);
                // If this fails, the pipe keeps its size, and an operation takes more calls.
                let _ = fcntl_setpipe_size(&into, pipe_size);
                CopyRoute::Splice { from, into }
            }
        };
        Ok(Self { source, file, route })
    }

    #[inline]
    fn transfer(&mut self, op: &Op<'_>) -> Result<(), IoFault> {
        let (start, len) = (op.offset, op.len);
        let Self { source, file, route } = self;
        match route {
            CopyRoute::CopyFileRange => resume(Operation::Copy, len, |done| {
                let (mut from, mut to) = (start + done as u64, start + done as u64);
                copy_file_range(&source, Some(&mut from), &file, Some(&mut to), len - done)
            }),
            CopyRoute::Sendfile { position } => {
                if *position != Some(start) {
                    seek(&file, SeekFrom::Start(start)).map_err(|errno| IoFault {
                        operation: Operation::Seek,
                        moved: 0,
                        cause: Cause::Os(errno),
                    })?;
                }
                // The position is unknown if the transfer fails.
                *position = None;
                resume(Operation::Copy, len, |done| {
                    sendfile(&file, &source, Some(&mut (start + done as u64)), len - done)
                })?;
                *position = Some(start + len as u64);
                Ok(())
            }
            CopyRoute::Splice { from, into } => resume(Operation::Copy, len, |done| {
                let at = start + done as u64;
                let flags = SpliceFlags::MOVE;
                let taken = splice(&source, Some(&mut { at }), &into, None, len - done, flags)?;
                let mut given = 0;
                // Data in the pipe has left the source, so all of it must be written.
                while given < taken {
                    let to = at + given as u64;
                    match splice(&from, None, &file, Some(&mut { to }), taken - given, flags) {
                        Ok(0) => return Err(Errno::IO),
                        Ok(bytes) => given += bytes,
                        Err(Errno::INTR) => {}
                        Err(errno) => return Err(errno),
                    }
                }
                Ok(taken)
            }),
        }
    }
}

fn open_source(stream: &Stream, path: &Path) -> Result<OwnedFd, Fault> {
    let needed = open::needed(stream);
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC;
    flags.set(OFlags::DIRECT, stream.open.direct);
    let source = match rustix::fs::open(source_of(path), flags, Mode::empty()) {
        Ok(source) => source,
        Err(Errno::NOENT) => return Err(Fault::SourceNotLaidOut { found: 0, needed }),
        Err(errno) => return Err(Fault::whole(Operation::Open, errno)),
    };
    let status = fstat(&source).map_err(|errno| Fault::whole(Operation::Examine, errno))?;
    let found = u64::try_from(status.st_size).unwrap_or(0);
    if found < needed {
        return Err(Fault::SourceNotLaidOut { found, needed });
    }
    Ok(source)
}

impl<'p> IoEngine<'p> for Copy {
    #[inline]
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        let result = self.transfer(&op);
        Submitted::Done(Completion { op, result })
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        sync::make_durable(self.file.as_fd(), call, range)
    }

    fn close(self) -> Result<(), Fault> {
        sync::close(self.file)
    }
}

#[cfg(test)]
mod tests {
    use model::phase::{AccessPattern, Direction, FileCreation, IoEngineKind};
    use tempfile::TempDir;

    use super::*;
    use crate::io::{Kind, conformance::stream};

    const CALLS: [CopyCall; 3] = [CopyCall::CopyFileRange, CopyCall::Sendfile, CopyCall::Splice];

    fn plan(call: CopyCall, blocks: u64) -> Stream {
        let plan = stream(IoEngineKind::Copy(call), Direction::Write, blocks);
        Stream { access_pattern: AccessPattern::IozonePermutation, ..plan }
    }

    fn copy(engine: &mut Copy, offset: u64, len: usize) -> Result<(), IoFault> {
        let mut buffer = vec![7; len];
        let op = Op { kind: Kind::Write, offset, len, slot: 0, buffer: &mut buffer };
        match engine.submit(op) {
            Submitted::Done(Completion { op, result }) => {
                assert!(op.buffer.iter().all(|byte| *byte == 7), "the buffer is unchanged");
                result
            }
            Submitted::Queued | Submitted::Full(_) => panic!("the engine has no queue"),
        }
    }

    /// Larger than a pipe, out of order, with equal bytes.
    #[test]
    fn copies_preserve_bytes_and_offsets() {
        let directory = TempDir::new_in("/var/tmp").unwrap();
        for call in CALLS {
            let path = directory.path().join("f");
            let len = (3 << 20) + 4096;
            let bytes: Vec<u8> = (0..=250u8).cycle().take(3 * len).collect();
            std::fs::write(source_of(&path), &bytes).unwrap();
            let mut plan = plan(call, (3 * len as u64) / 4096);
            plan.open.creation = FileCreation::Fresh;
            let mut engine = Copy::open(&plan, call, &path, AccessMode::Write).unwrap();
            for block in [2, 0, 1] {
                assert_eq!(copy(&mut engine, block * len as u64, len), Ok(()), "{call:?}");
            }
            engine.make_durable(SyncCall::Fsync, (0, 0)).unwrap();
            engine.close().unwrap();
            assert!(std::fs::read(&path).unwrap() == bytes, "{call:?}");
        }
    }

    #[test]
    fn missing_and_short_sources_are_reported_with_their_path() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("f");
        for call in CALLS {
            let plan = plan(call, 2);
            let refused = |found| Some(Fault::SourceNotLaidOut { found, needed: 8192 });
            let open = || Copy::open(&plan, call, &path, AccessMode::Write);
            assert_eq!(open().err(), refused(0));
            std::fs::write(source_of(&path), [0; 100]).unwrap();
            assert_eq!(open().err(), refused(100));
            let text =
                crate::EngineError::from(open().err().unwrap().of_stream(&plan, &path)).to_string();
            assert!(text.contains("/f.source has 100B, 8KiB needed"), "{text}");
            assert!(!path.exists(), "no file was created for an invalid copy");
            std::fs::remove_file(source_of(&path)).unwrap();
        }
    }

    #[test]
    fn a_source_that_ends_early_is_reported() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("f");
        for call in CALLS {
            std::fs::write(source_of(&path), [5; 8192]).unwrap();
            let mut engine = Copy::open(&plan(call, 2), call, &path, AccessMode::Write).unwrap();
            let source = std::fs::File::options().write(true).open(source_of(&path)).unwrap();
            source.set_len(5000).unwrap();
            let fault = IoFault { operation: Operation::Copy, moved: 904, cause: Cause::Nothing };
            assert_eq!(copy(&mut engine, 4096, 4096), Err(fault), "{call:?}");
        }
    }
}

//! One call on the metadata of a file per operation, without data.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use model::phase::{NameCall, SpaceCall, Stream, SyncCall};
use rustix::{
    fs::{FallocateFlags, Mode, OFlags, fallocate, ftruncate, mkdir, rmdir, stat, unlink},
    io::Errno,
};

use super::{
    Cause, Completion, IoEngine, IoFault, Kind, Op, PassCalls, PassPoint, Submitted,
    open::{self, AccessMode},
    sync::{close, make_durable},
};
use crate::{
    error::{Fault, Operation},
    file_offset::file_of,
};

/// Repeats a call that a signal interrupted.
fn repeated(
    operation: Operation,
    mut call: impl FnMut() -> Result<(), Errno>,
) -> Result<(), IoFault> {
    loop {
        match call() {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(IoFault { operation, moved: 0, cause: Cause::Os(errno) }),
        }
    }
}

/// fallocate(2) or ftruncate(2) of an open file.
pub(crate) struct Space {
    file: OwnedFd,
    call: SpaceCall,
}

impl Space {
    /// Opens the file of a worker.
    pub(crate) fn open(
        stream: &Stream,
        call: SpaceCall,
        path: &Path,
        mode: AccessMode,
    ) -> Result<Self, Fault> {
        Ok(Self { file: open::open(stream, path, mode)?, call })
    }
}

impl<'p> IoEngine<'p> for Space {
    #[inline]
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        let (file, offset, len) = (&self.file, op.offset, op.len as u64);
        let result = match (self.call, op.kind) {
            (SpaceCall::Truncate, _) => repeated(Operation::Truncate, || ftruncate(file, offset)),
            (SpaceCall::Allocate, Kind::Read) => repeated(Operation::Allocate, || {
                fallocate(file, FallocateFlags::KEEP_SIZE, offset, len)
            }),
            (SpaceCall::Allocate, Kind::Write) => repeated(Operation::Allocate, || {
                fallocate(file, FallocateFlags::empty(), offset, len)
            }),
        };
        Submitted::Done(Completion { op, result })
    }

    fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        calls.make(&mut self.file, point)
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        make_durable(self.file.as_fd(), call, range)
    }

    fn close(self) -> Result<(), Fault> {
        close(self.file)
    }
}

/// A call by the name of the file.
pub(crate) struct Names {
    paths: Vec<PathBuf>,
    call: NameCall,
    // Created files that stay open.
    open: Vec<OwnedFd>,
    limit: usize,
}

impl Names {
    /// Engine for the files of a worker.
    pub(crate) fn new(stream: &Stream, call: NameCall, paths: &[PathBuf]) -> Self {
        let limit = stream.files.several().map_or(1, |files| files.open as usize);
        let limit = limit.min(paths.len()).saturating_sub(1);
        Self { paths: paths.to_vec(), call, open: Vec::with_capacity(limit), limit }
    }
}

impl<'p> IoEngine<'p> for Names {
    #[inline]
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        let path = &self.paths[file_of(op.offset)];
        let result = match self.call {
            NameCall::Stat => repeated(Operation::Examine, || stat(path).map(drop)),
            NameCall::Unlink => repeated(Operation::Unlink, || unlink(path)),
            NameCall::CreateDirectory => {
                repeated(Operation::MakeDirectory, || mkdir(path, Mode::from_raw_mode(0o700)))
            }
            NameCall::RemoveDirectory => repeated(Operation::RemoveDirectory, || rmdir(path)),
            NameCall::Create => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
                repeated(Operation::Open, || {
                    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
                    if self.open.len() < self.limit {
                        self.open.push(file);
                    }
                    Ok(())
                })
            }
        };
        Submitted::Done(Completion { op, result })
    }

    fn make_durable(&mut self, _call: SyncCall, _range: (u64, u64)) -> Result<(), Fault> {
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        self.open.into_iter().try_for_each(close)
    }
}

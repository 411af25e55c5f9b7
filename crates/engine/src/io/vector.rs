//! preadv2(2) and pwritev2(2): system calls with flags.
//!
//! With `RWF_NOWAIT`, an operation that would wait for the device or a lock fails with EAGAIN. The
//! rest of the operation is then repeated without the flag. [`IoEngine::would_block`] returns the
//! number of such reads. `RWF_DONTCACHE` (Linux 6.14) is not in `rustix`; its value is from
//! include/uapi/linux/fs.h. A kernel or filesystem without support for a flag returns EOPNOTSUPP,
//! which fails the phase: there is no silent fallback.

use std::{
    io::{IoSlice, IoSliceMut},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use model::phase::{CallFlags, Stream, SyncCall};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use super::{
    Cause, Completion, IoEngine, IoFault, Kind, Op, PassCalls, PassPoint, Submitted,
    open::{self, AccessMode},
    resume, sync,
};
use crate::error::{Fault, Operation};

/// `RWF_DONTCACHE` of include/uapi/linux/fs.h.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// File of a worker, and the flags of each call.
pub(crate) struct Vector {
    file: OwnedFd,
    read: ReadWriteFlags,
    write: ReadWriteFlags,
    refused: u64,
}

impl Vector {
    /// Opens the file of a worker.
    pub(crate) fn open(
        stream: &Stream,
        flags: CallFlags,
        path: &Path,
        mode: AccessMode,
    ) -> Result<Self, Fault> {
        let CallFlags { nowait, hipri, dsync, uncached } = flags;
        let mut read = ReadWriteFlags::empty();
        read.set(ReadWriteFlags::NOWAIT, nowait);
        read.set(ReadWriteFlags::HIPRI, hipri);
        read.set(DONTCACHE, uncached);
        let mut write = read;
        write.set(ReadWriteFlags::DSYNC, dsync);
        Ok(Self { file: open::open(stream, path, mode)?, read, write, refused: 0 })
    }

    #[inline]
    fn transfer(&mut self, op: &mut Op<'_>) -> Result<(), IoFault> {
        let (file, offset, len, kind) = (&self.file, op.offset, op.len, op.kind);
        let bytes = op.bytes();
        match kind {
            Kind::Read => patiently(kind, len, self.read, &mut self.refused, |done, flags| {
                let mut part = [IoSliceMut::new(&mut bytes[done..])];
                preadv2(file, &mut part, offset + done as u64, flags)
            }),
            Kind::Write => patiently(kind, len, self.write, &mut 0, |done, flags| {
                pwritev2(file, &[IoSlice::new(&bytes[done..])], offset + done as u64, flags)
            }),
        }
    }
}

/// Transfers `len` bytes with these flags, and without `RWF_NOWAIT` after the first EAGAIN.
#[inline]
fn patiently(
    kind: Kind,
    len: usize,
    mut flags: ReadWriteFlags,
    refused: &mut u64,
    mut transfer: impl FnMut(usize, ReadWriteFlags) -> Result<usize, Errno>,
) -> Result<(), IoFault> {
    resume(kind.operation(), len, |done| {
        let answer = transfer(done, flags);
        if answer != Err(Errno::AGAIN) || !flags.contains(ReadWriteFlags::NOWAIT) {
            return answer;
        }
        *refused += 1;
        flags.remove(ReadWriteFlags::NOWAIT);
        transfer(done, flags)
    })
    .map_err(|fault| match fault.cause {
        Cause::Os(Errno::OPNOTSUPP) if !flags.is_empty() => {
            IoFault { operation: Operation::CallFlags, ..fault }
        }
        Cause::Os(_) | Cause::Nothing => fault,
    })
}

impl<'p> IoEngine<'p> for Vector {
    #[inline]
    fn submit(&mut self, mut op: Op<'p>) -> Submitted<'p> {
        let result = self.transfer(&mut op);
        Submitted::Done(Completion { op, result })
    }

    fn would_block(&self) -> u64 {
        self.refused
    }

    fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        calls.make(&mut self.file, point)
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
    use super::*;

    /// Result of a transfer of ten bytes with these results of calls, and flags and offset of each
    /// call.
    fn moved(
        flags: ReadWriteFlags,
        answers: &[Result<usize, Errno>],
    ) -> (Result<(), IoFault>, u64, Vec<(usize, bool)>) {
        let mut answers = answers.iter();
        let (mut refused, mut calls) = (0, Vec::new());
        let result = patiently(Kind::Read, 10, flags, &mut refused, |done, flags| {
            calls.push((done, flags.contains(ReadWriteFlags::NOWAIT)));
            *answers.next().unwrap()
        });
        (result, refused, calls)
    }

    #[test]
    fn an_operation_that_would_block_is_counted_once_and_repeated_without_the_flag() {
        let nowait = ReadWriteFlags::NOWAIT;
        assert_eq!(moved(nowait, &[Ok(10)]), (Ok(()), 0, vec![(0, true)]));
        let answers = [Ok(4), Err(Errno::AGAIN), Err(Errno::INTR), Ok(5), Ok(1)];
        let calls = vec![(0, true), (4, true), (4, false), (4, false), (9, false)];
        assert_eq!(moved(nowait, &answers), (Ok(()), 1, calls));
        let fault = |operation, cause| Err(IoFault { operation, moved: 0, cause });
        let (empty, again) = (ReadWriteFlags::empty(), Cause::Os(Errno::AGAIN));
        assert_eq!(moved(empty, &[Err(Errno::AGAIN)]).0, fault(Operation::Read, again));
    }

    #[test]
    fn an_unknown_flag_is_distinguished_from_other_errors() {
        let unknown = |flags| match moved(flags, &[Err(Errno::OPNOTSUPP)]).0 {
            Err(fault) => fault.operation,
            Ok(()) => panic!("the call failed"),
        };
        assert_eq!(unknown(DONTCACHE), Operation::CallFlags);
        assert_eq!(unknown(ReadWriteFlags::empty()), Operation::Read);
    }
}

//! Interpretation of completion results.

use rustix::io::Errno;

use super::{InFlight, LINKED_SYNC, LINKED_WRITE, SqeOptions};
use crate::{
    error::Operation,
    io::{Cause, IoFault},
};

/// Interpretation of a completion.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The operation has completed.
    Over(Result<(), IoFault>),
    /// The rest of the operation must be submitted again.
    Again,
    /// The other half of a pair is outstanding.
    Pending,
}

/// True for temporary failures: a signal, or a temporary lack of kernel resources.
pub(super) fn again(errno: Errno) -> bool {
    matches!(errno, Errno::INTR | Errno::AGAIN | Errno::BUSY)
}

impl InFlight<'_> {
    /// Handles all results except the expected one.
    #[cold]
    pub(super) fn classify(&mut self, data: u64, answer: i32, options: SqeOptions) -> Verdict {
        if data & (LINKED_WRITE | LINKED_SYNC) != 0 {
            self.awaited -= 1;
            if self.awaited > 0 {
                self.other = answer;
                return Verdict::Pending;
            }
            let (written, synced) = match data & LINKED_WRITE {
                0 => (self.other, answer),
                _ => (answer, self.other),
            };
            // A write that fails or is short cancels its sync, so only the result of the write
            // counts.
            if written != self.expected {
                return self.transferred(written, options);
            }
            if synced >= 0 {
                return Verdict::Over(Ok(()));
            }
            return match Errno::from_raw_os_error(-synced) {
                errno if again(errno) => Verdict::Again,
                errno => self.fault(Operation::Sync, Cause::Os(errno)),
            };
        }
        self.transferred(answer, options)
    }

    fn transferred(&mut self, answer: i32, options: SqeOptions) -> Verdict {
        let op = self.op.as_ref().expect("a completion is of an operation in flight");
        let (operation, len) = (op.kind.operation(), op.len);
        match u32::try_from(answer) {
            Ok(0) => self.fault(operation, Cause::Nothing),
            Ok(bytes) => {
                self.moved += bytes;
                let moved = self.moved as usize;
                assert!(moved <= len, "the kernel moved more than it was asked for");
                if moved == len { Verdict::Over(Ok(())) } else { Verdict::Again }
            }
            Err(_) => match Errno::from_raw_os_error(-answer) {
                errno if again(errno) => Verdict::Again,
                errno @ Errno::OPNOTSUPP if options.iopoll => {
                    self.fault(Operation::Poll, Cause::Os(errno))
                }
                errno => self.fault(operation, Cause::Os(errno)),
            },
        }
    }

    fn fault(&self, operation: Operation, cause: Cause) -> Verdict {
        Verdict::Over(Err(IoFault { operation, moved: u64::from(self.moved), cause }))
    }
}

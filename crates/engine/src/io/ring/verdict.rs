//! What the answers of the kernel mean for an operation.

use rustix::io::Errno;

use crate::io::IoFault;

/// What a completion says about its operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is over.
    Over(Result<(), IoFault>),
    /// Something is left to do.
    Again,
    /// The other half of a pair is to come.
    Pending,
}

/// Whether a refusal passes: a signal came, or the kernel lacked something for a moment.
pub(super) fn again(errno: Errno) -> bool {
    matches!(errno, Errno::INTR | Errno::AGAIN | Errno::BUSY)
}

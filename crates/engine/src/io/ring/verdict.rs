//! Interpretation of completion results.

use rustix::io::Errno;

use crate::io::IoFault;

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

//! Import of logs of strace(1) on machines on which it is not available: the numbers of system
//! calls are those of x86-64.

use std::path::Path;

use crate::{Recording, TraceError};

/// False.
pub fn is_strace(_head: &[u8]) -> bool {
    false
}

/// Returns an error.
///
/// # Errors
/// [`TraceError::Machine`].
pub fn import(_log: &[u8], _root: &Path) -> Result<Recording, TraceError> {
    Err(TraceError::Machine)
}

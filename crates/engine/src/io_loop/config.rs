//! Content and pace of the I/O loop.

use crate::{
    io::PassCalls,
    pace::Pacer,
    payload::{PayloadWriter, Verifier},
};

/// Content and pace of a loop, derived from a stream before the clock starts.
pub(crate) struct LoopConfig {
    /// Writer of headers or marks.
    pub(crate) writer: Option<PayloadWriter>,
    /// Verifier of data read.
    pub(crate) verifier: Option<Verifier>,
    /// Start times of operations.
    pub(crate) pacer: Pacer,
    /// Index of the worker, and number of workers.
    pub(crate) worker: (u32, u32),
    /// Generation before that of the first write, see [`crate::payload`].
    pub(crate) generation: u64,
    /// Calls at the start of each pass after the first one.
    pub(crate) pass: Option<Box<PassCalls>>,
}

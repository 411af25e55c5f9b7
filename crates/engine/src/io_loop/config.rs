//! Content and pace of the I/O loop.

use crate::{
    error::Fault,
    flow::FlowShare,
    io::{Kind, Op, PassCalls},
    operation_log::{OperationLog, Times},
    pace::Pacer,
    payload::{PayloadWriter, Verifier},
};

/// Content and pace of a loop, derived from a stream before the clock starts.
pub(crate) struct LoopConfig {
    /// Writer of headers or marks.
    pub(crate) writer: Option<PayloadWriter>,
    /// Work for each completed operation.
    pub(crate) observer: Option<Observer>,
    /// Start times of operations.
    pub(crate) pacer: Pacer,
    /// Place in a flow.
    pub(crate) flow: Option<FlowShare>,
    /// Index of the worker, and number of workers.
    pub(crate) worker: (u32, u32),
    /// Generation before that of the first write, see [`crate::payload`].
    pub(crate) generation: u64,
    /// Calls at the start of each pass after the first one.
    pub(crate) pass: Option<Box<PassCalls>>,
}

/// Work for each completed operation of streams that verify or log.
pub(crate) struct Observer {
    /// Verifier of data read.
    pub(crate) verifier: Option<Verifier>,
    /// Log.
    pub(crate) log: Option<Box<OperationLog>>,
}

impl Observer {
    /// Observer with these parts; `None` if there are none.
    pub(crate) fn new(verifier: Option<Verifier>, log: Option<Box<OperationLog>>) -> Option<Self> {
        (verifier.is_some() || log.is_some()).then_some(Self { verifier, log })
    }

    /// Logs and verifies a completed operation.
    pub(super) fn completed(&mut self, op: &mut Op<'_>, times: Times) -> Result<(), Fault> {
        if let Some(log) = &mut self.log {
            log.add(op.kind, op.offset, op.len as u64, times);
        }
        match (&self.verifier, op.kind) {
            (Some(verifier), Kind::Read) => verifier.verify(op.offset, op.bytes()),
            (Some(_), Kind::Write) | (None, _) => Ok(()),
        }
    }
}

//! Null engine: every operation completes immediately.
//!
//! Only the loop remains, so this engine measures the load generator overhead. It opens no file;
//! buffers are returned unchanged.

use model::phase::SyncCall;

use super::{Completion, IoEngine, Op, Submitted};
use crate::error::Fault;

/// I/O engine; see the module.
pub(crate) struct Null;

impl<'p> IoEngine<'p> for Null {
    #[inline]
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        // Prevents the compiler from removing the code that fills the buffer, which is not read.
        std::hint::black_box(op.buffer.as_ptr());
        Submitted::Done(Completion { op, result: Ok(()) })
    }

    fn make_durable(&mut self, _call: SyncCall, _range: (u64, u64)) -> Result<(), Fault> {
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        Ok(())
    }
}

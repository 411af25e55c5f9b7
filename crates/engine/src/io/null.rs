//! No I/O at all: every operation is over at once.
//!
//! What is left is the loop itself, so this engine tells the ceiling of the generator. It opens no
//! file; buffers are passed back as they are.

use model::phase::FlushCall;

use super::{Completion, IoEngine, Op, Submitted};
use crate::error::Fault;

/// See the module.
pub(crate) struct Null;

impl<'p> IoEngine<'p> for Null {
    #[inline]
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        // The compiler must not see that nobody reads what the payload wrote, or it would remove
        // the very cost this engine shows.
        std::hint::black_box(op.buffer.as_ptr());
        Submitted::Done(Completion { op, result: Ok(()) })
    }

    fn flush(&mut self, _call: FlushCall, _range: (u64, u64)) -> Result<(), Fault> {
        Ok(())
    }

    fn close(self) -> Result<(), Fault> {
        Ok(())
    }
}

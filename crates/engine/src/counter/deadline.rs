//! Deadline, after which all workers continue to the same number of operations.

use model::{
    Bytes, Ops,
    phase::{AtDeadline, Moved},
};

use super::Counter;
use crate::{clock::now, error::Fault};

impl Counter<'_> {
    /// True if the worker continues after the time limit that it has reached.
    #[inline]
    pub(crate) fn pauses(&self) -> bool {
        self.over && self.limits.continues && self.at_deadline.is_none()
    }

    /// Records the work up to the deadline, `reached` operations, waits for the other workers, and
    /// continues the loop. Returns the largest number of operations that any worker has completed,
    /// `None` on later calls. A worker that has completed its work earlier does not wait. The time
    /// of waiting is not part of an operation.
    ///
    /// # Errors
    /// [`Fault::Aborted`] if the phase was aborted.
    pub(crate) fn at_deadline(
        &mut self,
        reached: u64,
        completed: bool,
    ) -> Result<Option<u64>, Fault> {
        if !self.limits.continues || self.at_deadline.is_some() {
            return Ok(None);
        }
        let (ops, bytes) = self.totals();
        let moved = Moved { ops: Ops(ops), bytes: Bytes(bytes) };
        self.at_deadline = Some(AtDeadline { elapsed: self.clock - self.started, moved });
        self.control.reach(reached);
        if completed {
            return Ok(None);
        }
        let largest = self.control.largest()?;
        self.clock = now();
        self.over = false;
        Ok(Some(largest))
    }
}

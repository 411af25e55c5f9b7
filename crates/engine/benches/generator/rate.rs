//! Result of one measurement.

use model::Nanos;

/// Operations per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Operations per second.
    pub(crate) per_second: f64,
}

impl Rate {
    /// Rate of this number of operations in this time.
    pub(crate) fn new(ops: u64, elapsed: Nanos) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a rate, far below 2^53 operations")]
        let ops = ops as f64;
        Self { per_second: ops / elapsed.seconds() }
    }

    /// Nanoseconds per operation.
    pub(crate) fn nanos(self) -> f64 {
        1e9 / self.per_second
    }
}

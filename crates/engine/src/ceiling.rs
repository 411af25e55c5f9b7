//! The ceiling of the generator: the loop itself, on an engine that does nothing.

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

use model::{
    Bytes, Nanos, Ops,
    phase::{Access, Direction, Files, Fill, Flush, Interface, Open, Stream, Workers},
};

use crate::{Context, EngineError, Progress};

/// How fast the loop goes when the operations cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// Operations done.
    pub ops: Ops,
    /// Time they took.
    pub elapsed: Nanos,
}

impl Ceiling {
    /// Operations per second that the generator alone can reach with one worker.
    #[expect(clippy::cast_precision_loss, reason = "a rate, far below 2^53 operations")]
    pub fn ops_per_second(self) -> f64 {
        self.ops.0 as f64 / self.elapsed.seconds()
    }

    /// Nanoseconds that the generator adds to each operation.
    #[expect(clippy::cast_precision_loss, reason = "a mean, far below 2^53 nanoseconds")]
    pub fn nanos_per_op(self) -> f64 {
        self.elapsed.0 as f64 / self.ops.0 as f64
    }
}

/// Runs the loop of a sequential, stamped write on the null engine, long enough (20 ms) for the
/// clock not to matter. Stamping costs most of all that a loop does apart from verifying, so other
/// streams of this record size do not cost more.
///
/// # Errors
/// [`EngineError`] when memory or a thread cannot be had, or `record` is zero.
pub fn ceiling(record: Bytes) -> Result<Ceiling, EngineError> {
    let mut records = 1 << 10;
    loop {
        let stream = null_stream(record, records);
        let command: [OsString; 0] = [];
        let context = Context {
            directory: Path::new("."),
            progress: &Progress::default(),
            interrupt: &AtomicBool::new(false),
            worker_command: &command,
        };
        let result = crate::run(&stream, &context)?;
        let elapsed = result.workers.iter().map(|worker| worker.loop_time).max();
        let elapsed = elapsed.unwrap_or_default();
        if elapsed >= Nanos(20_000_000) || records >= 1 << 30 {
            return Ok(Ceiling { ops: result.ops(), elapsed });
        }
        records *= 4;
    }
}

fn null_stream(record: Bytes, records: u64) -> Stream {
    Stream {
        files: Files::One("null".into()),
        size: Bytes(record.0.saturating_mul(records)),
        record,
        direction: Direction::Write,
        access: Access::Sequential,
        interface: Interface::Null,
        open: Open::default(),
        fill: Fill::Random { entropy: 1.0, seed: 0 },
        verify: false,
        flush: Flush::None,
        workers: Workers::ONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_says_how_many_operations_took_how_long() {
        let ceiling = ceiling(Bytes::kib(4)).unwrap();
        assert!(ceiling.elapsed >= Nanos(20_000_000));
        let product = ceiling.ops_per_second() * ceiling.nanos_per_op();
        assert!((product / 1e9 - 1.0).abs() < 1e-9);
    }
}

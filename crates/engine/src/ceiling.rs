//! The ceiling of the generator: the loop itself, on an engine that does nothing.

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool};

use model::{
    Bytes, Nanos, Ops,
    phase::{Bound, Direction, Files, Flush, Interface, Open, Pace, Stream, Workers},
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

/// Runs one worker of this stream on the null engine, long enough (20 ms) for the clock not to
/// matter: the same order, content, and counting, without the calls, and as fast as it goes.
///
/// # Errors
/// [`EngineError`] when memory or a thread cannot be had, or the stream contradicts itself.
pub fn ceiling(stream: &Stream) -> Result<Ceiling, EngineError> {
    let mut ops = 1 << 10;
    loop {
        let stream = without_calls(stream, ops);
        let command: [OsString; 0] = [];
        let context = Context {
            directory: Path::new("."),
            progress: &Progress::default(),
            interrupt: &AtomicBool::new(false),
            state: None,
            worker_command: &command,
        };
        let result = crate::run(&stream, &context)?;
        let elapsed = result.workers.iter().map(|worker| worker.loop_time).max();
        let elapsed = elapsed.unwrap_or_default();
        if elapsed >= Nanos(20_000_000) || ops >= 1 << 30 {
            return Ok(Ceiling { ops: result.ops(), elapsed });
        }
        ops *= 4;
    }
}

/// The [`ceiling`] of a sequential write with headers in records of this size: what the generator
/// costs at most on this host, apart from verifying and from drawing places.
///
/// # Errors
/// As for [`ceiling`], for an empty record.
pub fn write_ceiling(record: Bytes) -> Result<Ceiling, EngineError> {
    let size = Bytes(record.0.saturating_mul(1024));
    let stream = Stream::new(Files::One("null".into()), size, record);
    ceiling(&Stream { direction: Direction::Write, ..stream })
}

fn without_calls(stream: &Stream, ops: u64) -> Stream {
    let files = match &stream.files {
        Files::One(name) | Files::PerWorker(name) | Files::Shared(name) | Files::Split(name) => {
            Files::One(name.clone())
        }
    };
    Stream {
        files,
        interface: Interface::Null,
        open: Open::default(),
        verify: false,
        flush_every: None,
        flush: Flush::None,
        pace: Pace::Free,
        bound: Bound::Ops(ops),
        workers: Workers::ONE,
        ..stream.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_says_how_many_operations_took_how_long() {
        let stream = Stream::new(Files::One("f".into()), Bytes::mib(1), Bytes::kib(4));
        let ceiling = ceiling(&stream).unwrap();
        assert!(ceiling.elapsed >= Nanos(20_000_000));
        let product = ceiling.ops_per_second() * ceiling.nanos_per_op();
        assert!((product / 1e9 - 1.0).abs() < 1e-9);
    }
}

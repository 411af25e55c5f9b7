//! Ceilings: the loop itself, on an engine that does nothing; and how fast memory can be copied,
//! which nothing that goes through the page cache can exceed.

use std::{ffi::OsString, fs, hint::black_box, path::Path, sync::atomic::AtomicBool};

use model::{
    Bytes, Nanos, Ops,
    phase::{Bound, Direction, Files, Flush, Interface, Open, Pace, Stream, Workers},
};

use crate::{Context, EngineError, Progress, clock::now};

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

/// Least and most bytes that are copied from: what lies in a processor's caches is copied faster,
/// so it should be more than they hold; making it ready takes about 0.3 ms for each MiB.
const COPIED: (Bytes, Bytes) = (Bytes::mib(64), Bytes::mib(256));

/// Bytes of one copy, as large as a record may well be, and small enough to stay in the second
/// level of caches, where a reader has its buffer.
const PIECE: usize = 128 << 10;

/// How long memory is copied.
const COPYING: Nanos = Nanos(30_000_000);

/// Bytes per second that one thread copies out of memory: the best pass over a buffer of four times
/// the last level of caches, but of 64 to 256 MiB, and of `most` bytes at most. Where the caches
/// hold all of the buffer the answer is theirs, and larger. Takes some 50 ms.
///
/// `None` where that much memory cannot be had, or `most` is less than 1 MiB.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
pub fn memory_ceiling(most: Bytes) -> Option<f64> {
    let (least, limit) = COPIED;
    let wanted = Bytes(last_cache().unwrap_or(least).0.saturating_mul(4));
    let size = wanted.max(least).min(limit).min(most);
    let size = usize::try_from(size.0 / Bytes::MIB * Bytes::MIB).ok().filter(|size| *size > 0)?;
    let mut source: Vec<u8> = Vec::new();
    source.try_reserve_exact(size).ok()?;
    // Not zero, so that every page is written to and has memory of its own.
    source.resize(size, 0x5a);
    let mut target = vec![0; PIECE];
    let (begin, mut best) = (now(), Nanos(u64::MAX));
    while best == Nanos(u64::MAX) || now() - begin < COPYING {
        let start = now();
        for piece in source.chunks_exact(PIECE) {
            target.copy_from_slice(black_box(piece));
            black_box(&mut target);
        }
        best = best.min(Nanos((now() - start).0.max(1)));
    }
    Some(size as f64 / best.seconds())
}

/// Size of the largest cache of the first processor
/// (Documentation/ABI/testing/sysfs-devices-system-cpu).
fn last_cache() -> Option<Bytes> {
    let entries = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = entries.flatten().filter_map(|entry| {
        let text = fs::read_to_string(entry.path().join("size")).ok()?;
        Bytes::parse(text.trim()).ok()
    });
    sizes.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_copied_at_some_rate_if_there_may_be_any() {
        assert!(memory_ceiling(Bytes::mib(1)).is_some_and(|rate| rate > 0.0));
        assert_eq!(memory_ceiling(Bytes::kib(64)), None);
    }

    #[test]
    fn the_ceiling_says_how_many_operations_took_how_long() {
        let stream = Stream::new(Files::One("f".into()), Bytes::mib(1), Bytes::kib(4));
        let ceiling = ceiling(&stream).unwrap();
        assert!(ceiling.elapsed >= Nanos(20_000_000));
        let product = ceiling.ops_per_second() * ceiling.nanos_per_op();
        assert!((product / 1e9 - 1.0).abs() < 1e-9);
    }
}

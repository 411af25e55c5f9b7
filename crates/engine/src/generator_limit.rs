//! Two limits: the load generator overhead, measured on an engine without system calls, and the
//! memory copy rate, an upper bound for all I/O through the page cache.

use std::{ffi::OsString, fs, hint::black_box, path::Path, sync::atomic::AtomicBool};

use model::{
    Bytes, Nanos, Ops,
    phase::{Bound, Direction, EndSync, FileSharing, IoEngineKind, Open, Pace, Stream, Workers},
};

use crate::{Context, EngineError, Progress, clock::now};

/// Maximum rate of the I/O loop, measured on the null engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorLimit {
    /// Completed operations.
    pub ops: Ops,
    /// Elapsed time.
    pub elapsed: Nanos,
}

impl GeneratorLimit {
    /// Operations per second of the load generator with one worker.
    #[expect(clippy::cast_precision_loss, reason = "a rate, far below 2^53 operations")]
    pub fn ops_per_second(self) -> f64 {
        self.ops.0 as f64 / self.elapsed.seconds()
    }

    /// Nanoseconds that the load generator adds to each operation.
    #[expect(clippy::cast_precision_loss, reason = "a mean, far below 2^53 nanoseconds")]
    pub fn nanos_per_op(self) -> f64 {
        self.elapsed.0 as f64 / self.ops.0 as f64
    }
}

/// Load generator overhead of this stream. Runs one worker on the null engine for at least 20 ms,
/// so that clock overhead is negligible. Order, content, and counting are those of the stream;
/// there are no system calls, no verification, and no rate limit.
///
/// # Errors
/// [`EngineError`] if memory or a thread is not available, or the stream is invalid.
pub fn generator_limit(stream: &Stream) -> Result<GeneratorLimit, EngineError> {
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
            start: None,
        };
        let result = crate::run(&stream, &context)?;
        let elapsed = result.workers.iter().map(|worker| worker.loop_time).max();
        let elapsed = elapsed.unwrap_or_default();
        if elapsed >= Nanos(20_000_000) || ops >= 1 << 30 {
            return Ok(GeneratorLimit { ops: result.ops(), elapsed });
        }
        ops *= 4;
    }
}

/// [`generator_limit`] of a sequential write with block headers and this block size: the maximum
/// load generator overhead on this host, except for verification and random offsets.
///
/// # Errors
/// As for [`generator_limit`], and for a block size of 0.
pub fn write_generator_limit(block_size: Bytes) -> Result<GeneratorLimit, EngineError> {
    let size = Bytes(block_size.0.saturating_mul(1024));
    let stream = Stream::new(FileSharing::One("null".into()), size, block_size);
    generator_limit(&Stream { direction: Direction::Write, ..stream })
}

fn without_calls(stream: &Stream, ops: u64) -> Stream {
    let files = match &stream.files {
        FileSharing::One(name)
        | FileSharing::PerWorker(name)
        | FileSharing::Template(name)
        | FileSharing::Shared(name)
        | FileSharing::Segmented(name)
        | FileSharing::Interleaved(name) => FileSharing::One(name.clone()),
        FileSharing::Several(files) => FileSharing::One(files.name(0, 0)),
    };
    Stream {
        files,
        io_engine: IoEngineKind::Null,
        open: Open::default(),
        verify: false,
        verify_backlog: None,
        rest_of: None,
        flow: None,
        sync_every: None,
        end_sync: EndSync::None,
        pace: Pace::Free,
        bound: Bound::Ops(ops),
        workers: Workers::ONE,
        operation_log: None,
        ..stream.clone()
    }
}

/// Minimum and maximum size of the copied buffer. It should exceed the CPU caches, which are
/// faster. Preparing it takes about 0.3 ms per MiB.
const COPIED: (Bytes, Bytes) = (Bytes::mib(64), Bytes::mib(256));

/// Bytes per copy: as large as a realistic block, and small enough for the second-level cache,
/// where a reader's buffer is.
const PIECE: usize = 128 << 10;

/// Duration of the measurement.
const COPYING: Nanos = Nanos(30_000_000);

/// Bytes per second that one thread copies from memory. The result is the fastest pass over a
/// buffer. Its size is four times the last-level cache, limited to 64 to 256 MiB, and at most
/// `most`. If the buffer fits in the caches, the result is the rate of the caches. Takes about 50
/// ms.
///
/// `None` if the memory is not available, or `most` is less than 1 MiB.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
pub fn memory_copy_rate(most: Bytes) -> Option<f64> {
    let (least, limit) = COPIED;
    let wanted = Bytes(last_cache().unwrap_or(least).0.saturating_mul(4));
    let size = wanted.max(least).min(limit).min(most);
    let size = usize::try_from(size.0 / Bytes::MIB * Bytes::MIB).ok().filter(|size| *size > 0)?;
    let mut source: Vec<u8> = Vec::new();
    source.try_reserve_exact(size).ok()?;
    // Not zero, so that every page is written and backed by its own memory.
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

/// Size of the largest cache of the first CPU (Documentation/ABI/testing/sysfs-devices-system-cpu).
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
    fn the_memory_copy_rate_needs_at_least_one_mebibyte() {
        assert!(memory_copy_rate(Bytes::mib(1)).is_some_and(|rate| rate > 0.0));
        assert_eq!(memory_copy_rate(Bytes::kib(64)), None);
    }

    #[test]
    fn the_generator_limit_reports_operations_and_elapsed_time() {
        let stream = Stream::new(FileSharing::One("f".into()), Bytes::mib(1), Bytes::kib(4));
        let generator_limit = generator_limit(&stream).unwrap();
        assert!(generator_limit.elapsed >= Nanos(20_000_000));
        let product = generator_limit.ops_per_second() * generator_limit.nanos_per_op();
        assert!((product / 1e9 - 1.0).abs() < 1e-9);
    }
}

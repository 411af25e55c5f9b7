//! Load generator of fslab with all of its counters.

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool, time::Duration};

use engine::{Context, Progress};
use model::{
    Bytes, Nanos, PhaseResult,
    phase::{
        AccessPattern, Bound, Direction, FileCreation, FileSharing, IoEngineKind, Open, Ring,
        Stream, WorkerKind, Workers,
    },
};

use crate::rate::Rate;

/// Name of the file shared by all measurements.
pub(crate) const FILE: &str = "data";

/// Runs a stream in a directory.
pub(crate) fn phase(stream: &Stream, directory: &Path) -> PhaseResult {
    let command: [OsString; 2] = ["/proc/self/exe".into(), "worker".into()];
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &command,
        start: None,
    };
    engine::run(stream, &context).expect("the phase runs")
}

/// Operations of all workers per second, from the first start to the last end.
pub(crate) fn rate(result: &PhaseResult) -> Rate {
    let start = result.workers.iter().map(|worker| worker.started).min().unwrap_or_default();
    let end = result.workers.iter().map(|worker| worker.started + worker.loop_time).max();
    Rate::new(result.ops().0, end.unwrap_or_default() - start)
}

/// CPU time of the workers per operation, in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "times and counts of a second")]
pub(crate) fn cpu_time_per_op(result: &PhaseResult) -> f64 {
    let cpu: u64 = result.workers.iter().map(|w| (w.user_time + w.system_time).0).sum();
    cpu as f64 / result.ops().0 as f64
}

fn stream(size: Bytes, record: Bytes, length: Duration) -> Stream {
    Stream {
        bound: Bound::Time { ramp: Nanos(0), run: length.into() },
        ..Stream::new(FileSharing::One(FILE.into()), size, record)
    }
}

/// Writes the whole shared file once.
pub(crate) fn lay_out(size: Bytes, directory: &Path) {
    let stream = Stream {
        direction: Direction::Write,
        open: Open { creation: FileCreation::Any, ..Open::default() },
        ..Stream::new(FileSharing::One(FILE.into()), size, Bytes::mib(1))
    };
    phase(&stream, directory);
}

/// Reads of 4 KiB at independent, uniformly distributed offsets with this I/O engine.
pub(crate) fn random_4k(interface: IoEngineKind, size: Bytes, length: Duration) -> Stream {
    Stream {
        access_pattern: AccessPattern::Random,
        io_engine: interface,
        ..stream(size, Bytes::kib(4), length)
    }
}

/// io_uring with this queue depth, registered file, and registered buffers; NOPs if `nop`.
pub(crate) fn ring(depth: u32, nop: bool) -> IoEngineKind {
    IoEngineKind::Ring(Ring { nop, ..Ring::of(depth) })
}

/// Sequential reads or writes of 1 MiB.
pub(crate) fn sequential_1m(writes: bool, size: Bytes, length: Duration) -> Stream {
    let direction = if writes { Direction::Write } else { Direction::Read };
    Stream { direction, ..stream(size, Bytes::mib(1), length) }
}

/// Random reads by this number of worker processes on the null engine.
pub(crate) fn processes(count: u32, length: Duration) -> Stream {
    Stream {
        files: FileSharing::PerWorker(FILE.into()),
        workers: Workers { kind: WorkerKind::Process, ..Workers::threads(count) },
        ..random_4k(IoEngineKind::Null, Bytes::gib(1), length)
    }
}

//! fslab's own generator, with everything it counts.

use std::{ffi::OsString, path::Path, sync::atomic::AtomicBool, time::Duration};

use engine::{Context, Progress};
use model::{
    Bytes, Nanos, PhaseResult,
    phase::{
        Access, Bound, Direction, Files, Interface, Open, Presence, Ring, Stream, WorkerKind,
        Workers,
    },
};

use crate::rate::Rate;

/// Name of the file that all measurements share.
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
    };
    engine::run(stream, &context).expect("the phase runs")
}

/// Operations of all workers over the time of the longest.
pub(crate) fn rate(result: &PhaseResult) -> Rate {
    let start = result.workers.iter().map(|worker| worker.started).min().unwrap_or_default();
    let end = result.workers.iter().map(|worker| worker.started + worker.loop_time).max();
    Rate::new(result.ops().0, end.unwrap_or_default() - start)
}

/// CPU nanoseconds that an operation takes, loop and start of counting included.
#[expect(clippy::cast_precision_loss, reason = "times and counts of a second")]
pub(crate) fn cpu_time_per_op(result: &PhaseResult) -> f64 {
    let cpu: u64 = result.workers.iter().map(|w| (w.user_time + w.system_time).0).sum();
    cpu as f64 / result.ops().0 as f64
}

fn stream(size: Bytes, record: Bytes, length: Duration) -> Stream {
    Stream {
        bound: Bound::Time { ramp: Nanos(0), run: length.into() },
        ..Stream::new(Files::One(FILE.into()), size, record)
    }
}

/// Writes the shared file once, whole.
pub(crate) fn lay_out(size: Bytes, directory: &Path) {
    let stream = Stream {
        direction: Direction::Write,
        open: Open { presence: Presence::Any, ..Open::default() },
        ..Stream::new(Files::One(FILE.into()), size, Bytes::mib(1))
    };
    phase(&stream, directory);
}

/// 4 KiB at places drawn uniformly and independently, by this interface.
pub(crate) fn random_4k(interface: Interface, size: Bytes, length: Duration) -> Stream {
    Stream { access: Access::Random, interface, ..stream(size, Bytes::kib(4), length) }
}

/// A ring of this depth with registered file and buffers.
pub(crate) fn ring(depth: u32, nop: bool) -> Interface {
    Interface::Ring(Ring { nop, ..Ring::of(depth) })
}

/// 1 MiB, one after the other.
pub(crate) fn sequential_1m(writes: bool, size: Bytes, length: Duration) -> Stream {
    let direction = if writes { Direction::Write } else { Direction::Read };
    Stream { direction, ..stream(size, Bytes::mib(1), length) }
}

/// So many worker processes on the null engine.
pub(crate) fn processes(count: u32, length: Duration) -> Stream {
    Stream {
        files: Files::PerWorker(FILE.into()),
        workers: Workers { kind: WorkerKind::Process, ..Workers::threads(count) },
        ..random_4k(Interface::Null, Bytes::gib(1), length)
    }
}

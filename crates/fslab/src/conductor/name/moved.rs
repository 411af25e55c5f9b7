//! Bytes: what a phase asked for, what the devices moved for it, and what follows from both.

use model::{
    Bytes, Evidence, Metric, Nanos, Phase, PhaseResult,
    evidence::DeviceWork,
    phase::{Direction, Flush, FlushCall, Interface, Stream, TreeStep, Work, WorkerResult},
};

use super::{Named, beyond_counting, direction, float, nanos, ramp, sum};
use crate::conductor::deeds;

/// What the devices that a filesystem is on did, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Devices {
    pub(super) read: Bytes,
    pub(super) written: Bytes,
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// `None` where one of them does not tell.
    pub(super) flushes: Option<u64>,
    /// `None` where one of them does not tell.
    pub(super) discarded: Option<Bytes>,
    /// Of the busiest.
    pub(super) busy: Nanos,
    pub(super) queue_time: Nanos,
}

impl Devices {
    /// Those that the filesystem is on; `None` where there are none, and where one of them does not
    /// tell, as the others are not the whole.
    pub(super) fn under(evidence: &Evidence) -> Option<Self> {
        if evidence.uncounted.iter().any(|device| device.depth == 0) {
            return None;
        }
        let mut own = evidence.devices.iter().filter(|device| device.depth == 0).peekable();
        own.peek()?;
        let none = Self { flushes: Some(0), discarded: Some(Bytes(0)), ..Self::default() };
        Some(own.fold(none, Self::and))
    }

    fn and(self, device: &DeviceWork) -> Self {
        Self {
            read: self.read + device.read,
            written: self.written + device.written,
            reads: self.reads + device.reads,
            writes: self.writes + device.writes,
            flushes: self.flushes.zip(device.flushes).map(|(sum, more)| sum + more),
            discarded: self.discarded.zip(device.discarded).map(|(sum, more)| sum + more),
            busy: self.busy.max(device.busy),
            queue_time: self.queue_time + device.queue_time,
        }
    }
}

/// Bytes moved for each byte asked for, and the part that memory delivered.
pub(super) fn add(named: &mut Named<'_>, result: &PhaseResult, evidence: &Evidence) {
    let Some(devices) = Devices::under(evidence) else { return };
    if let Some(asked) = read_from_target(named.phase, result) {
        let delivered = float(devices.read.0);
        if uses_page_cache(named.phase) {
            // The device also reads metadata, and ahead: it may have read more than was asked for.
            named.add(Metric::CachedShare, (1.0 - delivered / asked).max(0.0));
        }
        if named.phase.cache == model::phase::Cache::Cold {
            named.add(Metric::ReadAmplification, delivered / asked);
        }
    }
    if let Some(given) = written_to_target(named.phase, result)
        && ends_on_devices(named.phase, result)
    {
        named.add(Metric::WriteAmplification, float(devices.written.0) / given);
    }
}

/// Bytes read from the filesystem under test, those of the ramp-up and those of updates included;
/// `None` where none were.
pub(super) fn read_from_target(phase: &Phase, result: &PhaseResult) -> Option<f64> {
    let there = match &phase.work {
        Work::Stream(stream) => stream.moves(),
        Work::Tree(_) | Work::Mix(_) | Work::Replay(_) | Work::Layout(_) | Work::Remove { .. } => {
            true
        }
        Work::Task(task) => deeds::reads_target(task),
    };
    let moved = |worker: &WorkerResult| match direction(phase) {
        // What was written back was read before, and counted once.
        Some(Direction::Update(_)) => worker.bytes().0,
        Some(
            Direction::Read
            | Direction::Write
            | Direction::Alternate
            | Direction::FirstRead(_)
            | Direction::Mixed(_),
        )
        | None => worker.read.bytes.0,
    };
    let read: u64 = result.workers.iter().map(moved).sum();
    (there && read > 0).then(|| float(read) * beyond_counting(phase, result))
}

/// Bytes written to the filesystem under test, those of the ramp-up and those after a stonewall
/// included; `None` where none were.
pub(super) fn written_to_target(phase: &Phase, result: &PhaseResult) -> Option<f64> {
    let there = match &phase.work {
        Work::Stream(stream) => stream.moves(),
        Work::Tree(_) | Work::Mix(_) | Work::Replay(_) | Work::Layout(_) | Work::Remove { .. } => {
            true
        }
        Work::Task(task) => deeds::writes_target(task),
    };
    let all =
        |part: fn(&WorkerResult) -> Bytes| float(result.workers.iter().map(part).sum::<Bytes>().0);
    let written = all(|worker| worker.written.bytes) * with_ramp(phase, result)
        + all(|worker| worker.uncounted);
    (there && written > 0.0).then_some(written)
}

/// How much more the workers did than what was counted, for the ramp-up alone: a factor of at least
/// 1. Work is taken to be as frequent there as in the counted part.
fn with_ramp(phase: &Phase, result: &PhaseResult) -> f64 {
    let ramp = ramp(phase);
    let counted = nanos(sum(result, |worker| worker.loop_time));
    let ramps = nanos(sum(result, |_| ramp));
    if counted > 0.0 { 1.0 + ramps / counted } else { 1.0 }
}

/// Whether reads of this phase can be served from the page cache at all.
pub(super) fn uses_page_cache(phase: &Phase) -> bool {
    match &phase.work {
        Work::Stream(stream) => !stream.open.direct && stream.moves(),
        Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Remove { .. } => true,
    }
}

/// Whether all that a stream writes has been made durable at its end.
pub(super) fn durable(stream: &Stream) -> bool {
    stream.flush != Flush::None
        || stream.flush_every.is_some_and(|every| every.call != FlushCall::Range)
        || stream.open.sync
        || stream.open.dsync
        || matches!(stream.interface, Interface::Vector(flags) if flags.dsync)
        || matches!(stream.interface, Interface::Ring(ring) if ring.linked_sync)
}

/// Whether all that a phase wrote had reached the devices when it ended: it was flushed at the end,
/// or each write went through.
pub(super) fn ends_on_devices(phase: &Phase, result: &PhaseResult) -> bool {
    match &phase.work {
        Work::Stream(stream) => {
            // What was written after the last flush inside the loop may still be in memory.
            let every = Stream { flush_every: None, ..stream.clone() };
            durable(&every) || stream.open.direct
        }
        Work::Tree(tree) => tree.end.sync || tree.steps.contains(&TreeStep::Fsync),
        Work::Task(_) => flushed(result),
        // What was written after the last flush of a file may still be in memory.
        Work::Replay(replay) => replay.durability.files || replay.durability.writes,
        Work::Mix(_) | Work::Layout(_) | Work::Remove { .. } => false,
    }
}

/// Whether a flush followed.
pub(super) fn flushed(result: &PhaseResult) -> bool {
    result.workers.iter().any(|worker| worker.flush_time > Nanos(0))
}

//! Bytes requested by a phase, bytes moved by the devices, and the ratios of both.

use model::{
    Bytes, Metric, Nanos, Phase, PhaseResult, SystemActivity,
    activity::DeviceActivity,
    phase::{Direction, EndSync, Stream, TreeStep, Work, WorkerResult},
};

use super::{PhaseSamples, beyond_counting, direction, float, nanos, ramp, sum};
use crate::runner::task_files;

/// Sum of the activity of all devices of a filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Devices {
    pub(super) read: Bytes,
    pub(super) written: Bytes,
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// `None` if the counters of a device are not available.
    pub(super) flushes: Option<u64>,
    /// `None` if the counters of a device are not available.
    pub(super) discarded: Option<Bytes>,
    /// Busy time of the busiest device.
    pub(super) busy: Nanos,
    pub(super) queue_time: Nanos,
}

impl Devices {
    /// Sum of the devices directly below the filesystem (depth 0). `None` if there is none, or if
    /// the counters of a device are not available.
    pub(super) fn under(activity: &SystemActivity) -> Option<Self> {
        if activity.without_counters.iter().any(|device| device.depth == 0) {
            return None;
        }
        let mut own = activity.devices.iter().filter(|device| device.depth == 0).peekable();
        own.peek()?;
        let none = Self { flushes: Some(0), discarded: Some(Bytes(0)), ..Self::default() };
        Some(own.fold(none, Self::and))
    }

    fn and(self, device: &DeviceActivity) -> Self {
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

/// Bytes moved per byte requested, and the cache hit ratio.
/// Amplification is omitted if the devices also serve other processes (`shared`).
pub(super) fn add(
    named: &mut PhaseSamples<'_>,
    result: &PhaseResult,
    activity: &SystemActivity,
    shared: bool,
) {
    let Some(devices) = Devices::under(activity) else { return };
    if let Some(asked) = read_from_target(named.phase, result) {
        let delivered = float(devices.read.0);
        if uses_page_cache(named.phase) {
            // The device also reads metadata and reads ahead, so it may have read more than
            // requested.
            named.add(Metric::CacheHitRatio, (1.0 - delivered / asked).max(0.0));
        }
        if named.phase.cache == model::phase::Cache::Cold && !shared {
            named.add(Metric::ReadAmplification, delivered / asked);
        }
    }
    let written = written_ratio(named.phase, result, activity).filter(|_| !shared);
    if let Some(ratio) = written {
        named.add(Metric::WriteAmplification, ratio);
    }
}

/// Bytes written by the devices per byte written by the workload, if all of its data reached them.
pub(super) fn written_ratio(
    phase: &Phase,
    result: &PhaseResult,
    activity: &SystemActivity,
) -> Option<f64> {
    let devices = Devices::under(activity)?;
    let given = written_to_target(phase, result)?;
    ends_on_devices(phase, result).then(|| float(devices.written.0) / given)
}

/// Bytes read from the filesystem under test, including those of the ramp time and of updates;
/// `None` if there are none.
pub(super) fn read_from_target(phase: &Phase, result: &PhaseResult) -> Option<f64> {
    let there = phase.work.stream().is_none_or(Stream::moves)
        && phase.work.task().is_none_or(task_files::reads_target);
    let moved = |worker: &WorkerResult| match direction(phase) {
        // An update reads a block and writes it back, and its bytes are counted once.
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

/// Bytes written to the filesystem under test, including the ramp time and the time after a
/// stonewall. `None` if no bytes were written.
pub(super) fn written_to_target(phase: &Phase, result: &PhaseResult) -> Option<f64> {
    let there = phase.work.stream().is_none_or(Stream::moves)
        && phase.work.task().is_none_or(task_files::writes_target);
    let all =
        |part: fn(&WorkerResult) -> Bytes| float(result.workers.iter().map(part).sum::<Bytes>().0);
    let written = all(|worker| worker.written.bytes) * with_ramp(phase, result)
        + all(|worker| worker.uncounted);
    (there && written > 0.0).then_some(written)
}

/// Ratio of the operations during ramp time and counted time to the counted operations, at least 1.
/// The rate during the ramp time is assumed to equal the counted rate.
fn with_ramp(phase: &Phase, result: &PhaseResult) -> f64 {
    let ramp = ramp(phase);
    let counted = nanos(sum(result, |worker| worker.loop_time));
    let ramps = nanos(sum(result, |_| ramp));
    if counted > 0.0 { 1.0 + ramps / counted } else { 1.0 }
}

/// Reports whether the page cache can serve reads of this phase.
pub(super) fn uses_page_cache(phase: &Phase) -> bool {
    phase.work.stream().is_none_or(|stream| !stream.open.direct && stream.moves())
}

/// Reports whether a stream syncs its data: at its end, within the loop, or with each write. Data
/// written after the last sync within the loop may not be synced.
pub(super) fn durable(stream: &Stream) -> bool {
    stream.end_sync != EndSync::None
        || stream.sync_every.is_some_and(|every| every.call.is_durable())
        || stream.open.sync
        || stream.open.dsync
        || stream.io_engine.properties().durable_writes
}

/// Reports whether all data written by a phase had reached the devices at its end, because the data
/// was synced or each write was synchronous or direct.
pub(super) fn ends_on_devices(phase: &Phase, result: &PhaseResult) -> bool {
    match &phase.work {
        Work::Stream(stream) => {
            // Data written after the last sync inside the loop may still be in memory.
            let every = Stream { sync_every: None, ..stream.clone() };
            durable(&every) || stream.open.direct
        }
        Work::Tree(tree) => tree.end.sync || tree.steps.contains(&TreeStep::Fsync),
        Work::Task(_) | Work::Command(_) => flushed(result),
        Work::Sqlite(sqlite) => sqlite.commits(),
        Work::Mail(_) => true,
        // Data written after the last sync of a file may still be in memory.
        Work::Replay(replay) => replay.durability.files || replay.durability.writes,
        Work::Mix(_)
        | Work::Layout(_)
        | Work::Trace(_)
        | Work::Maintenance(_)
        | Work::Coherence(_)
        | Work::Remove { .. } => false,
    }
}

/// Reports whether the phase ends with a sync.
pub(super) fn flushed(result: &PhaseResult) -> bool {
    result.workers.iter().any(|worker| worker.end_sync_time > Nanos(0))
}

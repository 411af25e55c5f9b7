//! The one place where results become samples: names, units and the arithmetic between counters and
//! rates.

use model::{
    Bytes, Metric, Nanos, Phase, PhaseResult, Ratio, Sample, Warning,
    phase::{Access, Cache, Direction, Fill, Flush, Stream, Work, WorkerResult},
};
use rig::DeviceCounters;

/// The classic tool's clock tick, gettimeofday(2)'s microsecond, which it takes off every time; a
/// shorter time counts as one tick.
const TICK: Nanos = Nanos(1000);

/// Below this a phase says little: a scheduling hiccup of a millisecond is a tenth of it.
const SHORT: Nanos = Nanos(10_000_000);

/// A percentile needs this many values beyond it (`docs/method/statistics.md`).
const BEYOND: f64 = 10.0;

/// Share of the median operation that reading the clock may take.
const CLOCK_SHARE: f64 = 0.02;

/// Share of a cold read that must come from the device; the rest is metadata and read-ahead
/// rounding.
const COLD_SHARE: f64 = 0.95;

/// The samples of a measured phase.
pub(super) fn samples(
    phase: &Phase,
    result: &PhaseResult,
    device: Option<DeviceCounters>,
) -> Vec<Sample> {
    let mut named = Named { phase, samples: Vec::new() };
    named.add(Metric::Elapsed, nanos(result.wall_time));
    if let Some(device) = device {
        named.add(Metric::DeviceRead, float(device.read.0));
        named.add(Metric::DeviceWritten, float(device.written.0));
    }
    if let Work::Stream(stream) = &phase.work {
        rates(&mut named, stream, result);
        latencies(&mut named, result);
        times(&mut named, result);
    }
    named.samples
}

struct Named<'a> {
    phase: &'a Phase,
    samples: Vec<Sample>,
}

impl Named<'_> {
    fn add(&mut self, metric: Metric, value: f64) {
        self.samples.push(Sample { phase: self.phase.name.clone(), metric, worker: None, value });
    }
}

fn rates(named: &mut Named<'_>, stream: &Stream, result: &PhaseResult) {
    let timed = named.phase.timed;
    let counted = |worker: &WorkerResult| {
        let flush = if timed.flush { worker.flush_time } else { Nanos(0) };
        let close = if timed.close { worker.close_time } else { Nanos(0) };
        let elapsed = worker.loop_time + flush + close;
        if timed.tick_subtracted { (elapsed - TICK).max(TICK) } else { elapsed }
    };
    let window = window(result.workers.iter(), counted);
    named.add(Metric::Throughput, per_second(result.bytes().0, window));
    named.add(Metric::OpsRate, per_second(result.ops().0, window));
    if stream.direction != Direction::Read && stream.flush == Flush::Fsync {
        let writers = || result.workers.iter().filter(|worker| !worker.reads);
        let bytes = writers().map(|worker| (worker.bytes + worker.uncounted).0).sum();
        // What was flushed includes what was written after the counting had stopped, and its time.
        let durable = self::window(writers(), until_durable);
        named.add(Metric::DurableThroughput, per_second(bytes, durable));
    }
    if result.workers.len() > 1 {
        let rate = |worker: &WorkerResult| per_second(worker.bytes.0, counted(worker));
        named.add(Metric::ThroughputSum, result.workers.iter().map(rate).sum());
        named.add(Metric::StartSkew, nanos(result.start_skew()));
        let phase = named.phase.name.clone();
        named.samples.extend(result.workers.iter().map(|worker| Sample {
            phase: phase.clone(),
            metric: Metric::Throughput,
            worker: Some(worker.worker),
            value: rate(worker),
        }));
    }
}

/// Until all that a worker wrote was flushed, what it wrote after the counting had stopped
/// included.
fn until_durable(worker: &WorkerResult) -> Nanos {
    worker.loop_time + worker.uncounted_time + worker.flush_time
}

/// From the first worker's start to the last worker's end.
fn window<'a>(
    workers: impl Iterator<Item = &'a WorkerResult> + Clone,
    length: impl Fn(&WorkerResult) -> Nanos,
) -> Nanos {
    let start = workers.clone().map(|worker| worker.started).min().unwrap_or_default();
    let end = workers.map(|worker| worker.started + length(worker)).max();
    end.unwrap_or_default() - start
}

fn latencies(named: &mut Named<'_>, result: &PhaseResult) {
    let latency = result.latency();
    let enough = |quantile: f64| float(latency.count()) * (1.0 - quantile) >= BEYOND;
    for (metric, quantile) in
        [(Metric::LatencyP50, 0.5), (Metric::LatencyP99, 0.99), (Metric::LatencyP999, 0.999)]
    {
        if let (true, Some(value)) = (enough(quantile), latency.quantile(quantile)) {
            named.add(metric, nanos(value));
        }
    }
    if let (Some(mean), Some(max)) = (latency.mean(), latency.max()) {
        named.add(Metric::LatencyMean, nanos(mean));
        named.add(Metric::LatencyMax, nanos(max));
    }
}

fn times(named: &mut Named<'_>, result: &PhaseResult) {
    let longest = |time: fn(&WorkerResult) -> Nanos| {
        nanos(result.workers.iter().map(time).max().unwrap_or_default())
    };
    named.add(Metric::LoopTime, longest(|worker| worker.loop_time));
    named.add(Metric::FlushTime, longest(|worker| worker.flush_time));
    named.add(Metric::CloseTime, longest(|worker| worker.close_time));
    let total = |time: fn(&WorkerResult) -> Nanos| {
        nanos(result.workers.iter().map(time).fold(Nanos(0), |sum, time| sum + time))
    };
    named.add(Metric::UserTime, total(|worker| worker.user_time));
    named.add(Metric::SystemTime, total(|worker| worker.system_time));
}

/// What is wrong with the numbers of a measured phase.
pub(super) fn warnings(
    phase: &Phase,
    result: &PhaseResult,
    device: Option<DeviceCounters>,
    clock_cost: Nanos,
) -> Vec<Warning> {
    let Work::Stream(stream) = &phase.work else { return Vec::new() };
    let mut warnings = Vec::new();
    let writes = stream.direction != Direction::Read;
    let durable = phase.primary() == Metric::DurableThroughput;
    let judged = |worker: &WorkerResult| {
        if durable { until_durable(worker) } else { worker.loop_time }
    };
    let elapsed = window(result.workers.iter(), judged);
    if elapsed < SHORT {
        warnings.push(Warning::Short { elapsed });
    }
    if let Some(median) = result.latency().quantile(0.5)
        && float(clock_cost.0) > CLOCK_SHARE * float(median.0)
    {
        warnings.push(Warning::Clock { cost: clock_cost, median });
    }
    if writes && stream.flush == Flush::None && !stream.open.sync {
        warnings.push(Warning::Unsynced);
    }
    if writes && (stream.fill == Fill::PagePattern || low_entropy(stream.fill)) {
        warnings.push(Warning::Compressible);
    }
    if let (Some(device), Direction::Read, Cache::Cold) = (device, stream.direction, phase.cache) {
        let asked = distinct(stream, result);
        if float(device.read.0) < COLD_SHARE * float(asked.0) {
            warnings.push(Warning::NotCold { asked, from_device: device.read });
        }
    }
    warnings
}

fn low_entropy(fill: Fill) -> bool {
    matches!(fill, Fill::Random { entropy, .. } if Ratio(entropy) < Ratio(0.9))
}

/// Bytes of different records a phase read: a strided pass over a short file visits one record
/// often.
fn distinct(stream: &Stream, result: &PhaseResult) -> Bytes {
    let records = stream.size.0 / stream.record.0.max(1);
    match stream.access {
        Access::SameRecord => stream.record,
        // Up to one stride all visits are to record 0; beyond, two records are visited twice.
        Access::Stride { records: stride } if records <= stride => stream.record,
        Access::Stride { .. } => result.bytes() - Bytes(2 * stream.record.0),
        Access::Sequential | Access::Backward | Access::Shuffled => result.bytes(),
    }
}

fn per_second(amount: u64, time: Nanos) -> f64 {
    // An interval of zero cannot be seen; the clock's own nanosecond bounds the rate.
    float(amount) / Nanos(time.0.max(1)).seconds()
}

fn nanos(time: Nanos) -> f64 {
    float(time.0)
}

#[expect(clippy::cast_precision_loss, reason = "relative error 1e-16 above 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use model::{Ops, phase::*};

    use super::*;

    fn phase(direction: Direction, timed: Timed) -> Phase {
        Phase {
            name: "p".into(),
            group: "writing".into(),
            role: Role::Measure,
            cache: Cache::Cold,
            timed,
            work: Work::Stream(Stream {
                files: Files::One("f".into()),
                size: Bytes::mib(1),
                record: Bytes::kib(4),
                direction,
                access: Access::Sequential,
                interface: Interface::Offset,
                open: Open::default(),
                fill: Fill::Random { entropy: 1.0, seed: 1 },
                verify: false,
                flush: if direction == Direction::Read { Flush::None } else { Flush::Fsync },
                workers: Workers::ONE,
            }),
        }
    }

    /// Two workers: 1 s and 2 s of loop, started 0.5 s apart, 1 s of flush and of close each.
    fn result() -> PhaseResult {
        let worker = |worker: u32, started: u64, seconds: u64| WorkerResult {
            worker,
            started: Nanos(started),
            loop_time: Nanos(seconds * 1_000_000_000),
            flush_time: Nanos(1_000_000_000),
            close_time: Nanos(1_000_000_000),
            ops: Ops(256),
            bytes: Bytes::mib(1),
            ..WorkerResult::default()
        };
        PhaseResult {
            workers: vec![worker(0, 0, 1), worker(1, 500_000_000, 2)],
            wall_time: Nanos(5_000_000_000),
        }
    }

    fn value(samples: &[Sample], metric: Metric) -> Option<f64> {
        samples.iter().find(|s| s.metric == metric && s.worker.is_none()).map(|s| s.value)
    }

    #[test]
    fn rates_are_over_first_start_to_last_end() {
        let mib = float(Bytes::MIB);
        let named = samples(&phase(Direction::Write, Timed::default()), &result(), None);
        assert_eq!(value(&named, Metric::Throughput), Some(2.0 * mib / 2.5));
        assert_eq!(value(&named, Metric::DurableThroughput), Some(2.0 * mib / 3.5));
        assert_eq!(value(&named, Metric::ThroughputSum), Some(mib + mib / 2.0));
        assert_eq!(value(&named, Metric::OpsRate), Some(512.0 / 2.5));
        assert_eq!(value(&named, Metric::StartSkew), Some(5e8));
        assert_eq!(value(&named, Metric::DeviceRead), None, "absent, not zero");
        let timed = Timed { flush: true, close: true, tick_subtracted: false };
        let named = samples(&phase(Direction::Write, timed), &result(), None);
        assert_eq!(value(&named, Metric::Throughput), Some(2.0 * mib / 4.5));
    }

    #[test]
    fn what_was_written_after_the_stonewall_counts_with_its_time_or_not_at_all() {
        let mut result = result();
        result.workers[1].uncounted = Bytes::mib(1);
        result.workers[1].uncounted_time = Nanos(500_000_000);
        let named = samples(&phase(Direction::Write, Timed::default()), &result, None);
        let mib = float(Bytes::MIB);
        assert_eq!(value(&named, Metric::Throughput), Some(2.0 * mib / 2.5));
        assert_eq!(value(&named, Metric::DurableThroughput), Some(3.0 * mib / 4.0));
    }

    #[test]
    fn a_tick_is_taken_off_in_the_original_way() {
        let timed = Timed { tick_subtracted: true, ..Timed::default() };
        let mut result = result();
        result.workers.truncate(1);
        let named = samples(&phase(Direction::Write, timed), &result, None);
        assert_eq!(value(&named, Metric::Throughput), Some(float(Bytes::MIB) / 0.999_999));
        result.workers[0].loop_time = Nanos(900);
        let named = samples(&phase(Direction::Write, timed), &result, None);
        assert_eq!(value(&named, Metric::Throughput), Some(float(Bytes::MIB) / 1e-6));
    }

    #[test]
    fn a_cold_read_must_reach_the_device() {
        let phase = phase(Direction::Read, Timed::default());
        let device = |read| Some(DeviceCounters { read, written: Bytes(0) });
        let codes = |read| -> Vec<_> {
            let warnings = warnings(&phase, &result(), device(read), Nanos(20));
            warnings.iter().map(Warning::code).collect()
        };
        assert_eq!(codes(Bytes::mib(2)), Vec::<&str>::new());
        assert_eq!(codes(Bytes::mib(1)), ["W-CACHE"]);
    }
}

//! Work over time: throughput and operations per second.

use model::{
    Clock, Metric, Nanos, PhaseResult, Sample,
    phase::{EndSync, Stream, Work, WorkerResult},
};

use super::{PhaseSamples, direction, float, mixed, moved::flushed, nanos, until_durable, window};

/// Clock tick of IOzone, which IOzone subtracts from every time: the microsecond of
/// gettimeofday(2). A shorter difference counts as one tick.
const TICK: Nanos = Nanos(1000);

/// Adds the elapsed time. The time of a task or command ends with its loop, as at a shell
/// prompt. The time
/// including the final sync is a separate metric.
pub(super) fn elapsed(named: &mut PhaseSamples<'_>, result: &PhaseResult) {
    let program = matches!(named.phase.work, Work::Task(_) | Work::Command(_));
    if !program || result.workers.is_empty() {
        named.add(Metric::Elapsed, nanos(result.wall_time - named.idle));
        return;
    }
    let longest = |time: fn(&WorkerResult) -> Nanos| window(result.workers.iter(), time);
    named.add(Metric::Elapsed, nanos(longest(|worker| worker.loop_time) - named.idle));
    if flushed(result) {
        named.add(Metric::DurableElapsed, nanos(longest(until_durable)));
    }
    let settle = longest(|worker| worker.uncounted_time);
    if matches!(named.phase.work, Work::Command(_)) && settle.0 > 0 {
        named.add(Metric::SettleTime, nanos(settle));
    }
}

pub(super) fn add(named: &mut PhaseSamples<'_>, result: &PhaseResult) {
    let timed = named.phase.timed;
    let counted = |worker: &WorkerResult| {
        let flush = if timed.sync { worker.end_sync_time } else { Nanos(0) };
        let close = if timed.close { worker.close_time } else { Nanos(0) };
        let elapsed = worker.loop_time + flush + close;
        if timed.tick_subtracted { (elapsed - TICK).max(TICK) } else { elapsed }
    };
    let window = window(result.workers.iter(), counted);
    if named.clock == Clock::Instructions {
        instructions(named, result, window);
        return;
    }
    // A tree of empty files moves no bytes, so it has no throughput. A task that both reads and
    // writes moves the same bytes twice, so its read and write throughput are separate metrics.
    let task = matches!(named.phase.work, Work::Task(_));
    let both_ways = mixed(result, |moved| if task { moved.bytes.0 } else { moved.ops.0 });
    let copies = task && both_ways;
    let moves = !copies && (result.bytes().0 > 0 || direction(named.phase).is_some());
    let rate = if matches!(named.phase.work, Work::Mail(_)) {
        // The readers end after the deliverers.
        let writers = || result.workers.iter().filter(|worker| worker.writes());
        let written = writers().map(|worker| worker.written.ops.0).sum();
        per_second(written, super::window(writers(), counted))
    } else {
        per_second(result.ops().0, window)
    };
    let primary = named.phase.primary();
    if matches!(&named.phase.work, Work::Command(command) if command.syncs_within_run_time()) {
        named.add(Metric::DurableThroughput, per_second(result.bytes().0, window));
        if primary == Metric::CommitRate {
            named.add(primary, rate);
        }
        return;
    }
    if moves {
        named.add(Metric::Throughput, per_second(result.bytes().0, window));
    }
    // The operations of a command are known only from its log.
    if result.ops().0 > 0 || !matches!(named.phase.work, Work::Command(_)) {
        named.add(Metric::OpsRate, rate);
    }
    if matches!(primary, Metric::CommitRate | Metric::DeliveryRate) {
        named.add(primary, rate);
    }
    if both_ways {
        both(named, result, window);
    }
    if let Work::Stream(stream) = &named.phase.work {
        durable(named, stream, result);
    }
    if result.workers.len() > 1 {
        each(named, result, moves, counted);
    }
}

/// Adds instruction counts, which replace rates on an instruction clock. Idle time is excluded. The
/// setup of the workers does not wait, so all idle time is assumed to be within the timed part.
fn instructions(named: &mut PhaseSamples<'_>, result: &PhaseResult, window: Nanos) {
    let idle = named.idle;
    let window = window - idle;
    named.add(Metric::Instructions, nanos(window));
    if result.ops().0 > 0 {
        named.add(Metric::InstructionsPerOp, nanos(window) / float(result.ops().0));
    }
    let Work::Stream(stream) = &named.phase.work else { return };
    let writers = || result.workers.iter().filter(|worker| worker.writes());
    let written: u64 = writers().map(|worker| worker.written.ops.0).sum();
    // The final sync also covers data that was written after counting stopped, so the instructions
    // per counted operation are then unknown.
    let all = writers().all(|worker| worker.uncounted.0 == 0);
    if flushes(stream) && all && written > 0 {
        let durable = super::window(writers(), until_durable) - idle;
        named.add(Metric::DurableInstructionsPerOp, nanos(durable) / float(written));
    }
}

/// Adds the throughput of reads and of writes, each over the elapsed time of both.
fn both(named: &mut PhaseSamples<'_>, result: &PhaseResult, window: Nanos) {
    let all =
        |part: fn(&WorkerResult) -> u64| per_second(result.workers.iter().map(part).sum(), window);
    named.add(Metric::ReadThroughput, all(|worker| worker.read.bytes.0));
    named.add(Metric::WriteThroughput, all(|worker| worker.written.bytes.0));
    // Operations of a task are entries or copies, each of which is read and written. Operations of
    // a replay are of many types, each of which is a separate metric.
    if matches!(named.phase.work, Work::Task(_) | Work::Replay(_) | Work::Trace(_)) {
        return;
    }
    named.add(Metric::ReadOpsRate, all(|worker| worker.read.ops.0));
    named.add(Metric::WriteOpsRate, all(|worker| worker.written.ops.0));
}

fn durable(named: &mut PhaseSamples<'_>, stream: &Stream, result: &PhaseResult) {
    let writers = || result.workers.iter().filter(|worker| worker.writes());
    if !flushes(stream) {
        return;
    }
    let bytes = writers().map(|worker| (worker.written.bytes + worker.uncounted).0).sum();
    // Both the synced bytes and the time include data written after counting stopped.
    let durable = window(writers(), until_durable);
    named.add(Metric::DurableThroughput, per_second(bytes, durable));
}

/// Reports whether a stream writes and syncs its data.
fn flushes(stream: &Stream) -> bool {
    (stream.end_sync != EndSync::None && stream.writes_once() || stream.sync_every.is_some())
        && (0..stream.workers.count).any(|worker| stream.direction.writes(worker))
}

/// Adds the rate of each worker, and the differences between their start and end times.
fn each(
    named: &mut PhaseSamples<'_>,
    result: &PhaseResult,
    moves: bool,
    counted: impl Fn(&WorkerResult) -> Nanos,
) {
    let metric = if moves { Metric::Throughput } else { Metric::OpsRate };
    let rate = |worker: &WorkerResult| {
        let amount = if moves { worker.bytes().0 } else { worker.ops().0 };
        per_second(amount, counted(worker))
    };
    if moves {
        named.add(Metric::ThroughputWorkerSum, result.workers.iter().map(&rate).sum());
    }
    named.add(Metric::StartSkew, nanos(result.start_skew()));
    named.add(Metric::EndSkew, nanos(result.end_skew()));
    let phase = named.phase.name.clone();
    if moves && result.workers.len() > 1 {
        named.samples.extend(result.workers.iter().map(|worker| Sample {
            phase: phase.clone(),
            metric: Metric::WorkerBytes,
            worker: Some(worker.worker),
            value: float(worker.bytes().0),
        }));
    }
    named.samples.extend(result.workers.iter().map(|worker| Sample {
        phase: phase.clone(),
        metric,
        worker: Some(worker.worker),
        value: rate(worker),
    }));
}

fn per_second(amount: u64, time: Nanos) -> f64 {
    // At least one nanosecond, because the rate would otherwise be infinite.
    float(amount) / Nanos(time.0.max(1)).seconds()
}

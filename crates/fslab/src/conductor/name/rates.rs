//! Work over time: throughput and operations per second.

use model::{
    Clock, Metric, Nanos, PhaseResult, Sample,
    phase::{Flush, Stream, Work, WorkerResult},
};

use super::{Named, direction, float, mixed, moved::flushed, nanos, until_durable, window};

/// The classic tool's clock tick, gettimeofday(2)'s microsecond, which it takes off every time; a
/// shorter time counts as one tick.
const TICK: Nanos = Nanos(1000);

/// How long it took. A task is over with its loop, as at the prompt; the flush that follows is told
/// beside it.
pub(super) fn elapsed(named: &mut Named<'_>, result: &PhaseResult) {
    if !matches!(named.phase.work, Work::Task(_)) || result.workers.is_empty() {
        named.add(Metric::Elapsed, nanos(result.wall_time - named.idle));
        return;
    }
    let longest = |time: fn(&WorkerResult) -> Nanos| window(result.workers.iter(), time);
    named.add(Metric::Elapsed, nanos(longest(|worker| worker.loop_time) - named.idle));
    if flushed(result) {
        named.add(Metric::DurableElapsed, nanos(longest(until_durable)));
    }
}

pub(super) fn add(named: &mut Named<'_>, result: &PhaseResult) {
    let timed = named.phase.timed;
    let counted = |worker: &WorkerResult| {
        let flush = if timed.flush { worker.flush_time } else { Nanos(0) };
        let close = if timed.close { worker.close_time } else { Nanos(0) };
        let elapsed = worker.loop_time + flush + close;
        if timed.tick_subtracted { (elapsed - TICK).max(TICK) } else { elapsed }
    };
    let window = window(result.workers.iter(), counted);
    if named.clock == Clock::Instructions {
        instructions(named, result, window);
        return;
    }
    // A tree of empty files moves nothing, and is not slow for that. A task that both reads and
    // writes moves the same bytes twice; they are told apart.
    let task = matches!(named.phase.work, Work::Task(_));
    let both_ways = mixed(result, |moved| if task { moved.bytes.0 } else { moved.ops.0 });
    let copies = task && both_ways;
    let moves = !copies && (result.bytes().0 > 0 || direction(named.phase).is_some());
    if moves {
        named.add(Metric::Throughput, per_second(result.bytes().0, window));
    }
    named.add(Metric::OpsRate, per_second(result.ops().0, window));
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

/// What stands in place of rates where the clock counts instructions. What it jumped over is none
/// of them: making workers ready waits for nothing, so that is taken to have been in the region.
fn instructions(named: &mut Named<'_>, result: &PhaseResult, window: Nanos) {
    let idle = named.idle;
    let window = window - idle;
    named.add(Metric::Instructions, nanos(window));
    if result.ops().0 > 0 {
        named.add(Metric::InstructionsPerOp, nanos(window) / float(result.ops().0));
    }
    let Work::Stream(stream) = &named.phase.work else { return };
    let writers = || result.workers.iter().filter(|worker| worker.writes());
    let written: u64 = writers().map(|worker| worker.written.ops.0).sum();
    // What was written after the counting had stopped is flushed too, and in no count.
    let all = writers().all(|worker| worker.uncounted.0 == 0);
    if flushes(stream) && all && written > 0 {
        let durable = super::window(writers(), until_durable) - idle;
        named.add(Metric::DurableInstructionsPerOp, nanos(durable) / float(written));
    }
}

/// Reads and writes apart, over the same time as both together.
fn both(named: &mut Named<'_>, result: &PhaseResult, window: Nanos) {
    let all =
        |part: fn(&WorkerResult) -> u64| per_second(result.workers.iter().map(part).sum(), window);
    named.add(Metric::ReadThroughput, all(|worker| worker.read.bytes.0));
    named.add(Metric::WriteThroughput, all(|worker| worker.written.bytes.0));
    // The operations of a task are entries or copies, each of which is read and written; those of a
    // replay are of many kinds, each of which is told apart.
    if matches!(named.phase.work, Work::Task(_) | Work::Replay(_)) {
        return;
    }
    named.add(Metric::ReadOpsRate, all(|worker| worker.read.ops.0));
    named.add(Metric::WriteOpsRate, all(|worker| worker.written.ops.0));
}

fn durable(named: &mut Named<'_>, stream: &Stream, result: &PhaseResult) {
    let writers = || result.workers.iter().filter(|worker| worker.writes());
    if !flushes(stream) {
        return;
    }
    let bytes = writers().map(|worker| (worker.written.bytes + worker.uncounted).0).sum();
    // What was flushed includes what was written after the counting had stopped, and its time.
    let durable = window(writers(), until_durable);
    named.add(Metric::DurableThroughput, per_second(bytes, durable));
}

/// Whether a stream writes and flushes what it has written.
fn flushes(stream: &Stream) -> bool {
    (stream.flush != Flush::None && stream.writes_once() || stream.flush_every.is_some())
        && (0..stream.workers.count).any(|worker| stream.direction.writes(worker))
}

/// Each worker's own rate, and how well the workers kept together.
fn each(
    named: &mut Named<'_>,
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
        named.add(Metric::ThroughputSum, result.workers.iter().map(&rate).sum());
    }
    named.add(Metric::StartSkew, nanos(result.start_skew()));
    named.add(Metric::EndSkew, nanos(result.end_skew()));
    let phase = named.phase.name.clone();
    named.samples.extend(result.workers.iter().map(|worker| Sample {
        phase: phase.clone(),
        metric,
        worker: Some(worker.worker),
        value: rate(worker),
    }));
}

fn per_second(amount: u64, time: Nanos) -> f64 {
    // An interval of zero cannot be seen; the clock's own nanosecond bounds the rate.
    float(amount) / Nanos(time.0.max(1)).seconds()
}

//! Pace and end of a loop, and reads of written blocks in it.

use model::phase::{Bound, Direction, Flow, Pace, Rate, Stonewall, Stream, VerifyBacklog};

use super::Problem;

/// Problems of reads of written blocks in the loop.
pub(super) fn backlog(stream: &Stream) -> Option<Problem> {
    if stream.rest_of.is_some() && !matches!(stream.bound, Bound::Once | Bound::Amount(_)) {
        return Some((
            "the last pass of an unlimited stream is not known",
            "limit it to an amount of work",
        ));
    }
    let VerifyBacklog { writes, reads } = stream.verify_backlog?;
    if !(1..=VerifyBacklog::LARGEST).contains(&writes) || reads == 0 {
        return Some(("verify_backlog is out of range", "use 1 to 1000000 writes, and a read"));
    }
    let queue = stream.io_engine.properties().queue_depth.is_some_and(|depth| depth > 1);
    if stream.direction != Direction::Write || !stream.moves() || queue {
        return Some((
            "only streams that write, with one operation in flight, read written blocks",
            "set direction to write and queue_depth to 1",
        ));
    }
    None
}

/// Problems of rates, pauses, and the end of the loop.
pub(super) fn time(stream: &Stream) -> Option<Problem> {
    if stream.flow.is_some_and(|flow| flow.number >= Flow::COUNT || flow.weight == 0) {
        return Some((
            "a flow is out of range",
            "use at most 64 flows, and a weight of at least 1",
        ));
    }
    let empty = |rate| matches!(rate, Rate::Ops(0) | Rate::Bytes(model::Bytes(0)));
    match stream.pace {
        Pace::Think { ops: 0, .. } => {
            return Some(("think_time_every is 0", "set it to at least 1"));
        }
        Pace::Limit(rate) | Pace::Open { rate, .. } if empty(rate) => {
            return Some(("rate is below 1 per second", "use at least 1"));
        }
        Pace::OpenByDirection { reads, writes, .. } if empty(reads) || empty(writes) => {
            return Some(("rate is below 1 per second", "use at least 1 for each direction"));
        }
        Pace::Free
        | Pace::Think { .. }
        | Pace::Limit(_)
        | Pace::Open { .. }
        | Pace::OpenByDirection { .. } => {}
    }
    match stream.bound {
        Bound::Time { run: model::Nanos(0), .. } => Some(("runtime is 0", "use a longer runtime")),
        Bound::Ops(0) | Bound::Together(0) => Some(("operations is 0", "use at least 1")),
        Bound::Amount(amount) if amount.ops == 0 || amount.bytes.0 == 0 => {
            Some(("the amount of work is 0", "use at least 1 operation and 1 byte"))
        }
        Bound::Deadline(model::Nanos(0)) => Some(("the deadline is 0", "use a longer time")),
        Bound::Deadline(_)
            if stream.pace != Pace::Free || stream.workers.stonewall != Stonewall::Off =>
        {
            Some((
                "a deadline excludes rates, pauses, and stonewall",
                "remove the deadline, or use operations without pauses and without stonewall",
            ))
        }
        Bound::Once
        | Bound::Ops(_)
        | Bound::Together(_)
        | Bound::Amount(_)
        | Bound::Time { .. }
        | Bound::Deadline(_) => None,
    }
}

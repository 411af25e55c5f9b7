//! Refuses streams that contradict themselves, before anything is touched.

use model::phase::{
    Access, Bound, Direction, Files, Fill, Interface, Pace, Presence, Rate, Stream, WorkerKind,
};

use crate::{Context, EngineError, io::touches_files, payload, worker::updates};

/// What contradicts what, and what to change.
type Problem = (&'static str, &'static str);

/// Makes sure that the stream can be run.
pub(super) fn check(stream: &Stream, context: &Context<'_>) -> Result<(), EngineError> {
    let problem = sizes(stream)
        .or_else(|| workers(stream, context))
        .or_else(|| content(stream))
        .or_else(|| update(stream))
        .or_else(|| access(stream))
        .or_else(|| interface(stream))
        .or_else(|| time(stream));
    problem.map_or(Ok(()), |(problem, cure)| Err(EngineError::Stream { problem, cure }))
}

/// An update reads even where all of it counts as written.
fn any_reads(stream: &Stream) -> bool {
    updates(stream) || (0..stream.workers.count).any(|worker| stream.direction.reads(worker))
}

fn any_writes(stream: &Stream) -> bool {
    (0..stream.workers.count).any(|worker| stream.direction.writes(worker))
}

fn share(share: f64) -> bool {
    (0.0..=1.0).contains(&share)
}

fn sizes(stream: &Stream) -> Option<Problem> {
    if stream.record.0 == 0 {
        return Some(("its record is empty", "give the size of a record"));
    }
    if stream.size < stream.record {
        return Some((
            "its files are smaller than one record",
            "use larger files or a smaller record",
        ));
    }
    if stream.lengths.iter().any(|length| length.records == 0 || length.weight == 0) {
        return Some(("one of its lengths is empty", "give each at least 1 record and weight 1"));
    }
    let part = match stream.files {
        Files::Split(_) => stream.size.0 / u64::from(stream.workers.count.max(1)),
        Files::One(_) | Files::PerWorker(_) | Files::Shared(_) => stream.size.0,
    };
    if part < stream.longest().0 {
        return Some((
            "its longest operation does not fit into the part of a worker",
            "use larger files, fewer workers, or shorter operations",
        ));
    }
    None
}

fn workers(stream: &Stream, context: &Context<'_>) -> Option<Problem> {
    let workers = stream.workers;
    if workers.count == 0 {
        return Some(("it has no workers", "use at least one"));
    }
    if workers.count > 1 && matches!(stream.files, Files::One(_)) {
        return Some((
            "it has several workers for one file",
            "give each worker a file of its own, or say that they share it",
        ));
    }
    if workers.count > 1
        && matches!(stream.files, Files::Shared(_) | Files::Split(_))
        && stream.open.presence == Presence::Fresh
    {
        return Some((
            "its workers would remove each other's fresh file",
            "let the file be used as it is",
        ));
    }
    if workers.kind == WorkerKind::Process && context.worker_command.is_empty() {
        return Some(("it wants processes and has no command for them", "use threads"));
    }
    None
}

fn content(stream: &Stream) -> Option<Problem> {
    if let Fill::Random { entropy, duplicates } = stream.fill
        && !(share(entropy) && share(duplicates))
    {
        return Some((
            "its share of random bytes or duplicates is not a share",
            "use a number within 0..=1",
        ));
    }
    if let (Fill::Marks, Interface::Ring(ring)) = (stream.fill, stream.interface)
        && ring.depth > 1
        && any_writes(stream)
    {
        return Some((
            "its operations in flight have one buffer for their marks",
            "use a depth of 1, or other content",
        ));
    }
    let null = !touches_files(stream.interface);
    if any_reads(stream) && stream.open.presence == Presence::Fresh && !null {
        return Some(("it reads files that it has just created", "write them in a phase before"));
    }
    if !stream.verify {
        return None;
    }
    let one_file = !matches!(stream.files, Files::PerWorker(_));
    let both = matches!(stream.direction, Direction::Mixed(_) | Direction::Update(_));
    if any_writes(stream) && any_reads(stream) && (one_file || both) {
        return Some((
            "it verifies what it overwrites at the same time",
            "verify in a phase that only reads",
        ));
    }
    if stream.access == Access::Replay {
        return Some((
            "it verifies a replay, whose operations need not begin where blocks do",
            "verify in a phase with another order",
        ));
    }
    if !any_reads(stream) && !matches!(stream.interface, Interface::Copy(_)) {
        return None;
    }
    if null {
        return Some(("nothing is moved, so there is no content to verify", "set verify to false"));
    }
    if !payload::has_headers(stream) {
        return Some((
            "it verifies content that has no headers",
            "use random content and records of at least 64 bytes",
        ));
    }
    None
}

fn update(stream: &Stream) -> Option<Problem> {
    let Direction::Update(part) = stream.direction else { return None };
    if !share(part) {
        return Some(("its share of updates is not a share", "use a number within 0..=1"));
    }
    if part == 0.0 {
        return Some(("it updates nothing", "let it read, or use a share above 0"));
    }
    if !matches!(stream.interface, Interface::Position | Interface::Null) {
        return Some((
            "it updates records, which is done at the position of an open file",
            "use the interface of read(2) and write(2)",
        ));
    }
    if payload::has_headers(stream) {
        return Some((
            "it changes bytes of content that has headers",
            "use content without headers, such as marks",
        ));
    }
    if stream.access == Access::Replay {
        return Some((
            "it updates what a list says to read or to write",
            "use another order, or let it read and write",
        ));
    }
    None
}

fn access(stream: &Stream) -> Option<Problem> {
    match stream.access {
        Access::Zipf { theta } if !(0.0..=10.0).contains(&theta) => {
            Some(("its zipf exponent is out of bounds", "use a number within 0..=10"))
        }
        Access::Pareto { share } if !(share > 0.0 && share < 0.5) => {
            Some(("its pareto share is out of bounds", "use a number above 0 and below 0.5"))
        }
        Access::Hot { space, visits } if !(space > 0.0 && space < 1.0 && share(visits)) => Some((
            "its hot zone is no part of the file",
            "use a space above 0 and below 1, and visits within 0..=1",
        )),
        Access::Replay if stream.list.is_empty() => {
            Some(("it replays and has no list", "give the path of a list of operations"))
        }
        Access::Append
            if stream.workers.count > 1
                && matches!(stream.files, Files::Shared(_) | Files::Split(_)) =>
        {
            Some(("its workers append to one file", "give each worker a file of its own"))
        }
        Access::Append if any_reads(stream) => {
            Some(("it appends and reads", "let all its workers write"))
        }
        Access::Sequential
        | Access::Backward
        | Access::SameRecord
        | Access::Stride { .. }
        | Access::Shuffled
        | Access::Permuted
        | Access::Random
        | Access::Zipf { .. }
        | Access::Pareto { .. }
        | Access::Append
        | Access::Hot { .. }
        | Access::Replay
        | Access::Tickets => None,
    }
}

fn interface(stream: &Stream) -> Option<Problem> {
    let open = stream.open;
    match stream.interface {
        Interface::Stdio if open.direct || open.sync || open.dsync => Some((
            "streams of the C library open without O_DIRECT, O_SYNC, and O_DSYNC",
            "set direct, sync, and dsync to false, or use another interface",
        )),
        Interface::Stdio if !stream.lengths.is_empty() => Some((
            "streams of the C library have a buffer of one record",
            "use one length, or another interface",
        )),
        Interface::Mmap(_) if open.direct => {
            Some(("a mapping is the page cache", "set direct to false"))
        }
        Interface::Mmap(_) if stream.access == Access::Append => {
            Some(("a mapping cannot grow its file", "append with another interface"))
        }
        Interface::Ring(ring) if ring.depth == 0 || ring.depth > 32_768 => {
            Some(("the depth of its queue is out of bounds", "use a number within 1..=32768"))
        }
        Interface::Ring(_) if stream.longest() >= model::Bytes::gib(4) => {
            Some(("an operation of its queue is 4 GiB or more", "use shorter operations"))
        }
        Interface::Ring(ring) if ring.batch > ring.depth => {
            Some(("its batch is larger than its queue", "use a batch within 0..=depth"))
        }
        Interface::Ring(ring) if ring.iopoll && !open.direct => {
            Some(("polling for completions is for direct I/O", "set direct to true"))
        }
        Interface::Ring(ring) if ring.depth > 1 && stream.access == Access::Append => {
            Some(("appends in flight have no order", "use a depth of 1"))
        }
        Interface::Ring(ring) if ring.iopoll && ring.linked_sync => {
            Some(("a sync cannot be polled for", "set iopoll or linked_sync to false"))
        }
        Interface::Copy(_) if any_reads(stream) => {
            Some(("a copy is a write", "let all its workers write"))
        }
        Interface::Copy(_) if stream.access == Access::Append => {
            Some(("a copy goes to places of its own", "append with another interface"))
        }
        Interface::Offset
        | Interface::Position
        | Interface::Bytewise
        | Interface::Stdio
        | Interface::Vector(_)
        | Interface::Mmap(_)
        | Interface::Ring(_)
        | Interface::Copy(_)
        | Interface::Null => None,
    }
}

fn time(stream: &Stream) -> Option<Problem> {
    let empty = |rate| matches!(rate, Rate::Ops(0) | Rate::Bytes(model::Bytes(0)));
    match stream.pace {
        Pace::Think { ops: 0, .. } => {
            return Some(("it thinks after no operations", "think after at least one"));
        }
        Pace::Limit(rate) | Pace::Open { rate, .. } if empty(rate) => {
            return Some(("its rate is zero", "use at least 1 per second"));
        }
        Pace::Free | Pace::Think { .. } | Pace::Limit(_) | Pace::Open { .. } => {}
    }
    match stream.bound {
        Bound::Time { run: model::Nanos(0), .. } => Some(("its time is zero", "run for some time")),
        Bound::Ops(0) | Bound::Together(0) => Some(("it has no operations", "use at least one")),
        Bound::Once | Bound::Ops(_) | Bound::Together(_) | Bound::Time { .. } => None,
    }
}

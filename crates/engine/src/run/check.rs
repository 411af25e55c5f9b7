//! Rejects invalid streams before anything is changed.

use model::phase::{
    AccessPattern, Bound, Completions, DataPattern, Direction, EngineFiles, FileCreation,
    FileSharing, IoEngineKind, Jump, SpaceCall, Stonewall, Stream, WorkerKind,
};

use crate::{Context, EngineError, file_offset::FILE_SHIFT, io::updates, payload};

mod pace;

/// Problem and hint.
type Problem = (&'static str, &'static str);

/// Checks that the stream can be run.
pub(super) fn check(stream: &Stream, context: &Context<'_>) -> Result<(), EngineError> {
    let problem = sizes(stream)
        .or_else(|| workers(stream, context))
        .or_else(|| content(stream))
        .or_else(|| pace::backlog(stream))
        .or_else(|| update(stream))
        .or_else(|| access(stream))
        .or_else(|| interface(stream))
        .or_else(|| completions(stream))
        .or_else(|| handling(stream))
        .or_else(|| several(stream))
        .or_else(|| pace::time(stream));
    problem.map_or(Ok(()), |(problem, hint)| Err(EngineError::Stream { problem, hint }))
}

/// True if a worker reads. An update reads, even though all of its bytes count as written.
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
    if stream.block_size.0 == 0 {
        return Some(("block_size is 0", "set it to at least 1"));
    }
    if stream.region_size() < stream.block_size {
        return Some((
            "file_size is smaller than block_size",
            "increase file_size or decrease block_size",
        ));
    }
    let mut sizes = stream.block_sizes.iter().chain(&stream.write_sizes).chain(&stream.jump_sizes);
    if sizes.any(|length| length.blocks == 0 || length.weight == 0) {
        return Some(("block_size_split has an entry of 0", "use at least 1 block and weight 1"));
    }
    let part = match stream.files.divides_file() {
        true => stream.size.0 / u64::from(stream.workers.count.max(1)),
        false => stream.region_size().0,
    };
    if !stream.write_sizes.is_empty() {
        let random = stream.access_pattern == AccessPattern::Random && stream.offset_alignment == 1;
        let pattern = random || stream.access_pattern == AccessPattern::SequentialPerDirection;
        let mixed = matches!(stream.direction, Direction::Mixed(_));
        if !pattern || !mixed || matches!(stream.files, FileSharing::Several(_)) {
            return Some((
                "only mixed sequential and uniformly random streams of one file per worker have \
                 other sizes of writes",
                "use equal sizes",
            ));
        }
    }
    if !stream.jump_sizes.is_empty()
        && !matches!(stream.access_pattern, AccessPattern::Runs { unique: false, .. })
    {
        return Some((
            "only runs with repeated offsets have other sizes of jumps",
            "use equal sizes",
        ));
    }
    if matches!(stream.files, FileSharing::Interleaved(_)) && !stream.block_sizes.is_empty() {
        return Some(("interleaved blocks have several sizes", "remove block_size_split"));
    }
    if stream.offset_alignment != 1 {
        let random = matches!(
            stream.access_pattern,
            AccessPattern::Random
                | AccessPattern::Zipf { .. }
                | AccessPattern::Pareto { .. }
                | AccessPattern::Hotspot { .. }
                | AccessPattern::Normal { .. }
                | AccessPattern::Zones
                | AccessPattern::Runs { unique: false, .. }
        );
        if !random || matches!(stream.files, FileSharing::Several(_)) {
            return Some((
                "only random offsets with repetition, in one file per worker, are aligned",
                "remove the alignment",
            ));
        }
        let aligned = stream.block_size.0.saturating_mul(stream.offset_alignment.into());
        if aligned == 0 || part < aligned {
            return Some(("no offset of the part is aligned", "use a larger file"));
        }
    }
    if part < stream.longest_operation().0 {
        return Some((
            "the longest operation exceeds the segment of a worker",
            "use larger files, fewer workers, or shorter operations",
        ));
    }
    None
}

fn workers(stream: &Stream, context: &Context<'_>) -> Option<Problem> {
    let workers = stream.workers;
    if workers.count == 0 {
        return Some(("workers is 0", "set it to at least 1"));
    }
    if workers.share.is_some() && matches!(stream.bound, Bound::Together(_)) {
        return Some((
            "workers of several hosts cannot share one number of operations",
            "set a runtime, or operations per worker",
        ));
    }
    if workers.share.is_some() && workers.stonewall != Stonewall::Off {
        return Some((
            "the first worker cannot stop the workers of other hosts",
            "set stonewall to off, or set a runtime",
        ));
    }
    if workers.count > 1 && matches!(stream.files, FileSharing::One(_)) {
        return Some((
            "several workers use one file",
            "set sharing to per-worker, shared, or segmented",
        ));
    }
    if workers.count > 1
        && !matches!(stream.files, FileSharing::One(_))
        && !stream.files.are_separate()
        && stream.open.creation == FileCreation::Fresh
    {
        return Some(("each worker would replace the shared file", "set overwrite to true"));
    }
    if workers.kind == WorkerKind::Process && context.worker_command.is_empty() {
        return Some(("worker processes are not available", "use worker_type thread"));
    }
    None
}

fn content(stream: &Stream) -> Option<Problem> {
    if let DataPattern::Random { incompressible_fraction: random, duplicate_fraction: copies } =
        stream.data
        && !(share(random) && share(copies))
    {
        return Some((
            "incompressible_fraction or duplicate_fraction is out of range",
            "use a number from 0 to 1",
        ));
    }
    if let (DataPattern::Marks, IoEngineKind::Ring(ring)) = (stream.data, stream.io_engine)
        && ring.depth > 1
        && any_writes(stream)
    {
        return Some((
            "content with marks uses one buffer, but several operations are in flight",
            "set queue_depth to 1, or use other content",
        ));
    }
    let null = !stream.moves();
    if any_reads(stream) && stream.open.creation == FileCreation::Fresh && !null {
        return Some(("it reads files that it creates itself", "write them in an earlier phase"));
    }
    if !stream.verify {
        return None;
    }
    let one_file = !stream.files.are_separate();
    let both = matches!(stream.direction, Direction::Mixed(_) | Direction::Update(_));
    if any_writes(stream) && any_reads(stream) && (one_file || both) {
        return Some((
            "verify is set while the same blocks are overwritten",
            "set verify in a phase that only reads",
        ));
    }
    if stream.access_pattern == AccessPattern::Trace {
        return Some((
            "verify is set for a trace, whose operations need not be aligned to blocks",
            "set verify in a phase with another access_pattern",
        ));
    }
    if !any_reads(stream) && !matches!(stream.io_engine, IoEngineKind::Copy(_)) {
        return None;
    }
    if null {
        return Some(("verify is set, but no data is transferred", "set verify to false"));
    }
    if !payload::has_headers(stream) {
        return Some((
            "verify is set, but the content has no block headers",
            "use random content and a block_size of at least 64",
        ));
    }
    None
}

fn update(stream: &Stream) -> Option<Problem> {
    let Direction::Update(part) = stream.direction else { return None };
    if !share(part) {
        return Some(("the update fraction is out of range", "use a number from 0 to 1"));
    }
    if part == 0.0 {
        return Some(("the update fraction is 0", "use a larger one, or only read"));
    }
    if !matches!(stream.io_engine, IoEngineKind::Position | IoEngineKind::Null) {
        return Some((
            "updates need an I/O engine with a file position",
            "use the io_engine of read(2) and write(2)",
        ));
    }
    if payload::has_headers(stream) {
        return Some((
            "updates would change content with block headers",
            "use content without headers, such as zeros with marks",
        ));
    }
    if stream.access_pattern == AccessPattern::Trace {
        return Some((
            "updates cannot be combined with a trace",
            "use another access_pattern, or mixed reads and writes",
        ));
    }
    None
}

fn access(stream: &Stream) -> Option<Problem> {
    match stream.access_pattern {
        AccessPattern::Zipf { theta } if !(0.0..=10.0).contains(&theta) => {
            Some(("zipf_theta is out of range", "use a number from 0 to 10"))
        }
        AccessPattern::Pareto { share } if !(share > 0.0 && share < 0.5) => {
            Some(("pareto_h is out of range", "use a number above 0 and below 0.5"))
        }
        AccessPattern::Hotspot { space, visits }
            if !(space > 0.0 && space < 1.0 && share(visits)) =>
        {
            Some((
                "hotspot_data_fraction or hotspot_access_fraction is out of range",
                "use data above 0 and below 1, accesses from 0 to 1",
            ))
        }
        AccessPattern::Normal { deviation } if !share(deviation) => {
            Some(("the deviation of a normal distribution is out of range", "use 0 to 1"))
        }
        AccessPattern::Zones if stream.zones.iter().all(|zone| zone.weight == 0) => {
            Some(("no zone of the file is accessed", "give a zone a weight"))
        }
        AccessPattern::Skip { blocks: 0 } => {
            Some(("the distance between operations is 0", "use a sequential access_pattern"))
        }
        AccessPattern::Runs { jump: Jump::Every(0) | Jump::EveryRepeated(0), .. } => {
            Some(("the number of operations per run is 0", "use at least 1"))
        }
        AccessPattern::Runs { jump: Jump::Chance(chance), .. } if !share(chance) => {
            Some(("the fraction of random operations is out of range", "use 0 to 1"))
        }
        AccessPattern::Trace if stream.trace_file.is_empty() => {
            Some(("trace_file is not set", "set it to the path of a trace"))
        }
        AccessPattern::Append
            if stream.workers.count > 1
                && (stream.files.divides_file()
                    || matches!(stream.files, FileSharing::Shared(_))) =>
        {
            Some(("several workers append to one file", "set sharing to per-worker"))
        }
        AccessPattern::Append if any_reads(stream) => {
            Some(("appending workers cannot read", "set direction to write"))
        }
        AccessPattern::Sequential
        | AccessPattern::SequentialPerDirection
        | AccessPattern::Backward
        | AccessPattern::SameBlock
        | AccessPattern::Stride { .. }
        | AccessPattern::IozonePermutation
        | AccessPattern::Permutation
        | AccessPattern::Random
        | AccessPattern::Zipf { .. }
        | AccessPattern::Pareto { .. }
        | AccessPattern::Append
        | AccessPattern::Hotspot { .. }
        | AccessPattern::Normal { .. }
        | AccessPattern::Zones
        | AccessPattern::Skip { .. }
        | AccessPattern::Runs { .. }
        | AccessPattern::Trace
        | AccessPattern::Tickets => None,
    }
}

/// Problems of the collection of completions.
fn completions(stream: &Stream) -> Option<Problem> {
    let depth = stream.io_engine.properties().queue_depth?;
    let Completions { min, max, refill_at } = stream.io_engine.completions();
    if min == 0 || min > depth || (max != 0 && max < min) {
        return Some((
            "the number of completions to wait for is out of range",
            "use 1 to queue_depth, and at least as many completions together",
        ));
    }
    refill_at.filter(|at| *at >= depth).map(|_| {
        ("a full queue is filled again before an operation completes", "use less than queue_depth")
    })
}

fn interface(stream: &Stream) -> Option<Problem> {
    let open = stream.open;
    match stream.io_engine {
        IoEngineKind::Stdio if open.direct || open.sync || open.dsync => Some((
            "stdio does not support O_DIRECT, O_SYNC, and O_DSYNC",
            "set direct, o_sync, and o_dsync to false, or use another io_engine",
        )),
        IoEngineKind::Stdio if !stream.block_sizes.is_empty() => {
            Some(("stdio has a buffer of one block", "use one block size, or another io_engine"))
        }
        IoEngineKind::Mmap(_) if open.direct => {
            Some(("mmap does not support direct I/O", "set direct to false"))
        }
        IoEngineKind::Mmap(_) if stream.access_pattern == AccessPattern::Append => {
            Some(("mmap cannot extend a file", "append with another io_engine"))
        }
        IoEngineKind::Ring(ring) if ring.depth == 0 || ring.depth > 32_768 => {
            Some(("queue_depth is out of range", "use a number from 1 to 32768"))
        }
        IoEngineKind::Ring(_) if stream.longest_operation() >= model::Bytes::gib(4) => {
            Some(("an io_uring operation is 4 GiB or larger", "use smaller operations"))
        }
        IoEngineKind::Ring(ring) if ring.submit_batch > ring.depth => {
            Some(("submit_batch is larger than queue_depth", "use at most queue_depth"))
        }
        IoEngineKind::Ring(ring) if ring.iopoll && !open.direct => {
            Some(("iopoll needs direct I/O", "set direct to true"))
        }
        IoEngineKind::Ring(ring)
            if ring.depth > 1 && stream.access_pattern == AccessPattern::Append =>
        {
            Some(("concurrent appends have no defined order", "set queue_depth to 1"))
        }
        IoEngineKind::Ring(ring) if ring.iopoll && ring.linked_fdatasync => Some((
            "iopoll does not support sync operations",
            "set iopoll or linked_fdatasync to false",
        )),
        IoEngineKind::Aio(aio) if aio.depth == 0 || aio.depth > 65_536 => {
            Some(("queue_depth is out of range", "use a number from 1 to 65536"))
        }
        IoEngineKind::Aio(aio) if aio.submit_batch > aio.depth => {
            Some(("submit_batch is larger than queue_depth", "use at most queue_depth"))
        }
        IoEngineKind::Aio(aio)
            if aio.depth > 1 && stream.access_pattern == AccessPattern::Append =>
        {
            Some(("concurrent appends have no defined order", "set queue_depth to 1"))
        }
        IoEngineKind::Copy(_) if any_reads(stream) => {
            Some(("copies are writes", "set direction to write"))
        }
        IoEngineKind::Copy(_) if stream.access_pattern == AccessPattern::Append => {
            Some(("copies cannot append", "append with another io_engine"))
        }
        IoEngineKind::Space(SpaceCall::Truncate) if any_reads(stream) => {
            Some(("ftruncate has no reads", "set direction to write"))
        }
        IoEngineKind::Offset
        | IoEngineKind::Position
        | IoEngineKind::Space(_)
        | IoEngineKind::Name(_)
        | IoEngineKind::Bytewise
        | IoEngineKind::Stdio
        | IoEngineKind::Vector(_)
        | IoEngineKind::Mmap(_)
        | IoEngineKind::Ring(_)
        | IoEngineKind::Aio(_)
        | IoEngineKind::Copy(_)
        | IoEngineKind::Null => None,
    }
}

fn handling(stream: &Stream) -> Option<Problem> {
    let handling = stream.file_handling?;
    let reopens = handling.pass_start.reopens();
    if stream.io_engine.properties().files == EngineFiles::One {
        return Some((
            "this I/O engine does not support file handling",
            "use io_engine pread, read, preadv2, mmap, io_uring, or io_submit",
        ));
    }
    if reopens && matches!(stream.io_engine, IoEngineKind::Mmap(_)) {
        return Some(("mmap cannot open its file again", "use another io_engine"));
    }
    if reopens && registers_file(stream) {
        return Some(("a registered file cannot be opened again", "set fixed_buffers to false"));
    }
    None
}

/// True if the file is registered with io_uring.
fn registers_file(stream: &Stream) -> bool {
    matches!(stream.io_engine, IoEngineKind::Ring(ring) if ring.fixed_buffers)
}

fn several(stream: &Stream) -> Option<Problem> {
    let files = stream.files.several()?;
    if files.names.is_empty() || files.turn == 0 || files.open == 0 {
        return Some(("the number of files, or of open files, is 0", "use at least 1"));
    }
    if stream.size.0 >= 1 << FILE_SHIFT || files.names.len() >= 1 << (63 - FILE_SHIFT) {
        return Some(("the files of a worker are too large or too many", "use smaller ones"));
    }
    if (files.open as usize) < files.names.len()
        && stream.sync_every.is_some_and(|every| every.before_next)
    {
        return Some((
            "syncs require that all files are open",
            "use as many open files as files, or no sync_every",
        ));
    }
    let pattern = match stream.access_pattern {
        AccessPattern::Sequential
        | AccessPattern::SequentialPerDirection
        | AccessPattern::Permutation
        | AccessPattern::Random
        | AccessPattern::Zipf { .. }
        | AccessPattern::Pareto { .. }
        | AccessPattern::Hotspot { .. }
        | AccessPattern::Normal { .. }
        | AccessPattern::Zones => None,
        AccessPattern::Backward
        | AccessPattern::Skip { .. }
        | AccessPattern::Runs { .. }
        | AccessPattern::SameBlock
        | AccessPattern::Stride { .. }
        | AccessPattern::IozonePermutation
        | AccessPattern::Append
        | AccessPattern::Trace
        | AccessPattern::Tickets => {
            Some(("this access_pattern has one file", "use another access_pattern, or one file"))
        }
    };
    let engine = match stream.io_engine.properties().files {
        EngineFiles::One => {
            Some(("this io_engine has one file", "use another io_engine, or one file"))
        }
        EngineFiles::Each if updates(stream) => {
            Some(("updates have one file", "use one file per worker"))
        }
        EngineFiles::All if registers_file(stream) => Some((
            "only one file is registered with io_uring",
            "set fixed_buffers to false, or use one file",
        )),
        EngineFiles::Each | EngineFiles::All => None,
    };
    pattern.or(engine)
}

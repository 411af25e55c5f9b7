//! Suite `stream`: one I/O loop on files, with all options of the I/O engine as parameters.
//!
//! A trial creates the files (unless `overwrite` is false), establishes the cache state, and
//! measures one phase. Combinations of parameters that the engine does not support are rejected
//! here, and parameters without effect are reset to their defaults.

mod check;
pub(crate) mod device;
mod fio;
mod table;
#[cfg(test)]
mod tests;
mod text;

use model::{
    Bytes, Nanos, Phase, WorkloadParameters,
    phase::{
        AccessPattern, Advice, Aio, Arrivals, Bound, Cache, CallFlags, Completions, CopyCall,
        DataPattern, Direction, EndSync, FileCreation, FileSharing, IoEngineKind, IoPriority, Open,
        Pace, Pin, RangeSync, Ring, Role, Stonewall, Stream, SyncCall, SyncEvery, Timed, Work,
        WorkerKind, Workers,
    },
};

pub(crate) use fio::file_names;
pub use fio::fio_jobs;

use crate::{Suite, load_generator};

/// Definition of the suite.
pub(crate) const SUITE: Suite =
    Suite { spec: &table::SPEC, refine: check::refine, phases, footprint };

/// Name of a single file, or prefix of the names of several files.
const FILE: &str = "file";

/// Suffix of the source file of a copy, which the engine also uses.
const SOURCE: &str = ".source";

/// Approximate bytes per call when files are created. Calls of this size make filesystems allocate
/// extents as for a large file.
const LAYOUT: Bytes = Bytes::mib(1);

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let stream = stream(point, seed);
    let copies = matches!(stream.io_engine, IoEngineKind::Copy(_));
    let mut phases = Vec::new();
    if has_layout(point) {
        phases.extend(layouts(&stream, copies));
        if point.word("cache") == "warm" {
            let warm = layouts(&stream, copies).into_iter().map(warmed);
            phases.extend(warm);
        }
    }
    let mut measured = measured(point, stream);
    if load_generator::is_fio(point)
        && let Work::Stream(stream) = &measured.work
    {
        // The stream was checked when the parameters were refined.
        let options = fio::fio_job(stream).unwrap_or_default().options;
        measured.work = load_generator::program(point, &measured, options.into_iter());
    }
    phases.push(measured);
    phases
}

/// Measured phase, performed by fslab.
fn measured(point: &WorkloadParameters, measured: Stream) -> Phase {
    Phase {
        name: name(point).into(),
        group: match measured.direction {
            Direction::Read => "reading",
            Direction::Write => "writing",
            Direction::Alternate
            | Direction::FirstRead(_)
            | Direction::Mixed(_)
            | Direction::Update(_) => "mixed",
        }
        .into(),
        role: Role::Measure,
        cache: match point.word("cache") {
            "cold" => Cache::Cold,
            "warm" if has_layout(point) => Cache::Warm,
            _ => Cache::Unchanged,
        },
        work: Work::Stream(measured),
        timed: Timed::default(),
        directory: None,
        together: None,
    }
}

/// Name of the measured phase.
fn name(point: &WorkloadParameters) -> &'static str {
    match (point.word("io_engine"), point.word("access_pattern"), point.word("direction")) {
        ("copy_file_range" | "sendfile" | "splice", _, _) => "copy",
        (_, "append", _) => "append",
        (_, "trace", _) => "replay",
        (_, _, "read") => "read",
        (_, _, "write") => "write",
        _ => "mixed",
    }
}

/// True if the workload accesses files.
fn touches(point: &WorkloadParameters) -> bool {
    match point.word("io_engine") {
        "null" => false,
        "io_uring" => !point.flag("nop"),
        _ => true,
    }
}

/// True if the files exist before the measured phase.
fn has_layout(point: &WorkloadParameters) -> bool {
    point.flag("overwrite") && touches(point)
}

/// Phases that create the files of the measured phase, or the source files of a copy.
fn layouts(measured: &Stream, copies: bool) -> Vec<Phase> {
    let count = measured.workers.count;
    match (&measured.files, copies) {
        (FileSharing::PerWorker(_) | FileSharing::Template(_) | FileSharing::Several(_), false) => {
            vec![layout(measured, "layout".into(), measured.files.clone(), count)]
        }
        // A stream of several workers has names such as `file.0`, which cannot end in `.source`.
        // Each source file therefore needs a separate phase.
        (FileSharing::PerWorker(_) | FileSharing::Template(_) | FileSharing::Several(_), true) => {
            (0..count)
                .map(|worker| {
                    let name = match count {
                        1 => "layout".into(),
                        _ => format!("layout-{worker}"),
                    };
                    layout(
                        measured,
                        name,
                        FileSharing::One(measured.files.name(worker) + SOURCE),
                        1,
                    )
                })
                .collect()
        }
        (
            FileSharing::One(name)
            | FileSharing::Shared(name)
            | FileSharing::Segmented(name)
            | FileSharing::Interleaved(name),
            _,
        ) => {
            let name = if copies { format!("{name}{SOURCE}") } else { name.clone() };
            vec![layout(measured, "layout".into(), FileSharing::One(name), 1)]
        }
    }
}

fn layout(measured: &Stream, name: String, files: FileSharing, workers: u32) -> Phase {
    let block = layout_block_size(measured);
    let stream = Stream {
        direction: Direction::Write,
        open: Open { creation: FileCreation::Fresh, ..Open::default() },
        data: measured.data,
        seed: measured.seed,
        end_sync: EndSync::Fsync,
        workers: Workers::threads(workers),
        ..Stream::new(files, whole(measured), block)
    };
    Phase {
        name,
        group: "preparing".into(),
        role: Role::Prepare,
        cache: Cache::Unchanged,
        work: Work::Stream(stream),
        timed: Timed::default(),
        directory: None,
        together: None,
    }
}

/// File size, rounded down to whole blocks.
fn whole(stream: &Stream) -> Bytes {
    Bytes(stream.size.0 - stream.size.0 % stream.block_size.0)
}

/// Bytes per call when files are created: the largest multiple of the block size up to [`LAYOUT`]
/// that divides the file size. For verification, blocks must be written in the units in which they
/// are read. A unit is 4 KiB if the block size is a multiple of 4 KiB, and otherwise one block.
fn layout_block_size(measured: &Stream) -> Bytes {
    let block = measured.block_size.0;
    if measured.verify && !block.is_multiple_of(4096) {
        return measured.block_size;
    }
    let blocks = measured.size.0 / block;
    let most = (LAYOUT.0 / block).max(1);
    let together = (1..=most).rev().find(|together| blocks.is_multiple_of(*together));
    Bytes(together.unwrap_or(1) * block)
}

/// Phase that reads the files of a layout once to fill the page cache.
fn warmed(mut layout: Phase) -> Phase {
    if let Work::Stream(stream) = &mut layout.work {
        stream.direction = Direction::Read;
        stream.open = Open::default();
        stream.end_sync = EndSync::None;
    }
    Phase { name: layout.name.replacen("layout", "warm", 1), ..layout }
}

fn count(point: &WorkloadParameters, name: &str) -> u32 {
    u32::try_from(point.count(name)).unwrap_or(u32::MAX)
}

/// Work of the measured phase.
fn stream(point: &WorkloadParameters, seed: u64) -> Stream {
    let (size, block) = (point.size("file_size"), point.size("block_size"));
    let direction = direction(point);
    let writes = direction != Direction::Read && touches(point);
    let mut stream = Stream::new(files(point), size, block);
    stream.block_sizes = text::block_sizes(point.text("block_size_split"), block);
    stream.direction = direction;
    stream.access_pattern = access(point);
    stream.trace_file = point.text("trace_file").to_owned();
    stream.io_engine = interface(point);
    stream.open = open(point);
    stream.data = DataPattern::Random {
        incompressible_fraction: point.fraction("incompressible_fraction"),
        duplicate_fraction: point.fraction("duplicate_fraction"),
    };
    stream.seed = seed;
    stream.verify = point.flag("verify");
    stream.sync_every = text::interval(point.text("fsync_every")).map(|after| {
        let call = match point.word("fsync_call") {
            "fsync" => SyncCall::Fsync,
            "sync_file_range" => SyncCall::Range(RangeSync::ALL),
            _ => SyncCall::Fdatasync,
        };
        SyncEvery { after, call, before_next: false }
    });
    stream.end_sync = match point.word("end_fsync") {
        "fsync" if writes => EndSync::Fsync,
        "fdatasync" if writes => EndSync::Fdatasync,
        _ => EndSync::None,
    };
    stream.pace = pace(point);
    stream.bound = match (point.time("runtime"), point.count("operations")) {
        (Nanos(0), 0) => match point.time("stonewall_time") {
            Nanos(0) => Bound::Once,
            time => Bound::Deadline(time),
        },
        (Nanos(0), operations) => Bound::Ops(operations),
        (run, _) => Bound::Time { ramp: point.time("ramp_time"), run },
    };
    stream.workers = workers(point);
    stream
}

fn files(point: &WorkloadParameters) -> FileSharing {
    match point.word("sharing") {
        "shared" => FileSharing::Shared(FILE.into()),
        "segmented" => FileSharing::Segmented(FILE.into()),
        "interleaved" => FileSharing::Interleaved(FILE.into()),
        _ => FileSharing::PerWorker(FILE.into()),
    }
}

fn direction(point: &WorkloadParameters) -> Direction {
    if point.word("access_pattern") == "trace" {
        // Each operation of the trace has a direction, so files are opened for reading and writing.
        return Direction::Mixed(0.5);
    }
    match point.word("direction") {
        "write" => Direction::Write,
        "mixed" => Direction::Mixed(point.fraction("read_fraction")),
        "separate" => match count(point, "readers") {
            0 => Direction::Alternate,
            readers => Direction::FirstRead(readers),
        },
        _ => Direction::Read,
    }
}

fn access(point: &WorkloadParameters) -> AccessPattern {
    match point.word("access_pattern") {
        "backward" => AccessPattern::Backward,
        "same-block" => AccessPattern::SameBlock,
        "strided" => AccessPattern::Stride { blocks: point.count("stride") },
        "iozone-permutation" => AccessPattern::IozonePermutation,
        "permutation" => AccessPattern::Permutation,
        "random" => AccessPattern::Random,
        "zipf" => AccessPattern::Zipf { theta: point.number("zipf_theta") },
        "pareto" => AccessPattern::Pareto { share: point.fraction("pareto_h") },
        "hotspot" => AccessPattern::Hotspot {
            space: point.fraction("hotspot_data_fraction"),
            visits: point.fraction("hotspot_access_fraction"),
        },
        "append" => AccessPattern::Append,
        "trace" => AccessPattern::Trace,
        _ => AccessPattern::Sequential,
    }
}

fn interface(point: &WorkloadParameters) -> IoEngineKind {
    match point.word("io_engine") {
        "read" => IoEngineKind::Position,
        "stdio" => IoEngineKind::Stdio,
        "preadv2" => IoEngineKind::Vector(CallFlags {
            nowait: point.flag("nowait"),
            hipri: point.flag("hipri"),
            dsync: point.flag("o_dsync"),
            uncached: point.flag("uncached"),
        }),
        "mmap" => IoEngineKind::Mmap(match point.word("madvise") {
            "sequential" => Advice::Sequential,
            "random" => Advice::Random,
            "willneed" => Advice::WillNeed,
            "populate" => Advice::Populate,
            _ => Advice::Normal,
        }),
        "io_uring" => IoEngineKind::Ring(Ring {
            depth: count(point, "queue_depth"),
            submit_batch: count(point, "submit_batch"),
            fixed_buffers: point.flag("fixed_buffers"),
            sqpoll: point.flag("sqpoll"),
            iopoll: point.flag("iopoll"),
            linked_fdatasync: point.flag("linked_fdatasync"),
            nop: point.flag("nop"),
            completions: Completions::ANY,
        }),
        "io_submit" => {
            IoEngineKind::Aio(Aio::of(count(point, "queue_depth"), count(point, "submit_batch")))
        }
        "copy_file_range" => IoEngineKind::Copy(CopyCall::CopyFileRange),
        "sendfile" => IoEngineKind::Copy(CopyCall::Sendfile),
        "splice" => IoEngineKind::Copy(CopyCall::Splice),
        "null" => IoEngineKind::Null,
        _ => IoEngineKind::Offset,
    }
}

fn open(point: &WorkloadParameters) -> Open {
    let copies = name(point) == "copy";
    // Workers that share a file would unlink the file of other workers, so it is only created if
    // missing. It does not exist before, because each trial has a new filesystem or directory.
    let alone = point.word("sharing") == "per-worker" || point.count("workers") == 1;
    Open {
        creation: match (has_layout(point) && !copies, alone) {
            (true, _) => FileCreation::Existing,
            (false, true) if touches(point) => FileCreation::Fresh,
            (false, _) => FileCreation::Any,
        },
        direct: point.flag("direct"),
        sync: point.flag("o_sync"),
        dsync: point.flag("o_dsync") && point.word("io_engine") != "preadv2",
        fsync: point.flag("fsync_after_open"),
        read_first_block: point.flag("read_first_block"),
        exclusive: false,
    }
}

fn pace(point: &WorkloadParameters) -> Pace {
    let pause = point.time("think_time");
    match text::rate(point.text("rate")) {
        None if pause == Nanos(0) => Pace::Free,
        None => Pace::Think {
            ops: point.count("think_time_every"),
            pause,
            spin: Nanos(0),
            completed: false,
            every: Nanos(0),
        },
        Some(rate) => match point.word("arrivals") {
            "constant" => Pace::Open { rate, arrivals: Arrivals::Constant },
            "poisson" => Pace::Open { rate, arrivals: Arrivals::Poisson },
            _ => Pace::Limit(rate),
        },
    }
}

fn workers(point: &WorkloadParameters) -> Workers {
    Workers {
        count: count(point, "workers"),
        kind: match point.word("worker_type") {
            "process" => WorkerKind::Process,
            _ => WorkerKind::Thread,
        },
        stonewall: match point.word("stonewall") {
            "stop" => Stonewall::Stop,
            "finish" => Stonewall::Finish,
            _ => Stonewall::Off,
        },
        pin: if point.flag("pin") { Pin::Each } else { Pin::Free },
        io_priority: io_priority(point.word("io_priority")),
        nice: 0,
        share: None,
    }
}

fn io_priority(word: &str) -> Option<IoPriority> {
    if word == "idle" {
        return Some(IoPriority::Idle);
    }
    let (class, level) = word.split_once('-')?;
    let level = level.parse().ok()?;
    match class {
        "rt" => Some(IoPriority::RealTime(level)),
        _ => Some(IoPriority::BestEffort(level)),
    }
}

/// Maximum space of the files of a trial.
fn footprint(point: &WorkloadParameters) -> Bytes {
    if !touches(point) {
        return Bytes(0);
    }
    let workers = point.count("workers");
    let size = point.size("file_size").0;
    let files = match point.word("sharing") {
        "per-worker" => size.saturating_mul(workers),
        _ => size,
    };
    let appended = match point.count("operations") {
        0 => size.saturating_mul(workers),
        operations => {
            let longest = stream(point, 0).longest_operation().0;
            operations.saturating_mul(longest).saturating_mul(workers)
        }
    };
    Bytes(match name(point) {
        "copy" => files.saturating_mul(2),
        "append" if !point.flag("overwrite") => appended,
        "append" => files.saturating_add(appended),
        _ => files,
    })
}

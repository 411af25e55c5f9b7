//! One loop over the records of files, with everything the engine can vary as a parameter: who
//! moves them, where, how large, by which calls, how fast, for how long, and how durably.
//!
//! A trial lays the files out (unless the workload writes fresh ones), brings the caches into the
//! state asked for, and measures one phase. What a plan asks for is checked here as far as the
//! engine would refuse it later, and parameters without effect are set back to their defaults.

mod check;
mod table;
#[cfg(test)]
mod tests;
mod text;

use model::{
    Bytes, Nanos, Phase, Point,
    phase::{
        Access, Advice, Arrivals, Bound, Cache, CallFlags, CopyCall, Direction, Files, Fill, Flush,
        FlushCall, FlushEvery, Interface, IoPriority, Open, Pace, Pin, Presence, Ring, Role,
        Stonewall, Stream, Timed, Work, WorkerKind, Workers,
    },
};

use crate::Suite;

/// The suite.
pub(crate) const SUITE: Suite =
    Suite { spec: &table::SPEC, refine: check::refine, phases, footprint };

/// Name of the file, or what the names of several begin with.
const FILE: &str = "file";

/// What the engine calls the file that a copy comes from.
const SOURCE: &str = ".source";

/// Layouts write in records of about this size: large enough for every filesystem to allocate as it
/// would for a large file.
const LAYOUT: Bytes = Bytes::mib(1);

fn phases(point: &Point, seed: u64) -> Vec<Phase> {
    let measured = stream(point, seed);
    let copies = matches!(measured.interface, Interface::Copy(_));
    let mut phases = Vec::new();
    if laid_out(point) {
        phases.extend(layouts(&measured, copies));
        if point.word("cache") == "warm" {
            let warm = layouts(&measured, copies).into_iter().map(warmed);
            phases.extend(warm);
        }
    }
    phases.push(Phase {
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
            "warm" if laid_out(point) => Cache::Warm,
            _ => Cache::AsLeft,
        },
        work: Work::Stream(measured),
        timed: Timed::default(),
    });
    phases
}

/// The measured phase is named by what it does.
fn name(point: &Point) -> &'static str {
    match (point.word("engine"), point.word("access"), point.word("direction")) {
        ("copy_file_range" | "sendfile" | "splice", _, _) => "copy",
        (_, "append", _) => "append",
        (_, "replay", _) => "replay",
        (_, _, "read") => "read",
        (_, _, "write") => "write",
        _ => "mixed",
    }
}

/// Whether files are touched at all.
fn touches(point: &Point) -> bool {
    match point.word("engine") {
        "null" => false,
        "io_uring" => !point.flag("nop"),
        _ => true,
    }
}

/// Whether files are there before the measured phase.
fn laid_out(point: &Point) -> bool {
    !point.flag("fresh") && touches(point)
}

/// The phases that write the files the measured one finds; for a copy, those it copies from.
fn layouts(measured: &Stream, copies: bool) -> Vec<Phase> {
    let count = measured.workers.count;
    match (&measured.files, copies) {
        (Files::PerWorker(_), false) => {
            vec![layout(measured, "layout".into(), measured.files.clone(), count)]
        }
        // The engine has no name for many files that end in `.source`: one phase for each.
        (Files::PerWorker(_), true) => (0..count)
            .map(|worker| {
                let name = match count {
                    1 => "layout".into(),
                    _ => format!("layout-{worker}"),
                };
                layout(measured, name, Files::One(measured.files.name(worker) + SOURCE), 1)
            })
            .collect(),
        (Files::One(name) | Files::Shared(name) | Files::Split(name), _) => {
            let name = if copies { format!("{name}{SOURCE}") } else { name.clone() };
            vec![layout(measured, "layout".into(), Files::One(name), 1)]
        }
    }
}

fn layout(measured: &Stream, name: String, files: Files, workers: u32) -> Phase {
    let record = layout_record(measured);
    let stream = Stream {
        direction: Direction::Write,
        open: Open { presence: Presence::Fresh, ..Open::default() },
        fill: measured.fill,
        seed: measured.seed,
        flush: Flush::Fsync,
        workers: Workers::threads(workers),
        ..Stream::new(files, whole(measured), record)
    };
    Phase {
        name,
        group: "preparing".into(),
        role: Role::Prepare,
        cache: Cache::AsLeft,
        work: Work::Stream(stream),
        timed: Timed::default(),
    }
}

/// The part of a file that whole records cover.
fn whole(stream: &Stream) -> Bytes {
    Bytes(stream.size.0 - stream.size.0 % stream.record.0)
}

/// The largest whole number of records up to [`LAYOUT`] that the file is a multiple of. Content can
/// only be verified in blocks as they were written: of 4 KiB if records are multiples of that, else
/// of one record.
fn layout_record(measured: &Stream) -> Bytes {
    let record = measured.record.0;
    if measured.verify && !record.is_multiple_of(4096) {
        return measured.record;
    }
    let records = measured.size.0 / record;
    let most = (LAYOUT.0 / record).max(1);
    let together = (1..=most).rev().find(|together| records.is_multiple_of(*together));
    Bytes(together.unwrap_or(1) * record)
}

/// The same files read once, so that the page cache has of them what it can hold.
fn warmed(mut layout: Phase) -> Phase {
    if let Work::Stream(stream) = &mut layout.work {
        stream.direction = Direction::Read;
        stream.open = Open::default();
        stream.flush = Flush::None;
    }
    Phase { name: layout.name.replacen("layout", "warm", 1), ..layout }
}

fn count(point: &Point, name: &str) -> u32 {
    u32::try_from(point.count(name)).unwrap_or(u32::MAX)
}

/// What is measured.
fn stream(point: &Point, seed: u64) -> Stream {
    let (size, record) = (point.size("file"), point.size("record"));
    let direction = direction(point);
    let writes = direction != Direction::Read && touches(point);
    let mut stream = Stream::new(files(point), size, record);
    stream.lengths = text::lengths(point.text("lengths"), record);
    stream.direction = direction;
    stream.access = access(point);
    stream.list = point.text("list").to_owned();
    stream.interface = interface(point);
    stream.open = open(point);
    stream.fill =
        Fill::Random { entropy: point.share("entropy"), duplicates: point.share("duplicates") };
    stream.seed = seed;
    stream.verify = point.flag("verify");
    stream.flush_every = text::amount(point.text("flush_every")).map(|after| {
        let call = match point.word("flush_call") {
            "fsync" => FlushCall::Fsync,
            "range" => FlushCall::Range,
            _ => FlushCall::Fdatasync,
        };
        FlushEvery { after, call }
    });
    stream.flush = match point.word("flush") {
        "fsync" if writes => Flush::Fsync,
        "fdatasync" if writes => Flush::Fdatasync,
        _ => Flush::None,
    };
    stream.pace = pace(point);
    stream.bound = match (point.time("time"), point.count("operations")) {
        (Nanos(0), 0) => Bound::Once,
        (Nanos(0), operations) => Bound::Ops(operations),
        (run, _) => Bound::Time { ramp: point.time("ramp"), run },
    };
    stream.workers = workers(point);
    stream
}

fn files(point: &Point) -> Files {
    match point.word("files") {
        "shared" => Files::Shared(FILE.into()),
        "split" => Files::Split(FILE.into()),
        _ => Files::PerWorker(FILE.into()),
    }
}

fn direction(point: &Point) -> Direction {
    if point.word("access") == "replay" {
        // The list says for each operation; files are opened for both.
        return Direction::Mixed(0.5);
    }
    match point.word("direction") {
        "write" => Direction::Write,
        "mixed" => Direction::Mixed(point.share("read_share")),
        "apart" => match count(point, "readers") {
            0 => Direction::Alternate,
            readers => Direction::FirstRead(readers),
        },
        _ => Direction::Read,
    }
}

fn access(point: &Point) -> Access {
    match point.word("access") {
        "backward" => Access::Backward,
        "same-record" => Access::SameRecord,
        "strided" => Access::Stride { records: point.count("stride") },
        "shuffled" => Access::Shuffled,
        "permuted" => Access::Permuted,
        "random" => Access::Random,
        "zipf" => Access::Zipf { theta: point.number("theta") },
        "pareto" => Access::Pareto { share: point.share("pareto_share") },
        "hot" => Access::Hot { space: point.share("hot_space"), visits: point.share("hot_visits") },
        "append" => Access::Append,
        "replay" => Access::Replay,
        _ => Access::Sequential,
    }
}

fn interface(point: &Point) -> Interface {
    match point.word("engine") {
        "read" => Interface::Position,
        "stdio" => Interface::Stdio,
        "preadv2" => Interface::Vector(CallFlags {
            nowait: point.flag("nowait"),
            hipri: point.flag("hipri"),
            dsync: point.flag("dsync"),
            uncached: point.flag("uncached"),
        }),
        "mmap" => Interface::Mmap(match point.word("advice") {
            "sequential" => Advice::Sequential,
            "random" => Advice::Random,
            "will-need" => Advice::WillNeed,
            "populate" => Advice::Populate,
            _ => Advice::Normal,
        }),
        "io_uring" => Interface::Ring(Ring {
            depth: count(point, "depth"),
            batch: count(point, "batch"),
            registered: point.flag("registered"),
            sqpoll: point.flag("sqpoll"),
            iopoll: point.flag("iopoll"),
            linked_sync: point.flag("linked_sync"),
            nop: point.flag("nop"),
        }),
        "copy_file_range" => Interface::Copy(CopyCall::CopyFileRange),
        "sendfile" => Interface::Copy(CopyCall::Sendfile),
        "splice" => Interface::Copy(CopyCall::Splice),
        "null" => Interface::Null,
        _ => Interface::Offset,
    }
}

fn open(point: &Point) -> Open {
    let copies = name(point) == "copy";
    // Workers of one file would unlink it under each other; in the fresh filesystem or directory
    // of a trial a file that is not laid out is new in any case.
    let alone = point.word("files") == "own" || point.count("workers") == 1;
    Open {
        presence: match (laid_out(point) && !copies, alone) {
            (true, _) => Presence::Existing,
            (false, true) if touches(point) => Presence::Fresh,
            (false, _) => Presence::Any,
        },
        direct: point.flag("direct"),
        sync: point.flag("sync"),
        dsync: point.flag("dsync") && point.word("engine") != "preadv2",
        fsync: point.flag("open_fsync"),
        prime: point.flag("prime"),
        own: false,
    }
}

fn pace(point: &Point) -> Pace {
    let pause = point.time("think");
    match text::rate(point.text("rate")) {
        None if pause == Nanos(0) => Pace::Free,
        None => Pace::Think { ops: point.count("think_every"), pause },
        Some(rate) => match point.word("arrivals") {
            "constant" => Pace::Open { rate, arrivals: Arrivals::Constant },
            "poisson" => Pace::Open { rate, arrivals: Arrivals::Poisson },
            _ => Pace::Limit(rate),
        },
    }
}

fn workers(point: &Point) -> Workers {
    Workers {
        count: count(point, "workers"),
        kind: match point.word("worker") {
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

/// The most space the files of a trial take.
fn footprint(point: &Point) -> Bytes {
    if !touches(point) {
        return Bytes(0);
    }
    let workers = point.count("workers");
    let size = point.size("file").0;
    let files = match point.word("files") {
        "own" => size.saturating_mul(workers),
        _ => size,
    };
    let appended = match point.count("operations") {
        0 => size.saturating_mul(workers),
        operations => {
            let longest = stream(point, 0).longest().0;
            operations.saturating_mul(longest).saturating_mul(workers)
        }
    };
    Bytes(match name(point) {
        "copy" => files.saturating_mul(2),
        "append" if point.flag("fresh") => appended,
        "append" => files.saturating_add(appended),
        _ => files,
    })
}

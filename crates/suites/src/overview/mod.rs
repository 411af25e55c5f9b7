//! Common file operations, one phase each, all in one trial: a first answer to "which filesystem
//! for what". Every other suite measures one of them in depth.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, Point, SuiteSpec,
    phase::{
        Access, Amount, Bound, Cache, Direction, Files, Fill, Flush, FlushCall, FlushEvery, Naming,
        Open, Presence, Role, Set, Sharing, Sizes, Spread, Stream, Timed, Tree, TreeEnd, TreeOrder,
        TreeStep, Work,
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter, shared::space};

/// The suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

const SPEC: SuiteSpec = SuiteSpec {
    name: "overview",
    title: "Common file operations, one phase each: sequential, random, log, small files, mail.",
    source: "fslab's own; each call as in its Linux manual page",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

const FILE: Kind = Kind::Size { min: BLOCK, scales: true };
const COUNT: Kind = Kind::Count { min: 1, max: 100_000_000 };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("file_size", FILE, "512MiB", "Size of the file of the sequential and random phases."),
    parameter("runtime", Kind::Time, "1s", "Measured time of each random phase and of the log."),
    parameter("files", COUNT, "5000", "Number of small files that are created, looked up and read, and removed."),
    parameter("small_file_size", Kind::Size { min: Bytes(0), scales: false }, "4KiB", "Size of each small file."),
    parameter("messages", COUNT, "300", "Number of messages that are delivered."),
    parameter("message_size", Kind::Size { min: Bytes(1), scales: false }, "16KiB", "Size of each message."),
];

/// Bytes per call of the sequential phases: large enough for every filesystem to allocate as it
/// does for a large file.
const BLOCK: Bytes = Bytes::mib(1);

/// Bytes per call of the random phases: a page, and the block of most filesystems.
const PAGE: Bytes = Bytes::kib(4);

/// Bytes per record of the log: `wal_block_size` of PostgreSQL.
const LOG_RECORD: Bytes = Bytes::kib(8);

/// The largest call that writes a small file or a message.
const LARGEST_CALL: Bytes = Bytes::kib(64);

/// The most bytes per second that a log with an fdatasync after each record is expected to grow
/// by: 50,000 records, as from a disk that is memory.
const LOG_RATE: u64 = 50_000 * LOG_RECORD.0;

fn refine(point: Point) -> Result<Vec<Point>, ValueError> {
    if point.time("runtime") == Nanos(0) {
        return Err(ValueError::new("`runtime` is 0").cure("use a time such as \"500ms\""));
    }
    Ok(vec![point])
}

fn phases(point: &Point, seed: u64) -> Vec<Phase> {
    let stream = |access, direction| Stream {
        access,
        direction,
        seed,
        fill: Fill::Random { entropy: 1.0, duplicates: 0.0 },
        ..Stream::new(Files::One("file".into()), point.size("file_size"), BLOCK)
    };
    let timed = Bound::Time { ramp: Nanos(0), run: point.time("runtime") };
    let fresh = Open { presence: Presence::Fresh, ..Open::default() };
    let random = |direction| Stream {
        record: PAGE,
        open: Open { direct: true, ..Open::default() },
        bound: timed,
        ..stream(Access::Random, direction)
    };
    let write = Stream {
        open: fresh,
        flush: Flush::Fsync,
        ..stream(Access::Sequential, Direction::Write)
    };
    let log = Stream {
        files: Files::One("log".into()),
        record: LOG_RECORD,
        open: fresh,
        flush_every: Some(FlushEvery { after: Amount::Ops(1), call: FlushCall::Fdatasync }),
        bound: timed,
        ..stream(Access::Append, Direction::Write)
    };
    let streams = [
        ("write", "writing", Cache::AsLeft, write),
        ("read", "reading", Cache::Cold, stream(Access::Sequential, Direction::Read)),
        ("random-read", "reading", Cache::AsLeft, random(Direction::Read)),
        ("random-write", "writing", Cache::AsLeft, random(Direction::Write)),
        ("log-append", "writing", Cache::AsLeft, log),
    ];
    let mut phases: Vec<Phase> = streams
        .into_iter()
        .map(|(name, group, cache, stream)| {
            phase(name, group, cache, Timed::default(), Work::Stream(stream))
        })
        .collect();
    phases.extend(trees(point, seed));
    phases
}

/// The phases on many files.
fn trees(point: &Point, seed: u64) -> Vec<Phase> {
    let mut create = vec![TreeStep::Create, TreeStep::Write, TreeStep::Close];
    let mut read = vec![TreeStep::OpenRead, TreeStep::Read, TreeStep::Close];
    if point.size("small_file_size") == Bytes(0) {
        create.remove(1);
        read.remove(1);
    }
    let deliver = vec![
        TreeStep::Create,
        TreeStep::Write,
        TreeStep::Fsync,
        TreeStep::Close,
        TreeStep::Rename,
        TreeStep::FsyncDirectory,
    ];
    let small = || set("small", point.count("files"), point.size("small_file_size"), seed);
    let mail = set("mail", point.count("messages"), point.size("message_size"), seed);
    let random = TreeOrder::Shuffled;
    let creation = TreeOrder::Created;
    [
        ("create", Cache::AsLeft, small(), create, creation, true),
        ("small-read", Cache::Cold, small(), read, random, false),
        ("unlink", Cache::AsLeft, small(), vec![TreeStep::Unlink], random, true),
        ("mail-delivery", Cache::AsLeft, mail, deliver, creation, false),
    ]
    .into_iter()
    .map(|(name, cache, set, steps, order, sync)| {
        let order = if set.files > 1 { order } else { creation };
        let end = TreeEnd { remove_directories: false, sync };
        let work = Work::Tree(Tree { order, end, ..Tree::new(set, steps) });
        phase(name, "small files", cache, Timed { flush: sync, ..Timed::default() }, work)
    })
    .collect()
}

fn phase(name: &str, group: &str, cache: Cache, timed: Timed, work: Work) -> Phase {
    Phase { name: name.into(), group: group.into(), role: Role::Measure, cache, work, timed }
}

fn set(name: &str, files: u64, size: Bytes, seed: u64) -> Set {
    Set {
        name: name.into(),
        sharing: Sharing::Private,
        files,
        spread: Spread::Flat,
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(size),
        record: size.min(LARGEST_CALL).max(Bytes(1)),
        fill: Fill::default(),
        seed,
    }
}

/// The file and the log stay to the end; the small files are removed before mail is delivered.
fn footprint(point: &Point) -> Bytes {
    let sets = [("files", "small_file_size"), ("messages", "message_size")];
    let trees = sets.map(|(files, size)| {
        space(point.count(files), Sizes::Fixed(point.size(size)))
    });
    let log = LOG_RATE.saturating_mul(point.time("runtime").0) / 1_000_000_000;
    let largest = trees.into_iter().max().unwrap_or_default();
    Bytes(point.size("file_size").0.saturating_add(log).saturating_add(largest.0))
}

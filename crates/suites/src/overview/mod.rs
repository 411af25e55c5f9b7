//! Suite `overview`: common file operations, each in one phase of the same trial. The other suites
//! measure these operations in detail.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, SuiteSpec, WorkloadParameters,
    phase::{
        AccessPattern, Bound, Cache, DataPattern, Direction, EndSync, FileCreation, FileSharing,
        Naming, Open, Role, Set, Sharing, Sizes, Spread, Stream, SyncCall, SyncEvery, SyncInterval,
        Timed, Tree, TreeEnd, TreeOrder, TreeStep, Work,
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter, shared::space};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

const SPEC: SuiteSpec = SuiteSpec {
    name: "overview",
    title: "Common file operations: sequential, random, log, small files, mail delivery.",
    source: "fslab; calls as in the Linux manual pages",
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
    parameter("files", COUNT, "5000", "Number of small files that are created, read, and removed."),
    parameter("small_file_size", Kind::Size { min: Bytes(0), scales: false }, "4KiB", "Size of each small file."),
    parameter("messages", COUNT, "300", "Number of delivered messages."),
    parameter("message_size", Kind::Size { min: Bytes(1), scales: false }, "16KiB", "Size of each message."),
];

/// Bytes per call of the sequential phases. Calls of this size make filesystems allocate extents as
/// for a large file.
const BLOCK: Bytes = Bytes::mib(1);

/// Bytes per call of the random phases: the page size, and the block size of most filesystems.
const PAGE: Bytes = Bytes::kib(4);

/// Bytes per record of the log: `wal_block_size` of PostgreSQL.
const LOG_RECORD: Bytes = Bytes::kib(8);

/// Maximum bytes per call on small files and messages.
const LARGEST_CALL: Bytes = Bytes::kib(64);

/// Upper bound of the growth of the log, in bytes per second: 50,000 records with one fdatasync
/// each, as on a RAM-backed disk.
const LOG_RATE: u64 = 50_000 * LOG_RECORD.0;

fn refine(point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    if point.time("runtime") == Nanos(0) {
        return Err(ValueError::new("`runtime` is 0").hint("use a time such as \"500ms\""));
    }
    Ok(vec![point])
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let stream = |access_pattern, direction| Stream {
        access_pattern,
        direction,
        seed,
        data: DataPattern::Random { incompressible_fraction: 1.0, duplicate_fraction: 0.0 },
        ..Stream::new(FileSharing::One("file".into()), point.size("file_size"), BLOCK)
    };
    let timed = Bound::Time { ramp: Nanos(0), run: point.time("runtime") };
    let fresh = Open { creation: FileCreation::Fresh, ..Open::default() };
    let random = |direction| Stream {
        block_size: PAGE,
        open: Open { direct: true, ..Open::default() },
        bound: timed,
        ..stream(AccessPattern::Random, direction)
    };
    let overwrite = Stream { end_sync: EndSync::Fsync, ..random(Direction::Write) };
    let write = Stream {
        open: fresh,
        end_sync: EndSync::Fsync,
        ..stream(AccessPattern::Sequential, Direction::Write)
    };
    let log = Stream {
        files: FileSharing::One("log".into()),
        block_size: LOG_RECORD,
        open: fresh,
        sync_every: Some(SyncEvery {
            after: SyncInterval::Ops(1),
            call: SyncCall::Fdatasync,
            before_next: false,
        }),
        bound: timed,
        ..stream(AccessPattern::Append, Direction::Write)
    };
    let streams = [
        ("write", "writing", Cache::Unchanged, write),
        ("read", "reading", Cache::Cold, stream(AccessPattern::Sequential, Direction::Read)),
        ("random-read", "reading", Cache::Unchanged, random(Direction::Read)),
        ("random-write", "writing", Cache::Unchanged, overwrite),
        ("log-append", "writing", Cache::Unchanged, log),
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

/// Phases on small files and messages.
fn trees(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
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
    let random = TreeOrder::Random;
    let creation = TreeOrder::Creation;
    [
        ("create", Cache::Unchanged, small(), create, creation, true),
        ("small-read", Cache::Cold, small(), read, random, false),
        ("unlink", Cache::Unchanged, small(), vec![TreeStep::Unlink], random, true),
        ("mail-delivery", Cache::Unchanged, mail, deliver, creation, false),
    ]
    .into_iter()
    .map(|(name, cache, set, steps, order, sync)| {
        let order = if set.files > 1 { order } else { creation };
        let end = TreeEnd { remove_directories: false, sync };
        let work = Work::Tree(Tree { order, end, ..Tree::new(set, steps) });
        phase(name, "small files", cache, Timed { sync, ..Timed::default() }, work)
    })
    .collect()
}

fn phase(name: &str, group: &str, cache: Cache, timed: Timed, work: Work) -> Phase {
    Phase {
        name: name.into(),
        group: group.into(),
        role: Role::Measure,
        cache,
        work,
        timed,
        directory: None,
        together: None,
    }
}

fn set(name: &str, files: u64, size: Bytes, seed: u64) -> Set {
    Set {
        name: name.into(),
        sharing: Sharing::Private,
        files,
        spread: Spread::Flat,
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(size),
        block_size: size.min(LARGEST_CALL).max(Bytes(1)),
        data: DataPattern::default(),
        seed,
    }
}

/// Maximum space of a trial. The file and the log remain until the end, but the small files are
/// removed before the mail phase.
fn footprint(point: &WorkloadParameters) -> Bytes {
    let sets = [("files", "small_file_size"), ("messages", "message_size")];
    let trees = sets.map(|(files, size)| space(point.count(files), Sizes::Fixed(point.size(size))));
    let log = LOG_RATE.saturating_mul(point.time("runtime").0) / 1_000_000_000;
    let largest = trees.into_iter().max().unwrap_or_default();
    Bytes(point.size("file_size").0.saturating_add(log).saturating_add(largest.0))
}

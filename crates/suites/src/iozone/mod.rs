//! Suite `iozone`: the 13 tests of IOzone 3.471 on one file, and its throughput mode. Access
//! orders, passes, and timed regions are reimplemented from the observed behavior of IOzone.
//! Results are labeled "iozone workload, fslab", because they are not results of IOzone.
//!
//! Defaults differ from IOzone if its results would be misleading. `compat = "iozone"` restores the
//! behavior of IOzone. The reference page, which includes `notes.md`, lists all differences.

mod single;
mod sweep;
#[cfg(test)]
mod tests;
mod throughput;

use model::{
    Bytes, Phase, SuiteSpec, Value, WorkloadParameters,
    phase::{
        Cache, DataPattern, Direction, EndSync, FileSharing, IoEngineKind, Role, Stream, Timed,
        Work, WorkerKind, Workers,
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Tests in execution order, which is that of their numbers in IOzone (`-i`). A test with several
/// passes has the name of the first one.
pub const TESTS: &[&str] = &[
    "write",
    "read",
    "random",
    "backward-read",
    "record-rewrite",
    "strided-read",
    "fwrite",
    "fread",
    "mixed",
    "pwrite",
    "pread",
];

/// Stride of IOzone, in blocks.
const STRIDE: u64 = 17;

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("file_size", SIZE, "512MiB", "Size of each file."),
    parameter("block_size", SIZE, "64KiB", "Bytes per I/O call (IOzone: record size, `-r`)."),
    parameter("tests", Kind::Words(TESTS), "write,read,random,backward-read,record-rewrite,strided-read,fwrite,fread", "Tests to measure; all but mixed include their second pass. They run in the order of the suite."),
    parameter("second_pass", Kind::Flag, "true", "Run rewrite, reread, and the other second passes."),
    parameter("workers", Kind::Count { min: 0, max: 1024 }, "0", "0: single-stream mode, otherwise throughput mode with one file per worker."),
    parameter("worker_type", Kind::Word(&["process", "thread"]), "process", "Kind of worker in throughput mode."),
    parameter("stonewall", Kind::Flag, "true", "In throughput mode, stop measuring when the first worker finishes."),
    parameter("mixed_readers", Kind::Count { min: 0, max: 1024 }, "0", "Number of reading workers in the mixed test; 0: every other worker."),
    parameter("direct", Kind::Flag, "false", "Open with O_DIRECT."),
    parameter("o_sync", Kind::Flag, "false", "Open with O_SYNC."),
    parameter("o_dsync", Kind::Flag, "false", "Open with O_DSYNC (`-+D`)."),
    parameter("include_fsync", Kind::Flag, "false", "Include fsync in the measured time (`-e`)."),
    parameter("include_close", Kind::Flag, "false", "Include close in the measured time (`-c`)."),
    parameter("cache", Kind::Word(&["cold", "unchanged"]), "cold", "Cache state before each measured phase."),
    parameter("incompressible_fraction", Kind::Fraction, "1.0", "Fraction of random bytes (rest zero)."),
    parameter("verify", Kind::Flag, "false", "Check every block read."),
    parameter("sweep", Kind::Word(&["none", "auto", "full"]), "none", "auto: all powers of two of file and block size within the sweep bounds, blocks below 64 KiB only with files up to 16 MiB (`-a`); full: without this exception."),
    parameter("sweep_file_size_min", SIZE, "64KiB", "Minimum file size of the sweep."),
    parameter("sweep_file_size_max", SIZE, "512MiB", "Maximum file size of the sweep."),
    parameter("sweep_block_size_min", SIZE, "4KiB", "Minimum block size of the sweep."),
    parameter("sweep_block_size_max", SIZE, "16MiB", "Maximum block size of the sweep."),
    parameter("compat", Kind::Word(&["none", "iozone", "iozone-cold"]), "none", "iozone: data, cache state, timing, and calls of IOzone; overrides `cache` and `incompressible_fraction`. iozone-cold: the same with cold caches before each test (`-U`)."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "iozone",
    title: "IOzone tests: sequential, random, backward, strided, stdio; single-stream or \
            throughput mode.",
    source: "behavior of IOzone 3.471, observed; IOzone documentation (iozone.org)",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

const SIZE: Kind = Kind::Size { min: Bytes(512), scales: true };

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let compat = point.word("compat") != "none";
    let has = |test: &str| point.words("tests").iter().any(|given| given == test);
    if has("mixed") && point.count("workers") < 2 {
        return Err(ValueError::new("the mixed test requires readers and writers")
            .hint("set `workers` to at least 2, or remove `mixed` from `tests`"));
    }
    if has("mixed") && point.count("mixed_readers") >= point.count("workers") {
        return Err(ValueError::new("`mixed_readers` leaves no writers")
            .hint("use less than `workers`, or 0 for every other worker"));
    }
    if point.flag("direct") && !compat && (has("fwrite") || has("fread")) {
        return Err(ValueError::new(
            "`direct` does not apply to fwrite and fread, which are buffered",
        )
        .hint("remove `fwrite` and `fread` from `tests`, or use a separate workload for them"));
    }
    if compat {
        let cold = point.word("compat") == "iozone-cold";
        let cache = if cold { "cold" } else { "unchanged" };
        point.parameters.insert("cache".into(), Value::Word(cache.into()));
        point.parameters.insert("incompressible_fraction".into(), Value::Fraction(0.0));
        if point.flag("verify") {
            return Err(ValueError::new(
                "`verify` needs stamped data, which `compat` does not write",
            )
            .hint("remove one of them"));
        }
    }
    let points: Vec<_> = sweep::points(point)?.into_iter().map(with_defaults).collect();
    let broken = points.iter().find(|point| point.size("block_size") > point.size("file_size"));
    match broken {
        None => Ok(points),
        Some(point) => Err(ValueError::new(format!(
            "a block of {} does not fit into a file of {}",
            point.size("block_size"),
            point.size("file_size")
        ))
        .hint("set `file_size` to at least `block_size`")),
    }
}

/// Resets parameters without effect to their defaults, so that equal workloads are identical.
fn with_defaults(mut point: WorkloadParameters) -> WorkloadParameters {
    let mut unused: Vec<&str> = Vec::new();
    if point.word("sweep") == "none" {
        unused.extend([
            "sweep_file_size_min",
            "sweep_file_size_max",
            "sweep_block_size_min",
            "sweep_block_size_max",
        ]);
    }
    if point.count("workers") == 0 {
        unused.extend(["worker_type", "stonewall", "mixed_readers"]);
    }
    point.reset(&SPEC.defaults(), &unused);
    point
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let base = Base::new(point, seed);
    match point.count("workers") {
        0 => single::phases(&base),
        _ => throughput::phases(&base),
    }
}

fn footprint(point: &WorkloadParameters) -> Bytes {
    Bytes(point.size("file_size").0.saturating_mul(point.count("workers").max(1)))
}

/// Properties that all phases share.
struct Base<'a> {
    point: &'a WorkloadParameters,
    compat: bool,
    stream: Stream,
}

impl<'a> Base<'a> {
    fn new(point: &'a WorkloadParameters, seed: u64) -> Self {
        let compat = point.word("compat") != "none";
        let workers = u32::try_from(point.count("workers")).unwrap_or(u32::MAX);
        let kind = match point.word("worker_type") {
            "thread" => WorkerKind::Thread,
            _ => WorkerKind::Process,
        };
        let files = match workers {
            0 => FileSharing::One("iozone.tmp".into()),
            _ => FileSharing::PerWorker("iozone.DUMMY".into()),
        };
        let stream = Stream {
            io_engine: if compat { IoEngineKind::Position } else { IoEngineKind::Offset },
            data: match compat {
                true => DataPattern::PagePattern,
                false => DataPattern::Random {
                    incompressible_fraction: point.fraction("incompressible_fraction"),
                    duplicate_fraction: 0.0,
                },
            },
            seed,
            verify: point.flag("verify"),
            workers: match workers {
                0 => Workers::ONE,
                count => Workers { count, kind, ..Workers::ONE },
            },
            ..Stream::new(files, point.size("file_size"), point.size("block_size"))
        };
        Self { point, compat, stream }
    }

    fn has(&self, test: &str) -> bool {
        self.point.words("tests").iter().any(|given| given == test)
    }

    /// Opens a file with the synchronous flags of the cell.
    fn synchronous(&self, stream: &mut Stream) {
        stream.open.sync = self.flag("o_sync");
        stream.open.dsync = self.flag("o_dsync");
    }

    fn flag(&self, name: &str) -> bool {
        self.point.flag(name)
    }

    /// Cache state before the first pass of a test.
    fn cache(&self) -> Cache {
        if self.point.word("cache") == "cold" { Cache::Cold } else { Cache::Unchanged }
    }

    /// Creates a measured phase. `change` modifies a copy of the stream that all phases share.
    fn measure(&self, name: &str, cache: Cache, change: impl FnOnce(&mut Stream)) -> Phase {
        let mut stream = self.stream.clone();
        change(&mut stream);
        let stdio = stream.io_engine == IoEngineKind::Stdio;
        stream.open.direct = self.flag("direct") && !stdio;
        let writes = stream.direction != Direction::Read;
        // With -c but without -e, IOzone does not call fsync.
        let syncs = match self.compat {
            true if self.flag("include_close") => self.flag("include_fsync"),
            true => writes || self.flag("include_fsync"),
            false => writes,
        };
        stream.end_sync = if syncs { EndSync::Fsync } else { EndSync::None };
        Phase {
            name: name.into(),
            group: match stream.direction {
                Direction::Mixed(_) | Direction::Update(_) => "mixed",
                Direction::Read => "reading",
                Direction::Write => "writing",
                Direction::Alternate | Direction::FirstRead(_) => "mixed",
            }
            .into(),
            role: Role::Measure,
            cache,
            work: Work::Stream(stream),
            timed: Timed {
                sync: self.flag("include_fsync"),
                close: self.flag("include_close"),
                tick_subtracted: self.compat,
            },
            directory: None,
            together: None,
        }
    }

    /// Creates the phase that writes and syncs complete files for tests that read or overwrite
    /// them.
    fn layout(&self) -> Phase {
        let mut phase = self.measure("layout", Cache::Unchanged, |stream| {
            stream.direction = Direction::Write;
            stream.open.creation = model::phase::FileCreation::Fresh;
            stream.end_sync = EndSync::Fsync;
        });
        phase.role = Role::Prepare;
        phase
    }
}

//! The classic 13 tests of one file, and the throughput mode of several: access orders, passes and
//! timed regions as in version 3.471 of the tool whose name the suite carries, written anew from
//! its observed behaviour. Results are "iozone workload, fslab", never results of that program.
//!
//! Where the original misleads, the default here is the honest choice and `compat = "iozone"`
//! brings the original's back; `notes.md`, which is part of the reference page, lists every
//! difference.

mod single;
mod sweep;
#[cfg(test)]
mod tests;
mod throughput;

use model::{
    Bytes, Phase, Point, SuiteSpec, Value,
    phase::{
        Cache, Direction, Files, Fill, Flush, Interface, Role, Stream, Timed, Work, WorkerKind,
        Workers,
    },
    workload::{Kind, ValueError},
};

use crate::{Suite, parameter};

/// The suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Tests by the name of their first pass, in the order they run.
const TESTS: &[&str] = &[
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

/// The original's stride, in records.
const STRIDE: u64 = 17;

const SPEC: SuiteSpec = SuiteSpec {
    name: "iozone",
    title: "13 tests of one file: sequential, random, backward, strided, same record, stdio; \
            or the same by several workers.",
    source: "behaviour of IOzone 3.471, observed; IOzone documentation (iozone.org)",
    notes: include_str!("notes.md"),
    clients: Some("processes"),
    parameters: &[
        parameter("file", SIZE, "512MiB", "Size of the file; of each file with several workers."),
        parameter("record", SIZE, "64KiB", "Size of one record, which is one call."),
        parameter(
            "tests",
            Kind::Words(TESTS),
            "write,read,random,backward-read,record-rewrite,strided-read,fwrite,fread",
            "Which tests; each but mixed includes its second pass. They run in the suite's order.",
        ),
        parameter(
            "retest",
            Kind::Flag,
            "true",
            "Run the second pass of each pair (rewrite, reread …).",
        ),
        parameter(
            "processes",
            Kind::Count { min: 0, max: 1024 },
            "0",
            "0: single-stream mode. Otherwise throughput mode with this many workers, a file each.",
        ),
        parameter(
            "worker",
            Kind::Word(&["process", "thread"]),
            "process",
            "What a worker is in throughput mode.",
        ),
        parameter(
            "stonewall",
            Kind::Flag,
            "true",
            "In throughput mode the first worker to finish ends the counting for all.",
        ),
        parameter(
            "mixed_readers",
            Kind::Count { min: 0, max: 1024 },
            "0",
            "How many workers read in the mixed test; 0: every other one.",
        ),
        parameter("direct", Kind::Flag, "false", "Open with O_DIRECT, around the page cache."),
        parameter("sync", Kind::Flag, "false", "Open with O_SYNC: every write durable at once."),
        parameter("include_flush", Kind::Flag, "false", "Count the flush into the timed region."),
        parameter("include_close", Kind::Flag, "false", "Count the close into the timed region."),
        parameter(
            "cache",
            Kind::Word(&["cold", "as-left"]),
            "cold",
            "Empty the caches before each test, or leave them as the test before did.",
        ),
        parameter(
            "entropy",
            Kind::Share,
            "1.0",
            "Share of random bytes in the data; the rest is zero.",
        ),
        parameter("verify", Kind::Flag, "false", "Compare everything read with what was written."),
        parameter(
            "sweep",
            Kind::Word(&["none", "auto", "full"]),
            "none",
            "auto: files and records of all powers of two within the sweep bounds, small records \
             only with files up to 16 MiB; full: without that exception.",
        ),
        parameter("sweep_file_min", SIZE, "64KiB", "Smallest file of a sweep."),
        parameter("sweep_file_max", SIZE, "512MiB", "Largest file of a sweep."),
        parameter("sweep_record_min", SIZE, "4KiB", "Smallest record of a sweep."),
        parameter("sweep_record_max", SIZE, "16MiB", "Largest record of a sweep."),
        parameter(
            "compat",
            Kind::Word(&["none", "iozone"]),
            "none",
            "iozone: data, cache, timing and calls of the original; overrides cache and entropy.",
        ),
    ],
};

const SIZE: Kind = Kind::Size { min: Bytes(512), scales: true };

fn refine(mut point: Point) -> Result<Vec<Point>, ValueError> {
    let compat = point.word("compat") == "iozone";
    let has = |test: &str| point.words("tests").iter().any(|given| given == test);
    if has("mixed") && point.count("processes") < 2 {
        return Err(ValueError::new("the mixed test has workers that read and workers that write")
            .cure("set `processes` to 2 or more, or leave `mixed` out of `tests`"));
    }
    if has("mixed") && point.count("mixed_readers") >= point.count("processes") {
        return Err(ValueError::new("`mixed_readers` leaves no worker that writes")
            .cure("make it smaller than `processes`, or 0 for every other worker"));
    }
    if point.flag("direct") && !compat && (has("fwrite") || has("fread")) {
        return Err(ValueError::new("`direct` does not reach fwrite and fread: stdio is buffered")
            .cure(
                "leave `fwrite` and `fread` out of `tests`, or give them a workload of their own",
            ));
    }
    if compat {
        point.parameters.insert("cache".into(), Value::Word("as-left".into()));
        point.parameters.insert("entropy".into(), Value::Share(0.0));
        if point.flag("verify") {
            return Err(ValueError::new(
                "`verify` needs stamped data, which `compat` does not write",
            )
            .cure("leave one of them out"));
        }
    }
    let points: Vec<_> = sweep::points(point)?.into_iter().map(settled).collect();
    let broken = points.iter().find(|point| point.size("record") > point.size("file"));
    match broken {
        None => Ok(points),
        Some(point) => Err(ValueError::new(format!(
            "a record of {} does not fit into a file of {}",
            point.size("record"),
            point.size("file")
        ))
        .cure("make `file` at least as large as `record`")),
    }
}

/// A point whose parameters without effect have their defaults, so that equal work has equal names.
fn settled(mut point: Point) -> Point {
    let mut idle: Vec<&str> = Vec::new();
    if point.word("sweep") == "none" {
        idle.extend(["sweep_file_min", "sweep_file_max", "sweep_record_min", "sweep_record_max"]);
    }
    if point.count("processes") == 0 {
        idle.extend(["worker", "stonewall", "mixed_readers"]);
    }
    point.settle(&SPEC.defaults(), &idle);
    point
}

fn phases(point: &Point, seed: u64) -> Vec<Phase> {
    let base = Base::new(point, seed);
    match point.count("processes") {
        0 => single::phases(&base),
        _ => throughput::phases(&base),
    }
}

fn footprint(point: &Point) -> Bytes {
    Bytes(point.size("file").0.saturating_mul(point.count("processes").max(1)))
}

/// What all phases of a point share.
struct Base<'a> {
    point: &'a Point,
    compat: bool,
    stream: Stream,
}

impl<'a> Base<'a> {
    fn new(point: &'a Point, seed: u64) -> Self {
        let compat = point.word("compat") == "iozone";
        let workers = u32::try_from(point.count("processes")).unwrap_or(u32::MAX);
        let kind = match point.word("worker") {
            "thread" => WorkerKind::Thread,
            _ => WorkerKind::Process,
        };
        let files = match workers {
            0 => Files::One("iozone.tmp".into()),
            _ => Files::PerWorker("iozone.DUMMY".into()),
        };
        let stream = Stream {
            interface: if compat { Interface::Position } else { Interface::Offset },
            fill: match compat {
                true => Fill::PagePattern,
                false => Fill::Random { entropy: point.share("entropy"), duplicates: 0.0 },
            },
            seed,
            verify: point.flag("verify"),
            workers: match workers {
                0 => Workers::ONE,
                count => Workers { count, kind, ..Workers::ONE },
            },
            ..Stream::new(files, point.size("file"), point.size("record"))
        };
        Self { point, compat, stream }
    }

    fn has(&self, test: &str) -> bool {
        self.point.words("tests").iter().any(|given| given == test)
    }

    fn flag(&self, name: &str) -> bool {
        self.point.flag(name)
    }

    /// The cache before the first pass of a test.
    fn cache(&self) -> Cache {
        if self.point.word("cache") == "cold" { Cache::Cold } else { Cache::AsLeft }
    }

    /// A measured phase; `change` makes the shared stream its own.
    fn measure(&self, name: &str, cache: Cache, change: impl FnOnce(&mut Stream)) -> Phase {
        let mut stream = self.stream.clone();
        change(&mut stream);
        let stdio = stream.interface == Interface::Stdio;
        stream.open.direct = self.flag("direct") && !stdio;
        let writes = stream.direction != Direction::Read;
        // The original, told to include close but not flush, issues no flush at all.
        let flushes = match self.compat {
            true if self.flag("include_close") => self.flag("include_flush"),
            true => writes || self.flag("include_flush"),
            false => writes,
        };
        stream.flush = if flushes { Flush::Fsync } else { Flush::None };
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
                flush: self.flag("include_flush"),
                close: self.flag("include_close"),
                tick_subtracted: self.compat,
            },
        }
    }

    /// Lays out whole files, flushed, for tests that need them there.
    fn layout(&self) -> Phase {
        let mut phase = self.measure("layout", Cache::AsLeft, |stream| {
            stream.direction = Direction::Write;
            stream.open.presence = model::phase::Presence::Fresh;
            stream.flush = Flush::Fsync;
        });
        phase.role = Role::Prepare;
        phase
    }
}

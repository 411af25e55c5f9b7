//! Load generator overhead of replaying a loadfile.
//!
//! If dbench is installed, fslab is compared with dbench and with a bare loop, both with the
//! loadfile of dbench. Otherwise it is compared with the bare loop only, with a small loadfile.
//!
//! Rates on the page are operations per second. They are computed from bytes per second and the
//! mean bytes per operation of the loadfile, because dbench reports bytes per second only and all
//! programs run the same operations.

mod bare;
mod load;
mod peers;
mod room;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

use engine::{Context, Progress};
use model::{
    Nanos, PhaseResult,
    phase::{Durability, Load, Replay, Until, WorkerKind, Workers},
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

use crate::{
    contest::{Contest, rounds, single},
    page::{Row, Section},
    rate::Rate,
};
use load::Lines;
use room::Image;

/// Loadfile of the Debian package dbench.
const INSTALLED: &str = "/usr/share/dbench/client.txt";

/// Size of the measurements.
pub(crate) struct Extent {
    rounds: usize,
    /// Ramp time and runtime, in whole seconds for dbench.
    ramp: Duration,
    run: Duration,
    /// Number of clients, and a larger number for the memory measurement.
    crowd: u32,
    many: u32,
}

/// Size for reliable results.
pub(crate) const FULL: Extent = Extent {
    rounds: 7,
    ramp: Duration::from_secs(1),
    run: Duration::from_secs(5),
    crowd: 20,
    many: 200,
};

/// Size for a smoke test.
pub(crate) const SMOKE: Extent =
    Extent { rounds: 1, ramp: Duration::ZERO, run: Duration::from_millis(10), crowd: 2, many: 2 };

/// Section of the page. dbench is included if it is installed and `peers`.
pub(crate) fn measure(extent: &Extent, peers: bool) -> Section {
    let installed = peers && peers::is_installed() && Path::new(INSTALLED).is_file();
    let small = TempDir::new().expect("a directory for a loadfile");
    let path = if installed { PathBuf::from(INSTALLED) } else { load::small(small.path()) };
    let lines = Lines::read(&path);
    let memory = TempDir::new_in(tmpfs()).expect("a directory for files");
    let mut rows = one_client(extent, installed, &path, &lines, memory.path());
    let mut paragraphs = vec![conditions(installed, extent)];
    if installed {
        let crowd = crowd(extent, extent.crowd, &path, &lines, memory.path(), "tmpfs", Some(1.1));
        rows.extend(crowd);
        if let Some(image) = Image::new() {
            for clients in [1, extent.crowd] {
                rows.extend(crowd_on(extent, clients, &path, &lines, &image));
            }
        }
        paragraphs.push(reading(&path));
        paragraphs.push(proportions(extent, &path, memory.path()));
    }
    paragraphs.push(room::memory(extent.many, &path, memory.path(), extent.ramp + extent.run));
    Section { rows, paragraphs }
}

fn crowd_on(extent: &Extent, clients: u32, path: &Path, lines: &Lines, image: &Image) -> Vec<Row> {
    crowd(extent, clients, path, lines, image.path(), "ext4 on an image", None)
}

fn conditions(installed: bool, extent: &Extent) -> String {
    if !installed {
        return "dbench was not installed; this is a small loadfile, compared with a bare loop \
                with the same operations, on a tmpfs."
            .into();
    }
    format!(
        "fslab, dbench, and a bare loop replay the loadfile of the Debian package dbench 4.0, for \
         {} s after a ramp time of {} s. With one client, all of them run on the same single CPU. \
         With several clients, each client is a process, and all CPUs are used.\n\n\
         **dbench** parses the text of the loadfile while it measures, and makes a system call per \
         line to check its parent. Its result is the value of the last full second; fslab counts \
         exactly.\n\n\
         **Bare loop.** One client makes the calls. No other thread uses its descriptor table. \
         The operations are parsed in advance. The loop reads the clock once per 64 operations, \
         and counts nothing. It is compared by CPU time, including the creation of the files.",
        extent.run.as_secs(),
        extent.ramp.as_secs()
    )
}

fn tmpfs() -> &'static str {
    if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }
}

/// Replay of this loadfile with the settings of suite `dbench`.
fn replay(path: &Path, workers: Workers, until: Until) -> Replay {
    Replay {
        loadfile: Load::File { path: Some(path.display().to_string()) },
        until,
        resolve: true,
        durability: Durability::default(),
        xattr: false,
        rate: None,
        use_timestamps: false,
        parent_check: false,
        workers,
    }
}

fn by_time(extent: &Extent) -> Until {
    Until::Time { ramp: extent.ramp.into(), run: extent.run.into() }
}

fn run(replay: &Replay, directory: &Path) -> PhaseResult {
    let command: [OsString; 2] = ["/proc/self/exe".into(), "worker".into()];
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &command,
        start: None,
    };
    engine::run_replay(replay, &context).expect("the replay runs")
}

/// Operations per second, computed from bytes as for dbench.
fn rate(result: &PhaseResult, lines: &Lines) -> Rate {
    let of = |worker: &model::phase::WorkerResult| {
        #[expect(clippy::cast_precision_loss, reason = "bytes of seconds, far below 2^53")]
        let bytes = worker.bytes().0 as f64;
        bytes / worker.loop_time.seconds()
    };
    lines.rate(result.workers.iter().map(of).sum())
}

/// Operations per second of CPU time, on which other load on the machine has the least effect.
fn by_cpu_time(result: &PhaseResult) -> Rate {
    let times = result.workers.iter().map(|worker| worker.user_time + worker.system_time);
    Rate::new(result.ops().0, times.fold(Nanos(0), |sum, time| sum + time))
}

fn ours(replay: Replay, lines: &Lines, directory: &Path) -> impl Fn() -> Rate + Sync {
    move || rate(&run(&replay, directory), lines)
}

fn one_client(
    extent: &Extent,
    installed: bool,
    path: &Path,
    lines: &Lines,
    directory: &Path,
) -> Vec<Row> {
    let all = sched_getaffinity(None).expect("the CPUs of this process");
    let cpu = (0..CpuSet::MAX_CPU).rfind(|cpu| all.is_set(*cpu)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).expect("one CPU of those allowed");
    let what = "loadfile, one client, tmpfs";
    let least = installed.then_some(0.95);
    let whole = extent.ramp + extent.run;
    let until = Until::Time { ramp: Nanos(0), run: whole.into() };
    let alone = replay(path, Workers::threads(1), until);
    let bare = Contest {
        items: vec![format!("{what}, by CPU time")],
        ours: single(move || by_cpu_time(&run(&alone, directory))),
        others: vec![("bare loop", least, single(move || bare::replay(lines, directory, whole)))],
    };
    let mut rows = rounds(&bare, extent.rounds).1;
    if installed {
        let plain = replay(path, Workers::threads(1), by_time(extent));
        let theirs = move || peers::dbench(path, 1, directory, extent.ramp, extent.run, lines);
        let contest = Contest {
            items: vec![what.into()],
            ours: single(ours(plain, lines, directory)),
            others: vec![("dbench", Some(1.1), single(theirs))],
        };
        rows.extend(rounds(&contest, extent.rounds).1);
    }
    sched_setaffinity(None, &all).expect("the CPUs as before");
    rows
}

fn crowd(
    extent: &Extent,
    clients: u32,
    path: &Path,
    lines: &Lines,
    directory: &Path,
    place: &str,
    least: Option<f64>,
) -> Vec<Row> {
    let workers = Workers { kind: WorkerKind::Process, ..Workers::threads(clients) };
    let plain = replay(path, workers, by_time(extent));
    let theirs = move || peers::dbench(path, clients, directory, extent.ramp, extent.run, lines);
    let plural = if clients == 1 { "" } else { "s" };
    let contest = Contest {
        items: vec![format!("loadfile, {clients} client{plural}, {place}")],
        ours: single(ours(plain, lines, directory)),
        others: vec![("dbench", least, single(theirs))],
    };
    rounds(&contest, extent.rounds).1
}

/// Paragraph on the operations of fslab and dbench: the fraction of each type, and the number of
/// deviations from the loadfile. dbench runs for a time, fslab runs the loadfile once.
fn proportions(extent: &Extent, path: &Path, directory: &Path) -> String {
    let once = run(&replay(path, Workers::threads(1), Until::Replayed(1)), directory);
    let theirs = peers::counts(path, directory, extent.run * 4);
    #[expect(clippy::cast_precision_loss, reason = "counts of seconds")]
    let share = |count: u64, all: u64| count as f64 / all as f64;
    let all: u64 = theirs.iter().map(|(_, count)| count).sum();
    let unexpected: u64 = once.workers.iter().map(|worker| worker.unexpected.0).sum();
    let (mut most, mut of) = (0.0, "none");
    for (kind, times) in &once.latencies().by_kind {
        let found = theirs.iter().find(|(name, _)| name == kind.name()).map_or(0, |row| row.1);
        let (own, other) = (share(times.count(), once.ops().0), share(found, all));
        eprintln!(" {}: {own:.5} {other:.5}", kind.name());
        // For less frequent operations, half a pass over the loadfile affects the fraction too
        // much.
        if own > 0.01 && (own / other - 1.0).abs() > most {
            (most, of) = ((own / other - 1.0).abs(), kind.name());
        }
    }
    format!(
        "When fslab replayed the loadfile once, {unexpected} of {} operations returned another \
         status than in the loadfile. For each type of operation, its fraction of all operations \
         was compared with dbench ({all} operations). Of the types with a fraction of at least \
         1 %, {of} differs most, by {:.2} % (required: less than 2 %).",
        once.ops().0,
        most * 100.0
    )
}

/// Paragraph on the duration of parsing the loadfile.
fn reading(path: &Path) -> String {
    let bytes = std::fs::metadata(path).expect("it is installed").len();
    // A replay with timestamps rejects a loadfile without timestamps right after parsing it.
    let refused =
        Replay { use_timestamps: true, ..replay(path, Workers::threads(1), Until::Replayed(1)) };
    let least = |what: &dyn Fn()| {
        let times = (0..5).map(|_| {
            let begun = engine::now();
            what();
            engine::now() - begun
        });
        times.min().unwrap_or(Nanos(1)).seconds()
    };
    let ours = least(&|| {
        let context = Context {
            directory: Path::new("."),
            progress: &Progress::default(),
            interrupt: &AtomicBool::new(false),
            state: None,
            worker_command: &[],
            start: None,
        };
        engine::run_replay(&refused, &context).expect_err("the loadfile has no timestamps");
    });
    let hashed = least(&|| peers::sha256(path));
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let megabytes = bytes as f64 / 1e6;
    eprintln!(" reading: {:.0} MB/s, sha256sum {:.0} MB/s", megabytes / ours, megabytes / hashed);
    format!(
        "fslab needs {ours:.3} s to read, hash, and parse the {megabytes:.1} MB of the loadfile \
         ({:.0} MB/s), {:.1} times as long as sha256sum, which does not parse them.",
        megabytes / ours,
        ours / hashed
    )
}

pub(crate) use room::hold_clients;

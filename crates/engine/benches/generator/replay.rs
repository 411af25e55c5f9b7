//! What replaying a load file costs: ours against a bare loop over the same operations, and against
//! the classic program where it is installed, with its own load file. Without it only the bare loop
//! is left, and a small load file.
//!
//! Rates are operations per second on the page, made from bytes by the load file's own proportion:
//! the classic program tells bytes per second only, and everyone does the same operations.

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

/// Where the Debian package puts its load file.
const INSTALLED: &str = "/usr/share/dbench/client.txt";

/// How much is measured.
pub(crate) struct Extent {
    rounds: usize,
    /// Before counting, and what counts; whole seconds for the classic program.
    ramp: Duration,
    run: Duration,
    /// Clients of a crowd, and of a larger one whose memory is told.
    crowd: u32,
    many: u32,
}

/// Enough to tell.
pub(crate) const FULL: Extent = Extent {
    rounds: 7,
    ramp: Duration::from_secs(1),
    run: Duration::from_secs(5),
    crowd: 20,
    many: 200,
};

/// Enough to see that it works.
pub(crate) const SMOKE: Extent =
    Extent { rounds: 1, ramp: Duration::ZERO, run: Duration::from_millis(10), crowd: 2, many: 2 };

/// The section of the page; with the classic program if it is installed and `peers`.
pub(crate) fn measure(extent: &Extent, peers: bool) -> Section {
    let installed = peers && peers::is_installed() && Path::new(INSTALLED).is_file();
    let small = TempDir::new().expect("a directory for a load file");
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
        return "The classic program was not installed; this is a small load file, against a bare \
                loop over the same operations, on a tmpfs."
            .into();
    }
    format!(
        "The load file of the Debian package dbench 4.0, replayed for {} s after {} s that do not \
         count. Its program reads the text while it measures, and makes a call for each line to \
         see whether its parent is alive. Its last figure is that of the last whole second; ours \
         counts exactly. The bare loop makes the same calls with descriptors of its own, from \
         operations read beforehand, by one client; it looks at no clock but once for 64 \
         operations, and counts nothing. It is compared by CPU time, the making of the files \
         included. One client: everyone on the same single CPU. More: everyone on all of them, \
         one process each.",
        extent.run.as_secs(),
        extent.ramp.as_secs()
    )
}

fn tmpfs() -> &'static str {
    if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }
}

/// A replay as the suite has it, by this load file.
fn replay(path: &Path, workers: Workers, until: Until) -> Replay {
    Replay {
        load: Load::File { path: Some(path.display().to_string()) },
        until,
        resolve: true,
        durability: Durability::default(),
        attributes: false,
        rate: None,
        paced: false,
        line_call: false,
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
    };
    engine::run_replay(replay, &context).expect("the replay runs")
}

/// Operations per second by bytes, as all contestants tell them.
fn rate(result: &PhaseResult, lines: &Lines) -> Rate {
    let of = |worker: &model::phase::WorkerResult| {
        #[expect(clippy::cast_precision_loss, reason = "bytes of seconds, far below 2^53")]
        let bytes = worker.bytes().0 as f64;
        bytes / worker.loop_time.seconds()
    };
    lines.rate(result.workers.iter().map(of).sum())
}

/// Operations per second of CPU time, which other work on the machine disturbs least.
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
    let what = "load file, one client, tmpfs";
    let least = installed.then_some(0.95);
    let whole = extent.ramp + extent.run;
    let until = Until::Time { ramp: Nanos(0), run: whole.into() };
    let alone = replay(path, Workers::threads(1), until);
    let bare = Contest {
        whats: vec![format!("{what}, by CPU time")],
        ours: single(move || by_cpu_time(&run(&alone, directory))),
        others: vec![("bare loop", least, single(move || bare::replay(lines, directory, whole)))],
    };
    let mut rows = rounds(&bare, extent.rounds).1;
    if installed {
        let plain = replay(path, Workers::threads(1), by_time(extent));
        let theirs = move || peers::dbench(path, 1, directory, extent.ramp, extent.run, lines);
        let contest = Contest {
            whats: vec![what.into()],
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
    let contest = Contest {
        whats: vec![format!("load file, {clients} clients, {place}")],
        ours: single(ours(plain, lines, directory)),
        others: vec![("dbench", least, single(theirs))],
    };
    rounds(&contest, extent.rounds).1
}

/// Whether both do the same: how often each kind of operation comes, as a share of all, and how
/// much went otherwise than the load file has it. The classic program ends by time only, ours with
/// the last line.
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
        // Of those that are rarer, half an iteration more or less makes a difference.
        if own > 0.01 && (own / other - 1.0).abs() > most {
            (most, of) = ((own / other - 1.0).abs(), kind.name());
        }
    }
    format!(
        "Replayed once, {unexpected} of {} operations went otherwise than the load file has it. Of \
         the kinds that are 1 % of all or more, the share in ours differs most from that in \
         dbench's table (of {all} operations) for {of}: by {:.2} % (asked: less than 2 %).",
        once.ops().0,
        most * 100.0
    )
}

/// How long reading the load file takes.
fn reading(path: &Path) -> String {
    let bytes = std::fs::metadata(path).expect("it is installed").len();
    // A load file without times that is to be paced is refused as soon as it is read.
    let refused = Replay { paced: true, ..replay(path, Workers::threads(1), Until::Replayed(1)) };
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
        };
        engine::run_replay(&refused, &context).expect_err("it has no times");
    });
    let hashed = least(&|| peers::sha256(path));
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let megabytes = bytes as f64 / 1e6;
    eprintln!(" reading: {:.0} MB/s, sha256sum {:.0} MB/s", megabytes / ours, megabytes / hashed);
    format!(
        "Reading its {megabytes:.1} MB, hashing them, and making a program of them takes {ours:.3} \
         s ({:.0} MB/s), {:.1} times what sha256sum takes that only hashes them.",
        megabytes / ours,
        ours / hashed
    )
}

pub(crate) use room::hold;

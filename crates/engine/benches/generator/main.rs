//! Load generator overhead compared with bare loops and other programs: `make bench`.
//!
//! Started by `cargo bench` (which passes `--bench`), the program measures everything and writes
//! the page named by its argument. With `metadata`, `replay`, or `recorder` instead of a name, it
//! prints only that section. With `metadata`, followed by `bare`, `fs_mark`, `bonnie++`, or `fio`,
//! it prints only that comparison. Started by `cargo test`, it runs everything once in a small size
//! as a smoke test. With `worker` it is a worker process of these phases. With `memory`, a number
//! of files, and a directory, it prints the peak memory for these files. With `clients`, it prints
//! the peak memory of clients of a replay. With `calls`, it is a program that is recorded.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a separate program")]

mod bare;
mod contest;
mod fio;
mod metadata;
mod ours;
mod page;
mod rate;
mod recorder;
mod replay;

use std::{
    fs::File,
    path::{Path, PathBuf},
    time::Duration,
};

use bare::Counting;
use contest::{Contest, Measure, rounds, single};
use model::{
    Bytes,
    phase::{IoEngineKind, Stream},
};
use page::{Facts, Row, summary};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

/// Size of the measurements.
struct Extent {
    rounds: usize,
    length: Duration,
    size: Bytes,
    processes: u32,
}

const FULL: Extent = Extent {
    rounds: 30,
    length: Duration::from_millis(400),
    size: Bytes::mib(256),
    processes: 200,
};
const SMOKE: Extent =
    Extent { rounds: 1, length: Duration::from_millis(10), size: Bytes::mib(4), processes: 4 };

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "worker") {
        engine::worker_process().expect("the parent is running");
        return;
    }
    if let [memory, files, directory] = &arguments[..]
        && memory == "memory"
    {
        let files = files.parse().expect("a number of files");
        println!("{}", metadata::peak(files, Path::new(directory)));
        return;
    }
    if let Some(("clients", rest)) =
        arguments.split_first().map(|(word, rest)| (word.as_str(), rest))
    {
        println!("{}", replay::hold_clients(rest));
        return;
    }
    if let Some(("calls", rest)) = arguments.split_first().map(|(word, rest)| (word.as_str(), rest))
    {
        return recorder::make_calls(rest);
    }
    let full = arguments.iter().any(|argument| argument == "--bench");
    let extent = if full { &metadata::FULL } else { &metadata::SMOKE };
    if let Some(at) = arguments.iter().position(|argument| argument == "metadata") {
        let only = arguments.get(at + 1).map(String::as_str).filter(|word| !word.starts_with('-'));
        print!("{}", page::section("Metadata", &metadata::measure(extent, full, only)));
        return;
    }
    if arguments.iter().any(|argument| argument == "replay") {
        let extent = if full { &replay::FULL } else { &replay::SMOKE };
        print!("{}", page::section("Replays", &replay::measure(extent, full)));
        return;
    }
    if arguments.iter().any(|argument| argument == "recorder") {
        let extent = if full { &recorder::FULL } else { &recorder::SMOKE };
        print!("{}", page::section("Recordings", &recorder::measure(extent, full)));
        return;
    }
    let path = arguments.iter().find(|argument| !argument.starts_with("--")).filter(|_| full);
    // Fails before the measurement, which takes minutes.
    if let Some(path) = path {
        let opened = File::options().create(true).append(true).open(path);
        opened.expect("the page can be written (cargo runs this in the directory of the crate)");
    }
    let page = measure(if full { &FULL } else { &SMOKE }, full);
    match path {
        Some(path) => std::fs::write(path, page).expect("it could be opened"),
        None if full => print!("{page}"),
        None => assert!(page.contains("| 4 KiB"), "a page without rows: {page}"),
    }
}

/// Directories of the shared file: on a tmpfs, and on the filesystem of the build directory.
/// io_uring is not measured on tmpfs, which executes every operation in a kernel thread.
struct Directories {
    tmpfs: TempDir,
    cached: TempDir,
}

impl Directories {
    fn new(size: Bytes) -> Self {
        let tmpfs = if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
        let make = |parent: &str| TempDir::new_in(parent).expect("a directory for a file");
        let directories = Self { tmpfs: make(tmpfs), cached: make(env!("CARGO_TARGET_TMPDIR")) };
        ours::lay_out(size, directories.tmpfs.path());
        ours::lay_out(size, directories.cached.path());
        directories
    }
}

fn measure(extent: &Extent, full: bool) -> String {
    let directories = Directories::new(extent.size);
    let all = sched_getaffinity(None).expect("the CPUs of this process");
    let cpu = (0..CpuSet::MAX_CPU).rfind(|cpu| all.is_set(*cpu)).unwrap_or(0);
    let fio = full.then(fio::version).flatten();

    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).expect("one CPU of those allowed");
    let (rows, null) = contests(extent, &directories, fio.is_some(), cpu);
    let clock = clock();
    sched_setaffinity(None, &all).expect("the CPUs as before");

    let facts = Facts {
        conditions: conditions(extent, fio.as_deref()),
        clock,
        null,
        findings: vec![memory(extent), processes(extent, all.count())],
        metadata: metadata::measure(
            if full { &metadata::FULL } else { &metadata::SMOKE },
            full,
            None,
        ),
        replays: replay::measure(if full { &replay::FULL } else { &replay::SMOKE }, full),
        recordings: recorder::measure(if full { &recorder::FULL } else { &recorder::SMOKE }, full),
    };
    page::render(&rows, &facts)
}

/// Mean cost of a clock read in nanoseconds. The mean of many reads is more precise than the median
/// of single reads.
fn clock() -> f64 {
    let reads = 1_000_000u32;
    let before = engine::now();
    for _ in 0..reads {
        std::hint::black_box(engine::now());
    }
    #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
    let elapsed = (engine::now() - before).0 as f64;
    elapsed / f64::from(reads)
}

/// Rows of all comparisons, and median nanoseconds per operation on the null engine.
fn contests(extent: &Extent, directories: &Directories, fio: bool, cpu: usize) -> (Vec<Row>, f64) {
    let mut all = cached(extent, directories.cached.path(), cpu);
    all.extend(sequential(extent, directories.tmpfs.path(), cpu));
    let mut rows = Vec::new();
    let mut null = 0.0;
    for (index, mut contest) in all.into_iter().enumerate() {
        contest.others.retain(|(name, ..)| fio || !name.starts_with("fio"));
        let (ours, new) = rounds(&contest, extent.rounds);
        if index == 0 {
            null = ours[0];
        }
        rows.extend(new);
    }
    (rows, null)
}

/// Measurement of fslab.
fn ours<'a>(stream: Stream, directory: &'a Path) -> Measure<'a> {
    single(move || ours::rate(&ours::phase(&stream, directory)))
}

/// Measurement of fio, with this file if there is one.
fn peer<'a>(
    options: &'static [&'static str],
    file: Option<&'a Path>,
    extent: &'a Extent,
    cpu: usize,
) -> Measure<'a> {
    let size = format!("--size={}", extent.size.0);
    single(move || fio::run(&[options, &[&size]].concat(), file, cpu, extent.length))
}

fn open(directory: &Path) -> (PathBuf, File) {
    let path = directory.join(ours::FILE);
    let file = File::options().read(true).write(true).open(&path).expect("the file exists");
    (path, file)
}

/// Random reads of 4 KiB: without a file, and on a file in the page cache.
fn cached<'a>(extent: &'a Extent, directory: &'a Path, cpu: usize) -> Vec<Contest<'a>> {
    let (size, length, depth) = (extent.size, extent.length, 32);
    let shared = || open(directory).1;
    let path: &'a Path = Box::leak(open(directory).0.into_boxed_path());
    let random = |interface| ours(ours::random_4k(interface, size, length), directory);
    let nops = |counting| single(move || bare::ring(None, depth, counting, length));
    let (one, two) = (shared(), shared());
    vec![
        Contest {
            items: vec!["4 KiB random read, null engine".into()],
            ours: random(IoEngineKind::Null),
            others: vec![("fio null", Some(3.0), peer(&NULL, None, extent, cpu))],
        },
        Contest {
            items: vec!["4 KiB random pread, page cache".into()],
            ours: random(IoEngineKind::Offset),
            others: vec![
                (BARE, Some(0.97), single(move || bare::pread_4k(&one, size.0, length))),
                ("fio psync", Some(1.25), peer(&PSYNC, Some(path), extent, cpu)),
            ],
        },
        Contest {
            items: vec!["4 KiB random read, io_uring, depth 32, page cache".into()],
            ours: random(ours::ring(depth, false)),
            others: vec![
                (
                    BARE,
                    Some(0.95),
                    single(move || {
                        bare::ring(Some((&two, size.0)), depth, Counting::Nothing, length)
                    }),
                ),
                ("fio io_uring", Some(1.2), peer(&RING, Some(path), extent, cpu)),
            ],
        },
        Contest {
            items: vec!["io_uring NOP, depth 32".into()],
            ours: random(ours::ring(depth, true)),
            others: vec![
                ("bare loop with statistics", Some(0.95), nops(Counting::Each)),
                ("bare loop without statistics", None, nops(Counting::Nothing)),
            ],
        },
    ]
}

/// Sequential reads and writes of 1 MiB on tmpfs.
fn sequential<'a>(extent: &'a Extent, directory: &'a Path, cpu: usize) -> Vec<Contest<'a>> {
    let (size, length) = (extent.size, extent.length);
    let path: &'a Path = Box::leak(open(directory).0.into_boxed_path());
    let contest = |what: &str, writes, options| {
        let file = open(directory).1;
        let bare = move || bare::sequential_1m(&file, size.0, writes, length);
        Contest {
            items: vec![what.into()],
            ours: ours(ours::sequential_1m(writes, size, length), directory),
            others: vec![
                (BARE, Some(0.98), single(bare)),
                ("fio psync", Some(1.0), peer(options, Some(path), extent, cpu)),
            ],
        }
    };
    vec![
        contest("1 MiB sequential write, tmpfs", true, &WRITE),
        contest("1 MiB sequential read, tmpfs", false, &READ),
    ]
}

const BARE: &str = "bare loop";
// `norandommap`: fio draws offsets independently, as fslab does.
const NULL: [&str; 4] = ["--ioengine=null", "--rw=randread", "--bs=4k", "--norandommap"];
const PSYNC: [&str; 4] = ["--ioengine=psync", "--rw=randread", "--bs=4k", "--norandommap"];
const WRITE: [&str; 3] = ["--ioengine=psync", "--rw=write", "--bs=1m"];
const READ: [&str; 3] = ["--ioengine=psync", "--rw=read", "--bs=1m"];

/// Options of fio that correspond to fslab: registered file and buffers, and processing of all
/// available completions at once.
const RING: [&str; 10] = [
    "--ioengine=io_uring",
    "--rw=randread",
    "--norandommap",
    "--bs=4k",
    "--iodepth=32",
    "--fixedbufs",
    "--registerfiles",
    "--iodepth_batch_submit=32",
    "--iodepth_batch_complete_min=1",
    "--iodepth_batch_complete_max=32",
];

/// Peak memory of this process in KiB: `VmHWM` of proc_pid_status(5).
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).map(str::trim);
    kib.and_then(|kib| kib.parse::<u64>().ok()).expect("VmHWM in KiB")
}

/// Paragraph on the peak memory by file size and runtime.
fn memory(extent: &Extent) -> String {
    let peak = |size: Bytes, length: Duration| {
        // "5" resets the peak: proc_pid_clear_refs(5).
        std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
        ours::phase(&ours::random_4k(IoEngineKind::Null, size, length), Path::new("."));
        peak_kib()
    };
    let short = extent.length / 4;
    peak(Bytes::mib(1), short);
    let (base, large, long) = (
        peak(Bytes::mib(1), short),
        peak(Bytes::gib(1 << 20), short),
        peak(Bytes::mib(1), extent.length * 4),
    );
    format!(
        "## Memory\n\nPeak memory of this benchmark during a phase of random 4 KiB reads on the \
         null engine: {base} KiB with a file of 1 MiB, {large} KiB with a file of 1 PiB, and \
         {long} KiB with a file of 1 MiB and 16 times the duration."
    )
}

/// Paragraph on many worker processes compared with one per CPU.
fn processes(extent: &Extent, cpus: u32) -> String {
    let directory = Path::new(".");
    let measured = |count| ours::phase(&ours::processes(count, extent.length * 4), directory);
    let (mut costs, mut rates, mut skews) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..extent.rounds.div_ceil(3) {
        let (few, many) = (measured(cpus), measured(extent.processes));
        costs.push(ours::cpu_time_per_op(&few) / ours::cpu_time_per_op(&many));
        rates.push(ours::rate(&many).per_second / ours::rate(&few).per_second);
        skews.push(many.start_skew().seconds() * 1e3);
        eprint!(".");
    }
    eprintln!(" {} processes / {cpus}: costs {costs:.3?}, rates {rates:.3?}", extent.processes);
    let text = |values: &[f64]| {
        let summary = summary(values);
        let interval = summary.interval;
        let interval = interval.map(|i| format!(" ({:.3} to {:.3})", i.low, i.high));
        format!("{:.3}{}", summary.median, interval.unwrap_or_default())
    };
    format!(
        "## Many processes\n\nThis section compares many worker processes ({}) with few \
         ({cpus}) on {cpus} CPUs and the null engine. The CPU time per operation of the few \
         processes, divided by that of the many processes, is {} (required: at least 0.90). The \
         operations per second of the many processes, divided by those of the few processes, are \
         {}. Both rates cover the time from the first start to the last end. The last of the many \
         processes starts {:.0} ms after the first (median), because it waits for a CPU.",
        extent.processes,
        text(&costs),
        text(&rates),
        summary(&skews).median,
    )
}

fn conditions(extent: &Extent, fio: Option<&str>) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown CPU", |line| line.trim_start_matches([' ', '\t', ':']));
    let clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    vec![
        format!(
            "{model}; Linux {}; clock source {}",
            read("/proc/sys/kernel/osrelease").trim(),
            clock.trim()
        ),
        format!(
            "fio: {}",
            fio.map_or("none (fio is not installed)".into(), |version| format!(
                "{version}, one thread, default statistics"
            ))
        ),
        format!(
            "{} rounds of {} ms each, all on the same single CPU; a cached file of {}, which is on \
             the filesystem of the build directory for 4 KiB, and on tmpfs for 1 MiB",
            extent.rounds,
            extent.length.as_millis(),
            extent.size
        ),
    ]
}

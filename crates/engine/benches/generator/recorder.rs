//! Time that recording adds to a system call of a program.
//!
//! The program is this benchmark: started with `calls`, a number, a directory, and a file, it makes
//! eight calls per round in the directory, and writes their time to the file. It is measured alone,
//! recorded by fslab, traced by strace, and stopped by a tracer that does nothing else. No recorder
//! with ptrace(2) can avoid the time of these stops.

use std::{
    ffi::{CString, OsString},
    fs::{self, File, OpenOptions},
    io,
    os::unix::{ffi::OsStringExt, fs::FileExt},
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use model::Nanos;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use sys::ptrace::{Change, Chosen, Resume, Stop, filter, resume, spawn, wait};
use tempfile::TempDir;
use trace::{Settings, record};

use crate::{
    contest::{Contest, rounds, single},
    page::{Row, Section, summary},
    rate::Rate,
};

/// Size of the measurement.
pub(crate) struct Extent {
    rounds: usize,
    /// Rounds of the program, of [`CALLS`] calls each.
    files: u64,
}

/// Size for reliable results.
pub(crate) const FULL: Extent = Extent { rounds: 11, files: 10_000 };

/// Size for a smoke test.
pub(crate) const SMOKE: Extent = Extent { rounds: 1, files: 10 };

/// Calls per file.
const CALLS: u64 = 8;

/// System calls of the program, by all names that a library may use.
const STOPPED: [i64; 8] = [
    libc::SYS_openat,
    libc::SYS_pwrite64,
    libc::SYS_pread64,
    libc::SYS_fstat,
    libc::SYS_close,
    libc::SYS_newfstatat,
    libc::SYS_renameat,
    libc::SYS_unlinkat,
];
#[cfg(target_arch = "x86_64")]
const OLD: [i64; 3] = [libc::SYS_stat, libc::SYS_rename, libc::SYS_unlink];
#[cfg(not(target_arch = "x86_64"))]
const OLD: [i64; 0] = [];

/// Calls that strace(1) traces: those on files.
const FILTER: &str = "%file,%desc";

/// The measured program.
pub(crate) fn make_calls(arguments: &[String]) {
    let [files, directory, time] = arguments else { panic!("three arguments") };
    let files: u64 = files.parse().expect("a number");
    let path = |name: &str| Path::new(directory).join(name);
    let (first, second) = (path("first"), path("second"));
    let mut data = [7; 100];
    let started = Instant::now();
    for _ in 0..files {
        let mut options = OpenOptions::new();
        let file: File = options.read(true).write(true).create(true).open(&first).expect("a file");
        file.write_all_at(&data, 0).expect("a write");
        file.read_exact_at(&mut data, 0).expect("a read");
        rustix::fs::fstat(&file).expect("its status");
        drop(file);
        rustix::fs::stat(&first).expect("its status");
        fs::rename(&first, &second).expect("a rename");
        fs::remove_file(&second).expect("its removal");
    }
    let elapsed = started.elapsed().as_nanos().to_string();
    fs::write(time, elapsed).expect("a file outside of the directory");
}

/// Section of the page. strace is included if it is installed and `peers`.
pub(crate) fn measure(extent: &Extent, peers: bool) -> Section {
    let directory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    let directory = directory.expect("a directory for a file");
    let root = directory.path().join("root");
    fs::create_dir(&root).expect("a directory for a file");
    let time = directory.path().join("time");
    let program = std::env::current_exe().expect("this program");
    let words: Vec<OsString> = vec![
        program.into_os_string(),
        "calls".into(),
        extent.files.to_string().into(),
        root.clone().into_os_string(),
        time.clone().into_os_string(),
    ];
    let calls = extent.files * CALLS;
    let version = Command::new("strace").arg("-V").output();
    let strace = peers && version.is_ok_and(|output| output.status.success());
    let rate = || {
        let text = fs::read_to_string(&time).expect("the program wrote it");
        Rate::new(calls, Nanos(text.parse().expect("a number of nanoseconds")))
    };
    let log = directory.path().join("strace.log");
    let alone = single(|| {
        run(&words);
        rate()
    });
    let traced = single(|| {
        let strace = ["strace", "-f", "-ttt", "-T", "-y", "--seccomp-bpf", "-e", FILTER, "-o"];
        let strace = strace.map(OsString::from).into_iter().chain([log.clone().into()]);
        run(&strace.chain(words.clone()).collect::<Vec<_>>());
        rate()
    });
    let stopped = single(|| {
        let stops = stop_calls(words.clone()).expect("the program is traced");
        assert!(stops >= calls, "{stops} of {calls}");
        rate()
    });
    let mut others = vec![("the program alone", None, alone), ("stops only", None, stopped)];
    if strace {
        others.push(("strace", Some(1.0), traced));
    }
    let ours = single(|| {
        let (root, command) = (root.clone(), words.clone());
        let settings = Settings { root, command, baseline: 0, waiting: None };
        let done = record(&settings).expect("the program is recorded");
        assert_eq!((done.status, done.recording.operations() as u64), (0, calls));
        rate()
    });
    let contest =
        Contest { items: vec!["recorded call on a small file, tmpfs".into()], ours, others };
    let (_, rows) = rounds(&contest, extent.rounds);
    let [added, of_stops] = added(&rows[0], &rows[1]);
    let paragraphs = vec![
        format!(
            "A program makes {calls} calls on a file: open, write, read, fstat, close, stat, \
             rename, and unlink. It measures their time alone, while `fslab record` records it, \
             and with `strace -f -ttt -T -y --seccomp-bpf -e {FILTER}`, which writes to a file on \
             the same tmpfs. The recorder and a program with one thread share a CPU. *Stops only* \
             is a tracer that stops each of these calls at its beginning and end, as the recorder \
             does, and does nothing else."
        ),
        format!(
            "Recording adds {added} µs to a call (required: at most 10 µs). The stops add \
             {of_stops} µs."
        ),
    ];
    Section { rows, paragraphs }
}

/// Time in microseconds that recording adds to a call, and that the stops add, with intervals.
fn added(alone: &Row, stopped: &Row) -> [String; 2] {
    let recorded = alone.nanos.0;
    // A ratio is the time of a call alone or stopped, divided by that of a recorded call.
    let added: Vec<f64> = alone.ratios.iter().map(|ratio| recorded * (1.0 - ratio) / 1e3).collect();
    let of_stops = alone.ratios.iter().zip(&stopped.ratios);
    let of_stops: Vec<f64> =
        of_stops.map(|(alone, stopped)| recorded * (stopped - alone) / 1e3).collect();
    [added, of_stops].map(|micros| {
        let micros = summary(&micros);
        let interval = micros.interval.map(|i| format!(" ({:.2} to {:.2})", i.low, i.high));
        format!("{:.2}{}", micros.median, interval.unwrap_or_default())
    })
}

/// Runs a command under a tracer on the same CPU that only stops its calls. Returns the number of
/// stopped calls.
fn stop_calls(command: Vec<OsString>) -> io::Result<u64> {
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one)?;
    let words: Vec<CString> =
        command.into_iter().map(|word| CString::new(word.into_vec())).collect::<Result<_, _>>()?;
    let chosen: Vec<Chosen> = STOPPED.into_iter().chain(OLD).map(Chosen::Always).collect();
    let child = spawn(&words[0], &words, &filter(&chosen))?;
    resume(child, Resume::Run, 0)?;
    let mut stops = 0;
    while let Some((tid, change)) = wait()? {
        match change {
            Change::Stopped(Stop::Entry) => {
                stops += 1;
                resume(tid, Resume::UntilExit, 0)?;
            }
            Change::Stopped(Stop::Signal(signal)) => resume(tid, Resume::Run, signal)?,
            Change::Stopped(_) => resume(tid, Resume::Run, 0)?,
            Change::Exited(_) | Change::Killed(_) if tid == child => break,
            Change::Exited(_) | Change::Killed(_) | Change::Asked(_) => {}
        }
    }
    Ok(stops)
}

fn run(command: &[OsString]) {
    let mut program = Command::new(&command[0]);
    let status = program.args(&command[1..]).stdin(Stdio::null()).status();
    let status = status.expect("the program starts");
    assert!(status.success(), "{status}");
}

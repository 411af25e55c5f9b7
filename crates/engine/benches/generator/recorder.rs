//! Time that recording adds to a system call of a program.
//!
//! The program is this benchmark: started with `calls`, a number, a directory, and a file, it makes
//! eight calls per round in the directory, and writes their time to the file. It is measured alone,
//! recorded by fslab, and traced by strace.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use model::Nanos;
use tempfile::TempDir;
use trace::{Settings, record};

use crate::{
    contest::{Contest, rounds, single},
    page::{Section, summary},
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
    let mut others = vec![("the program alone", None, alone)];
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
    let own = &rows[0];
    // A ratio is the time of a call alone divided by that of a recorded call.
    let added: Vec<f64> =
        own.ratios.iter().map(|ratio| own.nanos.0 * (1.0 - ratio) / 1e3).collect();
    let added = summary(&added);
    let interval =
        added.interval.map(|i| format!(" ({:.2} to {:.2})", i.low, i.high)).unwrap_or_default();
    let paragraphs = vec![
        format!(
            "A program makes {calls} calls on a file: open, write, read, fstat, close, stat, \
             rename, and unlink. It measures their time alone, while `fslab record` records it, \
             and with `strace -f -ttt -T -y --seccomp-bpf -e {FILTER}`, which writes to a file on \
             the same tmpfs. The recorder and a program with one thread share a CPU."
        ),
        format!(
            "Recording adds {:.2}{interval} µs to a call (required: at most 10 µs).",
            added.median
        ),
    ];
    Section { rows, paragraphs }
}

fn run(command: &[OsString]) {
    let mut program = Command::new(&command[0]);
    let status = program.args(&command[1..]).stdin(Stdio::null()).status();
    let status = status.expect("the program starts");
    assert!(status.success(), "{status}");
}

//! Programs are recorded and replayed: operations, results, and the final tree are equal.
//!
//! Some programs are tests themselves. A test runs them as `recordings --exact NAME` with the
//! variable [`PROGRAM`], so that the recorded process is this test binary.
#![cfg(target_arch = "x86_64")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by a panic, and reports that it is skipped on stderr"
)]

mod descriptors;
mod hostile;
mod nodes;
mod order;
mod pauses;

use std::{
    collections::BTreeMap,
    ffi::{CString, OsString},
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            ffi::OsStringExt,
            fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
    thread,
};

use engine::{Context, EngineError, Progress, run_trace};
use model::{
    PhaseResult,
    phase::{FileCall, TraceOrder, TraceReplay, TraceTiming},
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, mkdirat, open, openat, renameat, unlinkat};
use tempfile::TempDir;
use trace::{Recording, Settings, record, summary};

/// Variable that makes a test a recorded program.
const PROGRAM: &str = "FSLAB_TEST_PROGRAM";

/// Directory of the recorded program.
fn as_program() -> Option<PathBuf> {
    std::env::var_os(PROGRAM).map(PathBuf::from)
}

/// Test with a directory to record in and one to replay in.
struct Bench {
    directory: TempDir,
    root: PathBuf,
}

fn context<'a>(
    directory: &'a Path,
    progress: &'a Progress,
    interrupt: &'a AtomicBool,
) -> Context<'a> {
    Context { directory, progress, interrupt, state: None, worker_command: &[], start: None }
}

impl Bench {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let root = directory.path().join("root");
        fs::create_dir(&root).unwrap();
        Self { directory, root }
    }

    fn record(&self, words: &[&str]) -> Recording {
        let command = words.iter().map(OsString::from).collect();
        let done =
            record(&Settings { root: self.root.clone(), command, baseline: 0, waiting: None })
                .unwrap();
        assert_eq!(done.status, 0, "{words:?}");
        let bytes = trace::bytes(&done.recording).unwrap();
        fs::write(self.file(), &bytes).unwrap();
        let read = trace::parse(&bytes).unwrap();
        assert_eq!(read, done.recording);
        read
    }

    /// Records a test.
    fn record_test(&self, name: &str) -> Recording {
        let program = std::env::current_exe().unwrap();
        let variable = format!("{PROGRAM}={}", self.root.display());
        self.record(&["/usr/bin/env", &variable, program.to_str().unwrap(), "--exact", name])
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("file.fstrace")
    }

    /// Replay of the recording in the order of its resources, as fast as possible.
    fn trace_replay(&self) -> TraceReplay {
        TraceReplay {
            trace: self.file().to_str().unwrap().to_owned(),
            sha256: String::new(),
            order: TraceOrder::Resources,
            timing: TraceTiming::Asap,
            unexpected_max: 1.0,
            seed: 1,
            prepares: true,
        }
    }

    /// Replays the recording in a new directory, and returns the result and the directory.
    fn replay(&self, order: TraceOrder, timing: TraceTiming) -> (PhaseResult, TempDir) {
        let place = TempDir::new_in(self.directory.path()).unwrap();
        let (progress, interrupt) = (Progress::default(), AtomicBool::new(false));
        let context = context(place.path(), &progress, &interrupt);
        let mut replay = TraceReplay { order, timing, ..self.trace_replay() };
        run_trace(&replay, &context).unwrap();
        replay.prepares = false;
        (run_trace(&replay, &context).unwrap(), place)
    }

    /// Replays the recording, a copy without names, and parts up to its end, and compares
    /// everything.
    fn exact(&self, recording: &Recording) {
        self.exact_once(recording);
        let keep = |recording: &Recording| {
            fs::write(self.file(), trace::bytes(recording).unwrap()).unwrap();
            trace::parse(&fs::read(self.file()).unwrap()).unwrap()
        };
        let anonymous = keep(&trace::anonymize(recording, &[9; 32]));
        let (result, place) = self.replay(TraceOrder::Resources, TraceTiming::Asap);
        compare(&anonymous, &result);
        let shape = |root: &Path| {
            let mut files: Vec<_> = tree(root)
                .into_iter()
                .map(|(path, (mode, size, links, target))| {
                    let target = target.map(|path| path.as_os_str().len());
                    (path.as_os_str().len(), mode, size, links, target)
                })
                .collect();
            files.sort_unstable();
            files
        };
        assert_eq!(shape(&self.root), shape(&place.path().join("fslab-trace")));
        let ops = recording.tasks.iter().flat_map(|task| &task.ops);
        let mut begins: Vec<u64> = ops.map(|op| op.begin).collect();
        begins.sort_unstable();
        for quarter in 1..4 {
            let part = trace::slice(recording, begins[begins.len() * quarter / 4], u64::MAX);
            let part = keep(&part);
            assert!(part.operations() >= begins.len() * (4 - quarter) / 4, "{quarter}");
            self.exact_once(&part);
        }
        keep(recording);
    }

    fn exact_once(&self, recording: &Recording) {
        let (result, place) = self.replay(TraceOrder::Resources, TraceTiming::Asap);
        compare(recording, &result);
        let (own, replayed) = (tree(&self.root), tree(&place.path().join("fslab-trace")));
        for (path, entry) in &own {
            assert_eq!(replayed.get(path), Some(entry), "{}", path.display());
        }
        assert_eq!(own.len(), replayed.len());
    }
}

/// Compares the operations of a replay with its recording.
fn compare(recording: &Recording, result: &PhaseResult) {
    let differences = result.facts.get("trace.unexpected");
    assert_eq!(differences, None);
    assert_eq!(result.facts.get("trace.left_out"), Some("0"));
    let counts = |call: FileCall| {
        let latencies = result.latencies();
        let found = latencies.by_call.iter().find(|(own, _)| *own == call);
        found.map_or(0, |(_, times)| times.count())
    };
    let summary = summary(recording);
    for (call, total) in &summary.calls {
        assert_eq!(counts(*call), total.count, "{}", call.name());
    }
    assert_eq!(result.ops().0, recording.operations() as u64);
    let (read, written) = result.workers.iter().fold((0, 0), |(read, written), worker| {
        (read + worker.read.bytes.0, written + worker.written.bytes.0)
    });
    assert_eq!((read, written), (summary.read, summary.written));
}

/// Kind, size, mode, links, and target of each file; the size of a directory depends on the
/// filesystem.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, u64, u64, Option<PathBuf>)> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let status = path.symlink_metadata().unwrap();
            let kind = status.file_type();
            let size = if kind.is_dir() { 0 } else { status.len() };
            let links = if kind.is_dir() { 0 } else { status.nlink() };
            let target = kind.is_symlink().then(|| fs::read_link(&path).unwrap());
            if kind.is_dir() {
                directories.push(path.clone());
            }
            let name = path.strip_prefix(root).unwrap().to_owned();
            found.insert(name, (status.mode(), size, links, target));
        }
    }
    found
}

fn installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
    if !found.status.success() {
        eprintln!("skipped: needs {program}");
    }
    found.status.success()
}

#[test]
fn tar_is_replayed_exactly() {
    if !installed("tar") {
        return;
    }
    let bench = Bench::new();
    let source = bench.directory.path().join("source");
    for index in 0..300 {
        let directory = source.join(format!("d{}", index % 7));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(format!("f{index}"));
        fs::write(&path, vec![b'x'; index * 97]).unwrap();
        let others = u32::try_from(index).unwrap() & 7;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640 | others)).unwrap();
    }
    std::os::unix::fs::symlink("d1/f1", source.join("link")).unwrap();
    fs::hard_link(source.join("d1/f1"), source.join("hard")).unwrap();
    let archive = bench.directory.path().join("a.tar");
    let (from, to) = (archive.to_str().unwrap(), bench.root.to_str().unwrap());
    let made = Command::new("tar").args(["cf", from, "-C"]).arg(&source).arg(".").status();
    assert!(made.unwrap().success());
    let recording = bench.record(&["tar", "xf", from, "-C", to]);
    bench.exact(&recording);
    // Packing reads what was unpacked.
    let recording = bench.record(&["tar", "cf", "/dev/null", to]);
    assert!(recording.nodes.len() > 300);
    let recording2 = bench.record(&["tar", "cf", &format!("{to}/own.tar"), "-C", to, "d1", "d2"]);
    assert!(summary(&recording2).read > 10_000);
    bench.exact(&recording2);
}

#[test]
fn git_is_replayed_exactly() {
    if !installed("git") {
        return;
    }
    let bench = Bench::new();
    let root = bench.root.to_str().unwrap();
    let script = format!(
        "export HOME={root} GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
         GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; cd {root} && git init -q a && cd a && \
         for i in 1 2 3 4 5 6 7 8 9; do echo $i > f$i; done && git add . && git commit -qm 1 && \
         cd .. && git clone -q --no-local a b && git -C b gc -q && rm -rf a"
    );
    let recording = bench.record(&["sh", "-c", &script]);
    assert!(recording.tasks.len() > 10);
    bench.exact(&recording);
}

#[test]
fn sqlite_is_replayed_exactly() {
    if !installed("sqlite3") {
        return;
    }
    let bench = Bench::new();
    let database = bench.root.join("t.db");
    let script: String = std::iter::once("CREATE TABLE t (a, b);".to_owned())
        .chain((0..50).map(|n| format!("INSERT INTO t VALUES ({n}, hex(randomblob(2000)));")))
        .chain(["UPDATE t SET b = 'x' WHERE a % 3 = 0; DELETE FROM t WHERE a > 40;".to_owned()])
        .collect();
    let recording = bench.record(&["sqlite3", database.to_str().unwrap(), &script]);
    let calls = summary(&recording).calls;
    assert!(calls[&FileCall::Fdatasync].count >= 100 && calls.contains_key(&FileCall::Lock));
    bench.exact(&recording);
}

#[test]
fn shell_pipelines_are_replayed_exactly() {
    let bench = Bench::new();
    fs::create_dir_all(bench.root.join("d/e")).unwrap();
    fs::write(bench.root.join("d/input"), "some words\nin lines\n").unwrap();
    let root = bench.root.to_str().unwrap();
    let script = format!(
        "cd {root}/d && umask 027 && cat input | tr a-z A-Z > output && (cd e; echo 1 > one; \
         cat < one >> two; mkdir -p x/y; touch x/y/z) && cp output copy && mv copy e/moved && \
         ln -s ../input e/link && cat e/link > /dev/null && chmod 600 e/link && ls -lR . > ../list; \
         test -e missing || exec rm -r e/x"
    );
    let recording = bench.record(&["sh", "-c", &script]);
    let waits = summary(&recording).calls[&FileCall::Wait].count;
    assert!(waits >= 5, "{waits}");
    bench.exact(&recording);
}

/// Records a test and replays it.
fn check(name: &str) {
    let bench = Bench::new();
    let recording = bench.record_test(name);
    assert!(recording.operations() > 0, "nothing was recorded");
    bench.exact(&recording);
}

#[test]
fn names_of_any_length_and_bytes() {
    let Some(root) = as_program() else { return check("names_of_any_length_and_bytes") };
    let directory = open(&root, OFlags::DIRECTORY | OFlags::PATH, Mode::empty()).unwrap();
    fs::write(root.join(OsString::from_vec(b"\xff\xfe\n\"".to_vec())), "x").unwrap();
    // A name that crosses a page border.
    let pages = 2 * 4096;
    for place in 4096 - 12..=4096 {
        let name = CString::new(format!("border-{place}")).unwrap();
        let mut memory = vec![0u8; pages + 4096];
        let first = memory.as_ptr().align_offset(4096);
        memory[first + place..][..name.as_bytes_with_nul().len()]
            .copy_from_slice(name.as_bytes_with_nul());
        let flags = libc::O_CREAT | libc::O_WRONLY;
        // SAFETY: the name ends with a NUL byte in live memory.
        let fd = unsafe {
            let path = memory.as_ptr().add(first + place).cast();
            libc::openat(directory.as_raw_fd(), path, flags, 0o644)
        };
        assert!(fd >= 0);
        // SAFETY: opened above and not used otherwise.
        unsafe { libc::close(fd) };
    }
    // A path of 4095 bytes, and a component of 255.
    let component = "c".repeat(255);
    fs::write(root.join(&component), "y").unwrap();
    let long = format!("{}{component}", "./".repeat((4095 - 255) / 2));
    assert_eq!(long.len(), 4095);
    assert!(rustix::fs::statat(&directory, &long, AtFlags::empty()).is_ok());
    assert!(rustix::fs::statat(&directory, format!(".{long}"), AtFlags::empty()).is_err());
}

#[test]
fn open_files_are_renamed_and_unlinked() {
    let Some(root) = as_program() else { return check("open_files_are_renamed_and_unlinked") };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    let mut first = options.open(root.join("a")).unwrap();
    first.write_all(&[1; 10_000]).unwrap();
    fs::rename(root.join("a"), root.join("b")).unwrap();
    let mut second = options.open(root.join("a")).unwrap();
    second.write_all(&[2; 100]).unwrap();
    fs::remove_file(root.join("b")).unwrap();
    first.seek(SeekFrom::Start(5000)).unwrap();
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 5000);
    first.set_len(20).unwrap();
    assert_eq!(first.metadata().unwrap().len(), 20);
    fs::remove_file(root.join("a")).unwrap();
    fs::create_dir(root.join("a")).unwrap();
    fs::write(root.join("a/c"), "x").unwrap();
    assert!(fs::remove_dir(root.join("a")).is_err());
    assert_eq!(second.write_at(b"abc", 4096).unwrap(), 3);
}

#[test]
fn data_is_copied_by_sendfile() {
    use rustix::fs::{ioctl_ficlone, sendfile};
    let Some(root) = as_program() else { return check("data_is_copied_by_sendfile") };
    fs::write(root.join("from"), [1; 10_000]).unwrap();
    let from = File::open(root.join("from")).unwrap();
    let to = File::create(root.join("to")).unwrap();
    // A filesystem may refuse it, and programs then copy.
    let refused = ioctl_ficlone(&to, &from).is_err();
    let mut offset = 1000;
    assert_eq!(sendfile(&to, &from, Some(&mut offset), 500).unwrap(), 500);
    // More than there is.
    assert_eq!(sendfile(&to, &from, None, 1 << 30).unwrap(), 10_000);
    assert!(!refused || to.metadata().unwrap().len() == 10_500);
    // To and from files that are not recorded.
    let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
    let mut offset = 9_000;
    assert_eq!(sendfile(&null, &from, Some(&mut offset), 1 << 30).unwrap(), 1000);
    let other = File::open(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(sendfile(&to, &other, None, 3000).unwrap(), 3000);
    // The kernel refuses it for files of /proc.
    let status = File::open("/proc/self/stat").unwrap();
    assert!(
        sendfile(&to, &status, None, 1 << 30).is_err() || to.metadata().unwrap().len() > 13_000
    );
}

#[test]
fn descriptors_are_duplicated_and_reused() {
    let Some(root) = as_program() else { return check("descriptors_are_duplicated_and_reused") };
    let mut one = File::create(root.join("one")).unwrap();
    let mut copy = one.try_clone().unwrap();
    one.write_all(b"first ").unwrap();
    copy.write_all(b"second").unwrap();
    let number = one.as_raw_fd();
    drop(one);
    // The number is used for another file by another thread.
    let other = root.join("two");
    thread::spawn(move || {
        let mut two = File::create(other).unwrap();
        assert_eq!(two.as_raw_fd(), number);
        two.write_all(b"reused").unwrap();
    })
    .join()
    .unwrap();
    copy.write_all(b" third").unwrap();
    let three = File::create(root.join("three")).unwrap();
    let mut target: OwnedFd = File::open(root.join("two")).unwrap().into();
    rustix::io::dup2(&three, &mut target).unwrap();
    drop(three);
    File::from(target).write_all(b"by dup2").unwrap();
    assert_eq!(fs::read(root.join("one")).unwrap(), b"first second third");
    assert_eq!(fs::read(root.join("three")).unwrap(), b"by dup2");
}

#[test]
fn files_without_names_and_descriptors_in_proc() {
    let Some(root) = as_program() else {
        return check("files_without_names_and_descriptors_in_proc");
    };
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(file) = open(&root, flags, Mode::from_raw_mode(0o600)) else { return };
    rustix::io::write(&file, &[5; 3000]).unwrap();
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, &own, CWD, root.join("linked"), AtFlags::SYMLINK_FOLLOW).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o444)).unwrap();
    let mut again = File::open(&own).unwrap();
    let mut data = Vec::new();
    again.read_to_end(&mut data).unwrap();
    assert_eq!(data.len(), 3000);
}

#[test]
fn directories_are_renamed_while_open() {
    let Some(root) = as_program() else { return check("directories_are_renamed_while_open") };
    fs::create_dir_all(root.join("a/b")).unwrap();
    let mode = Mode::from_raw_mode(0o755);
    let directory = open(root.join("a/b"), OFlags::DIRECTORY, Mode::empty()).unwrap();
    fs::rename(root.join("a"), root.join("z")).unwrap();
    mkdirat(&directory, "inside", mode).unwrap();
    let flags = OFlags::CREATE | OFlags::WRONLY;
    drop(openat(&directory, "inside/file", flags, mode).unwrap());
    drop(openat(&directory, "../outer", flags, mode).unwrap());
    renameat(&directory, "inside/file", &directory, "../file").unwrap();
    std::env::set_current_dir(root.join("z/b")).unwrap();
    fs::rename(root.join("z"), root.join("y")).unwrap();
    fs::write("by-directory", "x").unwrap();
    std::env::set_current_dir("..").unwrap();
    fs::write("upper", "x").unwrap();
    unlinkat(&directory, "by-directory", AtFlags::empty()).unwrap();
    let entries = fs::read_dir(".").unwrap().count();
    assert_eq!(entries, 4);
}

#[test]
fn a_thread_executes_a_program() {
    let Some(root) = as_program() else { return check("a_thread_executes_a_program") };
    let kept = File::create(root.join("inherited")).unwrap();
    rustix::io::fcntl_setfd(&kept, rustix::io::FdFlags::empty()).unwrap();
    let script =
        format!("echo by number >&{}; echo x > {}/after", kept.as_raw_fd(), root.display());
    let _closed = File::create(root.join("closed")).unwrap();
    thread::spawn(move || {
        let error = Command::new("sh").args(["-c", &script]).exec();
        panic!("{error}");
    })
    .join()
    .unwrap();
    drop(kept);
}

#[test]
fn rings_are_denied_and_mappings_are_counted() {
    let Some(root) = as_program() else {
        let bench = Bench::new();
        let recording = bench.record_test("rings_are_denied_and_mappings_are_counted");
        let fact = |key: &str| recording.facts.get(key).map(String::as_str);
        assert_eq!(fact("rings_denied"), Some("1"));
        assert_eq!(fact("mapped_bytes"), Some("65536"));
        assert_eq!(fact("mapped_writable_bytes"), Some("1048576"));
        assert_eq!(summary(&recording).calls[&FileCall::Mmap].count, 2);
        let (result, _place) = bench.replay(TraceOrder::Resources, TraceTiming::Recorded);
        compare(&recording, &result);
        return;
    };
    let file = options_of_all().open(root.join("mapped")).unwrap();
    file.set_len(1 << 20).unwrap();
    let mut parameters = [0u8; 256];
    // SAFETY: the call writes `struct io_uring_params`, which has 120 bytes.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 8, parameters.as_mut_ptr()) };
    assert_eq!((ring, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::ENOSYS)));
    let map = |length: usize, protection: i32, flags: i32| {
        let number = file.as_raw_fd();
        // SAFETY: a new mapping at an address that the kernel chooses; it is not accessed.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, number, 0) };
        assert_ne!(base, libc::MAP_FAILED);
    };
    map(64 << 10, libc::PROT_READ, libc::MAP_PRIVATE);
    map(1 << 20, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
}

/// Options to read, write, and create a file.
fn options_of_all() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    options
}

/// Runs a test as an unprivileged user, if this process is root. Such a replay is
/// confined by openat2(2) instead of chroot(2).
fn as_other_user(name: &str) {
    if !rustix::process::geteuid().is_root() || std::env::var_os("FSLAB_TEST_OTHER_USER").is_some()
    {
        return;
    }
    let directory = TempDir::new().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let copy = directory.path().join("recordings");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = Command::new(&copy);
    command.args(["--exact", name]).current_dir(directory.path());
    command.env("FSLAB_TEST_OTHER_USER", "1").env("TMPDIR", directory.path());
    command.uid(65534).gid(65534);
    // A process that another test starts at this moment has the copy open for writing until it
    // executes its program.
    let busy = |done: &std::io::Result<_>| {
        done.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
    };
    let mut done = command.output();
    while busy(&done) {
        std::thread::sleep(std::time::Duration::from_millis(1));
        done = command.output();
    }
    let output = done.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "as another user: {text}");
}

#[test]
fn replays_of_other_users_are_exact() {
    as_other_user("tar_is_replayed_exactly");
    as_other_user("git_is_replayed_exactly");
    as_other_user("sqlite_is_replayed_exactly");
    as_other_user("shell_pipelines_are_replayed_exactly");
    as_other_user("files_without_names_and_descriptors_in_proc");
}

#[test]
fn a_replay_without_a_file_of_the_program_fails() {
    let bench = Bench::new();
    fs::write(bench.root.join("a"), [1; 100]).unwrap();
    fs::write(bench.root.join("b"), [1; 100]).unwrap();
    let script = format!(
        "cd {}; cat b >c; for i in $(seq 50); do : <a; done; cat a >c",
        bench.root.display()
    );
    let mut recording = bench.record(&["sh", "-c", &script]);
    // Neither `a` nor what is read from it exists in the replay.
    let a = recording.nodes.iter().position(|node| recording.path(node.name) == b"a").unwrap();
    recording.nodes.remove(a);
    fs::write(bench.file(), trace::bytes(&recording).unwrap()).unwrap();
    let place = TempDir::new_in(bench.directory.path()).unwrap();
    let (progress, interrupt) = (Progress::default(), AtomicBool::new(false));
    let context = context(place.path(), &progress, &interrupt);
    let replay = TraceReplay { unexpected_max: 0.01, ..bench.trace_replay() };
    run_trace(&replay, &context).unwrap();
    let replay = TraceReplay { prepares: false, ..replay };
    let error = run_trace(&replay, &context).unwrap_err();
    let EngineError::Diverged { count, of, most } = error else { panic!("{error}") };
    assert!(count >= 51 && count < of, "{count} of {of}: {most}");
    assert_eq!(of, recording.operations() as u64);
    assert!(most.contains("open: recorded 3, replayed No such file or directory"), "{most}");
}

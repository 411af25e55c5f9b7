//! Worker processes: this binary starts itself as worker command.
//!
//! Without arguments it runs the tests below in sequence; a failing one panics.
#![expect(unsafe_code, reason = "signal(2) has no safe form, and a worker here ignores one signal")]
#![expect(clippy::unwrap_used, reason = "a test without the harness, which clippy does not see")]

use std::{
    env,
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use engine::{
    Context, EngineError, Operation, Progress, run, run_replay, run_tree, worker_process,
};
use model::{
    Bytes, Nanos, Ops, PhaseResult,
    phase::{
        AccessPattern, Bound, Calls, DataPattern, Direction, Durability, EndSync, FileCreation,
        FileSharing, IoEngineKind, Load, Naming, Open, Replay, Set, Sharing, Sizes, Spread,
        Stonewall, Stream, Tree, TreeOrder, TreeStep, Until, WorkerKind, Workers,
    },
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, setrlimit},
};
use tempfile::TempDir;

const ENDLESS: u64 = 1 << 50;
const LIMIT: u64 = 40_000;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    let role = arguments.get(1).and_then(|role| role.to_str()).unwrap_or_default();
    match role {
        "--role-worker" => worker_process().unwrap(),
        "--role-limited" => {
            limit_file_size();
            worker_process().unwrap();
        }
        "--role-few-files" => {
            let limit = Rlimit { current: Some(64), maximum: Some(64) };
            setrlimit(Resource::Nofile, limit).unwrap();
            worker_process().unwrap();
        }
        "--role-reporting" => {
            report(std::process::id());
            worker_process().unwrap();
        }
        "--role-dying" => return ExitCode::from(7),
        "--role-killed" => std::process::abort(),
        "--role-silent" => {}
        "--role-parent" => endless_parent(Path::new(&arguments[2])),
        _ => tests(),
    }
    ExitCode::SUCCESS
}

fn tests() {
    processes_and_threads_have_the_same_results();
    streams_of_any_kind_are_passed_to_workers();
    processes_share_one_number_of_operations();
    the_fault_of_a_process_has_its_path_and_stops_the_others();
    short_writes_are_resumed_up_to_the_limit();
    a_dead_worker_is_reported_with_its_status();
    a_missing_program_is_reported();
    an_interrupt_stops_processes();
    workers_do_not_outlive_their_parent();
    processes_run_trees();
    the_fault_of_a_process_has_the_path_of_the_entry();
    processes_run_replays();
    the_fault_of_a_client_has_its_line();
}

/// Makes writes fail with EFBIG at an offset within a block, without the signal.
fn limit_file_size() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let limit = Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) };
    setrlimit(Resource::Fsize, limit).unwrap();
}

/// Prints one line on standard error, which workers share with their parent.
fn report(pid: u32) {
    std::io::stderr().write_all(format!("{pid}\n").as_bytes()).unwrap();
}

fn stream(interface: IoEngineKind, direction: Direction, records: u64, count: u32) -> Stream {
    Stream {
        direction,
        io_engine: interface,
        open: Open { creation: FileCreation::Any, ..Open::default() },
        data: DataPattern::Random { incompressible_fraction: 0.7, duplicate_fraction: 0.0 },
        seed: u64::MAX - 3,
        verify: direction == Direction::Read,
        end_sync: EndSync::Fsync,
        workers: Workers { kind: WorkerKind::Process, ..Workers::threads(count) },
        ..Stream::new(FileSharing::PerWorker("f".into()), Bytes(records * 4096), Bytes::kib(4))
    }
}

fn run_as(role: &str, directory: &Path, stream: &Stream) -> Result<PhaseResult, EngineError> {
    run_with(&["/proc/self/exe", role], directory, stream, &AtomicBool::new(false), None)
}

fn run_with(
    command: &[&str],
    directory: &Path,
    stream: &Stream,
    interrupt: &AtomicBool,
    progress: Option<&Progress>,
) -> Result<PhaseResult, EngineError> {
    let worker_command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let unseen = Progress::default();
    let progress = progress.unwrap_or(&unseen);
    run(
        stream,
        &Context {
            directory,
            progress,
            interrupt,
            state: None,
            worker_command: &worker_command,
            start: None,
        },
    )
}

fn processes_and_threads_have_the_same_results() {
    let (ours, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let plan = stream(IoEngineKind::Offset, Direction::Write, 300, 3);
    let result = run_as("--role-worker", ours.path(), &plan).unwrap();
    assert_eq!((result.ops(), result.bytes()), (Ops(900), Bytes(900 * 4096)));
    assert_eq!(result.latencies().operations().count(), 900, "the histograms are included");
    let starts: Vec<Nanos> = result.workers.iter().map(|worker| worker.started).collect();
    assert!(starts.iter().all(|start| *start > Nanos(0)));
    for (worker, index) in result.workers.iter().zip(0..) {
        assert_eq!(worker.worker, index);
        let timed = worker.loop_time + worker.end_sync_time + worker.close_time;
        assert!(timed > Nanos(0) && timed <= result.wall_time);
    }

    let mut threads = plan.clone();
    threads.workers.kind = WorkerKind::Thread;
    run_as("--role-worker", theirs.path(), &threads).unwrap();
    for index in 0..3 {
        let name = plan.files.name(index);
        let content = |directory: &TempDir| {
            let mut content = fs::read(directory.path().join(&name)).unwrap();
            // Headers contain the time of the write, and the checksum includes it.
            content.chunks_mut(4096).for_each(|block| block[16..32].fill(0));
            content
        };
        assert!(content(&ours) == content(&theirs), "{name}");
    }
}

fn streams_of_any_kind_are_passed_to_workers() {
    use std::os::unix::ffi::OsStringExt;
    let directory = TempDir::new().unwrap();
    let odd = directory.path().join(OsString::from_vec(vec![b'o', 0xff, b'\n', b'"']));
    fs::create_dir(&odd).unwrap();
    for (interface, access) in [
        (IoEngineKind::Stdio, AccessPattern::IozonePermutation),
        (IoEngineKind::Position, AccessPattern::Backward),
        (IoEngineKind::Offset, AccessPattern::Sequential),
    ] {
        let mut plan = stream(interface, Direction::Write, 50, 2);
        plan.access_pattern = access;
        plan.workers.stonewall = Stonewall::Finish;
        let result = run_as("--role-worker", &odd, &plan).unwrap();
        let moved: Bytes = result.workers.iter().map(|w| w.bytes() + w.uncounted).sum();
        assert_eq!(moved, Bytes(100 * 4096));
        plan = stream(interface, Direction::Read, 50, 2);
        plan.access_pattern = access;
        assert_eq!(run_as("--role-worker", &odd, &plan).unwrap().ops(), Ops(100));
    }
}

/// Each process maps the control block, in which started operations are counted.
fn processes_share_one_number_of_operations() {
    let directory = TempDir::new().unwrap();
    let mut plan = stream(IoEngineKind::Position, Direction::Write, 40, 1);
    plan.files = FileSharing::Shared("f".into());
    plan.data = DataPattern::Marks;
    run_as("--role-worker", directory.path(), &plan).unwrap();
    for (workers, ops) in [(1, 9), (3, 500), (5, 2)] {
        let seeks = Stream {
            direction: Direction::Update(0.1),
            access_pattern: AccessPattern::Tickets,
            bound: Bound::Together(ops),
            workers: Workers { count: workers, ..plan.workers },
            ..plan.clone()
        };
        let result = run_as("--role-worker", directory.path(), &seeks).unwrap();
        assert_eq!((result.ops(), result.bytes()), (Ops(ops), Bytes(ops * 4096)));
        assert_eq!(result.workers.len(), workers as usize);
    }
}

fn the_fault_of_a_process_has_its_path_and_stops_the_others() {
    use std::os::unix::fs::symlink;
    let directory = TempDir::new().unwrap();
    symlink("/dev/null", directory.path().join("f.0")).unwrap();
    symlink("/dev/full", directory.path().join("f.1")).unwrap();
    let plan = stream(IoEngineKind::Offset, Direction::Write, ENDLESS, 2);
    let error = run_as("--role-worker", directory.path(), &plan).unwrap_err();
    let EngineError::Io { operation, path, offset, source } = error else { panic!("{error}") };
    assert_eq!((operation, offset), (Operation::Write, Some(Bytes(0))));
    assert_eq!(path, directory.path().join("f.1"));
    assert_eq!(source.raw_os_error(), Some(libc::ENOSPC));
}

/// 40 000 bytes are nine blocks and a part of the tenth: the kernel writes that part, and rejects
/// the rest at exactly the limit.
fn short_writes_are_resumed_up_to_the_limit() {
    for interface in
        [IoEngineKind::Offset, IoEngineKind::Position, IoEngineKind::Bytewise, IoEngineKind::Stdio]
    {
        let directory = TempDir::new().unwrap();
        let plan = stream(interface, Direction::Write, 20, 1);
        let error = run_as("--role-limited", directory.path(), &plan).unwrap_err();
        let EngineError::Io { operation, offset, source, .. } = error else { panic!("{error}") };
        assert_eq!(operation, Operation::Write);
        assert_eq!(source.raw_os_error(), Some(libc::EFBIG));
        // The C library keeps the rest of a short write in its buffer and reports the error in the
        // next call.
        let later = if interface == IoEngineKind::Stdio { 4096 } else { 0 };
        let offset = offset.unwrap().0;
        assert!((LIMIT..=LIMIT + later).contains(&offset), "{interface:?}: {offset}");
        assert_eq!(fs::metadata(directory.path().join("f.0")).unwrap().len(), LIMIT);
    }
}

fn a_dead_worker_is_reported_with_its_status() {
    let directory = TempDir::new().unwrap();
    let plan = stream(IoEngineKind::Null, Direction::Write, ENDLESS, 2);
    for (role, expected) in [
        ("--role-dying", "ended without a result (exit status: 7)"),
        ("--role-killed", "ended without a result (signal: 6 (SIGABRT)"),
        ("--role-silent", "ended without a result (exit status: 0)"),
    ] {
        let text = run_as(role, directory.path(), &plan).unwrap_err().to_string();
        assert!(text.starts_with("worker ") && text.contains(expected), "{text}");
    }
}

fn a_missing_program_is_reported() {
    let directory = TempDir::new().unwrap();
    let plan = stream(IoEngineKind::Null, Direction::Write, 1, 2);
    let command = ["/nowhere/fslab", "worker"];
    let error = run_with(&command, directory.path(), &plan, &AtomicBool::new(false), None);
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("starting worker 0 (/nowhere/fslab)"), "{text}");
}

fn an_interrupt_stops_processes() {
    let directory = TempDir::new().unwrap();
    let plan = stream(IoEngineKind::Null, Direction::Write, ENDLESS, 2);
    let (interrupt, progress) = (AtomicBool::new(false), Progress::default());
    let error = thread::scope(|scope| {
        let phase = scope.spawn(|| {
            let command = ["/proc/self/exe", "--role-worker"];
            run_with(&command, directory.path(), &plan, &interrupt, Some(&progress))
        });
        while progress.snapshot().done == Bytes(0) {
            thread::yield_now();
        }
        interrupt.store(true, Relaxed);
        phase.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, EngineError::Interrupted), "{error}");
}

/// Parent of the next test: its workers print their process IDs and never end by themselves.
fn endless_parent(directory: &Path) {
    let plan = stream(IoEngineKind::Null, Direction::Write, ENDLESS, 2);
    run_as("--role-reporting", directory, &plan).unwrap();
}

fn workers_do_not_outlive_their_parent() {
    let directory = TempDir::new().unwrap();
    let mut parent = Command::new("/proc/self/exe")
        .arg("--role-parent")
        .arg(directory.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let reported = BufReader::new(parent.stderr.take().unwrap());
    let workers: Vec<_> = reported
        .lines()
        .take(2)
        .map(|line| Pid::from_raw(line.unwrap().parse().unwrap()).unwrap())
        .map(|pid| pidfd_open(pid, PidfdFlags::empty()).unwrap())
        .collect();
    assert_eq!(workers.len(), 2);
    parent.kill().unwrap();
    parent.wait().unwrap();
    for worker in &workers {
        // Readable after the process has ended: pidfd_open(2).
        let mut ended = [PollFd::new(worker, PollFlags::IN)];
        let patience = rustix::time::Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut ended, Some(&patience)).unwrap(), 1, "a worker outlived its parent");
    }
}

/// Fifty files in directories of twenty, by three processes.
fn tree(steps: &[TreeStep]) -> Tree {
    let set = Set {
        name: "t".into(),
        sharing: Sharing::Private,
        files: 50,
        spread: Spread::Directories { each: 20 },
        naming: Naming::Scrambled,
        sizes: Sizes::LogNormal { mean: Bytes(5000), sigma: 0.7 },
        block_size: Bytes::kib(4),
        data: DataPattern::default(),
        seed: u64::MAX - 5,
    };
    let workers = Workers { kind: WorkerKind::Process, ..Workers::threads(3) };
    Tree { workers, ..Tree::new(set, steps.to_vec()) }
}

fn tree_as(role: &str, directory: &Path, tree: &Tree) -> Result<PhaseResult, EngineError> {
    let worker_command = ["/proc/self/exe", role].map(OsString::from);
    let (progress, interrupt) = (Progress::default(), AtomicBool::new(false));
    let context = Context {
        directory,
        progress: &progress,
        interrupt: &interrupt,
        state: None,
        worker_command: &worker_command,
        start: None,
    };
    run_tree(tree, &context)
}

fn processes_run_trees() {
    use TreeStep::{Close, Create, Fetch, Stat, Unlink, Write};
    let (ours, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for sharing in [Sharing::Private, Sharing::Directory] {
        let mut make = tree(&[Create, Write, Close]);
        make.set.sharing = sharing;
        let made = tree_as("--role-worker", ours.path(), &make).unwrap();
        assert_eq!((made.ops(), made.latencies().operations().count()), (Ops(150), 150));
        let mut threads = make.clone();
        threads.workers.kind = WorkerKind::Thread;
        let same = tree_as("--role-worker", theirs.path(), &threads).unwrap();
        assert_eq!(same.bytes(), made.bytes(), "the same sizes");
        if io_uring::IoUring::new(1).is_ok() {
            let mut ringed = Tree { calls: Calls::Ring { depth: 4 }, ..make.clone() };
            (ringed.set.name, ringed.set.block_size) = ("r".into(), Bytes::kib(256));
            let through = tree_as("--role-worker", theirs.path(), &ringed).unwrap();
            assert_eq!((through.ops(), through.bytes()), (made.ops(), made.bytes()));
        }
        let look = Tree { steps: vec![Stat, Fetch], order: TreeOrder::Listed, ..make.clone() };
        assert_eq!(tree_as("--role-worker", theirs.path(), &look).unwrap().bytes(), made.bytes());
        let mut remove = Tree { steps: vec![Unlink], order: TreeOrder::Random, ..make };
        remove.end.remove_directories = true;
        assert_eq!(tree_as("--role-worker", ours.path(), &remove).unwrap().ops(), Ops(150));
        assert_eq!(fs::read_dir(ours.path()).unwrap().count(), 0);
    }
}

fn the_fault_of_a_process_has_the_path_of_the_entry() {
    let directory = TempDir::new().unwrap();
    let mut make = tree(&[TreeStep::Create, TreeStep::Write, TreeStep::Close]);
    make.set.naming = Naming::Numbers;
    make.set.sizes = Sizes::Fixed(Bytes(2 * LIMIT));
    let error = tree_as("--role-limited", directory.path(), &make).unwrap_err();
    let EngineError::Io { operation, path, offset, source } = error else { panic!("{error}") };
    assert_eq!((operation, offset), (Operation::Write, Some(Bytes(LIMIT))));
    assert!(path.ends_with("0/0"), "{}", path.display());
    assert_eq!(source.raw_os_error(), Some(libc::EFBIG));

    make.workers.kind = WorkerKind::Thread;
    make.set.sizes = Sizes::Fixed(Bytes(0));
    let gone = TempDir::new().unwrap();
    tree_as("--role-worker", gone.path(), &make).unwrap();
    fs::remove_file(gone.path().join("t.1/2/45")).unwrap();
    let mut look = Tree { steps: vec![TreeStep::Stat], order: TreeOrder::Listed, ..make };
    look.workers.kind = WorkerKind::Process;
    let error = tree_as("--role-worker", gone.path(), &look).unwrap_err();
    let EngineError::Entries { path, found, expected } = error else { panic!("{error}") };
    assert_eq!((path, found, expected), (gone.path().join("t.1/2"), 9, 10));
}

/// Runs clients that replay a loadfile with this text once.
fn replay_as(
    role: &str,
    directory: &Path,
    kind: WorkerKind,
    clients: u32,
    text: &str,
) -> Result<PhaseResult, EngineError> {
    let files = TempDir::new().unwrap();
    let path = files.path().join("load");
    fs::write(&path, text).unwrap();
    let replay = Replay {
        loadfile: Load::File { path: Some(path.to_str().unwrap().into()) },
        until: Until::Replayed(2),
        resolve: true,
        durability: Durability::default(),
        xattr: false,
        rate: None,
        use_timestamps: false,
        parent_check: true,
        workers: Workers { kind, ..Workers::threads(clients) },
    };
    let command = ["/proc/self/exe".into(), role.into()];
    let context = Context {
        directory,
        progress: &Progress::default(),
        interrupt: &AtomicBool::new(false),
        state: None,
        worker_command: &command,
        start: None,
    };
    run_replay(&replay, &context)
}

fn processes_run_replays() {
    const ALL: &str = include_str!("traces/replay.load");
    for clients in [1, 3] {
        let reported = [WorkerKind::Thread, WorkerKind::Process].map(|kind| {
            let directory = TempDir::new().unwrap();
            let result = replay_as("--role-worker", directory.path(), kind, clients, ALL).unwrap();
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
            let latencies = result.latencies();
            let counts = latencies.by_kind.iter().map(|(kind, times)| (*kind, times.count()));
            assert_eq!(latencies.operations().count(), result.ops().0);
            let unexpected: u64 = result.workers.iter().map(|worker| worker.unexpected.0).sum();
            assert_eq!(unexpected, 0);
            let lines = result.facts.get("loadfile.lines").map(str::to_owned);
            (counts.collect::<Vec<_>>(), result.ops(), result.bytes(), lines)
        });
        assert_eq!(reported[0], reported[1]);
        assert_eq!(reported[0].1, Ops(35 * 2 * u64::from(clients)));
        assert_eq!(reported[0].3.as_deref(), Some("36"));
        assert_eq!(reported[0].0.len(), 17, "the histograms of all types are included");
    }
}

fn the_fault_of_a_client_has_its_line() {
    let directory = TempDir::new().unwrap();
    let opens = (0..200).map(|n| format!("NTCreateX \"/f{n}\" 0x40 0x2 {} NT_STATUS_OK\n", n + 1));
    let text: String = opens.collect();
    let process = WorkerKind::Process;
    let error = replay_as("--role-few-files", directory.path(), process, 2, &text).unwrap_err();
    let EngineError::Line { operation, path, line, source } = &error else { panic!("{error}") };
    assert_eq!(*operation, Operation::Open);
    assert_eq!(source.raw_os_error(), Some(libc::EMFILE));
    assert!((2..100).contains(line), "{error}");
    assert!(path.ends_with(format!("fslab-replay/f{}", line - 1)), "{error}");
    assert!(error.to_string().ends_with("too many open files; raise ulimit -n"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

//! Recordings with false or absurd contents.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    sync::atomic::AtomicBool,
    thread,
};

use engine::{Progress, run_trace};
use model::phase::{FileCall, TraceOrder, TraceReplay, TraceTiming};
use tempfile::TempDir;
use trace::Recording;

use crate::{Bench, as_other_user, context, tree};

/// Recording with false results: a link that leads outside is created, although its recorded result
/// is an error, and all calls use it.
fn hostile(target: &str, as_node: bool) -> Recording {
    use trace::{Node, NodeKind, Op, Task};
    let paths: Vec<Vec<u8>> = [
        "l",
        target,
        "l/file",
        "d",
        "x",
        "user.x",
        "..",
        "d/../l/file",
        "l/new",
        "../outside/file",
    ]
    .iter()
    .map(|path| path.as_bytes().to_vec())
    .collect();
    let root = Node { kind: NodeKind::Directory, mode: 0o755, ..Node::default() };
    let mut nodes = vec![root, Node { name: 4, ..root }];
    let link = Node { kind: NodeKind::Symlink, name: 1, target: 2, ..Node::default() };
    nodes.extend(as_node.then_some(link));
    let mut ops = vec![
        Op { path: 1, path2: 2, result: -17, ..Op::new(FileCall::Symlink) },
        Op { path: 4, opened: 1, flags: 0o200_000, ..Op::new(FileCall::Open) },
        Op { path: 7, opened: 2, fd: 1, flags: 0o200_000, ..Op::new(FileCall::Open) },
        Op { path: 1, opened: 3, ..Op::new(FileCall::Chdir) },
    ];
    let mut opened = 3;
    for path in [3, 8, 9, 10, 1] {
        for fd in [0, 1, 2, 3] {
            for call in FileCall::ALL {
                let path2 = match call {
                    FileCall::Rename | FileCall::Link => 5,
                    FileCall::Symlink => 2,
                    FileCall::Setxattr | FileCall::Removexattr | FileCall::Getxattr => 6,
                    _ => 0,
                };
                let open = *call == FileCall::Open;
                opened += u32::from(open);
                ops.push(Op {
                    path,
                    path2,
                    fd,
                    opened: if open { opened } else { 0 },
                    // O_RDWR, O_CREAT, and O_TRUNC; a mode with the bit that sets the user.
                    flags: match call {
                        FileCall::Open => 0o1102,
                        FileCall::Mknod => trace::NODE_TYPES[1],
                        _ => 0,
                    },
                    offset: 0o4777,
                    size: 7,
                    ..Op::new(*call)
                });
                // Into the other directory.
                if matches!(call, FileCall::Rename | FileCall::Link) {
                    ops.push(Op { path: 4, path2: path, fd2: fd, ..Op::new(*call) });
                }
            }
            ops.push(Op { fd: opened, size: 9, result: 9, ..Op::new(FileCall::Write) });
        }
    }
    for (begin, op) in (0u64..).zip(&mut ops) {
        op.begin = begin;
    }
    Recording { paths, nodes, tasks: vec![Task { ops, ..Task::default() }], ..Recording::default() }
}

#[test]
fn hostile_recordings_change_nothing_outside() {
    let bench = Bench::new();
    let outside = bench.directory.path().join("outside");
    let targets = [outside.to_str().unwrap().to_owned()];
    let relative = ["..", "../..", "../../outside", "../outside", "/", "/proc/self/cwd/../.."];
    for target in targets.iter().map(String::as_str).chain(relative) {
        for as_node in [false, true] {
            fs::create_dir_all(&outside).unwrap();
            let file = outside.join("file");
            fs::write(&file, "precious").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            let state = |path: &Path| {
                let it = path.metadata().unwrap();
                (it.mode(), it.mtime_nsec(), it.ctime_nsec(), it.len(), it.nlink(), it.ino())
            };
            let before = (state(&file), state(&outside), fs::read_dir(&outside).unwrap().count());
            let recording = hostile(target, as_node);
            fs::write(bench.file(), trace::bytes(&recording).unwrap()).unwrap();
            let (result, place) = bench.replay(TraceOrder::Resources, TraceTiming::Asap);
            assert!(result.workers[0].unexpected.0 > 0);
            let after = (state(&file), state(&outside), fs::read_dir(&outside).unwrap().count());
            assert_eq!(after, before, "{target}");
            assert_eq!(fs::read(&file).unwrap(), b"precious");
            for (path, (mode, ..)) in tree(place.path()) {
                assert_eq!(mode & 0o6000, 0, "{} has a set-user-ID bit", path.display());
            }
        }
    }
    as_other_user("hostile::hostile_recordings_change_nothing_outside");
}

#[test]
fn fifos_of_hostile_recordings_do_not_block_and_devices_are_refused() {
    use trace::{Node, NodeKind, Op, Task};
    let bench = Bench::new();
    let open = |flags| Op { path: 1, opened: 1, flags, ..Op::new(FileCall::Open) };
    let mut ops = vec![
        Op { path: 1, flags: trace::NODE_TYPES[1], offset: 0o600, ..Op::new(FileCall::Mknod) },
        Op { path: 1, ..Op::new(FileCall::Truncate) },
        open(1),
        open(0),
        Op { fd: 1, size: 10, result: 10, ..Op::new(FileCall::Read) },
        open(2),
        Op { fd: 1, size: 1 << 20, result: 1 << 20, ..Op::new(FileCall::Write) },
        Op { fd: 1, path: 0, opened: 2, ..open(1) },
    ];
    for (begin, op) in (0u64..).zip(&mut ops) {
        op.begin = begin;
    }
    let mut recording = Recording {
        paths: vec![b"fifo".to_vec()],
        nodes: vec![Node { kind: NodeKind::Directory, mode: 0o755, ..Node::default() }],
        tasks: vec![Task { ops, ..Task::default() }],
        ..Recording::default()
    };
    fs::write(bench.file(), trace::bytes(&recording).unwrap()).unwrap();
    let (result, place) = bench.replay(TraceOrder::Resources, TraceTiming::Asap);
    assert!(result.workers[0].unexpected.0 >= 3);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    for device in [libc::S_IFBLK, libc::S_IFCHR] {
        recording.tasks[0].ops[0].flags = u64::from(device);
        let error = trace::parse(&trace::bytes(&recording).unwrap()).unwrap_err();
        assert!(error.to_string().contains("neither a regular file nor a FIFO"), "{error}");
    }
}

#[test]
fn absurd_sizes_and_times_are_refused_or_interrupted() {
    use trace::{Node, NodeKind, Op, Task};
    let bench = Bench::new();
    let root = Node { kind: NodeKind::Directory, mode: 0o755, ..Node::default() };
    let large = Node { name: 1, size: 1 << 62, ..Node::default() };
    let fallocate = |flags| Op { fd: 1, size: 1 << 61, flags, ..Op::new(FileCall::Fallocate) };
    let ops = vec![
        Op { path: 2, opened: 1, flags: 0o102, offset: 0o600, ..Op::new(FileCall::Open) },
        // Mapped behind the end of the file.
        Op { fd: 1, size: 100_000, begin: 1, ..Op::new(FileCall::Mmap) },
        Op { fd: 1, size: 1 << 39, begin: 2, ..Op::new(FileCall::Mmap) },
        Op { fd: 1, size: 1 << 62, begin: 3, ..Op::new(FileCall::Mmap) },
        // With the recorded result of a full filesystem, it would not end the replay.
        Op { begin: 4, result: -28, ..fallocate(0) },
        Op { begin: 5, result: -28, ..fallocate(1) },
        Op { path: 2, begin: 6, think: 1 << 61, ..Op::new(FileCall::Stat) },
    ];
    let recording = Recording {
        paths: vec![b"large".to_vec(), b"new".to_vec()],
        nodes: vec![root, large],
        tasks: vec![Task { ops, ..Task::default() }],
        ..Recording::default()
    };
    let place = TempDir::new_in(bench.directory.path()).unwrap();
    let (progress, interrupt) = (Progress::default(), AtomicBool::new(false));
    let context = context(place.path(), &progress, &interrupt);
    let replay = TraceReplay { timing: TraceTiming::Think, ..bench.trace_replay() };
    fs::write(bench.file(), trace::bytes(&recording).unwrap()).unwrap();
    let error = run_trace(&replay, &context).unwrap_err().to_string();
    assert!(error.contains("MiB before the first operation"), "{error}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "nothing was created");
    // Without the file, the replay pauses for 73 years.
    let recording = Recording { nodes: vec![root], ..recording };
    fs::write(bench.file(), trace::bytes(&recording).unwrap()).unwrap();
    run_trace(&replay, &context).unwrap();
    let replay = TraceReplay { prepares: false, ..replay };
    thread::scope(|scope| {
        let ended = scope.spawn(|| run_trace(&replay, &context).map(|_| ()));
        thread::sleep(std::time::Duration::from_millis(200));
        assert!(!ended.is_finished());
        interrupt.store(true, std::sync::atomic::Ordering::SeqCst);
        let error = ended.join().unwrap().unwrap_err();
        assert!(matches!(error, engine::EngineError::Interrupted), "{error}");
    });
}

#[test]
fn a_changed_recording_and_missing_files_are_errors() {
    let bench = Bench::new();
    fs::write(bench.file(), trace::bytes(&hostile("x", false)).unwrap()).unwrap();
    let (progress, interrupt) = (Progress::default(), AtomicBool::new(false));
    let context = context(bench.directory.path(), &progress, &interrupt);
    let replay = TraceReplay { sha256: "0".repeat(64), ..bench.trace_replay() };
    let error = run_trace(&replay, &context).unwrap_err().to_string();
    assert!(error.contains("changed since the plan was read"), "{error}");
    // The files of the recording were not created.
    let replay = TraceReplay { sha256: String::new(), prepares: false, ..replay };
    let error = run_trace(&replay, &context).unwrap_err().to_string();
    assert!(error.contains("fslab-trace"), "{error}");
}

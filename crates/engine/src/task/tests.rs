use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use model::phase::Compression;
use tempfile::TempDir;

use super::*;
use crate::{Progress, barrier::ControlBlock};

/// Directories of a trial, and context of a task.
pub(super) struct Bench {
    target: TempDir,
    external: TempDir,
    progress: Progress,
    interrupt: AtomicBool,
}

pub(super) const NATIVE: Method = Method::Native;
const PROGRAMS: Method = Method::Programs { per_file: false };
const EACH: Method = Method::Programs { per_file: true };

pub(super) fn task_path(name: &str) -> TaskPath {
    TaskPath { root: TaskRoot::Target, name: name.into() }
}

fn away(name: &str) -> TaskPath {
    TaskPath { root: TaskRoot::External, name: name.into() }
}

/// In memory if possible: each task syncs its whole filesystem.
fn directory() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            target: directory(),
            external: directory(),
            progress: Progress::default(),
            interrupt: AtomicBool::new(false),
        }
    }

    fn try_run(
        &self,
        method: Method,
        operation: TaskOperation,
    ) -> Result<WorkerResult, EngineError> {
        let task = Task { operation, method, block_size: Bytes::kib(16), seed: 7 };
        let context = Context {
            directory: self.target.path(),
            progress: &self.progress,
            interrupt: &self.interrupt,
            state: None,
            worker_command: &[],
            start: None,
        };
        let result = run_task(&task, Some(self.external.path()), &context)?;
        let [worker] = &result.workers[..] else { unreachable!("one worker does a task") };
        assert_eq!(result.wall_time, worker.loop_time + worker.end_sync_time);
        assert!(worker.started > Nanos(0) && worker.loop_time > Nanos(0));
        Ok(worker.clone())
    }

    pub(super) fn run(&self, method: Method, operation: TaskOperation) -> WorkerResult {
        self.try_run(method, operation).unwrap()
    }

    fn refusal(&self, method: Method, operation: TaskOperation) -> String {
        self.try_run(method, operation).unwrap_err().to_string()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.target.path().join(name)
    }

    /// Entries below a directory: type, mode, and content by name.
    fn below(&self, name: &str) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut all = BTreeMap::new();
        gather(&self.path(name), Path::new(""), &mut all);
        all
    }
}

fn gather(root: &Path, below: &Path, all: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let name = below.join(entry.unwrap().file_name());
        let path = root.join(&name);
        let status = fs::symlink_metadata(&path).unwrap();
        let content = match status.file_type() {
            kind if kind.is_symlink() => {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            }
            kind if kind.is_file() => fs::read(&path).unwrap(),
            _ => Vec::new(),
        };
        if status.is_dir() {
            gather(root, &name, all);
        }
        all.insert(name, (status.mode(), content));
    }
}

/// Small tree with modes, a symbolic link, an empty directory, and a long name.
fn plant(path: &Path) {
    let deep = path.join("a").join("d".repeat(120));
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(path.join("empty")).unwrap();
    fs::write(path.join("none"), b"").unwrap();
    fs::write(path.join("a/block"), [7; 512]).unwrap();
    fs::write(deep.join("f".repeat(40)), (0..=255).cycle().take(100_000).collect::<Vec<u8>>())
        .unwrap();
    symlink("../none", path.join("a/link")).unwrap();
    fs::set_permissions(path.join("a/block"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(path.join("empty"), fs::Permissions::from_mode(0o555)).unwrap();
    let old = fs::File::options().write(true).open(path.join("none")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).unwrap();
}

/// Entries below a directory created by [`plant`], and bytes in its files.
const PLANTED: (u64, u64) = (7, 512 + 100_000);

fn counts(result: &WorkerResult) -> (u64, u64, u64, u64) {
    let (read, written) = (result.read, result.written);
    (read.ops.0, read.bytes.0, written.ops.0, written.bytes.0)
}

#[test]
fn entries_are_created_listed_and_removed() {
    for method in [NATIVE, PROGRAMS, EACH] {
        let bench = Bench::new();
        let count = 12;
        let made = bench.run(method, TaskOperation::Touch { directory: task_path("files"), count });
        assert_eq!(counts(&made), (0, 0, 12, 0), "{method:?}");
        assert!(made.end_sync_time > Nanos(0), "created entries are synced");
        let tree = bench.below("files");
        assert_eq!(tree.len(), 12);
        assert_eq!(tree[Path::new("11")], (0o100_644, Vec::new()), "the usual umask is 022");

        let found = bench.run(method, TaskOperation::Find { directory: task_path("files") });
        assert_eq!(counts(&found), (12, 0, 0, 0), "{method:?}");
        assert_eq!(found.end_sync_time, Nanos(0), "there is nothing to sync");

        let made = bench.run(
            method,
            TaskOperation::MakeDirectories { directory: task_path("files/in"), count },
        );
        assert_eq!(counts(&made), (0, 0, 12, 0), "{method:?}");
        assert_eq!(bench.below("files/in")[Path::new("0")].0, 0o40_755);

        let found = bench.run(method, TaskOperation::Find { directory: task_path("files") });
        assert_eq!(counts(&found), (25, 0, 0, 0), "{method:?}");
        let removed =
            bench.run(method, TaskOperation::RemoveTree { directory: task_path("files") });
        let reported = if method == NATIVE { 25 } else { 1 };
        assert_eq!(counts(&removed), (0, 0, reported, 0), "{method:?}");
        assert!(!bench.path("files").exists());
    }
}

#[test]
fn zero_entries_create_an_empty_directory() {
    for method in [NATIVE, PROGRAMS, EACH] {
        let bench = Bench::new();
        bench.run(method, TaskOperation::MakeDirectories { directory: task_path("d"), count: 0 });
        assert_eq!(bench.below("d").len(), 0);
        fs::write(bench.path("f"), b"").unwrap();
        bench.run(method, TaskOperation::RemoveTree { directory: task_path("f") });
        assert!(!bench.path("f").exists(), "a file is removed, too");
    }
}

#[test]
fn many_names_are_split_over_several_commands() {
    let bench = Bench::new();
    let made =
        bench.run(PROGRAMS, TaskOperation::Touch { directory: task_path("files"), count: 30_000 });
    assert_eq!(made.written.ops, Ops(30_000));
    assert_eq!(fs::read_dir(bench.path("files")).unwrap().count(), 30_000);
}

#[test]
fn files_are_copied_from_and_to_the_external_directory() {
    for method in [NATIVE, PROGRAMS] {
        let bench = Bench::new();
        let size = Bytes(100_001);
        bench.run(method, TaskOperation::Random { file: away("a"), size });
        let one = |from, to| TaskOperation::Copy { from, to, times: 1 };
        let result = bench.run(method, one(away("a"), task_path("b")));
        assert_eq!(
            counts(&result),
            (0, 0, 1, size.0),
            "{method:?}: read in the external directory"
        );
        assert!(result.end_sync_time > Nanos(0));
        let result = bench.run(method, one(task_path("b"), away("c")));
        assert_eq!(
            counts(&result),
            (0, size.0, 1, 0),
            "{method:?}: written in the external directory"
        );
        assert_eq!(result.end_sync_time, Nanos(0));
        let content = fs::read(bench.external.path().join("a")).unwrap();
        assert_eq!(content.len() as u64, size.0);
        assert!(fs::read(bench.external.path().join("c")).unwrap() == content);

        fs::set_permissions(bench.path("b"), fs::Permissions::from_mode(0o750)).unwrap();
        let copies = TaskOperation::Copy { from: task_path("b"), to: task_path("d"), times: 3 };
        let result = bench.run(method, copies);
        assert_eq!(counts(&result), (0, 3 * size.0, 3, 3 * size.0), "{method:?}");
        for number in 1..=3 {
            let copy = bench.path(&format!("d.{number}"));
            assert!(fs::read(&copy).unwrap() == content);
            assert_eq!(fs::metadata(copy).unwrap().mode() & 0o7777, 0o750);
        }
    }
}

#[test]
fn zeros_are_written_and_read() {
    for method in [NATIVE, PROGRAMS] {
        let bench = Bench::new();
        let size = Bytes(3_000_001);
        let result = bench.run(method, TaskOperation::Zeros { file: task_path("z"), size });
        assert_eq!(counts(&result), (0, 0, 1, size.0), "{method:?}");
        assert!(fs::read(bench.path("z")).unwrap() == vec![0; 3_000_001]);
        assert!(fs::metadata(bench.path("z")).unwrap().blocks() > 0, "data, not a hole");
        let result = bench.run(method, TaskOperation::Read { file: task_path("z") });
        assert_eq!(counts(&result), (1, size.0, 0, 0), "{method:?}");
    }
}

#[test]
fn a_file_is_split_into_the_number_of_pieces_of_the_study() {
    let sizes = [1000, 1024, 2048, 4096, 8192];
    let pieces = [10_486, 10_240, 5_120, 2_560, 1_280];
    let bench = Bench::new();
    bench.run(NATIVE, TaskOperation::Random { file: task_path("file"), size: Bytes::mib(10) });
    let content = fs::read(bench.path("file")).unwrap();
    for (piece, pieces) in sizes.into_iter().zip(pieces) {
        let into = format!("pieces-{piece}");
        let operation = TaskOperation::Split {
            file: task_path("file"),
            piece: Bytes(piece),
            into: task_path(&into),
        };
        let result = bench.run(NATIVE, operation);
        assert_eq!(counts(&result), (0, 10 << 20, pieces, 10 << 20));
        let all = bench.below(&into);
        assert_eq!(all.len() as u64, pieces);
        let joined: Vec<u8> = all.into_values().flat_map(|(_, bytes)| bytes).collect();
        assert!(joined == content, "in the order of their names they are the file");
    }
}

#[test]
fn both_methods_split_identically() {
    for (size, piece) in [(100_000, 1000), (100_001, 1000), (999, 1000), (100_000, 30_000)] {
        let bench = Bench::new();
        bench.run(NATIVE, TaskOperation::Random { file: task_path("file"), size: Bytes(size) });
        let operation = |into| TaskOperation::Split {
            file: task_path("file"),
            piece: Bytes(piece),
            into: task_path(into),
        };
        let native = bench.run(NATIVE, operation("native"));
        let programs = bench.run(PROGRAMS, operation("programs"));
        assert_eq!(counts(&native), (0, size, size.div_ceil(piece), size));
        assert_eq!(counts(&native), counts(&programs));
        assert!(bench.below("native") == bench.below("programs"), "{size} by {piece}");
    }
}

#[test]
fn trees_are_packed_unpacked_and_copied_unchanged() {
    let (names, bytes) = PLANTED;
    let bench = Bench::new();
    plant(&bench.path("planted"));
    let planted = bench.below("planted");
    assert_eq!(planted.len() as u64, names);
    let mut number = 0;
    for packing in [NATIVE, PROGRAMS] {
        for compression in [Compression::None, Compression::Gzip] {
            number += 1;
            let archive = task_path(&format!("archive{number}"));
            let operation = TaskOperation::Pack {
                directory: task_path("planted"),
                archive: archive.clone(),
                compression,
            };
            let result = bench.run(packing, operation);
            let length = fs::metadata(bench.path(&archive.name)).unwrap().len();
            assert_eq!(counts(&result), (0, bytes, names, length), "{packing:?}");
            let gzip = fs::read(bench.path(&archive.name)).unwrap().starts_with(&[0x1F, 0x8B]);
            assert_eq!(gzip, compression == Compression::Gzip);
            for unpacking in [NATIVE, PROGRAMS] {
                let into = format!("{}-{unpacking:?}", archive.name);
                let operation =
                    TaskOperation::Unpack { archive: archive.clone(), into: task_path(&into) };
                let result = bench.run(unpacking, operation);
                assert_eq!(counts(&result), (0, length, names, bytes), "{unpacking:?}");
                assert_eq!(bench.below(&into), planted, "{packing:?} {unpacking:?}");
                assert_eq!(modified(&bench.path(&into), "none"), 1_000_000);
                let empty = modified(&bench.path("planted"), "empty");
                assert_eq!(modified(&bench.path(&into), "empty"), empty);
            }
        }
    }
    for method in [NATIVE, PROGRAMS] {
        let to = format!("copy-{method:?}");
        let operation = TaskOperation::CopyTree { from: task_path("planted"), to: task_path(&to) };
        assert_eq!(counts(&bench.run(method, operation)), (0, bytes, names, bytes));
        assert_eq!(bench.below(&to), planted);
        assert_eq!(modified(&bench.path(&to), "none"), 1_000_000);
        assert_eq!(modified(&bench.path(&to), "a"), modified(&bench.path("planted"), "a"));
    }
}

fn modified(root: &Path, name: &str) -> i64 {
    fs::symlink_metadata(root.join(name)).unwrap().mtime()
}

#[test]
fn an_existing_name_is_not_overwritten() {
    let bench = Bench::new();
    plant(&bench.path("planted"));
    fs::write(bench.path("file"), b"mine").unwrap();
    let there = || task_path("file");
    let compression = Compression::None;
    bench.run(
        NATIVE,
        TaskOperation::Pack { directory: task_path("planted"), archive: away("t"), compression },
    );
    for method in [NATIVE, PROGRAMS] {
        for operation in [
            TaskOperation::Touch { directory: there(), count: 1 },
            TaskOperation::MakeDirectories { directory: there(), count: 1 },
            TaskOperation::Copy { from: away("t"), to: there(), times: 1 },
            TaskOperation::Unpack { archive: away("t"), into: there() },
            TaskOperation::Pack { directory: task_path("planted"), archive: there(), compression },
            TaskOperation::CopyTree { from: task_path("planted"), to: there() },
            TaskOperation::Zeros { file: there(), size: Bytes(1) },
            TaskOperation::Split { file: away("t"), piece: Bytes(1000), into: there() },
            TaskOperation::Random { file: there(), size: Bytes(1) },
            TaskOperation::Archive { archive: there(), files: 1, compression },
        ] {
            let text = bench.refusal(method, operation.clone());
            let said = text.contains("already exists") || text.contains("File exists");
            assert!(said, "{method:?} {operation:?}: {text}");
            assert_eq!(fs::read(bench.path("file")).unwrap(), b"mine", "{operation:?}");
        }
    }
}

#[test]
fn invalid_tasks_are_rejected_before_any_change() {
    let bench = Bench::new();
    for name in ["", ".", "..", "a/../b", "/a", "a//b", "a/", "./a", "a\0b"] {
        let text =
            bench.refusal(NATIVE, TaskOperation::Zeros { file: task_path(name), size: Bytes(1) });
        assert!(text.contains("not a valid relative path; use"), "{name:?}: {text}");
    }
    let file = || task_path("a");
    for (operation, what) in [
        (TaskOperation::Copy { from: file(), to: task_path("b"), times: 0 }, "copies is 0"),
        (
            TaskOperation::Split { file: file(), piece: Bytes(0), into: task_path("b") },
            "split_file_size is 0",
        ),
        (
            TaskOperation::Archive { archive: file(), files: 0, compression: Compression::None },
            "files is 0",
        ),
    ] {
        assert!(bench.refusal(NATIVE, operation).contains(what));
    }
    let operation = TaskOperation::Read { file: away("a") };
    let task = Task { operation, method: NATIVE, block_size: Bytes(1), seed: 0 };
    let context = Context {
        directory: bench.target.path(),
        progress: &bench.progress,
        interrupt: &bench.interrupt,
        state: None,
        worker_command: &[],
        start: None,
    };
    let text = run_task(&task, None, &context).unwrap_err().to_string();
    assert!(
        text.contains("needs an external directory") && text.contains("external_directory"),
        "{text}"
    );
    let nothing = Task { block_size: Bytes(0), ..task };
    let text = run_task(&nothing, Some(bench.external.path()), &context).unwrap_err().to_string();
    assert!(text.contains("block_size is 0"), "{text}");
    assert_eq!(bench.below("").len(), 0);
}

#[test]
fn missing_files_are_reported_with_a_hint() {
    let bench = Bench::new();
    let text = bench.refusal(NATIVE, TaskOperation::Read { file: task_path("a") });
    assert!(text.contains("/a: the file or its directory is missing; run"), "{text}");
    let text = bench.refusal(PROGRAMS, TaskOperation::Read { file: task_path("a") });
    assert!(text.contains("`cat ") && text.contains("No such file"), "{text}");
    assert!(text.contains("method native"), "{text}");
}

#[test]
fn a_missing_program_is_reported_with_a_hint() {
    let bench = Bench::new();
    let control = ControlBlock::new(1).unwrap();
    let mut context = TaskContext::new(Bytes(1), &control).unwrap();
    let missing = child::Program { name: "fslab-no-such-program", package: "coreutils" };
    let error = child::run(missing, &[], bench.target.path(), &mut context).unwrap_err();
    assert!(matches!(&error, EngineError::Program { source, .. }
        if source.kind() == std::io::ErrorKind::NotFound));
    let text = error.to_string();
    assert!(text.starts_with("starting fslab-no-such-program; install it"), "{text}");
    assert!(text.contains("package coreutils") && text.contains("method native"), "{text}");
}

#[test]
fn resource_usage_of_programs_is_counted() {
    let bench = Bench::new();
    bench.run(NATIVE, TaskOperation::Random { file: task_path("a"), size: Bytes::mib(8) });
    let compression = Compression::Gzip;
    fs::create_dir(bench.path("d")).unwrap();
    fs::rename(bench.path("a"), bench.path("d/a")).unwrap();
    let operation =
        TaskOperation::Pack { directory: task_path("d"), archive: task_path("t"), compression };
    let result = bench.run(PROGRAMS, operation);
    // gzip, started by tar, takes about 200 ms for 8 MiB of random data.
    assert!(result.user_time > Nanos(1_000_000), "{:?}", result.user_time);
    assert!(result.voluntary_switches > 0);
}

#[test]
fn tasks_can_be_interrupted() {
    for method in [NATIVE, PROGRAMS] {
        let bench = Bench::new();
        // The task would take hours and is interrupted as soon as it has started.
        let operation =
            TaskOperation::Copy { from: task_path("zeros"), to: task_path("b"), times: 100_000 };
        bench.run(NATIVE, TaskOperation::Zeros { file: task_path("zeros"), size: Bytes::mib(64) });
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !bench.path("b.1").exists() {
                    std::thread::yield_now();
                }
                bench.interrupt.store(true, Relaxed);
            });
            bench.try_run(method, operation)
        });
        assert!(matches!(answer, Err(EngineError::Interrupted)), "{method:?}: {answer:?}");
    }
}

#[test]
fn progress_is_published() {
    let bench = Bench::new();
    bench.run(NATIVE, TaskOperation::Zeros { file: task_path("a"), size: Bytes(1000) });
    let seen = bench.progress.snapshot();
    assert_eq!((seen.done, seen.total, seen.ops), (Bytes(1000), Bytes(1000), Ops(1)));
}

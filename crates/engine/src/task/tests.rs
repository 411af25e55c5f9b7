use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::atomic::AtomicBool,
};

use model::phase::Compression;
use tempfile::TempDir;

use super::*;
use crate::Progress;

/// The two places of a trial, and what a task needs.
pub(super) struct Bench {
    target: TempDir,
    elsewhere: TempDir,
    progress: Progress,
    interrupt: AtomicBool,
}

pub(super) const NATIVE: Method = Method::Native;
const PROGRAMS: Method = Method::Programs { each: false };
const EACH: Method = Method::Programs { each: true };

pub(super) fn spot(name: &str) -> Spot {
    Spot { at: At::Target, name: name.into() }
}

fn away(name: &str) -> Spot {
    Spot { at: At::Elsewhere, name: name.into() }
}

/// In memory where there is such a place: each task flushes its whole filesystem.
fn directory() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            target: directory(),
            elsewhere: directory(),
            progress: Progress::default(),
            interrupt: AtomicBool::new(false),
        }
    }

    fn try_run(&self, method: Method, deed: Deed) -> Result<WorkerResult, EngineError> {
        let task = Task { deed, method, buffer: Bytes::kib(16), seed: 7 };
        let context = Context {
            directory: self.target.path(),
            progress: &self.progress,
            interrupt: &self.interrupt,
            state: None,
            worker_command: &[],
        };
        let result = run_task(&task, Some(self.elsewhere.path()), &context)?;
        let [worker] = &result.workers[..] else { unreachable!("one worker does a task") };
        assert_eq!(result.wall_time, worker.loop_time + worker.flush_time);
        assert!(worker.started > Nanos(0) && worker.loop_time > Nanos(0));
        Ok(worker.clone())
    }

    pub(super) fn run(&self, method: Method, deed: Deed) -> WorkerResult {
        self.try_run(method, deed).unwrap()
    }

    fn refusal(&self, method: Method, deed: Deed) -> String {
        self.try_run(method, deed).unwrap_err().to_string()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.target.path().join(name)
    }

    /// What is below a directory: for each name its type, mode, and content.
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

/// A small tree with modes, a symbolic link, an empty directory, and a long name.
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

/// Names below a directory that [`plant`] made, and bytes in its files.
const PLANTED: (u64, u64) = (7, 512 + 100_000);

fn counts(result: &WorkerResult) -> (u64, u64, u64, u64) {
    let (read, written) = (result.read, result.written);
    (read.ops.0, read.bytes.0, written.ops.0, written.bytes.0)
}

#[test]
fn entries_are_made_listed_and_removed() {
    for method in [NATIVE, PROGRAMS, EACH] {
        let bench = Bench::new();
        let count = 12;
        let made = bench.run(method, Deed::Touch { directory: spot("files"), count });
        assert_eq!(counts(&made), (0, 0, 12, 0), "{method:?}");
        assert!(made.flush_time > Nanos(0), "what was made is flushed");
        let tree = bench.below("files");
        assert_eq!(tree.len(), 12);
        assert_eq!(tree[Path::new("11")], (0o100_644, Vec::new()), "the usual umask is 022");

        let found = bench.run(method, Deed::Find { directory: spot("files") });
        assert_eq!(counts(&found), (12, 0, 0, 0), "{method:?}");
        assert_eq!(found.flush_time, Nanos(0), "there is nothing to flush");

        let made = bench.run(method, Deed::MakeDirectories { directory: spot("files/in"), count });
        assert_eq!(counts(&made), (0, 0, 12, 0), "{method:?}");
        assert_eq!(bench.below("files/in")[Path::new("0")].0, 0o40_755);

        let found = bench.run(method, Deed::Find { directory: spot("files") });
        assert_eq!(counts(&found), (25, 0, 0, 0), "{method:?}");
        let removed = bench.run(method, Deed::RemoveTree { directory: spot("files") });
        let told = if method == NATIVE { 25 } else { 1 };
        assert_eq!(counts(&removed), (0, 0, told, 0), "{method:?}");
        assert!(!bench.path("files").exists());
    }
}

#[test]
fn no_entries_make_an_empty_directory() {
    for method in [NATIVE, PROGRAMS, EACH] {
        let bench = Bench::new();
        bench.run(method, Deed::MakeDirectories { directory: spot("d"), count: 0 });
        assert_eq!(bench.below("d").len(), 0);
        fs::write(bench.path("f"), b"").unwrap();
        bench.run(method, Deed::RemoveTree { directory: spot("f") });
        assert!(!bench.path("f").exists(), "a file is removed as well");
    }
}

#[test]
fn many_names_go_into_several_commands() {
    let bench = Bench::new();
    let made = bench.run(PROGRAMS, Deed::Touch { directory: spot("files"), count: 30_000 });
    assert_eq!(made.written.ops, Ops(30_000));
    assert_eq!(fs::read_dir(bench.path("files")).unwrap().count(), 30_000);
}

#[test]
fn files_are_copied_from_and_to_either_place() {
    for method in [NATIVE, PROGRAMS] {
        let bench = Bench::new();
        let size = Bytes(100_001);
        bench.run(method, Deed::Random { file: away("a"), size });
        let one = |from, to| Deed::Copy { from, to, times: 1 };
        let result = bench.run(method, one(away("a"), spot("b")));
        assert_eq!(counts(&result), (0, 0, 1, size.0), "{method:?}: read elsewhere");
        assert!(result.flush_time > Nanos(0));
        let result = bench.run(method, one(spot("b"), away("c")));
        assert_eq!(counts(&result), (0, size.0, 1, 0), "{method:?}: written elsewhere");
        assert_eq!(result.flush_time, Nanos(0));
        let content = fs::read(bench.elsewhere.path().join("a")).unwrap();
        assert_eq!(content.len() as u64, size.0);
        assert!(fs::read(bench.elsewhere.path().join("c")).unwrap() == content);

        fs::set_permissions(bench.path("b"), fs::Permissions::from_mode(0o750)).unwrap();
        let copies = Deed::Copy { from: spot("b"), to: spot("d"), times: 3 };
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
        let result = bench.run(method, Deed::Zeros { file: spot("z"), size });
        assert_eq!(counts(&result), (0, 0, 1, size.0), "{method:?}");
        assert!(fs::read(bench.path("z")).unwrap() == vec![0; 3_000_001]);
        assert!(fs::metadata(bench.path("z")).unwrap().blocks() > 0, "they are data, no hole");
        let result = bench.run(method, Deed::Read { file: spot("z") });
        assert_eq!(counts(&result), (1, size.0, 0, 0), "{method:?}");
    }
}

#[test]
fn a_file_is_cut_into_as_many_pieces_as_the_study_had() {
    let sizes = [1000, 1024, 2048, 4096, 8192];
    let pieces = [10_486, 10_240, 5_120, 2_560, 1_280];
    let bench = Bench::new();
    bench.run(NATIVE, Deed::Random { file: spot("file"), size: Bytes::mib(10) });
    let content = fs::read(bench.path("file")).unwrap();
    for (piece, pieces) in sizes.into_iter().zip(pieces) {
        let into = format!("pieces-{piece}");
        let deed = Deed::Split { file: spot("file"), piece: Bytes(piece), into: spot(&into) };
        let result = bench.run(NATIVE, deed);
        assert_eq!(counts(&result), (0, 10 << 20, pieces, 10 << 20));
        let all = bench.below(&into);
        assert_eq!(all.len() as u64, pieces);
        let joined: Vec<u8> = all.into_values().flat_map(|(_, bytes)| bytes).collect();
        assert!(joined == content, "in the order of their names they are the file");
    }
}

#[test]
fn both_methods_cut_alike() {
    for (size, piece) in [(100_000, 1000), (100_001, 1000), (999, 1000), (100_000, 30_000)] {
        let bench = Bench::new();
        bench.run(NATIVE, Deed::Random { file: spot("file"), size: Bytes(size) });
        let deed = |into| Deed::Split { file: spot("file"), piece: Bytes(piece), into: spot(into) };
        let native = bench.run(NATIVE, deed("native"));
        let programs = bench.run(PROGRAMS, deed("programs"));
        assert_eq!(counts(&native), (0, size, size.div_ceil(piece), size));
        assert_eq!(counts(&native), counts(&programs));
        assert!(bench.below("native") == bench.below("programs"), "{size} by {piece}");
    }
}

#[test]
fn trees_are_packed_unpacked_and_copied_as_they_are() {
    let (names, bytes) = PLANTED;
    let bench = Bench::new();
    plant(&bench.path("planted"));
    let planted = bench.below("planted");
    assert_eq!(planted.len() as u64, names);
    let mut number = 0;
    for packing in [NATIVE, PROGRAMS] {
        for compression in [Compression::None, Compression::Gzip] {
            number += 1;
            let archive = spot(&format!("archive{number}"));
            let deed =
                Deed::Pack { directory: spot("planted"), archive: archive.clone(), compression };
            let result = bench.run(packing, deed);
            let length = fs::metadata(bench.path(&archive.name)).unwrap().len();
            assert_eq!(counts(&result), (0, bytes, names, length), "{packing:?}");
            let gzip = fs::read(bench.path(&archive.name)).unwrap().starts_with(&[0x1F, 0x8B]);
            assert_eq!(gzip, compression == Compression::Gzip);
            for unpacking in [NATIVE, PROGRAMS] {
                let into = format!("{}-{unpacking:?}", archive.name);
                let deed = Deed::Unpack { archive: archive.clone(), into: spot(&into) };
                let result = bench.run(unpacking, deed);
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
        let deed = Deed::CopyTree { from: spot("planted"), to: spot(&to) };
        assert_eq!(counts(&bench.run(method, deed)), (0, bytes, names, bytes));
        assert_eq!(bench.below(&to), planted);
        assert_eq!(modified(&bench.path(&to), "none"), 1_000_000);
        assert_eq!(modified(&bench.path(&to), "a"), modified(&bench.path("planted"), "a"));
    }
}

fn modified(root: &Path, name: &str) -> i64 {
    fs::symlink_metadata(root.join(name)).unwrap().mtime()
}

#[test]
fn a_name_that_is_there_is_not_overwritten() {
    let bench = Bench::new();
    plant(&bench.path("planted"));
    fs::write(bench.path("file"), b"mine").unwrap();
    let there = || spot("file");
    let compression = Compression::None;
    bench.run(NATIVE, Deed::Pack { directory: spot("planted"), archive: away("t"), compression });
    for method in [NATIVE, PROGRAMS] {
        for deed in [
            Deed::Touch { directory: there(), count: 1 },
            Deed::MakeDirectories { directory: there(), count: 1 },
            Deed::Copy { from: away("t"), to: there(), times: 1 },
            Deed::Unpack { archive: away("t"), into: there() },
            Deed::Pack { directory: spot("planted"), archive: there(), compression },
            Deed::CopyTree { from: spot("planted"), to: there() },
            Deed::Zeros { file: there(), size: Bytes(1) },
            Deed::Split { file: away("t"), piece: Bytes(1000), into: there() },
            Deed::Random { file: there(), size: Bytes(1) },
            Deed::Archive { archive: there(), files: 1, compression },
        ] {
            let text = bench.refusal(method, deed.clone());
            let said = text.contains("is there already") || text.contains("File exists");
            assert!(said, "{method:?} {deed:?}: {text}");
            assert_eq!(fs::read(bench.path("file")).unwrap(), b"mine", "{deed:?}");
        }
    }
}

#[test]
fn tasks_that_make_no_sense_are_refused_before_anything_is_touched() {
    let bench = Bench::new();
    for name in ["", ".", "..", "a/../b", "/a", "a//b", "a/", "./a", "a\0b"] {
        let text = bench.refusal(NATIVE, Deed::Zeros { file: spot(name), size: Bytes(1) });
        assert!(text.contains("no name below a directory; use"), "{name:?}: {text}");
    }
    let file = || spot("a");
    for (deed, what) in [
        (Deed::Copy { from: file(), to: spot("b"), times: 0 }, "has no copies"),
        (Deed::Split { file: file(), piece: Bytes(0), into: spot("b") }, "no bytes in a piece"),
        (
            Deed::Archive { archive: file(), files: 0, compression: Compression::None },
            "has no files",
        ),
    ] {
        assert!(bench.refusal(NATIVE, deed).contains(what));
    }
    let deed = Deed::Read { file: away("a") };
    let task = Task { deed, method: NATIVE, buffer: Bytes(1), seed: 0 };
    let context = Context {
        directory: bench.target.path(),
        progress: &bench.progress,
        interrupt: &bench.interrupt,
        state: None,
        worker_command: &[],
    };
    let text = run_task(&task, None, &context).unwrap_err().to_string();
    assert!(text.contains("a second place") && text.contains("elsewhere"), "{text}");
    let nothing = Task { buffer: Bytes(0), ..task };
    let text = run_task(&nothing, Some(bench.elsewhere.path()), &context).unwrap_err().to_string();
    assert!(text.contains("no bytes in its buffer"), "{text}");
    assert_eq!(bench.below("").len(), 0);
}

#[test]
fn what_is_missing_is_named_with_a_cure() {
    let bench = Bench::new();
    let text = bench.refusal(NATIVE, Deed::Read { file: spot("a") });
    assert!(text.contains("/a: the file or its directory is missing; run"), "{text}");
    let text = bench.refusal(PROGRAMS, Deed::Read { file: spot("a") });
    assert!(text.contains("`cat ") && text.contains("No such file"), "{text}");
    assert!(text.contains("method native"), "{text}");
}

#[test]
fn a_program_that_is_not_there_is_named_with_a_cure() {
    let bench = Bench::new();
    let board = Board::new(1).unwrap();
    let mut hand = Hand::new(Bytes(1), &board).unwrap();
    let missing = child::Program { name: "fslab-no-such-program", package: "coreutils" };
    let error = child::run(missing, &[], bench.target.path(), &mut hand).unwrap_err();
    assert!(matches!(&error, EngineError::Program { source, .. }
        if source.kind() == std::io::ErrorKind::NotFound));
    let text = error.to_string();
    assert!(text.starts_with("starting fslab-no-such-program; install it"), "{text}");
    assert!(text.contains("package coreutils") && text.contains("method native"), "{text}");
}

#[test]
fn programs_are_billed_for_what_they_use() {
    let bench = Bench::new();
    bench.run(NATIVE, Deed::Random { file: spot("a"), size: Bytes::mib(8) });
    let compression = Compression::Gzip;
    fs::create_dir(bench.path("d")).unwrap();
    fs::rename(bench.path("a"), bench.path("d/a")).unwrap();
    let deed = Deed::Pack { directory: spot("d"), archive: spot("t"), compression };
    let result = bench.run(PROGRAMS, deed);
    // gzip, which tar has started, takes some 200 ms for 8 MiB of noise.
    assert!(result.user_time > Nanos(1_000_000), "{:?}", result.user_time);
    assert!(result.voluntary_switches > 0);
}

#[test]
fn tasks_stop_when_told_to() {
    for method in [NATIVE, PROGRAMS] {
        let bench = Bench::new();
        // The task would take hours; it is told to stop as soon as it has begun.
        let deed = Deed::Copy { from: spot("zeros"), to: spot("b"), times: 100_000 };
        bench.run(NATIVE, Deed::Zeros { file: spot("zeros"), size: Bytes::mib(64) });
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !bench.path("b.1").exists() {
                    std::thread::yield_now();
                }
                bench.interrupt.store(true, Relaxed);
            });
            bench.try_run(method, deed)
        });
        assert!(matches!(answer, Err(EngineError::Interrupted)), "{method:?}: {answer:?}");
    }
}

#[test]
fn progress_is_shown() {
    let bench = Bench::new();
    bench.run(NATIVE, Deed::Zeros { file: spot("a"), size: Bytes(1000) });
    let seen = bench.progress.snapshot();
    assert_eq!((seen.done, seen.total, seen.ops), (Bytes(1000), Bytes(1000), Ops(1)));
}

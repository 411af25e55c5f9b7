mod bounds;
mod devices;

use std::{cell::Cell, sync::Arc};

use model::{Allocation, Bytes, Nanos};
use proptest::prelude::*;

use super::*;
use crate::{
    bench::{Bench, Input},
    host::{BOOT_ID, FakeHost, Output, RealHost},
    knobs::Write,
    mount::MountRequest,
};

const SETTING: &str = "/sys/class/block/loop0/queue/scheduler";

fn machine(root: &Path) -> FakeHost {
    FakeHost::new(root)
        .file(SETTING, "[none] bfq")
        .file(BOOT_ID, "this-boot\n")
        .file("/images/.keep", "")
        .file("/failing/.keep", "")
        .file("/sys/fs/cgroup/cgroup.procs", "")
        .file("/proc/misc", "236 device-mapper\n")
        .file("/dev/loop0", "")
        .program("mkfs", [Output::default()])
        .program("mdadm", [])
        .program("dmsetup", [])
}

/// What a run does, one change a step, as far as `steps` goes.
fn work(bench: &mut Bench, steps: usize) {
    let image = Path::new("/images/fslab-run-0.img");
    let target = PathBuf::from("/images/fslab-mount");
    let request = MountRequest {
        source: "/dev/loop0".into(),
        target: target.clone(),
        fstype: "ext4".into(),
        options: String::new(),
    };
    let identity = Cell::new(None);
    let deeds: [&mut dyn FnMut(&mut Bench); 10] = [
        &mut |bench| {
            bench.directory(&target).unwrap();
        },
        &mut |bench| identity.set(Some(bench.image(image).unwrap())),
        &mut |bench| {
            let identity = identity.get().unwrap();
            bench.renew_image(image, identity, Bytes::mib(1), Allocation::Sparse).unwrap();
            bench.attach(image, identity).unwrap();
        },
        &mut |bench| drop(bench.set("scheduler", Path::new(SETTING), "bfq").unwrap()),
        &mut |bench| {
            bench.mount(&request).unwrap();
        },
        &mut |bench| {
            let tree = Path::new("/images/fslab-run");
            bench.tree(tree, "run").unwrap();
            let (made, _) = bench.act("fill", |host| host.create(&tree.join("data"), "text"));
            made.unwrap();
        },
        &mut |bench| {
            let (group, home) =
                (Path::new("/sys/fs/cgroup/fslab-run"), Path::new("/sys/fs/cgroup"));
            bench.group(group, home, |_| Ok(())).unwrap();
        },
        &mut |bench| drop(bench.order(Path::new("/sys/order"), "+memory", "-memory")),
        &mut |bench| {
            let (array, mapped) = layers("run");
            let argv = ["mdadm", "--create", "/dev/md/fslab-run-0", "--uuid=ours", "/dev/loop0"];
            bench.layer(array, &argv.map(str::to_owned), Input::NONE).unwrap();
            let argv = ["dmsetup", "create", "fslab-run-1", "--uuid", "fslab-ours"];
            let input = Input::open("0 8 crypt /dev/md/fslab-run-0");
            bench.layer(mapped, &argv.map(str::to_owned), input).unwrap();
        },
        &mut |bench| {
            let argv = |words: &[&str]| words.iter().map(ToString::to_string).collect();
            let load = argv(&["dmsetup", "load", "fslab-run-1"]);
            let resume = argv(&["dmsetup", "resume", "--nolockfs", "fslab-run-1"]);
            let commands = [(load, "0 8 flakey /dev/loop0 0 0 1"), (resume, "")];
            bench.fault(fault(), "flakey", &commands).unwrap();
        },
    ];
    for deed in deeds.into_iter().take(steps) {
        deed(bench);
    }
}

/// An array and a mapped device of a run.
fn layers(run: &str) -> (Change, Change) {
    let layer = |kind, name: String, uuid: &str, members| {
        let uuid = uuid.to_owned();
        Change::Layer { kind, name, uuid, members }
    };
    let members = vec!["/dev/loop0".into()];
    (
        layer(Built::Array, format!("fslab-{run}-0"), "ours", members),
        layer(Built::Mapped, format!("fslab-{run}-1"), "fslab-ours", Vec::new()),
    )
}

/// The mapped device of a run fails.
fn fault() -> Change {
    let sound = Some("0 8 flakey /dev/loop0 0 1 0".to_owned());
    Change::Fault { name: "fslab-run-1".into(), uuid: "fslab-ours".into(), sound }
}

/// Everything of a machine that a run may change.
fn state(host: &FakeHost) -> (Vec<String>, usize, String, usize, usize, [Vec<String>; 2]) {
    let loops = |name: &str| host.entry(&Path::new("/images").join(name)).map(|e| e.identity);
    let attached = loops("fslab-run-0.img").map_or(0, |id| host.loops_of(id).unwrap().len());
    (
        host.list(Path::new("/images")).unwrap(),
        host.mounts().unwrap().len(),
        selected(&host.read(Path::new(SETTING)).unwrap()).to_owned(),
        attached,
        host.list(Path::new("/sys/fs/cgroup")).unwrap().len(),
        ["/sys/class/block", "/failing"].map(|path| host.list(Path::new(path)).unwrap()),
    )
}

fn journal_path(root: &Path) -> PathBuf {
    root.join("state/journal/run.jsonl")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A run is killed after any number of changes, between any two lines of its journal that leave
    /// the plan of every change that was made, and perhaps within a line.
    #[test]
    fn any_prefix_undoes(steps in 0usize..=10, torn in 0usize..40, unknown: bool) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let host = Arc::new(machine(root));
        let before = state(&host);
        let journal = Journal::create(&*host, &root.join("state"), "run").unwrap();
        let mut bench = Bench::new(Arc::clone(&host) as Arc<dyn Host>, journal);
        work(&mut bench, steps);
        bench.abandon();

        let mut text = fs::read_to_string(journal_path(root)).unwrap();
        if unknown && let Some(last) = text.trim_end().rfind('\n') {
            // What a change turned out to be did not reach the disk. Such a line is only needed
            // where the change is told apart by it; images are given their size after it.
            let line = &text[last + 1..];
            if line.contains("\"known\"") && !line.contains("\"image\",") {
                text.truncate(last + 1);
            }
        }
        let next = "{\"line\":\"planned\",\"step\":99,\"what\":{\"change\":\"dir";
        text.push_str(&next[..torn.min(next.len())]);
        fs::write(journal_path(root), text).unwrap();

        let report = clean(&*host, &root.join("state")).unwrap();
        prop_assert_eq!(report.stuck, vec![]);
        prop_assert_eq!(state(&host), before);
        prop_assert!(!journal_path(root).exists());
    }

    /// Undoing is idempotent: a clean that is itself cut off is taken up by the next.
    #[test]
    fn a_clean_that_was_cut_off_is_taken_up(steps in 1usize..=10, undone in 0usize..=10) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let host = Arc::new(machine(root));
        let before = state(&host);
        let journal = Journal::create(&*host, &root.join("state"), "run").unwrap();
        let mut bench = Bench::new(Arc::clone(&host) as Arc<dyn Host>, journal);
        work(&mut bench, steps);
        bench.abandon();
        // The first clean undid some, and not one of its lines reached the disk.
        let text = fs::read_to_string(journal_path(root)).unwrap();
        let file = OpenOptions::new().append(true).open(journal_path(root)).unwrap();
        let mut first = replay(&*host, text.as_bytes(), file, &journal_path(root));
        for (step, _) in first.open.clone().into_iter().rev().take(undone) {
            first.undo(&*host, step).unwrap();
        }
        drop(first);
        fs::write(journal_path(root), text).unwrap();

        let report = clean(&*host, &root.join("state")).unwrap();
        prop_assert_eq!(report.stuck, vec![]);
        prop_assert_eq!(state(&host), before);
    }
}

fn started(root: &Path) -> (Arc<FakeHost>, Bench) {
    let host = Arc::new(machine(root));
    let journal = Journal::create(&*host, &root.join("state"), "run").unwrap();
    (Arc::clone(&host), Bench::new(host, journal))
}

#[test]
fn a_live_run_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = started(folder.path());
    work(&mut bench, 5);
    host.done();
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!(report, CleanReport { live: vec!["run".into()], ..CleanReport::default() });
    assert_eq!(host.done(), [""; 0]);
}

#[test]
fn a_busy_mount_is_waited_for_then_reported_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = started(folder.path());
    work(&mut bench, 5);
    bench.abandon();
    let target = Path::new("/images/fslab-mount");
    host.keep_busy(target, 1000);
    let start = host.now();
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    let stuck: Vec<_> = report.stuck.iter().map(|stuck| stuck.what.as_str()).collect();
    // What the mount stands on stays with it; all else is undone.
    assert_eq!(
        stuck,
        [
            "ext4 on /images/fslab-mount",
            "loop devices of /images/fslab-run-0.img",
            "image file /images/fslab-run-0.img",
            "directory /images/fslab-mount",
        ]
    );
    assert_eq!(report.undone, [format!("setting {SETTING}")]);
    assert!(report.stuck[0].why.contains("fuser -vm /images/fslab-mount"), "{:?}", report.stuck);
    assert!(host.now() - start >= Nanos(5_000_000_000));
    assert!(journal_path(folder.path()).exists());
    host.keep_busy(target, 3);
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!((report.stuck, report.undone.len()), (vec![], 4));
    assert!(!journal_path(folder.path()).exists());
}

#[test]
fn another_boot_undoes_only_what_outlives_it() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = started(folder.path());
    work(&mut bench, 4);
    bench.abandon();
    host.write(Path::new(BOOT_ID), "next-boot\n").unwrap();
    host.done();
    clean(&*host, &folder.path().join("state")).unwrap();
    let done = host.done();
    assert_eq!(done, ["remove /images/fslab-run-0.img", "rmdir /images/fslab-mount"]);
}

#[test]
fn a_file_that_took_the_name_of_an_image_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = started(folder.path());
    work(&mut bench, 2);
    bench.abandon();
    let image = Path::new("/images/fslab-run-0.img");
    // The old file is kept under another name, so that its inode number is not given again.
    fs::rename(host.at(image), host.at(Path::new("/images/kept"))).unwrap();
    host.create(image, "a stranger's").unwrap();
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!(report.stuck, []);
    assert_eq!(host.read(image).unwrap(), "a stranger's");
}

#[test]
fn a_tree_that_is_not_ours_stays() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
    let check = |path: &str, why: &str| {
        let change = Change::Tree { path: path.into(), token: "run".into(), identity: None };
        let said = revert(&host, &change).unwrap_err();
        assert!(said.contains(why), "{said}");
        assert!(host.entry(Path::new(path)).is_ok());
    };
    check("/images", "not a directory that fslab named");
    let host = host.file("/fslab-other/file", "").file("/fslab-other/.fslab-run", "other\n");
    let change = Change::Tree { path: "/fslab-other".into(), token: "run".into(), identity: None };
    assert!(revert(&host, &change).unwrap_err().contains("marker"));
    assert!(host.entry(Path::new("/fslab-other/file")).is_ok());
}

#[test]
fn a_mount_of_somebody_else_stays() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
    let target = PathBuf::from("/images/fslab-mount");
    let request = MountRequest {
        source: "x".into(),
        target: target.clone(),
        fstype: "xfs".into(),
        options: String::new(),
    };
    host.mount(&request).unwrap();
    let said =
        revert(&host, &Change::Mount { target, fstype: "ext4".into(), device: None }).unwrap_err();
    assert!(said.contains("xfs is mounted there"), "{said}");
    assert_eq!(host.mounts().unwrap().len(), 1);
}

#[test]
fn a_change_that_fails_leaves_nothing_to_undo() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = started(folder.path());
    let error = bench.directory(Path::new("/none/fslab-x")).unwrap_err();
    assert!(matches!(error, RigError::Directory { .. }), "{error}");
    host.done();
    assert_eq!(bench.close(), []);
    assert_eq!(host.done(), [""; 0]);
    let actions = bench.take_actions();
    assert!(!actions[0].trouble.is_empty(), "{actions:?}");
}

#[test]
fn two_runs_of_one_id_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (host, _bench) = started(folder.path());
    let error = Journal::create(&*host, &folder.path().join("state"), "run").unwrap_err();
    assert!(matches!(error, RigError::Journal { .. }), "{error}");
}

#[test]
fn no_state_directory_means_nothing_to_clean() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
    assert_eq!(clean(&host, &folder.path().join("none")).unwrap(), CleanReport::default());
}

/// A run that was killed after `steps` changes.
fn killed(root: &Path, steps: usize) -> Arc<FakeHost> {
    let (host, mut bench) = started(root);
    work(&mut bench, steps);
    bench.abandon();
    host
}

#[test]
fn a_disk_too_full_for_the_journal_is_no_reason_to_leave_anything() {
    let folder = tempfile::tempdir().unwrap();
    let host = killed(folder.path(), 5);
    let path = journal_path(folder.path());
    let text = fs::read_to_string(&path).unwrap();
    // /dev/full answers each write as a full disk does.
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let mut journal = replay(&*host, text.as_bytes(), full, &path);
    assert!(journal.plan(Change::Directory { path: "/x".into(), identity: None }).is_err());
    assert_eq!(journal.close(&*host), []);
    assert_eq!(state(&host), state(&machine(tempfile::tempdir().unwrap().path())));
    assert!(!path.exists());
}

/// Needs root, for a filesystem of its own that is really full.
#[test]
fn a_line_that_did_not_fit_does_not_swallow_the_next() {
    if !RealHost.is_root() {
        return skipped("needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let request = MountRequest {
        source: "none".into(),
        target: folder.path().canonicalize().unwrap(),
        fstype: "tmpfs".into(),
        options: "size=16k".into(),
    };
    RealHost.mount(&request).unwrap();
    let told = lines_around_a_full_disk(folder.path());
    RealHost.unmount(&request.target).unwrap();
    assert_eq!(told, ["directory /images/after"]);
}

/// Fills the disk while lines are written, makes room, writes one more, and tells which changes of
/// the last two are read back.
fn lines_around_a_full_disk(folder: &Path) -> Vec<String> {
    let path = folder.join("run.jsonl");
    let file = File::options().append(true).create(true).open(&path).unwrap();
    let mut journal = Journal {
        file,
        path: path.clone(),
        next: 0,
        open: Vec::new(),
        left: Vec::new(),
        foreign: None,
    };
    let change =
        |name: &str| Change::Directory { path: Path::new("/images").join(name), identity: None };
    let filler = folder.join("filler");
    fs::write(&filler, [0; 8 << 10]).unwrap();
    let mut written = 0;
    while journal.plan(change("before")).is_ok() {
        written += 1;
    }
    fs::remove_file(filler).unwrap();
    journal.plan(change("after")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let again = replay(&RealHost, text.as_bytes(), File::open(&path).unwrap(), &path);
    again.open[written..].iter().map(|(_, change)| change.describe()).collect()
}

#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn a_journal_torn_within_a_character_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let host = killed(folder.path(), 2);
    let mut torn = fs::read(journal_path(folder.path())).unwrap();
    torn.extend(b"{\"line\":\"planned\",\"step\":9,\"what\":{\"path\":\"/\xc3");
    fs::write(journal_path(folder.path()), torn).unwrap();
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!((report.stuck, report.undone.len()), (vec![], 2));
    assert_eq!(host.list(Path::new("/images")).unwrap(), [".keep"]);
}

#[test]
fn one_journal_that_cannot_be_read_keeps_no_other_from_being_undone() {
    let folder = tempfile::tempdir().unwrap();
    let host = killed(folder.path(), 2);
    fs::create_dir(folder.path().join("state/journal/a-folder.jsonl")).unwrap();
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!(report.undone.len(), 2);
    assert!(report.stuck[0].what.ends_with("a-folder.jsonl"), "{:?}", report.stuck);
}

#[test]
fn a_run_that_ends_while_journals_are_taken_has_nothing_to_clean() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    assert!(matches!(take(&path), Ok(Taken::Gone)));
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert!(matches!(take(&path), Ok(Taken::Gone)));
}

#[test]
fn an_image_is_known_again_after_a_reboot_that_renumbered_its_disk() {
    let folder = tempfile::tempdir().unwrap();
    let host = killed(folder.path(), 2);
    let device = host.entry(Path::new("/images")).unwrap().identity.device;
    let text = fs::read_to_string(journal_path(folder.path())).unwrap();
    let other = text.replace(&format!("\"device\":{device}"), "\"device\":1");
    assert_ne!(text, other);
    fs::write(journal_path(folder.path()), &other).unwrap();
    host.write(Path::new(BOOT_ID), "next-boot\n").unwrap();
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!(report.stuck, []);
    assert_eq!(host.list(Path::new("/images")).unwrap(), [".keep"]);
}

#[test]
fn a_tree_whose_marker_was_not_written_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path()).file("/images/fslab-run/.fslab-run", "");
    let tree =
        || Change::Tree { path: "/images/fslab-run".into(), token: "run".into(), identity: None };
    host.create(Path::new("/images/fslab-run/mine"), "").unwrap();
    assert!(revert(&host, &tree()).unwrap_err().contains("marker"));
    host.remove_file(Path::new("/images/fslab-run/mine")).unwrap();
    revert(&host, &tree()).unwrap();
    assert_eq!(host.list(Path::new("/images")).unwrap(), [".keep"]);
}

/// What `clean` tells of a setting that a killed run made 500 of 900 and that reads as `now`, and
/// what it reads as then.
fn left_by(root: &Path, now: &str, moves: bool) -> (CleanReport, String) {
    let (host, mut bench) = started(root);
    let path = PathBuf::from("/sys/limit");
    host.create(&path, "900").unwrap();
    let write = Write {
        setting: "limit".into(),
        path: path.clone(),
        text: "500".into(),
        from: None,
        moves,
        basis: None,
    };
    bench.switch(&write).unwrap();
    bench.abandon();
    host.write(&path, now).unwrap();
    let report = clean(&*host, &root.join("state")).unwrap();
    (report, host.read(&path).unwrap())
}

#[test]
fn a_setting_that_somebody_else_changed_is_left_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let (report, now) = left_by(folder.path(), "400", false);
    let why = "reads `400`, not `500` as the run left it".to_owned();
    let left = vec![Stuck { what: "setting /sys/limit".into(), why }];
    assert_eq!(report, CleanReport { left, ..CleanReport::default() });
    assert_eq!(now, "400");
    assert!(!journal_path(folder.path()).exists());
}

#[test]
fn a_setting_that_the_kernel_moves_is_put_back_whatever_it_reads_as() {
    for now in ["400", "500", "900"] {
        let folder = tempfile::tempdir().unwrap();
        let (report, now) = left_by(folder.path(), now, true);
        assert_eq!((report.undone, report.left), (vec!["setting /sys/limit".to_owned()], vec![]));
        assert_eq!(now, "900");
    }
}

#[test]
fn a_setting_that_could_not_be_read_back_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = started(folder.path());
    host.refuse_once_written(Path::new(SETTING), 5);
    let (step, warning) = bench.set("scheduler", Path::new(SETTING), "bfq").unwrap();
    assert!(step.is_some());
    let told = warning.unwrap().message();
    assert!(told.contains("Input/output error"), "{told}");
    bench.abandon();
    // It reads again.
    let host = FakeHost::new(folder.path());
    let report = clean(&host, &folder.path().join("state")).unwrap();
    assert_eq!((report.undone.len(), report.left, report.stuck), (1, vec![], vec![]));
    assert_eq!(host.read(Path::new(SETTING)).unwrap(), "[none] bfq");
}

#[test]
fn a_journal_of_before_there_was_a_basis_is_read() {
    let of = |text: &str| serde_json::from_str::<Change>(text).unwrap();
    let setting = Change::Setting {
        path: "/a".into(),
        before: "1".into(),
        after: None,
        moves: false,
        basis: None,
    };
    assert_eq!(of(r#"{"change":"setting","path":"/a","before":"1","after":null}"#), setting);
    let kept = Change::Kept { values: vec![("/a".into(), "1".into())], basis: None };
    assert_eq!(of(r#"{"change":"kept","values":[["/a","1"]]}"#), kept);
}

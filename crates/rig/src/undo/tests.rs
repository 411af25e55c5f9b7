mod bounds;
mod devices;

use std::{cell::Cell, sync::Arc};

use model::{Allocation, Bytes, Nanos};
use proptest::prelude::*;

use super::*;
use crate::{
    host::{BOOT_ID, FakeHost, Output, RealHost},
    journaled_host::{Input, JournaledHost, Write},
    mount::MountRequest,
    sysfs::selected,
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

/// Changes of a run, one per step, up to `steps`.
fn work(journaled: &mut JournaledHost, steps: usize) {
    let image = Path::new("/images/fslab-run-0.img");
    let target = PathBuf::from("/images/fslab-mount");
    let request = MountRequest {
        source: "/dev/loop0".into(),
        target: target.clone(),
        fstype: "ext4".into(),
        options: String::new(),
    };
    let identity = Cell::new(None);
    let operations: [&mut dyn FnMut(&mut JournaledHost); 10] = [
        &mut |journaled| {
            journaled.directory(&target).unwrap();
        },
        &mut |journaled| identity.set(Some(journaled.image(image).unwrap())),
        &mut |journaled| {
            let identity = identity.get().unwrap();
            journaled.renew_image(image, identity, Bytes::mib(1), Allocation::Sparse).unwrap();
            journaled.attach(image, identity).unwrap();
        },
        &mut |journaled| drop(journaled.set("scheduler", Path::new(SETTING), "bfq").unwrap()),
        &mut |journaled| {
            journaled.mount(&request).unwrap();
        },
        &mut |journaled| {
            let tree = Path::new("/images/fslab-run");
            journaled.tree(tree, "run").unwrap();
            let (made, _) =
                journaled.execute("fill", |host| host.create(&tree.join("data"), "text"));
            made.unwrap();
        },
        &mut |journaled| {
            let (group, home) =
                (Path::new("/sys/fs/cgroup/fslab-run"), Path::new("/sys/fs/cgroup"));
            journaled.group(group, home, |_| Ok(())).unwrap();
        },
        &mut |journaled| {
            drop(journaled.write_command(Path::new("/sys/order"), "+memory", "-memory"))
        },
        &mut |journaled| {
            let (array, mapped) = layers("run");
            let argv = ["mdadm", "--create", "/dev/md/fslab-run-0", "--uuid=ours", "/dev/loop0"];
            journaled.layer(array, &argv.map(str::to_owned), Input::NONE).unwrap();
            let argv = ["dmsetup", "create", "fslab-run-1", "--uuid", "fslab-ours"];
            let input = Input::plain("0 8 crypt /dev/md/fslab-run-0");
            journaled.layer(mapped, &argv.map(str::to_owned), input).unwrap();
        },
        &mut |journaled| {
            let argv = |words: &[&str]| words.iter().map(ToString::to_string).collect();
            let load = argv(&["dmsetup", "load", "fslab-run-1"]);
            let resume = argv(&["dmsetup", "resume", "--nolockfs", "fslab-run-1"]);
            let commands = [(load, "0 8 flakey /dev/loop0 0 0 1"), (resume, "")];
            journaled.fault(fault(), "flakey", &commands).unwrap();
        },
    ];
    for operation in operations.into_iter().take(steps) {
        operation(journaled);
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

/// A mapped device of the run fails.
fn fault() -> Change {
    let sound = Some("0 8 flakey /dev/loop0 0 1 0".to_owned());
    Change::Fault { name: "fslab-run-1".into(), uuid: "fslab-ours".into(), sound }
}

/// State of a host that a run may change.
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
    /// A run is killed after any number of changes, between two lines of its journal or within a
    /// line. The journal contains the `planned` line of every change that was made.
    #[test]
    fn any_prefix_undoes(steps in 0usize..=10, torn in 0usize..40, unknown: bool) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let host = Arc::new(machine(root));
        let before = state(&host);
        let journal = Journal::create(&*host, &root.join("state"), "run").unwrap();
        let mut journaled = JournaledHost::new(Arc::clone(&host) as Arc<dyn Host>, journal);
        work(&mut journaled, steps);
        journaled.forget();

        let mut text = fs::read_to_string(journal_path(root)).unwrap();
        if unknown && let Some(last) = text.trim_end().rfind('\n') {
            // The `known` lines did not reach the disk. They are required only if they identify the
            // change. An image gets its size after its `known` line.
            let line = &text[last + 1..];
            if line.contains("\"known\"") && !line.contains("\"image\",") {
                text.truncate(last + 1);
            }
        }
        let next = "{\"line\":\"planned\",\"step\":99,\"what\":{\"change\":\"dir";
        text.push_str(&next[..torn.min(next.len())]);
        fs::write(journal_path(root), text).unwrap();

        let report = clean(&*host, &root.join("state")).unwrap();
        prop_assert_eq!(report.failed, vec![]);
        prop_assert_eq!(state(&host), before);
        prop_assert!(!journal_path(root).exists());
    }

    /// Undo is idempotent: an interrupted clean is completed by the next one.
    #[test]
    fn an_interrupted_clean_is_completed(steps in 1usize..=10, undone in 0usize..=10) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let host = Arc::new(machine(root));
        let before = state(&host);
        let journal = Journal::create(&*host, &root.join("state"), "run").unwrap();
        let mut journaled = JournaledHost::new(Arc::clone(&host) as Arc<dyn Host>, journal);
        work(&mut journaled, steps);
        journaled.forget();
        // The first clean undid some changes, and none of its lines reached the disk.
        let text = fs::read_to_string(journal_path(root)).unwrap();
        let file = OpenOptions::new().append(true).open(journal_path(root)).unwrap();
        let mut first = replay(&*host, text.as_bytes(), file, &journal_path(root));
        for (step, _) in first.open.clone().into_iter().rev().take(undone) {
            first.undo(&*host, step).unwrap();
        }
        drop(first);
        fs::write(journal_path(root), text).unwrap();

        let report = clean(&*host, &root.join("state")).unwrap();
        prop_assert_eq!(report.failed, vec![]);
        prop_assert_eq!(state(&host), before);
    }
}

fn started(root: &Path) -> (Arc<FakeHost>, JournaledHost) {
    let host = Arc::new(machine(root));
    let journal = Journal::create(&*host, &root.join("state"), "run").unwrap();
    (Arc::clone(&host), JournaledHost::new(host, journal))
}

#[test]
fn an_active_run_is_skipped() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    work(&mut journaled, 5);
    host.done();
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!(report, CleanReport { live: vec!["run".into()], ..CleanReport::default() });
    assert_eq!(host.done(), [""; 0]);
}

#[test]
fn a_frozen_filesystem_is_thawed_before_it_is_unmounted() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    work(&mut journaled, 5);
    journaled.forget();
    host.freeze(Path::new("/images/fslab-mount"));
    host.done();
    assert_eq!(clean(&*host, &temp.path().join("state")).unwrap().failed, []);
    let done = host.done();
    let place =
        |what: &str| done.iter().position(|it| it == &format!("{what} /images/fslab-mount"));
    assert!(place("thaw").is_some() && place("thaw") < place("umount"), "{done:?}");
}

#[test]
fn a_busy_mount_is_retried_then_reported_and_kept() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    work(&mut journaled, 5);
    journaled.forget();
    let target = Path::new("/images/fslab-mount");
    host.keep_busy(target, 1000);
    let start = host.now();
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    let not_undone: Vec<_> =
        report.failed.iter().map(|not_undone| not_undone.what.as_str()).collect();
    // Changes that the mount depends on are kept; all others are undone.
    assert_eq!(
        not_undone,
        [
            "ext4 on /images/fslab-mount",
            "loop devices of /images/fslab-run-0.img",
            "image file /images/fslab-run-0.img",
            "directory /images/fslab-mount",
        ]
    );
    assert_eq!(report.undone, [format!("setting {SETTING}")]);
    assert!(report.failed[0].why.contains("fuser -vm /images/fslab-mount"), "{:?}", report.failed);
    assert_eq!(host.now() - start, Nanos(5_000_000_000));
    assert!(journal_path(temp.path()).exists());
    host.keep_busy(target, 3);
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!((report.failed, report.undone.len()), (vec![], 4));
    assert!(!journal_path(temp.path()).exists());
}

#[test]
fn after_a_reboot_only_persistent_changes_are_undone() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    work(&mut journaled, 4);
    journaled.forget();
    host.write(Path::new(BOOT_ID), "next-boot\n").unwrap();
    host.done();
    clean(&*host, &temp.path().join("state")).unwrap();
    let done = host.done();
    assert_eq!(done, ["remove /images/fslab-run-0.img", "rmdir /images/fslab-mount"]);
}

#[test]
fn a_file_with_the_reused_name_of_an_image_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    work(&mut journaled, 2);
    journaled.forget();
    let image = Path::new("/images/fslab-run-0.img");
    // The old file is kept under another name, so that its inode number is not reused.
    fs::rename(host.at(image), host.at(Path::new("/images/kept"))).unwrap();
    host.create(image, "a stranger's").unwrap();
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!(report.failed, []);
    assert_eq!(host.read(image).unwrap(), "a stranger's");
}

#[test]
fn a_foreign_tree_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let check = |path: &str, why: &str| {
        let change = Change::Tree { path: path.into(), token: "run".into(), identity: None };
        let shown = revert(&host, &change).unwrap_err();
        assert!(shown.contains(why), "{shown}");
        assert!(host.entry(Path::new(path)).is_ok());
    };
    check("/images", "its name was not generated by fslab");
    let host = host.file("/fslab-other/file", "").file("/fslab-other/.fslab-run", "other\n");
    let change = Change::Tree { path: "/fslab-other".into(), token: "run".into(), identity: None };
    assert!(revert(&host, &change).unwrap_err().contains("marker"));
    assert!(host.entry(Path::new("/fslab-other/file")).is_ok());
}

#[test]
fn a_foreign_mount_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let target = PathBuf::from("/images/fslab-mount");
    let request = MountRequest {
        source: "x".into(),
        target: target.clone(),
        fstype: "xfs".into(),
        options: String::new(),
    };
    host.mount(&request).unwrap();
    let shown =
        revert(&host, &Change::Mount { target, fstype: "ext4".into(), device: None }).unwrap_err();
    assert!(shown.contains("xfs was mounted there"), "{shown}");
    assert_eq!(host.mounts().unwrap().len(), 1);
}

#[test]
fn a_failed_change_leaves_nothing_to_undo() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    let error = journaled.directory(Path::new("/none/fslab-x")).unwrap_err();
    assert!(matches!(error, RigError::Directory { .. }), "{error}");
    host.done();
    assert_eq!(journaled.close(), []);
    assert_eq!(host.done(), [""; 0]);
    let actions = journaled.take_actions();
    assert!(!actions[0].error.is_empty(), "{actions:?}");
}

#[test]
fn cancelling_a_change_leaves_the_others_open() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let mut journal = Journal::create(&host, &temp.path().join("state"), "run").unwrap();
    let mount = |target: &str| {
        let (target, fstype) = (target.into(), "ext4".into());
        Change::Mount { target, fstype, device: None }
    };
    let steps = ["/images/a", "/images/b"].map(|target| journal.plan(mount(target)).unwrap());
    journal.cancel(steps[1]);
    let open: Vec<Step> = journal.open.iter().map(|(step, _)| *step).collect();
    assert_eq!(open, [steps[0]]);
}

#[test]
fn two_runs_with_one_id_are_rejected() {
    let temp = tempfile::tempdir().unwrap();
    let (host, _bench) = started(temp.path());
    let error = Journal::create(&*host, &temp.path().join("state"), "run").unwrap_err();
    assert!(matches!(error, RigError::Journal { .. }), "{error}");
}

#[test]
fn no_state_directory_means_nothing_to_clean() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    assert_eq!(clean(&host, &temp.path().join("none")).unwrap(), CleanReport::default());
    fs::write(temp.path().join("journal"), "").unwrap();
    let error = clean(&host, temp.path()).unwrap_err();
    assert!(matches!(error, RigError::Journal { .. }), "the journals cannot be listed: {error}");
}

/// Run that was killed after `steps` changes.
fn killed(root: &Path, steps: usize) -> Arc<FakeHost> {
    let (host, mut journaled) = started(root);
    work(&mut journaled, steps);
    journaled.forget();
    host
}

#[test]
fn undo_continues_if_the_journal_disk_is_full() {
    let temp = tempfile::tempdir().unwrap();
    let host = killed(temp.path(), 5);
    let path = journal_path(temp.path());
    let text = fs::read_to_string(&path).unwrap();
    // /dev/full fails each write like a full disk.
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let mut journal = replay(&*host, text.as_bytes(), full, &path);
    assert!(journal.plan(Change::Directory { path: "/x".into(), identity: None }).is_err());
    assert_eq!(journal.close(&*host), []);
    assert_eq!(state(&host), state(&machine(tempfile::tempdir().unwrap().path())));
    assert!(!path.exists());
}

/// Requires root, for a filesystem that is full.
#[test]
fn an_incomplete_line_does_not_corrupt_the_next() {
    if !RealHost.is_root() {
        return skipped("needs root");
    }
    let temp = tempfile::tempdir().unwrap();
    let request = MountRequest {
        source: "none".into(),
        target: temp.path().canonicalize().unwrap(),
        fstype: "tmpfs".into(),
        options: "size=16k".into(),
    };
    RealHost.mount(&request).unwrap();
    let lines = lines_around_a_full_disk(temp.path());
    RealHost.unmount(&request.target).unwrap();
    assert_eq!(lines, ["directory /images/after"]);
}

/// Fills the disk while lines are written, frees space, writes one more line, and returns which of
/// the last two changes are read back.
fn lines_around_a_full_disk(temp: &Path) -> Vec<String> {
    let path = temp.join("run.jsonl");
    let file = File::options().append(true).create(true).open(&path).unwrap();
    let mut journal = Journal {
        file,
        path: path.clone(),
        next: 0,
        open: Vec::new(),
        skipped: Vec::new(),
        unknown_line: None,
    };
    let change =
        |name: &str| Change::Directory { path: Path::new("/images").join(name), identity: None };
    let filler = temp.join("filler");
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
fn a_journal_torn_within_a_character_is_parsed() {
    let temp = tempfile::tempdir().unwrap();
    let host = killed(temp.path(), 2);
    let mut torn = fs::read(journal_path(temp.path())).unwrap();
    torn.extend(b"{\"line\":\"planned\",\"step\":9,\"what\":{\"path\":\"/\xc3");
    fs::write(journal_path(temp.path()), torn).unwrap();
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!((report.failed, report.undone.len()), (vec![], 2));
    assert_eq!(host.list(Path::new("/images")).unwrap(), [".keep"]);
}

#[test]
fn an_unreadable_journal_does_not_prevent_other_undos() {
    let temp = tempfile::tempdir().unwrap();
    let host = killed(temp.path(), 2);
    fs::create_dir(temp.path().join("state/journal/a-temp.jsonl")).unwrap();
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!(report.undone.len(), 2);
    assert!(report.failed[0].what.ends_with("a-temp.jsonl"), "{:?}", report.failed);
}

#[test]
fn a_run_that_ends_during_clean_is_skipped() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("run.jsonl");
    assert!(matches!(take(&path), Ok(FoundJournal::Gone)));
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert!(matches!(take(&path), Ok(FoundJournal::Gone)));
}

#[test]
fn a_tree_without_written_marker_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path()).file("/images/fslab-run/.fslab-run", "");
    let tree =
        || Change::Tree { path: "/images/fslab-run".into(), token: "run".into(), identity: None };
    host.create(Path::new("/images/fslab-run/mine"), "").unwrap();
    assert!(revert(&host, &tree()).unwrap_err().contains("marker"));
    host.remove_file(Path::new("/images/fslab-run/mine")).unwrap();
    revert(&host, &tree()).unwrap();
    assert_eq!(host.list(Path::new("/images")).unwrap(), [".keep"]);
    // Killed before the marker was created.
    host.make_directory(Path::new("/images/fslab-run")).unwrap();
    revert(&host, &tree()).unwrap();
    assert_eq!(host.list(Path::new("/images")).unwrap(), [".keep"]);
}

/// A killed run changed a setting from 900 to 500, and its value is `now` at the start of `clean`.
/// Returns the result of `clean` and the final value.
fn left_by(root: &Path, now: &str, moves: bool) -> (CleanReport, String) {
    let (host, mut journaled) = started(root);
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
    journaled.switch(&write).unwrap();
    journaled.forget();
    host.write(&path, now).unwrap();
    let report = clean(&*host, &root.join("state")).unwrap();
    (report, host.read(&path).unwrap())
}

#[test]
fn a_setting_changed_by_another_process_is_skipped_and_reported() {
    let temp = tempfile::tempdir().unwrap();
    let (report, now) = left_by(temp.path(), "400", false);
    let why = "the value is `400`, not `500` as set by the run".to_owned();
    let left = vec![NotUndone { what: "setting /sys/limit".into(), why }];
    assert_eq!(report, CleanReport { skipped: left, ..CleanReport::default() });
    assert_eq!(now, "400");
    assert!(!journal_path(temp.path()).exists());
}

#[test]
fn a_setting_changed_by_the_kernel_is_always_restored() {
    for now in ["400", "500", "900"] {
        let temp = tempfile::tempdir().unwrap();
        let (report, now) = left_by(temp.path(), now, true);
        assert_eq!(
            (report.undone, report.skipped),
            (vec!["setting /sys/limit".to_owned()], vec![])
        );
        assert_eq!(now, "900");
    }
}

#[test]
fn a_setting_that_could_not_be_read_back_is_restored() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    host.fail_read_after_write(Path::new(SETTING), 5);
    let (step, warning) = journaled.set("scheduler", Path::new(SETTING), "bfq").unwrap();
    assert!(step.is_some());
    let lines = warning.unwrap().message();
    assert!(lines.contains("Input/output error"), "{lines}");
    journaled.forget();
    // It is readable again.
    let host = FakeHost::new(temp.path());
    let report = clean(&host, &temp.path().join("state")).unwrap();
    assert_eq!((report.undone.len(), report.skipped, report.failed), (1, vec![], vec![]));
    assert_eq!(host.read(Path::new(SETTING)).unwrap(), "[none] bfq");
}

#[test]
fn a_journal_without_basis_is_parsed() {
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

//! Limits of undo: it writes only to kernel files, and removes only what fslab created.

use super::*;
use crate::mount::MountCommand;

/// A run of a newer version made a change that this version does not support.
#[test]
fn an_unknown_line_keeps_the_journal_and_earlier_changes() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    work(&mut journaled, 2);
    let path = journal_path(temp.path());
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let newer = r#"{"line":"planned","step":7,"what":{"change":"of-a-newer-version","on":"it"}}"#;
    writeln!(file, "{newer}").unwrap();
    journaled.tree(Path::new("/images/fslab-run"), "run").unwrap();
    journaled.forget();
    file.write_all(b"{\"line\":\"pla").unwrap();
    for undone in [vec!["directory tree /images/fslab-run".to_owned()], vec![], vec![]] {
        let report = clean(&*host, &temp.path().join("state")).unwrap();
        assert_eq!(report.undone, undone);
        let not_undone: Vec<_> =
            report.failed.iter().map(|not_undone| not_undone.what.as_str()).collect();
        let line = format!("line 6 of the journal {}", path.display());
        let image = "image file /images/fslab-run-0.img";
        assert_eq!(not_undone, [line.as_str(), image, "directory /images/fslab-mount"]);
        assert!(report.failed[0].why.contains("the version that wrote it"));
        assert!(fs::read_to_string(&path).unwrap().contains(newer));
    }
    assert!(host.entry(Path::new("/images/fslab-run-0.img")).is_ok());
}

#[test]
fn a_journal_cannot_write_outside_of_kernel_files() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let host = machine(&root).file("/etc/passwd", "root").file("/home/pipe", "");
    let at = |path: &str| host.at(Path::new(path));
    std::os::unix::fs::symlink(at("/etc/passwd"), at("/sys/link")).unwrap();
    let setting = |path: &str| Change::Setting {
        path: path.into(),
        before: "evil".into(),
        after: None,
        moves: false,
        basis: None,
    };
    for path in ["/etc/passwd", "/sys/link", "/sys/../etc/passwd", "/proc/sys/../../etc/passwd"] {
        fs::create_dir_all(at("/proc/sys")).unwrap();
        let kept = Change::Kept { values: vec![(path.into(), "evil".into())], basis: None };
        let basis = ParentSetting { path: path.into(), value: "root".into() };
        let based = Change::Kept { values: Vec::new(), basis: Some(basis) };
        for change in [setting(path), kept, based] {
            let why = revert(&host, &change).unwrap_err();
            assert!(why.contains("is not below /sys, /proc/sys"), "{path}: {why}");
        }
    }
    let group = |path: &str, home: &str| Change::Group {
        path: path.into(),
        home: home.into(),
        identity: None,
    };
    assert!(revert(&host, &group("/home", "/sys/fs/cgroup")).unwrap_err().contains("not below"));
    assert_eq!(host.read(Path::new("/etc/passwd")).unwrap(), "root");
    assert_eq!(revert(&host, &setting("/etc/none")), Ok(Outcome::Undone));
    // Control groups may be mounted at another path.
    let target = at("/cgroups");
    fs::create_dir(&target).unwrap();
    host.create(Path::new("/cgroups/cpu.max"), "max").unwrap();
    let (source, fstype) = ("none".into(), "cgroup2".into());
    host.mount(&MountRequest { source, target, fstype, options: String::new() }).unwrap();
    assert_eq!(revert(&host, &setting("/cgroups/cpu.max")), Ok(Outcome::Undone));
    assert_eq!(host.read(Path::new("/cgroups/cpu.max")).unwrap(), "evil");
}

/// The line of a change is written first. /dev/full fails each write like a full disk.
#[test]
fn no_change_is_made_if_its_line_cannot_be_written() {
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(machine(temp.path()).program("mount", []));
    let image = Path::new("/images/fslab-run-0.img");
    let identity = host.create_image(image).unwrap();
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let journal = replay(&*host, b"", full, &journal_path(temp.path()));
    let mut journaled = JournaledHost::new(Arc::clone(&host) as Arc<dyn Host>, journal);
    host.done();
    let argv = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let target = PathBuf::from("/images/fslab-mount");
    let (source, fstype) = ("/dev/loop0".to_owned(), "ext4".to_owned());
    let command = MountCommand {
        argv: argv(&["mount", "/dev/loop0", "/images/fslab-mount"]),
        umount: Vec::new(),
        target: target.clone(),
        fstype: fstype.clone(),
        shares_superblock: false,
    };
    let request = MountRequest { source, target, fstype, options: String::new() };
    let (array, _) = layers("run");
    let load = (argv(&["dmsetup", "load", "fslab-run-1"]), "");
    let (group, home) = (Path::new("/sys/fs/cgroup/fslab-run"), Path::new("/sys/fs/cgroup"));
    let refused = [
        journaled.directory(Path::new("/images/fslab-directory")).is_err(),
        journaled.tree(Path::new("/images/fslab-tree"), "run").is_err(),
        journaled.image(Path::new("/images/fslab-run-1.img")).is_err(),
        journaled.attach(image, identity).is_err(),
        journaled.set("scheduler", Path::new(SETTING), "bfq").is_err(),
        journaled.write_command(Path::new(SETTING), "bfq", "none").is_err(),
        journaled.group(group, home, |_| Ok(())).is_err(),
        journaled.mount(&request).is_err(),
        journaled.mount_by(&command).is_err(),
        journaled.layer(array, &argv(&["mdadm", "--create"]), Input::NONE).is_err(),
        journaled.fault(fault(), "flakey", &[load]).is_err(),
    ];
    assert_eq!(refused, [true; 11]);
    assert_eq!(host.done(), [""; 0]);
    assert_eq!(host.list(Path::new("/images")).unwrap(), [".keep", "fslab-run-0.img"]);
}

/// The name existed before, so the file does not belong to fslab.
#[test]
fn existing_files_are_neither_used_nor_removed() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    let at = |name: &str| Path::new("/images").join(name);
    host.make_directory(&at("fslab-directory")).unwrap();
    host.make_directory(&at("fslab-tree")).unwrap();
    host.create(&at("fslab-image"), "").unwrap();
    host.make_directory(Path::new("/sys/fs/cgroup/fslab-run")).unwrap();
    let before = state(&host);
    journaled.directory(&at("fslab-directory")).unwrap_err();
    journaled.tree(&at("fslab-tree"), "run").unwrap_err();
    journaled.image(&at("fslab-image")).unwrap_err();
    let (group, home) = (Path::new("/sys/fs/cgroup/fslab-run"), Path::new("/sys/fs/cgroup"));
    journaled.group(group, home, |_| Ok(())).unwrap_err();
    assert_eq!(journaled.close(), []);
    assert_eq!(state(&host), before);
}

#[test]
fn existing_arrays_and_mapped_devices_are_neither_used_nor_removed() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    let (array, mapped) = layers("run");
    let argv = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let create = |array: &str, mapped: &str| {
        let array = format!("--uuid={array}");
        (
            argv(&["mdadm", "--create", "/dev/md/fslab-run-0", &array, "/dev/loop0"]),
            argv(&["dmsetup", "create", "fslab-run-1", "--uuid", mapped]),
        )
    };
    let table = "0 8 linear /dev/loop0 0";
    let (of_array, of_mapped) = create("theirs", "theirs");
    host.run(&of_array).unwrap();
    host.run_with_input(&of_mapped, table).unwrap();
    let before = host.list(Path::new("/sys/class/block")).unwrap();
    let (of_array, of_mapped) = create("ours", "fslab-ours");
    journaled.layer(array, &of_array, Input::NONE).unwrap_err();
    journaled.layer(mapped, &of_mapped, Input::plain(table)).unwrap_err();
    assert_eq!(journaled.close(), []);
    assert_eq!(host.list(Path::new("/sys/class/block")).unwrap(), before);
}

/// Directories, trees, groups, and mounts are identified by facts recorded at their creation.
#[test]
fn reused_names_are_not_removed() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    work(&mut journaled, 7);
    journaled.forget();
    for (path, aside) in [("/images/fslab-run", "tree"), ("/sys/fs/cgroup/fslab-run", "group")] {
        // Kept under another name, so that the inode number is not reused.
        fs::rename(host.at(Path::new(path)), temp.path().join(aside)).unwrap();
        host.make_directory(Path::new(path)).unwrap();
    }
    let target = Path::new("/images/fslab-mount");
    host.unmount(target).unwrap();
    fs::rename(host.at(target), temp.path().join("mount")).unwrap();
    host.make_directory(target).unwrap();
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    let not_undone: Vec<_> =
        report.failed.iter().map(|not_undone| not_undone.what.as_str()).collect();
    assert_eq!(not_undone, ["directory tree /images/fslab-run"]);
    for path in ["/images/fslab-run", "/images/fslab-mount", "/sys/fs/cgroup/fslab-run"] {
        assert!(host.entry(Path::new(path)).is_ok(), "{path}");
    }
}

/// The run was killed before it recorded the identity of the image.
#[test]
fn an_image_without_identity_is_removed_only_if_it_is_empty() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path())
        .file("/images/fslab-empty", "")
        .file("/images/fslab-full", "data")
        .file("/images/fslab-directory/.keep", "")
        .file("/images/empty", "");
    let image = |name: &str| {
        let path = Path::new("/images").join(name);
        revert(&host, &Change::Image { path, identity: None })
    };
    for name in ["fslab-full", "fslab-directory", "empty"] {
        assert!(image(name).unwrap_err().contains("not certain"), "{name}");
    }
    assert_eq!(
        (image("fslab-empty"), image("fslab-none")),
        (Ok(Outcome::Undone), Ok(Outcome::Undone))
    );
    let left = host.list(Path::new("/images")).unwrap();
    assert_eq!(left, [".keep", "empty", "fslab-directory", "fslab-full"]);
}

#[test]
fn a_directory_with_contents_is_reported_and_kept() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path()).file("/images/fslab-run/file", "");
    let change = Change::Directory { path: "/images/fslab-run".into(), identity: None };
    let why = revert(&host, &change).unwrap_err();
    assert!(why.contains("check its contents"), "{why}");
}

#[test]
fn a_tree_with_a_mount_is_reported_and_kept() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    let tree = Path::new("/images/fslab-run");
    journaled.tree(tree, "run").unwrap();
    let (source, fstype, options) = ("x".into(), "tmpfs".into(), String::new());
    let target = tree.join("data/below");
    host.mount(&MountRequest { source, target: target.clone(), fstype, options }).unwrap();
    let failed = journaled.close();
    assert!(failed[0].why.contains("/data/below is mounted below it"), "{failed:?}");
    assert!(host.entry(&tree.join(MARKER)).is_ok());
    host.unmount(&target).unwrap();
    assert_eq!(journaled.close(), []);
}

#[test]
fn a_setting_that_cannot_be_written_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let path = Path::new("/sys/limit");
    host.create(path, "500").unwrap();
    let change = |moves| Change::Setting {
        path: path.into(),
        before: "900".into(),
        after: Some("500".into()),
        moves,
        basis: None,
    };
    host.fail_write(path, "900", 5, 1);
    let why = revert(&host, &change(false)).unwrap_err();
    assert!(why.ends_with("write `900` to /sys/limit manually"), "{why}");
    // The kernel restored the value by itself.
    host.write(path, "900").unwrap();
    host.fail_write(path, "900", 5, 1);
    assert_eq!(revert(&host, &change(true)), Ok(Outcome::Undone));
}

#[test]
fn a_setting_that_cannot_be_read_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    std::os::unix::fs::symlink("circle", host.at(Path::new("/sys/circle"))).unwrap();
    for path in ["/sys/circle", "/sys/class"] {
        let change = Change::Setting {
            path: path.into(),
            before: "1".into(),
            after: None,
            moves: false,
            basis: None,
        };
        let why = revert(&host, &change).unwrap_err();
        assert!(why.starts_with(path), "{why}");
    }
}

#[test]
fn a_setting_that_another_one_resets_is_restored_only_if_the_other_is_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let (depth, scheduler) = (Path::new("/sys/nr_requests"), Path::new(SETTING));
    let basis = Some(ParentSetting { path: scheduler.into(), value: "none".into() });
    let change = Change::Kept { values: vec![(depth.into(), "64".into())], basis };
    host.create(depth, "256").unwrap();
    assert_eq!(revert(&host, &change), Ok(Outcome::Undone));
    assert_eq!(host.read(depth).unwrap(), "64");
    host.write(depth, "256").unwrap();
    host.write(scheduler, "bfq").unwrap();
    let Ok(Outcome::Skipped(why)) = revert(&host, &change) else { panic!("it was restored") };
    assert!(why.contains("which is `bfq`, not `none`"), "{why}");
    assert_eq!(host.read(depth).unwrap(), "256");
}

#[test]
fn a_mount_under_a_foreign_mount_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let target = PathBuf::from("/images/fslab-mount");
    for fstype in ["ext4", "xfs"] {
        let (source, options) = ("x".into(), String::new());
        let (target, fstype) = (target.clone(), fstype.into());
        host.mount(&MountRequest { source, target, fstype, options }).unwrap();
    }
    let ours = host.mounts().unwrap()[0].device.clone();
    let change = Change::Mount { target, fstype: "ext4".into(), device: Some(ours) };
    assert!(revert(&host, &change).unwrap_err().contains("xfs was mounted there"));
    assert_eq!(host.mounts().unwrap().len(), 2);
}

#[test]
fn a_mount_is_identified_by_its_device() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let target = PathBuf::from("/images/fslab-mount");
    let request = MountRequest {
        source: "x".into(),
        target: target.clone(),
        fstype: "ext4".into(),
        options: String::new(),
    };
    host.mount(&request).unwrap();
    let of = |device: &str| Change::Mount {
        target: target.clone(),
        fstype: "ext4".into(),
        device: Some(device.into()),
    };
    assert_eq!(revert(&host, &of("7:1")), Ok(Outcome::Undone));
    assert_eq!(host.mounts().unwrap().len(), 1, "another filesystem of the type is mounted there");
    assert_eq!(revert(&host, &of("7:0")), Ok(Outcome::Undone));
    assert_eq!(host.mounts().unwrap().len(), 0);
}

#[test]
fn a_journal_without_identities_is_parsed() {
    let of = |text: &str| serde_json::from_str::<Change>(text).unwrap();
    let directory = Change::Directory { path: "/a".into(), identity: None };
    assert_eq!(of(r#"{"change":"directory","path":"/a"}"#), directory);
    let tree = Change::Tree { path: "/a".into(), token: "t".into(), identity: None };
    assert_eq!(of(r#"{"change":"tree","path":"/a","token":"t"}"#), tree);
    let mount = Change::Mount { target: "/a".into(), fstype: "xfs".into(), device: None };
    assert_eq!(of(r#"{"change":"mount","target":"/a","fstype":"xfs"}"#), mount);
    let group = Change::Group { path: "/a".into(), home: "/b".into(), identity: None };
    assert_eq!(of(r#"{"change":"group","path":"/a","home":"/b"}"#), group);
}

/// The disk has another device number after a reboot. A file with another inode number is not that
/// of the run.
#[test]
fn after_a_reboot_only_the_inode_number_counts() {
    for replaced in [false, true] {
        let temp = tempfile::tempdir().unwrap();
        let (host, mut journaled) = started(temp.path());
        let at = |name: &str| Path::new("/images").join(name);
        journaled.directory(&at("fslab-directory")).unwrap();
        journaled.image(&at("fslab-image")).unwrap();
        journaled.tree(&at("fslab-tree"), "run").unwrap();
        journaled.forget();
        let device = host.entry(Path::new("/images")).unwrap().identity.device;
        let text = fs::read_to_string(journal_path(temp.path())).unwrap();
        let other = text.replace(&format!("\"device\":{device}"), "\"device\":1");
        assert_eq!(other.matches("\"device\":1").count(), 3);
        fs::write(journal_path(temp.path()), other).unwrap();
        host.write(Path::new(BOOT_ID), "next-boot\n").unwrap();
        if replaced {
            for name in ["fslab-directory", "fslab-image", "fslab-tree"] {
                // Kept under another name, so that the inode number is not reused.
                fs::rename(host.at(&at(name)), temp.path().join(name)).unwrap();
            }
            host.make_directory(&at("fslab-directory")).unwrap();
            host.create(&at("fslab-image"), "").unwrap();
            host.make_directory(&at("fslab-tree")).unwrap();
        }
        let report = clean(&*host, &temp.path().join("state")).unwrap();
        let mut left = vec![".keep"];
        if replaced {
            left.extend(["fslab-directory", "fslab-image", "fslab-tree"]);
        } else {
            assert_eq!(report.failed, []);
        }
        assert_eq!(host.list(Path::new("/images")).unwrap(), left);
    }
}

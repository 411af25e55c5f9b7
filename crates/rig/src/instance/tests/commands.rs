//! Filesystems that a command mounts.

use super::*;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Level with a mount command, whose type is the type that must be mounted.
fn level(fs_type: &str, mount: &[&str]) -> FilesystemLevel {
    let mut level = FilesystemLevel::plain(fs_type);
    level.commands.mount = words(mount);
    level
}

/// Creates, fills, cools, and removes a filesystem in a directory.
fn life(name: &str) {
    if !can_measure(name) {
        return;
    }
    let temp = place();
    let srv = temp.path().join("srv");
    fs::create_dir(&srv).unwrap();
    let run_id = format!("command-{name}");
    let rig =
        Rig::open(Arc::new(RealHost), &directory(&srv), options(temp.path(), &run_id)).unwrap();
    let catalog = Catalog::embedded();
    let filesystem = catalog.get(name).unwrap();
    let plain = FilesystemLevel::plain(name);
    for _ in 0..2 {
        let mut mounted = rig.instance(&InstanceSpec::plain(filesystem, &plain)).unwrap();
        let mounts = RealHost.mounts().unwrap();
        let mount = mounts.iter().rfind(|mount| mount.target == mounted.directory()).unwrap();
        assert_eq!(mount.fstype, filesystem.fstype);
        let file = mounted.directory().join("file");
        fs::write(&file, vec![7; 1 << 20]).unwrap();
        assert_eq!(mounted.drop_caches().unwrap(), None);
        assert_eq!(fs::read(&file).unwrap(), vec![7; 1 << 20]);
        assert_eq!(mounted.space_usage().unwrap(), None);
        assert!(mounted.counters().is_some(), "the device below is known");
        let finish = mounted.finish(true).unwrap();
        let steps: Vec<_> = finish.lifecycle.iter().map(|step| step.name).collect();
        let mkfs = if filesystem.mkfs.is_empty() { &[][..] } else { &["mkfs"][..] };
        assert_eq!(steps, [mkfs, &["mount", "umount"]].concat());
        assert!(finish.lifecycle.iter().all(|step| step.elapsed > Nanos(0)));
        assert_eq!(fs::read_dir(&srv).unwrap().count(), 0);
    }
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

#[test]
fn an_overlay_is_measured() {
    life("overlayfs");
}

#[test]
fn fuse_filesystems_are_measured() {
    life("bindfs");
    life("gocryptfs");
    life("fuse-overlayfs");
}

/// Level whose mount command starts a daemon that uses the filesystem. The daemon creates its
/// session after the command has exited. Its number is in `pid`. The unmount command ends the
/// daemon and, as umount.nilfs2(8) does, waits until it no longer exists.
fn with_daemon(pid: &Path) -> FilesystemLevel {
    const MOUNT: &str = "mount \"$1\" \"$2\" && cd \"$2\" || exit 1
        { sleep 0.2; exec setsid sleep 100000; } </dev/null >/dev/null 2>&1 &
        echo $! > \"$3\"";
    const UMOUNT: &str = "read process < \"$2\" && kill $process
        for n in 1 2 3 4 5 6 7 8 9 10; do
            kill -0 $process 2>/dev/null || exec umount \"$1\"
            sleep 0.1
        done
        exit 1";
    let pid = pid.display().to_string();
    let mut level = level("ext4", &["sh", "-c", MOUNT, "sh", "{device}", "{mount}", &pid]);
    level.commands.umount = words(&["sh", "-c", UMOUNT, "sh", "{mount}", &pid]);
    level
}

fn is_running(pid: &Path) -> bool {
    let number = fs::read_to_string(pid).unwrap();
    Path::new("/proc").join(number.trim()).exists()
}

#[test]
fn a_daemon_of_the_mount_ends_before_the_unmount() {
    let temp = place();
    let pid = temp.path().join("pid");
    let Some(rig) = open(temp.path(), "command-daemon", &image(Bytes::mib(64), 1)) else { return };
    let (catalog, level) = (Catalog::embedded(), with_daemon(&pid));
    let filesystem = catalog.get("ext4").unwrap();
    let mut mounted = rig.instance(&InstanceSpec::plain(filesystem, &level)).unwrap();
    assert!(is_running(&pid));
    let first = fs::read_to_string(&pid).unwrap();
    assert_eq!(mounted.drop_caches().unwrap(), None);
    assert_ne!(fs::read_to_string(&pid).unwrap(), first, "a daemon was started for the new mount");
    assert!(is_running(&pid));
    mounted.finish(true).unwrap();
    assert!(!is_running(&pid));
    // After a kill, undo ends it.
    let mounted = rig.instance(&InstanceSpec::plain(filesystem, &level)).unwrap();
    assert!(is_running(&pid));
    rig.base.shared.journaled().forget();
    drop((mounted, rig));
    let report = clean(&RealHost, &temp.path().join("state")).unwrap();
    assert_eq!((report.live, report.failed), (vec![], vec![]));
    // Its parent is this process, which does not wait for it, so that it remains a zombie.
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", fs::read_to_string(&pid).unwrap().trim()));
    assert!(stat.map_or(true, |text| text.contains(") Z ")));
    fs::remove_file(&pid).unwrap();
    assert_nothing_left(temp.path());
}

/// The driver differs from the type: mkfs and fsck are those of ext4.
#[test]
fn another_driver_of_a_type_is_measured_on_an_image() {
    if RealHost.find("fuse2fs").is_none() {
        return skipped("needs fuse2fs");
    }
    let temp = place();
    let Some(rig) = open(temp.path(), "command-fuse2fs", &image(Bytes::mib(64), 1)) else { return };
    let catalog = Catalog::embedded();
    let mut level = level("ext4", &["fuse2fs", "-o", "{options}", "{device}", "{mount}"]);
    level.commands.mounted_type = "fuse.ext4".into();
    for _ in 0..2 {
        let ext4 = catalog.get("ext4").unwrap();
        let mut mounted = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap();
        let file = mounted.directory().join("file");
        fs::write(&file, vec![7; 1 << 20]).unwrap();
        assert_eq!(mounted.drop_caches().unwrap(), None, "the daemon has exited");
        assert_eq!(fs::read(&file).unwrap(), vec![7; 1 << 20]);
        let finish = mounted.finish(true).unwrap();
        assert_eq!(finish.damage, None);
    }
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

/// Tries to create an instance; returns the error, after which nothing may be left.
#[track_caller]
fn refused(name: &str, level: &FilesystemLevel) -> String {
    let temp = place();
    let srv = temp.path().join("srv");
    fs::create_dir(&srv).unwrap();
    let run_id = format!("refused-{name}");
    let rig =
        Rig::open(Arc::new(RealHost), &directory(&srv), options(temp.path(), &run_id)).unwrap();
    let catalog = Catalog::embedded().with_levels(std::slice::from_ref(level), true);
    let filesystem = catalog.get(&level.fs_type).unwrap();
    let error = rig.instance(&InstanceSpec::plain(filesystem, level)).unwrap_err();
    assert!(matches!(error, RigError::MountCommand { .. }), "{error}");
    assert_eq!(fs::read_dir(&srv).unwrap().count(), 0);
    // The storage can be used again.
    let any = catalog.get("directory").unwrap();
    let plain = FilesystemLevel::plain("directory");
    rig.instance(&InstanceSpec::plain(any, &plain)).unwrap().finish(false).unwrap();
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
    let text = error.to_string();
    let mount = temp.path().join(format!("state/fslab-{run_id}"));
    text.replace(&mount.display().to_string(), "{mount}")
        .replace(&temp.path().display().to_string(), "{temp}")
}

/// Asserts that nothing is mounted in a directory.
#[track_caller]
fn assert_unmounted(directory: &Path) {
    let mounts = RealHost.mounts().unwrap();
    assert!(!mounts.iter().any(|mount| mount.target.starts_with(directory)), "{mounts:?}");
}

#[test]
fn a_wrong_mount_is_refused_and_undone() {
    if !can_measure("overlayfs") {
        return;
    }
    let text = refused("type", &level("overlay", &["mount", "-t", "tmpfs", "x", "{mount}"]));
    let expected = "`mount -t tmpfs x {mount}`: {mount} has filesystem type tmpfs, but the plan \
                    names overlay; run the command manually, or correct `mount_command` in the plan";
    assert_eq!(text, expected);
    // Other tests may mount filesystems during the command.
    let error = refused("nothing", &level("overlay", &["true", "{mount}"]));
    assert!(error.starts_with("`true {mount}`: "), "{error}");
    assert!(error.contains("nothing is mounted on {mount}; "), "{error}");
    let error = refused("false", &level("overlay", &["false", "{mount}"]));
    assert!(error.starts_with("`false {mount}`: exit 1; "), "{error}");
    let error = refused("missing", &level("overlay", &["mount", "-t", "overlay", "x", "{mount}"]));
    assert!(error.contains("exit 32"), "{error}");
    // The umount command of the plan does not fit the wrong mount.
    let mut wrong = level("fuse.sshfs", &["mount", "-t", "tmpfs", "x", "{mount}"]);
    wrong.commands.umount = words(&["false", "{mount}"]);
    let error = refused("umount", &wrong);
    assert!(error.contains("has filesystem type tmpfs"), "{error}");
}

#[test]
fn a_bind_mount_is_refused_and_undone() {
    if !can_measure("overlayfs") {
        return;
    }
    let mounts = RealHost.mounts().unwrap();
    let here = crate::mount::holder(&mounts, Path::new("/var/tmp")).unwrap();
    let mut bind = level("own", &["mount", "--bind", "/var/tmp", "{mount}"]);
    bind.commands.mounted_type.clone_from(&here.fstype);
    let error = refused("bind", &bind);
    assert!(error.contains("{mount} is a directory of the "), "{error}");
}

/// The mount point and the source are exchanged.
#[test]
fn a_mount_in_another_place_is_refused_and_undone() {
    if !can_measure("overlayfs") {
        return;
    }
    let other = place();
    let target = other.path().display().to_string();
    let bind = level("overlay", &["mount", "--bind", "{mount}", &target]);
    let error = refused("bind-other-place", &bind);
    assert_unmounted(other.path());
    assert!(
        error.contains("nothing is mounted on {mount}; mounts made during the command, "),
        "{error}"
    );
    let tmpfs = level("tmpfs-2", &["mount", "-t", "tmpfs", "{directory}{mount}", &target]);
    let error = refused("other-place", &tmpfs);
    assert!(error.contains(&format!("tmpfs on {target}")), "{error}");
    assert_unmounted(other.path());
}

/// As after `kill -9`: the mount command has run, and its mount was not checked.
#[test]
fn clean_undoes_an_unchecked_mount() {
    if !can_measure("overlayfs") {
        return;
    }
    let temp = place();
    let rig =
        Rig::open(Arc::new(RealHost), &directory(temp.path()), options(temp.path(), "unchecked"))
            .unwrap();
    let target = temp.path().join("state/fslab-unchecked");
    {
        let mut journaled = rig.base.shared.journaled();
        journaled.directory(&target).unwrap();
        journaled.plan_mount("overlay", &target).unwrap();
        let argv = ["mount", "-t", "tmpfs", "x", &target.display().to_string()].map(str::to_owned);
        assert!(journaled.run(&argv).unwrap().success());
        journaled.forget();
    }
    let report = clean(&RealHost, &temp.path().join("state")).unwrap();
    assert_eq!((report.live, report.failed), (vec![], vec![]));
    assert_eq!(report.undone[0], format!("overlay on {}", target.display()));
    drop(rig);
    assert_nothing_left(temp.path());
}

/// Files of others in the filesystem are kept, and the workload has a separate directory.
#[test]
fn a_filesystem_with_other_files_keeps_them() {
    if !can_measure("bindfs") {
        return;
    }
    let temp = place();
    let (srv, server) = (temp.path().join("srv"), temp.path().join("server"));
    fs::create_dir(&srv).unwrap();
    fs::create_dir(&server).unwrap();
    fs::write(server.join("theirs"), "text").unwrap();
    let rig =
        Rig::open(Arc::new(RealHost), &directory(&srv), options(temp.path(), "shared")).unwrap();
    let catalog = Catalog::embedded();
    let bindfs = catalog.get("bindfs").unwrap();
    let mut level = level("bindfs", &["bindfs", "-o", "subtype=bindfs", "{source}", "{mount}"]);
    level.commands.source = server.display().to_string();
    // Another mount takes the device number, so the filesystem has another one when it is mounted
    // again.
    let other = temp.path().join("other");
    fs::create_dir(&other).unwrap();
    let script = "umount \"$0\" && { mountpoint -q \"$1\" || mount -t tmpfs other \"$1\"; }";
    level.commands.umount = words(&["sh", "-c", script, "{mount}", other.to_str().unwrap()]);
    let mut mounted = rig.instance(&InstanceSpec::plain(bindfs, &level)).unwrap();
    assert!(mounted.directory().ends_with("fslab-shared/fslab-shared/data"));
    fs::write(mounted.directory().join("ours"), "text").unwrap();
    assert!(server.join("fslab-shared/data/ours").exists());
    let warning = mounted.drop_caches().unwrap();
    assert!(matches!(warning, Some(Warning::CacheNotDropped { .. })), "{warning:?}");
    mounted.finish(true).unwrap();
    let names = RealHost.list(&server).unwrap();
    assert_eq!(names, ["theirs"]);
    RealHost.unmount(&other).unwrap();
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

/// A program that creates and mounts a filesystem, as `zpool create` does.
#[test]
fn mkfs_may_mount_the_filesystem() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let zpool = FakeHost::new(&root)
        .file("/proc/sys/vm/drop_caches", "0")
        .file("/dev/loop0", "")
        .mounter("create", Some("zfs"))
        .mounter("import", Some("zfs"))
        .mounter("export", None);
    let host = Arc::new(zpool);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let options = RigOptions { store_file: "/proc/run.fslab".into(), ..options(&root, "pool") };
    let rig = Rig::open(shared, &image(Bytes::mib(64), 1), options).unwrap();
    let mut zfs = Catalog::embedded().get("zfs").unwrap().clone();
    zfs.mkfs = words(&["create", "{name}", "{device}", "{mount}"]);
    zfs.mount_command = words(&["import", "{name}", "{mount}"]);
    zfs.umount_command = words(&["export", "{mount}"]);
    let level = FilesystemLevel::plain("zfs");
    let mounted = rig.instance(&InstanceSpec::plain(&zfs, &level)).unwrap();
    mounted.finish(true).unwrap();
    let target = root.join("state/fslab-pool").display().to_string();
    let done: Vec<_> = host.done();
    let programs = ["create ", "import ", "export "];
    let done: Vec<_> = done
        .into_iter()
        .filter(|line| programs.iter().any(|program| line.starts_with(program)))
        .filter(|line| !line.starts_with("create image"))
        .map(|line| line.replace(&target, "{mount}"))
        .collect();
    let expected = [
        "create fslab-pool /dev/loop0 {mount}",
        "export {mount}",
        "import fslab-pool {mount}",
        "export {mount}",
    ];
    assert_eq!(done, expected);
    assert_eq!(rig.close(), []);
    assert_eq!(host.mounts().unwrap(), []);
}

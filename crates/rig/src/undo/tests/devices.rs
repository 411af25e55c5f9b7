//! Undo of arrays, mapped devices, and their faults.

use super::*;

/// Number of retries if something is busy.
const TRIES_OF_UNDO: usize = 50;

fn commands(host: &FakeHost, argv: &[&str], input: &str) {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    assert!(host.run_with_input(&argv, input).unwrap().success(), "{argv:?}");
}

#[test]
fn a_foreign_layer_with_the_same_name_is_skipped() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    commands(&host, &["dmsetup", "create", "fslab-run-1", "--uuid", "LVM-theirs"], "0 8 zero");
    commands(
        &host,
        &["mdadm", "--create", "/dev/md/fslab-run-0", "--uuid=theirs", "/dev/loop0"],
        "",
    );
    let before = state(&host);
    host.done();
    let (array, mapped) = layers("run");
    revert(&host, &array).unwrap();
    revert(&host, &mapped).unwrap();
    assert_eq!(state(&host), before);
    let done = host.done();
    let changes = ["remove", "--stop", "--zero-superblock"];
    let changed = |line: &&String| changes.iter().any(|change| line.contains(change));
    assert_eq!(done.iter().find(changed), None);
}

#[test]
fn a_loop_device_is_detached_if_its_backing_file_is_the_image() {
    const BACKING: &str = "/sys/block/loop0/loop/backing_file";
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path()).file(BACKING, "/other\n");
    let image = Path::new("/images/fslab-run-0.img");
    let identity = host.create_image(image).unwrap();
    let loops = Change::Loops { image: image.into(), identity, made: None };
    let attached = || host.loops_of(identity).unwrap().len();
    host.attach_loop(image, identity).unwrap();
    assert_eq!((revert(&host, &loops), attached()), (Ok(Outcome::Undone), 0));
    // Without the image, its inode number may be that of another file.
    host.attach_loop(image, identity).unwrap();
    host.remove_file(image).unwrap();
    assert_eq!((revert(&host, &loops), attached()), (Ok(Outcome::Undone), 1));
    host.write(Path::new(BACKING), "/images/fslab-run-0.img (deleted)\n").unwrap();
    assert_eq!((revert(&host, &loops), attached()), (Ok(Outcome::Undone), 0));
}

#[test]
fn a_created_loop_device_is_removed_unless_it_is_in_use() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let image = Path::new("/images/fslab-run-0.img");
    let identity = host.create_image(image).unwrap();
    let loops = Change::Loops { image: image.into(), identity, made: Some(7) };
    let device = Path::new("/dev/loop7");
    host.keep_busy(device, 3);
    host.done();
    assert_eq!(revert(&host, &loops), Ok(Outcome::Undone));
    assert_eq!(host.done(), ["remove loop 7"]);
    host.keep_busy(device, 1000);
    let why = revert(&host, &loops).unwrap_err();
    assert!(why.starts_with("/dev/loop7 is open"), "{why}");
    host.fail_write(device, "", rustix::io::Errno::ACCESS.raw_os_error(), 1);
    let start = host.now();
    let why = revert(&host, &loops).unwrap_err();
    assert!(why.starts_with("/dev/loop7: Permission denied") && host.now() == start, "{why}");
    let host = host.file("/sys/block/loop7/loop/backing_file", "/other\n");
    assert_eq!(revert(&host, &loops), Ok(Outcome::Undone), "another file is attached");
    assert_eq!(host.done(), [""; 0]);
}

/// Nothing is done for a device that no longer exists or was replaced. A failing command is
/// reported.
#[test]
fn faults_are_undone_by_the_uuid_of_the_device() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    assert_eq!(revert(&host, &fault()), Ok(Outcome::Undone));
    commands(&host, &["dmsetup", "create", "fslab-run-1", "--uuid", "LVM-theirs"], "0 8 zero");
    host.done();
    assert_eq!(revert(&host, &fault()), Ok(Outcome::Undone));
    assert!(host.done().iter().all(|line| line.contains("info")));
    let listed = "fslab-run-1:fslab-ours\n".to_owned();
    let listed = Output { status: Some(0), stdout: listed, ..Output::default() };
    let stderr = "Device or resource busy".to_owned();
    let refused = Output { status: Some(1), stderr, ..Output::default() };
    let host = machine(temp.path()).program("dmsetup", [listed, refused]);
    assert_eq!(
        revert(&host, &fault()).unwrap_err(),
        "dmsetup load fslab-run-1: exit 1: Device or resource busy; then run `fslab clean`"
    );
}

#[test]
fn an_array_assembled_again_after_a_reboot_is_undone_by_its_uuid() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = started(temp.path());
    work(&mut journaled, 9);
    journaled.forget();
    // Its member has another name, and udev has assembled the array.
    commands(&host, &["dmsetup", "remove", "fslab-run-1"], "");
    commands(&host, &["mdadm", "--stop", "/dev/md120"], "");
    commands(&host, &["mdadm", "--zero-superblock", "/dev/loop0"], "");
    fs::write(host.at(Path::new("/dev/sdb")), "").unwrap();
    commands(&host, &["mdadm", "--create", "/dev/md/any_0", "--uuid=ours", "/dev/sdb"], "");
    host.write(Path::new(BOOT_ID), "next-boot\n").unwrap();
    host.done();
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!(report.failed, []);
    assert!(report.undone.contains(&"array fslab-run-0".to_owned()), "{:?}", report.undone);
    assert!(!report.undone.iter().any(|what| what.contains("mapped")), "{:?}", report.undone);
    let done = host.done();
    assert!(done.contains(&"mdadm --stop /dev/md120".to_owned()), "{done:#?}");
    assert!(done.contains(&"mdadm --zero-superblock /dev/sdb".to_owned()), "{done:#?}");
}

#[test]
fn a_busy_mapped_device_is_retried_and_keeps_the_devices_below() {
    let temp = tempfile::tempdir().unwrap();
    let busy =
        Output { status: Some(1), stderr: "Device or resource busy".into(), ..Output::default() };
    let listed = Output {
        status: Some(0),
        stdout: "theirs:x\nfslab-run-1:fslab-ours\n".into(),
        ..Output::default()
    };
    let answers = (0..TRIES_OF_UNDO).flat_map(|_| [listed.clone(), busy.clone()]);
    let host = machine(temp.path()).program("dmsetup", answers);
    let start = host.now();
    let (_, mapped) = layers("run");
    let why = revert(&host, &mapped).unwrap_err();
    assert_eq!(
        why,
        "fslab-run-1: exit 1: Device or resource busy; stop the processes that use it, then run `fslab clean`"
    );
    assert_eq!(host.now() - start, Nanos(5_000_000_000));
    // Without the driver nothing is queried.
    let none = FakeHost::new(temp.path()).file("/proc/misc", "237 loop-control\n");
    assert_eq!(revert(&none, &mapped), Ok(Outcome::Undone));
}

/// Answers of mdadm about array `ours`, which is stopped and wiped with these results.
fn mdadm(stop: &Output, wipe: &Output) -> Vec<Output> {
    let ours = Output { status: Some(0), stdout: "MD_UUID=ours\n".into(), ..Output::default() };
    let mut answers = vec![ours.clone(), stop.clone()];
    if stop.success() {
        answers.extend([ours, wipe.clone()]);
    }
    (0..TRIES_OF_UNDO).flat_map(|_| answers.clone()).collect()
}

#[test]
fn an_array_that_cannot_be_stopped_or_wiped_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let busy = Output { status: Some(1), stderr: "busy".into(), ..Output::default() };
    let fine = Output { status: Some(0), ..Output::default() };
    let (array, _) = layers("run");
    for (stop, wipe, node, wipes) in
        [(&busy, &fine, "/dev/md120", false), (&fine, &busy, "/dev/loop0", true)]
    {
        let host = machine(temp.path()).file("/sys/class/block/md120/size", "8\n");
        let host = host.program("mdadm", mdadm(stop, wipe));
        let why = revert(&host, &array).unwrap_err();
        assert!(why.starts_with(&format!("{node}: exit 1: busy; stop the processes")), "{why}");
        let wiped = host.done().iter().any(|line| line.contains("--zero-superblock"));
        assert_eq!(wiped, wipes, "a member of a running array is not wiped");
    }
    let host = machine(temp.path()).file("/sys/class/block/md120/size", "8\n");
    let host = host.program("mdadm", mdadm(&fine, &fine));
    assert_eq!(revert(&host, &array), Ok(Outcome::Undone));
    let stops = host.done().iter().filter(|line| line.contains("--stop")).count();
    assert_eq!(stops, 1);
}

#[test]
fn members_of_an_array_that_is_stopped_are_wiped() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let (array, _) = layers("run");
    commands(&host, &["mdadm", "--create", "/dev/md/fslab-run-0", "--uuid=ours", "/dev/loop0"], "");
    commands(&host, &["mdadm", "--stop", "/dev/md120"], "");
    host.done();
    assert_eq!(revert(&host, &array), Ok(Outcome::Undone));
    let done = host.done();
    assert!(done.contains(&"mdadm --zero-superblock /dev/loop0".to_owned()), "{done:#?}");
}

#[test]
fn what_cannot_be_read_is_reported_and_what_does_not_exist_is_undone() {
    let temp = tempfile::tempdir().unwrap();
    let (array, mapped) = layers("run");
    let image = Path::new("/images/fslab-run-0.img");
    let of_image = Change::Image { path: image.into(), identity: None };
    let none = FakeHost::new(temp.path());
    for change in [&array, &mapped, &of_image] {
        assert_eq!(revert(&none, change), Ok(Outcome::Undone), "{change:?}");
    }
    // Files instead of the directories.
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/sys/class/block", "")
        .file("/images", "")
        .file("/proc/misc", "236 device-mapper\n");
    let why = revert(&host, &array).unwrap_err();
    assert!(why.starts_with("/sys/class/block: Not a directory"), "{why}");
    let why = revert(&host, &of_image).unwrap_err();
    assert!(why.starts_with("Not a directory"), "{why}");
    host.fail_read(Path::new("/proc/misc"), rustix::io::Errno::IO.raw_os_error());
    let why = revert(&host, &mapped).unwrap_err();
    assert!(why.starts_with("/proc/misc: Input/output error"), "{why}");
}

#[test]
fn a_failing_list_of_mapped_devices_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let refused = Output { status: Some(1), stderr: "no driver".into(), ..Output::default() };
    let host = machine(temp.path()).program("dmsetup", [refused]);
    let (_, mapped) = layers("run");
    let why = revert(&host, &mapped).unwrap_err();
    assert!(why.starts_with("exit 1: no driver"), "{why}");
}

#[test]
fn a_control_group_that_cannot_be_removed_is_reported() {
    const GROUP: &str = "/sys/fs/cgroup/fslab-run";
    let (group, home) = (Path::new(GROUP), Path::new("/sys/fs/cgroup"));
    let change = Change::Group { path: group.into(), home: home.into(), identity: None };
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    assert_eq!(revert(&host, &change), Ok(Outcome::Undone), "it does not exist");
    host.make_directory(group).unwrap();
    host.keep_busy(group, 1000);
    let why = revert(&host, &change).unwrap_err();
    assert!(why.contains("busy") && why.contains("remove it with rmdir"), "{why}");
    // A process that cannot be moved is the cause.
    host.write(&group.join("cgroup.procs"), "99").unwrap();
    let refused = rustix::io::Errno::ACCESS.raw_os_error();
    host.fail_write(&home.join("cgroup.procs"), "99", refused, 1000);
    let why = revert(&host, &change).unwrap_err();
    assert!(why.starts_with("process 99 cannot be moved"), "{why}");
    host.fail_read(&group.join("cgroup.procs"), rustix::io::Errno::IO.raw_os_error());
    let why = revert(&host, &change).unwrap_err();
    assert!(why.starts_with("Input/output error"), "{why}");
    // Its files no longer exist.
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path()).file(&format!("{GROUP}/.keep"), "");
    assert_eq!(revert(&host, &change), Ok(Outcome::Undone));
}

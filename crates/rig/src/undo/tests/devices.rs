//! Arrays, mapped devices, and their faults.

use super::*;

/// How often undoing tries what is busy.
const TRIES_OF_UNDO: usize = 50;

fn commands(host: &FakeHost, argv: &[&str], input: &str) {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    assert!(host.run_told(&argv, input).unwrap().success(), "{argv:?}");
}

#[test]
fn a_layer_of_our_name_that_is_not_ours_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
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

/// Of a device that is gone, or is another one by now, nothing is to be made sound; what cannot be
/// made in this way is reported with the command.
#[test]
fn faults_end_by_the_id_of_their_device() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
    assert_eq!(revert(&host, &fault()), Ok(Outcome::Undone));
    commands(&host, &["dmsetup", "create", "fslab-run-1", "--uuid", "LVM-theirs"], "0 8 zero");
    host.done();
    assert_eq!(revert(&host, &fault()), Ok(Outcome::Undone));
    assert!(host.done().iter().all(|line| line.contains("info")));
    let listed = "fslab-run-1:fslab-ours\n".to_owned();
    let listed = Output { status: Some(0), stdout: listed, ..Output::default() };
    let stderr = "Device or resource busy".to_owned();
    let refused = Output { status: Some(1), stderr, ..Output::default() };
    let host = machine(folder.path()).program("dmsetup", [listed, refused]);
    assert_eq!(
        revert(&host, &fault()).unwrap_err(),
        "dmsetup load fslab-run-1: exit 1: Device or resource busy; then `fslab clean`"
    );
}

#[test]
fn an_array_that_came_to_life_again_after_a_reboot_is_undone_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = started(folder.path());
    work(&mut bench, 9);
    bench.abandon();
    // Its member has got another name, and udev has made the array of it.
    commands(&host, &["dmsetup", "remove", "fslab-run-1"], "");
    commands(&host, &["mdadm", "--stop", "/dev/md120"], "");
    commands(&host, &["mdadm", "--zero-superblock", "/dev/loop0"], "");
    fs::write(host.at(Path::new("/dev/sdb")), "").unwrap();
    commands(&host, &["mdadm", "--create", "/dev/md/any_0", "--uuid=ours", "/dev/sdb"], "");
    host.write(Path::new(BOOT_ID), "next-boot\n").unwrap();
    host.done();
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!(report.stuck, []);
    assert!(report.undone.contains(&"array fslab-run-0".to_owned()), "{:?}", report.undone);
    assert!(!report.undone.iter().any(|what| what.contains("mapped")), "{:?}", report.undone);
    let done = host.done();
    assert!(done.contains(&"mdadm --stop /dev/md120".to_owned()), "{done:#?}");
    assert!(done.contains(&"mdadm --zero-superblock /dev/sdb".to_owned()), "{done:#?}");
}

#[test]
fn a_mapped_device_that_is_in_use_is_waited_for_then_reported_and_holds_what_is_below() {
    let folder = tempfile::tempdir().unwrap();
    let busy =
        Output { status: Some(1), stderr: "Device or resource busy".into(), ..Output::default() };
    let listed = Output {
        status: Some(0),
        stdout: "theirs:x\nfslab-run-1:fslab-ours\n".into(),
        ..Output::default()
    };
    let answers = (0..TRIES_OF_UNDO).flat_map(|_| [listed.clone(), busy.clone()]);
    let host = machine(folder.path()).program("dmsetup", answers);
    let start = host.now();
    let (_, mapped) = layers("run");
    let why = revert(&host, &mapped).unwrap_err();
    assert_eq!(
        why,
        "fslab-run-1: exit 1: Device or resource busy; end what uses it, then `fslab clean`"
    );
    assert_eq!(host.now() - start, Nanos(5_000_000_000));
    // Without the driver there is nothing to ask.
    let none = FakeHost::new(folder.path()).file("/proc/misc", "237 loop-control\n");
    assert_eq!(revert(&none, &mapped), Ok(Outcome::Undone));
}

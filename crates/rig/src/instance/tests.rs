use std::{fs, os::unix::fs::MetadataExt as _};

use expect_test::expect;
use model::{Allocation, FilesystemLevel, FillLevel, Storage, StorageKind};

use super::*;
use crate::{
    Catalog, FakeHost, RealHost, Rig, RigOptions,
    device::Backing,
    guard::Refusal,
    host::Output,
    mount::MountRequest,
    undo::{CleanReport, clean},
};

/// Directory for images on a disk filesystem, because tmpfs does not support direct I/O.
fn place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("fslab-test-").tempdir_in("/var/tmp").unwrap()
}

fn options(temp: &Path, run_id: &str) -> RigOptions {
    RigOptions {
        state_directory: Some(temp.join("state")),
        run_id: run_id.into(),
        overwrite: Vec::new(),
        store_file: "/dev/shm/run.fslab".into(),
        default_image_directory: temp.join("images"),
        interrupt: Arc::default(),
    }
}

fn image(size: Bytes, count: u32) -> Storage {
    let place = StorageKind::Image {
        size,
        count,
        directory: None,
        file: None,
        allocation: Allocation::Preallocated,
    };
    Storage { kind: place, memory_limit: None, external_directory: None }
}

fn directory(path: &Path) -> Storage {
    Storage {
        kind: StorageKind::Directory { path: path.display().to_string() },
        memory_limit: None,
        external_directory: None,
    }
}

/// Opens a rig on images, or reports why this machine cannot.
fn open(temp: &Path, run_id: &str, storage: &Storage) -> Option<Rig> {
    if !RealHost.is_root() || !Path::new("/dev/loop-control").exists() {
        skipped("needs root and loop devices");
        return None;
    }
    Some(Rig::open(Arc::new(RealHost), storage, options(temp, run_id)).unwrap())
}

#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Asserts that nothing in a directory is attached, mounted, or journaled, and that only the state
/// directory is in it.
fn assert_nothing_left(temp: &Path) {
    let text = temp.display().to_string();
    for mount in RealHost.mounts().unwrap() {
        assert!(!mount.target.starts_with(temp), "{mount:?}");
    }
    for device in fs::read_dir("/sys/block").unwrap() {
        let backing = device.unwrap().path().join("loop/backing_file");
        let backing = fs::read_to_string(backing).unwrap_or_default();
        assert!(!backing.starts_with(&text), "{backing}");
    }
    let left = |temp: &Path| match fs::read_dir(temp) {
        Ok(entries) => entries.map(|entry| entry.unwrap().file_name()).collect(),
        Err(_) => Vec::new(),
    };
    assert_eq!(left(&temp.join("state")), ["journal"]);
    assert_eq!(left(&temp.join("state/journal")), [""; 0]);
    assert_eq!(left(&temp.join("images")), [""; 0]);
}

/// True if this machine can measure the type; otherwise the test is skipped.
fn can_measure(name: &str) -> bool {
    let catalog = Catalog::embedded();
    match catalog.availability(catalog.get(name).unwrap(), &RealHost) {
        crate::Availability::Usable { .. } if RealHost.is_root() => true,
        crate::Availability::Usable { .. } => {
            skipped("needs root");
            false
        }
        crate::Availability::Missing { reason, .. } => {
            skipped(&reason);
            false
        }
    }
}

/// Creates, fills, cools, checks, and removes one filesystem on images.
fn life(name: &str, size: Bytes, count: u32) {
    if !can_measure(name) {
        return;
    }
    let temp = place();
    let run_id = format!("life-{name}-{count}");
    let Some(rig) = open(temp.path(), &run_id, &image(size, count)) else { return };
    let catalog = Catalog::embedded();
    let filesystem = catalog.get(name).unwrap();
    let level = FilesystemLevel { mount: "noatime".into(), ..FilesystemLevel::plain(name) };
    for _ in 0..2 {
        let mut mounted = rig.instance(&InstanceSpec::plain(filesystem, &level)).unwrap();
        assert_eq!(mounted.warnings(), []);
        assert!(mounted.options().contains("noatime"), "{}", mounted.options());
        assert_eq!(mounted.space().device_size, Bytes(size.0 * u64::from(count)));
        assert!((1..size.0 * u64::from(count)).contains(&mounted.space().available.0));
        assert!(matches!(
            rig.instance(&InstanceSpec::plain(filesystem, &level)),
            Err(RigError::Busy)
        ));

        let before = mounted.counters().unwrap();
        let file = mounted.directory().join("file");
        fs::write(&file, vec![7; 8 << 20]).unwrap();
        assert_eq!(RealHost.resident(&file).unwrap(), Bytes::mib(8));
        assert_eq!(mounted.drop_caches().unwrap(), None);
        assert!(mounted.counters().unwrap().since(before).written >= Bytes::mib(8));
        assert_eq!(RealHost.resident(&file).unwrap(), Bytes(0));
        let before = mounted.counters().unwrap();
        assert_eq!(fs::read(&file).unwrap(), vec![7; 8 << 20]);
        assert!(mounted.counters().unwrap().since(before).read >= Bytes::mib(8));
        assert_eq!(mounted.wait_idle(Nanos(20_000_000_000)).unwrap(), None);

        let names: Vec<_> = mounted.lifecycle().iter().map(|step| step.name).collect();
        assert_eq!(names, [lifecycle::MKFS, lifecycle::MOUNT]);
        let program = mounted.lifecycle()[0].program.unwrap();
        assert!(program.user + program.system > Nanos(0));
        assert!(mounted.environment().get("filesystem.features").is_some_and(|f| f.len() > 20));
        let done: Vec<_> =
            mounted.take_actions().into_iter().map(|action| action.description).collect();
        assert!(done.iter().any(|what| what.starts_with("mkfs.")), "{done:#?}");
        let finish = mounted.finish(true).unwrap();
        assert_eq!(finish.damage, None);
        let names: Vec<_> = finish.lifecycle.iter().map(|step| step.name).collect();
        let steps = lifecycle::ALL.into_iter().filter(|name| *name != lifecycle::SETUP);
        assert_eq!(names, steps.collect::<Vec<_>>());
        for step in &finish.lifecycle {
            assert_eq!(
                step.program.is_some(),
                [lifecycle::MKFS, lifecycle::FSCK].contains(&step.name)
            );
            assert!(step.activity.as_ref().unwrap().window >= step.elapsed, "{step:?}");
        }
    }
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

#[test]
fn ext4_lives_and_leaves_nothing() {
    life("ext4", Bytes::mib(64), 1);
}

#[test]
fn xfs_completes_a_trial_and_leaves_nothing() {
    life("xfs", Bytes::mib(320), 1);
}

#[test]
fn btrfs_completes_a_trial_and_leaves_nothing() {
    life("btrfs", Bytes::mib(128), 1);
}

#[test]
fn btrfs_spans_two_images() {
    life("btrfs", Bytes::mib(128), 2);
}

#[test]
fn an_image_on_a_loop_device_is_reported_and_allocated() {
    let temp = place();
    let Some(rig) = open(temp.path(), "reported", &image(Bytes::mib(32), 1)) else { return };
    let reported = rig.warnings();
    assert!(
        matches!(&reported[..], [Warning::SharedStorage { storage, .. }] if storage.contains("direct I/O")),
        "{reported:?}"
    );
    let image = temp.path().join("images/fslab-reported-0.img");
    assert!(fs::metadata(&image).unwrap().blocks() * 512 >= 32 << 20);
    let environment = rig.environment();
    assert!(environment.get("kernel.release").is_some() && environment.get("cpu.count").is_some());
    assert_eq!(environment.get("backing.fstype").map(str::is_empty), Some(false));
    let Backing::Images(images) = &rig.base.backing else { panic!("images were asked for") };
    let name = name_of(&images[0].device());
    let fact = |fact: &str| environment.get(&format!("device.{name}.{fact}")).map(str::to_owned);
    assert_eq!(fact("size_bytes").as_deref(), Some("33554432"));
    assert_eq!(fact("queue.discard_max_bytes").as_deref(), Some("0"));
    drop(rig);
    assert_nothing_left(temp.path());
}

#[test]
fn a_named_image_is_kept_and_then_protected() {
    let temp = place();
    let place = StorageKind::Image {
        size: Bytes::mib(32),
        count: 1,
        directory: Some(temp.path().display().to_string()),
        file: Some("mine.img".into()),
        allocation: Allocation::Sparse,
    };
    let storage = Storage { kind: place, memory_limit: None, external_directory: None };
    let Some(rig) = open(temp.path(), "kept", &storage) else { return };
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4")))
        .unwrap()
        .finish(true)
        .unwrap();
    drop(rig);
    assert_nothing_left(temp.path());
    let image = temp.path().join("mine.img");
    assert!(fs::metadata(&image).unwrap().blocks() * 512 < 16 << 20, "not sparse");

    let again = || options(temp.path(), "again");
    let error = Rig::open(Arc::new(RealHost), &storage, again()).unwrap_err();
    assert!(matches!(error, RigError::Refused(Refusal::ImageOccupied { .. })), "{error}");
    let overwrite = vec![image.display().to_string()];
    let named = RigOptions { overwrite, ..again() };
    let rig = Rig::open(Arc::new(RealHost), &storage, named).unwrap();
    rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
    assert!(image.exists());
}

#[test]
fn a_loop_device_with_another_file_is_not_formatted() {
    let temp = place();
    let Some(rig) = open(temp.path(), "taken", &image(Bytes::mib(32), 1)) else { return };
    let Backing::Images(images) = &rig.base.backing else { panic!("images were asked for") };
    let (device, identity) = (images[0].device(), images[0].identity);
    RealHost.detach_loop(&device, identity).unwrap();
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let instance = || rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4")));
    assert!(matches!(instance().unwrap_err(), RigError::Detached { .. }));
    let other = temp.path().join("other");
    fs::write(&other, vec![7; 32 << 20]).unwrap();
    let losetup = |arguments: &[&str]| {
        let mut argv = vec!["losetup".to_owned()];
        argv.extend(arguments.iter().map(ToString::to_string));
        assert!(RealHost.run(&argv).unwrap().success(), "{argv:?}");
    };
    losetup(&[device.to_str().unwrap(), other.to_str().unwrap()]);
    let error = instance().unwrap_err();
    losetup(&["-d", device.to_str().unwrap()]);
    assert!(matches!(error, RigError::Detached { .. }), "{error}");
    assert!(fs::read(&other).unwrap().iter().all(|byte| *byte == 7));
    drop(rig);
    assert_nothing_left(temp.path());
}

#[test]
fn a_named_image_in_another_directory_must_fit_there() {
    if !RealHost.is_root() {
        return skipped("needs root");
    }
    let temp = place();
    let small = temp.path().join("small");
    fs::create_dir(&small).unwrap();
    let request = MountRequest {
        source: "none".into(),
        target: small.clone(),
        fstype: "tmpfs".into(),
        options: "size=1m".into(),
    };
    RealHost.mount(&request).unwrap();
    let place = StorageKind::Image {
        size: Bytes::mib(32),
        count: 1,
        directory: Some(temp.path().display().to_string()),
        file: Some(small.join("mine.img").display().to_string()),
        allocation: Allocation::Sparse,
    };
    let storage = Storage { kind: place, memory_limit: None, external_directory: None };
    let error = Rig::open(Arc::new(RealHost), &storage, options(temp.path(), "far"));
    RealHost.unmount(&small).unwrap();
    let error = error.unwrap_err();
    assert!(matches!(error, RigError::Refused(Refusal::Space { .. })), "{error}");
    assert_nothing_left(temp.path());
}

#[test]
fn tmpfs_needs_no_device_and_stays_warm() {
    let temp = place();
    let Some(rig) = open(temp.path(), "memory", &image(Bytes::mib(32), 1)) else { return };
    let catalog = Catalog::embedded();
    let tmpfs = catalog.get("tmpfs").unwrap();
    let mut mounted =
        rig.instance(&InstanceSpec::plain(tmpfs, &FilesystemLevel::plain("tmpfs"))).unwrap();
    assert_eq!(mounted.space().device_size, Bytes::mib(32));
    assert_eq!(mounted.counters(), None);
    assert!(matches!(mounted.drop_caches().unwrap(), Some(Warning::CacheNotDropped { .. })));
    drop(mounted);
    drop(rig);
    assert_nothing_left(temp.path());
}

#[test]
fn a_block_device_without_a_filesystem_is_cooled_and_reset() {
    let temp = place();
    let Some(rig) = open(temp.path(), "raw", &image(Bytes::mib(32), 1)) else { return };
    let catalog = Catalog::embedded();
    let level = FilesystemLevel::plain("none");
    let spec = InstanceSpec::plain(catalog.get("none").unwrap(), &level);
    for _ in 0..2 {
        let mut raw = rig.instance(&spec).unwrap();
        let device = raw.raw_device().unwrap().to_owned();
        assert!(device.starts_with("/dev"), "{}", device.display());
        assert_eq!(raw.space().available, Bytes::mib(32));
        let start = || fs::read(&device).unwrap()[..4096].to_vec();
        assert!(start().iter().all(|byte| *byte == 0), "the device is reset");
        let before = raw.counters().unwrap();
        // Parallel tests may drop the caches of the machine at any time.
        let cached = (0..100).any(|_| {
            fs::write(&device, vec![7; 8 << 20]).unwrap();
            assert_eq!(raw.wait_idle(Nanos(20_000_000_000)).unwrap(), None);
            RealHost.resident(&device).unwrap() >= Bytes::mib(8)
        });
        assert!(cached);
        assert!(raw.counters().unwrap().since(before).written >= Bytes::mib(8), "synced");
        assert_eq!(raw.drop_caches().unwrap(), None);
        assert!(RealHost.resident(&device).unwrap() < Bytes::mib(1));
        assert_eq!(start(), vec![7; 4096]);
        assert_eq!(raw.space_usage().unwrap(), None);
        let finished = raw.finish(true).unwrap();
        assert_eq!((finished.lifecycle, finished.damage), (Vec::new(), None));
    }
    let filled = InstanceSpec { fill_level: FillLevel(50), ..spec };
    assert!(matches!(rig.instance(&filled), Err(RigError::Storage { .. })));
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

#[test]
fn a_rejected_option_reports_the_kernel_message_and_releases_the_storage() {
    let temp = place();
    let Some(rig) = open(temp.path(), "refused", &image(Bytes::mib(32), 1)) else { return };
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = FilesystemLevel { mount: "nosuchopt".into(), ..FilesystemLevel::plain("ext4") };
    let error = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap_err();
    let RigError::Mount { source, .. } = &error else { panic!("{error}") };
    assert!(source.words.contains("nosuchopt"), "{source}");
    let level =
        FilesystemLevel { mkfs: vec!["--nonsense".into()], ..FilesystemLevel::plain("ext4") };
    let error = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap_err();
    assert!(matches!(error, RigError::Mkfs { .. }), "{error}");
    let xfs = catalog.get("xfs").unwrap();
    let error =
        rig.instance(&InstanceSpec::plain(xfs, &FilesystemLevel::plain("xfs"))).unwrap_err();
    assert!(error.to_string().starts_with("xfs requires at least 300MiB, "), "{error}");
    rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
    drop(rig);
    assert_nothing_left(temp.path());
}

#[test]
fn clean_undoes_dead_runs_and_skips_active_ones() {
    let temp = place();
    let Some(rig) = open(temp.path(), "dead", &image(Bytes::mib(32), 1)) else { return };
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let mounted =
        rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
    let state = temp.path().join("state");
    let report = clean(&RealHost, &state).unwrap();
    assert_eq!(report, CleanReport { live: vec!["dead".into()], ..CleanReport::default() });
    // Simulates a kill: the lock is released, and nothing is undone.
    mounted.shared.journaled().forget();
    let report = clean(&RealHost, &state).unwrap();
    assert_eq!((report.live, report.failed), (vec![], vec![]));
    assert_eq!(report.undone.len(), 5, "{:?}", report.undone);
    assert_nothing_left(temp.path());
}

#[test]
fn a_directory_needs_no_root_and_is_removed() {
    let temp = place();
    let rig =
        Rig::open(Arc::new(RealHost), &directory(temp.path()), options(temp.path(), "directory"))
            .unwrap();
    let catalog = Catalog::embedded();
    let any = catalog.get("directory").unwrap();
    let ext4 = catalog.get("ext4").unwrap();
    let error =
        rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap_err();
    assert!(matches!(error, RigError::Storage { .. }), "{error}");
    let mut mounted =
        rig.instance(&InstanceSpec::plain(any, &FilesystemLevel::plain("directory"))).unwrap();
    assert_eq!(fs::read_dir(mounted.directory()).unwrap().count(), 0);
    fs::create_dir(mounted.directory().join("sub")).unwrap();
    let file = mounted.directory().join("sub/file");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let kept = mounted.drop_caches().unwrap();
    assert_eq!(kept.is_none(), RealHost.is_root(), "names and inodes stay without root: {kept:?}");
    assert_eq!(RealHost.resident(&file).unwrap(), Bytes(0));
    let finish = mounted.finish(true).unwrap();
    assert_eq!(finish, FinishReport::default());
    assert!(!temp.path().join("fslab-directory").exists());
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

#[test]
fn the_run_file_must_not_be_in_the_directory_under_test() {
    let temp = place();
    let mut options = options(temp.path(), "store");
    options.store_file = temp.path().join("run.fslab");
    let error = Rig::open(Arc::new(RealHost), &directory(temp.path()), options).unwrap_err();
    assert!(matches!(error, RigError::Refused(Refusal::StoreOnTarget { .. })), "{error}");
    assert_nothing_left(temp.path());
}

/// Complete trial on a simulated host: every change, in order, and a damaged filesystem.
#[test]
fn every_change_of_a_trial_in_order() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let message = |status, stderr: &str, ns| Output {
        status: Some(status),
        stderr: stderr.into(),
        elapsed: Nanos(ns),
        ..Output::default()
    };
    let fake = FakeHost::new(&root)
        .file("/proc/sys/vm/drop_caches", "0")
        .file("/sys/class/block/loop0/queue/scheduler", "[none] bfq\n")
        .file("/sys/class/block/loop0/queue/discard_max_bytes", "4096\n")
        .file("/sys/class/block/loop0/stat", "1 0 8 0 1 0 16 0 0 0 0")
        .magic("ext4", 0xef53)
        .program("mkfs.ext4", [message(0, "", 5_000)])
        .program("e2fsck", [message(4, "Pass 1\nInode 12 is bad\n", 7_000)]);
    let host = Arc::new(fake);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(32), 1), options(&root, "simulated")).unwrap();
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = FilesystemLevel { mount: "noatime".into(), ..FilesystemLevel::plain("ext4") };
    let mut mounted = rig
        .instance(&InstanceSpec { scheduler: Some("bfq"), ..InstanceSpec::plain(ext4, &level) })
        .unwrap();
    let mkfs = &mounted.lifecycle()[0];
    assert_eq!((mkfs.name, mkfs.elapsed, mkfs.program), (lifecycle::MKFS, Nanos(5_000), None));
    assert_eq!(mounted.space().inodes, Some(65536));
    let moved = DeviceCounters { read: Bytes(8 * 512), written: Bytes(16 * 512) };
    assert_eq!(mounted.counters(), Some(moved));
    assert_eq!(mounted.drop_caches().unwrap(), None);
    let finish = mounted.finish(true).unwrap();
    assert_eq!(finish.damage.as_deref(), Some("e2fsck exit 4: Pass 1; Inode 12 is bad"));
    let fsck = &finish.lifecycle[3];
    assert_eq!((fsck.name, fsck.elapsed), (lifecycle::FSCK, Nanos(7_000)));
    assert!(finish.lifecycle.iter().all(|step| step.activity.is_some()));
    assert_eq!(rig.close(), []);
    let done = host.done().join("\n").replace(&root.display().to_string(), "ROOT");
    expect![[r#"
        mkdir ROOT/state/fslab-simulated
        mkdir ROOT/images
        create image ROOT/images/fslab-simulated-0.img
        renew 32MiB preallocated ROOT/images/fslab-simulated-0.img
        attach ROOT/images/fslab-simulated-0.img to /dev/loop0
        write /sys/class/block/loop0/queue/discard_max_bytes = 0
        write /sys/class/block/loop0/queue/scheduler = bfq
        renew 32MiB preallocated ROOT/images/fslab-simulated-0.img
        flush /dev/loop0
        mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -L fslab /dev/loop0
        flush /dev/loop0
        mount -t ext4 -o noatime /dev/loop0 ROOT/state/fslab-simulated
        syncfs ROOT/state/fslab-simulated
        umount ROOT/state/fslab-simulated
        flush /dev/loop0
        write /proc/sys/vm/drop_caches = 3
        mount -t ext4 -o noatime /dev/loop0 ROOT/state/fslab-simulated
        umount ROOT/state/fslab-simulated
        e2fsck -n -f /dev/loop0
        write /sys/class/block/loop0/queue/scheduler = none
        detach /dev/loop0
        remove loop 0
        remove ROOT/images/fslab-simulated-0.img
        rmdir ROOT/images
        rmdir ROOT/state/fslab-simulated"#]]
    .assert_eq(&done);
    assert_eq!(fs::read_dir(root.join("state/journal")).unwrap().count(), 0);
}

#[test]
fn an_unexpected_filesystem_type_is_rejected_and_removed() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let fake = FakeHost::new(&root).magic("ext4", 0x1234).program("mkfs.ext4", []);
    let host = Arc::new(fake);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(32), 1), options(&root, "magic")).unwrap();
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let error =
        rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap_err();
    assert!(matches!(error, RigError::Magic { wanted: 0xef53, found: 0x1234, .. }), "{error}");
    assert_eq!(host.mounts().unwrap(), []);
}

#[test]
fn missing_root_and_invalid_ids_are_rejected() {
    let temp = tempfile::tempdir().unwrap();
    let host = || Arc::new(FakeHost::new(temp.path()).unprivileged());
    let storage = image(Bytes::mib(32), 1);
    let error = Rig::open(host(), &storage, options(temp.path(), "user")).unwrap_err();
    assert!(matches!(error, RigError::NotRoot { .. }), "{error}");
    let error = Rig::open(host(), &storage, options(temp.path(), "../up")).unwrap_err();
    assert!(matches!(error, RigError::RunId { .. }), "{error}");
    assert!(!temp.path().join("state").exists());
}

#[test]
fn a_failed_unmount_keeps_the_storage_occupied() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let fake = FakeHost::new(&root).magic("ext4", 0xef53).program("mkfs.ext4", []);
    let host = Arc::new(fake);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(32), 1), options(&root, "not-undone")).unwrap();
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let instance = || rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4")));
    let mounted = instance().unwrap();
    host.keep_busy(mounted.directory(), 120);
    let error = mounted.finish(true).unwrap_err();
    assert!(matches!(error, RigError::Unmount { .. }), "{error}");
    assert!(matches!(instance().unwrap_err(), RigError::Busy));
    assert_eq!(rig.close(), []);
    assert_eq!(host.mounts().unwrap(), []);
}

/// Simulated host with a working ext4, and a rig on it.
fn simulated(
    root: &Path,
    run_id: &str,
    change: impl FnOnce(FakeHost) -> FakeHost,
) -> (Arc<FakeHost>, Rig) {
    let fake = FakeHost::new(root).magic("ext4", 0xef53).program("mkfs.ext4", []);
    let host = Arc::new(change(fake));
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(32), 1), options(root, run_id)).unwrap();
    (host, rig)
}

mod commands;
mod devices;
mod faults;
mod full;
mod layers;
mod levels;
mod setup;
mod tuned;

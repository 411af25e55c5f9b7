use std::{fs, os::unix::fs::MetadataExt as _};

use expect_test::expect;
use model::{Allocation, FilesystemLevel, Fullness, Place, Storage};

use super::*;
use crate::{
    Catalogue, FakeHost, RealHost, Rig, RigOptions,
    device::{Backing, name_of},
    guard::Refusal,
    host::Output,
    undo::{CleanReport, clean},
};

/// A place for images on a disk filesystem, since tmpfs has no direct I/O.
fn place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("fslab-test-").tempdir_in("/var/tmp").unwrap()
}

fn options(folder: &Path, run_id: &str) -> RigOptions {
    RigOptions {
        state_directory: Some(folder.join("state")),
        run_id: run_id.into(),
        destroy: Vec::new(),
        store_file: "/dev/shm/run.fslab".into(),
        default_image_directory: folder.join("images"),
        interrupt: Arc::default(),
    }
}

fn image(size: Bytes, count: u32) -> Storage {
    let place =
        Place::Image { size, count, directory: None, file: None, allocation: Allocation::Full };
    Storage { place, memory: None, elsewhere: None }
}

fn directory(path: &Path) -> Storage {
    Storage {
        place: Place::Directory { path: path.display().to_string() },
        memory: None,
        elsewhere: None,
    }
}

/// Opens a rig on images, or tells why this machine cannot.
fn open(folder: &Path, run_id: &str, storage: &Storage) -> Option<Rig> {
    if !RealHost.is_root() || !Path::new("/dev/loop-control").exists() {
        skipped("needs root and loop devices");
        return None;
    }
    Some(Rig::open(Arc::new(RealHost), storage, options(folder, run_id)).unwrap())
}

#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Nothing of a folder is attached, mounted or journaled, and only the state folder is in it.
fn assert_nothing_left(folder: &Path) {
    let text = folder.display().to_string();
    for mount in RealHost.mounts().unwrap() {
        assert!(!mount.target.starts_with(folder), "{mount:?}");
    }
    for device in fs::read_dir("/sys/block").unwrap() {
        let backing = device.unwrap().path().join("loop/backing_file");
        let backing = fs::read_to_string(backing).unwrap_or_default();
        assert!(!backing.starts_with(&text), "{backing}");
    }
    let left = |folder: &Path| match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.unwrap().file_name()).collect(),
        Err(_) => Vec::new(),
    };
    assert_eq!(left(&folder.join("state")), ["journal"]);
    assert_eq!(left(&folder.join("state/journal")), [""; 0]);
    assert_eq!(left(&folder.join("images")), [""; 0]);
}

/// Makes, fills, cools, checks and removes one filesystem on images.
fn life(name: &str, size: Bytes, count: u32) {
    let folder = place();
    let run_id = format!("life-{name}-{count}");
    let Some(rig) = open(folder.path(), &run_id, &image(size, count)) else { return };
    let catalogue = Catalogue::embedded();
    let filesystem = catalogue.get(name).unwrap();
    if let crate::Availability::Missing { reason, .. } =
        catalogue.availability(filesystem, &RealHost)
    {
        return skipped(&reason);
    }
    let level = FilesystemLevel { mount: "noatime".into(), ..FilesystemLevel::plain(name) };
    for _ in 0..2 {
        let mut mounted = rig.instance(&Wanted::plain(filesystem, &level)).unwrap();
        assert_eq!(mounted.warnings(), []);
        assert!(mounted.options().contains("noatime"), "{}", mounted.options());
        assert_eq!(mounted.space().total, Bytes(size.0 * u64::from(count)));
        assert!((1..size.0 * u64::from(count)).contains(&mounted.space().usable.0));
        assert!(matches!(rig.instance(&Wanted::plain(filesystem, &level)), Err(RigError::Busy)));

        let before = mounted.counters().unwrap();
        let file = mounted.directory().join("file");
        fs::write(&file, vec![7; 8 << 20]).unwrap();
        assert_eq!(RealHost.resident(&file).unwrap(), Bytes::mib(8));
        assert_eq!(mounted.make_cold().unwrap(), None);
        assert!(mounted.counters().unwrap().since(before).written >= Bytes::mib(8));
        assert_eq!(RealHost.resident(&file).unwrap(), Bytes(0));
        let before = mounted.counters().unwrap();
        assert_eq!(fs::read(&file).unwrap(), vec![7; 8 << 20]);
        assert!(mounted.counters().unwrap().since(before).read >= Bytes::mib(8));
        assert_eq!(mounted.settle(Nanos(20_000_000_000)).unwrap(), None);

        let names: Vec<_> = mounted.lifecycle().iter().map(|step| step.name).collect();
        assert_eq!(names, [lifecycle::MKFS, lifecycle::MOUNT]);
        let program = mounted.lifecycle()[0].program.unwrap();
        assert!(program.user + program.system > Nanos(0));
        assert!(mounted.environment().get("filesystem.features").is_some_and(|f| f.len() > 20));
        let done: Vec<_> = mounted.take_actions().into_iter().map(|action| action.what).collect();
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
            assert!(step.evidence.as_ref().unwrap().window >= step.elapsed, "{step:?}");
        }
    }
    assert_eq!(rig.close(), []);
    assert_nothing_left(folder.path());
}

#[test]
fn ext4_lives_and_leaves_nothing() {
    life("ext4", Bytes::mib(64), 1);
}

#[test]
fn xfs_lives_and_leaves_nothing() {
    life("xfs", Bytes::mib(320), 1);
}

#[test]
fn btrfs_lives_and_leaves_nothing() {
    life("btrfs", Bytes::mib(128), 1);
}

#[test]
fn btrfs_spans_two_images() {
    life("btrfs", Bytes::mib(128), 2);
}

#[test]
fn an_image_on_a_loop_device_is_told_and_reserved() {
    let folder = place();
    let Some(rig) = open(folder.path(), "told", &image(Bytes::mib(32), 1)) else { return };
    let told = rig.warnings();
    assert!(
        matches!(&told[..], [Warning::Backing { what }] if what.contains("direct I/O")),
        "{told:?}"
    );
    let image = folder.path().join("images/fslab-told-0.img");
    assert!(fs::metadata(&image).unwrap().blocks() * 512 >= 32 << 20);
    let environment = rig.environment();
    assert!(environment.get("kernel.release").is_some() && environment.get("cpu.count").is_some());
    assert_eq!(environment.get("backing.fstype").map(str::is_empty), Some(false));
    let Backing::Images(images) = &rig.backing else { panic!("images were asked for") };
    let name = name_of(&images[0].device());
    let fact = |fact: &str| environment.get(&format!("device.{name}.{fact}")).map(str::to_owned);
    assert_eq!(fact("size_bytes").as_deref(), Some("33554432"));
    assert_eq!(fact("queue.discard_max_bytes").as_deref(), Some("0"));
    drop(rig);
    assert_nothing_left(folder.path());
}

#[test]
fn an_image_of_the_users_name_is_kept_and_then_protected() {
    let folder = place();
    let place = Place::Image {
        size: Bytes::mib(32),
        count: 1,
        directory: Some(folder.path().display().to_string()),
        file: Some("mine.img".into()),
        allocation: Allocation::Sparse,
    };
    let storage = Storage { place, memory: None, elsewhere: None };
    let Some(rig) = open(folder.path(), "kept", &storage) else { return };
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4")))
        .unwrap()
        .finish(true)
        .unwrap();
    drop(rig);
    assert_nothing_left(folder.path());
    let image = folder.path().join("mine.img");
    assert!(fs::metadata(&image).unwrap().blocks() * 512 < 16 << 20, "not sparse");

    let again = || options(folder.path(), "again");
    let error = Rig::open(Arc::new(RealHost), &storage, again()).unwrap_err();
    assert!(matches!(error, RigError::Refused(Refusal::ImageOccupied { .. })), "{error}");
    let destroy = vec![image.display().to_string()];
    let named = RigOptions { destroy, ..again() };
    let rig = Rig::open(Arc::new(RealHost), &storage, named).unwrap();
    rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
    assert_eq!(rig.close(), []);
    assert_nothing_left(folder.path());
    assert!(image.exists());
}

#[test]
fn a_loop_device_that_was_given_another_file_is_spared() {
    let folder = place();
    let Some(rig) = open(folder.path(), "taken", &image(Bytes::mib(32), 1)) else { return };
    let Backing::Images(images) = &rig.backing else { panic!("images were asked for") };
    let (device, identity) = (images[0].device(), images[0].identity);
    RealHost.detach_loop(&device, identity).unwrap();
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let instance = || rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4")));
    assert!(matches!(instance().unwrap_err(), RigError::Detached { .. }));
    let other = folder.path().join("other");
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
    assert_nothing_left(folder.path());
}

#[test]
fn a_named_image_outside_the_folder_of_images_must_fit_where_it_lies() {
    if !RealHost.is_root() {
        return skipped("needs root");
    }
    let folder = place();
    let small = folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let request = MountRequest {
        source: "none".into(),
        target: small.clone(),
        fstype: "tmpfs".into(),
        options: "size=1m".into(),
    };
    RealHost.mount(&request).unwrap();
    let place = Place::Image {
        size: Bytes::mib(32),
        count: 1,
        directory: Some(folder.path().display().to_string()),
        file: Some(small.join("mine.img").display().to_string()),
        allocation: Allocation::Sparse,
    };
    let storage = Storage { place, memory: None, elsewhere: None };
    let error = Rig::open(Arc::new(RealHost), &storage, options(folder.path(), "far"));
    RealHost.unmount(&small).unwrap();
    let error = error.unwrap_err();
    assert!(matches!(error, RigError::Refused(Refusal::Space { .. })), "{error}");
    assert_nothing_left(folder.path());
}

#[test]
fn a_block_device_is_emptied_for_every_instance() {
    let folder = place();
    if !RealHost.is_root() || !Path::new("/dev/loop-control").exists() {
        return skipped("needs root and loop devices");
    }
    let image = folder.path().join("device");
    let identity = RealHost.create_image(&image).unwrap();
    RealHost.renew_image(&image, identity, Bytes::mib(32), Allocation::Sparse).unwrap();
    let attached = RealHost.attach_loop(&image, identity).unwrap();
    let paths = vec![attached.path.display().to_string()];
    let storage =
        Storage { place: Place::Devices { paths: paths.clone() }, memory: None, elsewhere: None };
    let rig = Rig::open(Arc::new(RealHost), &storage, options(folder.path(), "devices")).unwrap();
    assert!(matches!(&rig.warnings()[..], [Warning::Backing { what }] if what.contains("loop")));
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    for _ in 0..2 {
        let mut mounted =
            rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
        assert_eq!(mounted.make_cold().unwrap(), None);
        assert_eq!(mounted.finish(true).unwrap().damage, None);
        let done = rig.take_actions();
        assert!(done.iter().any(|action| action.what.starts_with("discard /dev/loop")));
    }
    assert_eq!(rig.close(), []);
    let twice = vec![paths[0].clone(), paths[0].clone()];
    let storage = Storage { place: Place::Devices { paths: twice }, memory: None, elsewhere: None };
    let named = RigOptions {
        destroy: vec![image.display().to_string()],
        ..options(folder.path(), "twice")
    };
    let error = Rig::open(Arc::new(RealHost), &storage, named).unwrap_err();
    assert!(matches!(error, RigError::Twice { .. }), "{error}");
    let change = crate::undo::Change::Loops { image, identity, made: attached.made };
    crate::undo::revert(&RealHost, &change).unwrap();
    assert_nothing_left(folder.path());
}

#[test]
fn tmpfs_needs_no_device_and_stays_warm() {
    let folder = place();
    let Some(rig) = open(folder.path(), "memory", &image(Bytes::mib(32), 1)) else { return };
    let catalogue = Catalogue::embedded();
    let tmpfs = catalogue.get("tmpfs").unwrap();
    let mut mounted =
        rig.instance(&Wanted::plain(tmpfs, &FilesystemLevel::plain("tmpfs"))).unwrap();
    assert_eq!(mounted.space().total, Bytes::mib(32));
    assert_eq!(mounted.counters(), None);
    assert!(matches!(mounted.make_cold().unwrap(), Some(Warning::CacheKept { .. })));
    drop(mounted);
    drop(rig);
    assert_nothing_left(folder.path());
}

#[test]
fn a_refused_option_says_what_the_kernel_says_and_frees_the_storage() {
    let folder = place();
    let Some(rig) = open(folder.path(), "refused", &image(Bytes::mib(32), 1)) else { return };
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let level = FilesystemLevel { mount: "nosuchopt".into(), ..FilesystemLevel::plain("ext4") };
    let error = rig.instance(&Wanted::plain(ext4, &level)).unwrap_err();
    let RigError::Mount { source, .. } = &error else { panic!("{error}") };
    assert!(source.words.contains("nosuchopt"), "{source}");
    let level =
        FilesystemLevel { mkfs: vec!["--nonsense".into()], ..FilesystemLevel::plain("ext4") };
    let error = rig.instance(&Wanted::plain(ext4, &level)).unwrap_err();
    assert!(matches!(error, RigError::Mkfs { .. }), "{error}");
    let xfs = catalogue.get("xfs").unwrap();
    let error = rig.instance(&Wanted::plain(xfs, &FilesystemLevel::plain("xfs"))).unwrap_err();
    assert!(error.to_string().starts_with("xfs needs at least 300MiB, "), "{error}");
    rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
    drop(rig);
    assert_nothing_left(folder.path());
}

#[test]
fn what_a_dead_run_left_is_cleaned_and_a_live_run_is_left_alone() {
    let folder = place();
    let Some(rig) = open(folder.path(), "dead", &image(Bytes::mib(32), 1)) else { return };
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let mounted = rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
    let state = folder.path().join("state");
    let report = clean(&RealHost, &state).unwrap();
    assert_eq!(report, CleanReport { live: vec!["dead".into()], ..CleanReport::default() });
    // Dead to the world: the lock is given back, and nothing is undone.
    mounted.shared.bench().abandon();
    let report = clean(&RealHost, &state).unwrap();
    assert_eq!((report.live, report.stuck), (vec![], vec![]));
    assert_eq!(report.undone.len(), 5, "{:?}", report.undone);
    assert_nothing_left(folder.path());
}

#[test]
fn a_directory_needs_no_root_and_is_removed() {
    let folder = place();
    let rig = Rig::open(
        Arc::new(RealHost),
        &directory(folder.path()),
        options(folder.path(), "directory"),
    )
    .unwrap();
    let catalogue = Catalogue::embedded();
    let any = catalogue.get("directory").unwrap();
    let ext4 = catalogue.get("ext4").unwrap();
    let error = rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap_err();
    assert!(matches!(error, RigError::Storage { .. }), "{error}");
    let mut mounted =
        rig.instance(&Wanted::plain(any, &FilesystemLevel::plain("directory"))).unwrap();
    assert_eq!(fs::read_dir(mounted.directory()).unwrap().count(), 0);
    fs::create_dir(mounted.directory().join("sub")).unwrap();
    let file = mounted.directory().join("sub/file");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let kept = mounted.make_cold().unwrap();
    assert_eq!(kept.is_none(), RealHost.is_root(), "names and inodes stay without root: {kept:?}");
    assert_eq!(RealHost.resident(&file).unwrap(), Bytes(0));
    let finish = mounted.finish(true).unwrap();
    assert_eq!(finish, Finish::default());
    assert!(!folder.path().join("fslab-directory").exists());
    assert_eq!(rig.close(), []);
    assert_nothing_left(folder.path());
}

#[test]
fn the_store_may_not_lie_in_the_directory_under_test() {
    let folder = place();
    let mut options = options(folder.path(), "store");
    options.store_file = folder.path().join("run.fslab");
    let error = Rig::open(Arc::new(RealHost), &directory(folder.path()), options).unwrap_err();
    assert!(matches!(error, RigError::Refused(Refusal::StoreOnTarget { .. })), "{error}");
    assert_nothing_left(folder.path());
}

/// The whole life of an instance on a machine of paper: every change, in order, and damage told.
#[test]
fn every_change_of_a_trial_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let said = |status, stderr: &str, ns| Output {
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
        .program("mkfs.ext4", [said(0, "", 5_000)])
        .program("e2fsck", [said(4, "Pass 1\nInode 12 is bad\n", 7_000)]);
    let host = Arc::new(fake);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(32), 1), options(&root, "paper")).unwrap();
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let level = FilesystemLevel { mount: "noatime".into(), ..FilesystemLevel::plain("ext4") };
    let mut mounted =
        rig.instance(&Wanted { scheduler: Some("bfq"), ..Wanted::plain(ext4, &level) }).unwrap();
    let mkfs = &mounted.lifecycle()[0];
    assert_eq!((mkfs.name, mkfs.elapsed, mkfs.program), (lifecycle::MKFS, Nanos(5_000), None));
    assert_eq!(mounted.space().inodes, Some(65536));
    let moved = DeviceCounters { read: Bytes(8 * 512), written: Bytes(16 * 512) };
    assert_eq!(mounted.counters(), Some(moved));
    assert_eq!(mounted.make_cold().unwrap(), None);
    let finish = mounted.finish(true).unwrap();
    assert_eq!(finish.damage.as_deref(), Some("e2fsck exit 4: Pass 1; Inode 12 is bad"));
    let fsck = &finish.lifecycle[3];
    assert_eq!((fsck.name, fsck.elapsed), (lifecycle::FSCK, Nanos(7_000)));
    assert!(finish.lifecycle.iter().all(|step| step.evidence.is_some()));
    assert_eq!(rig.close(), []);
    let done = host.done().join("\n").replace(&root.display().to_string(), "ROOT");
    expect![[r#"
        mkdir ROOT/state/fslab-paper
        mkdir ROOT/images
        create image ROOT/images/fslab-paper-0.img
        renew 32MiB full ROOT/images/fslab-paper-0.img
        attach ROOT/images/fslab-paper-0.img to /dev/loop0
        write /sys/class/block/loop0/queue/discard_max_bytes = 0
        write /sys/class/block/loop0/queue/scheduler = bfq
        renew 32MiB full ROOT/images/fslab-paper-0.img
        flush /dev/loop0
        mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -L fslab /dev/loop0
        flush /dev/loop0
        mount -t ext4 -o noatime /dev/loop0 ROOT/state/fslab-paper
        syncfs ROOT/state/fslab-paper
        umount ROOT/state/fslab-paper
        flush /dev/loop0
        write /proc/sys/vm/drop_caches = 3
        mount -t ext4 -o noatime /dev/loop0 ROOT/state/fslab-paper
        umount ROOT/state/fslab-paper
        e2fsck -n -f /dev/loop0
        write /sys/class/block/loop0/queue/scheduler = none
        detach /dev/loop0
        remove loop 0
        remove ROOT/images/fslab-paper-0.img
        rmdir ROOT/images
        rmdir ROOT/state/fslab-paper"#]]
    .assert_eq(&done);
    assert_eq!(fs::read_dir(root.join("state/journal")).unwrap().count(), 0);
}

#[test]
fn another_filesystem_than_asked_for_is_refused_and_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let fake = FakeHost::new(&root).magic("ext4", 0x1234).program("mkfs.ext4", []);
    let host = Arc::new(fake);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(32), 1), options(&root, "magic")).unwrap();
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let error = rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap_err();
    assert!(matches!(error, RigError::Magic { wanted: 0xef53, found: 0x1234, .. }), "{error}");
    assert_eq!(host.mounts().unwrap(), []);
}

#[test]
fn what_needs_root_says_so_and_what_is_no_id_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let host = || Arc::new(FakeHost::new(folder.path()).unprivileged());
    let storage = image(Bytes::mib(32), 1);
    let error = Rig::open(host(), &storage, options(folder.path(), "user")).unwrap_err();
    assert!(matches!(error, RigError::NotRoot { .. }), "{error}");
    let error = Rig::open(host(), &storage, options(folder.path(), "../up")).unwrap_err();
    assert!(matches!(error, RigError::RunId { .. }), "{error}");
    assert!(!folder.path().join("state").exists());
}

#[test]
fn what_does_not_come_off_keeps_the_storage() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let fake = FakeHost::new(&root).magic("ext4", 0xef53).program("mkfs.ext4", []);
    let host = Arc::new(fake);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(32), 1), options(&root, "stuck")).unwrap();
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let instance = || rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4")));
    let mounted = instance().unwrap();
    host.keep_busy(mounted.directory(), 120);
    let error = mounted.finish(true).unwrap_err();
    assert!(matches!(error, RigError::Unmount { .. }), "{error}");
    assert!(matches!(instance().unwrap_err(), RigError::Busy));
    assert_eq!(rig.close(), []);
    assert_eq!(host.mounts().unwrap(), []);
}

/// A machine of paper with an ext4 that answers, and a rig on it.
fn paper(
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

mod devices;
mod faults;
mod full;
mod layers;
mod setup;
mod tuned;

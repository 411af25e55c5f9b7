//! Filling up, the space that files take, and the evidence of the steps.

use super::*;

#[test]
fn filling_up_comes_before_the_mount_that_is_timed() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let (host, rig) = paper(&root, "full", |host| host);
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    host.done();
    let mounted = rig
        .instance(&Wanted {
            fullness: Fullness(50),
            ..Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))
        })
        .unwrap();
    // What the fake offers: 900 MiB.
    let Space { usable, left, .. } = mounted.space();
    assert_eq!(usable, Bytes::mib(900));
    assert!((Bytes::mib(448)..Bytes::mib(452)).contains(&left), "{left}");
    assert_eq!(mounted.environment().get("fill.reached_percent"), Some("50.0"));
    let of_reading = |warning: &&Warning| matches!(warning, Warning::ReadBack { setting, .. } if setting == "full");
    assert_eq!(mounted.warnings().iter().find(of_reading), None);
    let names: Vec<_> = mounted.lifecycle().iter().map(|step| step.name).collect();
    assert_eq!(names, [lifecycle::MKFS, lifecycle::MOUNT]);
    let done = host.done().join("\n").replace(&root.display().to_string(), "ROOT");
    expect![[r#"
        renew 32MiB full ROOT/images/fslab-full-0.img
        flush /dev/loop0
        mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -L fslab /dev/loop0
        flush /dev/loop0
        mount -t ext4 /dev/loop0 ROOT/state/fslab-full
        make 256 files in ROOT/state/fslab-full/fslab-fill/00000
        syncfs ROOT/state/fslab-full
        make 256 files in ROOT/state/fslab-full/fslab-fill/00001
        syncfs ROOT/state/fslab-full
        make 147 files in ROOT/state/fslab-full/fslab-fill/00002
        syncfs ROOT/state/fslab-full
        make 7 files in ROOT/state/fslab-full/fslab-fill/00003
        syncfs ROOT/state/fslab-full
        umount ROOT/state/fslab-full
        flush /dev/loop0
        mount -t ext4 /dev/loop0 ROOT/state/fslab-full"#]]
    .assert_eq(&done);
}

#[test]
fn a_filesystem_in_memory_is_filled_and_stays_mounted() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let (host, rig) = paper(&root, "memory", |host| host.magic("tmpfs", 0x0102_1994));
    let catalogue = Catalogue::embedded();
    let tmpfs = catalogue.get("tmpfs").unwrap();
    let mounted = rig
        .instance(&Wanted {
            fullness: Fullness(10),
            ..Wanted::plain(tmpfs, &FilesystemLevel::plain("tmpfs"))
        })
        .unwrap();
    assert_eq!(mounted.environment().get("fill.reached_percent"), Some("10.0"));
    assert!(!host.done().iter().any(|what| what.starts_with("umount")));
}

#[test]
fn files_that_do_not_fit_end_the_trial_and_say_how_far_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let (host, rig) = paper(&root, "over", |host| host.room(Bytes::mib(500)));
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let error = rig
        .instance(&Wanted {
            fullness: Fullness(90),
            ..Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))
        })
        .unwrap_err();
    let RigError::Fill { reached, source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    let percent: f64 = reached.strip_suffix(" %").unwrap().parse().unwrap();
    assert!((30.0..56.0).contains(&percent), "{error}");
    assert_eq!(host.mounts().unwrap(), []);
    rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
}

/// Half full is half full, as the filesystem itself says, and the workload's files are told apart
/// from those that filled it up.
fn half_full(name: &str, size: Bytes) {
    let folder = place();
    let run_id = format!("half-{name}");
    let Some(rig) = open(folder.path(), &run_id, &image(size, 1)) else { return };
    let catalogue = Catalogue::embedded();
    let filesystem = catalogue.get(name).unwrap();
    if let crate::Availability::Missing { reason, .. } =
        catalogue.availability(filesystem, &RealHost)
    {
        return skipped(&reason);
    }
    let level = FilesystemLevel::plain(name);
    let mut mounted = rig
        .instance(&Wanted { fullness: Fullness(50), ..Wanted::plain(filesystem, &level) })
        .unwrap();
    let reached = mounted.environment().get("fill.reached_percent").unwrap();
    assert!((48.0..52.0).contains(&reached.parse::<f64>().unwrap()), "{reached} %");
    let Space { usable, left, .. } = mounted.space();
    assert!(left < usable && left.0 > usable.0 / 3, "{left} of {usable}");
    let filled = mounted.directory().join("fslab-fill/00000");
    assert!(fs::read_dir(&filled).unwrap().count() > 10);
    let first = filled.join("000");
    assert_eq!(RealHost.resident(&first).unwrap(), Bytes(0), "the caches are empty again");
    assert_known_files(&mut mounted);
    assert_eq!(mounted.settle(Nanos(20_000_000_000)).unwrap(), None);
    assert_eq!(mounted.finish(true).unwrap().damage, None);
    assert_eq!(rig.close(), []);
    assert_nothing_left(folder.path());
}

/// Writes files of known sizes, and finds them in the occupancy.
fn assert_known_files(mounted: &mut Mounted) {
    let nothing = mounted.occupancy().unwrap().unwrap();
    assert_eq!(nothing.data, Bytes(0));
    let sub = mounted.directory().join("sub");
    fs::create_dir(&sub).unwrap();
    for index in 0..4 {
        fs::write(sub.join(index.to_string()), vec![7; (1 << 20) + 1]).unwrap();
    }
    let occupancy = mounted.occupancy().unwrap().unwrap();
    assert_eq!(occupancy.data, Bytes(4 * ((1 << 20) + 1)));
    let (least, most) = (nothing.used + Bytes::mib(4), nothing.used + Bytes::mib(8));
    assert!((least..most).contains(&occupancy.used), "{occupancy:?} after {nothing:?}");
}

#[test]
fn ext4_is_half_full() {
    half_full("ext4", Bytes::mib(64));
}

#[test]
fn xfs_is_half_full() {
    half_full("xfs", Bytes::mib(320));
}

#[test]
fn btrfs_is_half_full() {
    half_full("btrfs", Bytes::mib(256));
}

#[test]
fn what_mkfs_leaves_to_the_kernel_is_on_the_device_when_watching_ends() {
    let folder = place();
    let Some(rig) = open(folder.path(), "mkfs", &image(Bytes::mib(64), 1)) else { return };
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let Backing::Images(images) = &rig.backing else { panic!("images were asked for") };
    let name = name_of(&images[0].device());
    let written = || DeviceStat::read(&RealHost, &name).unwrap().counters.written;
    let before = written();
    let mounted = rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
    let evidence = mounted.lifecycle()[0].evidence.as_ref().unwrap();
    let seen: Bytes = evidence.devices.iter().filter(|d| d.name == name).map(|d| d.written).sum();
    // The journal alone is a mebibyte and more, and mount writes next to nothing.
    assert!(written() - before > Bytes::mib(1), "{} written", written() - before);
    assert!(evidence.devices.is_empty() || seen > Bytes::mib(1), "{seen} seen");
    drop(mounted);
    drop(rig);
    assert_nothing_left(folder.path());
}

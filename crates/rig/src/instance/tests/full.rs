//! Filling, space usage of files, and system activity of the steps.

use super::*;

#[test]
fn filling_precedes_the_timed_mount() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = simulated(&root, "full", |host| host);
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    host.done();
    let mounted = rig
        .instance(&InstanceSpec {
            fill_level: FillLevel(50),
            ..InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))
        })
        .unwrap();
    // Available space of the simulated filesystem: 900 MiB.
    let Space { available, remaining: left, .. } = mounted.space();
    assert_eq!(available, Bytes::mib(900));
    assert!((Bytes::mib(448)..Bytes::mib(452)).contains(&left), "{left}");
    assert_eq!(mounted.environment().get("fill.reached_percent"), Some("50.0"));
    let of_reading = |warning: &&Warning| matches!(warning, Warning::SettingNotApplied { setting, .. } if setting == "full");
    assert_eq!(mounted.warnings().iter().find(of_reading), None);
    let names: Vec<_> = mounted.lifecycle().iter().map(|step| step.name).collect();
    assert_eq!(names, [lifecycle::MKFS, lifecycle::MOUNT]);
    let done = host.done().join("\n").replace(&root.display().to_string(), "ROOT");
    expect![[r#"
        renew 32MiB preallocated ROOT/images/fslab-full-0.img
        flush /dev/loop0
        mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -L fslab /dev/loop0
        flush /dev/loop0
        mount -t ext4 /dev/loop0 ROOT/state/fslab-full
        create 256 files in ROOT/state/fslab-full/fslab-fill/00000
        syncfs ROOT/state/fslab-full
        create 256 files in ROOT/state/fslab-full/fslab-fill/00001
        syncfs ROOT/state/fslab-full
        create 147 files in ROOT/state/fslab-full/fslab-fill/00002
        syncfs ROOT/state/fslab-full
        create 7 files in ROOT/state/fslab-full/fslab-fill/00003
        syncfs ROOT/state/fslab-full
        umount ROOT/state/fslab-full
        flush /dev/loop0
        mount -t ext4 /dev/loop0 ROOT/state/fslab-full"#]]
    .assert_eq(&done);
}

#[test]
fn a_filesystem_in_memory_is_filled_and_stays_mounted() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = simulated(&root, "memory", |host| host.magic("tmpfs", 0x0102_1994));
    let catalog = Catalog::embedded();
    let tmpfs = catalog.get("tmpfs").unwrap();
    let mounted = rig
        .instance(&InstanceSpec {
            fill_level: FillLevel(10),
            ..InstanceSpec::plain(tmpfs, &FilesystemLevel::plain("tmpfs"))
        })
        .unwrap();
    assert_eq!(mounted.environment().get("fill.reached_percent"), Some("10.0"));
    assert!(!host.done().iter().any(|what| what.starts_with("umount")));
}

#[test]
fn files_that_do_not_fit_fail_the_trial_with_the_level_reached() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = simulated(&root, "over", |host| host.with_space(Bytes::mib(500)));
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let error = rig
        .instance(&InstanceSpec {
            fill_level: FillLevel(90),
            ..InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))
        })
        .unwrap_err();
    let RigError::Fill { reached, source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    let percent: f64 = reached.strip_suffix(" %").unwrap().parse().unwrap();
    assert!((30.0..56.0).contains(&percent), "{error}");
    assert_eq!(host.mounts().unwrap(), []);
    rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
}

/// The filesystem reports that it is half full. The space usage contains only the files of the
/// workload, not those of the filling.
fn half_full(name: &str, size: Bytes) {
    if !can_measure(name) {
        return;
    }
    let temp = place();
    let run_id = format!("half-{name}");
    let Some(rig) = open(temp.path(), &run_id, &image(size, 1)) else { return };
    let catalog = Catalog::embedded();
    let filesystem = catalog.get(name).unwrap();
    let level = FilesystemLevel::plain(name);
    let mut mounted = rig
        .instance(&InstanceSpec {
            fill_level: FillLevel(50),
            ..InstanceSpec::plain(filesystem, &level)
        })
        .unwrap();
    let reached = mounted.environment().get("fill.reached_percent").unwrap();
    assert!((48.0..52.0).contains(&reached.parse::<f64>().unwrap()), "{reached} %");
    let Space { available, remaining: left, .. } = mounted.space();
    assert!(left < available && left.0 > available.0 / 3, "{left} of {available}");
    let filled = mounted.directory().join("fslab-fill/00000");
    assert!(fs::read_dir(&filled).unwrap().count() > 10);
    let first = filled.join("000");
    assert_eq!(RealHost.resident(&first).unwrap(), Bytes(0), "the caches are empty again");
    assert_known_files(&mut mounted);
    assert_eq!(mounted.wait_idle(Nanos(20_000_000_000)).unwrap(), None);
    assert_eq!(mounted.finish(true).unwrap().damage, None);
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

/// Writes files of known sizes, and finds them in the space usage.
fn assert_known_files(mounted: &mut MountedFilesystem) {
    let nothing = mounted.space_usage().unwrap().unwrap();
    assert_eq!(nothing.data, Bytes(0));
    let sub = mounted.directory().join("sub");
    fs::create_dir(&sub).unwrap();
    for index in 0..4 {
        fs::write(sub.join(index.to_string()), vec![7; (1 << 20) + 1]).unwrap();
    }
    let space_usage = mounted.space_usage().unwrap().unwrap();
    assert_eq!(space_usage.data, Bytes(4 * ((1 << 20) + 1)));
    let (least, most) = (nothing.used + Bytes::mib(4), nothing.used + Bytes::mib(8));
    assert!((least..most).contains(&space_usage.used), "{space_usage:?} after {nothing:?}");
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
fn data_of_mkfs_is_on_the_device_when_the_monitor_stops() {
    let temp = place();
    let Some(rig) = open(temp.path(), "mkfs", &image(Bytes::mib(64), 1)) else { return };
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let Backing::Images(images) = &rig.base.backing else { panic!("images were asked for") };
    let name = name_of(&images[0].device());
    let written = || DeviceStat::read(&RealHost, &name).unwrap().counters.written;
    let before = written();
    let mounted =
        rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
    let activity = mounted.lifecycle()[0].activity.as_ref().unwrap();
    let seen: Bytes = activity.devices.iter().filter(|d| d.name == name).map(|d| d.written).sum();
    // The journal alone has more than a mebibyte, and a mount writes almost nothing.
    assert!(written() - before > Bytes::mib(1), "{} written", written() - before);
    assert!(activity.devices.is_empty() || seen > Bytes::mib(1), "{seen} seen");
    drop(mounted);
    drop(rig);
    assert_nothing_left(temp.path());
}

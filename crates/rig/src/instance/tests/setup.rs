//! `setup` of a plan: in order on a simulated host, and on the real machine.

use std::os::unix::fs::MetadataExt as _;

use expect_test::expect_file;
use model::{Isolation, SetupStep};

use super::*;
use crate::{Availability, resolve_options};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn populate(files: u64) -> SetupStep {
    SetupStep::Populate { directory: "linux".into(), files }
}

fn unmounted(text: &str) -> SetupStep {
    SetupStep::Unmounted { argv: words(text) }
}

fn mounted(text: &str) -> SetupStep {
    SetupStep::Mounted { argv: words(text) }
}

/// The eleven configurations of a study of 2012, with its options.
fn study() -> Vec<FilesystemLevel> {
    let level = |name: &str, base: &str, mkfs: &str, mount: &str| FilesystemLevel {
        name: name.into(),
        mkfs: words(mkfs),
        mount: mount.into(),
        ..FilesystemLevel::plain(base)
    };
    let snapshot = "btrfs subvolume snapshot {mount} {mount}/@2012_05_22";
    let node = |size: u32| {
        let both = format!("-l {size} -n {size}");
        level(&format!("btrfs nodes of {size}"), "btrfs", &both, "noatime")
    };
    vec![
        level("ext4", "ext4", "", "noatime"),
        FilesystemLevel {
            setup: vec![unmounted("tune2fs -o journal_data_writeback {device}")],
            ..level("ext4 tuned", "ext4", "", "rw,noatime,data=writeback,barrier=0,nobh,commit=60")
        },
        FilesystemLevel {
            setup: vec![
                populate(39_000),
                unmounted("e2fsck -f -p {device}"),
                unmounted("btrfs-convert {device}"),
            ],
            converted_to: Some("btrfs".into()),
            ..level("btrfs converted", "ext4", "", "noatime")
        },
        level("btrfs", "btrfs", "", "noatime"),
        level("xfs", "xfs", "", "noatime"),
        level("xfs tuned", "xfs", "-d agcount=32 -l size=64m", "noatime,logbsize=262144,logbufs=8"),
        FilesystemLevel {
            setup: vec![populate(39_000), mounted(snapshot)],
            ..level("btrfs snapshot", "btrfs", "", "noatime,subvolid=0")
        },
        FilesystemLevel {
            setup: vec![
                populate(39_000),
                mounted(snapshot),
                SetupStep::Remove { directory: "linux".into() },
            ],
            ..level("btrfs snapshot alone", "btrfs", "", "noatime,subvolid=0")
        },
        node(16_384),
        node(32_768),
        node(65_536),
    ]
}

/// Writer of trees that creates a directory with one file per ten files requested.
fn tree(path: &Path, files: u64) -> Result<(), String> {
    let reported = |error: std::io::Error| error.to_string();
    fs::create_dir(path).map_err(reported)?;
    for number in 0..files.div_ceil(10) {
        fs::write(path.join(format!("{number}.c")), vec![b'c'; 100_000]).map_err(reported)?;
    }
    Ok(())
}

#[test]
fn every_configuration_of_the_study_in_order() {
    let catalog = Catalog::embedded();
    let mut text = String::new();
    for (index, level) in study().iter().enumerate() {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        let mut fake = FakeHost::new(&root).magic("ext4", 0xef53);
        for (name, magic) in [("btrfs", 0x9123_683e), ("xfs", 0x5846_5342)] {
            fake = fake.magic(name, magic);
        }
        for name in ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "tune2fs", "e2fsck", "xfs_repair"] {
            fake = fake.program(name, []);
        }
        let took = Output { status: Some(0), elapsed: Nanos(3_000), ..Output::default() };
        let host = Arc::new(fake.program("btrfs-convert", [took]).program("btrfs", []));
        let name = format!("study-{index}");
        let rig = Rig::open(host, &image(Bytes::gib(8), 1), options(&root, &name)).unwrap();
        rig.take_actions();
        let converted_to = level.converted_to.as_deref().map(|name| catalog.get(name).unwrap());
        let wanted = InstanceSpec {
            converted_to,
            populate: &tree,
            ..InstanceSpec::plain(catalog.get(&level.fs_type).unwrap(), level)
        };
        let mut instance = rig.instance(&wanted).unwrap();
        assert_eq!(instance.space_usage().unwrap().unwrap().data, Bytes(0), "{}", level.name);
        text += &format!("{}\n", level.name);
        for action in rig.take_actions() {
            let what = action.description.replace(&root.display().to_string(), "ROOT");
            text += &format!("  {}\n", what.replace(&name, "N"));
        }
        for warning in instance.warnings() {
            if let Warning::OptionRemoved { .. } = warning {
                text += &format!("  ! {}\n", warning.message());
            }
        }
        if let Some(kept) = instance.environment().get("filesystem.options") {
            text += &format!("  = {kept}\n");
        }
        let steps: Vec<_> = instance.lifecycle().iter().map(|step| step.name).collect();
        let setup = (!level.setup.is_empty()).then_some(lifecycle::SETUP);
        let expected = [lifecycle::MKFS].into_iter().chain(setup).chain([lifecycle::MOUNT]);
        assert_eq!(steps, expected.collect::<Vec<_>>(), "{}", level.name);
        if converted_to.is_some() {
            assert_eq!(instance.lifecycle()[1].elapsed, Nanos(3_000), "mounts do not count");
        }
        assert_eq!(instance.finish(true).unwrap().damage, None);
    }
    expect_file!["study.txt"].assert_eq(&text);
}

#[test]
fn a_failed_setup_is_reported_and_undone() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let shown =
        |stderr: &str| Output { status: Some(1), stderr: stderr.into(), ..Output::default() };
    let (host, rig) = simulated(&root, "failing", |fake| {
        fake.program("tune2fs", [shown("bad option")]).program(
            "btrfs-convert",
            ["failed: No space left on device", "block size is too small: 1024 < 4096"].map(shown),
        )
    });
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let fail = |setup: Vec<SetupStep>| {
        let level = FilesystemLevel { setup, ..FilesystemLevel::plain("ext4") };
        let wanted = InstanceSpec { populate: &tree, ..InstanceSpec::plain(ext4, &level) };
        let error = rig.instance(&wanted).unwrap_err();
        assert_eq!(host.mounts().unwrap(), [], "{error}");
        error.to_string().replace(&root.display().to_string(), "ROOT")
    };
    expect!["`tune2fs -O none /dev/loop0`: exit 1: bad option; run the command manually, or change `setup` in the plan"]
        .assert_eq(&fail(vec![populate(10), unmounted("tune2fs -O none {device}")]));
    for hint in ["in the old filesystem", "mkfs_options = [\"-b\", \"4096\"]"] {
        let reported = fail(vec![unmounted("btrfs-convert {device}")]);
        assert!(reported.contains(hint), "{reported}");
    }
    expect!["cannot remove ROOT/state/fslab-failing/nothing with its contents: No such file or directory (os error 2); change `setup` in the plan, or use larger storage"]
        .assert_eq(&fail(vec![SetupStep::Remove { directory: "nothing".into() }]));
    assert!(fail(vec![mounted("no-such-program")]).contains("cannot start no-such-program"));
    // The simulated host keeps files in its mount point that a real unmount hides.
    fs::remove_dir_all(root.join("state/fslab-failing/linux")).unwrap();
    rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
}

#[test]
fn images_are_reattached_on_request() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = simulated(&root, "reattach", |fake| fake);
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = FilesystemLevel::plain("ext4");
    host.done();
    let wanted =
        InstanceSpec { isolation: Isolation::Reattach, ..InstanceSpec::plain(ext4, &level) };
    rig.instance(&wanted).unwrap().finish(false).unwrap();
    let done: Vec<_> = host.done().into_iter().take(3).collect();
    let expected = ["detach /dev/loop0", "remove loop 0", "attach ROOT to /dev/loop0"];
    let image = root.join("images/fslab-reattach-0.img").display().to_string();
    assert_eq!(done, expected.map(|line| line.replace("ROOT", &image)));
    assert_eq!(rig.boot_id(), None);
    assert_eq!(rig.close(), []);

    let elsewhere = directory(&root);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &elsewhere, options(&root, "none")).unwrap();
    let any = catalog.get("directory").unwrap();
    let level = FilesystemLevel::plain("directory");
    for _ in 0..2 {
        let wanted =
            InstanceSpec { isolation: Isolation::Reattach, ..InstanceSpec::plain(any, &level) };
        let error = rig.instance(&wanted).unwrap_err();
        assert!(error.to_string().contains("use remount or reboot"), "{error}");
    }
}

/// Creates a level on the real machine, and passes the instance to `inspect`; fsck must find no
/// damage.
fn real(level: &FilesystemLevel, size: Bytes, inspect: impl Fn(&mut MountedFilesystem)) {
    let temp = place();
    let mut storage = image(size, 1);
    // Larger images use disk space only for written data.
    if let StorageKind::Image { allocation, .. } = &mut storage.kind
        && size > Bytes::gib(1)
    {
        *allocation = Allocation::Sparse;
    }
    let Some(rig) = open(temp.path(), "setup", &storage) else { return };
    let catalog = Catalog::embedded();
    if let Availability::Missing { reason, .. } = catalog.level(level, &RealHost).unwrap() {
        return skipped(&reason);
    }
    let converted_to = level.converted_to.as_deref().map(|name| catalog.get(name).unwrap());
    let base = catalog.get(&level.fs_type).unwrap();
    let wanted = InstanceSpec {
        converted_to,
        isolation: Isolation::Reattach,
        populate: &tree,
        ..InstanceSpec::plain(base, level)
    };
    for _ in 0..2 {
        let mut instance = rig.instance(&wanted).unwrap();
        let other = |warning: &&Warning| !matches!(warning, Warning::OptionRemoved { .. });
        assert_eq!(instance.warnings().iter().find(other), None, "{}", level.name);
        inspect(&mut instance);
        let finish = instance.finish(true).unwrap();
        assert_eq!(finish.damage, None, "{}", level.name);
        let setup = finish.lifecycle.iter().find(|step| step.name == lifecycle::SETUP);
        assert_eq!(setup.is_some(), !level.setup.is_empty());
        assert!(setup.is_none_or(|step| step.elapsed > Nanos(0) && step.activity.is_some()));
    }
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

fn named(name: &str) -> FilesystemLevel {
    let mut level = study().into_iter().find(|level| level.name == name).unwrap();
    for step in &mut level.setup {
        if let SetupStep::Populate { files, .. } = step {
            *files = 200;
        }
    }
    level
}

#[test]
fn effects_of_setup_outside_the_filesystem_remain() {
    let outside = place();
    let file = outside.path().join("file");
    let touch = format!("touch {}", file.display());
    let level = FilesystemLevel { setup: vec![mounted(&touch)], ..named("ext4") };
    real(&level, Bytes::mib(64), |_| assert!(file.exists()));
    assert_eq!(file.exists(), RealHost.is_root() && Path::new("/dev/loop-control").exists());
}

#[test]
fn every_option_of_the_study_is_in_effect_or_reported() {
    let catalog = Catalog::embedded();
    real(&named("ext4 tuned"), Bytes::mib(64), |mounted| {
        // Options that the superblock makes a default are not shown by mount(8).
        let all = mounted.environment().get("mount.options.with_defaults").unwrap();
        let options: Vec<_> = mounted.options().split(',').chain(all.split(',')).collect();
        for option in ["rw", "noatime", "data=writeback", "nobarrier", "commit=60"] {
            assert!(options.contains(&option), "{option} in {options:?}");
        }
        assert!(matches!(mounted.warnings(), [Warning::OptionRemoved { option, .. }]
            if option == "mount option nobh of ext4"));
        let features = mounted.environment().get("filesystem.features").unwrap();
        assert!(features.contains("journal_data_writeback"), "{features}");
    });
    // The log of 64 MiB is in one of the 32 groups, so each group has to be larger than 64 MiB.
    real(&named("xfs tuned"), Bytes::mib(2176), |mounted| {
        let options: Vec<_> = mounted.options().split(',').collect();
        for option in ["noatime", "logbufs=8", "logbsize=256k"] {
            assert!(options.contains(&option), "{option} in {options:?}");
        }
        let features = mounted.environment().get("filesystem.features").unwrap();
        assert!(features.contains("agcount=32"), "{features}");
    });
    for level in study() {
        let base = catalog.get(&level.fs_type).unwrap();
        let answer = resolve_options(&level, base, None, &RealHost);
        let gone = level.mkfs.iter().any(|argument| argument == "-l") && level.fs_type == "btrfs"
            || level.mount.contains("nobh");
        assert_eq!(!answer.removed.is_empty(), gone, "{}", level.name);
    }
}

#[test]
fn an_ext4_with_a_tree_is_converted_to_btrfs() {
    // Below 512 MiB, mke2fs uses blocks of 1 KiB.
    let mkfs = words("-b 4096");
    let level = FilesystemLevel { mkfs, ..named("btrfs converted") };
    real(&level, Bytes::mib(256), |mounted| {
        let environment = mounted.environment();
        assert_eq!(environment.get("mount.fstype"), Some("btrfs"));
        assert!(environment.get("filesystem.features").unwrap().contains("nodesize"));
        assert_eq!(statistics(&RealHost, mounted.directory()).unwrap().magic, 0x9123_683e);
        assert!(mounted.options().contains("noatime"), "{}", mounted.options());
        assert_eq!(fs::read_dir(mounted.directory().join("linux")).unwrap().count(), 20);
        // Earlier files do not belong to the workload.
        fs::write(mounted.directory().join("own"), vec![7; 4096]).unwrap();
        assert_eq!(mounted.space_usage().unwrap().unwrap().data, Bytes::kib(4));
    });
}

#[test]
fn a_snapshot_keeps_removed_files_and_their_space() {
    let available = |level: &FilesystemLevel| {
        let available = std::cell::Cell::new(Bytes(0));
        real(level, Bytes::mib(256), |mounted| {
            available.set(mounted.space().available);
            let there = |name: &str| fs::metadata(mounted.directory().join(name)).is_ok();
            assert_eq!(there("@2012_05_22/linux/0.c"), !level.setup.is_empty());
            assert_eq!(there("linux"), level.setup.len() == 2);
            if !level.setup.is_empty() {
                let options = mounted.options();
                assert!(options.contains("subvolid=5"), "{options}");
            }
        });
        available.get()
    };
    let [empty, both, alone] =
        [named("btrfs"), named("btrfs snapshot"), named("btrfs snapshot alone")]
            .map(|level| available(&level));
    if empty > Bytes(0) {
        for with in [both, alone] {
            assert!(with + Bytes::mib(1) < empty, "{with} of {empty}");
        }
    }
}

#[test]
fn leafsize_sets_the_node_size() {
    for size in [16_384, 32_768, 65_536] {
        let level = named(&format!("btrfs nodes of {size}"));
        real(&level, Bytes::mib(128), |mounted| {
            let features = mounted.environment().get("filesystem.features").unwrap();
            assert!(features.contains(&format!("nodesize {size}")), "{features}");
        });
    }
}

#[test]
fn a_reattached_image_is_allocated_and_offers_no_discard() {
    let level = FilesystemLevel::plain("ext4");
    real(&level, Bytes::mib(32), |mounted| {
        let name = &mounted.counted[0];
        let limit = format!("/sys/class/block/{name}/queue/discard_max_bytes");
        assert_eq!(fs::read_to_string(limit).unwrap().trim(), "0");
        assert!(fs::metadata(&mounted.images[0]).unwrap().blocks() * 512 >= 32 << 20);
    });
}

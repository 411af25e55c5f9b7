//! What a plan does to a filesystem beforehand: in order on a machine of paper, and for real.

use std::os::unix::fs::MetadataExt as _;

use expect_test::expect_file;
use model::{Isolation, SetupStep};

use super::*;
use crate::{Availability, in_force};

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

/// The eleven configurations of a study of 2012, with the options as it gave them.
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
            becomes: Some("btrfs".into()),
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

/// A writer of trees that makes a directory with one file for each ten asked for.
fn tree(path: &Path, files: u64) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    fs::create_dir(path).map_err(told)?;
    for number in 0..files.div_ceil(10) {
        fs::write(path.join(format!("{number}.c")), vec![b'c'; 100_000]).map_err(told)?;
    }
    Ok(())
}

#[test]
fn every_configuration_of_the_study_in_order() {
    let catalogue = Catalogue::embedded();
    let mut text = String::new();
    for (index, level) in study().iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
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
        let becomes = level.becomes.as_deref().map(|name| catalogue.get(name).unwrap());
        let wanted = Wanted {
            becomes,
            populate: &tree,
            ..Wanted::plain(catalogue.get(&level.base).unwrap(), level)
        };
        let mut instance = rig.instance(&wanted).unwrap();
        assert_eq!(instance.occupancy().unwrap().unwrap().data, Bytes(0), "{}", level.name);
        text += &format!("{}\n", level.name);
        for action in rig.take_actions() {
            let what = action.what.replace(&root.display().to_string(), "ROOT");
            text += &format!("  {}\n", what.replace(&name, "N"));
        }
        for warning in instance.warnings() {
            if let Warning::OptionGone { .. } = warning {
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
        if becomes.is_some() {
            assert_eq!(instance.lifecycle()[1].elapsed, Nanos(3_000), "mounts do not count");
        }
        assert_eq!(instance.finish(true).unwrap().damage, None);
    }
    expect_file!["study.txt"].assert_eq(&text);
}

#[test]
fn a_setup_that_fails_is_told_and_undone() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let said =
        |stderr: &str| Output { status: Some(1), stderr: stderr.into(), ..Output::default() };
    let (host, rig) = paper(&root, "failing", |fake| {
        fake.program("tune2fs", [said("bad option")]).program(
            "btrfs-convert",
            ["failed: No space left on device", "block size is too small: 1024 < 4096"].map(said),
        )
    });
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let fail = |setup: Vec<SetupStep>| {
        let level = FilesystemLevel { setup, ..FilesystemLevel::plain("ext4") };
        let wanted = Wanted { populate: &tree, ..Wanted::plain(ext4, &level) };
        let error = rig.instance(&wanted).unwrap_err();
        assert_eq!(host.mounts().unwrap(), [], "{error}");
        error.to_string().replace(&root.display().to_string(), "ROOT")
    };
    expect!["`tune2fs -O none /dev/loop0`: exit 1: bad option; try the command by hand, or change `setup` in the plan"]
        .assert_eq(&fail(vec![populate(10), unmounted("tune2fs -O none {device}")]));
    for cure in ["beside the old filesystem", "mkfs = [\"-b\", \"4096\"]"] {
        let told = fail(vec![unmounted("btrfs-convert {device}")]);
        assert!(told.contains(cure), "{told}");
    }
    expect!["cannot remove ROOT/state/fslab-failing/nothing with all below it: No such file or directory (os error 2); change `setup` in the plan, or make the storage larger"]
        .assert_eq(&fail(vec![SetupStep::Remove { directory: "nothing".into() }]));
    assert!(fail(vec![mounted("no-such-program")]).contains("cannot start no-such-program"));
    // The machine of paper keeps in its mount point what a real one takes away with the mount.
    fs::remove_dir_all(root.join("state/fslab-failing/linux")).unwrap();
    rig.instance(&Wanted::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
}

#[test]
fn images_are_attached_anew_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let (host, rig) = paper(&root, "anew", |fake| fake);
    let catalogue = Catalogue::embedded();
    let ext4 = catalogue.get("ext4").unwrap();
    let level = FilesystemLevel::plain("ext4");
    host.done();
    let wanted = Wanted { isolation: Isolation::Reattach, ..Wanted::plain(ext4, &level) };
    rig.instance(&wanted).unwrap().finish(false).unwrap();
    let done: Vec<_> = host.done().into_iter().take(3).collect();
    let expected = ["detach /dev/loop0", "remove loop 0", "attach ROOT to /dev/loop0"];
    let image = root.join("images/fslab-anew-0.img").display().to_string();
    assert_eq!(done, expected.map(|line| line.replace("ROOT", &image)));
    assert_eq!(rig.boot_id(), None);
    assert_eq!(rig.close(), []);

    let elsewhere = directory(&root);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &elsewhere, options(&root, "none")).unwrap();
    let any = catalogue.get("directory").unwrap();
    let level = FilesystemLevel::plain("directory");
    for _ in 0..2 {
        let wanted = Wanted { isolation: Isolation::Reattach, ..Wanted::plain(any, &level) };
        let error = rig.instance(&wanted).unwrap_err();
        assert!(error.to_string().contains("use isolation remount or reboot"), "{error}");
    }
}

/// Makes a level for real, and hands the instance to `look`; then its check must find no damage.
fn real(level: &FilesystemLevel, size: Bytes, look: impl Fn(&mut Mounted)) {
    let folder = place();
    let mut storage = image(size, 1);
    // What is larger takes no space of the disk but what is written.
    if let Place::Image { allocation, .. } = &mut storage.place
        && size > Bytes::gib(1)
    {
        *allocation = Allocation::Sparse;
    }
    let Some(rig) = open(folder.path(), "setup", &storage) else { return };
    let catalogue = Catalogue::embedded();
    if let Availability::Missing { reason, .. } = catalogue.level(level, &RealHost).unwrap() {
        return skipped(&reason);
    }
    let becomes = level.becomes.as_deref().map(|name| catalogue.get(name).unwrap());
    let base = catalogue.get(&level.base).unwrap();
    let wanted = Wanted {
        becomes,
        isolation: Isolation::Reattach,
        populate: &tree,
        ..Wanted::plain(base, level)
    };
    for _ in 0..2 {
        let mut instance = rig.instance(&wanted).unwrap();
        let other = |warning: &&Warning| !matches!(warning, Warning::OptionGone { .. });
        assert_eq!(instance.warnings().iter().find(other), None, "{}", level.name);
        look(&mut instance);
        let finish = instance.finish(true).unwrap();
        assert_eq!(finish.damage, None, "{}", level.name);
        let setup = finish.lifecycle.iter().find(|step| step.name == lifecycle::SETUP);
        assert_eq!(setup.is_some(), !level.setup.is_empty());
        assert!(setup.is_none_or(|step| step.elapsed > Nanos(0) && step.evidence.is_some()));
    }
    assert_eq!(rig.close(), []);
    assert_nothing_left(folder.path());
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
fn every_option_of_the_study_is_in_force_or_named() {
    let catalogue = Catalogue::embedded();
    real(&named("ext4 tuned"), Bytes::mib(64), |mounted| {
        // What the superblock makes a default is not among the options that mount(8) shows.
        let all = mounted.environment().get("mount.options.with_defaults").unwrap();
        let options: Vec<_> = mounted.options().split(',').chain(all.split(',')).collect();
        for option in ["rw", "noatime", "data=writeback", "nobarrier", "commit=60"] {
            assert!(options.contains(&option), "{option} in {options:?}");
        }
        assert!(matches!(mounted.warnings(), [Warning::OptionGone { option, .. }]
            if option == "mount option nobh of ext4"));
        let features = mounted.environment().get("filesystem.features").unwrap();
        assert!(features.contains("journal_data_writeback"), "{features}");
    });
    // The log lies in one of the 32 groups, each of which has to be larger than its 64 MiB.
    real(&named("xfs tuned"), Bytes::mib(2176), |mounted| {
        let options: Vec<_> = mounted.options().split(',').collect();
        for option in ["noatime", "logbufs=8", "logbsize=256k"] {
            assert!(options.contains(&option), "{option} in {options:?}");
        }
        let features = mounted.environment().get("filesystem.features").unwrap();
        assert!(features.contains("agcount=32"), "{features}");
    });
    for level in study() {
        let base = catalogue.get(&level.base).unwrap();
        let answer = in_force(&level, base, None, &RealHost);
        let gone = level.mkfs.iter().any(|argument| argument == "-l") && level.base == "btrfs"
            || level.mount.contains("nobh");
        assert_eq!(!answer.gone.is_empty(), gone, "{}", level.name);
    }
}

#[test]
fn an_ext4_with_a_tree_becomes_btrfs() {
    // Below 512 MiB mke2fs would take blocks of 1 KiB.
    let mkfs = words("-b 4096");
    let level = FilesystemLevel { mkfs, ..named("btrfs converted") };
    real(&level, Bytes::mib(256), |mounted| {
        let environment = mounted.environment();
        assert_eq!(environment.get("mount.fstype"), Some("btrfs"));
        assert!(environment.get("filesystem.features").unwrap().contains("nodesize"));
        assert_eq!(statistics(&RealHost, mounted.directory()).unwrap().magic, 0x9123_683e);
        assert!(mounted.options().contains("noatime"), "{}", mounted.options());
        assert_eq!(fs::read_dir(mounted.directory().join("linux")).unwrap().count(), 20);
        // What was there before is not the workload's.
        fs::write(mounted.directory().join("own"), vec![7; 4096]).unwrap();
        assert_eq!(mounted.occupancy().unwrap().unwrap().data, Bytes::kib(4));
    });
}

#[test]
fn a_snapshot_keeps_what_is_removed_and_takes_its_space() {
    let usable = |level: &FilesystemLevel| {
        let usable = std::cell::Cell::new(Bytes(0));
        real(level, Bytes::mib(256), |mounted| {
            usable.set(mounted.space().usable);
            let there = |name: &str| fs::metadata(mounted.directory().join(name)).is_ok();
            assert_eq!(there("@2012_05_22/linux/0.c"), !level.setup.is_empty());
            assert_eq!(there("linux"), level.setup.len() == 2);
            if !level.setup.is_empty() {
                let options = mounted.options();
                assert!(options.contains("subvolid=5"), "{options}");
            }
        });
        usable.get()
    };
    let [empty, both, alone] =
        [named("btrfs"), named("btrfs snapshot"), named("btrfs snapshot alone")]
            .map(|level| usable(&level));
    if empty > Bytes(0) {
        for with in [both, alone] {
            assert!(with + Bytes::mib(1) < empty, "{with} of {empty}");
        }
    }
}

#[test]
fn nodes_have_the_size_that_leaves_were_given() {
    for size in [16_384, 32_768, 65_536] {
        let level = named(&format!("btrfs nodes of {size}"));
        real(&level, Bytes::mib(128), |mounted| {
            let features = mounted.environment().get("filesystem.features").unwrap();
            assert!(features.contains(&format!("nodesize {size}")), "{features}");
        });
    }
}

#[test]
fn a_reattached_image_is_reserved_and_offers_no_discard() {
    let level = FilesystemLevel::plain("ext4");
    real(&level, Bytes::mib(32), |mounted| {
        let name = &mounted.counted[0];
        let limit = format!("/sys/class/block/{name}/queue/discard_max_bytes");
        assert_eq!(fs::read_to_string(limit).unwrap().trim(), "0");
        assert!(fs::metadata(&mounted.images[0]).unwrap().blocks() * 512 >= 32 << 20);
    });
}

//! Layers on a simulated host: order of operations, handling of keys, and undo.

use model::{BlockRange, Layer};

use super::*;
use crate::host::Output;

/// Simulated host with md, the device mapper, and a number of images.
fn machine(root: &Path, run_id: &str, images: u32) -> (Arc<FakeHost>, Rig) {
    let mut fake = FakeHost::new(root)
        .file("/proc/misc", "236 device-mapper\n")
        .magic("ext4", 0xef53)
        .program("mkfs.ext4", [])
        .program("e2fsck", [])
        .program("mdadm", [])
        .program("dmsetup", []);
    for image in 0..images {
        fake = fake.file(&format!("/dev/loop{image}"), "");
    }
    let host = Arc::new(fake);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(64), images), options(root, run_id)).unwrap();
    host.done();
    (host, rig)
}

fn md(level: &str) -> Layer {
    Layer::Md { level: level.into(), chunk: Some(Bytes::kib(64)) }
}

fn crypt() -> Layer {
    Layer::Crypt { cipher: "aes-xts-plain64".into(), key_size: 128 }
}

fn level(layers: &[Layer]) -> FilesystemLevel {
    FilesystemLevel { layers: layers.to_vec(), ..FilesystemLevel::plain("ext4") }
}

/// Operations for one instance, and standard input of the programs.
fn life(layers: &[Layer], images: u32) -> (String, String) {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = machine(&root, "paper", images);
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = level(layers);
    let mounted = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap();
    assert_eq!(mounted.space().device_size, Bytes::mib(64 * u64::from(images)));
    let facts = mounted.environment().get("layers").unwrap().split("; ").count();
    assert_eq!(facts, layers.len());
    mounted.finish(false).unwrap();
    // Nothing is left of the layers, so that the next instance finds empty devices.
    let devices = host.list(Path::new("/sys/class/block")).unwrap_or_default();
    assert_eq!(devices, [""; 0]);
    let done = host.done().join("\n").replace(&root.display().to_string(), "ROOT");
    let input = host.inputs().join("\n");
    assert_eq!(rig.close(), []);
    (done, input)
}

#[test]
fn encryption_on_an_array_is_created_and_undone_in_order() {
    let (done, input) = life(&[md("raid0"), crypt()], 2);
    expect![[r#"
        renew 64MiB preallocated ROOT/images/fslab-paper-0.img
        renew 64MiB preallocated ROOT/images/fslab-paper-1.img
        flush /dev/loop0
        flush /dev/loop1
        mdadm --create /dev/md/fslab-paper-0 --run --level=raid0 --raid-devices=2 --metadata=1.2 --uuid=01020304:05060708:090a0b0c:0d0e0f10 --chunk=64 /dev/loop0 /dev/loop1
        dmsetup create fslab-paper-1-crypt-0 --uuid fslab-2122232425262728292a2b2c2d2e2f30
        flush /dev/mapper/fslab-paper-1-crypt-0
        mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -L fslab /dev/mapper/fslab-paper-1-crypt-0
        flush /dev/mapper/fslab-paper-1-crypt-0
        mount -t ext4 /dev/mapper/fslab-paper-1-crypt-0 ROOT/state/fslab-paper
        umount ROOT/state/fslab-paper
        dmsetup info --columns --noheadings --options name,uuid
        dmsetup remove fslab-paper-1-crypt-0
        dmsetup info --columns --noheadings --options name,uuid
        mdadm --detail --export /dev/md120
        mdadm --stop /dev/md120
        mdadm --examine --export /dev/loop0
        mdadm --zero-superblock /dev/loop0
        mdadm --examine --export /dev/loop1
        mdadm --zero-superblock /dev/loop1"#]]
    .assert_eq(&done);
    expect![[
        r#"0 131072 crypt aes-xts-plain64 1112131415161718191a1b1c1d1e1f20 0 /dev/md/fslab-paper-0 0"#
    ]]
    .assert_eq(&input);
}

#[test]
fn a_thin_volume_has_its_metadata_zeroed_and_its_pool_below() {
    let (done, input) = life(&[Layer::Thin { block: Bytes::kib(64) }], 1);
    let commands: Vec<&str> =
        done.lines().filter(|line| line.contains("dmsetup") || line.starts_with("zero")).collect();
    let commands = commands.iter().map(|line| line.split(" --uuid").next().unwrap());
    expect![[r#"
        dmsetup create fslab-paper-0-meta
        dmsetup create fslab-paper-0-data
        zero 4KiB of /dev/mapper/fslab-paper-0-meta
        dmsetup create fslab-paper-0-pool
        dmsetup message fslab-paper-0-pool 0 create_thin 0
        dmsetup create fslab-paper-0-thin
        dmsetup info --columns --noheadings --options name,uuid
        dmsetup remove fslab-paper-0-thin
        dmsetup info --columns --noheadings --options name,uuid
        dmsetup info --columns --noheadings --options name,uuid
        dmsetup remove fslab-paper-0-pool
        dmsetup info --columns --noheadings --options name,uuid
        dmsetup info --columns --noheadings --options name,uuid
        dmsetup remove fslab-paper-0-data
        dmsetup info --columns --noheadings --options name,uuid
        dmsetup info --columns --noheadings --options name,uuid
        dmsetup remove fslab-paper-0-meta
        dmsetup info --columns --noheadings --options name,uuid"#]]
    .assert_eq(&commands.collect::<Vec<_>>().join("\n"));
    expect![[r#"
        0 4096 linear /dev/loop0 0
        0 126976 linear /dev/loop0 4096
        0 126976 thin-pool /dev/mapper/fslab-paper-0-meta /dev/mapper/fslab-paper-0-data 128 0
        0 126976 thin /dev/mapper/fslab-paper-0-pool 0"#]]
    .assert_eq(&input);
}

#[test]
fn cache_metadata_is_at_the_start_of_the_caching_device() {
    let (_, input) =
        life(&[Layer::Cache { mode: "writethrough".into(), block: Bytes::kib(256) }], 2);
    expect![[r#"
        0 16384 linear /dev/loop0 0
        0 114688 linear /dev/loop0 16384
        0 131072 cache /dev/mapper/fslab-paper-0-meta /dev/mapper/fslab-paper-0-fast /dev/loop1 512 1 writethrough default 0"#]]
    .assert_eq(&input);
}

#[test]
fn pool_metadata_is_on_the_first_of_two_devices() {
    let (_, input) = life(&[crypt(), Layer::Thin { block: Bytes::kib(128) }], 2);
    let tables: Vec<&str> = input.lines().filter(|line| !line.contains("crypt aes")).collect();
    expect![[r#"
        0 131072 thin-pool /dev/mapper/fslab-paper-0-crypt-0 /dev/mapper/fslab-paper-0-crypt-1 256 0
        0 131072 thin /dev/mapper/fslab-paper-1-pool 0"#]]
    .assert_eq(&tables.join("\n"));
}

/// The key is passed on standard input only.
#[test]
fn a_key_is_not_recorded() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = machine(&root, "secret", 1);
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = level(&[crypt()]);
    let mounted = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap();
    let input = host.inputs();
    let key = input[0].split(' ').nth(4).unwrap().to_owned();
    assert_eq!(key.len(), 128 / 4, "{input:?}");
    let journal = fs::read_to_string(root.join("state/journal/secret.jsonl")).unwrap();
    assert!(journal.contains("fslab-secret-0-crypt-0"), "{journal}");
    let actions = rig.take_actions();
    let action = actions.iter().find(|action| action.description.contains("crypt")).unwrap();
    assert!(
        action.description.contains("aes-xts-plain64 (key) 0 /dev/loop0"),
        "{}",
        action.description
    );
    let facts = format!("{:?} {:?}", mounted.environment(), rig.environment());
    for text in [&journal, &format!("{actions:?}"), &host.done().join("\n"), &facts] {
        assert!(!text.contains(&key), "{text}");
    }
    mounted.finish(false).unwrap();
    // Each instance has its own key.
    rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap();
    assert!(!host.inputs()[0].contains(&key));
}

#[test]
fn a_key_in_program_output_is_redacted() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    // First random bytes of a simulated host.
    let key: String = (1..=16).map(|byte| format!("{byte:02x}")).collect();
    let stderr = format!("Invalid table: crypt {key}");
    let says = Output { status: Some(1), stderr, ..Output::default() };
    let fake = FakeHost::new(&root).program("dmsetup", [says]).file("/dev/loop0", "");
    let host = Arc::new(fake);
    let shared = Arc::clone(&host) as Arc<dyn Host>;
    let rig = Rig::open(shared, &image(Bytes::mib(64), 1), options(&root, "veil")).unwrap();
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let error = rig.instance(&InstanceSpec::plain(ext4, &level(&[crypt()]))).unwrap_err();
    assert!(matches!(error, RigError::Layer { .. }), "{error}");
    assert!(error.to_string().contains("Invalid table: crypt (key)"), "{error}");
    assert!(!format!("{error:?} {:?}", rig.take_actions()).contains(&key));
}

#[test]
fn layers_of_a_killed_run_are_cleaned() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = machine(&root, "killed", 2);
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = level(&[md("raid1"), crypt()]);
    let mounted = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap();
    mounted.shared.journaled().forget();
    let report = clean(&*host, &root.join("state")).unwrap();
    assert_eq!(report.failed, []);
    let undone = report.undone.join("\n").replace(&root.display().to_string(), "ROOT");
    expect![[r#"
        ext4 on ROOT/state/fslab-killed
        mapped device fslab-killed-1-crypt-0
        array fslab-killed-0
        loop devices of ROOT/images/fslab-killed-1.img
        image file ROOT/images/fslab-killed-1.img
        loop devices of ROOT/images/fslab-killed-0.img
        image file ROOT/images/fslab-killed-0.img
        directory ROOT/images
        directory ROOT/state/fslab-killed"#]]
    .assert_eq(&undone);
    assert_eq!(host.list(Path::new("/sys/class/block")).unwrap(), [""; 0]);
}

#[test]
fn too_small_a_device_fails_and_leaves_no_layers() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = machine(&root, "small", 2);
    let catalog = Catalog::embedded();
    let xfs = catalog.get("xfs").unwrap();
    let layers = vec![md("raid0")];
    let level = FilesystemLevel { layers, ..FilesystemLevel::plain("xfs") };
    let error = rig.instance(&InstanceSpec::plain(xfs, &level)).unwrap_err();
    assert!(error.to_string().contains("xfs requires at least 300MiB"), "{error}");
    assert_eq!(host.list(Path::new("/sys/class/block")).unwrap(), [""; 0]);
    // A pool with blocks larger than the remaining space of the device.
    let layers = vec![Layer::Thin { block: Bytes::mib(64) }];
    let level = FilesystemLevel { devices: Some(1), layers, ..FilesystemLevel::plain("ext4") };
    let ext4 = catalog.get("ext4").unwrap();
    let error = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap_err();
    assert!(error.to_string().contains("are less than one block"), "{error}");
    assert_eq!(host.list(Path::new("/sys/class/block")).unwrap(), [""; 0]);
}

fn flakey() -> Layer {
    let (up, down) = (Nanos(5_000_000_000), Nanos(2_000_000_000));
    Layer::Flakey { fault: "drop_writes".into(), up, down }
}

fn dust(last: u64) -> Layer {
    Layer::Dust { bad: vec![BlockRange { first: 7, last }], block: Bytes::mib(1) }
}

/// Nothing fails before the workload is measured, nor during fsck.
#[test]
fn faults_start_on_request_and_end_between_unmount_and_fsck() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = machine(&root, "faults", 2);
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = level(&[flakey(), Layer::LogWrites, dust(8)]);
    let mut mounted = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap();
    let made = host.done().join("\n");
    assert!(!made.contains("enable") && !made.contains("load"), "{made}");
    mounted.begin_faults().unwrap();
    mounted.begin_faults().unwrap();
    expect![[r#"
        dmsetup load fslab-faults-0-flakey-0
        dmsetup resume --nolockfs fslab-faults-0-flakey-0
        dmsetup load fslab-faults-0-flakey-1
        dmsetup resume --nolockfs fslab-faults-0-flakey-1
        dmsetup message fslab-faults-1-log-writes 0 mark measured
        dmsetup message fslab-faults-2-dust-0 0 enable"#]]
    .assert_eq(&host.done().join("\n"));
    let journal = fs::read_to_string(root.join("state/journal/faults.jsonl")).unwrap();
    assert_eq!(journal.matches("\"change\":\"fault\"").count(), 3, "{journal}");
    let finish = mounted.finish(true).unwrap();
    assert_eq!(finish.facts.get("layers.log-writes.entries"), Some("12"));
    assert_eq!(finish.warnings, []);
    let done = host.done();
    let index = |what: &str| done.iter().position(|line| line.starts_with(what)).unwrap();
    let sound =
        ["dmsetup load", "dmsetup resume", "dmsetup message fslab-faults-2-dust-0 0 disable"];
    for what in sound {
        assert!(
            index("umount") < index(what) && index(what) < index("e2fsck"),
            "{what}: {done:#?}"
        );
    }
    assert!(index("e2fsck") < index("dmsetup remove"), "{done:#?}");
    expect![[r#"
        0 131072 flakey /dev/loop0 0 1 0
        0 131072 flakey /dev/loop1 0 1 0
        0 131072 log-writes /dev/mapper/fslab-faults-0-flakey-0 /dev/mapper/fslab-faults-0-flakey-1
        0 131072 dust /dev/mapper/fslab-faults-1-log-writes 0 1048576
        0 131072 flakey /dev/loop0 0 5 2 1 drop_writes
        0 131072 flakey /dev/loop1 0 5 2 1 drop_writes
        0 131072 flakey /dev/loop1 0 1 0
        0 131072 flakey /dev/loop0 0 1 0"#]]
    .assert_eq(&host.inputs().join("\n").replace(&root.display().to_string(), "ROOT"));
    assert_eq!(rig.close(), []);
}

/// After a failed trial, and after a killed run, the devices are sound for the unmount.
#[test]
fn faults_end_before_the_unmount_of_a_failed_trial() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let (host, rig) = machine(&root, "broken", 1);
    let level = level(&[flakey()]);
    let wanted = InstanceSpec::plain(ext4, &level);
    let ends = |done: Vec<String>| {
        let index = |what: &str| done.iter().position(|line| line.starts_with(what)).unwrap();
        assert!(index("dmsetup load") < index("dmsetup resume"), "{done:#?}");
        assert!(index("dmsetup resume") < index("umount"), "{done:#?}");
        assert!(index("umount") < index("dmsetup remove"), "{done:#?}");
    };
    let begun = || {
        let mut mounted = rig.instance(&wanted).unwrap();
        mounted.begin_faults().unwrap();
        host.done();
        mounted
    };
    drop(begun());
    ends(host.done());
    begun().shared.journaled().forget();
    let report = clean(&*host, &root.join("state")).unwrap();
    assert_eq!(report.failed, []);
    assert_eq!(report.undone[0], "faults of fslab-broken-0-flakey-0");
    ends(host.done());
}

#[test]
fn a_bad_block_beyond_the_device_is_rejected_before_mkfs() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = machine(&root, "beyond", 1);
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let error = rig.instance(&InstanceSpec::plain(ext4, &level(&[dust(64)]))).unwrap_err();
    let why = "/dev/loop0: 7-64 is out of range: the device has 64 blocks of 1MiB";
    assert!(error.to_string().contains(why), "{error}");
    assert!(rig.instance(&InstanceSpec::plain(ext4, &level(&[dust(63)]))).is_ok());
    let input = host.done();
    let bad = |line: &&String| line.contains("addbadblock");
    assert_eq!(input.iter().filter(bad).count(), 63 - 7 + 1, "{input:#?}");
}

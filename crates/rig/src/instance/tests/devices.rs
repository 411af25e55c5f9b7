//! Filesystem levels on some of several devices.

use super::*;
use crate::{host::FailingHost, undo::Change};

/// Loop device of another owner, which a rig claims.
struct Device {
    path: String,
    change: Change,
}

impl Device {
    /// `None` if this machine has no loop devices.
    fn new(temp: &Path) -> Option<Self> {
        if !RealHost.is_root() || !Path::new("/dev/loop-control").exists() {
            skipped("needs root and loop devices");
            return None;
        }
        let image = temp.join("device");
        let identity = RealHost.create_image(&image).unwrap();
        RealHost.renew_image(&image, identity, Bytes::mib(32), Allocation::Sparse).unwrap();
        let attached = RealHost.attach_loop(&image, identity).unwrap();
        let change = Change::Loops { image, identity, made: attached.made };
        Some(Self { path: attached.path.display().to_string(), change })
    }

    fn claimed_by(&self, host: Arc<dyn Host>, options: RigOptions) -> Rig {
        let storage = Storage {
            kind: StorageKind::Devices { paths: vec![self.path.clone()] },
            memory_limit: None,
            external_directory: None,
        };
        Rig::open(host, &storage, options).unwrap()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        crate::undo::revert(&RealHost, &self.change).unwrap();
    }
}

/// Runs a program that must succeed, without the checks for programs that root runs.
#[track_caller]
fn run(words: &[&str]) {
    let status = std::process::Command::new(words[0]).args(&words[1..]).status().unwrap();
    assert!(status.success(), "{words:?}");
}

/// Refusal of an instance of ext4.
#[track_caller]
fn refusal(rig: &Rig) -> Refusal {
    let catalog = Catalog::embedded();
    let (ext4, level) = (catalog.get("ext4").unwrap(), FilesystemLevel::plain("ext4"));
    let error = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap_err();
    let RigError::Refused(refusal) = error else { panic!("{error}") };
    refusal
}

#[test]
fn a_block_device_is_reset_for_every_instance() {
    let temp = place();
    let Some(device) = Device::new(temp.path()) else { return };
    let rig = device.claimed_by(Arc::new(RealHost), options(temp.path(), "devices"));
    assert!(
        matches!(&rig.warnings()[..], [Warning::SharedStorage { storage, .. }] if storage.contains("loop"))
    );
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    for _ in 0..2 {
        let mut mounted =
            rig.instance(&InstanceSpec::plain(ext4, &FilesystemLevel::plain("ext4"))).unwrap();
        assert_eq!(mounted.drop_caches().unwrap(), None);
        assert_eq!(mounted.finish(true).unwrap().damage, None);
        let done = rig.take_actions();
        assert!(done.iter().any(|action| action.description.starts_with("discard /dev/loop")));
    }
    assert_eq!(rig.close(), []);
    let storage = Storage {
        kind: StorageKind::Devices { paths: vec![device.path.clone(), device.path.clone()] },
        memory_limit: None,
        external_directory: None,
    };
    let image = temp.path().join("device").display().to_string();
    let named = RigOptions { overwrite: vec![image], ..options(temp.path(), "twice") };
    let error = Rig::open(Arc::new(RealHost), &storage, named).unwrap_err();
    assert!(matches!(error, RigError::DuplicateDevice { .. }), "{error}");
    drop(device);
    assert_nothing_left(temp.path());
}

#[test]
fn a_device_that_is_used_after_the_claim_is_not_erased() {
    let temp = place();
    let Some(device) = Device::new(temp.path()) else { return };
    let rig = device.claimed_by(Arc::new(RealHost), options(temp.path(), "claimed"));
    // As another program that ignores the lock would.
    let script = "exec 3<>\"$0\" && printf data >&3 && echo ready && read end";
    let mut writer = std::process::Command::new("sh")
        .args(["-c", script, &device.path])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(writer.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
    let refused = refusal(&rig);
    assert!(matches!(refused, Refusal::OpenForWriting { .. }), "{refused:?}");
    drop(writer.stdin.take());
    writer.wait().unwrap();
    run(&["blockdev", "--setro", &device.path]);
    let refused = refusal(&rig);
    assert!(matches!(refused, Refusal::ReadOnly { .. }), "{refused:?}");
    run(&["blockdev", "--setrw", &device.path]);
    let content = fs::read(&device.path).unwrap();
    assert!(content.starts_with(b"data") && content[4..].iter().all(|byte| *byte == 0));
    assert_eq!(rig.close(), []);
    drop(device);
    assert_nothing_left(temp.path());
}

/// The check is repeated between the erasure, which takes long on a large device, and mkfs.
#[test]
fn a_device_that_changes_while_it_is_erased_is_not_formatted() {
    let temp = place();
    let Some(device) = Device::new(temp.path()) else { return };
    let host = Arc::new(FailingHost::new(RealHost));
    let change: fn(&Path) = |device| run(&["blockdev", "--setro", device.to_str().unwrap()]);
    host.erased.set(change).unwrap();
    let rig = device.claimed_by(host, options(temp.path(), "erased"));
    rig.take_actions();
    let refused = refusal(&rig);
    assert!(matches!(refused, Refusal::ReadOnly { .. }), "{refused:?}");
    let done = rig.take_actions();
    assert!(done.iter().any(|action| action.description.starts_with("discard ")), "{done:?}");
    assert!(!done.iter().any(|action| action.description.contains("mkfs")), "{done:?}");
    run(&["blockdev", "--setrw", &device.path]);
    assert_eq!(rig.close(), []);
    drop(device);
    assert_nothing_left(temp.path());
}

/// The program may lock the device itself, as mkfs.ext4(8) does.
#[test]
fn the_lock_of_a_device_is_released_while_a_program_runs() {
    let temp = place();
    let Some(device) = Device::new(temp.path()) else { return };
    let rig = device.claimed_by(Arc::new(RealHost), options(temp.path(), "lock"));
    let lock = ["flock", "--exclusive", "--nonblock", &device.path, "true"].map(str::to_owned);
    let is_free = || RealHost.run(&lock).unwrap().success();
    assert!(!is_free());
    let mount = ["flock", "--exclusive", "--nonblock", "{device}", "mount", "{device}", "{mount}"];
    let mut level = FilesystemLevel::plain("ext4");
    level.commands.mount = mount.map(str::to_owned).to_vec();
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let mounted = rig.instance(&InstanceSpec::plain(ext4, &level)).unwrap();
    assert!(!is_free(), "it is locked again");
    mounted.finish(false).unwrap();
    assert_eq!(rig.close(), []);
    assert!(is_free());
    drop(device);
    assert_nothing_left(temp.path());
}

/// Works on a btrfs on two images; returns the bytes written to each, and two facts.
fn spread(mkfs: &[&str], run_id: &str) -> Option<(Vec<Bytes>, String, String)> {
    if !can_measure("btrfs") {
        return None;
    }
    let temp = place();
    let rig = open(temp.path(), run_id, &image(Bytes::mib(256), 2))?;
    let catalog = Catalog::embedded();
    let btrfs = catalog.get("btrfs").unwrap();
    let mkfs = mkfs.iter().map(ToString::to_string).collect();
    let level = FilesystemLevel { mkfs, ..FilesystemLevel::plain("btrfs") };
    let mut mounted = rig.instance(&InstanceSpec::plain(btrfs, &level)).unwrap();
    let watch = mounted.monitor();
    fs::write(mounted.directory().join("file"), vec![7; 32 << 20]).unwrap();
    mounted.wait_idle(Nanos(20_000_000_000)).unwrap();
    let activity = watch.end();
    let own = activity.devices.iter().filter(|device| device.depth == 0);
    let written: Vec<Bytes> = own.map(|device| device.written).collect();
    let fact = |name: &str| mounted.environment().get(name).unwrap_or("absent").to_owned();
    let facts = (fact("filesystem.data_profile"), fact("filesystem.metadata_profile"));
    assert_eq!(fact("filesystem.devices"), "2");
    assert_eq!(mounted.drop_caches().unwrap(), None);
    assert_eq!(mounted.finish(true).unwrap().damage, None);
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
    Some((written, facts.0, facts.1))
}

#[test]
fn raid0_of_btrfs_writes_half_to_each_device() {
    let argv = ["-d", "raid0", "-m", "raid0"];
    let Some((written, data, metadata)) = spread(&argv, "raid0") else { return };
    assert_eq!((data.as_str(), metadata.as_str()), ("raid0", "raid0"));
    let [one, two] = written[..] else { panic!("{written:?}") };
    for written in [one, two] {
        assert!((Bytes::mib(12)..Bytes::mib(24)).contains(&written), "{written}");
    }
}

#[test]
fn raid1_of_btrfs_writes_all_to_each_device() {
    let argv = ["-d", "raid1", "-m", "raid1"];
    let Some((written, data, metadata)) = spread(&argv, "raid1") else { return };
    assert_eq!((data.as_str(), metadata.as_str()), ("raid1", "raid1"));
    let [one, two] = written[..] else { panic!("{written:?}") };
    assert!(one >= Bytes::mib(32) && two >= Bytes::mib(32), "{one} and {two}");
    assert!(one.0.abs_diff(two.0) < 1 << 20, "{one} and {two}");
}

#[test]
fn single_of_btrfs_is_read_back() {
    let Some((written, data, metadata)) = spread(&["-d", "single", "-m", "raid1"], "single") else {
        return;
    };
    assert_eq!((data.as_str(), metadata.as_str()), ("single", "raid1"));
    assert!(written.iter().copied().sum::<Bytes>() >= Bytes::mib(32), "{written:?}");
}

#[test]
fn raid10_of_btrfs_takes_four_images() {
    if !can_measure("btrfs") {
        return;
    }
    let temp = place();
    let Some(rig) = open(temp.path(), "raid10", &image(Bytes::mib(256), 4)) else { return };
    let catalog = Catalog::embedded();
    let btrfs = catalog.get("btrfs").unwrap();
    let mkfs = ["-d", "raid10", "-m", "raid10"].map(str::to_owned).to_vec();
    let level = FilesystemLevel { mkfs, ..FilesystemLevel::plain("btrfs") };
    let mounted = rig.instance(&InstanceSpec::plain(btrfs, &level)).unwrap();
    assert_eq!(mounted.environment().get("filesystem.data_profile"), Some("raid10"));
    assert_eq!(mounted.environment().get("filesystem.devices"), Some("4"));
    assert_eq!(mounted.finish(true).unwrap().damage, None);
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

#[test]
fn ext4_on_one_of_two_leaves_the_other_alone() {
    let temp = place();
    let Some(rig) = open(temp.path(), "one", &image(Bytes::mib(64), 2)) else { return };
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let all = FilesystemLevel::plain("ext4");
    let error = rig.instance(&InstanceSpec::plain(ext4, &all)).unwrap_err();
    assert!(error.to_string().contains("set `device_count = 1`"), "{error}");
    let three = FilesystemLevel { devices: Some(3), ..all.clone() };
    let error = rig.instance(&InstanceSpec::plain(ext4, &three)).unwrap_err();
    assert!(error.to_string().contains("requires 3 devices, but the storage has 2"), "{error}");

    let other = temp.path().join("images/fslab-one-1.img");
    fs::write(&other, vec![7; 64 << 20]).unwrap();
    rig.take_actions();
    let one = FilesystemLevel { devices: Some(1), ..all };
    let wanted = InstanceSpec { isolation: Isolation::Reattach, ..InstanceSpec::plain(ext4, &one) };
    let mut mounted = rig.instance(&wanted).unwrap();
    assert_eq!(mounted.space().device_size, Bytes::mib(64));
    assert_eq!(mounted.counted.len(), 1);
    fs::write(mounted.directory().join("file"), vec![1; 8 << 20]).unwrap();
    assert_eq!(mounted.drop_caches().unwrap(), None);
    assert_eq!(mounted.finish(true).unwrap().damage, None);
    assert!(fs::read(&other).unwrap().iter().all(|byte| *byte == 7));
    let done = rig.take_actions();
    assert!(done.iter().all(|action| !action.description.contains("one-1.img")), "{done:#?}");
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

/// Creates layers on the real machine, works on them, and removes them, once normally and once
/// after a kill. If kernel or tools lack a feature, asserts that the instance is rejected and
/// nothing is left.
fn stack(run_id: &str, images: u32, layers: Vec<model::Layer>) {
    let temp = place();
    let size = Bytes::mib(128);
    let Some(rig) = open(temp.path(), run_id, &image(size, images)) else { return };
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = FilesystemLevel { layers, ..FilesystemLevel::plain("ext4") };
    let wanted = InstanceSpec::plain(ext4, &level);
    if let crate::Availability::Missing { reason, .. } = catalog.level(&level, &RealHost).unwrap() {
        let error = rig.instance(&wanted).unwrap_err();
        assert!(matches!(error, RigError::Layer { .. }), "{reason}: {error}");
        assert_eq!(rig.close(), []);
        assert_nothing_left(temp.path());
        return skipped(&reason);
    }
    let expected = crate::layers::capacity(&level.layers, &vec![size; images as usize])[0];
    for _ in 0..2 {
        let mut mounted = rig.instance(&wanted).unwrap();
        let [top] = &mounted.counted[..] else { panic!("{:?}", mounted.counted) };
        let sectors = fs::read_to_string(format!("/sys/class/block/{top}/size")).unwrap();
        let found = Bytes(sectors.trim().parse::<u64>().unwrap() * 512);
        // An array reserves some space.
        assert!(found <= expected && found.0 > expected.0 / 10 * 9, "{found} of {expected}");
        let watch = mounted.monitor();
        let file = mounted.directory().join("file");
        fs::write(&file, vec![7; 16 << 20]).unwrap();
        assert_eq!(mounted.drop_caches().unwrap(), None);
        assert_eq!(fs::read(&file).unwrap(), vec![7; 16 << 20]);
        mounted.wait_idle(Nanos(20_000_000_000)).unwrap();
        let activity = watch.end();
        let depths = |depth: u32| activity.devices.iter().filter(move |it| it.depth == depth);
        assert!(
            depths(0).all(|device| device.written >= Bytes::mib(16)),
            "{:#?}",
            activity.devices
        );
        let loops = activity.devices.iter().filter(|it| it.name.starts_with("loop"));
        assert_eq!(loops.count(), images as usize, "{:#?}", activity.devices);
        assert_eq!(mounted.finish(true).unwrap().damage, None);
    }
    let mounted = rig.instance(&wanted).unwrap();
    mounted.shared.journaled().forget();
    let report = clean(&RealHost, &temp.path().join("state")).unwrap();
    assert_eq!(report.failed, []);
    assert_nothing_left(temp.path());
    for name in RealHost.list(Path::new("/sys/class/block")).unwrap() {
        let mapped = fs::read_to_string(format!("/sys/class/block/{name}/dm/name"));
        assert!(!mapped.unwrap_or_default().starts_with(&format!("fslab-{run_id}")), "{name}");
    }
}

fn md(level: &str) -> model::Layer {
    model::Layer::Md { level: level.into(), chunk: Some(Bytes::kib(64)) }
}

fn crypt() -> model::Layer {
    model::Layer::Crypt { cipher: "aes-xts-plain64".into(), key_size: 512 }
}

fn thin() -> model::Layer {
    model::Layer::Thin { block: Bytes::kib(64) }
}

#[test]
fn encryption_on_an_array_leaves_nothing() {
    stack("md-crypt", 2, vec![md("raid0"), crypt()]);
}

#[test]
fn a_mirror_of_encrypted_devices_leaves_nothing() {
    stack("crypt-md", 2, vec![crypt(), model::Layer::Md { level: "raid1".into(), chunk: None }]);
}

#[test]
fn an_array_with_parity_leaves_nothing() {
    stack("parity", 3, vec![md("raid5")]);
}

#[test]
fn a_thin_volume_leaves_nothing() {
    stack("thin", 1, vec![thin()]);
}

#[test]
fn a_thin_volume_on_two_devices_leaves_nothing() {
    stack("thin-two", 2, vec![crypt(), thin()]);
}

#[test]
fn a_cache_leaves_nothing() {
    stack(
        "cache",
        2,
        vec![model::Layer::Cache { mode: "writeback".into(), block: Bytes::kib(32) }],
    );
}

/// A failing device is sound while the filesystem is created, used, and checked, unless its faults
/// are enabled.
#[test]
fn a_flakey_device_leaves_nothing() {
    let up = Nanos(0);
    let fault = "error".to_owned();
    stack("flakey", 1, vec![model::Layer::Flakey { fault, up, down: Nanos(1_000_000_000) }]);
}

#[test]
fn a_device_with_bad_blocks_leaves_nothing() {
    let bad = vec![model::BlockRange { first: 0, last: 127 }];
    stack("dust", 1, vec![model::Layer::Dust { bad, block: Bytes::mib(1) }]);
}

#[test]
fn a_slow_device_leaves_nothing() {
    let (read, write) = (Nanos(1_000_000), Nanos(0));
    stack("delay", 1, vec![model::Layer::Delay { read, write }]);
}

#[test]
fn a_write_log_leaves_nothing() {
    stack("log-writes", 2, vec![model::Layer::LogWrites]);
}

use std::fs;

use model::{Allocation, StorageLevel, Value};

use super::*;
use crate::{FakeHost, RealHost, mount::MountRequest, undo::clean};

fn options(temp: &Path, run_id: &str) -> RigOptions {
    RigOptions {
        state_directory: Some(temp.join("state")),
        run_id: run_id.into(),
        overwrite: Vec::new(),
        store_file: temp.join("store/run.fslab"),
        default_image_directory: temp.join("images"),
        interrupt: Arc::default(),
    }
}

/// Storage in a directory.
fn directory(path: &Path, elsewhere: Option<&Path>) -> Storage {
    Storage {
        kind: StorageKind::Directory { path: path.display().to_string() },
        memory_limit: None,
        external_directory: elsewhere.map(|path| path.display().to_string()),
    }
}

fn mount(host: &FakeHost, fstype: &str, source: &str, target: &str) {
    let (fstype, source, target) = (fstype.into(), source.into(), target.into());
    host.mount(&MountRequest { source, target, fstype, options: String::new() }).unwrap();
}

/// Rig on a simulated host with images on sda1, and with disks sda and sdb.
fn simulated(root: &Path, elsewhere: Option<&str>) -> (Arc<FakeHost>, Rig) {
    let host = FakeHost::new(root)
        .file("/dev/sda1", "")
        .file("/dev/sdb", "")
        .file("/dev/shm/.keep", "")
        .file("/srv/.keep", "")
        .file("/sys/class/block/sdb/size", "8\n")
        .file("/sys/devices/sda/sda1/partition", "1\n")
        .file("/sys/devices/sda/sda2/partition", "2\n")
        .file("/dev/sda2", "")
        .file("/home/.keep", "");
    for name in ["sda1", "sda2"] {
        let link = host.at(&Path::new("/sys/class/block").join(name));
        std::os::unix::fs::symlink(host.at(&Path::new("/sys/devices/sda").join(name)), link)
            .unwrap();
    }
    let at = |path: &str| host.at(Path::new(path)).display().to_string();
    mount(&host, "ext4", &at("/dev/sda1"), &at("/"));
    mount(&host, "tmpfs", "tmpfs", &at("/dev/shm"));
    mount(&host, "ext4", &at("/dev/sdb"), &at("/srv"));
    mount(&host, "ext4", &at("/dev/sda2"), &at("/home"));
    let elsewhere = elsewhere.map(at);
    let host = Arc::new(host);
    let rig = open_on(&host, root, images(None), elsewhere);
    (host, rig)
}

fn open_on(
    host: &Arc<FakeHost>,
    root: &Path,
    kind: StorageKind,
    external_directory: Option<String>,
) -> Rig {
    let storage = Storage { kind, memory_limit: None, external_directory };
    let rig = Rig::open(Arc::clone(host) as Arc<dyn Host>, &storage, options(root, "run")).unwrap();
    host.done();
    rig
}

/// Rig on the same host with images on sda1 and sdb as levels.
fn on_two_disks(root: &Path, elsewhere: Option<&str>) -> (Arc<FakeHost>, Rig) {
    let (host, rig) = simulated(root, None);
    assert_eq!(rig.close(), []);
    for (disk, model, rotational) in [("sda", "Slow", "1\n"), ("sdb", "Fast", "0\n")] {
        let class = host.at(Path::new("/sys/class/block")).join(disk);
        for (file, text) in [("queue/rotational", rotational), ("device/model", model)] {
            let file = class.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }
    let at = |path: &str| host.at(Path::new(path)).display().to_string();
    let level = |name: &str, directory| StorageLevel { name: name.into(), kind: images(directory) };
    let levels = vec![level("hdd", None), level("ssd", Some(at("/srv")))];
    let rig = open_on(&host, root, StorageKind::Levels { levels }, elsewhere.map(at));
    (host, rig)
}

/// Sparse images of 32 MiB in this directory; `None` for the default.
fn images(directory: Option<String>) -> StorageKind {
    StorageKind::Image {
        size: Bytes::mib(32),
        count: 1,
        directory,
        file: None,
        allocation: Allocation::Sparse,
    }
}

fn root() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    (temp, root)
}

#[test]
fn the_external_directory_is_in_memory_and_removed_with_the_rig() {
    let (_temp, root) = root();
    let (host, mut rig) = simulated(&root, None);
    assert_eq!(rig.environment().get("external_directory.fstype"), None);
    let there = rig.external_directory().unwrap();
    assert_eq!(there, root.join("dev/shm/fslab-run-external/data"));
    assert_eq!(rig.external_directory().unwrap(), there);
    assert_eq!(fs::read_dir(&there).unwrap().count(), 0);
    let facts = rig.environment();
    assert_eq!(facts.get("external_directory.fstype"), Some("tmpfs"));
    assert_eq!(facts.get("external_directory.source"), Some("tmpfs"));
    assert_eq!(facts.get("external_directory.shares"), None);
    fs::write(there.join("file"), "x").unwrap();
    assert_eq!(rig.close(), []);
    assert_eq!(host.list(Path::new("/dev/shm")).unwrap(), [".keep"]);
}

#[test]
fn a_named_external_directory_must_not_share_a_disk_with_the_storage() {
    for (place, common) in [("/", "sda"), ("/home", "sda")] {
        let (_temp, root) = root();
        let (_, mut rig) = simulated(&root, Some(place));
        let error = rig.external_directory().unwrap_err();
        let RigError::ExternalDirectory { why, .. } = &error else { panic!("{error}") };
        assert_eq!(*why, format!("it and the storage under test are both on {common}"));
        assert_eq!(rig.environment().get("external_directory.fstype"), None);
    }
    for place in ["/srv", "/dev/shm"] {
        let (_temp, root) = root();
        let (host, mut rig) = simulated(&root, Some(place));
        let there = rig.external_directory().unwrap();
        assert!(there.starts_with(host.at(Path::new(place))), "{}", there.display());
    }
}

#[test]
fn levels_are_described_with_their_disks() {
    let (_temp, root) = root();
    let (host, rig) = on_two_disks(&root, None);
    let image = "image file of 32MiB (sparse) on a loop device";
    let expected = format!(
        "device hdd: {image}, on sda1, model Slow, rotational; device ssd: {image}, on sdb, model Fast, not \
         rotational"
    );
    assert_eq!(rig.describe(), expected);
    let facts = rig.environment();
    assert_eq!(facts.get("level.hdd.backing.device"), Some("sda1"));
    assert_eq!(facts.get("level.ssd.backing.device"), Some("sdb"));
    assert_eq!(facts.get("level.hdd.devices"), Some("loop0"));
    assert_eq!(facts.get("backing.device"), None);
    let differ = |it: &Warning| matches!(it, Warning::DeviceSizesDiffer { .. });
    assert!(!rig.warnings().iter().any(differ), "{:?}", rig.warnings());
    assert_eq!(rig.close(), []);
    assert_eq!(host.list(Path::new("/srv")).unwrap(), [".keep"]);
}

#[test]
fn the_external_directory_is_on_the_disk_of_no_level() {
    for (place, common) in [("/", "sda"), ("/srv", "sdb")] {
        let (_temp, root) = root();
        let (_, mut rig) = on_two_disks(&root, Some(place));
        let error = rig.external_directory().unwrap_err();
        let RigError::ExternalDirectory { why, .. } = &error else { panic!("{error}") };
        assert_eq!(*why, format!("it and the storage under test are both on {common}"));
    }
}

#[test]
fn different_sizes_of_levels_are_a_warning() {
    let (_temp, root) = root();
    let (host, rig) = simulated(&root, None);
    assert_eq!(rig.close(), []);
    let mut large = images(None);
    if let StorageKind::Image { size, .. } = &mut large {
        *size = Bytes::mib(64);
    }
    let level = |name: &str, kind| StorageLevel { name: name.into(), kind };
    let levels = vec![level("a", images(None)), level("b", large)];
    let rig = open_on(&host, &root, StorageKind::Levels { levels }, None);
    let sizes = Warning::DeviceSizesDiffer { sizes: "a 32MiB, b 64MiB".into() };
    assert!(rig.warnings().contains(&sizes), "{:?}", rig.warnings());
}

#[test]
fn instances_name_their_level() {
    let (_temp, root) = root();
    let (_, rig) = on_two_disks(&root, None);
    let settings =
        |name: &str| SystemSettings::from([(SystemSetting::Device, Value::Text(name.to_owned()))]);
    let level = |name: &str| rig.level(&settings(name)).unwrap().level.clone();
    assert_eq!(level("hdd").as_deref(), Some("hdd"));
    assert_eq!(level("ssd").as_deref(), Some("ssd"));
    let error = rig.level(&settings("tape")).unwrap_err().to_string();
    assert!(error.contains("no level `tape`"), "{error}");
    assert!(rig.level(&SystemSettings::new()).is_err(), "a trial without a level");
}

#[test]
fn the_mount_point_is_not_external() {
    let (_temp, root) = root();
    let (_, mut rig) = simulated(&root, Some("/state/fslab-run"));
    let error = rig.external_directory().unwrap_err();
    assert!(error.to_string().contains("is mounted there"), "{error}");
}

#[test]
fn without_tmpfs_the_external_directory_is_next_to_the_journal() {
    let (_temp, root) = root();
    let (host, mut rig) = simulated(&root, None);
    fs::remove_dir_all(host.at(Path::new("/dev/shm"))).unwrap();
    assert!(rig.external_directory().unwrap().starts_with(root.join("state")));
    let facts = rig.environment();
    assert_eq!(facts.get("external_directory.instead_of"), Some("/dev/shm"));
    let shares = facts.get("external_directory.shares");
    assert_eq!(shares, Some("it and the storage under test are both on sda"));
    assert_eq!(rig.close(), []);
    assert_eq!(fs::read_dir(root.join("state")).unwrap().count(), 1, "only the journal directory");
}

#[test]
fn clean_removes_the_external_directory_of_a_killed_run() {
    let (_temp, root) = root();
    let (host, mut rig) = simulated(&root, None);
    fs::write(rig.external_directory().unwrap().join("file"), "x").unwrap();
    rig.base.shared.journaled().forget();
    let report = clean(&*host, &root.join("state")).unwrap();
    assert_eq!(report.failed, []);
    assert_eq!(host.list(Path::new("/dev/shm")).unwrap(), [".keep"]);
}

/// Requires neither root nor a dedicated device: the real machine, with directories.
#[test]
fn a_directory_and_the_external_directory_are_two_filesystems() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let host = || Arc::new(RealHost);
    let options = |temp: &Path, run_id: &str| RigOptions {
        store_file: "/dev/shm/run.fslab".into(),
        ..options(temp, run_id)
    };
    let own = directory(temp.path(), Some(temp.path()));
    let mut rig = Rig::open(host(), &own, options(temp.path(), "own")).unwrap();
    let error = rig.external_directory().unwrap_err();
    assert!(error.to_string().contains("on the filesystem under test"), "{error}");
    drop(rig);
    let there = directory(temp.path(), None);
    let run_id = format!("there-{}", std::process::id());
    let mut rig = Rig::open(host(), &there, options(temp.path(), &run_id)).unwrap();
    let tree = rig.external_directory().unwrap();
    fs::write(tree.join("file"), "x").unwrap();
    assert_eq!(rig.close(), []);
    assert!(!tree.parent().unwrap().exists());
}

#[test]
fn the_memory_limit_read_back_is_a_fact() {
    let (_temp, root) = root();
    let host = FakeHost::new(&root)
        .file("/proc/self/cgroup", "0::/\n")
        .file("/sys/fs/cgroup/cgroup.procs", "4711")
        .file("/sys/fs/cgroup/cgroup.subtree_control", "memory\n");
    mount(&host, "cgroup2", "cgroup2", "/sys/fs/cgroup");
    let storage = Storage { memory_limit: Some(Bytes::mib(64)), ..directory(&root, None) };
    let options = RigOptions { store_file: "/dev/null/run.fslab".into(), ..options(&root, "run") };
    let rig = Rig::open(Arc::new(host), &storage, options).unwrap();
    assert_eq!(rig.warnings().len(), 1, "{:?}", rig.warnings());
    let facts = rig.environment();
    assert_eq!(facts.get("memory.limit_bytes"), Some("67108864"));
    assert_eq!(facts.get("memory.group"), Some("v2"));
}

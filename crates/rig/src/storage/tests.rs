use std::fs;

use super::*;
use crate::{FakeHost, RealHost, mount::MountRequest, undo::clean};

fn options(folder: &Path, run_id: &str) -> RigOptions {
    RigOptions {
        state_directory: Some(folder.join("state")),
        run_id: run_id.into(),
        destroy: Vec::new(),
        store_file: folder.join("store/run.fslab"),
        default_image_directory: folder.join("images"),
        interrupt: Arc::default(),
    }
}

/// Storage in a directory.
fn directory(path: &Path, elsewhere: Option<&Path>) -> Storage {
    Storage {
        place: Place::Directory { path: path.display().to_string() },
        memory: None,
        elsewhere: elsewhere.map(|path| path.display().to_string()),
    }
}

fn mount(host: &FakeHost, fstype: &str, source: &str, target: &str) {
    let (fstype, source, target) = (fstype.into(), source.into(), target.into());
    host.mount(&MountRequest { source, target, fstype, options: String::new() }).unwrap();
}

/// A rig on a machine of paper with images on sda1, and with disks sda and sdb.
fn paper(root: &Path, elsewhere: Option<&str>) -> (Arc<FakeHost>, Rig) {
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
    let place = Place::Image {
        size: Bytes::mib(32),
        count: 1,
        directory: None,
        file: None,
        allocation: Allocation::Sparse,
    };
    let storage = Storage { place, memory: None, elsewhere: elsewhere.map(at) };
    let host = Arc::new(host);
    let rig =
        Rig::open(Arc::clone(&host) as Arc<dyn Host>, &storage, options(root, "run")).unwrap();
    host.done();
    (host, rig)
}

fn root() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    (folder, root)
}

#[test]
fn elsewhere_is_in_memory_made_once_and_removed_with_the_rig() {
    let (_folder, root) = root();
    let (host, mut rig) = paper(&root, None);
    assert_eq!(rig.environment().get("elsewhere.fstype"), None);
    let there = rig.elsewhere().unwrap();
    assert_eq!(there, root.join("dev/shm/fslab-run-elsewhere/data"));
    assert_eq!(rig.elsewhere().unwrap(), there);
    assert_eq!(fs::read_dir(&there).unwrap().count(), 0);
    let facts = rig.environment();
    assert_eq!(facts.get("elsewhere.fstype"), Some("tmpfs"));
    assert_eq!(facts.get("elsewhere.source"), Some("tmpfs"));
    assert_eq!(facts.get("elsewhere.shares"), None);
    fs::write(there.join("file"), "x").unwrap();
    assert_eq!(rig.close(), []);
    assert_eq!(host.list(Path::new("/dev/shm")).unwrap(), [".keep"]);
}

#[test]
fn a_named_place_may_not_share_a_disk_with_the_storage() {
    for (place, common) in [("/", "sda"), ("/home", "sda")] {
        let (_folder, root) = root();
        let (_, mut rig) = paper(&root, Some(place));
        let error = rig.elsewhere().unwrap_err();
        let RigError::Elsewhere { why, .. } = &error else { panic!("{error}") };
        assert_eq!(*why, format!("it is on {common}, as the storage under test is"));
        assert_eq!(rig.environment().get("elsewhere.fstype"), None);
    }
    for place in ["/srv", "/dev/shm"] {
        let (_folder, root) = root();
        let (host, mut rig) = paper(&root, Some(place));
        let there = rig.elsewhere().unwrap();
        assert!(there.starts_with(host.at(Path::new(place))), "{}", there.display());
    }
}

#[test]
fn the_mount_point_is_not_elsewhere() {
    let (_folder, root) = root();
    let (_, mut rig) = paper(&root, Some("/state/fslab-run"));
    let error = rig.elsewhere().unwrap_err();
    assert!(error.to_string().contains("is mounted there"), "{error}");
}

#[test]
fn without_memory_it_is_beside_the_journal_and_says_so() {
    let (_folder, root) = root();
    let (host, mut rig) = paper(&root, None);
    fs::remove_dir_all(host.at(Path::new("/dev/shm"))).unwrap();
    assert!(rig.elsewhere().unwrap().starts_with(root.join("state")));
    let facts = rig.environment();
    assert_eq!(facts.get("elsewhere.instead_of"), Some("/dev/shm"));
    let shares = facts.get("elsewhere.shares");
    assert_eq!(shares, Some("it is on sda, as the storage under test is"));
    assert_eq!(rig.close(), []);
    assert_eq!(fs::read_dir(root.join("state")).unwrap().count(), 1, "only the journals' folder");
}

#[test]
fn a_killed_run_leaves_nothing_elsewhere_once_cleaned() {
    let (_folder, root) = root();
    let (host, mut rig) = paper(&root, None);
    fs::write(rig.elsewhere().unwrap().join("file"), "x").unwrap();
    rig.shared.bench().abandon();
    let report = clean(&*host, &root.join("state")).unwrap();
    assert_eq!(report.stuck, []);
    assert_eq!(host.list(Path::new("/dev/shm")).unwrap(), [".keep"]);
}

/// Needs neither root nor a device of its own: the machine itself, with directories.
#[test]
fn a_directory_and_elsewhere_are_two_filesystems() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let host = || Arc::new(RealHost);
    let options = |folder: &Path, run_id: &str| RigOptions {
        store_file: "/dev/shm/run.fslab".into(),
        ..options(folder, run_id)
    };
    let own = directory(folder.path(), Some(folder.path()));
    let mut rig = Rig::open(host(), &own, options(folder.path(), "own")).unwrap();
    let error = rig.elsewhere().unwrap_err();
    assert!(error.to_string().contains("on the filesystem under test"), "{error}");
    drop(rig);
    let there = directory(folder.path(), None);
    let run_id = format!("there-{}", std::process::id());
    let mut rig = Rig::open(host(), &there, options(folder.path(), &run_id)).unwrap();
    let tree = rig.elsewhere().unwrap();
    fs::write(tree.join("file"), "x").unwrap();
    assert_eq!(rig.close(), []);
    assert!(!tree.parent().unwrap().exists());
}

#[test]
fn a_limit_of_memory_is_a_fact_as_it_is_read_back() {
    let (_folder, root) = root();
    let host = FakeHost::new(&root)
        .file("/proc/self/cgroup", "0::/\n")
        .file("/sys/fs/cgroup/cgroup.procs", "4711")
        .file("/sys/fs/cgroup/cgroup.subtree_control", "memory\n");
    mount(&host, "cgroup2", "cgroup2", "/sys/fs/cgroup");
    let storage = Storage { memory: Some(Bytes::mib(64)), ..directory(&root, None) };
    let options = RigOptions { store_file: "/dev/null/run.fslab".into(), ..options(&root, "run") };
    let rig = Rig::open(Arc::new(host), &storage, options).unwrap();
    assert_eq!(rig.warnings().len(), 1, "{:?}", rig.warnings());
    let facts = rig.environment();
    assert_eq!(facts.get("memory.limit_bytes"), Some("67108864"));
    assert_eq!(facts.get("memory.group"), Some("v2"));
}

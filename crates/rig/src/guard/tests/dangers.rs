//! Dangerous targets, with all possible permissions: a run is rejected with a hint, and no byte of
//! the target is changed. `docs/method/safety.md` lists them in a table.

use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, OpenOptionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use model::{Allocation, Bytes, FilesystemLevel, Storage, StorageKind, StorageLevel};
use rustix::fs::OFlags;

use super::fixture::*;
use crate::{Catalog, InstanceSpec, RealHost, Rig, RigOptions};

const SIZE: u64 = 32 << 20;

/// A loop device on a file whose bytes are compared.
struct Target {
    /// Dropped before the directory of its file, whose name identifies the file.
    device: LoopDevice,
    file: PathBuf,
    temp: tempfile::TempDir,
}

impl Target {
    fn new(partitions: u32) -> Self {
        let temp = scratch();
        let file = zeros(&temp.path().join("image"), SIZE);
        let device = LoopDevice::partitioned(&file, partitions);
        Self { device, file, temp }
    }

    /// A device with a filesystem; the kernel has nothing left to initialize.
    fn formatted() -> Self {
        let target = Self::new(0);
        run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0", &target.device.text()]);
        target
    }

    fn options(&self) -> RigOptions {
        RigOptions {
            state_directory: Some(self.temp.path().join("state")),
            run_id: "danger".into(),
            overwrite: vec![self.file.display().to_string(), self.device.number()],
            store_file: "/dev/shm/none.fslab".into(),
            default_image_directory: self.temp.path().join("images"),
            interrupt: Arc::default(),
        }
    }

    /// Runs on these devices, and asserts a refusal with all these words and unchanged bytes.
    fn refuses(&self, paths: &[&Path], words: &[&str]) {
        let paths = paths.iter().map(|path| path.display().to_string()).collect();
        self.refuses_on(StorageKind::Devices { paths }, self.options(), words);
    }

    fn refuses_on(&self, place: StorageKind, options: RigOptions, words: &[&str]) {
        refuses(&self.file, place, options, words);
    }
}

fn refuses(file: &Path, place: StorageKind, options: RigOptions, words: &[&str]) {
    let before = fs::read(file).unwrap();
    let storage = Storage { kind: place, memory_limit: None, external_directory: None };
    let catalog = Catalog::embedded();
    let level = FilesystemLevel::plain("ext4");
    let wanted = InstanceSpec::plain(catalog.get("ext4").unwrap(), &level);
    let mut tries = 0;
    let error = loop {
        let opened = Rig::open(Arc::new(RealHost), &storage, options.clone());
        let error = opened.and_then(|rig| rig.instance(&wanted).map(drop)).unwrap_err().to_string();
        // A parallel test that makes a mount namespace copies the mounts of this test for a moment.
        if !error.contains("mount namespace of process") || tries == 100 {
            break error;
        }
        tries += 1;
        thread::sleep(Duration::from_millis(100));
    };
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
    assert!(fs::read(file).unwrap() == before, "bytes have changed: {error}");
}

#[test]
fn devices_in_use() {
    if lacks_root() {
        return;
    }
    let target = Target::formatted();
    let device = &target.device;
    let mount = Mount::new(&["-o", "ro"], &device.path, &target.temp.path().join("mnt"));
    target.refuses(&[&device.path], &["is mounted", "umount"]);
    let inside = RigOptions { store_file: mount.0.join("run.fslab"), ..target.options() };
    let paths = vec![device.text()];
    target.refuses_on(StorageKind::Devices { paths }, inside, &["is mounted", "umount"]);
    drop(mount);
    let upper = LoopDevice::over(&device.path);
    target.refuses(&[&device.path], &["is the backing store of", "losetup -d"]);
    drop(upper);
    let flags = OFlags::EXCL.bits().cast_signed();
    let held = File::options().read(true).custom_flags(flags).open(&device.path).unwrap();
    target.refuses(&[&device.path], &["is claimed by the kernel", "lsblk"]);
    drop(held);
    let locker = Holder::shell(&[], "exec 3<\"$0\" && flock -x 3", &[&device.path]);
    target.refuses(&[&device.path], &["is locked by another process", "wait until it exits"]);
    drop(locker);
    let node = target.temp.path().join("node");
    let number = device.number();
    let (major, minor) = number.split_once(':').unwrap();
    run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&node]);
    target.refuses(&[&device.path], &["is open for writing", "stop that program first"]);
    drop(writer);
    run("blockdev", &["--setro", &device.text()]);
    target.refuses(&[&device.path], &["is read-only", "--setrw"]);
    run("blockdev", &["--setrw", &device.text()]);
    let swap = Swap::on(&device.path);
    target.refuses(&[&device.path], &["is in use as swap", "swapoff"]);
    drop(swap);
}

#[test]
fn disks_with_a_partition_in_use() {
    if lacks_root() {
        return;
    }
    let target = Target::new(2);
    let part = target.device.partition(1);
    run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0", part.to_str().unwrap()]);
    let _mount = Mount::new(&["-o", "ro"], &part, &target.temp.path().join("mnt"));
    target.refuses(&[&target.device.path], &["is mounted (through", "p1)", "umount"]);
}

#[test]
fn one_device_twice() {
    if lacks_root() {
        return;
    }
    let target = Target::new(1);
    let [link, node] = ["by-id", "node"].map(|name| target.temp.path().join(name));
    let device = &target.device;
    symlink(&device.path, &link).unwrap();
    let number = device.number();
    let (major, minor) = number.split_once(':').unwrap();
    run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    for second in [&device.path, &link, &node, &device.partition(1)] {
        target.refuses(&[&device.path, second], &["is listed twice", "list each device once"]);
    }
}

fn levels<const N: usize>(kinds: [StorageKind; N]) -> StorageKind {
    let names = ["first", "second"].map(str::to_owned);
    let level = |(name, kind)| StorageLevel { name, kind };
    StorageKind::Levels { levels: names.into_iter().zip(kinds).map(level).collect() }
}

/// The first level may be overwritten, and is still unchanged, because all levels are checked
/// before anything is written.
#[test]
fn a_level_in_use() {
    if lacks_root() {
        return;
    }
    let (free, used) = (Target::formatted(), Target::formatted());
    let devices = |target: &Target| StorageKind::Devices { paths: vec![target.device.text()] };
    let image = StorageKind::Image {
        size: Bytes(SIZE),
        count: 1,
        directory: Some(free.temp.path().display().to_string()),
        file: Some("copy".into()),
        allocation: Allocation::Sparse,
    };
    let copy = free.temp.path().join("copy");
    fs::copy(&free.file, &copy).unwrap();
    let overwrite = [free.options().overwrite, used.options().overwrite].concat();
    let overwrite = [overwrite, vec![copy.display().to_string()]].concat();
    let options = || RigOptions { overwrite: overwrite.clone(), ..free.options() };
    let mount = Mount::new(&["-o", "ro"], &used.device.path, &used.temp.path().join("mnt"));
    let words = ["is mounted", "umount"];
    refuses(&free.file, levels([devices(&free), devices(&used)]), options(), &words);
    refuses(&copy, levels([image.clone(), devices(&used)]), options(), &words);
    drop(mount);
    let attached = LoopDevice::over(&copy);
    let words = ["is in use: attached to", "release it first"];
    refuses(&free.file, levels([devices(&free), image.clone()]), options(), &words);
    drop(attached);
    let bare = RigOptions { overwrite: free.options().overwrite, ..options() };
    let words = ["contains data", "--overwrite-device"];
    refuses(&free.file, levels([devices(&free), devices(&used)]), bare, &words);
    let words = ["is listed twice", "list each device once"];
    refuses(&copy, levels([image.clone(), image]), options(), &words);
    let link = free.temp.path().join("by-id");
    symlink(&free.device.path, &link).unwrap();
    let linked = StorageKind::Devices { paths: vec![link.display().to_string()] };
    refuses(&free.file, levels([devices(&free), linked]), options(), &words);
}

#[test]
fn devices_too_small_for_anything() {
    if lacks_root() {
        return;
    }
    for size in [0, 512, 4096, 1 << 20] {
        let temp = scratch();
        let file = zeros(&temp.path().join("image"), size);
        let target = Target { device: LoopDevice::over(&file), file, temp };
        let words: &[&str] = match size {
            0 => &["has a size of zero", "attach a medium"],
            _ => &["requires at least", "use larger storage"],
        };
        target.refuses(&[&target.device.path], words);
    }
}

#[test]
fn data_without_permission() {
    if lacks_root() {
        return;
    }
    let mut targets = vec![Target::formatted()];
    // To other programs, plain dm-crypt, an archive, and a database look like this.
    let raw = Target::new(0);
    let disk = File::options().write(true).open(&raw.device.path).unwrap();
    disk.write_all_at(&[0x5a; 1 << 20], 20 << 20).unwrap();
    drop(disk);
    targets.push(raw);
    for target in &targets {
        let device = &target.device;
        let paths = || StorageKind::Devices { paths: vec![device.text()] };
        let hint = format!("--overwrite-device '{}'", target.file.display());
        // Neither an empty name nor a path of /dev identifies it.
        for overwrite in [Vec::new(), vec![device.text()], vec![device.name()]] {
            let options = RigOptions { overwrite, ..target.options() };
            target.refuses_on(paths(), options, &["contains data", &hint]);
        }
    }
    let target = &targets[0];
    let on_node = RigOptions { store_file: target.device.path.clone(), ..target.options() };
    let paths = vec![target.device.text()];
    target.refuses_on(
        StorageKind::Devices { paths },
        on_node,
        &["both the run file and the target"],
    );
}

#[test]
fn image_files() {
    if lacks_root() {
        return;
    }
    let target = Target::formatted();
    let temp = scratch();
    let file = temp.path().join("image");
    fs::copy(&target.file, &file).unwrap();
    let named = |file: &str| StorageKind::Image {
        size: Bytes(SIZE),
        count: 1,
        directory: Some(temp.path().display().to_string()),
        file: Some(file.to_owned()),
        allocation: Allocation::Sparse,
    };
    let all = vec![file.display().to_string(), temp.path().join("letter").display().to_string()];
    let options = || RigOptions { overwrite: all.clone(), ..target.options() };
    let refused = |words: &[&str]| refuses(&file, named("image"), options(), words);

    let bare = RigOptions { overwrite: Vec::new(), ..options() };
    refuses(&file, named("image"), bare, &["contains data", "ext4", "--overwrite-device"]);
    let attached = LoopDevice::over(&file);
    refused(&["is in use: attached to", "release it first"]);
    drop(attached);
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&file]);
    refused(&["is in use: open in sh", "release it first"]);
    drop(writer);
    let locker = Holder::shell(&[], "exec 3<\"$0\" && flock -s 3", &[&file]);
    refused(&["is in use: locked by another process", "release it first"]);
    drop(locker);
    let second = temp.path().join("second");
    fs::hard_link(&file, &second).unwrap();
    refused(&["has 2 names", "remove the others"]);
    fs::remove_file(second).unwrap();
    let same = RigOptions { store_file: file.clone(), ..options() };
    refuses(&file, named("image"), same, &["both the run file and the target"]);
    run("chattr", &["+i", file.to_str().unwrap()]);
    let before = fs::read(&file).unwrap();
    let storage = Storage { kind: named("image"), memory_limit: None, external_directory: None };
    let opened = Rig::open(Arc::new(RealHost), &storage, options()).map(drop);
    run("chattr", &["-i", file.to_str().unwrap()]);
    assert!(opened.unwrap_err().to_string().contains("use another `image_directory`"));
    assert!(fs::read(&file).unwrap() == before);

    let letter = temp.path().join("letter");
    fs::write(&letter, "dear all").unwrap();
    refuses(&letter, named("letter"), options(), &["not a disk image", "use another file name"]);
    fs::create_dir(temp.path().join("directory")).unwrap();
    run("mkfifo", &[temp.path().join("pipe")]);
    symlink("nowhere", temp.path().join("link")).unwrap();
    for other in ["directory", "pipe", "link"] {
        let words = ["is not a regular file", "use another name for the image"];
        refuses(&letter, named(other), options(), &words);
    }
}

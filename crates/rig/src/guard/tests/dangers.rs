//! Dangerous targets, with everything permitted that can be: a run is refused with a hint, and not
//! a byte of the target has changed. `docs/method/safety.md` has them as a table.

use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, OpenOptionsExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{Allocation, Bytes, FilesystemLevel, Place, Storage};
use rustix::fs::OFlags;

use super::fixture::*;
use crate::{Catalogue, RealHost, Rig, RigOptions, Wanted};

const SIZE: u64 = 32 << 20;

/// A loop device on a file whose bytes are compared.
struct Target {
    /// Dropped before the directory of its file, by whose name it knows that it is its own.
    device: LoopDevice,
    file: PathBuf,
    folder: tempfile::TempDir,
}

impl Target {
    fn new(partitions: u32) -> Self {
        let folder = scratch();
        let file = zeros(&folder.path().join("image"), SIZE);
        let device = LoopDevice::partitioned(&file, partitions);
        Self { device, file, folder }
    }

    /// One with a filesystem; nothing is left for the kernel to initialize.
    fn formatted() -> Self {
        let target = Self::new(0);
        run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0", &target.device.text()]);
        target
    }

    fn options(&self) -> RigOptions {
        RigOptions {
            state_directory: Some(self.folder.path().join("state")),
            run_id: "danger".into(),
            destroy: vec![self.file.display().to_string(), self.device.number()],
            store_file: "/dev/shm/none.fslab".into(),
            default_image_directory: self.folder.path().join("images"),
            interrupt: Arc::default(),
        }
    }

    /// Runs on these devices, and asserts a refusal with all of these words and unchanged bytes.
    fn refuses(&self, paths: &[&Path], words: &[&str]) {
        let paths = paths.iter().map(|path| path.display().to_string()).collect();
        self.refuses_on(Place::Devices { paths }, self.options(), words);
    }

    fn refuses_on(&self, place: Place, options: RigOptions, words: &[&str]) {
        refuses(&self.file, place, options, words);
    }
}

fn refuses(file: &Path, place: Place, options: RigOptions, words: &[&str]) {
    let before = fs::read(file).unwrap();
    let storage = Storage { place, memory: None, elsewhere: None };
    let catalogue = Catalogue::embedded();
    let level = FilesystemLevel::plain("ext4");
    let wanted = Wanted::plain(catalogue.get("ext4").unwrap(), &level);
    let opened = Rig::open(Arc::new(RealHost), &storage, options);
    let error = opened.and_then(|rig| rig.instance(&wanted).map(drop)).unwrap_err().to_string();
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
    let mount = Mount::new(&["-o", "ro"], &device.path, &target.folder.path().join("mnt"));
    target.refuses(&[&device.path], &["is mounted", "umount"]);
    let inside = RigOptions { store_file: mount.0.join("run.fslab"), ..target.options() };
    let paths = vec![device.text()];
    target.refuses_on(Place::Devices { paths }, inside, &["is mounted", "umount"]);
    drop(mount);
    let upper = LoopDevice::over(&device.path);
    target.refuses(&[&device.path], &["is the backing store of", "losetup -d"]);
    drop(upper);
    let flags = OFlags::EXCL.bits().cast_signed();
    let held = File::options().read(true).custom_flags(flags).open(&device.path).unwrap();
    target.refuses(&[&device.path], &["is claimed by the kernel", "lsblk"]);
    drop(held);
    let locker = Holder::shell(&[], "exec 3<\"$0\" && flock -x 3", &[&device.path]);
    target.refuses(&[&device.path], &["is locked by another process", "wait until that ends"]);
    drop(locker);
    let node = target.folder.path().join("node");
    let number = device.number();
    let (major, minor) = number.split_once(':').unwrap();
    run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&node]);
    target.refuses(&[&device.path], &["is open for writing", "end that program first"]);
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
    let _mount = Mount::new(&["-o", "ro"], &part, &target.folder.path().join("mnt"));
    target.refuses(&[&target.device.path], &["is mounted (through", "p1)", "umount"]);
}

#[test]
fn one_device_twice() {
    if lacks_root() {
        return;
    }
    let target = Target::new(1);
    let [link, node] = ["by-id", "node"].map(|name| target.folder.path().join(name));
    let device = &target.device;
    symlink(&device.path, &link).unwrap();
    let number = device.number();
    let (major, minor) = number.split_once(':').unwrap();
    run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    for second in [&device.path, &link, &node, &device.partition(1)] {
        target.refuses(&[&device.path, second], &["is named twice", "name each device once"]);
    }
}

#[test]
fn devices_too_small_for_anything() {
    if lacks_root() {
        return;
    }
    for size in [0, 512, 4096, 1 << 20] {
        let folder = scratch();
        let file = zeros(&folder.path().join("image"), size);
        let target = Target { device: LoopDevice::over(&file), file, folder };
        let words: &[&str] = match size {
            0 => &["has a size of zero", "attach a medium"],
            _ => &["needs at least", "make the storage larger"],
        };
        target.refuses(&[&target.device.path], words);
    }
}

#[test]
fn data_that_was_not_given_up() {
    if lacks_root() {
        return;
    }
    let mut targets = vec![Target::formatted()];
    // Plain dm-crypt, an archive, and a database look like this to other programs.
    let raw = Target::new(0);
    let disk = File::options().write(true).open(&raw.device.path).unwrap();
    disk.write_all_at(&[0x5a; 1 << 20], 20 << 20).unwrap();
    drop(disk);
    targets.push(raw);
    for target in &targets {
        let device = &target.device;
        let paths = || Place::Devices { paths: vec![device.text()] };
        let hint = format!("--destroy '{}'", target.file.display());
        // Neither nothing nor a path of /dev names it.
        for destroy in [Vec::new(), vec![device.text()], vec![device.name()]] {
            let options = RigOptions { destroy, ..target.options() };
            target.refuses_on(paths(), options, &["is not empty", &hint]);
        }
    }
    let target = &targets[0];
    let on_node = RigOptions { store_file: target.device.path.clone(), ..target.options() };
    let paths = vec![target.device.text()];
    target.refuses_on(Place::Devices { paths }, on_node, &["both the run's file and the target"]);
}

#[test]
fn image_files() {
    if lacks_root() {
        return;
    }
    let target = Target::formatted();
    let folder = scratch();
    let file = folder.path().join("image");
    fs::copy(&target.file, &file).unwrap();
    let named = |file: &str| Place::Image {
        size: Bytes(SIZE),
        count: 1,
        directory: Some(folder.path().display().to_string()),
        file: Some(file.to_owned()),
        allocation: Allocation::Sparse,
    };
    let all = vec![file.display().to_string(), folder.path().join("letter").display().to_string()];
    let options = || RigOptions { destroy: all.clone(), ..target.options() };
    let refused = |words: &[&str]| refuses(&file, named("image"), options(), words);

    let bare = RigOptions { destroy: Vec::new(), ..options() };
    refuses(&file, named("image"), bare, &["is not empty", "ext4", "--destroy"]);
    let attached = LoopDevice::over(&file);
    refused(&["is in use: attached to", "release it first"]);
    drop(attached);
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&file]);
    refused(&["is in use: open in sh", "release it first"]);
    drop(writer);
    let locker = Holder::shell(&[], "exec 3<\"$0\" && flock -s 3", &[&file]);
    refused(&["is in use: locked by another process", "release it first"]);
    drop(locker);
    let second = folder.path().join("second");
    fs::hard_link(&file, &second).unwrap();
    refused(&["has 2 names", "remove the others"]);
    fs::remove_file(second).unwrap();
    let same = RigOptions { store_file: file.clone(), ..options() };
    refuses(&file, named("image"), same, &["both the run's file and the target"]);
    run("chattr", &["+i", file.to_str().unwrap()]);
    let before = fs::read(&file).unwrap();
    let storage = Storage { place: named("image"), memory: None, elsewhere: None };
    let opened = Rig::open(Arc::new(RealHost), &storage, options()).map(drop);
    run("chattr", &["-i", file.to_str().unwrap()]);
    assert!(opened.unwrap_err().to_string().contains("name another directory for images"));
    assert!(fs::read(&file).unwrap() == before);

    let letter = folder.path().join("letter");
    fs::write(&letter, "dear all").unwrap();
    refuses(&letter, named("letter"), options(), &["not a disk image", "choose another file name"]);
    fs::create_dir(folder.path().join("directory")).unwrap();
    run("mkfifo", &[folder.path().join("pipe")]);
    symlink("nowhere", folder.path().join("link")).unwrap();
    for other in ["directory", "pipe", "link"] {
        let words = ["is not a regular file", "name a file for the image"];
        refuses(&letter, named(other), options(), &words);
    }
}

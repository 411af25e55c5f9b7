//! Locations of images and of the run file.

use std::{fs, os::unix::fs::symlink, path::Path};

use model::{Allocation, Bytes};

use super::fixture::*;
use crate::guard::{
    Refusal, allocated, images_within_limit, space::space_within, space_for_images, space_in,
    store::is_same_file, store_outside,
};

const NONE: Bytes = Bytes(0);

fn is_space(result: Result<(), Refusal>) -> bool {
    matches!(result, Err(Refusal::Space { .. }))
}

#[test]
fn images_must_fit_their_filesystem() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("disk"), 512 << 20));
    run("mkfs.ext4", &["-q", "-m", "0", "-O", "^has_journal", &device.text()]);
    let mount = Mount::new(&[], &device.path, &temp.path().join("mnt"));
    let new = mount.0.join("not/made/yet");
    for place in [&mount.0, &new] {
        space_for_images(place, Bytes::mib(400), NONE, Allocation::Preallocated).unwrap();
        assert!(is_space(space_for_images(place, Bytes::mib(600), NONE, Allocation::Preallocated)));
        space_for_images(place, Bytes::mib(600), NONE, Allocation::Sparse).unwrap();
        space_for_images(place, Bytes::gib(4), NONE, Allocation::Sparse).unwrap();
        assert!(is_space(space_for_images(place, Bytes::gib(16), NONE, Allocation::Sparse)));
    }
    // An existing image of 300 MiB needs only the rest.
    let kept = mount.0.join("kept");
    run("fallocate", &["-l", "300M", kept.to_str().unwrap()]);
    let had = allocated(&kept);
    assert!(is_space(space_for_images(&mount.0, Bytes::mib(400), NONE, Allocation::Preallocated)));
    space_for_images(&mount.0, Bytes::mib(400), had, Allocation::Preallocated).unwrap();
    assert_eq!((had >= Bytes::mib(300), allocated(&new)), (true, NONE));
    let refusal =
        space_for_images(&new, Bytes::gib(1), NONE, Allocation::Preallocated).unwrap_err();
    let text = refusal.to_string();
    assert!(text.contains("1056MiB") && text.contains("not/made/yet"), "{text}");
}

#[test]
fn a_directory_must_have_the_space() {
    let temp = scratch();
    let new = temp.path().join("not/made/yet");
    for place in [temp.path(), &new] {
        space_in(place, NONE).unwrap();
        assert!(is_space(space_in(place, Bytes(u64::MAX))));
    }
}

#[test]
fn images_in_memory_must_fit_the_memory() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("disk"), 1 << 20));
    let machine = FakeMachine::around(&device);
    machine.proc("meminfo", "MemTotal: 999999 kB\nMemAvailable:     131072 kB\n");
    let within = |place: &Path, mib: u64| {
        space_within(place, Bytes::mib(mib), NONE, Allocation::Preallocated, &machine.roots)
    };
    let tmpfs = ["-t", "tmpfs", "-o", "size=1G"];
    let mount = Mount::new(&tmpfs, Path::new("none"), &temp.path().join("mnt"));
    within(&mount.0, 64).unwrap();
    let refusal = within(&mount.0, 256).unwrap_err();
    assert!(matches!(refusal, Refusal::Memory { .. }), "{refusal:?}");
    assert!(refusal.to_string().contains("128MiB is available"), "{refusal}");
    // The limit of the mount is checked first; on a disk the memory does not matter.
    assert!(is_space(within(&mount.0, 2048)));
    within(temp.path(), 256).unwrap();
    // Images in memory must need less memory than the limit of the run.
    let limited = |place: &Path, allocation, mib| {
        images_within_limit(place, Bytes::gib(8), allocation, Bytes::mib(mib))
    };
    limited(&mount.0, Allocation::Sparse, 1024).unwrap();
    limited(&mount.0, Allocation::Preallocated, 9000).unwrap();
    limited(temp.path(), Allocation::Preallocated, 1).unwrap();
    let new = mount.0.join("new");
    for refused in
        [limited(&new, Allocation::Preallocated, 8192), limited(&new, Allocation::Sparse, 512)]
    {
        let refusal = refused.unwrap_err();
        assert!(matches!(refusal, Refusal::MemoryLimit { .. }), "{refusal:?}");
    }
    // A filesystem that reports no size.
    drop(mount);
    let mount = Mount::new(&["-t", "ramfs"], Path::new("none"), &temp.path().join("mnt"));
    within(&mount.0, 64).unwrap();
    assert!(matches!(within(&mount.0, 256), Err(Refusal::Memory { .. })));
}

fn on_target(store_file: &Path, target: &Path) -> bool {
    match store_outside(store_file, target) {
        Ok(()) => false,
        Err(Refusal::StoreOnTarget { .. }) => true,
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn the_run_file_is_not_on_the_filesystem_under_test() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("disk"), 32 << 20));
    run("mkfs.ext4", &["-q", &device.text()]);
    let mount = Mount::new(&[], &device.path, &temp.path().join("mnt"));
    fs::create_dir(mount.0.join("inside")).unwrap();
    fs::write(mount.0.join("old.fslab"), "").unwrap();
    let bound = Mount::new(&["--bind"], &mount.0.join("inside"), &temp.path().join("bound"));
    let link = temp.path().join("link.fslab");
    symlink(mount.0.join("old.fslab"), &link).unwrap();
    for inside in
        [mount.0.join("run.fslab"), mount.0.join("old.fslab"), bound.0.join("run.fslab"), link]
    {
        assert!(on_target(&inside, &mount.0), "{}", inside.display());
    }
    for outside in [temp.path().join("run.fslab"), "run.fslab".into(), "/dev/shm/r".into()] {
        assert!(!on_target(&outside, &mount.0), "{}", outside.display());
    }
    // A directory that is measured as it is, with the run file next to it.
    assert!(on_target(&temp.path().join("run.fslab"), temp.path()));
    let refusal = store_outside(Path::new("r"), &temp.path().join("none")).unwrap_err();
    assert!(matches!(refusal, Refusal::Open { .. }), "{refusal:?}");
}

/// stat(2) returns a separate device number for each subvolume, so it is not reliable here.
#[test]
fn paths_of_one_file_that_does_not_exist_are_equal() {
    let temp = scratch();
    let here = std::env::current_dir().unwrap();
    assert!(is_same_file(Path::new("none.fslab"), &here.join("none.fslab")));
    let [one, other] = ["one", "other"].map(|name| temp.path().join(name));
    for directory in [&one, &other] {
        fs::create_dir(directory).unwrap();
    }
    let link = temp.path().join("link");
    symlink(&one, &link).unwrap();
    let path = one.join("none.fslab");
    assert!(is_same_file(&path, &link.join("none.fslab")));
    assert!(!is_same_file(&path, &other.join("none.fslab")));
    assert!(!is_same_file(&path, &one.join("other.fslab")));
}

#[test]
fn subvolumes_are_one_filesystem() {
    if lacks_root() || lacks_program("mkfs.btrfs") {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("disk"), 128 << 20));
    run("mkfs.btrfs", &["-q", &device.text()]);
    let mount = Mount::new(&[], &device.path, &temp.path().join("mnt"));
    let subvolume = mount.0.join("subvolume");
    run("btrfs", &["subvolume", "create", subvolume.to_str().unwrap()]);
    let options = ["-o", "subvol=subvolume"];
    let second = Mount::new(&options, &device.path, &temp.path().join("second"));
    assert!(on_target(&subvolume.join("run.fslab"), &mount.0));
    assert!(on_target(&mount.0.join("run.fslab"), &second.0));
    assert!(on_target(&subvolume.join("run.fslab"), &second.0));
    assert!(!on_target(&temp.path().join("run.fslab"), &second.0));
}

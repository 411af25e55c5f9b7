//! What a path may name, and that it goes on naming it.

use std::{fs, os::unix::fs::symlink, path::Path};

use model::Bytes;

use super::fixture::*;
use crate::guard::{Permission, Refusal, Roots, claim_device};

const SIZE: u64 = 16 << 20;

#[test]
fn a_blank_device_is_claimed_by_node_and_by_link() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let file = zeros(&folder.path().join("image"), SIZE);
    let device = LoopDevice::over(&file);
    let link = folder.path().join("link");
    symlink(&device.path, &link).unwrap();
    for path in [&device.path, &link] {
        let claimed = claim(path).unwrap();
        assert_eq!(claimed.path(), device.path);
        assert_eq!(claimed.name(), device.name());
        assert_eq!(claimed.size(), Bytes(SIZE));
        let name = device.name();
        let file = file.display();
        assert_eq!(
            claimed.describe(),
            format!(
                "{name}, backing file {file}, 16.7 MB, 16MiB\n  {name} (16.7 MB, 16MiB): \
                 no known signature"
            )
        );
        claimed.recheck().unwrap();
    }
}

#[test]
fn other_things_than_block_devices_are_refused() {
    let folder = scratch();
    let file = zeros(&folder.path().join("image"), SIZE);
    for path in [file.as_path(), folder.path(), Path::new("/dev/null")] {
        let refusal = claim(path).unwrap_err();
        assert!(matches!(refusal, Refusal::NotBlockDevice { .. }), "{refusal}");
    }
    let refusal = claim(&folder.path().join("nothing")).unwrap_err();
    assert!(matches!(refusal, Refusal::Open { .. }), "{refusal}");
}

#[test]
fn a_device_without_medium_is_refused() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let device = LoopDevice::over(&zeros(&folder.path().join("image"), 0));
    let refusal = claim(&device.path).unwrap_err();
    assert!(matches!(refusal, Refusal::Empty { .. }), "{refusal}");
}

#[test]
fn a_read_only_device_is_refused_from_the_start_and_later() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let file = zeros(&folder.path().join("image"), SIZE);
    let device = LoopDevice::with(&["-r"], &file);
    let refusal = claim(&device.path).unwrap_err();
    assert!(matches!(refusal, Refusal::ReadOnly { .. }), "{refusal}");
    drop(device);
    let device = LoopDevice::over(&file);
    let claimed = claim(&device.path).unwrap();
    run("blockdev", &["--setro", &device.text()]);
    let refusal = claimed.recheck().unwrap_err();
    run("blockdev", &["--setrw", &device.text()]);
    assert!(matches!(refusal, Refusal::ReadOnly { .. }), "{refusal}");
}

#[test]
fn a_link_that_is_turned_to_another_device_is_noticed() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let first = LoopDevice::over(&zeros(&folder.path().join("first"), SIZE));
    let second = LoopDevice::over(&zeros(&folder.path().join("second"), SIZE));
    let link = folder.path().join("link");
    symlink(&first.path, &link).unwrap();
    let claimed = claim(&link).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&second.path, &link).unwrap();
    let refusal = claimed.recheck().unwrap_err();
    assert!(matches!(refusal, Refusal::Changed { .. }), "{refusal}");
    let text = refusal.to_string();
    assert!(text.contains(&first.number()) && text.contains(&second.number()), "{text}");
}

#[test]
fn a_link_that_is_turned_to_something_else_is_noticed() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let device = LoopDevice::over(&zeros(&folder.path().join("image"), SIZE));
    let link = folder.path().join("link");
    symlink(&device.path, &link).unwrap();
    let claimed = claim(&link).unwrap();
    fs::remove_file(&link).unwrap();
    assert!(matches!(claimed.recheck().unwrap_err(), Refusal::Open { .. }));
    fs::write(&link, "").unwrap();
    assert!(matches!(claimed.recheck().unwrap_err(), Refusal::NotBlockDevice { .. }));
}

#[test]
fn another_size_is_noticed() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let file = zeros(&folder.path().join("image"), SIZE);
    let device = LoopDevice::over(&file);
    let claimed = claim(&device.path).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_len(SIZE / 2).unwrap();
    run("losetup", &["-c", &device.text()]);
    let refusal = claimed.recheck().unwrap_err();
    assert!(matches!(refusal, Refusal::Changed { .. }), "{refusal}");
}

/// The claim keeps the device open, and the kernel detaches a loop device only at its last close,
/// so its number cannot come to mean another file meanwhile.
#[test]
fn a_claim_pins_the_number() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let first = LoopDevice::over(&zeros(&folder.path().join("first"), SIZE));
    let claimed = claim(&first.path).unwrap();
    run("losetup", &["-d", &first.text()]);
    let second = LoopDevice::over(&zeros(&folder.path().join("second"), SIZE));
    assert_ne!(first.path, second.path);
    claimed.recheck().unwrap();
}

/// What tells an exchanged medium of the same size behind the same number (Linux 5.15 and later).
#[test]
fn every_medium_has_a_sequence_number_of_its_own() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let file = zeros(&folder.path().join("image"), SIZE);
    let sequence = || {
        let device = LoopDevice::over(&file);
        sys::block::disk_sequence(fs::File::open(&device.path).unwrap()).unwrap()
    };
    let (first, second) = (sequence(), sequence());
    assert!(first.is_none() || first < second, "{first:?} {second:?}");
}

#[test]
fn the_run_file_is_not_the_device() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let device = LoopDevice::over(&zeros(&folder.path().join("image"), SIZE));
    let permission = Permission { destroy: Vec::new(), store_file: device.path.clone() };
    let refusal = claim_device(&device.path, &permission, &Roots::default()).unwrap_err();
    assert!(matches!(refusal, Refusal::StoreIsTarget { .. }), "{refusal}");
}

#[test]
fn a_disk_overlaps_its_partitions_which_do_not_overlap_each_other() {
    if lacks_root() {
        return;
    }
    let folder = scratch();
    let device = LoopDevice::partitioned(&zeros(&folder.path().join("image"), 32 << 20), 2);
    let disk = claim(&device.path).unwrap();
    let [first, second] = [1, 2].map(|number| claim(&device.partition(number)).unwrap());
    assert!(disk.overlaps(&disk) && disk.overlaps(&first) && second.overlaps(&disk));
    assert!(!first.overlaps(&second) && !second.overlaps(&first));
}

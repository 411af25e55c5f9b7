//! Paths of devices, and changes of their targets.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use model::Bytes;

use super::fixture::*;
use crate::{
    guard::{Medium, Permission, Refusal, Roots, claim_device, device::node},
    host::{Host as _, RealHost},
    medium::Number,
};

const SIZE: u64 = 16 << 20;

#[test]
fn a_blank_device_is_claimed_by_node_and_by_link() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), SIZE);
    let device = LoopDevice::over(&file);
    let link = temp.path().join("link");
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
                 no data found"
            )
        );
        claimed.recheck().unwrap();
    }
}

#[test]
fn a_node_of_another_device_is_not_used() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let over = |name| LoopDevice::over(&zeros(&temp.path().join(name), SIZE));
    let (device, other) = (over("device"), over("other"));
    let roots = Roots { dev: temp.path().into(), ..Roots::default() };
    symlink(&other.path, temp.path().join(device.name())).unwrap();
    let [number, others] = [&device, &other].map(|device| Number::parse(&device.number()).unwrap());
    let name = device.name();
    assert_eq!(node(&device.path, &name, number, &roots).unwrap(), device.path);
    for path in [&other.path, temp.path()] {
        let refusal = node(path, &name, number, &roots).unwrap_err();
        let Refusal::Changed { is, .. } = &refusal else { panic!("{refusal:?}") };
        assert!(*is == others.to_string() || is == "no block device", "{refusal}");
    }
}

#[test]
fn only_block_devices_are_accepted() {
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), SIZE);
    for path in [file.as_path(), temp.path(), Path::new("/dev/null")] {
        let refusal = claim(path).unwrap_err();
        assert!(matches!(refusal, Refusal::NotBlockDevice { .. }), "{refusal}");
    }
    let refusal = claim(&temp.path().join("nothing")).unwrap_err();
    assert!(matches!(refusal, Refusal::Open { .. }), "{refusal}");
}

#[test]
fn a_device_without_medium_is_rejected() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), 0));
    let refusal = claim(&device.path).unwrap_err();
    assert!(matches!(refusal, Refusal::Empty { .. }), "{refusal}");
}

#[test]
fn a_read_only_device_is_rejected_at_any_time() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), SIZE);
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
fn a_link_redirected_to_another_device_is_detected() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let first = LoopDevice::over(&zeros(&temp.path().join("first"), SIZE));
    let second = LoopDevice::over(&zeros(&temp.path().join("second"), SIZE));
    let link = temp.path().join("link");
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
fn a_link_redirected_to_another_file_type_is_detected() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let link = temp.path().join("link");
    symlink(&device.path, &link).unwrap();
    let claimed = claim(&link).unwrap();
    fs::remove_file(&link).unwrap();
    assert!(matches!(claimed.recheck().unwrap_err(), Refusal::Open { .. }));
    fs::write(&link, "").unwrap();
    assert!(matches!(claimed.recheck().unwrap_err(), Refusal::NotBlockDevice { .. }));
}

#[test]
fn another_size_is_detected() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), SIZE);
    let device = LoopDevice::over(&file);
    let claimed = claim(&device.path).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_len(SIZE / 2).unwrap();
    run("losetup", &["-c", &device.text()]);
    let refusal = claimed.recheck().unwrap_err();
    assert!(matches!(refusal, Refusal::Changed { .. }), "{refusal}");
}

/// The claim keeps the device open, and the kernel detaches a loop device only at its last close,
/// so its number cannot be reused for another file.
#[test]
fn a_claim_pins_the_number() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let first = LoopDevice::over(&zeros(&temp.path().join("first"), SIZE));
    let claimed = claim(&first.path).unwrap();
    run("losetup", &["-d", &first.text()]);
    let second = LoopDevice::over(&zeros(&temp.path().join("second"), SIZE));
    assert_ne!(first.path, second.path);
    claimed.recheck().unwrap();
}

/// The sequence number distinguishes media of the same size behind the same device number (Linux
/// 5.15 and later).
#[test]
fn every_medium_has_a_unique_sequence_number() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), SIZE);
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
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let permission = Permission { overwrite: Vec::new(), store_file: device.path.clone() };
    let refusal = claim_device(&device.path, &permission, &Roots::default(), &[]).unwrap_err();
    assert!(matches!(refusal, Refusal::StoreIsTarget { .. }), "{refusal}");
}

#[test]
fn a_disk_overlaps_its_partitions_which_do_not_overlap_each_other() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), 32 << 20), 2);
    let mut held = vec![claim(&device.path).unwrap()];
    for path in [device.partition(1), device.partition(2)] {
        let (permission, roots) = (Permission::default(), Roots::default());
        held.push(claim_device(&path, &permission, &roots, &held).unwrap());
    }
    let [disk, first, second] = &held[..] else { unreachable!() };
    assert!(disk.overlaps(disk) && disk.overlaps(first) && second.overlaps(disk));
    assert!(!first.overlaps(second) && !second.overlaps(first));
}

/// Writes a byte that must not be overwritten.
fn marked(path: &Path, size: u64) -> PathBuf {
    fs::write(path, vec![7; usize::try_from(size).unwrap()]).unwrap();
    path.to_owned()
}

fn is_marked(path: &Path) -> bool {
    fs::read(path).unwrap().iter().all(|byte| *byte == 7)
}

fn medium(path: &Path) -> Medium {
    Medium::of(&fs::File::open(path).unwrap(), &Roots::default()).unwrap().unwrap()
}

fn assert_spared(device: &Path, expected: &Medium) {
    let spared = |error: io::Error| match error.to_string() {
        text if text.contains("leads to another device now") => Ok(()),
        text => Err(text),
    };
    eventually(|| spared(RealHost.erase_device(device, expected).unwrap_err()));
    eventually(|| spared(RealHost.zero(device, expected, Bytes::kib(4)).unwrap_err()));
}

#[test]
fn a_device_with_a_reused_name_is_not_written() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let blank = LoopDevice::over(&zeros(&temp.path().join("blank"), SIZE));
    let claimed = claim(&blank.path).unwrap();
    let diary = marked(&temp.path().join("diary"), SIZE);
    let other = LoopDevice::over(&diary);
    // Another device of the same size behind the claimed name.
    assert_spared(&other.path, claimed.medium());
    assert_spared(Path::new("/dev/null"), claimed.medium());
    assert!(is_marked(&diary));
    RealHost.erase_device(claimed.path(), claimed.medium()).unwrap();
}

#[test]
fn another_file_behind_the_same_loop_device_is_not_written() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let mut device = LoopDevice::over(&zeros(&temp.path().join("blank"), SIZE));
    let expected = medium(&device.path);
    if expected.sequence.is_none() {
        return skipped("needs Linux 5.15");
    }
    let diary = marked(&temp.path().join("diary"), SIZE);
    device.attach_instead(&diary);
    assert_spared(&device.path, &expected);
    drop(device);
    assert!(is_marked(&diary));
}

#[test]
fn a_moved_partition_is_not_written() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = marked(&temp.path().join("image"), 32 << 20);
    let device = LoopDevice::partitioned(&file, 1);
    let part = device.partition(1);
    let expected = medium(&part);
    assert_eq!(expected.start, Some(Bytes::mib(8)));
    let claimed = claim_at_any_price(&device, &part).unwrap();
    // The kernel cannot move a partition while the partition is claimed.
    let [disk, number] = [device.text(), "1".into()];
    let output = Command::new("delpart").args([&disk, &number]).output().unwrap();
    assert!(!output.status.success());
    claimed.recheck().unwrap();
    drop(claimed);
    eventually(|| ran("delpart", &[&disk, &number]));
    run("addpart", &[&disk, &number, &"32768".to_owned(), &"16384".to_owned()]);
    let moved = medium(&part);
    assert_eq!((moved.size, moved.start), (expected.size, Some(Bytes::mib(16))));
    assert_spared(&part, &expected);
    assert!(is_marked(&file));
    // Only the start differs.
    let start = Medium { start: expected.start, ..moved };
    assert_spared(&part, &start);
    assert!(is_marked(&file));
}

/// A link may lead to any device at any time; only the claimed one is written.
#[test]
fn a_link_that_never_stands_still_leads_to_no_other_device() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let blank = LoopDevice::over(&zeros(&temp.path().join("blank"), SIZE));
    let diary = marked(&temp.path().join("diary"), SIZE);
    let other = LoopDevice::over(&diary);
    let (link, next) = (temp.path().join("link"), temp.path().join("next"));
    symlink(&blank.path, &link).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let targets = [&other.path, &blank.path];
            for target in targets.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                symlink(target, &next).unwrap();
                fs::rename(&next, &link).unwrap();
            }
        });
        let (mut claims, mut refusals) = (0, 0);
        for _ in 0..50 {
            match claim(&link) {
                Ok(claimed) => {
                    assert_eq!((claimed.path(), claimed.name()), (&*blank.path, &*blank.name()));
                    // Through the link itself, which a run never does.
                    let _ = RealHost.erase_device(&link, claimed.medium());
                    let _ = claimed.recheck();
                    claims += 1;
                }
                Err(_) => refusals += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(claims + refusals, 50);
    });
    assert!(is_marked(&diary));
}

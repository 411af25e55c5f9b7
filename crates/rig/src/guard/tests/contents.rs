//! Contents of devices, and the names that allow overwriting them.

use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, symlink},
};

use expect_test::expect;
use model::Bytes;

use super::fixture::*;
use crate::{
    guard::{Permission, Refusal, Roots, claim_device},
    signature::{self, tests::crafted},
};

const SIZE: u64 = 16 << 20;

fn permit(names: &[&str]) -> Permission {
    let overwrite = names.iter().map(|name| (*name).to_owned()).collect();
    Permission { overwrite, store_file: "/var/tmp/none.fslab".into() }
}

#[test]
fn every_signature_on_a_device_needs_permission() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    for (kind, parts) in crafted() {
        let write = |fill: &dyn Fn(&[u8]) -> Vec<u8>| {
            let file = File::options().write(true).open(&device.path).unwrap();
            parts
                .iter()
                .for_each(|(offset, bytes)| file.write_all_at(&fill(bytes), *offset).unwrap());
        };
        write(&|bytes| bytes.to_vec());
        let refusal = claim(&device.path).unwrap_err();
        let Refusal::Occupied { description, .. } = &refusal else { panic!("{kind}: {refusal:?}") };
        assert!(description.contains(kind), "{kind}: {description}");
        claim_at_any_price(&device, &device.path).unwrap();
        write(&|bytes| vec![0; bytes.len()]);
        claim(&device.path).unwrap();
    }
}

#[test]
fn a_loop_device_is_identified_by_its_backing_file_only() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), SIZE);
    let device = LoopDevice::over(&file);
    run("mkfs.ext4", &["-q", "-L", "diary", &device.text()]);
    let file = file.to_str().unwrap();
    let real = Roots::default();
    for wrong in [&device.text(), &device.name(), &device.number(), "diary", "", "image"] {
        let refusal = claim_device(&device.path, &permit(&[wrong]), &real, &[]).unwrap_err();
        let text = refusal.to_string();
        assert!(matches!(refusal, Refusal::Occupied { .. }), "{wrong}: {text}");
        assert!(text.contains(&format!("--overwrite-device '{file}'")), "{text}");
        assert!(text.contains("ext4 \"diary\""), "{text}");
    }
    let claimed = claim_device(&device.path, &permit(&["other", file]), &real, &[]).unwrap();
    assert!(claimed.describe().contains("ext4 \"diary\""), "{}", claimed.describe());
    // Permission is required for the contents at the claim, not for those created by the run.
    run("mkfs.ext4", &["-q", "-F", &device.text()]);
    claimed.recheck().unwrap();
}

#[test]
fn the_contents_of_partitions_are_shown_and_need_permission() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), 32 << 20);
    let device = LoopDevice::partitioned(&file, 2);
    let second = device.partition(2);
    run("mkfs.ext4", &["-q", "-L", "photos", second.to_str().unwrap()]);
    let refusal = claim(&device.path).unwrap_err().to_string();
    assert!(refusal.contains("ext4 \"photos\""), "{refusal}");
    claim(&device.partition(1)).unwrap();
    let refusal = claim(&second).unwrap_err().to_string();
    assert!(refusal.contains(&format!("--overwrite-device '{}'", file.display())), "{refusal}");
    claim_at_any_price(&device, &second).unwrap();
}

/// The start of the partition is read completely, but only sampled on the disk.
#[test]
fn data_in_a_partition_that_the_samples_of_the_disk_miss_needs_permission() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), 32 << 20), 1);
    let disk = File::options().read(true).write(true).open(&device.path).unwrap();
    // The cache of the partition, which is open until the claim, has blank blocks.
    let cached = File::open(device.partition(1)).unwrap();
    cached.read_exact_at(&mut [0; 1 << 20], 0).unwrap();
    let missed = (8 << 20..9 << 20).step_by(4096).find(|offset| {
        disk.write_all_at(&[7; 4096], *offset).unwrap();
        let is_missed = signature::in_use(&disk, Bytes(32 << 20)).unwrap().is_none();
        if !is_missed {
            disk.write_all_at(&[0; 4096], *offset).unwrap();
        }
        is_missed
    });
    assert!(missed.is_some());
    drop(disk);
    for path in [&device.path, &device.partition(1)] {
        let refusal = claim(path).unwrap_err();
        assert!(matches!(refusal, Refusal::Occupied { .. }), "{refusal:?}");
    }
    drop(cached);
}

/// A disk and each of its partitions have a cache in the kernel, as long as they are open.
#[test]
fn data_in_the_cache_of_another_node_is_found() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), 32 << 20), 1);
    let part = device.partition(1);
    let start = 8 << 20;
    let nodes = [(&device.path, start), (&part, 0)];
    for [(written, at), (claimed, _)] in [nodes, [nodes[1], nodes[0]]] {
        claim(claimed).unwrap();
        let write = |byte| {
            let file = File::options().read(true).write(true).open(written).unwrap();
            file.write_all_at(&[byte; 4096], at).unwrap();
            // The last close of a node writes its cache, so another one stays open.
            File::open(written).unwrap()
        };
        let cached = File::open(claimed).unwrap();
        cached.read_exact_at(&mut [0; 8192], 0).unwrap();
        let open = write(7);
        let refusal = claim(claimed).unwrap_err();
        assert!(matches!(refusal, Refusal::Occupied { .. }), "{refusal:?}");
        let also_open = write(0);
        claim(claimed).unwrap();
        drop((open, also_open, cached));
    }
}

/// In a container, /dev may lack the nodes of a disk or of its partitions.
#[test]
fn a_missing_node_is_ignored_and_an_unreadable_one_is_refused() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), 32 << 20), 1);
    let part = device.partition(1);
    for (claimed, other) in [(&device.path, &part), (&part, &device.path)] {
        let dev = temp.path().join("dev");
        fs::create_dir(&dev).unwrap();
        let roots = Roots { dev: dev.clone(), ..Roots::default() };
        let claim = || claim_device(claimed, &Permission::default(), &roots, &[]);
        claim().unwrap();
        // A link to itself.
        let node = dev.join(other.file_name().unwrap());
        symlink(&node, &node).unwrap();
        let refusal = claim().unwrap_err();
        assert!(matches!(&refusal, Refusal::Open { path, .. } if *path == node), "{refusal:?}");
        fs::remove_dir_all(dev).unwrap();
    }
}

#[test]
fn a_disk_is_identified_by_model_serial_or_wwid() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    run("mkswap", &["-L", "old", "-U", "01234567-89ab-cdef-0123-456789abcdef", &device.text()]);
    let machine = FakeMachine::around(&device);
    let name = device.name();
    let claim =
        |names: &[&str]| claim_device(&device.path, &permit(names), &machine.roots, &[]).map(drop);
    // Without any unique name, by its number.
    let number = device.number();
    let refusal = claim(&[]).unwrap_err().to_string();
    assert!(refusal.contains(&format!("--overwrite-device '{number}'")), "{refusal}");
    claim(&[&number]).unwrap();

    machine.sys(&format!("block/{name}/device/model"), "SPINNER 9000    \n");
    machine.sys(&format!("block/{name}/device/wwid"), "naa.5000c500a1b2c3d4\n");
    machine.sys(&format!("block/{name}/device/vpd_pg80"), b"\0\x80\0\x08  ZA1234");
    let refusal = claim(&[&number]).unwrap_err();
    let text = refusal.to_string().replace(&name, "sdx");
    expect![[r#"
        sdx contains data that would be overwritten:
        sdx, model SPINNER 9000, serial ZA1234, WWID naa.5000c500a1b2c3d4, 16.7 MB, 16MiB
          sdx (16.7 MB, 16MiB): swap "old" (01234567-89ab-cdef-0123-456789abcdef)
        to allow this, identify the device: --overwrite-device 'ZA1234'
        (a /dev path is not accepted, because it may be another disk after a reboot; a name that several disks share is not accepted either)"#]]
    .assert_eq(&text);
    for right in ["SPINNER 9000", "ZA1234", "naa.5000c500a1b2c3d4"] {
        claim(&[right]).unwrap();
    }
    machine.sys(&format!("block/{name}/dm/name"), "vg0-home\n");
    claim(&["vg0-home"]).unwrap();
    for wrong in ["spinner 9000", "SPINNER", "ZA12345", "vg0", &name] {
        assert!(matches!(claim(&[wrong]), Err(Refusal::Occupied { .. })), "{wrong}");
    }
}

#[test]
fn data_without_a_signature_needs_permission() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), SIZE);
    let device = LoopDevice::over(&file);
    // An archive, the middle and the end of a database, a replicated volume (metadata of DRBD).
    let parts: [(u64, &[u8]); 4] = [
        (0, b"home/letter.txt\0"),
        (8 << 20, &[1; 1 << 20]),
        (SIZE - 1, b"x"),
        (SIZE - 4096 + 60, b"\x83\x74\x02\x6d"),
    ];
    for (offset, bytes) in parts {
        let disk = File::options().write(true).open(&device.path).unwrap();
        disk.write_all_at(bytes, offset).unwrap();
        drop(disk);
        let refusal = claim(&device.path).unwrap_err();
        let Refusal::Occupied { description, .. } = &refusal else { panic!("{refusal:?}") };
        assert!(description.contains("unrecognized data at offset"), "{description}");
        let hint = format!("--overwrite-device '{}'", file.display());
        assert!(refusal.to_string().contains(&hint), "{refusal}");
        claim_at_any_price(&device, &device.path).unwrap();
        run("blkdiscard", &[&device.text()]);
        claim(&device.path).unwrap();
    }
    // A new flash device may return ones.
    let ones = vec![0xff; usize::try_from(SIZE).unwrap()];
    File::options().write(true).open(&device.path).unwrap().write_all_at(&ones, 0).unwrap();
    claim(&device.path).unwrap();
}

#[test]
fn remains_of_a_filesystem_without_signature_need_permission() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let text = device.text();
    let wipe = format!("wipefs -a {text}");
    let zero = format!("dd if=/dev/zero of={text} bs=64K count=1 conv=notrunc,fsync");
    for script in [wipe, zero] {
        run("mkfs.ext4", &["-q", "-F", &text]);
        run("sh", &["-c", &script]);
        let refusal = claim(&device.path).unwrap_err();
        assert!(matches!(refusal, Refusal::Occupied { .. }), "{refusal:?}");
        assert!(refusal.to_string().contains("unrecognized data"), "{refusal}");
    }
}

#[test]
fn a_reserved_partition_needs_permission() {
    if lacks_root() || lacks_program("sfdisk") {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), 64 << 20);
    let tables = [
        (
            "label: gpt",
            ["21686148-6449-6E6F-744E-656564454649", "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"],
        ),
        ("label: dos", ["41", "5"]),
    ];
    let words = [["BIOS boot", "EFI system"], ["PowerPC PReP boot", "extended partition"]];
    for ((label, kinds), words) in tables.into_iter().zip(words) {
        let [first, second] = kinds;
        let script = format!(
            "printf '{label}\nstart=16384, size=16384, type={first}\n\
             start=32768, size=16384, type={second}\nstart=49152, size=16384\n' | sfdisk -q \"$0\""
        );
        run("sh", &["-c", &script, file.to_str().unwrap()]);
        let device = LoopDevice::partitioned(&file, 3);
        for (number, word) in (1..).zip(words) {
            let part = device.partition(number);
            let refusal = claim(&part).unwrap_err();
            let Refusal::Occupied { description, .. } = &refusal else { panic!("{refusal:?}") };
            assert!(description.contains(&format!("partition type {word}")), "{description}");
            claim_at_any_price(&device, &part).unwrap();
        }
        claim(&device.partition(3)).unwrap();
    }
}

/// Partition tables use the sectors of the disk, and sysfs always uses sectors of 512 bytes.
#[test]
fn a_reserved_partition_of_a_disk_with_large_sectors_needs_permission() {
    if lacks_root() || lacks_program("sfdisk") {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), 64 << 20);
    let device = LoopDevice::with(&["--sector-size", "4096"], &file);
    let script = "printf 'label: gpt\\nstart=4096, size=2048, \
        type=21686148-6449-6E6F-744E-656564454649\\n' | sfdisk -q \"$0\"";
    run("sh", &["-c", script, &device.text()]);
    let text = claim(&device.path).unwrap_err().to_string();
    assert!(text.contains("gpt"), "{text}");
    let disk = File::open(&device.path).unwrap();
    let reserved = |mib| signature::reserved(&disk, Bytes(64 << 20), Bytes::mib(mib)).unwrap();
    assert_eq!([reserved(16), reserved(2), reserved(24)], [Some("BIOS boot"), None, None]);
}

#[test]
fn a_name_shared_by_two_disks_identifies_neither() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    run("mkfs.ext4", &["-q", &device.text()]);
    let machine = FakeMachine::around(&device);
    let name = device.name();
    let claim =
        |names: &[&str]| claim_device(&device.path, &permit(names), &machine.roots, &[]).map(drop);
    machine.sys(&format!("block/{name}/device/model"), "PAIR 1\n");
    machine.sys(&format!("block/{name}/device/serial"), "0000\n");
    claim(&["0000"]).unwrap();
    machine.disk("sdz", "65:144");
    machine.sys("block/sdz/device/model", "PAIR 1\n");
    claim(&["0000"]).unwrap();
    let text = claim(&["PAIR 1"]).unwrap_err().to_string();
    assert!(text.contains("--overwrite-device '0000'"), "{text}");
    machine.sys("block/sdz/device/serial", "0000\n");
    let number = device.number();
    let text = claim(&["0000", "PAIR 1"]).unwrap_err().to_string();
    assert!(text.contains(&format!("--overwrite-device '{number}'")), "{text}");
    claim(&[&number]).unwrap();
}

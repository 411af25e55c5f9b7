//! Devices in use are rejected regardless of permission.

use std::{fs::File, os::unix::fs::OpenOptionsExt, path::Path};

use rustix::fs::OFlags;

use super::fixture::*;
use crate::guard::{Number, Refusal, block::Block};

const SIZE: u64 = 32 << 20;

/// Asserts a refusal of this variant whose text contains all these words.
macro_rules! assert_refused {
    ($result:expr, $variant:ident, $($word:expr),+) => {{
        let refusal = $result.unwrap_err();
        assert!(matches!(refusal, Refusal::$variant { .. }), "{refusal:?}");
        let text = refusal.to_string();
        $(assert!(text.contains(&*$word), "`{}` is not in: {text}", $word);)+
    }};
}

#[test]
fn a_mounted_device() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let claimed = claim(&device.path).unwrap();
    run("mkfs.ext4", &["-q", &device.text()]);
    let point = temp.path().join("a mount point");
    let mount = Mount::new(&[], &device.path, &point);
    let at = point.to_str().unwrap();
    assert_refused!(claim_at_any_price(&device, &device.path), Mounted, device.name(), at);
    // A device that was free at the claim is checked again.
    assert_refused!(claimed.recheck(), Mounted, at);
    drop(mount);
    eventually(|| claimed.recheck());
}

#[test]
fn a_disk_with_a_mounted_partition_but_not_its_free_partition() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 2);
    let (used, free) = (device.partition(1), device.partition(2));
    run("mkfs.ext4", &["-q", used.to_str().unwrap()]);
    let _mount = Mount::new(&[], &used, &temp.path().join("mnt"));
    let through = format!("{}p1", device.name());
    assert_refused!(claim_at_any_price(&device, &device.path), Mounted, through);
    assert_refused!(claim_at_any_price(&device, &used), Mounted, through);
    let claimed = claim(&free).unwrap();
    claimed.recheck().unwrap();
    assert_eq!(claimed.name(), format!("{}p2", device.name()));
    assert_eq!(claimed.size(), model::Bytes::mib(8));
}

#[test]
fn a_partition_of_a_disk_that_is_mounted_as_a_whole() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 1);
    // mkfs would overwrite the partition table.
    run("mkfs.ext4", &["-q", "-F", &device.text(), "4M"]);
    let _mount = Mount::new(&[], &device.path, &temp.path().join("mnt"));
    let part = device.partition(1);
    assert_refused!(claim_at_any_price(&device, &part), Mounted, device.name());
}

#[test]
fn a_device_mounted_in_another_mount_namespace() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    run("mkfs.ext4", &["-q", &device.text()]);
    let holder =
        Holder::shell(&["unshare", "-m"], "mount \"$0\" \"$1\"", &[&device.path, temp.path()]);
    assert_refused!(
        claim_at_any_price(&device, &device.path),
        MountedElsewhere,
        "mount namespace of process",
        temp.path().to_str().unwrap()
    );
    drop(holder);
}

#[test]
fn every_member_of_a_mounted_btrfs() {
    if lacks_root() || lacks_program("mkfs.btrfs") {
        return;
    }
    let temp = scratch();
    let first = LoopDevice::over(&zeros(&temp.path().join("first"), 128 << 20));
    let second = LoopDevice::over(&zeros(&temp.path().join("second"), 128 << 20));
    run("mkfs.btrfs", &["-q", "-f", &first.text(), &second.text()]);
    let options = format!("device={},device={}", first.text(), second.text());
    let mount = Mount::new(&["-o", &options], &first.path, &temp.path().join("mnt"));
    let at = mount.0.to_str().unwrap();
    assert_refused!(claim_at_any_price(&first, &first.path), Mounted, first.name(), at);
    assert_refused!(claim_at_any_price(&second, &second.path), Mounted, second.name(), at);
}

#[test]
fn swap_on_a_device_and_on_a_partition() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 2);
    let claimed = claim(&device.path).unwrap();
    let swap = Swap::on(&device.partition(2));
    let through = format!("{}p2", device.name());
    assert_refused!(claimed.recheck(), Swap, through);
    assert_refused!(claim_at_any_price(&device, &device.path), Swap, through);
    drop(claimed);
    claim(&device.partition(1)).unwrap();
    drop(swap);
    let _swap = Swap::on(&device.path);
    assert_refused!(claim_at_any_price(&device, &device.path), Swap, device.name());
    assert_refused!(claim_at_any_price(&device, &device.partition(1)), Swap, device.name());
}

#[test]
fn a_loop_device_on_top() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 2);
    let upper = LoopDevice::over(&device.partition(1));
    assert_refused!(claim_at_any_price(&device, &device.path), LoopOnTop, upper.name());
    assert_refused!(claim_at_any_price(&device, &device.partition(1)), LoopOnTop, upper.name());
    claim(&device.partition(2)).unwrap();
    // A loop device on the whole disk uses every partition.
    let all = LoopDevice::over(&device.path);
    assert_refused!(claim_at_any_price(&device, &device.partition(2)), LoopOnTop, all.name());
}

#[test]
fn a_filesystem_on_a_device_on_top() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let upper = LoopDevice::over(&device.path);
    run("mkfs.ext4", &["-q", &upper.text()]);
    let _mount = Mount::new(&[], &upper.path, &temp.path().join("mnt"));
    assert_refused!(claim_at_any_price(&device, &device.path), Mounted, upper.name());
}

#[test]
fn holders_of_a_disk_and_of_its_partition() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let name = device.name();

    let machine = FakeMachine::around(&device);
    machine.claim(&device.path).unwrap();
    machine.disk("dm-7", "253:7");
    machine.sys("block/dm-7/dm/name", "vg0-home\n");
    machine.stack("dm-7", &name);
    assert_refused!(machine.claim(&device.path), Held, "dm-7 (vg0-home)");

    let machine = FakeMachine::around(&device);
    let partition = format!("block/{name}/{name}p1");
    machine.device(&partition, "259:99");
    machine.sys(&format!("{partition}/partition"), "1\n");
    machine.disk("md127", "9:127");
    machine.stack("md127", &format!("{name}/{name}p1"));
    assert_refused!(machine.claim(&device.path), Held, "md127", format!("through {name}p1"));

    // If a device has a holder and is mounted, the mount is reported. Here, the mount is three
    // levels up, on a partition of the array.
    machine.device("block/md127/md127p1", "259:100");
    machine.sys("block/md127/md127p1/partition", "1\n");
    machine.proc("self/mountinfo", "9 1 259:100 / /srv rw - xfs /dev/md127p1 rw\n");
    assert_refused!(machine.claim(&device.path), Mounted, "/srv", "md127p1");
}

#[test]
fn a_device_open_for_writing() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let reader = Holder::shell(&[], "exec 3<\"$0\"", &[&device.path]);
    claim(&device.path).unwrap();
    drop(reader);
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&device.path]);
    assert_refused!(claim_at_any_price(&device, &device.path), OpenForWriting, "sh (process");
    drop(writer);
    claim(&device.path).unwrap();
}

/// A device node in another directory, as in a container or a virtual machine.
#[test]
fn a_device_open_for_writing_through_another_node() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let node = temp.path().join("disk of a guest");
    let number = device.number();
    let (major, minor) = number.split_once(':').unwrap();
    run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&node]);
    assert_refused!(claim_at_any_price(&device, &device.path), OpenForWriting, "sh (process");
    // The node may no longer exist.
    std::fs::remove_file(&node).unwrap();
    assert_refused!(claim_at_any_price(&device, &device.path), OpenForWriting, "sh (process");
    drop(writer);
    claim(&device.path).unwrap();
}

/// Character devices of a disk, represented by `/dev/zero`, which few programs open for writing.
#[test]
fn a_disk_open_for_writing_bypassing_the_block_layer() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let name = device.name();
    for generic in ["scsi_generic/sg7", "bsg/0:0:0:0"] {
        let mut machine = FakeMachine::around(&device);
        machine.roots.proc = "/proc".into();
        machine.sys(&format!("block/{name}/device/{generic}/dev"), "1:5\n");
        machine.claim(&device.path).unwrap();
        let writer = Holder::shell(&[], "exec 3<>/dev/zero", &[]);
        let through = format!("through {}", generic.split_once('/').unwrap().1);
        assert_refused!(machine.claim(&device.path), OpenForWriting, through);
        drop(writer);
        machine.claim(&device.path).unwrap();
    }
    // The character device of an NVMe namespace is named after it.
    let machine = FakeMachine::around(&device);
    machine.disk("nvme3n2", "259:77");
    machine.sys("block/nvme3n2/device/ng3n2/dev", "1:5\n");
    let namespace = Block::find(Number::parse("259:77").unwrap(), &machine.roots).unwrap();
    assert_eq!(namespace.generic(), [("ng3n2".to_owned(), Number::parse("1:5").unwrap())]);
}

#[test]
fn a_loop_device_over_a_device_in_use() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 2);
    let part = device.partition(1);
    run("mkfs.ext4", &["-q", part.to_str().unwrap()]);
    let mount = Mount::new(&[], &part, &temp.path().join("mnt"));
    let at = mount.0.to_str().unwrap();
    for below in [&part, &device.path] {
        let upper = LoopDevice::over(below);
        assert_refused!(claim_at_any_price(&upper, &upper.path), Mounted, at);
    }
    let upper = LoopDevice::over(&device.partition(2));
    claim(&upper.path).unwrap();
}

#[test]
fn a_loop_device_whose_file_has_other_users() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let file = zeros(&temp.path().join("image"), SIZE);
    let device = LoopDevice::over(&file);
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&file]);
    assert_refused!(claim_at_any_price(&device, &device.path), OpenForWriting, "sh (process");
    drop(writer);
    claim(&device.path).unwrap();
    run("mkfs.ext4", &["-q", &device.text()]);
    let second = LoopDevice::over(&file);
    let _mount = Mount::new(&[], &second.path, &temp.path().join("mnt"));
    assert_refused!(claim_at_any_price(&device, &device.path), Mounted, second.name());
}

#[test]
fn a_device_mounted_under_another_mount_or_by_a_subdirectory() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    run("mkfs.ext4", &["-q", &device.text()]);
    let [point, other] = ["mnt", "other"].map(|name| temp.path().join(name));
    let mount = Mount::new(&[], &device.path, &point);
    let over = Mount::new(&["-t", "tmpfs"], Path::new("none"), &point);
    assert_refused!(claim_at_any_price(&device, &device.path), Mounted, point.to_str().unwrap());
    drop(over);
    std::fs::create_dir(point.join("part")).unwrap();
    let bound = Mount::new(&["--bind"], &point.join("part"), &other);
    drop(mount);
    assert_refused!(claim_at_any_price(&device, &device.path), Mounted, other.to_str().unwrap());
    // Unmounted lazily, and still in use.
    let open = File::create(other.join("file")).unwrap();
    run("umount", &["-l", bound.0.to_str().unwrap()]);
    assert_refused!(claim_at_any_price(&device, &device.path), Busy, device.name());
    drop((open, bound));
}

/// Any claim in the kernel (a pool, a journal, a cache) has this effect.
#[test]
fn a_device_claimed_only_in_the_kernel() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 2);
    let exclusive = |path: &Path| {
        let flags = OFlags::EXCL.bits().cast_signed();
        File::options().read(true).custom_flags(flags).open(path).unwrap()
    };
    let held = exclusive(&device.partition(1));
    assert_refused!(claim_at_any_price(&device, &device.path), Busy, device.name());
    assert_refused!(claim_at_any_price(&device, &device.partition(1)), Busy, device.name());
    claim(&device.partition(2)).unwrap();
    drop(held);
    let claimed = claim(&device.path).unwrap();
    let _held = exclusive(&device.path);
    assert_refused!(claimed.recheck(), Busy, device.name());
}

#[test]
fn an_unreadable_machine_state() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    for missing in ["proc/self/mountinfo", "proc/swaps", "sys/dev/block"] {
        let machine = FakeMachine::around(&device);
        let path = machine.temp.path().join(missing);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        assert_refused!(machine.claim(&device.path), Unreadable, path.to_str().unwrap());
    }
}

#[test]
fn transient_use_is_ignored() {
    let mut looks = vec![None, Some("losetup"), Some("losetup")];
    assert_eq!(crate::guard::usage::persistent(|| looks.pop().unwrap()), None);
    assert_eq!(crate::guard::usage::persistent(|| Some("qemu")), Some("qemu"));
}

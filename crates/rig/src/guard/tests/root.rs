//! The device of `/` is rejected, regardless of the number of devices in between.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::fixture::*;
use crate::guard::{Permission, Refusal, Roots, claim_device};

/// Passes the device to claim to this test inside the new root.
const INSIDE: &str = "FSLAB_GUARD_TEST_ROOT_DEVICE";

fn assert_under_root(result: Result<crate::guard::ClaimedDevice, Refusal>) {
    let refusal = result.unwrap_err();
    assert!(matches!(refusal, Refusal::UnderRoot { .. }), "{refusal:?}");
}

/// Starts this test in another process with a loop device as `/`. The mount namespace of this
/// process exists only while the process runs.
#[test]
fn the_device_of_a_real_root() {
    if lacks_root() {
        return;
    }
    if let Some(device) = std::env::var_os(INSIDE) {
        let name = Path::new(&device).file_name().unwrap().to_str().unwrap().to_owned();
        let backing = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
        let overwrite = vec![backing.unwrap().trim().to_owned()];
        let permission = Permission { overwrite, store_file: PathBuf::new() };
        let claimed = claim_device(Path::new(&device), &permission, &Roots::default(), &[]);
        return assert_under_root(claimed);
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), 32 << 20));
    run("mkfs.ext4", &["-q", &device.text()]);
    let program = std::env::current_exe().unwrap();
    let script = "mount \"$1\" \"$0\" && cd \"$0\" && touch program \
        && for temp in proc sys dev usr lib lib64 bin; do \
             [ -e /$temp ] || continue; \
             mkdir $temp && mount --rbind /$temp $temp || exit 1; \
           done \
        && mount --bind \"$2\" program && exec chroot . /program --exact --nocapture \"$3\"";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &format!("{DETACH}{script}")])
        .args([temp.path(), &device.path, &program])
        .arg("guard::tests::root::the_device_of_a_real_root")
        .env(INSIDE, &device.path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn all_devices_below_a_root() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), 16 << 20));
    let name = device.name();
    // `/` is a logical volume on an encrypted md array with a partition of the device as member.
    let machine = FakeMachine::around(&device);
    let partition = format!("block/{name}/{name}p3");
    machine.device(&partition, "259:99");
    machine.sys(&format!("{partition}/partition"), "3\n");
    for (disk, number) in [("md0", "9:0"), ("dm-0", "253:0"), ("dm-1", "253:1")] {
        machine.disk(disk, number);
    }
    machine.stack("md0", &format!("{name}/{name}p3"));
    machine.stack("dm-0", "md0");
    machine.stack("dm-1", "dm-0");
    machine.proc(
        "self/mountinfo",
        "1 1 0:2 / / rw - rootfs rootfs rw\n2 1 253:1 / / rw - ext4 /dev/mapper/vg-root rw\n",
    );
    assert_under_root(machine.claim(&device.path));
}

/// The devices of `/` are also found from the top: here the lower one lists no holder.
#[test]
fn a_device_listed_only_at_the_root() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), 16 << 20));
    let machine = FakeMachine::around(&device);
    machine.disk("dm-0", "253:0");
    machine.proc("self/mountinfo", "2 1 253:0 / / rw - ext4 /dev/mapper/vg-root rw\n");
    machine.claim(&device.path).unwrap();
    let name = device.name();
    machine.link(&format!("block/dm-0/slaves/{name}"), &format!("block/{name}"));
    assert_under_root(machine.claim(&device.path));
}

#[test]
fn every_member_of_a_btrfs_root() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), 16 << 20));
    let machine = FakeMachine::around(&device);
    machine.disk("sdz", "65:144");
    let uuid = "fs/btrfs/8d4a9d2e-0000-4000-8000-000000000001/devices";
    machine.link(&format!("{uuid}/sdz"), "block/sdz");
    // Mounted by the other member, and anonymous in mountinfo.
    machine.proc(
        "self/mountinfo",
        &format!("2 1 0:30 /@ / rw - btrfs {} rw,subvol=/@\n", device.text()),
    );
    assert_under_root(machine.claim(&device.path));
    machine.link(&format!("{uuid}/{}", device.name()), &format!("block/{}", device.name()));
    machine.proc("self/mountinfo", "2 1 65:144 / / rw - btrfs /dev/sdz rw\n");
    assert_under_root(machine.claim(&device.path));
}

/// In a container `/` is another filesystem; the root of process 1 is still that of the machine.
#[test]
fn the_root_of_process_1() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), 16 << 20));
    let machine = FakeMachine::around(&device);
    machine.claim(&device.path).unwrap();
    let line = format!("2 1 {} / / rw - ext4 /dev/root rw\n", device.number());
    machine.proc("1/mountinfo", &line);
    assert_under_root(machine.claim(&device.path));
}

#[test]
fn the_disk_below_the_file_of_a_loop_root() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), 32 << 20));
    run("mkfs.ext4", &["-q", &device.text()]);
    let mount = Mount::new(&[], &device.path, &temp.path().join("mnt"));
    let inner = zeros(&mount.0.join("root.img"), 1 << 20);
    let machine = FakeMachine::around(&device);
    machine.disk("loop999", "7:999");
    machine.sys("block/loop999/loop/backing_file", inner.to_str().unwrap());
    machine.proc("self/mountinfo", "2 1 7:999 / / rw - ext4 /dev/loop999 rw\n");
    assert_under_root(machine.claim(&device.path));
}

//! A claimed disk is locked until the end of the run. Another program can lock it only while a
//! program of the run works; another run can never claim it.

use std::{fs, path::Path, process::Command};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::fixture::*;
use crate::guard::{Permission, Refusal, Roots, claim_device, lock::holder};

const SIZE: u64 = 32 << 20;

/// True if another program can lock a node.
fn is_free(node: &Path) -> bool {
    Command::new("flock").arg("-xn").arg(node).arg("true").status().unwrap().success()
}

#[test]
fn two_runs_do_not_share_a_disk() {
    if lacks_root() || is_the_other_process() {
        return;
    }
    let test = "guard::tests::lock::two_runs_do_not_share_a_disk";
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 2);
    let (one, two) = (device.partition(1), device.partition(2));
    let refused = format!("{} is locked by rig-", device.name());
    let first = claim(&one).unwrap();
    for path in [&one, &two, &device.path] {
        let text = claim_in_another_process(test, path);
        assert!(text.contains(&refused) && text.contains("another fslab run"), "{text}");
    }
    // One run may use both.
    let (permission, roots) = (Permission::default(), Roots::default());
    let held = [first];
    let second = claim_device(&two, &permission, &roots, &held).unwrap();
    drop(held);
    assert!(claim_in_another_process(test, &one).contains(&refused));
    // While a program works, another program may lock the disk, but another run cannot claim it.
    second.lock().lend();
    assert!(is_free(&device.path));
    assert!(claim_in_another_process(test, &one).contains(&refused));
    second.lock().take_back().unwrap();
    assert!(!is_free(&device.path));
    drop(second);
    assert!(is_free(&device.path));
    assert!(claim_in_another_process(test, &one).contains("claimed"));
}

#[test]
fn a_disk_locked_by_another_program_is_rejected() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 1);
    // The whole disk is locked, for a partition as well.
    let locker = Holder::shell(&[], "exec 3<\"$0\" && flock -x 3", &[&device.path]);
    for path in [&device.path, &device.partition(1)] {
        let refusal = claim_at_any_price(&device, path).unwrap_err();
        assert!(matches!(refusal, Refusal::Locked { .. }), "{refusal:?}");
        let text = refusal.to_string();
        assert!(text.contains("is locked by") && text.contains("lslocks"), "{text}");
    }
    drop(locker);
    claim(&device.path).unwrap();
    claim(&device.partition(1)).unwrap();
}

/// In a container, /dev may lack the node of the disk.
#[test]
fn without_a_node_of_the_disk_the_partition_is_locked() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 1);
    let dev = temp.path().join("dev");
    fs::create_dir(&dev).unwrap();
    let roots = Roots { dev, ..Roots::default() };
    let part = device.partition(1);
    let claimed = claim_device(&part, &Permission::default(), &roots, &[]).unwrap();
    assert!(!is_free(&part) && is_free(&device.path));
    drop(claimed);
    assert!(is_free(&part));
}

/// A process between fork and exec shares the open files.
#[test]
fn a_lock_is_released_although_its_file_is_open() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let claimed = claim(&device.path).unwrap();
    let own = rustix::process::getpid();
    let process = pidfd_open(own, PidfdFlags::empty()).unwrap();
    let shared = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let number = entry.file_name().to_str()?.parse().ok()?;
        (fs::read_link(entry.path()).ok()? == device.path)
            .then(|| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).unwrap())
    });
    let shared: Vec<_> = shared.collect();
    assert!(!shared.is_empty() && !is_free(&device.path));
    drop(claimed);
    assert!(is_free(&device.path));
}

#[test]
fn the_holder_of_a_lock_is_found() {
    use std::os::unix::fs::MetadataExt as _;
    let temp = scratch();
    let file = fs::File::create(temp.path().join("locked")).unwrap();
    let inode = file.metadata().unwrap().ino();
    let roots = Roots { proc: temp.path().into(), ..Roots::default() };
    assert_eq!(holder(&file, &roots), "another process");
    let name = |process: u32, name: &str| {
        fs::create_dir(temp.path().join(process.to_string())).unwrap();
        fs::write(temp.path().join(format!("{process}/comm")), name).unwrap();
    };
    name(11, "other\n");
    name(12, "waiting\n");
    name(13, "flock\n");
    // A lock of another file, a process that waits, unknown processes, and the holder.
    let locks = format!(
        "1: FLOCK  ADVISORY  WRITE 11 08:01:1{inode} 0 EOF\n\
         2: -> FLOCK  ADVISORY  WRITE 12 08:01:{inode} 0 EOF\n\
         3: OFDLCK ADVISORY  WRITE -1 08:01:{inode} 0 EOF\n\
         4: FLOCK  ADVISORY  WRITE 0 08:01:{inode} 0 EOF\n\
         5: FLOCK  ADVISORY  WRITE 13 08:01:{inode} 0 EOF\n"
    );
    fs::write(temp.path().join("locks"), locks).unwrap();
    assert_eq!(holder(&file, &roots), "flock (process 13)");
}

/// As by udev, which probes a disk after each write.
#[test]
fn a_lock_that_is_held_briefly_is_awaited() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let mut flock = Command::new("flock");
    let mut other = flock.arg("-x").arg(&device.path).args(["sleep", "0.5"]).spawn().unwrap();
    while is_free(&device.path) {
        std::thread::yield_now();
    }
    claim(&device.path).unwrap();
    other.wait().unwrap();
}

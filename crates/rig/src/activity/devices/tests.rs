use std::os::unix::fs::symlink;

use super::*;
use crate::{host::FakeHost, mount::MountRequest};

const LINE: &str = "10 1 80 5 20 2 160 7 0 9 12 3 0 8 1 4 2";

/// An image on a loop device; its backing file is on a partition of `sdb`, mounted at `/srv`.
fn machine(root: &Path) -> FakeHost {
    let host = FakeHost::new(root)
        .file("/sys/class/block/loop0/dev", "7:0\n")
        .file("/sys/class/block/loop0/stat", LINE)
        .file("/sys/class/block/loop0/loop/backing_file", "/srv/images/one\n")
        .file("/sys/devices/sdb/dev", "8:16\n")
        .file("/sys/devices/sdb/stat", LINE)
        .file("/sys/devices/sdb/sdb1/dev", "8:17\n")
        .file("/sys/devices/sdb/sdb1/stat", LINE)
        .file("/sys/devices/sdb/sdb1/partition", "1\n")
        .file("/dev/sdb1", "");
    for (name, target) in [("sdb", "sdb"), ("sdb1", "sdb/sdb1")] {
        let link = host.at(&Path::new(CLASS).join(name));
        // The directory may be used by several hosts of a test.
        if link.symlink_metadata().is_err() {
            symlink(host.at(&Path::new("/sys/devices").join(target)), link).unwrap();
        }
    }
    mount(&host, "ext4", "/dev/sdb1", "/srv");
    host
}

fn mount(host: &FakeHost, fstype: &str, source: &str, target: &str) {
    let options = String::new();
    let (fstype, source) = (fstype.to_owned(), source.to_owned());
    host.mount(&MountRequest { source, target: target.into(), fstype, options }).unwrap();
}

fn names(stack: &Stack) -> Vec<(&str, u32)> {
    stack.devices.iter().map(|device| (device.name.as_str(), device.depth)).collect()
}

#[test]
fn a_stack_is_followed_to_the_disk() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path())
        .file("/sys/class/block/dm-0/slaves/loop0", "")
        .file("/sys/class/block/dm-0/slaves/sdb", "");
    let stack = Stack::of(&host, &["dm-0".into(), "loop0".into()]);
    assert_eq!(names(&stack), [("dm-0", 0), ("loop0", 1), ("sdb1", 2), ("sdb", 3)]);
    assert_eq!(stack.unavailable, []);
    assert!(stack.devices[2].partition && !stack.devices[3].partition);
    for ours in ["sdb", "8:17", "loop0", "7:0"] {
        assert!(stack.contains(ours), "{ours}");
    }
    for foreign in ["sda", "loop", "7:1", "", "8"] {
        assert!(!stack.contains(foreign), "{foreign}");
    }
}

#[test]
fn a_file_in_memory_ends_a_stack_and_an_unknown_holder_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/sys/class/block/loop0/loop/backing_file", "/tmp/one (deleted)\n")
        .file("/sys/class/block/loop1/loop/backing_file", "/pool/two\n");
    mount(&host, "tmpfs", "tmpfs", "/tmp");
    mount(&host, "zfs", "pool", "/pool");
    let stack = Stack::of(&host, &["loop0".into(), "loop1".into()]);
    assert_eq!(names(&stack), [("loop0", 0), ("loop1", 0)]);
    let names: Vec<&str> = stack.unavailable.iter().map(|absent| absent.what.as_str()).collect();
    assert_eq!(names, ["devices below loop1"]);
}

#[test]
fn activity_is_the_difference_of_two_readings() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let stack = Stack::of(&host, &["loop0".into()]);
    let before = Counters::read(&host, &stack);
    let host =
        host.file("/sys/class/block/loop0/stat", "11 3 88 5 24 7 176 7 0 15 19 3 0 24 1 9 2");
    let mut absent = Vec::new();
    let (works, uncounted) = Counters::read(&host, &stack).since(&before, &stack, &mut absent);
    let loop0 = DeviceActivity {
        name: "loop0".into(),
        depth: 0,
        read: Bytes(8 * 512),
        written: Bytes(16 * 512),
        reads: 1,
        writes: 4,
        reads_merged: 2,
        writes_merged: 5,
        discarded: Some(Bytes(16 * 512)),
        flushes: Some(5),
        queue_time: model::Nanos(7_000_000),
        busy: model::Nanos(6_000_000),
    };
    assert_eq!(works[0], loop0);
    assert_eq!((works[1].name.as_str(), works[1].flushes), ("sdb1", None));
    assert_eq!((works[2].name.as_str(), works[2].flushes), ("sdb", Some(0)));
    let names: Vec<&str> = absent.iter().map(|absent| absent.what.as_str()).collect();
    assert_eq!(names, ["flush counts of sdb1"]);
    assert_eq!(uncounted, []);
}

#[test]
fn missing_counters_are_unavailable() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/sys/class/block/sda/stat", "10 1 80 5 20 2 160 7 0 9 12")
        .file("/sys/class/block/sdb/stat", LINE)
        .file("/sys/class/block/sdb/queue/iostats", "0\n")
        .file("/sys/class/block/sdc/stat", LINE)
        .file("/sys/class/block/sdd/dev", "8:48\n");
    let stack = Stack::of(&host, &["sda", "sdb", "sdc", "sdd"].map(String::from));
    let before = Counters::read(&host, &stack);
    let host = host.file("/sys/class/block/sdc/stat", "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    let mut absent = Vec::new();
    let (works, uncounted) = Counters::read(&host, &stack).since(&before, &stack, &mut absent);
    assert_eq!(works.len(), 1);
    let uncounted: Vec<_> =
        uncounted.into_iter().map(|device| (device.name, device.depth)).collect();
    assert_eq!(uncounted, ["sdb", "sdc", "sdd"].map(|name| (name.to_owned(), 0)));
    assert_eq!((works[0].discarded, works[0].flushes), (None, None));
    let names: Vec<&str> = absent.iter().map(|absent| absent.what.as_str()).collect();
    let expected =
        ["discarded bytes of sda", "flush counts of sda", "I/O of sdb", "I/O of sdc", "I/O of sdd"];
    assert_eq!(names, expected);
}

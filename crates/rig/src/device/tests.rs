use super::*;
use crate::host::FakeHost;

#[test]
fn statistics_of_all_kernel_versions_are_parsed() {
    let line = "  10 0 80 5 20 0 160 7 3 9 12";
    let old = DeviceStat::parse(line).unwrap();
    assert_eq!(old.counters, DeviceCounters { read: Bytes(80 * 512), written: Bytes(160 * 512) });
    assert_eq!((old.completed, old.in_flight), (30, 3));
    let new = DeviceStat::parse(&format!("{line} 1 0 8 0 4 2\n")).unwrap();
    assert_eq!((new.completed, new.counters), (35, old.counters));
    assert_eq!((old.discarded, old.flushes), (None, None));
    assert_eq!((new.discarded, new.flushes), (Some(Bytes(8 * 512)), Some(4)));
    assert_eq!((new.reads, new.reads_merged, new.writes, new.writes_merged), (10, 0, 20, 0));
    assert_eq!((new.busy, new.queue_time), (Milliseconds(9), Milliseconds(12)));
    assert_eq!(DeviceStat::parse("1 2 3"), None);
    assert_eq!(DeviceStat::parse(""), None);
}

#[test]
fn wrapped_times_are_handled() {
    let passed = |earlier, later| Milliseconds(later).since(Milliseconds(earlier));
    assert_eq!(passed(5, 8), Nanos(3_000_000));
    assert_eq!(passed((1 << 32) - 2, 1), Nanos(3_000_000));
    assert_eq!(passed(1 << 40, 1), Nanos(0), "more than 32 bits do not wrap");
}

#[test]
fn devices_other_than_dedicated_disks_are_described() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/sys/class/block/sda/queue/scheduler", "none")
        .file("/sys/class/block/sda/device/vendor", "QEMU    ")
        .file("/sys/class/block/sda/device/model", "QEMU HARDDISK   ")
        .file("/sys/class/block/sdb/queue/scheduler", "none")
        .file("/sys/class/block/sdb/device/model", "Samsung SSD 870");
    let described = |name: &str| describe_virtual(&host, name);
    assert_eq!(described("sda").as_deref(), Some("a virtual disk (QEMU QEMU HARDDISK): sda"));
    assert_eq!(described("sdb"), None);
    assert_eq!(described("vda1").as_deref(), Some("a virtual disk (virtio): vda1"));
    assert_eq!(described("dm-0").as_deref(), Some("a device-mapper device: dm-0"));
}

#[test]
fn images_describe_their_attachment() {
    let image = |direct, allocation| Image {
        path: "/i".into(),
        identity: Identity { device: 1, inode: 2 },
        size: Bytes::mib(1),
        allocation,
        attached: Mutex::new(Attached {
            device: "/dev/loop0".into(),
            direct,
            step: serde_json::from_str("0").unwrap(),
        }),
    };
    let full = image(true, Allocation::Preallocated).description();
    assert_eq!(full, "an image file on a loop device with direct I/O to the file");
    let sparse = image(false, Allocation::Sparse).description();
    assert!(sparse.contains("sparse") && sparse.contains("buffered"), "{sparse}");
}

use super::*;
use crate::host::FakeHost;

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
            size: Bytes(0),
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

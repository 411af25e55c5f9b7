use expect_test::expect;

use super::*;
use crate::{host::FakeHost, mount::MountRequest};

fn text(facts: &Environment) -> String {
    facts.0.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
}

#[test]
fn facts_of_the_machine_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path())
        .file("/proc/sys/kernel/osrelease", "6.18.4\n")
        .file("/proc/cmdline", "root=/dev/vda [x] quiet\n")
        .file(
            "/proc/cpuinfo",
            "processor : 0\nmodel name : Some CPU\nflags : fpu hypervisor\n\nprocessor : 1\n",
        )
        .file("/proc/meminfo", "MemTotal:  1024 kB\nSwapTotal:  0 kB\n")
        .file("/proc/sys/vm/dirty_ratio", "20\n")
        .file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        .file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n")
        .file("/etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n");
    expect![[r#"
        cpu.count = 2
        cpu.mitigation.meltdown = Mitigation: PTI
        cpu.model = Some CPU
        cpu.virtual = yes
        host.cgroup = none
        host.distribution = Debian GNU/Linux 12
        kernel.command_line = root=/dev/vda [x] quiet
        kernel.release = 6.18.4
        memory.huge_pages = madvise
        memory.swap_bytes = 0
        memory.total_bytes = 1048576
        vm.dirty_ratio = 20
    "#]]
    .assert_eq(&text(&machine(&host)));
}

#[test]
fn an_unknown_machine_has_no_facts_but_that_it_has_no_groups() {
    let folder = tempfile::tempdir().unwrap();
    expect![[r#"
        host.cgroup = none
    "#]]
    .assert_eq(&text(&machine(&FakeHost::new(folder.path()))));
}

#[test]
fn facts_of_a_stack_of_devices() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path())
        .file("/sys/class/block/dm-0/size", "2048\n")
        .file("/sys/class/block/dm-0/dm/name", "vg-lv\n")
        .file("/sys/class/block/dm-0/queue/rotational", "1\n")
        .file("/sys/class/block/dm-0/slaves/sda", "")
        .file("/sys/class/block/sda/size", "4096\n")
        .file("/sys/class/block/sda/queue/scheduler", "none [bfq]\n")
        .file("/sys/class/block/sda/queue/write_cache", "write back\n")
        .file("/sys/class/block/sda/device/model", "Disk of mine   \n")
        .file("/sys/class/block/sda/device/vendor", "  \n");
    expect![[r#"
        device.dm-0.below = sda
        device.dm-0.mapper.name = vg-lv
        device.dm-0.queue.rotational = 1
        device.dm-0.size_bytes = 1048576
        device.sda.model = Disk of mine
        device.sda.queue.scheduler = bfq
        device.sda.queue.write_cache = write back
        device.sda.size_bytes = 2097152
    "#]]
    .assert_eq(&text(&device(&host, "dm-0")));
}

#[test]
fn what_lies_under_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path())
        .file("/dev/sda", "")
        .file("/sys/class/block/sda/size", "4096\n")
        .file("/sys/fs/btrfs/u-u/devices/sda", "");
    let mount = |fstype: &str, source: &str, target: &str| {
        let options = "noatime".to_owned();
        let (fstype, source) = (fstype.to_owned(), source.to_owned());
        host.mount(&MountRequest { source, target: target.into(), fstype, options }).unwrap();
    };
    mount("overlay", "overlay", "/");
    mount("btrfs", "/dev/sda", "/srv");
    assert_eq!(device_of(&host, Path::new("/home/me")), None);
    assert_eq!(device_of(&host, Path::new("/srv/images")).as_deref(), Some("sda"));
    expect![[r#"
        backing.device = sda
        backing.fstype = btrfs
        backing.options = rw,noatime
        backing.size_bytes = 1073741824
        backing.source = /dev/sda
        backing.usable_bytes = 943718400
        device.sda.size_bytes = 2097152
    "#]]
    .assert_eq(&text(&holder(&host, Path::new("/srv/images"))));
    // With a second device its counters alone would not tell what the filesystem moves.
    let host = host.file("/sys/fs/btrfs/u-u/devices/sdb", "");
    assert_eq!(device_of(&host, Path::new("/srv/images")), None);
}

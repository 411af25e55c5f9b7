use expect_test::expect;

use super::*;
use crate::{host::FakeHost, mount::MountRequest, sysfs::device_of};

fn text(facts: &Environment) -> String {
    facts.0.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
}

#[test]
fn facts_of_the_machine_and_no_others() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/proc/sys/kernel/osrelease", "6.18.4\n")
        .file("/proc/cmdline", "root=/dev/vda [x] quiet\n")
        .file(
            "/proc/cpuinfo",
            "processor : 0\nmodel name : Some CPU\nflags : fpu hypervisor\n\nprocessor : 1\n",
        )
        .file("/proc/meminfo", "MemTotal:  1024 kB\nSwapTotal:  0 kB\nSwapFree:  0 kB\n")
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
        memory.swap_bytes = 0
        memory.total_bytes = 1048576
        memory.transparent_hugepage = madvise
        vm.dirty_ratio = 20
    "#]]
    .assert_eq(&text(&machine(&host)));
}

#[test]
fn an_empty_machine_reports_only_that_it_has_no_cgroups() {
    let temp = tempfile::tempdir().unwrap();
    expect![[r#"
        host.cgroup = none
    "#]]
    .assert_eq(&text(&machine(&FakeHost::new(temp.path()))));
}

#[test]
fn facts_of_a_stack_of_devices() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
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
fn facts_of_the_device_below_a_path() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
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
    // With a second device, the counters of the first are incomplete.
    let host = host.file("/sys/fs/btrfs/u-u/devices/sdb", "");
    assert_eq!(device_of(&host, Path::new("/srv/images")), None);
}

#[test]
fn facts_of_the_kernel() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/proc/sys/kernel/osrelease", "6.18.4\n")
        .file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Tue\n")
        .file("/proc/sys/kernel/tainted", "4097\n")
        .file("/proc/sys/vm/overcommit_memory", "0\n")
        .file("/boot/config-6.18.4", "abc")
        .file("/proc/modules", "xfs 1 0 - Live 0x0\nbtrfs 2 1 a, Live 0x0\n")
        .file("/proc/pressure/cpu", "some avg10=0.00")
        .file("/proc/meminfo", "SwapTotal:  1024 kB\nSwapFree:  1000 kB\n")
        .file("/sys/devices/system/node/node0/x", "")
        .file("/sys/devices/system/node/node1/x", "")
        .file("/sys/devices/system/node/online", "0-1\n")
        .file("/sys/devices/system/cpu/online", "0-1\n")
        .file("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "intel_pstate\n")
        .file("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n")
        .file("/sys/devices/system/cpu/cpufreq/policy1/scaling_driver", "intel_pstate\n")
        .file("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance\n");
    // SHA-256 of `abc` begins with this (FIPS 180-4, example).
    expect![[r#"
        cpu.driver = intel_pstate
        cpu.governor = policy0 powersave, policy1 performance
        cpu.online = 0-1
        host.cgroup = none
        kernel.config = ba7816bf of /boot/config-6.18.4
        kernel.modules = btrfs xfs
        kernel.preemption = dynamic
        kernel.psi = on
        kernel.release = 6.18.4
        kernel.taint = 4097
        kernel.version = #1 SMP PREEMPT_DYNAMIC Tue
        memory.numa_nodes = 2
        memory.swap_bytes = 1048576
        memory.swap_in_use = yes
        vm.overcommit_memory = 0
    "#]]
    .assert_eq(&text(&machine(&host)));
    let host = host.file("/sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n");
    assert_eq!(machine(&host).get("kernel.preemption"), Some("full"));
}

/// A disk in the device tree, with the links to it.
fn linked(host: FakeHost, place: &str, name: &str) -> FakeHost {
    let host = host.file(&format!("{place}/size"), "8\n").file("/sys/class/block/.keep", "");
    let link = host.at(&Path::new("/sys/class/block").join(name));
    std::os::unix::fs::symlink(host.at(Path::new(place)), link).unwrap();
    host
}

#[test]
fn facts_of_an_nvme_device_and_its_connection() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let pci = "/sys/devices/pci0000:00/0000:00:01.0";
    let disk = format!("{pci}/nvme/nvme0/nvme0n1");
    let host = FakeHost::new(root)
        .file(&format!("{pci}/current_link_speed"), "8.0 GT/s PCIe\n")
        .file(&format!("{pci}/current_link_width"), "4\n")
        .file(&format!("{pci}/numa_node"), "-1\n")
        .file(&format!("{disk}/device/model"), "Some SSD\n")
        .file(&format!("{disk}/device/firmware_rev"), "1.2  \n")
        .file(&format!("{disk}/device/serial"), "abc   \n")
        .file(&format!("{disk}/wwid"), "eui.0025\n")
        .file(&format!("{disk}/queue/zoned"), "none\n")
        .file(&format!("{disk}/queue/rq_affinity"), "1\n");
    let host = linked(host, &disk, "nvme0n1");
    let facts = device(&host, "nvme0n1");
    assert!(!text(&facts).contains("abc") && !text(&facts).contains("eui"), "serials are private");
    expect![[r#"
        device.nvme0n1.firmware = 1.2
        device.nvme0n1.link_speed = 8.0 GT/s PCIe
        device.nvme0n1.link_width = 4
        device.nvme0n1.model = Some SSD
        device.nvme0n1.queue.rq_affinity = 1
        device.nvme0n1.queue.zoned = none
        device.nvme0n1.serial_hash = ba7816bf
        device.nvme0n1.size_bytes = 4096
        device.nvme0n1.wwid_hash = 6473119d
    "#]]
    .assert_eq(&text(&facts));
}

#[test]
fn the_disks_below_a_device_are_found() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let host = FakeHost::new(root)
        .file("/sys/class/block/dm-0/slaves/sda1", "")
        .file("/sys/class/block/dm-0/slaves/sdb", "")
        .file("/sys/class/block/sdb/size", "8\n")
        .file("/sys/devices/sda/sda1/partition", "1\n")
        .file("/sys/class/block/loop0/loop/backing_file", "/srv/image\n")
        .file("/dev/dm-0", "");
    let host = linked(host, "/sys/devices/sda/sda1", "sda1");
    let mount = MountRequest {
        source: "/dev/dm-0".into(),
        target: "/srv".into(),
        fstype: "ext4".into(),
        options: String::new(),
    };
    host.mount(&mount).unwrap();
    let names = |name: &str| disks(&host, name).into_iter().collect::<Vec<_>>();
    assert_eq!(names("sdb"), ["sdb"]);
    assert_eq!(names("sda1"), ["sda"]);
    assert_eq!(names("dm-0"), ["sda", "sdb"]);
    assert_eq!(names("loop0"), ["sda", "sdb"]);
}

//! Cases: preparation of the disks, and required behavior of fslab.
//!
//! The scripts run in sh(1) with `set -e`. `$a` and `$b` are blank disks of 24 MiB.

/// Preparation of the disks, and device that fslab then has to format.
#[derive(Debug)]
pub(crate) struct Case {
    /// Unique short name.
    pub(crate) name: &'static str,
    /// True if `make test` runs it.
    pub(crate) short: bool,
    /// Required programs.
    pub(crate) programs: &'static [&'static str],
    pub(crate) script: &'static str,
    /// Device to format, as a shell expression.
    pub(crate) target: &'static str,
    /// Argument of `--overwrite-device`, empty if the option is not given.
    pub(crate) destroy: &'static str,
    pub(crate) expected: Expected,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// The device is rejected, and the message contains this hint.
    Refused(&'static str),
    /// The device is formatted and measured, which shows that the machine and the plan work.
    Measured,
}

const fn short(
    name: &'static str,
    programs: &'static [&'static str],
    script: &'static str,
    (target, destroy): (&'static str, &'static str),
    expected: Expected,
) -> Case {
    Case { name, short: true, programs, script, target, destroy, expected }
}

const fn long(
    name: &'static str,
    programs: &'static [&'static str],
    script: &'static str,
    (target, destroy): (&'static str, &'static str),
    expected: Expected,
) -> Case {
    let case = short(name, programs, script, (target, destroy), expected);
    Case { short: false, ..case }
}

use Expected::{Measured, Refused};

/// Device in use, which is rejected even with `--overwrite-device`.
const A: (&str, &str) = ("$a", "disk-a");
/// Device with contents, which requires `--overwrite-device`; the option is not given.
const CONTENTS: (&str, &str) = ("$a", "");

const UNMOUNT: Expected = Refused("unmount it");
const TAKE_APART: Expected = Refused("remove that first (vgchange -an");
const SAY_SO: Expected = Refused("--overwrite-device 'disk-a'");

const EXT2: &[&str] = &["mkfs.ext2"];
const LVM: &[&str] = &["lvm"];
const MD: &[&str] = &["mdadm"];
const CRYPT: &[&str] = &["cryptsetup"];
const DM: &[&str] = &["dmsetup"];
const BTRFS: &[&str] = &["mkfs.btrfs"];
const BCACHE: &[&str] = &["make-bcache"];

pub(crate) const CASES: &[Case] = &[
    short("a blank disk", &[], "", ("$a", ""), Measured),
    long("mounted", EXT2, "ext2 $a; mount -o ro $a /mnt/1", A, UNMOUNT),
    long(
        "mounted by a bind mount only",
        EXT2,
        "ext2 $a; mount -o ro $a /mnt/1; mount --bind /mnt/1 /mnt/2; umount /mnt/1",
        A,
        UNMOUNT,
    ),
    short(
        "mounted in another mount namespace only",
        &["mkfs.ext2", "unshare"],
        "ext2 $a; unshare -m sh -c \"mount -o ro $a /mnt/1; echo >/tmp/up; exec sleep 600\" &
        until [ -e /tmp/up ]; do sleep 0.1; done",
        A,
        UNMOUNT,
    ),
    long(
        "mounted over",
        EXT2,
        "ext2 $a; mount -o ro $a /mnt/1; mount -t tmpfs none /mnt/1",
        A,
        UNMOUNT,
    ),
    long(
        "unmounted lazily, with an open file",
        EXT2,
        "ext2 $a; mount -o ro $a /mnt/1; (cd /mnt/1; exec sleep 600) & sleep 0.5
        umount -l /mnt/1",
        A,
        Refused("fuser -v"),
    ),
    long(
        "partition next to a mounted one",
        &["mkfs.ext2", "sfdisk"],
        "parts; ext2 ${a}1; mount -o ro ${a}1 /mnt/1",
        ("${a}2", ""),
        Measured,
    ),
    long(
        "disk with a mounted partition",
        &["mkfs.ext2", "sfdisk"],
        "parts; ext2 ${a}1; mount -o ro ${a}1 /mnt/1",
        A,
        UNMOUNT,
    ),
    long(
        "node in another directory of a mounted disk",
        EXT2,
        "ext2 $a; mount -o ro $a /mnt/1; node $a",
        ("/tmp/node", "disk-a"),
        UNMOUNT,
    ),
    long(
        "swap, active",
        &["mkswap", "swapon"],
        "mkswap -q $a; swapon $a",
        A,
        Refused("run swapoff"),
    ),
    long("swap, inactive", &["mkswap"], "mkswap -q $a", CONTENTS, SAY_SO),
    long(
        "hibernation image",
        &["mkswap"],
        "mkswap -q $a; printf S1SUSPEND | dd of=$a bs=1 seek=4086 conv=notrunc",
        CONTENTS,
        SAY_SO,
    ),
    short(
        "LVM: physical volume of an active group",
        LVM,
        "lvm pvcreate -q $a; lvm vgcreate -q vg $a; lvm lvcreate -q -y -Wn -Zn -l4 -n lv vg",
        A,
        TAKE_APART,
    ),
    long("LVM: physical volume without a group", LVM, "lvm pvcreate -q $a", CONTENTS, SAY_SO),
    long(
        "LVM: physical volume of an inactive group",
        LVM,
        "lvm pvcreate -q $a; lvm vgcreate -q vg $a; lvm lvcreate -q -y -Wn -Zn -l4 -n lv vg
        lvm vgchange -q -an vg",
        CONTENTS,
        SAY_SO,
    ),
    long(
        "LVM: physical volume of a group that lacks another",
        LVM,
        "lvm pvcreate -q $a $b; lvm vgcreate -q vg $a $b
        dd if=/dev/zero of=$b bs=1M count=2 conv=notrunc",
        CONTENTS,
        SAY_SO,
    ),
    long(
        "LVM: data volume of a thin pool",
        &["lvm", "dmsetup"],
        "lvm pvcreate -q $a; lvm vgcreate -q vg $a; lvm lvcreate -q -y -l3 -T vg/pool",
        ("/dev/$(dmsetup info -c --noheadings -o blkdevname vg-pool_tdata)", "vg-pool_tdata"),
        TAKE_APART,
    ),
    short(
        "dm: thin pool of dmsetup",
        DM,
        "dmsetup create pool --table \"0 32768 thin-pool $b $a 128 0\"",
        A,
        TAKE_APART,
    ),
    long(
        "dm: linear, mapped and not open",
        DM,
        "dmsetup create line --table \"0 2048 linear $a 0\"",
        A,
        TAKE_APART,
    ),
    long(
        "dm: leg of a multipath device",
        DM,
        "dmsetup create many --table \"0 2048 multipath 0 0 1 1 round-robin 0 1 1 $a 1\"",
        A,
        TAKE_APART,
    ),
    long("md: running, superblock 0.90", MD, "md 0.90", A, TAKE_APART),
    long("md: running, superblock 1.0", MD, "md 1.0", A, TAKE_APART),
    long("md: running, superblock 1.1", MD, "md 1.1", A, TAKE_APART),
    short("md: running, superblock 1.2", MD, "md 1.2", A, TAKE_APART),
    short(
        "md: stopped, superblock 0.90",
        MD,
        "md 0.90; mdadm -q --stop /dev/md9",
        CONTENTS,
        SAY_SO,
    ),
    long("md: stopped, superblock 1.0", MD, "md 1.0; mdadm -q --stop /dev/md9", CONTENTS, SAY_SO),
    long("md: stopped, superblock 1.1", MD, "md 1.1; mdadm -q --stop /dev/md9", CONTENTS, SAY_SO),
    long("md: stopped, superblock 1.2", MD, "md 1.2; mdadm -q --stop /dev/md9", CONTENTS, SAY_SO),
    long("LUKS1", CRYPT, "luks luks1 $a", CONTENTS, SAY_SO),
    long("LUKS2", CRYPT, "luks luks2 $a", CONTENTS, SAY_SO),
    short(
        "LUKS2, second header only",
        CRYPT,
        "luks luks2 $a; dd if=/dev/zero of=$a bs=4096 count=4 conv=notrunc",
        CONTENTS,
        SAY_SO,
    ),
    short(
        "LUKS2, open",
        CRYPT,
        "luks luks2 $a; cryptsetup open -d /tmp/key $a open",
        A,
        TAKE_APART,
    ),
    long(
        "LUKS2 with a detached header, open",
        CRYPT,
        "luks luks2 $a --header /tmp/header
        cryptsetup open -d /tmp/key --header /tmp/header $a open",
        A,
        TAKE_APART,
    ),
    short(
        "dm-crypt without a header, open",
        CRYPT,
        "cryptsetup open -d /tmp/key --type plain $a open",
        A,
        TAKE_APART,
    ),
    short(
        "dm-crypt without a header, closed",
        CRYPT,
        "cryptsetup open -d /tmp/key --type plain $a open
        dd if=/dev/zero of=/dev/mapper/open bs=1M count=8; cryptsetup close open",
        CONTENTS,
        SAY_SO,
    ),
    short(
        "btrfs: second device of a mounted filesystem",
        BTRFS,
        "mkfs.btrfs -q -f -M -m single -d single $b $a; btrfs_scan $a $b
        mount -o ro,device=$a $b /mnt/1",
        A,
        UNMOUNT,
    ),
    long(
        "btrfs: second device of an unmounted filesystem",
        BTRFS,
        "mkfs.btrfs -q -f -M -m single -d single $b $a",
        CONTENTS,
        SAY_SO,
    ),
    long(
        "btrfs: seed device",
        &["mkfs.btrfs", "btrfstune"],
        "mkfs.btrfs -q -f -M $a; btrfstune -S 1 $a",
        CONTENTS,
        SAY_SO,
    ),
    long("bcache: backing device, not registered", BCACHE, "make-bcache -B $a", CONTENTS, SAY_SO),
    long(
        "bcache: cache device, not registered",
        BCACHE,
        "make-bcache -C -b 128k $a",
        CONTENTS,
        SAY_SO,
    ),
    short(
        "bcache: backing device, registered",
        BCACHE,
        "make-bcache -B $a; echo $a >/sys/fs/bcache/register
        until [ -e /sys/block/bcache0 ]; do sleep 0.1; done",
        A,
        TAKE_APART,
    ),
    long(
        "bcache: cache device, registered",
        BCACHE,
        "make-bcache -C -b 32k $a; echo $a >/sys/fs/bcache/register; sleep 1",
        A,
        Refused("bcache set"),
    ),
    long(
        "DRBD metadata",
        &[],
        // `struct meta_data_on_disk_08` of DRBD 8.4: magic number at byte 60 of the last 4 KiB.
        "printf '\\203\\164\\002\\153' | dd of=$a bs=1 seek=$((24 * 1048576 - 4096 + 60)) \
        conv=notrunc",
        CONTENTS,
        SAY_SO,
    ),
    long("GPT", &["sfdisk"], "parts", CONTENTS, SAY_SO),
    long(
        "GPT, second header only",
        &["sfdisk"],
        "parts; dd if=/dev/zero of=$a bs=512 count=34 conv=notrunc; sync",
        CONTENTS,
        SAY_SO,
    ),
    long(
        "extended partition",
        &["sfdisk"],
        "printf 'label: dos\\n,4M\\n,8M,E\\n,2M\\n' | sfdisk -q $a",
        ("${a}2", "disk-a"),
        Refused("larger storage"),
    ),
    long("loop device on top", &["losetup"], "losetup /dev/loop0 $a", A, Refused("losetup -d")),
    long(
        "open for writing through a node outside /dev",
        &[],
        "node $a; sleep 600 <>/tmp/node & sleep 0.5",
        A,
        Refused("stop that program first"),
    ),
    long(
        "open for writing through SCSI generic",
        &[],
        "[ -e /dev/sg0 ]; sleep 600 <>/dev/sg0 & sleep 0.5",
        ("/dev/sda", "scsi_debug"),
        Refused("stop that program first"),
    ),
    long(
        "exported by LIO fileio, not detected",
        &[],
        "mount -t configfs none /sys/kernel/config; mkdir -p $lio
        echo fd_dev_name=$a,fd_dev_size=25165824 >$lio/control; echo 1 >$lio/enable
        [ $(cat $lio/enable) = 1 ]",
        ("$a", ""),
        Measured,
    ),
    long("read-only", &["blockdev"], "blockdev --setro $a", A, Refused("blockdev --setrw")),
    long("without a size", &["losetup"], "", ("/dev/loop7", ""), Refused("larger storage")),
    long("run file on the target", &[], "", ("$a -o $a", ""), Refused("use another path with -o")),
];

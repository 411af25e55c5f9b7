//! Signatures that are not a fixed string at a fixed offset: those at an offset from the end, those
//! with several possible locations, and those whose magic number is too short to be reliable alone.

use model::Bytes;

use super::{Signature, window::Window};

/// Finds all signatures of this module.
pub(super) fn find(window: &Window) -> Vec<Signature> {
    let searches = [
        ext,
        minix,
        nilfs2,
        optical,
        fat,
        swap,
        lvm2,
        luks2_second,
        md_at_end,
        firmware_raid,
        zfs,
        gpt,
        dos,
    ];
    searches.iter().flat_map(|search: &fn(&Window) -> Vec<Signature>| search(window)).collect()
}

fn bare(kind: &'static str, offset: u64) -> Signature {
    Signature { kind, label: None, uuid: None, offset: Bytes(offset) }
}

/// ext2, ext3, ext4, and their external journal. The kinds are distinguished by the features that
/// ext2 and ext3 do not support (`fs/ext4/ext4.h`: `EXT2_FEATURE_*_SUPP`, `EXT3_FEATURE_*_SUPP`).
fn ext(window: &Window) -> Vec<Signature> {
    const SUPERBLOCK: u64 = 1024;
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    const INCOMPAT_EXT3: u32 = 0x2 | 0x4 | 0x10;
    const RO_COMPAT_EXT3: u32 = 0x1 | 0x2 | 0x4;
    if window.u16(SUPERBLOCK + 0x38) != 0xef53 {
        return Vec::new();
    }
    let compat = window.u32(SUPERBLOCK + 0x5c);
    let incompat = window.u32(SUPERBLOCK + 0x60);
    let ro_compat = window.u32(SUPERBLOCK + 0x64);
    let kind = if incompat & JOURNAL_DEVICE != 0 {
        "jbd"
    } else if incompat & !INCOMPAT_EXT3 != 0 || ro_compat & !RO_COMPAT_EXT3 != 0 {
        "ext4"
    } else if compat & HAS_JOURNAL != 0 {
        "ext3"
    } else {
        "ext2"
    };
    vec![Signature {
        kind,
        label: window.text(SUPERBLOCK + 0x78, 16),
        uuid: window.uuid(SUPERBLOCK + 0x68),
        offset: Bytes(SUPERBLOCK + 0x38),
    }]
}

/// Minix. The magic number has only two bytes, so other fields of the superblock must be plausible,
/// too (`minix_fs.h`): the number of inodes, the inode map, and the first data zone are not 0, and
/// a zone has one block.
fn minix(window: &Window) -> Vec<Signature> {
    const SUPERBLOCK: u64 = 1024;
    let at = |offset| window.u16(SUPERBLOCK + offset);
    let old = [0x137f, 0x138f, 0x2468, 0x2478].contains(&at(16))
        && at(0) != 0
        && at(4) != 0
        && at(8) != 0
        && at(10) == 0;
    let third =
        at(24) == 0x4d5a && window.u32(SUPERBLOCK) != 0 && at(6) != 0 && at(10) != 0 && at(12) == 0;
    match (old, third) {
        (true, _) => vec![bare("minix", SUPERBLOCK + 16)],
        (false, true) => vec![bare("minix", SUPERBLOCK + 24)],
        (false, false) => Vec::new(),
    }
}

/// NILFS2, whose second superblock is in the last complete block of 4 KiB. The magic number has
/// only two bytes, so the revision and the length of the superblock are checked, too
/// (`nilfs2_ondisk.h`).
fn nilfs2(window: &Window) -> Vec<Signature> {
    let second = (window.size / 4096).checked_sub(1).map(|block| block * 4096);
    let places = [Some(1024), second].into_iter().flatten();
    let real = |base: &u64| {
        window.u16(base + 6) == 0x3434
            && window.u32(*base) == 2
            && (64..=1024).contains(&window.u16(base + 8))
    };
    places
        .filter(real)
        .map(|base| Signature {
            kind: "nilfs2",
            label: window.text(base + 168, 80),
            uuid: window.uuid(base + 152),
            offset: Bytes(base + 6),
        })
        .collect()
}

/// ISO 9660 and UDF, whose descriptors of 2 KiB begin at offset 32 KiB (ECMA-119, ECMA-167).
fn optical(window: &Window) -> Vec<Signature> {
    const START: u64 = 0x8000;
    let mut found = Vec::new();
    if window.has(START + 1, b"CD001") {
        let label = window.text(START + 40, 32);
        found.push(Signature { label, ..bare("iso9660", START + 1) });
    }
    let identifiers = (0..16).map(|n| START + n * 2048 + 1);
    let udf = |at: &u64| window.has(*at, b"NSR02") || window.has(*at, b"NSR03");
    found.extend(identifiers.filter(udf).map(|at| bare("udf", at)));
    found
}

/// FAT, detected by the name that most mkfs programs write, or by the structure of the boot sector.
fn fat(window: &Window) -> Vec<Signature> {
    let wide = window.has(0x52, b"FAT32   ") || window.has(0x52, b"MSWIN");
    let narrow = [&b"FAT16   "[..], b"FAT12   ", b"FAT     ", b"MSDOS"];
    let narrow = narrow.iter().any(|name| window.has(0x36, name));
    if !wide && !narrow && !has_fat_parameters(window) {
        return Vec::new();
    }
    let base = if wide { 0x43 } else { 0x27 };
    let serial = window.u32(base);
    vec![Signature {
        kind: "vfat",
        label: window.text(base + 4, 11).filter(|label| label != "NO NAME"),
        uuid: Some(format!("{:04X}-{:04X}", serial >> 16, serial & 0xffff)),
        offset: Bytes(0x36),
    }]
}

/// True if the first sector contains a BIOS parameter block that is valid for FAT (Microsoft FAT
/// specification, 3.1). Checked: jump instruction, sector size, cluster size, reserved sectors,
/// number of tables, and medium.
fn has_fat_parameters(window: &Window) -> bool {
    let jump = (window.u8(0) == 0xeb && window.u8(2) == 0x90) || window.u8(0) == 0xe9;
    jump && [512, 1024, 2048, 4096].contains(&window.u16(11))
        && window.u8(13).is_power_of_two()
        && window.u16(14) != 0
        && (1..=2).contains(&window.u8(16))
        && window.u8(21) >= 0xf0
}

/// Swap space and hibernation images. The signature is in the last ten bytes of the first page, and
/// the page size is that of the machine that created it (`include/linux/swap.h`,
/// `kernel/power/swap.c`).
fn swap(window: &Window) -> Vec<Signature> {
    let kinds: [(&'static str, &[u8]); 6] = [
        ("swap", b"SWAPSPACE2"),
        ("swap", b"SWAP-SPACE"),
        ("swsuspend", b"S1SUSPEND"),
        ("swsuspend", b"S2SUSPEND"),
        ("swsuspend", b"ULSUSPEND"),
        ("swsuspend", b"LINHIB0001"),
    ];
    let pages = [4096, 8192, 16384, 32768, 65536].map(|page| page - 10);
    let places = pages.into_iter().flat_map(|at| kinds.map(|(kind, magic)| (at, kind, magic)));
    places
        .filter(|(at, _, magic)| window.has(*at, magic))
        .map(|(at, kind, _)| Signature {
            kind,
            label: window.text(0x41c, 16),
            uuid: window.uuid(0x40c),
            offset: Bytes(at),
        })
        .collect()
}

/// LVM2 physical volume, whose label is in one of the first four sectors (`lib/label/label.h`).
fn lvm2(window: &Window) -> Vec<Signature> {
    let labels = (0..4).map(|sector| sector * 512);
    labels
        .filter(|at| window.has(*at, b"LABELONE") && window.has(at + 24, b"LVM2 001"))
        .map(|at| Signature { uuid: window.text(at + 32, 32), ..bare("LVM2_member", at) })
        .collect()
}

/// Second header of LUKS2, which remains if only the first header is overwritten.
fn luks2_second(window: &Window) -> Vec<Signature> {
    let places = (0..9).map(|step| 0x4000 << step);
    places
        .filter(|at| window.has(*at, b"SKUL\xba\xbe"))
        .map(|at| Signature { uuid: window.text(at + 168, 40), ..bare("crypto_LUKS", at) })
        .collect()
}

/// Members of md arrays with a superblock near the end of the device
/// (`include/uapi/linux/raid/md_p.h`). A superblock of version 1.0 is aligned to 4 KiB and at least
/// 8 KiB before the end. A superblock of version 0.90 is at the start of the last complete 64 KiB,
/// in the byte order of the machine that created it.
fn md_at_end(window: &Window) -> Vec<Signature> {
    let mut found = Vec::new();
    let newer = (window.size / 512).checked_sub(16).map(|sector| (sector & !7) * 512);
    if let Some(at) = newer.filter(|at| window.has(*at, b"\xfc\x4e\x2b\xa9\x01\0\0\0")) {
        found.push(Signature {
            kind: "linux_raid_member",
            label: window.text(at + 32, 32),
            uuid: window.uuid(at + 16),
            offset: Bytes(at),
        });
    }
    let older = (window.size & !0xffff).checked_sub(0x1_0000);
    let headers = [b"\xfc\x4e\x2b\xa9\0\0\0\0\x5a\0\0\0", b"\xa9\x2b\x4e\xfc\0\0\0\0\0\0\0\x5a"];
    let older = older.filter(|at| headers.iter().any(|header| window.has(*at, *header)));
    found.extend(older.map(|at| bare("linux_raid_member", at)));
    found
}

/// Members of firmware RAID arrays, whose signatures are near the end of the device. Source for
/// DDF: SNIA Common RAID Disk Data Format 2.0, 4.1; for the others: libblkid.
fn firmware_raid(window: &Window) -> Vec<Signature> {
    let anchors: [(&'static str, u64, &[u8]); 5] = [
        ("ddf_raid_member", 512, b"\xde\x11\xde\x11"),
        ("ddf_raid_member", 257 * 512, b"\xde\x11\xde\x11"),
        ("isw_raid_member", 1024, b"Intel Raid ISM Cfg Sig. "),
        ("lsi_mega_raid_member", 512, b"$XIDE$"),
        ("nvidia_raid_member", 1024, b"NVIDIA"),
    ];
    anchors
        .into_iter()
        .filter_map(|(kind, back, magic)| {
            let at = window.before_end(back)?;
            window.has(at, magic).then(|| bare(kind, at))
        })
        .collect()
}

/// Members of a ZFS pool. There are four labels of 256 KiB: two at the start and two at the end of
/// the device. The second half of each label contains uberblocks at multiples of 1 KiB (ZFS On-Disk
/// Specification, 1.2 and 1.3). A label begins with space for a boot block or a partition table, so
/// other signatures are often found on the same device.
fn zfs(window: &Window) -> Vec<Signature> {
    const LABEL: u64 = 256 << 10;
    const MAGIC: u64 = 0x00ba_b10c;
    let end = window.size & !(LABEL - 1);
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    let uberblocks =
        labels.into_iter().flatten().flat_map(|label| (128..256).map(move |n| label + n * 1024));
    uberblocks
        .filter(|at| window.has(*at, &MAGIC.to_le_bytes()) || window.has(*at, &MAGIC.to_be_bytes()))
        .map(|at| bare("zfs_member", at))
        .collect()
}

/// GUID partition table. Its header is in the second sector, and the backup header in the last
/// sector; sector sizes of 512 bytes and 4 KiB are tried (UEFI specification, 5.3).
fn gpt(window: &Window) -> Vec<Signature> {
    let places = [Some(512), Some(4096), window.before_end(512), window.before_end(4096)]
        .into_iter()
        .flatten();
    places
        .filter(|at| window.has(*at, b"EFI PART\0\0\x01\0"))
        .map(|at| Signature { uuid: window.guid(at + 56), ..bare("gpt", at) })
        .collect()
}

/// Master boot record: the mark at its end, and four partition entries with a boot flag of 0 or
/// 0x80. The record is not reported if the table only protects a GPT, or if the table is empty and
/// the sector is the boot sector of a filesystem.
fn dos(window: &Window) -> Vec<Signature> {
    const MARK: u64 = 510;
    let entries = [446, 462, 478, 494];
    let flagged = entries.iter().all(|at| window.u8(*at) & 0x7f == 0);
    if !window.has(MARK, b"\x55\xaa") || !flagged {
        return Vec::new();
    }
    let used = entries.iter().any(|at| window.u8(at + 4) != 0 && window.u32(at + 12) != 0);
    let protective = entries.iter().any(|at| window.u8(at + 4) == 0xee);
    let boot_sector = !fat(window).is_empty()
        || [&b"EXFAT   "[..], b"NTFS    ", b"-FVE-FS-"].iter().any(|name| window.has(3, name));
    if (protective && !gpt(window).is_empty()) || (boot_sector && !used) {
        return Vec::new();
    }
    let id = window.u32(440);
    let uuid = (id != 0).then(|| format!("{id:08x}"));
    vec![Signature { uuid, ..bare("dos", MARK) }]
}

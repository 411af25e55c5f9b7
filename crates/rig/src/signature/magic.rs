//! Table of the signatures that are a fixed string at a fixed offset from the start of the device.

use model::Bytes;

use super::{Signature, window::Window};

/// Format and offset of a label or a UUID, from the start of the device.
enum Field {
    /// The field is not read.
    No,
    /// Text of this many bytes.
    Text(u64, usize),
    /// Little-endian UTF-16 text of this many units.
    Utf16(u64, usize),
    /// UUID of 16 bytes, in the order in which they are printed.
    Uuid(u64),
    /// Little-endian number of four bytes, printed as `1A2B-3C4D`.
    Serial32(u64),
    /// Little-endian number of eight bytes, printed as 16 hexadecimal digits.
    Serial64(u64),
}

use Field::{No, Serial32, Serial64, Text, Utf16, Uuid};

/// Rule: name, offset of the magic number, magic number, label, UUID.
type Rule = (&'static str, u64, &'static [u8], Field, Field);

const BCACHE: &[u8; 16] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8; 16] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";

/// Rules, ordered by kind: filesystems, then containers and members, then partition tables.
const RULES: &[Rule] = &[
    ("xfs", 0, b"XFSB", Text(0x6c, 12), Uuid(0x20)),
    ("xfs_external_log", 0, b"\xfe\xed\xba\xbe", No, No),
    ("btrfs", 0x1_0040, b"_BHRfS_M", Text(0x1_012b, 256), Uuid(0x1_0020)),
    ("f2fs", 1024, b"\x10\x20\xf5\xf2", Utf16(1024 + 124, 512), Uuid(1024 + 108)),
    ("jfs", 0x8000, b"JFS1", Text(0x8000 + 152, 16), Uuid(0x8000 + 136)),
    ("reiserfs", 0x1_0034, b"ReIsErFs", No, No),
    ("reiserfs", 0x1_0034, b"ReIsEr2Fs", Text(0x1_0064, 16), Uuid(0x1_0054)),
    ("reiserfs", 0x1_0034, b"ReIsEr3Fs", Text(0x1_0064, 16), Uuid(0x1_0054)),
    ("reiserfs", 0x2034, b"ReIsErFs", No, No),
    ("reiser4", 0x1_0000, b"ReIsEr4", Text(0x1_0024, 16), Uuid(0x1_0014)),
    ("exfat", 3, b"EXFAT   ", No, Serial32(100)),
    ("ntfs", 3, b"NTFS    ", No, Serial64(0x48)),
    ("squashfs", 0, b"hsqs", No, No),
    ("squashfs", 0, b"sqsh", No, No),
    ("squashfs", 0, b"shsq", No, No),
    ("erofs", 1024, b"\xe2\xe1\xf5\xe0", Text(1024 + 64, 16), Uuid(1024 + 48)),
    ("cramfs", 0, b"\x45\x3d\xcd\x28", Text(48, 16), No),
    ("cramfs", 0, b"\x28\xcd\x3d\x45", Text(48, 16), No),
    ("bfs", 0, b"\xce\xfa\xad\x1b", No, No),
    ("romfs", 0, b"-rom1fs-", Text(16, 16), No),
    ("gfs2", 0x1_0000, b"\x01\x16\x19\x70", Text(0x1_0000 + 160, 64), Uuid(0x1_0000 + 256)),
    ("ocfs2", 1024, b"OCFSV2", No, No),
    ("ocfs2", 2048, b"OCFSV2", No, No),
    ("ocfs2", 4096, b"OCFSV2", No, No),
    ("ocfs2", 8192, b"OCFSV2", No, No),
    ("hfsplus", 1024, b"H+\0\x04", No, No),
    ("hfsplus", 1024, b"HX\0\x05", No, No),
    ("hfs", 1024, b"BD", No, No),
    ("apfs", 32, b"NXSB", No, Uuid(72)),
    ("ufs", 8192 + 1372, b"\x19\x01\x54\x19", No, No),
    ("ufs", 65536 + 1372, b"\x19\x01\x54\x19", No, No),
    ("zonefs", 0, b"SFOZ", No, No),
    ("VMFS", 0x20_0000, b"\x5e\xf1\xab\x2f", No, No),
    ("VMFS_volume_member", 0x10_0000, b"\x0d\xd0\x01\xc0", No, No),
    ("bcachefs", 4096 + 24, BCACHEFS, Text(4096 + 72, 32), Uuid(4096 + 56)),
    ("bcache", 4096 + 24, BCACHE, No, Uuid(4096 + 40)),
    ("crypto_LUKS", 0, b"LUKS\xba\xbe", No, Text(168, 40)),
    ("BitLocker", 3, b"-FVE-FS-", No, No),
    ("DM_verity_hash", 0, b"verity\0\0", No, Uuid(16)),
    ("DM_integrity", 0, b"integrt\0", No, No),
    ("DM_snapshot_cow", 0, b"SnAp", No, No),
    ("vdo", 0, b"dmvdo001", No, No),
    ("stratis", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh", No, No),
    ("stratis", 9 * 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh", No, No),
    ("ceph_bluestore", 0, b"bluestore block device", No, No),
    ("oracleasm", 32, b"ORCLDISK", No, No),
    ("linux_raid_member", 0, b"\xfc\x4e\x2b\xa9\x01\0\0\0", Text(32, 32), Uuid(16)),
    (
        "linux_raid_member",
        4096,
        b"\xfc\x4e\x2b\xa9\x01\0\0\0",
        Text(4096 + 32, 32),
        Uuid(4096 + 16),
    ),
    ("mac", 512, b"PM\0\0", No, No),
    ("bsd", 512, b"\x57\x45\x56\x82", No, No),
    ("sgi", 0, b"\x0b\xe5\xa9\x41", No, No),
    ("sun", 508, b"\xda\xbe", No, No),
];

/// Signatures of all matching rules.
pub(super) fn find(window: &Window) -> Vec<Signature> {
    let holding = RULES.iter().filter(|(_, offset, magic, ..)| window.has(*offset, magic));
    holding
        .map(|(kind, offset, _, label, uuid)| Signature {
            kind,
            label: read(window, label),
            uuid: read(window, uuid),
            offset: Bytes(*offset),
        })
        .collect()
}

fn read(window: &Window, field: &Field) -> Option<String> {
    match *field {
        No => None,
        Text(offset, length) => window.text(offset, length),
        Utf16(offset, units) => window.text_utf16(offset, units),
        Uuid(offset) => window.uuid(offset),
        Serial32(offset) => {
            let serial = window.u32(offset);
            Some(format!("{:04X}-{:04X}", serial >> 16, serial & 0xffff))
        }
        Serial64(offset) => Some(format!("{:016X}", u64::from_le_bytes(window.array(offset)))),
    }
}

/// Name, offset, and magic number of each rule.
#[cfg(test)]
pub(super) fn locations() -> impl Iterator<Item = (&'static str, u64, &'static [u8])> {
    RULES.iter().map(|(kind, offset, magic, ..)| (*kind, *offset, *magic))
}

//! Partition types that reserve a partition for a boot loader, the firmware, or other partitions.
//! Such a partition may be required even if it has neither a signature nor data.
//!
//! Sources: UEFI specification 2.10, 5.2 and 5.3; the lists of types of util-linux
//! (`include/pt-gpt-partnames.h`, `include/pt-mbr-partnames.h`).

use std::{fs::File, io};

use model::Bytes;

use super::window::read_full;

/// Sector sizes that a partition table may use, in bytes.
const SECTORS: [u64; 2] = [512, 4096];
/// Maximum number of bytes read of the entries of a GUID partition table. The usual 128 entries use
/// 16 KiB.
const ENTRIES: u64 = 1 << 20;
/// Maximum number of logical partitions that are followed.
const LOGICAL: u32 = 256;

/// Reserved types of a GUID partition table, in the order of the stored bytes: the first three
/// groups are little-endian.
const GUIDS: [(&str, u128); 7] = [
    ("BIOS boot", 0x4861_6821_4964_6f6e_744e_6565_6445_4649),
    ("PowerPC PReP boot", 0x382d_1a9e_12c6_1643_aa26_8b49_521e_5a8b),
    ("EFI system", 0x2873_2ac1_1ff8_d211_ba4b_00a0_c93e_c93b),
    ("Microsoft reserved", 0x16e3_c9e3_5c0b_b84d_817d_f92d_f002_15ae),
    ("Windows recovery", 0xa4bb_94de_d106_404d_a16a_bfd5_0179_d6ac),
    ("Linux extended boot", 0xffc2_13bc_e659_6242_a352_b275_fd6f_7172),
    ("ChromeOS kernel", 0x5d2a_3afe_324f_a741_b725_accc_3129_a309),
];

/// Reserved types of a master boot record.
const TYPES: [(&str, u8); 7] = [
    ("extended partition", 0x05),
    ("extended partition", 0x0f),
    ("extended partition", 0x85),
    ("Windows recovery", 0x27),
    ("PowerPC PReP boot", 0x41),
    ("GPT protective", 0xee),
    ("EFI system", 0xef),
];

/// Use for which the partition table of a disk reserves the partition that begins at `start`.
/// `size` is the size of the disk. `None` if the partition has another type, or if it is not in a
/// known partition table.
///
/// # Errors
/// Those of `pread(2)`.
pub fn reserved(disk: &File, size: Bytes, start: Bytes) -> io::Result<Option<&'static str>> {
    Ok(match gpt(disk, size.0, start.0)? {
        None => mbr(disk, start.0)?,
        found => found,
    })
}

/// Reserved use according to a GUID partition table, or to its backup at the end of the disk.
fn gpt(disk: &File, size: u64, start: u64) -> io::Result<Option<&'static str>> {
    for sector in SECTORS {
        for header in [Some(sector), size.checked_sub(sector)].into_iter().flatten() {
            let header = read(disk, header, 92)?;
            if header.get(..8) != Some(b"EFI PART") {
                continue;
            }
            let length = u64::from(u32_at(&header, 84));
            let all = length.saturating_mul(u32_at(&header, 80).into()).min(ENTRIES);
            if !(128..=4096).contains(&length) {
                continue;
            }
            let entries = read(disk, u64_at(&header, 72).saturating_mul(sector), all)?;
            for entry in entries.chunks_exact(usize::try_from(length).map_err(io::Error::other)?) {
                let kind = entry.first_chunk().map_or(0, |kind| u128::from_be_bytes(*kind));
                let found = GUIDS.iter().find(|(_, guid)| *guid == kind);
                if let Some((name, _)) = found
                    && u64_at(entry, 32).saturating_mul(sector) == start
                {
                    return Ok(Some(name));
                }
            }
        }
    }
    Ok(None)
}

/// Reserved use according to a master boot record, including the chain of logical partitions in its
/// extended partition.
fn mbr(disk: &File, start: u64) -> io::Result<Option<&'static str>> {
    for sector in SECTORS {
        let mut chain = None;
        for (kind, at) in entries(disk, 0)? {
            if at.saturating_mul(sector) == start && at != 0 {
                return Ok(type_name(kind));
            }
            chain = chain.or(is_extended(kind).then_some(at));
        }
        let Some(base) = chain else { continue };
        let mut next = base;
        for _ in 0..LOGICAL {
            let here = next;
            let links = entries(disk, here.saturating_mul(sector))?;
            let own = links.iter().find(|(kind, at)| !is_extended(*kind) && *at != 0);
            if let Some((kind, at)) = own
                && (here.saturating_add(*at)).saturating_mul(sector) == start
            {
                return Ok(type_name(*kind));
            }
            match links.iter().find(|(kind, at)| is_extended(*kind) && *at != 0) {
                Some((_, at)) => next = base.saturating_add(*at),
                None => break,
            }
        }
    }
    Ok(None)
}

fn type_name(kind: u8) -> Option<&'static str> {
    TYPES.iter().find(|(_, number)| *number == kind).map(|(name, _)| *name)
}

fn is_extended(kind: u8) -> bool {
    [0x05, 0x0f, 0x85].contains(&kind)
}

/// Type and first sector of the four entries in the boot record at `offset`; empty if the mark at
/// the end of the record is missing.
fn entries(disk: &File, offset: u64) -> io::Result<Vec<(u8, u64)>> {
    let record = read(disk, offset, 512)?;
    if record.get(510..) != Some(b"\x55\xaa") {
        return Ok(Vec::new());
    }
    let entries = record[446..510].chunks_exact(16);
    Ok(entries.map(|entry| (entry[4], u32_at(entry, 8).into())).collect())
}

fn read(disk: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    // An offset that pread(2) does not support is beyond the end of any disk.
    let n_read = match i64::try_from(offset) {
        Ok(_) => read_full(disk, &mut bytes, offset)?,
        Err(_) => 0,
    };
    bytes.truncate(n_read);
    Ok(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |four| u32::from_le_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |eight| u64::from_le_bytes(*eight))
}

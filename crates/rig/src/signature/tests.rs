use std::{
    collections::BTreeSet,
    io::Write as _,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::*;

/// Size of the images here: a multiple of all alignments, larger than all offsets.
const SIZE: u64 = 16 << 20;

/// Bytes to write, with their offsets.
pub(crate) type Parts = Vec<(u64, Vec<u8>)>;

/// Bytes of each signature, for images of [`SIZE`]: name, and (offset, bytes) parts. For formats
/// whose tools are rarely installed, and for single copies, which tools do not write.
pub(crate) fn crafted() -> Vec<(&'static str, Parts)> {
    let one = |kind, offset, bytes: &[u8]| (kind, vec![(offset, bytes.to_vec())]);
    let md = b"\xfc\x4e\x2b\xa9\x01\0\0\0";
    let nilfs2 = {
        let mut superblock = vec![0; 24];
        superblock[0] = 2;
        superblock[6..8].copy_from_slice(&[0x34, 0x34]);
        superblock[8..10].copy_from_slice(&280u16.to_le_bytes());
        superblock
    };
    let uberblock = 0x00ba_b10c_u64.to_le_bytes();
    let mut mbr = vec![0; 66];
    mbr[4] = 0x83;
    mbr[12] = 1;
    mbr[64..].copy_from_slice(&[0x55, 0xaa]);
    vec![
        one("ext2", 1024 + 0x38, b"\x53\xef"),
        ("ext3", vec![(1080, b"\x53\xef".to_vec()), (1024 + 0x5c, vec![4])]),
        ("ext4", vec![(1080, b"\x53\xef".to_vec()), (1024 + 0x60, vec![0x42])]),
        ("jbd", vec![(1080, b"\x53\xef".to_vec()), (1024 + 0x60, vec![8])]),
        one("xfs", 0, b"XFSB"),
        one("btrfs", 65600, b"_BHRfS_M"),
        one("f2fs", 1024, b"\x10\x20\xf5\xf2"),
        one("nilfs2", 1024, &nilfs2),
        one("nilfs2", SIZE - 4096, &nilfs2),
        one("jfs", 32768, b"JFS1"),
        one("reiserfs", 65588, b"ReIsEr2Fs"),
        one("reiserfs", 65588, b"ReIsEr3Fs"),
        one("reiserfs", 8244, b"ReIsErFs"),
        one("reiser4", 65536, b"ReIsEr4"),
        one("exfat", 3, b"EXFAT   "),
        one("ntfs", 3, b"NTFS    "),
        one("vfat", 0x36, b"FAT16   "),
        one("vfat", 0x52, b"FAT32   "),
        one("vfat", 0, b"\xeb\x3c\x90mkdosfs\0\0\x02\x04\x01\0\x02\0\x02\0\0\xf8"),
        one("squashfs", 0, b"hsqs"),
        one("erofs", 1024, b"\xe2\xe1\xf5\xe0"),
        one("iso9660", 32769, b"CD001"),
        one("udf", 32768 + 2048 + 1, b"NSR02"),
        one("zfs_member", 128 << 10, &uberblock),
        one("zfs_member", SIZE - (64 << 10), &uberblock),
        one("zfs_member", SIZE - (300 << 10), &0x00ba_b10c_u64.to_be_bytes()),
        one("bcache", 4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
        one("bcachefs", 4120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
        ("LVM2_member", vec![(512, b"LABELONE".to_vec()), (512 + 24, b"LVM2 001".to_vec())]),
        one("crypto_LUKS", 0, b"LUKS\xba\xbe\0\x01"),
        one("crypto_LUKS", 0, b"LUKS\xba\xbe\0\x02"),
        one("crypto_LUKS", 0x4000, b"SKUL\xba\xbe\0\x02"),
        one("crypto_LUKS", 0x40_0000, b"SKUL\xba\xbe\0\x02"),
        one("linux_raid_member", SIZE - 65536, b"\xfc\x4e\x2b\xa9\0\0\0\0\x5a\0\0\0"),
        one("linux_raid_member", SIZE - 65536, b"\xa9\x2b\x4e\xfc\0\0\0\0\0\0\0\x5a"),
        one("linux_raid_member", SIZE - 8192, md),
        one("linux_raid_member", 0, md),
        one("linux_raid_member", 4096, md),
        one("ddf_raid_member", SIZE - 512, b"\xde\x11\xde\x11"),
        one("isw_raid_member", SIZE - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00"),
        one("swap", 4086, b"SWAPSPACE2"),
        one("swap", 65526, b"SWAPSPACE2"),
        one("swsuspend", 4086, b"S1SUSPEND\0"),
        one("gpt", 512, b"EFI PART\0\0\x01\0"),
        one("gpt", 4096, b"EFI PART\0\0\x01\0"),
        one("gpt", SIZE - 512, b"EFI PART\0\0\x01\0"),
        one("gpt", SIZE - 4096, b"EFI PART\0\0\x01\0"),
        one("dos", 446, &mbr),
        one("dos", 510, b"\x55\xaa"),
    ]
}

fn image(parts: &[(u64, Vec<u8>)], size: u64) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(size).unwrap();
    for (offset, bytes) in parts {
        file.write_all_at(bytes, *offset).unwrap();
    }
    file
}

fn kinds(file: &File, size: u64) -> Vec<&'static str> {
    probe(file, Bytes(size)).unwrap().iter().map(|signature| signature.kind).collect()
}

#[test]
fn every_crafted_signature_is_found_alone() {
    for (kind, parts) in crafted() {
        assert_eq!(kinds(&image(&parts, SIZE), SIZE), [kind], "{parts:x?}");
    }
}

#[test]
fn every_rule_of_the_table_is_within_the_window() {
    for (kind, offset, bytes) in magic::locations() {
        let found = kinds(&image(&[(offset, bytes.to_vec())], SIZE), SIZE);
        assert_eq!(found, [kind], "at {offset}");
    }
}

#[test]
fn nothing_is_found_on_an_empty_device() {
    for size in [0, 1, 511, 512, 4096, 65536, 1 << 20, SIZE] {
        assert_eq!(kinds(&image(&[], size), size), Vec::<&str>::new());
        let text = vec![(0, b"The quick brown fox\n".repeat(100))];
        assert_eq!(kinds(&image(&text, size.max(4096)), size), Vec::<&str>::new());
    }
    // A device larger than its readable part.
    assert_eq!(kinds(&image(&[], 4096), SIZE), Vec::<&str>::new());
}

#[test]
fn incomplete_signatures_are_not_reported() {
    for parts in [
        (0, b"XFS".to_vec()),
        (512, b"LABELONE".to_vec()),
        (1030, b"\x34\x34".to_vec()),
        (0, b"\xfc\x4e\x2b\xa9\x02\0\0\0".to_vec()),
        (512, b"EFI PARTY".to_vec()),
        // An invalid boot flag.
        (446, [&[1][..], &[0; 63], &[0x55, 0xaa]].concat()),
    ] {
        assert_eq!(kinds(&image(&[parts], SIZE), SIZE), Vec::<&str>::new());
    }
}

#[test]
fn several_signatures_are_found_once_each() {
    let parts: Vec<_> = ["xfs", "btrfs", "jfs", "gpt", "linux_raid_member", "swap"]
        .into_iter()
        .flat_map(|wanted| crafted().into_iter().filter(move |(kind, _)| *kind == wanted))
        .flat_map(|(_, parts)| parts)
        .filter(|(offset, _)| *offset != 0)
        .chain([(0, b"XFSB".to_vec())])
        .collect();
    let found: BTreeSet<_> = kinds(&image(&parts, SIZE), SIZE).into_iter().collect();
    assert_eq!(found, BTreeSet::from(["xfs", "btrfs", "jfs", "gpt", "linux_raid_member", "swap"]));
    assert_eq!(kinds(&image(&parts, SIZE), SIZE).len(), found.len());
}

#[test]
fn a_label_cannot_write_to_the_terminal() {
    let parts = vec![(0, b"XFSB".to_vec()), (0x6c, b"\x1b[2Jgone".to_vec())];
    let found = probe(&image(&parts, SIZE), Bytes(SIZE)).unwrap();
    assert_eq!(found[0].to_string(), r#"xfs "\u{1b}[2Jgone""#);
}

#[test]
fn data_is_found_at_both_ends_and_at_the_sampled_locations() {
    let size = 64 << 20;
    let found = |offset: u64, bytes: &[u8]| {
        in_use(&image(&[(offset, bytes.to_vec())], size), Bytes(size)).unwrap()
    };
    // A tar archive, a boot loader, the first bytes of an encrypted device, one byte of a database.
    for (offset, bytes) in
        [(257, &b"ustar"[..]), (0, b"\xebc\x90GRUB"), (0, b"\x9d\xc2\x11\x5f"), (40960, b"\x01")]
    {
        assert_eq!(found(offset, bytes), Some(Bytes(offset / 4096 * 4096)));
    }
    assert_eq!(found(size - 1, b"x"), Some(Bytes(size - 4096)));
    assert_eq!(found(size - (1 << 20), b"x"), Some(Bytes(size - (1 << 20))));
    let all = |byte: u8| vec![byte; usize::try_from(size).unwrap()];
    assert_eq!(found(0, &all(0)), None);
    assert_eq!(found(0, &all(0xff)), None);
    assert_eq!(found(0, &all(0xaa)), Some(Bytes(0)));
    // Blocks of zeros and blocks of 0xff, but not both in one block.
    assert_eq!(found(8192, &[0xff; 4096]), None);
    assert_eq!(found(8192, &[0xff; 4095]), Some(Bytes(8192)));
    // A megabyte at any location: 62 MiB between the ends have 256 locations, one per 248 KiB.
    for offset in (1..63).map(|mib| mib << 20) {
        assert!(found(offset, &[7; 1 << 20]).is_some(), "{offset}");
    }
    // Less than that may be missed between them, as documented.
    assert_eq!(found((1 << 20) + 8192, b"x"), None);
}

/// As stated in `docs/method/safety.md`.
#[test]
fn scattered_data_on_one_percent_is_missed_in_one_of_thirteen_cases() {
    let missed = 0.99_f64.powi(i32::try_from(data::SAMPLES).unwrap());
    assert_eq!((1.0 / missed).round(), 13.0);
}

#[test]
fn a_small_device_is_read_as_a_whole() {
    for size in [1, 512, 4096, 4608, 1 << 20, 3 << 20] {
        for offset in [0, size / 2, size - 1] {
            let file = image(&[(offset, b"x".to_vec())], size);
            let expected = Some(Bytes(offset / 4096 * 4096));
            assert_eq!(in_use(&file, Bytes(size)).unwrap(), expected, "{offset} of {size}");
        }
        assert_eq!(in_use(&image(&[], size), Bytes(size)).unwrap(), None);
    }
    assert_eq!(in_use(&image(&[], 0), Bytes(0)).unwrap(), None);
    // Shorter than its stated size.
    assert_eq!(in_use(&image(&[], 4096), Bytes(SIZE)).unwrap(), None);
}

/// Writes a partition table from an sfdisk script and returns the reserved uses of its partitions,
/// by their first MiB.
fn reserved_in(script: &str, starts: &[u64]) -> Option<Vec<Option<&'static str>>> {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = temp.path().join("image");
    File::create(&path).unwrap().set_len(SIZE).unwrap();
    let sfdisk = installed("sfdisk")?;
    let mut child = Command::new(sfdisk)
        .arg("-q")
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let file = File::open(&path).unwrap();
    Some(starts.iter().map(|mib| reserved(&file, Bytes(SIZE), Bytes::mib(*mib)).unwrap()).collect())
}

#[test]
fn partitions_of_a_boot_loader_are_reserved() {
    let gpt = "label: gpt\n\
        start=2048, size=2048, type=21686148-6449-6E6F-744E-656564454649\n\
        start=4096, size=2048, type=9E1A2D38-C612-4316-AA26-8B49521E5A8B\n\
        start=6144, size=2048, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B\n\
        start=8192, size=2048, type=E3C9E316-0B5C-4DB8-817D-F92DF00215AE\n\
        start=10240, size=2048, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4\n\
        start=12288, size=2048, type=DE94BBA4-06D1-4D40-A16A-BFD50179D6AC\n\
        start=14336, size=2048, type=BC13C2FF-59E6-4262-A352-B275FD6F7172\n\
        start=16384, size=2048, type=FE3A2A5D-4F32-41A7-B725-ACCC3129A309\n";
    let Some(found) = reserved_in(gpt, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) else { return };
    let [bios, prep, efi, msr] =
        ["BIOS boot", "PowerPC PReP boot", "EFI system", "Microsoft reserved"].map(Some);
    let [recovery, extended_boot, chromeos] =
        ["Windows recovery", "Linux extended boot", "ChromeOS kernel"].map(Some);
    assert_eq!(found, [bios, prep, efi, msr, None, recovery, extended_boot, chromeos, None]);
    let mbr = "label: dos\n\
        start=2048, size=2048, type=41\n\
        start=4096, size=2048, type=ef\n\
        start=6144, size=2048, type=83\n\
        start=8192, size=16384, type=5\n\
        start=10240, size=2048, type=83\n\
        start=14336, size=2048, type=41\n";
    let found = reserved_in(mbr, &[1, 2, 3, 4, 5, 7]).unwrap();
    assert_eq!(found, [prep, efi, None, Some("extended partition"), None, prep]);
    for extended in ["f", "85"] {
        let mbr = format!(
            "label: dos\n\
             start=2048, size=2048, type=27\n\
             start=4096, size=2048, type={extended}\n"
        );
        let found = reserved_in(&mbr, &[1, 2]).unwrap();
        assert_eq!(found, [recovery, Some("extended partition")], "type {extended}");
    }
}

#[test]
fn a_malformed_table_is_read_to_its_end() {
    let header = |entries: u64, count: u32, length: u32| {
        let mut header = b"EFI PART\0\0\x01\0".to_vec();
        header.resize(92, 0);
        header[72..80].copy_from_slice(&entries.to_le_bytes());
        header[80..84].copy_from_slice(&count.to_le_bytes());
        header[84..88].copy_from_slice(&length.to_le_bytes());
        header
    };
    // Endless, empty, and out-of-range entries.
    for (entries, count, length) in
        [(2, u32::MAX, 128), (2, 128, 0), (u64::MAX, 128, 128), (u64::MAX / 512, 1, u32::MAX)]
    {
        let file = image(&[(512, header(entries, count, length))], SIZE);
        assert_eq!(reserved(&file, Bytes(SIZE), Bytes::mib(1)).unwrap(), None);
    }
    // An extended partition that is its own logical partition.
    let mut record = vec![0; 512];
    record[446 + 4] = 5;
    record[446 + 8] = 1;
    record[510..].copy_from_slice(b"\x55\xaa");
    let parts = (0..3).map(|n| (n * 512, record.clone())).collect::<Vec<_>>();
    assert_eq!(reserved(&image(&parts, SIZE), Bytes(SIZE), Bytes::mib(1)).unwrap(), None);
}

/// Real filesystems: kind, size in MiB, program and arguments; `{}` is the image.
const MAKERS: &[(&str, u64, &[&str])] = &[
    ("ext2", 16, &["mkfs.ext2", "-q", "-F", "-L", "two", "{}"]),
    ("ext3", 16, &["mkfs.ext3", "-q", "-F", "-L", "three", "{}"]),
    ("ext4", 16, &["mkfs.ext4", "-q", "-F", "-L", "four", "{}"]),
    ("ext4", 16, &["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "{}"]),
    ("jbd", 16, &["mke2fs", "-q", "-F", "-O", "journal_dev", "{}"]),
    ("xfs", 320, &["mkfs.xfs", "-q", "-f", "-L", "ex", "{}"]),
    ("btrfs", 128, &["mkfs.btrfs", "-q", "-f", "-L", "butter", "{}"]),
    ("f2fs", 64, &["mkfs.f2fs", "-q", "-f", "-l", "flash", "{}"]),
    ("nilfs2", 160, &["mkfs.nilfs2", "-q", "-f", "-L", "log", "{}"]),
    ("jfs", 32, &["mkfs.jfs", "-q", "-L", "jay", "{}"]),
    ("reiserfs", 64, &["mkreiserfs", "-q", "-f", "-f", "-l", "three", "{}"]),
    ("reiser4", 64, &["mkfs.reiser4", "-f", "-y", "-L", "four", "{}"]),
    ("exfat", 16, &["mkfs.exfat", "{}"]),
    ("ntfs", 16, &["mkfs.ntfs", "-q", "-F", "-f", "{}"]),
    ("vfat", 16, &["mkfs.vfat", "-n", "FAT", "{}"]),
    ("vfat", 64, &["mkfs.vfat", "-F", "32", "-n", "WIDE", "{}"]),
    ("vfat", 1, &["mkfs.vfat", "-F", "12", "{}"]),
    ("minix", 8, &["mkfs.minix", "-1", "{}"]),
    ("minix", 8, &["mkfs.minix", "-2", "{}"]),
    ("minix", 8, &["mkfs.minix", "-3", "{}"]),
    ("bfs", 8, &["mkfs.bfs", "{}"]),
    ("cramfs", 0, &["mkfs.cramfs", "-n", "cram", "/etc/default", "{}"]),
    ("squashfs", 0, &["mksquashfs", "/etc/default", "{}", "-quiet", "-no-progress", "-noappend"]),
    ("erofs", 0, &["mkfs.erofs", "{}", "/etc/default"]),
    ("iso9660", 0, &["genisoimage", "-quiet", "-V", "DISC", "-o", "{}", "/etc/default"]),
    ("udf", 16, &["mkudffs", "-l", "disc", "{}"]),
    ("gfs2", 64, &["mkfs.gfs2", "-q", "-O", "-p", "lock_nolock", "{}"]),
    ("ocfs2", 256, &["mkfs.ocfs2", "-q", "-F", "-M", "local", "-L", "o", "{}"]),
    ("swap", 8, &["mkswap", "-L", "s", "{}"]),
    (
        "crypto_LUKS",
        32,
        &["sh", "-c", "cryptsetup luksFormat -q --type luks1 $FAST {} /etc/passwd"],
    ),
    (
        "crypto_LUKS",
        32,
        &["sh", "-c", "cryptsetup luksFormat -q --type luks2 $FAST {} /etc/passwd"],
    ),
    ("bcachefs", 64, &["bcachefs", "format", "-q", "{}"]),
    ("dos", 16, &["sh", "-c", "echo label:dos | sfdisk -q {}"]),
    ("dos", 16, &["sh", "-c", "printf 'label:dos\\n,4M\\n,,\\n' | sfdisk -q {}"]),
    ("gpt", 16, &["sh", "-c", "printf 'label:gpt\\n,4M\\n,,\\n' | sfdisk -q {}"]),
];

/// blkid's result for an image: its kinds, and label and UUID if there is one of each.
fn blkid(path: &Path) -> (BTreeSet<String>, Option<String>, Option<String>) {
    let output = Command::new("blkid").args(["-p", "-o", "export"]).arg(path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let fact = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(String::from))
    };
    let kinds = [fact("TYPE"), fact("PTTYPE")].into_iter().flatten().collect();
    (kinds, fact("LABEL"), fact("UUID"))
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).map(|dir| dir.join(program)).find(|p| p.exists())
}

/// Lower case without separators, because tools write serial numbers differently.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

#[test]
fn real_filesystems_match_blkid() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut checked = Vec::new();
    for (kind, size, argv) in MAKERS {
        let argv: Vec<_> = argv
            .iter()
            .map(|word| word.replace("{}", &temp.path().join("image").to_string_lossy()))
            .collect();
        let Some(program) = installed(&argv[0]) else { continue };
        let path = temp.path().join("image");
        let file = File::create(&path).unwrap();
        file.set_len(size << 20).unwrap();
        // The weakest possible key derivation.
        let fast = ("FAST", "--pbkdf pbkdf2 --iter-time 1");
        let made = Command::new(program).args(&argv[1..]).env(fast.0, fast.1).output().unwrap();
        if made.status.code() == Some(127) {
            // The shell does not find the program, or ld.so(8) does not find its libraries.
            continue;
        }
        assert!(made.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&made.stderr));
        let found =
            probe(&File::open(&path).unwrap(), Bytes(path.metadata().unwrap().len())).unwrap();
        let ours: BTreeSet<_> = found.iter().map(|signature| signature.kind.to_owned()).collect();
        let (mut theirs, label, uuid) = blkid(&path);
        if *kind == "exfat" {
            // blkid also reports a partition table for the boot sector of exFAT, unlike those of
            // FAT and NTFS.
            theirs.remove("dos");
        }
        assert_eq!(ours, BTreeSet::from([(*kind).to_owned()]), "{argv:?}");
        // An old blkid does not support every new format; its results must agree.
        if !theirs.is_empty() {
            assert_eq!(ours, theirs, "{argv:?}");
            if found[0].label.is_some() {
                assert_eq!(found[0].label, label, "{argv:?}");
            }
            if let (Some(uuid), Some(ours)) = (uuid, &found[0].uuid) {
                assert_eq!(plain(ours), plain(&uuid), "{argv:?}");
            }
        }
        checked.push(*kind);
        std::fs::remove_file(&path).unwrap();
    }
    if checked.is_empty() {
        writeln!(std::io::stderr(), "skipped: no mkfs is installed").unwrap();
    }
}

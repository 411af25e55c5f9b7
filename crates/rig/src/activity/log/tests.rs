use expect_test::expect;

use super::{super::devices::Device, *};

fn stack() -> Stack {
    let device =
        |name: &str| Device { name: name.into(), depth: 0, number: None, partition: false };
    Stack { devices: vec![device("loop0"), device("nvme0n1p2")], unavailable: Vec::new() }
}

fn all() -> BTreeSet<String> {
    ["loop0", "loop00", "loop1", "nvme0n1p2", "sda", "dm-0"].map(String::from).into()
}

#[test]
fn messages_of_every_kind() {
    let records = [
        "6,1,5,-;EXT4-fs (loop0): mounted filesystem a-b r/w with ordered data mode.",
        "6,2,5,-;EXT4-fs (loop1): mounted filesystem a-b r/w with ordered data mode.",
        "2,3,5,-;EXT4-fs error (device loop0): ext4_lookup:1855: inode #2: comm ls: iget",
        "2,4,5,-;EXT4-fs error (device loop1): ext4_lookup:1855: inode #2: comm ls: iget",
        "2,5,5,-;EXT4-fs (loop0): Remounting filesystem read-only",
        "1,6,5,-;XFS (loop0): Corruption detected. Unmount and run xfs_repair",
        "1,7,5,-;XFS (loop0): Filesystem has been shut down due to log error (0x2).",
        "1,8,5,-;XFS (dm-0): metadata I/O error in \"xfs_buf_ioend\" at daddr 0x1 len 1 error 5",
        "6,9,5,-;XFS (loop0): Ending clean mount",
        "3,10,5,-;BTRFS error (device loop0 state E): parent transid verify failed",
        "4,11,5,-;BTRFS warning (device loop0): csum failed",
        "3,12,5,-;I/O error, dev nvme0n1p2, sector 8 op 0x1:(WRITE) flags 0x0",
        "3,13,5,-;Buffer I/O error on dev sda, logical block 0, lost async page write",
        "4,14,5,-;nvme nvme0: I/O tag 5 timeout, completion polled",
        "3,15,5,-;INFO: task fslab:77 blocked for more than 120 seconds.",
        "3,16,5,-;Aborting journal on device loop0-8.",
        "3,17,5,-;JBD2: Error -5 detected when updating journal superblock for loop0-8.",
        "3,18,5,-;mce: [Hardware Error]: Machine check events logged",
        "4,19,5,-;message of no device",
        "27,20,5,-;systemd[1]: loop0 failed",
        "no record",
        "x,1,2,-;loop0",
    ]
    .map(String::from);
    let (lines, more) = select(&records, &stack(), &all());
    let shown: String = lines
        .iter()
        .map(|line| format!("{} {:5} {}\n", line.level, line.fatal, line.text))
        .collect();
    assert_eq!(more, 0);
    expect![[r#"
        6 false EXT4-fs (loop0): mounted filesystem a-b r/w with ordered data mode.
        2 true  EXT4-fs error (device loop0): ext4_lookup:1855: inode #2: comm ls: iget
        2 true  EXT4-fs (loop0): Remounting filesystem read-only
        1 true  XFS (loop0): Corruption detected. Unmount and run xfs_repair
        1 true  XFS (loop0): Filesystem has been shut down due to log error (0x2).
        6 false XFS (loop0): Ending clean mount
        3 true  BTRFS error (device loop0 state E): parent transid verify failed
        4 false BTRFS warning (device loop0): csum failed
        3 true  I/O error, dev nvme0n1p2, sector 8 op 0x1:(WRITE) flags 0x0
        4 false nvme nvme0: I/O tag 5 timeout, completion polled
        3 false INFO: task fslab:77 blocked for more than 120 seconds.
        3 true  Aborting journal on device loop0-8.
        3 true  JBD2: Error -5 detected when updating journal superblock for loop0-8.
        3 false mce: [Hardware Error]: Machine check events logged
    "#]]
    .assert_eq(&shown);
}

#[test]
fn excess_messages_are_counted_and_the_first_error_is_kept() {
    let mut records = vec!["6,1,5,-;XFS (loop0): hm".to_owned(); 100];
    records.extend(vec!["3,1,5,-;I/O error, dev loop0, sector 8".to_owned(); 3]);
    let (lines, more) = select(&records, &stack(), &all());
    assert_eq!((lines.len(), more), (MAX_LINES + 1, 100 - MAX_LINES + 2));
    assert!(lines[MAX_LINES].fatal);
}

/// Filesystems of the catalog without fatal messages, and the reason.
const WITHOUT: [(&str, &str); 12] = [
    ("reiser4", "its messages do not name the device, and it is not in the mainline kernel"),
    ("tmpfs", "it has no device, and does not report errors"),
    ("zfs", "its events are not in the kernel log, and it is not in the mainline kernel"),
    ("overlayfs", "the filesystem below it has its own entry"),
    ("fuse-overlayfs", "the filesystem below it has its own entry"),
    ("bindfs", "the filesystem below it has its own entry"),
    ("gocryptfs", "the filesystem below it has its own entry"),
    ("sshfs", "it has no device, and its errors are those of the calls"),
    ("nfs", "it has no device, and its messages name the server"),
    ("smb", "it has no device, and its messages name the server"),
    ("none", "errors of the block device fail the calls of the workload"),
    ("directory", "the filesystem below it has its own entry"),
];

#[test]
fn each_filesystem_has_fatal_messages_or_a_reason() {
    for filesystem in crate::Catalog::embedded().all() {
        let name = filesystem.name.as_str();
        let listed = FATAL.iter().any(|(names, _)| names.contains(&name));
        let excused = WITHOUT.iter().any(|(other, _)| *other == name);
        assert!(listed != excused, "{name}");
        let shown = EXAMPLES.iter().any(|(other, ..)| *other == name);
        assert_eq!(shown, listed, "{name} has example lines");
    }
}

/// For each filesystem a message that fails a trial and one that does not, as written by the
/// kernel.
const EXAMPLES: [(&str, &str, &str); 13] = [
    (
        "ext2",
        "2;EXT2-fs error (device loop0): ext2_get_inode: bad inode number: 9",
        "4;EXT2-fs (loop0): warning: mounting unchecked fs, running e2fsck is recommended",
    ),
    (
        "ext3",
        "2;EXT3-fs error (device loop0): ext3_lookup: deleted inode referenced: 9",
        "6;EXT3-fs (loop0): recovery complete",
    ),
    (
        "ext4",
        "2;EXT4-fs error (device loop0): ext4_find_entry:1683: inode #2: comm ls: reading dir",
        "4;EXT4-fs (loop0): mounted filesystem without journal. Quota mode: none.",
    ),
    (
        "xfs",
        "1;XFS (loop0): Corruption of in-memory data (0x8) detected. Shutting down filesystem.",
        "5;XFS (loop0): Mounting V5 Filesystem a-b",
    ),
    (
        "btrfs",
        "2;BTRFS critical (device loop0): corrupt leaf: root=1 block=9 slot=0",
        "4;BTRFS warning (device loop0): checksum verify failed on logical 1 mirror 1",
    ),
    (
        "jfs",
        "3;ERROR: (device loop0): diRead: ino != di_number",
        "6;JFS: (loop0) nTxBlock = 8192, nTxLock = 65536",
    ),
    (
        "reiserfs",
        "2;REISERFS error (device loop0): vs-5150 search_by_key: invalid format found",
        "4;REISERFS warning (device loop0): sh-2021 reiserfs_fill_super: can not find it",
    ),
    (
        "nilfs2",
        "3;NILFS (loop0): I/O error reading meta-data file (ino=3, block-offset=1)",
        "6;NILFS (loop0): segctord starting. Construction interval = 5 seconds",
    ),
    (
        "f2fs",
        "4;F2FS-fs (loop0): Stopped filesystem due to reason: 4",
        "5;F2FS-fs (loop0): MountedFilesystem with checkpoint version = 1b41e954",
    ),
    (
        "bcachefs",
        "3;bcachefs (loop0): inconsistency detected - emergency read only at journal seq 8",
        "6;bcachefs (loop0): shutting down",
    ),
    (
        "exfat",
        "3;exFAT-fs (loop0): error, invalid access to FAT (entry 0xffffffff)",
        "4;exFAT-fs (loop0): Volume was not properly unmounted. Some data may be corrupt.",
    ),
    (
        "vfat",
        "3;FAT-fs (loop0): error, fat_free_clusters: deleting FAT entry beyond EOF",
        "4;FAT-fs (loop0): Volume was not properly unmounted. Some data may be corrupt.",
    ),
    (
        "ntfs3",
        "5;ntfs3(loop0): Mark volume as dirty due to NTFS errors",
        "4;ntfs3: loop0: It is recommened to use chkdsk.",
    ),
];

#[test]
fn fatal_messages_of_each_filesystem_are_recognized() {
    let more = [
        "2;NILFS error (device loop0): nilfs_readdir: bad page in #2",
        "3;exFAT-fs (loop0): Filesystem has been set read-only",
        "3;ntfs3: loop0: failed to read volume at offset 0x1000",
        "2;REISERFS abort (device loop0): Journal write error in flush_commit_list",
        "3;ERROR: (device loop0): remounting filesystem as read-only",
    ];
    let fatal = EXAMPLES.iter().map(|(_, fatal, _)| *fatal).chain(more).map(|line| (line, true));
    let harmless = EXAMPLES.iter().map(|(.., harmless)| (*harmless, false));
    for (line, ends) in fatal.chain(harmless) {
        let record = line.replacen(';', ",1,5,-;", 1);
        let found = classify(&record, &stack(), &all()).unwrap_or_else(|| panic!("{line} is lost"));
        assert_eq!(found.fatal, ends, "{line}");
        let others = classify(&record.replace("loop0", "loop1"), &stack(), &all());
        assert_eq!(others, None, "{line} of another device");
    }
}

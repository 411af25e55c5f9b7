use expect_test::expect;

use super::{super::devices::Device, *};

fn stack() -> Stack {
    let device =
        |name: &str| Device { name: name.into(), depth: 0, number: None, partition: false };
    Stack { devices: vec![device("loop0"), device("nvme0n1p2")], absent: Vec::new() }
}

fn all() -> BTreeSet<String> {
    ["loop0", "loop00", "loop1", "nvme0n1p2", "sda", "dm-0"].map(String::from).into()
}

#[test]
fn lines_of_every_kind() {
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
        "4,19,5,-;something that is nobody's",
        "27,20,5,-;systemd[1]: loop0 failed",
        "no record",
        "x,1,2,-;loop0",
    ]
    .map(String::from);
    let (lines, more) = select(&records, &stack(), &all());
    let told: String = lines
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
    .assert_eq(&told);
}

#[test]
fn many_lines_are_counted_and_the_first_error_is_kept() {
    let mut records = vec!["6,1,5,-;XFS (loop0): hm".to_owned(); 100];
    records.extend(vec!["3,1,5,-;I/O error, dev loop0, sector 8".to_owned(); 3]);
    let (lines, more) = select(&records, &stack(), &all());
    assert_eq!((lines.len(), more), (MOST + 1, 100 - MOST + 2));
    assert!(lines[MOST].fatal);
}

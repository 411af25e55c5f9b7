//! Which lines of the kernel's log matter to a filesystem, and which of them end a trial.
//!
//! Enters: records of `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg:
//! `prefix,sequence,time,flags;` and the text), the watched devices, and the names of all devices.
//! Leaves: lines about the watched devices, and errors that name no device at all. What processes
//! wrote into the log is left out.

use std::collections::BTreeSet;

use model::evidence::LogLine;

use super::devices::Stack;

/// Severity 3 of syslog(2): errors. What is worse has a smaller number.
const ERROR: u8 = 3;

/// Lines kept; a device that fails says the same thousands of times.
const MOST: usize = 64;

/// Lines by which filesystems and the block layer report that data or the filesystem are lost: the
/// catalog entries that write them, and texts that all occur in the line. The comments name the
/// functions of Linux 6.12 that print them. An entry that begins with `*` is not a filesystem.
const FATAL: [(&[&str], &[&str]); 32] = [
    // fs/ext4/super.c: __ext4_error, ext4_handle_error; fs/ext2/super.c: ext2_error.
    (&["ext4"], &["EXT4-fs error"]),
    (&["ext3"], &["EXT3-fs error"]),
    (&["ext2"], &["EXT2-fs error"]),
    (&["ext4", "ext3", "ext2", "nilfs2", "f2fs", "reiserfs"], &["Remounting filesystem read-only"]),
    // fs/jbd2/journal.c: __jbd2_journal_abort_hard, jbd2_write_superblock.
    (&["ext4", "ext3"], &["Aborting journal"]),
    (&["ext4", "ext3"], &["Detected aborted journal"]),
    (&["ext4", "ext3"], &["JBD2: Error"]),
    // fs/xfs/xfs_error.c, fs/xfs/xfs_fsops.c, fs/xfs/xfs_buf.c, fs/xfs/xfs_log.c.
    (&["xfs"], &["Corruption"]),
    (&["xfs"], &["Internal error"]),
    (&["xfs"], &["Metadata corruption"]),
    (&["xfs"], &["Metadata CRC error"]),
    (&["xfs"], &["metadata I/O error"]),
    (&["xfs"], &["log I/O error"]),
    (&["xfs"], &["Filesystem has been shut down"]),
    // fs/btrfs/messages.c: _btrfs_printk, __btrfs_handle_fs_error.
    (&["btrfs"], &["BTRFS error"]),
    (&["btrfs"], &["BTRFS critical"]),
    (&["btrfs"], &["forced readonly"]),
    // fs/f2fs/super.c: f2fs_handle_critical_error; the first is of older kernels.
    (&["f2fs"], &["F2FS-fs error"]),
    (&["f2fs"], &["F2FS-fs (", "Stopped filesystem due to reason"]),
    // fs/jfs/super.c: jfs_error, jfs_handle_error.
    (&["jfs"], &["ERROR: (device "]),
    // fs/nilfs2/super.c: __nilfs_error; fs/nilfs2/{mdt,btree,segment}.c: nilfs_err.
    (&["nilfs2"], &["NILFS error (device "]),
    (&["nilfs2"], &["NILFS (", "I/O error"]),
    // fs/reiserfs/prints.c: __reiserfs_error, reiserfs_abort.
    (&["reiserfs"], &["REISERFS error (device "]),
    (&["reiserfs"], &["REISERFS abort (device "]),
    // fs/exfat/misc.c: __exfat_fs_error; fs/fat/misc.c: __fat_fs_error.
    (&["exfat", "vfat"], &["FAT-fs (", "): error, "]),
    (&["exfat", "vfat"], &["FAT-fs (", "Filesystem has been set read-only"]),
    // fs/ntfs3/fsntfs.c: ntfs_set_state, ntfs_bread.
    (&["ntfs3"], &["ntfs3", "Mark volume as dirty due to NTFS errors"]),
    (&["ntfs3"], &["ntfs3", "failed to read volume at offset"]),
    // fs/bcachefs/error.c: bch2_inconsistent_error, bch2_fatal_error, bch2_io_error_work.
    (&["bcachefs"], &["bcachefs (", "emergency read only"]),
    // block/blk-core.c: blk_print_req_error; fs/buffer.c: buffer_io_error.
    (&["*block"], &["I/O error, dev"]),
    (&["*block"], &["Buffer I/O error"]),
    (&["*block"], &["lost", "page write"]),
];

/// The lines that matter, oldest first, and how many more there were than are kept. The first that
/// is fatal is always kept.
pub(super) fn select(
    records: &[String],
    stack: &Stack,
    all: &BTreeSet<String>,
) -> (Vec<LogLine>, usize) {
    let mut lines = Vec::new();
    let mut more = 0;
    for line in records.iter().filter_map(|record| judge(record, stack, all)) {
        let first_fatal = line.fatal && !lines.iter().any(|line: &LogLine| line.fatal);
        if lines.len() < MOST || first_fatal {
            lines.push(line);
        } else {
            more += 1;
        }
    }
    (lines, more)
}

/// The line of a record if it matters.
fn judge(record: &str, stack: &Stack, all: &BTreeSet<String>) -> Option<LogLine> {
    let (prefix, text) = record.split_once(';')?;
    let priority = prefix.split(',').next()?.parse::<u32>().ok()?;
    // Facility 0 is the kernel; what others write gets another one (`devkmsg_write`).
    if priority >> 3 != 0 {
        return None;
    }
    let level = u8::try_from(priority & 7).ok()?;
    let named = named(text, stack, all);
    let matches = |words: &[&str]| words.iter().all(|word| text.contains(word));
    let pattern = FATAL.iter().any(|(_, words)| matches(words))
        || (text.contains("JBD2") && text.to_ascii_lowercase().contains("aborting"));
    let (keep, fatal) = match named {
        Named::Ours => (true, pattern),
        Named::Others => (false, false),
        // Filesystems and the block layer name the device; this may be about anything.
        Named::Nobody => (level <= ERROR || pattern, false),
    };
    keep.then(|| LogLine { level, fatal, text: text.to_owned() })
}

/// Whose devices a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// One of the stack.
    Ours,
    /// Only others.
    Others,
    /// None.
    Nobody,
}

fn named(text: &str, stack: &Stack, all: &BTreeSet<String>) -> Named {
    let part = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    let mut others = false;
    for word in text.split(part) {
        let word = word.trim_matches(['-', ':']);
        // Threads are named `jbd2/sda1-8`: the journal's inode follows.
        let bare = word.rsplit_once('-').map_or(word, |(device, _)| device);
        if [word, bare].iter().any(|word| ours(word, stack)) {
            return Named::Ours;
        }
        others |= [word, bare].iter().any(|word| all.contains(*word));
    }
    if others { Named::Others } else { Named::Nobody }
}

/// A device of the stack, or the controller of one: `nvme0` of `nvme0n1`.
fn ours(word: &str, stack: &Stack) -> bool {
    let controls = |name: &str| {
        name.starts_with("nvme") && name.strip_prefix(word).is_some_and(|r| r.starts_with('n'))
    };
    !word.is_empty()
        && (stack.holds(word) || stack.devices.iter().any(|device| controls(&device.name)))
}

#[cfg(test)]
mod tests;

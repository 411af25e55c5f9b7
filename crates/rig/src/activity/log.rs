//! Selects the relevant messages of the kernel log, and marks those that fail a trial (fatal
//! messages).
//!
//! Input: records of `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg: `prefix,sequence,time,flags;`
//! and the text), the monitored devices, and the names of all devices. Output: messages about the
//! monitored devices, and errors that name no device. Messages written by processes are ignored.

use std::collections::BTreeSet;

use model::activity::LogLine;

use super::devices::Stack;

/// Severity of errors in syslog(2). More severe messages have smaller numbers.
const ERROR: u8 = 3;

/// Maximum number of messages kept; a failing device repeats the same message thousands of times.
const MAX_LINES: usize = 64;

/// Messages of filesystems and of the block layer that report a loss of data or a failure of the
/// filesystem. Each row has the catalog names of the filesystems that print the message, and texts
/// that must all occur in the message. The comments name the functions of Linux 6.12 that print the
/// messages. A name that begins with `*` is not a filesystem.
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
    // fs/f2fs/super.c: f2fs_handle_critical_error; "F2FS-fs error" is printed by older kernels.
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

/// Relevant messages, oldest first, and the number of omitted messages. The first fatal message is
/// never omitted.
pub(super) fn select(
    records: &[String],
    stack: &Stack,
    all: &BTreeSet<String>,
) -> (Vec<LogLine>, usize) {
    let mut lines = Vec::new();
    let mut more = 0;
    for line in records.iter().filter_map(|record| classify(record, stack, all)) {
        let first_fatal = line.fatal && !lines.iter().any(|line: &LogLine| line.fatal);
        if lines.len() < MAX_LINES || first_fatal {
            lines.push(line);
        } else {
            more += 1;
        }
    }
    (lines, more)
}

/// Message of a record; `None` if it is not relevant.
fn classify(record: &str, stack: &Stack, all: &BTreeSet<String>) -> Option<LogLine> {
    let (prefix, text) = record.split_once(';')?;
    let priority = prefix.split(',').next()?.parse::<u32>().ok()?;
    // Facility 0 is the kernel. Messages written by processes have another facility
    // (`devkmsg_write`).
    if priority >> 3 != 0 {
        return None;
    }
    let level = u8::try_from(priority & 7).ok()?;
    let named_devices = named_devices(text, stack, all);
    let matches = |words: &[&str]| words.iter().all(|word| text.contains(word));
    let pattern = FATAL.iter().any(|(_, words)| matches(words))
        || (text.contains("JBD2") && text.to_ascii_lowercase().contains("aborting"));
    let (keep, fatal) = match named_devices {
        NamedDevices::Monitored => (true, pattern),
        NamedDevices::Others => (false, false),
        // Filesystems and the block layer name the device in their messages. A message without a
        // device name may be unrelated, so it is kept but not fatal.
        NamedDevices::None => (level <= ERROR || pattern, false),
    };
    keep.then(|| LogLine { level, fatal, text: text.to_owned() })
}

/// Kind of devices that a message names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedDevices {
    /// A device of the stack.
    Monitored,
    /// Other devices only.
    Others,
    /// No device.
    None,
}

fn named_devices(text: &str, stack: &Stack, all: &BTreeSet<String>) -> NamedDevices {
    let part = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    let mut others = false;
    for word in text.split(part) {
        let word = word.trim_matches(['-', ':']);
        // Names of threads may end with the inode number of the journal, as in `jbd2/sda1-8`.
        let bare = word.rsplit_once('-').map_or(word, |(device, _)| device);
        if [word, bare].iter().any(|word| is_monitored(word, stack)) {
            return NamedDevices::Monitored;
        }
        others |= [word, bare].iter().any(|word| all.contains(*word));
    }
    if others { NamedDevices::Others } else { NamedDevices::None }
}

/// True for the name of a monitored device, or of its controller, such as `nvme0` for `nvme0n1`.
fn is_monitored(word: &str, stack: &Stack) -> bool {
    let controls = |name: &str| {
        name.starts_with("nvme") && name.strip_prefix(word).is_some_and(|r| r.starts_with('n'))
    };
    !word.is_empty()
        && (stack.contains(word) || stack.devices.iter().any(|device| controls(&device.name)))
}

#[cfg(test)]
mod tests;

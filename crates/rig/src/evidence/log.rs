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

/// What filesystems and the block layer say when data or the filesystem are lost. Sources:
/// fs/ext4/super.c (`__ext4_error`, `ext4_handle_error`), fs/jbd2/journal.c
/// (`__jbd2_journal_abort_hard`), fs/xfs/xfs_error.c, `xfs_fsops.c`, fs/btrfs/messages.c,
/// fs/f2fs/super.c, block/blk-core.c (`blk_print_req_error`), fs/buffer.c.
const FATAL: [&str; 22] = [
    "EXT4-fs error",
    "EXT3-fs error",
    "EXT2-fs error",
    "Remounting filesystem read-only",
    "Corruption",
    "Internal error",
    "Metadata corruption",
    "Metadata CRC error",
    "metadata I/O error",
    "log I/O error",
    "Filesystem has been shut down",
    "BTRFS error",
    "BTRFS critical",
    "forced readonly",
    "F2FS-fs error",
    "I/O error, dev",
    "Buffer I/O error",
    "lost page write",
    "lost async page write",
    "Aborting journal",
    "Detected aborted journal",
    "JBD2: Error",
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
    let pattern = FATAL.iter().any(|words| text.contains(words))
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

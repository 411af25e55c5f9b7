//! Comparison of results with the recording.

use std::{collections::BTreeMap, io};

use model::phase::FileCall;
use trace::Op;

/// Number of differences that are described.
const SHOWN: usize = 5;

/// True if a result agrees with the recording.
///
/// Not compared are results that depend on time (`EINTR`, `EAGAIN`) or on the filesystem: sizes of
/// listings and of lists of extended attributes, descriptor numbers, and free space. Record locks
/// are compared by nothing, because all workers share one process.
pub(super) fn agrees(op: &Op, got: i64) -> bool {
    let recorded = op.result;
    if [-libc::EINTR, -libc::EAGAIN].map(i64::from).contains(&recorded) {
        return true;
    }
    match op.call {
        FileCall::Statfs
        | FileCall::Lock
        | FileCall::Flock
        | FileCall::Mmap
        | FileCall::Advise
        | FileCall::Wait
        | FileCall::Release => true,
        FileCall::Read
        | FileCall::Pread
        | FileCall::Write
        | FileCall::Pwrite
        | FileCall::CopyRange
        | FileCall::Sendfile
        | FileCall::Readlink
        | FileCall::Getxattr => got == recorded,
        // Offsets of directories, and of data and holes, depend on the filesystem.
        FileCall::Seek if op.flags == 0 => got == recorded,
        FileCall::Open
        | FileCall::Close
        | FileCall::Dup
        | FileCall::Chdir
        | FileCall::Seek
        | FileCall::Truncate
        | FileCall::Ftruncate
        | FileCall::Fallocate
        | FileCall::Fsync
        | FileCall::Fdatasync
        | FileCall::Syncfs
        | FileCall::SyncRange
        | FileCall::Stat
        | FileCall::Fstat
        | FileCall::Access
        | FileCall::List
        | FileCall::Mkdir
        | FileCall::Mknod
        | FileCall::Rmdir
        | FileCall::Unlink
        | FileCall::Rename
        | FileCall::Link
        | FileCall::Symlink
        | FileCall::Chmod
        | FileCall::Fchmod
        | FileCall::Chown
        | FileCall::Utimens
        | FileCall::Setxattr
        | FileCall::Listxattr
        | FileCall::Removexattr
        | FileCall::Clone => got.min(0) == recorded.min(0),
    }
}

/// True for errors after which a replay is meaningless: the filesystem is full, broken, or
/// read-only.
pub(super) fn is_fatal(op: &Op, got: i64) -> bool {
    let fatal = [libc::ENOSPC, libc::EIO, libc::EROFS, libc::EDQUOT, libc::EMFILE, libc::ENFILE];
    got < 0 && got != op.result && fatal.iter().any(|errno| -i64::from(*errno) == got)
}

/// True if a filesystem does not support a call, as the recorded one, or that of the replay.
pub(super) fn is_unsupported(result: i64) -> bool {
    [libc::EOPNOTSUPP, libc::ENOSYS, libc::ENOTTY].iter().any(|errno| -i64::from(*errno) == result)
}

/// Differences from the recording: call, recorded and actual result.
#[derive(Debug, Default)]
pub(super) struct Differences {
    counts: BTreeMap<(FileCall, i64, i64), u64>,
    /// Operations that were skipped because their descriptor is not open.
    pub(super) not_done: u64,
    /// Differences of calls that one of the two filesystems does not support.
    pub(super) unsupported: u64,
    /// Clones that the filesystem does not support, and that were replayed as copies.
    pub(super) copied: u64,
}

impl Differences {
    pub(super) fn add(&mut self, op: &Op, got: i64) {
        *self.counts.entry((op.call, op.result, got)).or_default() += 1;
    }

    /// The most frequent differences as text; `None` if there is none.
    pub(super) fn text(&self) -> Option<String> {
        let mut all: Vec<_> = self.counts.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let one = |((call, recorded, got), count): &(&(FileCall, i64, i64), &u64)| {
            let (call, recorded, got) = (call.name(), result(*recorded), result(*got));
            format!("{call}: recorded {recorded}, replayed {got}, {count} times")
        };
        let mut parts: Vec<String> = all.iter().take(SHOWN).map(one).collect();
        if self.not_done > 0 {
            parts.push(format!("{} operations on descriptors that are not open", self.not_done));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Result as text: a count, or the message of an error.
fn result(value: i64) -> String {
    match i32::try_from(value) {
        Ok(errno) if errno < 0 => io::Error::from_raw_os_error(-errno).to_string(),
        _ => value.to_string(),
    }
}

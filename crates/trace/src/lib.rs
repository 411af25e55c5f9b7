//! Recordings: the file operations of any program, kept in one file and replayed on any
//! filesystem.
//!
//! ```text
//! program ─ record ─► Recording ─ bytes ─► NAME.fstrace ─ read ─► Recording ─ compile ─► Program
//! ```
//!
//! [`record`] runs a program under ptrace(2) and returns a [`Recording`], which has facts only:
//! times, arguments, and results. [`compile`] derives from it what a replay needs: workers, the
//! order of their operations, and the initial files. The rules are applied when a recording is
//! replayed, so that a better rule also improves old recordings. The engine executes a [`Program`].
//!
//! A recording is untrusted input. [`read`] checks every number and name, reads in bounded memory,
//! and runs no SQL of the file. The module `check` lists what a recording may contain.
//!
//! Not included: contents of files, memory of the program, network, and everything that the program
//! did outside the root directory of the recording.
#![forbid(unsafe_code)]

mod anonymize;
mod block_log;
mod check;
mod columns;
mod compile;
mod descriptors;
mod effects;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod iolog;
mod order;
mod paths;
mod read;
#[cfg(target_arch = "x86_64")]
mod record;
#[cfg(not(target_arch = "x86_64"))]
#[path = "record_unsupported.rs"]
mod record;
mod simulation;
mod slice;
mod space;
#[cfg(target_arch = "x86_64")]
mod strace;
#[cfg(not(target_arch = "x86_64"))]
#[path = "strace_unsupported.rs"]
mod strace;
mod summary;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

pub use anonymize::anonymize;
pub use block_log::{import_block_log, is_block_log};
pub use compile::{Program, RULES, Step, compile};
pub use error::TraceError;
pub use iolog::{Iolog, iolog};
use model::phase::FileCall;
pub use order::Wait;
pub use read::{digest, parse, read};
pub use record::{Recorded, Settings, record};
pub use slice::slice;
pub use strace::{import as import_strace, is_strace};
pub use summary::{Summary, Total, summary};
pub use write::bytes;

/// Number that means "none" in [`Op`]; other numbers are indexes plus 1.
pub const NONE: u32 = 0;

/// Value of an absent offset, such as that of copy_file_range(2) without a pointer.
pub const NO_OFFSET: u64 = u64::MAX;

/// Recorded operations of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Facts such as `program` and `elapsed_ns`; see the module `summary`.
    pub facts: BTreeMap<String, String>,
    /// Relative paths, targets of symbolic links, and names of extended attributes.
    pub paths: Vec<Vec<u8>>,
    /// Files below the root before the program started; parents first. The first node is the root.
    pub nodes: Vec<Node>,
    /// Processes and threads.
    pub tasks: Vec<Task>,
}

impl Recording {
    /// Path with this number in an [`Op`] or [`Node`]; empty for [`NONE`].
    pub fn path(&self, number: u32) -> &[u8] {
        let index = usize::try_from(number).unwrap_or(0).checked_sub(1);
        index.and_then(|index| self.paths.get(index)).map_or(&[], Vec::as_slice)
    }

    /// Scale of the CPU time between operations for a replay. Its sum becomes the CPU time of runs
    /// without the recorder, less that of the recorded calls, and at least their user time, because
    /// file calls run in the kernel. The scale is 1 if these times are not known or add up to more
    /// than the recorded ones.
    ///
    /// The stops of the recorder empty caches and branch predictors, which slows the program after
    /// a stop. A proportional share of the calls in the difference would leave most of that in the
    /// pauses: those of tar were 24 ms instead of 7.
    pub(crate) fn think_scale(&self) -> ThinkScale {
        let fact = |key: &str| self.facts.get(key).and_then(|text| text.parse::<u64>().ok());
        let both = fact("baseline_user_ns").zip(fact("baseline_system_ns"));
        let calls = fact("calls_cpu_ns").unwrap_or(0);
        let baseline =
            both.map(|(user, system)| user.max(user.saturating_add(system).saturating_sub(calls)));
        let ops = self.tasks.iter().flat_map(|task| &task.ops);
        let all = ops.fold(0, |sum: u64, op| sum.saturating_add(op.think));
        ThinkScale(baseline.filter(|part| *part < all).map(|part| (part, all)))
    }

    /// Number of operations of all tasks.
    pub fn operations(&self) -> usize {
        self.tasks.iter().map(|task| task.ops.len()).sum()
    }
}

/// Factor for the CPU time between operations, as a fraction; `None` for 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkScale(Option<(u64, u64)>);

impl ThinkScale {
    pub(crate) fn apply(self, think: u64) -> u64 {
        let Some((part, whole)) = self.0 else { return think };
        let scaled = u128::from(think) * u128::from(part) / u128::from(whole);
        u64::try_from(scaled).unwrap_or(think)
    }
}

/// Process or thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Number of the task that created it, plus 1; [`NONE`] for the first.
    pub parent: u32,
    /// Number of the first task of its process.
    pub process: u32,
    /// Instant of its creation, in nanoseconds since the recording started.
    pub begin: u64,
    /// Name of the program.
    pub name: String,
    /// Operations in their order. An operation begins after its predecessor ended.
    pub ops: Vec<Op>,
}

/// Recorded operation. Numbers of descriptors and paths are indexes plus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// System call.
    pub call: FileCall,
    /// Begin, in nanoseconds since the recording started.
    pub begin: u64,
    /// Time until the call returned, in nanoseconds.
    pub length: u64,
    /// CPU time of the task since its previous operation, in nanoseconds.
    pub think: u64,
    /// Result: a count, or a negative error number.
    pub result: i64,
    /// Descriptor that the call uses, or the first directory of its names.
    pub fd: u32,
    /// Second directory, or second descriptor.
    pub fd2: u32,
    /// Descriptor that the call opened.
    pub opened: u32,
    /// Path, relative to [`Self::fd`], or to the root if that is [`NONE`].
    pub path: u32,
    /// Second path, relative to [`Self::fd2`], or text.
    pub path2: u32,
    /// Offset, mode, or seconds. Of a wait, the time until which the operations of the task are
    /// waited for; 0 until the wait.
    pub offset: u64,
    /// Length, nanoseconds, or the number of the task that a wait is for.
    pub size: u64,
    /// Flags. Of [`FileCall::Mknod`], the type of the file: one of [`NODE_TYPES`].
    pub flags: u64,
}

impl Op {
    /// Operation without arguments.
    pub fn new(call: FileCall) -> Self {
        Self {
            call,
            begin: 0,
            length: 0,
            think: 0,
            result: 0,
            fd: NONE,
            fd2: NONE,
            opened: NONE,
            path: NONE,
            path2: NONE,
            offset: 0,
            size: 0,
            flags: 0,
        }
    }

    /// End in nanoseconds since the recording started.
    pub fn end(&self) -> u64 {
        self.begin.saturating_add(self.length)
    }

    /// True if the call returned a count.
    pub fn succeeded(&self) -> bool {
        self.result >= 0
    }

    /// Bytes that the call read or wrote.
    pub fn bytes(&self) -> u64 {
        let moves = matches!(
            self.call,
            FileCall::Read
                | FileCall::Pread
                | FileCall::Write
                | FileCall::Pwrite
                | FileCall::CopyRange
                | FileCall::Sendfile
        );
        if moves { u64::try_from(self.result).unwrap_or(0) } else { 0 }
    }
}

/// Bit of [`Op::flags`] of calls with names: the last component is not followed if it is a
/// symbolic link.
pub const NO_FOLLOW: u64 = 1;

/// Types of the files that [`FileCall::Mknod`] creates: regular file, FIFO, and socket.
pub const NODE_TYPES: [u64; 3] =
    [libc::S_IFREG as u64, libc::S_IFIFO as u64, libc::S_IFSOCK as u64];

/// Kind of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Regular file.
    #[default]
    File,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Device. A replay does not create it.
    Other,
    /// FIFO.
    Fifo,
    /// Name of a socket.
    Socket,
}

impl NodeKind {
    /// All kinds, in the order of their numbers in recordings.
    pub const ALL: [Self; 6] =
        [Self::File, Self::Directory, Self::Symlink, Self::Other, Self::Fifo, Self::Socket];

    /// Kind of a file that [`FileCall::Mknod`] with this type creates.
    pub(crate) fn of_type(kind: u64) -> Self {
        match u32::try_from(kind) {
            Ok(libc::S_IFIFO) => Self::Fifo,
            Ok(libc::S_IFSOCK) => Self::Socket,
            _ => Self::File,
        }
    }
}

/// File that existed before the program started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Index of its directory; 0 for the root itself.
    pub parent: u32,
    /// Number of its name among the paths; [`NONE`] for the root.
    pub name: u32,
    /// Kind.
    pub kind: NodeKind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Index of the first node that is the same file (hard link), plus 1; [`NONE`] if this is the
    /// first.
    pub same: u32,
    /// Number of the target of a symbolic link among the paths.
    pub target: u32,
}

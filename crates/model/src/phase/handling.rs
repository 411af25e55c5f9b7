//! Preparation, caching, and region of the files of a stream.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Handling of the files of a stream, with the calls that fio makes.
///
/// ```text
/// allocate │ open · drop cached pages · advice │ barrier │ pass │ start of the next pass │ pass …
///  before the workers        per worker                  loop
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHandling {
    /// Part of the file that a worker accesses; `None`: the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
    /// Allocation of files before the first access.
    pub allocate: Allocation,
    /// Drops the cached pages from the start of the region to the end of the file after open
    /// (`POSIX_FADV_DONTNEED`). Pages that are
    /// dirty, locked, or mapped stay cached (posix_fadvise(2)).
    pub invalidate: bool,
    /// Advice on the access pattern after open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<FileAdvice>,
    /// Start of a pass after the first one.
    pub pass_start: PassStart,
    /// Drops the cached pages of the file after the final sync, as after a layout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_after: bool,
}

/// Part of a file that a worker accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// First byte of worker 0.
    pub offset: Bytes,
    /// Distance between the first bytes of a worker and the next one.
    pub worker_step: Bytes,
    /// Length.
    pub size: Bytes,
}

impl Region {
    /// First byte of a worker.
    pub fn start(&self, worker: u32) -> u64 {
        self.offset.0.saturating_add(self.worker_step.0.saturating_mul(u64::from(worker)))
    }
}

/// Allocation of a file whose size is smaller than that of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocation {
    /// No call; the file grows by writes.
    #[default]
    None,
    /// fallocate(2). If the filesystem does not support it, the file is not allocated.
    Native,
    /// posix_fallocate(3), which writes blocks if the filesystem does not support fallocate(2).
    Posix,
    /// fallocate(2) with `FALLOC_FL_KEEP_SIZE`, otherwise as `Native`.
    Keep,
    /// ftruncate(2): a sparse file.
    Truncate,
}

/// Advice on the access pattern (posix_fadvise(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAdvice {
    /// `POSIX_FADV_SEQUENTIAL`.
    Sequential,
    /// `POSIX_FADV_RANDOM`.
    Random,
}

/// Start of a pass after the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassStart {
    /// No call.
    #[default]
    Continue,
    /// Drops the cached pages of the region, if `invalidate` is set.
    Invalidate,
    /// Opens the file again, as at the start. Random patterns repeat the order of the first pass.
    Reopen,
    /// As `Reopen`, but removes the file before and creates it again.
    Recreate,
}

impl PassStart {
    /// True if the file is opened again.
    pub fn reopens(self) -> bool {
        matches!(self, Self::Reopen | Self::Recreate)
    }
}

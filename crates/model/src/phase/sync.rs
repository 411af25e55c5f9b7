//! Syncs of a stream: within the loop and after it.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Sync call of each worker after a given amount of its writes. It is part of the loop and also
/// timed separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncEvery {
    /// Interval between calls.
    pub after: SyncInterval,
    /// Sync call.
    pub call: SyncCall,
    /// The call is made before the next operation, so not after the last one (fio `fsync`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_next: bool,
}

/// Interval between sync calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncInterval {
    /// Operations.
    Ops(u64),
    /// Bytes.
    Bytes(Bytes),
}

/// Sync call in the loop. The worker first waits for operations in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncCall {
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// sync_file_range(2) of the data written since the last call. Does not write metadata and does
    /// not flush the device cache.
    Range(RangeSync),
    /// syncfs(2): all data of the filesystem.
    Syncfs,
}

impl SyncCall {
    /// True if the data written before the call is durable after it.
    pub fn is_durable(self) -> bool {
        !matches!(self, Self::Range(_))
    }
}

/// Flags of sync_file_range(2), at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSync {
    /// Waits for writes in progress first.
    pub wait_before: bool,
    /// Starts writes of all dirty pages.
    pub write: bool,
    /// Waits for these writes.
    pub wait_after: bool,
}

impl RangeSync {
    /// All flags: the only combination that leaves no dirty page in the range.
    pub const ALL: Self = Self { wait_before: true, write: true, wait_after: true };

    /// Names of the flags that are set, separated by commas.
    pub fn names(self) -> String {
        let flags = [
            (self.wait_before, "wait_before"),
            (self.write, "write"),
            (self.wait_after, "wait_after"),
        ];
        let set = flags.iter().filter(|(set, _)| *set);
        set.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
    }
}

/// Sync after the loop, before close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndSync {
    /// No sync: written data may be dirty at the end of the phase.
    None,
    /// fsync(2) (after fflush(3) with stdio).
    Fsync,
    /// fdatasync(2) (after fflush(3) with stdio).
    Fdatasync,
    /// syncfs(2) (after fflush(3) with stdio): all data of the filesystem.
    Syncfs,
}

impl EndSync {
    /// Call of the sync.
    pub fn call(self) -> Option<SyncCall> {
        match self {
            Self::None => None,
            Self::Fsync => Some(SyncCall::Fsync),
            Self::Fdatasync => Some(SyncCall::Fdatasync),
            Self::Syncfs => Some(SyncCall::Syncfs),
        }
    }
}

//! Limits of the work of a stream.

use serde::{Deserialize, Serialize};

use super::together::TimeLimit;
use crate::units::Bytes;

/// Amount of work of a worker, and its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkLimit {
    /// Operations; [`u64::MAX`]: not limited.
    pub ops: u64,
    /// Bytes; [`u64::MAX`]: not limited. The last operation is cut to whole blocks.
    pub bytes: Bytes,
    /// Time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeLimit>,
}

impl WorkLimit {
    /// No limit.
    pub const UNLIMITED: Self = Self { ops: u64::MAX, bytes: Bytes(u64::MAX), time: None };
}

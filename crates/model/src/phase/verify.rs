//! Verification of written blocks within a loop.

use serde::{Deserialize, Serialize};

/// Reads that check the header of written blocks, between the writes of a stream that writes: when
/// a multiple of `writes` blocks is unread, `reads` of them are read, in the order of their writes
/// (fio `verify_backlog`). Before another pass, all are read. The blocks of the last writes remain
/// unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyBacklog {
    /// Unread blocks before the reads, at least 1.
    pub writes: u32,
    /// Blocks to read, at least 1. If there are fewer, the next writes are read at once.
    pub reads: u32,
}

impl VerifyBacklog {
    /// Largest number of unread blocks.
    pub const LARGEST: u32 = 1_000_000;

    /// Number of reads in a pass of this number of writes.
    pub fn reads_of(self, writes: u64) -> u64 {
        // No read follows the last write.
        let Some(before) = writes.checked_sub(1) else { return 0 };
        let (every, batch) = (u64::from(self.writes), u64::from(self.reads));
        if batch <= every {
            return before.checked_sub(every).map_or(0, |later| (later / batch + 1) * batch);
        }
        let rest = before % batch;
        before - rest + if rest < every { 0 } else { rest }
    }
}

//! How far the current phase is, for whoever watches.

use std::sync::{Arc, Mutex, PoisonError};

use model::{Bytes, Ops};

use crate::barrier::Board;

/// A handle on the progress of the phase that runs now; clones show the same phase.
///
/// Reading it never disturbs the workers: they store their counters without locks, and the lock in
/// here is taken by the reader and, between phases, by [`crate::run`].
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<Current>>);

#[derive(Default)]
struct Current {
    phase: u64,
    board: Option<Arc<Board>>,
    total: Bytes,
}

/// One reading of a [`Progress`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Which phase, counted from 1; 0 before the first. Tells one phase from the next.
    pub phase: u64,
    /// Operations done so far by all workers, counted or not.
    pub ops: Ops,
    /// Bytes moved so far by all workers, counted or not.
    pub done: Bytes,
    /// Bytes that the phase moves if nothing stops it; zero where only time does, before the first
    /// phase, and while files are removed.
    pub total: Bytes,
}

impl Progress {
    /// Where the phase stands now; after a phase, where it ended.
    pub fn snapshot(&self) -> Snapshot {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let board = current.board.as_ref();
        Snapshot {
            phase: current.phase,
            ops: board.map(|board| board.done()).unwrap_or_default(),
            done: board.map(|board| board.bytes()).unwrap_or_default(),
            total: current.total,
        }
    }

    /// A new phase begins; `None` for one that moves no data.
    pub(crate) fn begin(&self, board: Option<Arc<Board>>, total: Bytes) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Current { phase: current.phase + 1, board, total };
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Progress").field(&self.snapshot()).finish()
    }
}

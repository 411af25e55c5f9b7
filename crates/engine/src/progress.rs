//! How far the current phase is, for whoever watches.

use std::sync::{Arc, Mutex, PoisonError};

use model::Bytes;

use crate::barrier::Board;

/// A handle on the progress of the phase that runs now; clones show the same phase.
///
/// Reading it never disturbs the workers: they store their counters without locks, and the lock in
/// here is taken by the reader and, between phases, by [`crate::run`].
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<Current>>);

#[derive(Default)]
struct Current {
    board: Option<Arc<Board>>,
    total: Bytes,
}

/// One reading of a [`Progress`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Bytes moved so far by all workers, counted or not.
    pub done: Bytes,
    /// Bytes that the phase moves if nothing stops it; zero before the first phase and while files
    /// are removed.
    pub total: Bytes,
}

impl Progress {
    /// Where the phase stands now; after a phase, where it ended.
    pub fn snapshot(&self) -> Snapshot {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done = current.board.as_ref().map(|board| board.bytes()).unwrap_or_default();
        Snapshot { done, total: current.total }
    }

    /// A new phase begins; `None` for one that moves no data.
    pub(crate) fn begin(&self, board: Option<Arc<Board>>, total: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Current { board, total };
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Progress").field(&self.snapshot()).finish()
    }
}

//! Progress of the current phase.

use std::sync::{Arc, Mutex, PoisonError};

use model::{Bytes, Ops};

use crate::barrier::ControlBlock;

/// Handle to the progress of the current phase; clones show the same phase.
///
/// Reading it does not disturb the workers: they store their counters without locks. The lock in
/// this type is taken by the reader and, between phases, by [`crate::run`].
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<Current>>);

#[derive(Default)]
struct Current {
    phase: u64,
    control: Option<Arc<ControlBlock>>,
    total: Bytes,
}

/// Snapshot of a [`Progress`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Number of the phase, counted from 1; 0 before the first.
    pub phase: u64,
    /// Operations completed by all workers, counted or not.
    pub ops: Ops,
    /// Bytes moved by all workers, counted or not.
    pub done: Bytes,
    /// Bytes that the phase moves unless it is stopped. Zero if only a time limit ends the phase,
    /// before the first phase, and while files are removed.
    pub total: Bytes,
}

impl Progress {
    /// Current progress of the phase; after a phase, its final progress.
    pub fn snapshot(&self) -> Snapshot {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let control = current.control.as_ref();
        Snapshot {
            phase: current.phase,
            ops: control.map(|control| control.done()).unwrap_or_default(),
            done: control.map(|control| control.bytes()).unwrap_or_default(),
            total: current.total,
        }
    }

    /// Ends the display of the last phase: a step without operations, or the preparation of the
    /// next phase, begins.
    pub fn clear(&self) {
        self.begin(None, Bytes(0));
    }

    /// Starts a new phase; `control` is `None` for a phase without data transfers.
    pub(crate) fn begin(&self, control: Option<Arc<ControlBlock>>, total: Bytes) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Current { phase: current.phase + 1, control, total };
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Progress").field(&self.snapshot()).finish()
    }
}

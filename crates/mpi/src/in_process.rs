//! Transport between threads of one process, for tests.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{Fabric, FabricError, LOST_AFTER};

/// Rank that is a thread of this process.
#[derive(Debug)]
pub struct InProcess {
    rank: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    generation: u64,
    aborted: bool,
    broadcast: Vec<u8>,
    gathered: Vec<Vec<u8>>,
}

impl InProcess {
    /// Connected ranks, each for one thread.
    pub fn ranks(size: usize) -> Vec<Self> {
        let state = State { gathered: vec![Vec::new(); size], ..State::default() };
        let shared = Shared { size, state: Mutex::new(state), changed: Condvar::new() };
        let shared = Arc::new(shared);
        (0..size).map(|rank| Self { rank, shared: Arc::clone(&shared) }).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fabric for InProcess {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn version(&self) -> String {
        "threads of one process".into()
    }

    fn barrier(&mut self, limit: Duration) -> Result<(), FabricError> {
        let ends = Instant::now() + limit;
        let mut state = self.state();
        state.arrived += 1;
        if state.arrived == self.shared.size {
            state.arrived = 0;
            state.generation += 1;
            self.shared.changed.notify_all();
            return Ok(());
        }
        let generation = state.generation;
        while state.generation == generation {
            if state.aborted {
                return Err(FabricError::Aborted);
            }
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(FabricError::Lost(limit));
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        if self.rank == 0 {
            self.state().broadcast = bytes.to_vec();
        }
        self.barrier(LOST_AFTER)?;
        bytes.copy_from_slice(&self.state().broadcast);
        self.barrier(LOST_AFTER)
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, FabricError> {
        let rank = self.rank;
        self.state().gathered[rank] = bytes.to_vec();
        self.barrier(LOST_AFTER)?;
        let all = if rank == 0 { self.state().gathered.clone() } else { Vec::new() };
        self.barrier(LOST_AFTER)?;
        Ok(all)
    }

    fn abort(&mut self) {
        self.state().aborted = true;
        self.shared.changed.notify_all();
    }
}

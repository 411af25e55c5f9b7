//! Interface of the transport between ranks.

use std::time::{Duration, Instant};

use thiserror::Error;

/// Connected ranks. All ranks must call the same methods in the same order.
pub trait Fabric {
    /// Index of this rank.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Number of ranks on this host, at least 1.
    fn ranks_on_host(&self) -> usize {
        1
    }

    /// Name and version of the transport.
    fn version(&self) -> String;

    /// Waits until all ranks have arrived. A rank sleeps while it waits, so that it does not take
    /// CPU time from the workload.
    ///
    /// # Errors
    /// [`FabricError::Lost`] if a rank does not arrive within `limit`.
    fn barrier(&mut self, limit: Duration) -> Result<(), FabricError>;

    /// Replaces `bytes` of all ranks by those of rank 0. All ranks pass the same length. May poll
    /// while it waits; call it directly after [`Fabric::barrier`].
    ///
    /// # Errors
    /// [`FabricError`] if the transport failed.
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError>;

    /// Sends bytes of any length to rank 0. Rank 0 gets those of all ranks, by rank, other ranks
    /// get nothing. May poll while it waits, like [`Fabric::broadcast`].
    ///
    /// # Errors
    /// [`FabricError`] if the transport failed.
    fn gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, FabricError>;

    /// Ends all ranks that can be reached.
    fn abort(&mut self);
}

/// Error of a transport.
#[derive(Debug, Error)]
pub enum FabricError {
    /// A rank did not arrive.
    #[error("a host did not respond for {} s; check its network and its processes", .0.as_secs())]
    Lost(Duration),
    /// Another rank aborted.
    #[error("another rank ended the session")]
    Aborted,
    /// A function of the library failed.
    #[error("{function} failed with code {code}; check the MPI installation with mpirun")]
    Call {
        /// Function.
        function: &'static str,
        /// Returned value.
        code: i32,
    },
}

/// Intervals between two polls of a sleeping barrier, which grow with the time that has elapsed.
/// Short waits are then short, and long waits use little CPU time.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    started: Instant,
    limit: Duration,
}

impl Patience {
    /// Starts a wait of at most `limit`.
    pub fn new(limit: Duration) -> Self {
        Self { started: Instant::now(), limit }
    }

    /// Sleeps until the next poll.
    ///
    /// # Errors
    /// [`FabricError::Lost`] if the limit has elapsed.
    pub fn sleep(&self) -> Result<(), FabricError> {
        let elapsed = self.started.elapsed();
        if elapsed > self.limit {
            return Err(FabricError::Lost(self.limit));
        }
        std::thread::sleep((elapsed / 8).clamp(SHORTEST, LONGEST));
        Ok(())
    }
}

/// Shortest sleep between two polls, about the time of a wakeup.
const SHORTEST: Duration = Duration::from_micros(50);
/// Longest sleep between two polls.
const LONGEST: Duration = Duration::from_millis(2);

//! Offsets between the monotonic clocks of the ranks.
//!
//! Rank 0 reads its clock, broadcasts, and reads its clock again when it has gathered the clocks of
//! all ranks. A clock was read between the two readings. The offset is its difference from their
//! mean, with half their distance as the bound. Of many exchanges, that with the smallest bound
//! counts.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::{Fabric, FabricError};

/// Exchanges of a measurement.
const EXCHANGES: u32 = 200;
/// Exchanges after which a measurement ends even if a bound is large.
const MOST_EXCHANGES: u32 = 3 * EXCHANGES;
/// Bound up to which more exchanges are not needed, in nanoseconds.
const GOOD: u64 = 200_000;
/// Time limit of a measurement.
const LIMIT: Duration = Duration::from_secs(2);

/// Offset of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Clock of the rank minus clock of rank 0, in nanoseconds.
    pub offset: i64,
    /// Largest possible error of `offset`, in nanoseconds.
    pub bound: u64,
}

/// CLOCK_MONOTONIC of this host in nanoseconds.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec)
        .unwrap_or(0)
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Measures the clocks of all ranks. Rank 0 gets one offset per rank, other ranks get none.
///
/// # Errors
/// The error of the transport.
pub fn measure(fabric: &mut impl Fabric) -> Result<Vec<Offset>, FabricError> {
    let (started, root) = (Instant::now(), fabric.rank() == 0);
    let mut best: Vec<Option<Offset>> = vec![None; fabric.size()];
    for exchange in 0.. {
        let is_good = || best.iter().flatten().all(|offset| offset.bound <= GOOD);
        let enough = exchange >= MOST_EXCHANGES
            || exchange > 0 && started.elapsed() > LIMIT
            || exchange >= EXCHANGES && is_good();
        let mut again = [u8::from(!enough)];
        let sent = now();
        fabric.broadcast(&mut again)?;
        if again == [0] {
            break;
        }
        let all = fabric.gather(&now().to_le_bytes())?;
        let received = now();
        for (best, read) in best.iter_mut().zip(&all) {
            let Ok(read) = <[u8; 8]>::try_from(&read[..]) else { continue };
            let offset = estimate(sent, u64::from_le_bytes(read), received);
            if best.is_none_or(|best| offset.bound < best.bound) {
                *best = Some(offset);
            }
        }
    }
    let own = Offset { offset: 0, bound: 0 };
    let offset =
        |(rank, best): (usize, &Option<Offset>)| if rank == 0 { own } else { best.unwrap_or(own) };
    Ok(if root { best.iter().enumerate().map(offset).collect() } else { Vec::new() })
}

/// Offset of a clock that was read as `read` between two readings of the clock of rank 0.
fn estimate(sent: u64, read: u64, received: u64) -> Offset {
    let half = received.saturating_sub(sent) / 2;
    let middle = sent + half;
    Offset { offset: read.cast_signed().wrapping_sub(middle.cast_signed()), bound: half + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_is_within_the_bound() {
        for (there, back) in [(10, 90), (50, 50), (90, 10), (0, 101)] {
            for offset in [-1_000_000_000_000_i64, 0, 7] {
                let sent = 5_000_000_000_000_u64;
                let read = (sent + there).checked_add_signed(offset).unwrap();
                let found = estimate(sent, read, sent + there + back);
                assert!(found.offset.abs_diff(offset) <= found.bound, "{found:?}");
            }
        }
    }
}

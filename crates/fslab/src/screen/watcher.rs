//! Rates of a phase from successive counter snapshots.
//!
//! Input: snapshots of the engine counters with their times. Output: readings. A reading is for
//! display only and is never a result.

use std::time::{Duration, Instant};

use engine::Snapshot;

/// Polling interval.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);

/// Poller of the engine counters.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    last: Option<(Instant, Snapshot)>,
    /// Time of the first operation of the current phase.
    started: Option<Instant>,
}

/// Progress of the workers of the current phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    /// Time since they started, at the resolution of the poller.
    pub(super) elapsed: Duration,
    /// Bytes per second since the last poll.
    pub(super) bytes_per_second: f64,
    /// Operations per second since the last poll.
    pub(super) ops_per_second: f64,
}

impl Watcher {
    /// Polls the counters; `None` until a worker has done an operation.
    pub(super) fn poll(&mut self, now: Instant, snapshot: Snapshot) -> Option<Reading> {
        let last = self.last.replace((now, snapshot));
        let same = last.filter(|(_, last)| last.phase == snapshot.phase);
        if same.is_none() {
            self.started = None;
        }
        if snapshot.ops.0 == 0 {
            return None;
        }
        let before = same.map(|(instant, _)| instant);
        let started = *self.started.get_or_insert(before.unwrap_or(now));
        let (done, ops) = same.map_or((0, 0), |(_, last)| (last.done.0, last.ops.0));
        let time = before.map_or(INTERVAL, |before| now.duration_since(before));
        #[expect(clippy::cast_precision_loss, reason = "for display only")]
        let rate = |more: u64| more as f64 / time.as_secs_f64().max(1e-3);
        Some(Reading {
            elapsed: now.duration_since(started),
            bytes_per_second: rate(snapshot.done.0.saturating_sub(done)),
            ops_per_second: rate(snapshot.ops.0.saturating_sub(ops)),
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Ops};

    use super::*;

    #[test]
    fn rates_cover_one_phase_since_the_last_poll() {
        let start = Instant::now();
        let mut watcher = Watcher::default();
        let mut poll = |millis, phase, ops, done| {
            let (ops, done, total) = (Ops(ops), Bytes(done), Bytes(0));
            let snapshot = Snapshot { phase, ops, done, total };
            watcher.poll(start + Duration::from_millis(millis), snapshot)
        };
        assert_eq!(poll(0, 0, 0, 0), None);
        assert_eq!(poll(250, 1, 0, 0), None, "workers are still in setup");
        let reading = poll(500, 1, 25, 1000).unwrap();
        assert_eq!(reading.elapsed, Duration::from_millis(250));
        assert_eq!((reading.ops_per_second, reading.bytes_per_second), (100.0, 4000.0));
        let reading = poll(1000, 1, 25, 1000).unwrap();
        assert_eq!((reading.elapsed, reading.ops_per_second), (Duration::from_millis(750), 0.0));
        assert_eq!(poll(1250, 2, 0, 0), None);
        let reading = poll(1500, 2, 1, 8).unwrap();
        assert_eq!((reading.elapsed, reading.ops_per_second), (Duration::from_millis(250), 4.0));
    }
}

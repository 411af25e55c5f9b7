//! From counters to rates: what a phase did since the last look.
//!
//! Snapshots of the engine's counters enter with the time they were taken; readings leave. A
//! reading is a figure to look at, never a result.

use std::time::{Duration, Instant};

use engine::Snapshot;

/// How often to look.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);

/// Looks at the counters again and again.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    last: Option<(Instant, Snapshot)>,
    /// When the first operation of the current phase was seen.
    started: Option<Instant>,
}

/// What the workers of the current phase do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    /// Since they began, as far as was seen.
    pub(super) elapsed: Duration,
    /// Bytes per second since the last look.
    pub(super) bytes_per_second: f64,
    /// Operations per second since the last look.
    pub(super) ops_per_second: f64,
}

impl Watcher {
    /// Takes a look; `None` while no worker has done anything.
    pub(super) fn look(&mut self, now: Instant, snapshot: Snapshot) -> Option<Reading> {
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
        #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
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
    fn rates_are_those_since_the_last_look_and_of_one_phase() {
        let start = Instant::now();
        let mut watcher = Watcher::default();
        let mut look = |millis, phase, ops, done| {
            let (ops, done, total) = (Ops(ops), Bytes(done), Bytes(0));
            let snapshot = Snapshot { phase, ops, done, total };
            watcher.look(start + Duration::from_millis(millis), snapshot)
        };
        assert_eq!(look(0, 0, 0, 0), None);
        assert_eq!(look(250, 1, 0, 0), None, "workers still prepare");
        let reading = look(500, 1, 25, 1000).unwrap();
        assert_eq!(reading.elapsed, Duration::from_millis(250));
        assert_eq!((reading.ops_per_second, reading.bytes_per_second), (100.0, 4000.0));
        let reading = look(1000, 1, 25, 1000).unwrap();
        assert_eq!((reading.elapsed, reading.ops_per_second), (Duration::from_millis(750), 0.0));
        assert_eq!(look(1250, 2, 0, 0), None);
        let reading = look(1500, 2, 1, 8).unwrap();
        assert_eq!((reading.elapsed, reading.ops_per_second), (Duration::from_millis(250), 4.0));
    }
}

//! Minimum rates of a worker.

use model::{
    Nanos,
    phase::{MinimumRate, Moved, Rate},
};

use super::NEVER;
use crate::error::Fault;

/// Time before the first check.
const SETTLING: Nanos = Nanos(2_000_000_000);

/// Checks of the rates since the previous check.
#[derive(Debug)]
pub(super) struct Minimum {
    rate: MinimumRate,
    due: Nanos,
    since: Nanos,
    moved: [Moved; 2],
}

impl Minimum {
    pub(super) fn new(rate: MinimumRate) -> Self {
        Self { rate, due: NEVER, since: Nanos(0), moved: Default::default() }
    }

    /// Instant of the next check.
    pub(super) fn due(&self) -> Nanos {
        self.due
    }

    /// Starts at the start of counting. The first check only records its numbers.
    pub(super) fn start(&mut self, clock: Nanos) {
        self.due = clock + SETTLING;
    }

    /// Compares the reads and writes since the previous check.
    ///
    /// # Errors
    /// [`Fault::Slow`] if one of the rates is too low.
    pub(super) fn check(&mut self, clock: Nanos, moved: [Moved; 2]) -> Result<(), Fault> {
        let elapsed = u128::from((clock - self.since).0.max(1));
        let wanted = [self.rate.reads, self.rate.writes];
        if self.since > Nanos(0) {
            for ((wanted, now), before) in wanted.into_iter().zip(moved).zip(self.moved) {
                let (least, done, bytes) = match wanted {
                    None => continue,
                    Some(Rate::Ops(least)) => (least, now.ops.0 - before.ops.0, false),
                    Some(Rate::Bytes(least)) => (least.0, now.bytes.0 - before.bytes.0, true),
                };
                let found = u128::from(done) * 1_000_000_000 / elapsed;
                let found = u64::try_from(found).unwrap_or(u64::MAX);
                if found < least {
                    return Err(Fault::Slow { found, least, bytes });
                }
            }
        }
        (self.since, self.moved) = (clock, moved);
        self.due = clock + self.rate.cycle.max(Nanos(1_000_000));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Ops};

    use super::*;

    #[test]
    fn rates_are_those_since_the_previous_check() {
        let second = |second: u64| Nanos(10_000_000_000 + second * 1_000_000_000);
        let cycle = Nanos(1_000_000_000);
        let rate = MinimumRate { reads: Some(Rate::Ops(10)), writes: None, cycle };
        let moved = |ops: u64| [Moved { ops: Ops(ops), bytes: Bytes(ops) }, Moved::default()];
        let mut own = Minimum::new(rate);
        own.start(second(0));
        assert_eq!(own.due(), second(2));
        assert_eq!(own.check(second(2), moved(0)), Ok(()), "the first one only records");
        assert_eq!(own.due(), second(3));
        assert_eq!(own.check(second(3), moved(10)), Ok(()));
        let slow = Fault::Slow { found: 4, least: 10, bytes: false };
        assert_eq!(own.check(second(5), moved(19)), Err(slow));
    }
}

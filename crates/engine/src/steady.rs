//! Detection of a steady rate, by which a stream ends ([`SteadyState`]).

use std::collections::VecDeque;

use model::{
    Bytes, Nanos, Ops,
    phase::{SteadyChange, SteadyLimit, SteadyRate, SteadyState},
};

/// Rates of the last intervals of a phase.
pub(crate) struct SteadyWatch {
    wanted: SteadyState,
    // Start of the current interval, and the total then; `None` before the first.
    last: Option<(Nanos, f64)>,
    starts: Option<Nanos>,
    rates: VecDeque<f64>,
    reached: bool,
}

impl SteadyWatch {
    pub(crate) fn new(wanted: SteadyState) -> Self {
        Self { wanted, last: None, starts: None, rates: VecDeque::new(), reached: false }
    }

    /// True if the rate was steady.
    pub(crate) fn is_reached(&self) -> bool {
        self.reached
    }

    /// Observes the totals of all workers at an instant. Returns true once, when the rate is
    /// steady. The rate of an interval refers to its real length, which exceeds the nominal length
    /// by at most the time between two calls.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    pub(crate) fn observe(&mut self, now: Nanos, ops: Ops, bytes: Bytes) -> bool {
        let total = match self.wanted.rate {
            SteadyRate::Operations => ops.0 as f64,
            SteadyRate::Bytes => bytes.0 as f64,
        };
        let starts = *self.starts.get_or_insert(now + self.wanted.ramp);
        if self.reached || now < starts {
            return false;
        }
        let Some((begun, before)) = self.last else {
            self.last = Some((now, total));
            return false;
        };
        let elapsed = now - begun;
        if elapsed < self.wanted.interval {
            return false;
        }
        self.last = Some((now, total));
        if self.rates.len() == self.wanted.intervals as usize {
            self.rates.pop_front();
        }
        self.rates.push_back((total - before) / elapsed.seconds());
        self.reached = self.rates.len() == self.wanted.intervals as usize && self.is_steady();
        self.reached
    }

    fn is_steady(&self) -> bool {
        let n = f64::from(self.wanted.intervals);
        let mean = self.rates.iter().sum::<f64>() / n;
        let places = || (0u32..).map(f64::from).zip(self.rates.iter().copied());
        let middle = (n - 1.0) / 2.0;
        let change = match self.wanted.change {
            SteadyChange::Deviation => {
                self.rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max)
            }
            SteadyChange::Slope => {
                let products = places().map(|(at, rate)| (at - middle) * (rate - mean));
                let squares = places().map(|(at, _)| (at - middle).powi(2));
                (products.sum::<f64>() / squares.sum::<f64>()).abs()
            }
        };
        match self.wanted.limit {
            SteadyLimit::Absolute(limit) => change < limit,
            // Without operations, there is no rate.
            SteadyLimit::Relative(limit) => mean > 0.0 && change / mean < limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Number of the interval of one second after which rates are steady; the last rate repeats.
    fn steady_after(wanted: SteadyState, rates: &[u64]) -> Option<usize> {
        let mut watch = SteadyWatch::new(wanted);
        let mut total = 0;
        assert!(!watch.observe(Nanos(5 * SECOND), Ops(0), Bytes(0)));
        for (at, rate) in rates.iter().enumerate() {
            total += rate;
            let now = Nanos((6 + at as u64) * SECOND);
            if watch.observe(now, Ops(total), Bytes(total * 1000)) {
                assert!(watch.is_reached());
                return Some(at + 1);
            }
        }
        assert!(!watch.is_reached());
        None
    }

    fn wanted(change: SteadyChange, limit: SteadyLimit) -> SteadyState {
        SteadyState {
            rate: SteadyRate::Operations,
            change,
            limit,
            ramp: Nanos(0),
            interval: Nanos(SECOND),
            intervals: 3,
        }
    }

    #[test]
    fn deviation_is_the_largest_difference_from_the_mean_of_the_window() {
        let within = wanted(SteadyChange::Deviation, SteadyLimit::Relative(0.1));
        assert_eq!(steady_after(within, &[500, 300, 200, 110, 100, 95, 95]), Some(6));
        assert_eq!(steady_after(within, &[100, 100, 100]), Some(3));
        assert_eq!(steady_after(within, &[100, 130, 100, 130, 100, 130]), None);
        let absolute = wanted(SteadyChange::Deviation, SteadyLimit::Absolute(10.0));
        assert_eq!(steady_after(absolute, &[90, 100, 110, 100]), Some(4));
    }

    #[test]
    fn slope_ignores_the_scatter_around_the_line() {
        let flat = wanted(SteadyChange::Slope, SteadyLimit::Relative(0.05));
        assert_eq!(steady_after(flat, &[100, 200, 100]), Some(3));
        assert_eq!(steady_after(flat, &[100, 90, 80, 70, 60]), None);
        // (0 - 9) / 2 per second.
        let absolute = wanted(SteadyChange::Slope, SteadyLimit::Absolute(4.6));
        assert_eq!(steady_after(absolute, &[109, 100, 100]), Some(3));
    }

    #[test]
    fn intervals_begin_after_the_ramp_and_need_operations() {
        let late = SteadyState {
            ramp: Nanos(2 * SECOND),
            ..wanted(SteadyChange::Deviation, SteadyLimit::Relative(0.1))
        };
        assert_eq!(steady_after(late, &[100; 6]), Some(5));
        assert_eq!(steady_after(SteadyState { ramp: Nanos(0), ..late }, &[0; 6]), None);
        let bytes = SteadyState {
            rate: SteadyRate::Bytes,
            limit: SteadyLimit::Absolute(500.0),
            ..wanted(SteadyChange::Deviation, SteadyLimit::Relative(0.1))
        };
        assert_eq!(steady_after(bytes, &[100, 101, 100]), None);
        assert_eq!(steady_after(bytes, &[100, 100, 100]), Some(3));
    }
}

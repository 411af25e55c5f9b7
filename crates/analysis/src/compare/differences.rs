//! The n m differences between the values of two samples, without a list of them.
//!
//! For two ascending samples, computes the k-th smallest difference, the median difference, and the
//! number of differences up to a point. Example: for 1, 4 and 6, 9 the table of differences is 5, 8
//! (row of 1) and 2, 5 (row of 4). Every row ascends and every column descends, so the border
//! between the differences up to a point and all others is a staircase. Following the staircase
//! counts the differences up to the point in n + m steps. The k-th difference is found by narrowing
//! a range between two points (Johnson and Mizoguchi, "Selecting the Kth element in X + Y and X1 +
//! X2 + … + Xm", SIAM Journal on Computing 7, 1978; Monahan, "Algorithm 616: Fast computation of
//! the Hodges–Lehmann location estimator", ACM Transactions on Mathematical Software 10, 1984).
//! Points are tried in a deterministic order. Rounding preserves the order of differences, so the
//! result is exact to the bit.

use crate::null::{Critical, Split};

/// Number of points that are chosen by value. Further points halve the number of representable
/// values in the range, which is below 2^64.
const BY_VALUE: u32 = 12;

/// All b(j) - a(i) of two samples.
#[derive(Clone, Copy)]
pub(crate) struct Differences<'a> {
    a: &'a [f64],
    b: &'a [f64],
}

impl<'a> Differences<'a> {
    /// Differences of two ascending, nonempty samples.
    pub(crate) fn new(a: &'a [f64], b: &'a [f64]) -> Self {
        Self { a, b }
    }

    fn total(&self) -> usize {
        self.a.len() * self.b.len()
    }

    /// Number of differences at or below a point.
    fn up_to(&self, point: f64) -> usize {
        let (mut count, mut below) = (0, 0);
        for a in self.a {
            while below < self.b.len() && self.b[below] - a <= point {
                below += 1;
            }
            count += below;
        }
        count
    }

    /// Median of the differences, which is the Hodges–Lehmann estimate of the shift from a to b. If
    /// the number of differences is even, the mean of the two middle ones.
    pub(crate) fn median(&self) -> f64 {
        let (lower, upper) = ((self.total() - 1) / 2, self.total() / 2);
        let window = self.window(lower);
        let low = window.get(lower).unwrap_or(f64::NAN);
        let high = window.get(upper).or_else(|| self.window(upper).get(upper)).unwrap_or(low);
        f64::midpoint(low, high)
    }

    /// Split of the samples after a was shifted to just above a point.
    pub(crate) fn after(&self, point: f64) -> Split {
        Split::new(self.a, self.b, |difference| difference <= point)
    }

    /// Split of the samples after a was shifted to just below a point.
    pub(crate) fn before(&self, point: f64) -> Split {
        Split::new(self.a, self.b, |difference| difference < point)
    }

    /// True if a difference is exactly zero.
    pub(crate) fn has_zero(&self) -> bool {
        let mut others = self.b.iter().peekable();
        self.a.iter().any(|a| {
            while others.next_if(|b| *b < a).is_some() {}
            others.peek().is_some_and(|b| *b == a)
        })
    }

    /// Consecutive sorted differences that include the `index`-th (from 0).
    fn window(&self, index: usize) -> Window {
        self.window_in(self.all(), index)
    }

    /// Range of all differences.
    fn all(&self) -> Range {
        Range {
            low: self.b[0] - self.a[self.a.len() - 1],
            high: self.b[self.b.len() - 1] - self.a[0],
            before: 0,
            until: self.total(),
        }
    }

    /// [`Differences::window`] for an index known to be in a range.
    fn window_in(&self, mut range: Range, index: usize) -> Window {
        let few = self.a.len() + self.b.len() + 32;
        let mut trials = 0;
        while range.until - range.before > few && range.low < range.high {
            let point = range.between(trials, index);
            trials += 1;
            range.narrow(point, self.up_to(point), index);
        }
        let Range { low, high, before, until } = range;
        let values = if low < high { self.within(low, high, until - before) } else { vec![high] };
        Window { start: before, end: until, values }
    }

    /// All `count` differences between two points, ascending.
    fn within(&self, low: f64, high: f64, count: usize) -> Vec<f64> {
        let mut values = Vec::with_capacity(count);
        let mut start = 0;
        for a in self.a {
            while start < self.b.len() && self.b[start] - a < low {
                start += 1;
            }
            let inside = self.b[start..].iter().map(|b| b - a).take_while(|value| *value <= high);
            values.extend(inside);
        }
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// Lower end of the shifts of a that the test does not reject: the smallest difference after
    /// which W is not above the critical value, or the median of the differences if the median is
    /// lower. The upper end is the negated lower end for swapped samples.
    pub(crate) fn lower_end(&self, critical: Critical, median: f64) -> f64 {
        let (mut sure, mut range) = self.approach(critical, median);
        let mut window = self.window_in(range, sure);
        while sure < self.total() {
            let Some(step) = window.get(sure) else {
                self.widen_to(&mut range, sure);
                window = self.window_in(range, sure);
                continue;
            };
            if step >= median {
                return median;
            }
            let split = self.after(step);
            if !critical.rejects(split.statistic()) {
                return step;
            }
            (range.low, range.before) = (step.next_up(), split.below);
            sure = split.below + split.ahead(critical);
        }
        median
    }

    /// Widens a range to include an index above it.
    fn widen_to(&self, range: &mut Range, index: usize) {
        if index >= range.until {
            let all = self.all();
            (range.high, range.until) = (all.high, all.until);
        }
    }

    /// Number of leading differences at which W is known to exceed the critical value, and a range
    /// that includes the first difference after them. Only a few points are evaluated. Their choice
    /// affects the time, but not the result.
    fn approach(&self, critical: Critical, median: f64) -> (usize, Range) {
        /// Maximum number of evaluations. With 1000 against 1000 values, the end is then a few
        /// steps away.
        const LOOKS: u32 = 16;
        let mut sure = Split::certain(self.a.len(), self.b.len(), critical);
        // The end is almost never above the median.
        let mut range = self.all();
        if (range.low..range.high).contains(&median) {
            range.narrow(median, self.up_to(median), sure);
        }
        for _ in 0..LOOKS {
            if range.until - range.before <= self.a.len() + self.b.len() || range.low >= range.high
            {
                break;
            }
            let point = range.between(0, sure);
            let split = self.after(point);
            // A point further ahead gives no bound for the gaps before it.
            if split.below <= sure + 1 {
                if !critical.rejects(split.statistic()) {
                    break;
                }
                sure = sure.max(split.below + split.ahead(critical));
                self.widen_to(&mut range, sure);
            }
            range.narrow(point, split.below, sure);
        }
        (sure, range)
    }
}

/// Range of the sorted differences.
#[derive(Clone, Copy)]
struct Range {
    /// Lower bound of the differences in the range.
    low: f64,
    /// Upper bound of the differences in the range.
    high: f64,
    /// Number of differences below `low`.
    before: usize,
    /// Number of differences at or below `high`.
    until: usize,
}

impl Range {
    /// Next point to try for an index, with low <= point < high. The first points alternate between
    /// linear interpolation and the midpoint. Later points halve the number of representable
    /// values.
    fn between(&self, trials: u32, index: usize) -> f64 {
        let (low, high) = (self.low, self.high);
        let point = if trials >= BY_VALUE {
            from_ordered(ordered(low).midpoint(ordered(high)))
        } else if trials.is_multiple_of(2) {
            let (wanted, of) = (index.saturating_sub(self.before), self.until - self.before);
            let share = (wanted as f64 / of as f64).clamp(0.02, 0.98);
            low * (1.0 - share) + high * share
        } else {
            f64::midpoint(low, high)
        };
        if (low..high).contains(&point) { point } else { low }
    }

    /// Drops the part of the range on the side of a point that does not include the index.
    /// `reached` is the number of differences at or below the point.
    fn narrow(&mut self, point: f64, reached: usize, index: usize) {
        if reached > index {
            (self.high, self.until) = (point, reached);
        } else {
            (self.low, self.before) = (point.next_up(), reached);
        }
    }
}

/// Integer in the same order as the finite numbers.
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
}

/// Inverse of [`ordered`].
fn from_ordered(place: i64) -> f64 {
    let bits = if place < 0 { i64::MIN.wrapping_sub(place) } else { place };
    f64::from_bits(bits.cast_unsigned())
}

/// Run of consecutive sorted differences.
struct Window {
    /// Index of the first difference of the run among all differences.
    start: usize,
    /// Index after the last difference of the run.
    end: usize,
    /// Values, or a single value if all of them are equal.
    values: Vec<f64>,
}

impl Window {
    fn get(&self, index: usize) -> Option<f64> {
        let inside = (self.start..self.end).contains(&index);
        let at = if self.values.len() == 1 { 0 } else { index.checked_sub(self.start)? };
        inside.then(|| self.values[at])
    }
}

#[cfg(test)]
mod tests;

//! The n m differences between the values of two samples, without making all of them.
//!
//! Two ascending samples enter. What leaves is what sorting all differences would give: the k-th of
//! them, their median, how many lie up to a point. Both samples are sorted, so a staircase through
//! the table of differences counts those up to a point in n + m steps, and the k-th is found by
//! closing in on it between two points (Johnson and Mizoguchi, "Selecting the Kth element in X + Y
//! and X1 + X2 + … + Xm", SIAM Journal on Computing 7, 1978; Monahan, "Algorithm 616: Fast
//! computation of the Hodges–Lehmann location estimator", ACM Transactions on Mathematical Software
//! 10, 1984). The points are tried in the order of numbers, not drawn, so the same data take the
//! same way. Rounding keeps the order of differences, so the result is exact, to the bit.

use crate::null::{Critical, Split};

/// Trials of a point by value; after so many, points halve the representable numbers between the
/// ends, of which there are less than 2^64.
const BY_VALUE: u32 = 12;

/// All b(j) - a(i) of two samples.
#[derive(Clone, Copy)]
pub(crate) struct Differences<'a> {
    a: &'a [f64],
    b: &'a [f64],
}

impl<'a> Differences<'a> {
    /// Those of two ascending samples, neither of them empty.
    pub(crate) fn new(a: &'a [f64], b: &'a [f64]) -> Self {
        Self { a, b }
    }

    fn total(&self) -> usize {
        self.a.len() * self.b.len()
    }

    /// How many differences are not above a point.
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

    /// Their median, the Hodges–Lehmann estimate of the shift from a to b; the mean of the two
    /// middle ones if their number is even.
    pub(crate) fn median(&self) -> f64 {
        let (lower, upper) = ((self.total() - 1) / 2, self.total() / 2);
        let window = self.window(lower);
        let low = window.get(lower).unwrap_or(f64::NAN);
        let high = window.get(upper).or_else(|| self.window(upper).get(upper)).unwrap_or(low);
        f64::midpoint(low, high)
    }

    /// The samples as they stand when a is moved up by a point, to right after it.
    pub(crate) fn after(&self, point: f64) -> Split {
        Split::new(self.a, self.b, |difference| difference <= point)
    }

    /// The samples as they stand when a is moved up by a point, to right before it.
    pub(crate) fn before(&self, point: f64) -> Split {
        Split::new(self.a, self.b, |difference| difference < point)
    }

    /// Whether there is a difference of exactly zero.
    pub(crate) fn has_zero(&self) -> bool {
        let mut others = self.b.iter().peekable();
        self.a.iter().any(|a| {
            while others.next_if(|b| *b < a).is_some() {}
            others.peek().is_some_and(|b| *b == a)
        })
    }

    /// Some of the differences in order, the `index`-th (from 0) among them.
    fn window(&self, index: usize) -> Window {
        self.window_in(self.all(), index)
    }

    /// The range of all differences.
    fn all(&self) -> Range {
        Range {
            low: self.b[0] - self.a[self.a.len() - 1],
            high: self.b[self.b.len() - 1] - self.a[0],
            before: 0,
            until: self.total(),
        }
    }

    /// [`Differences::window`], where the index is known to lie in a range.
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

    /// All differences within two points, ascending; so many they are.
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

    /// The lower end of all shifts of a that the test does not reject: the least difference after
    /// which W is not above the critical value, or the median of the differences, whichever is
    /// lower. The upper end is the negated lower end of b and a.
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

    /// Makes a range hold an index that lies above it.
    fn widen_to(&self, range: &mut Range, index: usize) {
        if index >= range.until {
            let all = self.all();
            (range.high, range.until) = (all.high, all.until);
        }
    }

    /// Up to how many turned pairs W is known to be above the critical value, and a range that
    /// holds the difference of that index. Looks at some points near those that are known, each of
    /// which makes more known; which points does not matter for what is known then.
    fn approach(&self, critical: Critical, median: f64) -> (usize, Range) {
        /// Looks, at most; with so many the end is some steps away at 1000 against 1000.
        const LOOKS: u32 = 16;
        let mut sure = Split::certain(self.a.len(), self.b.len(), critical);
        // The end hardly ever lies above the median.
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
            // A look further ahead tells nothing of the gaps between.
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

/// Where some of the differences lie.
#[derive(Clone, Copy)]
struct Range {
    /// Not above the first of them.
    low: f64,
    /// Not below the last of them.
    high: f64,
    /// How many differences lie below `low`.
    before: usize,
    /// How many do not lie above `high`.
    until: usize,
}

impl Range {
    /// A point with low <= point < high to try next for the difference of an index. By value first:
    /// by a straight line towards the index and halfway, in turn; later halfway between the ends as
    /// machine numbers.
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

    /// Gives up the side of a point on which the index does not lie, where so many differences are
    /// not above the point.
    fn narrow(&mut self, point: f64, reached: usize, index: usize) {
        if reached > index {
            (self.high, self.until) = (point, reached);
        } else {
            (self.low, self.before) = (point.next_up(), reached);
        }
    }
}

/// A finite number as a whole number, in the same order.
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
}

/// [`ordered`] turned around.
fn from_ordered(place: i64) -> f64 {
    let bits = if place < 0 { i64::MIN.wrapping_sub(place) } else { place };
    f64::from_bits(bits.cast_unsigned())
}

/// A run of the sorted differences.
struct Window {
    /// Index of its first one among all.
    start: usize,
    /// Index after its last one.
    end: usize,
    /// Its values, or the one value that all of them have.
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

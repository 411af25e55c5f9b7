//! A logarithmic axis of times with ticks at 1, 2, and 5 times the powers of ten.

/// Range of the axis in decimal logarithms of nanoseconds, and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decades {
    low: f64,
    high: f64,
    /// Logarithm and label, ascending, within the range.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Over more decades than this, only powers of ten have ticks.
const MANY: f64 = 3.0;

/// The largest power of ten nanoseconds that a time may have.
const LAST: i32 = 20;

impl Decades {
    /// Axis over a range of times in nanoseconds above 0, with margins at both ends.
    pub(crate) fn over(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let logs = values.filter(|value| *value > 0.0).map(f64::log10);
        logs.for_each(|log| (low, high) = (low.min(log), high.max(log)));
        if low > high {
            (low, high) = (3.0, 6.0);
        }
        let pad = (0.05 * (high - low)).max(0.08);
        Self::between(low - pad, high + pad)
    }

    /// An axis between logarithms.
    pub(crate) fn between(low: f64, high: f64) -> Self {
        let steps: &[f64] = if high - low > MANY { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let tick = |power: i32| {
            steps.iter().map(move |step| (f64::from(power) + step.log10(), label(*step, power)))
        };
        let inside = |(log, _): &(f64, String)| (low..=high).contains(log);
        Self { low, high, ticks: (-1..LAST).flat_map(tick).filter(inside).collect() }
    }

    /// Position of a logarithm as a share of the axis, clipped to its ends.
    pub(crate) fn share(&self, log: f64) -> f64 {
        ((log - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

/// `200 µs` for 2 times the fifth power of ten.
fn label(step: f64, power: i32) -> String {
    let (below, unit) = match power {
        ..3 => (0, "ns"),
        3..6 => (3, "µs"),
        6..9 => (6, "ms"),
        9.. => (9, "s"),
    };
    format!("{} {unit}", step * 10f64.powi(power - below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        let axis = Decades::over([low, high].into_iter());
        axis.ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_times() {
        assert_eq!(labels(150e3, 6e6), ["200 µs", "500 µs", "1 ms", "2 ms", "5 ms"]);
        assert_eq!(labels(900.0, 2e9).first().map(String::as_str), Some("1 µs"));
        assert_eq!(labels(900.0, 2e9).len(), 7);
    }

    #[test]
    fn an_axis_of_one_value_or_of_none_has_a_middle() {
        let axis = Decades::over([1e6].into_iter());
        assert!((axis.share(6.0) - 0.5).abs() < 1e-9 && !axis.ticks.is_empty());
        let axis = Decades::over([0.0].into_iter());
        assert!(axis.ticks.len() > 2 && axis.share(f64::NEG_INFINITY) == 0.0);
    }
}

//! Axes with round ticks.

use crate::{charts::data::Level, svg::Svg, units::fixed};

/// Range of an axis and its ticks. Positions on an axis are values, or their decimal logarithms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    pub(super) high: f64,
    pub(super) logarithmic: bool,
    /// Position and label, within the ends. Ticks without label have an empty one.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Horizontal axis of a chart.
pub(super) struct Across {
    pub(super) axis: Axis,
    left: f64,
    right: f64,
}

impl Across {
    /// Axis between two horizontal positions.
    pub(super) fn new(axis: Axis, (left, right): (f64, f64)) -> Self {
        Self { axis, left, right }
    }

    /// Horizontal position of a value.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.axis.share(value) * (self.right - self.left)
    }

    /// Grid between two vertical positions, and labels of the ticks below it. The line at 0, or at
    /// the ratio 1, is darker.
    pub(super) fn grid(&self, svg: &mut Svg, (top, bottom): (f64, f64)) {
        for (position, label) in &self.axis.ticks {
            let x = self.left + self.axis.place(*position) * (self.right - self.left);
            svg.line(if *position == 0.0 { "k" } else { "g" }, (x, top), (x, bottom));
            svg.text("tm", (x, bottom + 16.0), label);
        }
    }

    /// The grid, and a text below it.
    pub(super) fn ground(&self, svg: &mut Svg, plot: (f64, f64), text: &str) {
        self.grid(svg, plot);
        svg.text("tm ta", ((self.left + self.right) / 2.0, plot.1 + 36.0), text);
    }
}

/// Over more decades than this, only powers of ten have ticks.
const MANY: f64 = 3.0;

/// The largest power of ten nanoseconds that a time may have.
const LAST: i32 = 20;

/// Ratios at ticks, besides their reciprocals, from coarse to fine.
const RATIOS: [&[f64]; 4] =
    [&[10.0, 100.0], &[2.0, 5.0, 10.0, 20.0], &[1.5, 2.0, 3.0, 4.0], &[1.1, 1.2, 1.4]];

impl Axis {
    /// Linear axis that includes all values with margins at both ends and about `wanted` round
    /// ticks. It starts at zero if that uses less than half of its length; otherwise the chart
    /// states that it does not start at zero.
    pub(crate) fn over(values: impl Iterator<Item = f64>, wanted: u32) -> Self {
        let (mut low, high) = range(values).unwrap_or((0.0, 1.0));
        if low >= 0.0 && low < 0.5 * high {
            low = 0.0;
        }
        let span = if high > low { high - low } else { high.abs().max(1.0) * 0.1 };
        let step = round_step(span / f64::from(wanted));
        let padded = if low == 0.0 { 0.0 } else { low - 0.05 * span };
        let low = (padded / step).floor() * step;
        let high = ((high + 0.05 * span) / step).ceil() * step;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a handful of ticks, and a few decimal places"
        )]
        let (count, decimals) = (
            ((high - low) / step).round() as u32,
            (-step.log10().floor()).clamp(0.0, 9.0) as usize,
        );
        let ticks = (0..=count).map(|tick| low + f64::from(tick) * step);
        let ticks = ticks.map(|tick| (tick, format!("{tick:.decimals$}"))).collect();
        Self { low, high, logarithmic: false, ticks }
    }

    /// Axis of categories at distances of 1, with a margin at both ends.
    pub(super) fn categories(labels: impl Iterator<Item = String>, margin: f64) -> Self {
        let ticks = labels.enumerate().map(|(at, label)| (at as f64, label));
        let ticks: Vec<(f64, String)> = ticks.collect();
        let high = ticks.len().saturating_sub(1) as f64 + margin;
        Self { low: -margin, high, logarithmic: false, ticks }
    }

    /// Logarithmic axis from the first to the last of some levels, with a tick at each.
    pub(super) fn levels(levels: &[Level]) -> Self {
        let ticks = levels.iter().map(|level| (level.number.log10(), level.label.clone()));
        let ticks: Vec<(f64, String)> = ticks.collect();
        let low = ticks.first().map_or(0.0, |(low, _)| *low);
        let high = ticks.last().map_or(low, |(high, _)| *high);
        Self { low, high, logarithmic: true, ticks }
    }

    /// Logarithmic axis of times in nanoseconds, with margins at both ends.
    pub(crate) fn times(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = logarithms(values).unwrap_or((3.0, 6.0));
        let pad = (0.05 * (high - low)).max(0.08);
        Self::times_between(low - pad, high + pad)
    }

    /// Axis of times between decimal logarithms of nanoseconds, with ticks at 1, 2, and 5 times the
    /// powers of ten.
    pub(super) fn times_between(low: f64, high: f64) -> Self {
        let steps: &[f64] = if high - low > MANY { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let tick = |power: i32| {
            steps.iter().map(move |step| (f64::from(power) + step.log10(), time(*step, power)))
        };
        let inside = |(log, _): &(f64, String)| (low..=high).contains(log);
        let ticks = (-1..LAST).flat_map(tick).filter(inside).collect();
        Self { low, high, logarithmic: true, ticks }
    }

    /// Logarithmic axis between powers of ten. With one or two decades, it also has ticks without
    /// label at 2 and 5.
    pub(super) fn powers(values: impl Iterator<Item = f64>) -> Self {
        let ends = logarithms(values).map(|(low, high)| (low - 0.02, high + 0.02));
        let (low, high) = ends.unwrap_or((0.0, 1.0));
        #[expect(clippy::cast_possible_truncation, reason = "exponents of ten are within ±324")]
        let (low, high) = (low.floor() as i32, high.ceil() as i32);
        let high = high.max(low + 1);
        let powers = (low..=high).map(|exponent| (f64::from(exponent), power(exponent)));
        let between = (low..high).filter(|_| high - low <= 2).flat_map(|exponent| {
            [2.0f64, 5.0].map(|digit| (f64::from(exponent) + digit.log10(), String::new()))
        });
        let ticks = powers.chain(between).collect();
        Self { low: f64::from(low), high: f64::from(high), logarithmic: true, ticks }
    }

    /// Logarithmic axis that includes all ratios and 1, with margins at both ends.
    pub(super) fn ratios(ratios: impl Iterator<Item = f64>) -> Self {
        let (low, high) = logarithms(ratios.chain([1.0])).unwrap_or_default();
        let room = (0.06 * (high - low)).max(0.02 * std::f64::consts::LOG10_E);
        let (low, high) = (low - room, high + room);
        let within = |steps: &[f64]| -> Vec<(f64, String)> {
            let below = steps.iter().rev().map(|step| 1.0 / step);
            let ticks = below.chain([1.0]).chain(steps.iter().copied());
            let ticks = ticks.filter(|tick| (low..=high).contains(&tick.log10()));
            ticks.map(|tick| (tick.log10(), multiple(tick))).collect()
        };
        // The coarsest steps with at least three ticks besides 1, or the finest.
        let found = RATIOS.iter().map(|steps| within(steps)).find(|ticks| ticks.len() >= 4);
        let ticks = found.unwrap_or_else(|| within(RATIOS[RATIOS.len() - 1]));
        Self { low, high, logarithmic: true, ticks }
    }

    /// Location of a value as a share of the axis, clipped to its ends.
    pub(crate) fn share(&self, value: f64) -> f64 {
        self.place(if self.logarithmic { value.log10() } else { value })
    }

    /// Location of a position, which is a value or its logarithm, as a share of the axis.
    pub(super) fn place(&self, position: f64) -> f64 {
        match self.high > self.low {
            true => ((position - self.low) / (self.high - self.low)).clamp(0.0, 1.0),
            false => 0.5,
        }
    }

    /// Title of the axis, with a note unless it starts at zero.
    pub(super) fn titled(&self, title: &str) -> String {
        self.note().map_or_else(|| title.to_owned(), |note| format!("{title} ({note})"))
    }

    /// Statement that the axis does not start at zero, if so.
    pub(super) fn note(&self) -> Option<&'static str> {
        (self.low != 0.0).then_some("axis does not start at zero")
    }
}

/// Smallest and largest value; `None` without values.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// Range of the decimal logarithms of the values above 0.
fn logarithms(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    range(values.filter(|value| *value > 0.0).map(f64::log10).filter(|log| log.is_finite()))
}

/// Smallest of 1, 2, and 5 times a power of ten that is at least 0.75 times the wanted step: a few
/// more ticks are better than empty space.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    factors
        .into_iter()
        .map(|factor| factor * power)
        .find(|round| *round >= 0.75 * step)
        .unwrap_or(step)
}

/// `200 µs` for 2 times the fifth power of ten.
fn time(step: f64, power: i32) -> String {
    let (below, unit) = match power {
        ..3 => (0, "ns"),
        3..6 => (3, "µs"),
        6..9 => (6, "ms"),
        9.. => (9, "s"),
    };
    format!("{} {unit}", step * 10f64.powi(power - below))
}

/// A power of ten in short form: `0.01`, `100`, `10k`.
fn power(exponent: i32) -> String {
    match exponent {
        ..-4 => format!("1e{exponent}"),
        -4..4 => fixed(10f64.powi(exponent), (-exponent).max(0)),
        4..6 => format!("{:.0}k", 10f64.powi(exponent - 3)),
        6..9 => format!("{:.0}M", 10f64.powi(exponent - 6)),
        9.. => format!("1e{exponent}"),
    }
}

/// Ratio as `÷1.5`, `1`, `×2`.
fn multiple(ratio: f64) -> String {
    let step = |value: f64| fixed(value, 1).trim_end_matches(".0").to_owned();
    match ratio {
        1.0 => "1".into(),
        ..1.0 => format!("÷{}", step(1.0 / ratio)),
        _ => format!("×{}", step(ratio)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        let axis = Axis::over([812.0, 935.0].into_iter(), 5);
        assert_eq!((axis.low, axis.high, labels(&axis)[1]), (800.0, 960.0, "820"));
        assert!(axis.titled("s").ends_with("not start at zero)"));
    }

    #[test]
    fn an_axis_near_zero_starts_at_zero() {
        let axis = Axis::over([0.2, 1.9].into_iter(), 5);
        assert_eq!((axis.low, axis.high, &*axis.titled("s")), (0.0, 2.0, "s"));
        assert_eq!(labels(&axis)[1], "0.5");
    }

    #[test]
    fn equal_values_and_none_at_all_have_an_axis() {
        let axis = Axis::over([7.0, 7.0].into_iter(), 5);
        assert!(axis.low < 7.0 && axis.high > 7.0 && axis.ticks.len() > 1);
        assert!(Axis::over(std::iter::empty(), 5).ticks.len() > 1);
    }

    #[test]
    fn ticks_are_round_times() {
        let axis = |low, high| Axis::times([low, high].into_iter());
        let few = axis(150e3, 6e6);
        assert_eq!(labels(&few), ["200 µs", "500 µs", "1 ms", "2 ms", "5 ms"]);
        let many = axis(900.0, 2e9);
        assert_eq!((labels(&many)[0], many.ticks.len()), ("1 µs", 7));
    }

    #[test]
    fn an_axis_of_one_time_or_of_none_has_a_middle() {
        let axis = Axis::times([1e6].into_iter());
        assert!((axis.share(1e6) - 0.5).abs() < 1e-9 && !axis.ticks.is_empty());
        let axis = Axis::times([0.0].into_iter());
        assert!(axis.ticks.len() > 2 && axis.share(0.0) == 0.0);
    }

    #[test]
    fn powers_of_ten_are_short() {
        assert_eq!([-3, 0, 2, 4, 6].map(power), ["0.001", "1", "100", "10k", "1M"]);
        let axis = Axis::powers([0.02, 150.0].into_iter());
        assert_eq!((axis.low, axis.high, axis.ticks.len()), (-2.0, 3.0, 6));
        assert!(axis.share(0.02) > 0.0 && axis.share(0.02) < 0.2);
        let axis = Axis::powers(std::iter::empty());
        assert_eq!((axis.low, axis.high, axis.ticks.len()), (0.0, 1.0, 4));
    }

    #[test]
    fn ticks_are_multiples_on_both_sides_of_one() {
        let of = |ratios: &[f64]| {
            let axis = Axis::ratios(ratios.iter().copied());
            labels(&axis).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(&[0.45, 2.1]), ["÷2", "÷1.5", "1", "×1.5", "×2"]);
        assert_eq!(of(&[0.9, 1.25]), ["÷1.1", "1", "×1.1", "×1.2"]);
        assert_eq!(of(&[0.04, 1.1]), ["÷20", "÷10", "÷5", "÷2", "1"]);
        assert_eq!(of(&[1.0]), ["1"]);
    }
}

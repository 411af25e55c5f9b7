//! Linear axes with round ticks.

use crate::svg::Svg;

/// Range of an axis and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Ascending, within the ends.
    pub(crate) ticks: Vec<f64>,
    /// Decimal places of the tick labels.
    decimals: usize,
}

/// Horizontal axis of a chart.
pub(super) struct Across {
    pub(super) axis: Axis,
    left: f64,
    right: f64,
}

impl Across {
    /// Axis between two horizontal positions. For the values and ticks see [`Axis::over`].
    pub(super) fn new(
        values: impl Iterator<Item = f64>,
        wanted: u32,
        (left, right): (f64, f64),
    ) -> Self {
        Self { axis: Axis::over(values, wanted), left, right }
    }

    /// Horizontal position of a value.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.axis.share(value) * (self.right - self.left)
    }

    /// Grid between two vertical positions, and below it labels of the ticks and a text.
    pub(super) fn ground(&self, svg: &mut Svg, (top, bottom): (f64, f64), text: &str) {
        for tick in &self.axis.ticks {
            let x = self.x(*tick);
            svg.line(if *tick == 0.0 { "k" } else { "g" }, (x, top), (x, bottom));
            svg.text("tm", (x, bottom + 16.0), &self.axis.label(*tick));
        }
        svg.text("tm ta", ((self.left + self.right) / 2.0, bottom + 36.0), text);
    }
}

impl Axis {
    /// Axis that includes all values with margins at both ends and about `wanted` round ticks. It
    /// starts at zero if that uses less than half of its length; otherwise the chart states that it
    /// does not start at zero.
    pub(crate) fn over(values: impl Iterator<Item = f64>, wanted: u32) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        values.for_each(|value| (low, high) = (low.min(value), high.max(value)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
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
            reason = "a handful of ticks by construction"
        )]
        let count = ((high - low) / step).round() as u32;
        let ticks = (0..=count).map(|tick| low + f64::from(tick) * step).collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to a few decimal places"
        )]
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        Self { low, high, ticks, decimals }
    }

    /// Position of a value as a share of the axis, clipped to its ends.
    pub(crate) fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Label of a tick.
    pub(crate) fn label(&self, tick: f64) -> String {
        format!("{:.*}", self.decimals, tick)
    }

    /// True if the axis starts at zero.
    pub(crate) fn starts_at_zero(&self) -> bool {
        self.low == 0.0
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        let axis = Axis::over([812.0, 935.0].into_iter(), 5);
        assert_eq!((axis.low, axis.high), (800.0, 960.0));
        assert_eq!(axis.label(axis.ticks[1]), "820");
        assert!(!axis.starts_at_zero());
    }

    #[test]
    fn an_axis_near_zero_starts_at_zero() {
        let axis = Axis::over([0.2, 1.9].into_iter(), 5);
        assert_eq!((axis.low, axis.high, axis.starts_at_zero()), (0.0, 2.0, true));
        assert_eq!(axis.label(0.5), "0.5");
    }

    #[test]
    fn equal_values_and_none_at_all_have_an_axis() {
        let axis = Axis::over([7.0, 7.0].into_iter(), 5);
        assert!(axis.low < 7.0 && axis.high > 7.0 && axis.ticks.len() > 1);
        assert!(Axis::over(std::iter::empty(), 5).ticks.len() > 1);
    }
}

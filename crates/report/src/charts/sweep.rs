//! Metric by a numeric parameter: a line per filesystem with its interval as a band.

use crate::{
    charts::{
        axis::Axis,
        data::{Level, Series, ends},
        plot::Plot,
    },
    svg::{Svg, WIDTH},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct SweepChart<'a> {
    /// Quantity, unit and direction.
    pub(crate) y_axis: String,
    pub(crate) x_axis: String,
    /// Ascending.
    pub(crate) levels: &'a [Level],
    pub(crate) series: &'a [Series],
}

const HEIGHT: f64 = 360.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 50.0;

impl SweepChart<'_> {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let axis = Axis::over(self.series.iter().flat_map(|series| ends(&series.values)), 5);
        let note = if axis.starts_at_zero() { "" } else { " (axis does not start at zero)" };
        let plot = Plot { levels: self.levels, top: TOP, bottom: HEIGHT - BOTTOM, axis };
        plot.ground(&mut svg, &format!("{}{note}", self.y_axis), &self.x_axis);
        for series in self.series {
            plot.band(&mut svg, series.filesystem, &series.values);
        }
        for series in self.series {
            plot.line(&mut svg, series.filesystem, &series.values);
        }
        plot.names(&mut svg, self.series.iter().map(|series| (series, series.values.as_slice())));
        svg
    }
}

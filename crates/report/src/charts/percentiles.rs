//! Latency by percentile: percentiles at equal distances on the horizontal axis, time on a
//! logarithmic vertical axis, with a line and a band per filesystem.

use crate::{
    charts::{
        decades::Decades,
        plot::{RIGHT, curve, names},
    },
    svg::{Svg, WIDTH, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct Percentiles {
    /// Quantity, unit and direction.
    pub(crate) y_axis: String,
    /// Names of the percentiles; as many as the longest line has.
    pub(crate) steps: Vec<&'static str>,
    pub(crate) lines: Vec<PercentileSeries>,
}

/// One filesystem.
#[derive(Clone, Debug)]
pub(crate) struct PercentileSeries {
    pub(crate) name: String,
    /// Index of the filesystem.
    pub(crate) series: usize,
    /// Median and ends of the band for each step from the lowest, in nanoseconds.
    pub(crate) points: Vec<(f64, (f64, f64))>,
}

const HEIGHT: f64 = 340.0;
const LEFT: f64 = 72.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 54.0;

impl Percentiles {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let points = self.lines.iter().flat_map(|line| &line.points);
        let axis = Decades::over(points.flat_map(|(median, (low, high))| [*median, *low, *high]));
        svg.text("ta", (4.0, 16.0), &self.y_axis);
        for (log, label) in &axis.ticks {
            let y = TOP + (1.0 - axis.share(*log)) * (HEIGHT - TOP - BOTTOM);
            svg.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            svg.text("te", (LEFT - 8.0, y + 4.0), label);
        }
        for (at, step) in self.steps.iter().enumerate() {
            let x = self.x(at);
            svg.line("k", (x, HEIGHT - BOTTOM), (x, HEIGHT - BOTTOM + 5.0));
            svg.text("tm", (x, HEIGHT - BOTTOM + 19.0), step);
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let words = "percentile of the operations of a repetition";
        svg.text("tm ta", (middle, HEIGHT - 10.0), words);
        for line in &self.lines {
            let ends = |upper: bool| {
                line.points
                    .iter()
                    .enumerate()
                    .map(move |(at, (_, (low, high)))| (at, if upper { *high } else { *low }))
            };
            let outline = ends(true).chain(ends(false).rev());
            let outline: Vec<_> = outline.map(|(at, time)| (self.x(at), y(&axis, time))).collect();
            svg.polygon(&format!("a {}", color(line.series)), &outline);
        }
        for line in &self.lines {
            let points = line.points.iter().enumerate();
            let points: Vec<_> =
                points.map(|(at, (median, _))| (self.x(at), y(&axis, *median))).collect();
            curve(&mut svg, line.series, &points);
        }
        let places = self.lines.iter().filter_map(|line| {
            Some((y(&axis, line.points.last()?.0), line.series, line.name.as_str()))
        });
        names(&mut svg, WIDTH - RIGHT, (TOP, HEIGHT - BOTTOM), places.collect());
        svg
    }

    fn x(&self, step: usize) -> f64 {
        let last = self.steps.len().saturating_sub(1).max(1) as f64;
        LEFT + 24.0 + step as f64 / last * (WIDTH - LEFT - RIGHT - 48.0)
    }
}

fn y(axis: &Decades, nanos: f64) -> f64 {
    TOP + (1.0 - axis.share(nanos.log10())) * (HEIGHT - TOP - BOTTOM)
}

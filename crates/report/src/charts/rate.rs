//! Rate during a test: a panel per filesystem, all on the same axes. A line is the median of the
//! repetitions, a band their minimum and maximum.

use crate::{
    charts::{axis::Axis, intervals::shortened},
    svg::{Svg, WIDTH, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct RateChart {
    /// Quantity, unit and direction.
    pub(crate) y_axis: String,
    /// Length of an interval in seconds.
    pub(crate) interval: f64,
    pub(crate) panels: Vec<RatePanel>,
}

/// One filesystem, in display units.
#[derive(Clone, Debug)]
pub(crate) struct RatePanel {
    pub(crate) name: String,
    /// Index of the filesystem.
    pub(crate) series: usize,
    /// Median, minimum, and maximum in each interval.
    pub(crate) rates: Vec<[f64; 3]>,
}

const LEFT: f64 = 64.0;
const RIGHT: f64 = 14.0;
const GAP: f64 = 20.0;
/// Panels side by side.
const ACROSS: usize = 3;
const WORDS: f64 = 26.0;
const TITLE: f64 = 26.0;
const PLOT: f64 = 112.0;
const TICKS: f64 = 26.0;
const BOTTOM: f64 = 24.0;
/// Maximum length of a name above its panel.
const NAME_MAX: usize = 28;

impl RateChart {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let rows = self.panels.len().div_ceil(ACROSS).max(1) as f64;
        let height = WORDS + rows * (TITLE + PLOT + TICKS) + BOTTOM;
        let mut svg = Svg::new(WIDTH, height);
        let rates = self.panels.iter().flat_map(|panel| panel.rates.iter().flatten());
        let y_axis = Axis::over(rates.copied().chain([0.0]), 4);
        let longest = self.panels.iter().map(|panel| panel.rates.len()).max().unwrap_or(0);
        let end = longest as f64 * self.interval;
        let (unit, factor) = if end < 1.0 { ("milliseconds", 1000.0) } else { ("seconds", 1.0) };
        let (end, interval) = (end * factor, self.interval * factor);
        let x_axis = Axis::over([0.0, end * 0.95].into_iter(), 4);
        svg.text("ta", (4.0, 16.0), &self.y_axis);
        let columns = self.panels.len().clamp(1, ACROSS);
        let gaps = (columns - 1) as f64 * GAP;
        let width = (WIDTH - LEFT - RIGHT - gaps) / columns as f64;
        for (index, panel) in self.panels.iter().enumerate() {
            let (row, column) = ((index / ACROSS) as f64, index % ACROSS);
            let top = WORDS + row * (TITLE + PLOT + TICKS) + TITLE;
            let left = LEFT + column as f64 * (width + GAP);
            let frame = Frame { left, width, top, axes: (&x_axis, &y_axis) };
            frame.ground(&mut svg, column == 0);
            svg.about(&panel.name);
            frame.panel(&mut svg, panel, interval);
            svg.end();
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg.text("tm ta", (middle, height - 8.0), &format!("{unit} from the start of the test"));
        svg
    }
}

/// Position and axes of a panel.
struct Frame<'a> {
    left: f64,
    width: f64,
    top: f64,
    axes: (&'a Axis, &'a Axis),
}

impl Frame<'_> {
    fn at(&self, time: f64, rate: f64) -> (f64, f64) {
        let (x, y) = self.axes;
        let high = self.top + PLOT - y.share(rate) * PLOT;
        (self.left + x.share(time) * self.width, high)
    }

    fn ground(&self, svg: &mut Svg, first: bool) {
        let (x_axis, y_axis) = self.axes;
        for tick in &y_axis.ticks {
            let (_, y) = self.at(0.0, *tick);
            svg.line("g", (self.left, y), (self.left + self.width, y));
            if first {
                svg.text("te", (self.left - 8.0, y + 4.0), &y_axis.label(*tick));
            }
        }
        let bottom = self.top + PLOT;
        // The last label would overlap the first one of the next panel.
        let last = x_axis.ticks.len().saturating_sub(1);
        for (index, tick) in x_axis.ticks.iter().enumerate() {
            let (x, _) = self.at(*tick, 0.0);
            svg.line("k", (x, bottom), (x, bottom + 4.0));
            if index < last {
                svg.text("tm", (x, bottom + 17.0), &x_axis.label(*tick));
            }
        }
    }

    fn panel(&self, svg: &mut Svg, panel: &RatePanel, interval: f64) {
        svg.marker(panel.series, (self.left + 6.0, self.top - 12.0));
        let name = shortened(&panel.name, NAME_MAX);
        svg.text("tb", (self.left + 17.0, self.top - 8.0), &name);
        // At the middle of the interval.
        let time = |at: usize| (at as f64 + 0.5) * interval;
        let line = |which: usize| {
            let rates = panel.rates.iter().enumerate();
            rates.map(move |(at, rates)| self.at(time(at), rates[which]))
        };
        let class = color(panel.series);
        let band: Vec<(f64, f64)> = line(2).chain(line(1).rev()).collect();
        svg.polygon(&format!("a {class}"), &band);
        svg.polyline(&format!("l {class}"), &line(0).collect::<Vec<_>>());
        if let [only] = panel.rates.as_slice() {
            svg.marker(panel.series, self.at(time(0), only[0]));
        }
    }
}

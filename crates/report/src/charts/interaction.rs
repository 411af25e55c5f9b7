//! Effect of a system setting: its levels are on the horizontal axis, and each combination of the
//! other settings has a panel with a line per filesystem. Below is the ratio to the first level.
//! Lines that are not parallel indicate an interaction.

use crate::{
    charts::{
        axis::Axis,
        data::{Panel, Series, ends},
        intervals::shortened,
        plot::{self, LEFT, RIGHT, curve},
    },
    svg::{Svg, WIDTH, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct InteractionChart<'a> {
    /// Quantity, unit and direction.
    pub(crate) y_axis: String,
    /// Quantity and baseline of the lower panels.
    pub(crate) ratio_axis: String,
    /// Setting whose levels are on the horizontal axis.
    pub(crate) x_axis: String,
    pub(crate) levels: &'a [String],
    pub(crate) panels: &'a [Panel],
    /// Ratios from `1/(1+threshold)` to `1+threshold` are of no practical importance.
    pub(crate) threshold: f64,
}

const GAP: f64 = 22.0;
/// Panels side by side.
const ACROSS: usize = 3;
/// Height of the plot of a panel, above and below.
const PLOT: f64 = 210.0;
const RATIO_PLOT: f64 = 150.0;
/// Height of the text above all panels of a kind, of the title of a panel, and of the names of
/// levels in up to two lines.
const WORDS: f64 = 26.0;
const TITLE: f64 = 22.0;
const TICKS: f64 = 42.0;
const BOTTOM: f64 = 24.0;
/// Horizontal distance of filesystems at the same level, and width of a letter.
const OFFSET: f64 = 5.0;
const LETTER: f64 = 6.6;

/// Position of a panel, and its vertical axis.
struct Frame<'a> {
    left: f64,
    width: f64,
    top: f64,
    bottom: f64,
    axis: &'a Axis,
}

impl Frame<'_> {
    fn y(&self, value: f64) -> f64 {
        self.bottom - self.axis.share(value) * (self.bottom - self.top)
    }

    /// Horizontal position of a level.
    fn x(&self, level: usize, levels: usize) -> f64 {
        self.left + (level as f64 + 0.5) / levels as f64 * self.width
    }
}

impl InteractionChart<'_> {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let rows = self.panels.len().div_ceil(ACROSS) as f64;
        let block = |plot: f64| WORDS + rows * (TITLE + plot + TICKS);
        let mut svg = Svg::new(WIDTH, block(PLOT) + block(RATIO_PLOT) + BOTTOM);
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        let axis = Axis::over(lines.flat_map(|line| ends(&line.values)).chain([0.0]), 5);
        svg.text("ta", (4.0, 16.0), &self.y_axis);
        self.block(&mut svg, WORDS, PLOT, &axis, false);
        let top = block(PLOT);
        let ratios = self.panels.iter().flat_map(|panel| &panel.ratios);
        let band = [1.0 / (1.0 + self.threshold), 1.0 + self.threshold];
        let axis = Axis::over(ratios.flat_map(|line| ends(&line.values)).chain(band), 4);
        let note = if axis.starts_at_zero() { "" } else { " (axis does not start at zero)" };
        svg.text("ta", (4.0, top + 16.0), &format!("{}{note}", self.ratio_axis));
        self.block(&mut svg, top + WORDS, RATIO_PLOT, &axis, true);
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let end = block(PLOT) + block(RATIO_PLOT) + BOTTOM;
        svg.text("tm ta", (middle, end - 10.0), &self.x_axis);
        svg
    }

    /// All panels of one kind, from `top` on.
    fn block(&self, svg: &mut Svg, top: f64, plot: f64, axis: &Axis, ratios: bool) {
        let columns = self.panels.len().clamp(1, ACROSS);
        let gaps = (columns - 1) as f64 * GAP;
        let width = (WIDTH - LEFT - RIGHT - gaps) / columns as f64;
        for (index, panel) in self.panels.iter().enumerate() {
            let (row, column) = ((index / ACROSS) as f64, index % ACROSS);
            let top = top + row * (TITLE + plot + TICKS) + TITLE;
            let left = LEFT + column as f64 * (width + GAP);
            let frame = Frame { left, width, top, bottom: top + plot, axis };
            let last = column + 1 == columns || index + 1 == self.panels.len();
            svg.text("tm tb", (left + width / 2.0, top - 8.0), &panel.title);
            self.ground(svg, &frame, column == 0, ratios);
            let lines = if ratios { &panel.ratios } else { &panel.lines };
            for (place, line) in lines.iter().enumerate() {
                let offset = OFFSET * (place as f64 - (lines.len() as f64 - 1.0) / 2.0);
                self.line(svg, &frame, line, offset);
            }
            if last {
                names(svg, &frame, lines);
            }
        }
    }

    /// Grid, ticks, and the band of ratios within the margin.
    fn ground(&self, svg: &mut Svg, frame: &Frame, first: bool, ratios: bool) {
        let (left, right) = (frame.left, frame.left + frame.width);
        if ratios {
            let (low, high) = (1.0 / (1.0 + self.threshold), 1.0 + self.threshold);
            let [low, high] = [low, high].map(|ratio| frame.y(ratio));
            svg.rect("z", (left, high), (right - left, low - high));
        }
        for tick in &frame.axis.ticks {
            let y = frame.y(*tick);
            svg.line("g", (left, y), (right, y));
            if first {
                svg.text("te", (left - 8.0, y + 4.0), &frame.axis.label(*tick));
            }
        }
        if ratios {
            svg.line("k", (left, frame.y(1.0)), (right, frame.y(1.0)));
        }
        let room = frame.width / self.levels.len().max(1) as f64;
        let widest = self.levels.iter().map(|level| level.chars().count()).max().unwrap_or(0);
        let staggered = widest as f64 * LETTER > room;
        for (index, level) in self.levels.iter().enumerate() {
            let x = frame.x(index, self.levels.len());
            let lower = if staggered && index % 2 == 1 { 15.0 } else { 0.0 };
            svg.line("k", (x, frame.bottom), (x, frame.bottom + 5.0 + lower));
            svg.text("tm", (x, frame.bottom + 19.0 + lower), &shortened(level, 18));
        }
    }

    fn line(&self, svg: &mut Svg, frame: &Frame, line: &Series, offset: f64) {
        let class = color(line.filesystem);
        let mut run: Vec<(f64, f64)> = Vec::new();
        let mut runs = Vec::new();
        for (index, value) in line.values.iter().enumerate() {
            let Some(value) = value else {
                runs.push(std::mem::take(&mut run));
                continue;
            };
            let x = frame.x(index, self.levels.len()) + offset;
            if let Some((low, high)) = value.ends {
                svg.line(&format!("i {class}"), (x, frame.y(low)), (x, frame.y(high)));
            }
            run.push((x, frame.y(value.median)));
        }
        runs.push(run);
        for run in runs.iter().filter(|run| !run.is_empty()) {
            curve(svg, line.filesystem, run);
        }
    }
}

/// Names at the right ends of the lines.
fn names(svg: &mut Svg, frame: &Frame, lines: &[Series]) {
    let places = lines.iter().filter_map(|line| {
        let last = line.values.iter().rev().flatten().next()?;
        Some((frame.y(last.median), line.filesystem, line.name.as_str()))
    });
    plot::names(svg, frame.left + frame.width, (frame.top, frame.bottom), places.collect());
}

//! Test over the number of clients: medians from zero with their bands, the fitted law, and a ring
//! at 95 % of the maximum; below it the ratio to the smallest number of clients, with a line for
//! linear scaling.
//!
//! The axis of clients is logarithmic and its ticks are the tested levels; lines connect only
//! those.

use crate::{
    charts::{
        axis::Axis,
        data::{Level, Line, SweepValue},
        intervals::shortened,
        sweep::{NAME_MAX, apart},
    },
    svg::{Svg, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct ScalingChart<'a> {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    /// Quantity, unit and direction.
    pub(crate) y_axis: String,
    /// Quantity of the lower panel, with its baseline.
    pub(crate) ratio_axis: String,
    pub(crate) x_axis: String,
    /// Ascending.
    pub(crate) levels: &'a [Level],
    pub(crate) lines: &'a [Line],
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 132.0;
/// Height of the plot of each panel.
const PLOT: f64 = 270.0;
const RATIO_PLOT: f64 = 200.0;
/// Space for the text above a panel, and for ticks and text below it.
const ABOVE: f64 = 34.0;
const BELOW: f64 = 50.0;
/// Steps in which the line of perfect scaling is drawn.
const IDEAL_STEPS: u32 = 48;

/// Position and axis of a panel.
struct Panel {
    top: f64,
    bottom: f64,
    axis: Axis,
}

impl Panel {
    /// A panel from zero to the largest of some values.
    fn new(top: f64, height: f64, values: impl Iterator<Item = SweepValue>) -> Self {
        let all = values.flat_map(|SweepValue { median, ends }| {
            let (low, high) = ends.unwrap_or((median, median));
            [median, low, high]
        });
        let axis = Axis::over(all.chain([0.0]), 5);
        Self { top, bottom: top + height, axis }
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.axis.share(value) * (self.bottom - self.top)
    }

    fn grid(&self, svg: &mut Svg, words: &str) {
        for tick in &self.axis.ticks {
            let y = self.y(*tick);
            svg.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            svg.text("t te", (LEFT - 8.0, y + 4.0), &self.axis.label(*tick));
        }
        svg.text("t ta", (4.0, self.top - 18.0), words);
    }
}

impl ScalingChart<'_> {
    /// The chart as an SVG element.
    pub(crate) fn render(&self) -> String {
        let ratios = self.lines.iter().any(|line| line.ratios.iter().any(Option::is_some));
        let upper = ABOVE + PLOT + BELOW;
        let height = if ratios { upper + ABOVE + RATIO_PLOT + BELOW } else { upper };
        let mut svg = Svg::new(WIDTH, height);
        let values = self.lines.iter().flat_map(|line| line.series.values.iter().flatten());
        let panel = Panel::new(ABOVE, PLOT, values.copied());
        panel.grid(&mut svg, &self.y_axis);
        self.ticks(&mut svg, &panel);
        for line in self.lines {
            self.band(&mut svg, &panel, line, &line.series.values);
            let law: Vec<(f64, f64)> =
                line.law.iter().map(|(n, rate)| (self.x(*n), panel.y(*rate))).collect();
            if !law.is_empty() {
                svg.polyline(&format!("w {}", color(line.series.filesystem)), &law);
            }
        }
        for line in self.lines {
            self.line(&mut svg, &panel, line, &line.series.values);
            self.knee(&mut svg, &panel, line);
        }
        self.names(&mut svg, &panel, |line| &line.series.values);
        if ratios {
            self.ratios(&mut svg, upper + ABOVE);
        }
        svg.finish(&self.id, &self.title, &self.description)
    }

    /// The lower panel.
    fn ratios(&self, svg: &mut Svg, top: f64) {
        let values = self.lines.iter().flat_map(|line| line.ratios.iter().flatten());
        let panel = Panel::new(top, RATIO_PLOT, values.copied());
        panel.grid(svg, &self.ratio_axis);
        self.ticks(svg, &panel);
        self.ideal(svg, &panel);
        for line in self.lines {
            self.band(svg, &panel, line, &line.ratios);
        }
        for line in self.lines {
            self.line(svg, &panel, line, &line.ratios);
        }
        self.names(svg, &panel, |line| &line.ratios);
    }

    /// A multiple that grows as the clients do, as far as the panel reaches.
    fn ideal(&self, svg: &mut Svg, panel: &Panel) {
        let (first, last) = self.ends();
        let end = last.min(first * panel.axis.high);
        let at = |step: u32| {
            let clients = first * (end / first).powf(f64::from(step) / f64::from(IDEAL_STEPS));
            (self.x(clients), panel.y(clients / first))
        };
        let points: Vec<(f64, f64)> = (0..=IDEAL_STEPS).map(at).collect();
        svg.polyline("p", &points);
        if let Some((x, y)) = points.last() {
            svg.text("t ta", (x + 6.0, y + 12.0), "linear");
        }
    }

    /// Ticks at the tested levels; labels that would touch are left out, the ticks stay.
    fn ticks(&self, svg: &mut Svg, panel: &Panel) {
        let mut free_from = f64::NEG_INFINITY;
        for level in self.levels {
            let x = self.x(level.number);
            svg.line("k", (x, panel.bottom), (x, panel.bottom + 5.0));
            let half = 4.0 * level.label.chars().count() as f64;
            if x - half >= free_from {
                svg.text("t tm", (x, panel.bottom + 19.0), &level.label);
                free_from = x + half + 4.0;
            }
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg.text("t tm ta", (middle, panel.bottom + 42.0), &self.x_axis);
    }

    fn band(&self, svg: &mut Svg, panel: &Panel, line: &Line, values: &[Option<SweepValue>]) {
        for run in self.runs(values) {
            let ends = |upper: bool| {
                run.iter().filter_map(move |(x, value)| {
                    let (low, high) = value.ends?;
                    Some((*x, panel.y(if upper { high } else { low })))
                })
            };
            let mut outline: Vec<(f64, f64)> = ends(true).collect();
            let mut lower: Vec<(f64, f64)> = ends(false).collect();
            lower.reverse();
            outline.append(&mut lower);
            if outline.len() > 2 {
                svg.polygon(&format!("a {}", color(line.series.filesystem)), &outline);
            }
        }
    }

    fn line(&self, svg: &mut Svg, panel: &Panel, line: &Line, values: &[Option<SweepValue>]) {
        for run in self.runs(values) {
            let points: Vec<(f64, f64)> =
                run.iter().map(|(x, value)| (*x, panel.y(value.median))).collect();
            svg.polyline(&format!("l {}", color(line.series.filesystem)), &points);
            points.iter().for_each(|point| svg.marker(line.series.filesystem, *point, 4.0));
        }
    }

    fn knee(&self, svg: &mut Svg, panel: &Panel, line: &Line) {
        let at = line.knee.and_then(|at| Some((self.levels.get(at)?, line.series.values.get(at)?)));
        if let Some((level, Some(value))) = at {
            let class = format!("o {}", color(line.series.filesystem));
            svg.circle(&class, (self.x(level.number), panel.y(value.median)), 9.0);
        }
    }

    /// Stretches of levels without a hole: position and value.
    fn runs(&self, values: &[Option<SweepValue>]) -> Vec<Vec<(f64, SweepValue)>> {
        let mut runs = vec![Vec::new()];
        for (level, value) in self.levels.iter().zip(values) {
            match (value, runs.last_mut()) {
                (Some(value), Some(run)) => run.push((self.x(level.number), *value)),
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    /// Names at the right ends of the lines, shifted to avoid overlaps.
    fn names(&self, svg: &mut Svg, panel: &Panel, of: impl Fn(&Line) -> &[Option<SweepValue>]) {
        let place = |line| {
            let last: &SweepValue = of(line).iter().rev().flatten().next()?;
            Some((panel.y(last.median), line))
        };
        let mut names: Vec<(f64, &Line)> = self.lines.iter().filter_map(place).collect();
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = names.iter().map(|(y, _)| *y).collect();
        for ((y, line), place) in names.iter().zip(apart(&wanted, (panel.top, panel.bottom))) {
            let x = WIDTH - RIGHT + 8.0;
            svg.line("k", (x - 4.0, *y), (x + 8.0, place));
            svg.marker(line.series.filesystem, (x + 14.0, place), 4.0);
            svg.text("t", (x + 24.0, place + 4.0), &shortened(&line.series.name, NAME_MAX));
        }
    }

    fn ends(&self) -> (f64, f64) {
        let first = self.levels.first().map_or(1.0, |level| level.number);
        (first, self.levels.last().map_or(first, |level| level.number))
    }

    fn x(&self, number: f64) -> f64 {
        let (first, last) = self.ends();
        let share =
            if last > first { (number / first).log2() / (last / first).log2() } else { 0.5 };
        LEFT + 14.0 + share * (WIDTH - LEFT - RIGHT - 28.0)
    }
}

//! Rate by number of clients: medians with their bands, the fitted law, and a ring at 95 % of the
//! maximum. Below is the ratio to the smallest number of clients, with a line for linear scaling.
//!
//! The axis of clients is logarithmic. Its ticks are the tested levels.

use crate::{
    charts::{
        axis::Axis,
        data::{Level, Line, SweepValue, ends},
        plot::Plot,
    },
    svg::{Svg, WIDTH, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct ScalingChart<'a> {
    /// Quantity, unit and direction.
    pub(crate) y_axis: String,
    /// Quantity and baseline of the lower panel.
    pub(crate) ratio_axis: String,
    pub(crate) x_axis: String,
    /// Ascending.
    pub(crate) levels: &'a [Level],
    pub(crate) lines: &'a [Line],
}

/// Height of the plot of each panel.
const PLOT: f64 = 270.0;
const RATIO_PLOT: f64 = 200.0;
/// Height of the text above a panel, and of the ticks and text below it.
const ABOVE: f64 = 34.0;
const BELOW: f64 = 50.0;
/// Segments of the line of linear scaling.
const IDEAL_STEPS: u32 = 48;

impl ScalingChart<'_> {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let ratios = self.lines.iter().any(|line| line.ratios.iter().any(Option::is_some));
        let upper = ABOVE + PLOT + BELOW;
        let height = if ratios { upper + ABOVE + RATIO_PLOT + BELOW } else { upper };
        let mut svg = Svg::new(WIDTH, height);
        let plot = self.panel(&mut svg, (ABOVE, PLOT), &self.y_axis, |line| &line.series.values);
        for line in self.lines {
            plot.band(&mut svg, line.series.filesystem, &line.series.values);
            let law = line.law.iter().map(|(n, rate)| (plot.x(*n), plot.y(*rate)));
            let law: Vec<(f64, f64)> = law.collect();
            if !law.is_empty() {
                svg.polyline(&format!("w {}", color(line.series.filesystem)), &law);
            }
        }
        for line in self.lines {
            plot.line(&mut svg, line.series.filesystem, &line.series.values);
            self.knee(&mut svg, &plot, line);
        }
        let lines = self.lines.iter();
        plot.names(&mut svg, lines.map(|line| (&line.series, line.series.values.as_slice())));
        if ratios {
            self.ratios(&mut svg, upper + ABOVE);
        }
        svg
    }

    /// Panel with its grid; its axis starts at zero.
    fn panel(
        &self,
        svg: &mut Svg,
        (top, height): (f64, f64),
        y_axis: &str,
        values: fn(&Line) -> &[Option<SweepValue>],
    ) -> Plot<'_> {
        let all = self.lines.iter().flat_map(|line| ends(values(line)));
        let axis = Axis::over(all.chain([0.0]), 5);
        let plot = Plot { levels: self.levels, top, bottom: top + height, axis };
        plot.ground(svg, y_axis, &self.x_axis);
        plot
    }

    /// The lower panel.
    fn ratios(&self, svg: &mut Svg, top: f64) {
        let plot = self.panel(svg, (top, RATIO_PLOT), &self.ratio_axis, |line| &line.ratios);
        ideal(svg, &plot);
        for line in self.lines {
            plot.band(svg, line.series.filesystem, &line.ratios);
        }
        for line in self.lines {
            plot.line(svg, line.series.filesystem, &line.ratios);
        }
        plot.names(svg, self.lines.iter().map(|line| (&line.series, line.ratios.as_slice())));
    }

    fn knee(&self, svg: &mut Svg, plot: &Plot, line: &Line) {
        let at = line.knee.and_then(|at| Some((self.levels.get(at)?, line.series.values.get(at)?)));
        if let Some((level, Some(value))) = at {
            let class = format!("o {}", color(line.series.filesystem));
            svg.circle(&class, (plot.x(level.number), plot.y(value.median)), 9.0);
        }
    }
}

/// Line of linear scaling, up to the edge of the panel.
fn ideal(svg: &mut Svg, plot: &Plot) {
    let (first, last) = plot.ends();
    let end = last.min(first * plot.axis.high);
    let at = |step: u32| {
        let clients = first * (end / first).powf(f64::from(step) / f64::from(IDEAL_STEPS));
        (plot.x(clients), plot.y(clients / first))
    };
    let points: Vec<(f64, f64)> = (0..=IDEAL_STEPS).map(at).collect();
    svg.polyline("p", &points);
    if let Some((x, y)) = points.last() {
        svg.text("ta", (x + 6.0, y + 12.0), "linear");
    }
}

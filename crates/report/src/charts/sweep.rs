//! Behavior over a swept number: a line for each filesystem with its interval as a band, on a
//! logarithmic axis whose ticks are the tested levels. Nothing is drawn through untested ones.

use crate::{
    charts::{
        axis::Axis,
        data::{Level, Series, SweepValue},
        intervals::shortened,
    },
    svg::{Svg, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct SweepChart<'a> {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) description: String,
    /// Quantity, unit and direction.
    pub(crate) y_axis: String,
    pub(crate) x_axis: String,
    /// Ascending.
    pub(crate) levels: &'a [Level],
    pub(crate) series: &'a [Series],
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 132.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 50.0;
/// Distance of direct labels that do not touch.
const LABEL: f64 = 16.0;
/// Letters of a name that fit to the right of the plot; the legend of the report has the whole.
pub(super) const NAME_MAX: usize = 14;

impl SweepChart<'_> {
    /// The chart as an SVG element.
    pub(crate) fn render(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let values = self.series.iter().flat_map(|series| series.values.iter().flatten());
        let axis = Axis::over(
            values.flat_map(|SweepValue { median, ends }| {
                let (low, high) = ends.unwrap_or((*median, *median));
                [*median, low, high]
            }),
            5,
        );
        for tick in &axis.ticks {
            let y = height(&axis, *tick);
            svg.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            svg.text("t te", (LEFT - 8.0, y + 4.0), &axis.label(*tick));
        }
        self.levels(&mut svg);
        let note = if axis.starts_at_zero() { "" } else { " (axis does not start at zero)" };
        svg.text("t ta", (4.0, 16.0), &format!("{}{note}", self.y_axis));
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg.text("t tm ta", (middle, HEIGHT - 8.0), &self.x_axis);
        for series in self.series {
            self.band(&mut svg, &axis, series);
        }
        for series in self.series {
            self.line(&mut svg, &axis, series);
        }
        self.names(&mut svg, &axis);
        svg.finish(&self.id, &self.title, &self.description)
    }

    /// Ticks at the tested levels; labels that would touch are left out, the ticks stay.
    fn levels(&self, svg: &mut Svg) {
        let bottom = HEIGHT - BOTTOM;
        let mut free_from = f64::NEG_INFINITY;
        for level in self.levels {
            let x = self.x(level.number);
            svg.line("k", (x, bottom), (x, bottom + 5.0));
            let half = 4.0 * level.label.chars().count() as f64;
            if x - half >= free_from {
                svg.text("t tm", (x, bottom + 19.0), &level.label);
                free_from = x + half + 4.0;
            }
        }
    }

    fn band(&self, svg: &mut Svg, axis: &Axis, series: &Series) {
        for run in self.runs(series) {
            let ends = |upper: bool| {
                run.iter().filter_map(move |(x, value)| {
                    let (low, high) = value.ends?;
                    Some((*x, height(axis, if upper { high } else { low })))
                })
            };
            let mut outline: Vec<(f64, f64)> = ends(true).collect();
            let mut lower: Vec<(f64, f64)> = ends(false).collect();
            lower.reverse();
            outline.append(&mut lower);
            if outline.len() > 2 {
                svg.polygon(&format!("a {}", color(series.filesystem)), &outline);
            }
        }
    }

    fn line(&self, svg: &mut Svg, axis: &Axis, series: &Series) {
        for run in self.runs(series) {
            let points: Vec<(f64, f64)> =
                run.iter().map(|(x, value)| (*x, height(axis, value.median))).collect();
            svg.polyline(&format!("l {}", color(series.filesystem)), &points);
            points.iter().for_each(|point| svg.marker(series.filesystem, *point, 4.0));
        }
    }

    /// Stretches of levels without a hole: position and value.
    fn runs(&self, series: &Series) -> Vec<Vec<(f64, SweepValue)>> {
        let mut runs = vec![Vec::new()];
        for (level, value) in self.levels.iter().zip(&series.values) {
            match (value, runs.last_mut()) {
                (Some(value), Some(run)) => run.push((self.x(level.number), *value)),
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    /// Names at the right ends of the lines, shifted to avoid overlaps.
    fn names(&self, svg: &mut Svg, axis: &Axis) {
        let mut names: Vec<(f64, &Series)> = self
            .series
            .iter()
            .filter_map(|series| {
                let last = series.values.iter().rev().flatten().next()?;
                Some((height(axis, last.median), series))
            })
            .collect();
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = names.iter().map(|(y, _)| *y).collect();
        let places = apart(&wanted, (TOP, HEIGHT - BOTTOM));
        for ((y, series), place) in names.iter().zip(places) {
            let x = WIDTH - RIGHT + 8.0;
            svg.line("k", (x - 4.0, *y), (x + 8.0, place));
            svg.marker(series.filesystem, (x + 14.0, place), 4.0);
            svg.text("t", (x + 24.0, place + 4.0), &shortened(&series.name, NAME_MAX));
        }
    }

    fn x(&self, number: f64) -> f64 {
        let first = self.levels.first().map_or(1.0, |level| level.number);
        let last = self.levels.last().map_or(1.0, |level| level.number);
        let share =
            if last > first { (number / first).log2() / (last / first).log2() } else { 0.5 };
        LEFT + 14.0 + share * (WIDTH - LEFT - RIGHT - 28.0)
    }
}

fn height(axis: &Axis, value: f64) -> f64 {
    HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)
}

/// Positions at least [`LABEL`] apart (or as far as possible), in the same order, each near its
/// target and all within the plot.
pub(super) fn apart(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let gaps = wanted.len().saturating_sub(1).max(1) as f64;
    let distance = LABEL.min((bottom - top) / gaps);
    let mut places = wanted.to_vec();
    for index in 1..places.len() {
        places[index] = places[index].max(places[index - 1] + distance);
    }
    let mut ceiling = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - distance;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_pushed_apart_and_stay_inside() {
        let places = apart(&[300.0, 301.0, 302.0, 303.0], (TOP, HEIGHT - BOTTOM));
        assert!(places.windows(2).all(|two| two[1] - two[0] >= LABEL - 1e-9), "{places:?}");
        assert!(places.last().is_some_and(|last| *last <= HEIGHT - BOTTOM));
    }

    #[test]
    fn many_labels_stay_inside() {
        let places = apart(&[200.0; 30], (TOP, HEIGHT - BOTTOM));
        assert!(places.iter().all(|place| (TOP - 1e-9..=HEIGHT - BOTTOM).contains(place)));
        assert!(places.is_sorted());
    }

    #[test]
    fn a_long_name_is_cut_before_the_edge_cuts_it() {
        let levels: Vec<Level> =
            [1.0, 2.0].map(|number| Level { number, label: number.to_string() }).into();
        let value = |median| Some(SweepValue { median, ends: None });
        let name = "ext4-writeback-without-journal".to_owned();
        let series = [Series { filesystem: 0, name, values: vec![value(1.0), value(2.0)] }];
        let chart = SweepChart {
            id: "x".into(),
            title: "t".into(),
            description: "d".into(),
            y_axis: "y".into(),
            x_axis: "x".into(),
            levels: &levels,
            series: &series,
        };
        assert!(chart.render().contains(">ext4-writebac…</text>"));
    }
}

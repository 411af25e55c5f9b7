//! Plot over tested levels: a logarithmic axis whose ticks are the levels, lines with bands that
//! connect tested levels only, and names at the right ends of the lines.

use crate::{
    charts::{
        axis::Axis,
        data::{Level, Series, SweepValue},
        intervals::shortened,
    },
    svg::{Svg, WIDTH, color},
};

pub(super) const LEFT: f64 = 64.0;
pub(super) const RIGHT: f64 = 132.0;
/// Distance at which names do not overlap.
const LABEL: f64 = 16.0;
/// Maximum length of a name right of the plot. The legend of the report has the full names.
const NAME_MAX: usize = 14;

/// Position and axes of a plot.
pub(super) struct Plot<'a> {
    /// Ascending.
    pub(super) levels: &'a [Level],
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) axis: Axis,
}

impl Plot<'_> {
    /// Vertical position of a value.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.axis.share(value) * (self.bottom - self.top)
    }

    /// The first and the last level.
    pub(super) fn ends(&self) -> (f64, f64) {
        let first = self.levels.first().map_or(1.0, |level| level.number);
        (first, self.levels.last().map_or(first, |level| level.number))
    }

    /// Horizontal position of a level.
    pub(super) fn x(&self, number: f64) -> f64 {
        let (first, last) = self.ends();
        let share =
            if last > first { (number / first).log2() / (last / first).log2() } else { 0.5 };
        LEFT + 14.0 + share * (WIDTH - LEFT - RIGHT - 28.0)
    }

    /// Grid, and ticks at the tested levels. Labels that would overlap are omitted.
    pub(super) fn ground(&self, svg: &mut Svg, y_axis: &str, x_axis: &str) {
        for tick in &self.axis.ticks {
            let y = self.y(*tick);
            svg.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            svg.text("te", (LEFT - 8.0, y + 4.0), &self.axis.label(*tick));
        }
        svg.text("ta", (4.0, self.top - 18.0), y_axis);
        let mut free_from = f64::NEG_INFINITY;
        for level in self.levels {
            let x = self.x(level.number);
            svg.line("k", (x, self.bottom), (x, self.bottom + 5.0));
            let half = 4.0 * level.label.chars().count() as f64;
            if x - half >= free_from {
                svg.text("tm", (x, self.bottom + 19.0), &level.label);
                free_from = x + half + 4.0;
            }
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg.text("tm ta", (middle, self.bottom + 42.0), x_axis);
    }

    /// Interval band of a filesystem.
    pub(super) fn band(&self, svg: &mut Svg, filesystem: usize, values: &[Option<SweepValue>]) {
        for run in self.runs(values) {
            let ends = |upper: bool| {
                run.iter().filter_map(move |(x, value)| {
                    let (low, high) = value.ends?;
                    Some((*x, self.y(if upper { high } else { low })))
                })
            };
            let mut outline: Vec<(f64, f64)> = ends(true).collect();
            let mut lower: Vec<(f64, f64)> = ends(false).collect();
            lower.reverse();
            outline.append(&mut lower);
            if outline.len() > 2 {
                svg.polygon(&format!("a {}", color(filesystem)), &outline);
            }
        }
    }

    /// Medians of a filesystem.
    pub(super) fn line(&self, svg: &mut Svg, filesystem: usize, values: &[Option<SweepValue>]) {
        for run in self.runs(values) {
            let points: Vec<(f64, f64)> =
                run.iter().map(|(x, value)| (*x, self.y(value.median))).collect();
            curve(svg, filesystem, &points);
        }
    }

    /// Adjacent levels with values: horizontal position and value.
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

    /// Names at the right ends of the lines.
    pub(super) fn names<'a>(
        &self,
        svg: &mut Svg,
        lines: impl Iterator<Item = (&'a Series, &'a [Option<SweepValue>])>,
    ) {
        let places = lines.filter_map(|(series, values)| {
            let last = values.iter().rev().flatten().next()?;
            Some((self.y(last.median), series.filesystem, series.name.as_str()))
        });
        names(svg, WIDTH - RIGHT, (self.top, self.bottom), places.collect());
    }
}

/// A line through points, each with a marker.
pub(super) fn curve(svg: &mut Svg, series: usize, points: &[(f64, f64)]) {
    svg.polyline(&format!("l {}", color(series)), points);
    points.iter().for_each(|point| svg.marker(series, *point));
}

/// Names right of lines that end at a horizontal position, shifted to avoid overlaps. Each has the
/// vertical position of the end, the index of the filesystem, and the name.
pub(super) fn names(
    svg: &mut Svg,
    right: f64,
    plot: (f64, f64),
    mut names: Vec<(f64, usize, &str)>,
) {
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted: Vec<f64> = names.iter().map(|(y, ..)| *y).collect();
    let x = right + 8.0;
    for ((y, filesystem, name), place) in names.into_iter().zip(apart(&wanted, plot)) {
        svg.line("k", (x - 4.0, y), (x + 8.0, place));
        svg.marker(filesystem, (x + 14.0, place));
        svg.text("", (x + 24.0, place + 4.0), &shortened(name, NAME_MAX));
    }
}

/// Vertical positions at least [`LABEL`] apart (or as far as possible), in the same order, near the
/// wanted ones and within the plot.
fn apart(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
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

    const PLOT: (f64, f64) = (34.0, 310.0);

    #[test]
    fn labels_are_pushed_apart_and_stay_inside() {
        let places = apart(&[300.0, 301.0, 302.0, 303.0], PLOT);
        assert!(places.windows(2).all(|two| two[1] - two[0] >= LABEL - 1e-9), "{places:?}");
        assert!(places.last().is_some_and(|last| *last <= PLOT.1));
    }

    #[test]
    fn many_labels_stay_inside() {
        let places = apart(&[200.0; 30], PLOT);
        assert!(places.iter().all(|place| (PLOT.0 - 1e-9..=PLOT.1).contains(place)));
        assert!(places.is_sorted());
    }

    #[test]
    fn long_names_are_shortened() {
        let mut svg = Svg::new(WIDTH, 360.0);
        names(&mut svg, 1.0, PLOT, vec![(40.0, 0, "ext4-writeback-without-journal")]);
        assert!(svg.finish("t", "d").contains(">ext4-writebac…</text>"));
    }
}

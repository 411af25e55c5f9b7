//! Frame of a plot: axes with their grid, lines that connect adjacent values only, bands of their
//! intervals, and names at the right ends of the lines.

use crate::{
    charts::{
        axis::Axis,
        data::{Series, SweepValue},
        intervals::shortened,
    },
    svg::{Svg, WIDTH, color},
};

/// Horizontal ends of the plot of a chart with names at its right.
pub(super) const LEFT: f64 = 64.0;
pub(super) const RIGHT: f64 = WIDTH - 132.0;
/// Distance at which names do not overlap.
const LABEL: f64 = 16.0;
/// Maximum length of a name right of the plot. The legend of the report has the full names.
const NAME_MAX: usize = 14;

/// Position and axes of a plot.
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Distance of the ends of the horizontal axis from those of the plot.
    pub(super) pad: f64,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Plot {
    /// Horizontal position of a share of the axis.
    pub(super) fn across(&self, share: f64) -> f64 {
        self.left + self.pad + share * (self.right - self.left - 2.0 * self.pad)
    }

    /// Vertical position of a value.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }

    /// Position of a value.
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.across(self.x.share(x)), self.y(y))
    }

    /// Title of the vertical axis, grid, ticks, and title of the horizontal axis.
    pub(super) fn ground(&self, svg: &mut Svg, y_axis: &str, x_axis: &str) {
        if !y_axis.is_empty() {
            svg.text("ta", (4.0, self.top - 18.0), y_axis);
        }
        self.grid(svg, true);
        self.ticks(svg);
        svg.text("tm ta", ((self.left + self.right) / 2.0, self.bottom + 42.0), x_axis);
    }

    /// Horizontal grid, with labels at its left if `labeled`.
    pub(super) fn grid(&self, svg: &mut Svg, labeled: bool) {
        for (position, label) in &self.y.ticks {
            let y = self.bottom - self.y.place(*position) * (self.bottom - self.top);
            svg.line("g", (self.left, y), (self.right, y));
            if labeled {
                svg.text("te", (self.left - 8.0, y + 4.0), label);
            }
        }
    }

    /// Ticks of the horizontal axis. Labels that would overlap are omitted.
    pub(super) fn ticks(&self, svg: &mut Svg) {
        let mut free_from = f64::NEG_INFINITY;
        for (position, label) in &self.x.ticks {
            let x = self.across(self.x.place(*position));
            svg.line("k", (x, self.bottom), (x, self.bottom + 5.0));
            let half = 4.0 * label.chars().count() as f64;
            if half > 0.0 && x - half >= free_from {
                // The frame would cut a label at its right end.
                svg.text("tm", (x.min(WIDTH - 26.0), self.bottom + 19.0), label);
                free_from = x + half + 4.0;
            }
        }
    }

    /// Bands, lines with markers, and names of some series. Values are at the ticks of the
    /// horizontal axis.
    pub(super) fn series<'a>(
        &self,
        svg: &mut Svg,
        all: impl Iterator<Item = (&'a Series, &'a [Option<SweepValue>])> + Clone,
    ) {
        all.clone().for_each(|(own, values)| self.band(svg, own.filesystem, values));
        all.clone().for_each(|(own, values)| self.line(svg, own.filesystem, values, 0.0));
        self.names(svg, all);
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
            let outline: Vec<(f64, f64)> = ends(true).chain(ends(false).rev()).collect();
            if outline.len() > 2 {
                svg.polygon(&format!("a {}", color(filesystem)), &outline);
            }
        }
    }

    /// Medians of a filesystem with markers, shifted to the right by `offset`.
    pub(super) fn line(
        &self,
        svg: &mut Svg,
        filesystem: usize,
        values: &[Option<SweepValue>],
        offset: f64,
    ) {
        for run in self.runs(values) {
            let points = run.iter().map(|(x, value)| (x + offset, self.y(value.median)));
            let points: Vec<(f64, f64)> = points.collect();
            svg.polyline(&format!("l {}", color(filesystem)), &points);
            points.iter().for_each(|point| svg.marker(filesystem, *point));
        }
    }

    /// Adjacent ticks with values: horizontal position and value.
    fn runs(&self, values: &[Option<SweepValue>]) -> Vec<Vec<(f64, SweepValue)>> {
        let mut runs = vec![Vec::new()];
        for ((position, _), value) in self.x.ticks.iter().zip(values) {
            match (value, runs.last_mut()) {
                (Some(value), Some(run)) => {
                    run.push((self.across(self.x.place(*position)), *value));
                }
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    /// Names at the right ends of lines, shifted to avoid overlaps.
    pub(super) fn names<'a>(
        &self,
        svg: &mut Svg,
        lines: impl Iterator<Item = (&'a Series, &'a [Option<SweepValue>])>,
    ) {
        let places = lines.filter_map(|(series, values)| {
            let last = values.iter().rev().flatten().next()?;
            Some((self.y(last.median), series))
        });
        let mut names: Vec<(f64, &Series)> = places.collect();
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = names.iter().map(|(y, _)| *y).collect();
        let x = self.right + 8.0;
        for ((y, series), place) in names.into_iter().zip(apart(&wanted, (self.top, self.bottom))) {
            svg.line("k", (x - 4.0, y), (x + 8.0, place));
            svg.marker(series.filesystem, (x + 14.0, place));
            svg.text("", (x + 24.0, place + 4.0), &shortened(&series.name, NAME_MAX));
        }
    }
}

/// Positions of panels side by side and below each other: index, column, left, and top of each.
pub(super) fn panels(
    count: usize,
    across: usize,
    (left, top): (f64, f64),
    (width, height): (f64, f64),
) -> impl Iterator<Item = (usize, usize, f64, f64)> {
    (0..count).map(move |index| {
        let (row, column) = ((index / across) as f64, index % across);
        (index, column, left + column as f64 * width, top + row * height)
    })
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
        let axis = || Axis::over([0.0, 1.0].into_iter(), 5);
        let (x, y, (top, bottom)) = (axis(), axis(), PLOT);
        let plot = Plot { left: LEFT, right: RIGHT, top, bottom, pad: 0.0, x, y };
        let values = vec![Some(SweepValue { median: 0.5, ends: None })];
        let name = "ext4-writeback-without-journal".into();
        let series = Series { filesystem: 0, name, values };
        plot.names(&mut svg, std::iter::once((&series, series.values.as_slice())));
        assert!(svg.finish("t", "d").contains(">ext4-writebac…</text>"));
    }
}

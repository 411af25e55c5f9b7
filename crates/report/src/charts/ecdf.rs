//! Cumulative distributions: fraction of the operations at or below each time, on a logarithmic
//! axis, with a line per filesystem.

use crate::{
    charts::{decades::Decades, intervals::shortened},
    svg::{Svg, WIDTH, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct Ecdf<'a> {
    /// Quantity, unit and direction.
    pub(crate) x_axis: String,
    /// Ends of the axis, as decimal logarithms of nanoseconds.
    pub(crate) range: (f64, f64),
    pub(crate) lines: Vec<Line<'a>>,
}

/// Name, index of the filesystem, and its curve: logarithm and share.
pub(crate) type Line<'a> = (&'a str, usize, &'a [(f32, f32)]);

const HEIGHT: f64 = 330.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 16.0;
const BOTTOM: f64 = 50.0;
/// Key: names per row, width of a name, and height of a row.
const KEYS: usize = 5;
const KEY: f64 = 136.0;
const KEY_ROW: f64 = 20.0;
/// Maximum length of a name in the key.
const NAME_MAX: usize = 14;
/// Fractions at which a line has a marker.
const MARKED: [f32; 3] = [0.25, 0.5, 0.75];

impl Ecdf<'_> {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let top = 34.0 + KEY_ROW * self.lines.len().div_ceil(KEYS) as f64;
        let plot = HEIGHT - BOTTOM - 40.0;
        let height = top + plot + BOTTOM;
        let mut svg = Svg::new(WIDTH, height);
        let axis = Decades::between(self.range.0, self.range.1);
        let place = |(log, share): (f32, f32)| {
            let x = LEFT + axis.share(f64::from(log)) * (WIDTH - LEFT - RIGHT);
            (x, top + (1.0 - f64::from(share)) * plot)
        };
        svg.text("ta", (4.0, 16.0), "operations at or below this time, %");
        for (index, (name, series, _)) in self.lines.iter().enumerate() {
            let (row, column) = ((index / KEYS) as f64, (index % KEYS) as f64);
            let (x, y) = (LEFT + column * KEY, 34.0 + row * KEY_ROW);
            svg.about(name);
            svg.polyline(&format!("l {}", color(*series)), &[(x, y), (x + 26.0, y)]);
            svg.marker(*series, (x + 13.0, y));
            svg.text("", (x + 32.0, y + 4.0), &shortened(name, NAME_MAX));
            svg.end();
        }
        for percent in [0_u8, 25, 50, 75, 100] {
            let y = top + (1.0 - f64::from(percent) / 100.0) * plot;
            svg.line("g", (LEFT, y), (WIDTH - RIGHT, y));
            svg.text("te", (LEFT - 8.0, y + 4.0), &percent.to_string());
        }
        for (log, label) in &axis.ticks {
            let x = LEFT + axis.share(*log) * (WIDTH - LEFT - RIGHT);
            svg.line("k", (x, top + plot), (x, top + plot + 5.0));
            // The frame would cut a label at its right end.
            svg.text("tm", (x.min(WIDTH - 26.0), top + plot + 19.0), label);
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg.text("tm ta", (middle, height - 8.0), &self.x_axis);
        for (_, series, curve) in &self.lines {
            let points: Vec<(f64, f64)> = curve.iter().map(|point| place(*point)).collect();
            svg.polyline(&format!("l {}", color(*series)), &points);
        }
        for (_, series, curve) in &self.lines {
            for share in MARKED {
                if let Some(at) = crossing(curve, share) {
                    svg.marker(*series, place((at, share)));
                }
            }
        }
        svg
    }
}

/// Position at which a curve reaches a fraction.
fn crossing(curve: &[(f32, f32)], share: f32) -> Option<f32> {
    let after = curve.partition_point(|(_, own)| *own < share);
    let (x1, y1) = *curve.get(after)?;
    let (x0, y0) = curve[after.saturating_sub(1)];
    Some(if y1 > y0 { x0 + (share - y0) / (y1 - y0) * (x1 - x0) } else { x1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_at_their_fraction_of_the_curve() {
        let curve = [(3.0, 0.0), (4.0, 0.5), (4.0, 0.9), (5.0, 1.0)];
        assert_eq!(crossing(&curve, 0.25), Some(3.5));
        assert_eq!(crossing(&curve, 0.75), Some(4.0));
        assert_eq!((crossing(&curve, 1.1), crossing(&[], 0.5)), (None, None));
        assert_eq!(crossing(&[(3.0, 0.7)], 0.5), Some(3.0));
    }
}

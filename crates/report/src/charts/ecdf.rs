//! Cumulative distributions: fraction of the operations at or below each time, on a logarithmic
//! axis, with a line per filesystem.

use crate::{
    charts::{axis::Axis, intervals::shortened, plot::Plot},
    svg::{Svg, WIDTH, color},
};

/// Name, index of the filesystem, and its curve: logarithm and share.
pub(crate) type Line<'a> = (&'a str, usize, &'a [(f32, f32)]);

const PLOT: f64 = 240.0;
const LEFT: f64 = 58.0;
/// Key: position of the first row, names per row, width of a name, and height of a row.
const KEY_TOP: f64 = 34.0;
const KEYS: usize = 5;
const KEY: f64 = 136.0;
const KEY_ROW: f64 = 20.0;
/// Maximum length of a name in the key.
const NAME_MAX: usize = 14;
/// Fractions at which a line has a marker.
const MARKED: [f32; 3] = [0.25, 0.5, 0.75];

/// Draws the chart. `range` has the ends of the axis as decimal logarithms of nanoseconds.
pub(crate) fn ecdf(x_axis: &str, range: (f64, f64), lines: &[Line<'_>]) -> Svg {
    let top = KEY_TOP + KEY_ROW * lines.len().div_ceil(KEYS) as f64;
    let mut svg = Svg::new(WIDTH, top + PLOT + 50.0);
    let x = Axis::times_between(range.0, range.1);
    let y = Axis::categories(["0", "25", "50", "75", "100"].into_iter().map(str::to_owned), 0.0);
    let (right, bottom) = (WIDTH - 16.0, top + PLOT);
    let plot = Plot { left: LEFT, right, top, bottom, pad: 0.0, x, y };
    let place = |(log, share): (f32, f32)| {
        (plot.across(plot.x.place(f64::from(log))), plot.y(f64::from(share) * 4.0))
    };
    svg.text("ta", (4.0, 16.0), "operations at or below this time, %");
    for (index, (name, series, _)) in lines.iter().enumerate() {
        let (row, column) = ((index / KEYS) as f64, (index % KEYS) as f64);
        let (x, y) = (LEFT + column * KEY, KEY_TOP + row * KEY_ROW);
        svg.about(name);
        svg.polyline(&format!("l {}", color(*series)), &[(x, y), (x + 26.0, y)]);
        svg.marker(*series, (x + 13.0, y));
        svg.text("", (x + 32.0, y + 4.0), &shortened(name, NAME_MAX));
        svg.end();
    }
    plot.ground(&mut svg, "", x_axis);
    for (_, series, curve) in lines {
        let points: Vec<(f64, f64)> = curve.iter().map(|point| place(*point)).collect();
        svg.polyline(&format!("l {}", color(*series)), &points);
    }
    for (_, series, curve) in lines {
        for share in MARKED {
            if let Some(at) = crossing(curve, share) {
                svg.marker(*series, place((at, share)));
            }
        }
    }
    svg
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

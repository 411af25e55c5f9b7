//! Changes of tests in percent on one linear axis, with intervals. A band marks changes within the
//! margin.

use crate::{
    charts::{
        axis::{Across, Axis},
        intervals::shortened,
    },
    svg::Svg,
};

/// One test.
#[derive(Clone, Debug)]
pub(crate) struct ChangeRow {
    pub(crate) name: String,
    /// Change in percent.
    pub(crate) change: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// Change and result as text.
    pub(crate) shown: String,
    /// Class of the color.
    pub(crate) class: &'static str,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 8.0;
const ROW: f64 = 22.0;
const BOTTOM: f64 = 44.0;
/// Maximum length of a name.
const NAME: usize = 40;

/// Draws the chart. `margin` is the half-width of the band, in percent.
pub(crate) fn changes(axis: &str, margin: f64, rows: &[ChangeRow]) -> Svg {
    let bottom = TOP + rows.len() as f64 * ROW;
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    let ends = |row: &ChangeRow| row.interval.map_or([row.change; 2], |(low, high)| [low, high]);
    let values = rows.iter().flat_map(|row| ends(row).into_iter().chain([row.change]));
    let axis_of_all = Axis::over(values.chain([-margin, 0.0, margin]), 6);
    let across = Across::new(axis_of_all, (LEFT, WIDTH - RIGHT));
    let (low, high) = (across.x(-margin), across.x(margin));
    svg.rect("z", (low, TOP), (high - low, bottom - TOP));
    across.ground(&mut svg, (TOP, bottom), axis);
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + (at as f64 + 0.5) * ROW;
        svg.text("te", (LEFT - 12.0, y + 4.0), &shortened(&row.name, NAME));
        if let Some((low, high)) = row.interval {
            svg.line(&format!("i {}", row.class), (across.x(low), y), (across.x(high), y));
        }
        svg.circle(&format!("m {}", row.class), (across.x(row.change), y), 5.0);
        svg.text("", (WIDTH - RIGHT + 12.0, y + 4.0), &row.shown);
    }
    svg
}

//! Ratios of configurations to a reference on a logarithmic axis, with intervals. A band marks
//! differences within the margin. Each filesystem has a row per level.

use crate::{
    charts::{
        axis::{Across, Axis},
        data::Multiple,
        intervals::shortened,
    },
    svg::{Svg, WIDTH, color},
};

const LEFT: f64 = 232.0;
const RIGHT: f64 = 156.0;
const TOP: f64 = 12.0;
const ROW: f64 = 22.0;
/// Space between two filesystems.
const GROUP: f64 = 10.0;
const BOTTOM: f64 = 46.0;
/// Right end of the names of levels.
const LEVELS: f64 = LEFT - 16.0;
const NAMES: f64 = 24.0;

/// Draws the chart. Ratios from `1/(1+margin)` to `1+margin` are of no practical importance.
pub(crate) fn normalized(title: &str, rows: &[Multiple], margin: f64) -> Svg {
    let groups = rows.windows(2).filter(|two| two[0].filesystem != two[1].filesystem).count();
    let bottom = TOP + rows.len() as f64 * ROW + groups as f64 * GROUP;
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    let threshold = 1.0 + margin;
    let ratios = rows.iter().filter_map(|row| row.ratio).flat_map(|(ratio, ends)| {
        ends.into_iter().flat_map(|(low, high)| [low, high]).chain([ratio])
    });
    let axis = Axis::ratios(ratios.chain([threshold, 1.0 / threshold]));
    let axis = Across::new(axis, (LEFT, WIDTH - RIGHT));
    let (low, high) = (axis.x(1.0 / threshold), axis.x(threshold));
    svg.rect("z", (low, TOP), (high - low, bottom - TOP));
    axis.ground(&mut svg, (TOP, bottom), title);
    let mut y = TOP;
    for (index, row) in rows.iter().enumerate() {
        let fresh = index == 0 || rows[index - 1].filesystem != row.filesystem;
        y += if fresh && index > 0 { GROUP } else { 0.0 };
        draw(&mut svg, &axis, row, y + ROW / 2.0, fresh);
        y += ROW;
    }
    svg
}

fn draw(svg: &mut Svg, axis: &Across, row: &Multiple, y: f64, fresh: bool) {
    if fresh {
        svg.marker(row.filesystem, (10.0, y));
        svg.text("tb", (NAMES, y + 4.0), &shortened(&row.name, 15));
    }
    svg.text("te", (LEVELS, y + 4.0), &shortened(&row.level, 12));
    let Some((ratio, ends)) = row.ratio else {
        svg.text("tn", (LEFT + 4.0, y + 4.0), &shortened(&row.shown, 56));
        return;
    };
    let class = color(row.filesystem);
    if let Some((low, high)) = ends {
        svg.line(&format!("i {class}"), (axis.x(low), y), (axis.x(high), y));
    }
    svg.marker(row.filesystem, (axis.x(ratio), y));
    let shown = row.shown.split(" (").next().unwrap_or_default();
    svg.text("", (WIDTH - RIGHT + 12.0, y + 4.0), shown);
}

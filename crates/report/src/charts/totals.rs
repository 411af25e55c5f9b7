//! Totals as stacked bars: a bar from zero per filesystem with a segment per task, and below its
//! end a line for the interval of the total. Adjacent segments have different shades of the color
//! of the filesystem. Wide segments have the number of the task.

use crate::{
    charts::{
        axis::{Across, Axis},
        data::TotalRow,
        intervals::shortened,
    },
    svg::{Svg, WIDTH, color},
};

const LEFT: f64 = 128.0;
const RIGHT: f64 = 96.0;
const TOP: f64 = 10.0;
const ROW: f64 = 38.0;
const BAR: f64 = 22.0;
const BOTTOM: f64 = 46.0;
/// Number of shades.
const SHADES: usize = 3;
/// Width of a letter.
const LETTER: f64 = 7.0;
/// Maximum length of a note in the plot.
const NOTE_MAX: usize = 80;

/// Draws the chart. `tasks` are the names of the segments.
pub(crate) fn totals(axis: &str, rows: &[TotalRow], tasks: &[String]) -> Svg {
    let bottom = TOP + rows.len() as f64 * ROW;
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    let ends = rows
        .iter()
        .flat_map(|row| row.interval.into_iter().map(|(_, high)| high).chain([0.0, row.total]));
    let across = Across::new(Axis::over(ends, 6), (LEFT, WIDTH - RIGHT));
    across.ground(&mut svg, (TOP, bottom), axis);
    for (index, row) in rows.iter().enumerate() {
        bar(&mut svg, &across, row, tasks, TOP + (index as f64 + 0.5) * ROW);
    }
    svg
}

fn bar(svg: &mut Svg, across: &Across, row: &TotalRow, tasks: &[String], y: f64) {
    svg.marker(row.filesystem, (LEFT - 14.0, y));
    let class = if row.top { "te tb" } else { "te" };
    svg.text(class, (LEFT - 26.0, y + 4.0), &shortened(&row.name, 15));
    if row.pieces.is_empty() {
        svg.text("tn", (LEFT + 4.0, y + 4.0), &shortened(&row.note, NOTE_MAX));
        return;
    }
    let (high, low) = (y - BAR / 2.0, y + BAR / 2.0);
    let mut before = 0.0;
    for (index, (piece, task)) in row.pieces.iter().zip(tasks).enumerate() {
        let (left, right) = (across.x(before), across.x(before + piece));
        let class = format!("st{} {}", index % SHADES, color(row.filesystem));
        svg.rect(&class, (left, high), (right - left, BAR));
        let number = number(task);
        if number.chars().count() as f64 * LETTER + 4.0 < right - left {
            svg.text("tm stt", ((left + right) / 2.0, y + 4.0), number);
        }
        before += piece;
    }
    let (start, end) = (across.x(0.0), across.x(row.total));
    let class = format!("o {}", color(row.filesystem));
    svg.rect(&class, (start, high), (end - start, BAR));
    let mut right = end;
    if let Some((from, to)) = row.interval {
        let [from, to] = [from, to].map(|value| across.x(value));
        // Below the bar, because segments have numbers.
        let y = low + 4.5;
        svg.line("ste", (from, y), (to, y));
        [from, to].into_iter().for_each(|x| svg.line("ste", (x, y - 3.0), (x, y + 3.0)));
        right = right.max(to);
    }
    let class = if row.top { "tb" } else { "" };
    svg.text(class, (right + 8.0, y + 4.0), &format!("{} s", row.shown));
}

/// Number before the name of a task: `013` of `013-create-file`.
fn number(task: &str) -> &str {
    task.split_once('-').map_or(task, |(number, _)| number)
}

//! Totals as bars made of their pieces: one bar for each filesystem from zero, pieces in the order
//! of the tasks, a line below the end for the interval of the total. A bar has the color of its
//! filesystem; neighboring pieces have three shades of it in turn, and wide ones their number.

use crate::{
    charts::{axis::Axis, data::TotalRow, intervals::shortened},
    svg::{Svg, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct TotalsChart<'a> {
    /// Quantity, unit and direction.
    pub(crate) axis: String,
    pub(crate) rows: &'a [TotalRow],
    /// Names of the tasks.
    pub(crate) tasks: &'a [String],
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 128.0;
const RIGHT: f64 = 96.0;
const TOP: f64 = 10.0;
const ROW: f64 = 38.0;
const BAR: f64 = 22.0;
const BOTTOM: f64 = 46.0;
/// Shades that take turns.
const SHADES: usize = 3;
/// Width of a letter.
const LETTER: f64 = 7.0;
/// Letters of a note that fit into the plot.
const NOTE_MAX: usize = 80;

impl TotalsChart<'_> {
    /// The chart as an SVG element without title.
    pub(crate) fn render(&self) -> Svg {
        let rows = self.rows;
        let bottom = TOP + rows.len() as f64 * ROW;
        let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
        let ends = rows
            .iter()
            .flat_map(|row| row.interval.into_iter().map(|(_, high)| high).chain([0.0, row.total]));
        let axis = Axis::over(ends, 6);
        for tick in &axis.ticks {
            let x = place(&axis, *tick);
            svg.line("g", (x, TOP), (x, bottom));
            svg.text("tm", (x, bottom + 16.0), &axis.label(*tick));
        }
        for (index, row) in rows.iter().enumerate() {
            self.bar(&mut svg, &axis, row, TOP + (index as f64 + 0.5) * ROW);
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg.text("tm ta", (middle, bottom + 36.0), &self.axis);
        svg
    }

    fn bar(&self, svg: &mut Svg, axis: &Axis, row: &TotalRow, y: f64) {
        svg.marker(row.filesystem, (LEFT - 14.0, y), 5.0);
        let class = if row.top { "te tb" } else { "te" };
        svg.text(class, (LEFT - 26.0, y + 4.0), &shortened(&row.name, 15));
        if row.pieces.is_empty() {
            svg.text("tn", (LEFT + 4.0, y + 4.0), &shortened(&row.note, NOTE_MAX));
            return;
        }
        let (high, low) = (y - BAR / 2.0, y + BAR / 2.0);
        let mut before = 0.0;
        for (index, (piece, task)) in row.pieces.iter().zip(self.tasks).enumerate() {
            let (left, right) = (place(axis, before), place(axis, before + piece));
            let class = format!("st{} {}", index % SHADES, color(row.filesystem));
            svg.polygon(&class, &[(left, high), (right, high), (right, low), (left, low)]);
            let number = number(task);
            if number.chars().count() as f64 * LETTER + 4.0 < right - left {
                svg.text("tm stt", ((left + right) / 2.0, y + 4.0), number);
            }
            before += piece;
        }
        let end = place(axis, row.total);
        let class = format!("o {}", color(row.filesystem));
        let start = place(axis, 0.0);
        svg.polygon(&class, &[(start, high), (end, high), (end, low), (start, low)]);
        let mut right = end;
        if let Some((from, to)) = row.interval {
            let [from, to] = [from, to].map(|value| place(axis, value));
            // Below the bar, outside of the segments' numbers.
            let y = low + 4.5;
            svg.line("ste", (from, y), (to, y));
            [from, to].into_iter().for_each(|x| svg.line("ste", (x, y - 3.0), (x, y + 3.0)));
            right = right.max(to);
        }
        let class = if row.top { "tb" } else { "" };
        svg.text(class, (right + 8.0, y + 4.0), &format!("{} s", row.shown));
    }
}

/// Number before the name of a task: `013` of `013-create-file`.
fn number(task: &str) -> &str {
    task.split_once('-').map_or(task, |(number, _)| number)
}

fn place(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)
}

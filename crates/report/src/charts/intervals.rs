//! Ranking of one test: a row per filesystem with all repetitions as dots, the median, its
//! interval, and its letters, best first. A bracket marks the top group.

use crate::{
    charts::axis::{Across, Axis},
    svg::{Svg, WIDTH, color},
};

/// One filesystem, in display units.
#[derive(Clone, Debug)]
pub(crate) struct IntervalRow {
    pub(crate) name: String,
    /// Index of the filesystem, for color and shape.
    pub(crate) series: usize,
    pub(crate) values: Vec<f64>,
    pub(crate) median: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// Median as text.
    pub(crate) shown: String,
    pub(crate) letters: String,
    pub(crate) top: bool,
    /// Reason for a missing value or rank.
    pub(crate) note: String,
}

const LEFT: f64 = 128.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 10.0;
const ROW: f64 = 30.0;
const BOTTOM: f64 = 46.0;
/// Height of a second line below the axis.
const LINE: f64 = 14.0;
/// Maximum length of the names in a chart that is legible on a small screen.
const SHORT: usize = 8;
/// Height of the dots of a row.
const LANES: f64 = 20.0;

/// Maximum length of a note in the plot.
const NOTE_MAX: usize = 72;

/// Draws the chart. `axis` is the quantity, its unit, and the direction.
pub(crate) fn intervals(axis: &str, all: &[IntervalRow]) -> Svg {
    let bottom = TOP + all.len() as f64 * ROW;
    let values = all.iter().flat_map(|row| {
        let ends = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
        row.values.iter().copied().chain(ends)
    });
    let across = Across::new(Axis::over(values, 5), (LEFT, WIDTH - RIGHT));
    let note = across.axis.note();
    let height = bottom + BOTTOM + if note.is_some() { LINE } else { 0.0 };
    let mut svg = Svg::new(WIDTH, height);
    if all.iter().all(|row| row.median.is_some() && row.name.chars().count() <= SHORT) {
        svg.shrink();
    }
    across.ground(&mut svg, (TOP, bottom), axis);
    if let Some(note) = note {
        svg.text("tm ta", ((LEFT + WIDTH - RIGHT) / 2.0, bottom + BOTTOM - 10.0 + LINE), note);
    }
    for (index, row) in all.iter().enumerate() {
        let top = TOP + index as f64 * ROW;
        svg.about(&row.name);
        draw(&mut svg, &across, row, top + 0.5 * ROW);
        // Bracket of the top group, connected to that of the next row.
        if row.top {
            let x = WIDTH - RIGHT + 12.0;
            let next = all.get(index + 1).is_some_and(|row| row.top);
            let end = if next { top + ROW + 5.0 } else { top + ROW - 5.0 };
            svg.line("b", (x, top + 5.0), (x, end));
        }
        svg.end();
    }
    svg
}

fn draw(svg: &mut Svg, across: &Across, row: &IntervalRow, y: f64) {
    let name = shortened(&row.name, 17);
    svg.text(if row.top { "te tb" } else { "te" }, (LEFT - 14.0, y + 4.0), &name);
    let Some(median) = row.median else {
        svg.text("tn", (LEFT + 4.0, y + 4.0), &shortened(&row.note, NOTE_MAX));
        return;
    };
    let class = color(row.series);
    // From the first repetition at the top to the last one at the bottom.
    let last = row.values.len().saturating_sub(1).max(1) as f64;
    let lane = |index: usize| (index as f64 / last - 0.5) * LANES;
    let dots = row.values.iter().enumerate();
    let dots = dots.map(|(index, value)| (across.x(*value), y + lane(index)));
    svg.dots(&format!("r {class}"), &dots.collect::<Vec<_>>());
    if let Some((low, high)) = row.interval {
        svg.line(&format!("i {class}"), (across.x(low), y), (across.x(high), y));
    }
    svg.marker(row.series, (across.x(median), y));
    let value = WIDTH - RIGHT + 22.0;
    if row.letters.is_empty() && !row.note.is_empty() {
        svg.text("", (value, y - 2.0), &row.shown);
        svg.text("te tn", (WIDTH - 4.0, y + 11.0), &shortened(&row.note, 12));
    } else {
        svg.text("", (value, y + 4.0), &row.shown);
        svg.text("te tb", (WIDTH - 4.0, y + 4.0), &shortened(&row.letters, 12));
    }
}

/// Text shortened to a number of letters. The tables have the full text.
pub(crate) fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters - 1).chain(['…']).collect()
}

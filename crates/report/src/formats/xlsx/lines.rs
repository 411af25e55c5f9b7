//! Sheets of sweeps: a table of levels × filesystems, and a chart with a line per filesystem.

use super::{
    book::{Book, Digits, Look, Sheet},
    drawn::{self, Line, Words},
};
use crate::{
    charts::data::{Series, SweepValue},
    svg::looks,
    units::capital,
    view::{Sweep, View, metric_label},
};

/// Columns per filesystem: median, low, high, and distances from the median to high and to low.
const WIDTH: usize = 5;

/// Adds a sheet for each sweep.
pub(super) fn sheets(book: &mut Book, view: &View) {
    let names: Vec<String> = view.filesystems.iter().map(|own| own.name.clone()).collect();
    let looks = looks::of(&names);
    view.sweeps.iter().for_each(|sweep| sheet(book, sweep, &looks));
}

/// Adds the sheet of a sweep, given the looks of the filesystems.
fn sheet(book: &mut Book, sweep: &Sweep, looks: &[usize]) {
    let unit = if sweep.scale.name.is_empty() { "count" } else { sweep.scale.name };
    let better = sweep.metric.spec().better.label();
    let quantity = format!("{}, {unit}, {better}", capital(&metric_label(sweep.metric)));
    let title = match sweep.findings.label.is_empty() {
        true => format!("{} by {}", capital(&sweep.test), sweep.parameter),
        false => sweep.findings.label.clone(),
    };
    let mut caption = vec![format!(
        "{quantity}. n = {} repetitions at each point; medians with the ends of their 95 % \
         confidence intervals if there are enough repetitions.",
        sweep.repetitions
    )];
    caption.extend(sweep.findings.findings.iter().map(|finding| finding.text.clone()));
    if !sweep.codes.is_empty() {
        let codes: Vec<&str> = sweep.codes.iter().copied().collect();
        caption.push(format!("Warnings: {}.", codes.join(", ")));
    }
    let absent = sweep.absent.iter().map(|(name, reason)| format!("Missing: {name}, {reason}."));
    caption.extend(absent);
    let short = format!("{} by {}", sweep.test, sweep.parameter);
    let Some(mut sheet) = book.sheet(&short, &title, &caption) else {
        return;
    };
    let head = sheet.row;
    levels(&mut sheet, sweep);
    for (index, series) in sweep.series.iter().enumerate() {
        columns(&mut sheet, head, 1 + index * WIDTH, series, unit);
    }
    let last = head + 1 + u32::try_from(sweep.levels.len()).unwrap_or(0);
    let lines: Vec<Line> = (0..sweep.series.len())
        .map(|index| {
            let first = 1 + index * WIDTH;
            let of = |column| (head + 2, first + column, last, first + column);
            Line {
                name: (head, first),
                levels: (head + 2, 0, last, 0),
                values: of(0),
                interval: Some((of(3), of(4))),
                look: looks[sweep.series[index].filesystem % looks.len()],
            }
        })
        .collect();
    let drawn = Words {
        title: &title,
        across: &sweep.parameter,
        up: &quantity,
        description: &caption.join(" "),
    };
    drawn::chart(&mut sheet, (last + 2, 0), &drawn, &lines, None);
    sheet.freeze(head + 2, 1);
    sheet.widths([(0, 16.0)]);
    book.add(sheet);
}

/// Levels in the first column.
fn levels(sheet: &mut Sheet, sweep: &Sweep) {
    let head = sheet.row;
    sheet.text(head + 1, 0, Look::Header, &sweep.parameter);
    for (row, level) in (head + 2..).zip(&sweep.levels) {
        sheet.text(row, 0, Look::Text, &level.label);
    }
}

/// Columns of a filesystem.
fn columns(sheet: &mut Sheet, head: u32, first: usize, series: &Series, unit: &str) {
    sheet.across(head, (first, first + WIDTH - 1), &series.name);
    let titles = ["median", "low", "high", "up to high", "down to low"];
    for (column, title) in (first..).zip(titles) {
        sheet.text(head + 1, column, Look::Header, &format!("{title}, {unit}"));
    }
    for (row, value) in (head + 2..).zip(&series.values) {
        let Some(SweepValue { median, ends }) = value else { continue };
        sheet.number(row, first, *median, Digits::All);
        let Some((low, high)) = ends else { continue };
        for (column, value) in (first + 1..).zip([*low, *high, high - median, median - low]) {
            sheet.number(row, column, value, Digits::All);
        }
    }
}

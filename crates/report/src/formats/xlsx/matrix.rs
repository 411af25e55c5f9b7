//! Sheets for two swept parameters. Each test has one sheet with a matrix per filesystem.
//!
//! A matrix is colored from the smallest to the largest median of the test, and followed by
//! intervals, n, and a line chart. The layout is that of common spreadsheets of file size and block
//! size, without the surface chart.

use analysis::Summary;
use model::Value;
use rust_xlsxwriter::{ConditionalFormat2ColorScale, ConditionalFormatType};

use super::{
    book::{Book, Digits, Look, Sheet, at, places},
    drawn::{self, Line, Words},
};
use crate::{
    units::{Scale, capital, one_line},
    view::{Entry, Suite, Test, View, WorkPoint, alike, level, metric_label, tests, without},
};

/// Minimum number of levels of both parameters. A matrix with fewer is a single row or column.
const LEVELS_MIN: usize = 2;

/// Points that differ only in two parameters.
struct Plane<'a> {
    /// Name and levels, in ascending order, of the parameters of rows and columns.
    rows: (&'a str, Vec<&'a Value>),
    columns: (&'a str, Vec<&'a Value>),
    points: Vec<&'a WorkPoint>,
}

/// Adds the sheets of all suites.
pub(super) fn sheets(book: &mut Book, view: &View) {
    for suite in &view.suites {
        for plane in planes(suite) {
            for name in tests(&plane.points) {
                sheet(book, view, &plane, name);
            }
        }
    }
}

/// Pairs of swept numeric parameters, for each combination of all other parameters.
fn planes<'a>(suite: &'a Suite) -> Vec<Plane<'a>> {
    let mut planes = Vec::new();
    for (index, rows) in suite.swept.iter().enumerate() {
        for columns in &suite.swept[index + 1..] {
            let has = |point: &&WorkPoint| {
                [rows, columns].into_iter().all(|name| level(point, name).is_some())
            };
            let groups = alike(suite.points.iter().filter(has), &[rows.as_str(), columns.as_str()]);
            let plane = |points: Vec<&'a WorkPoint>| {
                let [first, second] = [rows, columns].map(|name| levels(&points, name));
                let wide = first.len().min(second.len()) >= LEVELS_MIN;
                wide.then_some(Plane { rows: (rows, first), columns: (columns, second), points })
            };
            planes.extend(groups.into_iter().filter_map(plane));
        }
    }
    planes
}

/// Levels of a parameter in ascending order.
fn levels<'a>(points: &[&'a WorkPoint], parameter: &str) -> Vec<&'a Value> {
    let mut levels: Vec<(f64, &Value)> = Vec::new();
    for point in points {
        let Some(value) = point.parameters.get(parameter) else { continue };
        let Some(level) = level(point, parameter) else { continue };
        if !levels.iter().any(|(_, known)| *known == value) {
            levels.push((level.number, value));
        }
    }
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    levels.into_iter().map(|(_, value)| value).collect()
}

impl Plane<'_> {
    /// Entry of a filesystem for a test, at the levels of a row and a column.
    fn entry(&self, name: &str, filesystem: usize, row: &Value, column: &Value) -> Option<&Entry> {
        let here = |point: &&&WorkPoint| {
            point.parameters.get(self.rows.0) == Some(row)
                && point.parameters.get(self.columns.0) == Some(column)
        };
        self.points.iter().find(here)?.test(name)?.entry(filesystem)
    }

    /// Label of the points without the two parameters.
    fn place(&self) -> String {
        let first = self.points[0];
        [self.rows.0, self.columns.0].into_iter().fold(first.label.clone(), |label, name| {
            match first.parameters.get(name) {
                Some(value) => without(&label, name, value),
                None => label,
            }
        })
    }
}

/// Sheet of a test.
fn sheet(book: &mut Book, view: &View, plane: &Plane<'_>, name: &str) {
    let same = plane.points.iter().flat_map(|point| &point.tests).filter(|test| test.name == name);
    let same: Vec<&Test> = same.collect();
    let Some(first) = same.first() else { return };
    let summaries = same.iter().flat_map(|test| &test.entries);
    let medians = summaries.filter_map(|entry| entry.summary.as_ref()).map(|own| own.median);
    let scale = Scale::of(first.metric.spec().unit, medians.clone());
    let (least, most) = medians
        .map(|median| scale.number(median))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), median| {
            (least.min(median), most.max(median))
        });
    if !least.is_finite() {
        return;
    }
    let unit = if scale.name.is_empty() { "count" } else { scale.name };
    let better = first.metric.spec().better.label();
    let quantity = format!("{}, {unit}, {better}", capital(&metric_label(first.metric)));
    let over = format!("{} × {}", plane.rows.0, plane.columns.0);
    let title = format!("{}, {} by {over}", capital(name), plane.place());
    let caption = [format!(
        "{quantity}. Medians, from the least (white) to the most (blue) of all filesystems; to the \
         right the ends of their 95 % confidence intervals if there are enough repetitions, n, and \
         warnings."
    )];
    let Some(mut sheet) = book.sheet(&format!("{name} matrix"), &title, &caption) else {
        return;
    };
    let about = About { plane, name, scale, quantity: &quantity, bounds: (least, most) };
    for (index, filesystem) in view.filesystems.iter().enumerate() {
        block(&mut sheet, &about, (index, &filesystem.name));
    }
    sheet.widths([(0, 14.0)]);
    book.add(sheet);
}

struct About<'a> {
    plane: &'a Plane<'a>,
    name: &'a str,
    scale: Scale,
    quantity: &'a str,
    /// Smallest and largest median of all filesystems.
    bounds: (f64, f64),
}

/// Matrices of a filesystem next to each other, and the chart below.
fn block(sheet: &mut Sheet, about: &About<'_>, (index, filesystem): (usize, &str)) {
    let (rows, columns) = (&about.plane.rows.1, &about.plane.columns.1);
    let (top, width) = (sheet.row, columns.len());
    let heads = ["median", "low", "high", "n", "warnings"];
    for (number, head) in heads.iter().enumerate() {
        let first = 1 + number * (width + 1);
        sheet.across(top, (first, first + width - 1), &format!("{filesystem}: {head}"));
        let corner = format!("{} \\ {}", about.plane.rows.0, about.plane.columns.0);
        sheet.text(top + 1, first - 1, Look::Header, &corner);
        for (column, level) in (first..).zip(columns) {
            sheet.text(top + 1, column, Look::Header, &one_line(&level.to_string()));
        }
        for (row, level) in (top + 2..).zip(rows) {
            sheet.text(row, first - 1, Look::Header, &one_line(&level.to_string()));
        }
    }
    let mut any = false;
    for (row, row_level) in (top + 2..).zip(rows) {
        for (column, column_level) in columns.iter().enumerate() {
            let entry = about.plane.entry(about.name, index, row_level, column_level);
            let Some(entry) = entry else { continue };
            any |= entry.summary.is_some();
            point(sheet, about.scale, (row, 1 + column, width + 1), entry);
        }
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(0);
    let last = top + 1 + count(rows.len());
    sheet.row = last + 2;
    if !any {
        return;
    }
    colored(sheet, (top + 2, 1, last, width), about.bounds);
    let line = |(look, row): (usize, u32)| Line {
        name: (row, 0),
        levels: (top + 1, 1, top + 1, width),
        values: (row, 1, row, width),
        interval: None,
        look,
    };
    let lines: Vec<Line> = (0..rows.len()).zip(top + 2..).map(line).collect();
    let drawn = Words {
        title: &format!("{}: {filesystem}", capital(about.name)),
        across: about.plane.columns.0,
        up: about.quantity,
        description: &format!("{}, one line per {}", about.quantity, about.plane.rows.0),
    };
    drawn::chart(sheet, (last + 2, 0), &drawn, &lines, Some(about.bounds.1 * 1.05));
    sheet.row += drawn::ROWS + 1;
}

/// Writes the numbers of a point into the matrices, which are `step` columns apart.
fn point(sheet: &mut Sheet, scale: Scale, (row, column, step): (u32, usize, usize), entry: &Entry) {
    let Some(summary) = &entry.summary else {
        let reason = match &entry.status {
            crate::view::Status::Nothing(reason) => reason.as_str(),
            crate::view::Status::Measured => "not measured",
        };
        return sheet.text(row, column, Look::Caption, reason);
    };
    let Summary { n, median, interval, .. } = summary;
    let digits = Digits::Places(places(&scale.shown(summary).value), false);
    sheet.number(row, column, scale.number(*median), digits);
    if let Some(interval) = interval {
        sheet.number(row, column + step, scale.number(interval.low), digits);
        sheet.number(row, column + 2 * step, scale.number(interval.high), digits);
    }
    sheet.number(row, column + 3 * step, f64::from(*n), Digits::Places(0, false));
    if entry.codes.is_empty() {
        return;
    }
    sheet.text(row, column + 4 * step, Look::Text, &entry.codes.join(", "))
}

/// Colors the medians of all filesystems on one scale. Black text is readable on both end colors
/// (contrast at least 8 to 1).
fn colored(
    sheet: &mut Sheet,
    (row, column, last_row, last_column): (u32, usize, u32, usize),
    (least, most): (f64, f64),
) {
    let colors = ConditionalFormat2ColorScale::new()
        .set_minimum(ConditionalFormatType::Number, least)
        .set_maximum(ConditionalFormatType::Number, most)
        .set_minimum_color(rust_xlsxwriter::Color::RGB(0xFF_FFFF))
        .set_maximum_color(rust_xlsxwriter::Color::RGB(0x56_B4E9));
    let (column, last_column) = (at(column), at(last_column));
    sheet.write(|sheet| {
        sheet.add_conditional_format(row, column, last_row, last_column, &colors).map(|_| ())
    });
}

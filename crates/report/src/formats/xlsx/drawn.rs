//! Line charts that the spreadsheet program draws from cells, in the colors of the report.

use rust_xlsxwriter::{
    Chart, ChartErrorBars, ChartErrorBarsType, ChartFormat, ChartLine, ChartLineDashType,
    ChartMarker, ChartMarkerType, ChartRange, ChartSolidFill, ChartType, Color,
};

use super::book::{Sheet, at, plain};
use crate::svg::looks;

/// Maximum length of an alternative text in characters, without the ellipsis.
const ALTERNATIVE_MAX: usize = 254;

/// Markers and dashes that distinguish series without colors.
const MARKERS: [ChartMarkerType; 8] = [
    ChartMarkerType::Circle,
    ChartMarkerType::Square,
    ChartMarkerType::Triangle,
    ChartMarkerType::Diamond,
    ChartMarkerType::X,
    ChartMarkerType::PlusSign,
    ChartMarkerType::Star,
    ChartMarkerType::LongDash,
];
const DASHES: [ChartLineDashType; 4] = [
    ChartLineDashType::Solid,
    ChartLineDashType::Dash,
    ChartLineDashType::RoundDot,
    ChartLineDashType::DashDot,
];

/// Rows that a chart covers at the default row height.
pub(super) const ROWS: u32 = 19;

/// Texts around a chart.
pub(super) struct Words<'a> {
    pub(super) title: &'a str,
    /// Quantity of the horizontal axis.
    pub(super) across: &'a str,
    /// Quantity, unit, and direction of the vertical axis.
    pub(super) up: &'a str,
    /// Description for screen readers.
    pub(super) description: &'a str,
}

/// Line: cells of its name, of its levels, of its values, and of the distances to the upper and
/// lower ends of its intervals.
pub(super) struct Line {
    pub(super) name: (u32, usize),
    pub(super) levels: Range,
    pub(super) values: Range,
    pub(super) interval: Option<(Range, Range)>,
    /// Index of color, marker, and dash: the look of a filesystem, or the number of a level.
    pub(super) look: usize,
}

/// First row, first column, last row, last column.
pub(super) type Range = (u32, usize, u32, usize);

/// Inserts a chart with its upper left corner in a cell. `most` is the upper end of the vertical
/// axis, for charts that are compared.
pub(super) fn chart(
    sheet: &mut Sheet,
    (row, column): (u32, usize),
    words: &Words<'_>,
    lines: &[Line],
    most: Option<f64>,
) {
    let name = sheet.name.clone();
    let range = |(row, column, last_row, last_column): Range| {
        ChartRange::new_from_range(&name, row, at(column), last_row, at(last_column))
    };
    let mut chart = Chart::new(ChartType::Line);
    chart.title().set_name(&shown(words.title));
    chart.x_axis().set_name(&shown(words.across));
    chart.y_axis().set_name(&shown(words.up)).set_min(0.0);
    if let Some(most) = most.filter(|most| *most > 0.0) {
        chart.y_axis().set_max(most);
    }
    chart.set_alt_text(alternative(words.description)).set_width(640).set_height(360);
    for line in lines {
        let color = Color::RGB(looks::light(line.look));
        let marker = MARKERS[line.look % MARKERS.len()];
        let dash = DASHES[line.look % DASHES.len()];
        let mut shape = ChartMarker::new();
        let mut fill = ChartFormat::new();
        fill.set_solid_fill(ChartSolidFill::new().set_color(color));
        fill.set_line(ChartLine::new().set_color(color));
        shape.set_type(marker).set_size(6).set_format(&mut fill);
        let mut stroke = ChartFormat::new();
        stroke.set_line(ChartLine::new().set_color(color).set_width(1.75).set_dash_type(dash));
        let (name_row, name_column) = line.name;
        let series = chart.add_series();
        series
            .set_name(&range((name_row, name_column, name_row, name_column)))
            .set_categories(&range(line.levels))
            .set_values(&range(line.values))
            .set_marker(&shape)
            .set_format(&mut stroke);
        if let Some((up, down)) = line.interval {
            let mut thin = ChartFormat::new();
            thin.set_line(ChartLine::new().set_color(color).set_width(1.0));
            let mut bars = ChartErrorBars::new();
            bars.set_type(ChartErrorBarsType::Custom(range(up), range(down))).set_format(&mut thin);
            series.set_y_error_bars(&bars);
        }
    }
    sheet.write(|sheet| sheet.insert_chart(row, at(column), &chart).map(|_| ()));
}

/// Alternative text, truncated at a space, because the writer omits a text of more than 255
/// characters.
fn alternative(text: &str) -> String {
    let text = plain(text);
    let Some((end, _)) = text.char_indices().nth(ALTERNATIVE_MAX) else { return text };
    let cut = text[..end].rfind(' ').unwrap_or(end);
    format!("{}…", &text[..cut])
}

/// Text that the writer does not interpret as a reference to cells.
fn shown(text: &str) -> String {
    let text = plain(text);
    if text.starts_with('=') { format!("'{text}") } else { text }
}

//! Values without intervals: panels with one value per row, or two connected by a line, and sums as
//! bars from zero.
//!
//! The first of two values is a ring and the second a marker, so that they differ without color.
//! The axis is linear, or logarithmic with a tick at each power of ten. Panels of different
//! quantities have separate axes. The chart is as wide as the names require.

use crate::{
    charts::{
        axis::{Across, Axis},
        intervals::shortened,
    },
    svg::{Svg, WIDTH, color},
    units::{fixed, significant},
};

/// Panels with rows.
#[derive(Clone, Debug)]
pub(crate) struct Panels {
    /// Quantity, unit, and direction.
    pub(crate) axis: String,
    pub(crate) logarithmic: bool,
    /// True if every panel has a separate axis, and every marker its value.
    pub(crate) apart: bool,
    /// A number in display units as text.
    pub(crate) shown: fn(f64) -> String,
    /// Labels at the left of the rows.
    pub(crate) rows: Vec<String>,
    pub(crate) panels: Vec<Panel>,
}

/// One panel, in display units.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) name: String,
    /// One for each row.
    pub(crate) marks: Vec<Option<Marks>>,
}

/// Marks in a row of a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Marks {
    /// For color and shape.
    pub(crate) series: usize,
    /// A ring.
    pub(crate) first: Option<f64>,
    /// The marker.
    pub(crate) second: Option<f64>,
}

impl Marks {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.first.into_iter().chain(self.second)
    }
}

const RIGHT: f64 = 24.0;
const TOP: f64 = 24.0;
const ROW: f64 = 16.0;
const GAP: f64 = 34.0;
/// Height of ticks and their labels below a row of panels.
const BELOW: f64 = 34.0;
/// Height of the text below all panels.
const BOTTOM: f64 = 26.0;
/// Maximum number of panels per row if all fit; otherwise fewer, wider panels are used.
const ALL_ACROSS: usize = 4;
const ACROSS: usize = 3;
/// Width of a letter; above the average, so that names do not reach the plot.
const LETTER: f64 = 6.5;
/// Maximum length of names at the left and above a panel.
const NAME_MAX: usize = 64;
/// Width of a value right of a panel.
const NUMBER: f64 = 52.0;
/// Minimum width of a panel, and of the label of a tick.
const PANEL: f64 = 128.0;
const TICK: f64 = 38.0;

/// Ticks of a panel; labels that do not fit into the width `wide` are empty.
fn thinned(axis: &Axis, wide: f64) -> impl Iterator<Item = (f64, &str)> {
    let labeled = axis.ticks.iter().filter(|(_, label)| !label.is_empty()).count();
    let every = (labeled as f64 * TICK / wide).ceil().max(1.0);
    let ticks = axis.ticks.iter().enumerate();
    ticks.map(move |(at, (tick, label))| {
        (*tick, if at as f64 % every == 0.0 { label.as_str() } else { "" })
    })
}

impl Panels {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let frame = self.frame();
        let Frame { across, left, wide, gap, width, .. } = frame;
        let lines = self.panels.len().div_ceil(across).max(1);
        let tall = TOP + self.rows.len() as f64 * ROW + BELOW;
        let mut svg = Svg::new(width, lines as f64 * tall + BOTTOM);
        let values = |panel: &'_ Panel| -> Vec<f64> {
            panel.marks.iter().flatten().flat_map(Marks::values).collect()
        };
        let axis = |values: Vec<f64>| match self.logarithmic {
            true => Axis::powers(values.into_iter()),
            false => Axis::over(values.into_iter().chain([0.0]), 3),
        };
        let all = axis(self.panels.iter().flat_map(values).collect());
        for (index, panel) in self.panels.iter().enumerate() {
            let top = (index / across) as f64 * tall + TOP;
            if index % across == 0 {
                for (at, row) in self.rows.iter().enumerate() {
                    let y = top + (at as f64 + 0.5) * ROW;
                    svg.text("te", (left - 12.0, y + 4.0), &shortened(row, NAME_MAX));
                }
            }
            let x = left + (index % across) as f64 * (wide + gap);
            let own = self.apart.then(|| axis(values(panel)));
            self.panel(&mut svg, own.as_ref().unwrap_or(&all), panel, (x, top, wide));
        }
        let notes = [
            self.logarithmic.then_some("logarithmic"),
            self.apart.then_some("separate axis per panel"),
        ];
        let notes = notes.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let words = match notes.is_empty() {
            true => self.axis.clone(),
            false => format!("{} ({notes})", self.axis),
        };
        let bottom = lines as f64 * tall + BOTTOM - 8.0;
        svg.text("tm ta", (width / 2.0, bottom), &words);
        svg
    }

    /// Positions of the panels: wide enough for all names in full.
    fn frame(&self) -> Frame {
        let letters = |text: &str| text.chars().count().min(NAME_MAX) as f64 * LETTER;
        let most = |all: &mut dyn Iterator<Item = &str>| all.map(letters).fold(0.0, f64::max);
        let left = (most(&mut self.rows.iter().map(String::as_str)) + 24.0).max(96.0);
        let across = match self.panels.len() {
            few @ 0..=ALL_ACROSS => few.max(1),
            _ => ACROSS,
        };
        let gap = if self.apart { GAP + NUMBER } else { GAP };
        let right = if self.apart { RIGHT + NUMBER } else { RIGHT };
        let name = most(&mut self.panels.iter().map(|panel| panel.name.as_str()));
        let least = PANEL.max(name - gap + 12.0);
        let gaps = gap * (across - 1) as f64;
        let wide = ((WIDTH - left - right - gaps) / across as f64).max(least);
        let width = left + wide * across as f64 + gaps + right;
        Frame { across, left, wide, gap, width }
    }

    fn panel(&self, svg: &mut Svg, axis: &Axis, panel: &Panel, frame: (f64, f64, f64)) {
        let (left, top, wide) = frame;
        let bottom = top + self.rows.len() as f64 * ROW;
        svg.text("tb", (left, top - 8.0), &shortened(&panel.name, NAME_MAX));
        let x = |value: f64| {
            (value > 0.0 || !axis.logarithmic).then(|| left + axis.share(value) * wide)
        };
        for (tick, label) in thinned(axis, wide) {
            let x = left + axis.place(tick) * wide;
            svg.line("g", (x, top), (x, bottom));
            if !label.is_empty() {
                svg.text("tm ta", (x, bottom + 15.0), label);
            }
        }
        for (at, marks) in panel.marks.iter().enumerate() {
            let y = top + (at as f64 + 0.5) * ROW;
            let Some(marks) = marks else {
                svg.text("tn", (left + 4.0, y + 4.0), "none");
                continue;
            };
            svg.titled(&self.label(at, panel, marks));
            let class = color(marks.series);
            let (first, second) = (marks.first.and_then(x), marks.second.and_then(x));
            if let (Some(first), Some(second)) = (first, second) {
                svg.line(&format!("w {class}"), (first, y), (second, y));
            }
            if let Some(first) = first {
                svg.circle(&format!("o {class}"), (first, y), 3.6);
            }
            if let Some(second) = second {
                svg.marker(marks.series, (second, y));
            }
            if let Some(value) = marks.second.filter(|_| self.apart) {
                let text = (self.shown)(value);
                svg.text("te", (left + wide + NUMBER, y + 4.0), &text);
            }
            svg.end();
        }
    }

    /// Tooltip of a row: row, panel, and values.
    fn label(&self, at: usize, panel: &Panel, marks: &Marks) -> String {
        let row = self.rows.get(at).map_or("", String::as_str);
        let numbers = match (marks.first, marks.second) {
            (Some(first), Some(second)) => {
                format!("ring {}, marker {}", (self.shown)(first), (self.shown)(second))
            }
            (Some(first), None) => format!("ring {}", (self.shown)(first)),
            (None, Some(second)) => (self.shown)(second),
            (None, None) => "none".into(),
        };
        format!("{row}, {}: {numbers}", panel.name)
    }
}

/// Positions of the panels.
struct Frame {
    across: usize,
    /// Of the first panel.
    left: f64,
    wide: f64,
    gap: f64,
    /// Of the whole chart.
    width: f64,
}

/// Number with three significant digits, or all digits of its integral part.
pub(crate) fn three(value: f64) -> String {
    fixed(value, significant(value, 3).clamp(0, 6))
}

const BAR: f64 = 14.0;
const BARS_LEFT: f64 = 128.0;
const BARS_RIGHT: f64 = 120.0;

/// Sums as bars from zero: a row per series with a bar for each of up to two sums. Rows have their
/// names, and sums those in `names`; the first sum is drawn as an outline.
pub(crate) fn sums(axis: &str, rows: &[(String, Marks)], names: [&str; 2]) -> Svg {
    let tall: f64 = rows.iter().map(|(_, marks)| height(marks)).sum();
    let mut svg = Svg::new(WIDTH, 12.0 + tall + 46.0);
    let values = rows.iter().flat_map(|(_, marks)| marks.values());
    let across = Across::new(Axis::over(values.chain([0.0]), 5), (BARS_LEFT, WIDTH - BARS_RIGHT));
    across.ground(&mut svg, (8.0, 12.0 + tall), axis);
    let mut top = 12.0;
    for (name, marks) in rows {
        let middle = top + height(marks) / 2.0;
        svg.text("te", (BARS_LEFT - 14.0, middle + 4.0), &shortened(name, 17));
        let mut y = top + 4.0;
        for ((sum, class), name) in [(marks.first, "o"), (marks.second, "m")].into_iter().zip(names)
        {
            let Some(sum) = sum else { continue };
            let (left, right) = (across.x(0.0), across.x(sum));
            let class = format!("{class} {}", color(marks.series));
            svg.rect(&class, (left, y), (right - left, BAR));
            let words = format!("{sum:.2} {name}");
            svg.text("", (right + 6.0, y + BAR - 3.0), words.trim_end());
            y += BAR + 3.0;
        }
        top += height(marks);
    }
    svg
}

/// Height of a row of bars.
fn height(marks: &Marks) -> f64 {
    8.0 + (BAR + 3.0) * marks.values().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_value_is_labeled_and_bars_start_at_zero() {
        let marks = Marks { series: 0, first: Some(2.0), second: Some(4.0) };
        let panel = Panel { name: "<a>".into(), marks: vec![Some(marks), None] };
        let chart = Panels {
            axis: "seconds".into(),
            logarithmic: false,
            apart: true,
            shown: three,
            rows: vec!["one".into(), "two".into()],
            panels: vec![panel],
        };
        let svg = chart.render().finish("t", "d");
        assert!(svg.contains(">none</text>") && svg.contains("&lt;a&gt;"), "{svg}");
        assert!(svg.contains(">4.00</text>"), "{svg}");
        assert!(svg.contains("<title>one, &lt;a&gt;: ring 2.00, marker 4.00</title>"), "{svg}");
        let svg = sums("s", &[("xfs".into(), marks)], ["2004", "2006"]).finish("t", "d");
        assert!(svg.contains(" d=\"M128 "), "{svg}");
        assert!(svg.contains(">2.00 2004</text>") && svg.contains(">4.00 2006</text>"), "{svg}");
    }
}

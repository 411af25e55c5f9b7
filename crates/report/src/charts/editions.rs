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

/// Axis of a panel.
enum PanelScale {
    Linear(Axis),
    /// Exponents of ten of both ends.
    Logarithmic(i32, i32),
}

impl PanelScale {
    fn new(values: impl Iterator<Item = f64>, logarithmic: bool) -> Self {
        if !logarithmic {
            return Self::Linear(Axis::over(values.chain([0.0]), 3));
        }
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| *value > 0.0) {
            (low, high) = (low.min(value.log10()), high.max(value.log10()));
        }
        if low > high {
            return Self::Logarithmic(0, 1);
        }
        #[expect(clippy::cast_possible_truncation, reason = "exponents of ten are within ±324")]
        let (low, high) = ((low - 0.02).floor() as i32, (high + 0.02).ceil() as i32);
        Self::Logarithmic(low, high.max(low + 1))
    }

    /// Position as a share of the axis; `None` for values up to zero on a logarithmic axis.
    fn share(&self, value: f64) -> Option<f64> {
        match self {
            Self::Linear(axis) => Some(axis.share(value)),
            Self::Logarithmic(low, high) => {
                (value > 0.0).then(|| (value.log10() - f64::from(*low)) / f64::from(high - low))
            }
        }
    }

    /// Ticks with their labels; labels that do not fit into the width `wide` are empty. Logarithmic
    /// axes of one or two decades also have ticks at 2 and 5.
    fn ticks(&self, wide: f64) -> Vec<(f64, String)> {
        let room = |count: usize| (count as f64 * TICK / wide).ceil().max(1.0);
        let thinned = |all: Vec<(f64, String)>| {
            let every = room(all.len());
            let label = |(at, (tick, label)): (usize, (f64, String))| {
                let kept = at as f64 % every == 0.0;
                (tick, if kept { label } else { String::new() })
            };
            all.into_iter().enumerate().map(label).collect()
        };
        match self {
            Self::Linear(axis) => {
                thinned(axis.ticks.iter().map(|tick| (*tick, axis.label(*tick))).collect())
            }
            Self::Logarithmic(low, high) => {
                let powers = (*low..=*high).map(|exponent| (10f64.powi(exponent), power(exponent)));
                let mut all: Vec<(f64, String)> = thinned(powers.collect());
                if high - low <= 2 {
                    let between = (*low..*high).flat_map(|exponent| {
                        [2.0, 5.0].map(|digit| (digit * 10f64.powi(exponent), String::new()))
                    });
                    all.extend(between);
                }
                all
            }
        }
    }
}

/// A power of ten in short form: `0.01`, `100`, `10k`.
fn power(exponent: i32) -> String {
    match exponent {
        ..-4 => format!("1e{exponent}"),
        -4..0 => format!("{:.*}", usize::try_from(-exponent).unwrap_or(0), 10f64.powi(exponent)),
        0..4 => format!("{:.0}", 10f64.powi(exponent)),
        4..6 => format!("{:.0}k", 10f64.powi(exponent - 3)),
        6..9 => format!("{:.0}M", 10f64.powi(exponent - 6)),
        9.. => format!("1e{exponent}"),
    }
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
        let all = PanelScale::new(self.panels.iter().flat_map(values), self.logarithmic);
        for (index, panel) in self.panels.iter().enumerate() {
            let top = (index / across) as f64 * tall + TOP;
            if index % across == 0 {
                for (at, row) in self.rows.iter().enumerate() {
                    let y = top + (at as f64 + 0.5) * ROW;
                    svg.text("te", (left - 12.0, y + 4.0), &shortened(row, NAME_MAX));
                }
            }
            let x = left + (index % across) as f64 * (wide + gap);
            match self.apart {
                true => {
                    let own = PanelScale::new(values(panel).into_iter(), self.logarithmic);
                    self.panel(&mut svg, &own, panel, (x, top, wide));
                }
                false => self.panel(&mut svg, &all, panel, (x, top, wide)),
            }
        }
        let words = match (&all, self.apart) {
            (PanelScale::Logarithmic(..), false) => format!("{} (logarithmic)", self.axis),
            (PanelScale::Logarithmic(..), true) => {
                format!("{} (logarithmic, separate axis per panel)", self.axis)
            }
            (PanelScale::Linear(_), false) => self.axis.clone(),
            (PanelScale::Linear(_), true) => format!("{} (separate axis per panel)", self.axis),
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

    fn panel(&self, svg: &mut Svg, place: &PanelScale, panel: &Panel, frame: (f64, f64, f64)) {
        let (left, top, wide) = frame;
        let bottom = top + self.rows.len() as f64 * ROW;
        svg.text("tb", (left, top - 8.0), &shortened(&panel.name, NAME_MAX));
        let x = |value: f64| place.share(value).map(|share| left + share * wide);
        for (tick, label) in place.ticks(wide) {
            let Some(x) = x(tick) else { continue };
            svg.line("g", (x, top), (x, bottom));
            if !label.is_empty() {
                svg.text("tm ta", (x, bottom + 15.0), &label);
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

/// Sums as bars from zero: a row per series with a bar for each of up to two sums.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    pub(crate) axis: String,
    /// Name, series, and the sums with their labels; the first is drawn as an outline.
    pub(crate) rows: Vec<(String, Marks)>,
    /// Names of the first and the second sums; the first is empty if there is only one.
    pub(crate) names: (String, String),
}

const BAR: f64 = 14.0;
const BARS_LEFT: f64 = 128.0;
const BARS_RIGHT: f64 = 120.0;

impl Totals {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let tall: f64 = self.rows.iter().map(|(_, marks)| height(marks)).sum();
        let mut svg = Svg::new(WIDTH, 12.0 + tall + 46.0);
        let values = self.rows.iter().flat_map(|(_, marks)| marks.values());
        let across = Across::new(values.chain([0.0]), 5, (BARS_LEFT, WIDTH - BARS_RIGHT));
        across.ground(&mut svg, (8.0, 12.0 + tall), &self.axis);
        let mut top = 12.0;
        for (name, marks) in &self.rows {
            let middle = top + height(marks) / 2.0;
            svg.text("te", (BARS_LEFT - 14.0, middle + 4.0), &shortened(name, 17));
            let sums = [(marks.first, "o", &self.names.0), (marks.second, "m", &self.names.1)];
            let mut y = top + 4.0;
            for (sum, class, name) in sums {
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
}

/// Height of a row of bars.
fn height(marks: &Marks) -> f64 {
    8.0 + (BAR + 3.0) * marks.values().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_short() {
        assert_eq!([-3, 0, 2, 4, 6].map(power), ["0.001", "1", "100", "10k", "1M"]);
    }

    #[test]
    fn a_logarithmic_axis_holds_its_values_between_powers_of_ten() {
        let place = PanelScale::new([0.02, 150.0].into_iter(), true);
        assert!(matches!(place, PanelScale::Logarithmic(-2, 3)));
        assert!(place.share(0.02).is_some_and(|share| share > 0.0 && share < 0.2));
        assert_eq!(place.share(0.0), None);
        assert_eq!(place.ticks(240.0).len(), 6);
        assert!(place.ticks(240.0).iter().all(|(_, label)| !label.is_empty()));
        assert!(matches!(PanelScale::new(std::iter::empty(), true), PanelScale::Logarithmic(0, 1)));
    }

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
        let totals = Totals {
            axis: "s".into(),
            rows: vec![("xfs".into(), marks)],
            names: ("2004".into(), "2006".into()),
        };
        let svg = totals.render().finish("t", "d");
        assert!(svg.contains(" d=\"M128 "), "{svg}");
        assert!(svg.contains(">2.00 2004</text>") && svg.contains(">4.00 2006</text>"), "{svg}");
    }
}

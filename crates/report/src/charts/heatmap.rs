//! Ratios to the best of many tests: a row per test, a column per filesystem, and in each cell the
//! ratio and the test result. The background is darker the farther the filesystem is from the best.

use crate::{
    charts::{intervals::shortened, texture::Texture},
    svg::{Svg, WIDTH},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct HeatMap {
    /// Quantity and direction.
    pub(crate) axis: String,
    /// Meaning of the first of [`STEPS`].
    pub(crate) first: String,
    /// Name and index of each filesystem.
    pub(crate) columns: Vec<(String, usize)>,
    pub(crate) rows: Vec<HeatRow>,
}

/// Row of the chart.
#[derive(Clone, Debug)]
pub(crate) enum HeatRow {
    /// Heading of a group of rows.
    Heading(String),
    /// Title, and one cell per column.
    Cells(String, Vec<HeatCell>),
}

/// One filesystem in one row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeatCell {
    /// Index in [`STEPS`]; `None` if there is no number.
    pub(crate) step: Option<usize>,
    /// Printed text.
    pub(crate) shown: String,
    /// True if in the top group.
    pub(crate) top: bool,
    /// True if not significantly different from the best, which has a separate background.
    pub(crate) open: bool,
    /// True if the result has warnings.
    pub(crate) qualified: bool,
    /// Tooltip.
    pub(crate) title: String,
}

/// Steps of the color ramp: smallest ratio to the best of each, and its label. Steps differ by at
/// least 15 in lightness (CIELAB L*), so that they differ in gray print.
pub(crate) const STEPS: [(f64, &str); 6] = [
    (1.0, ""),
    (0.9, "≥ 0.9"),
    (0.75, "≥ 0.75"),
    (0.5, "≥ 0.5"),
    (0.25, "≥ 0.25"),
    (0.0, "< 0.25"),
];

/// First step with light letters.
const DARK_FROM: usize = 3;

const LEFT: f64 = 218.0;
const RIGHT: f64 = 8.0;
const ROW: f64 = 24.0;
const HEADING: f64 = 27.0;
/// Minimum and maximum width of a cell, and width of a letter.
const LEAST: f64 = 54.0;
const MOST: f64 = 110.0;
const LETTER: f64 = 7.0;
/// Height of the key, and of horizontal and rising names.
const KEY: f64 = 56.0;
const NAMES: f64 = 42.0;
const SLANTED: f64 = 84.0;
const BOTTOM: f64 = 10.0;
/// Maximum length of the name of a row, of a heading, and of a rising name.
const LABEL_MAX: usize = 30;
const HEADING_MAX: usize = 90;
const SLANTED_MAX: usize = 18;

impl HeatMap {
    /// Removes the columns of other names.
    pub(crate) fn retain(&mut self, shown: impl Fn(&str) -> bool) {
        let kept: Vec<bool> = self.columns.iter().map(|(name, _)| shown(name)).collect();
        for row in &mut self.rows {
            if let HeatRow::Cells(_, cells) = row {
                let mut kept = kept.iter();
                cells.retain(|_| kept.next().is_none_or(|kept| *kept));
            }
        }
        self.columns.retain(|(name, _)| shown(name));
    }

    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let columns = self.columns.len().max(1) as f64;
        let each = ((WIDTH - LEFT - RIGHT) / columns).clamp(LEAST, MOST);
        let width = WIDTH.max(LEFT + columns * each + RIGHT);
        let longest = self.columns.iter().map(|(name, _)| name.chars().count()).max();
        let slanted = longest.unwrap_or(0) as f64 * LETTER > each;
        let top = KEY + if slanted { SLANTED } else { NAMES };
        let heights: f64 = self.rows.iter().map(HeatRow::height).sum();
        let mut svg = Svg::new(width, top + heights + BOTTOM);
        svg.text("ta", (4.0, 14.0), &self.axis);
        self.key(&mut svg);
        self.names(&mut svg, each, top, slanted);
        let mut y = top;
        for row in &self.rows {
            match row {
                HeatRow::Heading(words) => {
                    svg.text("tb", (4.0, y + 18.0), &shortened(words, HEADING_MAX));
                }
                HeatRow::Cells(label, cells) => {
                    let at = (LEFT - 10.0, y + 16.5);
                    svg.text("te", at, &shortened(label, LABEL_MAX));
                    for (column, cell) in cells.iter().enumerate() {
                        let name = self.columns.get(column).map_or("", |(name, _)| name);
                        svg.about_titled(name, &cell.title);
                        cell.draw(&mut svg, (LEFT + column as f64 * each, y), (each, ROW));
                        svg.end();
                    }
                }
            }
            y += row.height();
        }
        svg
    }

    /// Key of the backgrounds.
    fn key(&self, svg: &mut Svg) {
        let mut x = 4.0;
        let words = STEPS.iter().map(|(_, words)| *words).enumerate();
        let words = words.map(|(step, words)| (Some(step), words));
        let lacking = self.rows.iter().any(|row| row.any(|cell| cell.step.is_none()));
        for (step, words) in words.chain(lacking.then_some((None, "not available"))) {
            let words = if step == Some(0) { self.first.as_str() } else { words };
            ground(svg, step, (x, 27.0), (18.0, 14.0));
            svg.text("", (x + 23.0, 38.5), words);
            x += 23.0 + words.chars().count() as f64 * LETTER + 12.0;
        }
        if self.rows.iter().any(|row| row.any(|cell| cell.open)) {
            svg.cell("ho", (x, 27.0), (18.0, 14.0));
            svg.text("", (x + 23.0, 38.5), "not significantly different");
        }
    }

    fn names(&self, svg: &mut Svg, each: f64, bottom: f64, slanted: bool) {
        for (column, (name, series)) in self.columns.iter().enumerate() {
            let x = LEFT + (column as f64 + 0.5) * each;
            svg.about(name);
            svg.marker(*series, (x, bottom - 10.0));
            if slanted {
                svg.rising("", (x + 2.0, bottom - 21.0), &shortened(name, SLANTED_MAX));
            } else {
                svg.text("tm", (x, bottom - 22.0), name);
            }
            svg.end();
        }
    }
}

impl HeatRow {
    /// True if a condition holds for any cell.
    fn any(&self, condition: impl Fn(&HeatCell) -> bool) -> bool {
        match self {
            Self::Heading(_) => false,
            Self::Cells(_, cells) => cells.iter().any(condition),
        }
    }

    fn height(&self) -> f64 {
        match self {
            Self::Heading(_) => HEADING,
            Self::Cells(..) => ROW,
        }
    }
}

impl HeatCell {
    fn draw(&self, svg: &mut Svg, corner: (f64, f64), (width, height): (f64, f64)) {
        let size = (width - 2.0, height - 2.0);
        match self.open {
            true => svg.cell("ho", corner, size),
            false => ground(svg, self.step, corner, size),
        }
        let middle = corner.0 + width / 2.0 - 1.0;
        let ink = match self.step {
            Some(_) if self.open => "tm",
            Some(step) if step >= DARK_FROM => "tm hl",
            Some(_) => "tm hd",
            None => "tm tn",
        };
        let bold = if self.top { " tb" } else { "" };
        svg.text(&format!("{ink}{bold}"), (middle, corner.1 + 15.5), &self.shown);
        if self.qualified {
            let class = match self.step {
                _ if self.open => "hi",
                Some(step) if step >= DARK_FROM => "hl",
                Some(_) | None => "hd",
            };
            svg.circle(class, (corner.0 + width - 8.0, corner.1 + 6.0), 2.5);
        }
    }
}

/// Background of a step, hatched if there is no number.
fn ground(svg: &mut Svg, step: Option<usize>, corner: (f64, f64), size: (f64, f64)) {
    match step {
        Some(step) => svg.cell(&format!("h{step}"), corner, size),
        None => {
            svg.rect("z", corner, size);
            svg.strokes("hx", &Texture::Rising.strokes(corner, size, 7.0));
        }
    }
}

/// Step of the color ramp for a ratio to the best, except the first one.
pub(crate) fn step(ratio: f64) -> usize {
    STEPS.iter().position(|(least, _)| ratio >= *least).unwrap_or(STEPS.len() - 1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: &str = include_str!("../../templates/style.css");

    /// A color of the style sheet: its channels from 0 to 1, linear.
    fn linear(variable: &str) -> [f64; 3] {
        let at = STYLE.find(&format!("{variable}: #")).unwrap() + variable.len() + 3;
        let channel = |from: usize| {
            let byte = u8::from_str_radix(&STYLE[at + from..at + from + 2], 16).unwrap();
            let share = f64::from(byte) / 255.0;
            // IEC 61966-2-1, as WCAG 2 uses it.
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        [0, 2, 4].map(channel)
    }

    fn luminance(variable: &str) -> f64 {
        let [red, green, blue] = linear(variable);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// CIELAB L* from relative luminance.
    fn lightness(variable: &str) -> f64 {
        116.0 * luminance(variable).cbrt() - 16.0
    }

    #[test]
    fn neighbors_of_the_ramp_differ_in_gray_print() {
        let steps: Vec<f64> =
            (0..STEPS.len()).map(|step| lightness(&format!("--h{step}"))).collect();
        for two in steps.windows(2) {
            assert!(two[0] - two[1] >= 15.0, "{steps:?}");
        }
    }

    #[test]
    fn letters_have_contrast_on_every_step() {
        for step in 0..STEPS.len() {
            let ink = if step >= DARK_FROM { "--hl" } else { "--hd" };
            let (ground, ink) = (luminance(&format!("--h{step}")), luminance(ink));
            let contrast = (ground.max(ink) + 0.05) / (ground.min(ink) + 0.05);
            // WCAG 2, 1.4.3.
            assert!(contrast >= 4.5, "step {step}: {contrast}");
        }
    }

    #[test]
    fn ratios_find_their_step() {
        assert_eq!([1.2, 1.0, 0.9, 0.89, 0.5, 0.3, 0.1, 0.0].map(step), [1, 1, 1, 2, 3, 4, 5, 5]);
    }

    #[test]
    fn charts_of_many_columns_are_wider_and_long_names_rise() {
        let columns = (0..20).map(|at| (format!("filesystem-{at}"), at)).collect();
        let map = HeatMap {
            axis: "a".into(),
            first: "top group".into(),
            columns,
            rows: vec![HeatRow::Heading("h".into())],
        };
        let svg = map.render().finish("t", "d");
        assert!(svg.contains("width=\"1306\" ") && svg.contains("min-width:1306px"), "{svg}");
        assert!(svg.contains("rotate(-32)"), "{svg}");
    }
}

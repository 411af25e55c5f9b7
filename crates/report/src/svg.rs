//! SVG as text: the few elements our charts are made of.
//!
//! Coordinates enter in pixels of the chart's own frame and leave with at most one decimal. Colors,
//! fonts and strokes are classes and variables of the page's style sheet (`templates/style.css`),
//! so that a chart follows the page into the dark and onto paper.

use std::fmt::{self, Write};

use crate::units::is_command;

/// Shapes that distinguish series without color, by index of the filesystem.
const MARKERS: usize = 8;

/// Colors that the style sheet defines as `--s0`, `--s1` …
const COLORS: usize = 7;

/// A chart under construction.
pub(crate) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height }
    }

    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(Short);
        self.push(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    /// A line through points.
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = coordinates(points);
        self.push(format_args!("<polyline class=\"{class}\" points=\"{points}\"/>"));
    }

    /// A filled area.
    pub(crate) fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = coordinates(points);
        self.push(format_args!("<polygon class=\"{class}\" points=\"{points}\"/>"));
    }

    /// A circle.
    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let [x, y, radius] = [at.0, at.1, radius].map(Short);
        self.push(format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"));
    }

    /// Text; the class sets its anchor.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        let [x, y] = [at.0, at.1].map(Short);
        let text = escape(text);
        self.push(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"));
    }

    /// A rectangle: its left upper corner, its width and height.
    pub(crate) fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(Short);
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    /// Straight lines apart from each other, as one element; none without any.
    pub(crate) fn strokes(&mut self, class: &str, lines: &[[(f64, f64); 2]]) {
        if lines.is_empty() {
            return;
        }
        let each = lines.iter().map(|[from, to]| {
            let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(Short);
            format!("M{x1},{y1}L{x2},{y2}")
        });
        let path = each.collect::<String>();
        self.push(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// Text that rises to the right from its start.
    pub(crate) fn rising(&mut self, class: &str, at: (f64, f64), text: &str) {
        let [x, y] = [at.0, at.1].map(Short);
        let text = escape(text);
        self.push(format_args!(
            "<text class=\"{class}\" transform=\"translate({x} {y}) rotate(-32)\">{text}</text>"
        ));
    }

    /// Group for one filesystem, by its name, with a tooltip, until [`Self::close`].
    pub(crate) fn open(&mut self, filesystem: &str, title: &str) {
        let [name, title] = [filesystem, title].map(escape);
        self.push(format_args!("<g data-filesystem=\"{name}\"><title>{title}</title>"));
    }

    /// Ends what [`Self::open`] began.
    pub(crate) fn close(&mut self) {
        self.push(format_args!("</g>"));
    }

    /// Begins what has a title, which a pointer shows, until [`Svg::end`].
    pub(crate) fn titled(&mut self, title: &str) {
        let title = escape(title);
        self.push(format_args!("<g><title>{title}</title>"));
    }

    /// Begins what is about one filesystem, by its name, until [`Svg::end`].
    pub(crate) fn about(&mut self, filesystem: &str) {
        let name = escape(filesystem);
        self.push(format_args!("<g data-filesystem=\"{name}\">"));
    }

    /// Ends what [`Svg::about`] or [`Svg::titled`] began.
    pub(crate) fn end(&mut self) {
        self.push(format_args!("</g>"));
    }

    /// The marker of a series.
    pub(crate) fn marker(&mut self, series: usize, at: (f64, f64), radius: f64) {
        let class = format!("m {}", color(series));
        let scaled = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points.iter().map(|(x, y)| (at.0 + x * radius, at.1 + y * radius)).collect()
        };
        match series % MARKERS {
            0 => self.circle(&class, at, radius),
            1 => {
                self.polygon(&class, &scaled(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]))
            }
            2 => self.polygon(&class, &scaled(&[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)])),
            3 => self
                .polygon(&class, &scaled(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)])),
            4 => self.polygon(&class, &scaled(&[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)])),
            5 => self.polygon(&class, &scaled(&PLUS)),
            6 => self.polygon(&class, &scaled(&HEXAGON)),
            _ => self.polygon(&class, &scaled(&BOW_TIE)),
        }
    }

    /// Finished chart. `id` is unique on the page; title and description are for screen readers.
    pub(crate) fn finish(self, id: &str, title: &str, description: &str) -> String {
        let [width, height] = [self.width, self.height].map(Short);
        format!(
            "<svg class=\"chart\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" \
             viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             xmlns=\"http://www.w3.org/2000/svg\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{}</svg>",
            escape(title),
            escape(description),
            self.body
        )
    }

    /// Drawing as decoration of a text with the same content.
    pub(crate) fn decoration(self) -> String {
        let [width, height] = [self.width, self.height].map(Short);
        format!(
            "<svg class=\"glyph\" aria-hidden=\"true\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\">{}</svg>",
            self.body.trim_end()
        )
    }

    fn push(&mut self, element: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

const PLUS: [(f64, f64); 12] = [
    (-0.4, -1.1),
    (0.4, -1.1),
    (0.4, -0.4),
    (1.1, -0.4),
    (1.1, 0.4),
    (0.4, 0.4),
    (0.4, 1.1),
    (-0.4, 1.1),
    (-0.4, 0.4),
    (-1.1, 0.4),
    (-1.1, -0.4),
    (-0.4, -0.4),
];
const HEXAGON: [(f64, f64); 6] =
    [(-1.1, 0.0), (-0.55, -0.95), (0.55, -0.95), (1.1, 0.0), (0.55, 0.95), (-0.55, 0.95)];
const BOW_TIE: [(f64, f64); 6] =
    [(-1.1, -1.0), (0.0, -0.35), (1.1, -1.0), (1.1, 1.0), (0.0, 0.35), (-1.1, 1.0)];

/// Class for the color of a series, and for its dashes if it is a line.
pub(crate) fn color(series: usize) -> String {
    format!("s{} d{}", series % COLORS, series % 4)
}

/// Text fit for an element or an attribute. XML has no way to write control characters at all
/// (w3.org/TR/xml, 2.2): they become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ if is_command(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// A coordinate, shown with at most one decimal. A large report has half a million of them: it is
/// not left to `{:.1}`, which finds the digits of any number.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round_ties_even();
        if tenths.is_nan() || tenths.abs() >= f64::from(i32::MAX) {
            return write!(f, "{:.1}", self.0);
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole, and not too large")]
        let tenths = tenths as i32;
        let (whole, tenth) = (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10);
        if tenths < 0 {
            f.write_str("-")?;
        }
        write!(f, "{whole}")?;
        if tenth > 0 { write!(f, ".{tenth}") } else { Ok(()) }
    }
}

fn coordinates(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let space = if at == 0 { "" } else { " " };
        let _ = write!(text, "{space}{},{}", Short(*x), Short(*y));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_leave_its_element() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("t", (0.0, 0.0), "<script>\"&");
        let chart = svg.finish("x", "a < b", "c & d");
        assert!(chart.contains("&lt;script&gt;&quot;&amp;</text>"), "{chart}");
        assert_eq!(escape("a\u{1b}b\u{202e}c\u{ffff}"), "a b c ");
        assert!(chart.contains(">a &lt; b</title>") && chart.contains(">c &amp; d</desc>"));
    }

    #[test]
    fn coordinates_are_short() {
        let shown = |value| Short(value).to_string();
        assert_eq!([1.0, 1.25, -0.01].map(shown), ["1", "1.2", "0"].map(String::from));
        assert_eq!([-0.26, 9.96, 1e9].map(shown), ["-0.3", "10", "1000000000.0"].map(String::from));
        for hundredths in -2000..2000 {
            let value = f64::from(hundredths) / 100.0 + 0.001;
            assert_eq!(shown(value).parse::<f64>(), format!("{value:.1}").parse::<f64>());
        }
    }
}

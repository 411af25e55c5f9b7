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
    /// Class and end of the paths that further lines of the class join: since their start, only
    /// lines and texts were drawn.
    open: Vec<(String, usize)>,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height, open: Vec::new() }
    }

    /// A straight line. Lines of a class are one element if nothing is between them.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let path = path(&[from, to]);
        if let Some(at) = self.open.iter().position(|(own, _)| own == class) {
            let end = self.open[at].1;
            self.body.insert_str(end, &path);
            let moved = self.open.iter_mut().filter(|(_, own)| *own >= end);
            moved.for_each(|(_, own)| *own += path.len());
            return;
        }
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{path}");
        self.open.push((class.to_owned(), self.body.len()));
        self.body.push_str("\"/>\n");
    }

    /// A line through points.
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let path = path(points);
        self.push(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// A filled area.
    pub(crate) fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        let path = path(points);
        self.push(format_args!("<path class=\"{class}\" d=\"{path}z\"/>"));
    }

    /// Dots as one element, whose stroke is as wide as they are.
    pub(crate) fn dots(&mut self, class: &str, points: &[(f64, f64)]) {
        // Not all programs draw a line without any length.
        let dot = |point: &(f64, f64)| format!("{}h.01", path(&[*point]));
        let path: String = points.iter().map(dot).collect();
        self.push(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// A circle.
    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let [x, y, radius] = [at.0, at.1, radius].map(Short);
        self.push(format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"));
    }

    /// Text; the classes, if any, set its anchor and its color.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        let [x, y] = [at.0, at.1].map(Short);
        let text = escape(text);
        let class = of_class(class);
        let _ = writeln!(self.body, "<text{class} x=\"{x}\" y=\"{y}\">{text}</text>");
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
        let path = lines.iter().map(|line| path(line)).collect::<String>();
        self.push(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// Text that rises to the right from its start.
    pub(crate) fn rising(&mut self, class: &str, at: (f64, f64), text: &str) {
        let [x, y] = [at.0, at.1].map(Short);
        let (text, class) = (escape(text), of_class(class));
        self.push(format_args!(
            "<text{class} transform=\"translate({x} {y}) rotate(-32)\">{text}</text>"
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

    /// Finished chart. Title and description are for screen readers.
    pub(crate) fn finish(self, title: &str, description: &str) -> String {
        let [width, height] = [self.width, self.height].map(Short);
        format!(
            "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{}</svg>",
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
        self.open.clear();
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

/// Attribute with classes, if there are some.
fn of_class(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
}

/// Tenths, which are exact.
fn tenths(value: f64) -> i64 {
    let tenths = (value * 10.0).round_ties_even();
    #[expect(clippy::cast_possible_truncation, reason = "saturates beyond any chart")]
    let tenths = tenths as i64;
    tenths
}

/// A coordinate, shown with at most one decimal. A large report has half a million of them: it is
/// not left to `{:.1}`, which finds the digits of any number.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Tenths(tenths(self.0)).fmt(f)
    }
}

/// A number of tenths.
struct Tenths(i64);

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, tenth) = (self.0.unsigned_abs() / 10, self.0.unsigned_abs() % 10);
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if whole > 0 || tenth == 0 {
            write!(f, "{whole}")?;
        }
        if tenth > 0 { write!(f, ".{tenth}") } else { Ok(()) }
    }
}

/// Data of a path through points (SVG 1.1, 8.3): the first position, then steps.
fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(8 * points.len());
    let mut before: Option<(i64, i64)> = None;
    let mut command = 'M';
    for (x, y) in points {
        let (x, y) = (tenths(*x), tenths(*y));
        let (right, down) = before.map_or((x, y), |(left, up)| (x - left, y - up));
        let next = match before {
            None => 'M',
            Some(_) if down == 0 => 'h',
            Some(_) if right == 0 => 'v',
            Some(_) => 'l',
        };
        // A step of the same kind needs no letter; a sign separates numbers.
        if next != command || before.is_none() {
            text.push(next);
        } else if (if next == 'v' { down } else { right }) >= 0 {
            text.push(' ');
        }
        let space = if down < 0 { "" } else { " " };
        let _ = match next {
            'h' => write!(text, "{}", Tenths(right)),
            'v' => write!(text, "{}", Tenths(down)),
            _ => write!(text, "{}{space}{}", Tenths(right), Tenths(down)),
        };
        (before, command) = (Some((x, y)), next);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_leave_its_element() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("", (0.0, 0.0), "<script>\"&");
        let chart = svg.finish("a < b", "c & d");
        assert!(chart.contains("&lt;script&gt;&quot;&amp;</text>"), "{chart}");
        assert_eq!(escape("a\u{1b}b\u{202e}c\u{ffff}"), "a b c ");
        assert!(chart.contains(">a &lt; b</title>") && chart.contains(">c &amp; d</desc>"));
    }

    #[test]
    fn coordinates_are_short() {
        let shown = |value| Short(value).to_string();
        assert_eq!([1.0, 1.25, -0.01].map(shown), ["1", "1.2", "0"].map(String::from));
        assert_eq!([-0.26, 9.96, 0.5].map(shown), ["-.3", "10", ".5"].map(String::from));
        for hundredths in -2000..2000 {
            let value = f64::from(hundredths) / 100.0 + 0.001;
            assert_eq!(shown(value).parse::<f64>(), format!("{value:.1}").parse::<f64>());
        }
    }

    #[test]
    fn paths_have_steps_that_add_up() {
        let points = [(1.0, 2.0), (3.5, 2.0), (3.5, 1.0), (3.0, 1.5), (4.0, 2.0), (5.0, 1.0)];
        assert_eq!(path(&points), "M1 2h2.5v-1l-.5 .5 1 .5 1-1");
        assert_eq!(path(&[(0.04, 0.0), (0.08, 0.0), (0.12, 0.0)]), "M0 0h.1 0");
        assert_eq!(path(&[]), "");
    }

    #[test]
    fn lines_of_a_class_are_one_element_until_something_is_drawn() {
        let mut svg = Svg::new(9.0, 9.0);
        svg.line("g", (0.0, 0.0), (0.0, 9.0));
        svg.text("tm", (0.0, 0.0), "0");
        svg.line("k", (1.0, 0.0), (1.0, 9.0));
        svg.line("g", (5.0, 0.0), (5.0, 9.0));
        svg.rect("z", (0.0, 0.0), (9.0, 9.0));
        svg.line("k", (2.0, 0.0), (2.0, 9.0));
        let lines: Vec<&str> = svg.body.lines().collect();
        assert_eq!(
            lines,
            [
                "<path class=\"g\" d=\"M0 0v9M5 0v9\"/>",
                "<text class=\"tm\" x=\"0\" y=\"0\">0</text>",
                "<path class=\"k\" d=\"M1 0v9\"/>",
                "<rect class=\"z\" x=\"0\" y=\"0\" width=\"9\" height=\"9\"/>",
                "<path class=\"k\" d=\"M2 0v9\"/>",
            ]
        );
    }
}

//! Charts as SVG text.
//!
//! Charts are laid out in pixels at [`WIDTH`] and stretched to the width of the page. Text,
//! markers, and cells have horizontal positions in percent and heights in pixels, so their size
//! does not change. Paths are in a nested element that is stretched without its strokes. It is
//! painted first, below everything else. Colors, fonts, and strokes are classes and variables of
//! the style sheet (`templates/style.css`), so that charts follow dark mode and print. Files of
//! charts are not stretched ([`crate::export`]).

use std::fmt::{self, Write};

use crate::units::is_command;

pub(crate) mod looks;

pub(crate) use looks::color;

/// Width of most charts in pixels of their layout.
pub(crate) const WIDTH: f64 = 760.0;

/// Largest deviation of a drawn line from its points, in pixels.
const TOLERANCE: f64 = 0.25;

/// A chart under construction.
pub(crate) struct Svg {
    /// Paths, which are stretched.
    paths: String,
    /// Texts, markers, circles, and cells, above the paths.
    marks: String,
    width: f64,
    height: f64,
    /// Class of a path and its end in `paths`: later lines of this class extend the path unless
    /// another element was drawn since.
    lines: Vec<(String, usize)>,
    /// Open groups.
    groups: Vec<Group>,
    /// True if the chart is legible on a small screen.
    small: bool,
}

/// Lengths of both layers before and after the tag that opens a group.
struct Group {
    paths: (usize, usize),
    marks: (usize, usize),
}

impl Svg {
    /// An empty chart with its size in pixels of the layout.
    pub(crate) fn new(width: f64, height: f64) -> Self {
        let (paths, marks) = (String::new(), String::new());
        Self { paths, marks, width, height, lines: Vec::new(), groups: Vec::new(), small: false }
    }

    /// Lets the chart shrink to the width of a small screen, instead of being scrolled.
    pub(crate) fn shrink(&mut self) {
        self.small = true;
    }

    /// A straight line. Consecutive lines of a class are one element.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let path = path(&[from, to]);
        if let Some(at) = self.lines.iter().position(|(own, _)| own == class) {
            let end = self.lines[at].1;
            self.paths.insert_str(end, &path);
            let moved = self.lines.iter_mut().filter(|(_, own)| *own >= end);
            moved.for_each(|(_, own)| *own += path.len());
            return;
        }
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.paths, "<path class=\"{class}\" d=\"{path}");
        self.lines.push((class.to_owned(), self.paths.len()));
        self.paths.push_str("\"/>\n");
    }

    /// A line through points.
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        self.path(class, &path(&thinned(points)));
    }

    /// A filled area.
    pub(crate) fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        self.path(class, &format!("{}z", path(&thinned(points))));
    }

    /// A rectangle below all text: its left upper corner, width, and height.
    pub(crate) fn rect(
        &mut self,
        class: &str,
        (left, top): (f64, f64),
        (width, height): (f64, f64),
    ) {
        let (right, bottom) = (left + width, top + height);
        self.polygon(class, &[(left, top), (right, top), (right, bottom), (left, bottom)]);
    }

    /// Dots as one element. Their diameter is the width of its stroke.
    pub(crate) fn dots(&mut self, class: &str, points: &[(f64, f64)]) {
        // Some programs do not draw lines of length 0.
        let dot = |point: &(f64, f64)| format!("{}h.01", path(&[*point]));
        self.path(class, &points.iter().map(dot).collect::<String>());
    }

    /// Separate straight lines as one element; nothing without lines.
    pub(crate) fn strokes(&mut self, class: &str, lines: &[[(f64, f64); 2]]) {
        if !lines.is_empty() {
            self.path(class, &lines.iter().map(|line| path(line)).collect::<String>());
        }
    }

    /// A circle.
    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let (x, [y, radius]) = (self.share(at.0), [at.1, radius].map(Short));
        let _ = writeln!(
            self.marks,
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"
        );
    }

    /// Text; its classes, if any, define anchor and color.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        let (x, y) = (self.share(at.0), Short(at.1));
        let (text, class) = (escape(text), of_class(class));
        let _ = writeln!(self.marks, "<text{class} x=\"{x}\" y=\"{y}\">{text}</text>");
    }

    /// Text that rises to the right from its start.
    pub(crate) fn rising(&mut self, class: &str, at: (f64, f64), text: &str) {
        let (x, y) = (self.share(at.0), Short(at.1));
        let (text, class) = (escape(text), of_class(class));
        let _ = writeln!(
            self.marks,
            "<svg x=\"{x}\" y=\"{y}\"><text{class} transform=\"rotate(-32)\">{text}</text></svg>"
        );
    }

    /// A rectangle above all paths: its left upper corner, width, and height.
    pub(crate) fn cell(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        let [x, width] = [corner.0, size.0].map(|length| self.share(length));
        let [y, height] = [corner.1, size.1].map(Short);
        let _ = writeln!(
            self.marks,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    /// Marker of a series. Pages define it once ([`looks::definitions`]).
    pub(crate) fn marker(&mut self, series: usize, at: (f64, f64)) {
        let (x, y) = (self.share(at.0), Short(at.1));
        let id = looks::id(series);
        let _ = writeln!(self.marks, "<use href=\"#{id}\" x=\"{x}\" y=\"{y}\"/>");
    }

    /// Opens a group with a tooltip.
    pub(crate) fn titled(&mut self, title: &str) {
        self.group(&format!("<g><title>{}</title>", escape(title)));
    }

    /// Opens a group of one filesystem, given by name.
    pub(crate) fn about(&mut self, filesystem: &str) {
        self.group(&format!("<g data-filesystem=\"{}\">", escape(filesystem)));
    }

    /// Opens a group of one filesystem with a tooltip.
    pub(crate) fn about_titled(&mut self, filesystem: &str, title: &str) {
        let [name, title] = [filesystem, title].map(escape);
        self.group(&format!("<g data-filesystem=\"{name}\"><title>{title}</title>"));
    }

    /// Opens a group in both layers.
    fn group(&mut self, tag: &str) {
        let open = |layer: &mut String| {
            let before = layer.len();
            layer.push_str(tag);
            layer.push('\n');
            (before, layer.len())
        };
        self.lines.clear();
        self.groups.push(Group { paths: open(&mut self.paths), marks: open(&mut self.marks) });
    }

    /// Closes the group opened last. An empty group is removed.
    pub(crate) fn end(&mut self) {
        let Some(group) = self.groups.pop() else { return };
        self.lines.clear();
        for (layer, (before, after)) in
            [(&mut self.paths, group.paths), (&mut self.marks, group.marks)]
        {
            match layer.len() == after {
                true => layer.truncate(before),
                false => layer.push_str("</g>\n"),
            }
        }
    }

    /// Finished chart. Title and description are for screen readers.
    pub(crate) fn finish(self, title: &str, description: &str) -> String {
        debug_assert!(self.groups.is_empty(), "a group is open");
        let [width, height] = [self.width, self.height].map(Short);
        // Wider charts do not shrink below the width of their layout.
        let least = match self.width > WIDTH {
            true => format!(" style=\"min-width:{width}px\""),
            false => String::new(),
        };
        let small = if self.small { " small" } else { "" };
        let paths = match self.paths.is_empty() {
            true => String::new(),
            false => format!(
                "<svg viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\">\n{}</svg>\n",
                self.paths
            ),
        };
        format!(
            "<svg class=\"chart{small}\" role=\"img\" width=\"{width}\" height=\"{height}\"{least} \
             xmlns=\"http://www.w3.org/2000/svg\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{paths}{}</svg>",
            escape(title),
            escape(description),
            self.marks
        )
    }

    /// A horizontal length in percent of the width.
    fn share(&self, length: f64) -> Percent {
        Percent(length / self.width * 100.0)
    }

    fn path(&mut self, class: &str, path: &str) {
        self.lines.clear();
        let _ = writeln!(self.paths, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

/// Text escaped for elements and attributes. Control characters, which XML cannot represent
/// (w3.org/TR/xml, 2.2), become spaces.
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

/// Class attribute; empty without classes.
fn of_class(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
}

/// A value in tenths, which add up exactly.
fn tenths(value: f64) -> i64 {
    whole(value * 10.0)
}

fn whole(value: f64) -> i64 {
    let value = value.round_ties_even();
    #[expect(clippy::cast_possible_truncation, reason = "saturates beyond any chart")]
    let value = value as i64;
    value
}

/// Coordinate with at most one decimal. Large reports have half a million coordinates, and
/// `{:.1}` is several times slower.
pub(crate) struct Short(pub(crate) f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Decimal::<1>(tenths(self.0)).fmt(f)
    }
}

/// Percentage with at most two decimals.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", Decimal::<2>(whole(self.0 * 100.0)))
    }
}

/// A number in units of the last of `PLACES` decimal places, without trailing zeros.
struct Decimal<const PLACES: u32>(i64);

impl<const PLACES: u32> fmt::Display for Decimal<PLACES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = 10_u64.pow(PLACES);
        let (whole, mut rest) = (self.0.unsigned_abs() / power, self.0.unsigned_abs() % power);
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if whole > 0 || rest == 0 {
            write!(f, "{whole}")?;
        }
        let mut places = PLACES as usize;
        while rest > 0 && rest % 10 == 0 {
            (rest, places) = (rest / 10, places - 1);
        }
        if rest > 0 { write!(f, ".{rest:0places$}") } else { Ok(()) }
    }
}

/// Data of a path through points (SVG 1.1, 8.3): absolute start, then relative steps.
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
        // A repeated command needs no letter; a minus sign separates numbers.
        if next != command || before.is_none() {
            text.push(next);
        } else if (if next == 'v' { down } else { right }) >= 0 {
            text.push(' ');
        }
        let space = if down < 0 { "" } else { " " };
        let _ = match next {
            'h' => write!(text, "{}", Decimal::<1>(right)),
            'v' => write!(text, "{}", Decimal::<1>(down)),
            _ => write!(text, "{}{space}{}", Decimal::<1>(right), Decimal::<1>(down)),
        };
        (before, command) = (Some((x, y)), next);
    }
    text
}

/// Points without those that are within [`TOLERANCE`] of the line through the others (Douglas and
/// Peucker, Algorithms for the reduction of the number of points required to represent a digitized
/// line or its caricature, 1973).
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = vec![false; points.len()];
    let mut parts = Vec::new();
    if let Some(last) = points.len().checked_sub(1) {
        (kept[0], kept[last]) = (true, true);
        parts.push((0, last));
    }
    while let Some((first, last)) = parts.pop() {
        let far = (first + 1..last)
            .map(|at| (at, distance(points[at], points[first], points[last])))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((at, _)) = far.filter(|(_, distance)| *distance > TOLERANCE) {
            kept[at] = true;
            parts.extend([(first, at), (at, last)]);
        }
    }
    points.iter().zip(kept).filter_map(|(point, kept)| kept.then_some(*point)).collect()
}

/// Distance of a point from the segment between two others.
fn distance(point: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (x, y) = (point.0 - from.0, point.1 - from.1);
    let length = dx.mul_add(dx, dy * dy);
    let share = if length > 0.0 { ((x * dx + y * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    (x - share * dx).hypot(y - share * dy)
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
    fn points_on_the_line_are_omitted() {
        let line = [(0.0, 0.0), (1.0, 0.1), (2.0, 0.0), (2.0, 5.0), (2.1, 9.0), (2.0, 9.0)];
        assert_eq!(thinned(&line), [(0.0, 0.0), (2.0, 0.0), (2.0, 9.0)]);
        assert_eq!(thinned(&line[..1]), &line[..1]);
        assert_eq!(thinned(&[]), []);
        let back = [(0.0, 0.0), (9.0, 0.0), (4.0, 0.0)];
        assert_eq!(thinned(&back), back, "a turn is kept");
    }

    #[test]
    fn percentages_have_two_decimals() {
        let shown = |value| Percent(value).to_string();
        assert_eq!(
            [16.842, 50.0, 0.05, -0.004, 33.3, 100.0].map(shown),
            ["16.84%", "50%", ".05%", "0%", "33.3%", "100%"].map(String::from)
        );
    }

    #[test]
    fn consecutive_lines_of_a_class_are_one_element() {
        let mut svg = Svg::new(9.0, 9.0);
        svg.line("g", (0.0, 0.0), (0.0, 9.0));
        svg.text("tm", (0.0, 0.0), "0");
        svg.line("k", (1.0, 0.0), (1.0, 9.0));
        svg.line("g", (5.0, 0.0), (5.0, 9.0));
        svg.rect("z", (0.0, 0.0), (9.0, 9.0));
        svg.line("k", (2.0, 0.0), (2.0, 9.0));
        let lines: Vec<&str> = svg.paths.lines().collect();
        assert_eq!(
            lines,
            [
                "<path class=\"g\" d=\"M0 0v9M5 0v9\"/>",
                "<path class=\"k\" d=\"M1 0v9\"/>",
                "<path class=\"z\" d=\"M0 0h9v9h-9z\"/>",
                "<path class=\"k\" d=\"M2 0v9\"/>",
            ]
        );
        assert_eq!(svg.marks, "<text class=\"tm\" x=\"0%\" y=\"0\">0</text>\n");
    }

    #[test]
    fn groups_are_in_the_layers_of_their_content() {
        let mut svg = Svg::new(100.0, 9.0);
        svg.about("ext4");
        svg.marker(2, (25.0, 4.0));
        svg.titled("both");
        svg.line("g", (0.0, 0.0), (0.0, 9.0));
        svg.end();
        svg.end();
        svg.about("xfs");
        svg.end();
        assert_eq!(
            svg.paths,
            "<g data-filesystem=\"ext4\">\n<g><title>both</title>\n\
             <path class=\"g\" d=\"M0 0v9\"/>\n</g>\n</g>\n"
        );
        assert_eq!(
            svg.marks,
            "<g data-filesystem=\"ext4\">\n<use href=\"#m2\" x=\"25%\" y=\"4\"/>\n</g>\n"
        );
        assert!(!svg.finish("t", "d").contains("xfs"));
    }
}

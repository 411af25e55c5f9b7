//! Frame of an exported chart: finding or title above the chart; caption, conditions, and source
//! below it.

use crate::{
    charts::intervals::shortened,
    document::Figure,
    export::{
        absolute::absolute,
        measure::{lines, width},
        style::Sheet,
    },
    published::Published,
    svg::escape,
    units::{capital, one_line},
    view::View,
};

/// Font families of the SVG. PNG files use the first one.
const FAMILIES: &str = "Noto Sans, Liberation Sans, Arial, Helvetica, sans-serif";

/// Margin on all sides, in units of the SVG.
const MARGIN: f64 = 24.0;

/// Minimum width of the texts, in units of the SVG, so that captions of narrow charts have few
/// lines.
const ROOM_MIN: f64 = 600.0;

/// Maximum length of a title or finding, in characters.
const TITLE_MAX: usize = 300;

/// Maximum length of a caption, in characters.
const CAPTION_MAX: usize = 4000;

/// Text with its size and color.
struct Block<'a> {
    text: &'a str,
    size: f64,
    bold: bool,
    /// Variable of the style sheet.
    color: &'static str,
}

/// Frame of a chart.
struct Around {
    /// Title for screen readers.
    title: String,
    /// Line above the chart in the largest font.
    first: String,
    /// Second line above the chart.
    second: String,
    caption: String,
    origin: String,
}

/// Figure as a separate picture.
pub(super) fn framed(figure: &Figure, view: &View, sheet: &Sheet) -> String {
    let title = shortened(&one_line(&figure.title), TITLE_MAX);
    let valid = valid(&figure.svg);
    let description = between(&valid, "<desc", "</desc>").unwrap_or("");
    let finding = finding(view, description).map(|text| shortened(&one_line(text), TITLE_MAX));
    let below = match finding {
        Some(_) => title.clone(),
        None => one_line(&view.facts.title),
    };
    let around = Around {
        first: finding.unwrap_or_else(|| title.clone()),
        second: below,
        title,
        caption: caption(figure, view),
        origin: origin(view),
    };
    picture(&figure.svg, &around, sheet)
}

/// Chart of published results as a separate picture, labeled as published.
pub(super) fn framed_published(drawn: &Figure, set: &Published, sheet: &Sheet) -> String {
    let title = shortened(&one_line(&drawn.title), TITLE_MAX);
    let around = Around {
        first: title.clone(),
        second: one_line(&format!("{}, {}", set.article, set.author)),
        title,
        caption: format!("{} {}; {}.", drawn.caption, set.machine, set.kernel),
        origin: one_line(&format!("{} · {}", set.full_name(), set.source)),
    };
    picture(&drawn.svg, &around, sheet)
}

/// Chart with its frame.
fn picture(svg: &str, around: &Around, sheet: &Sheet) -> String {
    let chart = sheet.apply(&absolute(&valid(svg), &sheet.looks));
    let (chart_width, chart_height) = size_of(&chart);
    let room = chart_width.max(ROOM_MIN);
    let description = between(&chart, "<desc", "</desc>").unwrap_or("");
    let mut page = Page { sheet, body: String::new(), room, y: MARGIN };
    page.block(&Block { text: &around.first, size: 16.0, bold: true, color: "--ink" });
    let second = shortened(&around.second, TITLE_MAX);
    page.block(&Block { text: &second, size: 12.5, bold: false, color: "--soft" });
    page.y += 10.0;
    page.chart(&chart);
    page.y += chart_height + 10.0;
    let caption = shortened(&one_line(&around.caption), CAPTION_MAX);
    page.block(&Block { text: &caption, size: 11.0, bold: false, color: "--soft" });
    page.y += 6.0;
    page.block(&Block { text: &around.origin, size: 9.5, bold: false, color: "--soft" });
    let (width, height) = (room + 2.0 * MARGIN, page.y + MARGIN - 6.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"{FAMILIES}\">\n\
         <title>{}</title>\n<desc>{description}</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n{}</svg>\n",
        escape(&valid(&around.title)),
        sheet.variable("--paper"),
        page.body
    )
}

/// Picture that is written from top to bottom.
struct Page<'a> {
    sheet: &'a Sheet,
    body: String,
    room: f64,
    /// Vertical position of the next element.
    y: f64,
}

impl Page<'_> {
    fn block(&mut self, block: &Block) {
        let (size, color) = (block.size, self.sheet.variable(block.color));
        let weight = if block.bold { " font-weight=\"bold\"" } else { "" };
        for line in lines(block.text, self.room, size, block.bold) {
            // `lines` breaks at the estimated width; a single character may be wider.
            debug_assert!(width(&line, size, block.bold) <= self.room || line.chars().count() == 1);
            self.y += size * 1.38;
            self.body.push_str(&format!(
                "<text x=\"{MARGIN}\" y=\"{:.1}\" font-size=\"{size}\" fill=\"{color}\"{weight}>\
                 {}</text>\n",
                self.y - size * 0.32,
                escape(&valid(&line))
            ));
        }
    }

    /// Nests the chart at the current position.
    fn chart(&mut self, chart: &str) {
        let rest = chart.strip_prefix("<svg").unwrap_or(chart);
        self.body.push_str(&format!("<svg x=\"{MARGIN}\" y=\"{:.1}\"{rest}\n", self.y));
    }
}

/// Caption of a figure, with the conditions and the run.
fn caption(figure: &Figure, view: &View) -> String {
    let facts = &view.facts;
    let mut text = format!("{} {}.", figure.caption, facts.conditions.trim_end_matches('.'));
    if let Some(program) = &facts.imported {
        text.push_str(&format!(" Imported from {program}; not measured by fslab."));
    }
    if !facts.ended {
        text.push_str(" The run has not ended; results are provisional.");
    }
    capital(text.trim())
}

/// Program, run, plan or source of the import, and time of the run.
fn origin(view: &View) -> String {
    let facts = &view.facts;
    let plan = if facts.imported.is_some() { "records" } else { "plan" };
    one_line(&format!(
        "{} · run {} · {plan} {} · {}",
        facts.program, facts.run, facts.plan_name, facts.when
    ))
}

/// Finding that a chart shows: the first one with whose text the description of the chart begins.
fn finding<'a>(view: &'a View, description: &str) -> Option<&'a str> {
    let findings = view.findings.by_point.iter().flat_map(|point| &point.findings);
    let texts = findings.map(|finding| finding.text.as_str());
    let shown = |text: &&str| {
        let escaped = escape(&valid(text));
        description
            .strip_prefix(escaped.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    texts.filter(|text| !text.is_empty()).find(shown)
}

/// Width and height of an SVG element according to its attributes.
fn size_of(svg: &str) -> (f64, f64) {
    let tag = svg.split('>').next().unwrap_or("");
    let number =
        |name: &str| between(tag, &format!(" {name}=\""), "\"").and_then(|text| text.parse().ok());
    (number("width").unwrap_or(ROOM_MIN), number("height").unwrap_or(0.0))
}

/// Text between `from` and `to`. If `from` is the beginning of a tag, the text starts after the
/// tag.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let start = text.find(from)? + from.len();
    let rest = &text[start..];
    let rest = if from.starts_with('<') { rest.split_once('>')?.1 } else { rest };
    Some(&rest[..rest.find(to)?])
}

/// Text with U+FFFD instead of the characters that XML 1.0 (section 2.2) forbids.
fn valid(text: &str) -> String {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if allowed(c) { c } else { '\u{fffd}' }).collect()
}

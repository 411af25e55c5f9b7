//! One HTML file that loads nothing.

use std::{borrow::Cow, fmt::Write};

use askama::Template;

use super::{Block, Body, Document, Figure, Item, List, Section, Style, Table, TableCell};
use crate::svg::{Svg, escape};

/// Renders a template. Neither writing to a string nor the templates can fail.
pub(crate) fn rendered(template: &impl Template) -> String {
    match template.render() {
        Ok(text) => text,
        Err(error) => unreachable!("a template of plain data: {error}"),
    }
}

#[derive(Template)]
#[template(path = "document.html")]
struct Page<'a> {
    document: &'a Document,
    lead: String,
    main: String,
    style: &'static str,
}

/// Renders a document.
pub(crate) fn html(document: &Document) -> String {
    let (mut lead, mut main) = (String::new(), String::new());
    blocks(&mut lead, &document.lead);
    document.sections.iter().for_each(|own| section(&mut main, own, 2));
    let page = Page { document, lead, main, style: include_str!("../../templates/style.css") };
    // The template engine drops the last line break of a template.
    rendered(&page) + "\n"
}

pub(crate) fn section(html: &mut String, section: &Section, level: usize) {
    let (id, title) = (escape(&section.id), escape(&section.title));
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        html,
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n\
         <h{level} id=\"{id}-h\">{title}</h{level}>"
    );
    blocks(html, &section.blocks);
    section.sections.iter().for_each(|own| self::section(html, own, (level + 1).min(6)));
    html.push_str("</section>\n");
}

fn blocks(html: &mut String, blocks: &[Block]) {
    for block in blocks {
        let _ = match block {
            Block::Paragraph(text) => writeln!(html, "<p>{}</p>", escape(text)),
            Block::Note(text) => writeln!(html, "<p class=\"muted\">{}</p>", escape(text)),
            Block::List(own) => {
                list(html, own);
                Ok(())
            }
            Block::Table(table, _) => {
                html.push_str(&of_table(table));
                Ok(())
            }
            Block::Figure(own) => {
                figure(html, own);
                Ok(())
            }
            Block::Spark(_) => Ok(()),
            Block::Fold(title, own) => {
                let _ = writeln!(html, "<details><summary>{}</summary>", escape(title));
                self::blocks(html, own);
                writeln!(html, "</details>")
            }
        };
    }
}

fn list(html: &mut String, list: &List) {
    let class = match list.style {
        Style::Facts | Style::Columns => "lead",
        Style::Bullets | Style::Commands => "findings",
    };
    let _ = writeln!(html, "<ul class=\"{class}\">");
    for item in &list.items {
        self::item(html, item, list.style);
    }
    html.push_str("</ul>\n");
}

fn item(html: &mut String, item: &Item, style: Style) {
    let Item { id, mark, term, text, hint, lines } = item;
    let id = if id.is_empty() { String::new() } else { format!(" id=\"{}\"", escape(id)) };
    let mark = if mark.is_empty() { String::new() } else { format!("{} ", escape(mark)) };
    let colon = if term.is_empty() || text.is_empty() { "" } else { ": " };
    let text = match style {
        Style::Commands => format!("<code>{}</code>", escape(text)),
        Style::Bullets | Style::Facts | Style::Columns => escape(text),
    };
    let _ = write!(html, "<li{id}>{mark}{}{colon}{text}", escape(term));
    if !hint.is_empty() {
        let _ = write!(html, " <em>Hint: {}</em>", escape(hint));
    }
    if !lines.is_empty() {
        let lines = lines.iter().map(|line| format!("<li>{}</li>", escape(line)));
        let _ = write!(html, "<ul>{}</ul>", lines.collect::<String>());
    }
    html.push_str("</li>\n");
}

fn figure(html: &mut String, figure: &Figure) {
    let Figure { id, title, svg, caption, wide, .. } = figure;
    let [id, title, caption] = [id, title, caption].map(|text| escape(text));
    let broad = if *wide { " broad" } else { "" };
    let _ = writeln!(
        html,
        "<figure class=\"plot{broad}\" data-figure=\"{id}\">\n\
         <div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Chart: {title}\">\n\
         {svg}\n</div>\n<figcaption><strong>{title}.</strong> {caption}</figcaption>\n</figure>"
    );
}

/// Renders a table without markers.
fn of_table(table: &Table) -> String {
    let (table, shared) = table.with_shared_codes();
    let (table, shared) = (&*table, shared.as_slice());
    rendered(&TableTemplate { table, shared, marked: false, point: None, names: &[] })
}

/// Marker of a filesystem, hidden from screen readers because the name is next to it.
pub(crate) fn marker(index: usize) -> String {
    let mut svg = Svg::new(14.0, 14.0);
    svg.marker(index, (7.0, 7.0), 5.0);
    svg.decoration()
}

#[derive(Template)]
#[template(path = "table.html")]
pub(crate) struct TableTemplate<'a> {
    pub(crate) table: &'a Table,
    /// Warnings listed once below the table.
    pub(crate) shared: &'a [&'static str],
    /// True if rows and columns of a filesystem show its marker.
    pub(crate) marked: bool,
    /// Workload point of the whole table.
    pub(crate) point: Option<&'a PointFacts>,
    /// Markers and names of the filesystems.
    pub(crate) names: &'a [(String, String)],
}

/// Workload point as HTML attributes.
#[derive(Debug)]
pub(crate) struct PointFacts {
    pub(crate) label: String,
    /// JSON object of all parameters with their values as strings.
    pub(crate) parameters: String,
}

impl TableTemplate<'_> {
    /// True for a table of texts.
    fn records(&self) -> bool {
        self.table.values().next().is_none() && self.table.title.is_empty()
    }

    /// Title, or the header of the rows.
    fn label(&self) -> &str {
        if self.table.title.is_empty() { self.table.corner } else { &self.table.title }
    }

    /// True for columns of text. The template passes a reference.
    fn is_text(&self, column: &usize) -> bool {
        self.table.is_text(*column)
    }

    /// Marker of a filesystem. The template passes a reference.
    fn marker(&self, filesystem: &Option<usize>) -> Cow<'_, str> {
        let of = |index: usize| match self.names.get(index) {
            Some((marker, _)) => Cow::Borrowed(marker.as_str()),
            None => Cow::Owned(marker(index)),
        };
        filesystem.filter(|_| self.marked).map(of).unwrap_or_default()
    }

    /// Sort key with seven significant digits. The template passes a reference.
    fn sort(&self, value: &f64) -> f64 {
        format!("{value:.6e}").parse().unwrap_or(*value)
    }

    /// Name of a filesystem. The template passes a reference.
    fn name(&self, filesystem: &Option<usize>) -> Option<&str> {
        let of = |index: usize| self.names.get(index).map(|(_, name)| name.as_str());
        filesystem.filter(|_| self.marked).and_then(of)
    }

    /// Common filesystem of all numbers in the table, unless rows or columns name one.
    fn about(&self) -> Option<&str> {
        let columns = self.table.columns.iter().map(|column| column.filesystem);
        let rows = self.table.rows.iter().map(|row| row.filesystem);
        if columns.chain(rows).any(|filesystem| filesystem.is_some()) {
            return None;
        }
        let mut all = self.table.values().map(|value| value.of.map(|of| of.filesystem));
        let first = all.next().flatten()?;
        all.all(|other| other == Some(first)).then(|| self.name(&Some(first))).flatten()
    }
}

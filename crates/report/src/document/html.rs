//! One HTML file that loads no other file and is complete without scripts.

use std::fmt::Write;

use askama::Template;
use rayon::prelude::*;

use super::{
    Block, Body, Document, Figure, Item, List, Scope, Section, Style, Table, TableCell, ValueCell,
};
use crate::svg::{escape, looks};

/// Renders a template. Writing to a string cannot fail, nor can our templates.
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
    /// Colors of the series.
    colors: String,
    /// Definitions of the markers.
    markers: String,
    script: &'static str,
    /// JSON data of the script; `None` for a page without script.
    data: Option<&'a str>,
}

/// Renders a document.
pub(crate) fn html(document: &Document) -> String {
    page(document, &document.filesystems, "", None)
}

/// Renders a document with its first screen, and with a script and its data. The names begin with
/// the filesystems of the document; markers on the first screen have indexes in them.
pub(crate) fn page(
    document: &Document,
    names: &[String],
    screen: &str,
    data: Option<&str>,
) -> String {
    let absent = &absent(document);
    let mut html = Html { document, absent, text: String::new(), point: false, title: "" };
    html.blocks(&document.lead);
    let lead = format!("{screen}{}", html.text);
    let sections = document.sections.par_iter();
    let main: Vec<String> = sections.map(|own| html.below("").section(own, 2)).collect();
    let main = main.concat();
    let looks = looks::of(names);
    let page = Page {
        colors: looks::style(&looks),
        markers: looks::definitions(&looks, &[lead.as_str(), &main]),
        document,
        lead,
        main,
        style: include_str!("../../templates/style.css"),
        script: include_str!("../../templates/report.js"),
        data,
    };
    // The template engine drops the last line break of a template.
    rendered(&page) + "\n"
}

/// Part of a page.
struct Html<'a> {
    document: &'a Document,
    /// Indexes of filesystems without numbers, which have no rows and columns.
    absent: &'a [usize],
    text: String,
    /// True within a section of one workload point.
    point: bool,
    /// Title of the section, which its tables and charts do not repeat.
    title: &'a str,
}

impl<'a> Html<'a> {
    /// An empty part of the same page under a title.
    fn below(&self, title: &'a str) -> Self {
        Self { text: String::new(), title, ..*self }
    }

    fn push(&mut self, text: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{text}");
    }

    /// A section with its subsections, which are rendered in parallel.
    fn section(mut self, section: &'a Section, level: usize) -> String {
        let (id, title) = (escape(&section.id), escape(&section.title));
        let scope = match &section.scope {
            Scope::Run => String::new(),
            Scope::Point(index) => format!(" class=\"point\" data-point=\"{index}\""),
            Scope::Test(number, name) => {
                format!(" class=\"test\" data-test=\"{number}\" data-name=\"{}\"", escape(name))
            }
        };
        // Landmarks have unique names; there is one per heading of the contents.
        let (landmark, heading) = match level {
            2 => (format!(" aria-labelledby=\"{id}-h\""), format!(" id=\"{id}-h\"")),
            _ => (String::new(), String::new()),
        };
        self.push(format_args!(
            "<section id=\"{id}\"{scope}{landmark}>\n<h{level}{heading}>{title}</h{level}>"
        ));
        self.point |= matches!(section.scope, Scope::Point(_));
        self.title = &section.title;
        self.blocks(&section.blocks);
        let below = section.sections.par_iter();
        let below = below.map(|own| self.below("").section(own, (level + 1).min(6)));
        let below: Vec<String> = below.collect();
        below.iter().for_each(|own| self.text.push_str(own));
        self.text.push_str("</section>\n");
        self.text
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Paragraph(text) => self.push(format_args!("<p>{}</p>", prose(text))),
                Block::Note(text) => {
                    self.push(format_args!("<p class=\"muted\">{}</p>", prose(text)));
                }
                Block::List(own) => self.list(own),
                Block::Table(table, _) => self.table(table),
                Block::Figure(own) => self.figure(own),
                Block::Spark(_) => {}
                Block::Fold(title, own) => {
                    let title = escape(title);
                    let of = match self.title {
                        "" => String::new(),
                        of => format!("<span class=\"hidden\"> of {}</span>", escape(of)),
                    };
                    self.push(format_args!("<details><summary>{title}{of}</summary>"));
                    self.blocks(own);
                    self.push(format_args!("</details>"));
                }
                Block::Links(text, targets) => self.links(text, targets),
                Block::Code(label, text) => self.push(format_args!(
                    "<pre tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><code>{}</code></pre>",
                    lines(text)
                )),
                Block::Download(name, csv, label) => self.push(format_args!(
                    "<p><a download=\"{}\" href=\"{}\">{}</a></p>",
                    escape(name),
                    url(csv),
                    escape(label)
                )),
            }
        }
    }

    fn links(&mut self, text: &str, targets: &[(String, String)]) {
        let link = |(id, label): &(String, String)| {
            format!("<a href=\"#{}\">{}</a>", escape(id), escape(label))
        };
        let links: Vec<String> = targets.iter().map(link).collect();
        let text = escape(text);
        self.push(format_args!("<p class=\"muted\">{text}: {}.</p>", links.join(" · ")));
    }

    fn list(&mut self, list: &List) {
        let class = match list.style {
            Style::Facts | Style::Columns => "lead",
            Style::Bullets | Style::Commands => "findings",
            Style::Legend => "legend\" aria-label=\"Filesystems",
        };
        self.push(format_args!("<ul class=\"{class}\">"));
        for (index, item) in list.items.iter().enumerate() {
            self.item(item, list.style, index);
        }
        self.push(format_args!("</ul>"));
    }

    fn item(&mut self, item: &Item, style: Style, index: usize) {
        let Item { id, mark, term, text, hint, lines, places, chart } = item;
        let id = if id.is_empty() { String::new() } else { format!(" id=\"{}\"", escape(id)) };
        let mark = match (style == Style::Legend, mark.is_empty()) {
            (true, _) => format!("{} ", marker(index)),
            (false, true) => String::new(),
            (false, false) => format!("{} ", escape(mark)),
        };
        let colon = if term.is_empty() || text.is_empty() { "" } else { ": " };
        let text = match style {
            Style::Commands => format!("<code>{}</code>", escape(text)),
            Style::Legend => format!("<span class=\"muted\">{}</span>", escape(text)),
            Style::Bullets | Style::Facts | Style::Columns => prose(text),
        };
        let mut html = format!("<li{id}>{mark}{}{colon}{text}", escape(term));
        if !chart.is_empty() {
            let chart = escape(chart);
            html += &format!(
                " <a class=\"to\" href=\"#{chart}\">chart<span class=\"hidden\"> of this \
                 finding</span></a>"
            );
        }
        if !hint.is_empty() {
            html += &format!(" <em>Hint: {}</em>", prose(hint));
        }
        if !lines.is_empty() {
            let lines = lines.iter().map(|line| format!("<li>{}</li>", escape(line)));
            html += &format!("<ul>{}</ul>", lines.collect::<String>());
        }
        if !places.is_empty() {
            let (count, places) = (places.len(), escape(&places.join("; ")));
            html += &format!("<details><summary>{count} results</summary>{places}</details>");
        }
        self.push(format_args!("{html}</li>"));
    }

    /// Attribute that filters use for tables and charts outside of the section of their point.
    fn point_of(&self, id: &str) -> String {
        let point = id.split("--").next().and_then(|id| self.document.points.get(id));
        let point = point.filter(|_| !self.point);
        point.map_or_else(String::new, |point| format!(" data-point=\"{point}\""))
    }

    fn figure(&mut self, figure: &Figure) {
        let Figure { id, kind, title, svg, caption, wide } = figure;
        let point = self.point_of(id);
        let strong = match *title == self.title {
            true => String::new(),
            false => format!("<strong>{}.</strong> ", escape(title)),
        };
        let [id, caption] = [id, caption].map(|text| escape(text));
        let broad = if *wide { " broad" } else { "" };
        // The region that scrolls contains only the chart, which has a name.
        self.push(format_args!(
            "<figure class=\"plot {}{broad}\" data-figure=\"{id}\"{point}>\n\
             <div class=\"scroll\" tabindex=\"0\">\n{svg}\n</div>\n\
             <figcaption>{strong}{caption}</figcaption>\n</figure>",
            kind.name()
        ));
    }

    fn table(&mut self, table: &Table) {
        let point = self.point_of(&table.id);
        let names = self.document.filesystems.as_slice();
        let table = table.without(self.absent);
        let (table, shared) = table.with_shared_codes();
        let (table, shared) = (&*table, shared.as_slice());
        let mut units = table.rows.iter().map(|row| row.unit);
        let first = units.next();
        let scaled_by_row = units.any(|unit| Some(unit) != first)
            && table
                .values()
                .all(|value| table.values().next().is_some_and(|it| it.unit == value.unit));
        let template = TableTemplate { table, shared, point, names, scaled_by_row };
        self.text.push_str(&rendered(&template));
    }
}

/// Filesystems that have no number in any table.
fn absent(document: &Document) -> Vec<usize> {
    let tables: Vec<&Table> = document.sections.iter().flat_map(Section::tables).collect();
    let mut present = vec![false; document.filesystems.len()];
    for table in tables.iter().flat_map(|table| table.measured()) {
        if let Some(present) = present.get_mut(table) {
            *present = true;
        }
    }
    // Without any number, the rows have the reasons.
    let some = present.contains(&true);
    (0..present.len()).filter(|index| some && !present[*index]).collect()
}

/// Escaped text in which words between backticks are code.
pub(crate) fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks has no pairs.
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Escaped text that keeps its line breaks.
fn lines(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

/// CSV as a `data:` URL (RFC 2397). Octets except letters, digits, and some marks are escaped (RFC
/// 3986, 2.1).
fn url(csv: &str) -> String {
    let mut url = String::from("data:text/csv;charset=utf-8,");
    for byte in csv.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' | b',' | b'=' => {
                url.push(char::from(byte));
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
    url
}

/// Marker of a filesystem, hidden from screen readers because the name is next to it.
pub(crate) fn marker(index: usize) -> String {
    let id = looks::id(index);
    format!("<svg class=\"glyph\" aria-hidden=\"true\"><use href=\"#{id}\"/></svg>")
}

#[derive(Template)]
#[template(path = "table.html")]
struct TableTemplate<'a> {
    table: &'a Table,
    /// Warnings listed once below the table.
    shared: &'a [&'static str],
    /// Attribute of its workload point.
    point: String,
    /// Names of the filesystems, if rows and columns have their markers.
    names: &'a [String],
    /// True if rows of the same quantity have different units.
    scaled_by_row: bool,
}

impl TableTemplate<'_> {
    /// True for a table of texts.
    fn records(&self) -> bool {
        self.table.values().next().is_none() && self.table.title.is_empty()
    }

    /// True for columns of text. The template passes a reference.
    fn is_text(&self, column: &usize) -> bool {
        self.table.is_text(*column)
    }

    /// Marker of a filesystem, if any. The template passes a reference.
    fn marker(&self, filesystem: &Option<usize>) -> String {
        let known = filesystem.filter(|index| *index < self.names.len());
        known.map_or_else(String::new, marker)
    }

    /// True if a value cannot be sorted by its text: the text is not a number, or rows of the same
    /// quantity have different units. The template passes a reference.
    fn is_sorted_apart(&self, value: &ValueCell) -> bool {
        self.scaled_by_row || value.shown.value.parse::<f64>().is_err()
    }

    /// Sort key with seven significant digits. The template passes a reference.
    fn sort(&self, value: &ValueCell) -> f64 {
        format!("{:.6e}", value.sort).parse().unwrap_or(value.sort)
    }

    /// Name of a filesystem. The template passes a reference.
    fn name(&self, filesystem: &Option<usize>) -> Option<&str> {
        filesystem.and_then(|index| self.names.get(index)).map(String::as_str)
    }

    /// Filesystem of all numbers in the table, unless rows or columns have filesystems.
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

#[cfg(test)]
mod tests {
    #[test]
    fn words_between_backticks_are_code() {
        let text = super::prose("remove `repetitions` or <b>");
        assert_eq!(text, "remove <code>repetitions</code> or &lt;b&gt;");
        assert_eq!(super::prose("an odd `<backtick>"), "an odd `&lt;backtick&gt;");
    }

    #[test]
    fn urls_cannot_end_an_attribute() {
        let url = super::url("a,\"b\"\r\n#é");
        assert_eq!(url, "data:text/csv;charset=utf-8,a,%22b%22%0D%0A%23%C3%A9");
    }
}

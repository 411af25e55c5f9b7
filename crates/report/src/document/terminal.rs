//! Terminal output.
//!
//! Tables wider than the terminal continue below with the same row headers; no line is wider than
//! the terminal. Control characters in untrusted text are replaced; [`ascii()`] is for terminals
//! without Unicode.

mod ascii;
mod spark;
mod tables;
pub(crate) mod wrapped;

use std::collections::BTreeSet;

pub use ascii::ascii;
use wrapped::width_of;
pub use wrapped::{harmless, wrap};

use super::{Block, Document, Item, Layout, List, Section, Style, Table};
use crate::units::one_line;

/// Layout of terminal output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Width of the terminal in columns, at least 60.
    pub width: usize,
    /// Use escape sequences for bold and color.
    pub color: bool,
    /// Include everything after the first page: rankings of every test, latency, lifecycle.
    pub detail: bool,
}

/// Renders a document. Figures are omitted.
pub(crate) fn terminal(document: &Document, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    page.bold(&one_line(&document.title));
    page.wrapped("", "  ", &document.kicker);
    if !document.headline.is_empty() {
        page.bold(&document.headline);
    }
    page.blocks(&document.lead, 0);
    document.sections.iter().for_each(|section| page.section(section, 0));
    if !document.footer.is_empty() {
        page.line("");
        page.wrapped("", "  ", &document.footer);
    }
    page.text
}

/// Renders the sections of a document.
pub(crate) fn sections(document: &Document, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    document.sections.iter().for_each(|section| page.section(section, 0));
    page.text
}

/// Builder of terminal text.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) width: usize,
    pub(crate) color: bool,
    /// Name and reason of rows without values that were already explained.
    explained: BTreeSet<(String, String)>,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(options: &TerminalOptions) -> Self {
        let (width, color) = (options.width.max(60), options.color);
        Self { text: String::new(), width, color, explained: BTreeSet::new() }
    }

    /// One line without wrapping.
    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(harmless(text, self.color).trim_end());
        self.text.push('\n');
    }

    /// Text wrapped at the width of the page, with further lines indented; nothing without text.
    pub(crate) fn wrapped(&mut self, first: &str, indent: &str, text: &str) {
        if first.is_empty() && text.is_empty() {
            return;
        }
        for line in wrap(text, self.width, first, indent) {
            self.line(&line);
        }
    }

    /// Text in a style, given by its code in `ESC [ … m`.
    pub(crate) fn styled(&self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// An empty line and a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        self.line("");
        self.bold(text);
    }

    /// Lines in bold.
    pub(crate) fn bold(&mut self, text: &str) {
        for line in wrap(text, self.width, "", "  ") {
            let line = self.styled("1", &line);
            self.line(&line);
        }
    }

    /// Section with its subsections, which are indented.
    pub(crate) fn section(&mut self, section: &Section, depth: usize) {
        if section.is_pictures(true) {
            return;
        }
        let indent = "  ".repeat(depth);
        match depth {
            _ if section.is_named_by_table() => {}
            0 => self.heading(&section.title),
            _ => self.wrapped(&indent, &indent, &section.title),
        }
        self.blocks(&section.blocks, depth);
        section.sections.iter().for_each(|own| self.section(own, depth + 1));
    }

    fn blocks(&mut self, blocks: &[Block], depth: usize) {
        let indent = "  ".repeat(depth);
        for block in blocks {
            match block {
                Block::Paragraph(text) | Block::Note(text) => {
                    self.wrapped(&indent, &indent, text);
                }
                Block::List(list) => self.list(list, &indent),
                Block::Table(table, Layout::Full) => self.table(table),
                Block::Table(table, Layout::Bare) => self.plain(table),
                Block::Table(table, Layout::Records) => self.records(table),
                Block::Table(table, Layout::Compact) => self.matrix(table),
                Block::Spark(spark) => self.spark(spark),
                Block::Fold(_, own) => self.blocks(own, depth),
                Block::Code(_, text) => {
                    let lines = text.lines().flat_map(|line| wrap(line, self.width, "  ", "    "));
                    lines.collect::<Vec<_>>().iter().for_each(|line| self.line(line));
                }
                Block::Figure(_) | Block::Links(..) | Block::Download(..) => {}
            }
        }
    }

    fn list(&mut self, list: &List, indent: &str) {
        let shown = if list.limit == 0 { list.items.len() } else { list.limit };
        let names = list.items.iter().map(|item| width_of(&item.term));
        let width = names.max().unwrap_or(0);
        for item in list.items.iter().take(shown) {
            let (first, below, text) = match list.style {
                Style::Columns => {
                    let fill = " ".repeat(width - width_of(&item.term));
                    let first = format!("{indent}  {}{fill}  ", item.term);
                    (first, " ".repeat(indent.len() + width + 4), item.text.clone())
                }
                Style::Facts | Style::Legend => {
                    (indent.to_owned(), format!("{indent}  "), item.line())
                }
                Style::Bullets | Style::Commands => {
                    let mark = if item.mark.is_empty() { "-" } else { item.mark };
                    (format!("{indent}{mark} "), format!("{indent}  "), item.line())
                }
            };
            self.wrapped(&first, &below, &text);
            self.below(item, &below);
        }
        let more = list.items.len().saturating_sub(shown);
        if more > 0 {
            self.wrapped(indent, indent, &format!("  and {more} more"));
        }
    }

    /// Lines and hint below an item.
    fn below(&mut self, item: &Item, indent: &str) {
        for line in &item.lines {
            self.wrapped(&format!("{indent}- "), &format!("{indent}  "), line);
        }
        if !item.hint.is_empty() {
            self.wrapped(&format!("{indent}→ "), &format!("{indent}  "), &item.hint);
        }
    }

    /// Rows as items, with the names of the columns.
    fn records(&mut self, table: &Table) {
        if !table.title.is_empty() {
            self.heading(&table.title);
        }
        for row in &table.rows {
            let cells = table.texts(row).into_iter().zip(&table.columns);
            let known = cells.filter(|(text, _)| !text.is_empty());
            let only = table.columns.len() == 1;
            let texts = known.map(|(text, column)| match only {
                true => text,
                false => format!("{} {text}", column.title),
            });
            let texts: Vec<String> = texts.collect();
            self.wrapped("- ", "  ", &format!("{}: {}", row.title, texts.join("; ")));
        }
        self.wrapped("", "", &table.caption.join("; "));
    }
}

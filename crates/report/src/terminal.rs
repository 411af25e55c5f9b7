//! The report for a terminal: what a run says on one or two screens.
//!
//! First what the data say, what they leave open, and what the run says about itself: twins, drift,
//! what is missing, and the warnings with their cures. Then the overview tables, filesystems ×
//! tests with the top group marked; on request the ranked table of every test with ratios and
//! verdicts. Tables wider than the terminal are continued below, never cut.

mod wrapped;

use std::{collections::BTreeSet, fmt::Write};

use comfy_table::{CellAlignment, LineStyle, TableStyle};
use model::warning::Level;
use wrapped::{width_of, wrap};

use crate::{
    published,
    view::{
        Body, Claim, Column, DRIFT, Row, Table, TableCell, Threshold, ValueCell, View, Withheld,
    },
};

/// How the report is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns of the terminal; less than 60 is taken as 60.
    pub width: usize,
    /// Whether to use escape sequences for bold and color.
    pub color: bool,
    /// Whether to show every test on its own: ratios, verdicts, latency, life cycle.
    pub detail: bool,
}

const LINES: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// What a column takes beside its content: a space on either side and one between columns.
const CELL: usize = 3;

/// Letters of words in a cell: beside short numbers, and beside numbers with intervals.
const NARROW: usize = 16;
const WORDS: usize = 24;

/// Sentences are listed without being asked for when there are no more than this.
const CLAIMS_MAX: usize = 12;

/// Templates of sentences that say who is best at one test, listed unasked if there are few.
const LEADS: [&str; 3] = ["C1", "C1-quick", "C2"];

/// Templates of sentences that hold for many points, and how many of them are listed unasked.
const WIDE: [&str; 4] = ["C9", "C10", "C12", "C18"];
const WIDE_MAX: usize = 24;

/// Lays the view out for a terminal.
pub fn terminal(view: &View, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    page.head(view);
    page.claims(view, options.detail);
    page.control(view, options.detail);
    page.missing(view);
    page.warnings(view);
    for (index, overview) in view.overviews.iter().enumerate() {
        page.heading(&format!("Suite {}", view.suites[index].name));
        let suite = &view.suites[index];
        let alone = |table: &&Table| {
            let point = table.id.split("--").next().unwrap_or_default();
            options.detail || !view.stands_elsewhere(suite, point)
        };
        page.conditions(view, &suite.name, options.detail);
        let by_point = overview.by_point.iter().filter(alone);
        by_point.chain(&overview.composites).for_each(|table| page.matrix(table));
        page.operations(&view.operations[index], options.detail);
        if options.detail {
            overview.further.iter().for_each(|table| page.matrix(table));
            let more = overview.by_filesystem.iter().chain(&overview.counterparts);
            more.for_each(|table| page.table(table));
            let evidence = view.evidence[index].iter().zip(&view.operations[index]);
            for (ranked, (evidence, operations)) in view.ranked[index].iter().zip(evidence) {
                page.table(ranked);
                operations.iter().for_each(|table| page.matrix(table));
                evidence.iter().for_each(|table| page.evidence(table));
            }
        }
    }
    if options.detail {
        view.latency.iter().for_each(|table| page.table(table));
    }
    // Where tasks are timed as a whole, what surrounds them is part of the question.
    if options.detail || view.overviews.iter().any(|overview| !overview.composites.is_empty()) {
        view.lifecycle.iter().for_each(|table| page.matrix(table));
    }
    if let Some(note) = published::note(&view.published).filter(|_| options.detail) {
        page.line("");
        page.wrapped("", "", &note);
    }
    page.text
}

/// Lines for a terminal, in the making.
pub(crate) struct Page {
    pub(crate) text: String,
    width: usize,
    color: bool,
    /// Rows without numbers that were told why, by name and reason.
    told: BTreeSet<(String, String)>,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(options: &TerminalOptions) -> Self {
        let (width, color) = (options.width.max(60), options.color);
        Self { text: String::new(), width, color, told: BTreeSet::new() }
    }

    /// One line, as it is.
    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// Text in lines of the page's width, further lines indented.
    pub(crate) fn wrapped(&mut self, first: &str, indent: &str, text: &str) {
        for line in wrap(text, self.width, first, indent) {
            self.line(&line);
        }
    }

    /// Text in a style, by its code in `ESC [ … m`.
    pub(crate) fn styled(&self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// An empty line and a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        let text = self.styled("1", text);
        self.line("");
        self.line(&text);
    }

    fn head(&mut self, view: &View) {
        let facts = &view.facts;
        let title = self.styled("1", &facts.title);
        self.line(&title);
        let about = match facts.imported {
            // There was no plan, nor a profile.
            Some(_) => format!("records {} · {} · run {}", facts.plan_name, facts.when, facts.run),
            None => format!(
                "plan {} · profile {} ({}) · {} · run {}",
                facts.plan_name,
                facts.profile.name(),
                Threshold::of(facts.profile).words(),
                facts.when,
                facts.run
            ),
        };
        self.wrapped("", "  ", &about);
        self.wrapped("", "  ", &facts.conditions);
        for line in &facts.regimes {
            self.wrapped("", "  ", line);
        }
        for (key, value) in &facts.amendments {
            self.wrapped("", "  ", &format!("not as the plan is written: {key} = {value}"));
        }
    }

    fn claims(&mut self, view: &View, detail: bool) {
        let points = &view.findings.by_point;
        let all: usize = points.iter().map(|point| point.claims.len()).sum();
        let open: Vec<&Withheld> = points.iter().flat_map(|point| &point.open).collect();
        if all == 0 && open.is_empty() {
            return;
        }
        self.heading(view.findings.heading());
        let claims = || points.iter().flat_map(|point| &point.claims);
        let wide = |claim: &&Claim| WIDE.contains(&claim.template);
        let leads = |claim: &&Claim| LEADS.contains(&claim.template);
        let few = claims().filter(wide).count() <= WIDE_MAX;
        let led = claims().filter(leads).count() <= CLAIMS_MAX;
        let short = !detail && all + open.len() > CLAIMS_MAX;
        let told = |claim: &&Claim| {
            !short || claim.template == "C20" || few && wide(claim) || led && leads(claim)
        };
        claims().filter(told).for_each(|claim| self.wrapped("- ", "  ", &claim.text));
        if short {
            let more = all - claims().filter(told).count();
            let text = format!(
                "{more} more sentences with --detail, or in the HTML report; {} questions are \
                 open. fslab explain tells what each of them lacks.",
                open.len()
            );
            self.wrapped("", "", &text);
            return;
        }
        self.wrapped("", "", &view.findings.scope);
        if !open.is_empty() {
            self.heading("Not decided");
        }
        open.into_iter().for_each(|open| self.wrapped("- ", "  ", &open.text()));
    }

    /// What the run says about itself; the table of drift with all details.
    fn control(&mut self, view: &View, detail: bool) {
        let control = &view.control;
        if control.is_empty() {
            return;
        }
        if !control.lines.is_empty() {
            self.heading("Control");
        }
        control.lines.iter().for_each(|line| self.wrapped("- ", "  ", line));
        let shown = |table: &&Table| detail || table.id != DRIFT;
        for table in control.tables.iter().filter(shown) {
            match detail || table.values().next().is_none() {
                true => self.table(table),
                false => self.matrix(table),
            }
        }
    }

    /// How the tests of a suite scale, and what they depend on: with little detail the medians and
    /// the shares of the variance, if there are few.
    fn conditions(&mut self, view: &View, suite: &str, detail: bool) {
        let scaling = || view.scaling.iter().filter(|scaled| scaled.suite == suite);
        let conditions = || view.interactions.iter().filter(|other| other.suite == suite);
        if !detail && !view.few() {
            let tables = scaling().count() + conditions().count();
            if tables > 0 {
                let text = format!(
                    "{tables} tables over clients and conditions with --detail, or in the \
                    HTML report."
                );
                self.line("");
                self.wrapped("", "", &text);
            }
            return;
        }
        for scaled in scaling() {
            scaled.tables.iter().take(1).for_each(|table| self.matrix(table));
            scaled.tables.iter().skip(1).filter(|_| detail).for_each(|table| self.table(table));
        }
        for other in conditions() {
            other.tables.iter().take(1).for_each(|table| self.matrix(table));
            other.tables.iter().skip(1).for_each(|table| self.table(table));
        }
    }

    /// What a single replay did; of several only with all details.
    fn operations(&mut self, operations: &[Option<Table>], detail: bool) {
        if let ([Some(table)], false) = (operations, detail) {
            self.matrix(table);
        }
    }

    /// A table of numbers in two lines each: the median with its mark, the width of its interval.
    fn matrix(&mut self, table: &Table) {
        self.laid_out(table, compact);
        let mut caption = table.caption.join("; ").replace(
            "median [95 % interval of the median]",
            "median ± the longer side of its 95 % interval",
        );
        if table.values().any(|value| !value.codes.is_empty()) {
            caption.push_str("; ! has a warning, see above");
        }
        self.wrapped("", "", &caption);
    }

    /// A table of numbers with both ends of their intervals.
    fn table(&mut self, table: &Table) {
        self.laid_out(table, full);
        self.wrapped("", "", &table.caption.join("; "));
    }

    /// A table of many small numbers: medians alone, so that the parts of a whole stand below each
    /// other.
    fn evidence(&mut self, table: &Table) {
        self.laid_out(table, bare);
        let caption = table.caption.join("; ").replace(
            "median [95 % interval of the median]",
            "medians; the 95 % interval of each is in the HTML report",
        );
        self.wrapped("", "", &caption);
    }

    /// A table whose cells are shown as they are.
    pub(crate) fn plain(&mut self, table: &Table) {
        self.laid_out(table, bare);
        self.wrapped("", "", &table.caption.join("; "));
    }

    fn laid_out(&mut self, table: &Table, cell: fn(&TableCell) -> String) {
        self.heading(&table.title);
        let name_width = table.rows.iter().map(|row| width_of(&row_title(row))).max().unwrap_or(0);
        let name_width = name_width.max(width_of(table.corner));
        for columns in self.chunks(table, name_width, cell) {
            self.chunk(table, columns, name_width, cell);
        }
    }

    /// Ranges of columns that fit side by side.
    fn chunks(
        &self,
        table: &Table,
        name_width: usize,
        cell: fn(&TableCell) -> String,
    ) -> Vec<std::ops::Range<usize>> {
        let width = |index: usize| {
            let cells = table.rows.iter().filter_map(|row| match &row.body {
                Body::Cells(cells) => Some(width_of(&cell(&cells[index]))),
                Body::Missing(_) => None,
            });
            CELL + cells.max().unwrap_or(0).max(width_of(&header(&table.columns[index])))
        };
        let room = self.width.saturating_sub(name_width + CELL);
        let (mut chunks, mut start, mut used) = (Vec::new(), 0, 0);
        for index in 0..table.columns.len() {
            let width = width(index);
            if used + width > room && index > start {
                chunks.push(start..index);
                (start, used) = (index, 0);
            }
            used += width;
        }
        chunks.push(start..table.columns.len());
        chunks
    }

    fn chunk(
        &mut self,
        table: &Table,
        columns: std::ops::Range<usize>,
        name_width: usize,
        cell: fn(&TableCell) -> String,
    ) {
        let mut laid = comfy_table::Table::new();
        laid.load_style(LINES);
        let heads = table.columns[columns.clone()].iter().map(header);
        laid.set_header(std::iter::once(table.corner.to_owned()).chain(heads));
        let mut holes = Vec::new();
        for row in &table.rows {
            match &row.body {
                Body::Cells(cells) => {
                    let cells = cells[columns.clone()].iter().map(cell);
                    laid.add_row(std::iter::once(row_title(row)).chain(cells));
                }
                Body::Missing(reason) => holes.push((row_title(row), reason)),
            }
        }
        for (at, column) in laid.column_iter_mut().enumerate() {
            let words = at > 0 && table.is_words(columns.start + at - 1);
            let side = if at == 0 || words { CellAlignment::Left } else { CellAlignment::Right };
            column.set_cell_alignment(side);
        }
        let lines: Vec<String> = laid.lines().collect();
        let (last, body) = lines.split_last().map_or(("", &[][..]), |(last, body)| (last, body));
        for line in body {
            let marked = line.replace('▲', &self.styled("1;32", "▲"));
            self.line(&marked);
        }
        for (name, reason) in holes {
            let first = format!(" {name:<name_width$}  ");
            let indent = " ".repeat(name_width + 3);
            let text = match self.told.insert((name, reason.clone())) {
                true => reason.clone(),
                false => again(reason),
            };
            self.wrapped(&first, &indent, &text);
        }
        self.line(last);
    }

    /// What was not measured, or not wholly.
    pub(crate) fn missing(&mut self, view: &View) {
        if view.missing.is_empty() {
            return;
        }
        self.heading("Not measured, or not wholly");
        for hole in &view.missing {
            let workloads = hole.workloads.join("; ");
            let text = format!("{} {}: {} ({workloads})", hole.filesystem, hole.what, hole.reason);
            self.wrapped("- ", "  ", &text);
        }
    }

    /// Every warning with its cure.
    pub(crate) fn warnings(&mut self, view: &View) {
        if view.warnings.is_empty() {
            return;
        }
        self.heading("Warnings");
        for row in &view.warnings {
            let style = if row.level == Level::Info { "1" } else { "1;33" };
            let code = self.styled(style, row.code);
            let mut text = format!("{code} ({}, ", row.level.name());
            // Writing to a string cannot fail.
            let _ = match &row.places[..] {
                [place] => write!(text, "{place})"),
                places => write!(text, "{} times at {} places)", row.count, places.len()),
            };
            let _ = write!(text, ": {}", row.message);
            self.wrapped("- ", "  ", &text);
            self.wrapped("    → ", "      ", row.cure);
        }
    }
}

/// Title and unit of a row; a note stands below, short enough not to widen the column.
fn row_title(row: &Row) -> String {
    let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
    // A row without numbers says itself why.
    let note = match row.body {
        Body::Cells(_) => row.note.replace(" repeats ", "\n"),
        Body::Missing(_) => String::new(),
    };
    let below = if note.is_empty() { "" } else { "\n" };
    format!("{}{unit}{below}{note}", row.title)
}

/// In place of a reason that stands above already.
fn again(reason: &str) -> String {
    let what = reason.split_once(':').map_or("not measured", |(what, _)| what);
    format!("{what}, as told above")
}

/// Title and unit of a column; long names break after their dashes, and above numbers before their
/// last word.
fn header(column: &Column) -> String {
    let long = width_of(&column.title);
    let title = match (column.title.split_once('-'), column.title.rsplit_once(' ')) {
        (Some((first, rest)), _) if long > 8 => format!("{first}-\n{rest}"),
        (_, Some((rest, last))) if long > 12 && !column.unit.is_empty() => {
            format!("{rest}\n{last}")
        }
        _ => column.title.clone(),
    };
    if column.unit.is_empty() { title } else { format!("{title}\n{}", column.unit) }
}

/// Words of a cell in lines of so many letters, so that they do not widen their column.
fn narrow(text: &str, width: usize) -> String {
    text.lines().flat_map(|line| wrap(line, width, "", "")).collect::<Vec<_>>().join("\n")
}

fn compact(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => narrow(text, NARROW),
        TableCell::Value(value) => {
            let mark = if value.top { "▲ " } else { "" };
            let warned = if value.codes.is_empty() { "" } else { "!" };
            let mut text = format!("{mark}{}{warned}", value.shown.value);
            if let Some(relative) = &value.shown.relative {
                // Writing to a string cannot fail.
                let _ = write!(text, "\n±{relative}");
            }
            text.push_str(&remarks(value));
            text
        }
    }
}

fn bare(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => text.clone(),
        TableCell::Value(value) => format!("{}{}", value.shown.value, remarks(value)),
    }
}

fn full(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => narrow(text, WORDS),
        TableCell::Value(value) => {
            let mark = if value.top { "▲ " } else { "" };
            let mut text = format!("{mark}{}", value.shown.value);
            if let Some((low, high)) = &value.shown.interval {
                // Writing to a string cannot fail.
                let _ = write!(text, " [{low}, {high}]");
            }
            text.push_str(&remarks(value));
            value.codes.iter().for_each(|code| {
                text.push('\n');
                text.push_str(code);
            });
            text
        }
    }
}

/// What a number must not be read without: its own n, its failed repeats.
fn remarks(value: &ValueCell) -> String {
    let n = if value.n_stated { format!("\nn = {}", value.n) } else { String::new() };
    let note = if value.note.is_empty() { String::new() } else { format!("\n{}", value.note) };
    n + &note
}

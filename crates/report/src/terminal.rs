//! The report for a terminal.
//!
//! The first page has the result ([`answer()`]); with `detail` everything else follows: the
//! statements that the data support and the questions that they leave open, what the run says about
//! itself, the warnings with their hints, the overview tables (filesystems × tests, the top group
//! marked), and the ranked table of every test. Tables wider than the terminal are continued below
//! under the same row headers, never cut; no line is longer than the terminal is wide. Small
//! columns of letters show how a test runs over a swept parameter, and its repetitions one after
//! the other. No text from outside reaches the terminal as a command; [`ascii()`] is for terminals
//! that show nothing else.

mod answer;
mod ascii;
mod spark;
mod study;
mod tables;
mod wrapped;

use std::{collections::BTreeSet, fmt::Write};

use model::warning::Level;
pub use wrapped::harmless;
use wrapped::wrap;

use crate::{
    published,
    units::one_line,
    view::{Claim, Table, Threshold, View, Withheld},
};

pub use answer::answer;
pub use ascii::ascii;

/// How the report is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns of the terminal; less than 60 is taken as 60.
    pub width: usize,
    /// Whether to use escape sequences for bold and color.
    pub color: bool,
    /// Whether more follows the first page: every test with ratios, verdicts, latency, lifecycle.
    pub detail: bool,
}

/// Lays the view out for a terminal: the first page, and with `detail` the rest.
pub fn terminal(view: &View, options: &TerminalOptions) -> String {
    let mut text = answer(&[view], options);
    if options.detail {
        text.push('\n');
        text.push_str(&details(view, options));
    }
    text
}

/// What follows the first page.
fn details(view: &View, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    page.head(view);
    page.claims(view);
    page.control(view);
    page.missing(view);
    page.warnings(view);
    page.study(view);
    for (index, overview) in view.overviews.iter().enumerate() {
        let suite = &view.suites[index];
        let own = |table: &&Table| !view.in_study(&table.id);
        page.heading(&format!("Suite {}", suite.name));
        page.conditions(view, &suite.name);
        let by_point = overview.by_point.iter().filter(own);
        by_point.chain(overview.composites.iter().filter(own)).for_each(|table| page.matrix(table));
        view.operations[index].iter().flatten().take(1).for_each(|table| page.matrix(table));
        overview.further.iter().for_each(|table| page.matrix(table));
        let more = overview.by_filesystem.iter().chain(&overview.counterparts);
        more.filter(own).for_each(|table| page.table(table));
        let evidence = view.evidence[index].iter().zip(&view.operations[index]);
        for (ranked, (evidence, operations)) in view.ranked[index].iter().zip(evidence) {
            page.table(ranked);
            page.repeats(view, index, &ranked.id);
            operations.iter().for_each(|table| page.matrix(table));
            evidence.iter().for_each(|table| page.evidence(table));
        }
    }
    page.courses(view);
    view.latency.iter().for_each(|table| page.table(table));
    let own = view.lifecycle.iter().filter(|table| !view.in_study(&table.id));
    own.for_each(|table| page.matrix(table));
    if let Some(note) = published::note(&view.published) {
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
        self.text.push_str(harmless(text, self.color).trim_end());
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
        self.line("");
        self.bold(text);
    }

    /// Lines in bold.
    fn bold(&mut self, text: &str) {
        for line in wrap(text, self.width, "", "  ") {
            let line = self.styled("1", &line);
            self.line(&line);
        }
    }

    fn head(&mut self, view: &View) {
        let facts = &view.facts;
        self.bold(&one_line(&facts.title));
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

    fn claims(&mut self, view: &View) {
        let points = &view.findings.by_point;
        let open: Vec<&Withheld> = points.iter().flat_map(|point| &point.open).collect();
        let claims: Vec<&Claim> = points.iter().flat_map(|point| &point.claims).collect();
        if claims.is_empty() && open.is_empty() {
            return;
        }
        self.heading(view.findings.heading());
        claims.into_iter().for_each(|claim| self.wrapped("- ", "  ", &claim.text));
        self.wrapped("", "", &view.findings.scope);
        if !open.is_empty() {
            self.heading("Not decided");
        }
        open.into_iter().for_each(|open| self.wrapped("- ", "  ", &open.text()));
    }

    /// What the run says about itself.
    fn control(&mut self, view: &View) {
        let control = &view.control;
        if control.is_empty() {
            return;
        }
        if !control.lines.is_empty() {
            self.heading("Control");
        }
        control.lines.iter().for_each(|line| self.wrapped("- ", "  ", line));
        control.tables.iter().for_each(|table| self.table(table));
    }

    /// How the tests of a suite scale, and what they depend on.
    fn conditions(&mut self, view: &View, suite: &str) {
        for scaled in view.scaling.iter().filter(|scaled| scaled.suite == suite) {
            scaled.tables.iter().take(1).for_each(|table| self.matrix(table));
            scaled.tables.iter().skip(1).for_each(|table| self.table(table));
        }
        for other in view.interactions.iter().filter(|other| other.suite == suite) {
            other.tables.iter().take(1).for_each(|table| self.matrix(table));
            other.tables.iter().skip(1).for_each(|table| self.table(table));
        }
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

#[cfg(test)]
mod tests;

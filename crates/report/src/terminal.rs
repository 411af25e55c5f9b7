//! The report for a terminal: what a run says on one or two screens.
//!
//! First what the data say, what they leave open, and what the run says about itself: twins, drift,
//! what is missing, and the warnings with their cures. Then the overview tables, filesystems ×
//! tests with the top group marked; on request the ranked table of every test with ratios and
//! verdicts. Tables wider than the terminal are continued below under the same row headers, never
//! cut; no line is longer than the terminal is wide. Small columns of letters show how a test runs
//! over a swept parameter, and its repeats one after the other. No text from outside reaches the
//! terminal as a command; [`ascii()`] is for terminals that show nothing else.

mod ascii;
mod spark;
mod study;
mod tables;
mod wrapped;

use std::{collections::BTreeSet, fmt::Write};

use model::warning::Level;
use wrapped::{harmless, wrap};

use crate::{
    published,
    units::one_line,
    view::{Claim, DRIFT, Table, Threshold, View, Withheld},
};

pub use ascii::ascii;

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
    page.study(view, options.detail);
    for (index, overview) in view.overviews.iter().enumerate() {
        let suite = &view.suites[index];
        let own = |table: &&Table| !view.in_study(&table.id);
        if options.detail || overview.all().any(|table| own(&table)) {
            page.heading(&format!("Suite {}", suite.name));
        }
        let alone = |table: &&Table| {
            let point = table.id.split("--").next().unwrap_or_default();
            own(table) && (options.detail || !view.stands_elsewhere(suite, point))
        };
        page.conditions(view, &suite.name, options.detail);
        let by_point = overview.by_point.iter().filter(alone);
        by_point.chain(overview.composites.iter().filter(own)).for_each(|table| page.matrix(table));
        page.operations(&view.operations[index], options.detail);
        if options.detail {
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
    }
    page.courses(view, options.detail);
    if options.detail {
        view.latency.iter().for_each(|table| page.table(table));
    }
    // Where tasks are timed as a whole, what surrounds them is part of the question.
    if options.detail || view.overviews.iter().any(|overview| !overview.composites.is_empty()) {
        let own = view.lifecycle.iter().filter(|table| !view.in_study(&table.id));
        own.for_each(|table| page.matrix(table));
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

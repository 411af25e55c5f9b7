//! Terminal output of a report.
//!
//! The first page has the result ([`answer()`]). With `detail` follow findings, inconclusive
//! questions, run quality, warnings with hints, overview tables (filesystems × tests, top group
//! marked), and the ranking of every test. Tables wider than the terminal continue below with the
//! same row headers; no line is wider than the terminal. Sparklines show sweeps and the repetitions
//! of a test. Control characters in untrusted text are replaced; [`ascii()`] is for terminals
//! without Unicode.

mod answer;
mod spark;
mod study;

use std::fmt::Write;

use model::warning::Severity;

use crate::{
    document::terminal::{Page, TerminalOptions},
    published,
    units::one_line,
    view::{EquivalenceMargin, Finding, Table, View, WithheldFinding},
};

pub use answer::answer;

/// Terminal text of a view: the first page and, with `detail`, everything else.
pub fn terminal(view: &View, options: &TerminalOptions) -> String {
    let mut text = answer(&[view], options);
    if options.detail {
        text.push('\n');
        text.push_str(&details(view, options));
    }
    text
}

/// Everything after the first page.
fn details(view: &View, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    page.head(view);
    page.findings(view);
    page.quality(view);
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
        let activity = view.activity[index].iter().zip(&view.operations[index]);
        for (ranked, (activity, operations)) in view.ranked[index].iter().zip(activity) {
            page.table(ranked);
            page.repetitions(view, index, &ranked.id);
            operations.iter().for_each(|table| page.matrix(table));
            activity.iter().for_each(|table| page.activity(table));
        }
    }
    page.sweeps(view);
    view.latency.iter().for_each(|table| page.table(table));
    let own = view.lifecycle.iter().filter(|table| !view.in_study(&table.id));
    own.for_each(|table| page.matrix(table));
    if let Some(note) = published::note(&view.published) {
        page.line("");
        page.wrapped("", "", &note);
    }
    page.text
}

impl Page {
    fn head(&mut self, view: &View) {
        let facts = &view.facts;
        self.bold(&one_line(&facts.title));
        let about = match facts.imported {
            // Imported runs have no plan or profile.
            Some(_) => format!("records {} · {} · run {}", facts.plan_name, facts.when, facts.run),
            None => format!(
                "plan {} · profile {} ({}) · {} · run {}",
                facts.plan_name,
                facts.profile.name(),
                EquivalenceMargin::of(facts.profile).label(),
                facts.when,
                facts.run
            ),
        };
        self.wrapped("", "  ", &about);
        self.wrapped("", "  ", &facts.conditions);
        for line in &facts.run_conditions {
            self.wrapped("", "  ", line);
        }
        for (key, value) in &facts.overrides {
            self.wrapped("", "  ", &format!("overridden: {key} = {value}"));
        }
    }

    fn findings(&mut self, view: &View) {
        let points = &view.findings.by_point;
        let open: Vec<&WithheldFinding> = points.iter().flat_map(|point| &point.open).collect();
        let findings: Vec<&Finding> = points.iter().flat_map(|point| &point.findings).collect();
        if findings.is_empty() && open.is_empty() {
            return;
        }
        self.heading(view.findings.heading());
        findings.into_iter().for_each(|finding| self.wrapped("- ", "  ", &finding.text));
        self.wrapped("", "", &view.findings.scope);
        if !open.is_empty() {
            self.heading("Inconclusive");
        }
        open.into_iter().for_each(|open| self.wrapped("- ", "  ", &open.text()));
    }

    /// A/A control, drift, and invalid trials.
    fn quality(&mut self, view: &View) {
        let quality = &view.quality;
        if quality.is_empty() {
            return;
        }
        if !quality.lines.is_empty() {
            self.heading("Run quality");
        }
        quality.lines.iter().for_each(|line| self.wrapped("- ", "  ", line));
        quality.tables.iter().for_each(|table| self.table(table));
    }

    /// Scaling and conditions of a suite.
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

    /// Missing and incomplete results.
    pub(crate) fn missing(&mut self, view: &View) {
        if view.missing.is_empty() {
            return;
        }
        self.heading("Missing results");
        for hole in &view.missing {
            let workloads = hole.workloads.join("; ");
            let text = format!("{} {}: {} ({workloads})", hole.filesystem, hole.what, hole.reason);
            self.wrapped("- ", "  ", &text);
        }
    }

    /// All warnings with their hints.
    pub(crate) fn warnings(&mut self, view: &View) {
        if view.warnings.is_empty() {
            return;
        }
        self.heading("Warnings");
        for row in &view.warnings {
            let style = if row.severity == Severity::Info { "1" } else { "1;33" };
            let code = self.styled(style, row.code);
            let mut text = format!("{code} ({}, ", row.severity.name());
            // Writing to a string cannot fail.
            let _ = match &row.places[..] {
                [place] => write!(text, "{place})"),
                places => write!(text, "{} times in {} results)", row.count, places.len()),
            };
            let _ = write!(text, ": {}", row.message);
            self.wrapped("- ", "  ", &text);
            self.wrapped("  Hint: ", "    ", row.hint);
        }
    }
}

#[cfg(test)]
mod tests;

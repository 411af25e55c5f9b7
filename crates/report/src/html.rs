//! HTML report: one file that loads nothing, works without scripts, in dark mode, and in print.
//!
//! Markup is in `templates/`; this module converts the view to the structs that they read, one file
//! per part of the page: the question ([`question`]), suites and their tests ([`suites`]), charts
//! over many points ([`wide`]), tables ([`tables`]), and data for the script and for programs
//! ([`data`]). Tables and charts are rendered to text first; the size of a page is limited
//! ([`budget`]). The script (`templates/report.js`) adds filters, ratios to a baseline, and
//! sorting; the page has all texts and numbers without it.

mod answer;
mod budget;
mod data;
mod question;
mod study;
mod suites;
mod tables;
#[cfg(test)]
mod tests;
mod wide;

use askama::Template;

use crate::{
    document::html::{marker, rendered, section},
    published,
    view::{EquivalenceMargin, Facts, Filesystem, Findings, Missing, View, WarningRow},
};

pub use answer::Part;
use budget::Budget;
use study::{StudyPart, StudySection};
use suites::{Charts, SuiteSection};
use tables::{Points, table_html};
use wide::WideSection;

/// Renders the view as one self-contained HTML file. Its first screen has the results of the other
/// parts, too.
pub fn html(view: &View, parts: &[Part<'_>]) -> String {
    page(view, parts, Budget::new())
}

/// Page whose charts fit into the budget.
fn page(view: &View, parts: &[Part<'_>], mut budget: Budget) -> String {
    let style = include_str!("../templates/style.css");
    let script = include_str!("../templates/report.js");
    let points = Points::new(view);
    let download = view.samples.csv.as_deref().map(data::url);
    // The data of each test are always included.
    let (ratios, ranked) = rayon::join(|| data::ratios(view), || suites::ranked(view, &points));
    let bytes: usize = ranked.iter().flatten().map(String::len).sum();
    budget.spend(ratios.len() + download.as_ref().map_or(0, String::len) + bytes);
    // In the order of the page, so that the first charts fit.
    let charts: Vec<Charts> =
        (0..view.suites.len()).map(|suite| suites::overview(view, suite, &mut budget)).collect();
    let mut wide = budget.split();
    let [scaling, conditions, sweeps] = wide::sections(view, &points, &mut wide);
    budget.return_unused(wide);
    let suites = suites::sections(view, &points, (charts, ranked), &mut budget);
    let tables = |tables: &[crate::view::Table]| -> Vec<String> {
        tables.iter().map(|table| table_html(table, &points)).collect()
    };
    let page = Page {
        facts: &view.facts,
        headline: crate::view::answer::Answer::new(view).headline,
        answer: answer::answer(view, parts),
        question: question::question(view),
        findings: &view.findings,
        quality: &view.quality.lines,
        quality_tables: tables(&view.quality.tables),
        warnings: &view.warnings,
        missing: &view.missing,
        filesystems: view.filesystems.iter().enumerate().map(legend).collect(),
        since: view.since.as_ref().map(|own| {
            let mut html = String::new();
            section(&mut html, own, 2);
            html
        }),
        study: study::section(view, &points),
        suites,
        scaling,
        conditions,
        sweeps,
        latency: tables(&view.latency),
        lifecycle: view
            .lifecycle
            .iter()
            .filter(|table| !view.in_study(&table.id))
            .map(|table| table_html(table, &points))
            .collect(),
        published: published::note(view.suites.iter().map(|suite| suite.name.as_str())),
        omitted: budget.omitted(),
        tables_omitted: budget.tables_omitted(),
        samples: view.samples.rows,
        download,
        ratios,
        style,
        script,
    };
    // The template engine drops the last line break of a template.
    rendered(&page) + "\n"
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    facts: &'a Facts,
    /// Main finding in one sentence.
    headline: String,
    /// First screen.
    answer: String,
    /// Question that the run answers.
    question: String,
    findings: &'a Findings,
    quality: &'a [String],
    quality_tables: Vec<String>,
    warnings: &'a [WarningRow],
    missing: &'a [Missing],
    filesystems: Vec<Legend<'a>>,
    /// Comparison with the previous run of the plan.
    since: Option<String>,
    study: Option<StudySection<'a>>,
    suites: Vec<SuiteSection<'a>>,
    scaling: Vec<WideSection<'a>>,
    conditions: Vec<WideSection<'a>>,
    sweeps: Vec<WideSection<'a>>,
    latency: Vec<String>,
    lifecycle: Vec<String>,
    published: Option<String>,
    /// Number of charts omitted.
    omitted: usize,
    /// Number of tables omitted.
    tables_omitted: usize,
    /// Number of samples of the run.
    samples: usize,
    /// All samples as a `data:` URL, if they are few.
    download: Option<String>,
    /// JSON data from which the script computes ratios.
    ratios: String,
    style: &'static str,
    script: &'static str,
}

/// Filesystem with its marker.
struct Legend<'a> {
    filesystem: &'a Filesystem,
    marker: String,
}

impl Page<'_> {
    fn any_quality(&self) -> bool {
        !self.quality.is_empty() || !self.quality_tables.is_empty()
    }

    fn delta(&self) -> String {
        EquivalenceMargin::of(self.facts.profile).label()
    }

    fn any_inconclusive(&self) -> bool {
        any_inconclusive(self.findings)
    }
}

/// True if the page lists inconclusive questions.
fn any_inconclusive(findings: &Findings) -> bool {
    findings.by_point.iter().any(|point| !point.open.is_empty())
}

/// Reference to the marker in the legend, because a large page has thousands.
fn reference(index: usize) -> String {
    format!("<svg class=\"glyph\" aria-hidden=\"true\"><use href=\"#marker-{index}\"/></svg>")
}

fn legend((index, filesystem): (usize, &Filesystem)) -> Legend<'_> {
    let marker = marker(index).replacen('>', &format!("><g id=\"marker-{index}\">"), 1);
    Legend { filesystem, marker: marker.replace("</svg>", "</g></svg>") }
}

//! The report as one HTML file: no network, complete without script, readable in the dark and on
//! paper.
//!
//! Markup is in `templates/`; this module turns the view into the few structs that they read, one
//! file for each part of the page: what was asked ([`asked`]), suites and their tests ([`suites`]),
//! charts over many points ([`wide`]), tables ([`tables`]), and what the page carries for its
//! script and for programs ([`data`]). Tables and charts are made first, as text, and put in their
//! places; how many charts a page takes is bounded ([`budget`]). The script (`templates/report.js`)
//! adds filters, ratios to a baseline, and sorting; every text and number stands there without it.

mod asked;
mod budget;
mod data;
mod study;
mod suites;
mod tables;
#[cfg(test)]
mod tests;
mod wide;

use askama::Template;

use crate::{
    published,
    svg::Svg,
    view::{Facts, Filesystem, Findings, Missing, Threshold, View, WarningRow},
};

pub(crate) use tables::table_under;

use budget::Budget;
use study::{StudyPart, StudySection};
use suites::{Charts, SuiteSection};
use tables::{Points, table_html};
use wide::WideSection;

/// Lays the view out as one self-contained HTML file.
pub fn html(view: &View) -> String {
    page(view, Budget::new())
}

/// The page with so many marks in its charts at most.
fn page(view: &View, mut budget: Budget) -> String {
    let style = include_str!("../templates/style.css");
    let script = include_str!("../templates/report.js");
    let points = Points::new(view);
    let download = view.samples.csv.as_deref().map(data::url);
    // The data of each test are there in any case.
    let (ratios, ranked) = rayon::join(|| data::ratios(view), || suites::ranked(view, &points));
    let bytes: usize = ranked.iter().flatten().map(String::len).sum();
    budget.spend(ratios.len() + download.as_ref().map_or(0, String::len) + bytes);
    // In the order of the page, so that what stands first is drawn first.
    let charts: Vec<Charts> =
        (0..view.suites.len()).map(|suite| suites::overview(view, suite, &mut budget)).collect();
    let mut wide = budget.part();
    let [scaling, conditions, sweeps] = wide::sections(view, &points, &mut wide);
    budget.put_back(wide);
    let suites = suites::sections(view, &points, (charts, ranked), &mut budget);
    let tables = |tables: &[crate::view::Table]| -> Vec<String> {
        tables.iter().map(|table| table_html(table, view, &points)).collect()
    };
    let page = Page {
        facts: &view.facts,
        asked: asked::question(view),
        findings: &view.findings,
        control: &view.control.lines,
        control_tables: tables(&view.control.tables),
        warnings: &view.warnings,
        missing: &view.missing,
        filesystems: view.filesystems.iter().enumerate().map(legend).collect(),
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
            .map(|table| table_html(table, view, &points))
            .collect(),
        published: published::note(&view.published),
        left_out: budget.left_out(),
        tables_left_out: budget.tables_left_out(),
        samples: view.samples.rows,
        download,
        ratios,
        style,
        script,
    };
    // The template engine drops the last line break of a template.
    rendered(&page) + "\n"
}

/// The text of a template. Writing into a string cannot fail, and our templates call nothing that
/// can.
pub(crate) fn rendered(template: &impl Template) -> String {
    match template.render() {
        Ok(text) => text,
        Err(error) => unreachable!("a template of plain data: {error}"),
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    facts: &'a Facts,
    /// What was asked, as a sentence.
    asked: String,
    findings: &'a Findings,
    control: &'a [String],
    control_tables: Vec<String>,
    warnings: &'a [WarningRow],
    missing: &'a [Missing],
    filesystems: Vec<Legend<'a>>,
    study: Option<StudySection<'a>>,
    suites: Vec<SuiteSection<'a>>,
    scaling: Vec<WideSection<'a>>,
    conditions: Vec<WideSection<'a>>,
    sweeps: Vec<WideSection<'a>>,
    latency: Vec<String>,
    lifecycle: Vec<String>,
    published: Option<String>,
    /// Charts that the page has no room for.
    left_out: usize,
    /// Tables that the page has no room for.
    tables_left_out: usize,
    /// How many samples the run has.
    samples: usize,
    /// All of them as a `data:` URL, where they are few.
    download: Option<String>,
    /// What the script computes ratios from, as JSON.
    ratios: String,
    style: &'static str,
    script: &'static str,
}

/// A filesystem with the marker it has throughout.
struct Legend<'a> {
    filesystem: &'a Filesystem,
    marker: String,
}

impl Page<'_> {
    fn any_control(&self) -> bool {
        !self.control.is_empty() || !self.control_tables.is_empty()
    }

    fn delta(&self) -> String {
        Threshold::of(self.facts.profile).words()
    }

    fn any_open(&self) -> bool {
        self.findings.by_point.iter().any(|point| !point.open.is_empty())
    }
}

/// The marker of a filesystem as a picture that a screen reader skips: the name stands beside it.
fn marker(index: usize) -> String {
    let mut svg = Svg::new(14.0, 14.0);
    svg.marker(index, (7.0, 7.0), 5.0);
    svg.decoration()
}

/// The same by a reference to the one in the legend, since a large page has thousands.
fn reference(index: usize) -> String {
    format!("<svg class=\"glyph\" aria-hidden=\"true\"><use href=\"#marker-{index}\"/></svg>")
}

fn legend((index, filesystem): (usize, &Filesystem)) -> Legend<'_> {
    let marker = marker(index).replacen('>', &format!("><g id=\"marker-{index}\">"), 1);
    Legend { filesystem, marker: marker.replace("</svg>", "</g></svg>") }
}

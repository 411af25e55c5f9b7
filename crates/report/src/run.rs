//! Document of a run: everything after its first page, with the same sections in all formats.

pub(crate) mod budget;
mod facts;
mod question;
mod suites;
mod wide;

use std::collections::BTreeMap;

use analysis::runs::{CompareOptions, chain};
use model::RunRecord;

use crate::{
    comparison,
    document::{Block, Document, Item, Layout, Section, Style, Table, markdown as render},
    figures,
    view::{
        Finding, Missing, Part, PointFindings, View, WarningRow, WithheldFinding,
        answer::{Accounts, Answer},
    },
};
use budget::Budget;

/// Report of a run as Markdown: headline, findings, and all tables with their captions.
pub fn markdown(view: &View) -> String {
    render::markdown(&document(view, &mut Budget::text()))
}

/// Document of a run with the charts and tables that fit into the budget.
pub(crate) fn document(view: &View, budget: &mut Budget) -> Document {
    budget.spend(suites::mandatory(view));
    let all = 0..view.suites.len();
    let mut overviews: Vec<Section> =
        all.clone().map(|at| suites::overview(view, at, budget)).collect();
    let study = study(view, budget);
    // Charts over several points are drawn before those of single tests, with up to half of the
    // remaining budget.
    let mut half = budget.split();
    let wide = wide::sections(view, &mut half);
    budget.return_unused(&half);
    let mut sections: Vec<Section> = view.since.iter().cloned().collect();
    sections.extend(view.crosscheck.iter().map(|(_, section)| section.clone()));
    sections.extend([findings(view), study, slowdowns(view)].into_iter().flatten());
    let mut first = 0;
    for (at, suite) in view.suites.iter().enumerate() {
        sections.extend(std::mem::take(&mut overviews[at]).some());
        sections.extend(suites::tests(view, at, first, budget).some());
        first += suite.points.len();
    }
    let hosts = tables(&view.hosts, Layout::Full).collect();
    sections.extend(Section::new("hosts", "Hosts", hosts).some());
    sections.extend([latency(view), lifecycle(view, budget)].into_iter().flatten());
    sections.extend(suites::activity(view, budget));
    sections.extend(wide);
    let after = [warnings(view), quality(view), missing(view)].into_iter();
    let open = [inconclusive(view), not_compared(view)];
    sections.extend(after.chain(open).flatten());
    sections.extend(facts::sections(view, budget));
    let imported = view.facts.imported.as_ref();
    let program = &view.facts.program;
    Document {
        kicker: imported.map_or_else(String::new, |program| {
            format!("Imported from {program}, not measured by fslab.")
        }),
        title: view.facts.title.clone(),
        headline: format!("{}.", Answer::new(view).headline),
        lead: vec![Block::Paragraph(view.facts.conditions.clone())],
        sections,
        footer: format!("{program} · run {}", view.facts.run),
        filesystems: view.filesystems.iter().map(|own| own.name.clone()).collect(),
        points: points(view),
    }
}

/// Indices of workload points by the ID of a table or chart, for those that are not in the section
/// of their point.
fn points(view: &View) -> BTreeMap<String, usize> {
    let points = view.suites.iter().flat_map(|suite| &suite.points).enumerate();
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, point) in points {
        ids.insert(&point.id, index);
        ids.extend(point.tests.iter().map(|test| (test.id.as_str(), index)));
    }
    let overviews = view.overviews.iter().flat_map(|own| {
        let parts = own.by_point.iter().chain(&own.composites);
        parts.chain(&own.further).chain(&own.counterparts)
    });
    let activity = view.details.iter().flatten().flat_map(|own| &own.activity);
    let tables = overviews.chain(&view.latency).chain(activity).map(|table| table.id.clone());
    let charts = ids.keys().map(|id| format!("{id}--cpu-time"));
    let of = |id: String| {
        let index = ids.get(id.split("--").next()?).copied()?;
        Some((id, index))
    };
    tables.chain(charts).filter_map(of).collect()
}

impl View {
    /// Adds the statements of the study to its section, with their verdicts for this run. Adds
    /// nothing if the plan names no study.
    pub fn check_statements(&mut self, record: &RunRecord) {
        if let Some(study) = &mut self.study {
            study.statements = comparison::statements_section(record);
        }
    }

    /// Adds a comparison with the previous run of the same plan: the verdict, one row per test, and
    /// the conditions that differ. Adds nothing if the runs cannot be compared.
    pub fn compare_with(&mut self, previous: &RunRecord, record: &RunRecord) {
        let runs = [previous, record];
        let chain = chain(&runs, &CompareOptions::default()).ok();
        self.since = chain.map(|chain| {
            let compared = comparison::mail(&runs, &chain);
            let headline = Block::Paragraph(compared.headline);
            let blocks = std::iter::once(headline).chain(compared.lead).collect();
            Section::new("since", "Since the last run of this plan", blocks)
        });
    }
}

/// Section with one subsection per point that has items. If only one point has items, the section
/// has them without a subsection.
fn by_point(
    view: &View,
    (id, title): (&str, &str),
    items: impl Fn(&PointFindings) -> Vec<Item>,
) -> Section {
    let points = view.findings.by_point.iter().map(|point| (&point.label, items(point)));
    let points: Vec<_> = points.filter(|(_, items)| !items.is_empty()).collect();
    let single = points.len() == 1;
    let mut section = Section::new(id, title, Vec::new());
    for (at, (label, items)) in points.into_iter().enumerate() {
        let list = Block::list(Style::Bullets, items);
        match single {
            true => section.blocks.extend(list),
            false => {
                let own = Section::new(format!("{id}-{at}"), label, list.into_iter().collect());
                section.sections.push(own);
            }
        }
    }
    section
}

/// Sentence with a link to the chart of its test.
fn linked(text: String, test: &str) -> Item {
    Item { chart: test.to_owned(), ..Item::of(text) }
}

fn findings(view: &View) -> Option<Section> {
    let item = |finding: &Finding| linked(finding.text.clone(), &finding.test);
    let items = |point: &PointFindings| point.findings.iter().map(item).collect();
    let mut section = by_point(view, ("findings", view.findings.heading()), items).some()?;
    section.blocks.push(Block::Paragraph(view.findings.scope.clone()));
    Some(section)
}

fn inconclusive(view: &View) -> Option<Section> {
    let item = |open: &WithheldFinding| linked(open.text(), &open.test);
    let items = |point: &PointFindings| point.open.iter().map(item).collect();
    by_point(view, ("inconclusive", "Inconclusive"), items).some()
}

/// Tests without a finding or an inconclusive comparison, by reason.
fn not_compared(view: &View) -> Option<Section> {
    let accounts = Accounts::new(view);
    let text =
        |(reason, titles): &(String, Vec<String>)| format!("{}: {reason}", titles.join(", "));
    let list = Block::bullets(accounts.not_compared.iter().map(text).collect::<Vec<_>>());
    Section::new("not-compared", "Tests without comparison", list.into_iter().collect()).some()
}

/// A/A control, drift, and invalid trials.
fn quality(view: &View) -> Option<Section> {
    let lines = Block::bullets(&view.quality.lines);
    let blocks = lines.into_iter().chain(tables(&view.quality.tables, Layout::Full));
    Section::new("run-quality", "Run quality", blocks.collect()).some()
}

/// Missing and incomplete results.
pub(crate) fn missing(view: &View) -> Option<Section> {
    let item = |hole: &Missing| {
        let text = format!("{} ({})", hole.reason, hole.workloads.join("; "));
        Item::named(format!("{} {}", hole.filesystem, hole.what), text)
    };
    let list = Block::list(Style::Bullets, view.missing.iter().map(item));
    Section::new("missing", "Missing results", list.into_iter().collect()).some()
}

/// All warnings with their hints.
pub(crate) fn warnings(view: &View) -> Option<Section> {
    let item = |row: &WarningRow| {
        let places = match &row.places[..] {
            [place] => place.clone(),
            places => format!("{} times in {} results", row.count, places.len()),
        };
        Item {
            id: format!("warning-{}", row.code),
            term: format!("{} ({}, {places})", row.code, row.severity.name()),
            text: row.message.clone(),
            hint: row.hint.into(),
            places: if row.places.len() > 1 { row.places.clone() } else { Vec::new() },
            ..Item::default()
        }
    };
    let list = Block::list(Style::Bullets, view.warnings.iter().map(item));
    Section::new("warnings", "Warnings", list.into_iter().collect()).some()
}

/// Tables and charts of the study, in its order, with the reasons for missing ones.
fn study(view: &View, budget: &mut Budget) -> Option<Section> {
    let study = view.study.as_ref()?;
    let notes = Block::bullets(study.notes.iter().map(|note| format!("{note}.")));
    let mut blocks: Vec<Block> = notes.into_iter().collect();
    for part in &study.parts {
        match part {
            Part::Table(table) => blocks.push(Block::Table(table.clone(), Layout::Compact)),
            Part::Absent { title, reason } => {
                blocks.push(Block::Paragraph(format!("{title}: {reason}.")));
            }
            Part::Links { title, targets } => {
                blocks.push(Block::Links(title.clone(), targets.clone()));
            }
            Part::Totals(_) | Part::Capped(_) | Part::Normalized(_) => {
                blocks.extend(budget.charts(figures::of_part(part)));
            }
        }
    }
    let mut section = Section::new("study", &study.title, blocks);
    section.sections.extend(study.statements.clone());
    Some(section)
}

fn tables<'a>(
    tables: impl IntoIterator<Item = &'a Table>,
    layout: Layout,
) -> impl Iterator<Item = Block> {
    tables.into_iter().map(move |table| Block::Table(table.clone(), layout))
}

/// Slowdown of workloads by others that run at the same time.
fn slowdowns(view: &View) -> Option<Section> {
    let own: Vec<Table> = view.slowdowns.iter().map(|own| own.table()).collect();
    let blocks = tables(&own, Layout::Full).collect();
    Section::new("slowdown", "Slowdown by other workloads", blocks).some()
}

fn latency(view: &View) -> Option<Section> {
    let note =
        "A percentile is shown only if at least 10 operations of every repetition exceed it.";
    let own = tables(&view.latency, Layout::Full);
    let blocks = std::iter::once(Block::Note(note.into())).chain(own).collect();
    (!view.latency.is_empty()).then(|| Section::new("latency", "Latency", blocks))
}

fn lifecycle(view: &View, budget: &mut Budget) -> Option<Section> {
    let own = view.lifecycle.iter().filter(|table| !view.in_study(&table.id));
    let charts = budget.charts(figures::of_sizes(view)).into_iter();
    let blocks = charts.chain(tables(own, Layout::Compact)).collect();
    Section::new("lifecycle", "Lifecycle and space", blocks).some()
}

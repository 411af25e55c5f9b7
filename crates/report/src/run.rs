//! Document of a run: everything after its first page. A section is one function here.

use analysis::runs::{CompareOptions, chain};
use model::RunRecord;

use crate::{
    charts::data::{Level, Series, SweepValue},
    comparison,
    document::{
        Block, Document, Item, Layout, Section, Spark, SparkRow, Style, Table, markdown as render,
    },
    published,
    units::{capital, percent},
    view::{
        EquivalenceMargin, Finding, Missing, Part, PointFindings, Test, View, WarningRow,
        WithheldFinding,
        answer::{Accounts, Answer},
        metric_label,
    },
};

/// Range relative to the median below which repetitions are shown level. It is smaller than any
/// equivalence margin, and the steps of a sparkline would exaggerate it.
const LEVEL: f64 = 0.01;

/// All tables of the view with their captions, after the headline and the findings.
pub fn markdown(view: &View) -> String {
    render::markdown(&document(view))
}

/// Everything but the charts.
pub(crate) fn document(view: &View) -> Document {
    let mut sections: Vec<Section> = [
        view.since.clone(),
        findings(view),
        inconclusive(view),
        not_compared(view),
        quality(view),
        missing(view),
        warnings(view),
        study(view),
    ]
    .into_iter()
    .flatten()
    .collect();
    sections.extend((0..view.suites.len()).map(|at| suite(view, at)));
    sections.extend(
        [sweeps(view), latency(view), lifecycle(view), references(view)].into_iter().flatten(),
    );
    let imported = view.facts.imported.as_ref();
    Document {
        kicker: imported.map_or_else(String::new, |program| {
            format!("Imported from {program}, not measured by fslab.")
        }),
        title: view.facts.title.clone(),
        headline: format!("{}.", Answer::new(view).headline),
        lead: lead(view),
        sections,
        ..Document::default()
    }
}

impl View {
    /// Adds a comparison with the previous run of the same plan: the verdict, one row per test,
    /// and the conditions that differ. Nothing if the runs cannot be compared.
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

/// Plan, conditions, and overrides.
fn lead(view: &View) -> Vec<Block> {
    let facts = &view.facts;
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
    let overrides =
        facts.overrides.iter().map(|(key, value)| format!("overridden: {key} = {value}"));
    let lines = [about, format!("{} · {}", facts.program, facts.conditions)].into_iter();
    let lines = lines.chain(facts.run_conditions.iter().cloned()).chain(overrides);
    Block::list(Style::Facts, lines.map(Item::of)).into_iter().collect()
}

/// One subsection for each point with texts; none if there is only one point.
fn by_point(
    view: &View,
    (id, title): (&str, &str),
    texts: impl Fn(&PointFindings) -> Vec<String>,
) -> Section {
    let points = view.findings.by_point.iter().map(|point| (&point.label, texts(point)));
    let points: Vec<_> = points.filter(|(_, texts)| !texts.is_empty()).collect();
    let single = points.len() == 1;
    let mut section = Section::new(id, title, Vec::new());
    for (at, (label, texts)) in points.into_iter().enumerate() {
        let list = Block::bullets(texts);
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

fn findings(view: &View) -> Option<Section> {
    let texts = |finding: &Finding| finding.text.clone();
    let texts = |point: &PointFindings| point.findings.iter().map(texts).collect();
    let mut section = by_point(view, ("findings", view.findings.heading()), texts).some()?;
    section.blocks.push(Block::Paragraph(view.findings.scope.clone()));
    Some(section)
}

fn inconclusive(view: &View) -> Option<Section> {
    let texts = |point: &PointFindings| point.open.iter().map(WithheldFinding::text).collect();
    by_point(view, ("inconclusive", "Inconclusive"), texts).some()
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
            ..Item::default()
        }
    };
    let list = Block::list(Style::Bullets, view.warnings.iter().map(item));
    Section::new("warnings", "Warnings", list.into_iter().collect()).some()
}

/// Tables of the study, in its order, with the reasons for missing ones.
fn study(view: &View) -> Option<Section> {
    let study = view.study.as_ref()?;
    let notes = Block::bullets(study.notes.iter().map(|note| format!("{note}.")));
    let parts = study.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(Block::Table(table.clone(), Layout::Compact)),
        Part::Absent { title, reason } => Some(Block::Paragraph(format!("{title}: {reason}."))),
        Part::Links { .. } | Part::Totals(_) | Part::Capped(_) | Part::Normalized(_) => None,
    });
    Some(Section::new("study", &study.title, notes.into_iter().chain(parts).collect()))
}

fn tables<'a>(
    tables: impl IntoIterator<Item = &'a Table>,
    layout: Layout,
) -> impl Iterator<Item = Block> {
    tables.into_iter().map(move |table| Block::Table(table.clone(), layout))
}

/// Overview tables of a suite, then every test with its repetitions.
fn suite(view: &View, at: usize) -> Section {
    use Layout::{Compact, Full};
    let (suite, overview) = (&view.suites[at], &view.overviews[at]);
    let own = |table: &&Table| !view.in_study(&table.id);
    let mut blocks: Vec<Block> = Vec::new();
    let scaling = view.scaling.iter().filter(|other| other.suite == suite.name);
    let conditions = view.interactions.iter().filter(|other| other.suite == suite.name);
    let wide = scaling.map(|it| &it.tables).chain(conditions.map(|it| &it.tables));
    for wide in wide {
        blocks.extend(tables(wide.iter().take(1), Compact));
        blocks.extend(tables(wide.iter().skip(1), Full));
    }
    let totals = overview.by_point.iter().chain(&overview.composites).filter(own);
    blocks.extend(tables(totals, Compact));
    blocks.extend(tables(&overview.further, Compact));
    let more = overview.by_filesystem.iter().chain(&overview.counterparts);
    blocks.extend(tables(more.filter(own), Full));
    let tests = suite.points.iter().flat_map(|point| &point.tests);
    for ((index, ranked), test) in view.ranked[at].iter().enumerate().zip(tests) {
        blocks.extend(tables([ranked], Full));
        blocks.extend(repetitions(view, test));
        blocks.extend(tables(&view.operations[at][index], Compact));
        blocks.extend(tables(&view.activity[at][index], Layout::Medians));
    }
    Section::new(format!("suite-{}", at + 1), format!("Suite {}", suite.name), blocks)
}

/// Repetitions of a test in order, from minimum to maximum per filesystem.
fn repetitions(view: &View, test: &Test) -> Option<Block> {
    let shown = test.entries.iter().filter(|entry| entry.values.len() > 1);
    let row = |entry: &crate::view::Entry| {
        let values = &entry.values;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = entry.summary.as_ref().map_or(high, |summary| summary.median);
        let apart = (high - low) / middle.abs();
        SparkRow {
            name: view.filesystems[entry.filesystem].name.clone(),
            range: if apart < LEVEL { (0.0, 0.0) } else { (low, high) },
            values: values.iter().copied().map(Some).collect(),
            text: format!(
                "{} to {} {}, range {}, n = {}",
                test.scale.rough(low),
                test.scale.rough(high),
                test.scale.name,
                percent(apart),
                values.len()
            ),
        }
    };
    let rows: Vec<SparkRow> = shown.map(row).collect();
    (!rows.is_empty()).then(|| {
        Block::Spark(Spark {
            title: String::new(),
            rows,
            caption: "Repetitions in order, from minimum to maximum per filesystem; level if the \
                      range is less than 1 %."
                .into(),
        })
    })
}

/// Medians over the number of clients and other swept parameters.
fn sweeps(view: &View) -> Option<Section> {
    let scaled = view.scaling.iter().filter_map(|scaled| {
        let series: Vec<&Series> = scaled.lines.iter().map(|line| &line.series).collect();
        let about = (scaled.scale.name, scaled.metric.spec().better.label());
        let title = format!("{}, {}", scaled.title, metric_label(scaled.metric));
        sweep(title, about, &scaled.levels, &series, &scaled.repetitions)
    });
    let swept = view.sweeps.iter().filter_map(|sweep| {
        let series: Vec<&Series> = sweep.series.iter().collect();
        let about = (sweep.scale.name, sweep.metric.spec().better.label());
        let (test, metric) = (capital(&sweep.test), metric_label(sweep.metric));
        let title = format!("{test} over {}, {metric}", sweep.parameter);
        self::sweep(title, about, &sweep.levels, &series, &sweep.repetitions)
    });
    let blocks = scaled.chain(swept).map(Block::Spark).collect();
    Section::new("sweeps", "Parameter sweeps", blocks).some()
}

/// One line per filesystem, from zero to the maximum of all.
fn sweep(
    title: String,
    (unit, better): (&str, &str),
    levels: &[Level],
    series: &[&Series],
    repetitions: &str,
) -> Option<Spark> {
    let median = |value: &Option<SweepValue>| value.map(|value| value.median);
    let all = series.iter().flat_map(|series| series.values.iter().filter_map(median));
    let high = all.fold(0.0, f64::max);
    let row = |series: &&Series| {
        let values: Vec<Option<f64>> = series.values.iter().map(median).collect();
        let known = values.iter().flatten();
        let text = match (known.clone().next(), known.last()) {
            (Some(first), Some(last)) => format!("{} to {} {unit}", short(*first), short(*last)),
            _ => "no result".into(),
        };
        SparkRow { name: series.name.clone(), range: (0.0, high), values, text }
    };
    let labels: Vec<&str> = levels.iter().map(|level| level.label.as_str()).collect();
    (high > 0.0).then(|| Spark {
        title,
        rows: series.iter().map(row).collect(),
        caption: format!(
            "Medians at {}, from zero to the maximum of all; {better}; n = {repetitions} \
             repetitions; the HTML report has the 95 % confidence intervals.",
            labels.join(", ")
        ),
    })
}

fn latency(view: &View) -> Option<Section> {
    Section::new("latency", "Latency", tables(&view.latency, Layout::Full).collect()).some()
}

fn lifecycle(view: &View) -> Option<Section> {
    let own = view.lifecycle.iter().filter(|table| !view.in_study(&table.id));
    Section::new("lifecycle", "Lifecycle", tables(own, Layout::Compact).collect()).some()
}

/// Reference to published results of the same suites.
fn references(view: &View) -> Option<Section> {
    let note =
        Block::Paragraph(published::note(view.suites.iter().map(|suite| suite.name.as_str()))?);
    Some(Section::new("published", "Published results", vec![note]))
}

/// A displayed number with three digits.
fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

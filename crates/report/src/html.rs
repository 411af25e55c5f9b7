//! The report as one HTML file: no network, complete without script, readable in the dark and on
//! paper.
//!
//! Markup is in `templates/`; this module turns the view into the few structs that they read.
//! Tables and charts are made first, as text, and put in their places.

use std::collections::BTreeSet;

use askama::Template;

use crate::{
    charts::{
        interaction::InteractionChart,
        intervals::{IntervalRow, Intervals},
        scaling::ScalingChart,
        sweep::SweepChart,
    },
    published,
    svg::Svg,
    units::capital,
    view::{
        Across, Body, Claim, Entry, Facts, Filesystem, Findings, Interaction, Missing, Scaled,
        Status, Sweep, Table, TableCell, Test, Threshold, View, WarningRow, slug, words,
    },
};

/// Lays the view out as one self-contained HTML file.
pub fn html(view: &View) -> String {
    let style = include_str!("../templates/style.css");
    let script = include_str!("../templates/sort.js");
    let page = Page {
        facts: &view.facts,
        findings: &view.findings,
        control: &view.control.lines,
        control_tables: view.control.tables.iter().map(|table| table_html(table, view)).collect(),
        warnings: &view.warnings,
        missing: &view.missing,
        filesystems: view.filesystems.iter().enumerate().map(legend).collect(),
        suites: suites(view),
        scaling: view.scaling.iter().map(|scaled| scaling_section(scaled, view)).collect(),
        conditions: view.interactions.iter().map(|other| conditions_section(other, view)).collect(),
        sweeps: view.sweeps.iter().map(|sweep| sweep_section(sweep, view)).collect(),
        latency: view.latency.iter().map(|table| table_html(table, view)).collect(),
        lifecycle: view.lifecycle.iter().map(|table| table_html(table, view)).collect(),
        published: published::note(&view.published),
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
    findings: &'a Findings,
    control: &'a [String],
    control_tables: Vec<String>,
    warnings: &'a [WarningRow],
    missing: &'a [Missing],
    filesystems: Vec<Legend<'a>>,
    suites: Vec<SuiteSection<'a>>,
    scaling: Vec<WideSection<'a>>,
    conditions: Vec<WideSection<'a>>,
    sweeps: Vec<WideSection<'a>>,
    latency: Vec<String>,
    lifecycle: Vec<String>,
    published: Option<String>,
    style: &'static str,
    script: &'static str,
}

#[derive(Template)]
#[template(path = "table.html")]
struct TableTemplate<'a> {
    table: &'a Table,
    conditions: &'a str,
    /// Whether rows and columns about a filesystem show its marker.
    marked: bool,
}

/// A filesystem with the marker it has throughout.
struct Legend<'a> {
    filesystem: &'a Filesystem,
    marker: String,
}

struct SuiteSection<'a> {
    name: &'a str,
    by_point: Vec<String>,
    /// Workloads that stand side by side in other sections, and not here.
    elsewhere: usize,
    composites: Vec<String>,
    further: Vec<String>,
    by_filesystem: Vec<String>,
    counterparts: Vec<String>,
    points: Vec<PointSection<'a>>,
}

struct PointSection<'a> {
    id: &'a str,
    label: &'a str,
    parameters: String,
    figures: Vec<Figure<'a>>,
}

/// Charts over many points, the sentences they show, and their tables.
struct WideSection<'a> {
    id: &'a str,
    title: &'a str,
    claims: &'a [Claim],
    figures: Vec<Figure<'a>>,
    tables: Vec<String>,
}

/// A chart, and the table of its data.
struct Figure<'a> {
    id: &'a str,
    title: String,
    svg: String,
    caption: String,
    conditions: &'a str,
    table: String,
    /// What a replay did, by kind of operation; empty for other tests.
    operations: String,
    /// Tables of what the machine did meanwhile.
    evidence: Vec<String>,
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

impl TableTemplate<'_> {
    /// Takes a reference because the template gives one.
    fn is_words(&self, column: &usize) -> bool {
        self.table.is_words(*column)
    }

    /// Takes a reference because the template gives one.
    fn marker(&self, filesystem: &Option<usize>) -> String {
        match filesystem {
            Some(index) if self.marked => marker(*index),
            _ => String::new(),
        }
    }
}

fn table_html(table: &Table, view: &View) -> String {
    table_under(table, &view.facts.conditions, true)
}

/// A table under its conditions, with the markers of filesystems or without.
pub(crate) fn table_under(table: &Table, conditions: &str, marked: bool) -> String {
    rendered(&TableTemplate { table, conditions, marked })
}

/// The marker of a filesystem as a picture that a screen reader skips: the name stands beside it.
fn marker(index: usize) -> String {
    let mut svg = Svg::new(14.0, 14.0);
    svg.marker(index, (7.0, 7.0), 5.0);
    svg.decoration()
}

fn legend((index, filesystem): (usize, &Filesystem)) -> Legend<'_> {
    Legend { filesystem, marker: marker(index) }
}

fn suites(view: &View) -> Vec<SuiteSection<'_>> {
    let html = |tables: &[Table]| tables.iter().map(|table| table_html(table, view)).collect();
    let mut sections = Vec::new();
    for (index, (suite, overview)) in view.suites.iter().zip(&view.overviews).enumerate() {
        let further = view.evidence[index].iter().zip(&view.operations[index]);
        let mut tables = view.ranked[index].iter().zip(further);
        let mut points = Vec::new();
        for point in &suite.points {
            // Tests stand on the left: `zip` asks the right side only after the left gave
            // something.
            let figures = point.tests.iter().zip(tables.by_ref());
            let figures = figures.map(|(test, (table, (evidence, operations)))| Figure {
                operations: operations.iter().map(|table| table_html(table, view)).collect(),
                ..test_figure(test, table, evidence, view)
            });
            points.push(PointSection {
                id: &point.id,
                label: &point.label,
                parameters: point.all_parameters(),
                figures: figures.collect(),
            });
        }
        let elsewhere = |table: &&Table| {
            let point = table.id.split("--").next().unwrap_or_default();
            view.stands_elsewhere(suite, point)
        };
        let alone = overview.by_point.iter().filter(|table| !elsewhere(table));
        sections.push(SuiteSection {
            name: &suite.name,
            by_point: alone.map(|table| table_html(table, view)).collect(),
            elsewhere: overview.by_point.iter().filter(elsewhere).count(),
            composites: html(&overview.composites),
            further: html(&overview.further),
            by_filesystem: html(&overview.by_filesystem),
            counterparts: html(&overview.counterparts),
            points,
        });
    }
    sections
}

fn test_figure<'a>(
    test: &'a Test,
    table: &Table,
    evidence: &[Table],
    view: &'a View,
) -> Figure<'a> {
    let better = test.metric.spec().better.words();
    let claims = view.findings.by_point.iter().flat_map(|point| &point.claims);
    let finding = |claim: &&Claim| claim.test == test.id;
    let description = claims.filter(finding).map(|claim| claim.text.as_str()).next();
    let chart = Intervals {
        id: format!("{}-chart", test.id),
        title: table.title.clone(),
        description: description.unwrap_or("Too few results for a ranking.").to_owned(),
        axis: format!("{}, {} — {better}", words(test.metric), test.scale.name),
        rows: test.entries.iter().map(|entry| interval_row(test, entry, view)).collect(),
    };
    Figure {
        id: &test.id,
        title: table.title.clone(),
        svg: chart.render(),
        caption: format!(
            "Faint dots: every repeat; marker: median; line: 95 % interval of the median. {}. A \
             line at the right marks the top group; filesystems that share a letter were not \
             told apart.{}",
            table.caption.join("; "),
            qualified(&test.codes())
        ),
        conditions: &view.facts.conditions,
        table: table_html(table, view),
        operations: String::new(),
        evidence: evidence.iter().map(|table| table_html(table, view)).collect(),
    }
}

/// The warnings behind the numbers of a figure, as a sentence.
fn qualified(codes: &BTreeSet<&str>) -> String {
    if codes.is_empty() {
        return String::new();
    }
    let codes: Vec<&str> = codes.iter().copied().collect();
    format!(" Warnings at these numbers: {}.", codes.join(", "))
}

fn interval_row(test: &Test, entry: &Entry, view: &View) -> IntervalRow {
    let scale = test.scale;
    let summary = entry.summary.as_ref();
    let interval = summary.and_then(|summary| summary.interval);
    let note = match &entry.status {
        Status::Nothing(reason) => reason.clone(),
        Status::Measured if !entry.ranked => "not ranked".into(),
        Status::Measured => String::new(),
    };
    IntervalRow {
        name: view.filesystems[entry.filesystem].name.clone(),
        series: entry.filesystem,
        values: entry.values.iter().map(|value| scale.number(*value)).collect(),
        median: summary.map(|summary| scale.number(summary.median)),
        interval: interval.map(|ends| (scale.number(ends.low), scale.number(ends.high))),
        shown: summary.map_or(String::new(), |summary| scale.shown(summary).value),
        letters: entry.letters.clone(),
        top: entry.top,
        note,
    }
}

fn sweep_section<'a>(sweep: &'a Sweep, view: &'a View) -> WideSection<'a> {
    let better = sweep.metric.spec().better.words();
    let title = format!("{} over {}", capital(&sweep.test), sweep.parameter);
    let chart = SweepChart {
        id: format!("{}-chart", sweep.id),
        description: format!(
            "{} of {} filesystems at {} tested levels; the data are in the tables by filesystem.",
            capital(&words(sweep.metric)),
            sweep.series.len(),
            sweep.levels.len()
        ),
        title: title.clone(),
        y_axis: format!("{}, {} — {better}", words(sweep.metric), sweep.scale.name),
        x_axis: format!("{} (tested levels, logarithmic)", sweep.parameter),
        levels: &sweep.levels,
        series: &sweep.series,
    };
    let withheld = sweep.withheld.iter().map(|reason| format!(" {}.", capital(reason)));
    let figure = Figure {
        id: &sweep.id,
        title,
        svg: chart.render(),
        caption: format!(
            "Median over n = {} repeats with its 95 % interval as a band; lines join tested levels \
             only.{}{}{}",
            sweep.repeats,
            qualified(&sweep.codes),
            absent(&sweep.absent),
            withheld.collect::<String>()
        ),
        conditions: &view.facts.conditions,
        table: String::new(),
        operations: String::new(),
        evidence: Vec::new(),
    };
    WideSection {
        id: &sweep.id,
        title: &sweep.claims.label,
        claims: &sweep.claims.claims,
        figures: vec![figure],
        tables: Vec::new(),
    }
}

fn scaling_section<'a>(scaled: &'a Scaled, view: &'a View) -> WideSection<'a> {
    let better = scaled.metric.spec().better.words();
    let quantity = words(scaled.metric);
    let first = scaled.levels.first().map_or("", |level| level.label.as_str());
    let clients = scaled.clients.0;
    let chart = ScalingChart {
        id: format!("{}-chart", scaled.id),
        description: description(&scaled.claims.claims, "No sentence is supported by the data."),
        title: scaled.title.clone(),
        y_axis: format!("{quantity}, {} — {better}", scaled.scale.name),
        ratio_axis: format!(
            "{quantity}, × that of {clients}={first} on the same filesystem — {better}"
        ),
        x_axis: format!("{clients} (tested levels, logarithmic)"),
        levels: &scaled.levels,
        lines: &scaled.lines,
    };
    let figure = Figure {
        id: &scaled.id,
        title: scaled.title.clone(),
        svg: chart.render(),
        caption: format!(
            "Above: median over n = {} repeats with its 95 % interval as a band; ring: the \
             fewest {clients} that reach 95 % of the best; thin line: the law of scaling, \
             where one misses no median by more than 10 %. Below: the same as a multiple of \
             {clients}={first} of each filesystem, from medians, 95 % interval by resampling \
             blocks; broken line: each adds what the first does. Thick lines join tested \
             levels only.{}{}",
            scaled.repeats,
            qualified(&scaled.codes),
            absent(&scaled.absent)
        ),
        conditions: &view.facts.conditions,
        table: String::new(),
        operations: String::new(),
        evidence: Vec::new(),
    };
    let tables = scaled.tables.iter().map(|table| table_html(table, view)).collect();
    let claims = &scaled.claims.claims;
    WideSection { id: &scaled.id, title: &scaled.title, claims, figures: vec![figure], tables }
}

fn conditions_section<'a>(interaction: &'a Interaction, view: &'a View) -> WideSection<'a> {
    let charts = interaction.charts.iter();
    let tables = interaction.tables.iter().map(|table| table_html(table, view)).collect();
    WideSection {
        id: &interaction.id,
        title: &interaction.title,
        claims: &interaction.claims.claims,
        figures: charts.map(|across| across_figure(interaction, across, view)).collect(),
        tables,
    }
}

fn across_figure<'a>(
    interaction: &'a Interaction,
    across: &'a Across,
    view: &'a View,
) -> Figure<'a> {
    let better = interaction.metric.spec().better.words();
    let quantity = words(interaction.metric);
    let condition = &across.condition;
    let first = across.levels.first().map_or("", String::as_str);
    let threshold = view.facts.threshold;
    let title = format!("{}: over {condition}", interaction.title);
    let chart = InteractionChart {
        id: format!("{}-{}-chart", interaction.id, slug(condition)),
        description: description(
            &interaction.claims.claims,
            "No sentence is supported by the data; the values are in the tables below.",
        ),
        title: title.clone(),
        y_axis: format!("{quantity}, {} — {better}", interaction.scale.name),
        ratio_axis: format!("× {condition}={first} of the same filesystem — higher is better ↑"),
        x_axis: condition.clone(),
        levels: &across.levels,
        panels: &across.panels,
        threshold: threshold.ratio().0,
    };
    Figure {
        id: &interaction.id,
        title,
        svg: chart.render(),
        caption: format!(
            "Above: median over n = {} repeats; line: its 95 % interval. Below: ratio to \
             {condition}={first} of the same filesystem and panel (Hodges–Lehmann) with the 95 % \
             interval of the inverted test; shaded: differences below {}. Lines that are \
             not parallel depend on the condition.{}{}",
            interaction.repeats,
            threshold.words(),
            qualified(&interaction.codes),
            absent(&interaction.absent)
        ),
        conditions: &view.facts.conditions,
        table: String::new(),
        operations: String::new(),
        evidence: Vec::new(),
    }
}

/// What a screen reader says of a chart: its sentences.
fn description(claims: &[Claim], otherwise: &str) -> String {
    let texts: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
    if texts.is_empty() { otherwise.to_owned() } else { texts.join(" ") }
}

fn absent(absent: &[(String, String)]) -> String {
    absent.iter().map(|(name, reason)| format!(" Absent: {name}, {reason}.")).collect()
}

//! Sections over several workload points: scaling, system settings, and parameter sweeps.

use std::iter::once_with;

use super::{budget::Budget, tables};
use crate::{
    charts::data::{Level, Series, SweepValue},
    document::{Block, Layout, Section, Spark, SparkRow},
    figures,
    view::{Table, View, metric_label},
};

/// Sections on scaling, system settings, and parameter sweeps, without empty ones.
pub(super) fn sections(view: &View, budget: &mut Budget) -> Vec<Section> {
    let mut scaling = Vec::new();
    for (index, own) in view.scaling.iter().enumerate() {
        let series: Vec<&Series> = own.lines.iter().map(|line| &line.series).collect();
        let about = (own.scale.name, own.metric.spec().better.label());
        let title = metric_label(own.metric);
        let spark = spark(title, about, &own.levels, &series, &own.repetitions);
        let figures = once_with(|| figures::of_scaling(view, index)).flatten();
        scaling.push(section((&own.id, &own.title), budget.charts(figures), spark, &own.tables));
    }
    let mut settings = Vec::new();
    for (index, own) in view.interactions.iter().enumerate() {
        let figures = once_with(|| figures::of_interaction(view, index)).flatten();
        settings.push(section((&own.id, &own.title), budget.charts(figures), None, &own.tables));
    }
    let mut sweeps = Vec::new();
    for (index, own) in view.sweeps.iter().enumerate() {
        let series: Vec<&Series> = own.series.iter().collect();
        let about = (own.scale.name, own.metric.spec().better.label());
        let title = format!("over {}, {}", own.parameter, metric_label(own.metric));
        let spark = spark(title, about, &own.levels, &series, &own.repetitions);
        let figures = once_with(|| figures::of_sweep(view, index)).flatten();
        let head = (own.id.as_str(), own.findings.label.as_str());
        sweeps.push(section(head, budget.charts(figures), spark, &[]));
    }
    let note = |text: &str| vec![Block::Note(text.into())];
    let all: [(_, _, _, Vec<Section>); 3] = [
        (
            "scaling",
            "Scaling",
            note("Top: values from zero. Bottom: relative to the first level."),
            scaling,
        ),
        (
            "settings",
            "System settings",
            note("Results under different system settings, and their ratio to the named level."),
            settings,
        ),
        ("sweeps", "Parameter sweeps", Vec::new(), sweeps),
    ];
    let some = all.into_iter().filter(|(.., sections)| !sections.is_empty());
    some.map(|(id, title, blocks, sections)| Section {
        sections,
        ..Section::new(id, title, blocks)
    })
    .collect()
}

/// Charts, sparklines, and tables of one scaling, interaction, or sweep.
fn section(
    (id, title): (&str, &str),
    charts: Vec<Block>,
    spark: Option<Block>,
    own: &[Table],
) -> Section {
    let first = tables(own.iter().take(1), Layout::Compact);
    let rest = tables(own.iter().skip(1), Layout::Full);
    let blocks = charts.into_iter().chain(spark).chain(first).chain(rest);
    Section::new(id, title, blocks.collect())
}

/// Sparklines, one per filesystem, from zero to the maximum of all; `None` without positive values.
fn spark(
    title: String,
    (unit, better): (&str, &str),
    levels: &[Level],
    series: &[&Series],
    repetitions: &str,
) -> Option<Block> {
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
    (high > 0.0).then(|| {
        Block::Spark(Spark {
            title,
            rows: series.iter().map(row).collect(),
            caption: format!(
                "Medians at {}, from zero to the maximum of all; {better}; n = {repetitions} \
                 repetitions; the HTML report has the 95 % confidence intervals.",
                labels.join(", ")
            ),
        })
    })
}

/// Number with three digits, but at most two decimal places.
fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

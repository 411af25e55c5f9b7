//! Slowdown of workloads by others that run at the same time.
//!
//! The input is the samples of cells with suite `together`: one cell in which all members run, and
//! one per member that runs alone. The output is one table per filesystem and member, and findings
//! about the primary metric and the 99th percentile.

mod headline;

use crate::view::FindingKind;
use std::collections::BTreeMap;

use analysis::{
    Comparer, Repetition, Verdict,
    compare::Size,
    holm,
    slowdown::{Slowdown, slowdown},
    summary::{LEVEL, needed},
};
use model::{
    Cell, Metric, Value,
    metric::{Better, Unit},
    plan::together::{Head, MEMBERS, ONLY, SUITE, heads},
    record::CellRecord,
};

use crate::{
    document::Column,
    units::{alone, count, ratio},
    view::{
        equivalence_margin::EquivalenceMargin,
        findings::{Answer, PointFindings, disagreement, list},
        points::{Suite, repetitions},
        sample_index::SampleIndex,
        tables::{Body, Row, Table, TableCell, metric_label},
    },
};

pub(crate) use headline::{headline, unpaired};

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Slowdown by other workloads: the ratio between the results of a workload together with others \
    and alone, on filesystems with the same files, in common rounds. Above 1 is worse. The ratios \
    are Hodges–Lehmann estimates with permutation tests, Holm-adjusted over all slowdowns of the \
    run.";

/// Family-wise error rate of the findings.
const ERROR: f64 = 0.05;

/// Metrics of the tables besides the primary metric, as far as they are measured.
const METRICS: [Metric; 7] = [
    Metric::Throughput,
    Metric::LatencyP50,
    Metric::LatencyP99,
    Metric::LatencyP999,
    Metric::SyncLatencyP50,
    Metric::SyncLatencyP99,
    Metric::SyncLatencyP999,
];

/// Slowdown of one member on one filesystem.
#[derive(Clone, Debug)]
pub(crate) struct MemberSlowdown {
    /// Unique within the report.
    id: String,
    filesystem_name: String,
    member: String,
    /// Other members.
    others: Vec<String>,
    /// The member and the other members, each with its suite.
    described: (String, String),
    /// Label of the cell in which all members run.
    label: String,
    /// Primary metric of the member.
    primary: Metric,
    /// Latencies of sync calls, if the member has any, or of operations.
    tail: Option<Metric>,
    rows: Vec<MetricSlowdown>,
    /// Number of slowdowns of the run.
    family: usize,
    /// Codes and hints of the blocking warnings about the member in both cells.
    barring: BTreeMap<&'static str, &'static str>,
}

/// Slowdown of one metric.
#[derive(Clone, Debug)]
struct MetricSlowdown {
    metric: Metric,
    /// Medians alone and together.
    medians: [f64; 2],
    slowdown: Slowdown,
    /// Holm-adjusted p-value.
    p: f64,
}

/// Slowdowns of all members that were measured alone.
pub(crate) fn slowdowns(
    sample_index: &SampleIndex,
    suites: &[Suite],
    margin: EquivalenceMargin,
) -> Vec<MemberSlowdown> {
    let cells = &sample_index.record.cells;
    let mut comparer = Comparer::new();
    let mut all = Vec::new();
    for (together, record) in cells.iter().enumerate() {
        if only(&record.cell) != Some("") || record.cell.aa_duplicate {
            continue;
        }
        let members = heads(&text(&record.cell, MEMBERS));
        for Head { name: member, .. } in &members {
            let partner = |other: &CellRecord| {
                only(&other.cell) == Some(member) && is_partner(&record.cell, &other.cell)
            };
            let Some(alone) = cells.iter().position(partner) else { continue };
            let measured = of_member((member, &members), (alone, together), sample_index, margin)
                .with(&mut comparer);
            let Some(mut own) = measured else { continue };
            own.described = headline::described(member, &members);
            own.barring = barring(suites, member, [alone, together]);
            own.id = format!("slowdown-{}", all.len() + 1);
            all.push(own);
        }
    }
    adjust(&mut all);
    all
}

/// Codes and hints of the blocking warnings about a test of two cells.
fn barring(
    suites: &[Suite],
    name: &str,
    cells: [usize; 2],
) -> BTreeMap<&'static str, &'static str> {
    let tests = suites.iter().flat_map(|suite| &suite.points).flat_map(|point| &point.tests);
    let entries = tests.filter(|test| test.name == name).flat_map(|test| &test.entries);
    let own = entries.filter(|entry| cells.contains(&entry.cell));
    own.flat_map(|entry| entry.barring.iter().copied()).collect()
}

/// Value of parameter [`ONLY`] of a cell of this suite.
fn only(cell: &Cell) -> Option<&str> {
    match cell.workload.parameters.get(ONLY) {
        Some(Value::Text(only)) if cell.workload.suite == SUITE => Some(only),
        _ => None,
    }
}

fn text(cell: &Cell, parameter: &str) -> String {
    cell.workload.parameters.get(parameter).map(ToString::to_string).unwrap_or_default()
}

/// True if two cells differ only in the members that run.
fn is_partner(one: &Cell, other: &Cell) -> bool {
    let without = |cell: &Cell| {
        let mut cell = cell.clone();
        cell.workload.parameters.remove(ONLY);
        cell
    };
    without(one) == without(other)
}

/// Values of one member in both cells.
struct Measured<'a> {
    record: &'a CellRecord,
    member: &'a str,
    others: Vec<String>,
    primary: Metric,
    /// Repetitions alone and together.
    values: Vec<(Metric, Vec<Repetition>, Vec<Repetition>)>,
    margin: EquivalenceMargin,
}

fn of_member<'a>(
    (member, members): (&'a str, &[Head]),
    (alone, together): (usize, usize),
    sample_index: &SampleIndex<'a>,
    margin: EquivalenceMargin,
) -> Measured<'a> {
    let cells = &sample_index.record.cells;
    let own = cells[alone].phases.iter().find(|phase| phase.name == member);
    let primary = own.map_or(Metric::OpsRate, |phase| phase.primary);
    let others = METRICS.into_iter().filter(|metric| *metric != primary);
    let metrics = std::iter::once(primary).chain(others);
    let values = metrics.filter(|metric| metric.spec().better != Better::Neither).map(|metric| {
        let of = |cell| repetitions(sample_index, cell, member, metric);
        (metric, of(alone), of(together))
    });
    Measured {
        record: &cells[together],
        member,
        others: members.iter().map(|it| it.name.clone()).filter(|it| it != member).collect(),
        primary,
        values: values.collect(),
        margin,
    }
}

impl Measured<'_> {
    /// Compares the values of all metrics; `None` if no metric has values in both cells.
    fn with(self, comparer: &mut Comparer) -> Option<MemberSlowdown> {
        let mut rows = Vec::new();
        for (metric, alone, together) in &self.values {
            let better = metric.spec().better;
            let found = slowdown(comparer, alone, together, better, self.margin.ratio());
            let Ok(slowdown) = found else { continue };
            let median = |values: &[Repetition]| {
                let values: Vec<f64> = values.iter().map(|it| it.value).collect();
                analysis::Summary::new(&values).map(|summary| summary.median).unwrap_or_default()
            };
            let medians = [median(alone), median(together)];
            rows.push(MetricSlowdown { metric: *metric, medians, slowdown, p: 1.0 });
        }
        let has = |metric: &Metric| rows.iter().any(|row| row.metric == *metric);
        let tails = [Metric::SyncLatencyP99, Metric::LatencyP99];
        let tail = tails.into_iter().find(has);
        (!rows.is_empty()).then(|| MemberSlowdown {
            id: String::new(),
            filesystem_name: self.record.cell.filesystem.name.clone(),
            member: self.member.to_owned(),
            others: self.others,
            described: <_>::default(),
            label: self.record.label.clone(),
            primary: self.primary,
            tail,
            rows,
            family: 0,
            barring: BTreeMap::new(),
        })
    }
}

/// Adjusts the p-values of all slowdowns of a run.
fn adjust(all: &mut [MemberSlowdown]) {
    let raw = all.iter().flat_map(|own| &own.rows).map(|row| row.slowdown.comparison.p);
    let adjusted = holm(&raw.collect::<Vec<_>>());
    let family = adjusted.len();
    all.iter_mut().for_each(|own| own.family = family);
    let rows = all.iter_mut().flat_map(|own| &mut own.rows);
    rows.zip(adjusted).for_each(|(row, p)| row.p = p);
}

impl MetricSlowdown {
    /// `×3.70 [2.10, 5.90]`.
    fn text(&self) -> String {
        ratio(self.slowdown.ratio.0, self.slowdown.interval)
    }

    /// True if the difference is significant after the adjustment.
    fn is_significant(&self) -> bool {
        matches!(self.slowdown.comparison.verdict, Verdict::Differs { .. }) && self.p < ERROR
    }

    fn result(&self) -> &'static str {
        match self.slowdown.comparison.verdict {
            Verdict::Differs { size: Size::Negligible, .. } if self.is_significant() => {
                "negligible"
            }
            Verdict::Differs { .. } if self.is_significant() => match self.slowdown.ratio.0 > 1.0 {
                true => "slower",
                false => "faster",
            },
            Verdict::Equivalent => "equivalent",
            Verdict::Differs { .. } | Verdict::Inconclusive { .. } => "not significant",
        }
    }
}

impl MemberSlowdown {
    /// Fewest repetitions of a metric.
    fn n(&self) -> u32 {
        let each = self.rows.iter().map(|row| {
            let comparison = &row.slowdown.comparison;
            comparison.n_first.min(comparison.n_second)
        });
        each.min().unwrap_or(0)
    }

    /// True if there are enough repetitions for findings.
    fn is_complete(&self) -> bool {
        self.n() >= needed(LEVEL)
    }

    /// True if a finding is possible: enough repetitions, and no blocking warning.
    pub(crate) fn is_judged(&self) -> bool {
        self.is_complete() && self.judged().any(|row| self.blocked(row.metric).is_empty())
    }

    /// Metrics of findings: the percentile first.
    fn judged(&self) -> impl Iterator<Item = &MetricSlowdown> {
        let primary = Some(self.primary).filter(|primary| Some(*primary) != self.tail);
        let metrics = self.tail.into_iter().chain(primary);
        metrics.filter_map(|metric| self.rows.iter().find(|row| row.metric == metric))
    }

    /// Codes and hints of the warnings that exclude a metric from findings. A rate that is not
    /// steady has no single value, but percentiles over the trials do.
    fn blocked(&self, metric: Metric) -> Vec<(&'static str, &'static str)> {
        let of_rate = |code: &str| code == "not-steady-state";
        let is_time = metric.spec().unit == Unit::Nanoseconds;
        let all = self.barring.iter().map(|(code, hint)| (*code, *hint));
        all.filter(|(code, _)| !(is_time && of_rate(code))).collect()
    }

    fn answers(&self, margin: EquivalenceMargin) -> Vec<Answer> {
        self.judged().map(|row| self.answer(row, margin)).collect()
    }

    fn answer(&self, row: &MetricSlowdown, margin: EquivalenceMargin) -> Answer {
        let (metric, others) = (metric_label(row.metric), list(&self.others));
        let (member, filesystem) = (&self.member, &self.filesystem_name);
        let comparison = &row.slowdown.comparison;
        let withheld = |reason: String, hint: String| {
            let question = format!("slowdown of {metric} of {member} by {others} on {filesystem}");
            Answer::withheld(FindingKind::C25, &self.id, question, reason, hint)
        };
        let found = |text| Answer::found(FindingKind::C25, &self.id, text);
        let (least, needed) = (self.n(), needed(LEVEL));
        if least < needed || row.slowdown.interval.is_none() {
            let hint = format!("run at least {needed} repetitions");
            return withheld(format!("n = {least}, {needed} needed"), hint);
        }
        if let Some((_, hint)) = self.blocked(row.metric).first() {
            let codes: Vec<String> =
                self.blocked(row.metric).iter().map(|(code, _)| (*code).to_owned()).collect();
            let reason = format!("blocked by warnings ({}): {}", codes.join(", "), row.text());
            return withheld(reason, (*hint).to_owned());
        }
        let n = format!(
            "n = {} and {}, Holm-adjusted over {}",
            comparison.n_first,
            comparison.n_second,
            count(self.family, "comparison")
        );
        if row.is_significant() {
            let size = match disagreement(comparison) {
                Some(_) => format!("the {metric} of {member} was significantly {}", row.adverb()),
                None => format!("the {metric} of {member} had a slowdown of {}", row.text()),
            };
            return found(format!(
                "{filesystem}: with {others}, {size} relative to {member} alone ({n})."
            ));
        }
        match comparison.verdict {
            Verdict::Equivalent => found(format!(
                "{filesystem}: with {others}, the {metric} of {member} was equivalent to that of \
                 {member} alone within ±{} ({n}).",
                margin.percent()
            )),
            Verdict::Inconclusive { needed } => withheld(
                format!("no significant difference: {}", row.text()),
                format!("run about {needed} repetitions"),
            ),
            Verdict::Differs { .. } => withheld(
                format!("not significant after adjustment: {}", row.text()),
                "run more repetitions".into(),
            ),
        }
    }

    /// Medians and slowdown of each metric.
    pub(crate) fn table(&self) -> Table {
        let row = |row: &MetricSlowdown| {
            let unit = row.metric.spec().unit;
            let [first, second] = row.medians.map(|median| alone(unit, median));
            let cells = [first, second, row.text(), row.result().to_owned()];
            let body = Body::Cells(cells.map(TableCell::Text).to_vec());
            Row::of(metric_label(row.metric), None, body)
        };
        let n = self.rows.first().map(|row| &row.slowdown.comparison);
        let n = n.map(|it| format!("n = {} alone, {} together", it.n_first, it.n_second));
        Table {
            id: self.id.clone(),
            title: format!(
                "{} with {} on {}",
                self.member,
                list(&self.others),
                self.filesystem_name
            ),
            caption: vec![
                format!(
                    "{}: medians, and slowdown relative to {} alone with its 95 % confidence \
                     interval; above 1 is worse",
                    self.label, self.member
                ),
                n.unwrap_or_default(),
            ],
            corner: "metric",
            columns: ["alone", "together", "slowdown", "result"]
                .map(|title| Column::new(title, ""))
                .to_vec(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

impl MetricSlowdown {
    fn adverb(&self) -> &'static str {
        if self.slowdown.ratio.0 > 1.0 { "worse" } else { "better" }
    }
}

/// Findings about slowdowns, under one heading.
pub(crate) fn findings(all: &[MemberSlowdown], margin: EquivalenceMargin) -> Option<PointFindings> {
    let answers = all.iter().flat_map(|own| own.answers(margin)).collect();
    (!all.is_empty()).then(|| PointFindings::new("Workloads that run together", answers))
}

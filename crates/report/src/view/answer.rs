//! First page of a report: a headline, a table of medians, and the findings with the largest
//! effects.
//!
//! All content is selected from a [`View`], which has the statistics. The findings are based on the
//! rankings of the tests ([`super::Family`]), whose p-values are Holm-adjusted over all pairs of a
//! test.

mod accounts;
mod board;
mod devices;
mod headline;
mod missing;
mod standings;
mod trust;

use crate::view::FindingKind;
use std::collections::BTreeMap;

use model::metric::Better;

use super::{View, points::Test};
use crate::units::{count, distinct, one_line};
use standings::{findings, standings};

pub(crate) use accounts::Accounts;
pub(crate) use board::{
    Board, BoardCell, BoardRow, FAR_FROM_BEST, Place, ROWS_MAX, common_unit, unit_of,
};
pub(crate) use missing::{Hole, failures, not_measured};
pub(crate) use trust::{Grade, Trust};

/// Maximum number of findings on the first page.
pub(crate) const FINDINGS_MAX: usize = 6;
/// Maximum number of tests named in one finding.
const TESTS_MAX: usize = 3;
/// Minimum number of compared filesystems for a finding about the slowest one.
const FOR_SLOWEST: usize = 3;

/// First page of a report.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Title of the run, numbers of filesystems, tests, and repetitions, start, and duration.
    pub(crate) title: String,
    pub(crate) conditions: String,
    pub(crate) headline: String,
    pub(crate) board: Board,
    /// Largest effect first.
    pub(crate) findings: Vec<Finding>,
    /// Number of findings of the report minus the number of findings on the page.
    pub(crate) further: usize,
    /// Number of inconclusive questions.
    pub(crate) open: usize,
    pub(crate) accounts: Accounts,
    pub(crate) trust: Trust,
    pub(crate) missing: Vec<Hole>,
}

/// Finding with its effect size.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Absolute value of the natural logarithm of the largest ratio in the text; 0 without a ratio.
    effect: f64,
    pub(crate) text: String,
}

/// A test and its title on the page.
struct Named<'a> {
    title: String,
    test: &'a Test,
}

impl Answer {
    pub(crate) fn new(view: &View) -> Self {
        let tests = named(view);
        let (first, last) = standings(view, &tests);
        let mut findings = findings(view, &tests, &first, &last);
        findings.extend(devices::findings(&view.devices, &view.facts.margin.percent()));
        let name = |filesystem: usize| view.filesystems[filesystem].name.clone();
        let slowdowns = view.slowdowns.iter().flat_map(super::slowdown::MemberSlowdown::lines);
        findings.extend(slowdowns.map(|(effect, text)| Finding { effect, text }));
        let over_device = tests.iter().filter_map(|named| {
            let (effect, text) = super::raw::line(named.test, &named.title, &name)?;
            Some(Finding { effect, text })
        });
        findings.extend(over_device);
        findings.extend(
            headline::of_options(view).map(|text| Finding { effect: 0.0, text: text.to_owned() }),
        );
        findings.sort_by(|one, other| other.effect.total_cmp(&one.effect));
        let points = &view.findings.by_point;
        let accounts = Accounts::new(view);
        if findings.is_empty() && !accounts.compared() {
            // With one filesystem, nothing is compared; the findings are about that filesystem.
            // Failures are listed separately.
            let all = points.iter().flat_map(|point| &point.findings);
            let all = all.filter(|own| own.kind != FindingKind::C20);
            findings.extend(all.map(|own| Finding { effect: 0.0, text: own.text.clone() }));
        }
        let shown = findings.len().min(FINDINGS_MAX);
        findings.truncate(shown);
        let said: usize = points.iter().map(|point| point.findings.len()).sum();
        Self {
            title: title(view, &tests),
            conditions: view.facts.conditions.clone(),
            headline: headline::headline(view, &tests, &first, &last),
            board: board::board(view, &tests),
            further: said.saturating_sub(shown),
            open: points.iter().map(|point| point.open.len()).sum(),
            findings,
            accounts,
            trust: trust::trust(view, &tests),
            missing: missing::holes(view),
        }
    }

    /// Removes the rows of p99 from the table.
    pub(crate) fn remove_tails(&mut self) {
        self.board = self.board.clone().without_tails();
    }
}

/// Sentences about the throughput of writes in the tables, without repetition.
pub(crate) fn writes(answers: &[Answer]) -> Vec<String> {
    let all = answers.iter().filter_map(|answer| answer.board.writes.clone());
    distinct(all)
}

/// True if a part of one result has a measured filesystem.
pub(crate) fn measured(answers: &[Answer]) -> bool {
    answers.iter().any(|answer| !answer.board.filesystems.is_empty())
}

/// Findings of each part of one result, such as host and guest, and the number of findings that are
/// not shown. The largest effects of each part come first. The parts have equal shares of `most`,
/// rounded up.
pub(crate) fn shown_findings(answers: &[Answer], most: usize) -> (Vec<Vec<&str>>, usize) {
    let most = most.div_ceil(answers.len().max(1));
    let shown = answers.iter().map(|answer| {
        answer.findings.iter().take(most).map(|finding| finding.text.as_str()).collect()
    });
    let hidden = |answer: &Answer| answer.further + answer.findings.len().saturating_sub(most);
    (shown.collect(), answers.iter().map(hidden).sum())
}

/// Tests with results and their titles.
fn named(view: &View) -> Vec<Named<'_>> {
    let measured = |test: &&Test| test.entries.iter().any(|entry| entry.summary.is_some());
    let points = view.suites.iter().flat_map(|suite| &suite.points);
    let tests: Vec<(&str, &Test)> = points
        .flat_map(|point| {
            point.tests.iter().filter(measured).map(|test| (point.label.as_str(), test))
        })
        .collect();
    let names: Vec<(&str, &str)> =
        tests.iter().map(|(label, test)| (*label, test.name.as_str())).collect();
    let titled = tests.iter().zip(titles(&names));
    titled.map(|((_, test), title)| Named { title, test }).collect()
}

/// Short titles of tests, which are given by workload and name. The title is the name if no other
/// test has it. Otherwise it is the workload if that has no other test, or else both.
pub(crate) fn titles(tests: &[(&str, &str)]) -> Vec<String> {
    let common = common_name(tests.iter().map(|(workload, _)| *workload));
    let (mut workloads, mut names) = (BTreeMap::new(), BTreeMap::new());
    for (workload, name) in tests {
        *workloads.entry(workload).or_insert(0) += 1;
        *names.entry(name).or_insert(0) += 1;
    }
    let title = |(workload, name): &(&str, &str)| {
        let label = without_key(workload.strip_prefix(common).unwrap_or(workload).trim_start());
        one_line(&match (workloads[workload] == 1, names[name] == 1) {
            (_, true) => (*name).to_owned(),
            // Only its parameters with the default values differ.
            _ if label.is_empty() => (*name).to_owned(),
            (true, false) => label.to_owned(),
            (false, false) => format!("{name} {label}"),
        })
    };
    tests.iter().map(title).collect()
}

/// Name that all labels begin with and that only parameters follow, such as the name of the only
/// suite; empty if there is none.
pub(crate) fn common_name<'a>(labels: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    let split = |label: &'a str| label.split_once(' ').unwrap_or((label, ""));
    let name = labels.clone().next().map_or("", |label| split(label).0);
    let parameters = |rest: &str| rest.split(' ').next().is_some_and(|word| word.contains('='));
    let mut split = labels.map(split);
    let common = split.all(|(own, rest)| own == name && (rest.is_empty() || parameters(rest)));
    if common { name } else { "" }
}

/// Removes the key from a label that consists of one size: `4KiB` for `block_size=4KiB`. Other
/// labels are unchanged.
pub(crate) fn without_key(label: &str) -> &str {
    match label.split_once('=') {
        Some((_, value)) if value.ends_with('B') && !value.contains([' ', '=']) => value,
        Some(_) | None => label,
    }
}

/// `title · 5 filesystems · 8 tests · 6 to 10 repetitions · 2026-11-21 20:31 UTC, took 3 min`.
fn title(view: &View, tests: &[Named<'_>]) -> String {
    let n: Vec<u32> = tests
        .iter()
        .flat_map(|named| &named.test.entries)
        .filter_map(|entry| Some(entry.summary.as_ref()?.n))
        .collect();
    let repetitions = match (n.iter().min(), n.iter().max()) {
        (Some(1), Some(1)) => "1 repetition".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} repetitions"),
        (Some(least), Some(most)) => format!("{least} to {most} repetitions"),
        (None, _) | (_, None) => "nothing measured".to_owned(),
    };
    let filesystems = count(filesystems(view, tests), "filesystem");
    let devices = match devices::names(&view.devices).len() {
        0 => String::new(),
        many => format!(" · {}", count(many, "device")),
    };
    let (facts, tests) = (&view.facts, count(tests.len(), "test"));
    format!("{} · {filesystems}{devices} · {tests} · {repetitions} · {}", facts.title, facts.when)
}

/// Filesystems with results, in plan order.
fn columns(view: &View, tests: &[Named<'_>]) -> Vec<usize> {
    let has = |filesystem: &usize| {
        let number = |named: &Named<'_>| {
            named.test.entry(*filesystem).is_some_and(|entry| entry.summary.is_some())
        };
        tests.iter().any(number)
    };
    (0..view.filesystems.len()).filter(has).collect()
}

/// Number of filesystems with results. The block device without a filesystem does not count.
fn filesystems(view: &View, tests: &[Named<'_>]) -> usize {
    columns(view, tests).into_iter().filter(|column| !view.filesystems[*column].is_raw).count()
}

fn is_contest(named: &Named<'_>) -> bool {
    named.test.metric.spec().better != Better::Neither && named.test.family.is_some()
}

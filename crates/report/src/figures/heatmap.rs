//! Heatmap of a suite: ratio of each filesystem to the best of each test.

use std::{borrow::Cow, collections::BTreeSet};

use super::{Figure, Kind, absent, is_skip, qualified, repetitions};
use crate::{
    charts::heatmap::{HeatCell, HeatMap, HeatRow, step},
    units::{capital, fixed, grouped, one_line},
    view::{Entry, Family, Status, Suite, Test, View, WorkPoint, directions},
};
use analysis::compare::{Side, Size, Verdict};

/// Maximum number of rows; of more tests, means are shown.
const ROWS: usize = 60;

/// Maximum number of filesystems in the title.
const NAMED: usize = 3;

/// Result of one filesystem in one test.
enum TestResult<'a> {
    /// Ranked: ratio to the best, its interval, and the test result.
    Ranked { entry: &'a Entry, ratio: f64, ends: Option<(f64, f64)>, found: Found },
    /// Reason that there is no comparable number.
    Missing(Cow<'a, str>),
}

/// Test result relative to the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Significantly better than all others.
    Alone,
    /// Best median.
    First,
    /// Equivalent.
    Same,
    /// Not significantly different.
    Open,
    /// Significantly worse.
    Worse,
}

impl Found {
    const fn glyph(self) -> char {
        match self {
            Self::Alone => '▲',
            Self::First => '△',
            Self::Same => '=',
            Self::Open => '?',
            Self::Worse => '▼',
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Alone => "significantly better than all others",
            Self::First => "best median",
            Self::Same => "equivalent",
            Self::Open => "not significantly different from the best",
            Self::Worse => "significantly worse than the best",
        }
    }
}

/// Test with the results of all filesystems, in order.
struct Line<'a> {
    point: &'a WorkPoint,
    test: &'a Test,
    results: Vec<TestResult<'a>>,
}

/// Heatmap; `None` unless two tests compare two filesystems.
pub(super) fn figure(view: &View, suite: usize) -> Option<Figure> {
    let suite = &view.suites[suite];
    let tests = suite.points.iter().flat_map(|point| point.tests.iter().map(move |t| (point, t)));
    let lines: Vec<Line> = tests.map(|(point, test)| Line::new(point, test, view)).collect();
    let judged = lines.iter().filter(|line| line.test.family.is_some()).count();
    if view.filesystems.len() < 2 || judged < 2 {
        return None;
    }
    let sheet = Sheet { view, suite, lines };
    let groups = (sheet.lines.len() > ROWS).then(|| sheet.groups()).flatten();
    let title = sheet.title(judged);
    let description = format!("{title}. The data are in the tables.");
    let (axis, first, rows) = match &groups {
        Some((what, groups)) => (
            format!("ratio to the best of each test, mean over {what}; 1 is best ↑"),
            format!("best, or within {}", view.facts.margin.symbol()),
            groups.iter().map(|(label, of)| sheet.mean(label, of)).collect(),
        ),
        None => (
            "ratio to the best median of the row — higher is better ↑".into(),
            "top group".into(),
            sheet.rows(),
        ),
    };
    let names = view.filesystems.iter();
    let mut chart = HeatMap {
        axis,
        first,
        columns: names.enumerate().map(|(at, own)| (own.name.clone(), at)).collect(),
        rows,
    };
    let absent = sheet.absent();
    let skipped = |name: &str| absent.iter().any(|(own, why)| own == name && is_skip(why));
    chart.retain(|name| !skipped(name));
    let caption = sheet.caption(groups.as_ref().map(|(what, _)| what.as_str()));
    let id = format!("{}-map", crate::units::slug(&suite.name));
    let chart = chart.render();
    Some(Figure::new(Kind::Heatmap, id, chart, (title, &description), caption))
}

impl<'a> Line<'a> {
    fn new(point: &'a WorkPoint, test: &'a Test, view: &'a View) -> Self {
        let lacking = |at: usize| {
            TestResult::Missing(match point.statuses.get(at) {
                Some(Some(Status::Nothing(reason))) => Cow::Borrowed(reason.as_str()),
                Some(Some(Status::Measured)) => "not in this cell".into(),
                Some(None) | None => "not in the plan".into(),
            })
        };
        let mut results: Vec<TestResult> = (0..view.filesystems.len()).map(lacking).collect();
        for entry in &test.entries {
            results[entry.filesystem] = TestResult::Missing(unranked(entry));
        }
        if let Some(family) = &test.family {
            for (entry, result) in ranked(test, family) {
                results[entry.filesystem] = result;
            }
        }
        Self { point, test, results }
    }
}

/// Reason that an entry is not ranked.
fn unranked(entry: &Entry) -> Cow<'_, str> {
    if let Status::Nothing(reason) = &entry.status {
        return Cow::Borrowed(reason.as_str());
    }
    let failed = entry.failed_repetitions();
    let barring: Vec<&str> = entry.barring.iter().map(|(code, _)| *code).collect();
    match (failed.is_empty(), barring.is_empty()) {
        (false, _) => format!("not ranked: {failed}").into(),
        (true, false) => format!("not ranked: {}", barring.join(", ")).into(),
        (true, true) => "not ranked".into(),
    }
}

/// Members of a family relative to the best of them.
fn ranked<'a>(test: &'a Test, family: &Family) -> Vec<(&'a Entry, TestResult<'a>)> {
    let ranking = &family.ranking;
    let entry = |member: usize| &test.entries[family.members[member]];
    let Some(best) = ranking.order.first().copied() else { return Vec::new() };
    let found = if ranking.top.len() == 1 { Found::Alone } else { Found::First };
    let first = TestResult::Ranked { entry: entry(best), ratio: 1.0, ends: None, found };
    let mut all = vec![(entry(best), first)];
    for pair in ranking.pairs.iter().filter(|pair| [pair.better, pair.other].contains(&best)) {
        // Above 1 in favor of `better`; the chart shows the inverse.
        let (member, of) = if pair.better == best {
            (pair.other, (|ratio: f64| 1.0 / ratio) as fn(f64) -> f64)
        } else {
            (pair.better, (|ratio: f64| ratio) as fn(f64) -> f64)
        };
        let comparison = &pair.comparison;
        let (ends, ratio) = (comparison.interval, of(comparison.ratio.0));
        let ends = ends.map(|ends| (of(ends.low), of(ends.high)));
        let ends = ends.map(|(one, other)| (one.min(other), one.max(other)));
        let found = match comparison.verdict {
            Verdict::Equivalent => Found::Same,
            Verdict::Differs { size: Size::Negligible, .. } => Found::Same,
            Verdict::Differs { side, size: Size::AtLeast | Size::Uncertain } => {
                // `better` is the best by median, unless medians are equal.
                let worse = (side == Side::Better) == (pair.better == best);
                if pair.is_significant() && worse { Found::Worse } else { Found::Open }
            }
            Verdict::Inconclusive { .. } => Found::Open,
        };
        all.push((entry(member), TestResult::Ranked { entry: entry(member), ratio, ends, found }));
    }
    all
}

struct Sheet<'a> {
    view: &'a View,
    suite: &'a Suite,
    lines: Vec<Line<'a>>,
}

/// Rows of means: label, and the indexes of its lines.
type Groups = Vec<(String, Vec<usize>)>;

impl Sheet<'_> {
    /// Number of tests in which each filesystem is in the top group.
    fn title(&self, judged: usize) -> String {
        let mut often = vec![(0_usize, 0_usize); self.view.filesystems.len()];
        for result in self.lines.iter().flat_map(|line| &line.results) {
            if let TestResult::Ranked { entry, found, .. } = result {
                often[entry.filesystem].0 += usize::from(entry.top);
                often[entry.filesystem].1 += usize::from(*found == Found::Alone);
            }
        }
        let mut order: Vec<usize> = (0..often.len()).filter(|at| often[*at].0 > 0).collect();
        order.sort_by_key(|at| std::cmp::Reverse(often[*at]));
        let words = |(place, at): (usize, &usize)| {
            let ((top, alone), name) = (often[*at], &self.view.filesystems[*at].name);
            let alone = match alone {
                0 => String::new(),
                _ if alone == top => ", alone".into(),
                _ => format!(", alone in {alone}"),
            };
            match place {
                0 => format!("{name} is in the top group of {top} of {judged} tests{alone}"),
                _ => format!("{name} of {top}{alone}"),
            }
        };
        let named: Vec<String> = order.iter().take(NAMED).enumerate().map(words).collect();
        match named.is_empty() {
            true => format!("{}: no filesystem is better in most tests", capital(&self.suite.name)),
            false => format!("{}: {}", capital(&self.suite.name), named.join("; ")),
        }
    }

    /// One row per test, with a heading per point that has several.
    fn rows(&self) -> Vec<HeatRow> {
        let several = self.suite.points.len() > 1;
        let mut rows = Vec::new();
        let mut last: Option<&str> = None;
        for line in &self.lines {
            let alone = line.point.tests.len() == 1;
            if several && !alone && last != Some(line.point.id.as_str()) {
                rows.push(HeatRow::Heading(line.point.label.clone()));
            }
            last = Some(&line.point.id);
            let label = if several && alone { &line.point.label } else { &line.test.name };
            let cell = |(at, result)| self.cell(at, result, line.test);
            let cells = line.results.iter().enumerate().map(cell).collect();
            // The name of the suite is in the title.
            let label = label.strip_prefix(&format!("{} ", self.suite.name)).unwrap_or(label);
            rows.push(HeatRow::Cells(one_line(label), cells));
        }
        rows
    }

    fn cell(&self, filesystem: usize, result: &TestResult, test: &Test) -> HeatCell {
        let name = &self.view.filesystems[filesystem].name;
        match result {
            TestResult::Missing(reason) => {
                missing(brief(reason), format!("{name}, {}: {reason}", test.name))
            }
            TestResult::Ranked { entry, ratio, ends, found } => {
                let open = *found == Found::Open;
                let shown = format!("{} {}", fixed(*ratio, 2), found.glyph());
                let ends = ends.map_or_else(String::new, |(low, high)| {
                    format!(" [{}, {}]", fixed(low, 3), fixed(high, 3))
                });
                let codes = match entry.codes.is_empty() {
                    true => String::new(),
                    false => format!("; {}", entry.codes.join(", ")),
                };
                HeatCell {
                    step: Some(if entry.top { 0 } else { step(*ratio) }),
                    shown,
                    top: entry.top && !open,
                    open,
                    qualified: !entry.codes.is_empty(),
                    title: format!(
                        "{name}, {}: ×{}{ends} of the best, {}{codes}",
                        test.name,
                        fixed(*ratio, 3),
                        found.label()
                    ),
                }
            }
        }
    }

    /// Rows and their description: of all groupings of tests, the one with the most rows that fit.
    fn groups(&self) -> Option<(String, Groups)> {
        let test = |line: &Line| one_line(&line.test.name);
        let value = |line: &Line, name: &str| match line.point.parameters.get(name) {
            Some(value) => format!("{name}={}", one_line(&value.to_string())),
            None => format!("no {name}"),
        };
        let mut ways = vec![("all other parameters".to_owned(), self.group(&test))];
        for name in &self.suite.swept {
            let both = |line: &Line| format!("{}, {}", test(line), value(line, name));
            ways.push(("all tests and other parameters".into(), self.group(&|l| value(l, name))));
            ways.push(("all other parameters".into(), self.group(&both)));
        }
        ways.push(("all tests".into(), self.group(&|_| "all tests".into())));
        let fitting = ways.into_iter().rev().filter(|(_, groups)| groups.len() <= ROWS);
        // Of equal ones the last is taken, which was the first.
        fitting.max_by_key(|(_, groups)| groups.len())
    }

    fn group(&self, key: &dyn Fn(&Line) -> String) -> Groups {
        grouped(self.lines.iter().map(key).zip(0..))
    }

    /// Geometric means over the tests common to all filesystems with numbers.
    fn mean(&self, label: &str, of: &[usize]) -> HeatRow {
        let ratio = |line: usize, at: usize| match &self.lines[line].results[at] {
            TestResult::Ranked { ratio, .. } if *ratio > 0.0 && ratio.is_finite() => Some(*ratio),
            TestResult::Ranked { .. } | TestResult::Missing(_) => None,
        };
        let count = self.view.filesystems.len();
        let any: Vec<usize> =
            (0..count).filter(|at| of.iter().any(|line| ratio(*line, *at).is_some())).collect();
        let shared: Vec<usize> = of
            .iter()
            .copied()
            .filter(|line| any.iter().all(|at| ratio(*line, *at).is_some()))
            .collect();
        let near = 1.0 / (1.0 + self.view.facts.margin.ratio().0);
        let cell = |at: usize| {
            let name = &self.view.filesystems[at].name;
            let own = of.iter().filter(|line| ratio(**line, at).is_some()).count();
            if own == 0 {
                let title = format!("{name}, {label}: not ranked in any of {} tests", of.len());
                return missing("not ranked", title);
            }
            if shared.is_empty() {
                let title = format!("{name}, {label}: no common tests");
                return missing("no common tests", title);
            }
            let logs = shared.iter().filter_map(|line| ratio(*line, at)).map(f64::ln);
            let mean = (logs.sum::<f64>() / shared.len() as f64).exp();
            HeatCell {
                step: Some(if mean >= near { 0 } else { step(mean) }),
                shown: fixed(mean, 2),
                top: mean >= near,
                open: false,
                qualified: own < of.len(),
                title: format!(
                    "{name}, {label}: ×{} of the best, geometric mean over {} of {} tests",
                    fixed(mean, 3),
                    shared.len(),
                    of.len()
                ),
            }
        };
        HeatRow::Cells(label.to_owned(), (0..count).map(cell).collect())
    }

    /// Filesystems without any number in the suite, with the first reason of each.
    fn absent(&self) -> Vec<(String, String)> {
        let nowhere = |(at, own): (usize, &crate::view::Filesystem)| {
            let mut all = self.suite.points.iter().map(|point| point.statuses.get(at));
            let first = all.clone().find_map(|status| match status {
                Some(Some(Status::Nothing(reason))) => Some(reason.clone()),
                Some(Some(Status::Measured) | None) | None => None,
            })?;
            let measured = all.any(|status| matches!(status, Some(Some(Status::Measured))));
            (!measured).then(|| (own.name.clone(), first))
        };
        self.view.filesystems.iter().enumerate().filter_map(nowhere).collect()
    }

    fn caption(&self, means: Option<&str>) -> String {
        let view = self.view;
        let ns = self.lines.iter().flat_map(|line| &line.test.entries);
        let n = repetitions(ns.filter_map(|entry| Some(entry.summary.as_ref()?.n)));
        let codes: BTreeSet<&str> = self.lines.iter().flat_map(|line| line.test.codes()).collect();
        let margin = view.facts.margin.label();
        let quantities = directions(self.lines.iter().map(|line| line.test.metric));
        let marks = match means {
            Some(what) => format!(
                "{} tests are grouped: each cell is the geometric mean of the ratios over {what}, \
                 of the tests common to all filesystems of the row, without 95 % confidence \
                 interval. Dot: not ranked in some of them. Bold: within {margin} of the best.",
                self.lines.len()
            ),
            None => format!(
                "▲ significantly better than all others; △ best median; = equivalent within \
                 {margin}; ? not significantly different; ▼ significantly worse (Holm-adjusted per \
                 row; 95 % confidence intervals in the tables). Bold: top group. Dot: \
                 warnings."
            ),
        };
        format!(
            "Ratio to the best median of each test (Hodges–Lehmann), inverted where lower is \
             better; {quantities}. {n}. {marks} Hatched: no comparable number.{}{}",
            qualified(&codes),
            absent(&self.absent())
        )
    }
}

fn missing(shown: &str, title: String) -> HeatCell {
    HeatCell { step: None, shown: shown.into(), top: false, open: false, qualified: false, title }
}

/// Short form of the reason for a missing number.
fn brief(reason: &str) -> &'static str {
    const WORDS: [(&str, &str); 6] = [
        ("skipped", "skipped"),
        ("not ranked", "not ranked"),
        ("not in the plan", "not planned"),
        ("no such test", "no test"),
        ("not measured yet", "not yet"),
        ("failed", "failed"),
    ];
    let word = WORDS.iter().find(|(known, _)| reason.starts_with(known));
    let word = word.or_else(|| WORDS.iter().find(|(known, _)| reason.contains(known)));
    word.map_or("no number", |(_, word)| word)
}

#[cfg(test)]
mod tests;

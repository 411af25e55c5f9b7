//! All tests of a suite at once: how far each filesystem is from the best of each.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use analysis::compare::{Side, Size, Verdict};

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::heatmap::{HeatCell, HeatMap, HeatRow, step},
    units::{capital, fixed, one_line},
    view::{Entry, Family, Status, Suite, Test, View, WorkPoint, directions},
};

/// Rows that a map has at most; of more tests it shows means.
const ROWS: usize = 60;

/// Filesystems that the title names.
const NAMED: usize = 3;

/// One filesystem at one test.
enum Standing<'a> {
    /// Ranked: how many times as good as the best, the ends of that, and what was found.
    Ranked { entry: &'a Entry, ratio: f64, ends: Option<(f64, f64)>, found: Found },
    /// No number, or none that may be compared, and why.
    Not(Cow<'a, str>),
}

/// What was found of a filesystem against the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It is the best and told from all others.
    Alone,
    /// It has the best median.
    First,
    /// The same within the threshold.
    Same,
    /// Not told apart.
    Open,
    /// Told apart as the worse one.
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

    const fn words(self) -> &'static str {
        match self {
            Self::Alone => "best, told from all others",
            Self::First => "best median",
            Self::Same => "the same within the threshold",
            Self::Open => "not told from the best",
            Self::Worse => "worse than the best",
        }
    }
}

/// A test with all filesystems of the run, in their order.
struct Line<'a> {
    point: &'a WorkPoint,
    test: &'a Test,
    standings: Vec<Standing<'a>>,
}

/// The map; `None` where there are not two filesystems at two tests to be compared.
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
    let chart = HeatMap {
        id: format!("{}-map-chart", crate::view::slug(&suite.name)),
        title: title.clone(),
        description: format!("{title}. The numbers are in the tables below."),
        axis: match &groups {
            Some((what, _)) => format!("× the best of each test, mean over {what}; 1 is best ↑"),
            None => "× the best median of the row — higher is better ↑".into(),
        },
        first: match &groups {
            Some(_) => format!("best, or within {}", view.facts.threshold.symbol()),
            None => "top group".into(),
        },
        columns: view
            .filesystems
            .iter()
            .enumerate()
            .map(|(at, own)| (own.name.clone(), at))
            .collect(),
        rows: match &groups {
            Some((_, groups)) => groups.iter().map(|(label, of)| sheet.mean(label, of)).collect(),
            None => sheet.rows(),
        },
    };
    Some(Figure {
        id: format!("{}-map", crate::view::slug(&suite.name)),
        kind: Kind::HeatMap,
        title,
        svg: chart.render(),
        caption: sheet.caption(groups.as_ref().map(|(what, _)| what.as_str())),
    })
}

impl<'a> Line<'a> {
    fn new(point: &'a WorkPoint, test: &'a Test, view: &'a View) -> Self {
        let lacking = |at: usize| match point.statuses.get(at) {
            Some(Some(Status::Nothing(reason))) => Standing::Not(Cow::Borrowed(reason.as_str())),
            Some(Some(Status::Measured)) => Standing::Not("no such test here".into()),
            Some(None) | None => Standing::Not("not in the plan".into()),
        };
        let mut standings: Vec<Standing> = (0..view.filesystems.len()).map(lacking).collect();
        for entry in &test.entries {
            standings[entry.filesystem] = Standing::Not(unranked(entry));
        }
        if let Some(family) = &test.family {
            for (entry, standing) in ranked(test, family) {
                standings[entry.filesystem] = standing;
            }
        }
        Self { point, test, standings }
    }
}

/// Why an entry has no place among the others.
fn unranked(entry: &Entry) -> Cow<'_, str> {
    if let Status::Nothing(reason) = &entry.status {
        return Cow::Borrowed(reason.as_str());
    }
    let failed = entry.failed_repeats();
    let barring: Vec<&str> = entry.barring.iter().map(|(code, _)| *code).collect();
    match (failed.is_empty(), barring.is_empty()) {
        (false, _) => format!("not ranked: {failed}").into(),
        (true, false) => format!("not ranked: {}", barring.join(", ")).into(),
        (true, true) => "not ranked".into(),
    }
}

/// The members of a family against the best of them.
fn ranked<'a>(test: &'a Test, family: &Family) -> Vec<(&'a Entry, Standing<'a>)> {
    let ranking = &family.ranking;
    let entry = |member: usize| &test.entries[family.members[member]];
    let Some(best) = ranking.order.first().copied() else { return Vec::new() };
    let found = if ranking.top.len() == 1 { Found::Alone } else { Found::First };
    let first = Standing::Ranked { entry: entry(best), ratio: 1.0, ends: None, found };
    let mut all = vec![(entry(best), first)];
    for pair in ranking.pairs.iter().filter(|pair| [pair.better, pair.other].contains(&best)) {
        // Above 1 in favor of `better`; here the best is 1 and the other a part of it.
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
                // The best by median is `better`, but for equal medians.
                let worse = (side == Side::Better) == (pair.better == best);
                if pair.separated() && worse { Found::Worse } else { Found::Open }
            }
            Verdict::Inconclusive { .. } => Found::Open,
        };
        all.push((entry(member), Standing::Ranked { entry: entry(member), ratio, ends, found }));
    }
    all
}

struct Sheet<'a> {
    view: &'a View,
    suite: &'a Suite,
    lines: Vec<Line<'a>>,
}

/// Rows of means: label, and the lines it stands for.
type Groups = Vec<(String, Vec<usize>)>;

impl Sheet<'_> {
    /// Who is how often in the top group.
    fn title(&self, judged: usize) -> String {
        let mut often = vec![(0_usize, 0_usize); self.view.filesystems.len()];
        for standing in self.lines.iter().flat_map(|line| &line.standings) {
            if let Standing::Ranked { entry, found, .. } = standing {
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
            true => format!("{}: no filesystem stands out", capital(&self.suite.name)),
            false => format!("{}: {}", capital(&self.suite.name), named.join("; ")),
        }
    }

    /// One row for each test, under a heading for each point that has several.
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
            let cell = |(at, standing)| self.cell(at, standing, line.test);
            let cells = line.standings.iter().enumerate().map(cell).collect();
            // The name of the suite stands in the title.
            let label = label.strip_prefix(&format!("{} ", self.suite.name)).unwrap_or(label);
            rows.push(HeatRow::Cells(one_line(label), cells));
        }
        rows
    }

    fn cell(&self, filesystem: usize, standing: &Standing, test: &Test) -> HeatCell {
        let name = &self.view.filesystems[filesystem].name;
        match standing {
            Standing::Not(reason) => {
                hole(brief(reason), format!("{name}, {}: {reason}", test.name))
            }
            Standing::Ranked { entry, ratio, ends, found } => {
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
                        found.words()
                    ),
                }
            }
        }
    }

    /// What the rows stand for, and the rows: of the ways to put tests together, the one with the
    /// most rows that fit.
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
        // The last of equal ones is taken, which was the first.
        fitting.max_by_key(|(_, groups)| groups.len())
    }

    fn group(&self, key: &dyn Fn(&Line) -> String) -> Groups {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut groups: Groups = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let label = key(line);
            let place = *places.entry(label.clone()).or_insert(groups.len());
            if place == groups.len() {
                groups.push((label, Vec::new()));
            }
            groups[place].1.push(at);
        }
        groups
    }

    /// Geometric means over the tests that all filesystems have which have any.
    fn mean(&self, label: &str, of: &[usize]) -> HeatRow {
        let ratio = |line: usize, at: usize| match &self.lines[line].standings[at] {
            Standing::Ranked { ratio, .. } if *ratio > 0.0 && ratio.is_finite() => Some(*ratio),
            Standing::Ranked { .. } | Standing::Not(_) => None,
        };
        let count = self.view.filesystems.len();
        let any: Vec<usize> =
            (0..count).filter(|at| of.iter().any(|line| ratio(*line, *at).is_some())).collect();
        let shared: Vec<usize> = of
            .iter()
            .copied()
            .filter(|line| any.iter().all(|at| ratio(*line, *at).is_some()))
            .collect();
        let near = 1.0 / (1.0 + self.view.facts.threshold.ratio().0);
        let cell = |at: usize| {
            let name = &self.view.filesystems[at].name;
            let own = of.iter().filter(|line| ratio(**line, at).is_some()).count();
            if own == 0 {
                let title = format!("{name}, {label}: not ranked in any of {} tests", of.len());
                return hole("not ranked", title);
            }
            if shared.is_empty() {
                let title = format!("{name}, {label}: no test that all filesystems have");
                return hole("none shared", title);
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

    /// Filesystems without any number in the suite, and the first reason of each.
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
        let ns: BTreeSet<u32> = ns.filter_map(|e| Some(e.summary.as_ref()?.n)).collect();
        let n = match (ns.first(), ns.last()) {
            (Some(least), Some(most)) if least == most => format!("n = {least} repeats"),
            (Some(least), Some(most)) => format!("n = {least} to {most} repeats"),
            (None, _) | (_, None) => "n = 0".into(),
        };
        let codes: BTreeSet<&str> = self.lines.iter().flat_map(|line| line.test.codes()).collect();
        let threshold = view.facts.threshold.words();
        let quantities = directions(self.lines.iter().map(|line| line.test.metric));
        let marks = match means {
            Some(what) => format!(
                "{} tests are too many for a row each: a cell is the geometric mean of the ratios \
                 over {what}, of the tests that all filesystems of the row have, and has no \
                 interval; a corner marks a filesystem without a place in some of them. Bold: \
                 within {threshold} of the best.",
                self.lines.len()
            ),
            None => format!(
                "▲ best, told from all others; △ best median, not told from all others; = same \
                 within {threshold}; ? on a dashed ground not told apart; ▼ worse, at 5 % for all \
                 pairs of a row (Holm). Bold: in the top group and not open. A corner marks a \
                 number with warnings. The 95 % intervals are in the tables of the report and, on \
                 a page, in the titles of the cells."
            ),
        };
        format!(
            "Ratio of each filesystem to the one with the best median of the test \
             (Hodges–Lehmann, over all pairs of repeats: one that is not told from it may come out \
             above 1), turned so that higher is better; {quantities}. {n}. {marks} Hatched: no \
             number, or none that may be compared.{}{}",
            qualified(&codes),
            absent(&self.absent())
        )
    }
}

fn hole(shown: &str, title: String) -> HeatCell {
    HeatCell { step: None, shown: shown.into(), top: false, open: false, qualified: false, title }
}

/// The reason of a hole in a word or two.
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

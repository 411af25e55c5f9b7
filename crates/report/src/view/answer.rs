//! The first page of a report: the result in one sentence, one table, and a few findings.
//!
//! Everything here is chosen from a [`View`], which has the statistics. The sentences rest on the
//! rankings of the tests ([`Family`]), whose pairs are significant after Holm's adjustment over all
//! pairs of a test.

use std::collections::BTreeMap;

use analysis::ranks::Pair;
use model::{
    Metric, Warning,
    metric::{Better, Unit},
    warning::Level,
};

use super::{
    View,
    claims::{disagreement, list},
    points::{Family, Test},
    warnings::WarningRow,
};
use crate::units::{Scale, one_line, ratio_of};

/// Sentences on the first page.
const FINDINGS_MAX: usize = 6;
/// Tests named in one sentence.
const TESTS_MAX: usize = 3;
/// Rows of the table; a first page has no room for more.
const ROWS_MAX: usize = 20;
/// Filesystems that it takes to name a slowest one.
const FOR_SLOWEST: usize = 3;

/// The first page.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Title, filesystems, tests, repetitions, and duration.
    pub(crate) title: String,
    pub(crate) conditions: String,
    pub(crate) headline: String,
    pub(crate) board: Board,
    /// Largest effect first.
    pub(crate) findings: Vec<Finding>,
    /// Findings that are not on the page.
    pub(crate) further: usize,
    /// Questions that the data leave open.
    pub(crate) open: usize,
    pub(crate) trust: Trust,
    pub(crate) missing: Vec<Hole>,
}

/// Medians of the measured filesystems.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    /// Names of the columns.
    pub(crate) filesystems: Vec<String>,
    /// The unit of all rows, if they have the same.
    pub(crate) unit: Option<&'static str>,
    pub(crate) rows: Vec<BoardRow>,
    /// Tests beyond [`ROWS_MAX`].
    pub(crate) further: usize,
}

/// One test.
#[derive(Clone, Debug)]
pub(crate) struct BoardRow {
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    /// One for each filesystem; `None` where it was not measured.
    pub(crate) cells: Vec<Option<BoardCell>>,
}

/// One filesystem in one test.
#[derive(Clone, Debug)]
pub(crate) struct BoardCell {
    /// The median, to three significant digits.
    pub(crate) value: String,
    /// The best, or not significantly different from it.
    pub(crate) top: bool,
    /// No finding uses the number.
    pub(crate) blocked: bool,
}

/// A sentence, and how large the effect is that it reports.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Absolute natural logarithm of the largest ratio in it; 0 where it reports none.
    effect: f64,
    pub(crate) text: String,
}

/// How far the numbers can be trusted, by the rule in docs/method/statistics.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grade {
    Good,
    Limited,
    Poor,
}

impl Grade {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Limited => "limited",
            Self::Poor => "poor",
        }
    }
}

/// A grade and its main reason.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    pub(crate) grade: Grade,
    /// What was seen, and how many numbers it affects.
    pub(crate) reason: Option<String>,
    pub(crate) hint: Option<&'static str>,
}

/// Filesystems that were not measured, or failed, for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    /// Trials failed; there may be numbers of others.
    pub(crate) failed: bool,
    pub(crate) filesystems: Vec<String>,
    pub(crate) reason: String,
}

/// A test and what it is called on the page.
struct Named<'a> {
    title: String,
    test: &'a Test,
}

/// A filesystem that is first or last in a test.
struct Standing<'a> {
    filesystem: usize,
    test: &'a Named<'a>,
    /// Better over worse, and against which filesystem: `1.38 × ext4 [1.21, 1.52]`.
    against: Option<(f64, String)>,
}

impl Answer {
    pub(crate) fn new(view: &View) -> Self {
        let tests = named(view);
        let (first, last) = standings(view, &tests);
        let mut findings = findings(view, &tests, &first, &last);
        let shown = findings.len().min(FINDINGS_MAX);
        findings.truncate(shown);
        let points = &view.findings.by_point;
        let said: usize = points.iter().map(|point| point.claims.len()).sum();
        Self {
            title: title(view, &tests),
            conditions: view.facts.conditions.clone(),
            headline: headline(view, &tests, &last),
            board: board(view, &tests),
            further: said.saturating_sub(shown),
            open: points.iter().map(|point| point.open.len()).sum(),
            findings,
            trust: trust(view, &tests),
            missing: holes(view),
        }
    }
}

/// Tests with a number, and names that are short and unique: that of the test, of its workload if
/// it is the only test of it, or both.
fn named(view: &View) -> Vec<Named<'_>> {
    let points = || view.suites.iter().flat_map(|suite| &suite.points);
    let measured = |test: &&Test| test.entries.iter().any(|entry| entry.summary.is_some());
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for test in points().flat_map(|point| point.tests.iter().filter(measured)) {
        *names.entry(&test.name).or_default() += 1;
    }
    // One suite needs no name.
    let suite = match &view.suites[..] {
        [only] => format!("{} ", only.name),
        _ => String::new(),
    };
    let mut all = Vec::new();
    for point in points() {
        let alone = point.tests.iter().filter(measured).count() == 1;
        for test in point.tests.iter().filter(measured) {
            let label = point.label.strip_prefix(&suite).unwrap_or(&point.label);
            let title = match (alone, names.get(&*test.name).copied() > Some(1)) {
                (_, false) => test.name.clone(),
                (true, true) => label.to_owned(),
                (false, true) => format!("{} {label}", test.name),
            };
            all.push(Named { title: one_line(&title), test });
        }
    }
    all
}

/// `title · 5 filesystems · 8 tests · 6 to 10 repetitions · 2026-11-21 20:31 UTC, took 3 min`.
fn title(view: &View, tests: &[Named<'_>]) -> String {
    let n: Vec<u32> = tests
        .iter()
        .flat_map(|named| &named.test.entries)
        .filter_map(|entry| Some(entry.summary.as_ref()?.n))
        .collect();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let repetitions = match (n.iter().min(), n.iter().max()) {
        (Some(1), Some(1)) => "1 repetition".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} repetitions"),
        (Some(least), Some(most)) => format!("{least} to {most} repetitions"),
        (None, _) | (_, None) => "nothing measured".to_owned(),
    };
    let filesystems = count(columns(view, tests).len(), "filesystem");
    let (facts, tests) = (&view.facts, count(tests.len(), "test"));
    format!("{} · {filesystems} · {tests} · {repetitions} · {}", facts.title, facts.when)
}

/// Filesystems with a number, in the order of the plan.
fn columns(view: &View, tests: &[Named<'_>]) -> Vec<usize> {
    let has = |filesystem: &usize| {
        let number = |named: &Named<'_>| {
            named.test.entry(*filesystem).is_some_and(|entry| entry.summary.is_some())
        };
        tests.iter().any(number)
    };
    (0..view.filesystems.len()).filter(has).collect()
}

fn board(view: &View, tests: &[Named<'_>]) -> Board {
    let columns = columns(view, tests);
    let shown = &tests[..tests.len().min(ROWS_MAX)];
    // Instructions have one scale in all rows; rates and times are too different for that.
    let instructions = |named: &&Named<'_>| named.test.metric.spec().unit == Unit::Instructions;
    let medians = |named: &Named<'_>| -> Vec<f64> {
        let entries = named.test.entries.iter();
        entries.filter_map(|entry| Some(entry.summary.as_ref()?.median)).collect()
    };
    let of_all: Vec<f64> = shown.iter().filter(instructions).flat_map(medians).collect();
    let common = Scale::of(Unit::Instructions, of_all.into_iter());
    let row = |named: &Named<'_>| {
        let scale = if instructions(&named) { common } else { named.test.scale };
        let cell = |filesystem: &usize| {
            let entry = named.test.entry(*filesystem)?;
            let summary = entry.summary.as_ref()?;
            Some(BoardCell {
                value: scale.rough(summary.median),
                top: entry.ranked && entry.top,
                blocked: !entry.ranked,
            })
        };
        let cells = columns.iter().map(cell).collect();
        BoardRow { title: named.title.clone(), unit: scale.name, cells }
    };
    let rows: Vec<BoardRow> = shown.iter().map(row).collect();
    let unit = rows.first().map(|row| row.unit);
    Board {
        filesystems: columns.iter().map(|column| view.filesystems[*column].name.clone()).collect(),
        unit: unit.filter(|unit| rows.iter().all(|row| row.unit == *unit)),
        further: tests.len() - rows.len(),
        rows,
    }
}

/// Who is first alone, and who is last alone, test by test.
fn standings<'a>(view: &View, tests: &'a [Named<'a>]) -> (Vec<Standing<'a>>, Vec<Standing<'a>>) {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for named in tests {
        let Some(family) = &named.test.family else { continue };
        let ranking = &family.ranking;
        let sound = |among: &[usize]| {
            let within = |pair: &&Pair| among.contains(&pair.better) && among.contains(&pair.other);
            !ranking.pairs.iter().filter(within).any(Pair::reversed)
        };
        let filesystem = |member: usize| named.test.entries[family.members[member]].filesystem;
        let standing = |member: usize, other: usize, of_last: bool| Standing {
            filesystem: filesystem(member),
            test: named,
            against: against(view, named, family, (member, other), of_last),
        };
        if let (&[best], Some(&next), true) =
            (&ranking.top[..], ranking.order.get(1), sound(&ranking.top))
        {
            first.push(standing(best, next, false));
        }
        let enough = ranking.order.len() >= FOR_SLOWEST;
        if let (&[worst], Some(&best), true) =
            (&ranking.bottom[..], ranking.order.first(), enough && sound(&ranking.bottom))
        {
            last.push(standing(worst, best, true));
        }
    }
    (first, last)
}

/// How a filesystem compares with another one in a test: a rate or a number of instructions over
/// the other's; for times, speed over speed. `None` where methods disagree about the size.
fn against(
    view: &View,
    named: &Named<'_>,
    family: &Family,
    (member, other): (usize, usize),
    of_last: bool,
) -> Option<(f64, String)> {
    let pair = match of_last {
        true => family.ranking.pair(other, member)?,
        false => family.ranking.pair(member, other)?,
    };
    let comparison = &pair.comparison;
    if disagreement(comparison).is_some() {
        return None;
    }
    // Ratios are oriented, above 1 for the better one. Of instructions fewer are better.
    let fewer = named.test.metric.spec().unit == Unit::Instructions;
    let turned = of_last != fewer;
    let name = &view.filesystems[named.test.entries[family.members[other]].filesystem].name;
    let text = ratio_of(comparison.ratio.0, comparison.interval, turned, name);
    Some((comparison.ratio.0.ln().abs(), text))
}

fn is_contest(named: &Named<'_>) -> bool {
    named.test.metric.spec().better != Better::Neither && named.test.family.is_some()
}

fn headline(view: &View, tests: &[Named<'_>], last: &[Standing<'_>]) -> String {
    let contests: Vec<&Named<'_>> = tests.iter().filter(|named| is_contest(named)).collect();
    let so_far = if view.facts.ended { "" } else { "so far: " };
    let m = contests.len();
    let measured = columns(view, tests).len();
    if measured < 2 {
        return format!("{so_far}fewer than two filesystems were measured: nothing is compared");
    }
    if m == 0 {
        return format!("{so_far}no comparison: too few repetitions, or no valid numbers");
    }
    let times = |filesystem: usize| {
        let top = |named: &&&Named<'_>| {
            named.test.entry(filesystem).is_some_and(|entry| entry.ranked && entry.top)
        };
        contests.iter().filter(top).count()
    };
    let all_tied = |named: &&Named<'_>| {
        let mut ranked = named.test.entries.iter().filter(|entry| entry.ranked);
        ranked.all(|entry| entry.top)
    };
    if contests.iter().all(all_tied) {
        let margin = view.facts.threshold.percent();
        return format!(
            "{so_far}no significant difference of more than {margin} between {measured} \
             filesystems in {m} tests"
        );
    }
    let best = (0..view.filesystems.len()).max_by_key(|it| (times(*it), usize::MAX - it));
    let best = best.unwrap_or_default();
    let count = |filesystem: usize| last.iter().filter(|it| it.filesystem == filesystem).count();
    let worst = (0..view.filesystems.len()).max_by_key(|it| (count(*it), usize::MAX - it));
    let worst = worst.filter(|worst| count(*worst) > 1 && *worst != best);
    let (first, least) = words(contests[0].test.metric, "fastest", "slowest");
    let mut text = format!(
        "{so_far}{} {first} or tied in {} of {m} tests",
        view.filesystems[best].name,
        times(best),
    );
    if let Some(worst) = worst {
        let (name, count) = (&view.filesystems[worst].name, count(worst));
        text.push_str(&format!("; {name} {least} in {count}"));
    }
    text
}

/// `is fastest` and `is slowest`, or what they are of instructions and of space.
fn words(metric: Metric, first: &str, last: &str) -> (String, String) {
    match metric.spec().unit {
        Unit::Instructions => {
            ("executes the fewest instructions".into(), "executes the most".into())
        }
        Unit::Bytes => ("has the most space".into(), "has the least".into()),
        Unit::BytesPerSecond
        | Unit::OpsPerSecond
        | Unit::Nanoseconds
        | Unit::Count
        | Unit::Share
        | Unit::Ratio
        | Unit::Hertz => (format!("is {first}"), format!("is {last}")),
    }
}

fn findings(
    view: &View,
    tests: &[Named<'_>],
    first: &[Standing<'_>],
    last: &[Standing<'_>],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for filesystem in 0..view.filesystems.len() {
        for (standings, is_first) in [(first, true), (last, false)] {
            let mut own: Vec<&Standing<'_>> =
                standings.iter().filter(|it| it.filesystem == filesystem).collect();
            let effect = |it: &Standing<'_>| it.against.as_ref().map_or(0.0, |(effect, _)| *effect);
            own.sort_by(|one, other| effect(other).total_cmp(&effect(one)));
            let Some(largest) = own.first() else { continue };
            let (best, least) = words(largest.test.test.metric, "the fastest", "the slowest");
            let name = &view.filesystems[filesystem].name;
            let verb =
                if is_first { best } else { least.replace("the most", "the most instructions") };
            let each = own.iter().take(TESTS_MAX).map(|it| match &it.against {
                Some((_, against)) => format!("{} ({against})", it.test.title),
                None => it.test.title.clone(),
            });
            let mut each: Vec<String> = each.collect();
            if own.len() > TESTS_MAX {
                each.push(format!("{} more tests", own.len() - TESTS_MAX));
            }
            let text = format!("{name} {verb} in {}.", list(&each));
            findings.push(Finding { effect: effect(largest), text });
        }
    }
    let tied = |named: &&Named<'_>| {
        let family = named.test.family.as_ref();
        is_contest(named)
            && family.is_some_and(|family| family.ranking.top.len() == family.members.len())
    };
    let ties: Vec<String> = tests.iter().filter(tied).map(|named| named.title.clone()).collect();
    if !ties.is_empty() {
        let text = format!(
            "No filesystem differs significantly from the best by more than {} in {}.",
            view.facts.threshold.percent(),
            list(&ties)
        );
        findings.push(Finding { effect: 0.0, text });
    }
    findings.sort_by(|one, other| other.effect.total_cmp(&one.effect));
    findings
}

/// Warnings that describe what was measured rather than how well.
fn describes(row: &WarningRow) -> bool {
    let of = |warning: Warning| warning.code() == row.code;
    row.level == Level::Info
        || of(Warning::Backing { what: String::new() })
        || of(Warning::Amended { what: String::new() })
}

/// Poor: no test can be ranked, or at least half of the numbers have a blocking warning. Limited: a
/// blocking warning, or one and the same warning at a quarter of the numbers or at the whole run.
fn trust(view: &View, tests: &[Named<'_>]) -> Trust {
    let entries: Vec<_> = tests
        .iter()
        .flat_map(|named| &named.test.entries)
        .filter(|entry| entry.summary.is_some())
        .collect();
    let all = entries.len();
    let affected = |row: &WarningRow| {
        let own = entries.iter().filter(|entry| entry.codes.contains(&row.code)).count();
        if own == 0 && row.places.len() == 1 && row.count == 1 { all } else { own }
    };
    let mut causes: Vec<(&WarningRow, usize)> = view
        .warnings
        .iter()
        .filter(|row| !describes(row))
        .map(|row| (row, affected(row)))
        .filter(|(row, numbers)| *numbers > 0 && (row.level == Level::Block || *numbers * 4 >= all))
        .collect();
    causes.sort_by_key(|(row, numbers)| (*numbers, row.level));
    let blocked = entries.iter().filter(|entry| !entry.barring.is_empty()).count();
    let compared = tests.iter().any(is_contest) || columns(view, tests).len() < 2;
    let grade = match causes.is_empty() {
        _ if !compared || blocked * 2 >= all.max(1) => Grade::Poor,
        true => Grade::Good,
        false => Grade::Limited,
    };
    let main = causes.last();
    let reason = |(row, numbers): &(&WarningRow, usize)| {
        let others = causes.len() - 1;
        let more = if others > 0 { format!(", and {others} more") } else { String::new() };
        format!("{} ({numbers} of {all} numbers{more})", row.message)
    };
    Trust { grade, reason: main.map(reason), hint: main.map(|(row, _)| row.cure) }
}

/// What was not measured, by reason. The reason of a filesystem that was skipped is given without
/// its name, and without the hints after it.
fn holes(view: &View) -> Vec<Hole> {
    let mut holes: Vec<Hole> = Vec::new();
    for missing in &view.missing {
        let name = missing.filesystem.as_str();
        let failed = missing.what.contains("failed");
        let first = match missing.reason.split_once(';') {
            Some((first, _)) if !failed => first.trim(),
            Some(_) | None => missing.reason.as_str(),
        };
        let reason = match first.strip_suffix(name).and_then(|rest| rest.strip_suffix(" has no ")) {
            Some(kernel) => format!("not in {kernel}"),
            None => format!("{}: {first}", missing.what),
        };
        match holes.iter_mut().find(|hole| hole.reason == reason) {
            Some(hole) if hole.filesystems.iter().any(|other| other == name) => {}
            Some(hole) => hole.filesystems.push(name.to_owned()),
            None => holes.push(Hole { failed, filesystems: vec![name.to_owned()], reason }),
        }
    }
    holes
}

#[cfg(test)]
mod tests {
    use model::{RunRecord, Warning};

    use super::*;
    use crate::{TerminalOptions, fixture, terminal::answer};

    fn page(views: &[&View]) -> String {
        answer(views, &TerminalOptions { width: 80, color: false, detail: false })
    }

    fn grade(record: &RunRecord) -> Grade {
        Answer::new(&View::new(record)).trust.grade
    }

    fn warned(warning: &Warning, every: usize) -> RunRecord {
        let mut record = fixture::record();
        let trials = record.trials.iter_mut().filter(|trial| trial.cell % every == 0);
        for trial in trials {
            trial.warnings.push((None, warning.clone()));
        }
        record
    }

    #[test]
    fn trust_is_graded_by_the_rule_of_the_documentation() {
        assert_eq!(grade(&fixture::record()), Grade::Good);
        let steal = Warning::Steal { share: model::Ratio(0.2) };
        assert_eq!(grade(&warned(&steal, 100)), Grade::Good, "fewer than a quarter");
        assert_eq!(grade(&warned(&steal, 1)), Grade::Limited);
        let guest = Warning::InGuest { kind: model::GuestKind::Tcg, latency: None };
        assert_eq!(grade(&warned(&guest, 1)), Grade::Poor, "all numbers have a blocking warning");
        let mut few = fixture::record();
        few.trials.retain(|trial| trial.repeat < 3);
        assert_eq!(grade(&few), Grade::Poor, "no test has a comparison");
        let answer = Answer::new(&View::new(&warned(&steal, 1)));
        assert!(answer.trust.reason.is_some_and(|reason| reason.contains("numbers")));
        assert!(answer.trust.hint.is_some());
    }

    #[test]
    fn a_skipped_filesystem_has_no_column() {
        let view = View::new(&fixture::record());
        let answer = Answer::new(&view);
        assert!(!answer.board.filesystems.contains(&"jfs".to_owned()));
        let hole = answer.missing.iter().find(|hole| hole.filesystems == ["jfs"]).unwrap();
        assert!(!hole.failed && hole.reason.starts_with("not in"), "{hole:?}");
        assert!(page(&[&view]).contains("Not measured: jfs"));
    }

    #[test]
    fn what_one_part_measured_is_not_missing() {
        let native = View::new(&fixture::record());
        let mut record = fixture::record();
        for cell in &mut record.cells {
            if cell.cell.filesystem.name == "ext4" {
                cell.cell.filesystem.name = "jfs".into();
            }
        }
        let guest = View::new(&record);
        assert!(Answer::new(&guest).board.filesystems.contains(&"jfs".to_owned()));
        assert!(!page(&[&native, &guest]).contains("Not measured: jfs"));
    }

    #[test]
    fn ratios_are_to_the_next_or_to_the_best_and_largest_first() {
        let answer = Answer::new(&View::new(&fixture::record()));
        let effects: Vec<f64> = answer.findings.iter().map(|finding| finding.effect).collect();
        assert!(effects.windows(2).all(|pair| pair[0] >= pair[1]), "{effects:?}");
        let slowest = |finding: &&Finding| finding.text.contains("is the slowest");
        let text = &answer.findings.iter().find(slowest).unwrap().text;
        assert!(text.contains("(0.") && text.contains(" × xfs ["), "{text}");
        let fastest = |finding: &&Finding| finding.text.contains("is the fastest");
        let text = &answer.findings.iter().find(fastest).unwrap().text;
        assert!(text.contains("(1."), "{text}");
    }
}

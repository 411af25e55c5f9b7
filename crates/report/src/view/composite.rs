//! Total of all tasks under three weightings.
//!
//! Each repetition with all tasks has three aggregates: the sum of the times, the sum without the
//! longest task, and the mean of ratios. The mean of ratios is the geometric mean of the times
//! relative to the best median of each task. The longest task is the one with the largest share of
//! the sum over all filesystems. An aggregate has one value per repetition and is summarized and
//! compared like a metric.
//!
//! Long tasks dominate a sum of seconds, so the other two aggregates have different weights. See
//! Fleming and Wallace, "How not to lie with statistics: the correct way to summarize benchmark
//! results", Communications of the ACM 29(3), 1986. A filesystem without a result for some task has
//! no total.

use analysis::{Comparer, Ranking, Summary, ranks, stop};
use model::{Metric, Warning, metric::Better, warning::Severity};

use super::{
    facts::{Facts, Filesystem},
    points::{Entry, Status, Test, WorkPoint},
    sample_index::{SampleIndex, codes},
    tables::{
        Body, Column, Row, Table, TableCell, ValueCell, caches, pair_result, scale_of, timed,
    },
    totals::{self, Totals},
    warnings::WarningCollector,
};
use crate::{
    samples::value,
    units::{Scale, count, percent, ratio},
};

/// Number of aggregates: sum, sum without the longest task, mean of ratios.
const AGGREGATES: usize = 3;

/// One filesystem.
struct Total<'a> {
    filesystem: usize,
    entry: &'a Entry,
    /// Time of each task in nanoseconds, per complete repetition.
    times: Vec<Vec<f64>>,
    /// Median share of each task in the sum.
    shares: Vec<f64>,
    /// True if the filesystem is ranked in all tasks.
    ranked: bool,
    /// Codes of warnings from the measurement of the tasks.
    codes: Vec<&'static str>,
    /// Aggregates, one value per complete repetition; set by [`aggregate`].
    aggregates: [Vec<f64>; AGGREGATES],
}

/// Totals of a point with timed tasks, as a table and as bars; `None` for other points and for a
/// single task.
pub(crate) fn composite(
    point: &WorkPoint,
    sample_index: &SampleIndex,
    filesystems: &[Filesystem],
    facts: &Facts,
    collector: &mut WarningCollector,
) -> Option<(Table, Totals)> {
    if !timed(point) || point.tests.len() < 2 {
        return None;
    }
    let (mut totals, mut rows) = (Vec::new(), Vec::new());
    for (index, filesystem) in filesystems.iter().enumerate() {
        match point.statuses[index].as_ref().map(|status| total(point, index, status, sample_index))
        {
            None => {}
            Some(Ok(total)) => totals.push(total),
            Some(Err(reason)) => {
                rows.push(Row::of(filesystem.name.clone(), Some(index), Body::Missing(reason)));
            }
        }
    }
    let longest = aggregate(point, &mut totals);
    let families: [Option<Family>; AGGREGATES] =
        std::array::from_fn(|aggregate| Family::new(&totals, aggregate, facts));
    let place =
        |total: &Total| format!("{} · {} · total", filesystems[total.filesystem].name, point.label);
    let mut lines: Vec<(f64, Row)> = Vec::new();
    for (at, total) in totals.iter().enumerate() {
        let Ok(summaries) = total.summaries() else {
            let name = filesystems[total.filesystem].name.clone();
            let reason = Body::Missing("no total: its repetitions have no valid sum".into());
            rows.push(Row::of(name, Some(total.filesystem), reason));
            continue;
        };
        let own = stop::warnings(&summaries[0], facts.profile);
        own.iter().for_each(|warning| collector.add(warning, &place(total)));
        let cells = cells(at, total, &summaries, &families, facts, &own);
        let name = filesystems[total.filesystem].name.clone();
        let mut row = Row::of(name, Some(total.filesystem), Body::Cells(cells));
        row.note = total.entry.failed_repetitions();
        lines.push((summaries[0].median, row));
    }
    lines.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    rows.splice(0..0, lines.into_iter().map(|(_, row)| row));
    let without = longest.map_or("the longest", |task| point.tests[task].name.as_str());
    let mut table = Table {
        id: format!("{}--total", point.id),
        title: format!("Total of all tasks: {}", point.label),
        caption: caption(point, filesystems, &totals, longest),
        corner: "filesystem",
        columns: vec![
            Column::new("total", Scale::SECONDS.name),
            Column::new("vs. best", ""),
            Column::new("result", ""),
            Column::new(format!("without {without}"), Scale::SECONDS.name),
            Column::new("mean of ratios", "×"),
        ],
        rows,
    };
    let before = table.caption.len();
    table.caption.extend(caches(&point.tests.iter().collect::<Vec<_>>()));
    table.state_n();
    table.caption.extend(ranking_caption(&families, facts));
    let bars = Totals { caption: table.caption[before..].to_vec(), ..bars(point, &totals, &table) };
    Some((table, bars))
}

/// Totals of a table as stacked bars.
fn bars(point: &WorkPoint, all: &[Total], table: &Table) -> Totals {
    let tasks = point.tests.iter().map(|test| test.name.clone()).collect();
    let shares = |filesystem: usize| {
        let total = all.iter().find(|total| total.filesystem == filesystem)?;
        Some(total.shares.clone())
    };
    totals::totals(table, &point.label, tasks, shares)
}

/// All complete repetitions of a filesystem, or the reason why it has no total.
fn total<'a>(
    point: &'a WorkPoint,
    filesystem: usize,
    status: &Status,
    sample_index: &SampleIndex,
) -> Result<Total<'a>, String> {
    if let Status::Nothing(reason) = status {
        return Err(reason.clone());
    }
    let entries: Vec<Option<&Entry>> =
        point.tests.iter().map(|test| test.entry(filesystem)).collect();
    let absent: Vec<&str> = entries
        .iter()
        .zip(&point.tests)
        .filter(|(entry, _)| entry.is_none_or(|entry| entry.summary.is_none()))
        .map(|(_, test)| test.name.as_str())
        .collect();
    if !absent.is_empty() {
        return Err(format!("no total: no result for {}", absent.join(", ")));
    }
    let entries: Vec<&Entry> = entries.into_iter().flatten().collect();
    let Some(entry) = entries.first().copied() else {
        return Err("no total: no tasks".into());
    };
    let times: Vec<Vec<f64>> = sample_index
        .measured(entry.cell)
        .filter_map(|trial| {
            let time = |test: &Test| value(trial, &test.name, Metric::Elapsed);
            point.tests.iter().map(time).collect()
        })
        .collect();
    if times.is_empty() {
        return Err("no total: no repetition has all tasks".into());
    }
    let share = |task: usize| {
        let shares: Vec<f64> =
            times.iter().map(|each| each[task] / each.iter().sum::<f64>()).collect();
        Summary::new(&shares).map_or(0.0, |summary| summary.median)
    };
    let mut codes: Vec<&'static str> =
        entries.iter().flat_map(|entry| entry.measured_codes.iter().copied()).collect();
    codes.sort_unstable();
    codes.dedup();
    Ok(Total {
        filesystem,
        entry,
        shares: (0..point.tests.len()).map(share).collect(),
        times,
        ranked: entries.iter().all(|entry| entry.ranked),
        codes,
        aggregates: Default::default(),
    })
}

/// Sets the aggregates. Returns the task with the largest share of the totals of all filesystems.
fn aggregate(point: &WorkPoint, totals: &mut [Total]) -> Option<usize> {
    let part = |task: &usize| totals.iter().map(|total| total.shares[*task]).sum::<f64>();
    let longest = (0..point.tests.len()).max_by(|a, b| part(a).total_cmp(&part(b)))?;
    // Only filesystems with all tasks are included.
    let best = |task: usize| {
        let medians = totals.iter().filter_map(|total| {
            let entry = point.tests[task].entry(total.filesystem)?;
            entry.summary.as_ref().map(|summary| summary.median)
        });
        medians.fold(f64::INFINITY, f64::min)
    };
    let best: Vec<f64> = (0..point.tests.len()).map(best).collect();
    for total in totals {
        total.aggregates = [
            total.times.iter().map(|each| each.iter().sum()).collect(),
            total.times.iter().map(|each| each.iter().sum::<f64>() - each[longest]).collect(),
            total.times.iter().map(|each| mean_ratio(each, &best)).collect(),
        ];
    }
    Some(longest)
}

/// Geometric mean of the times relative to the best median of each task.
fn mean_ratio(times: &[f64], best: &[f64]) -> f64 {
    let logarithms: f64 = times.iter().zip(best).map(|(time, best)| (time / best).ln()).sum();
    (logarithms / times.len() as f64).exp()
}

impl Total<'_> {
    /// Summaries of the aggregates.
    ///
    /// # Errors
    /// If an aggregate is not finite, for example because a task took no time.
    fn summaries(&self) -> Result<Vec<Summary>, analysis::Error> {
        self.aggregates.iter().map(|values| Summary::new(values)).collect()
    }
}

/// Comparison of one aggregate over the ranked filesystems.
struct Family {
    /// Index of each member among the totals.
    members: Vec<usize>,
    ranking: Ranking,
}

impl Family {
    fn new(totals: &[Total], aggregate: usize, facts: &Facts) -> Option<Self> {
        let members: Vec<usize> = (0..totals.len()).filter(|at| totals[*at].ranked).collect();
        if members.len() < 2 {
            return None;
        }
        let values: Vec<&[f64]> =
            members.iter().map(|at| totals[*at].aggregates[aggregate].as_slice()).collect();
        let margin = facts.margin.ratio();
        let ranking = ranks::rank(&mut Comparer::new(), &values, Better::Lower, margin).ok()?;
        Some(Self { members, ranking })
    }

    fn is_top(&self, total: usize) -> bool {
        self.ranking.top.iter().any(|member| self.members[*member] == total)
    }

    /// Indices of the totals in the top group, ascending.
    fn top(&self) -> Vec<usize> {
        let mut top: Vec<usize> =
            self.ranking.top.iter().map(|member| self.members[*member]).collect();
        top.sort_unstable();
        top
    }
}

fn cells(
    at: usize,
    total: &Total,
    summaries: &[Summary],
    families: &[Option<Family>; AGGREGATES],
    facts: &Facts,
    own: &[Warning],
) -> Vec<TableCell> {
    let total_of = |aggregate: usize, scale: Scale| {
        let top = families[aggregate].as_ref().is_some_and(|family| family.is_top(at));
        ValueCell { top, ..ValueCell::plain(&summaries[aggregate], scale) }
    };
    let mut all = total.codes.clone();
    all.extend(codes(own.iter()));
    all.sort_unstable();
    all.dedup();
    let (times, verdict) = against_best(at, total, families[0].as_ref(), facts, own);
    let ratios = scale_of(model::metric::Unit::Ratio, summaries[2..].iter());
    vec![
        TableCell::Value(ValueCell { codes: all, ..total_of(0, Scale::SECONDS) }),
        TableCell::Text(times),
        TableCell::Text(verdict),
        TableCell::Value(total_of(1, Scale::SECONDS)),
        TableCell::Value(total_of(2, ratios)),
    ]
}

/// Ratio of a total to the best total, and result of their comparison, as text.
fn against_best(
    at: usize,
    total: &Total,
    family: Option<&Family>,
    facts: &Facts,
    own: &[Warning],
) -> (String, String) {
    if total.entry.failed.is_some() {
        return (String::new(), "not ranked: repetitions failed".into());
    }
    if !total.ranked || own.iter().any(|warning| warning.severity() == Severity::Blocking) {
        return (String::new(), "not ranked: see warnings".into());
    }
    let Some(family) = family else {
        return (String::new(), "no other filesystem".into());
    };
    let Some(member) = family.members.iter().position(|total| *total == at) else {
        return (String::new(), String::new());
    };
    let best = family.ranking.order[0];
    match family.ranking.pair(best, member) {
        // The ratio exceeds 1 in favor of the better total. It is therefore the ratio of this time
        // to the best one.
        Some(pair) if member != best => {
            let ratio = ratio(pair.comparison.ratio.0, pair.comparison.interval);
            (ratio.replacen(" [", "\n[", 1), pair_result(pair, facts))
        }
        _ => ("×1".into(), "best median".into()),
    }
}

fn caption(
    point: &WorkPoint,
    filesystems: &[Filesystem],
    totals: &[Total],
    longest: Option<usize>,
) -> Vec<String> {
    let mut caption = vec![
        format!(
            "Elapsed, lower is better ↓; sum of all {} tasks, over the repetitions that \
             have all of them",
            point.tests.len()
        ),
        "long tasks dominate a sum of seconds".into(),
    ];
    let shares = |task: usize| totals.iter().map(move |total| total.shares[task]);
    if let Some(task) = longest.filter(|_| !totals.is_empty()) {
        let least = shares(task).fold(f64::INFINITY, f64::min);
        let most = shares(task).fold(0.0, f64::max);
        caption.push(format!(
            "the longest task over all filesystems is {}, {} to {} of a total; the sum without it \
             is also shown",
            point.tests[task].name,
            percent(least).trim_end_matches(" %"),
            percent(most)
        ));
    }
    for total in totals {
        let largest = (0..total.shares.len())
            .max_by(|a, b| total.shares[*a].total_cmp(&total.shares[*b]))
            .filter(|task| Some(*task) != longest);
        if let Some(task) = largest {
            caption.push(format!(
                "the longest task of {} is {}, {}",
                filesystems[total.filesystem].name,
                point.tests[task].name,
                percent(total.shares[task])
            ));
        }
    }
    caption.push(
        "mean of ratios: geometric mean over the tasks of the time relative to the best median of \
         the task, which is treated as fixed; all tasks have the same weight"
            .into(),
    );
    caption
}

/// Caption on the top groups, with a note if the top groups of the aggregates differ.
fn ranking_caption(families: &[Option<Family>; AGGREGATES], facts: &Facts) -> Option<String> {
    let total = families[0].as_ref()?;
    let mut caption = format!(
        "▲ top group of the column (Holm-adjusted over {}, {})",
        count(total.ranking.pairs.len(), "comparison"),
        facts.margin.label()
    );
    let others = families[1..].iter().flatten();
    if others.into_iter().any(|family| family.top() != total.top()) {
        caption.push_str(
            "; the three aggregates have different top groups, so the ranking depends on the \
             weights of the tasks",
        );
    }
    Some(caption)
}

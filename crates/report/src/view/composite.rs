//! The total of all tasks, and how far it depends on how they are weighed.
//!
//! For each repeat that has all tasks, three readings: the sum of all; the sum without the task
//! that makes up most of it; and the geometric mean of the times over the best median of each task.
//! Each is one value for each repeat, so median, interval, and comparison are the usual ones. A sum
//! of seconds ranks mainly the long tasks (Fleming and Wallace, "How not to lie with statistics:
//! the correct way to summarize benchmark results", Communications of the ACM 29(3), 1986), so the
//! other two stand beside it and the caption names the longest. A filesystem that lacks a task has
//! no total, and says which.

use analysis::{Comparer, Ranking, Summary, ranks, stop};
use model::{Metric, Warning, metric::Better, warning::Level};

use super::{
    facts::{Facts, Filesystem},
    points::{Entry, Status, WorkPoint},
    pool::{Pool, codes},
    tables::{Body, Column, Row, Table, TableCell, ValueCell, caches, said_of, scale_of, timed},
    totals::{self, Totals},
    warnings::Register,
};
use crate::units::{Scale, percent, ratio};

/// The three readings: sum, sum without the longest task, mean of ratios.
const READINGS: usize = 3;

/// One filesystem.
struct Total<'a> {
    filesystem: usize,
    entry: &'a Entry,
    /// For each complete repeat, the time of each task in nanoseconds.
    times: Vec<Vec<f64>>,
    /// The median part of each task in the sum.
    shares: Vec<f64>,
    /// All its tasks are ranked.
    ranked: bool,
    /// Codes of the tasks, earned while measuring.
    codes: Vec<&'static str>,
    /// The readings of each repeat.
    readings: [Vec<f64>; READINGS],
}

/// Totals of a point whose tests are judged by their time; `None` for other points, or for a
/// single test.
pub(crate) fn composite(
    point: &WorkPoint,
    pool: &Pool,
    filesystems: &[Filesystem],
    facts: &Facts,
    register: &mut Register,
) -> Option<(Table, Totals)> {
    if !timed(point) || point.tests.len() < 2 {
        return None;
    }
    let (mut totals, mut rows) = (Vec::new(), Vec::new());
    for (index, filesystem) in filesystems.iter().enumerate() {
        match point.statuses[index].as_ref().map(|status| total(point, index, status, pool)) {
            None => {}
            Some(Ok(total)) => totals.push(total),
            Some(Err(reason)) => {
                rows.push(Row::of(filesystem.name.clone(), Some(index), Body::Missing(reason)));
            }
        }
    }
    let longest = read(point, &mut totals);
    let families: [Option<Family>; READINGS] =
        std::array::from_fn(|reading| Family::new(&totals, reading, facts));
    let place =
        |total: &Total| format!("{} · {} · total", filesystems[total.filesystem].name, point.label);
    let mut lines: Vec<(f64, Row)> = Vec::new();
    for (at, total) in totals.iter().enumerate() {
        let Ok(summaries) = total.summaries() else {
            let name = filesystems[total.filesystem].name.clone();
            let reason = Body::Missing("no total: its repeats give none".into());
            rows.push(Row::of(name, Some(total.filesystem), reason));
            continue;
        };
        let own = stop::warnings(&summaries[0], facts.profile);
        own.iter().for_each(|warning| register.add(warning, &place(total)));
        let cells = cells(at, total, &summaries, &families, facts, &own);
        let name = filesystems[total.filesystem].name.clone();
        let mut row = Row::of(name, Some(total.filesystem), Body::Cells(cells));
        row.note = total.entry.failed_repeats();
        lines.push((summaries[0].median, row));
    }
    lines.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    rows.splice(0..0, lines.into_iter().map(|(_, row)| row));
    let without = longest.map_or("its longest", |task| point.tests[task].name.as_str());
    let mut table = Table {
        id: format!("{}--total", point.id),
        title: format!("Total of all tasks: {}", point.label),
        caption: caption(point, filesystems, &totals, longest),
        corner: "filesystem",
        columns: vec![
            Column::new("total", Scale::SECONDS.name),
            Column::new("times the best", ""),
            Column::new("verdict", ""),
            Column::new(format!("without {without}"), Scale::SECONDS.name),
            Column::new("mean of ratios", "×"),
        ],
        rows,
    };
    let before = table.caption.len();
    table.caption.extend(caches(&point.tests.iter().collect::<Vec<_>>()));
    table.state_n();
    table.caption.extend(ranking_words(&families, facts));
    let bars = Totals { caption: table.caption[before..].to_vec(), ..bars(point, &totals, &table) };
    Some((table, bars))
}

/// The totals of a table as bars.
fn bars(point: &WorkPoint, all: &[Total], table: &Table) -> Totals {
    let tasks = point.tests.iter().map(|test| test.name.clone()).collect();
    let shares = |filesystem: usize| {
        let total = all.iter().find(|total| total.filesystem == filesystem)?;
        Some(total.shares.clone())
    };
    totals::totals(table, &point.label, tasks, shares)
}

/// All complete repeats of a filesystem, or why it has no total.
fn total<'a>(
    point: &'a WorkPoint,
    filesystem: usize,
    status: &Status,
    pool: &Pool,
) -> Result<Total<'a>, String> {
    if let Status::Nothing(reason) = status {
        return Err(reason.clone());
    }
    let entries: Vec<Option<&Entry>> =
        point.tests.iter().map(|test| test.entry(filesystem)).collect();
    let lacking: Vec<&str> = entries
        .iter()
        .zip(&point.tests)
        .filter(|(entry, _)| entry.is_none_or(|entry| entry.summary.is_none()))
        .map(|(_, test)| test.name.as_str())
        .collect();
    if !lacking.is_empty() {
        return Err(format!("no total: it lacks {}", lacking.join(", ")));
    }
    let entries: Vec<&Entry> = entries.into_iter().flatten().collect();
    let Some(entry) = entries.first().copied() else {
        return Err("no total: it has no tasks".into());
    };
    let times: Vec<Vec<f64>> = pool
        .measured(entry.cell)
        .filter_map(|trial| {
            let time = |name: &str| {
                let mut samples = trial.samples.iter().filter(|sample| sample.worker.is_none());
                let wanted =
                    samples.find(|sample| sample.phase == name && sample.metric == Metric::Elapsed);
                wanted.map(|sample| sample.value)
            };
            point.tests.iter().map(|test| time(&test.name)).collect()
        })
        .collect();
    if times.is_empty() {
        return Err("no total: no repeat has all tasks".into());
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
        readings: Default::default(),
    })
}

/// Fills in the readings; the answer is the task with the largest part over all filesystems.
fn read(point: &WorkPoint, totals: &mut [Total]) -> Option<usize> {
    let part = |task: &usize| totals.iter().map(|total| total.shares[*task]).sum::<f64>();
    let longest = (0..point.tests.len()).max_by(|a, b| part(a).total_cmp(&part(b)))?;
    // Only among those that have all tasks: the others take no part.
    let best = |task: usize| {
        let medians = totals.iter().filter_map(|total| {
            let entry = point.tests[task].entry(total.filesystem)?;
            entry.summary.as_ref().map(|summary| summary.median)
        });
        medians.fold(f64::INFINITY, f64::min)
    };
    let best: Vec<f64> = (0..point.tests.len()).map(best).collect();
    for total in totals {
        total.readings = [
            total.times.iter().map(|each| each.iter().sum()).collect(),
            total.times.iter().map(|each| each.iter().sum::<f64>() - each[longest]).collect(),
            total.times.iter().map(|each| mean_ratio(each, &best)).collect(),
        ];
    }
    Some(longest)
}

/// Geometric mean of times over the best of each.
fn mean_ratio(times: &[f64], best: &[f64]) -> f64 {
    let logarithms: f64 = times.iter().zip(best).map(|(time, best)| (time / best).ln()).sum();
    (logarithms / times.len() as f64).exp()
}

impl Total<'_> {
    /// Summaries of the readings.
    ///
    /// # Errors
    /// When a reading is not a finite number, as where a task took no time at all.
    fn summaries(&self) -> Result<Vec<Summary>, analysis::Error> {
        self.readings.iter().map(|values| Summary::new(values)).collect()
    }
}

/// One reading compared over the filesystems that may be ranked.
struct Family {
    /// Index of each member among the totals.
    members: Vec<usize>,
    ranking: Ranking,
}

impl Family {
    fn new(totals: &[Total], reading: usize, facts: &Facts) -> Option<Self> {
        let members: Vec<usize> = (0..totals.len()).filter(|at| totals[*at].ranked).collect();
        if members.len() < 2 {
            return None;
        }
        let values: Vec<&[f64]> =
            members.iter().map(|at| totals[*at].readings[reading].as_slice()).collect();
        let threshold = facts.threshold.ratio();
        let ranking = ranks::rank(&mut Comparer::new(), &values, Better::Lower, threshold).ok()?;
        Some(Self { members, ranking })
    }

    fn is_top(&self, total: usize) -> bool {
        self.ranking.top.iter().any(|member| self.members[*member] == total)
    }

    /// The top group as indexes of totals, in ascending order.
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
    families: &[Option<Family>; READINGS],
    facts: &Facts,
    own: &[Warning],
) -> Vec<TableCell> {
    let value = |reading: usize, scale: Scale| {
        let top = families[reading].as_ref().is_some_and(|family| family.is_top(at));
        ValueCell { top, ..ValueCell::plain(&summaries[reading], scale) }
    };
    let mut all = total.codes.clone();
    all.extend(codes(own.iter()));
    all.sort_unstable();
    all.dedup();
    let (times, verdict) = against_best(at, total, families[0].as_ref(), facts, own);
    let ratios = scale_of(model::metric::Unit::Ratio, summaries[2..].iter());
    vec![
        TableCell::Value(ValueCell { codes: all, ..value(0, Scale::SECONDS) }),
        TableCell::Text(times),
        TableCell::Text(verdict),
        TableCell::Value(value(1, Scale::SECONDS)),
        TableCell::Value(value(2, ratios)),
    ]
}

/// How many times the total of the best this one is, and what may be said of it.
fn against_best(
    at: usize,
    total: &Total,
    family: Option<&Family>,
    facts: &Facts,
    own: &[Warning],
) -> (String, String) {
    if total.entry.failed.is_some() {
        return (String::new(), "not ranked: repeats failed".into());
    }
    if !total.ranked || own.iter().any(|warning| warning.level() == Level::Block) {
        return (String::new(), "not ranked: see warnings".into());
    }
    let Some(family) = family else {
        return (String::new(), "nothing to compare with".into());
    };
    let Some(member) = family.members.iter().position(|total| *total == at) else {
        return (String::new(), String::new());
    };
    let best = family.ranking.order[0];
    match family.ranking.pair(best, member) {
        // A ratio above 1 is in favor of the better one, so it is how often its time fits.
        Some(pair) if member != best => {
            let words = ratio(pair.comparison.ratio.0, pair.comparison.interval);
            (words.replacen(" [", "\n[", 1), said_of(pair, facts))
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
            "Elapsed, lower is better ↓; sum over all {} tasks of each repeat that has them all",
            point.tests.len()
        ),
        "a sum of seconds ranks mainly the long tasks".into(),
    ];
    let shares = |task: usize| totals.iter().map(move |total| total.shares[task]);
    if let Some(task) = longest.filter(|_| !totals.is_empty()) {
        let least = shares(task).fold(f64::INFINITY, f64::min);
        let most = shares(task).fold(0.0, f64::max);
        caption.push(format!(
            "the longest over all filesystems is {}, {} to {} of a total, so the sum without it \
             stands beside",
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
                "the longest of {} is {}, {}",
                filesystems[total.filesystem].name,
                point.tests[task].name,
                percent(total.shares[task])
            ));
        }
    }
    caption.push(
        "mean of ratios: geometric mean over the tasks of the time over the best median of that \
         task, which is taken as fixed; all tasks weigh alike"
            .into(),
    );
    caption
}

/// How the top groups were found, and whether they are the same.
fn ranking_words(families: &[Option<Family>; READINGS], facts: &Facts) -> Option<String> {
    let total = families[0].as_ref()?;
    let mut words = format!(
        "▲ top group of its column: m = {} comparisons, Holm at 5 %, {}",
        total.ranking.pairs.len(),
        facts.threshold.words()
    );
    let others = families[1..].iter().flatten();
    if others.into_iter().any(|family| family.top() != total.top()) {
        words.push_str(
            "; the three readings do not have the same top group, so the order depends on how \
             tasks are weighed",
        );
    }
    Some(words)
}

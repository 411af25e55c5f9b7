//! Which of filesystem, scheduler, and settings of the machine matters, and whether the answer for
//! one depends on another.
//!
//! Points of the same work that differ in what the plan sets beside it enter, where at least two of
//! filesystem and settings vary. `analysis::factorial` shares the variance out; this module puts
//! shares, medians, and ratios into tables, sentences, and panels of a chart, and says which
//! sentences about filesystems must name a condition ([`Scopes`]).

mod sentences;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use analysis::{
    Comparer, Repeat, blocks,
    factorial::{self, Factor, Factorial, Observation, Refusal},
};
use model::{Metric, RunRecord, Value, metric::Better};

use crate::{
    units::{Scale, capital, one_line},
    view::{
        claims::PointClaims,
        control::Control,
        facts::Filesystem,
        points::{self, Suite, Test, WorkPoint, slug},
        pool::Pool,
        sweeps::{self, Series, SweepValue},
        tables::{Table, scale_of},
        threshold::Threshold,
    },
};

/// How it was done, for the notes of the report.
pub(crate) const METHOD: &str = "\
    What matters is told by an analysis of variance of the logarithms: the filesystem, \
    each condition that varies, their interactions two by two, and the block, with sums \
    of squares of type II. A share is ω², with its interval by resampling blocks; p \
    comes from permuting residuals within blocks (Freedman and Lane), and sentences from \
    p after Holm's correction over the factors of a test. Where an interaction of the \
    filesystem is above 10 % of what is explained, each sentence about filesystems names \
    the condition it holds for; where more than half of the variance is not explained, \
    the table is mostly noise and no sentence is made.";

/// The condition that stands first.
const SCHEDULER: &str = "scheduler";

/// The name of the first factor.
const FILESYSTEM: &str = "filesystem";

/// One test of one work under several conditions.
#[derive(Clone, Debug)]
pub(crate) struct Interaction {
    /// Unique within the report.
    pub(crate) id: String,
    pub(crate) title: String,
    /// The suite it is of.
    pub(crate) suite: String,
    pub(crate) metric: Metric,
    pub(crate) scale: Scale,
    /// One chart for each condition.
    pub(crate) charts: Vec<Across>,
    /// How many repeats stand behind each point: `8`, or `8 to 12`.
    pub(crate) repeats: String,
    /// The warning codes of all its numbers, each once, in alphabetical order.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without any value, and why.
    pub(crate) absent: Vec<(String, String)>,
    /// Sentences, and what is not decided.
    pub(crate) claims: PointClaims,
    /// Medians, then shares of variance.
    pub(crate) tables: Vec<Table>,
    /// Ids of its points.
    pub(crate) points: Vec<String>,
    /// Conditions that vary.
    pub(crate) conditions: Vec<String>,
    scopes: Scopes,
}

/// What a chart shows with one condition on its horizontal axis.
#[derive(Clone, Debug)]
pub(crate) struct Across {
    /// The condition.
    pub(crate) condition: String,
    /// Its levels.
    pub(crate) levels: Vec<String>,
    /// One for each combination of the other conditions.
    pub(crate) panels: Vec<Panel>,
}

/// Medians at one combination of the conditions that are not on the horizontal axis.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// `cpu_speed=50%`; empty if there are no other conditions.
    pub(crate) title: String,
    /// One for each filesystem, by level.
    pub(crate) lines: Vec<Series>,
    /// The same as a multiple of the first level.
    pub(crate) ratios: Vec<Series>,
}

/// For tests by id: under which condition a sentence about filesystems holds, as
/// `scheduler=bfq`, and what is left of the label of its point.
pub(crate) type Scopes = BTreeMap<String, (String, String)>;

/// The scopes of all of them.
pub(crate) fn scopes(interactions: &[Interaction]) -> Scopes {
    interactions.iter().flat_map(|interaction| interaction.scopes.clone()).collect()
}

/// Every test whose conditions vary.
pub(crate) fn interactions(
    suites: &[Suite],
    filesystems: &[Filesystem],
    pool: &Pool,
    control: &Control,
) -> Vec<Interaction> {
    let mut builder = Builder {
        record: pool.record,
        threshold: control.threshold,
        suspected: control.suspected,
        filesystems,
        pool,
        comparer: Comparer::new(),
    };
    let mut all = Vec::new();
    for suite in suites {
        for points in alike(suite) {
            for name in sweeps::tests(&points) {
                all.extend(builder.of_test(suite, name, &points));
            }
        }
    }
    all
}

/// Points of the same work whose plan sets the same conditions.
fn alike(suite: &Suite) -> Vec<Vec<&WorkPoint>> {
    let work = |point: &WorkPoint| {
        let own = |(name, _): &(&String, &Value)| !point.conditions.contains_key(*name);
        let own: Vec<_> = point.parameters.iter().filter(own).collect();
        let names: Vec<&String> = point.conditions.keys().collect();
        format!("{own:?} {names:?}")
    };
    let mut groups: Vec<(String, Vec<&WorkPoint>)> = Vec::new();
    for point in suite.points.iter().filter(|point| !point.conditions.is_empty()) {
        let own = work(point);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, points)) => points.push(point),
            None => groups.push((own, vec![point])),
        }
    }
    groups.into_iter().map(|(_, points)| points).collect()
}

/// A condition and its levels, in the order of the plan.
struct Axis {
    name: String,
    levels: Vec<String>,
}

impl Axis {
    /// The level of a point, by index.
    fn level(&self, point: &WorkPoint) -> Option<usize> {
        let own = point.conditions.get(&self.name).map(told)?;
        self.levels.iter().position(|level| *level == own)
    }
}

fn told(value: &Value) -> String {
    one_line(&value.to_string())
}

/// Conditions with several levels.
fn axes(points: &[&WorkPoint]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (name, value) in points.iter().flat_map(|point| &point.conditions) {
        let axis = match axes.iter().position(|axis| axis.name == *name) {
            Some(at) => &mut axes[at],
            None => {
                axes.push(Axis { name: name.clone(), levels: Vec::new() });
                let last = axes.len() - 1;
                &mut axes[last]
            }
        };
        let level = told(value);
        if !axis.levels.contains(&level) {
            axis.levels.push(level);
        }
    }
    axes.retain(|axis| axis.levels.len() > 1);
    // Stable: the scheduler first, the others by name.
    axes.sort_by_key(|axis| axis.name != SCHEDULER);
    axes
}

/// The label of a point without some of its conditions.
fn without<'a>(point: &WorkPoint, names: impl Iterator<Item = &'a str>) -> String {
    names.fold(point.label.clone(), |label, name| match point.conditions.get(name) {
        Some(value) => points::without(&label, name, value),
        None => label,
    })
}

/// `scheduler=bfq, cpu_speed=50%`.
fn at<'a>(point: &WorkPoint, names: impl Iterator<Item = &'a str>) -> String {
    let each = names.filter_map(|name| {
        let value = point.conditions.get(name)?;
        Some(format!("{name}={}", told(value)))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What sentences and tables are made from.
struct Input<'a> {
    id: String,
    /// `replay, dbench clients=5`.
    what: String,
    points: &'a [&'a WorkPoint],
    /// The test at each point.
    tests: &'a [Option<&'a Test>],
    axes: &'a [Axis],
    /// Filesystems with values, by index.
    shown: &'a [usize],
    filesystems: &'a [Filesystem],
    metric: Metric,
    scale: Scale,
    threshold: Threshold,
    factorial: Result<Factorial, Refusal>,
    /// Index of the filesystem among the factors, if it is one.
    filesystem: Option<usize>,
    /// All cells may carry a claim.
    sound: bool,
    absent: &'a [(String, String)],
}

struct Builder<'a> {
    record: &'a RunRecord,
    threshold: Threshold,
    /// The run may have drifted.
    suspected: bool,
    filesystems: &'a [Filesystem],
    pool: &'a Pool<'a>,
    comparer: Comparer,
}

impl Builder<'_> {
    fn of_test(&mut self, suite: &Suite, name: &str, points: &[&WorkPoint]) -> Option<Interaction> {
        let axes = axes(points);
        let tests: Vec<Option<&Test>> =
            points.iter().map(|point| point.tests.iter().find(|test| test.name == name)).collect();
        let metric = tests.iter().flatten().next()?.metric;
        let entries = || tests.iter().flatten().flat_map(|test| &test.entries);
        let has = |index: &usize| {
            entries().any(|entry| entry.filesystem == *index && entry.summary.is_some())
        };
        let (shown, empty): (Vec<usize>, Vec<usize>) =
            (0..self.filesystems.len()).partition(|index| has(index));
        let factors = axes.len() + usize::from(shown.len() > 1);
        if axes.is_empty() || factors < 2 || metric.spec().better == Better::Neither {
            return None;
        }
        let absent: Vec<(String, String)> = empty
            .into_iter()
            .map(|index| (self.filesystems[index].name.clone(), sweeps::reason(points, index)))
            .collect();
        let summaries = || entries().filter_map(|entry| entry.summary.as_ref());
        let scale = scale_of(metric.spec().unit, summaries());
        let names = || axes.iter().map(|axis| axis.name.as_str());
        let place = without(points[0], names());
        let what = format!("{name}, {place}");
        let input = Input {
            id: format!("conditions-{}-{}", points[0].id, slug(name)),
            factorial: self.factorial(metric, points, &tests, &axes, &shown),
            filesystem: (shown.len() > 1).then_some(0),
            sound: entries().filter(|entry| entry.summary.is_some()).all(|entry| entry.ranked),
            threshold: self.threshold,
            filesystems: self.filesystems,
            what,
            points,
            tests: &tests,
            axes: &axes,
            shown: &shown,
            metric,
            scale,
            absent: &absent,
        };
        let by = names().collect::<Vec<_>>().join(" · ");
        let title = format!("{}: {place}, by {by}", capital(name));
        Some(Interaction {
            suite: suite.name.clone(),
            metric,
            scale,
            charts: axes.iter().map(|axis| self.across(&input, axis)).collect(),
            repeats: sweeps::repeats(summaries()),
            codes: tests.iter().flatten().flat_map(|test| test.codes()).collect(),
            claims: sentences::claims(&input, &title),
            tables: tables::tables(&input, &title),
            points: points.iter().map(|point| point.id.clone()).collect(),
            conditions: names().map(str::to_owned).collect(),
            scopes: sentences::scopes(&input),
            id: input.id,
            title,
            absent,
        })
    }

    fn factorial(
        &self,
        metric: Metric,
        points: &[&WorkPoint],
        tests: &[Option<&Test>],
        axes: &[Axis],
        shown: &[usize],
    ) -> Result<Factorial, Refusal> {
        let several = shown.len() > 1;
        let mut factors = Vec::new();
        if several {
            let levels = shown.iter().map(|index| self.filesystems[*index].name.clone()).collect();
            factors.push(Factor { name: FILESYSTEM.into(), levels });
        }
        factors.extend(
            axes.iter().map(|axis| Factor { name: axis.name.clone(), levels: axis.levels.clone() }),
        );
        let mut observations = Vec::new();
        for (point, test) in points.iter().zip(tests) {
            let conditions: Option<Vec<usize>> =
                axes.iter().map(|axis| axis.level(point)).collect();
            let (Some(conditions), Some(test)) = (conditions, test) else { continue };
            for (level, filesystem) in shown.iter().enumerate() {
                let Some(entry) = test.entry(*filesystem) else { continue };
                let own = several.then_some(level).into_iter();
                let levels: Vec<usize> = own.chain(conditions.iter().copied()).collect();
                for (block, value) in self.pool.repeats(entry.cell, &test.name, metric) {
                    let levels = levels.clone();
                    observations.push(Observation { levels, block: Some(block), value });
                }
            }
        }
        factorial::analyze(&factors, &observations, self.record.info.seed)
    }

    fn across(&mut self, input: &Input, across: &Axis) -> Across {
        let others = || input.axes.iter().filter(|axis| axis.name != across.name);
        let mut panels: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, point) in input.points.iter().enumerate() {
            let title = at(point, others().map(|axis| axis.name.as_str()));
            match panels.iter_mut().find(|(known, _)| *known == title) {
                Some((_, points)) => points.push(index),
                None => panels.push((title, vec![index])),
            }
        }
        let panel = |(title, points): (String, Vec<usize>)| {
            let of_level = |level: usize| {
                points.iter().copied().find(|at| across.level(input.points[*at]) == Some(level))
            };
            let levels: Vec<Option<usize>> = (0..across.levels.len()).map(of_level).collect();
            let lines = input.shown.iter().map(|index| line(input, *index, &levels)).collect();
            let ratios =
                input.shown.iter().map(|index| self.ratios(input, *index, &levels)).collect();
            Panel { title, lines, ratios }
        };
        let panels = panels.into_iter().map(panel).collect();
        Across { condition: across.name.clone(), levels: across.levels.clone(), panels }
    }

    /// Each level against the first, as cells are compared: above 1 is better.
    fn ratios(&mut self, input: &Input, filesystem: usize, levels: &[Option<usize>]) -> Series {
        let values = |level: &Option<usize>| {
            let entry = level.and_then(|at| input.tests[at])?.entry(filesystem)?;
            Some(entry.repeats.as_slice()).filter(|values| !values.is_empty())
        };
        let first = levels.first().and_then(values);
        let better = input.metric.spec().better;
        let ratio = |(index, level): (usize, &Option<usize>)| {
            let (first, own) = (first?, values(level)?);
            if index == 0 {
                return Some(SweepValue { median: 1.0, ends: None });
            }
            let both = blocks::comparable(&[first, own], self.suspected)?;
            let [first, own] = [&both[0], &both[1]].map(|repeats| values_of(repeats));
            let comparison =
                self.comparer.compare(&first, &own, better, input.threshold.ratio()).ok()?;
            let ends = comparison.interval.map(|ends| (ends.low, ends.high));
            Some(SweepValue { median: comparison.ratio.0, ends })
        };
        let values = levels.iter().enumerate().map(ratio).collect();
        Series { filesystem, name: input.filesystems[filesystem].name.clone(), values }
    }
}

fn values_of(repeats: &[Repeat]) -> Vec<f64> {
    repeats.iter().map(|repeat| repeat.value).collect()
}

fn line(input: &Input, filesystem: usize, levels: &[Option<usize>]) -> Series {
    let scale = input.scale;
    let value = |level: &Option<usize>| {
        let summary = level.and_then(|at| input.tests[at])?.entry(filesystem)?.summary.as_ref()?;
        let ends = summary.interval.map(|ends| (scale.number(ends.low), scale.number(ends.high)));
        Some(SweepValue { median: scale.number(summary.median), ends })
    };
    let name = input.filesystems[filesystem].name.clone();
    Series { filesystem, name, values: levels.iter().map(value).collect() }
}

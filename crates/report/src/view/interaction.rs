//! Influence of filesystem, scheduler, and system settings, and their interactions.
//!
//! The input is the points of a workload under different conditions, if at least two factors vary.
//! Factors are the filesystem and the conditions. `analysis::factorial` estimates the shares of the
//! variance. This module derives findings, tables, and chart panels, and determines which findings
//! about filesystems must name a condition ([`Scopes`]).

mod effects;
mod findings;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use analysis::{
    Repetition, blocks,
    factorial::{self, Factor, Factorial, Observation, Refusal},
};
use model::{Metric, Value, metric::Better};

use crate::charts::data::Panel;
use crate::{
    units::{Scale, capital, grouped, one_line, slug},
    view::{
        equivalence_margin::EquivalenceMargin,
        facts::Filesystem,
        findings::PointFindings,
        points::{self, Suite, WorkPoint},
        quality::RunQuality,
        sample_index::SampleIndex,
        series::{Run, TestSeries},
        sweeps::{self, Series, SweepValue},
        tables::Table,
    },
};

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Variance explained: analysis of variance of the logarithms with the filesystem, each condition \
    that varies, their two-way interactions, and the round, with type II sums of squares. Shares \
    are ω² with a bootstrap interval over rounds; p-values are from permuted residuals within \
    rounds (Freedman and Lane), and findings use p-values Holm-adjusted over the factors of a \
    test. If an interaction with the filesystem exceeds 10 % of the explained variance, each \
    finding about filesystems names the condition for which it is valid. If more than half of the \
    variance is unexplained, no finding is derived.";

pub(crate) use effects::{EffectRow, METHOD as EFFECTS};

/// Condition that is listed first.
const SCHEDULER: &str = "scheduler";

/// Name of the first factor.
const FILESYSTEM: &str = "filesystem";

/// One test of one workload under several conditions.
#[derive(Clone, Debug)]
pub(crate) struct Interaction {
    /// Unique within the report.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Suite of the test.
    pub(crate) suite: String,
    pub(crate) metric: Metric,
    pub(crate) scale: Scale,
    /// One chart per condition; none if options vary, which have too many combinations.
    pub(crate) charts: Vec<Across>,
    /// Effects of the factors, if options vary.
    pub(crate) effects: Vec<EffectRow>,
    /// Repetitions per point: `8`, or `8 to 12`.
    pub(crate) repetitions: String,
    /// Warning codes of all results.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without any value, with the reason.
    pub(crate) absent: Vec<(String, String)>,
    /// Findings and inconclusive questions.
    pub(crate) findings: PointFindings,
    /// Medians, then shares of the variance.
    pub(crate) tables: Vec<Table>,
    /// IDs of the points.
    pub(crate) points: Vec<String>,
    /// Conditions that vary.
    pub(crate) conditions: Vec<String>,
    scopes: Scopes,
}

/// Chart with one condition on its horizontal axis.
#[derive(Clone, Debug)]
pub(crate) struct Across {
    pub(crate) condition: String,
    /// Levels of the condition.
    pub(crate) levels: Vec<String>,
    /// One panel per combination of the other conditions.
    pub(crate) panels: Vec<Panel>,
}

/// By test ID: condition that a finding about filesystems must name, such as `scheduler=bfq`, and
/// the label of the point without it.
pub(crate) type Scopes = BTreeMap<String, (String, String)>;

/// Scopes of all interactions.
pub(crate) fn scopes(interactions: &[Interaction]) -> Scopes {
    interactions.iter().flat_map(|interaction| interaction.scopes.clone()).collect()
}

/// Interactions of all tests whose conditions vary.
pub(crate) fn interactions(
    suites: &[Suite],
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
    quality: &RunQuality,
) -> Vec<Interaction> {
    let mut run = Run::new(sample_index, filesystems, quality);
    let mut all = Vec::new();
    for suite in suites {
        for points in groups(suite) {
            for name in sweeps::tests(&points) {
                all.extend(run.interaction(suite, name, &points));
            }
        }
    }
    all
}

/// Groups of points with the same workload and the same names of conditions.
fn groups(suite: &Suite) -> Vec<Vec<&WorkPoint>> {
    let work = |point: &WorkPoint| {
        let own = |(name, _): &(&String, &Value)| !point.conditions.contains_key(*name);
        let own: Vec<_> = point.parameters.iter().filter(own).collect();
        let names: Vec<&String> = point.conditions.keys().collect();
        format!("{own:?} {names:?}")
    };
    let points = suite.points.iter().filter(|point| !point.conditions.is_empty());
    grouped(points.map(|point| (work(point), point)))
        .into_iter()
        .map(|(_, points)| points)
        .collect()
}

/// A condition and its levels, in the order of the plan.
struct Axis {
    name: String,
    levels: Vec<String>,
}

impl Axis {
    /// Index of the level of a point.
    fn level(&self, point: &WorkPoint) -> Option<usize> {
        let own = point.conditions.get(&self.name).map(level_label)?;
        self.levels.iter().position(|level| *level == own)
    }
}

fn level_label(value: &Value) -> String {
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
        let level = level_label(value);
        if !axis.levels.contains(&level) {
            axis.levels.push(level);
        }
    }
    axes.retain(|axis| axis.levels.len() > 1);
    // Stable: the scheduler first, the others by name.
    axes.sort_by_key(|axis| axis.name != SCHEDULER);
    axes
}

/// Label of a point without some of its conditions.
fn without<'a>(point: &WorkPoint, names: impl Iterator<Item = &'a str>) -> String {
    names.fold(point.label.clone(), |label, name| match point.conditions.get(name) {
        Some(value) => points::without(&label, name, value),
        None => label,
    })
}

/// Values of some conditions at a point: `scheduler=bfq, cpu_speed=50%`.
fn at<'a>(point: &WorkPoint, names: impl Iterator<Item = &'a str>) -> String {
    let each = names.filter_map(|name| {
        let value = point.conditions.get(name)?;
        Some(format!("{name}={}", level_label(value)))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Input of findings and tables.
struct Input<'a> {
    id: String,
    /// `replay, dbench clients=5`.
    what: String,
    all: &'a TestSeries<'a>,
    axes: &'a [Axis],
    /// Indices of the filesystems with values.
    shown: &'a [usize],
    filesystems: &'a [Filesystem],
    scale: Scale,
    margin: EquivalenceMargin,
    factorial: Result<Factorial, Refusal>,
    /// Index of the factor `filesystem`; `None` if only one filesystem has values.
    filesystem: Option<usize>,
    /// True if all cells with values are ranked, so that findings can use them.
    sound: bool,
    absent: &'a [(String, String)],
}

impl Run<'_> {
    fn interaction(
        &mut self,
        suite: &Suite,
        name: &str,
        points: &[&WorkPoint],
    ) -> Option<Interaction> {
        let axes = axes(points);
        let all = TestSeries::new(points, name)?;
        let shown: Vec<usize> =
            (0..self.filesystems.len()).filter(|index| all.has(*index)).collect();
        let factors = axes.len() + usize::from(shown.len() > 1);
        if axes.is_empty() || factors < 2 || all.metric.spec().better == Better::Neither {
            return None;
        }
        let absent = all.absent(self.filesystems);
        let scale = all.scale();
        let names = || axes.iter().map(|axis| axis.name.as_str());
        let place = without(points[0], names());
        let what = format!("{name}, {place}");
        let mut valued = all.entries().filter(|entry| entry.summary.is_some());
        let input = Input {
            id: format!("conditions-{}-{}", points[0].id, slug(name)),
            factorial: self.factorial(&all, &axes, &shown),
            filesystem: (shown.len() > 1).then_some(0),
            sound: valued.all(|entry| entry.ranked),
            margin: self.margin,
            filesystems: self.filesystems,
            what,
            all: &all,
            axes: &axes,
            shown: &shown,
            scale,
            absent: &absent,
        };
        let by = names().collect::<Vec<_>>().join(" · ");
        let title = format!("{}: {place}, by {by}", capital(name));
        let effects = effects::rows(&input);
        let across: &[Axis] = if input.has_options() { &[] } else { &axes };
        Some(Interaction {
            suite: suite.name.clone(),
            metric: all.metric,
            scale,
            charts: across.iter().map(|axis| self.across(&input, axis)).collect(),
            repetitions: all.repetitions(),
            codes: all.codes(),
            findings: findings::findings(&input, &title),
            tables: tables::tables(&input, &title, &effects),
            effects,
            points: points.iter().map(|point| point.id.clone()).collect(),
            conditions: names().map(str::to_owned).collect(),
            scopes: findings::scopes(&input),
            id: input.id,
            title,
            absent,
        })
    }

    fn factorial(
        &self,
        all: &TestSeries<'_>,
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
        for (point, test) in all.points.iter().zip(&all.tests) {
            let conditions: Option<Vec<usize>> =
                axes.iter().map(|axis| axis.level(point)).collect();
            let (Some(conditions), Some(test)) = (conditions, test) else { continue };
            for (level, filesystem) in shown.iter().enumerate() {
                let Some(entry) = test.entry(*filesystem) else { continue };
                let own = several.then_some(level).into_iter();
                let levels: Vec<usize> = own.chain(conditions.iter().copied()).collect();
                observations.extend(entry.repetitions.iter().map(|own| Observation {
                    levels: levels.clone(),
                    block: own.block,
                    value: own.value,
                }));
            }
        }
        factorial::analyze(&factors, &observations, self.seed)
    }

    fn across(&mut self, input: &Input, across: &Axis) -> Across {
        let others = || input.axes.iter().filter(|axis| axis.name != across.name);
        let title = |point| at(point, others().map(|axis| axis.name.as_str()));
        let points = input.all.points.iter().enumerate();
        let panels = grouped(points.map(|(index, point)| (title(point), index)));
        let panel = |(title, points): (String, Vec<usize>)| {
            let of_level = |level: usize| {
                points.iter().copied().find(|at| across.level(input.all.points[*at]) == Some(level))
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

    /// Ratio of each level to the first; above 1 is better.
    fn ratios(&mut self, input: &Input, filesystem: usize, levels: &[Option<usize>]) -> Series {
        let values = |level: &Option<usize>| {
            let entry = level.and_then(|at| input.all.tests[at])?.entry(filesystem)?;
            Some(entry.repetitions.as_slice()).filter(|values| !values.is_empty())
        };
        let first = levels.first().and_then(values);
        let better = input.all.metric.spec().better;
        let ratio = |(index, level): (usize, &Option<usize>)| {
            let (first, own) = (first?, values(level)?);
            if index == 0 {
                return Some(SweepValue { median: 1.0, ends: None });
            }
            let both = blocks::comparable(&[first, own], self.suspected)?;
            let [first, own] = [&both[0], &both[1]].map(|repetitions| values_of(repetitions));
            let comparison =
                self.comparer.compare(&first, &own, better, input.margin.ratio()).ok()?;
            let ends = comparison.interval.map(|ends| (ends.low, ends.high));
            Some(SweepValue { median: comparison.ratio.0, ends })
        };
        let values = levels.iter().enumerate().map(ratio).collect();
        Series { filesystem, name: input.filesystems[filesystem].name.clone(), values }
    }
}

fn values_of(repetitions: &[Repetition]) -> Vec<f64> {
    repetitions.iter().map(|repetition| repetition.value).collect()
}

fn line(input: &Input, filesystem: usize, levels: &[Option<usize>]) -> Series {
    let value = |level: &Option<usize>| input.all.value((*level)?, filesystem, input.scale);
    let name = input.filesystems[filesystem].name.clone();
    Series { filesystem, name, values: levels.iter().map(value).collect() }
}

//! Effect of a swept numeric parameter: one line per filesystem with its confidence band, and
//! findings.

pub(super) mod findings;

use std::collections::BTreeSet;

use analysis::{Repetition, blocks, trend};
use model::{Bytes, Metric, Value};

pub(super) use crate::charts::data::{Level, Series, SweepValue};
use crate::{
    units::{Scale, capital, distinct, slug},
    view::{
        facts::Filesystem,
        findings::PointFindings,
        points::{self, Suite, Test, WorkPoint},
        quality::RunQuality,
        sample_index::SampleIndex,
        series::{Run, TestSeries},
        tables::{metric_label, slices},
    },
};
pub(super) use findings::signed;

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Swept parameters: a finding requires that no level is blocked by warnings. A metric does not \
    depend on the parameter if the upper 95 % bootstrap bound of its largest over its smallest \
    median is within 10 %. It has a turning point if no monotone sequence fits its medians (pool \
    adjacent violators; p < 0.01 by permutation within rounds), a sequence with one turn does, and \
    at least half of the resamples agree on the level. Otherwise the change is reported if the \
    Jonckheere-Terpstra trend is significant (permutation within rounds, Holm-adjusted over the \
    filesystems of the sweep) and the last level differs significantly from the first. If the run \
    may have drifted, only rounds common to all levels are used.";

/// Minimum number of levels of a sweep. Two levels are only compared.
const LEVELS_MIN: usize = 3;

/// One test over the levels of one parameter.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    /// Unique within the report.
    pub(crate) id: String,
    pub(crate) test: String,
    pub(crate) parameter: String,
    pub(crate) metric: Metric,
    pub(crate) scale: Scale,
    /// Tested levels.
    pub(crate) levels: Vec<Level>,
    pub(crate) series: Vec<Series>,
    /// Repetitions per point: `8`, or `8 to 12`.
    pub(crate) repetitions: String,
    /// Warning codes of all results.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without a line, with the reason.
    pub(crate) absent: Vec<(String, String)>,
    /// Findings per filesystem.
    pub(crate) findings: PointFindings,
    /// Reasons for withheld findings: `no finding for ext4: …`.
    pub(crate) withheld: Vec<String>,
}

/// Sweeps of all suites, except those over the number of clients ([`super::scaling`]).
pub(crate) fn sweeps(
    suites: &[Suite],
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
    quality: &RunQuality,
) -> Vec<Sweep> {
    let mut run = Run::new(sample_index, filesystems, quality);
    let mut sweeps = Vec::new();
    for suite in suites {
        let swept = suite.swept.iter().filter(|name| Some(name.as_str()) != suite.clients);
        for parameter in swept {
            for points in slices(suite, parameter) {
                let levels: Vec<Level> =
                    points.iter().filter_map(|point| level(point, parameter)).collect();
                if levels.len() < LEVELS_MIN || levels.len() != points.len() {
                    continue;
                }
                let names = tests(&points);
                let of_test = |name| run.sweep(name, parameter, &points, &levels);
                sweeps.extend(names.into_iter().filter_map(of_test));
            }
        }
    }
    sweeps
}

/// Level of a point; `None` if the value is not a positive number.
pub(crate) fn level(point: &WorkPoint, parameter: &str) -> Option<Level> {
    let value = point.parameters.get(parameter)?;
    let number = match value {
        Value::Size(Bytes(number)) | Value::Count(number) => *number as f64,
        Value::Time(time) => time.0 as f64,
        Value::Fraction(number) | Value::Number(number) => *number,
        Value::Flag(_) | Value::Text(_) | Value::Word(_) | Value::Words(_) => return None,
    };
    (number > 0.0).then(|| Level { number, label: value.to_string() })
}

/// Names of the tests of some points, without duplicates.
pub(crate) fn tests<'a>(points: &[&'a WorkPoint]) -> Vec<&'a str> {
    let tests = points.iter().flat_map(|point| &point.tests);
    distinct(tests.map(|test| test.name.as_str()))
}

impl Run<'_> {
    fn sweep(
        &mut self,
        name: &str,
        parameter: &str,
        points: &[&WorkPoint],
        levels: &[Level],
    ) -> Option<Sweep> {
        let all = TestSeries::new(points, name)?;
        let scale = all.scale();
        let shown = self.filesystems.iter().enumerate().filter(|(index, _)| all.has(*index));
        let values = |filesystem| {
            (0..points.len()).map(|at| all.value(at, filesystem, scale)).collect::<Vec<_>>()
        };
        let series = shown.map(|(filesystem, own)| Series {
            filesystem,
            name: own.name.clone(),
            values: values(filesystem),
        });
        let mut sweep = Sweep {
            id: format!("sweep-{}-{}-{}", points[0].id, slug(parameter), slug(name)),
            test: name.to_owned(),
            parameter: parameter.to_owned(),
            metric: all.metric,
            scale,
            levels: levels.to_vec(),
            series: series.collect(),
            repetitions: all.repetitions(),
            codes: all.codes(),
            absent: all.absent(self.filesystems),
            findings: PointFindings::default(),
            withheld: Vec::new(),
        };
        let line = |series: &Series| line(series, &all.tests, levels, self.suspected);
        let lines = sweep.series.iter().map(line).collect();
        self.add_findings(&mut sweep, points[0], lines);
        (!sweep.series.is_empty()).then_some(sweep)
    }

    /// Adds the findings of a sweep and the reasons for withheld ones.
    fn add_findings(&mut self, sweep: &mut Sweep, first: &WorkPoint, lines: Vec<findings::Line>) {
        let place = match first.parameters.get(&sweep.parameter) {
            Some(value) => points::without(&first.label, &sweep.parameter, value),
            None => first.label.clone(),
        };
        let view = findings::Input {
            id: &sweep.id,
            label: &format!("{}: {place}, over {}", capital(&sweep.test), sweep.parameter),
            quantity: &metric_label(sweep.metric),
            what: &format!("{}, {place}", sweep.test),
            parameter: &sweep.parameter,
            scale: sweep.scale,
            margin: self.margin,
            seed: self.seed,
            lines,
        };
        let (findings, withheld) = findings::findings(&view, &mut self.comparer);
        (sweep.findings, sweep.withheld) = (findings, withheld);
    }
}

/// Repetitions of a filesystem per level, in ascending order of levels. If the run may have
/// drifted, only rounds common to all levels are used.
fn line(
    series: &Series,
    tests: &[Option<&Test>],
    levels: &[Level],
    suspected: bool,
) -> findings::Line {
    let mut line = findings::Line {
        name: series.name.clone(),
        sound: true,
        levels: Vec::new(),
        cut: Cut::None,
    };
    for (test, level) in tests.iter().zip(levels) {
        let Some(entry) = test.and_then(|test| test.entry(series.filesystem)) else { continue };
        line.sound &= entry.ranked;
        if !entry.repetitions.is_empty() {
            let own = trend::Level { at: level.number, repetitions: entry.repetitions.clone() };
            line.levels.push((level.label.clone(), own));
        }
    }
    line.levels.sort_by(|a, b| a.1.at.total_cmp(&b.1.at));
    let mut repetitions: Vec<&mut Vec<Repetition>> =
        line.levels.iter_mut().map(|(_, level)| &mut level.repetitions).collect();
    line.cut = cut(&mut repetitions, suspected);
    line
}

/// Restriction of a comparison to common rounds, so that drift is not reported as a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// All rounds: no drift is suspected, or all levels have the same rounds.
    None,
    /// Only rounds that all levels completed.
    Shared,
    /// No comparison: too few common rounds.
    TooFew,
}

impl Cut {
    /// Suffix of a number of repetitions.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::None | Self::TooFew => "",
            Self::Shared => " in common rounds, because the run may have drifted",
        }
    }
}

/// Reason and hint of a finding withheld because of [`Cut::TooFew`].
pub(super) const TOO_FEW: (&str, &str) = (
    "the run may have drifted, and too few rounds include all levels",
    "measure the same number of repetitions of each level",
);

/// Reduces the lists to comparable repetitions ([`blocks::comparable`]).
pub(super) fn cut(lists: &mut [&mut Vec<Repetition>], suspected: bool) -> Cut {
    let all: Vec<&[Repetition]> = lists.iter().map(|list| list.as_slice()).collect();
    let Some(kept) = blocks::comparable(&all, suspected) else {
        return Cut::TooFew;
    };
    let mut cut = Cut::None;
    for (list, kept) in lists.iter_mut().zip(kept) {
        if list.len() > kept.len() {
            cut = Cut::Shared;
            **list = kept;
        }
    }
    cut
}

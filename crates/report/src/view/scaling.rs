//! Scaling with the number of clients: findings, tables, and a chart.
//!
//! The input is the points that differ only in the number of clients, with the values of each
//! repetition. `analysis::scaling` computes the statistics; this module formats them. With fewer
//! than six repetitions, only medians are shown. Filesystems are compared by their efficiency at
//! the same number of clients, not by fitted parameters.

mod findings;
mod tables;

use std::collections::BTreeSet;

use analysis::{
    scaling::{Curve, Level as Values, Scaling},
    trend::Repetition,
};
use model::{Metric, Value, metric::Better};

use crate::charts::data::Line;
use crate::{
    units::{Scale, capital, slug},
    view::{
        facts::Filesystem,
        findings::PointFindings,
        points::{self, CLIENT_LEVELS, Status, Suite, WorkPoint},
        quality::RunQuality,
        sample_index::SampleIndex,
        series::{Run, TestSeries, reason, repetitions},
        sweeps::{self, Cut, Level, Series, SweepValue},
        tables::{Table, scale_of, slices},
    },
};

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Scaling: saturation is the smallest number of clients with 95 % of the maximum median. The \
    shape follows from two tests: maximum against first level, and last level against maximum, \
    Bonferroni-adjusted for the levels among which the maximum was found. Efficiency is the rate \
    over that of N times the smallest level, with a bootstrap interval over rounds. The trend is \
    tested with the Jonckheere-Terpstra statistic, permuted within rounds; the change per doubling \
    is the Theil-Sen slope. The universal scalability law (Gunther), Amdahl's law, and a linear \
    law are fitted to the logarithms from six levels on and selected by AICc. A law is shown only \
    if no median deviates by more than 10 %, and its maximum only within twice the tested levels. \
    If the run may have drifted, only rounds common to all levels of a filesystem are used.";

/// Number of segments of the curve of a fitted law.
const LAW_STEPS: u32 = 48;

/// One test over the number of clients.
#[derive(Clone, Debug)]
pub(crate) struct Scaled {
    /// Unique within the report.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Suite of the test.
    pub(crate) suite: String,
    pub(crate) test: String,
    pub(crate) clients: Clients,
    pub(crate) metric: Metric,
    pub(crate) scale: Scale,
    /// Numbers of clients.
    pub(crate) levels: Vec<Level>,
    pub(crate) lines: Vec<Line>,
    /// Repetitions per point: `8`, or `8 to 12`.
    pub(crate) repetitions: String,
    /// Warning codes of all results.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without a line, with the reason.
    pub(crate) absent: Vec<(String, String)>,
    /// IDs of the points.
    pub(crate) points: Vec<String>,
    /// Findings and inconclusive questions.
    pub(crate) findings: PointFindings,
    /// Medians, efficiency, scaling summary, and differences between filesystems.
    pub(crate) tables: Vec<Table>,
}

/// Name of the parameter in plural, such as `clients`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clients(pub(crate) &'static str);

impl Clients {
    /// `1 client`, `5 clients`.
    pub(crate) fn count(self, n: u32) -> String {
        let one = self.0.strip_suffix("ses").map(|stem| format!("{stem}s"));
        let one = one.unwrap_or_else(|| self.0.trim_end_matches('s').to_owned());
        if n == 1 { format!("1 {one}") } else { format!("{n} {}", self.0) }
    }
}

/// Analysis of one filesystem.
struct Analyzed {
    filesystem: usize,
    name: String,
    curve: Curve,
    scaling: Scaling,
    /// True if all levels are ranked, so that findings can use them.
    sound: bool,
    /// Restriction to common rounds.
    cut: Cut,
}

/// Scaling of all tests of suites that sweep the number of clients.
pub(crate) fn scaling(
    suites: &[Suite],
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
    quality: &RunQuality,
) -> Vec<Scaled> {
    let mut run = Run::new(sample_index, filesystems, quality);
    let mut all = Vec::new();
    for suite in suites {
        let Some(parameter) = suite.clients else { continue };
        for points in slices(suite, parameter) {
            let points: Vec<&WorkPoint> =
                points.into_iter().filter(|point| clients(point, parameter).is_some()).collect();
            if points.len() < CLIENT_LEVELS {
                continue;
            }
            for name in sweeps::tests(&points) {
                all.extend(run.scaling(suite, name, Clients(parameter), &points));
            }
        }
    }
    all
}

/// Number of clients of a point, at least 1.
fn clients(point: &WorkPoint, parameter: &str) -> Option<u32> {
    match point.parameters.get(parameter)? {
        Value::Count(clients) => u32::try_from(*clients).ok().filter(|clients| *clients > 0),
        Value::Size(_)
        | Value::Fraction(_)
        | Value::Number(_)
        | Value::Time(_)
        | Value::Flag(_)
        | Value::Text(_)
        | Value::Word(_)
        | Value::Words(_) => None,
    }
}

/// Label of a point without the number of clients.
fn place(point: &WorkPoint, parameter: &str) -> String {
    match point.parameters.get(parameter) {
        Some(value) => points::without(&point.label, parameter, value),
        None => point.label.clone(),
    }
}

impl Run<'_> {
    fn scaling(
        &mut self,
        suite: &Suite,
        name: &str,
        clients: Clients,
        points: &[&WorkPoint],
    ) -> Option<Scaled> {
        let all = TestSeries::new(points, name)?;
        let metric = all.metric;
        if metric.spec().better == Better::Neither {
            return None;
        }
        let levels: Vec<Level> =
            points.iter().filter_map(|point| sweeps::level(point, clients.0)).collect();
        let mut analyzed = Vec::new();
        let mut absent = Vec::new();
        for (index, filesystem) in self.filesystems.iter().enumerate() {
            match self.analyze(index, clients, &all) {
                Some(line) => analyzed.push(line),
                None => {
                    let measured =
                        |point: &&WorkPoint| point.statuses[index] == Some(Status::Measured);
                    let reason = match points.iter().any(measured) {
                        true => "values are not positive".to_owned(),
                        false => reason(points, index),
                    };
                    absent.push((filesystem.name.clone(), reason));
                }
            }
        }
        let first = analyzed.first()?;
        let summaries = || {
            let points = analyzed.iter().flat_map(|line| &line.scaling.points);
            points.map(|point| &point.summary)
        };
        let scale = scale_of(metric.spec().unit, summaries());
        let title =
            format!("{}: {}, over {}", capital(name), place(points[0], clients.0), clients.0);
        let base = first.scaling.base;
        let view = tables::Input {
            id: format!("scaling-{}-{}", points[0].id, slug(name)),
            title: &title,
            all: &all,
            lines: &analyzed,
            clients,
            scale,
            base,
            seed: self.seed,
            margin: self.margin,
            filesystems: self.filesystems,
            absent: &absent,
        };
        let findings = findings::findings(&view);
        let tables = tables::tables(&view);
        let id = view.id.clone();
        Some(Scaled {
            title,
            suite: suite.name.clone(),
            test: name.to_owned(),
            clients,
            metric,
            scale,
            lines: analyzed.iter().map(|line| drawn(line, points, clients, scale)).collect(),
            levels,
            repetitions: repetitions(summaries()),
            codes: all.codes(),
            points: points.iter().map(|point| point.id.clone()).collect(),
            findings,
            tables,
            absent,
            id,
        })
    }

    /// Analysis of one filesystem; `None` without positive values.
    fn analyze(
        &mut self,
        filesystem: usize,
        clients: Clients,
        all: &TestSeries<'_>,
    ) -> Option<Analyzed> {
        let mut levels = Vec::new();
        let mut sound = true;
        for (point, test) in all.points.iter().zip(&all.tests) {
            let Some(entry) = test.and_then(|test| test.entry(filesystem)) else { continue };
            let repetitions = entry.repetitions.clone();
            sound &= entry.ranked;
            if let (false, Some(clients)) =
                (repetitions.is_empty(), self::clients(point, clients.0))
            {
                levels.push(Values { clients, repetitions });
            }
        }
        let mut lists: Vec<&mut Vec<Repetition>> =
            levels.iter_mut().map(|level: &mut Values| &mut level.repetitions).collect();
        let cut = sweeps::cut(&mut lists, self.suspected);
        let curve = Curve::new(levels, all.metric.spec().better).ok()?;
        let margin = self.margin.ratio();
        let scaling = curve.scaling(&mut self.comparer, margin, self.seed).ok()?;
        let name = self.filesystems[filesystem].name.clone();
        Some(Analyzed { filesystem, name, curve, scaling, sound, cut })
    }
}

/// Line of a filesystem in the chart: medians, rates relative to the smallest level, saturation
/// level, and fitted law.
fn drawn(line: &Analyzed, points: &[&WorkPoint], clients: Clients, scale: Scale) -> Line {
    let scaling = &line.scaling;
    let of_level = |point: &&WorkPoint| {
        let own = self::clients(point, clients.0)?;
        scaling.points.iter().find(|point| point.clients == own)
    };
    let value = |point: &&WorkPoint| Some(SweepValue::of(&of_level(point)?.summary, scale));
    let ratio = |point: &&WorkPoint| {
        let point = of_level(point)?;
        let efficiency = point.efficiency.as_ref().ok()?;
        // The efficiency E(N) is the ratio of the rates divided by the ratio of the numbers of
        // clients.
        let times = f64::from(point.clients) / f64::from(scaling.base);
        let ends = efficiency.interval.as_ref().ok();
        let ends = ends.map(|ends| (ends.low * times, ends.high * times));
        Some(SweepValue { median: efficiency.value.0 * times, ends })
    };
    let knee = scaling.points.get(scaling.saturation).map(|point| point.clients);
    let knee = knee.filter(|_| scaling.shape.is_ok());
    Line {
        series: Series {
            filesystem: line.filesystem,
            name: line.name.clone(),
            values: points.iter().map(value).collect(),
        },
        ratios: points.iter().map(ratio).collect(),
        knee: points
            .iter()
            .position(|point| knee.is_some() && self::clients(point, clients.0) == knee),
        law: law(scaling, scale),
    }
}

/// Curve of the selected law from the first to the last level: number of clients, and rate in the
/// display scale. Empty if no law fits.
fn law(scaling: &Scaling, scale: Scale) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (scaling.points.first(), scaling.points.last()) else {
        return Vec::new();
    };
    let Some(laws) = scaling.laws.as_ref().ok().filter(|laws| laws.misfit.is_none()) else {
        return Vec::new();
    };
    let (first, last) = (f64::from(first.clients), f64::from(last.clients));
    let at = |step: u32| {
        let clients = first * (last / first).powf(f64::from(step) / f64::from(LAW_STEPS));
        (clients, scale.number(laws.chosen.at(clients)))
    };
    (0..=LAW_STEPS).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_singular_and_plural() {
        let counts = |name: &'static str| [1, 5].map(|n| Clients(name).count(n)).join(", ");
        assert_eq!(counts("clients"), "1 client, 5 clients");
        assert_eq!(counts("workers"), "1 worker, 5 workers");
        assert_eq!(counts("processes"), "1 process, 5 processes");
    }
}

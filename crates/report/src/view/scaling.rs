//! How tests scale with the number of clients: a sentence for each filesystem, tables, a chart.
//!
//! Points that differ in nothing but the number of clients enter, with the values of each repeat;
//! what they tell is `analysis::scaling`'s, and this module puts it into words and cells. Below six
//! repeats there are medians and no sentence. Curves are compared by their efficiency at the same
//! number of clients, never by what a law was fitted with.

mod sentences;
mod tables;

use std::collections::BTreeSet;

use analysis::{
    Comparer,
    scaling::{Curve, Level as Values, Scaling},
    trend::Repeat,
};
use model::{Metric, RunRecord, Value, metric::Better};

pub(crate) use tables::probability;

use crate::{
    units::{Scale, capital},
    view::{
        claims::PointClaims,
        control::Control,
        facts::Filesystem,
        points::{self, CLIENT_LEVELS, Entry, Status, Suite, Test, WorkPoint, slug},
        pool::Pool,
        sweeps::{self, Cut, Level, Series, SweepValue},
        tables::{Table, scale_of, slices},
        threshold::Threshold,
    },
};

/// How it was done, for the notes of the report.
pub(crate) const METHOD: &str = "How a test scales is told from medians first: the fewest clients \
    that reach 95 % of the best, and whether the peak is above the first level and the last below \
    the peak, as cells are compared, with Bonferroni's correction for the levels among which the \
    peak was found. Efficiency is the rate over that of N times the fewest clients, with its \
    interval by resampling blocks; a block is one repeat of every cell. The trend is tested by \
    Jonckheere and Terpstra's statistic, permuted within blocks, and told for each doubling by \
    Theil and Sen's slope. Gunther's universal scalability law, Amdahl's, and a linear one are \
    fitted to the logarithms from six levels on, chosen by AICc, and shown only where no median is \
    more than 10 % off; a peak of the law is told only within twice the levels tested. Of a run \
    that may have drifted, only blocks that all levels of a filesystem have take part.";

/// Steps in which the curve of a law is drawn.
const LAW_STEPS: u32 = 48;

/// One test over the number of clients.
#[derive(Clone, Debug)]
pub(crate) struct Scaled {
    /// Unique within the report.
    pub(crate) id: String,
    pub(crate) title: String,
    /// The suite it is of.
    pub(crate) suite: String,
    pub(crate) test: String,
    pub(crate) clients: Clients,
    pub(crate) metric: Metric,
    pub(crate) scale: Scale,
    /// The numbers of clients.
    pub(crate) levels: Vec<Level>,
    pub(crate) lines: Vec<Line>,
    /// How many repeats stand behind each point: `8`, or `8 to 12`.
    pub(crate) repeats: String,
    /// The warning codes of all its numbers, each once, in alphabetical order.
    pub(crate) codes: BTreeSet<&'static str>,
    /// Filesystems without a line, and why.
    pub(crate) absent: Vec<(String, String)>,
    /// Ids of its points.
    pub(crate) points: Vec<String>,
    /// Sentences, and what is not decided.
    pub(crate) claims: PointClaims,
    /// Medians, the first; then efficiency, what the curves tell, and how filesystems differ.
    pub(crate) tables: Vec<Table>,
}

/// What clients are called.
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

/// One filesystem in a chart, in the unit of display.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) series: Series,
    /// How many times the rate of the fewest clients; empty where that is not told.
    pub(crate) ratios: Vec<Option<SweepValue>>,
    /// Index of the level at which 95 % of the best are reached, where it is known how it scales.
    pub(crate) knee: Option<usize>,
    /// The law, by clients, where one may be drawn.
    pub(crate) law: Vec<(f64, f64)>,
}

/// One filesystem, analyzed.
struct Analyzed {
    filesystem: usize,
    name: String,
    curve: Curve,
    scaling: Scaling,
    /// All its levels may carry a claim.
    sound: bool,
    /// Whether blocks were left out.
    cut: Cut,
}

/// Every test of every suite whose number of clients is swept.
pub(crate) fn scaling(
    suites: &[Suite],
    filesystems: &[Filesystem],
    pool: &Pool,
    control: &Control,
) -> Vec<Scaled> {
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
        let Some(parameter) = suite.clients else { continue };
        for points in slices(suite, parameter) {
            let points: Vec<&WorkPoint> =
                points.into_iter().filter(|point| clients(point, parameter).is_some()).collect();
            if points.len() < CLIENT_LEVELS {
                continue;
            }
            for name in sweeps::tests(&points) {
                all.extend(builder.of_test(suite, name, Clients(parameter), &points));
            }
        }
    }
    all
}

/// How many clients a point has, at least 1.
fn clients(point: &WorkPoint, parameter: &str) -> Option<u32> {
    match point.parameters.get(parameter)? {
        Value::Count(clients) => u32::try_from(*clients).ok().filter(|clients| *clients > 0),
        Value::Size(_)
        | Value::Share(_)
        | Value::Number(_)
        | Value::Time(_)
        | Value::Flag(_)
        | Value::Text(_)
        | Value::Word(_)
        | Value::Words(_) => None,
    }
}

/// The label of points without their number of clients.
fn place(point: &WorkPoint, parameter: &str) -> String {
    match point.parameters.get(parameter) {
        Some(value) => points::without(&point.label, parameter, value),
        None => point.label.clone(),
    }
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
    fn of_test(
        &mut self,
        suite: &Suite,
        name: &str,
        clients: Clients,
        points: &[&WorkPoint],
    ) -> Option<Scaled> {
        let tests: Vec<Option<&Test>> =
            points.iter().map(|point| point.tests.iter().find(|test| test.name == name)).collect();
        let metric = tests.iter().flatten().next()?.metric;
        if metric.spec().better == Better::Neither {
            return None;
        }
        let levels: Vec<Level> =
            points.iter().filter_map(|point| sweeps::level(point, clients.0)).collect();
        let mut analyzed = Vec::new();
        let mut absent = Vec::new();
        for (index, filesystem) in self.filesystems.iter().enumerate() {
            match self.analyze(index, metric, clients, points, &tests) {
                Some(line) => analyzed.push(line),
                None => {
                    let measured =
                        |point: &&WorkPoint| point.statuses[index] == Some(Status::Measured);
                    let reason = match points.iter().any(measured) {
                        true => "its values are not above zero".to_owned(),
                        false => sweeps::reason(points, index),
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
            points,
            tests: &tests,
            lines: &analyzed,
            clients,
            metric,
            scale,
            base,
            seed: self.record.info.seed,
            threshold: self.threshold,
            filesystems: self.filesystems,
            absent: &absent,
        };
        let claims = sentences::claims(&view);
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
            repeats: sweeps::repeats(summaries()),
            codes: tests.iter().flatten().flat_map(|test| test.codes()).collect(),
            points: points.iter().map(|point| point.id.clone()).collect(),
            claims,
            tables,
            absent,
            id,
        })
    }

    /// `None` where there are no values above zero.
    fn analyze(
        &mut self,
        filesystem: usize,
        metric: Metric,
        clients: Clients,
        points: &[&WorkPoint],
        tests: &[Option<&Test>],
    ) -> Option<Analyzed> {
        let mut levels = Vec::new();
        let mut sound = true;
        for (point, test) in points.iter().zip(tests) {
            let Some((test, entry)) = test.and_then(|test| Some((test, test.entry(filesystem)?)))
            else {
                continue;
            };
            let repeats = self.repeats(test, entry, metric);
            sound &= entry.ranked;
            if let (false, Some(clients)) = (repeats.is_empty(), self::clients(point, clients.0)) {
                levels.push(Values { clients, repeats });
            }
        }
        let mut lists: Vec<&mut Vec<Repeat>> =
            levels.iter_mut().map(|level: &mut Values| &mut level.repeats).collect();
        let cut = sweeps::cut(&mut lists, self.suspected);
        let curve = Curve::new(levels, metric.spec().better).ok()?;
        let threshold = self.threshold.ratio();
        let scaling = curve.scaling(&mut self.comparer, threshold, self.record.info.seed).ok()?;
        let name = self.filesystems[filesystem].name.clone();
        Some(Analyzed { filesystem, name, curve, scaling, sound, cut })
    }

    fn repeats(&self, test: &Test, entry: &Entry, metric: Metric) -> Vec<Repeat> {
        let values = self.pool.repeats(entry.cell, &test.name, metric);
        values.into_iter().map(|(block, value)| Repeat { block: Some(block), value }).collect()
    }
}

/// What of a line is drawn.
fn drawn(line: &Analyzed, points: &[&WorkPoint], clients: Clients, scale: Scale) -> Line {
    let scaling = &line.scaling;
    let of_level = |point: &&WorkPoint| {
        let own = self::clients(point, clients.0)?;
        scaling.points.iter().find(|point| point.clients == own)
    };
    let value = |point: &&WorkPoint| {
        let summary = &of_level(point)?.summary;
        let ends = summary.interval.map(|ends| (scale.number(ends.low), scale.number(ends.high)));
        Some(SweepValue { median: scale.number(summary.median), ends })
    };
    let ratio = |point: &&WorkPoint| {
        let point = of_level(point)?;
        let efficiency = point.efficiency.as_ref().ok()?;
        // E(N) is the ratio over that of the clients.
        let times = f64::from(point.clients) / f64::from(scaling.base);
        let ends = efficiency.interval.as_ref().ok();
        let ends = ends.map(|ends| (ends.low * times, ends.high * times));
        Some(SweepValue { median: efficiency.value.0 * times, ends })
    };
    let knee = scaling.points.get(scaling.saturation).map(|point| point.clients);
    let knee = knee.filter(|_| scaling.course.is_ok());
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

/// The curve of the law that was chosen, from the first to the last level; empty where it misses a
/// level by more than it may.
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
    fn one_client_is_told_as_one() {
        let told = |name: &'static str| [1, 5].map(|n| Clients(name).count(n)).join(", ");
        assert_eq!(told("clients"), "1 client, 5 clients");
        assert_eq!(told("workers"), "1 worker, 5 workers");
        assert_eq!(told("processes"), "1 process, 5 processes");
    }
}

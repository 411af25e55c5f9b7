//! View of a run: summaries, comparisons, tables, and chart data, shared by all output formats.
//!
//! A [`View`] is computed once from a [`RunRecord`]. Output formats arrange its content and compute
//! no statistics.

pub(crate) mod activity;
pub(crate) mod answer;
mod capped;
mod composite;
pub(crate) mod costs;
pub(crate) mod curves;
mod devices;
mod equivalence_margin;
mod facts;
mod findings;
mod hosts;
mod interaction;
mod lifecycle;
mod normalized;
pub(crate) mod origins;
mod points;
mod quality;
pub(crate) mod rate_series;
mod raw;
mod replays;
mod run_conditions;
pub(crate) mod sample_index;
mod samples;
mod scaling;
mod series;
mod sizes;
mod slowdown;
mod study;
mod sweeps;
mod tables;
mod totals;
mod warnings;

use std::collections::BTreeSet;

use model::RunRecord;
use rayon::prelude::*;

use crate::document::Section;

pub(crate) use answer::{common_name, without_key};
pub(crate) use capped::Capped;
pub(crate) use devices::Contest;
pub(crate) use equivalence_margin::EquivalenceMargin;
#[cfg(feature = "parquet")]
pub(crate) use facts::conditions;
pub(crate) use facts::{Facts, Filesystem, Missing};
pub(crate) use findings::{
    Finding, FindingKind, Findings, PointFindings, WithheldFinding, disagreement,
};
pub(crate) use interaction::{Across, EffectRow, Interaction};
pub(crate) use normalized::{METHOD as NORMALIZED, Normalized};
pub(crate) use points::{AS_FOUND, Entry, Family, Status, Suite, Test, WorkPoint, without};
pub(crate) use quality::RunQuality;
use sample_index::SampleIndex;
pub(crate) use samples::Samples;
pub(crate) use scaling::Scaled;
pub(crate) use sizes::BySize;
pub use study::views;
pub(crate) use study::{Part, StudyView};
pub(crate) use sweeps::{Sweep, level, tests};
pub(crate) use tables::{
    Body, Overview, Row, Table, TableCell, ValueCell, alike, directions, metric_label,
};
pub(crate) use totals::Totals;
pub(crate) use warnings::WarningRow;

/// Content of a report.
#[derive(Clone, Debug)]
pub struct View {
    /// Header: run, program, conditions, method.
    pub(crate) facts: Facts,
    /// Filesystems in plan order.
    pub(crate) filesystems: Vec<Filesystem>,
    /// Findings and withheld findings.
    pub(crate) findings: Findings,
    /// A/A control, drift, and invalid trials.
    pub(crate) quality: RunQuality,
    /// Warnings by code.
    pub(crate) warnings: Vec<WarningRow>,
    /// Missing and incomplete results.
    pub(crate) missing: Vec<Missing>,
    /// Section of the study that the plan names.
    pub(crate) study: Option<StudyView>,
    /// Comparison with the previous run of the plan.
    pub(crate) since: Option<Section>,
    /// Comparison of fslab and fio as load generators: the result in one sentence, its section.
    pub(crate) crosscheck: Option<(String, Section)>,
    /// Results by suite.
    pub(crate) suites: Vec<Suite>,
    /// Overview tables per suite.
    pub(crate) overviews: Vec<Overview>,
    /// Details per suite and test, in the order of points and tests.
    pub(crate) details: Vec<Vec<Details>>,
    /// Scaling with the number of clients.
    pub(crate) scaling: Vec<Scaled>,
    /// Tests under several conditions (scheduler, fill level, system settings).
    pub(crate) interactions: Vec<Interaction>,
    /// Comparisons of the levels of the axis `device`.
    pub(crate) devices: Vec<Contest>,
    /// Lifecycle steps and space over the axis `size`.
    pub(crate) sizes: Vec<BySize>,
    /// Slowdown of workloads by others that run at the same time.
    pub(crate) slowdowns: Vec<slowdown::MemberSlowdown>,
    /// Effects of other swept parameters.
    pub(crate) sweeps: Vec<Sweep>,
    /// Latency tables, one per workload point.
    pub(crate) latency: Vec<Table>,
    /// Time, CPU time, I/O, and space of the lifecycle steps.
    pub(crate) lifecycle: Vec<Table>,
    /// Spread over the hosts of a run on several hosts.
    pub(crate) hosts: Vec<Table>,
    /// All samples as CSV, if there are few enough to embed them.
    pub(crate) samples: Samples,
}

impl View {
    /// Computes the view, including all statistics. Takes seconds for the largest plans.
    pub fn new(record: &RunRecord) -> Self {
        let filesystems = facts::filesystems(record);
        let sample_index = SampleIndex::new(record);
        let mut collector = warnings::WarningCollector::new(record);
        let (mut quality, suites) = ranked(&sample_index, &filesystems, &mut collector);
        let mut facts = facts::Facts::new(record, quality.margin);
        let (scaling, sweeps, interactions) =
            across(&suites, &filesystems, &sample_index, &quality);
        let devices = devices::contests(&suites, &filesystems, (&sample_index, &quality));
        let sizes = sizes::by_size(&sample_index, &filesystems, &quality);
        let slowdowns = slowdown::slowdowns(&sample_index, &suites, quality.margin);
        facts.add_methods([hosts::method(record)]);
        quality.with_numbers(&sample_index, &suites, &filesystems);
        facts.add_methods(methods(
            (&quality, &filesystems),
            (&scaling, &interactions, &sweeps),
            (&devices, &sizes, &slowdowns),
        ));
        let scopes = interaction::scopes(&interactions);
        let mut wide = wide((&devices, quality.margin), &scaling, &interactions, (&sweeps, &sizes));
        wide.splice(0..0, slowdown::findings(&slowdowns, quality.margin));
        let findings = || {
            let with = (&sample_index, quality.suspected);
            let mut found = findings::findings(&suites, &filesystems, &facts, &scopes, with);
            found.by_point.splice(0..0, wide);
            if !facts.ended {
                found.make_provisional();
            }
            found
        };
        let (findings, shown) = rayon::join(findings, || {
            Shown::new(&suites, (&sample_index, &filesystems, &facts), (&scaling, &interactions))
        });
        let Shown { mut overviews, details, latency, lifecycle } = shown;
        for (overview, suite) in overviews.iter_mut().zip(&suites) {
            with_totals(overview, suite, (&sample_index, &filesystems, &facts), &mut collector);
        }
        let study = study::study(&study::Sources {
            record,
            filesystems: &filesystems,
            quality: &quality,
            suites: &suites,
            overviews: &overviews,
            scaling: &scaling,
            sweeps: &sweeps,
            lifecycle: &lifecycle,
        });
        Self {
            findings,
            quality,
            warnings: collector.into_rows(),
            missing: facts::missing(record),
            overviews,
            details,
            sweeps,
            devices,
            sizes,
            slowdowns,
            scaling,
            interactions,
            latency,
            lifecycle,
            hosts: hosts::tables(record),
            study,
            since: None,
            crosscheck: crate::crosscheck::of_run(record),
            samples: Samples::new(record),
            filesystems,
            facts,
            suites,
        }
    }
}

/// Method paragraphs of the analyses that the report contains.
fn methods(
    (quality, filesystems): (&RunQuality, &[Filesystem]),
    (scaling, interactions, sweeps): (&[Scaled], &[Interaction], &[Sweep]),
    (devices, sizes, slowdowns): (&[Contest], &[BySize], &[slowdown::MemberSlowdown]),
) -> [Option<&'static str>; 9] {
    [
        (!quality.is_empty()).then_some(quality::METHOD),
        (!scaling.is_empty()).then_some(scaling::METHOD),
        (!interactions.is_empty()).then_some(interaction::METHOD),
        interactions.iter().any(|own| !own.effects.is_empty()).then_some(interaction::EFFECTS),
        (!devices.is_empty()).then_some(devices::METHOD),
        filesystems.iter().any(|own| own.is_raw).then_some(raw::METHOD),
        (!sizes.is_empty()).then_some(sizes::METHOD),
        (!slowdowns.is_empty()).then_some(slowdown::METHOD),
        (!sweeps.is_empty() || !sizes.is_empty()).then_some(sweeps::METHOD),
    ]
}

/// Run quality, and all suites with ranked tests.
fn ranked(
    sample_index: &SampleIndex,
    filesystems: &[Filesystem],
    collector: &mut warnings::WarningCollector,
) -> (RunQuality, Vec<Suite>) {
    let (quality, (mut suites, of_numbers)) = rayon::join(
        || RunQuality::new(sample_index, filesystems, collector),
        || points::suites(sample_index, filesystems),
    );
    collector.append(of_numbers);
    points::rank(&mut suites, sample_index, &quality, collector);
    (quality, suites)
}

/// Analyses over several points: scaling, sweeps, and interactions.
fn across(
    suites: &[Suite],
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
    quality: &RunQuality,
) -> (Vec<Scaled>, Vec<Sweep>, Vec<Interaction>) {
    let (scaling, (sweeps, interactions)) = rayon::join(
        || scaling::scaling(suites, filesystems, sample_index, quality),
        || {
            rayon::join(
                || sweeps::sweeps(suites, filesystems, sample_index, quality),
                || interaction::interactions(suites, filesystems, sample_index, quality),
            )
        },
    );
    (scaling, sweeps, interactions)
}

/// Tables and chart data of ranked suites that do not depend on findings.
struct Shown {
    overviews: Vec<Overview>,
    details: Vec<Vec<Details>>,
    latency: Vec<Table>,
    lifecycle: Vec<Table>,
}

impl Shown {
    fn new(
        suites: &[Suite],
        (sample_index, filesystems, facts): (&SampleIndex, &[Filesystem], &Facts),
        (scaling, interactions): (&[Scaled], &[Interaction]),
    ) -> Self {
        let overview = |suite: &Suite| {
            let shown = shown_side_by_side(suite, scaling, interactions);
            tables::overview(suite, filesystems, facts, &shown)
        };
        let details = |suite: &Suite| {
            let points = suite.points.par_iter();
            let tests = points.flat_map_iter(|point| point.tests.iter().map(move |it| (point, it)));
            tests
                .map(|(point, test)| Details {
                    ranked: tables::ranked(point, test, filesystems, facts),
                    operations: replays::replays(point, test, filesystems, sample_index),
                    curves: curves::curves(test, sample_index),
                    rate_series: rate_series::rate_series(test, sample_index),
                    origins: origins::origins(test, sample_index),
                    activity: activity::activity(point, test, filesystems, sample_index),
                })
                .collect()
        };
        Self {
            overviews: suites.iter().map(overview).collect(),
            details: suites.iter().map(details).collect(),
            latency: costs::latency(suites, filesystems, sample_index),
            lifecycle: lifecycle::lifecycle(sample_index, filesystems),
        }
    }
}

/// Details of one test.
#[derive(Clone, Debug)]
pub(crate) struct Details {
    /// Ranking.
    pub(crate) ranked: Table,
    /// Operations of a replay by type.
    pub(crate) operations: Option<Table>,
    pub(crate) curves: Vec<curves::Curves>,
    pub(crate) rate_series: Option<rate_series::RateSeries>,
    /// CPU time by consumer as amounts that add up.
    pub(crate) origins: Option<origins::Origins>,
    /// Tables of CPU time by consumer and of device I/O.
    pub(crate) activity: Vec<Table>,
}

/// Adds the totals of a suite to its overview.
fn with_totals(
    overview: &mut Overview,
    suite: &Suite,
    (sample_index, filesystems, facts): (&SampleIndex, &[Filesystem], &Facts),
    collector: &mut warnings::WarningCollector,
) {
    let total = |point| composite::composite(point, sample_index, filesystems, facts, collector);
    (overview.composites, overview.totals) = suite.points.iter().filter_map(total).unzip();
}

/// Findings about several points. They precede the findings about single points.
fn wide(
    (devices, margin): (&[Contest], EquivalenceMargin),
    scaling: &[Scaled],
    interactions: &[Interaction],
    (sweeps, sizes): (&[Sweep], &[BySize]),
) -> Vec<findings::PointFindings> {
    let wide = scaling.iter().map(|scaled| &scaled.findings);
    let wide = wide.chain(interactions.iter().map(|interaction| &interaction.findings));
    let wide = wide.chain(sweeps.iter().map(|sweep| &sweep.findings));
    let wide = wide.chain(sizes.iter().map(|own| &own.findings)).cloned();
    devices::findings(devices, margin).into_iter().chain(wide).collect()
}

impl View {
    /// ID of the run, on one line.
    pub fn run(&self) -> &str {
        &self.facts.run
    }

    /// Details of a test of a point.
    pub(crate) fn details(&self, suite: usize, point: usize, test: usize) -> &Details {
        let before = self.suites[suite].points[..point].iter().map(|point| point.tests.len());
        &self.details[suite][before.sum::<usize>() + test]
    }

    /// True if a table of scaling or of system settings contains the point, so that a separate
    /// table would repeat it. False if the suite has several tests or more than [`FEW`] such tables
    /// of one kind.
    pub(crate) fn shown_in_wide_table(&self, suite: &Suite, point: &str) -> bool {
        let scaling = || self.scaling.iter().filter(|scaled| scaled.suite == suite.name);
        let conditions = || self.interactions.iter().filter(|other| other.suite == suite.name);
        let points = scaling().map(|scaled| &scaled.points);
        let points = points.chain(conditions().map(|interaction| &interaction.points));
        single(suite)
            && scaling().count() <= FEW
            && conditions().count() <= FEW
            && points.flatten().any(|own| own == point)
    }
}

/// Maximum number of tables of scaling, and of system settings, of a suite that replace the tables
/// of single points.
const FEW: usize = 4;

/// True if all points of a suite have the same single test.
fn single(suite: &Suite) -> bool {
    let mut tests = suite.points.iter().flat_map(|point| &point.tests);
    tests.next().is_some_and(|first| tests.all(|test| test.name == first.name))
}

/// Parameters whose values the tables of scaling or system settings show side by side. Tables by
/// filesystem would repeat them. Empty if the suite has several tests.
fn shown_side_by_side(
    suite: &Suite,
    scaling: &[Scaled],
    interactions: &[Interaction],
) -> BTreeSet<String> {
    if !single(suite) {
        return BTreeSet::new();
    }
    let clients = scaling.iter().filter(|scaled| scaled.suite == suite.name);
    let clients = clients.map(|scaled| scaled.clients.0.to_owned());
    let conditions = interactions.iter().filter(|other| other.suite == suite.name);
    clients.chain(conditions.flat_map(|other| other.conditions.iter().cloned())).collect()
}

//! The view: a run summarized, compared and put into tables, once, for every output.
//!
//! A [`RunRecord`] enters. What leaves is a [`View`] of texts, tables and chart data in the order
//! in which a report tells them; outputs lay it out and compute nothing.

pub(crate) mod answer;
mod capped;
mod claims;
mod composite;
mod control;
pub(crate) mod costs;
pub(crate) mod courses;
pub(crate) mod curves;
pub(crate) mod evidence;
mod facts;
mod interaction;
mod lifecycle;
mod normalized;
pub(crate) mod origins;
mod points;
pub(crate) mod pool;
mod regimes;
mod replays;
mod samples;
mod scaling;
mod study;
mod sweeps;
mod tables;
mod threshold;
mod totals;
mod warnings;

use std::collections::BTreeSet;

use model::RunRecord;

use crate::published;

pub(crate) use capped::{Capped, CappedBar, CappedPanel};
pub(crate) use claims::{Claim, Findings, Withheld, disagreement};
pub(crate) use control::Control;
#[cfg(feature = "parquet")]
pub(crate) use facts::conditions;
pub(crate) use facts::{Facts, Filesystem, Missing, imported};
pub(crate) use interaction::{Across, Interaction, Panel};
pub(crate) use normalized::{METHOD as NORMALIZED, Multiple, Normalized};
pub(crate) use points::{AS_FOUND, Entry, Family, Status, Suite, Test, WorkPoint, slug};
use pool::Pool;
pub(crate) use samples::Samples;
pub(crate) use scaling::{Line, Scaled};
pub use study::views;
pub(crate) use study::{Part, StudyView};
pub(crate) use sweeps::{Level, Series, Sweep, SweepValue, level, tests};
pub(crate) use tables::{
    Body, Column, Overview, Row, Table, TableCell, ValueCell, directions, words,
};
pub(crate) use threshold::Threshold;
pub(crate) use totals::{TotalRow, Totals};
pub(crate) use warnings::WarningRow;

/// A run, ready to be laid out.
#[derive(Clone, Debug)]
pub struct View {
    /// What was run, when, by what, under which conditions.
    pub(crate) facts: Facts,
    /// The filesystems in plan order.
    pub(crate) filesystems: Vec<Filesystem>,
    /// What the data say, and what they do not.
    pub(crate) findings: Findings,
    /// What the run says about itself.
    pub(crate) control: Control,
    /// Warnings by code.
    pub(crate) warnings: Vec<WarningRow>,
    /// What was not measured, or not wholly.
    pub(crate) missing: Vec<Missing>,
    /// What the study that the plan names shows, from this run.
    pub(crate) study: Option<StudyView>,
    /// Results by suite.
    pub(crate) suites: Vec<Suite>,
    /// For each suite, its overview tables.
    pub(crate) overviews: Vec<Overview>,
    /// For each suite, its ranked tables: one for each test of each point, in their order.
    pub(crate) ranked: Vec<Vec<Table>>,
    /// How tests scale with the number of clients.
    pub(crate) scaling: Vec<Scaled>,
    /// Tests under conditions that vary.
    pub(crate) interactions: Vec<Interaction>,
    /// Behavior over any other swept parameter.
    pub(crate) sweeps: Vec<Sweep>,
    /// For each suite and test, in the order of `ranked`: what a replay did, by kind.
    pub(crate) operations: Vec<Vec<Option<Table>>>,
    /// For each suite and test, in the order of `ranked`: how long operations took, as curves.
    pub(crate) curves: Vec<Vec<Vec<curves::Curves>>>,
    /// Likewise: how the work went over time.
    pub(crate) courses: Vec<Vec<Option<courses::Courses>>>,
    /// Likewise: who used the processors, as amounts.
    pub(crate) origins: Vec<Vec<Option<origins::Origins>>>,
    /// Latencies, one table for each workload point that has any.
    pub(crate) latency: Vec<Table>,
    /// For each suite and test, in the order of `ranked`: who used the processors, and what the
    /// devices did.
    pub(crate) evidence: Vec<Vec<Vec<Table>>>,
    /// Time, work, and space of making, mounting, unmounting, checking.
    pub(crate) lifecycle: Vec<Table>,
    /// Names of published results of the same suites.
    pub(crate) published: Vec<String>,
    /// The samples themselves, where they are few.
    pub(crate) samples: Samples,
}

impl View {
    /// Builds the view: all statistics happen here. Cost: seconds for the largest plans.
    pub fn new(record: &RunRecord) -> Self {
        let filesystems = facts::filesystems(record);
        let pool = Pool::new(record);
        let mut register = warnings::Register::new(record);
        let (mut control, suites) = ranked(&pool, &filesystems, &mut register);
        let mut facts = facts::Facts::new(record, control.threshold);
        let (scaling, sweeps, interactions) = across(&suites, &filesystems, &pool, &control);
        control.with_numbers(&pool, &suites, &filesystems);
        facts.add_methods([
            (!control.is_empty()).then_some(control::METHOD),
            (!scaling.is_empty()).then_some(scaling::METHOD),
            (!interactions.is_empty()).then_some(interaction::METHOD),
            (!sweeps.is_empty()).then_some(sweeps::METHOD),
        ]);
        let scopes = interaction::scopes(&interactions);
        let wide = wide(&scaling, &interactions, &sweeps);
        let findings = || {
            let drift = control.suspected;
            let mut found =
                claims::findings(&suites, &filesystems, &facts, &scopes, (&pool, drift));
            found.by_point.splice(0..0, wide);
            if !facts.ended {
                found.make_provisional();
            }
            found
        };
        let (findings, shown) = rayon::join(findings, || {
            Shown::new(&suites, (&pool, &filesystems, &facts), (&scaling, &interactions))
        });
        let Shown { mut overviews, ranked, details, lifecycle } = shown;
        for (overview, suite) in overviews.iter_mut().zip(&suites) {
            with_totals(overview, suite, (&pool, &filesystems, &facts), &mut register);
        }
        let study = study::study(&study::Sources {
            record,
            filesystems: &filesystems,
            control: &control,
            suites: &suites,
            overviews: &overviews,
            scaling: &scaling,
            sweeps: &sweeps,
            lifecycle: &lifecycle,
        });
        Self {
            findings,
            control,
            warnings: register.into_rows(),
            missing: facts::missing(record),
            overviews,
            ranked,
            sweeps,
            operations: details.operations,
            curves: details.curves,
            courses: details.courses,
            origins: details.origins,
            scaling,
            interactions,
            latency: details.latency,
            evidence: details.evidence,
            lifecycle,
            study,
            published: suites.iter().flat_map(|suite| published::of_suite(&suite.name)).collect(),
            samples: Samples::new(record),
            filesystems,
            facts,
            suites,
        }
    }
}

/// What the run says about itself, and all tests, ranked by it.
fn ranked(
    pool: &Pool,
    filesystems: &[Filesystem],
    register: &mut warnings::Register,
) -> (Control, Vec<Suite>) {
    let (control, (mut suites, of_numbers)) = rayon::join(
        || Control::new(pool, filesystems, register),
        || points::suites(pool, filesystems),
    );
    register.append(of_numbers);
    points::rank(&mut suites, pool, &control, register);
    (control, suites)
}

/// What tells of several points at once.
fn across(
    suites: &[Suite],
    filesystems: &[Filesystem],
    pool: &Pool,
    control: &Control,
) -> (Vec<Scaled>, Vec<Sweep>, Vec<Interaction>) {
    let (scaling, (sweeps, interactions)) = rayon::join(
        || scaling::scaling(suites, filesystems, pool, control),
        || {
            rayon::join(
                || sweeps::sweeps(suites, filesystems, pool.record, control),
                || interaction::interactions(suites, filesystems, pool, control),
            )
        },
    );
    (scaling, sweeps, interactions)
}

/// What is shown of suites that are ranked, and does not ask what may be said of them.
struct Shown {
    overviews: Vec<Overview>,
    ranked: Vec<Vec<Table>>,
    details: Details,
    lifecycle: Vec<Table>,
}

impl Shown {
    fn new(
        suites: &[Suite],
        (pool, filesystems, facts): (&Pool, &[Filesystem], &Facts),
        (scaling, interactions): (&[Scaled], &[Interaction]),
    ) -> Self {
        let overview = |suite: &Suite| {
            let elsewhere = elsewhere(suite, scaling, interactions);
            tables::overview(suite, filesystems, facts, &elsewhere)
        };
        let ranked = |suite| tables::ranked(suite, filesystems, facts);
        let ((overviews, ranked), (details, lifecycle)) = rayon::join(
            || (suites.iter().map(overview).collect(), suites.iter().map(ranked).collect()),
            || {
                rayon::join(
                    || Details::new(suites, pool, filesystems),
                    || lifecycle::lifecycle(pool, filesystems),
                )
            },
        );
        Self { overviews, ranked, details, lifecycle }
    }
}

/// What stands beside the tests, in their order.
struct Details {
    operations: Vec<Vec<Option<Table>>>,
    curves: Vec<Vec<Vec<curves::Curves>>>,
    courses: Vec<Vec<Option<courses::Courses>>>,
    origins: Vec<Vec<Option<origins::Origins>>>,
    latency: Vec<Table>,
    evidence: Vec<Vec<Vec<Table>>>,
}

impl Details {
    fn new(suites: &[Suite], pool: &Pool, filesystems: &[Filesystem]) -> Self {
        Self {
            operations: replays::replays(suites, filesystems, pool),
            curves: curves::curves(suites, pool),
            courses: courses::courses(suites, pool),
            origins: origins::origins(suites, pool),
            latency: costs::latency(suites, filesystems, pool),
            evidence: evidence::evidence(suites, filesystems, pool),
        }
    }
}

/// Adds the totals of the points of a suite to its overview.
fn with_totals(
    overview: &mut Overview,
    suite: &Suite,
    (pool, filesystems, facts): (&Pool, &[Filesystem], &Facts),
    register: &mut warnings::Register,
) {
    let total = |point| composite::composite(point, pool, filesystems, facts, register);
    (overview.composites, overview.totals) = suite.points.iter().filter_map(total).unzip();
}

/// What holds for many points, which stands before what holds for one.
fn wide(
    scaling: &[Scaled],
    interactions: &[Interaction],
    sweeps: &[Sweep],
) -> Vec<claims::PointClaims> {
    let wide = scaling.iter().map(|scaled| &scaled.claims);
    let wide = wide.chain(interactions.iter().map(|interaction| &interaction.claims));
    wide.chain(sweeps.iter().map(|sweep| &sweep.claims)).cloned().collect()
}

impl View {
    /// The id of the run, on one line.
    pub fn run(&self) -> &str {
        &self.facts.run
    }

    /// Where a test of a point stands among all tests of its suite, as in [`View::ranked`].
    pub(crate) fn flat(&self, suite: usize, point: usize, test: usize) -> usize {
        let before = self.suites[suite].points[..point].iter().map(|point| point.tests.len());
        before.sum::<usize>() + test
    }

    /// Whether a point of a suite with a single test stands in a table of scaling or of conditions,
    /// as long as there are few of them, so that it need not be shown alone.
    pub(crate) fn stands_elsewhere(&self, suite: &Suite, point: &str) -> bool {
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

/// Tables of scaling, or of conditions, that are few.
const FEW: usize = 4;

/// Whether all points of a suite have one and the same test.
fn single(suite: &Suite) -> bool {
    let mut tests = suite.points.iter().flat_map(|point| &point.tests);
    tests.next().is_some_and(|first| tests.all(|test| test.name == first.name))
}

/// Parameters of a suite with a single test whose values stand side by side already, so that a
/// table of that one test for each filesystem would say nothing new.
fn elsewhere(suite: &Suite, scaling: &[Scaled], interactions: &[Interaction]) -> BTreeSet<String> {
    if !single(suite) {
        return BTreeSet::new();
    }
    let clients = scaling.iter().filter(|scaled| scaled.suite == suite.name);
    let clients = clients.map(|scaled| scaled.clients.0.to_owned());
    let conditions = interactions.iter().filter(|other| other.suite == suite.name);
    clients.chain(conditions.flat_map(|other| other.conditions.iter().cloned())).collect()
}

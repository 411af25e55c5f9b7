//! The view: a run summarized, compared and put into tables, once, for every output.
//!
//! A [`RunRecord`] enters. What leaves is a [`View`] of texts, tables and chart data in the order
//! in which a report tells them; outputs lay it out and compute nothing.

mod claims;
mod composite;
pub(crate) mod costs;
pub(crate) mod evidence;
mod facts;
mod lifecycle;
mod points;
pub(crate) mod pool;
mod regimes;
mod sweeps;
mod tables;
mod warnings;

use model::RunRecord;

use crate::published;

pub(crate) use claims::{Claim, Findings};
pub(crate) use facts::{Facts, Filesystem, Missing, imported};
pub(crate) use points::{Entry, Status, Suite, Test};
pub(crate) use sweeps::{Level, Series, Sweep, SweepValue};
pub(crate) use tables::{Body, Column, Overview, Row, Table, TableCell, ValueCell, words};
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
    /// Warnings by code.
    pub(crate) warnings: Vec<WarningRow>,
    /// What was not measured, or not wholly.
    pub(crate) missing: Vec<Missing>,
    /// Results by suite.
    pub(crate) suites: Vec<Suite>,
    /// For each suite, its overview tables.
    pub(crate) overviews: Vec<Overview>,
    /// For each suite, its ranked tables: one for each test of each point, in their order.
    pub(crate) ranked: Vec<Vec<Table>>,
    /// Behavior over a swept parameter.
    pub(crate) sweeps: Vec<Sweep>,
    /// Latencies, one table for each workload point that has any.
    pub(crate) latency: Vec<Table>,
    /// For each suite and test, in the order of `ranked`: who used the processors, and what the
    /// devices did.
    pub(crate) evidence: Vec<Vec<Vec<Table>>>,
    /// Time, work, and space of making, mounting, unmounting, checking.
    pub(crate) lifecycle: Vec<Table>,
    /// Names of published results of the same suites.
    pub(crate) published: Vec<String>,
}

impl View {
    /// Builds the view: all statistics happen here. Cost: seconds for the largest plans.
    pub fn new(record: &RunRecord) -> Self {
        let filesystems = facts::filesystems(record);
        let facts = facts::Facts::new(record);
        let mut register = warnings::Register::new(record);
        let suites = points::suites(record, &filesystems, &mut register);
        let overviews = suites.iter().map(|suite| {
            let total =
                |point| composite::composite(point, record, &filesystems, &facts, &mut register);
            let composites = suite.points.iter().filter_map(total).collect();
            Overview { composites, ..tables::overview(suite, &filesystems, &facts) }
        });
        let overviews = overviews.collect();
        let ranked =
            suites.iter().map(|suite| tables::ranked(suite, &filesystems, &facts)).collect();
        Self {
            findings: claims::findings(&suites, &filesystems, &facts),
            warnings: register.into_rows(),
            missing: facts::missing(record),
            overviews,
            ranked,
            sweeps: sweeps::sweeps(&suites, &filesystems),
            latency: costs::latency(&suites, &filesystems, record),
            evidence: evidence::evidence(&suites, &filesystems, record),
            lifecycle: lifecycle::lifecycle(record, &filesystems),
            published: suites.iter().flat_map(|suite| published::of_suite(&suite.name)).collect(),
            filesystems,
            facts,
            suites,
        }
    }
}

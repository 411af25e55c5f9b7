//! Cells by suite, workload point and test, summarized and ranked.
//!
//! A workload point is all cells that differ in nothing but the filesystem; a test is one measured
//! phase of a point. One filesystem at one test is an [`Entry`].

mod aligned;
mod conditions;
mod doubts;
mod families;
mod names;
mod told;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use conditions::{AS_FOUND, without};
pub(crate) use names::slug;

use aligned::Scores;
use analysis::{Ranking, Repeat, Summary, stop};
use model::{
    Metric, RunRecord, Study, Value, Warning,
    phase::{Cache, Role},
    record::{CellState, PhaseInfo},
    warning::Level,
};
use names::counterpart;
use rayon::prelude::*;

use crate::{
    units::{Scale, one_line},
    view::{
        control::Control,
        facts::{Filesystem, imported},
        pool::{Pool, barring, codes},
        tables::Of,
        warnings::Register,
    },
};

/// All points of one suite.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) points: Vec<WorkPoint>,
    /// Parameters with more than one value, by name.
    pub(crate) swept: Vec<String>,
    /// The one among them that says how many clients work at the same time, if it has at least
    /// [`CLIENT_LEVELS`] values at some points that differ in nothing else.
    pub(crate) clients: Option<&'static str>,
    /// The plan reproduces the tables of the study of 2009 and numbers them alike.
    pub(crate) numbered_as_2009: bool,
}

/// Cells that differ only in their filesystem.
#[derive(Clone, Debug)]
pub(crate) struct WorkPoint {
    /// Unique within the report, fit for an anchor.
    pub(crate) id: String,
    pub(crate) label: String,
    /// Every parameter, and the settings of the machine among them.
    pub(crate) parameters: BTreeMap<String, Value>,
    /// Those among the parameters that the plan sets beside the workload: scheduler, how full, and
    /// settings of the machine.
    pub(crate) conditions: BTreeMap<String, Value>,
    /// What was replayed, in words, its name first; empty where nothing was.
    pub(crate) load: Vec<String>,
    /// What became of each filesystem here; `None` where the plan has no such cell.
    pub(crate) statuses: Vec<Option<Status>>,
    /// Measured phases in the order they ran.
    pub(crate) tests: Vec<Test>,
}

/// What became of a cell, as a table says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// There are results.
    Measured,
    /// There are none, and this is why.
    Nothing(String),
}

/// One measured phase at one point.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// Unique within the report, fit for an anchor.
    pub(crate) id: String,
    /// Which one of all tests of the report it is, from 0.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) metric: Metric,
    /// What the caches held before it, if the run kept it.
    pub(crate) cache: Option<Cache>,
    /// Its counterpart where writes are concerned: accepted beside durable throughput or the
    /// reverse.
    pub(crate) counterpart: Option<Metric>,
    /// One scale for all values of this test, counterparts included.
    pub(crate) scale: Scale,
    /// Filesystems as they are shown: ranked ones best first, then the others.
    pub(crate) entries: Vec<Entry>,
    pub(crate) family: Option<Family>,
}

/// One filesystem at one test.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Index of the filesystem.
    pub(crate) filesystem: usize,
    /// Index of the cell in the record.
    pub(crate) cell: usize,
    /// [`Test::number`] of its test.
    pub(crate) test: usize,
    pub(crate) status: Status,
    /// The primary metric of every repeat.
    pub(crate) values: Vec<f64>,
    /// The same with the block of each.
    pub(crate) repeats: Vec<Repeat>,
    /// Repeats that lie far from the others.
    pub(crate) severe: u32,
    pub(crate) summary: Option<Summary>,
    pub(crate) counterpart: Option<Summary>,
    /// Everything that was measured in the phase, the primary metric included.
    pub(crate) metrics: Vec<(Metric, Summary)>,
    /// Warning codes that qualify the number.
    pub(crate) codes: Vec<&'static str>,
    /// Those of them that bar a claim, with their cures.
    pub(crate) barring: Vec<(&'static str, &'static str)>,
    /// Those among them that were earned while measuring, and so qualify whatever else was measured
    /// in the same phase.
    pub(crate) measured_codes: Vec<&'static str>,
    /// Repeats that failed, of how many, and why.
    pub(crate) failed: Option<(usize, usize, String)>,
    /// Takes part in the ranking.
    pub(crate) ranked: bool,
    pub(crate) letters: String,
    pub(crate) top: bool,
}

/// The ranked entries of a test and what was found among them.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// Index of each member in the entries of the test.
    pub(crate) members: Vec<usize>,
    /// Over the members.
    pub(crate) ranking: Ranking,
    /// What all other cells of the run moved by from block to block was taken out before, in the
    /// blocks that all members have.
    pub(crate) aligned: bool,
    /// Each pair was compared in the blocks that both have, as the run may have drifted.
    pub(crate) shared: bool,
}

/// A sweep of clients needs so many levels to show how it scales.
pub(crate) const CLIENT_LEVELS: usize = 3;

impl Entry {
    /// Whose numbers these are.
    pub(crate) fn of(&self) -> Of {
        Of { test: self.test, filesystem: self.filesystem }
    }

    /// `1 of 8 repeats failed`; empty if none did.
    pub(crate) fn failed_repeats(&self) -> String {
        let words =
            |(failed, all, _): &(usize, usize, String)| format!("{failed} of {all} repeats failed");
        self.failed.as_ref().map_or_else(String::new, words)
    }
}

impl Test {
    /// The warning codes of all its numbers, each once, in alphabetical order.
    pub(crate) fn codes(&self) -> BTreeSet<&'static str> {
        self.entries.iter().flat_map(|entry| entry.codes.iter().copied()).collect()
    }

    /// The entry of a filesystem.
    pub(crate) fn entry(&self, filesystem: usize) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.filesystem == filesystem)
    }
}

/// Groups and summarizes everything; collects the warnings of the numbers.
pub(crate) fn suites(pool: &Pool, filesystems: &[Filesystem]) -> (Vec<Suite>, Register) {
    let builder = Builder { record: pool.record, filesystems, pool };
    let mut register = Register::default();
    let mut names: Vec<&str> = Vec::new();
    for cell in &pool.record.cells {
        let name = cell.cell.workload.suite.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut suites: Vec<Suite> =
        names.into_iter().map(|name| builder.suite(name, &mut register)).collect();
    let points = suites.iter_mut().flat_map(|suite| &mut suite.points);
    for (number, test) in points.flat_map(|point| &mut point.tests).enumerate() {
        test.number = number;
        test.entries.iter_mut().for_each(|entry| entry.test = number);
    }
    (suites, register)
}

/// Ranks what is comparable in each test.
pub(crate) fn rank(suites: &mut [Suite], pool: &Pool, control: &Control, register: &mut Register) {
    let scores = control.drifts.then(|| Scores::new(pool.record, pool));
    let rules = families::Rules {
        threshold: control.threshold.ratio(),
        scores: scores.as_ref(),
        suspected: control.suspected,
    };
    families::rank(suites, &rules, register);
}

/// What points are built from. They have nothing to do with each other, so as many are built at the
/// same time as there are processors.
struct Builder<'a> {
    record: &'a RunRecord,
    filesystems: &'a [Filesystem],
    pool: &'a Pool<'a>,
}

impl Builder<'_> {
    fn suite(&self, name: &str, register: &mut Register) -> Suite {
        let cells: Vec<usize> = (0..self.record.cells.len())
            .filter(|cell| {
                let cell = &self.record.cells[*cell].cell;
                !cell.twin && cell.workload.suite == name
            })
            .collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for cell in cells {
            let place = places.entry(conditions::work(&self.record.cells[cell].cell));
            let place = *place.or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.push(cell),
                None => groups.push(vec![cell]),
            }
        }
        let filled = self.record.cells.iter().any(|cell| !cell.cell.fullness.is_empty());
        let parameters: Vec<_> = groups
            .iter()
            .map(|group| conditions::parameters(&self.record.cells[group[0]].cell, filled))
            .collect();
        let swept = conditions::swept(&parameters);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_cached_key(|index| {
            let of_point = &parameters[*index];
            let swept = swept.iter();
            let places = swept.map(|name| of_point.get(name).and_then(conditions::magnitude));
            // Points whose conditions the plan leaves alone stand first.
            (of_point.len(), places.collect::<Vec<_>>())
        });
        let built: Vec<(WorkPoint, Register)> = order
            .into_par_iter()
            .map(|index| self.point(name, index, &groups[index], parameters[index].clone()))
            .collect();
        let (points, registers): (Vec<_>, Vec<_>) = built.into_iter().unzip();
        registers.into_iter().for_each(|of_point| register.append(of_point));
        Suite {
            name: name.to_owned(),
            points,
            clients: conditions::clients(&parameters, &swept),
            swept,
            numbered_as_2009: self.record.info.view == Some(Study::Iozone2009) && name == "iozone",
        }
    }

    fn point(
        &self,
        suite: &str,
        index: usize,
        group: &[usize],
        parameters: BTreeMap<String, Value>,
    ) -> (WorkPoint, Register) {
        let first = &self.record.cells[group[0]];
        let own = conditions::conditions(&first.cell, parameters.contains_key(conditions::FULL));
        let label = conditions::label(&one_line(&first.label), &own);
        let id = format!("{}-{}", slug(suite), index + 1);
        let of = |filesystem: &Filesystem| {
            group
                .iter()
                .copied()
                .find(|cell| self.record.cells[*cell].cell.filesystem.name == filesystem.name)
        };
        let cells: Vec<Option<usize>> = self.filesystems.iter().map(of).collect();
        let statuses = cells.iter().map(|cell| cell.map(|cell| self.status(cell))).collect();
        let mut phases: Vec<&PhaseInfo> = Vec::new();
        for phase in group.iter().flat_map(|cell| &self.record.cells[*cell].phases) {
            let known = phases.iter().any(|known| known.name == phase.name);
            if phase.role == Role::Measure && !known {
                phases.push(phase);
            }
        }
        let mut register = Register::default();
        let test = |phase| self.test((&id, &label), &cells, phase, &mut register);
        let tests = phases.into_iter().map(test).collect();
        let load = conditions::load(self.pool, group);
        (WorkPoint { id, label, parameters, conditions: own, load, statuses, tests }, register)
    }

    /// Why a cell has no results, if it has none.
    fn status(&self, cell: usize) -> Status {
        let (trials, failures) = self.pool.failures(cell);
        let failed = match failures.first() {
            Some(reason) => format!("all {trials} repeats failed: {}", one_line(reason)),
            None => "not measured yet".into(),
        };
        match &self.record.cells[cell].state {
            CellState::Skipped { reason } => {
                Status::Nothing(format!("skipped: {}", one_line(reason)))
            }
            _ if trials > failures.len() => Status::Measured,
            CellState::Failed { reason } => {
                Status::Nothing(format!("failed: {}", one_line(reason)))
            }
            CellState::Open | CellState::Done { .. } => Status::Nothing(failed),
        }
    }

    fn test(
        &self,
        (point_id, label): (&str, &str),
        cells: &[Option<usize>],
        phase: &PhaseInfo,
        register: &mut Register,
    ) -> Test {
        let (name, metric) = (phase.name.as_str(), phase.primary);
        let counterpart = counterpart(metric).filter(|other| {
            let has = |cell: &usize| !self.pool.values(*cell, name, *other).is_empty();
            let durable =
                |cell: &usize| !self.pool.values(*cell, name, Metric::DurableThroughput).is_empty();
            cells.iter().flatten().any(|cell| has(cell) && durable(cell))
        });
        let mut entries = Vec::new();
        for (filesystem, cell) in cells.iter().enumerate() {
            if let Some(cell) = *cell {
                let place = format!("{} · {label} · {name}", self.filesystems[filesystem].name);
                let place = (filesystem, cell, &*place);
                entries.push(self.entry(place, (name, metric), counterpart, register));
            }
        }
        let medians = entries.iter().flat_map(|entry| {
            [&entry.summary, &entry.counterpart].into_iter().flatten().map(|summary| summary.median)
        });
        Test {
            id: format!("{point_id}-{}", slug(name)),
            number: 0,
            scale: Scale::of(metric.spec().unit, medians.collect::<Vec<_>>().into_iter()),
            name: name.to_owned(),
            group: phase.group.clone(),
            metric,
            cache: phase.cache,
            counterpart,
            entries,
            // Ranked when all tests are there.
            family: None,
        }
    }

    fn entry(
        &self,
        (filesystem, cell, place): (usize, usize, &str),
        (name, metric): (&str, Metric),
        counterpart: Option<Metric>,
        register: &mut Register,
    ) -> Entry {
        let record = &self.record.cells[cell];
        let values = self.pool.values(cell, name, metric).to_vec();
        let other = counterpart.map_or(&[][..], |other| self.pool.values(cell, name, other));
        let counterpart = Summary::new(other).ok();
        let summary = Summary::new(&values).ok();
        let metrics = self.pool.metrics(cell, name);
        let summarized =
            |(metric, values): (Metric, &[f64])| Some((metric, Summary::new(values).ok()?));
        let metrics = metrics.filter_map(summarized).collect();
        // Of imported numbers there are as many as there are; no plan was to bring more.
        let own: Vec<_> = summary.as_ref().filter(|_| imported(self.record).is_none()).map_or_else(
            Vec::new,
            |summary| {
                let mut own = stop::warnings(summary, self.record.info.profile);
                own.extend(doubts::of_values(&values));
                own.extend(doubts::of_cell(self.pool, cell));
                own
            },
        );
        let repeats = repeats(self.pool, cell, name, metric);
        let measured = self.pool.warnings(cell, name);
        let all = || measured.iter().copied().chain(&own);
        all().for_each(|warning| register.add(warning, place));
        let blocked = all().any(|warning| warning.level() == Level::Block);
        let (trials, failures) = self.pool.failures(cell);
        let failed = failures.first().map(|reason| (failures.len(), trials, one_line(reason)));
        let given_up = matches!(record.state, CellState::Failed { .. });
        let mut status = self.status(cell);
        if status == Status::Measured && summary.is_none() {
            status = Status::Nothing(self.hole(&measured, metric));
        }
        Entry {
            filesystem,
            cell,
            test: 0,
            status,
            ranked: summary.is_some()
                && !blocked
                && failed.is_none()
                && !given_up
                && imported(self.record).is_none(),
            codes: codes(all()),
            barring: barring(all()),
            severe: doubts::severe(&values),
            repeats,
            measured_codes: codes(measured.iter().copied()),
            values,
            summary,
            counterpart,
            metrics,
            failed,
            letters: String::new(),
            top: false,
        }
    }

    /// What stands where a phase of a measured cell has no number.
    fn hole(&self, warnings: &[&Warning], metric: Metric) -> String {
        let lacks = |warning: &&&Warning| matches!(warning, Warning::Lacks { .. });
        match warnings.iter().find(lacks) {
            Some(lacks) => format!("- {}", lacks.code()),
            None if imported(self.record).is_some() => "- not told".into(),
            None => format!("no sample of {}", metric.name()),
        }
    }
}

/// The values of a metric over the measured trials of a cell, with their blocks.
pub(crate) fn repeats(pool: &Pool, cell: usize, phase: &str, metric: Metric) -> Vec<Repeat> {
    let values = pool.repeats(cell, phase, metric);
    values.into_iter().map(|(block, value)| Repeat { block: Some(block), value }).collect()
}

//! Cells by suite, workload point, and test, summarized and ranked.
//!
//! A workload point is the set of cells that differ only in the filesystem. A test is one measured
//! phase of a point. An [`Entry`] is one filesystem at one test.

mod aligned;
mod conditions;
mod families;
mod labels;
mod names;
mod quality_flags;
mod ranker;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use conditions::{AS_FOUND, without};
pub(super) use families::{Rules, ranking};
pub(crate) use ranker::Ranker;

use aligned::Scores;
use analysis::{Ranking, Repetition, Summary, stop};
use model::{
    Metric, RunRecord, Study, Value, Warning,
    phase::{Cache, Role},
    plan::together,
    record::{CellState, PhaseInfo},
    warning::Severity,
};
use names::{accepted, counterpart};
use rayon::prelude::*;

use crate::{
    samples::imported,
    units::{Scale, count, distinct, grouped, one_line, slug},
    view::{
        facts::Filesystem,
        quality::RunQuality,
        raw::OverDevice,
        sample_index::{SampleIndex, barring, codes},
        tables::Of,
        warnings::WarningCollector,
    },
};

/// All points of one suite.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) points: Vec<WorkPoint>,
    /// Names of the parameters with several values.
    pub(crate) swept: Vec<String>,
    /// Swept parameter that is the number of clients, if it has at least [`CLIENT_LEVELS`] values
    /// at points that do not differ otherwise.
    pub(crate) clients: Option<&'static str>,
    /// True if the plan reproduces the 2009 study; tables are then numbered as in the study.
    pub(crate) numbered_as_2009: bool,
}

/// Cells that differ only in their filesystem.
#[derive(Clone, Debug)]
pub(crate) struct WorkPoint {
    /// Unique within the report, valid as an HTML anchor.
    pub(crate) id: String,
    pub(crate) label: String,
    /// All parameters, conditions included.
    pub(crate) parameters: BTreeMap<String, Value>,
    /// Parameters that the plan sets in addition to the workload: scheduler, fill level, system
    /// settings.
    pub(crate) conditions: BTreeMap<String, Value>,
    /// Facts about the loadfile, its name first; empty if none was replayed.
    pub(crate) load: Vec<String>,
    /// Status per filesystem; `None` if the plan has no such cell.
    pub(crate) statuses: Vec<Option<Status>>,
    /// Measured phases in the order they ran.
    pub(crate) tests: Vec<Test>,
}

/// Status of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The cell has results.
    Measured,
    /// The cell has no results, for this reason.
    Nothing(String),
}

/// One measured phase at one point.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// Unique within the report, valid as an HTML anchor.
    pub(crate) id: String,
    /// Index among all tests of the report.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) metric: Metric,
    /// Cache state before the test, if recorded.
    pub(crate) cache: Option<Cache>,
    /// For writes with durable throughput: the other one of it and the accepted throughput.
    pub(crate) counterpart: Option<Metric>,
    /// True if the primary metric is the throughput of writes without their final sync.
    pub(crate) accepted: bool,
    /// Display scale of all values of this test, counterparts included.
    pub(crate) scale: Scale,
    /// Filesystems in display order: ranked ones best first, then the others.
    pub(crate) entries: Vec<Entry>,
    pub(crate) family: Option<Family>,
    /// Filesystems relative to the block device without a filesystem.
    pub(crate) over_device: Vec<OverDevice>,
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
    /// Values of the primary metric, one per measured repetition, in base units.
    pub(crate) values: Vec<f64>,
    /// The values with their rounds.
    pub(crate) repetitions: Vec<Repetition>,
    /// Number of outliers.
    pub(crate) severe: u32,
    pub(crate) summary: Option<Summary>,
    pub(crate) counterpart: Option<Summary>,
    /// All metrics of the phase, the primary metric included.
    pub(crate) metrics: Vec<(Metric, Summary)>,
    /// Codes of the warnings about the primary metric.
    pub(crate) codes: Vec<&'static str>,
    /// Codes and hints of the blocking warnings among them.
    pub(crate) barring: Vec<(&'static str, &'static str)>,
    /// Codes of the warnings from the measurement itself, which apply to all metrics of the phase.
    pub(crate) measured_codes: Vec<&'static str>,
    /// Number of failed repetitions, of all repetitions, and the first reason.
    pub(crate) failed: Option<(usize, usize, String)>,
    /// True if the entry can be ranked: it has values, no blocking warning, and no failed
    /// repetition, and its run was not imported.
    pub(crate) ranked: bool,
    /// True for the block device without a filesystem: a reference, which is never ranked among
    /// filesystems.
    pub(crate) raw: bool,
    pub(crate) letters: String,
    pub(crate) top: bool,
}

/// Ranked entries of a test and their comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// Index of each member in the entries of the test.
    pub(crate) members: Vec<usize>,
    /// Ranking of the members.
    pub(crate) ranking: Ranking,
    /// True if the values were aligned by round with the other cells of the run, because the run
    /// drifted. Only rounds common to all members are then used.
    pub(crate) aligned: bool,
    /// True if each pair was compared in common rounds, because the run may have drifted.
    pub(crate) shared: bool,
}

/// Minimum number of levels for the analysis of scaling.
pub(crate) const CLIENT_LEVELS: usize = 3;

impl Entry {
    /// Summary of a metric.
    pub(crate) fn metric(&self, metric: Metric) -> Option<&Summary> {
        self.metrics.iter().find(|(known, _)| *known == metric).map(|(_, summary)| summary)
    }

    /// Test and filesystem of the entry.
    pub(crate) fn of(&self) -> Of {
        Of { test: self.test, filesystem: self.filesystem }
    }

    /// `1 of 8 repetitions failed`; empty if none did.
    pub(crate) fn failed_repetitions(&self) -> String {
        self.failed.as_ref().map_or_else(String::new, |(failed, all, _)| {
            format!("{failed} of {} failed", count(*all, "repetition"))
        })
    }
}

impl Test {
    /// Warning codes of all entries.
    pub(crate) fn codes(&self) -> BTreeSet<&'static str> {
        self.entries.iter().flat_map(|entry| entry.codes.iter().copied()).collect()
    }

    /// Warning codes of the measurement of all entries.
    pub(crate) fn measured_codes(&self) -> BTreeSet<&'static str> {
        self.entries.iter().flat_map(|entry| entry.measured_codes.iter().copied()).collect()
    }

    /// Entries in plan order.
    pub(crate) fn in_plan_order(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_by_key(|entry| entry.filesystem);
        entries
    }

    /// Entry of a filesystem.
    pub(crate) fn entry(&self, filesystem: usize) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.filesystem == filesystem)
    }

    /// Filesystems that a chart does not show, in plan order, with the reason; `otherwise` is the
    /// reason for measured filesystems.
    pub(crate) fn absent(
        &self,
        drawn: impl Fn(usize) -> bool,
        otherwise: &str,
    ) -> Vec<(usize, String)> {
        let missing = self.entries.iter().filter(|entry| !drawn(entry.filesystem));
        let reason = |entry: &Entry| match &entry.status {
            Status::Nothing(reason) => (entry.filesystem, reason.clone()),
            Status::Measured => (entry.filesystem, otherwise.to_owned()),
        };
        let mut absent: Vec<(usize, String)> = missing.map(reason).collect();
        absent.sort_by_key(|(filesystem, _)| *filesystem);
        absent
    }
}

impl WorkPoint {
    /// Index of one of the tests.
    pub(crate) fn index(&self, test: &Test) -> usize {
        self.tests.iter().position(|own| own.number == test.number).unwrap_or_default()
    }

    /// Test of this name.
    pub(crate) fn test(&self, name: &str) -> Option<&Test> {
        self.tests.iter().find(|test| test.name == name)
    }
}

/// Groups and summarizes all cells, and collects their warnings.
pub(crate) fn suites(
    sample_index: &SampleIndex,
    filesystems: &[Filesystem],
) -> (Vec<Suite>, WarningCollector) {
    let builder = Builder { record: sample_index.record, filesystems, sample_index };
    let mut collector = WarningCollector::default();
    let cells = sample_index.record.cells.iter();
    let names = distinct(cells.map(|cell| cell.cell.workload.suite.as_str()));
    let mut suites: Vec<Suite> =
        names.into_iter().map(|name| builder.suite(name, &mut collector)).collect();
    let points = suites.iter_mut().flat_map(|suite| &mut suite.points);
    for (number, test) in points.flat_map(|point| &mut point.tests).enumerate() {
        test.number = number;
        test.entries.iter_mut().for_each(|entry| entry.test = number);
    }
    (suites, collector)
}

/// Ranks the comparable filesystems of each test.
pub(crate) fn rank(
    suites: &mut [Suite],
    sample_index: &SampleIndex,
    quality: &RunQuality,
    collector: &mut WarningCollector,
) {
    let scores = quality.drifts.then(|| Scores::new(sample_index.record, sample_index));
    let rules = families::Rules {
        margin: quality.margin.ratio(),
        scores: scores.as_ref(),
        suspected: quality.suspected,
    };
    families::rank(suites, &rules, collector);
}

/// Builder of points. Points are independent and built in parallel.
struct Builder<'a> {
    record: &'a RunRecord,
    filesystems: &'a [Filesystem],
    sample_index: &'a SampleIndex<'a>,
}

impl Builder<'_> {
    fn suite(&self, name: &str, collector: &mut WarningCollector) -> Suite {
        let cells = self.record.cells.iter().map(|record| &record.cell).enumerate();
        let own = cells.filter(|(_, cell)| !cell.aa_duplicate && cell.workload.suite == name);
        let groups = grouped(own.map(|(index, cell)| (conditions::work(cell), index)));
        let groups: Vec<Vec<usize>> = groups.into_iter().map(|(_, cells)| cells).collect();
        let filled = self.record.cells.iter().any(|cell| !cell.cell.fill_level.is_empty());
        let parameters: Vec<_> = groups
            .iter()
            .map(|group| conditions::parameters(&self.record.cells[group[0]].cell, filled))
            .collect();
        let mut swept = conditions::swept(&parameters);
        swept.retain(|name| name != together::MEMBERS && name != together::ONLY);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_cached_key(|index| {
            let of_point = &parameters[*index];
            let swept = swept.iter();
            let places = swept.map(|name| of_point.get(name).and_then(conditions::magnitude));
            // Points at which the plan does not set a condition have fewer parameters and come
            // first.
            (of_point.len(), places.collect::<Vec<_>>())
        });
        let built: Vec<(WorkPoint, WarningCollector)> = order
            .into_par_iter()
            .map(|index| self.point(name, index, &groups[index], parameters[index].clone()))
            .collect();
        let (points, registers): (Vec<_>, Vec<_>) = built.into_iter().unzip();
        registers.into_iter().for_each(|of_point| collector.append(of_point));
        Suite {
            name: name.to_owned(),
            points,
            clients: conditions::clients(&parameters, &swept),
            swept,
            numbered_as_2009: self.record.info.study == Some(Study::Iozone2009) && name == "iozone",
        }
    }

    fn point(
        &self,
        suite: &str,
        index: usize,
        group: &[usize],
        parameters: BTreeMap<String, Value>,
    ) -> (WorkPoint, WarningCollector) {
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
        let mut collector = WarningCollector::default();
        let test = |phase| self.test((&id, &label), &cells, phase, &mut collector);
        let tests = phases.into_iter().map(test).collect();
        let load = conditions::load(self.sample_index, group);
        (WorkPoint { id, label, parameters, conditions: own, load, statuses, tests }, collector)
    }

    /// Status of a cell, with the reason for missing results.
    fn status(&self, cell: usize) -> Status {
        let (trials, failures) = self.sample_index.failures(cell);
        let failed = match failures.first() {
            Some(reason) => {
                format!("all {} failed: {}", count(trials, "repetition"), one_line(reason))
            }
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
        collector: &mut WarningCollector,
    ) -> Test {
        let (name, metric) = (phase.name.as_str(), phase.primary);
        let has = |metric| {
            move |cell: &&usize| !self.sample_index.values(**cell, name, metric).is_empty()
        };
        let own = || cells.iter().flatten();
        let counterpart = counterpart(metric).filter(|other| {
            own().filter(has(*other)).any(|cell| has(Metric::DurableThroughput)(&cell))
        });
        let mut entries = Vec::new();
        for (filesystem, cell) in cells.iter().enumerate() {
            if let Some(cell) = *cell {
                let place = format!("{} · {label} · {name}", self.filesystems[filesystem].name);
                let place = (filesystem, cell, &*place);
                entries.push(self.entry(place, (name, metric), counterpart, collector));
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
            accepted: accepted(metric, |other| own().any(|cell| has(other)(&cell))),
            entries,
            // Set by rank(), which needs all tests.
            family: None,
            over_device: Vec::new(),
        }
    }

    fn entry(
        &self,
        (filesystem, cell, place): (usize, usize, &str),
        (name, metric): (&str, Metric),
        counterpart: Option<Metric>,
        collector: &mut WarningCollector,
    ) -> Entry {
        let record = &self.record.cells[cell];
        let values = self.sample_index.values(cell, name, metric).to_vec();
        let other =
            counterpart.map_or(&[][..], |other| self.sample_index.values(cell, name, other));
        let counterpart = Summary::new(other).ok();
        let summary = Summary::new(&values).ok();
        let metrics = self.sample_index.metrics(cell, name);
        let summarized =
            |(metric, values): (Metric, &[f64])| Some((metric, Summary::new(values).ok()?));
        let metrics = metrics.filter_map(summarized).collect();
        // Imported runs have no plan, so the stopping rule does not apply.
        let own: Vec<_> = summary.as_ref().filter(|_| imported(self.record).is_none()).map_or_else(
            Vec::new,
            |summary| {
                let mut own = stop::warnings(summary, self.record.info.profile);
                own.extend(quality_flags::of_values(&values));
                own.extend(quality_flags::of_cell(self.sample_index, cell));
                own
            },
        );
        let repetitions = repetitions(self.sample_index, cell, name, metric);
        let measured = self.sample_index.warnings(cell, name);
        let all = || measured.iter().copied().chain(&own);
        all().for_each(|warning| collector.add(warning, place));
        let blocked = all().any(|warning| warning.severity() == Severity::Blocking);
        let (trials, failures) = self.sample_index.failures(cell);
        let failed = failures.first().map(|reason| (failures.len(), trials, one_line(reason)));
        let gave_up = matches!(record.state, CellState::Failed { .. });
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
                && !gave_up
                && imported(self.record).is_none(),
            raw: record.cell.filesystem.is_raw(),
            codes: codes(all()),
            barring: barring(all()),
            severe: quality_flags::severe(&values),
            repetitions,
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

    /// Reason why a phase of a measured cell has no value.
    fn hole(&self, warnings: &[&Warning], metric: Metric) -> String {
        let lacks = |warning: &&&Warning| matches!(warning, Warning::NotSupported { .. });
        match warnings.iter().find(lacks) {
            Some(lacks) => format!("- {}", lacks.code()),
            None if imported(self.record).is_some() => "- not recorded".into(),
            None => format!("no sample of {}", metric.name()),
        }
    }
}

/// Values of a metric over the measured trials of a cell, with their rounds.
pub(crate) fn repetitions(
    sample_index: &SampleIndex,
    cell: usize,
    phase: &str,
    metric: Metric,
) -> Vec<Repetition> {
    let values = sample_index.repetitions(cell, phase, metric);
    values.into_iter().map(|(block, value)| Repetition { block: Some(block), value }).collect()
}

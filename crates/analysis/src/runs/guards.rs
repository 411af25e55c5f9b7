//! Tests of paired cells, and checks that their numbers are comparable.

use model::{
    Ratio, RunRecord, Warning,
    metric::Better,
    phase::Role,
    record::{CellRecord, CellState, Outcome, PhaseInfo},
    warning::Severity,
};

use super::{
    Metrics, TestPair, Which,
    cells::Match,
    numbers::{Numbers, apart, values},
};
use crate::{Comparer, Error, Summary, trend::Repetition};

/// Reason that two paired tests are not compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Withheld {
    /// One cell has no values of the metric.
    #[error("{which} has no values: {reason}")]
    NoValues {
        /// Run without values.
        which: Which,
        /// Outcome of the cell.
        reason: String,
        /// True if its trials failed.
        failed: bool,
    },
    /// One cell has failed repetitions.
    #[error("{failed} of {of} repetitions failed in {which}")]
    Failed {
        /// Run with the failures.
        which: Which,
        /// Number of failed repetitions.
        failed: usize,
        /// Number of repetitions.
        of: usize,
    },
    /// One value has a blocking warning.
    #[error("{which} has the warning {}: {}", warning.code(), warning.message())]
    Blocked {
        /// Run with the warning.
        which: Which,
        /// Warning.
        warning: Warning,
    },
    /// The tests have different primary metrics or cache states.
    #[error("the tests differ: {what}")]
    Differs {
        /// Property that differs.
        what: &'static str,
    },
    /// The numbers have no ratio.
    #[error("{0}")]
    Numbers(Error),
}

/// True if a warning prevents all findings. Too few repetitions are handled by the comparison
/// instead.
pub(super) fn blocks(warning: &Warning) -> bool {
    warning.severity() == Severity::Blocking
        && !matches!(warning, Warning::TooFewRepetitions { .. })
}

/// Pairs of tests: the measured phases that either cell of a pair has, in the order of the first
/// run.
pub(super) fn tests(
    first: &RunRecord,
    second: &RunRecord,
    pairs: &[Match],
    metrics: Metrics,
    unaffected: &dyn Fn(&Match) -> bool,
) -> Vec<TestPair> {
    let sides = [Numbers::new(first), Numbers::new(second)];
    let mut tests = Vec::new();
    for pair in pairs {
        let cells = [&first.cells[pair.first], &second.cells[pair.second]];
        let mut phases: Vec<&PhaseInfo> = Vec::new();
        for phase in cells.iter().flat_map(|cell| &cell.phases) {
            let known = phases.iter().any(|known| known.name == phase.name);
            if phase.role == Role::Measure && !known {
                phases.push(phase);
            }
        }
        for phase in phases {
            let shown = match metrics {
                Metrics::Primary => vec![phase.primary],
                Metrics::One(metric) => vec![metric],
                Metrics::All => {
                    let there = sides[1].metrics(pair.second, &phase.name);
                    let here = sides[0].metrics(pair.first, &phase.name).into_iter();
                    // The primary metric is kept even if the second run lacks it: its absence is
                    // reported.
                    here.filter(|m| there.contains(m) || *m == phase.primary).collect()
                }
            };
            for metric in shown {
                let indexes = [pair.first, pair.second];
                let place = TestContext { sides: &sides, cells, indexes, phase, metric };
                let mut test = place.test(pair);
                test.affected = !unaffected(pair);
                let asked = metrics != Metrics::All || metric == phase.primary;
                test.pooled = asked && metric.spec().better != Better::Neither;
                tests.push(test);
            }
        }
    }
    tests
}

/// Context of one test.
struct TestContext<'a> {
    sides: &'a [Numbers<'a>; 2],
    cells: [&'a CellRecord; 2],
    indexes: [usize; 2],
    phase: &'a PhaseInfo,
    metric: model::Metric,
}

impl TestContext<'_> {
    /// Pair of tests with its values. The comparison is withheld with a reason, or not made yet.
    fn test(&self, pair: &Match) -> TestPair {
        let repetitions =
            |at: usize| self.sides[at].repetitions(self.indexes[at], &self.phase.name, self.metric);
        let repetitions = (repetitions(0).to_vec(), repetitions(1).to_vec());
        let summary = |repetitions: &[Repetition]| Summary::new(&values(repetitions)).ok();
        let name = |at: usize| self.cells[at].cell.filesystem.name.clone();
        let reason = self.same().err().or_else(|| {
            let both = [(Which::First, 0), (Which::Second, 1)];
            both.into_iter().find_map(|(which, at)| {
                let (index, cell) = (self.indexes[at], self.cells[at]);
                withheld(which, &self.sides[at], (index, cell), &self.phase.name, self.metric)
            })
        });
        // Tests without a reason are marked with this error until `compare` compares them.
        let comparison = Err(reason.unwrap_or(Withheld::Numbers(Error::Empty)));
        TestPair {
            first: self.indexes[0],
            second: self.indexes[1],
            by: pair.by,
            filesystems: (name(0), name(1)),
            label: label(self.cells),
            phase: self.phase.name.clone(),
            metric: self.metric,
            affected: true,
            pooled: true,
            before: summary(&repetitions.0),
            after: summary(&repetitions.1),
            comparison,
            interval: None,
            found: false,
            p_holm: 1.0,
            gate: None,
            repetitions,
        }
    }

    /// Checks that both runs measured the same test.
    fn same(&self) -> Result<(), Withheld> {
        let own = |cell: &CellRecord| {
            cell.phases.iter().find(|phase| phase.name == self.phase.name).cloned()
        };
        let [Some(first), Some(second)] = self.cells.map(own) else { return Ok(()) };
        if first.primary != second.primary {
            return Err(Withheld::Differs { what: "primary metrics" });
        }
        if first.cache.zip(second.cache).is_some_and(|(first, second)| first != second) {
            return Err(Withheld::Differs { what: "cache state" });
        }
        let loads = [0, 1].map(|at| {
            let trials = self.sides[at].trials[self.indexes[at]].iter();
            let mut loads: Vec<&str> =
                trials.filter_map(|trial| trial.environment.get("loadfile.sha256")).collect();
            loads.sort_unstable();
            loads.dedup();
            loads
        });
        match loads[0] == loads[1] || loads.iter().any(Vec::is_empty) {
            true => Ok(()),
            false => Err(Withheld::Differs { what: "loadfiles" }),
        }
    }
}

/// Reason that the values of a metric of one cell must not be compared.
pub(super) fn withheld(
    which: Which,
    numbers: &Numbers<'_>,
    (index, cell): (usize, &CellRecord),
    phase: &str,
    metric: model::Metric,
) -> Option<Withheld> {
    let trials = &numbers.trials[index];
    let failed = trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Failed { .. }));
    let failed = failed.count();
    if numbers.repetitions(index, phase, metric).is_empty() {
        let reason = match &cell.state {
            CellState::Skipped { reason } => format!("skipped, {reason}"),
            CellState::Failed { reason } => format!("failed, {reason}"),
            CellState::Open | CellState::Done { .. } if failed > 0 => {
                format!("{failed} of {} repetitions failed", trials.len())
            }
            CellState::Open | CellState::Done { .. } if trials.is_empty() => "not measured".into(),
            CellState::Open | CellState::Done { .. } => format!("no {}", metric.name()),
        };
        let failed = failed > 0 || matches!(cell.state, CellState::Failed { .. });
        return Some(Withheld::NoValues { which, reason, failed });
    }
    if failed > 0 {
        return Some(Withheld::Failed { which, failed, of: trials.len() });
    }
    let measured = trials.iter().filter(|trial| trial.outcome == Outcome::Measured);
    let own = |place: &Option<String>| place.as_deref().is_none_or(|place| place == phase);
    let mut warnings = measured.flat_map(|trial| &trial.warnings).filter(|(at, _)| own(at));
    let blocking = warnings.find(|(_, warning)| blocks(warning));
    blocking.map(|(_, warning)| Withheld::Blocked { which, warning: warning.clone() })
}

/// Workload and the conditions that the plan sets. A label contains the conditions that the plan of
/// its run varies, so the longer of the two labels is more specific.
fn label(cells: [&CellRecord; 2]) -> String {
    let [first, second] = cells.map(|cell| cell.label.as_str());
    let mut label = if second.len() > first.len() { second } else { first }.to_owned();
    let cell = &cells[0].cell;
    let scheduler = cell.scheduler.iter().map(|name| format!("scheduler {name}"));
    let full = (!cell.fill_level.is_empty()).then(|| format!("fill {}", cell.fill_level));
    let factors = cell.settings.iter().map(|(factor, value)| format!("{factor} {value}"));
    let options = cell.options.iter().map(|(option, value)| format!("{option} {value}"));
    for condition in scheduler.chain(full).chain(factors).chain(options) {
        if !label.contains(&condition) && !label.contains(&condition.replacen(' ', "=", 1)) {
            label = format!("{label}, {condition}");
        }
    }
    label
}

/// Compares a test at the effective margin, unless its comparison is withheld.
pub(super) fn compare(test: &mut TestPair, working: Ratio, comparer: &mut Comparer) {
    if !matches!(test.comparison, Err(Withheld::Numbers(Error::Empty))) {
        return;
    }
    let better = test.metric.spec().better;
    let (first, second) = (apart(&test.repetitions.0), apart(&test.repetitions.1));
    let compared = comparer.compare_repetitions(&first, &second, better, working);
    test.interval = compared.as_ref().ok().and_then(|comparison| comparison.interval);
    test.comparison = compared.map_err(Withheld::Numbers);
}

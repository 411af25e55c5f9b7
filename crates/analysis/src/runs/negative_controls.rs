//! Negative controls: tests and machine benchmarks that the differences between two runs cannot
//! affect.

use model::{Ratio, RunRecord};

use super::{FindingsObstacle, TestPair, total};
use crate::{Interval, count};

/// Results that should be equal in both runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NegativeControls {
    /// Total over the tests that the differences cannot have affected, if any.
    pub tests: Option<UnaffectedTests>,
    /// Machine benchmarks. Each run measured them only once, so they support no findings.
    pub machine: Vec<MachineFact>,
}

/// Total over the unaffected tests.
#[derive(Clone, Debug, PartialEq)]
pub struct UnaffectedTests {
    /// Number of tests.
    pub tests: u32,
    /// Geometric mean of their ratios, above 1 if the second run was better.
    pub ratio: Ratio,
    /// Confidence interval, if it can be estimated.
    pub interval: Option<Interval>,
}

/// Machine benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineFact {
    /// Name of the fact.
    pub name: &'static str,
    /// Value in the first run.
    pub first: f64,
    /// Value in the second run.
    pub second: f64,
    /// True if the values differ by more than the margin.
    pub differs: bool,
}

/// Machine benchmarks that do not depend on a filesystem.
const FACTS: [&str; 2] = ["generator.memory_copy_bytes_per_second", "clock.cost_ns"];

impl NegativeControls {
    /// Obstacle to findings if the total of the unaffected tests changed by more than the margin.
    pub(super) fn obstacle(&self, effective_margin: Ratio) -> Option<FindingsObstacle> {
        let ratio = self.tests.as_ref()?.ratio;
        let moved = ratio.0.ln().abs() > effective_margin.0.ln_1p();
        moved.then_some(FindingsObstacle::NegativeControlsChanged {
            ratio,
            margin: effective_margin,
        })
    }
}

pub(super) fn negative_controls(
    first: &RunRecord,
    second: &RunRecord,
    tests: &[TestPair],
    margin: Ratio,
) -> NegativeControls {
    let unaffected = || tests.iter().filter(|test| !test.affected && test.pooled);
    let logs: Vec<f64> =
        unaffected().filter_map(|test| Some(test.comparison.as_ref().ok()?.ratio.0.ln())).collect();
    let mean = logs.iter().sum::<f64>() / f64::from(count(logs.len()));
    let together = (!logs.is_empty()).then(|| UnaffectedTests {
        tests: count(logs.len()),
        ratio: Ratio(mean.exp()),
        interval: total(unaffected(), first.info.id == second.info.id).map(|total| total.interval),
    });
    let fact = |name: &'static str| {
        let value = |run: &RunRecord| {
            let value = run.environment.get(name)?.parse::<f64>().ok()?;
            (value.is_finite() && value > 0.0).then_some(value)
        };
        let (first, second) = (value(first)?, value(second)?);
        let differs = (second / first).ln().abs() > margin.0.ln_1p();
        Some(MachineFact { name, first, second, differs })
    };
    NegativeControls { tests: together, machine: FACTS.into_iter().filter_map(fact).collect() }
}

//! What two runs have in common and what differed between them cannot have touched.

use model::{Ratio, RunRecord};

use super::{NoClaim, TestPair, total};
use crate::{Interval, count};

/// What should be the same in both runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Anchor {
    /// Tests that what differed cannot have touched, if there are any.
    pub tests: Option<Untouched>,
    /// Figures of the machine that each run took once, so that they support no claim.
    pub machine: Vec<MachineFact>,
}

/// The tests that what differed cannot have touched, taken together.
#[derive(Clone, Debug, PartialEq)]
pub struct Untouched {
    /// How many.
    pub tests: u32,
    /// Geometric mean of their ratios, above 1 if the second run was better.
    pub ratio: Ratio,
    /// Its interval, if it can be told.
    pub interval: Option<Interval>,
}

/// A figure of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineFact {
    /// Name of the fact.
    pub name: &'static str,
    /// In the first run.
    pub first: f64,
    /// In the second run.
    pub second: f64,
    /// Whether they differ by more than the threshold.
    pub differs: bool,
}

/// Figures of the machine that do not depend on any filesystem.
const FACTS: [&str; 2] = ["generator.memory_copy_bytes_per_second", "clock.cost_ns"];

impl Anchor {
    /// Why nothing may be claimed: the untouched tests moved.
    pub(super) fn refusal(&self, working: Ratio) -> Option<NoClaim> {
        let ratio = self.tests.as_ref()?.ratio;
        let moved = ratio.0.ln().abs() > working.0.ln_1p();
        moved.then_some(NoClaim::AnchorMoved { ratio, threshold: working })
    }
}

pub(super) fn anchor(
    first: &RunRecord,
    second: &RunRecord,
    tests: &[TestPair],
    threshold: Ratio,
) -> Anchor {
    let untouched = || tests.iter().filter(|test| !test.touched && test.pooled);
    let logs: Vec<f64> =
        untouched().filter_map(|test| Some(test.comparison.as_ref().ok()?.ratio.0.ln())).collect();
    let mean = logs.iter().sum::<f64>() / f64::from(count(logs.len()));
    let together = (!logs.is_empty()).then(|| Untouched {
        tests: count(logs.len()),
        ratio: Ratio(mean.exp()),
        interval: total(untouched(), first.info.id == second.info.id).map(|total| total.interval),
    });
    let fact = |name: &'static str| {
        let value = |run: &RunRecord| {
            let value = run.environment.get(name)?.parse::<f64>().ok()?;
            (value.is_finite() && value > 0.0).then_some(value)
        };
        let (first, second) = (value(first)?, value(second)?);
        let differs = (second / first).ln().abs() > threshold.0.ln_1p();
        Some(MachineFact { name, first, second, differs })
    };
    Anchor { tests: together, machine: FACTS.into_iter().filter_map(fact).collect() }
}

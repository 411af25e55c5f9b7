//! Tests of the first run without numbers in the second run.
//!
//! Lists newly failing and missing tests by cell. A test that also has no comparable numbers in the
//! first run is in neither list.

use super::{AtGate, Paired, PairedBy, TestPair, Unpaired, UnpairedReason, Which, Withheld};

/// Tests of one cell of the first run that have no numbers in the second run, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Index of the comparison in the chain.
    pub step: usize,
    /// Filesystem and workload.
    pub cell: String,
    /// Phases; empty for an unpaired cell.
    pub phases: Vec<String>,
    /// Number of tests.
    pub tests: u32,
    /// Reason.
    pub reason: String,
}

/// Result of a test that lost its numbers in the second run.
pub(super) fn lost(test: &TestPair) -> Option<AtGate> {
    // Only for metrics in totals. A secondary metric may be missing for other reasons, such as too
    // few operations.
    let withheld =
        test.comparison.as_ref().err().filter(|_| test.pooled && test.before.is_some())?;
    match withheld {
        Withheld::Failed { which: Which::Second, .. } => Some(AtGate::Failed),
        Withheld::NoValues { which: Which::Second, failed: true, .. } => Some(AtGate::Failed),
        Withheld::NoValues { which: Which::Second, failed: false, .. } => Some(AtGate::Missing),
        Withheld::Failed { which: Which::First, .. }
        | Withheld::NoValues { which: Which::First, .. }
        | Withheld::Blocked { .. }
        | Withheld::Differs { .. }
        | Withheld::Numbers(_) => None,
    }
}

/// Tests whose trials failed in the second run but not in the first.
pub(super) fn failed(steps: &[Paired]) -> Vec<Missing> {
    let steps = steps.iter().enumerate();
    steps.flat_map(|(at, step)| of_tests(at, step, AtGate::Failed)).collect()
}

/// Tests of the first run that are missing in the second run: phases of paired cells, and unpaired
/// cells. A/A duplicates are not tests. A filesystem that is compared under another name is not
/// missing.
pub(super) fn find(steps: &[Paired]) -> Vec<Missing> {
    let steps = steps.iter().enumerate();
    let unpaired = |at: usize, unpaired: &Unpaired| {
        let meant = matches!(unpaired.reason, UnpairedReason::AaDuplicate | UnpairedReason::Taken)
            || unpaired.tests == 0;
        (!meant).then(|| Missing {
            step: at,
            cell: unpaired.name.clone(),
            phases: Vec::new(),
            tests: unpaired.tests,
            reason: unpaired.reason.to_string(),
        })
    };
    let of_step = |(at, step): (usize, &Paired)| {
        let mut gone = of_tests(at, step, AtGate::Missing);
        gone.extend(step.only_first.iter().filter_map(|cell| unpaired(at, cell)));
        gone
    };
    steps.flat_map(of_step).collect()
}

/// Tests of a step that have this result, grouped by cell and reason.
fn of_tests(at: usize, step: &Paired, what: AtGate) -> Vec<Missing> {
    let mut missing: Vec<Missing> = Vec::new();
    for test in step.tests.iter().filter(|test| lost(test) == Some(what)) {
        let name =
            if test.by == PairedBy::Workload { &test.filesystems.1 } else { &test.filesystems.0 };
        let cell = format!("{name} · {}", test.label);
        let reason = test.comparison.as_ref().err().map(ToString::to_string).unwrap_or_default();
        match missing.last_mut().filter(|last| last.cell == cell && last.reason == reason) {
            Some(last) => {
                last.phases.push(test.phase.clone());
                last.tests += 1;
            }
            None => missing.push(Missing {
                step: at,
                cell,
                phases: vec![test.phase.clone()],
                tests: 1,
                reason,
            }),
        }
    }
    missing
}

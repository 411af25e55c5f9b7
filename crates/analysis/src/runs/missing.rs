//! Tests of the first run that the second has no numbers of.
//!
//! Compared runs enter; what fails now and what is gone leave, by cell. A test that was withheld in
//! the first run as well is neither: nothing was known of it before.

use super::{AtGate, By, Lone, Paired, TestPair, Which, Why, Withheld};

/// Tests of one cell of the first run that the second has no numbers of, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Index of the comparison in the chain.
    pub step: usize,
    /// Filesystem and workload.
    pub cell: String,
    /// The phases; empty for a whole cell that was paired with none.
    pub phases: Vec<String>,
    /// How many tests.
    pub tests: u32,
    /// Why.
    pub why: String,
}

/// What a test lacks in the second run that it had in the first.
pub(super) fn lost(test: &TestPair) -> Option<AtGate> {
    // A further metric may be missing for reasons of its own, such as too few operations.
    let withheld =
        test.comparison.as_ref().err().filter(|_| test.pooled && test.before.is_some())?;
    match withheld {
        Withheld::Failed { which: Which::Second, .. } => Some(AtGate::Failed),
        Withheld::NoValues { which: Which::Second, failed: true, .. } => Some(AtGate::Failed),
        Withheld::NoValues { which: Which::Second, failed: false, .. } => Some(AtGate::Vanished),
        Withheld::Failed { which: Which::First, .. }
        | Withheld::NoValues { which: Which::First, .. }
        | Withheld::Blocked { .. }
        | Withheld::Differs { .. }
        | Withheld::Numbers(_) => None,
    }
}

/// Tests whose trials failed in the second run and not in the first.
pub(super) fn failed(steps: &[Paired]) -> Vec<Missing> {
    let steps = steps.iter().enumerate();
    steps.flat_map(|(at, step)| of_tests(at, step, AtGate::Failed)).collect()
}

/// Tests of the first run that the second does not have: phases of paired cells, and cells that are
/// paired with none. Twins are no tests, and a filesystem that was left out in favor of another was
/// left out on purpose.
pub(super) fn vanished(steps: &[Paired]) -> Vec<Missing> {
    let steps = steps.iter().enumerate();
    let lone = |at: usize, lone: &Lone| {
        let meant = matches!(lone.why, Why::Twin | Why::Taken) || lone.tests == 0;
        (!meant).then(|| Missing {
            step: at,
            cell: lone.name.clone(),
            phases: Vec::new(),
            tests: lone.tests,
            why: lone.why.to_string(),
        })
    };
    let of_step = |(at, step): (usize, &Paired)| {
        let mut gone = of_tests(at, step, AtGate::Vanished);
        gone.extend(step.only_first.iter().filter_map(|cell| lone(at, cell)));
        gone
    };
    steps.flat_map(of_step).collect()
}

/// The tests of a step that lack this, those of one cell and reason together.
fn of_tests(at: usize, step: &Paired, what: AtGate) -> Vec<Missing> {
    let mut missing: Vec<Missing> = Vec::new();
    for test in step.tests.iter().filter(|test| lost(test) == Some(what)) {
        let name = if test.by == By::Workload { &test.filesystems.1 } else { &test.filesystems.0 };
        let cell = format!("{name} · {}", test.label);
        let why = test.comparison.as_ref().err().map(ToString::to_string).unwrap_or_default();
        match missing.last_mut().filter(|last| last.cell == cell && last.why == why) {
            Some(last) => {
                last.phases.push(test.phase.clone());
                last.tests += 1;
            }
            None => missing.push(Missing {
                step: at,
                cell,
                phases: vec![test.phase.clone()],
                tests: 1,
                why,
            }),
        }
    }
    missing
}

//! Tests of the regression gate.

use super::*;

/// A test exactly at the margin of the gate.
#[test]
fn regression_equal_to_the_margin_keeps_the_error_rate() {
    let mut failed = 0;
    for seed in 0..40 {
        let mut second = Made::new(4000 + seed);
        for (test, ..) in TESTS {
            for filesystem in ["ext4", "xfs"] {
                second = second.times(filesystem, test, 1.0 / 1.05);
            }
        }
        let (_, gate) = compared(&Made::new(3000 + seed), &second, &CompareOptions::default());
        failed += u32::from(gate.verdict == GateVerdict::Failed);
    }
    // P(Binomial(40, 0.05) > 5) is 0.014.
    assert!(failed <= 5, "{failed} of 40");
}

#[test]
fn few_repetitions_are_inconclusive() {
    let few = |seed| Made { repetitions: 3, ..Made::new(seed) };
    let second = few(2).kernel("6.12.3").times("xfs", "write", 0.5);
    let (paired, gate) = compared(&few(1), &second, &CompareOptions::default());
    assert!(headlines(&paired).is_empty());
    assert_eq!((gate.verdict, gate.inconclusive), (GateVerdict::Inconclusive, 16));
    assert_eq!(paired.tally.inconclusive, 16);
}

#[test]
fn strict_gate_needs_all_tests_non_inferior() {
    let wide = |seed| Made { spread: 0.2, ..Made::new(seed) };
    let how = |strict| {
        let rule = GateRule { margin: Ratio(0.05), strict };
        CompareOptions { gate: Some(rule), ..CompareOptions::default() }
    };
    let mut first = Made::new(1);
    first.spread = 0.004;
    let second = Made { seed: 2, ..first.clone() };
    assert_eq!(compared(&first, &second, &how(true)).1.verdict, GateVerdict::Passed);
    let (_, gate) = compared(&wide(1), &wide(2), &how(true));
    assert_eq!(gate.verdict, GateVerdict::Inconclusive);
    assert!(gate.inconclusive > 0);
}

/// A regression of 8 % at a gate of 5 %, below the A/A noise, passes no gate.
#[test]
fn gate_below_the_aa_noise_does_not_pass() {
    let gate = |factor| {
        let second = Made::new(2).times("ext4", "write", factor).make();
        chain(&[&apart(1, 1.113), &second], &gated(0.05)).unwrap().gate.unwrap()
    };
    let masked = gate(0.92);
    assert_eq!((masked.verdict, masked.non_inferior), (GateVerdict::Inconclusive, 0));
    assert!(masked.aa_noise.is_some_and(|aa_duplicates| aa_duplicates.0 > 0.08));
    let beyond = gate(0.7);
    assert_eq!((beyond.verdict, beyond.worse), (GateVerdict::Failed, 2));
    let second = Made::new(2).times("ext4", "write", 0.92).make();
    let how = CompareOptions { margin: Some(Ratio(0.15)), ..gated(0.05) };
    let result = chain(&[&Made::new(1).make(), &second], &how).unwrap();
    assert_eq!(result.gate.unwrap().verdict, GateVerdict::Failed, "the gate has its own margin");
    let tally = result.steps[0].tally;
    assert!(tally.negligible >= 2, "a significant difference is not equivalent: {tally:?}");
    assert_eq!(tally.equivalent + tally.negligible, 16);
}

/// The p-value of six against six values is at least 0.002, which is 0.05 / 23. If p-values were
/// adjusted, no strict gate of more than 23 tests could pass.
#[test]
fn strict_gate_is_one_hypothesis() {
    let small = |seed| Made { spread: 0.002, repetitions: 6, ..Made::new(seed) }.make();
    let runs: Vec<_> = (1..=4).map(small).collect();
    let runs: Vec<&RunRecord> = runs.iter().collect();
    let gate = |strict| {
        let rule = GateRule { margin: Ratio(0.05), strict };
        chain(&runs, &CompareOptions { gate: Some(rule), ..CompareOptions::default() })
            .unwrap()
            .gate
            .unwrap()
    };
    let (strict, loose) = (gate(true), gate(false));
    assert!(strict.non_inferior > 23, "{strict:?}");
    assert_eq!((strict.verdict, strict.inconclusive), (GateVerdict::Passed, 0));
    assert_eq!((loose.verdict, loose.non_inferior), (GateVerdict::Inconclusive, 0));
    let worse = Made { spread: 0.002, repetitions: 6, ..Made::new(5) }.times("ext4", "write", 0.9);
    let rule = GateRule { margin: Ratio(0.05), strict: true };
    let how = CompareOptions { gate: Some(rule), ..CompareOptions::default() };
    let result = chain(&[runs[0], &worse.make()], &how).unwrap().gate.unwrap();
    assert_ne!(result.verdict, GateVerdict::Passed);
}

/// A non-inferior test has an interval that agrees.
#[test]
fn non_inferiority_agrees_with_the_interval() {
    let wide = |seed| Made { spread: 0.04, ..Made::new(seed) };
    let mut shown = 0;
    for seed in 0..10 {
        let paired = compared(&wide(seed), &wide(100 + seed), &CompareOptions::default()).0;
        for test in paired.tests.iter().filter(|test| test.gate == Some(AtGate::NonInferior)) {
            shown += 1;
            assert!(test.interval.unwrap().low >= 1.0 / 1.05, "{test:?}");
        }
    }
    assert!(shown > 0);
}

#[test]
fn worst_step_determines_the_chain() {
    let few = |seed| Made { repetitions: 3, ..Made::new(seed) }.make();
    let (first, second) = (Made::new(1).make(), Made::new(2).make());
    let result = chain(&[&first, &second, &few(3)], &gated(0.05)).unwrap();
    assert_eq!(result.gate.unwrap().verdict, GateVerdict::Inconclusive);
}

//! Tests of the checks that withhold findings.

use super::*;

/// Interval of the total of sixteen tests. Their only noise is that of the block, which is the same
/// in all tests.
fn total_of(seed: u64, repetitions: u32) -> Interval {
    let run = |seed: u64| {
        let mut run = Made { repetitions, spread: 0.0, ..Made::new(seed) }.make();
        let mut rng = fastrand::Rng::with_seed(seed);
        let factors: Vec<f64> = (0..repetitions).map(|_| 1.0 + 0.04 * rng.f64()).collect();
        for trial in &mut run.trials {
            for sample in &mut trial.samples {
                let factor = factors[trial.repetition as usize];
                let lower = sample.metric.spec().better == Better::Lower;
                sample.value *= if lower { 1.0 / factor } else { factor };
            }
        }
        run
    };
    let paired = pair(&run(seed), &run(seed + 1000), &CompareOptions::default()).unwrap();
    paired.total.unwrap().interval
}

#[test]
fn total_has_nominal_coverage_with_common_blocks() {
    // 100 pairs of equal runs; standard error 2.2 points. If blocks were drawn for each test
    // separately, sixteen identical tests would make the interval a quarter as wide.
    let held = (0..100).filter(|seed| total_of(*seed, 8).contains(1.0)).count();
    assert!(held >= 89, "{held} of 100");
}

#[test]
fn filesystem_tools_affect_all_its_levels() {
    let named =
        |name: &str| FilesystemLevel { name: name.into(), ..FilesystemLevel::plain("ext4") };
    let tools = |seed, version| {
        let becomes = FilesystemLevel {
            converted_to: Some("ext4".into()),
            name: "converted".into(),
            ..FilesystemLevel::plain("f2fs")
        };
        let filesystems = vec![named("quick"), FilesystemLevel::plain("xfs"), becomes];
        let made = Made { filesystems, ..Made::new(seed) };
        made.fact("filesystem.ext4.tools", version)
    };
    let (paired, _) = compared(&tools(1, "1.46"), &tools(2, "1.47"), &CompareOptions::default());
    assert_eq!(own_aspects(&paired), [Aspect::Filesystem]);
    for test in &paired.tests {
        assert_eq!(test.affected, test.filesystems.0 != "xfs", "{}", test.filesystems.0);
    }
    // Options belong to a level, regardless of its type.
    let mut second = Made { filesystems: vec![named("quick"), named("ext4")], ..Made::new(2) };
    let first = second.make();
    second.filesystems[1].mount = "noatime".into();
    let second = Made { seed: 3, ..second }.make();
    let paired = pair(&first, &second, &CompareOptions::default()).unwrap();
    for test in &paired.tests {
        assert_eq!(test.affected, test.filesystems.0 == "ext4");
    }
}

fn at_gate(first: &RunRecord, second: &RunRecord, strict: bool) -> Gate {
    let rule = GateRule { margin: Ratio(0.05), strict };
    let how = CompareOptions { gate: Some(rule), ..CompareOptions::default() };
    chain(&[first, second], &how).unwrap().gate.unwrap()
}

#[test]
fn gate_does_not_pass_with_missing_tests() {
    let first = Made { aa_duplicates: true, ..Made::new(1) }.make();
    for strict in [false, true] {
        let mut second = Made { records: vec![Bytes::kib(64)], ..Made::new(2) }.make();
        second.cells[1].phases.pop();
        second.trials.iter_mut().filter(|trial| trial.cell == 1).for_each(|trial| {
            trial.samples.pop();
        });
        let gate = at_gate(&first, &second, strict);
        assert_eq!((gate.verdict, gate.worse), (GateVerdict::Inconclusive, 0), "{strict}");
        let result: Vec<(&str, u32)> =
            gate.missing.iter().map(|missing| (&*missing.cell, missing.tests)).collect();
        let expected = [
            ("xfs · iozone record=64KiB", 1),
            ("ext4 · iozone record=1MiB", 4),
            ("xfs · iozone record=1MiB", 4),
        ];
        assert_eq!(result, expected);
        assert_eq!((&*gate.missing[0].phases, gate.failed.len()), (&["open".to_owned()][..], 0));
        assert_eq!(
            at_gate(&second, &first, strict).missing,
            [],
            "additional tests are not missing"
        );
    }
}

#[test]
fn new_failures_fail_the_gate_and_old_ones_do_not() {
    let fail = |mut run: RunRecord, all: bool| {
        for trial in run.trials.iter_mut().filter(|trial| trial.cell == 1) {
            if all || trial.repetition == 0 {
                trial.outcome = Outcome::Failed { reason: "no space".into() };
                trial.samples.clear();
            }
        }
        run
    };
    let (first, second) = (Made::new(1).make(), Made::new(2).make());
    for all in [false, true] {
        let gate = at_gate(&first, &fail(second.clone(), all), false);
        assert_eq!((gate.verdict, gate.worse, gate.failed[0].tests), (GateVerdict::Failed, 0, 4));
        let gate = at_gate(&fail(first.clone(), all), &fail(second.clone(), all), false);
        assert_eq!((gate.verdict, gate.failed.len()), (GateVerdict::Passed, 0), "as before");
    }
}

#[test]
fn no_total_without_findings_and_one_metric_per_test() {
    let second = Made::new(2).kernel("6.12.3").fact("cpu.model", "other");
    assert_eq!(compared(&Made::new(1), &second, &CompareOptions::default()).0.total, None);
    let further = |seed| {
        let mut run = Made::new(seed).make();
        for trial in &mut run.trials {
            let own = trial.samples[0].clone();
            trial.samples.push(Sample { metric: Metric::OpsRate, ..own });
        }
        run
    };
    let all = CompareOptions { metrics: Metrics::All, ..CompareOptions::default() };
    let paired = pair(&further(1), &further(2), &all).unwrap();
    assert_eq!((paired.tests.len(), paired.total.unwrap().each.len()), (20, 16));
}

/// Twenty-two runs in which xfs writes slower from the twelfth on.
fn many(change: impl Fn(u64, Made) -> Made) -> Vec<RunRecord> {
    let run = |at: u64| {
        let made = Made { records: vec![Bytes::kib(64)], repetitions: 6, ..Made::new(100 + at) };
        let made = if at >= 12 { made.times("xfs", "write", 0.85) } else { made };
        change(at, made).make()
    };
    (0..22).map(run).collect()
}

fn history(runs: &[RunRecord]) -> History {
    let all: Vec<&RunRecord> = runs.iter().collect();
    let result = chain(&all, &CompareOptions::default()).unwrap().histories;
    result.into_iter().find(|h| h.name.contains("xfs") && h.phase == "write").unwrap()
}

#[test]
fn a_change_where_nothing_may_be_claimed_is_doubted() {
    let two = |at, made: Made| match at {
        12.. => made.kernel("6.12").fact("cpu.model", "other"),
        _ => made.fact("cpu.model", "one"),
    };
    let history = history(&many(two));
    assert_eq!(history.changes, []);
    assert_eq!(history.withheld[0].change.at, 12);
    assert!(
        history.withheld[0].reason.contains("kernel,machine"),
        "{}",
        history.withheld[0].reason
    );
}

#[test]
fn a_change_that_untouched_tests_show_as_well_is_doubted() {
    let other = |at, made: Made| {
        let mut made = if at >= 12 { made.times("ext4", "read", 0.9) } else { made };
        made.filesystems[1].mount = if at >= 12 { "noatime".into() } else { String::new() };
        made
    };
    // Another mount option is another cell, so only the facts of the mounted filesystem differ
    // here.
    let mut runs = many(other);
    for run in &mut runs {
        let level = FilesystemLevel::plain("xfs");
        let noatime = run.cells[1].cell.filesystem.mount == "noatime";
        run.cells[1].cell.filesystem = level;
        run.cells[1].id = run.cells[1].cell.id();
        for trial in run.trials.iter_mut().filter(|trial| trial.cell == 1) {
            trial.environment.set("mount.options", if noatime { "rw,noatime" } else { "rw" });
        }
    }
    let result = history(&runs);
    assert_eq!(result.changes, []);
    let cause = &result.withheld[0].reason;
    assert!(cause.contains("a negative control changed"), "{cause}");
}

#[test]
fn a_run_whose_numbers_are_withheld_gives_a_history_no_point() {
    let mut runs = many(|_, made| made);
    let damaged = Warning::ImplausibleResult { what: "faster than memory".into() };
    for trial in runs[3].trials.iter_mut().filter(|trial| trial.cell == 1) {
        trial.warnings.push((Some("write".into()), damaged.clone()));
    }
    let history = history(&runs);
    assert!(!history.runs.contains(&3) && history.medians.len() == 21);
    let at: Vec<usize> = history.changes.iter().map(|change| change.at).collect();
    assert_eq!(at, [12], "result by run, not by point");
}

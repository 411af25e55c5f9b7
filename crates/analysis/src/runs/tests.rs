use std::collections::BTreeMap;

use model::{
    Bytes, Cell, Environment, FilesystemLevel, FillLevel, Nanos, Sample, Scale, Value,
    WorkloadParameters,
    metric::Better,
    phase::Role,
    record::{CellRecord, CellState, Outcome, PhaseInfo, RunInfo, TrialRecord},
};

use super::*;
use crate::{Side, conditions::Severity};

mod gate;
mod guarded;

/// Name, metric, and speed of the simulated tests.
const TESTS: [(&str, Metric, f64); 4] = [
    ("write", Metric::DurableThroughput, 4e8),
    ("read", Metric::Throughput, 2e9),
    ("random-read", Metric::OpsRate, 9e4),
    ("open", Metric::Elapsed, 3e6),
];

/// Parameters of a simulated run.
#[derive(Clone)]
struct Made {
    filesystems: Vec<FilesystemLevel>,
    records: Vec<Bytes>,
    repetitions: u32,
    spread: f64,
    seed: u64,
    aa_duplicates: bool,
    facts: Vec<(&'static str, &'static str)>,
    profile: Profile,
    /// Relative speed of a test on a filesystem.
    factors: Vec<(&'static str, &'static str, f64)>,
}

impl Made {
    fn new(seed: u64) -> Self {
        Self {
            filesystems: vec![FilesystemLevel::plain("ext4"), FilesystemLevel::plain("xfs")],
            records: vec![Bytes::kib(64), Bytes::mib(1)],
            repetitions: 10,
            spread: 0.012,
            seed,
            aa_duplicates: false,
            facts: vec![("kernel.release", "6.1.0")],
            profile: Profile::Standard,
            factors: Vec::new(),
        }
    }

    fn on(names: &[&str], seed: u64) -> Self {
        let filesystems = names.iter().map(|name| FilesystemLevel::plain(*name)).collect();
        Self { filesystems, ..Self::new(seed) }
    }

    fn fact(mut self, name: &'static str, value: &'static str) -> Self {
        self.facts.push((name, value));
        self
    }

    fn kernel(self, release: &'static str) -> Self {
        self.fact("kernel.release", release)
    }

    fn times(mut self, filesystem: &'static str, test: &'static str, factor: f64) -> Self {
        self.factors.push((filesystem, test, factor));
        self
    }

    fn cell(level: &FilesystemLevel, record: Bytes, aa_duplicate: bool) -> CellRecord {
        let parameters = BTreeMap::from([("block_size".to_owned(), Value::Size(record))]);
        let cell = Cell {
            filesystem: level.clone(),
            workload: WorkloadParameters { suite: "iozone".into(), parameters },
            scheduler: None,
            fill_level: FillLevel(0),
            settings: Default::default(),
            options: Default::default(),
            aa_duplicate,
        };
        let phase = |(name, primary, _): (&str, Metric, f64)| PhaseInfo {
            name: name.into(),
            group: "tests".into(),
            role: Role::Measure,
            primary,
            cache: None,
        };
        CellRecord {
            id: cell.id(),
            cell,
            label: format!("iozone record={record}"),
            state: CellState::Done { reason: "converged".into() },
            phases: TESTS.map(phase).to_vec(),
        }
    }

    fn make(&self) -> RunRecord {
        let mut cells = Vec::new();
        for record in &self.records {
            cells.extend(self.filesystems.iter().map(|level| Self::cell(level, *record, false)));
        }
        if self.aa_duplicates {
            cells.push(Self::cell(&self.filesystems[0], self.records[0], true));
        }
        let mut environment = Environment::default();
        self.facts.iter().for_each(|(name, value)| environment.set(*name, *value));
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut trials = Vec::new();
        for repetition in 0..self.repetitions {
            for (index, cell) in cells.iter().enumerate() {
                let samples = TESTS.iter().map(|(name, metric, base)| {
                    let own = self.factors.iter().filter(|(filesystem, test, _)| {
                        test == name && *filesystem == cell.cell.filesystem.name
                    });
                    let good: f64 = own.map(|(.., factor)| factor).product();
                    let lower = metric.spec().better == Better::Lower;
                    let value = if lower { base / good } else { base * good };
                    let draw: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
                    let value = value * (self.spread * draw).exp();
                    Sample { phase: (*name).into(), metric: *metric, worker: None, value }
                });
                trials.push(trial(index, repetition, samples.collect()));
            }
        }
        let info = info(self.seed, self.profile);
        RunRecord { info, environment, cells, trials, warnings: Vec::new() }
    }
}

fn info(seed: u64, profile: Profile) -> RunInfo {
    RunInfo {
        id: format!("run-{seed}"),
        title: "made up".into(),
        plan_name: "plan".into(),
        plan_text: String::new(),
        overrides: Vec::new(),
        scale: Scale::ONE,
        profile,
        repetitions: None,
        seed,
        study: None,
        storage: "image file of 1GiB (full allocation) on a loop device".into(),
        started_unix: Nanos(seed),
        ended_unix: None,
        program: "fslab 0.1.0".into(),
    }
}

fn trial(cell: usize, repetition: u32, samples: Vec<Sample>) -> TrialRecord {
    TrialRecord {
        cell,
        repetition,
        attempt: 0,
        started_unix: Nanos(0),
        elapsed: Nanos(1),
        outcome: Outcome::Measured,
        samples,
        histograms: Vec::new(),
        series: Vec::new(),
        activity: Vec::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        environment: Environment::default(),
        hosts: Vec::new(),
    }
}

fn gated(margin: f64) -> CompareOptions {
    let rule = GateRule { margin: Ratio(margin), strict: false };
    CompareOptions { gate: Some(rule), ..CompareOptions::default() }
}

fn compared(first: &Made, second: &Made, how: &CompareOptions) -> (Paired, Gate) {
    let how = CompareOptions { gate: how.gate.or(gated(0.05).gate), ..how.clone() };
    let mut chain = chain(&[&first.make(), &second.make()], &how).unwrap();
    (chain.steps.remove(0), chain.gate.unwrap())
}

fn own_aspects(paired: &Paired) -> Vec<Aspect> {
    paired.aspects.iter().map(|differs| differs.aspect).collect()
}

/// Significantly different tests, as `filesystem test side`.
fn headlines(paired: &Paired) -> Vec<String> {
    let found = paired.tests.iter().filter_map(|test| Some((test, test.headline()?)));
    let parts = |(test, side): (&TestPair, Side)| {
        let better = if side == Side::Better { "better" } else { "worse" };
        format!("{} {} {} {better}", test.filesystems.1, test.label, test.phase)
    };
    found.map(parts).collect()
}

#[test]
fn kernel_that_slows_one_test_is_detected() {
    let first = Made::new(1);
    let second = Made::new(2).kernel("6.12.3").times("xfs", "write", 0.92);
    let (paired, gate) = compared(&first, &second, &gated(0.03));
    assert_eq!(own_aspects(&paired), [Aspect::Kernel]);
    assert!(paired.obstacles.is_empty() && paired.headlines);
    assert_eq!((paired.tests.len(), paired.family.tests), (16, 16));
    assert_eq!(
        headlines(&paired),
        ["xfs iozone record=64KiB write worse", "xfs iozone record=1MiB write worse"]
    );
    let found: Vec<&TestPair> = paired.tests.iter().filter(|test| test.found).collect();
    assert_eq!(found.len(), 2);
    for test in found {
        let interval = test.interval.unwrap();
        assert!(interval.contains(0.92), "{interval:?}");
        // 1 - 2 · 0.05 / 16.
        assert!((interval.level - 0.99375).abs() < 1e-12, "{}", interval.level);
        let narrow = test.comparison.as_ref().unwrap().interval.unwrap();
        assert!(interval.low <= narrow.low && interval.high >= narrow.high);
    }
    assert_eq!((gate.verdict, gate.worse), (GateVerdict::Failed, 2));
    assert_eq!(paired.tally.worse, 2);
    assert_eq!(paired.tally.better, 0);
    let tally = paired.tally;
    let conclusive = tally.better + tally.worse + tally.equivalent + tally.negligible;
    assert_eq!(conclusive + tally.inconclusive, paired.family.tests);
}

#[test]
fn longer_time_is_a_regression() {
    let second = Made::new(2).kernel("6.12.3").times("ext4", "open", 0.8);
    let (paired, gate) = compared(&Made::new(1), &second, &CompareOptions::default());
    assert!(headlines(&paired).iter().all(|line| line.contains("open worse")));
    assert_eq!(gate.worse, 2);
    let (_, gate) = compared(&second, &Made::new(1), &CompareOptions::default());
    assert_eq!((gate.worse, gate.verdict), (0, GateVerdict::Passed), "better is not worse");
}

#[test]
fn two_aspects_yield_findings_only_if_allowed() {
    let second =
        Made::new(2).kernel("6.12.3").fact("cpu.model", "other").times("xfs", "write", 0.8);
    let (paired, gate) = compared(&Made::new(1), &second, &CompareOptions::default());
    assert_eq!(own_aspects(&paired), [Aspect::Kernel, Aspect::Machine]);
    assert_eq!(
        paired.obstacles,
        [FindingsObstacle::Aspects { aspects: vec![Aspect::Kernel, Aspect::Machine] }]
    );
    assert!(paired.obstacles[0].to_string().contains("(kernel,machine)"));
    assert!(headlines(&paired).is_empty() && paired.tests.iter().all(|test| !test.found));
    let numbers = paired.tests.iter().filter(|test| test.comparison.is_ok()).count();
    assert_eq!(numbers, 16, "numbers are shown without findings");
    assert_eq!((gate.verdict, paired.family.tests), (GateVerdict::NotComparable, 0));

    let one = CompareOptions { allow: vec![Aspect::Kernel], ..CompareOptions::default() };
    assert_eq!(compared(&Made::new(1), &second, &one).1.verdict, GateVerdict::NotComparable);
    let both = CompareOptions {
        allow: vec![Aspect::Machine, Aspect::Kernel],
        ..CompareOptions::default()
    };
    let (paired, gate) = compared(&Made::new(1), &second, &both);
    assert_eq!((headlines(&paired).len(), gate.verdict), (2, GateVerdict::Failed));
}

#[test]
fn other_filesystem_is_the_negative_control_of_changed_options() {
    let mut second = Made::new(2).times("ext4", "write", 1.2);
    second.filesystems[0].mount = "noatime".into();
    let (paired, gate) = compared(&Made::new(1), &second, &CompareOptions::default());
    assert_eq!(own_aspects(&paired), [Aspect::Filesystem]);
    let by = |name: &str| {
        let own = paired.tests.iter().filter(|test| test.filesystems.0 == name);
        own.map(|test| (test.by, test.affected)).collect::<Vec<_>>()
    };
    assert_eq!(by("ext4"), [(PairedBy::Options, true); 8]);
    assert_eq!(by("xfs"), [(PairedBy::Identity, false); 8]);
    let negative_controls = paired.negative_controls.tests.as_ref().unwrap();
    assert_eq!(negative_controls.tests, 8);
    assert!((negative_controls.ratio.0 - 1.0).abs() < 0.01, "{negative_controls:?}");
    assert_eq!((paired.family.tests, gate.verdict), (8, GateVerdict::Passed));
    assert_eq!(headlines(&paired).len(), 2);
}

#[test]
fn changed_negative_controls_withhold_all_findings() {
    let mut second = Made::new(2).times("ext4", "write", 0.7);
    for (test, ..) in TESTS {
        second = second.times("xfs", test, 0.9);
    }
    second.filesystems[0].mount = "noatime".into();
    let (paired, gate) = compared(&Made::new(1), &second, &CompareOptions::default());
    assert!(
        matches!(paired.obstacles[..], [FindingsObstacle::NegativeControlsChanged { .. }]),
        "{:?}",
        paired.obstacles
    );
    assert!(paired.obstacles[0].to_string().contains("×0.9"), "{}", paired.obstacles[0]);
    assert!(headlines(&paired).is_empty());
    assert_eq!(gate.verdict, GateVerdict::Inconclusive);
}

#[test]
fn filesystems_are_paired_by_name_or_if_each_run_has_one() {
    let (first, second) = (Made::on(&["ext4"], 1), Made::on(&["xfs"], 2));
    let (paired, _) =
        compared(&first, &second.times("xfs", "read", 1.3), &CompareOptions::default());
    assert_eq!(own_aspects(&paired), [Aspect::Filesystem]);
    let lead = &paired.aspects[0].differences[0];
    assert_eq!((lead.severity, &*lead.what), (Severity::Severe, "filesystem"));
    assert_eq!((lead.first.as_deref(), lead.second.as_deref()), (Some("ext4"), Some("xfs")));
    assert!(paired.tests.iter().all(|test| test.by == PairedBy::Workload && test.affected));
    assert_eq!(headlines(&paired).len(), 2);

    let rename = vec![("ext4".to_owned(), "xfs".to_owned())];
    let how = CompareOptions { rename, ..CompareOptions::default() };
    let (paired, _) = compared(&Made::new(1), &Made::new(2), &how);
    assert!(paired.tests.iter().all(|test| test.filesystems == ("ext4".into(), "xfs".into())));
    let cause: Vec<&UnpairedReason> =
        paired.only_first.iter().map(|unpaired| &unpaired.reason).collect();
    assert_eq!(cause, [&UnpairedReason::Taken; 2]);
    assert_eq!(paired.only_second.len(), 2);

    let rename = vec![("ext4".to_owned(), "zfs".to_owned())];
    let how = CompareOptions { rename, ..CompareOptions::default() };
    let refused = pair(&Made::new(1).make(), &Made::new(2).make(), &how).unwrap_err();
    assert_eq!(refused.to_string(), "the second run has no filesystem `zfs`; use one of ext4, xfs");
}

#[test]
fn unpaired_cells_are_reported_with_the_reason() {
    let mut first = Made::on(&["ext4", "btrfs", "f2fs"], 1);
    first.aa_duplicates = true;
    let mut second = Made::new(2);
    second.records = vec![Bytes::mib(1), Bytes::mib(4)];
    let mut second = second.make();
    second.cells[0].cell.scheduler = Some("bfq".into());
    second.cells[0].id = second.cells[0].cell.id();
    let paired = pair(&first.make(), &second, &CompareOptions::default()).unwrap();
    let text = |unpaired: &[Unpaired]| {
        unpaired
            .iter()
            .map(|unpaired| format!("{}: {}", unpaired.name, unpaired.reason))
            .collect::<Vec<_>>()
    };
    assert!(paired.tests.is_empty());
    let text = [text(&paired.only_first), text(&paired.only_second)].concat().join("\n");
    expect_test::expect![[r#"
        ext4 · iozone record=64KiB: the other run does not have this workload on the filesystem
        btrfs · iozone record=64KiB: the other run has no btrfs
        f2fs · iozone record=64KiB: the other run has no f2fs
        ext4 · iozone record=1MiB: the other run has the workload under other conditions: scheduler
        btrfs · iozone record=1MiB: the other run has no btrfs
        f2fs · iozone record=1MiB: the other run has no f2fs
        ext4 · iozone record=64KiB: A/A duplicate, compared with its original only
        ext4 · iozone record=1MiB: the other run has the workload under other conditions: scheduler
        xfs · iozone record=1MiB: the other run has no xfs
        ext4 · iozone record=4MiB: the other run does not have this workload on the filesystem
        xfs · iozone record=4MiB: the other run has no xfs"#]]
    .assert_eq(&text);
}

/// Twenty pairs of equal runs: at a family-wise error of 5 % the gate may fail at most this often.
#[test]
fn repeated_runs_rarely_differ() {
    let (mut failed, mut with_findings, mut strict) = (0, 0, 0);
    for seed in 0..20 {
        let (first, second) = (Made::new(1000 + seed), Made::new(2000 + seed));
        let (paired, gate) = compared(&first, &second, &CompareOptions::default());
        assert!(own_aspects(&paired).is_empty() && paired.obstacles.is_empty());
        assert!(paired.negative_controls.tests.is_none(), "every test is compared");
        failed += u32::from(gate.verdict == GateVerdict::Failed);
        with_findings += u32::from(!headlines(&paired).is_empty());
        let rule = GateRule { margin: Ratio(0.05), strict: true };
        let how = CompareOptions { gate: Some(rule), ..CompareOptions::default() };
        let verdict = compared(&first, &second, &how).1.verdict;
        strict += u32::from(verdict == GateVerdict::Passed);
    }
    assert_eq!(failed, 0, "no difference is near 5 %");
    assert!(with_findings <= 3, "{with_findings} of 20");
    assert!(
        strict >= 18,
        "{strict} of 20: with a spread of 1.2 %, tests are non-inferior within 5 %"
    );
}

#[test]
fn unsuitable_numbers_are_withheld_with_the_reason() {
    let first = Made::new(1).make();
    let mut second = Made::new(2).kernel("6.12.3").make();
    let damaged = Warning::ImplausibleResult { what: "faster than memory".into() };
    let cell = second.trials.iter().position(|trial| trial.cell == 0).unwrap();
    second.trials[cell].warnings.push((Some("read".into()), damaged));
    let other = second.trials.iter().position(|trial| trial.cell == 1).unwrap();
    second.trials[other].outcome = Outcome::Failed { reason: "no space".into() };
    let third = second.trials.iter().position(|trial| trial.cell == 2).unwrap();
    second.trials[third].outcome = Outcome::Invalid { reason: "throttled".into() };
    second.cells[3].phases[0].primary = Metric::Throughput;
    let chain = chain(&[&first, &second], &gated(0.05)).unwrap();
    let (paired, gate) = (&chain.steps[0], chain.gate.as_ref().unwrap());
    let withheld: Vec<(usize, &str, String)> = paired
        .tests
        .iter()
        .filter_map(|test| {
            Some((test.second, test.phase.as_str(), test.comparison.as_ref().err()?.to_string()))
        })
        .collect();
    let text: Vec<String> =
        withheld.iter().map(|(cell, phase, cause)| format!("{cell} {phase}: {cause}")).collect();
    expect_test::expect![[r#"
        0 read: the second run has the warning implausible-result: implausibly fast: faster than memory
        1 write: 1 of 10 repetitions failed in the second run
        1 read: 1 of 10 repetitions failed in the second run
        1 random-read: 1 of 10 repetitions failed in the second run
        1 open: 1 of 10 repetitions failed in the second run
        3 write: the tests differ: primary metrics"#]]
    .assert_eq(&text.join("\n"));
    assert_eq!(paired.family.tests, 10);
    assert_eq!(
        gate.worse + gate.non_inferior + gate.inconclusive,
        12,
        "withheld tests are inconclusive"
    );
    assert_eq!((gate.failed.len(), gate.failed[0].tests, gate.missing.len()), (1, 4, 0));
    assert_eq!(gate.verdict, GateVerdict::Failed, "new failures count as worse");
    let nine = paired.tests.iter().find(|test| test.second == 2).unwrap();
    assert_eq!(nine.comparison.as_ref().unwrap().n_second, 9, "an invalid trial does not count");
}

#[test]
fn imports_and_identical_runs_yield_no_findings() {
    let first = Made::new(1).make();
    let mut second = Made::new(2).times("xfs", "write", 0.5).make();
    second.warnings.push(Warning::Imported { program: "bonnie++ 1.98".into() });
    let gate = |how: &CompareOptions| chain(&[&first, &second], how).unwrap().gate.unwrap();
    let refused = gate(&gated(0.05));
    assert_eq!(refused.verdict, GateVerdict::Inconclusive, "unknown conditions may be the same");
    assert!(matches!(refused.obstacles[..], [FindingsObstacle::Imported { .. }]));
    let allowed = gate(&CompareOptions { allow: vec![Aspect::Unknown], ..gated(0.05) });
    assert_eq!((allowed.verdict, allowed.obstacles.len()), (GateVerdict::Failed, 0));
    let same = CompareError::Same { id: "run-1".into() };
    assert_eq!(pair(&first, &first, &CompareOptions::default()).unwrap_err(), same);
    let rename = vec![("ext4".to_owned(), "xfs".to_owned())];
    let how = CompareOptions { rename, ..CompareOptions::default() };
    let paired = pair(&first, &first, &how).unwrap();
    assert!(paired.obstacles.is_empty(), "two filesystems of one run: {:?}", paired.obstacles);
}

#[test]
fn conditions_that_an_imported_run_lacks_are_unknown() {
    let first = Made::new(1).make();
    let mut second = Made::new(2).times("xfs", "write", 0.5).make();
    second.environment = model::Environment::default();
    for trial in &mut second.trials {
        trial.environment = model::Environment::default();
    }
    let aspects = |second: &RunRecord| -> Vec<Aspect> {
        let paired = pair(&first, second, &CompareOptions::default()).unwrap();
        paired.aspects.iter().map(|own| own.aspect).collect()
    };
    assert!(!aspects(&second).contains(&Aspect::Unknown), "measured, not imported");
    assert!(!aspects(&second).is_empty());
    second.warnings.push(Warning::Imported { program: "fio-3.33".into() });
    assert_eq!(aspects(&second), [Aspect::Unknown]);
    let how = CompareOptions { allow: vec![Aspect::Unknown], ..CompareOptions::default() };
    let paired = pair(&first, &second, &how).unwrap();
    assert!(paired.imported && paired.obstacles.is_empty(), "{:?}", paired.obstacles);
    assert!(paired.tally.worse > 0);
}

/// Run whose A/A duplicate is this many times as good.
fn apart(seed: u64, factor: f64) -> RunRecord {
    let mut run = Made { aa_duplicates: true, ..Made::new(seed) }.make();
    let aa_duplicate = run.cells.iter().position(|record| record.cell.aa_duplicate).unwrap();
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == aa_duplicate) {
        for sample in &mut trial.samples {
            let lower = sample.metric.spec().better == Better::Lower;
            sample.value *= if lower { 1.0 / factor } else { factor };
        }
    }
    run
}

#[test]
fn invalid_pairs_and_metrics_are_rejected() {
    let (first, second) = (Made::new(1).make(), Made::new(2).make());
    let to = |name: &str| ("ext4".to_owned(), name.to_owned());
    let how = CompareOptions { rename: vec![to("xfs"), to("ext4")], ..CompareOptions::default() };
    let twice = CompareError::PairedTwice { name: "ext4".into(), which: Which::First };
    assert_eq!(pair(&first, &second, &how).unwrap_err(), twice);
    let how = CompareOptions { rename: vec![to("xfs")], ..CompareOptions::default() };
    assert_eq!(pair(&first, &second, &how).unwrap().conditions.shared, Vec::<String>::new());
    let how =
        CompareOptions { metrics: Metrics::One(Metric::LatencyP99), ..CompareOptions::default() };
    let refused = pair(&first, &second, &how).unwrap_err();
    assert_eq!(refused, CompareError::NoValues(Metric::LatencyP99));
}

#[test]
fn aa_duplicates_only_raise_the_margin() {
    let noisy =
        |seed| Made { aa_duplicates: true, spread: 0.15, repetitions: 8, ..Made::new(seed) };
    let paired = compared(&noisy(1), &noisy(2), &CompareOptions::default()).0;
    assert_eq!(
        paired.effective_margin, paired.margin,
        "noise within chance does not raise the margin"
    );
    let (first, second) = (apart(1, 1.11), Made::new(2).times("ext4", "write", 0.98));
    let paired = pair(&first, &second.make(), &CompareOptions::default()).unwrap();
    assert_eq!(paired.noise.unwrap().pairs, 4);
    assert!(paired.effective_margin.0 > 0.08, "{:?}", paired.effective_margin);
    assert_eq!((paired.tests.len(), paired.margin), (16, Ratio(0.05)));
    assert_eq!(paired.only_first[0].reason, UnpairedReason::AaDuplicate);
}

#[test]
fn margin_is_that_of_the_less_precise_run() {
    let quick = Made { profile: Profile::Quick, ..Made::new(2) };
    let (paired, _) = compared(&Made::new(1), &quick, &CompareOptions::default());
    assert_eq!((paired.margin, paired.family.q), (Ratio(0.10), 0.10));
    assert!(!paired.headlines);
    let own = CompareOptions { margin: Some(Ratio(0.01)), ..CompareOptions::default() };
    assert_eq!(compared(&Made::new(1), &quick, &own).0.margin, Ratio(0.01));
}

#[test]
fn other_metrics_can_be_compared() {
    let with = |metrics| CompareOptions { metrics, ..CompareOptions::default() };
    let (paired, _) = compared(&Made::new(1), &Made::new(2), &with(Metrics::One(Metric::Elapsed)));
    let ok: Vec<&str> = paired
        .tests
        .iter()
        .filter(|test| test.comparison.is_ok())
        .map(|test| test.phase.as_str())
        .collect();
    assert_eq!(ok, ["open"; 4]);
    let (paired, _) = compared(&Made::new(1), &Made::new(2), &with(Metrics::All));
    assert_eq!(paired.tests.len(), 16);
}

#[test]
fn all_steps_of_a_chain_are_one_family() {
    let runs = [
        Made::new(1).make(),
        Made::new(2).kernel("6.6").make(),
        Made::new(3).kernel("6.12").times("ext4", "read", 0.8).make(),
    ];
    let all: Vec<&RunRecord> = runs.iter().collect();
    let result = chain(&all, &gated(0.05)).unwrap();
    assert_eq!(result.steps.len(), 2);
    assert!(result.steps.iter().all(|step| step.family.tests == 32));
    assert!(headlines(&result.steps[0]).is_empty());
    assert_eq!(headlines(&result.steps[1]).len(), 2);
    assert_eq!(result.gate.unwrap().worse, 2);
    assert!(result.histories.is_empty());
    assert_eq!(chain(&all[..1], &CompareOptions::default()).unwrap_err(), CompareError::One);
}

#[test]
fn twenty_runs_have_a_history() {
    let run = |at: u64| {
        let made = Made { records: vec![Bytes::kib(64)], repetitions: 6, ..Made::new(100 + at) };
        let made = if at >= 12 { made.times("xfs", "write", 0.85) } else { made };
        made.make()
    };
    let runs: Vec<RunRecord> = (0..20).map(run).collect();
    let all: Vec<&RunRecord> = runs.iter().collect();
    let result = chain(&all, &CompareOptions::default()).unwrap();
    assert_eq!(result.histories.len(), 8);
    for history in &result.histories {
        let at: Vec<usize> = history.changes.iter().map(|change| change.at).collect();
        let expected: &[usize] =
            if history.name.contains("xfs") && history.phase == "write" { &[12] } else { &[] };
        assert_eq!(at, expected, "{} {}", history.name, history.phase);
        assert_eq!(history.medians.len(), 20);
    }
}

#[test]
fn invalid_numbers_are_withheld_without_panic() {
    for value in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        let mut second = Made::new(2).make();
        second.trials[0].samples[0].value = value;
        let paired = pair(&Made::new(1).make(), &second, &CompareOptions::default()).unwrap();
        let withheld = paired.tests.iter().filter(|test| test.comparison.is_err()).count();
        assert_eq!(withheld, 1, "{value}");
    }
    let mut empty = Made::new(3).make();
    empty.trials.clear();
    assert!(chain(&[&empty, &empty.clone()], &gated(0.05)).is_err(), "it is the same run");
    let mut none = Made::new(4).make();
    none.cells.clear();
    none.trials.clear();
    let result = chain(&[&empty, &none], &gated(0.05)).unwrap();
    assert_eq!(result.gate.unwrap().verdict, GateVerdict::NotComparable, "nothing is paired");
}

#[test]
fn machine_benchmarks_are_reported() {
    let rate = |seed, rate| Made::new(seed).fact("generator.memory_copy_bytes_per_second", rate);
    let (paired, _) =
        compared(&rate(1, "10000000000"), &rate(2, "8000000000"), &CompareOptions::default());
    let [fact] = &paired.negative_controls.machine[..] else {
        panic!("{:?}", paired.negative_controls)
    };
    assert!(fact.differs && (fact.second / fact.first - 0.8).abs() < 1e-12);
    assert!(paired.obstacles.is_empty(), "one value per run supports no findings");
}

//! Stopping rule and findings on simulated filesystems: known rates, drift, invalid trials, and
//! failures pass through the runner, the store, and the report.

use std::{cell::RefCell, collections::BTreeMap, path::PathBuf};

use model::{
    Bytes, Cell, FilesystemLevel, FillLevel, Metric, Sample, Scale, SystemActivity, Value,
    WorkloadParameters,
    activity::{CpuActivity, HostCpu},
    phase::Role,
    record::{PhaseInfo, RunInfo},
};
use report::{TerminalOptions, View};

use super::*;

/// Recorded duration of each trial.
const TRIAL: Nanos = Nanos(10_000_000_000);

/// Simulated machine.
#[derive(Clone)]
struct Machine {
    /// Mean rate of each filesystem in bytes per second, and its spread between trials.
    rates: Vec<(&'static str, f64, f64)>,
    /// Relative drift of all rates per trial.
    drift: f64,
    /// Trials disturbed by the hypervisor, by their order; their rates halve.
    disturbed: fn(u32) -> bool,
    /// Filesystem that fails at its third repetition.
    fails: Option<&'static str>,
    /// Trials without a sample of the primary metric, by their order.
    silent: fn(u32) -> bool,
    /// Trial before which a signal arrives, by its order.
    cut: Option<u32>,
    /// Number of trials run.
    made: u32,
    random: fastrand::Rng,
}

impl Machine {
    fn new(rates: &[(&'static str, f64, f64)], seed: u64) -> Self {
        Self {
            rates: rates.to_vec(),
            drift: 0.0,
            disturbed: |_| false,
            fails: None,
            silent: |_| false,
            cut: None,
            made: 0,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Approximately normal with mean 0 and variance 1: the sum of twelve draws.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0
    }
}

impl Trials for Machine {
    fn describe(&self) -> String {
        "a simulated device".into()
    }

    fn measure(&mut self, cell: &Cell, index: usize, repetition: u32) -> Option<TrialRecord> {
        if self.cut == Some(self.made) {
            return None;
        }
        let name = cell.filesystem.name.as_str();
        let (_, rate, spread) = *self.rates.iter().find(|(known, ..)| *known == name).unwrap();
        let disturbed = (self.disturbed)(self.made);
        let metric = match (self.silent)(self.made) {
            true => Metric::Throughput,
            false => Metric::DurableThroughput,
        };
        let moved = 1.0 + self.drift * f64::from(self.made);
        let value =
            rate * (spread * self.normal()).exp() * moved * if disturbed { 0.5 } else { 1.0 };
        self.made += 1;
        let steal = Nanos(if disturbed { 500_000_000 } else { 0 });
        let host = HostCpu { processors: 2, steal, ..HostCpu::default() };
        let cpu = Some(CpuActivity { host, ..CpuActivity::default() });
        let activity =
            SystemActivity { window: Nanos(5_000_000_000), cpu, ..SystemActivity::default() };
        let failed = self.fails == Some(name) && repetition == 2;
        Some(TrialRecord {
            cell: index,
            repetition,
            attempt: 0,
            started_unix: Nanos(u64::from(self.made) * TRIAL.0),
            elapsed: TRIAL,
            outcome: match failed {
                true => Outcome::Failed { reason: "write: No space left on device".into() },
                false => Outcome::Measured,
            },
            samples: vec![Sample { phase: "write".into(), metric, worker: None, value }],
            histograms: Vec::new(),
            series: Vec::new(),
            activity: vec![("write".into(), activity)],
            warnings: Vec::new(),
            actions: Vec::new(),
            environment: Environment::default(),
            hosts: Vec::new(),
        })
    }

    fn reboot_required(&self) -> bool {
        false
    }

    fn close(self) -> anyhow::Result<()> {
        Ok(())
    }
}

fn cell(filesystem: &str, aa_duplicate: bool) -> CellRecord {
    let parameters = BTreeMap::from([("block_size".to_owned(), Value::Size(Bytes::mib(1)))]);
    let cell = Cell {
        filesystem: FilesystemLevel::plain(filesystem),
        workload: WorkloadParameters { suite: "iozone".into(), parameters },
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate,
    };
    let phases = vec![PhaseInfo {
        name: "write".into(),
        group: "writing".into(),
        role: Role::Measure,
        primary: Metric::DurableThroughput,
        cache: None,
    }];
    CellRecord { id: cell.id(), cell, label: "iozone".into(), state: CellState::Open, phases }
}

fn settings() -> Settings {
    Settings {
        profile: Profile::Standard,
        repetitions: None,
        seed: 7,
        time_limit: None,
        invalid_trials: InvalidTrials::Rerun,
        own_devices: true,
        pilot: false,
        fail_fast: false,
    }
}

/// Run file with a simulated run.
struct Bench {
    directory: tempfile::TempDir,
    trials: RefCell<Vec<String>>,
    forecast: RefCell<Option<events::Forecast>>,
    /// Stored trials and estimates of the rest, in order.
    estimates: RefCell<Vec<(usize, events::Remaining)>>,
}

impl Bench {
    /// Run of these filesystems, the first with an A/A duplicate.
    fn new(filesystems: &[&str]) -> Self {
        let mut cells: Vec<CellRecord> = filesystems.iter().map(|name| cell(name, false)).collect();
        cells.push(cell(filesystems[0], true));
        Self::of(&cells)
    }

    /// Run of these cells.
    fn of(cells: &[CellRecord]) -> Self {
        let bench = Self {
            directory: tempfile::tempdir().unwrap(),
            trials: RefCell::default(),
            forecast: RefCell::default(),
            estimates: RefCell::default(),
        };
        let info = RunInfo {
            id: "20260101t000000-abcd".into(),
            title: "simulated".into(),
            plan_name: "simulated".into(),
            plan_text: String::new(),
            overrides: Vec::new(),
            scale: Scale::ONE,
            profile: Profile::Standard,
            repetitions: None,
            seed: 7,
            study: None,
            storage: "a simulated device".into(),
            started_unix: Nanos(1),
            ended_unix: None,
            program: "fslab".into(),
        };
        let path = bench.path();
        drop(Store::create(&path, &info, cells, &Environment::default(), &[]).unwrap());
        bench
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("run.fslab")
    }

    /// Continues the run until it ends or is interrupted.
    fn run(&self, machine: Machine, settings: Settings) -> RunSummary {
        let (store, record) = Store::resume(&self.path()).unwrap();
        let notify = |event: &Event<'_>| {
            if let Event::TrialStarted { filesystem, aa_duplicate, repetition, .. } = event {
                let aa_duplicate = if *aa_duplicate { "'" } else { "" };
                self.trials.borrow_mut().push(format!("{filesystem}{aa_duplicate} {repetition}"));
            }
            if let Event::Forecast(forecast) = event {
                *self.forecast.borrow_mut() = Some(forecast.clone());
            }
            if let Event::Progress(run) = event {
                self.estimates.borrow_mut().push((run.done, run.remaining));
            }
        };
        let (progress, interrupt) = (Progress::default(), AtomicBool::new(false));
        let observer = RunObserver { notify: &notify, progress: &progress, interrupt: &interrupt };
        Runner::new(machine, store, record, settings, observer).run().unwrap()
    }

    fn record(&self) -> RunRecord {
        store::read(&self.path()).unwrap()
    }

    /// Number of measured trials of each cell, in the order of cells.
    fn measured(&self) -> Vec<usize> {
        let record = self.record();
        let of = |cell| {
            let own = record.trials.iter().filter(move |trial| trial.cell == cell);
            own.filter(|trial| trial.outcome == Outcome::Measured).count()
        };
        (0..record.cells.len()).map(of).collect()
    }

    fn rule(&self, cell: usize) -> String {
        let state = self.record().cells[cell].state.clone();
        let CellState::Done { reason: rule } = state else { panic!("cell {cell} is {state:?}") };
        rule
    }

    fn report(&self) -> String {
        let options = TerminalOptions { width: 200, color: false, detail: true };
        report::terminal(&View::new(&self.record()), &options)
    }
}

#[test]
fn the_reference_cell_and_its_duplicate_stay_open_with_the_last_cell() {
    let bench = Bench::new(&["ext4", "xfs", "btrfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005), ("btrfs", 1e8, 0.2)];
    let tally = bench.run(Machine::new(&rates, 1), settings());
    assert_eq!(bench.measured(), [30, 8, 30, 30], "btrfs reaches the limit");
    assert_eq!((tally.done, tally.invalid), (4, 0));
    assert!(bench.rule(0).ends_with("kept open as reference cell"));
    assert!(bench.rule(0).starts_with("c"), "its own reason comes first: {}", bench.rule(0));
    assert!(bench.rule(1).starts_with("converged: after 8 repetitions"));
    assert!(bench.rule(3).starts_with("A/A duplicate: "));
    // The A/A duplicate has a random position in each round like any other cell.
    let trials = bench.trials.borrow();
    let places: BTreeSet<usize> = (0..8)
        .map(|block| {
            let of_block = trials.iter().filter(|line| line.ends_with(&format!(" {block}")));
            of_block.clone().position(|line| line.starts_with("ext4'")).unwrap()
        })
        .collect();
    assert!(places.len() > 1, "{trials:?}");
}

#[test]
fn cells_of_workloads_that_run_together_close_together() {
    let cell = |only: &str| {
        let mut record = cell("ext4", false);
        record.cell.workload.suite = "together".into();
        record.cell.workload.parameters.insert("only".into(), Value::Text(only.into()));
        CellRecord { id: record.cell.id(), ..record }
    };
    let cells = [cell(""), cell("log")];
    assert_eq!(stopping::partners(&cells), [[0, 1]]);
    let mut counts = BTreeSet::new();
    for seed in 0..6 {
        let bench = Bench::of(&cells);
        let tally = bench.run(Machine::new(&[("ext4", 1e8, 0.03)], seed), settings());
        assert_eq!(tally.done, 2);
        let measured = bench.measured();
        assert_eq!(measured[0], measured[1], "seed {seed}");
        counts.insert(measured[0]);
    }
    assert!(counts.len() > 1, "the numbers of repetitions depend on the values: {counts:?}");
}

#[test]
fn a_phase_without_samples_does_not_keep_a_run_open() {
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    // A signal ends the test if the run does not end.
    let silent = |silent| Machine { silent, cut: Some(200), ..Machine::new(&rates, 17) };
    for (repetitions, made, rule) in [
        (Some(2), 2, "fixed: 2 repetitions; write: no sample"),
        (None, 30, "limit: 30 repetitions, the maximum of profile standard; write: no sample"),
    ] {
        let bench = Bench::new(&["ext4", "xfs"]);
        let tally = bench.run(silent(|_| true), Settings { repetitions, ..settings() });
        assert!(!tally.interrupted && tally.done == 3);
        assert_eq!(bench.measured(), [made; 3]);
        assert_eq!(tally.measured, 3 * made);
        assert_eq!(bench.rule(1), rule);
        bench.report();
    }
    // Three trials per round; the second round gives no sample.
    let bench = Bench::new(&["ext4", "xfs"]);
    let machine = silent(|made| (3..6).contains(&made));
    let tally = bench.run(machine, Settings { repetitions: Some(6), ..settings() });
    assert!(!tally.interrupted);
    assert_eq!(bench.measured(), [6; 3]);
    let rule = "fixed: 6 repetitions; write: 5 samples in 6 trials";
    assert_eq!(bench.rule(1), rule);
    // Cells with trials are not skipped when the time limit is reached.
    let bench = Bench::new(&["ext4", "xfs"]);
    let time_limit = Some(Nanos(TRIAL.0 * 7));
    let tally = bench.run(silent(|_| true), Settings { time_limit, ..settings() });
    assert_eq!((tally.done, tally.skipped), (3, 0));
}

#[test]
fn a_duplicate_never_keeps_its_original_open() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    bench.run(Machine::new(&rates, 2), settings());
    assert_eq!(bench.measured(), [8, 8, 8]);
}

#[test]
fn true_differences_are_found_and_false_ones_are_not() {
    let bench = Bench::new(&["ext4", "xfs", "btrfs"]);
    let rates = [("ext4", 1e8, 0.01), ("xfs", 1.3e8, 0.01), ("btrfs", 1e8, 0.01)];
    bench.run(Machine::new(&rates, 3), settings());
    let report = bench.report();
    let found = "xfs was the fastest of 3 filesystems on write, iozone: ";
    assert!(report.contains(found) && report.matches("was the fastest").count() == 1, "{report}");
    assert!(
        !report.contains("many-invalid-trials") && !report.contains("time-limit-reached"),
        "{report}"
    );
}

#[test]
fn equal_filesystems_have_no_fastest_one() {
    for seed in 0..10 {
        let bench = Bench::new(&["ext4", "xfs", "btrfs"]);
        let rates = [("ext4", 1e8, 0.02), ("xfs", 1e8, 0.02), ("btrfs", 1e8, 0.02)];
        bench.run(Machine { drift: 0.002, ..Machine::new(&rates, seed) }, settings());
        let report = bench.report();
        assert!(!report.contains("was the fastest"), "seed {seed}:\n{report}");
    }
}

#[test]
fn invalid_trials_are_rerun_at_the_end_of_their_round() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    let machine = Machine { disturbed: |made| made == 4, ..Machine::new(&rates, 5) };
    let tally = bench.run(machine, settings());
    assert_eq!(tally.invalid, 1);
    assert_eq!(bench.measured(), [8, 8, 8]);
    let record = bench.record();
    let invalid = &record.trials[4];
    assert!(matches!(&invalid.outcome, Outcome::Invalid { reason }
        if reason == "the hypervisor stole 5.0 % of the CPU time in write"));
    assert_eq!((invalid.repetition, invalid.attempt), (1, 0));
    // Each round has three trials; the second starts at 3 and has a fourth one.
    let again = &record.trials[6];
    assert_eq!((again.cell, again.repetition, again.attempt), (invalid.cell, 1, 1));
    assert_eq!(again.outcome, Outcome::Measured);
    let block: Vec<u32> = record.trials[3..7].iter().map(|trial| trial.repetition).collect();
    assert_eq!(block, [1, 1, 1, 1]);
}

#[test]
fn a_run_with_invalid_trials_only_ends_without_findings() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 2e8, 0.005)];
    let machine = Machine { disturbed: |_| true, ..Machine::new(&rates, 6) };
    let tally = bench.run(machine, settings());
    assert_eq!(bench.measured(), [8, 8, 8]);
    assert_eq!(tally.invalid, 9, "three reruns of each cell");
    let record = bench.record();
    let has_warning = |trial: &&TrialRecord| {
        trial.warnings.contains(&(None, Warning::ManyInvalidTrials { invalid: 11, of: 11 }))
    };
    assert_eq!(record.trials.iter().filter(has_warning).count(), 3, "the last of each cell");
    let report = bench.report();
    assert!(report.contains("many-invalid-trials"), "{report}");
    assert!(!report.contains("was the fastest"), "{report}");
}

#[test]
fn occasional_invalid_trials_do_not_affect_results() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.01), ("xfs", 1.2e8, 0.01)];
    let machine = Machine { disturbed: |made| made % 9 == 4, ..Machine::new(&rates, 16) };
    let tally = bench.run(machine, settings());
    assert!(tally.invalid > 1 && bench.measured() == [8, 8, 8]);
    let record = bench.record();
    let measured = record.trials.iter().filter(|trial| trial.outcome == Outcome::Measured);
    assert!(measured.flat_map(|trial| &trial.samples).all(|sample| sample.value > 0.9e8));
    let report = bench.report();
    assert!(report.contains("xfs was the fastest of 2 filesystems on write, iozone: "), "{report}");
}

#[test]
fn a_plan_may_keep_invalid_trials() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    let machine = Machine { disturbed: |_| true, ..Machine::new(&rates, 6) };
    let tally = bench.run(machine, Settings { invalid_trials: InvalidTrials::Keep, ..settings() });
    assert_eq!((tally.invalid, bench.measured()), (0, vec![8, 8, 8]));
}

#[test]
fn a_run_interrupted_before_a_rerun_resumes_with_it() {
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    let disturbed = |made| made == 4;
    // The signal arrives at each position of the round with the invalid trial, and after it.
    for cut in 3..9 {
        let bench = Bench::new(&["ext4", "xfs"]);
        let first = Machine { disturbed, cut: Some(cut), ..Machine::new(&rates, 8) };
        assert!(bench.run(first, settings()).interrupted);
        assert_eq!(bench.record().trials.len(), cut as usize);
        let rest = Machine { disturbed, made: cut, ..Machine::new(&rates, 9) };
        assert!(!bench.run(rest, settings()).interrupted);
        let record = bench.record();
        let mut made: Vec<_> =
            record.trials.iter().map(|it| (it.cell, it.repetition, it.attempt)).collect();
        assert_eq!(made.len(), 25, "interrupted at {cut}");
        assert_eq!(made.iter().filter(|(.., attempt)| *attempt == 1).count(), 1);
        made.sort_unstable();
        made.dedup();
        assert_eq!(made.len(), 25);
        assert_eq!(bench.measured(), [8, 8, 8], "interrupted at {cut}");
    }
}

#[test]
fn the_time_limit_closes_cells_with_their_data() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.2), ("xfs", 1e8, 0.005)];
    // Time for ten trials of 10 s, and for half of another one.
    let time_limit = Some(Nanos(TRIAL.0 * 21 / 2));
    let tally = bench.run(Machine::new(&rates, 10), Settings { time_limit, ..settings() });
    let record = bench.record();
    assert_eq!(record.trials.len(), 10, "three rounds of three, and one more");
    assert!(record.info.ended_unix.is_some() && tally.done == 3);
    assert!(bench.rule(0).starts_with("time limit: "), "{}", bench.rule(0));
    assert!(bench.rule(2).starts_with("A/A duplicate: "));
    let over = |trial: &TrialRecord| {
        trial.warnings.contains(&(Some("write".into()), Warning::TimeLimitReached))
    };
    for cell in [0, 1] {
        let last = record.trials.iter().rfind(|trial| trial.cell == cell).unwrap();
        assert!(over(last), "cell {cell} has too few repetitions");
    }
    assert_eq!(record.trials.iter().filter(|trial| over(trial)).count(), 2);
    // Earlier trials count in a resumed run.
    let bench = Bench::new(&["ext4", "xfs"]);
    let cut = Machine { cut: Some(7), ..Machine::new(&rates, 10) };
    bench.run(cut, Settings { time_limit, ..settings() });
    bench.run(Machine::new(&rates, 11), Settings { time_limit, ..settings() });
    assert_eq!(bench.record().trials.len(), 10);
}

#[test]
fn a_cell_without_trials_at_the_time_limit_is_skipped() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.2), ("xfs", 1e8, 0.005)];
    let time_limit = Some(Nanos(1));
    let tally = bench.run(Machine::new(&rates, 12), Settings { time_limit, ..settings() });
    assert_eq!(bench.record().trials.len(), 1, "the duration of a trial is unknown before");
    assert_eq!((tally.done, tally.skipped), (1, 2));
}

#[test]
fn a_pilot_ends_with_a_forecast_and_counts() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.01), ("xfs", 1e8, 0.01)];
    let tally = bench.run(Machine::new(&rates, 13), Settings { pilot: true, ..settings() });
    assert!(tally.pilot && !tally.interrupted);
    assert_eq!(bench.measured(), [2, 2, 2]);
    let forecast = bench.forecast.take().unwrap();
    assert_eq!((forecast.least, forecast.most), (24, 90));
    assert!((24..=90).contains(&forecast.expected));
    assert_eq!(forecast.time, Nanos((forecast.expected as u64 - 6) * TRIAL.0));
    assert_eq!(forecast.cells.len(), 2, "A/A duplicates are not evaluated");
    let detectable = forecast.detectable.unwrap();
    assert!(detectable.median.0 > 0.0 && detectable.median <= detectable.worst);
    assert!(detectable.at.ends_with(" · iozone · write"), "{}", detectable.at);
    let tally = bench.run(Machine::new(&rates, 14), settings());
    assert!(!tally.pilot && tally.done == 3);
    assert!(bench.measured().iter().all(|measured| *measured >= 8));
    assert!(bench.forecast.take().is_some(), "a resumed run repeats the forecast");
}

#[test]
fn the_time_left_is_that_of_the_forecast() {
    let bench = Bench::new(&["ext4", "xfs"]);
    // xfs reaches the maximum of 30 repetitions, and so do the reference cell and its duplicate.
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.9)];
    bench.run(Machine::new(&rates, 20), settings());
    assert_eq!(bench.measured(), [30, 30, 30]);
    let estimates = bench.estimates.borrow();
    assert_eq!(estimates[0], (0, estimates[0].1));
    assert_eq!(estimates[0].1.expected, None, "no forecast before the pilot rounds");
    let mut before = usize::MAX;
    for (done, remaining) in estimates.iter() {
        let events::Remaining { least, expected, most } = *remaining;
        assert!(least.trials <= most.trials && least.time <= most.time);
        let Some(expected) = expected else {
            assert!(*done <= 6, "the pilot has three cells and two rounds");
            continue;
        };
        let left = expected.trials - done;
        assert_eq!(expected.time, Nanos(left as u64 * TRIAL.0));
        assert!((least.trials..=most.trials).contains(&expected.trials));
        assert!(left > 0 || *done == 90, "trials follow after {done}");
        assert!(left <= before, "the time left does not start again after {done} trials");
        before = left;
    }
    assert_eq!(before, 0);
}

#[test]
fn a_forecast_respects_the_time_limit() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.01), ("xfs", 1e8, 0.01)];
    let time_limit = Some(Nanos(TRIAL.0 * 8));
    bench.run(Machine::new(&rates, 13), Settings { pilot: true, time_limit, ..settings() });
    let forecast = bench.forecast.take().unwrap();
    assert!(forecast.over_time_limit);
    assert_eq!(forecast.time, Nanos(TRIAL.0 * 2));
    assert_eq!(forecast.expected, 8, "as many as fit");
    assert!(forecast.cells.iter().all(|(_, _, repetitions)| *repetitions <= 3));
    assert_eq!(forecast.detectable, None, "three repetitions have no interval");
    let tally = bench.run(Machine::new(&rates, 14), Settings { time_limit, ..settings() });
    assert_eq!(tally.measured, 8, "the run ends as predicted");
}

#[test]
fn other_cells_continue_after_a_failed_one() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    let machine = Machine { fails: Some("ext4"), ..Machine::new(&rates, 15) };
    let tally = bench.run(machine, settings());
    assert_eq!(
        (tally.failed, tally.done),
        (2, 1),
        "the reference cell and its A/A duplicate fail \
                                                    alike"
    );
    assert_eq!(bench.measured()[1], 8);
}

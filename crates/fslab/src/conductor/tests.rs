//! The rules of a run on simulated filesystems: known rates, drift, spoiled trials, and failures
//! run through the conductor, the store, and the report.

use std::{cell::RefCell, collections::BTreeMap, path::PathBuf};

use model::{
    Bytes, Cell, Evidence, FilesystemLevel, Fullness, Metric, Point, Sample, Scale, Value,
    evidence::{CpuWork, HostCpu},
    phase::Role,
    record::{PhaseInfo, RunInfo},
};
use report::{TerminalOptions, View};

use super::*;

/// How long each trial takes, as it says of itself.
const TRIAL: Nanos = Nanos(10_000_000_000);

/// What a simulated machine does.
#[derive(Clone)]
struct Machine {
    /// Mean rate of each filesystem, in bytes per second, and its spread from trial to trial.
    rates: Vec<(&'static str, f64, f64)>,
    /// How far all rates move with each trial, as a part of them.
    drift: f64,
    /// Which trials the hypervisor spoils, by the order in which they are made; their rates halve.
    spoiled: fn(u32) -> bool,
    /// The filesystem that fails at its third repeat.
    fails: Option<&'static str>,
    /// In which trials the phase gives no sample of its primary metric, by their order.
    silent: fn(u32) -> bool,
    /// A signal comes before the trial of that order.
    cut: Option<u32>,
    /// Trials made.
    made: u32,
    random: fastrand::Rng,
}

impl Machine {
    fn new(rates: &[(&'static str, f64, f64)], seed: u64) -> Self {
        Self {
            rates: rates.to_vec(),
            drift: 0.0,
            spoiled: |_| false,
            fails: None,
            silent: |_| false,
            cut: None,
            made: 0,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// About normal, with mean 0 and variance 1: the sum of twelve draws.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0
    }
}

impl Trials for Machine {
    fn describe(&self) -> String {
        "a simulated device".into()
    }

    fn measure(&mut self, cell: &Cell, index: usize, repeat: u32) -> Option<TrialRecord> {
        if self.cut == Some(self.made) {
            return None;
        }
        let name = cell.filesystem.name.as_str();
        let (_, rate, spread) = *self.rates.iter().find(|(known, ..)| *known == name).unwrap();
        let spoiled = (self.spoiled)(self.made);
        let metric = match (self.silent)(self.made) {
            true => Metric::Throughput,
            false => Metric::DurableThroughput,
        };
        let moved = 1.0 + self.drift * f64::from(self.made);
        let value = rate * (spread * self.normal()).exp() * moved * if spoiled { 0.5 } else { 1.0 };
        self.made += 1;
        let steal = Nanos(if spoiled { 500_000_000 } else { 0 });
        let host = HostCpu { processors: 2, steal, ..HostCpu::default() };
        let cpu = Some(CpuWork { host, ..CpuWork::default() });
        let evidence = Evidence { window: Nanos(5_000_000_000), cpu, ..Evidence::default() };
        let failed = self.fails == Some(name) && repeat == 2;
        Some(TrialRecord {
            cell: index,
            repeat,
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
            evidence: vec![("write".into(), evidence)],
            warnings: Vec::new(),
            actions: Vec::new(),
            environment: Environment::default(),
        })
    }

    fn awaits_boot(&self) -> bool {
        false
    }

    fn close(self) -> anyhow::Result<()> {
        Ok(())
    }
}

fn cell(filesystem: &str, twin: bool) -> CellRecord {
    let parameters = BTreeMap::from([("record".to_owned(), Value::Size(Bytes::mib(1)))]);
    let cell = Cell {
        filesystem: FilesystemLevel::plain(filesystem),
        workload: Point { suite: "iozone".into(), parameters },
        scheduler: None,
        fullness: Fullness(0),
        factors: Default::default(),
        twin,
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
        repeats: None,
        seed: 7,
        budget: None,
        spoiled: Spoiled::Repeat,
        own_devices: true,
        pilot: false,
        fail_fast: false,
    }
}

/// A run file of its own and what is run into it.
struct Bench {
    directory: tempfile::TempDir,
    said: RefCell<Vec<String>>,
    forecast: RefCell<Option<events::Forecast>>,
}

impl Bench {
    /// A run of these filesystems, the first with a twin.
    fn new(filesystems: &[&str]) -> Self {
        let bench = Self {
            directory: tempfile::tempdir().unwrap(),
            said: RefCell::default(),
            forecast: RefCell::default(),
        };
        let mut cells: Vec<CellRecord> = filesystems.iter().map(|name| cell(name, false)).collect();
        cells.push(cell(filesystems[0], true));
        let info = RunInfo {
            id: "20260101t000000-abcd".into(),
            title: "simulated".into(),
            plan_name: "simulated".into(),
            plan_text: String::new(),
            amendments: Vec::new(),
            scale: Scale::ONE,
            profile: Profile::Standard,
            repeats: None,
            seed: 7,
            view: None,
            storage: "a simulated device".into(),
            started_unix: Nanos(1),
            ended_unix: None,
            program: "fslab".into(),
        };
        let path = bench.path();
        drop(Store::create(&path, &info, &cells, &Environment::default(), &[]).unwrap());
        bench
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("run.fslab")
    }

    /// Goes on with the run until it ends or is cut.
    fn run(&self, machine: Machine, settings: Settings) -> Tally {
        let (store, record) = Store::resume(&self.path()).unwrap();
        let observer = |event: &Event<'_>| {
            if let Event::TrialStarted { filesystem, twin, repeat, .. } = event {
                let twin = if *twin { "'" } else { "" };
                self.said.borrow_mut().push(format!("{filesystem}{twin} {repeat}"));
            }
            if let Event::Forecast(forecast) = event {
                *self.forecast.borrow_mut() = Some(forecast.clone());
            }
        };
        let (progress, interrupt) = (Progress::default(), AtomicBool::new(false));
        let watch = Watch { observer: &observer, progress: &progress, interrupt: &interrupt };
        Conductor::new(machine, store, record, settings, watch).run().unwrap()
    }

    fn record(&self) -> RunRecord {
        store::read(&self.path()).unwrap()
    }

    /// How often each cell was measured, in the order of cells.
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
        let CellState::Done { rule } = state else { panic!("cell {cell} is {state:?}") };
        rule
    }

    fn report(&self) -> String {
        let options = TerminalOptions { width: 200, color: false, detail: true };
        report::terminal(&View::new(&self.record()), &options)
    }
}

#[test]
fn the_anchor_and_its_twin_stay_open_with_the_last_cell() {
    let bench = Bench::new(&["ext4", "xfs", "btrfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005), ("btrfs", 1e8, 0.2)];
    let tally = bench.run(Machine::new(&rates, 1), settings());
    assert_eq!(bench.measured(), [30, 8, 30, 30], "btrfs goes to the cap");
    assert_eq!((tally.done, tally.invalid), (4, 0));
    assert!(bench.rule(0).ends_with("as the anchor it was open as long as any other cell"));
    assert!(bench.rule(0).starts_with("c"), "its own rule comes first: {}", bench.rule(0));
    assert!(bench.rule(1).starts_with("converged: after 8 repeats"));
    assert!(bench.rule(3).starts_with("twin: "));
    // The twin is a cell like any other: it has no fixed place in a block.
    let said = bench.said.borrow();
    let places: BTreeSet<usize> = (0..8)
        .map(|block| {
            let of_block = said.iter().filter(|line| line.ends_with(&format!(" {block}")));
            of_block.clone().position(|line| line.starts_with("ext4'")).unwrap()
        })
        .collect();
    assert!(places.len() > 1, "{said:?}");
}

#[test]
fn a_phase_without_a_sample_does_not_keep_a_run_from_its_end() {
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    // Should it not end, a signal comes.
    let silent = |silent| Machine { silent, cut: Some(200), ..Machine::new(&rates, 17) };
    for (repeats, made, rule) in [
        (Some(2), 2, "fixed: 2 repeats, as the plan sets; no sample of write"),
        (None, 30, "cap: 30 repeats, the most that profile standard makes; no sample of write"),
    ] {
        let bench = Bench::new(&["ext4", "xfs"]);
        let tally = bench.run(silent(|_| true), Settings { repeats, ..settings() });
        assert!(!tally.interrupted && tally.done == 3);
        assert_eq!(bench.measured(), [made; 3]);
        assert_eq!(tally.measured, 3 * made);
        assert_eq!(bench.rule(1), rule);
        bench.report();
    }
    // Three of each block are made; the second block gives nothing.
    let bench = Bench::new(&["ext4", "xfs"]);
    let machine = silent(|made| (3..6).contains(&made));
    let tally = bench.run(machine, Settings { repeats: Some(6), ..settings() });
    assert!(!tally.interrupted);
    assert_eq!(bench.measured(), [6; 3]);
    let rule = "fixed: 6 repeats, as the plan sets; 5 samples of write in 6 trials";
    assert_eq!(bench.rule(1), rule);
    // What was measured is not skipped when the time is used up.
    let bench = Bench::new(&["ext4", "xfs"]);
    let budget = Some(Nanos(TRIAL.0 * 7));
    let tally = bench.run(silent(|_| true), Settings { budget, ..settings() });
    assert_eq!((tally.done, tally.skipped), (3, 0));
}

#[test]
fn a_twin_never_keeps_its_first_open() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    bench.run(Machine::new(&rates, 2), settings());
    assert_eq!(bench.measured(), [8, 8, 8]);
}

#[test]
fn a_difference_is_found_and_none_is_made_up() {
    let bench = Bench::new(&["ext4", "xfs", "btrfs"]);
    let rates = [("ext4", 1e8, 0.01), ("xfs", 1.3e8, 0.01), ("btrfs", 1e8, 0.01)];
    bench.run(Machine::new(&rates, 3), settings());
    let report = bench.report();
    let found = "xfs was the fastest of 3 on write, iozone: ";
    assert!(report.contains(found) && report.matches("was the fastest").count() == 1, "{report}");
    assert!(!report.contains("W-MANYINV") && !report.contains("W-BUDGET"), "{report}");
}

#[test]
fn filesystems_that_are_equal_win_nothing() {
    for seed in 0..10 {
        let bench = Bench::new(&["ext4", "xfs", "btrfs"]);
        let rates = [("ext4", 1e8, 0.02), ("xfs", 1e8, 0.02), ("btrfs", 1e8, 0.02)];
        bench.run(Machine { drift: 0.002, ..Machine::new(&rates, seed) }, settings());
        let report = bench.report();
        assert!(!report.contains("was the fastest"), "seed {seed}:\n{report}");
    }
}

#[test]
fn spoiled_trials_are_made_again_at_the_end_of_their_block() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    let machine = Machine { spoiled: |made| made == 4, ..Machine::new(&rates, 5) };
    let tally = bench.run(machine, settings());
    assert_eq!(tally.invalid, 1);
    assert_eq!(bench.measured(), [8, 8, 8]);
    let record = bench.record();
    let invalid = &record.trials[4];
    assert!(matches!(&invalid.outcome, Outcome::Invalid { reason }
        if reason == "the hypervisor gave 5.0 % of the processors' time to others in write"));
    assert_eq!((invalid.repeat, invalid.attempt), (1, 0));
    // Each block has three trials; the second begins at 3 and has a fourth one.
    let again = &record.trials[6];
    assert_eq!((again.cell, again.repeat, again.attempt), (invalid.cell, 1, 1));
    assert_eq!(again.outcome, Outcome::Measured);
    let block: Vec<u32> = record.trials[3..7].iter().map(|trial| trial.repeat).collect();
    assert_eq!(block, [1, 1, 1, 1]);
}

#[test]
fn a_machine_that_spoils_every_trial_ends_all_the_same_and_makes_no_claim() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 2e8, 0.005)];
    let machine = Machine { spoiled: |_| true, ..Machine::new(&rates, 6) };
    let tally = bench.run(machine, settings());
    assert_eq!(bench.measured(), [8, 8, 8]);
    assert_eq!(tally.invalid, 9, "three of each cell are made again");
    let record = bench.record();
    let told = |trial: &&TrialRecord| {
        trial.warnings.contains(&(None, Warning::Unstable { invalid: 11, of: 11 }))
    };
    assert_eq!(record.trials.iter().filter(told).count(), 3, "the last of each cell");
    let report = bench.report();
    assert!(report.contains("W-MANYINV"), "{report}");
    assert!(!report.contains("was the fastest"), "{report}");
}

#[test]
fn what_was_spoiled_now_and_then_counts_nowhere() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.01), ("xfs", 1.2e8, 0.01)];
    let machine = Machine { spoiled: |made| made % 9 == 4, ..Machine::new(&rates, 16) };
    let tally = bench.run(machine, settings());
    assert!(tally.invalid > 1 && bench.measured() == [8, 8, 8]);
    let record = bench.record();
    let measured = record.trials.iter().filter(|trial| trial.outcome == Outcome::Measured);
    assert!(measured.flat_map(|trial| &trial.samples).all(|sample| sample.value > 0.9e8));
    let report = bench.report();
    assert!(report.contains("xfs was the fastest of 2 on write, iozone: "), "{report}");
}

#[test]
fn a_plan_may_keep_what_was_spoiled() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    let machine = Machine { spoiled: |_| true, ..Machine::new(&rates, 6) };
    let tally = bench.run(machine, Settings { spoiled: Spoiled::Keep, ..settings() });
    assert_eq!((tally.invalid, bench.measured()), (0, vec![8, 8, 8]));
}

#[test]
fn a_run_cut_before_a_trial_is_made_again_goes_on_with_it() {
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    let spoiled = |made| made == 4;
    // The signal comes at each place of the block in which a trial is spoiled, and after it.
    for cut in 3..9 {
        let bench = Bench::new(&["ext4", "xfs"]);
        let first = Machine { spoiled, cut: Some(cut), ..Machine::new(&rates, 8) };
        assert!(bench.run(first, settings()).interrupted);
        assert_eq!(bench.record().trials.len(), cut as usize);
        let rest = Machine { spoiled, made: cut, ..Machine::new(&rates, 9) };
        assert!(!bench.run(rest, settings()).interrupted);
        let record = bench.record();
        let mut made: Vec<_> =
            record.trials.iter().map(|it| (it.cell, it.repeat, it.attempt)).collect();
        assert_eq!(made.len(), 25, "cut at {cut}");
        assert_eq!(made.iter().filter(|(.., attempt)| *attempt == 1).count(), 1);
        made.sort_unstable();
        made.dedup();
        assert_eq!(made.len(), 25);
        assert_eq!(bench.measured(), [8, 8, 8], "cut at {cut}");
    }
}

#[test]
fn the_budget_closes_cells_with_what_they_have() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.2), ("xfs", 1e8, 0.005)];
    // Time for ten trials of 10 s, and for half of another one.
    let budget = Some(Nanos(TRIAL.0 * 21 / 2));
    let tally = bench.run(Machine::new(&rates, 10), Settings { budget, ..settings() });
    let record = bench.record();
    assert_eq!(record.trials.len(), 10, "three blocks of three, and one more");
    assert!(record.info.ended_unix.is_some() && tally.done == 3);
    assert!(bench.rule(0).starts_with("budget: "), "{}", bench.rule(0));
    assert!(bench.rule(2).starts_with("twin: "));
    let over =
        |trial: &TrialRecord| trial.warnings.contains(&(Some("write".into()), Warning::OverBudget));
    for cell in [0, 1] {
        let last = record.trials.iter().rfind(|trial| trial.cell == cell).unwrap();
        assert!(over(last), "cell {cell} is not known well enough");
    }
    assert_eq!(record.trials.iter().filter(|trial| over(trial)).count(), 2);
    // What was measured counts in a run that goes on.
    let bench = Bench::new(&["ext4", "xfs"]);
    let cut = Machine { cut: Some(7), ..Machine::new(&rates, 10) };
    bench.run(cut, Settings { budget, ..settings() });
    bench.run(Machine::new(&rates, 11), Settings { budget, ..settings() });
    assert_eq!(bench.record().trials.len(), 10);
}

#[test]
fn a_cell_that_the_budget_leaves_nothing_is_skipped() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.2), ("xfs", 1e8, 0.005)];
    let budget = Some(Nanos(1));
    let tally = bench.run(Machine::new(&rates, 12), Settings { budget, ..settings() });
    assert_eq!(bench.record().trials.len(), 1, "how long a trial takes is not known before");
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
    assert_eq!(forecast.cells.len(), 2, "twins have no look of their own");
    let detectable = forecast.detectable.unwrap();
    assert!(detectable.median.0 > 0.0 && detectable.median <= detectable.worst);
    assert!(detectable.at.ends_with(" · iozone · write"), "{}", detectable.at);
    let tally = bench.run(Machine::new(&rates, 14), settings());
    assert!(!tally.pilot && tally.done == 3);
    assert!(bench.measured().iter().all(|measured| *measured >= 8));
    assert!(bench.forecast.take().is_some(), "it is said again when the run goes on");
}

#[test]
fn a_forecast_ends_where_the_budget_does() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.01), ("xfs", 1e8, 0.01)];
    let budget = Some(Nanos(TRIAL.0 * 8));
    bench.run(Machine::new(&rates, 13), Settings { pilot: true, budget, ..settings() });
    let forecast = bench.forecast.take().unwrap();
    assert!(forecast.over_budget);
    assert_eq!(forecast.time, Nanos(TRIAL.0 * 2));
    assert_eq!(forecast.expected, 8, "as many as fit");
    assert!(forecast.cells.iter().all(|(_, _, repeats)| *repeats <= 3));
    assert_eq!(forecast.detectable, None, "three repeats have no interval");
    let tally = bench.run(Machine::new(&rates, 14), Settings { budget, ..settings() });
    assert_eq!(tally.measured, 8, "the run ends where it was said to");
}

#[test]
fn a_failed_cell_lets_the_others_go_on() {
    let bench = Bench::new(&["ext4", "xfs"]);
    let rates = [("ext4", 1e8, 0.005), ("xfs", 1e8, 0.005)];
    let machine = Machine { fails: Some("ext4"), ..Machine::new(&rates, 15) };
    let tally = bench.run(machine, settings());
    assert_eq!((tally.failed, tally.done), (2, 1), "the anchor and its twin fail alike");
    assert_eq!(bench.measured()[1], 8);
}

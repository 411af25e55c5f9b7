use model::{
    Cell, Environment, FilesystemLevel, FillLevel, Histogram, Nanos, Profile, Sample, Scale,
    WorkloadParameters,
    record::{CellState, PhaseHistogram, PhaseInfo, RunInfo},
};

use super::*;

fn cell(generator: &str, runtime: Nanos) -> CellRecord {
    let parameters = [
        ("load_generator", Value::Word(generator.into())),
        ("runtime", Value::Time(runtime)),
        ("workers", Value::Count(2)),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value)).into();
    let cell = Cell {
        filesystem: FilesystemLevel::plain("directory"),
        workload: WorkloadParameters { suite: "stream".into(), parameters },
        scheduler: None,
        fill_level: FillLevel(0),
        settings: Default::default(),
        options: Default::default(),
        aa_duplicate: false,
    };
    let phase = PhaseInfo {
        name: "read".into(),
        group: "reading".into(),
        role: Role::Measure,
        primary: Metric::Throughput,
        cache: None,
    };
    CellRecord {
        id: cell.id(),
        cell,
        label: "stream".into(),
        state: CellState::Done { reason: "converged".into() },
        phases: vec![phase],
    }
}

/// Results of a trial: operations, operations per second, and sync calls.
type Results = (u64, f64, f64);

fn trial(cell: usize, repetition: u32, (operations, rate, syncs): Results) -> TrialRecord {
    let samples = [
        (Metric::Throughput, rate * 4096.0),
        (Metric::OpsRate, rate),
        (Metric::LoopTime, operations as f64 / rate * 1e9),
        (Metric::LatencyP50, 2e9 / rate),
        (Metric::SyncCalls, syncs),
        (Metric::GeneratorOverhead, 0.01),
    ];
    let samples =
        samples.map(|(metric, value)| Sample { phase: "read".into(), metric, worker: None, value });
    let mut histogram = Histogram::default();
    (0..operations).for_each(|_| histogram.record(1000));
    let all = PhaseHistogram { phase: "read".into(), kind: HistogramKind::All, histogram };
    TrialRecord {
        cell,
        repetition,
        attempt: 0,
        started_unix: Nanos(0),
        elapsed: Nanos(1),
        outcome: Outcome::Measured,
        samples: samples.into(),
        histograms: vec![all],
        series: Vec::new(),
        activity: Vec::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        environment: Environment::default(),
        hosts: Vec::new(),
    }
}

/// Run of six pairs with the same results in each pair but for 0.1 % per repetition.
fn run(runtime: Nanos, own: Results, fio: Results) -> RunRecord {
    let info = RunInfo {
        id: "run".into(),
        title: "a run".into(),
        plan_name: "plan".into(),
        plan_text: String::new(),
        overrides: Vec::new(),
        scale: Scale::ONE,
        profile: Profile::Quick,
        repetitions: None,
        seed: 1,
        study: None,
        storage: "a directory".into(),
        started_unix: Nanos(1),
        ended_unix: None,
        program: "fslab".into(),
    };
    let trials = (0..6).flat_map(|repetition| {
        let drift = 1.0 + 0.001 * f64::from(repetition);
        let slower = |(operations, rate, syncs): Results| (operations, rate * drift, syncs);
        [trial(0, repetition, own), trial(1, repetition, slower(fio))]
    });
    RunRecord {
        info,
        environment: Environment::default(),
        cells: vec![cell("fslab", runtime), cell("fio", runtime)],
        trials: trials.collect(),
        warnings: Vec::new(),
    }
}

fn verdict(runtime: Nanos, own: Results, fio: Results, fio_loop: f64) -> Verdict {
    let mut run = run(runtime, own, fio);
    run.environment.set(loop_time_fact(run.cells[1].id), fio_loop.to_string());
    let tests = crosscheck(&run, MARGIN);
    assert_eq!((tests.len(), tests[0].pairs), (1, 6));
    tests[0].verdict()
}

#[test]
fn equal_work_at_equal_speed_is_equivalent() {
    let one = (100, 10_000.0, 10.0);
    assert_eq!(verdict(Nanos(0), one, one, 300.0), Verdict::Equivalent);
    assert_eq!(verdict(Nanos(0), one, (100, 11_000.0, 10.0), 300.0), Verdict::Different);
    // fio does not sync after the last write of each of the two workers.
    assert_eq!(verdict(Nanos(0), one, (100, 10_000.0, 8.0), 300.0), Verdict::Equivalent);
}

#[test]
fn speeds_of_different_work_have_no_verdict() {
    let one = (100, 10_000.0, 10.0);
    let fewer = (98, 10_000.0, 10.0);
    assert_eq!(verdict(Nanos(0), one, fewer, 300.0), Verdict::DifferentWork);
    // The number of operations in a given time depends on the speed.
    assert_eq!(verdict(Nanos(1), one, fewer, 300.0), Verdict::Equivalent);
    assert_eq!(verdict(Nanos(1), one, (100, 10_000.0, 5.0), 300.0), Verdict::DifferentWork);
}

#[test]
fn operations_must_take_twenty_times_as_long_as_the_loops() {
    // An operation of one of two workers takes 200 µs.
    let one = (100, 10_000.0, 10.0);
    assert_eq!(verdict(Nanos(0), one, one, 9_900.0), Verdict::Equivalent);
    assert_eq!(verdict(Nanos(0), one, one, 10_100.0), Verdict::LoopBound);
}

#[test]
fn cells_of_one_program_are_not_a_test() {
    let mut run = run(Nanos(0), (1, 1.0, 0.0), (1, 1.0, 0.0));
    run.cells.truncate(1);
    assert_eq!(crosscheck(&run, MARGIN), Vec::new());
}

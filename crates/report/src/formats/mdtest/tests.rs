use std::collections::BTreeMap;

use model::{Histogram, Sample, WorkloadParameters, record::PhaseHistogram};

use super::*;
use crate::fixture;

/// Run of one cell whose repetitions have these rates of `file-create`.
fn run(rates: &[f64]) -> RunRecord {
    let mut record = fixture::dbench::with(&[1], u32::try_from(rates.len()).unwrap());
    record.cells.truncate(1);
    record.trials.retain(|trial| trial.cell == 0);
    let parameters = BTreeMap::from([
        ("workers".to_owned(), Value::Count(2)),
        ("entries".to_owned(), Value::Count(500)),
        ("sharing".to_owned(), Value::Word("directory".into())),
    ]);
    record.cells[0].cell.workload = WorkloadParameters { suite: SUITE.into(), parameters };
    for phase in &mut record.cells[0].phases {
        phase.name = "file-create".into();
    }
    for (trial, rate) in record.trials.iter_mut().zip(rates) {
        let sample = |phase: &str, value| Sample {
            phase: phase.into(),
            metric: Metric::OpsRate,
            worker: None,
            value,
        };
        trial.samples = vec![sample("file-create", *rate), sample("tree-create", 10.0)];
        let mut histogram = Histogram::new();
        histogram.record_n(1000, 840);
        let phase = "file-create".into();
        trial.histograms = vec![PhaseHistogram { phase, kind: HistogramKind::Write, histogram }];
    }
    record
}

#[test]
fn the_table_summarizes_all_repetitions() {
    let command = MdtestCommand { words: "fslab mdtest -n 500 -i 3".into(), ..Default::default() };
    let text = mdtest(&run(&[100.0, 300.0, 200.0]), &command).unwrap();
    let expected = "\
mdtest workload, measured by fslab 0.1.0, not by mdtest: 2 workers
Command line used: fslab mdtest -n 500 -i 3
2 tasks, 1000 files

SUMMARY rate (in ops/sec): (of 3 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                 300.000        100.000        200.000        100.000
   Tree creation                  10.000         10.000         10.000          0.000
";
    assert_eq!(text, expected);
}

#[test]
fn times_are_milliseconds_per_operation() {
    let times = |tables| {
        let command = MdtestCommand { words: String::new(), tables };
        mdtest(&run(&[4.0]), &command).unwrap()
    };
    let only = times(MdtestTables::Times);
    assert!(!only.contains("SUMMARY rate"), "{only}");
    let row = only.lines().find(|line| line.contains("File creation")).unwrap();
    let expected =
        "   File creation                 250.000        250.000        250.000          0.000";
    assert_eq!(row, expected);
    assert!(only.contains("SUMMARY time (in ms/op): (of 1 iterations)"), "{only}");
    assert!(only.contains("mdtest prints seconds per phase"), "{only}");
    let both = times(MdtestTables::Both);
    assert!(both.contains("SUMMARY rate") && both.contains("SUMMARY time"), "{both}");
}

#[test]
fn the_number_of_files_is_that_of_each_worker() {
    assert_eq!(mdtest_files(&run(&[1.0, 2.0])), Some(420));
    let mut shared = run(&[1.0]);
    let parameters = &mut shared.cells[0].cell.workload.parameters;
    parameters.insert("first_worker_creates".into(), Value::Flag(true));
    parameters.insert("sharing".into(), Value::Word("file".into()));
    assert_eq!(mdtest_files(&shared), Some(840));
    shared.trials.clear();
    assert_eq!(mdtest_files(&shared), None);
}

#[test]
fn other_runs_are_rejected() {
    let command = MdtestCommand::default();
    let other = fixture::dbench::with(&[1], 1);
    assert_eq!(
        mdtest(&other, &command),
        Err(NotInLayout::OtherSuite { suites: &["mdtest"], program: "mdtest" })
    );
    let mut none = run(&[1.0]);
    none.trials.clear();
    assert_eq!(mdtest(&none, &command), Err(NotInLayout::NothingMeasured("mdtest")));
}

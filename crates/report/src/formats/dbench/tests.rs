use super::*;
use crate::{fixture, imports};

/// Run of one cell with 4 clients and a series of 2.5 s.
fn run() -> RunRecord {
    let mut record = fixture::dbench::with(&[1], 2);
    let cell = 0;
    let parameters = &mut record.cells[cell].cell.workload.parameters;
    parameters.insert("clients".into(), Value::Count(4));
    parameters.insert("runtime".into(), Value::Time(Nanos(2_500_000_000)));
    parameters.insert("replay_count".into(), Value::Count(0));
    parameters.insert("o_sync".into(), Value::Flag(true));
    record.cells.truncate(1);
    record.trials.retain(|trial| trial.cell == cell);
    for trial in &mut record.trials {
        let series = Series {
            start: Nanos(200_000_000),
            interval: Nanos(400_000_000),
            ops: vec![400; 7],
            bytes: vec![8_000_000; 7],
        };
        trial.series = vec![(REPLAY.into(), series)];
        let value = 21e6 + f64::from(trial.repetition) * 1e6;
        let sample =
            |metric, value| model::Sample { phase: REPLAY.into(), metric, worker: None, value };
        trial.samples.push(sample(Metric::ThroughputDbench, value));
        trial.samples.push(sample(Metric::LatencyMax, 12_345_678.0));
    }
    record
}

#[test]
fn the_text_has_ticks_operations_and_a_summary() {
    let text = dbench(&run(), DbenchForm::Text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "dbench workload, measured by fslab 0.1.0, not by dbench; loadfile fslab-office v1 seed \
         12, sha256 0123456789ab"
    );
    // 2.5 intervals of 8 MB in the first second; the last tick is the result.
    assert_eq!(lines[2], "   4       250    20.00 MB/sec  execute   1 sec");
    assert_eq!(lines[3], "   4       500    21.00 MB/sec  execute   2 sec");
    assert_eq!(lines[5], " Operation      Count    AvgLat    MaxLat");
    assert_eq!(lines[6], format!(" {}", "-".repeat(40)));
    let row: Vec<&str> = lines[7].split_whitespace().collect();
    assert_eq!(row[..2], ["NTCreateX", "2000"]);
    assert_eq!(lines[7].len(), lines[5].len());
    let names: Vec<&str> =
        lines[7..13].iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["NTCreateX", "Close", "Unlink", "WriteX", "ReadX", "Flush"]);
    assert_eq!(
        lines.last().unwrap(),
        &"Throughput 21.0000 MB/sec (sync open)  4 clients  4 procs  max_latency=12.346 ms"
    );
    assert_eq!(lines.len(), 15, "the lower one of two repetitions: {text}");
}

#[test]
fn imports_read_both_layouts_as_results_of_fslab() {
    for form in [DbenchForm::Text, DbenchForm::Fields] {
        let text = dbench(&run(), form).unwrap();
        let importer = imports::recognize(text.as_bytes());
        assert_eq!(importer.name, "dbench-text", "{text}");
        let importing = imports::Importing {
            id: "again".into(),
            source: "again",
            now: Nanos(1),
            facts: Vec::new(),
        };
        let again = imports::assemble(importer.read(text.as_bytes()).unwrap(), importing);
        assert_eq!((again.cells.len(), again.trials.len()), (1, 1));
        assert_eq!(again.info.program, "fslab 0.1.0, dbench format");
        assert_eq!(again.cells[0].cell.workload.count("clients"), 4);
        assert_eq!(again.cells[0].phases.len(), 7, "the replay and its operations");
        let mut samples = again.trials[0].samples.iter();
        let rate = samples.find(|own| own.metric == Metric::ThroughputDbench).unwrap();
        assert!((rate.value - 21e6).abs() < 1.0, "{rate:?}");
    }
}

#[test]
fn other_runs_are_rejected() {
    assert_eq!(
        dbench(&fixture::record(), DbenchForm::Text),
        Err(NotInLayout::OtherSuite { suites: &["dbench"], program: "dbench" })
    );
    let mut record = run();
    record.trials.clear();
    assert_eq!(dbench(&record, DbenchForm::Text), Err(NotInLayout::NothingMeasured("dbench")));
}

#[test]
fn six_digits_are_significant() {
    let all = [0.5, 9.87654321, 82.44312, 123.45678, 1234.5678, 123_456.7].map(digits);
    assert_eq!(all, ["0.50000", "9.87654", "82.4431", "123.457", "1234.57", "123457"]);
}

//! Imports of outputs of fio 3.33, of a document of fio 2.1 by its definition, and of IOzone.

use std::collections::BTreeSet;

use model::{
    Metric, Nanos, RunRecord, Value,
    record::{HistogramKind, Outcome, TrialRecord},
};

use super::*;
use crate::{TerminalOptions, View, json, terminal};

mod printed;

const PLUS: &str = include_str!("../../../../fuzz/seeds/fio_json/plus");
const PLAIN: &str = include_str!("../../../../fuzz/seeds/fio_json/plain");
const STATUS: &str = include_str!("../../../../fuzz/seeds/fio_json/status");
const FAILED: &str = include_str!("../../../../fuzz/seeds/fio_json/failed");
const OLD: &str = include_str!("../../../../fuzz/seeds/fio_json/2.1");
const TERSE: &str = include_str!("../../../../fuzz/seeds/fio_terse/3.33");
const DBENCH: &str = include_str!("../../../../fuzz/seeds/dbench_text/4.00");
const CLIENTS: &str = include_str!("../../../../fuzz/seeds/dbench_text/4.00-clients");
const DBENCH_5: &str = include_str!("../../../../fuzz/seeds/dbench_text/5.0");
const SINGLE: &str = include_str!("../../../../fuzz/seeds/iozone/single");
const TABLES: &str = include_str!("../../../../fuzz/seeds/iozone/tables");
const THROUGHPUT: &str = include_str!("../../../../fuzz/seeds/iozone/throughput");

fn read(text: &str) -> Result<Vec<Measurement>, ImportError> {
    recognize(text.as_bytes()).read(text.as_bytes())
}

fn message(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn run(files: &[&str]) -> RunRecord {
    let importing = Importing {
        id: "imported-1".into(),
        source: "old",
        now: Nanos(1_800_000_000_000_000_000),
        facts: Vec::new(),
    };
    assemble(files.iter().flat_map(|text| read(text).unwrap()).collect(), importing)
}

/// Value of a metric of a trial.
fn value(trial: &TrialRecord, phase: &str, metric: Metric) -> Option<f64> {
    let mut samples = trial.samples.iter();
    samples.find(|own| own.phase == phase && own.metric == metric).map(|own| own.value)
}

/// Trial of the cell whose label contains a text.
fn trial<'a>(run: &'a RunRecord, label: &str) -> &'a TrialRecord {
    let cell = run.cells.iter().position(|cell| cell.label.contains(label)).unwrap();
    run.trials.iter().find(|trial| trial.cell == cell).unwrap()
}

/// Number at a path of a fixture.
fn number(document: &serde_json::Value, path: &str) -> f64 {
    document.pointer(path).unwrap_or_else(|| panic!("{path}")).as_f64().unwrap()
}

#[test]
fn formats_are_recognized_by_content() {
    for (text, name) in [
        (PLUS, "fio-json"),
        (STATUS, "fio-json"),
        (FAILED, "fio-json"),
        (OLD, "fio-json"),
        (TERSE, "fio-terse"),
        (SINGLE, "iozone-text"),
        (TABLES, "iozone-text"),
        (THROUGHPUT, "iozone-text"),
        (DBENCH, "dbench-text"),
        (DBENCH_5, "dbench-text"),
        (crate::bonnie::tests::PRINTED, "bonnie-csv"),
        ("hello\n", "bonnie-csv"),
    ] {
        assert_eq!(recognize(text.as_bytes()).name, name, "{text:.60}");
    }
}

#[test]
fn every_importer_is_described_and_has_a_method() {
    let names: BTreeSet<&str> = IMPORTERS.iter().map(|importer| importer.name).collect();
    assert_eq!(names.len(), IMPORTERS.len());
    for importer in &IMPORTERS {
        assert!(titles().contains(importer.title), "{}", importer.name);
        assert!(method(importer.suite).is_some(), "{}", importer.name);
        assert!(importer.longest > HEAD, "{}", importer.name);
        for text in [importer.recognized_by, importer.cell, importer.metrics, importer.omitted] {
            assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text}", importer.name);
        }
    }
}

#[test]
fn fio_numbers_are_imported_in_base_units() {
    let document: serde_json::Value = serde_json::from_str(PLUS).unwrap();
    let run = run(&[PLUS]);
    assert_eq!(run.info.program, "fio-3.33");
    // Two workers of one job are one cell; two jobs of a group are two.
    let labels: Vec<&str> = run.cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(labels, ["fio log", "fio mixed", "fio both", "fio left", "fio right"]);
    let log = trial(&run, "log");
    let path = |rest: &str| number(&document, &format!("/jobs/0/{rest}"));
    for (metric, expected) in [
        (Metric::Throughput, path("write/bw_bytes")),
        (Metric::OpsRate, path("write/iops")),
        (Metric::LatencyMean, path("write/lat_ns/mean")),
        (Metric::LatencyMax, path("write/lat_ns/max")),
        // psync: fio measured no submission, so these are latencies of the operations.
        (Metric::LatencyP50, path("write/clat_ns/percentile/50.000000")),
        (Metric::LatencyP999, path("write/clat_ns/percentile/99.900000")),
        (Metric::SyncCalls, path("sync/total_ios")),
        (Metric::SyncLatencyMax, path("sync/lat_ns/max")),
        (Metric::SyncLatencyP99, path("sync/lat_ns/percentile/99.000000")),
        (Metric::UserCpuUtilization, path("usr_cpu") / 100.0),
        (Metric::SystemCpuUtilization, path("sys_cpu") / 100.0),
    ] {
        assert_eq!(value(log, "write", metric), Some(expected), "{metric:?}");
    }
    assert_eq!(value(log, "write", Metric::CompletionLatencyP50), None);
    let mixed = trial(&run, "mixed");
    let path = |rest: &str| number(&document, &format!("/jobs/1/{rest}"));
    for direction in ["read", "write"] {
        let at = |key: &str| path(&format!("{direction}/{key}"));
        assert_eq!(value(mixed, direction, Metric::OpsRate), Some(at("iops")));
        let completed = at("clat_ns/percentile/99.900000");
        assert_eq!(value(mixed, direction, Metric::CompletionLatencyP999), Some(completed));
        // Percentiles of clat are not those of the latency with a queue.
        assert_eq!(value(mixed, direction, Metric::LatencyP50), None);
    }
    let cell = &run.cells[1].cell.workload.parameters;
    assert_eq!(cell["io_engine"], Value::Word("libaio".into()));
    assert_eq!(cell["queue_depth"], Value::Count(8));
    assert!(!cell.contains_key("directory") && !cell.contains_key("concurrent_jobs"));
    let left = &run.cells[3].cell.workload.parameters;
    assert_eq!(left["concurrent_jobs"], Value::Words(vec!["right".into()]));
}

#[test]
fn workers_of_a_job_are_merged() {
    let document: serde_json::Value = serde_json::from_str(PLUS).unwrap();
    let run = run(&[PLUS]);
    let both = trial(&run, "both");
    let sum = |rest: &str| {
        [2, 3].map(|job| number(&document, &format!("/jobs/{job}/read/{rest}"))).iter().sum::<f64>()
    };
    let runtime = [2, 3].map(|job| number(&document, &format!("/jobs/{job}/read/runtime")));
    let longest = runtime[0].max(runtime[1]);
    let rate = value(both, "read", Metric::Throughput).unwrap();
    assert!((rate - sum("io_bytes") * 1e3 / longest).abs() < 1e-6, "{rate}");
    let workers = value(both, "read", Metric::ThroughputWorkerSum).unwrap();
    assert!((workers - sum("bw_bytes")).abs() < 1e-6, "{workers}");
    let histogram = &both.histograms.iter().find(|own| own.kind == HistogramKind::All).unwrap();
    let count = histogram.histogram.count() as f64;
    assert_eq!(count, sum("total_ios"));
    // Without the bins of JSON+, the percentiles of both workers together are unknown.
    let plain = self::run(&[PLAIN]);
    let both = trial(&plain, "both");
    assert_eq!(value(both, "read", Metric::LatencyP99), None);
    let why =
        both.warnings.iter().any(|(_, warning)| warning.message().contains("group_reporting"));
    assert!(why, "{:?}", both.warnings);
}

#[test]
fn histograms_agree_with_percentiles() {
    let run = run(&[PLUS]);
    for (label, phase, kind, metric) in [
        ("log", "write", HistogramKind::All, Metric::LatencyP50),
        ("log", "write", HistogramKind::Sync, Metric::SyncLatencyP50),
        ("mixed", "read", HistogramKind::Completion, Metric::CompletionLatencyP99),
    ] {
        let trial = trial(&run, label);
        let found = |own: &&PhaseHistogram| own.phase == phase && own.kind == kind;
        let histogram = &trial.histograms.iter().find(found).unwrap().histogram;
        let q = if metric == Metric::CompletionLatencyP99 { 0.99 } else { 0.5 };
        let own = histogram.quantile(q).unwrap().seconds() * 1e9;
        let printed = value(trial, phase, metric).unwrap();
        assert!((own / printed - 1.0).abs() < 0.02, "{label}: {own} and {printed}");
    }
}

#[test]
fn units_of_old_documents_are_converted() {
    let run = run(&[OLD]);
    let trial = &run.trials[0];
    for (metric, expected) in [
        (Metric::Throughput, 1_048_576.0 * 1024.0 / 10.0),
        (Metric::OpsRate, 26_214.4),
        (Metric::LatencyMean, 123_750.0),
        (Metric::CompletionLatencyP99, 350_000.0),
        (Metric::ContextSwitchesPerOp, 0.5),
    ] {
        assert_eq!(value(trial, "read", metric), Some(expected), "{metric:?}");
    }
    // Bins had numbers instead of times.
    assert!(trial.histograms.is_empty());
    // The unit of io_bytes contradicts the version.
    let wrong = OLD.replace("fio-2.1.11", "fio-3.1");
    let text = message(&wrong);
    assert!(text.starts_with("`jobs[0].read`: io_bytes is 1048576, but bw 104857"), "{text}");
}

#[test]
fn the_last_state_of_a_run_is_imported() {
    let run = run(&[STATUS]);
    assert_eq!((run.trials.len(), run.trials[0].environment.get("fio.documents")), (1, Some("2")));
    let states: Vec<&str> = STATUS.split_inclusive("\n}\n").collect();
    let last: serde_json::Value = serde_json::from_str(states[1]).unwrap();
    let rate = value(&run.trials[0], "read", Metric::Throughput);
    assert_eq!(rate, Some(number(&last, "/jobs/0/read/bw_bytes")));
    // Two runs in one file are not two states of a run.
    let text = message(&format!("{}{}", states[1], states[0]));
    assert!(text.contains("not a later state"), "{text}");
    let text = message(&PLAIN.repeat(2).replacen("\"timestamp\" : 1", "\"timestamp\" : 2", 1));
    assert!(text.contains("write each run of fio to a separate file"), "{text}");
}

#[test]
fn failed_jobs_are_failed_trials() {
    let run = run(&[FAILED]);
    let reason = "fio reported error 1 for job bad".to_owned();
    assert_eq!(run.trials[0].outcome, Outcome::Failed { reason });
    assert!(run.trials[0].samples.is_empty());
}

#[test]
fn terse_lines_agree_with_json() {
    let run = run(&[TERSE]);
    let labels: Vec<&str> = run.cells.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(labels, ["fio log", "fio mixed", "fio left", "fio right"]);
    let fields: Vec<&str> = TERSE.lines().nth(1).unwrap().split(';').collect();
    let field = |at: usize| fields[at].parse::<f64>().unwrap();
    let mixed = trial(&run, "mixed");
    assert_eq!(value(mixed, "read", Metric::Throughput), Some(field(6) * 1024.0));
    assert_eq!(value(mixed, "write", Metric::OpsRate), Some(field(48)));
    assert_eq!(value(mixed, "write", Metric::LatencyMean), Some(field(80) * 1e3));
    assert_eq!(value(mixed, "read", Metric::UserCpuUtilization), {
        Some(fields[87].trim_end_matches('%').parse::<f64>().unwrap() / 100.0)
    });
    let p99 = fields[17..37].iter().find_map(|own| own.strip_prefix("99.000000%="));
    let p99 = p99.unwrap().parse::<f64>().unwrap() * 1e3;
    assert_eq!(value(mixed, "read", Metric::CompletionLatencyP99), Some(p99));
    let first = TERSE.lines().next().unwrap();
    let text = message(&format!("{first}\n{first}\n"));
    assert!(text.starts_with("lines 1 and 2 are both job `log` of group 0"), "{text}");
    let text = message(&first.replacen('3', "5", 1));
    assert!(text.starts_with("line 1: terse version 5 is not supported"), "{text}");
    let cut: String = first.split_inclusive(';').take(60).collect();
    assert!(message(&cut).contains("expected at least 121 fields"), "{}", message(&cut));
    let text = message(&first.replacen(";0;0;", ";0;NaN;", 1));
    assert_eq!(text, "line 1, field 5: expected a number, found `NaN`");
}

#[test]
fn damaged_documents_are_rejected_with_their_place() {
    for (text, expected) in [
        (PLUS[..2000].to_owned(), "the file ends before its JSON document is complete"),
        (PLUS.replacen("\"iops\" : ", "\"iops\" : \"many\", \"x\" : ", 1), "line "),
        (PLUS.replacen("\"iops\" : ", "\"iops\" : NaN, \"x\" : ", 1), "line "),
        (PLUS.replacen("\"iops\" : ", "\"iops\" : 1e400, \"x\" : ", 1), "number out of range"),
        (PLUS.replacen("\"iops\" : ", "\"iops\" : 1e300, \"x\" : ", 1), "from 0 to 1e18"),
        (PLUS.replacen("\"iops\" : ", "\"iops\" : -1, \"x\" : ", 1), "from 0 to 1e18"),
        (format!("[{},{}]", OLD.trim(), OLD.trim()), "another document begins in the same line"),
        (PLUS.replacen("\"jobs\"", "\"works\"", 1), "neither `jobs` nor `client_stats`"),
        ("{\"fio version\" : \"fio-3.33\", \"jobs\" : []}".into(), "`jobs`: it has no job"),
        ("\"fio version\" without a document".into(), "no JSON document of fio"),
    ] {
        let found = message(&text);
        assert!(found.contains(expected), "{expected}: {found}");
    }
    let text = format!("note: a message\n{}", PLUS.replacen("3.33", "3.33\", \"groupid\" : {", 1));
    assert!(message(&text).starts_with("line 3, column"), "{}", message(&text));
}

#[test]
fn repetitions_have_intervals_and_no_findings() {
    // Twelve files of two cells. The second run of each differs by 1 %.
    let file = |read: u32, name: &str| {
        let text = OLD.replace("26214.40", &format!("{read}"));
        let mut measurements = self::read(&text).unwrap();
        measurements[0].name = Some(name.into());
        measurements
    };
    let all = (0..6).flat_map(|at| [file(20_000 + at, "ext4"), file(30_000 + at, "xfs")]);
    let importing =
        Importing { id: "imported-1".into(), source: "old", now: Nanos(1), facts: Vec::new() };
    let mut run = assemble(all.flatten().collect(), importing);
    assert_eq!((run.cells.len(), run.trials.len()), (2, 12));
    let page = |run: &RunRecord| json(&View::new(run));
    let imported: serde_json::Value = serde_json::from_str(&page(&run)).unwrap();
    assert_eq!(imported["measured_by_fslab"], false);
    assert_eq!(imported["imported_from"], "fio-2.1.11");
    let results = |page: &serde_json::Value| {
        let mut results = page["workloads"][0]["tests"][0]["results"].clone();
        let list = results.as_array_mut().unwrap();
        list.sort_by_key(|own| own["filesystem"].to_string());
        let summary = |own: &serde_json::Value| own["metrics"]["ops_rate"].clone();
        list.iter().map(summary).collect::<Vec<_>>()
    };
    let intervals = results(&imported);
    let text =
        terminal(&View::new(&run), &TerminalOptions { width: 100, color: false, detail: true });
    assert!(text.contains("Imported from fio-2.1.11, not measured by fslab"), "{text}");
    assert!(text.contains("n = 6 repetitions") && !text.contains('▲'), "{text}");
    // The same values in a measured run have the same intervals, and a finding.
    run.warnings.clear();
    run.trials.iter_mut().for_each(|trial| trial.warnings.clear());
    let measured: serde_json::Value = serde_json::from_str(&page(&run)).unwrap();
    assert_eq!(intervals, results(&measured));
    assert!(!View::new(&run).findings.by_point[0].findings.is_empty());
}

#[test]
fn iozone_rows_tables_and_throughput_lines_are_imported() {
    let run = run(&[SINGLE]);
    assert_eq!(run.info.program, "IOzone 3.471");
    assert_eq!(run.cells[0].label, "iozone file_size=4MiB block_size=64KiB");
    assert_eq!(run.cells[0].cell.workload.parameters["include_fsync"], Value::Flag(true));
    let trial = &run.trials[0];
    for (test, kib) in [
        ("write", 3_346_419.0),
        ("reread", 12_919_082.0),
        ("random-read", 15_880_734.0),
        ("record-rewrite", 27_496_338.0),
        ("strided-read", 15_006_799.0),
        ("freread", 12_680_688.0),
    ] {
        assert_eq!(value(trial, test, Metric::Throughput), Some(kib * 1024.0), "{test}");
    }
    assert_eq!(run.cells[0].phases.len(), 13);
    let tables = self::run(&[TABLES]);
    assert_eq!((tables.cells.len(), tables.trials.len()), (18, 18));
    let cell = tables.cells.iter().position(|cell| cell.label.ends_with("64KiB block_size=8KiB"));
    let trial = tables.trials.iter().find(|trial| Some(trial.cell) == cell).unwrap();
    assert_eq!(value(trial, "write", Metric::Throughput), Some(1_734_015.0 * 1024.0));
    assert_eq!(value(trial, "read", Metric::Throughput), Some(2_734_015.0 * 1024.0));
    let skipped = tables.cells.iter().find(|own| own.label.ends_with("64KiB block_size=4KiB"));
    assert_eq!(skipped.unwrap().phases.len(), 1, "a zero is a skipped test");
    let throughput = self::run(&[THROUGHPUT]);
    let trial = &throughput.trials[0];
    assert_eq!(value(trial, "initial-write", Metric::Throughput), Some(662_541.54 * 1024.0));
    let sum = value(trial, "initial-write", Metric::ThroughputWorkerSum);
    assert_eq!(sum, Some(1_111_121.88 * 1024.0));
    assert_eq!(value(trial, "read", Metric::Throughput), Some(1_463_222.75 * 1024.0));
    assert_eq!(throughput.cells[0].cell.workload.parameters["workers"], Value::Count(2));
}

#[test]
fn iozone_units_and_missing_columns_are_recognized() {
    // With -i 0 -i 2, the columns between the tests are blank.
    let head = SINGLE.lines().take(18).collect::<Vec<_>>().join("\n");
    let row = format!("{:>16}{:>8}{:>9}{:>9}{:>18}{:>9}{:>9}", 4096, 64, 100, 200, "", 300, 400);
    let blank = " ".repeat(60);
    let run = run(&[&format!("{head}\n{row}{blank}\n")]);
    let trial = &run.trials[0];
    let names: Vec<&str> = run.cells[0].phases.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["write", "rewrite", "random-read", "random-write"]);
    assert_eq!(value(trial, "random-write", Metric::Throughput), Some(400.0 * 1024.0));
    let ops = self::run(&[&SINGLE
        .replace("\tOutput is in kBytes/sec", "\tOPS Mode. Output is in operations per second.")]);
    assert_eq!(value(&ops.trials[0], "write", Metric::OpsRate), Some(3_346_419.0));
    let micros = self::run(&[&SINGLE.replace(
        "\tOutput is in kBytes/sec",
        "\tMicroseconds/op Mode. Output is in microseconds per operation.",
    )]);
    assert_eq!(value(&micros.trials[0], "write", Metric::LatencyMean), Some(3_346_419_000.0));
}

#[test]
fn fused_iozone_numbers_are_rejected() {
    let text = message(&SINGLE.replace("12117223 12680688", "1211722312680688"));
    assert!(text.contains("line 19") && text.contains("-R"), "{text}");
    assert!(text.contains("found `12 numbers for 13 columns`"), "{text}");
}

#[test]
fn outputs_of_dbench_are_imported() {
    let run = run(&[&DBENCH.repeat(2)]);
    assert_eq!(
        (run.info.program.as_str(), run.cells.len(), run.trials.len()),
        ("dbench 4.00", 1, 2)
    );
    assert_eq!(run.cells[0].label, "dbench clients=2 loadfile=client.txt");
    let trial = &run.trials[1];
    let line = DBENCH.lines().find(|line| line.starts_with("Throughput")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let rate = words[1].parse::<f64>().unwrap() * 1e6;
    assert_eq!(value(trial, "replay", Metric::ThroughputDbench), Some(rate));
    let latency = words[7].strip_prefix("max_latency=").unwrap().parse::<f64>().unwrap() * 1e6;
    assert_eq!(value(trial, "replay", Metric::LatencyMax), Some(latency));
    let flush = DBENCH.lines().find(|line| line.trim_start().starts_with("Flush")).unwrap();
    let mean = flush.split_whitespace().nth(2).unwrap().parse::<f64>().unwrap() * 1e6;
    assert_eq!(value(trial, "Flush", Metric::LatencyMean), Some(mean));
    assert_eq!(run.cells[0].phases.len(), 1 + 16);
    // Tables of single clients are not those of all clients.
    let clients = self::run(&[CLIENTS]);
    assert_eq!(clients.cells[0].cell.workload.parameters["o_sync"], Value::Flag(true));
    let find = CLIENTS.lines().find(|line| line.trim_start().starts_with("Find")).unwrap();
    let max = find.split_whitespace().nth(3).unwrap().parse::<f64>().unwrap() * 1e6;
    assert_eq!(value(&clients.trials[0], "Find", Metric::LatencyMax), Some(max));
    assert_eq!(clients.cells[0].phases.len(), 1 + 16);
    // The summary of 5.0 has no rate.
    let machine = self::run(&[DBENCH_5]);
    let trial = &machine.trials[0];
    assert_eq!(value(trial, "replay", Metric::ThroughputDbench), Some(82.5e6));
    assert_eq!(value(trial, "ReadX", Metric::LatencyMax), Some(9.23e6));
    let old = self::run(&["Throughput 31.5 MB/sec (sync open) 4 procs\n"]);
    let parameters = &old.cells[0].cell.workload.parameters;
    assert_eq!(parameters["clients"], Value::Count(4));
    assert_eq!(parameters["o_sync"], Value::Flag(true));
    let zero = self::run(&["Throughput 0 MB/sec  4 clients  4 procs  max_latency=1.5 ms\n"]);
    assert!(matches!(zero.trials[0].outcome, Outcome::Failed { .. }));
    assert!(message("dbench version 4.00\nreleasing clients\n").contains("truncated"));
    let wrong = "Throughput many MB/sec  4 clients  4 procs  max_latency=1.5 ms\n";
    assert_eq!(message(wrong), "line 1: expected a number, found `many`");
}

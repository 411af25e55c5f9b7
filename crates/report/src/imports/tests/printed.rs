//! Imports of printed results: outputs of sysbench, fs_mark, and pgbench, and those of other
//! programs by their definition. Expected numbers are typed from the files.

use model::{Bytes, Metric, Nanos, Value, record::TrialRecord};

use super::{message, recognize, run, trial, value};
use crate::imports::IMPORTERS;

macro_rules! seeds {
    ($($name:ident $file:literal $format:literal;)*) => {
        $(const $name: &str = include_str!(concat!("../../../../../fuzz/seeds/printed/", $file));)*
        /// Seeds with the names of their formats.
        const SEEDS: &[(&str, &str)] = &[$(($name, $format),)*];
    };
}

seeds! {
    ELBENCHO "elbencho" "elbencho-csv";
    FILEBENCH_4 "filebench-1.4" "filebench-text";
    FILEBENCH_5 "filebench-1.5" "filebench-text";
    FS_MARK "fs_mark" "fs_mark-text";
    FS_MARK_CALLS "fs_mark-calls" "fs_mark-text";
    IO500_RESULT "io500-result" "io500-text";
    IO500_SUMMARY "io500-summary" "io500-text";
    IOR_3 "ior-3.0" "ior-text";
    IOR_4 "ior-4" "ior-text";
    IOR_JSON "ior.json" "ior-json";
    MDTEST_1 "mdtest-1.9" "mdtest-text";
    MDTEST_4 "mdtest-4" "mdtest-text";
    PGBENCH_13 "pgbench-13" "pgbench-text";
    PGBENCH_15 "pgbench-15" "pgbench-text";
    PGBENCH_LOG "pgbench.log" "pgbench-log";
    PHORONIX "phoronix.xml" "phoronix-xml";
    SYSBENCH_0 "sysbench-0.4" "sysbench-text";
    SYSBENCH_1 "sysbench-rndrw" "sysbench-text";
    SYSBENCH_11 "sysbench-1.1" "sysbench-text";
    SYSBENCH_WRITE "sysbench-seqwr" "sysbench-text";
}

const MIB: f64 = 1048576.0;
const MS: f64 = 1e6;

/// Compares samples of a trial with numbers.
fn check(trial: &TrialRecord, expected: &[(&str, Metric, f64)]) {
    for (phase, metric, number) in expected {
        let found = value(trial, phase, *metric);
        let found = found.unwrap_or_else(|| panic!("{phase} {metric:?}: {:?}", trial.samples));
        assert!((found / number - 1.0).abs() < 1e-9, "{phase} {metric:?}: {found} {number}");
    }
}

#[test]
fn printed_results_are_recognized_and_shown() {
    for (text, format) in SEEDS {
        assert_eq!(recognize(text.as_bytes()).name, *format);
        let mut run = run(&[text]);
        assert!(run.trials.iter().all(|trial| !trial.samples.is_empty()), "{format}");
        let page = crate::html(&crate::View::new(&run), &[]);
        assert!(!page.contains("unknown was measured"), "{format}");
        assert!(page.contains("not measured by fslab"), "{format}");
        crate::plain(&mut run);
    }
    let covered = |name: &str| SEEDS.iter().any(|(_, format)| *format == name);
    let others = ["fio-json", "fio-terse", "iozone-text", "dbench-text", "bonnie-csv"];
    for importer in &IMPORTERS {
        assert!(covered(importer.name) || others.contains(&importer.name), "{}", importer.name);
    }
}

#[test]
fn truncated_results_are_rejected_or_are_fewer() {
    for (text, format) in SEEDS {
        let importer = IMPORTERS.iter().find(|own| own.name == *format).unwrap();
        let whole = importer.read(text.as_bytes()).unwrap();
        let numbers = |all: &[crate::imports::Measurement]| -> usize {
            all.iter().map(|own| own.samples.len()).sum()
        };
        for end in (0..text.len()).step_by(7) {
            let Some(part) = text.get(..end) else { continue };
            if let Ok(found) = importer.read(part.as_bytes()) {
                assert!(numbers(&found) <= numbers(&whole), "{format} {end}");
            }
        }
        for bad in ["NaN", "1e309", "-1"] {
            let digits = |c: char| c.is_ascii_digit();
            // The numbers of the last line with some are replaced.
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let at = lines.iter().rposition(|line| line.matches(digits).count() > 4).unwrap();
            lines[at] = lines[at].replace(digits, bad);
            let _ = importer.read(lines.join("\n").as_bytes());
        }
    }
    let cut = &ELBENCHO[..ELBENCHO.len() - 40];
    assert!(message(cut).contains("line 4: it has fewer fields"), "{}", message(cut));
    let number = IOR_4.replace("513.25", "x13.25");
    assert_eq!(message(&number), "line 32: expected a number, found `x13.25`");
    let cut = message(&IOR_JSON[..IOR_JSON.len() - 60]);
    assert!(cut.contains("ends before"), "{cut}");
    let xml = message(&PHORONIX.replace("</Result>", "</Rexult>"));
    assert_eq!(xml, "line 33, column 3: expected 'Result' tag, not 'Rexult'");
    let log = format!("{PGBENCH_LOG}1 2 3\n");
    assert!(message(&log).contains("line 41: expected 6 to 8 fields"), "{}", message(&log));
    let cpu = "sysbench 1.0.20\n\nCPU speed:\n    events per second:  1000.00\n";
    assert!(message(cpu).contains("only fileio is imported"));
}

#[test]
fn ior_iterations_are_repetitions() {
    let found = run(&[IOR_4]);
    assert_eq!((found.cells.len(), found.trials.len()), (1, 2));
    assert_eq!(found.info.program, "IOR 4.1.0+dev");
    check(
        &found.trials[0],
        &[
            ("write", Metric::Throughput, 512.0 * MIB),
            ("write", Metric::OpsRate, 513.25),
            ("write", Metric::Elapsed, 1000.0 * MS),
            ("read", Metric::Throughput, 2048.0 * MIB),
        ],
    );
    check(&found.trials[1], &[("write", Metric::Throughput, 480.0 * MIB)]);
    let parameters = &found.cells[0].cell.workload.parameters;
    assert_eq!(parameters["workers"], Value::Count(8));
    assert_eq!(parameters["block_size"], Value::Size(Bytes::mib(1)));
    assert_eq!(parameters["sharing"], Value::Word("file-per-process".into()));
    assert_eq!(parameters["options"], Value::Text("-w -r -e -C -t 1m -b 64m -i 2 -F".into()));
    let old = run(&[IOR_3]);
    check(&old.trials[0], &[("write", Metric::Throughput, 100.0 * MIB)]);
    assert_eq!(value(&old.trials[0], "write", Metric::OpsRate), None, "3.0 prints none");
    let json = run(&[IOR_JSON]);
    check(
        &json.trials[0],
        &[
            ("write", Metric::Throughput, 256.0 * MIB),
            ("write", Metric::OpsRate, 257.5),
            ("write", Metric::Elapsed, 1000.0 * MS),
            ("read", Metric::OpsRate, 1030.0),
        ],
    );
    let parameters = &json.cells[0].cell.workload.parameters;
    assert_eq!(parameters["workers"], Value::Count(4));
    assert_eq!(parameters["options"], Value::Text("fsync=1".into()));
}

#[test]
fn io500_phases_have_their_units_and_marks() {
    let summary = run(&[IO500_SUMMARY]);
    check(
        &summary.trials[0],
        &[
            ("ior-easy-write", Metric::Throughput, 1.5 * 1024.0 * MIB),
            ("mdtest-easy-write", Metric::OpsRate, 12_250.0),
            ("find", Metric::OpsRate, 250_000.0),
            ("score", Metric::ReportedCount, 4.895162),
        ],
    );
    let marked: Vec<_> =
        summary.trials[0].warnings.iter().filter_map(|own| own.0.clone()).collect();
    assert_eq!(marked, ["ior-easy-write", "score"]);
    assert_eq!(summary.trials[0].elapsed, Nanos(908_000_000_000));
    let result = run(&[IO500_RESULT]);
    check(
        &result.trials[0],
        &[
            ("ior-easy-write", Metric::Throughput, 1.75 * 1024.0 * MIB),
            ("mdtest-easy-write", Metric::OpsRate, 9250.0),
            ("find", Metric::OpsRate, 100_500.0),
            ("score", Metric::ReportedCount, 3.5),
        ],
    );
}

#[test]
fn mdtest_tables_of_rates_are_imported() {
    let found = run(&[MDTEST_4]);
    check(
        &found.trials[0],
        &[
            ("directory-create", Metric::OpsRate, 13203.407),
            ("directory-stat", Metric::OpsRate, 1103997.492),
            ("tree-create", Metric::OpsRate, 12284.937),
        ],
    );
    assert_eq!(value(&found.trials[0], "file-remove", Metric::OpsRate), None, "did not run");
    assert_eq!(found.cells[0].cell.workload.parameters["workers"], Value::Count(2));
    let options = &found.cells[0].cell.workload.parameters["options"];
    assert_eq!(*options, Value::Text("-n 500 -i 2 -u".into()));
    let mean =
        found.trials[0].warnings.iter().any(|(_, own)| format!("{own:?}").contains("2 iterations"));
    assert!(mean, "{:?}", found.trials[0].warnings);
    let old = run(&[MDTEST_1]);
    check(&old.trials[0], &[("file-remove", Metric::OpsRate, 5000.5)]);
    assert_eq!(old.trials.len(), 1);
}

#[test]
fn fs_mark_lines_are_cells() {
    let found = run(&[FS_MARK]);
    assert_eq!((found.cells.len(), found.trials.len()), (3, 3));
    let parameters = &found.cells[1].cell.workload.parameters;
    assert_eq!(parameters["files"], Value::Count(800));
    assert_eq!(parameters["workers"], Value::Count(2));
    assert_eq!(parameters["sync_method"], Value::Word("inband-fsync".into()));
    assert_eq!(
        run(&[FS_MARK, &FS_MARK.replace("    80 ", "    81 ")]).cells.len(),
        3,
        "repetitions"
    );
    let calls = run(&[FS_MARK_CALLS]);
    let phases: Vec<&str> = calls.cells[0].phases.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(phases, ["files", "creat", "write", "fsync", "close", "unlink"]);
    let printed: Vec<f64> = FS_MARK_CALLS
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .map(|own| own.parse().unwrap())
        .collect();
    check(
        &calls.trials[0],
        &[
            ("files", Metric::OpsRate, printed[3]),
            ("creat", Metric::LatencyMean, printed[6] * 1000.0),
            ("fsync", Metric::LatencyMax, printed[13] * 1000.0),
        ],
    );
}

#[test]
fn filebench_operations_are_phases() {
    let found = run(&[FILEBENCH_5]);
    check(
        &found.trials[0],
        &[
            ("operations", Metric::OpsRate, 200.125),
            ("operations", Metric::Throughput, 12.5 * MIB),
            ("operations", Metric::LatencyMean, 0.6 * MS),
            ("readfile1", Metric::LatencyMean, 1.25 * MS),
            ("readfile1", Metric::LatencyMax, 80.0 * MS),
        ],
    );
    assert_eq!(found.cells[0].label, "filebench fileserver");
    let old = run(&[FILEBENCH_4]);
    check(
        &old.trials[0],
        &[
            ("operations", Metric::OpsRate, 2600.5),
            ("operations", Metric::Throughput, 9.0 * MIB),
            ("operations", Metric::LatencyMean, 6.5 * MS),
            ("closefile4", Metric::LatencyMax, 1.0 * MS),
        ],
    );
}

#[test]
fn sysbench_rates_have_directions() {
    let zero = run(&[SYSBENCH_0]);
    check(
        &zero.trials[0],
        &[
            ("read", Metric::OpsRate, 2400.0),
            ("write", Metric::OpsRate, 1600.0),
            ("read", Metric::Throughput, 37.5 * MIB),
            ("write", Metric::Throughput, 25.0 * MIB),
            ("events", Metric::LatencyMean, 0.52 * MS),
            ("events", Metric::LatencyMax, 31.25 * MS),
        ],
    );
    let parameters = &zero.cells[0].cell.workload.parameters;
    assert_eq!(parameters["file_size"], Value::Size(Bytes::gib(2)));
    assert_eq!(parameters["mode"], Value::Word("rndrw".into()));
    let later = run(&[SYSBENCH_11]);
    check(
        &later.trials[0],
        &[
            ("read", Metric::OpsRate, 2048.0),
            ("read", Metric::Throughput, 8.0 * MIB),
            ("events", Metric::LatencyP99, 12.5 * MS),
        ],
    );
    let own = run(&[SYSBENCH_1]);
    let printed = |name: &str| -> f64 {
        let line = SYSBENCH_1.lines().find(|line| line.trim().starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    check(
        &own.trials[0],
        &[
            ("read", Metric::OpsRate, printed("reads/s")),
            ("write", Metric::Throughput, printed("written, MiB/s") * MIB),
            ("fsync", Metric::OpsRate, printed("fsyncs/s")),
            ("events", Metric::LatencyMax, printed("max:") * MS),
        ],
    );
    let write = run(&[SYSBENCH_WRITE]);
    assert_eq!(value(&write.trials[0], "read", Metric::OpsRate), None);
}

#[test]
fn elbencho_rows_are_cells_of_their_operations() {
    let found = run(&[ELBENCHO]);
    assert_eq!((found.cells.len(), found.trials.len()), (3, 3));
    check(
        trial(&found, "mkdirs"),
        &[("mkdirs", Metric::OpsRate, 1466.0), ("mkdirs", Metric::LatencyMean, 1.068 * MS)],
    );
    check(
        trial(&found, "operation=write"),
        &[("write", Metric::Throughput, 3276.0 * MIB), ("write", Metric::LatencyMax, 120.0 * MS)],
    );
    check(trial(&found, "operation=read"), &[("read", Metric::OpsRate, 8192.0)]);
    assert_eq!(found.cells[1].cell.workload.parameters["direct"], Value::Flag(true));
}

#[test]
fn pgbench_rates_exclude_connections() {
    let found = run(&[PGBENCH_15]);
    check(
        &found.trials[0],
        &[
            ("transactions", Metric::OpsRate, 1530.975588),
            ("transactions", Metric::LatencyMean, 1.306 * MS),
        ],
    );
    assert_eq!(found.info.program, "pgbench 15.18");
    let parameters = &found.cells[0].cell.workload.parameters;
    assert_eq!(parameters["runtime"], Value::Time(Nanos(2_000_000_000)));
    let old = run(&[PGBENCH_13]);
    check(&old.trials[0], &[("transactions", Metric::OpsRate, 2000.5)]);
    let transactions = &old.cells[0].cell.workload.parameters["transactions"];
    assert_eq!(*transactions, Value::Text("mine.sql".into()));
    let log = run(&[PGBENCH_LOG]);
    let times = PGBENCH_LOG.lines().map(|line| line.split(' ').nth(2).unwrap().parse().unwrap());
    let times: Vec<f64> = times.collect();
    let largest = times.iter().copied().fold(0.0, f64::max);
    check(&log.trials[0], &[("transactions", Metric::LatencyMax, largest * 1000.0)]);
    let mean = value(&log.trials[0], "transactions", Metric::LatencyMean).unwrap();
    let expected = times.iter().sum::<f64>() / times.len() as f64 * 1000.0;
    assert!((mean / expected - 1.0).abs() < 1e-5, "{mean} {expected}");
    assert_eq!(log.trials[0].histograms[0].histogram.count(), times.len() as u64);
    let skipped = format!("{PGBENCH_LOG}1 99 skipped 0 1795822107 900000 5\n");
    let warnings = &run(&[&skipped]).trials[0].warnings;
    assert!(
        warnings.iter().any(|(_, own)| format!("{own:?}").contains("1 transactions of the log"))
    );
}

#[test]
fn phoronix_runs_are_repetitions_with_names() {
    let found = run(&[PHORONIX]);
    assert_eq!(found.info.program, "Phoronix Test Suite 10.8.4");
    // Two systems of the first test, and one of each other.
    assert_eq!((found.cells.len(), found.trials.len()), (4, 7));
    let names: Vec<&str> =
        found.cells.iter().map(|own| own.cell.filesystem.name.as_str()).collect();
    assert_eq!(names, ["ext4", "xfs", "ext4", "ext4"]);
    check(&found.trials[2], &[("result", Metric::ReportedThroughput, 102.0 * MIB)]);
    check(&found.trials[3], &[("result", Metric::ReportedThroughput, 120.0 * MIB)]);
    check(&found.trials[4], &[("result", Metric::ReportedTime, 2.4e9)]);
    check(&found.trials[6], &[("result", Metric::ReportedThroughput, 1.5e9)]);
    let lower = PHORONIX.replace("HIB", "LIB");
    let metric = run(&[&lower]).cells[0].phases[0].primary;
    assert_eq!(metric, Metric::ReportedCount, "a throughput of which less is better");
}

#[test]
fn outputs_that_follow_each_other_are_repetitions() {
    let all =
        [IO500_RESULT, IO500_SUMMARY, IOR_3, IOR_4, MDTEST_1, MDTEST_4, PGBENCH_15, SYSBENCH_1];
    for text in all {
        let (one, two) = (run(&[text]), run(&[&format!("{text}\n{text}")]));
        assert_eq!(two.cells.len(), one.cells.len());
        assert_eq!(two.trials.len(), 2 * one.trials.len(), "{text}");
        let first = &one.trials[0];
        let same = two.trials.iter().filter(|own| {
            own.samples == first.samples
                && own.elapsed == first.elapsed
                && own.environment == first.environment
        });
        assert_eq!(same.count(), 2, "{text}");
    }
    let both = run(&[&format!("{IOR_4}\n{}", IOR_4.replace(" -e ", " "))]);
    assert_eq!((both.cells.len(), both.trials.len()), (2, 4), "other options");
}

#[test]
fn options_that_change_the_work_are_parts_of_the_cell() {
    for (one, other) in
        [("flags: (none)", "flags: directio"), ("each 100", "each 10"), ("1.50", "2")]
    {
        let both = run(&[SYSBENCH_1, &SYSBENCH_1.replace(one, other)]);
        assert_eq!(both.cells.len(), 2, "{other}");
    }
}

#[test]
fn a_missing_phase_moves_no_other() {
    let lines: Vec<&str> = IO500_SUMMARY.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("[RESULT]")).unwrap();
    let fewer = [&lines[..at], &lines[at + 1..]].concat().join("\n");
    let names = |record: &model::RunRecord| -> Vec<String> {
        record.cells[0].phases.iter().map(|own| own.name.clone()).collect()
    };
    let whole = names(&run(&[IO500_SUMMARY]));
    assert_eq!(names(&run(&[IO500_SUMMARY, &fewer])), whole);
    assert_eq!(names(&run(&[&fewer, IO500_SUMMARY])), whole);
    let joined = run(&[&format!("{fewer}\n{IO500_SUMMARY}")]);
    let counts: Vec<usize> = joined.trials.iter().map(|own| own.samples.len()).collect();
    assert_eq!(counts, [whole.len() - 1, whole.len()]);
    assert_eq!(names(&run(&[&fewer])), whole[1..]);
}

#[test]
fn failed_transactions_are_counted_by_script() {
    let text = PGBENCH_15.replace("1.306 ms", "1.306 ms (including failures)");
    check(&run(&[&text]).trials[0], &[("transactions", Metric::LatencyMean, 1.306 * MS)]);
    let text =
        PGBENCH_15.replace("without initial connection time", "including reconnection times");
    check(&run(&[&text]).trials[0], &[("transactions", Metric::OpsRate, 1530.975588)]);
    let last = PGBENCH_LOG.lines().last().unwrap();
    let mut words: Vec<&str> = last.split(' ').collect();
    (words[2], words[3]) = ("serialization", "7");
    let other = words.join(" ");
    words[3] = "8";
    words[2] = "20";
    let found = run(&[&format!("{PGBENCH_LOG}{other}\n{}\n", words.join(" "))]);
    let whole = run(&[PGBENCH_LOG]);
    assert_eq!(found.trials.len(), whole.trials.len() + 1, "no transaction of script 7 succeeded");
    assert_eq!(found.trials[0].warnings, whole.trials[0].warnings);
}

#[test]
fn phoronix_results_without_numbers_are_left_out() {
    let whole = run(&[PHORONIX]).trials.len();
    let graph = PHORONIX.replacen("<Scale>", "<DisplayFormat>LINE_GRAPH</DisplayFormat><Scale>", 1);
    assert_eq!(run(&[&graph]).trials.len(), whole - 4);
    let pass = PHORONIX.replacen("<Value>120</Value>", "<Value>PASS</Value>", 1);
    assert_eq!(run(&[&pass]).trials.len(), whole - 1);
    let attributes = " a=\"\"".repeat(2000);
    let hostile = PHORONIX.replacen("<System>", &format!("<System{attributes}>"), 1);
    assert_eq!(message(&hostile), "the file: an element has more than 1000 attributes");
}

use model::{
    Metric, RunRecord,
    record::{CellState, Outcome},
};
use proptest::prelude::*;

use super::*;
use crate::{
    View, fixture,
    imports::{IMPORTERS, Importing, assemble},
    json,
    program_layout::NotInLayout,
};

/// Records as printed by bonnie++ 2.00a, by 1.96, and by 1.96 without the large-file phases.
pub(crate) const PRINTED: &str = "\
1.98,2.00a,testhost,1,42,64M,,100,2,,,+++++,+++,+++++,+++,,,+++++,+++,+++++,+++,2,8192,1024,,4,\
3888,50,+++++,+++,+++++,+++,3025,58,+++++,+++,2384,11,,618us,1013us,,46us,180us,5044us,46us,2345us,\
4478us,104us,9533us
1.96,1.96,colo7,1,1337657098,8G,,582,98,59268,6,30754,3,3515,99,104817,4,306.1,1,512,,,,,35092,55,\
520637,91,1054,1,35182,54,791080,100,1664,2,15867us,1456ms,340ms,8997us,50112us,323ms,1232ms,541us,\
14112ms,1189ms,41us,11701ms
1.96,1.96,fslab3,1,1374655110,,,,,,,,,,,,,,60,32,32,,,1702,14,31457,99,1825,11,1689,14,38000,100,\
950,6,,,,,,,1000ms,541us,1411us,1189us,41us,117us
";

fn one(text: &str) -> Record {
    read(text).unwrap().pop().unwrap()
}

#[test]
fn the_records_of_several_versions_are_read() {
    let records = read(PRINTED).unwrap();
    let [new, old, without] = &records[..] else { panic!("three records") };
    assert_eq!((new.version.as_str(), new.seeks, new.seekers), ("2.00a", Some(100), Some(2)));
    assert_eq!(new.file, Some(Bytes::mib(64)));
    // bonnie++ writes the number of directories into the field of the I/O size.
    assert_eq!((new.directories, new.file_chunk), (Some(4), None));
    assert_eq!((new.largest, new.smallest), (Some(Largest::Bytes(8192)), Some(1024)));
    assert_eq!(new.phases[0], PhaseFigures::default(), "putc was left out");
    assert_eq!(new.phases[1].rate, Figure::Short);
    assert_eq!(new.phases[1].latency, Some(Nanos(618_000)));
    assert_eq!(new.phases[6].rate, Figure::Known(3888.0));
    assert_eq!(old.phases[5].rate, Figure::Known(306.1));
    assert_eq!(old.phases[8].latency, Some(Nanos(14_112_000_000)));
    assert_eq!((old.files, old.largest, old.file), (Some(512), None, Some(Bytes::gib(8))));
    assert_eq!((without.file, without.files), (None, Some(60)));
    assert_eq!((without.largest, without.smallest), (Some(Largest::Bytes(32)), Some(32)));
    assert_eq!(without.phases[6].rate, Figure::Known(1702.0));
    assert_eq!(without.phases[6].latency, Some(Nanos(1_000_000_000)));
}

#[test]
fn records_of_1_03_are_read_and_headers_skipped() {
    let text = "name,file_size,putc,putc_cpu,put_block\r\n\r\n\
        host,2G:64k,31000,98,60000,20,25000,7,30000,95,61000,6,210.5,0,16:4096:512/4,\
        1200,3,+++++,+++,1500,2,1210,3,+++++,+++,1010,2\r\n";
    let record = one(text);
    assert_eq!((record.format, record.name.as_str()), (Format::V103, "host"));
    assert_eq!((record.file, record.chunk), (Some(Bytes::gib(2)), Some(Bytes::kib(64))));
    assert_eq!((record.files, record.smallest), (Some(16), Some(512)));
    assert_eq!((record.largest, record.directories), (Some(Largest::Bytes(4096)), Some(4)));
    assert_eq!(record.phases[5].rate, Figure::Known(210.5));
    assert_eq!(record.phases[6].rate, Figure::Known(1200.0));
    assert_eq!(record.phases[7].cpu, Figure::Short);
    assert_eq!(record.phases[11].rate, Figure::Known(1010.0));
}

#[test]
fn errors_name_line_and_field() {
    let said = |text: &str| read(text).unwrap_err().to_string();
    let record = PRINTED.lines().next().unwrap();
    assert_eq!(
        said(&format!("\n{}", record.replace("3888,50", "fast,50"))),
        "line 2, field 27 (seq-create): expected a rate, plus signs, or an empty field, found \
         `fast`"
    );
    assert_eq!(
        said(&record.replace("618us", "618")),
        "line 1, field 40 (put-block latency): expected a time in us, ms, or s, found `618`"
    );
    assert!(said(&format!("{record},")).ends_with("have 50 fields, found 51"));
    assert!(said("a,b,c").contains("its first field is `a` and it has 3 fields"));
    assert_eq!(said("name,file_size\n"), "the file has no bonnie++ record");
    // The error states the field number in the text, which lacks fields of the layout.
    let old = PRINTED.lines().nth(1).unwrap();
    assert!(said(&old.replace(",35092,", ",x,")).contains("field 25 (seq-create)"));
    let without = PRINTED.lines().nth(2).unwrap();
    assert!(said(&without.replace(",1702,", ",x,")).contains("field 24 (seq-create)"));
}

#[test]
fn what_was_printed_is_written_again_but_for_its_mistakes() {
    let lines: Vec<&str> = PRINTED.lines().collect();
    let again: Vec<String> = read(PRINTED).unwrap().iter().map(write).collect();
    // The number of directories is in the field that the header names.
    assert_eq!(again[0], lines[0].replace(",1024,,4,3888", ",1024,4,,3888"));
    assert_eq!(again[1], lines[1]);
    // bonnie++ 1.96 omits this comma.
    assert_eq!(again[2], lines[2].replace("1374655110,", "1374655110,,"));
}

fn figure(values: impl Strategy<Value = f64>) -> impl Strategy<Value = Figure> {
    prop_oneof![Just(Figure::Empty), Just(Figure::Short), values.prop_map(Figure::Known)]
}

fn phase(seeks: bool) -> impl Strategy<Value = PhaseFigures> {
    let rate = if seeks { 0..9_999_u32 } else { 0..99_999_999 };
    let rate = rate.prop_map(move |rate| f64::from(rate) / if seeks { 10.0 } else { 1.0 });
    // Times that records can represent.
    let time = prop_oneof![
        (0..100_000_u64).prop_map(|micros| Nanos(micros * 1_000)),
        (100..100_000_u64).prop_map(|millis| Nanos(millis * 1_000_000)),
        (100..10_000_u64).prop_map(|seconds| Nanos(seconds * 1_000_000_000)),
    ];
    let cpu = (0..600_u32).prop_map(f64::from);
    (figure(rate), figure(cpu), proptest::option::of(time))
        .prop_map(|(rate, cpu, latency)| PhaseFigures { rate, cpu, latency })
}

fn any_record() -> impl Strategy<Value = Record> {
    let format = prop_oneof![Just(Format::V196), Just(Format::V197), Just(Format::V198)];
    let version = prop_oneof![Just("1.96"), Just("2.00a"), Just("fslab-0.1.0")];
    let file = prop_oneof![(1..64_u64).prop_map(Bytes::gib), (1..9999_u64).prop_map(Bytes::mib)];
    let largest = prop_oneof![
        Just(Largest::Link),
        Just(Largest::Symlink),
        (1..1_000_000_u64).prop_map(Largest::Bytes)
    ];
    let some = |most: u64| proptest::option::of(1..most);
    let head = (format, version, "[a-zA-Z0-9._-]{1,20}", some(200), "[0-9]{0,9}");
    let file = (proptest::option::of(file), proptest::option::of(512..1_048_576_u64));
    let seeks = (some(9_999), some(64));
    let files = (some(9_999), proptest::option::of(largest), some(9_999));
    // An I/O size of small files without a number of directories would be read as that number, so
    // it is not generated.
    let spread = (some(99_999), some(1_048_576));
    let phases = proptest::collection::vec((phase(false), phase(true)), 12);
    (head, file, seeks, files, spread, phases).prop_map(
        |((format, version, name, concurrency, seed), file, seeks, files, spread, phases)| {
            let phases = phases.into_iter().enumerate();
            let phases: Vec<PhaseFigures> =
                phases.map(|(at, (all, seek))| if at == SEEKS { seek } else { all }).collect();
            let known = format == Format::V198;
            Record {
                format,
                version: version.into(),
                name,
                concurrency,
                seed,
                file: file.0,
                chunk: file.1.map(Bytes),
                seeks: seeks.0.filter(|_| known),
                seekers: seeks.1.filter(|_| known),
                files: files.0,
                largest: files.1,
                smallest: files.2,
                directories: spread.0,
                file_chunk: spread.1.filter(|_| spread.0.is_some()),
                phases: phases.try_into().unwrap(),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(record in any_record()) {
        let line = write(&record);
        prop_assert_eq!(read(&line).unwrap(), vec![record]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-zA-Z,.+:/ \n-]{0,400}") {
        let _ = read(&text);
        let _ = read(&format!("1.98,{text}"));
    }
}

fn imported(text: &str) -> RunRecord {
    let importing = Importing {
        id: "imported-1".into(),
        source: "old.csv",
        now: Nanos(1_795_293_060_000_000_000),
        facts: Vec::new(),
    };
    let importer = IMPORTERS.into_iter().find(|importer| importer.name == "bonnie-csv").unwrap();
    assemble(importer.read(text.as_bytes()).unwrap(), importing)
}

#[test]
fn imported_records_are_a_run_of_the_suite() {
    let run = imported(PRINTED);
    assert_eq!((run.cells.len(), run.trials.len()), (3, 3));
    let old = &run.trials[1];
    let sample = |phase: &str, metric| {
        let mut samples = old.samples.iter();
        samples.find(|sample| sample.phase == phase && sample.metric == metric).unwrap().value
    };
    assert_eq!(sample("put-block", Metric::Throughput), 59_268.0 * 1024.0);
    assert_eq!(sample("seeks", Metric::OpsRate), 306.1);
    assert_eq!(sample("seq-stat", Metric::CpuUtilization), 0.91);
    assert_eq!(sample("seq-delete", Metric::LatencyMax), 14.112e9);
    assert_eq!(run.cells[1].label, "bonnie file_size=8GiB files=524288");
    assert_eq!(run.cells[1].phases.len(), 12);
    assert_eq!(run.cells[2].phases.len(), 6, "only what the record has figures of");
    for (cell, trial) in run.cells.iter().zip(&run.trials) {
        assert!(matches!(cell.state, CellState::Done { .. }));
        assert_eq!((trial.outcome.clone(), cell.cell.id()), (Outcome::Measured, cell.id));
        let known = trial.warnings.iter().filter(|(_, warning)| warning.code() == "imported");
        assert_eq!(known.count(), 1);
    }
    // A number that the record does not contain has no sample, neither zero nor an estimate.
    let short = run.trials[0].samples.iter().filter(|sample| sample.phase == "put-block");
    assert_eq!(short.map(|sample| sample.metric).collect::<Vec<_>>(), [Metric::LatencyMax]);
}

#[test]
fn imported_records_are_exported_as_they_were() {
    for line in PRINTED.lines().skip(1) {
        let record = one(line);
        assert_eq!(export(&imported(line), Format::V196).unwrap(), write(&record) + "\n");
    }
    let record = one(PRINTED.lines().next().unwrap());
    assert_eq!(export(&imported(&write(&record)), Format::V198).unwrap(), write(&record) + "\n");
}

#[test]
fn imported_records_never_have_findings() {
    let many: String = (0..9_u32)
        .flat_map(|repetition| [("a", 50_000 + repetition), ("b", 90_000 + repetition)])
        .map(|(name, rate)| {
            PRINTED
                .lines()
                .nth(1)
                .unwrap()
                .replace("colo7", name)
                .replace("59268", &rate.to_string())
                + "\n"
        })
        .collect();
    let run = imported(&many);
    assert_eq!((run.cells.len(), run.trials.len()), (2, 18));
    let view = View::new(&run);
    assert!(view.findings.by_point.iter().all(|point| point.findings.is_empty()));
    let value: serde_json::Value = serde_json::from_str(&json(&view)).unwrap();
    assert_eq!(value["measured_by_fslab"], false);
    assert_eq!(value["imported_from"], "bonnie++ 1.96");
    assert!(value["title"].as_str().unwrap().starts_with("Imported, not measured by fslab"));
    // Warnings with hints for plans do not apply to imported results.
    assert!(view.warnings.iter().all(|row| row.code == "imported"));
    let tests = value["workloads"][0]["tests"].as_array().unwrap();
    assert_eq!((tests.len(), tests[1]["results"].as_array().unwrap().len()), (12, 2));
    assert!(tests.iter().all(|test| test["results"][0]["ranked"] == false));
    // The same numbers without the warning of the import yield a finding.
    let mut measured = run;
    measured.warnings.clear();
    assert!(!View::new(&measured).findings.by_point[0].findings.is_empty());
}

#[test]
fn a_run_of_another_suite_has_no_records() {
    let error = export(&fixture::record(), Format::V198).unwrap_err();
    assert_eq!(error, NotInLayout::OtherSuite { suites: &["bonnie"], program: "bonnie++" });
    assert!(error.to_string().contains("suite = \"bonnie\""));
}

#[test]
fn a_run_is_a_record_for_each_repetition() {
    let run = fixture::bonnie::record();
    let text = export(&run, Format::V198).unwrap();
    let records = read(&text).unwrap();
    assert_eq!(records.len(), run.trials.len());
    let record = &records[1];
    assert_eq!((record.version.as_str(), record.seed.as_str()), ("fslab-0.1.0", "11"));
    assert_eq!(record.name, "ext4-tuned-Example-Box--9", "no commas, no spaces");
    assert_eq!((record.file, record.chunk), (Some(Bytes::gib(1)), None));
    assert_eq!((record.files, record.largest), (Some(16), Some(Largest::Bytes(8192))));
    assert_eq!((record.directories, record.file_chunk), (Some(4), Some(16_384)));
    // A phase of 0.02 s has neither rate nor CPU % in this format, but its latency.
    assert_eq!((record.phases[7].rate, record.phases[7].cpu), (Figure::Short, Figure::Short));
    assert!(record.phases[7].latency.is_some());
    assert_eq!(record.phases[1].cpu, Figure::Known(31.0));
    // A phase that did not run is empty.
    assert_eq!(records[2].phases[2], PhaseFigures::default());
    let sample = |phase: &str, metric| {
        let mut samples = run.trials[1].samples.iter();
        samples.find(|sample| sample.phase == phase && sample.metric == metric).unwrap().value
    };
    let expected = (sample("put-block", Metric::Throughput) / 1024.0).floor();
    assert_eq!(record.phases[1].rate, Figure::Known(expected));
    let old = read(&export(&run, Format::V196).unwrap()).unwrap();
    assert_eq!((old[1].phases, old[1].seeks), (record.phases, None));
}

#[test]
fn failed_repetitions_make_no_record() {
    let mut run = fixture::bonnie::record();
    for trial in &mut run.trials {
        trial.outcome = Outcome::Failed { reason: "putc: No space left on device (28)".into() };
    }
    assert_eq!(export(&run, Format::V198), Err(NotInLayout::NothingMeasured("bonnie")));
}

/// Tables that bonnie++ 2.00a printed, with other rates of files, which it prints incorrectly.
const TABLES: &str = "\
Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
verylongmachi 1500M            532m  75  1.4g  47           +++++ +++  5643  12
Latency                        8054us    4065us              4039us   22564us
Version 2.00a       ------Sequential Create------ --------Random Create--------
verylongmachinename -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--
files:max:min        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
       16:100:100/3 18158  73 +++++ +++  2692   6 +++++ +++ +++++ +++ 14470  27
Latency             10352us    4554us   36009us    8356us      56us    2154us
";

#[test]
fn tables_have_the_columns_of_bonnie() {
    let line = "1.98,2.00a,verylongmachinename,1,5,1500M,,8192,5,,,544770,75,1468010,47,,,+++++,\
                +++,5643,12,16,100,100,3,,18158,73,+++++,+++,2692,6,+++++,+++,+++++,+++,14470,27,,\
                8054us,4065us,,4039us,22564us,10352us,4554us,36009us,8356us,56us,2154us";
    let mut record = one(line);
    assert_eq!(text(&record), TABLES);
    record.version = "fslab-0.1.0".into();
    record.chunk = Some(Bytes::kib(64));
    record.phases[0].rate = Figure::Known(812.4);
    record.phases[3].rate = Figure::Known(20_480.0);
    record.phases[5].rate = Figure::Known(98.76);
    let text = text(&record);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "Version fslab-0.1.0 ------Sequential Output------ --Sequential Input- --Random-"
    );
    assert_eq!(
        lines[3],
        "verylongm 1500M:64k  812k      532m  75  1.4g  47 20.0m     +++++ +++  98.8  12"
    );
    record.file = None;
    assert!(super::text(&record).starts_with("Version fslab-0.1.0 ------Sequential Create"));
}

#[test]
fn a_header_names_each_field_once() {
    let header = header();
    let names: std::collections::BTreeSet<&str> = header.split(',').collect();
    let fields = write(&one(PRINTED)).split(',').count();
    assert_eq!((names.len(), header.split(',').count()), (50, 50));
    assert_eq!(fields, 48, "the last record is of 1.96");
    let records = PRINTED.lines().next().unwrap();
    assert_eq!(read(&format!("{header}\n{records}\n")).unwrap().len(), 1, "headers are skipped");
}

#[test]
fn the_median_of_records_has_the_median_of_each_number() {
    let records = records(&fixture::bonnie::record(), Format::V198).unwrap();
    let ext4: Vec<Record> =
        records.into_iter().filter(|own| own.name.starts_with("ext4-Ex")).collect();
    let middle = median(&ext4).unwrap();
    let mut rates: Vec<f64> = ext4.iter().filter_map(|own| own.phases[1].rate.known()).collect();
    rates.sort_by(f64::total_cmp);
    assert_eq!(rates.len(), 6);
    assert_eq!(middle.phases[1].rate, Figure::Known(f64::midpoint(rates[2], rates[3])));
    assert_eq!(middle.phases[7].rate, Figure::Short);
    assert_eq!(median(&ext4[..1]).unwrap(), ext4[0], "one repetition is its own median");
    assert_eq!(median(&[]), None);
}

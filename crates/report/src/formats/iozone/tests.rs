//! Tests of the text layout of IOzone.

use std::collections::BTreeMap;

use model::{Bytes, FillLevel, Value};

use super::*;
use crate::{fixture, imports};

/// Last columns of the values of a row. No value is wider than its column.
const ENDS: [usize; 15] = [16, 24, 33, 42, 51, 60, 69, 78, 87, 97, 107, 116, 125, 134, 143];

#[test]
fn rows_have_the_columns_that_scripts_cut_at() {
    let record = fixture::record();
    let text = iozone(&record).unwrap();
    let rows: Vec<&str> =
        text.lines().filter(|line| line.trim_start().starts_with("262144 ")).collect();
    // Five filesystems with two block sizes; the sixth was skipped.
    assert_eq!(rows.len(), 10, "{text}");
    for row in rows {
        assert_eq!(row.len(), 143, "{row}");
        let mut start = 0;
        for end in ENDS {
            let field = row[start..end].trim();
            assert!(field.parse::<u64>().is_ok(), "{field:?} in {row}");
            start = end;
        }
    }
    assert!(
        text.starts_with("\tIozone: workload as of IOzone, measured by fslab, not by IOzone\n")
    );
    assert!(text.contains("\"Writer report\"\n        \"1024\"  \"4096\"\n\"262144\"   "));
}

/// Number of values in the rows of the text that follow each other after the heads.
fn rows_after_heads(lines: &[&str]) -> usize {
    let heads = heads_at(lines);
    lines[heads + 2..].iter().take_while(|line| !line.trim().is_empty()).count()
}

/// Index of the first line of the heads.
fn heads_at(lines: &[&str]) -> usize {
    let is_first = |line: &&str| {
        line.matches("random").count() == 2
            && ["bkwd", "record", "stride"].iter().all(|word| line.contains(word))
    };
    lines.iter().position(is_first).unwrap()
}

/// One report with five options, as in `iozone -e -c -I -s 256m -r 1m`.
fn one_report() -> String {
    let mut record = two(|cells| {
        for cell in cells {
            for flag in ["include_fsync", "include_close", "direct"] {
                cell.cell.workload.parameters.insert(flag.into(), Value::Flag(true));
            }
        }
    });
    record.cells.truncate(1);
    record.trials.retain(|trial| trial.cell == 0);
    iozone(&record).unwrap()
}

/// IOzone 3.434 and later print the heads in lines 29 and 30 if there are five lines of options.
#[test]
fn the_lines_of_the_head_have_the_places_of_iozone() {
    let text = one_report();
    let lines: Vec<&str> = text.lines().collect();
    for (number, start) in [
        (1, "\tIozone: workload as of IOzone, measured by fslab, not by IOzone"),
        (2, "\t        Version fslab "),
        (3, "\t\tCompiled for 64 bit mode."),
        (4, "\t\tBuild: fslab-"),
        (6, "\tRun "),
        (7, "\tFilesystem ext4; "),
        (10, "\tMedian of 8 repetitions"),
        (16, "\tRun began: 2026-"),
        (18, "\tInclude fsync in write timing"),
        (19, "\tInclude close in write timing"),
        (20, "\tO_DIRECT feature enabled"),
        (21, "\tFile size set to 262144 kB"),
        (22, "\tRecord Size 1024 kB"),
        (23, "\tCommand line used: fslab run "),
        (24, "\tOutput is in kBytes/sec"),
        (25, "\tTime Resolution = 0.000001 seconds."),
        (26, "\tProcessor cache size set to 1024 kBytes."),
        (27, "\tProcessor cache line size set to 32 bytes."),
        (28, "\tFile stride size set to 17 * record size."),
        (30, "              kB  reclen    write"),
        (31, "          262144    1024"),
        (33, "iozone test complete."),
    ] {
        assert!(lines[number - 1].starts_with(start), "line {number}: {}", lines[number - 1]);
    }
    for blank in [5, 13, 14, 15, 17, 32] {
        assert_eq!(lines[blank - 1], "", "line {blank}");
    }
    assert_eq!(heads_at(&lines), 28);
}

/// Words from the end of the first line with a text.
fn found<'a>(within: &[&'a str], text: &str) -> Vec<&'a str> {
    let line = within.iter().find(|line| line.to_lowercase().contains(text)).copied();
    line.unwrap_or_else(|| panic!("{text}")).split_whitespace().rev().collect()
}

/// Fields that public programs cut from a text of IOzone: a converter to CSV, a script that counts
/// lines, two test frameworks, and readers of the tables of `-R` and of the throughput mode.
#[test]
fn public_readers_find_their_fields() {
    let text = one_report();
    let lines: Vec<&str> = text.lines().collect();
    let heads = heads_at(&lines);
    // Converter to CSV: number in the version line of the first four, build in the first five, and
    // the lines before the heads by words counted from their ends.
    let version = found(&lines[..4], "version").join(" ");
    assert!(version.contains(|c: char| c.is_ascii_digit()) && version.contains('.'), "{version}");
    assert!(found(&lines[..5], "build")[0].starts_with("fslab-"));
    let last = &lines[heads - 10..heads];
    assert_eq!(found(last, "output is in")[0], "kBytes/sec");
    assert_eq!(found(last, "time resolution =")[..2], ["seconds.", "0.000001"]);
    assert_eq!(found(last, "processor cache size set to")[1], "1024");
    assert_eq!(found(last, "processor cache line size set to")[1], "32");
    assert_eq!(found(&lines[heads - 5..heads], "file stride size")[3], "17");
    // Its columns: the words of the first line of heads belong to the words 7 to 11 of the second.
    let columns: Vec<&str> = lines[heads + 1].split_whitespace().collect();
    assert_eq!(columns[6..11], ["read", "write", "read", "rewrite", "read"]);
    assert_eq!(lines[heads].split_whitespace().count(), 5);
    // Test frameworks: rows of 15 integers; rows after the heads up to a blank line.
    let is_row = |line: &&&str| {
        let words: Vec<_> = line.split_whitespace().map(str::parse::<u64>).collect();
        words.len() == 15 && words.iter().all(Result::is_ok)
    };
    assert_eq!(lines.iter().filter(is_row).count(), 1);
    assert_eq!(rows_after_heads(&lines), 1);
    // A script: third and fifth word of line 31.
    let row: Vec<u64> = lines[30].split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert_eq!((row[0], row[1]), (262_144, 1024));
    // Tables of -R: title, block sizes, and rows that begin with the file size.
    for (title, column) in [("\"Writer report\"", 2), ("\"Reader report\"", 4)] {
        let at = lines.iter().position(|line| *line == title).unwrap();
        assert_eq!(lines[at + 1].trim(), "\"1024\"");
        assert_eq!(lines[at + 2], format!("\"262144\"   {} ", row[column]));
    }
    // Throughput mode: number of processes, kind, and number before the unit.
    let record = two(|cells| {
        for cell in cells {
            cell.cell.workload.parameters.insert("workers".into(), Value::Count(2));
        }
    });
    let text = iozone(&record).unwrap();
    let line = text.lines().find(|line| line.contains("Parent sees throughput for  2 readers"));
    let words = line.unwrap().split_whitespace().rev().collect::<Vec<_>>();
    assert_eq!((words[0], words[2]), ("kB/sec", "="));
    assert!(words[1].parse::<f64>().unwrap() > 0.0);
    assert!(
        text.contains("\tThroughput test with 2 processes\n\tEach process writes a 262144 kByte")
    );
}

#[test]
fn the_import_of_an_export_has_the_same_numbers() {
    let record = fixture::record();
    let text = iozone(&record).unwrap();
    let importer = imports::recognize(text.as_bytes());
    let importing = imports::Importing {
        id: "again".into(),
        source: "again",
        now: model::Nanos(1),
        facts: Vec::new(),
    };
    let again = imports::assemble(importer.read(text.as_bytes()).unwrap(), importing);
    assert_eq!(again.cells.len(), 10, "{text}");
    assert_eq!(again.info.program, "fslab 0.1.0, IOzone format");
    let names: Vec<&str> =
        again.cells.iter().map(|cell| cell.cell.filesystem.name.as_str()).collect();
    assert_eq!(names[..4], ["ext4", "ext4", "xfs", "xfs"]);
    let rows = |text: &str| -> Vec<String> {
        let is_row = |line: &&str| line.trim_start().starts_with("262144 ");
        text.lines().filter(is_row).map(str::to_owned).collect()
    };
    assert_eq!(rows(&iozone(&again).unwrap()), rows(&text));
}

#[test]
fn headings_match_iozone() {
    let text = iozone(&fixture::record()).unwrap();
    let heads: Vec<&str> =
        text.lines().filter(|line| line.contains("reclen") || line.contains("bkwd")).collect();
    // The words end in the same columns as in IOzone 3.471.
    assert_eq!(
        heads[0].trim_end(),
        format!("{}{}", " ".repeat(62), "random    random     bkwd    record    stride")
    );
    assert!(heads[1].starts_with("              kB  reclen    write  rewrite    read    reread"));
}

/// Run of two cells of ext4 with the same file size and block size, modified by `change`.
fn two(change: impl Fn(&mut [CellRecord; 2])) -> RunRecord {
    let mut record = fixture::with_records(&[1, 4].map(Bytes::mib), "two");
    let mut kept = Vec::new();
    for (index, cell) in record.cells.iter().enumerate() {
        if cell.cell.filesystem.name == "ext4" {
            kept.push(index);
        }
    }
    let mut cells = [kept[0], kept[1]].map(|index| record.cells[index].clone());
    cells[1].cell.workload = cells[0].cell.workload.clone();
    change(&mut cells);
    record.cells = cells.into();
    record.trials.retain(|trial| kept.contains(&trial.cell));
    for trial in &mut record.trials {
        trial.cell = usize::from(trial.cell == kept[1]);
        let Some(Value::Words(tests)) =
            record.cells[trial.cell].cell.workload.parameters.get("tests")
        else {
            continue;
        };
        trial.samples.retain(|sample| tests.contains(&sample.phase));
    }
    record
}

fn tests(cells: &mut [CellRecord; 2], tests: [&[&str]; 2]) {
    for (cell, tests) in cells.iter_mut().zip(tests) {
        let words = tests.iter().map(|test| (*test).to_owned()).collect();
        cell.cell.workload.parameters.insert("tests".into(), Value::Words(words));
    }
}

/// Number of values in each row, without file and block size.
fn numbers(text: &str) -> Vec<usize> {
    let rows = text.lines().filter(|line| line.trim_start().starts_with("262144 "));
    rows.map(|row| row.split_whitespace().count() - 2).collect()
}

#[test]
fn no_number_replaces_another() {
    let text = iozone(&two(|cells| {
        tests(cells, [&["write", "read", "reread"], &["write", "random-read"]]);
    }))
    .unwrap();
    assert_eq!(numbers(&text), [3, 2], "{text}");
    assert!(text.contains("tests=write,read,reread\n"), "{text}");
    assert!(text.contains("tests=write,random-read\n"), "{text}");
    // Tests of different cells share a row if no test is in both.
    let text = iozone(&two(|cells| tests(cells, [&["write", "read"], &["random-read"]]))).unwrap();
    assert_eq!(numbers(&text), [3], "{text}");
    assert!(!text.contains("tests="), "{text}");
}

#[test]
fn each_fill_level_has_a_separate_report() {
    let text = iozone(&two(|cells| cells[1].cell.fill_level = FillLevel(50))).unwrap();
    assert_eq!(numbers(&text), [13, 13], "{text}");
    assert!(text.contains("fill=0%\n") && text.contains("fill=50%\n"), "{text}");
}

#[test]
fn other_suites_are_rejected() {
    assert_eq!(
        iozone(&fixture::tasks::record()),
        Err(NotInLayout::OtherSuite { suites: &["iozone"], program: "IOzone" })
    );
    let mut record = fixture::record();
    record.trials.clear();
    assert_eq!(iozone(&record), Err(NotInLayout::NothingMeasured("iozone")));
}

fn command(unit: IozoneUnit) -> IozoneCommand {
    IozoneCommand {
        words: "fslab iozone -a".into(),
        options: vec!["Auto Mode".into()],
        unit,
        tables: true,
        workers: true,
    }
}

/// First row of one report, without file size and block size.
fn first_row(record: &RunRecord, unit: IozoneUnit) -> Vec<u64> {
    let text = iozone_output(record, &command(unit)).unwrap();
    let row = text.lines().find(|line| line.trim_start().starts_with("262144 ")).unwrap();
    row.split_whitespace().skip(2).map(|word| word.parse().unwrap()).collect()
}

#[test]
fn operations_and_microseconds_are_those_of_the_rate() {
    let mut record = two(|_| {});
    record.cells.truncate(1);
    record.trials.retain(|trial| trial.cell == 0);
    let rates = first_row(&record, IozoneUnit::KiloBytes);
    let operations = first_row(&record, IozoneUnit::Operations);
    let micros = first_row(&record, IozoneUnit::Micros);
    assert_eq!(rates.len(), 13);
    for ((rate, operations), micros) in rates.iter().zip(operations).zip(micros) {
        // Blocks of 1 MiB; all numbers are truncated.
        assert_eq!(operations, rate / 1024);
        assert!(micros.abs_diff(1_024_000_000 / rate) <= 1 + micros / 1000, "{rate} {micros}");
    }
    let text = iozone_output(&record, &command(IozoneUnit::Operations)).unwrap();
    assert!(!text.contains("Output is in kBytes/sec"), "{text}");
    assert!(text.contains("\n\tAuto Mode\n\tCommand line used: fslab iozone -a\n"), "{text}");
    let without = IozoneCommand { tables: false, ..command(IozoneUnit::KiloBytes) };
    let text = iozone_output(&record, &without).unwrap();
    assert!(!text.contains("report"), "{text}");
}

/// Texts and numbers of a workbook by row and column.
fn cells(bytes: &[u8]) -> BTreeMap<(u16, u16), String> {
    let mut cells = BTreeMap::new();
    let number = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
    let mut rest = bytes;
    loop {
        let (kind, length) = (number(rest), usize::from(number(&rest[2..])));
        let body = &rest[4..4 + length];
        rest = &rest[4 + length..];
        match kind {
            9 => assert_eq!(body, [2, 0, 0x10, 0]),
            4 => {
                assert_eq!(length, 264);
                let text = &body[8..8 + usize::from(body[7])];
                let text = String::from_utf8(text.to_vec()).unwrap();
                cells.insert((number(body), number(&body[2..])), text);
            }
            3 => {
                let value = f64::from_le_bytes(body[7..15].try_into().unwrap());
                cells.insert((number(body), number(&body[2..])), value.to_string());
            }
            10 => break,
            other => panic!("record {other}"),
        }
    }
    assert!(rest.is_empty());
    cells
}

#[test]
fn a_workbook_has_the_tables() {
    let mut record = two(|_| {});
    record.cells.truncate(1);
    record.trials.retain(|trial| trial.cell == 0);
    let rates = first_row(&record, IozoneUnit::KiloBytes);
    let cells = cells(&iozone_workbook(&record, &command(IozoneUnit::KiloBytes)).unwrap());
    let at = |row, column| cells.get(&(row, column)).map(String::as_str);
    assert_eq!(at(0, 0), Some("fslab iozone -a"));
    assert!(at(2, 0).unwrap().starts_with("iozone workload, fslab "), "{cells:?}");
    assert_eq!(
        [at(3, 0), at(4, 1), at(5, 0)],
        [Some("Writer report"), Some("1024"), Some("262144")]
    );
    assert_eq!(at(5, 1), Some(rates[0].to_string().as_str()));
    assert_eq!(at(6, 0), Some("Re-writer report"));
    assert_eq!(at(8, 1), Some(rates[1].to_string().as_str()));
    assert_eq!(cells.keys().last(), Some(&(3 + 3 * 13 - 1, 1)));
}

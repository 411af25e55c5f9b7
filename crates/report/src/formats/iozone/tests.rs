//! Tests of the text layout of IOzone.

use model::{Bytes, FillLevel};

use super::*;
use crate::fixture;

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
    assert!(text.contains("fslab, iozone workload"));
    assert!(text.contains("\"Writer report\"\n        \"1024\"  \"4096\"\n\"262144\"   "));
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
    assert_eq!(iozone(&fixture::tasks::record()), Err(NotIozone::OtherSuite));
    let mut record = fixture::record();
    record.trials.clear();
    assert_eq!(iozone(&record), Err(NotIozone::NothingMeasured));
}

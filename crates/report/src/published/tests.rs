use std::collections::BTreeSet;

use super::*;
use crate::view::{Body, TableCell};

fn totals(name: &str) -> Vec<(String, String)> {
    let set = published(name).unwrap();
    let tables = (set.tables)(set);
    let rows = tables[2].rows.iter().map(|row| match &row.body {
        Body::Cells(cells) => match &cells[0] {
            TableCell::Value(value) => (row.title.clone(), value.shown.value.clone()),
            TableCell::Text(text) => panic!("{text}"),
        },
        Body::Missing(reason) => panic!("{reason}"),
    });
    rows.collect()
}

#[test]
fn totals_are_the_sums_of_the_printed_tables() {
    let expected = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, sum)| ((*name).into(), (*sum).into())).collect()
    };
    let of_2006 = [
        ("jfs", "288.56"),
        ("xfs", "358.31"),
        ("ext3", "359.29"),
        ("ext2", "359.81"),
        ("reiserfs", "381.76"),
        ("reiser4", "454.11"),
    ];
    let of_2004 = [
        ("xfs", "288.87"),
        ("reiserfs", "305.31"),
        ("jfs", "322.09"),
        ("ext2", "379.98"),
        ("ext3", "610.05"),
    ];
    assert_eq!(totals("tasks-2006@published"), expected(&of_2006));
    assert_eq!(totals("tasks-2004@published"), expected(&of_2004));
}

#[test]
fn every_row_of_the_data_is_a_number_of_a_table() {
    for set in PUBLISHED.iter().filter(|set| set.suite == "tasks") {
        let tables = set.labelled();
        let shown: usize = tables[..2].iter().map(|table| table.values().count()).sum();
        assert_eq!(shown, set.data.lines().count() - 1, "{}", set.name);
        assert_eq!(tables[0].rows.len(), 21);
        assert!(tables[0].rows.iter().any(|row| row.title == "001 Touch 10,000 Files"));
    }
}

#[test]
fn it_says_everywhere_that_it_was_not_measured_here() {
    for set in PUBLISHED {
        assert!(set.labelled().iter().all(|table| {
            table.caption.iter().any(|line| line.starts_with("Published, not measured by fslab"))
        }));
        let html = set.html();
        let (label, count) = (set.label(), set.labelled().len());
        assert_eq!(html.matches(&label).count(), count);
        assert_eq!(html.matches("<table").count(), count);
        for line in set.csv().lines().skip(1) {
            assert!(line.starts_with(&format!("\"{label}")));
        }
        let value: serde_json::Value = serde_json::from_str(&set.json()).unwrap();
        assert_eq!(value["measured_by_fslab"], false);
        assert_eq!(value["tables"].as_array().map(Vec::len), Some(count));
        assert!(set.markdown().contains("Published, not measured by fslab"));
    }
}

/// The decoded records of the study, made and checked apart from this reader: configuration, phase,
/// metric, value.
#[test]
fn the_records_of_2012_hold_what_their_tables_print() {
    let set = published("bonnie-2012@published").unwrap();
    let tables = set.labelled();
    let shown: usize = tables.iter().map(|table| table.values().count()).sum();
    assert_eq!(shown, 396, "11 configurations, 12 phases, 3 numbers each");
    let value = |table: usize, row: &str, column: &str| {
        let table = &tables[table];
        let column = table.columns.iter().position(|found| found.title == column).unwrap();
        let row = table.rows.iter().find(|found| found.title == row).unwrap();
        match &row.body {
            Body::Cells(cells) => match &cells[column] {
                TableCell::Value(value) => (value.shown.value.clone(), value.sort),
                TableCell::Text(text) => panic!("{text}"),
            },
            Body::Missing(reason) => panic!("{reason}"),
        }
    };
    let shown = |table, row, column| value(table, row, column).0;
    assert_eq!(value(0, "ext4 defaults", "put-block"), ("57.88".into(), 59_268.0 * 1024.0));
    assert_eq!(shown(0, "xfs", "putc"), "1391");
    assert_eq!(shown(1, "ext4 defaults", "seeks"), "306.1");
    assert_eq!(shown(1, "btrfs leaf 65536", "ran-delete"), "11652");
    assert_eq!(shown(2, "ext4 tuned", "seq-delete"), "2");
    assert_eq!(shown(3, "ext4 defaults", "seq-delete"), "14112");
    assert_eq!(shown(3, "btrfs", "ran-stat"), "0.016");
    assert_eq!(value(3, "btrfs", "ran-stat").1, 16e3);
    let configurations = (set.configurations)(set);
    assert_eq!(configurations.len(), 11);
    assert!(configurations[1].1.contains("tune2fs -o journal_data_writeback /dev/sda9"));
    assert_eq!(configurations[7].1, "no commands are printed");
}

#[test]
fn it_fits_the_terminal() {
    for set in PUBLISHED {
        for width in [80, 120] {
            let options = TerminalOptions { width, color: false, detail: false };
            for line in set.terminal(&options).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
    let options = TerminalOptions { width: 80, color: false, detail: false };
    let text = published("tasks-2006").unwrap().terminal(&options);
    expect_test::expect_file!["../../golden/tasks-2006.txt"].assert_eq(&text);
    let text = published("bonnie-2012").unwrap().terminal(&options);
    expect_test::expect_file!["../../golden/bonnie-2012.txt"].assert_eq(&text);
}

#[test]
fn names_are_unique_and_found_with_and_without_their_suffix() {
    let names: BTreeSet<&str> = PUBLISHED.iter().map(|set| set.name).collect();
    assert_eq!(names.len(), PUBLISHED.len());
    for set in PUBLISHED {
        assert_eq!(published(&set.full_name()).map(|found| found.name), Some(set.name));
        assert_eq!(published(set.name).map(|found| found.name), Some(set.name));
    }
    assert!(published("tasks-1999@published").is_none());
}

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
    for set in PUBLISHED {
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
        assert_eq!(
            html.matches("Published, not measured by fslab; means of 3 runs, no intervals").count(),
            3
        );
        assert_eq!(html.matches("<table").count(), 3);
        for line in set.csv().lines().skip(1) {
            assert!(line.starts_with("\"Published, not measured by fslab; means of 3 runs"));
        }
        let value: serde_json::Value = serde_json::from_str(&set.json()).unwrap();
        assert_eq!(value["measured_by_fslab"], false);
        assert_eq!(value["tables"].as_array().map(Vec::len), Some(3));
        assert!(set.markdown().contains("Published, not measured by fslab"));
    }
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

//! Reports of suite `bonnie`, with removed options and converted filesystems.

use expect_test::expect_file;

use super::{every_table, plain};
use crate::{
    View, fixture, html, json, terminal,
    view::{Body, Table, TableCell},
};

fn view() -> View {
    View::new(&fixture::bonnie::record())
}

fn cell<'a>(table: &'a Table, row: &str, column: &str) -> &'a TableCell {
    let column = table.columns.iter().position(|found| found.title == column).unwrap();
    match &table.rows.iter().find(|found| found.title == row).unwrap().body {
        Body::Cells(cells) => &cells[column],
        Body::Missing(reason) => panic!("{reason}"),
    }
}

#[test]
fn it_shows_rates_cpu_and_latencies_by_configuration_and_phase() {
    let text = terminal(&view(), &plain(80, false));
    expect_file!["../../golden/bonnie.txt"].assert_eq(&text);
    for width in [80, 120] {
        for detail in [false, true] {
            for line in terminal(&view(), &plain(width, detail)).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
    let page = html(&view(), &[]);
    for title in ["CPU %: bonnie", "Latency, p50: bonnie", "Latency, p99: bonnie"] {
        assert!(page.contains(title), "{title}");
    }
}

#[test]
fn a_phase_that_the_filesystem_lacks_is_a_dash_with_its_warning() {
    let view = view();
    let output = &view.overviews[0].by_point[0];
    match cell(output, "btrfs converted", "rewrite") {
        TableCell::Text(text) => assert_eq!(text, "- not-supported"),
        TableCell::Value(value) => panic!("{value:?}"),
    }
    let row = view.warnings.iter().find(|row| row.code == "not-supported").unwrap();
    assert!(row.message.contains("updates in place"), "{}", row.message);
    assert_eq!(row.places, ["btrfs converted · bonnie · rewrite"]);
    assert!(!json(&view).contains("no sample of"));
}

#[test]
fn a_removed_option_is_a_warning_of_its_configuration() {
    let view = view();
    for table in &view.overviews[0].by_point {
        for (name, gone) in [("ext4", false), ("ext4 tuned", true)] {
            let TableCell::Value(value) = cell(table, name, &table.columns[0].title) else {
                panic!("a number")
            };
            assert_eq!(value.codes.contains(&"option-removed"), gone, "{}: {name}", table.title);
        }
    }
}

#[test]
fn setup_is_a_lifecycle_step_of_filesystems_that_have_it() {
    let view = view();
    let time = every_table(&view).into_iter().find(|table| table.id == "lifecycle-time").unwrap();
    let titles: Vec<&str> = time.columns.iter().map(|column| column.title.as_str()).collect();
    assert_eq!(titles, ["mkfs", "setup", "mount", "umount", "fsck"]);
    assert!(matches!(cell(time, "ext4", "setup"), TableCell::Text(text) if text == "none"));
    assert!(matches!(cell(time, "btrfs converted", "setup"), TableCell::Value(_)));
}

#[test]
fn small_file_sets_have_elapsed_time_and_rate() {
    let mut record = fixture::bonnie::record();
    for cell in &mut record.cells {
        cell.cell.workload.suite = "small-files".into();
    }
    let view = View::new(&record);
    let tables = &view.overviews[0].by_point;
    let seconds = tables.iter().find(|table| table.title.starts_with("Seconds per file set"));
    let seconds = seconds.unwrap();
    assert!(seconds.columns.iter().all(|column| column.unit == "s"));
    assert!(seconds.values().all(|value| value.interval.is_some()));
    assert!(!tables.iter().any(|table| table.title.starts_with("CPU %")));
}

use std::collections::BTreeSet;

use super::*;
use crate::view::{Body, TableCell};

fn totals(name: &str) -> Vec<(String, String)> {
    let set = published(name).unwrap();
    let tables = set.tables();
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
        let tables = set.labeled();
        let shown: usize = tables[..2].iter().map(|table| table.values().count()).sum();
        assert_eq!(shown, set.data().lines().count() - 1, "{}", set.name);
        assert_eq!(tables[0].rows.len(), 21);
        assert!(tables[0].rows.iter().any(|row| row.title == "001 Touch 10,000 Files"));
    }
}

#[test]
fn every_format_states_that_it_was_not_measured() {
    for set in PUBLISHED.iter() {
        assert!(set.labeled().iter().all(|table| {
            table.caption.iter().any(|line| line.starts_with("Published, not measured by fslab"))
        }));
        let html = set.html();
        let (label, count) = (set.label(), set.labeled().len());
        assert!(html.matches(&label).count() >= count);
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

/// The expected values were decoded from the records independently of this parser: configuration,
/// phase, metric, value.
#[test]
fn the_records_of_2012_hold_what_their_tables_print() {
    let set = published("bonnie-2012@published").unwrap();
    let tables = set.labeled();
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
    let configurations = set.configurations();
    assert_eq!(configurations.len(), 11);
    assert!(configurations[1].1.contains("tune2fs -o journal_data_writeback /dev/sda9"));
    assert_eq!(configurations[7].1, "no commands are printed");
}

/// Cell with this row and column.
fn cell<'a>(table: &'a crate::view::Table, row: &str, column: &str) -> &'a crate::view::ValueCell {
    let column = table.columns.iter().position(|found| found.title == column).unwrap();
    let row = table.rows.iter().find(|found| found.title == row).unwrap();
    let Body::Cells(cells) = &row.body else { panic!("{row:?}") };
    match &cells[column] {
        TableCell::Value(value) => value,
        TableCell::Text(text) => panic!("{text}"),
    }
}

#[test]
fn twelve_tables_hold_every_number_of_the_study_of_2009() {
    let set = published("iozone-2009").unwrap();
    let tables = set.labeled();
    assert_eq!(tables.len(), 12);
    let values = || tables.iter().flat_map(|table| table.values());
    let deviations = values().filter(|value| value.note.starts_with("s = ")).count();
    assert_eq!((values().count(), deviations), (520, 416));
    assert_eq!(values().count() + deviations, set.numbers());
    // Each number has its digits and is in its own cell.
    let mut deviation = 0;
    for (number, value) in iozone::study().numbers.iter().zip(values_by_cell(&tables)) {
        assert_eq!(value.shown.value, format!("{:.2}", number.mean));
        if let Some((_, text)) = &number.deviation {
            assert!(value.note.starts_with(&format!("s = {text} (")), "{}", value.note);
            deviation += 1;
        }
    }
    assert_eq!(deviation, 416);
}

/// All numbers in the order of tables, rows, and columns, which is that of the source.
fn values_by_cell(tables: &[crate::view::Table]) -> impl Iterator<Item = &crate::view::ValueCell> {
    let cells = tables.iter().flat_map(|table| &table.rows).flat_map(|row| match &row.body {
        Body::Cells(cells) => cells.as_slice(),
        Body::Missing(reason) => panic!("{reason}"),
    });
    cells.map(|cell| match cell {
        TableCell::Value(value) => value,
        TableCell::Text(text) => panic!("{text}"),
    })
}

#[test]
fn intervals_match_scipy_and_marks_are_at_their_numbers() {
    let set = published("iozone-2009").unwrap();
    let tables = set.labeled();
    // SciPy 1.17.1, t.interval(0.95, 9, 100476.50, 167.31 / sqrt(10)): see analysis/reference.
    let interval = cell(&tables[0], "reiser4", "write").interval.unwrap();
    let (low, high) = (interval.low / 1024.0, interval.high / 1024.0);
    assert!((low - 100_356.813_636).abs() < 1e-3 && (high - 100_596.186_364).abs() < 1e-3);
    let malformed = cell(&tables[1], "xfs", "reread");
    assert_eq!(malformed.codes, ["malformed-number"]);
    assert!(malformed.note.ends_with("printed 106,9992.0"), "{}", malformed.note);
    let copied = cell(&tables[6], "xfs", "fwrite");
    assert_eq!(copied.codes, ["repeated-value"]);
    let slipped = cell(&tables[8], "1 MiB", "rewrite");
    assert_eq!(
        (slipped.codes.as_slice(), slipped.interval),
        (["conflicting-values"].as_slice(), None)
    );
    assert!(slipped.note.contains("table 1 has 94,290.90"), "{}", slipped.note);
    // The audit finds 7 malformed and 16 conflicting numbers.
    let marks = |code: &str| {
        let all = tables.iter().flat_map(|table| table.values());
        all.filter(|value| value.codes.contains(&code)).count()
    };
    assert_eq!((marks("malformed-number"), marks("conflicting-values")), (7, 16));
}

#[test]
fn trends_are_reported_if_summaries_support_them() {
    let (claims, withheld) = trends::findings(iozone::study());
    assert_eq!(claims.len() + withheld.len(), 13 * 8);
    let label = |what: &str| claims.iter().find(|claim| claim.contains(what)).cloned();
    let rises = label("throughput of jfs on random write").unwrap();
    assert!(rises.contains("increased") && rises.contains("by 37.3 %"), "{rises}");
    let falls = label("throughput of btrfs on record rewrite").unwrap();
    assert!(falls.contains("decreased"), "{falls}");
    assert!(label("throughput of ext3 on backwards read").unwrap().contains("peaked"));
    assert!(label("throughput of xfs on write").unwrap().contains("insensitive"));
    // Numbers marked as copies have no finding.
    assert!(label("throughput of xfs on fwrite").is_none());
    let why = withheld.iter().find(|reason| reason.contains("of xfs on fwrite")).unwrap();
    assert!(why.contains("same as table"), "{why}");
}

#[test]
fn every_chart_is_labeled_as_not_measured() {
    for (name, charts) in
        [("tasks-2004", 1), ("tasks-2006", 2), ("iozone-2009", 13 * 5), ("bonnie-2012", 6)]
    {
        let set = published(name).unwrap();
        let groups = set.extras().groups;
        let drawn: Vec<_> =
            groups.iter().flat_map(|group| group.first.iter().chain(&group.rest)).collect();
        assert_eq!(drawn.len(), charts, "{name}");
        let ids: BTreeSet<&str> = drawn.iter().map(|drawn| drawn.id.as_str()).collect();
        assert_eq!(ids.len(), charts);
        for drawn in drawn {
            for text in [&drawn.title, &drawn.svg, &drawn.caption] {
                assert!(text.to_lowercase().contains("not measured by fslab"), "{text}");
            }
        }
        let html = set.html();
        assert_eq!(html.matches("<svg class=\"chart").count(), charts);
        for code in ["malformed-number", "conflicting-values", "repeated-value"] {
            let linked = html.contains(&format!("href=\"#warning-{code}\""));
            assert_eq!(linked, name == "iozone-2009");
            assert_eq!(
                html.matches(&format!("id=\"warning-{code}\"")).count(),
                usize::from(linked)
            );
        }
    }
}

#[test]
fn it_fits_the_terminal() {
    for set in PUBLISHED.iter() {
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
    let text = published("iozone-2009").unwrap().terminal(&options);
    expect_test::expect_file!["../../golden/iozone-2009.txt"].assert_eq(&text);
}

#[test]
fn names_are_unique_and_found_with_and_without_their_suffix() {
    let names: BTreeSet<&str> = PUBLISHED.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(names.len(), PUBLISHED.len());
    for set in PUBLISHED.iter() {
        assert_eq!(published(&set.full_name()).map(|found| &found.name), Some(&set.name));
        assert_eq!(published(&set.name).map(|found| &found.name), Some(&set.name));
    }
    assert!(published("tasks-1999@published").is_none());
}

#[test]
fn all_sets_share_one_schema_with_numbers_and_the_printed_text() {
    let rows = |name: &str| -> Vec<Vec<String>> {
        let text = published(name).unwrap().csv();
        let mut lines = text.split_terminator("\r\n");
        assert_eq!(lines.next(), Some(numbers::HEADER.trim_end()));
        let rows = numbers::rows(&text);
        assert_eq!(rows.len(), lines.count());
        rows
    };
    let count = numbers::HEADER.split(',').count();
    for set in PUBLISHED.iter() {
        for row in rows(&set.name) {
            assert_eq!(row.len(), count, "{row:?}");
            assert!(row[9].parse::<f64>().is_ok() && row[11].parse::<u32>().is_ok(), "{row:?}");
            assert!(row[10].is_empty() || row[10].parse::<f64>().is_ok(), "{row:?}");
            assert!(!row[13].is_empty(), "{row:?}");
        }
    }
    assert_eq!(rows("iozone-2009").len(), 520);
    let first = &rows("iozone-2009")[0];
    assert_eq!(
        first[3..9].join(","),
        "1,reiser4,write,1048576,throughput,bytes_per_second",
        "{first:?}"
    );
    assert_eq!(first[9], (100_476.5 * 1024.0).to_string());
    assert_eq!(first[13..], ["100,476.50", "167.31", "KB/s", ""]);
    let malformed = rows("iozone-2009").into_iter().find(|row| row[13] == "106,9992.0");
    assert_eq!(malformed.unwrap()[16], "malformed-number");
    let touch = &rows("tasks-2006")[0];
    assert_eq!((touch[5].as_str(), touch[9].as_str()), ("001 Touch 10,000 Files", "48250000000"));
    // The value equals the printed text in base units.
    let records = rows("bonnie-2012");
    assert_eq!(records.len(), 396);
    for row in records {
        let (digits, factor) = match row[13].trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
            digits if row[13].ends_with("us") => (digits, 1e3),
            digits if row[13].ends_with("ms") => (digits, 1e6),
            digits if row[13].ends_with('s') => (digits, 1e9),
            digits if row[15] == "K/s" => (digits, 1024.0),
            digits if row[15] == "%" => (digits, 0.01),
            digits => (digits, 1.0),
        };
        let (printed, value): (f64, f64) = (digits.parse().unwrap(), row[9].parse().unwrap());
        assert!((printed * factor - value).abs() <= 1e-9 * value.abs(), "{row:?}");
    }
}

#[test]
fn records_of_2012_leave_as_they_were_printed_and_in_the_later_layout() {
    let set = published("bonnie-2012").unwrap();
    let printed = set.bonnie(Format::V196).unwrap();
    assert!(printed.starts_with("1.96,1.96,colo7,1,1337657098,8G,,582,98,59268,6,30754,3,"));
    let later = set.bonnie(Format::V198).unwrap();
    let read = |text: &str| crate::bonnie::read(text).unwrap();
    for (one, other) in read(&printed).into_iter().zip(read(&later)) {
        assert_eq!(one.phases, other.phases);
    }
    assert_eq!(published("tasks-2004").unwrap().bonnie(Format::V196), None);
}

#[test]
fn charts_have_full_names_and_block_sizes() {
    for set in PUBLISHED.iter() {
        for drawn in set.charts().iter().filter(|drawn| drawn.wide) {
            assert!(!drawn.svg.contains('…'), "{}", drawn.id);
        }
    }
    let charts = published("bonnie-2012").unwrap().charts();
    assert!(charts[0].svg.contains(">btrfs after deleting, snapshot kept</text>"));
    assert!(charts[0].svg.contains("<title>ext4 defaults, put-block: 57.9</title>"));
    assert!(charts[2].svg.contains(">520637</text>"), "{}", charts[2].svg);
}

#[test]
fn every_chart_is_self_contained_and_names_its_source() {
    for set in PUBLISHED.iter() {
        let charts: Vec<_> = crate::export::published(set).collect();
        assert_eq!(charts.len(), set.charts().len());
        let names: BTreeSet<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
        assert_eq!(names.len(), charts.len());
        for chart in &charts {
            assert!(chart.svg.contains("not measured by fslab"), "{}", chart.name);
            assert!(chart.svg.contains(&set.full_name()), "{}", chart.name);
            assert!(!chart.svg.contains("class=\""), "{}", chart.name);
        }
    }
}

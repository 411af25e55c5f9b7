//! Reports of suite `tasks`: tables of the tasks, totals, system activity, lifecycle, and run
//! conditions.

use expect_test::expect_file;
use model::{FillLevel, Metric, RunRecord, Warning, record::Outcome};

use super::{every_table, plain};
use crate::{
    View,
    fixture::tasks::{self, TASKS},
    html, json, markdown, terminal,
    view::{Body, Row, Table, TableCell, ValueCell},
};

fn row<'a>(table: &'a Table, title: &str) -> &'a Row {
    table.rows.iter().find(|row| row.title == title).unwrap()
}

fn cells(row: &Row) -> &[TableCell] {
    match &row.body {
        Body::Cells(cells) => cells,
        Body::Missing(reason) => panic!("{}: {reason}", row.title),
    }
}

fn value(cell: &TableCell) -> &ValueCell {
    match cell {
        TableCell::Value(value) => value,
        TableCell::Text(text) => panic!("{text}"),
    }
}

fn missing(row: &Row) -> &str {
    match &row.body {
        Body::Missing(reason) => reason,
        Body::Cells(_) => panic!("{} has numbers", row.title),
    }
}

/// Removes the samples of one task of one cell from some repetitions.
fn without(record: &mut RunRecord, cell: usize, task: &str, repetitions: std::ops::Range<u32>) {
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == cell) {
        if repetitions.contains(&trial.repetition) {
            trial.samples.retain(|sample| sample.phase != task);
        }
    }
}

#[test]
fn the_terminal_report_of_tasks_matches_the_golden_file() {
    let view = View::new(&tasks::record());
    let text = terminal(&view, &plain(80, false));
    expect_file!["../../golden/tasks.txt"].assert_eq(&text);
    let text = terminal(&view, &plain(80, true));
    expect_file!["../../golden/tasks-detail.txt"].assert_eq(&text);
    expect_file!["../../golden/tasks.md"].assert_eq(&markdown(&view));
}

#[test]
fn no_line_of_it_is_wider_than_the_terminal() {
    let mut one = tasks::record();
    one.cells.truncate(1);
    one.trials.retain(|trial| trial.cell == 0);
    for record in [tasks::record(), one, many()] {
        let view = View::new(&record);
        for width in [80, 100, 120] {
            for detail in [false, true] {
                for line in terminal(&view, &plain(width, detail)).lines() {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                }
            }
        }
    }
}

/// Run with four additional filesystems, one of which has a failed repetition.
fn many() -> RunRecord {
    let mut record = tasks::record();
    let mut rng = fastrand::Rng::with_seed(6);
    for name in ["xfs", "nilfs2-small-segments", "f2fs", "bcachefs"] {
        record.cells.push(tasks::cell(name, FillLevel(0)));
        for repetition in 0..8 {
            let mut trial = tasks::trial(record.cells.len() % 2, repetition, &mut rng);
            trial.cell = record.cells.len() - 1;
            record.trials.push(trial);
        }
    }
    if let Some(trial) = record.trials.last_mut() {
        trial.outcome = Outcome::Failed { reason: "002-find-files: Input/output error (5)".into() };
    }
    record
}

#[test]
fn a_filesystem_with_a_failed_repetition_is_shown_and_not_ranked() {
    let view = View::new(&many());
    let seconds = &view.overviews[0].by_point[0];
    assert_eq!(seconds.columns.len(), 6);
    let caption = seconds.caption.join("; ");
    assert!(caption.contains("bcachefs: 1 of 8 repetitions failed, not ranked"), "{caption}");
    let total = row(&view.overviews[0].composites[0], "bcachefs");
    assert_eq!(total.note, "1 of 8 repetitions failed");
    assert!(!value(&cells(total)[0]).top && value(&cells(total)[0]).n == 7);
    assert!(matches!(&cells(total)[2],
        TableCell::Text(text) if text == "not ranked: repetitions failed"));
    // Rows are sorted by total, smallest first.
    let rows = view.overviews[0].composites[0].rows.iter();
    let totals: Vec<f64> = rows
        .filter_map(|row| match &row.body {
            Body::Cells(cells) => Some(value(&cells[0]).sort),
            Body::Missing(_) => None,
        })
        .collect();
    assert!(totals.len() == 6 && totals.is_sorted());
}

#[test]
fn tasks_of_any_duration_are_rows_in_seconds() {
    let view = View::new(&tasks::record());
    let titles: Vec<&str> =
        view.overviews[0].by_point.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(titles, ["Seconds: tasks", "CPU %: tasks"]);
    let seconds = &view.overviews[0].by_point[0];
    assert!(seconds.columns.iter().all(|column| column.unit == "s"));
    let find = value(&cells(row(seconds, "002-find-files"))[0]);
    assert!(find.shown.value.starts_with("0.0034"), "{}", find.shown.value);
    let caption = seconds.caption.join("; ");
    let caches = "caches unchanged between steps, but cold before 021-read-file";
    assert!(caption.contains(caches), "{caption}");
    assert!(missing(row(seconds, "reiser4")).starts_with("skipped: no kernel"));
    let titles: Vec<&str> =
        view.overviews[0].further.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(titles, ["Seconds including sync: tasks", "CPU % including kernel threads: tasks"]);
}

#[test]
fn the_total_of_a_repetition_is_the_sum_of_its_tasks() {
    let mut record = tasks::record();
    // Times in seconds: ext4 100, 2, 50 and btrfs 150, 1, 50.
    for trial in &mut record.trials {
        let times = if trial.cell == 0 { [100.0, 2.0, 50.0] } else { [150.0, 1.0, 50.0] };
        for sample in trial.samples.iter_mut().filter(|sample| sample.metric == Metric::Elapsed) {
            if let Some(at) = TASKS.iter().position(|(name, ..)| *name == sample.phase) {
                sample.value = times[at] * 1e9 * (1.0 + f64::from(trial.repetition) / 1000.0);
            }
        }
    }
    let view = View::new(&record);
    let table = &view.overviews[0].composites[0];
    let medians = |name: &str| {
        let cells = cells(row(table, name));
        [0, 3, 4].map(|at| value(&cells[at]).sort)
    };
    let near = |value: f64, wanted: f64| assert!((value / wanted - 1.0).abs() < 1e-9, "{value}");
    let drift = 1.0035;
    // Best medians: 100, 1, and 50 s.
    for (name, sum, rest, product) in [("ext4", 152.0, 52.0, 2.0f64), ("btrfs", 201.0, 51.0, 1.5)] {
        let [total, without, ratios] = medians(name);
        near(total, sum * 1e9 * drift);
        near(without, rest * 1e9 * drift);
        near(ratios, product.cbrt());
    }
    assert_eq!(table.columns[3].title, "without 001-touch-files");
    // The sum favors ext4 and the mean of ratios favors btrfs. The caption notes the disagreement.
    assert!(value(&cells(row(table, "ext4"))[0]).top && !value(&cells(row(table, "btrfs"))[0]).top);
    assert!(!value(&cells(row(table, "ext4"))[4]).top && value(&cells(row(table, "btrfs"))[4]).top);
    let caption = table.caption.join("; ");
    for needed in ["different top groups", "001-touch-files, 66 to 75 %", "long tasks"] {
        assert!(caption.contains(needed), "{needed}: {caption}");
    }
    match &cells(row(table, "btrfs"))[1] {
        TableCell::Text(text) => assert!(text.starts_with("×1.32"), "{text}"),
        TableCell::Value(_) => panic!("a ratio is words"),
    }
}

#[test]
fn a_filesystem_without_a_task_has_a_reason_instead_of_a_total() {
    let mut record = tasks::record();
    without(&mut record, 1, "021-read-file", 0..8);
    let view = View::new(&record);
    let table = &view.overviews[0].composites[0];
    assert_eq!(missing(row(table, "btrfs")), "no total: no result for 021-read-file");
    assert!(missing(row(table, "reiser4")).starts_with("skipped"));
    let ext4 = cells(row(table, "ext4"));
    assert!(!value(&ext4[0]).top, "one alone is not compared");
    // The best medians exclude the tasks of the filesystem without a total.
    assert!((value(&ext4[4]).sort - 1.0).abs() < 0.02);
}

#[test]
fn a_repetition_without_a_task_counts_in_no_total() {
    let mut record = tasks::record();
    without(&mut record, 1, "002-find-files", 0..2);
    let view = View::new(&record);
    let table = &view.overviews[0].composites[0];
    assert_eq!(value(&cells(row(table, "btrfs"))[0]).n, 6);
    assert_eq!(value(&cells(row(table, "ext4"))[0]).n, 8);
}

#[test]
fn three_repetitions_have_totals_and_no_findings() {
    let mut record = tasks::record();
    record.trials.retain(|trial| trial.repetition < 3);
    let view = View::new(&record);
    let table = &view.overviews[0].composites[0];
    assert!(!table.has_top() && table.values().all(|value| value.shown.interval.is_none()));
    assert!(matches!(&cells(row(table, "ext4"))[2],
        TableCell::Text(text) if text == "not ranked: see warnings"));
    // The page explains each warning code of a number.
    let page = html(&view, &[]);
    for code in view.overviews[0].all().flat_map(Table::values).flat_map(|value| &value.codes) {
        assert!(page.contains(&format!("id=\"warning-{code}\"")), "{code}");
    }
}

#[test]
fn values_that_are_not_available_are_not_zero() {
    let view = View::new(&tasks::record());
    let of_read = &view.details[0][2].activity;
    let cpu = row(&of_read[0], "workload");
    assert!(matches!(&cells(cpu)[1], TableCell::Text(text) if text == "not available"));
    assert_eq!(value(&cells(cpu)[0]).shown.value, "31.00");
    let flushes = row(&of_read[1], "flush requests");
    assert_eq!(value(&cells(flushes)[0]).sort, 0.0);
    assert!(matches!(&cells(flushes)[1], TableCell::Text(text) if text == "not available"));
    let page = html(&view, &[]);
    assert!(page.contains("<summary>System activity: CPU and devices"));
    assert!(page.contains(">not available</td>"));
}

#[test]
fn parts_of_the_cpu_time_add_up_to_the_whole_machine() {
    let view = View::new(&tasks::record());
    let table = &view.details[0][0].activity[0];
    let share = |title: &str| value(&cells(row(table, title))[0]).sort;
    let parts = ["workload", "attributed kernel threads", "other kernel threads"];
    let others = ["other processes", "fslab monitoring", "unattributed"];
    let sum: f64 = parts.into_iter().chain(others).map(share).sum();
    assert!((sum - share("whole machine")).abs() < 1e-6, "{sum}");
    let attributed = share("· journal") + share("· writeback");
    assert!((attributed - share("attributed kernel threads")).abs() < 1e-6);
    assert!(table.rows.iter().all(|row| row.title != "· reclaim"), "parts of zero are omitted");
    let merged = row(&view.details[0][0].activity[1], "merged requests");
    assert!((value(&cells(merged)[0]).sort - 630.0 / 841.0).abs() < 1e-9);
}

#[test]
fn the_lifecycle_has_a_row_per_fill_level() {
    let mut record = tasks::record();
    let view = View::new(&record);
    let titles = |view: &View| -> Vec<String> {
        view.lifecycle[0].rows.iter().map(|row| row.title.clone()).collect()
    };
    assert_eq!(titles(&view), ["ext4", "btrfs", "reiser4"]);
    let work = &view.lifecycle[1];
    assert_eq!(cells(row(work, "ext4 · mkfs")).len(), 4);
    assert!(matches!(&cells(row(work, "ext4 · mount"))[0],
        TableCell::Text(text) if text == "no program"));
    let space = &view.lifecycle[2];
    assert!((value(&cells(row(space, "ext4"))[1]).sort - 0.9).abs() < 1e-9);
    assert!(matches!(&cells(row(space, "btrfs"))[2],
        TableCell::Text(text) if text == "on demand"));

    for name in ["ext4", "btrfs"] {
        let mut cell = tasks::cell(name, FillLevel(80));
        cell.label = "tasks full=80%".into();
        record.cells.push(cell);
    }
    let mut rng = fastrand::Rng::with_seed(3);
    for repetition in 0..8 {
        for (at, cell) in [(0, 3), (1, 4)] {
            let mut trial = tasks::trial(at, repetition, &mut rng);
            trial.cell = cell;
            record.trials.push(trial);
        }
    }
    let view = View::new(&record);
    assert_eq!(
        titles(&view),
        ["ext4 · empty", "ext4 · 80 % full", "btrfs · empty", "btrfs · 80 % full", "reiser4"]
    );
    assert_eq!(view.suites[0].points.len(), 2, "another fullness is another point");
    assert_eq!(view.overviews[0].composites.len(), 2);
    let text = terminal(&view, &plain(80, true));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
}

#[test]
fn run_conditions_and_unavailable_data_are_shown_once() {
    let record = tasks::record();
    let view = View::new(&record);
    let conditions = &view.facts.conditions;
    assert!(conditions.contains("memory limited to 768 MiB"), "{conditions}");
    assert!(conditions.contains("external directory on tmpfs"), "{conditions}");
    let lines = view.facts.run_conditions.join("\n");
    assert!(lines.contains("deferred work: ext4: "));
    assert!(lines.contains("monitoring overhead: 0.12 % of one CPU"), "{lines}");
    assert!(lines.contains("at most 11.9 MiB memory"), "{lines}");
    for what in ["pressure", "frequency", "CPU time of tasks"] {
        assert_eq!(lines.matches(&format!("{what} is not available")).count(), 1, "{lines}");
    }
    let code = Warning::NotAvailable { what: String::new(), why: String::new() }.code();
    assert!(view.warnings.iter().all(|row| row.code != code));
    for table in every_table(&view) {
        assert!(table.values().all(|value| !value.codes.contains(&code)), "{}", table.title);
    }
    let texts = [html(&view, &[]), terminal(&view, &plain(80, true)), markdown(&view)];
    for text in texts {
        assert_eq!(text.matches("boot with psi=1").count(), 1);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("fslab report tasks-2006@published"));
    }
}

#[test]
fn json_has_totals_lifecycle_and_activity_in_base_units() {
    let text = json(&View::new(&tasks::record()));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let total = &value["totals"][0]["rows"][0]["cells"][0];
    assert_eq!(total["unit"], "ns");
    assert!(total["median"].as_f64().unwrap() > 2e9);
    assert_eq!(value["lifecycle"].as_array().map(Vec::len), Some(4));
    let tests = value["workloads"][0]["tests"].as_array().unwrap();
    assert_eq!(tests[2]["cache"], "cold");
    assert_eq!(tests[2]["system_activity"][0]["rows"][0]["cells"][1]["text"], "not available");
    assert_eq!(value["published"][1], "tasks-2006@published");
}

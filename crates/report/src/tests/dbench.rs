//! Reports of suite `dbench`: scaling, settings, and operations by type.

use crate::view::FindingKind;
use std::sync::LazyLock;

use expect_test::{expect, expect_file};
use model::{Value, record::Outcome};

use super::{every_table, plain, readable, well_formed};
use crate::{
    View, csv,
    fixture::dbench,
    html, json, markdown, terminal,
    view::{Body, Finding, Table, TableCell},
};

/// Shared, because creating the view takes seconds.
static VIEW: LazyLock<View> = LazyLock::new(|| View::new(&dbench::record()));

fn text_of(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => text.clone(),
        TableCell::Value(value) => value.shown.value.clone(),
    }
}

fn lines(table: &Table) -> String {
    let line = |row: &crate::view::Row| match &row.body {
        Body::Cells(cells) => {
            let cells: Vec<String> = cells.iter().map(text_of).collect();
            format!("{} | {}\n", row.title, cells.join(" | "))
        }
        Body::Missing(reason) => format!("{} | {reason}\n", row.title),
    };
    table.rows.iter().map(line).collect()
}

fn texts(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{:?}: {}\n", finding.kind, finding.text)).collect()
}

#[test]
fn the_terminal_report_of_replays_matches_the_golden_file() {
    expect_file!["../../golden/dbench.txt"].assert_eq(&terminal(&VIEW, &plain(80, false)));
}

#[test]
fn no_line_of_it_is_wider_than_the_terminal() {
    for (width, detail) in [(80, false), (80, true), (120, true)] {
        for line in terminal(&VIEW, &plain(width, detail)).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn each_filesystem_has_a_finding_on_its_scaling_limit() {
    expect![[r#"
        C9: ext2 scales up to 64 clients on replay, dbench: 64 clients reach at least 95 % of the maximum, 2698 MiB/s [2679, 2733] at 64 clients, n = 8; efficiency 20.0 % [19.7 to 20.6 %]. Performance drops by 17.1 % [15.9 to 18.2 %] at 200 clients.
        C9: ext3 scales up to 16 clients [16 to 32] on replay, dbench: 16 clients reach at least 95 % of the maximum, 647 MiB/s [636, 658] at 32 clients, n = 8; efficiency 32.2 % [31.8 to 32.8 %]. Performance drops by 48.9 % [47.8 to 49.9 %] at 200 clients.
        C9: ext4 scales up to 64 clients on replay, dbench: 64 clients reach at least 95 % of the maximum, 2255 MiB/s [2233, 2291] at 128 clients, n = 8; efficiency 19.4 % [19.1 to 19.9 %]. Performance drops by 5.8 % [4.2 to 7.3 %] at 200 clients.
        C9: btrfs raid0 scales up to 128 clients on replay, dbench: 128 clients reach at least 95 % of the maximum, 952.4 MiB/s [945.8, 961.0] at 200 clients, n = 8; efficiency 8.0 % [7.9 to 8.1 %]. No significant drop up to 200 clients.
    "#]].assert_eq(&texts(&VIEW.scaling[0].findings.findings));
}

#[test]
fn scaling_has_summary_tables() {
    let tables = &VIEW.scaling[0].tables;
    let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
    expect![[r#"
        Replay: dbench, over clients
        Efficiency: replay, dbench
        Scaling summary: replay, dbench
        Difference in efficiency to ext2: replay, dbench"#]]
    .assert_eq(&titles.join("\n"));
    expect![[r#"
        ext2 | 64 clients | 2698 | 64 clients | ×0.829 [0.818, 0.841] | +37.3 % [+37.1, +37.9], p < 0.001 | universal, contention 0.050, coherency 0.00020; maximum at 69 [69, 70] (deviation at most 0.86 %)
        ext3 | 16 clients [16 to 32] | 647 | 32 clients | ×0.511 [0.501, 0.522] | +13.2 % [+12.7, +13.7], p < 0.001 | universal, contention 0.12, coherency 0.0012; maximum at 27 [27, 27] (deviation at most 0.66 %)
        ext4 | 64 clients | 2255 | 128 clients | ×0.942 [0.927, 0.958] | +38.1 % [+37.7, +38.5], p < 0.001 | universal, contention 0.060, coherency 0.000099; maximum at 98 [94, 101] (deviation at most 0.76 %)
        btrfs raid0 | 128 clients | 952.4 | 200 clients | last is maximum | +32.8 % [+32.5, +33.2], p < 0.001 | Amdahl, contention 0.091; no peak in the tested range; test more clients (deviation at most 1.4 %)
        xfs | skipped: mkfs.xfs not found; install xfsprogs
    "#]].assert_eq(&lines(&tables[2]));
}

#[test]
fn cells_that_differ_in_a_setting_are_separate_points() {
    let points = &VIEW.suites[0].points;
    assert_eq!(points.len(), 9 + 2 * 3 * 2);
    let mut labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), points.len(), "{labels:?}");
    for point in points {
        let entries: usize = point.tests.iter().map(|test| test.entries.len()).sum();
        assert_eq!(entries, 5, "one cell of each filesystem: {}", point.label);
        assert!(point.tests[0].entries.iter().all(|entry| entry.values.len() <= 8));
    }
    let table = VIEW.overviews[0].by_point.iter().find(|table| table.title.contains("bfq"));
    let caption = table.unwrap().caption.join("; ");
    assert!(caption.contains("scheduler bfq") && caption.contains("cpu_speed"), "{caption}");
}

#[test]
fn the_variance_is_explained_per_workload() {
    let titles: Vec<&str> = VIEW.interactions.iter().map(|other| other.title.as_str()).collect();
    expect![[r#"
        Replay: dbench clients=5, by scheduler · cpu_speed
        Replay: dbench clients=20, by scheduler · cpu_speed"#]]
    .assert_eq(&titles.join("\n"));
    expect![[r#"
        C18: filesystem explains 55.6 % [55.2 to 56.0 %] of the variance on replay, dbench clients=5; it interacts with scheduler (20 % of the explained variance).
        C18: scheduler explains 0.38 % [0.33 to 0.45 %] of the variance on replay, dbench clients=5; it interacts with filesystem (20 % of the explained variance).
        C18: cpu_speed explains 23.5 % [23.3 to 23.8 %] of the variance on replay, dbench clients=5.
    "#]].assert_eq(&texts(&VIEW.interactions[0].findings.findings));
    expect![[r#"
        filesystem | 55.6 | < 0.001 | -
        scheduler | 0.38 | < 0.001 | -
        cpu_speed | 23.5 | < 0.001 | -
        filesystem × scheduler | 20.4 | < 0.001 | 20 %
        filesystem × cpu_speed | 0.00 | 0.357 | 0.00 %
        scheduler × cpu_speed | 0.00 | 0.048 | 0.00 %
        rounds | 0.00 | - | -
        residual | 0.07 | - | -
    "#]]
    .assert_eq(&lines(&VIEW.interactions[0].tables[1]));
}

#[test]
fn findings_name_the_condition_that_the_best_filesystem_depends_on() {
    let groups = VIEW.findings.by_point.iter();
    let crossed = groups.filter(|group| group.label.contains("scheduler="));
    let ranked = crossed.flat_map(|group| &group.findings);
    let ranked: Vec<&Finding> = ranked
        .filter(|finding| [FindingKind::C1, FindingKind::C2].contains(&finding.kind))
        .collect();
    assert_eq!(ranked.len(), 2 * 3 * 2);
    for finding in ranked {
        assert!(finding.text.starts_with("At scheduler="), "{}", finding.text);
    }
    // Findings for points without varied settings name no condition.
    let others = VIEW.findings.by_point.iter().filter(|group| !group.label.contains("scheduler"));
    let mut texts = others.flat_map(|group| &group.findings).map(|finding| &finding.text);
    assert!(texts.all(|text| !text.starts_with("At ")));
}

#[test]
fn a_setting_that_changes_no_order_needs_no_condition() {
    let mut record = dbench::with(&[5, 20], 6);
    // Removes the effect of the scheduler.
    let factor = |cell: &model::Cell| match (&*cell.filesystem.name, cell.scheduler.as_deref()) {
        ("ext3", Some("bfq")) => 2.4,
        ("ext3", _) | (_, Some("none") | None) => 1.0,
        (_, Some("bfq")) => 0.8,
        (_, Some(_)) => 0.97,
    };
    for trial in &mut record.trials {
        let by = factor(&record.cells[trial.cell].cell);
        trial.samples.iter_mut().for_each(|sample| sample.value /= by);
    }
    let view = View::new(&record);
    let findings = view.findings.by_point.iter().flat_map(|group| &group.findings);
    assert!(findings.clone().any(|finding| finding.kind == FindingKind::C1));
    assert!(findings.clone().all(|finding| !finding.text.starts_with("At ")));
    assert!(findings.filter(|finding| finding.kind == FindingKind::C18).count() > 0);
}

#[test]
fn noise_has_no_findings() {
    let mut record = dbench::with(&[5], 6);
    let mut rng = fastrand::Rng::with_seed(5);
    for trial in &mut record.trials {
        let value = 1e8 * (1.0 + rng.f64());
        trial.samples.iter_mut().for_each(|sample| sample.value = value);
    }
    let view = View::new(&record);
    for other in &view.interactions {
        assert!(other.findings.findings.is_empty());
        assert!(other.findings.open[0].reason.ends_with(" of the variance is unexplained"));
        assert!(other.tables[1].caption.join("; ").contains("of the variance is unexplained"));
    }
}

#[test]
fn three_repetitions_have_medians_and_no_findings() {
    let record = dbench::with(&[1, 2, 4, 8], 3);
    let view = View::new(&record);
    let groups = || view.findings.by_point.iter();
    let found = groups().flat_map(|group| group.findings.iter().map(|finding| finding.kind));
    let open = groups().flat_map(|group| group.open.iter().map(|open| open.kind));
    assert!(
        found
            .chain(open)
            .all(|kind| ![FindingKind::C9, FindingKind::C10, FindingKind::C18].contains(&kind))
    );
    let scaled = &view.scaling[0];
    let caption = scaled.tables[0].caption.join("; ");
    assert!(caption.contains("n = 3 repetitions") && caption.contains("no findings"), "{caption}");
    assert!(scaled.lines.iter().all(|line| line.knee.is_none()));
    assert!(scaled.lines.iter().all(|line| line.series.values.iter().all(Option::is_some)));
}

#[test]
fn a_failed_repetition_withholds_the_finding_of_its_filesystem() {
    let mut record = dbench::with(&[1, 2, 4, 8], 6);
    let cells = &record.cells;
    let own = |cell: usize| {
        let cell = &cells[cell].cell;
        cell.filesystem.name == "ext4"
            && cell.workload.parameters["clients"] == Value::Count(4)
            && cell.scheduler.is_none()
    };
    let trial = record.trials.iter_mut().find(|trial| own(trial.cell)).unwrap();
    trial.outcome = Outcome::Failed { reason: "replay: write: No space left on device".into() };
    let view = View::new(&record);
    let scaled = &view.scaling[0];
    assert!(scaled.findings.findings.iter().all(|finding| !finding.text.contains("ext4")));
    assert!(scaled.findings.findings.iter().any(|finding| finding.text.contains("ext3")));
    let caption = scaled.tables[0].caption.join("; ");
    assert!(caption.contains("no finding for ext4"), "{caption}");
}

#[test]
fn operations_by_type_have_counts_rates_and_times() {
    let tables: Vec<&Table> =
        VIEW.details[0].iter().filter_map(|own| own.operations.as_ref()).collect();
    assert_eq!(tables.len(), 2, "operation types of two points");
    let table = tables[0];
    assert!(table.caption.join("; ").contains("fslab-office v1 seed 12"), "{:?}", table.caption);
    let first: String = lines(table).lines().take(5).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        NTCreateX · ext2 | 2000 | 4952 | 21.01 | 21.05 | 30.65 | 32.74
        NTCreateX · ext3 | 2000 | 2819 | 20.94 | 20.93 | 30.59 | 33.41
        NTCreateX · ext4 | 2000 | 4205 | 21.00 | 21.05 | 30.66 | 33.07
        NTCreateX · btrfs raid0 | 2000 | 2130 | 20.99 | 20.99 | 30.72 | 32.69
        Close · ext2 | 1800 | 4457 | 1.999 | 1.995 | 2.919 | 3.184
    "#]]
    .assert_eq(&first);
    assert!(lines(table).ends_with("xfs | skipped: mkfs.xfs not found; install xfsprogs\n"));
}

#[test]
fn percentiles_of_rare_operations_are_withheld() {
    let table = VIEW.details[0].iter().find_map(|own| own.operations.as_ref()).unwrap();
    let flush = table.rows.iter().find(|row| row.title.starts_with("Flush")).unwrap();
    let Body::Cells(cells) = &flush.body else { panic!("measured") };
    assert_eq!(cells.iter().map(text_of).nth(4).unwrap(), "too few operations");
    assert!(matches!(cells[3], TableCell::Value(_)), "40 of them have a median");
}

#[test]
fn every_table_states_direction_interval_and_n() {
    for table in every_table(&VIEW) {
        let caption = table.caption.join("; ");
        assert!(
            caption.contains("better") || caption.contains("informational"),
            "{}: {caption}",
            table.title
        );
        if table.values().next().is_some() {
            assert!(caption.contains("n = ") && caption.contains("95 %"), "{}", table.title);
        }
    }
}

#[test]
fn the_html_of_replays_is_sound() {
    let page = html(&VIEW, &[]);
    well_formed(&page);
    readable(&page);
    assert!(page.contains("<h2 id=\"scaling-h\">") && page.contains("<h2 id=\"settings-h\">"));
    // A ratio always names its reference.
    assert!(page.contains("ratio to clients=1 of the same filesystem"));
    assert!(page.contains("ratio to scheduler=none of the same filesystem"));
}

#[test]
fn programs_get_the_same_numbers() {
    let document: serde_json::Value = serde_json::from_str(&json(&VIEW)).unwrap();
    let scaled = &document["scaling"][0];
    assert_eq!(scaled["parameter"], "clients");
    let cell = &scaled["tables"][0]["rows"][0]["cells"][0];
    assert_eq!((&cell["n"], &cell["unit"]), (&8.into(), &"bytes_per_second".into()));
    assert_eq!(document["conditions_varied"].as_array().map(Vec::len), Some(2));
    let workloads = document["workloads"].as_array().unwrap();
    let done = workloads.iter().filter(|work| work["tests"][0]["operations"].is_object());
    assert_eq!(done.count(), 2);
    let text = markdown(&VIEW);
    assert!(
        text.contains("## Replay: dbench, over clients")
            && text.contains("## Variance explained: ")
    );
    let rows = csv(&dbench::with(&[1], 1));
    assert!(rows.contains(",bfq,cpu_speed=50%,"), "each row has the settings");
}

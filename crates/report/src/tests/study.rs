//! Reports of study plans: contents, order, and absence of duplicates.

use std::fmt::Write;

use expect_test::{Expect, expect};
use model::{Bytes, RunRecord, Scale, Study, record::Outcome};

use super::plain;
use crate::{
    View, figures,
    fixture::{self, bonnie, dbench, smallfile, tasks},
    html, json, markdown, terminal,
    view::{Body, Part, Table},
    views,
};

/// Titles and sizes of the parts of a study.
fn structure(view: &View) -> String {
    let study = view.study.as_ref().unwrap();
    let mut text = format!("{}\n", study.title);
    for note in &study.notes {
        let _ = writeln!(text, "- {note}");
    }
    let missing = |table: &Table| {
        let missing = table.rows.iter().filter(|row| matches!(row.body, Body::Missing(_)));
        missing.map(|row| row.title.clone()).collect::<Vec<_>>().join(", ")
    };
    for part in &study.parts {
        let _ = match part {
            Part::Table(table) => writeln!(
                text,
                "table {}: {} × {}, missing [{}]",
                table.title,
                table.rows.len(),
                table.columns.len(),
                missing(table)
            ),
            Part::Links { title, targets } => writeln!(text, "links {title}: {}", targets.len()),
            Part::Absent { title, reason } => writeln!(text, "absent {title}: {reason}"),
            Part::Totals(_) | Part::Capped(_) | Part::Normalized(_) => {
                let figure = figures::of_part(part).unwrap();
                writeln!(text, "chart {}: {}", figure.kind.name(), figure.title)
            }
        };
    }
    text
}

fn check(record: &RunRecord, expected: Expect) -> View {
    let view = View::new(record);
    expected.assert_eq(&structure(&view));
    shown_once(&view);
    view
}

/// Checks that the anchors of the page are unique, that each link has its anchor, and that each
/// text contains the title of the study and each table of the suites once.
fn shown_once(view: &View) {
    let page = html(view, &[]);
    let anchors: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let mut once = anchors.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), anchors.len(), "duplicate anchor");
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(once.binary_search(&link).is_ok(), "no anchor {link}");
    }
    let study = view.study.as_ref().unwrap();
    assert!(page.contains("fslab workload in the layout of the study"));
    for text in [markdown(view), terminal(view, &plain(100, true))] {
        assert_eq!(text.matches(study.title.as_str()).count(), 1);
    }
    let document: serde_json::Value = serde_json::from_str(&json(view)).unwrap();
    assert_eq!(document["study"], study.study.name());
    for line in terminal(view, &plain(80, true)).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_study_of_2009_has_twelve_tables_or_the_reasons_for_missing_ones() {
    let sizes = [1, 4].map(Bytes::mib);
    check(
        &fixture::with_records(&sizes, "iozone-2009"),
        expect![[r#"
            Tables of the 2009 study: 13 tests by block size
            - fslab workload in the layout of the study (IOzone Performance Exploration, Linux Magazine, 2009). All numbers were measured in this run; none are from the study or its program
            - Published numbers: fslab report iozone-2009@published
            - Sizes of the plan were multiplied by 1/64
            - In the study only: reiser4, ext3, ext2, reiserfs
            table Table 1. Writing: iozone block_size=1MiB: 6 × 6, missing [jfs]
            table Table 2. Reading: iozone block_size=1MiB: 6 × 7, missing [jfs]
            table Table 3. Writing: iozone block_size=4MiB: 6 × 6, missing [jfs]
            table Table 4. Reading: iozone block_size=4MiB: 6 × 7, missing [jfs]
            absent Table 5: the run has fewer than the four block sizes of the study
            absent Table 6: the run has fewer than the four block sizes of the study
            absent Table 7: the run has fewer than the four block sizes of the study
            absent Table 8: the run has fewer than the four block sizes of the study
            absent Table 9: the study has this table for reiser4 and btrfs at several block sizes; the run does not
            table Table 10. Writing: btrfs, by block_size: 6 × 2, missing []
            absent Table 11: the study has this table for reiser4 and btrfs at several block sizes; the run does not
            table Table 12. Reading: btrfs, by block_size: 7 × 2, missing []
            absent Trends over the block size: the run has too few block sizes for a trend
        "#]],
    );
}

#[test]
fn the_study_of_2006_has_tasks_totals_and_lifecycle() {
    let view = check(
        &tasks::record(),
        expect![[r#"
            Tables of the 2006 study: everyday tasks
            - fslab workload in the layout of the study (Benchmarking Filesystems Part II, Linux Gazette, 2006). All numbers were measured in this run; none are from the study or its program
            - Published numbers: fslab report tasks-2006@published
            - In the study only: ext2, ext3, jfs, reiserfs, xfs
            table Seconds: tasks: 4 × 2, missing [reiser4]
            table CPU %: tasks: 4 × 2, missing [reiser4]
            chart totals: Tasks: total of all tasks btrfs 2.791 s, ext4 2.805 s
            table Total of all tasks: tasks: 3 × 5, missing [reiser4]
            table Time of mkfs and mount: 3 × 4, missing [reiser4]
            table Available space: 3 × 3, missing [reiser4]
            links Tasks by filesystem: 3
        "#]],
    );
    // The segments of a bar are the tasks, and their sum is the value in the table.
    let bars = &view.overviews[0].totals[0];
    for row in bars.rows.iter().filter(|row| !row.pieces.is_empty()) {
        assert_eq!(row.pieces.len(), bars.tasks.len());
        assert!((row.pieces.iter().sum::<f64>() / row.total - 1.0).abs() < 1e-9);
        let (low, high) = row.interval.unwrap();
        assert!(low <= row.total && row.total <= high);
    }
    assert!(bars.rows.iter().any(|row| row.note.starts_with("skipped")));
}

#[test]
fn the_view_of_bonnie_has_a_row_for_each_configuration() {
    let mut record = bonnie::record();
    record.info.study = Some(Study::Bonnie2012);
    check(
        &record,
        expect![[r#"
            Tables of the 2012 study: bonnie++ phases by configuration
            - fslab workload in the layout of the study (a study of May 2012 that ran bonnie++ 1.96 on ext4, xfs, and btrfs). All numbers were measured in this run; none are from the study or its program
            - Published numbers: fslab report bonnie-2012@published
            - In the study only: xfs, btrfs
            table One large file, by phase: bonnie: 3 × 18, missing []
            table Many files, by phase: bonnie: 3 × 18, missing []
            links Phases by configuration: 12
        "#]],
    );
}

#[test]
fn the_study_of_dbench_names_the_reference_of_its_ratios() {
    let view = check(
        &dbench::with(&[1, 4, 16], 6),
        expect![[r#"
            Tables of the 2012 study: clients, schedulers, and CPU speeds
            - fslab workload in the layout of the study (a study of January 2012 that ran dbench by clients and schedulers). All numbers were measured in this run; none are from the study or its program
            - The study has charts only and no published numbers
            - In the study only: reiserfs, btrfs
            chart normalized: Replay, dbench clients=5 cpu_speed=100%: × ext2, scheduler=none
            table Replay, dbench clients=5 cpu_speed=100%: × ext2, scheduler=none: 5 × 3, missing [xfs]
            chart normalized: Replay, dbench clients=5 cpu_speed=50%: × ext2, scheduler=none
            table Replay, dbench clients=5 cpu_speed=50%: × ext2, scheduler=none: 5 × 3, missing [xfs]
            chart normalized: Replay, dbench clients=20 cpu_speed=100%: × ext2, scheduler=none
            table Replay, dbench clients=20 cpu_speed=100%: × ext2, scheduler=none: 5 × 3, missing [xfs]
            chart normalized: Replay, dbench clients=20 cpu_speed=50%: × ext2, scheduler=none
            table Replay, dbench clients=20 cpu_speed=50%: × ext2, scheduler=none: 5 × 3, missing [xfs]
            links Scaling with clients and saturation: 1
        "#]],
    );
    let study = view.study.unwrap();
    for part in &study.parts {
        if let Part::Normalized(chart) = part {
            assert_eq!(chart.reference, "ext2, scheduler=none");
            assert_eq!(chart.rows[0].shown, "×1 (reference)");
            let measured = chart.rows.iter().skip(1).filter_map(|row| row.ratio);
            assert!(measured.clone().count() == 11);
            assert!(measured.into_iter().all(|(ratio, ends)| {
                ends.is_some_and(|(low, high)| low <= ratio && ratio <= high)
            }));
        }
    }
}

/// Run in which all trials with the chosen numbers of clients and schedulers failed.
fn failing(chosen: impl Fn(u64, &str) -> bool) -> RunRecord {
    let mut record = dbench::with(&[1, 4, 16], 6);
    for trial in &mut record.trials {
        let cell = &record.cells[trial.cell].cell;
        let scheduler = cell.scheduler.as_deref();
        if scheduler.is_some_and(|name| chosen(cell.workload.count("clients"), name)) {
            trial.outcome = Outcome::Failed { reason: "write: Input/output error (5)".into() };
            trial.samples.clear();
        }
    }
    record
}

#[test]
fn multiples_are_of_the_first_scheduler_that_has_values() {
    let view = View::new(&failing(|_, scheduler| scheduler == "none"));
    let study = view.study.unwrap();
    let mut charts = 0;
    for part in &study.parts {
        if let Part::Normalized(chart) = part {
            charts += 1;
            assert_eq!(chart.reference, "ext2, scheduler=mq-deadline");
            let shown: Vec<&str> = chart.rows[..3].iter().map(|row| row.shown.as_str()).collect();
            assert_eq!(shown[..2], ["not measured", "×1 (reference)"]);
            assert!(shown[2].starts_with('×'), "{}", shown[2]);
        }
    }
    assert_eq!(charts, 4);
}

#[test]
fn workloads_without_values_have_a_reason() {
    let view = View::new(&failing(|clients, _| clients == 5));
    shown_once(&view);
    let text = structure(&view);
    assert_eq!(text.matches("chart normalized").count(), 2, "{text}");
    assert!(!text.contains("no workload under several schedulers"), "{text}");
    for speed in ["100%", "50%"] {
        let title = format!("dbench clients=5 cpu_speed={speed}: no filesystem has a value");
        let line = text.lines().find(|line| line.contains(&title)).unwrap();
        assert!(line.starts_with("absent Throughput by scheduler, "), "{line}");
        assert!(
            line.contains("btrfs raid0: all 6 repetitions failed: write: Input/output error (5); ")
                && line.contains("xfs: skipped: mkfs.xfs not found"),
            "{line}"
        );
    }
}

#[test]
fn too_few_repetitions_have_ratios_without_intervals() {
    let view = View::new(&dbench::with(&[1, 4, 16], 3));
    let study = view.study.unwrap();
    let mut rows = Vec::new();
    for part in &study.parts {
        if let Part::Normalized(chart) = part {
            rows.extend(&chart.rows);
        }
    }
    assert!(
        rows.iter()
            .any(|row| row.shown.ends_with("(too few repetitions for a confidence interval)"))
    );
    assert!(rows.iter().all(|row| row.ratio.is_none_or(|(_, ends)| ends.is_none())));
}

#[test]
fn the_view_of_small_files_cuts_its_bars_and_writes_their_values() {
    let view = check(
        &smallfile::record(),
        expect![[r#"
            Tables of the 2011 study: sets of small files
            - fslab workload in the layout of the study (Linux filesystems: small file performance on hard disks, 2011). All numbers were measured in this run; none are from the study or its program
            - The study has charts only and no published numbers
            - Sizes of the plan were multiplied by 1/64
            - In the study only: ext3
            chart clipped-bars: Time per file set: small-files
            table Seconds per file set: small-files cache=cold: 4 × 5, missing [reiserfs]
            table Seconds per file set: small-files cache=warm: 4 × 5, missing [reiserfs]
            table Small files: small-files cache=cold: 4 × 5, missing [reiserfs]
            table Small files: small-files cache=warm: 4 × 5, missing [reiserfs]
            absent Scaling with processes: the run has fewer than three numbers of processes
        "#]],
    );
    let study = view.study.unwrap();
    let chart = study.parts.iter().find_map(figures::of_part).unwrap();
    // One bar is clipped, and its value is printed.
    assert_eq!(chart.svg.matches("class=\"stb\"").count(), 2);
    let Part::Capped(capped) = &study.parts[0] else { panic!("the chart stands first") };
    let cut = capped.cut.unwrap();
    let bars = capped.panels.iter().flat_map(|panel| &panel.groups).flat_map(|group| &group.bars);
    let over: Vec<_> = bars.filter(|bar| bar.median.is_some_and(|median| median > cut)).collect();
    assert_eq!(over.len(), 1);
    assert!(chart.svg.contains(&format!(">{}</text>", over[0].shown)));
    assert!(chart.caption.contains("twice the upper quartile"), "{}", chart.caption);
    assert!(chart.caption.contains("Skipped: reiserfs."), "{}", chart.caption);
}

#[test]
fn a_run_without_the_suite_of_its_study_has_a_reason() {
    let mut record = smallfile::record();
    record.info.study = Some(Study::Dbench2012);
    record.info.scale = Scale::ONE;
    check(
        &record,
        expect![[r#"
            Tables of the 2012 study: clients, schedulers, and CPU speeds
            - fslab workload in the layout of the study (a study of January 2012 that ran dbench by clients and schedulers). All numbers were measured in this run; none are from the study or its program
            - The study has charts only and no published numbers
            - In the study only: ext3, btrfs
            absent All results: the run has no workload of suite dbench
        "#]],
    );
}

#[test]
fn a_run_without_a_view_shows_none() {
    let mut record = smallfile::record();
    record.info.study = None;
    let view = View::new(&record);
    assert!(view.study.is_none());
    let page = html(&view, &[]);
    assert!(!page.contains("id=\"study\"") && !page.contains("layout of the study"));
    assert!(view.overviews[0].all().all(|table| page.contains(&format!("id=\"{}\"", table.id))));
}

#[test]
fn every_study_has_a_view() {
    let named: Vec<&str> = views().map(|(name, _)| name).collect();
    assert_eq!(named, Study::ALL.map(Study::name));
}

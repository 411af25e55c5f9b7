//! Views of studies: what they show, in which order, and that nothing is shown twice.

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

/// Titles and sizes of what a view shows.
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

/// Each anchor of the page is there once, each link leads to one, and each table of the suites is
/// shown once in every text.
fn shown_once(view: &View) {
    let page = html(view);
    let anchors: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let mut once = anchors.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), anchors.len(), "an anchor stands twice");
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(once.binary_search(&link).is_ok(), "nothing is called {link}");
    }
    let study = view.study.as_ref().unwrap();
    assert!(page.contains("fslab workload, layout of the study"));
    for text in [markdown(view), terminal(view, &plain(100, true))] {
        assert_eq!(text.matches(study.title.as_str()).count(), 1);
    }
    let document: serde_json::Value = serde_json::from_str(&json(view)).unwrap();
    assert_eq!(document["view"], study.study.name());
    for line in terminal(view, &plain(80, true)).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_view_of_2009_has_its_twelve_tables_or_says_what_is_missing() {
    let sizes = [1, 4].map(Bytes::mib);
    check(
        &fixture::with_records(&sizes, "iozone-2009"),
        expect![[r#"
        As the study of 2009 showed it: 13 tests by record size
        - fslab workload, layout of the study (IOzone Performance Exploration, Linux Magazine, 2009): every number is of this run, measured by fslab, and none is of the study or of the program it used
        - The study's own numbers: fslab report iozone-2009@published
        - The sizes of the plan were multiplied by 1/64
        - In the study and not in this run: reiser4, ext2, ext3, reiserfs
        table Table 1. Writing: iozone record=1MiB: 6 × 6, missing [jfs]
        table Table 2. Reading: iozone record=1MiB: 6 × 7, missing [jfs]
        table Table 3. Writing: iozone record=4MiB: 6 × 6, missing [jfs]
        table Table 4. Reading: iozone record=4MiB: 6 × 7, missing [jfs]
        absent Table 5: the run has fewer record sizes than the study's four
        absent Table 6: the run has fewer record sizes than the study's four
        absent Table 7: the run has fewer record sizes than the study's four
        absent Table 8: the run has fewer record sizes than the study's four
        absent Table 9: the study has it for reiser4 and btrfs at several record sizes, and the run has not
        table Table 10. Writing: btrfs, by record: 6 × 2, missing []
        absent Table 11: the study has it for reiser4 and btrfs at several record sizes, and the run has not
        table Table 12. Reading: btrfs, by record: 7 × 2, missing []
        absent Trends over the record size: the run has too few record sizes for a trend
    "#]],
    );
}

#[test]
fn the_view_of_2006_has_tasks_totals_and_life_cycle() {
    let view = check(
        &tasks::record(),
        expect![[r#"
            As the study of 2006 showed it: everyday tasks
            - fslab workload, layout of the study (Benchmarking Filesystems Part II, Linux Gazette, 2006): every number is of this run, measured by fslab, and none is of the study or of the program it used
            - The study's own numbers: fslab report tasks-2006@published
            - In the study and not in this run: ext2, ext3, jfs, reiserfs, xfs
            table Seconds: tasks: 4 × 2, missing [reiser4]
            table CPU %: tasks: 4 × 2, missing [reiser4]
            chart totals: Tasks: total of all tasks btrfs 2.791 s, ext4 2.805 s
            table Total of all tasks: tasks: 3 × 5, missing [reiser4]
            table Time of mkfs and mount: 3 × 4, missing [reiser4]
            table Space left: 3 × 3, missing [reiser4]
            links Each task, filesystem by filesystem: 3
        "#]],
    );
    // The bars are made of their tasks, and are as long as the table says.
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
    record.info.view = Some(Study::Bonnie2012);
    check(
        &record,
        expect![[r#"
        As the study of 2012 showed it: a line for each configuration
        - fslab workload, layout of the study (a study of May 2012 that ran bonnie++ 1.96 on ext4, xfs, and btrfs): every number is of this run, measured by fslab, and none is of the study or of the program it used
        - The study's own numbers: fslab report bonnie-2012@published
        - In the study and not in this run: xfs, btrfs
        table One large file, phase by phase: bonnie: 3 × 18, missing []
        table Many files, phase by phase: bonnie: 3 × 18, missing []
        links Each phase, configuration by configuration: 12
    "#]],
    );
}

#[test]
fn the_view_of_dbench_names_what_it_is_normalized_to() {
    let view = check(
        &dbench::with(&[1, 4, 16], 6),
        expect![[r#"
        As the study of 2012 showed it: clients, schedulers, and speeds
        - fslab workload, layout of the study (a study of January 2012 that ran dbench by clients and schedulers): every number is of this run, measured by fslab, and none is of the study or of the program it used
        - The study showed charts without printing numbers, so there are none to read beside these
        - In the study and not in this run: reiserfs, btrfs
        chart normalized: Replay, dbench clients=5 cpu_speed=100%: × ext2, scheduler=none
        table Replay, dbench clients=5 cpu_speed=100%: × ext2, scheduler=none: 5 × 3, missing [xfs]
        chart normalized: Replay, dbench clients=5 cpu_speed=50%: × ext2, scheduler=none
        table Replay, dbench clients=5 cpu_speed=50%: × ext2, scheduler=none: 5 × 3, missing [xfs]
        chart normalized: Replay, dbench clients=20 cpu_speed=100%: × ext2, scheduler=none
        table Replay, dbench clients=20 cpu_speed=100%: × ext2, scheduler=none: 5 × 3, missing [xfs]
        chart normalized: Replay, dbench clients=20 cpu_speed=50%: × ext2, scheduler=none
        table Replay, dbench clients=20 cpu_speed=50%: × ext2, scheduler=none: 5 × 3, missing [xfs]
        links Scaling with clients, where each saturates: 1
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

/// Fails all trials of the replays whose number of clients and scheduler are chosen.
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
fn work_without_values_under_any_scheduler_says_why() {
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
            line.contains("btrfs raid0: all 6 repeats failed: write: Input/output error (5); ")
                && line.contains("xfs: skipped: mkfs.xfs not found"),
            "{line}"
        );
    }
}

#[test]
fn without_repeats_enough_multiples_have_no_interval_and_say_so() {
    let view = View::new(&dbench::with(&[1, 4, 16], 3));
    let study = view.study.unwrap();
    let mut rows = Vec::new();
    for part in &study.parts {
        if let Part::Normalized(chart) = part {
            rows.extend(&chart.rows);
        }
    }
    assert!(rows.iter().any(|row| row.shown.ends_with("(too few repeats for an interval)")));
    assert!(rows.iter().all(|row| row.ratio.is_none_or(|(_, ends)| ends.is_none())));
}

#[test]
fn the_view_of_small_files_cuts_its_bars_and_writes_their_values() {
    let view = check(
        &smallfile::record(),
        expect![[r#"
        As the study of 2011 showed it: sets of small files
        - fslab workload, layout of the study (Linux filesystems: small file performance on hard disks, 2011): every number is of this run, measured by fslab, and none is of the study or of the program it used
        - The study showed charts without printing numbers, so there are none to read beside these
        - The sizes of the plan were multiplied by 1/64
        - In the study and not in this run: ext3
        chart capped: Seconds for the set: smallfile
        table Seconds for the set: smallfile cache=cold: 4 × 5, missing [reiserfs]
        table Seconds for the set: smallfile cache=warm: 4 × 5, missing [reiserfs]
        table Small files: smallfile cache=cold: 4 × 5, missing [reiserfs]
        table Small files: smallfile cache=warm: 4 × 5, missing [reiserfs]
    "#]],
    );
    let study = view.study.unwrap();
    let chart = study.parts.iter().find_map(figures::of_part).unwrap();
    // One bar is cut, and its value is written.
    assert_eq!(chart.svg.matches("class=\"stb\"").count(), 2);
    let Part::Capped(capped) = &study.parts[0] else { panic!("the chart stands first") };
    let cut = capped.cut.unwrap();
    let bars = capped.panels.iter().flat_map(|panel| &panel.groups).flat_map(|group| &group.bars);
    let over: Vec<_> = bars.filter(|bar| bar.median.is_some_and(|median| median > cut)).collect();
    assert_eq!(over.len(), 1);
    assert!(chart.svg.contains(&format!(">{}</text>", over[0].shown)));
    assert!(chart.caption.contains("twice the upper quartile"), "{}", chart.caption);
    assert!(chart.caption.contains("Absent: reiserfs, skipped"), "{}", chart.caption);
}

#[test]
fn a_run_without_the_suite_of_its_view_says_so() {
    let mut record = smallfile::record();
    record.info.view = Some(Study::Dbench2012);
    record.info.scale = Scale::ONE;
    check(
        &record,
        expect![[r#"
        As the study of 2012 showed it: clients, schedulers, and speeds
        - fslab workload, layout of the study (a study of January 2012 that ran dbench by clients and schedulers): every number is of this run, measured by fslab, and none is of the study or of the program it used
        - The study showed charts without printing numbers, so there are none to read beside these
        - In the study and not in this run: ext3, btrfs
        absent All of it: the run has no workload of suite dbench
    "#]],
    );
}

#[test]
fn a_run_without_a_view_shows_none() {
    let mut record = smallfile::record();
    record.info.view = None;
    let view = View::new(&record);
    assert!(view.study.is_none());
    let page = html(&view);
    assert!(!page.contains("id=\"study\"") && !page.contains("layout of the study"));
    assert!(view.overviews[0].all().all(|table| page.contains(&format!("id=\"{}\"", table.id))));
}

#[test]
fn every_study_has_a_view() {
    let named: Vec<&str> = views().map(|(name, _)| name).collect();
    assert_eq!(named, Study::ALL.map(Study::name));
}

use super::*;
use crate::{
    TerminalOptions, fixture,
    published::published,
    view::{Body, TableCell},
};

fn set(name: &str) -> Source<'static> {
    Source::Published(published(name).unwrap())
}

fn options() -> TerminalOptions {
    TerminalOptions { width: 80, color: false, detail: false }
}

#[test]
fn ratios_to_published_means_require_both_spreads() {
    let mut record = fixture::record();
    record.environment.set("memory.limit_bytes", "134217728");
    let found = side_by_side(Source::Run(&record), set("iozone-2009"), &[]).unwrap();
    // Common filesystems: ext4, xfs, btrfs; 13 tests; block sizes of 1 and 4 MiB.
    assert_eq!(found.pairs.len(), 3 * 13 * 2);
    assert!(found.pairs.iter().all(|pair| pair.ratio.is_ok()));
    let pair = found.pairs.iter().find(|pair| {
        let key = &pair.second.key;
        key.test == "backwards_read" && key.filesystem == "xfs" && key.block_size == Some(1 << 20)
    });
    let pair = pair.unwrap();
    let own = pair.first.moments.unwrap().mean / pair.second.moments.unwrap().mean;
    assert!((pair.ratio.as_ref().unwrap().ratio.0 - own).abs() < 1e-12);
    assert_eq!((pair.first.n, pair.second.n), (8, 10));
    let text = found.terminal(&options());
    assert!(text.find("Confounders").unwrap() < text.find("A ÷ B").unwrap());
    assert!(text.contains("machine, memory, disk, kernel"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn medians_are_shown_with_the_mean_and_writes_are_labeled_as_accepted() {
    let mut record = fixture::record();
    record.environment.set("memory.limit_bytes", "134217728");
    let found = side_by_side(Source::Run(&record), set("iozone-2009"), &[]).unwrap();
    for table in found.tables() {
        assert!(table.title.ends_with(": accepted throughput"), "{}", table.title);
        assert!(table.caption[0].contains("no final sync"), "{:?}", table.caption);
        for row in &table.rows {
            let Body::Cells(cells) = &row.body else { panic!("{row:?}") };
            let [TableCell::Value(own), TableCell::Value(base), TableCell::Value(ratio)] =
                &cells[..]
            else {
                panic!("{cells:?}")
            };
            let mean: f64 = own.note.strip_prefix("mean = ").unwrap().parse().unwrap();
            let base: f64 = base.shown.value.parse().unwrap();
            let shown: f64 = ratio.shown.value.parse().unwrap();
            assert!((mean / base / shown - 1.0).abs() < 5e-3, "{mean} {base} {shown}");
        }
    }
    for chart in found.charts() {
        assert!(chart.svg.contains("accepted throughput, ") && chart.caption.contains("accepted"));
    }
}

#[test]
fn cached_results_have_no_ratio_to_results_from_disk() {
    // The run has a file of 256 MiB and 16 GiB of memory; the study has a file of 16 GiB and 8 GB
    // of memory.
    let mut record = fixture::record();
    record.environment.set("memory.limit_bytes", "17179869184");
    let found = side_by_side(Source::Run(&record), set("iozone-2009"), &[]).unwrap();
    for pair in &found.pairs {
        assert_eq!(pair.ratio.as_ref().unwrap_err(), "A fits in memory, B does not");
    }
    let found = side_by_side(set("iozone-2009"), Source::Run(&record), &[]).unwrap();
    assert_eq!(found.pairs[0].ratio.as_ref().unwrap_err(), "B fits in memory, A does not");
}

#[test]
fn tasks_of_a_run_have_names_without_the_sizes_of_the_study() {
    let record = fixture::tasks::record();
    let rename = [("ext4".to_owned(), "ext3".to_owned())];
    let found = side_by_side(Source::Run(&record), set("tasks-2006"), &rename).unwrap();
    for table in found.tables() {
        assert!(table.rows.iter().all(|row| !row.title.contains("10,000")), "{:?}", table.rows);
        assert!(table.caption[1].contains("sizes: "), "{:?}", table.caption);
    }
    assert!(found.charts().iter().all(|chart| !chart.svg.contains("Touch 10,000 Files")));
}

#[test]
fn without_a_published_spread_the_reason_replaces_the_ratio() {
    let record = fixture::tasks::record();
    let found = side_by_side(Source::Run(&record), set("tasks-2006"), &[]);
    // The study of 2006 has neither ext4 nor btrfs.
    assert!(matches!(found, Err(SideBySideError::NoPairs { .. })), "{found:?}");
    let rename = [("ext4".to_owned(), "ext3".to_owned())];
    let found = side_by_side(Source::Run(&record), set("tasks-2006"), &rename).unwrap();
    assert_eq!(found.pairs.len(), 3 * 2);
    assert!(
        found
            .pairs
            .iter()
            .all(|pair| { pair.ratio.as_ref().is_err_and(|why| why == "no published spread") })
    );
    // Renamed filesystems are shown with both names.
    assert!(found.markdown().contains("## ext4 (A) vs. ext3 (B): elapsed"));
    let value: serde_json::Value = serde_json::from_str(&found.json()).unwrap();
    assert!(value["verdict"].is_null());
    assert_eq!(value["pairs"][0]["no_ratio"], "no published spread");
    assert_eq!(value["second"]["measured_by_fslab"], false);
    expect_test::expect_file!["../../../golden/side-by-side-tasks.md"].assert_eq(&found.markdown());
    let wrong = [("ext4".to_owned(), "ext".to_owned())];
    let error = side_by_side(Source::Run(&record), set("tasks-2006"), &wrong).unwrap_err();
    assert!(error.to_string().contains("did you mean `ext2`"), "{error}");
}

#[test]
fn editions_have_charts() {
    let found = side_by_side(set("tasks-2004"), set("tasks-2006"), &[]).unwrap();
    assert_eq!(found.pairs.len(), 21 * 5 * 2);
    let html = found.html();
    assert_eq!(html.matches("<svg class=\"chart\"").count(), 2);
    assert!(html.contains("not measured by fslab") && !html.contains("<script"));
    // Machine and memory are equal, so the disk is the first difference.
    assert_eq!(found.differing[0].what, "disk");
    assert!(found.alone.iter().any(|(_, own)| own == &["reiser4".to_owned()]));
}

#[test]
fn bonnie_phases_pair_by_the_names_of_the_study() {
    let record = fixture::bonnie::record();
    let found = side_by_side(Source::Run(&record), set("bonnie-2012"), &[]).unwrap();
    assert!(found.pairs.iter().any(|pair| pair.first.key.test == "put-block"));
    assert!(found.pairs.iter().all(|pair| pair.ratio.is_err()));
}

#[test]
fn errors_have_a_hint() {
    let record = fixture::tasks::record();
    let runs = side_by_side(Source::Run(&record), Source::Run(&record), &[]).unwrap_err();
    assert_eq!(runs, SideBySideError::TwoRuns);
    let suites = side_by_side(set("tasks-2004"), set("bonnie-2012"), &[]).unwrap_err();
    assert!(suites.to_string().contains("tasks-2006@published"), "{suites}");
    let none = side_by_side(Source::Run(&record), set("iozone-2009"), &[]).unwrap_err();
    assert!(none.to_string().contains("fslab run iozone-2009"), "{none}");
}

#[test]
fn text_of_a_run_is_escaped() {
    let mut record = fixture::record();
    record.info.title = "<script>alert(1)</script>\u{1b}[31m|".into();
    record.environment.set("cpu.model", "<img src=x>\u{1b}]0;x");
    let found = side_by_side(Source::Run(&record), set("iozone-2009"), &[]).unwrap();
    let html = found.html();
    assert!(!html.contains("<script") && !html.contains("<img"));
    for text in [found.terminal(&options()), found.markdown(), html] {
        assert!(!text.contains('\u{1b}'));
    }
}

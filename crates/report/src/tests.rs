//! Reports of the artificial run in all formats.

mod bonnie;
mod dbench;
mod devices;
mod numbers;
mod options;
mod raw;
mod study;
mod tasks;
mod together;

use crate::view::FindingKind;
use std::collections::BTreeSet;

use expect_test::expect_file;
use model::{
    Bytes, Profile, RunRecord, Warning,
    metric::Unit,
    record::{CellState, Outcome},
};

use crate::{
    TerminalOptions, View, csv, fixture, html, json, markdown, terminal,
    view::{Body, Table, TableCell},
};

fn study() -> RunRecord {
    let sizes: Vec<Bytes> = [16, 1, 8, 4].into_iter().map(Bytes::mib).collect();
    fixture::with_records(&sizes, "iozone-2009")
}

fn plain(width: usize, detail: bool) -> TerminalOptions {
    TerminalOptions { width, color: false, detail }
}

fn every_table(view: &View) -> Vec<&Table> {
    let overviews = view.overviews.iter().flat_map(|overview| overview.all());
    let ranked = view.details.iter().flatten().map(|own| &own.ranked);
    let activity = view.details.iter().flatten().flat_map(|own| &own.activity);
    let wide = view.scaling.iter().flat_map(|scaled| &scaled.tables);
    let wide = wide.chain(view.interactions.iter().flat_map(|other| &other.tables));
    let all = overviews
        .chain(wide)
        .chain(ranked)
        .chain(view.details.iter().flatten().filter_map(|own| own.operations.as_ref()));
    all.chain(activity).chain(&view.latency).chain(&view.lifecycle).collect()
}

#[test]
fn the_terminal_report_matches_the_golden_file() {
    let text = terminal(&View::new(&fixture::record()), &plain(80, false));
    expect_file!["../golden/terminal.txt"].assert_eq(&text);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let view = View::new(&study());
    for width in [80, 100, 120, 160] {
        for detail in [false, true] {
            for line in terminal(&view, &plain(width, detail)).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn color_is_given_only_when_asked_for_and_changes_nothing_else() {
    let view = View::new(&fixture::record());
    let plain = terminal(&view, &plain(100, true));
    let colored = terminal(&view, &TerminalOptions { width: 100, color: true, detail: true });
    assert!(!plain.contains('\u{1b}') && colored.contains("\u{1b}[1m"));
    let mut stripped = colored;
    for code in ["\u{1b}[1;32m", "\u{1b}[1;33m", "\u{1b}[1m", "\u{1b}[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(plain, stripped);
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let all = |record: &RunRecord| {
        let view = View::new(record);
        let text = terminal(&view, &plain(120, true));
        [html(&view, &[]), text, markdown(&view), json(&view), csv(record)]
    };
    assert_eq!(all(&fixture::record()), all(&fixture::record()));
}

#[test]
fn the_study_of_2009_finds_its_tables_under_their_numbers() {
    let view = View::new(&study());
    let titles: Vec<&str> =
        every_table(&view).iter().map(|table| table.title.as_str()).take(8).collect();
    assert_eq!(titles[0], "Table 1. Writing: iozone block_size=1MiB");
    assert_eq!(titles[1], "Table 2. Reading: iozone block_size=1MiB");
    assert_eq!(titles[2], "Table 3. Writing: iozone block_size=4MiB");
    assert_eq!(titles[7], "Table 8. Reading: iozone block_size=16MiB");
    let by_filesystem: Vec<&str> =
        view.overviews[0].by_filesystem.iter().map(|table| table.title.as_str()).collect();
    // The run has no reiser4, so tables 9 and 11 are missing. The other tables keep their numbers.
    assert_eq!(by_filesystem[0], "Table 10. Writing: btrfs, by block_size");
    assert_eq!(by_filesystem[1], "Table 12. Reading: btrfs, by block_size");
    assert_eq!(by_filesystem[2], "Writing: ext4, by block_size");
    let titles: Vec<&String> =
        view.overviews[0].by_filesystem[0].columns.iter().map(|column| &column.title).collect();
    assert_eq!(
        titles,
        ["block_size 1MiB", "block_size 4MiB", "block_size 8MiB", "block_size 16MiB"]
    );
    assert!(html(&view, &[]).contains("scale 1/64"));
}

#[test]
fn a_filesystem_of_the_study_that_is_not_here_keeps_its_tables() {
    let mut record = study();
    for cell in record.cells.iter_mut().filter(|cell| cell.cell.filesystem.name == "jfs") {
        cell.cell.filesystem.name = "reiser4".into();
    }
    let view = View::new(&record);
    let tables = &view.overviews[0].by_filesystem;
    for (table, number) in tables.iter().zip(9..=12) {
        assert!(table.title.starts_with(&format!("Table {number}. ")), "{}", table.title);
    }
    assert_eq!(tables[0].title, "Table 9. Writing: reiser4, by block_size");
    assert!(matches!(&tables[0].rows[0].body, Body::Missing(reason) if reason.contains("jfs")));
}

#[test]
fn skipped_and_failed_filesystems_are_in_every_table() {
    let view = View::new(&fixture::record());
    for table in every_table(&view) {
        let of_one = view.overviews[0].by_filesystem.iter().any(|other| other.id == table.id);
        let about_jfs = table.title.contains("jfs");
        let holes = table.rows.iter().filter(|row| match &row.body {
            Body::Missing(reason) => reason.starts_with("skipped: the running kernel"),
            Body::Cells(_) => false,
        });
        let holes = holes.count();
        assert!(holes > 0 || of_one && !about_jfs, "{} hides jfs", table.title);
    }
    let text = terminal(&view, &plain(80, true));
    assert!(text.contains("1 of 8 repetitions failed") && text.contains("No space left on device"));
}

#[test]
fn every_table_states_direction_n_and_interval() {
    let views = [fixture::record(), fixture::tasks::record()].map(|record| View::new(&record));
    for table in views.iter().flat_map(every_table) {
        let caption = table.caption.join("; ");
        let any = table.values().next().is_some();
        let direction = caption.contains("better") || caption.contains("informational");
        assert!(!any || direction, "{}: {caption}", table.title);
        for needed in ["n = ", "95 %"] {
            assert!(!any || caption.contains(needed), "{}: {caption}", table.title);
        }
        for (index, column) in table.columns.iter().enumerate() {
            let rows = table
                .rows
                .iter()
                .all(|row| !row.unit.is_empty() || matches!(row.body, Body::Missing(_)));
            let text = table.is_text(index);
            // Requests and inodes are plain counts.
            let counts = |row: &crate::view::Row| match &row.body {
                Body::Cells(cells) => match &cells[index] {
                    TableCell::Value(value) => value.unit == Unit::Count || !row.unit.is_empty(),
                    TableCell::Text(_) => true,
                },
                Body::Missing(_) => true,
            };
            let text = text || table.rows.iter().all(counts);
            assert!(text || rows || !column.unit.is_empty(), "{}: no unit", table.title);
        }
    }
}

#[test]
fn a_failed_repetition_takes_the_cell_out_of_the_ranking() {
    let view = View::new(&fixture::record());
    let test = &view.suites[0].points[0].tests[0];
    let bcachefs = test.entry(5).unwrap();
    assert!(!bcachefs.ranked && !bcachefs.top && bcachefs.letters.is_empty());
    assert_eq!(bcachefs.summary.as_ref().map(|summary| summary.n), Some(7));
    let mut findings = view.findings.by_point.iter().flat_map(|group| &group.findings);
    assert!(
        findings.any(|finding| finding.kind == FindingKind::C20 && finding.text.contains("1 of 8"))
    );
}

#[test]
fn findings_do_not_overstate() {
    let mut record = fixture::record();
    let text = |view: &View| format!("{}{}", html(view, &[]), terminal(view, &plain(120, true)));
    let mut texts = vec![text(&View::new(&record))];
    record.info.profile = Profile::Quick;
    let quick = View::new(&record);
    let mut findings = quick.findings.by_point.iter().flat_map(|group| &group.findings);
    assert!(
        findings.any(|finding| finding.kind == FindingKind::C1),
        "findings do not depend on the profile"
    );
    texts.push(text(&quick));
    for golden in [
        include_str!("../golden/bonnie.txt"),
        include_str!("../golden/dbench.txt"),
        include_str!("../golden/tasks-detail.txt"),
        include_str!("../golden/tasks.md"),
        include_str!("../golden/tasks.txt"),
        include_str!("../golden/terminal.txt"),
    ] {
        texts.push(golden.to_owned());
    }
    for text in texts {
        // Phrases are also found across line breaks of the terminal.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let claims = ["is the fastest filesystem", "no difference", "up to ×"];
        for banned in claims.into_iter().chain(["real-world", "nan"]) {
            let word = |c: char| !c.is_alphanumeric();
            let found = text.match_indices(banned).any(|(at, _)| {
                text[..at].ends_with(word) && text[at + banned.len()..].starts_with(word)
            });
            assert!(!found, "`{banned}`");
        }
    }
}

#[test]
fn the_time_of_a_resumed_run_is_not_a_duration() {
    let mut record = fixture::record();
    let shown = |record: &RunRecord| View::new(record).facts.when.clone();
    assert!(shown(&record).contains(", took "), "{}", shown(&record));
    record.warnings.push(Warning::Resumed { differs: String::new() });
    let when = shown(&record);
    assert!(when.contains(" to ") && when.ends_with("with an interruption"), "{when}");
    assert!(!when.contains("took"), "{when}");
}

#[test]
fn three_repetitions_have_no_findings() {
    let mut record = fixture::record();
    record.trials.retain(|trial| trial.repetition < 3);
    let view = View::new(&record);
    assert!(
        view.findings
            .by_point
            .iter()
            .all(|point| { point.findings.iter().all(|finding| finding.kind == FindingKind::C20) })
    );
    let text = terminal(&view, &plain(100, true));
    assert!(
        text.contains("n = 3 repetitions")
            && text.contains("too-few-repetitions")
            && !text.contains('▲')
    );
    // A warning that all numbers share is listed once below each table. JSON has it at each number.
    assert!(text.replace('\n', " ").contains("primary values: too-few-repetitions"), "{text}");
    let page = html(&view, &[]);
    let link = "<a class=\"shared\" href=\"#warning-too-few-repetitions\">too-few-repetitions</a>";
    assert!(page.contains(&format!("warnings of all primary values: {link}")));
    assert!(!page.contains("<a class=\"code\" href=\"#warning-too-few-repetitions\">"));
    assert!(markdown(&view).contains("warnings of all primary values: too-few-repetitions"));
    let json: serde_json::Value = serde_json::from_str(&json(&view)).unwrap();
    assert!(json.to_string().matches("\"too-few-repetitions\"").count() > 100);
}

#[test]
fn a_run_without_trials_has_a_title_and_conditions() {
    for phases_known in [true, false] {
        let mut record = fixture::record();
        record.trials.clear();
        for cell in &mut record.cells {
            cell.state = CellState::Open;
            if !phases_known {
                cell.phases.clear();
            }
        }
        let view = View::new(&record);
        assert!(terminal(&view, &plain(80, true)).contains("not measured yet"));
        assert!(html(&view, &[]).contains("not measured yet"));
        record.cells.clear();
        assert!(html(&View::new(&record), &[]).ends_with("</html>\n"));
    }
}

#[test]
fn a_cell_whose_repetitions_all_failed_is_a_row_with_the_reason() {
    let mut record = fixture::record();
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == 0) {
        trial.outcome = Outcome::Failed { reason: "mount: wrong fs type".into() };
    }
    let text = terminal(&View::new(&record), &plain(100, true));
    assert!(text.contains("all 8 repetitions failed: mount: wrong fs type"), "{text}");
}

#[test]
fn percentiles_need_ten_operations_beyond_them() {
    let view = View::new(&fixture::record());
    // Each phase has 256 operations, enough for the median but not for p99.
    let titles: Vec<&str> =
        view.latency[0].columns.iter().map(|column| column.title.as_str()).collect();
    assert_eq!(titles, ["p50", "max"]);
    let caption = view.latency[0].caption.join("; ");
    assert!(caption.contains("p99 and p99.9 not shown"), "{caption}");
}

#[test]
fn the_interval_chart_matches_the_golden_file() {
    let page = html(&View::new(&fixture::record()), &[]);
    let figure = page.find("<figure class=\"plot ranking\"").unwrap();
    let start = figure + page[figure..].find("<svg class=\"chart").unwrap();
    let end = start + page[start..].find("\n</div>").unwrap();
    expect_file!["../golden/intervals.svg"].assert_eq(&format!("{}\n", &page[start..end]));
}

/// Start and end tags in order, without elements that have no end tag.
fn tags(page: &str) -> Vec<(bool, &str)> {
    const VOID: [&str; 3] = ["meta", "br", "!DOCTYPE"];
    let body = |name: &str| page.find(&format!("<{name}>")).unwrap();
    // The contents of style and script are not markup.
    let cut = [
        body("style")..page.find("</style>").unwrap(),
        body("script")..page.rfind("</script>").unwrap(),
    ];
    let mut tags = Vec::new();
    for (at, _) in page.match_indices('<').filter(|(at, _)| !cut.iter().any(|cut| cut.contains(at)))
    {
        let tag = &page[at + 1..at + page[at..].find('>').unwrap()];
        let closing = tag.starts_with('/');
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        if !tag.ends_with('/') && !VOID.contains(&name) && name != "style" && name != "script" {
            tags.push((closing, name));
        }
    }
    tags
}

fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let pattern = format!(" {name}=\"");
    let values = page.match_indices(&pattern).map(|(at, _)| {
        let value = &page[at + pattern.len()..];
        &value[..value.find('"').unwrap()]
    });
    values.collect()
}

#[test]
fn the_html_is_well_formed() {
    for record in [study(), fixture::tasks::record()] {
        well_formed(&html(&View::new(&record), &[]));
    }
}

fn well_formed(page: &str) {
    let mut open = Vec::new();
    for (closing, name) in tags(page) {
        if closing && ["style", "script"].contains(&name) {
            continue;
        }
        if closing {
            assert_eq!(open.pop(), Some(name), "{open:?}");
        } else {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let ids = attributes(page, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "duplicate id");
    for target in attributes(page, "href") {
        if target.starts_with("data:text/csv;charset=utf-8,") {
            continue;
        }
        let id = target.strip_prefix('#').unwrap_or_else(|| panic!("leaves the file: {target}"));
        assert!(unique.contains(id), "no target of {target}");
    }
    for ids in attributes(page, "aria-labelledby") {
        assert!(ids.split(' ').all(|id| unique.contains(id)), "{ids}");
    }
}

#[test]
fn the_html_is_accessible() {
    for record in [study(), fixture::tasks::record()] {
        readable(&html(&View::new(&record), &[]));
    }
}

fn readable(page: &str) {
    let count = |text: &str| page.matches(text).count();
    assert_eq!(count("<table"), count("<caption"));
    assert_eq!(count("\" role=\"img\" width="), count("<svg class=\"chart"));
    assert_eq!(count("<svg class=\"chart"), count("svg\">\n<title>"));
    assert_eq!(count("<svg class=\"chart"), count("<desc>"));
    // Elements within charts have no class.
    let hidden = count("aria-hidden=\"true\"");
    assert_eq!(count("<svg class="), count("<svg class=\"chart") + hidden);
    assert!(!page.contains("<th>"), "every header cell has a scope");
    assert!(page.contains("class=\"skip\"") && page.contains("<main ") && page.contains("<nav "));
    let mut level = 0;
    for (_, name) in tags(page).into_iter().filter(|(closing, _)| !closing) {
        if let ["h", digit] = [&name[..1], &name[1..]]
            && let Ok(next) = digit.parse::<usize>()
        {
            assert!(next <= level + 1, "h{next} follows h{level}");
            level = next;
        }
    }
}

#[test]
fn the_html_loads_nothing_and_runs_nothing_from_the_record() {
    let page = html(&View::new(&fixture::record()), &[]);
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let known = page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
        let allowed = if outside == "http://" { known } else { 0 };
        assert_eq!(page.matches(outside).count(), allowed, "{outside}");
    }
    assert!(page.contains("one that is &#60;not&#62; here"), "text from the record is escaped");
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
fn warnings_of_a_phase_apply_to_all_its_values() {
    let mut record = fixture::with_records(&[1, 4, 8].map(Bytes::mib), "own");
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == 0) {
        trial.warnings = vec![(Some("write".into()), model::Warning::NotDurable)];
    }
    let code = model::Warning::NotDurable.code();
    let view = View::new(&record);
    let other = &view.overviews[0].counterparts[0];
    let holders = other.values().filter(|value| value.codes == [code]).count();
    assert_eq!(holders, 1, "accepted throughput is qualified as the durable one is");
    let noted: Vec<&str> = view.latency[0]
        .rows
        .iter()
        .filter(|row| row.note == code)
        .map(|row| row.title.as_str())
        .collect();
    assert!(matches!(noted[..], [title] if title.starts_with("write · ")), "{noted:?}");
    // Heat map of the suite, chart of the test at one block size, and sweep of the test over block
    // sizes.
    let page = html(&view, &[]);
    let sentences = page.split(" Warnings: ").skip(1);
    let named = sentences.filter(|rest| rest.split('.').next().is_some_and(|s| s.contains(code)));
    assert_eq!(named.count(), 3);
}

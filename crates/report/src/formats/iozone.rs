//! Runs of suite `iozone` as the text that scripts for IOzone read: the columns of its
//! single-stream mode and the lines of its throughput mode, one report for each filesystem.
//!
//! A record enters; text leaves. It says at its top that fslab measured, since the numbers of
//! another program must not be taken for those of the original. A value is the median of the
//! repeats, in units of 1024 bytes a second, cut to a whole number as the original cuts it; what
//! has no place in that layout (repeats, intervals, warnings, what was durable) is in the other
//! formats. Twins, failed, and invalid trials take no part.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use model::{
    Metric, Point, RunRecord, Sample, Value,
    record::{CellRecord, Outcome, TrialRecord},
};
use thiserror::Error;

use crate::units::one_line;

/// The suite whose cells have such reports.
const SUITE: &str = "iozone";

/// Why a run has no such report.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotIozone {
    /// Another suite ran.
    #[error(
        "the run has no cells of suite iozone, and only these make a report in the layout of \
         IOzone; run a plan with `suite = \"iozone\"`, or print this run with --format csv"
    )]
    OtherSuite,
    /// No repeat came to its end.
    #[error(
        "no repeat of suite iozone was measured to its end; `fslab report` without --format says \
         why"
    )]
    NothingMeasured,
}

/// A column of the single-stream mode: its test, the two lines of its head, how many columns its
/// head and its values take, and the title of its table by file and record.
struct ColumnOf {
    test: &'static str,
    head: [&'static str; 2],
    head_width: usize,
    width: usize,
    table: &'static str,
}

const fn column(
    test: &'static str,
    head: [&'static str; 2],
    [head_width, width]: [usize; 2],
    table: &'static str,
) -> ColumnOf {
    ColumnOf { test, head, head_width, width, table }
}

/// In the original's order and widths (version 3.471, observed); heads and values are not equally
/// wide there either.
const COLUMNS: [ColumnOf; 17] = [
    column("write", ["", "write"], [9, 9], "Writer"),
    column("rewrite", ["", "rewrite"], [9, 9], "Re-writer"),
    column("read", ["", "read"], [8, 9], "Reader"),
    column("reread", ["", "reread"], [10, 9], "Re-Reader"),
    column("random-read", ["random", "read"], [8, 9], "Random read"),
    column("random-write", ["random", "write"], [10, 9], "Random write"),
    column("backward-read", ["bkwd", "read"], [9, 9], "Backward read"),
    column("record-rewrite", ["record", "rewrite"], [10, 10], "Record rewrite"),
    column("strided-read", ["stride", "read"], [10, 10], "Stride read"),
    column("fwrite", ["", "fwrite"], [9, 9], "Fwrite"),
    column("frewrite", ["", "frewrite"], [9, 9], "Re-Fwrite"),
    column("fread", ["", "fread"], [9, 9], "Fread"),
    column("freread", ["", "freread"], [9, 9], "Re-Fread"),
    column("pwrite", ["", "pwrite"], [8, 9], "Pwrite"),
    column("repwrite", ["", "repwrite"], [9, 9], "Re-Pwrite"),
    column("pread", ["", "pread"], [8, 8], "Pread"),
    column("repread", ["", "repread"], [10, 9], "Re-Pread"),
];

/// Columns that are there whether or not they were measured; the others have no head otherwise.
const ALWAYS: usize = 13;

/// Tests of the throughput mode: our name, and the workers' in its lines.
const WORKERS: [(&str, &str); 13] = [
    ("initial-write", "initial writers"),
    ("rewrite", "rewriters"),
    ("read", "readers"),
    ("reread", "re-readers"),
    ("backward-read", "reverse readers"),
    ("strided-read", "stride readers"),
    ("random-read", "random readers"),
    ("mixed", "mixed workload"),
    ("random-write", "random writers"),
    ("pwrite", "pwrite writers"),
    ("pread", "pread readers"),
    ("fwrite", "fwriters"),
    ("fread", "freaders"),
];

/// A cell by its parameters, and its measured trials.
type Member<'a> = (&'a Point, Vec<&'a TrialRecord>);

/// File and record in KiB, and the median of each test.
type Rows = BTreeMap<(u64, u64), BTreeMap<&'static str, u64>>;

/// A run of suite `iozone` in the layout of IOzone's text output.
///
/// # Errors
/// [`NotIozone`] when there is nothing of that suite.
pub fn iozone(record: &RunRecord) -> Result<String, NotIozone> {
    let ours = record.cells.iter().enumerate();
    let ours: Vec<_> =
        ours.filter(|(_, own)| own.cell.workload.suite == SUITE && !own.cell.twin).collect();
    if ours.is_empty() {
        return Err(NotIozone::OtherSuite);
    }
    let mut names: Vec<&str> = Vec::new();
    let mut text = String::new();
    for (_, own) in &ours {
        let name = own.cell.filesystem.name.as_str();
        if names.contains(&name) {
            continue;
        }
        names.push(name);
        for Report { words, members, .. } in reports(record, &ours, name) {
            head(&mut text, record, name, &words, &members);
            body(&mut text, &members);
        }
    }
    if text.is_empty() { Err(NotIozone::NothingMeasured) } else { Ok(text) }
}

/// Cells of a filesystem that make one report: those that differ in file, record, processes, and
/// tests only, as long as no two have a number for the same place.
struct Report<'a> {
    /// What its cells have in common, in words.
    words: String,
    members: Vec<Member<'a>>,
    /// File and record in KiB and the test of every number of its rows.
    taken: BTreeSet<(u64, u64, &'static str)>,
}

fn reports<'a>(
    record: &'a RunRecord,
    ours: &[(usize, &'a CellRecord)],
    name: &str,
) -> Vec<Report<'a>> {
    let filled = ours.iter().any(|(_, own)| !own.cell.fullness.is_empty());
    let mut reports: Vec<Report<'a>> = Vec::new();
    for (index, own) in ours.iter().filter(|(_, own)| own.cell.filesystem.name == name) {
        let trials = record.trials.iter();
        let trials: Vec<&TrialRecord> = trials
            .filter(|trial| trial.cell == *index && trial.outcome == Outcome::Measured)
            .collect();
        if trials.is_empty() {
            continue;
        }
        let cell = &own.cell;
        let mut words = parameters(&cell.workload);
        words.extend(cell.scheduler.iter().map(|name| format!("scheduler={name}")));
        words.extend(filled.then(|| format!("full={}%", cell.fullness.0)));
        words.extend(cell.factors.iter().map(|(factor, value)| format!("{factor}={value}")));
        let words = one_line(&words.join(" "));
        let member = (&cell.workload, trials);
        let places = places(&member);
        let free =
            |report: &&mut Report<'a>| report.words == words && report.taken.is_disjoint(&places);
        match reports.iter_mut().find(free) {
            Some(report) => {
                report.members.push(member);
                report.taken.extend(places);
            }
            None => reports.push(Report { words, members: vec![member], taken: places }),
        }
    }
    told_apart(&mut reports);
    reports
}

/// Where the rows of a report show the numbers of a cell; lines of the throughput mode follow one
/// another and take no place.
fn places((point, trials): &Member) -> BTreeSet<(u64, u64, &'static str)> {
    if count(point, "processes") > 0 {
        return BTreeSet::new();
    }
    let (file, record) = sizes(point);
    row(trials).into_keys().map(|test| (file, record, test)).collect()
}

/// Reports of equal words say what tests their cells do.
fn told_apart(reports: &mut [Report<'_>]) {
    let all: Vec<String> = reports.iter().map(|report| report.words.clone()).collect();
    for report in reports {
        if all.iter().filter(|words| **words == report.words).count() < 2 {
            continue;
        }
        let points = report.members.iter().map(|(point, _)| point.parameters.get("tests"));
        let mut tests: Vec<String> =
            points.flatten().map(|tests| format!("tests={tests}")).collect();
        tests.sort();
        tests.dedup();
        let words = [std::slice::from_ref(&report.words), tests.as_slice()].concat().join(" ");
        report.words = one_line(words.trim());
    }
}

/// Who measured what; the lines of the original that scripts look for are among them.
fn head(text: &mut String, record: &RunRecord, filesystem: &str, words: &str, members: &[Member]) {
    let repeats = members.iter().map(|(_, trials)| trials.len());
    let (least, most) = (repeats.clone().min().unwrap_or(0), repeats.max().unwrap_or(0));
    let repeats = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let info = &record.info;
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "\tfslab, iozone workload: measured by {}, not by IOzone\n\
         \tRun {}: {}\n\
         \tFilesystem {}; {words}\n\
         \tMedian of {repeats} repeats; accepted throughput, what was durable is not in it\n\
         \tOutput is in kBytes/sec\n",
        one_line(&info.program),
        one_line(&info.id),
        one_line(&info.title),
        one_line(filesystem)
    );
}

fn body(text: &mut String, members: &[Member]) {
    let mut rows = Rows::new();
    for (point, trials) in members {
        match count(point, "processes") {
            0 => rows.entry(sizes(point)).or_default().extend(row(trials)),
            workers => throughput(text, point, workers, trials),
        }
    }
    if rows.is_empty() {
        text.push_str("\niozone test complete.\n\n");
        return;
    }
    let columns = || {
        COLUMNS.iter().enumerate().filter(|(at, column)| {
            *at < ALWAYS || rows.values().any(|row| row.contains_key(column.test))
        })
    };
    for line in 0..2 {
        let first = if line == 0 { ["", ""] } else { ["kB", "reclen"] };
        let _ = write!(text, "{:>16}{:>8}", first[0], first[1]);
        for (_, column) in columns() {
            let _ = write!(text, "{:>1$}", column.head[line], column.head_width);
        }
        text.push('\n');
    }
    for ((file, record), row) in &rows {
        let _ = write!(text, "{file:>16}{record:>8}");
        for (_, column) in columns() {
            let shown = row.get(column.test).map(u64::to_string).unwrap_or_default();
            // A blank keeps numbers apart where the original lets them run into each other.
            let shown = if shown.len() >= column.width { format!(" {shown}") } else { shown };
            let _ = write!(text, "{shown:>0$}", column.width);
        }
        text.push('\n');
    }
    text.push_str("\niozone test complete.\n");
    tables(text, &rows);
    text.push('\n');
}

/// File and record in KiB.
fn sizes(point: &Point) -> (u64, u64) {
    (kib(point, "file"), kib(point, "record"))
}

/// The median of each test that has a column.
fn row(trials: &[&TrialRecord]) -> BTreeMap<&'static str, u64> {
    let medians = COLUMNS
        .iter()
        .map(|column| Some((column.test, value(trials, column.test, Metric::Throughput)?)));
    medians.flatten().collect()
}

/// The same numbers by file and record, one table for each test.
fn tables(text: &mut String, rows: &Rows) {
    let mut records: Vec<u64> = rows.keys().map(|(_, record)| *record).collect();
    let mut files: Vec<u64> = rows.keys().map(|(file, _)| *file).collect();
    records.sort_unstable();
    records.dedup();
    files.dedup();
    text.push_str("Excel output is below:\n");
    for column in &COLUMNS {
        if !rows.values().any(|row| row.contains_key(column.test)) {
            continue;
        }
        let heads: String = records.iter().map(|record| format!("  \"{record}\"")).collect();
        let _ = writeln!(text, "\n\"{} report\"\n      {heads}", column.table);
        for file in &files {
            let _ = write!(text, "\"{file}\"  ");
            // Rows are read from the smallest record on: a hole within is a zero, as there, and
            // nothing stands after the last.
            let cell = |record: &u64| {
                rows.get(&(*file, *record)).and_then(|row| row.get(column.test)).copied()
            };
            let filled = records.iter().rposition(|record| cell(record).is_some());
            for record in records.iter().take(filled.map_or(0, |last| last + 1)) {
                let _ = write!(text, " {} ", cell(record).unwrap_or(0));
            }
            text.push('\n');
        }
    }
}

/// The lines of the throughput mode for one cell.
fn throughput(text: &mut String, point: &Point, workers: u64, trials: &[&TrialRecord]) {
    let _ = writeln!(
        text,
        "\tFile size set to {} kB\n\tRecord Size {} kB\n\tThroughput test with {workers} {}\n",
        kib(point, "file"),
        kib(point, "record"),
        if workers == 1 { "process" } else { "processes" }
    );
    for (test, name) in WORKERS {
        let Some(parent) = value(trials, test, Metric::Throughput) else {
            continue;
        };
        if let Some(children) = value(trials, test, Metric::ThroughputSum) {
            let _ = writeln!(
                text,
                "\tChildren see throughput for {workers:>2} {name} \t= {children:>10}.00 kB/sec"
            );
        }
        let _ = writeln!(
            text,
            "\tParent sees throughput for {workers:>2} {name} \t= {parent:>10}.00 kB/sec\n"
        );
    }
}

/// Parameters that make no rows of their own.
fn parameters(point: &Point) -> Vec<String> {
    let own = |name: &&String| !matches!(name.as_str(), "file" | "record" | "tests" | "processes");
    let names = point.parameters.keys().filter(own);
    names.map(|name| format!("{name}={}", point.parameters[name])).collect()
}

/// The median over repeats in KiB/s, cut to a whole number as the original does it.
fn value(trials: &[&TrialRecord], test: &str, metric: Metric) -> Option<u64> {
    let own = |sample: &&Sample| {
        sample.phase == test && sample.metric == metric && sample.worker.is_none()
    };
    let values = trials.iter().filter_map(|trial| trial.samples.iter().find(own));
    let mut values: Vec<f64> = values.map(|sample| sample.value).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let median = match values.len() {
        0 => return None,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is not negative, and cutting is what the original does"
    )]
    let whole = (median / 1024.0) as u64;
    Some(whole)
}

fn kib(point: &Point, name: &str) -> u64 {
    match point.parameters.get(name) {
        Some(Value::Size(size)) => size.0 / 1024,
        _ => 0,
    }
}

fn count(point: &Point, name: &str) -> u64 {
    match point.parameters.get(name) {
        Some(Value::Count(count)) => *count,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Fullness};

    use super::*;
    use crate::fixture;

    /// Where the values of a row end, of which no one is wider than its column.
    const ENDS: [usize; 15] = [16, 24, 33, 42, 51, 60, 69, 78, 87, 97, 107, 116, 125, 134, 143];

    #[test]
    fn rows_have_the_columns_that_scripts_cut_at() {
        let record = fixture::record();
        let text = iozone(&record).unwrap();
        let rows: Vec<&str> =
            text.lines().filter(|line| line.trim_start().starts_with("262144 ")).collect();
        // Five filesystems at two record sizes; one was skipped.
        assert_eq!(rows.len(), 10, "{text}");
        for row in rows {
            assert_eq!(row.len(), 143, "{row}");
            let mut start = 0;
            for end in ENDS {
                let field = row[start..end].trim();
                assert!(field.parse::<u64>().is_ok(), "{field:?} in {row}");
                start = end;
            }
        }
        assert!(text.contains("fslab, iozone workload"));
        assert!(text.contains("\"Writer report\"\n        \"1024\"  \"4096\"\n\"262144\"   "));
    }

    #[test]
    fn heads_stand_as_in_the_original() {
        let text = iozone(&fixture::record()).unwrap();
        let heads: Vec<&str> =
            text.lines().filter(|line| line.contains("reclen") || line.contains("bkwd")).collect();
        // Where words end in the head of version 3.471.
        assert_eq!(
            heads[0].trim_end(),
            format!("{}{}", " ".repeat(62), "random    random     bkwd    record    stride")
        );
        assert!(
            heads[1].starts_with("              kB  reclen    write  rewrite    read    reread")
        );
    }

    /// A run of two cells of ext4 at one file and record, which differ as `change` makes them.
    fn two(change: impl Fn(&mut [CellRecord; 2])) -> RunRecord {
        let mut record = fixture::with_records(&[1, 4].map(Bytes::mib), "two");
        let mut kept = Vec::new();
        for (index, cell) in record.cells.iter().enumerate() {
            if cell.cell.filesystem.name == "ext4" {
                kept.push(index);
            }
        }
        let mut cells = [kept[0], kept[1]].map(|index| record.cells[index].clone());
        cells[1].cell.workload = cells[0].cell.workload.clone();
        change(&mut cells);
        record.cells = cells.into();
        record.trials.retain(|trial| kept.contains(&trial.cell));
        for trial in &mut record.trials {
            trial.cell = usize::from(trial.cell == kept[1]);
            let Some(Value::Words(tests)) =
                record.cells[trial.cell].cell.workload.parameters.get("tests")
            else {
                continue;
            };
            trial.samples.retain(|sample| tests.contains(&sample.phase));
        }
        record
    }

    fn tests(cells: &mut [CellRecord; 2], tests: [&[&str]; 2]) {
        for (cell, tests) in cells.iter_mut().zip(tests) {
            let words = tests.iter().map(|test| (*test).to_owned()).collect();
            cell.cell.workload.parameters.insert("tests".into(), Value::Words(words));
        }
    }

    /// How many numbers stand in each row, size of file and record not counted.
    fn numbers(text: &str) -> Vec<usize> {
        let rows = text.lines().filter(|line| line.trim_start().starts_with("262144 "));
        rows.map(|row| row.split_whitespace().count() - 2).collect()
    }

    #[test]
    fn a_number_takes_the_place_of_no_other() {
        let text = iozone(&two(|cells| {
            tests(cells, [&["write", "read", "reread"], &["write", "random-read"]]);
        }))
        .unwrap();
        assert_eq!(numbers(&text), [3, 2], "{text}");
        assert!(text.contains("tests=write,read,reread\n"), "{text}");
        assert!(text.contains("tests=write,random-read\n"), "{text}");
        // Tests that only one of them has stand in one row.
        let text =
            iozone(&two(|cells| tests(cells, [&["write", "read"], &["random-read"]]))).unwrap();
        assert_eq!(numbers(&text), [3], "{text}");
        assert!(!text.contains("tests="), "{text}");
    }

    #[test]
    fn each_fullness_has_a_report_that_names_it() {
        let text = iozone(&two(|cells| cells[1].cell.fullness = Fullness(50))).unwrap();
        assert_eq!(numbers(&text), [13, 13], "{text}");
        assert!(text.contains("full=0%\n") && text.contains("full=50%\n"), "{text}");
    }

    #[test]
    fn other_suites_are_told_what_is_needed() {
        assert_eq!(iozone(&fixture::tasks::record()), Err(NotIozone::OtherSuite));
        let mut record = fixture::record();
        record.trials.clear();
        assert_eq!(iozone(&record), Err(NotIozone::NothingMeasured));
    }
}

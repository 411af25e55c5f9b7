//! Sheets of all results and of all samples.

use analysis::Summary;
use model::RunRecord;

use super::book::{Book, Digits, Look, Sheet};
use crate::{
    samples::{self, SampleRow},
    view::{Entry, Status, Test, View, metric_label},
};

/// Maximum number of sample rows, which spreadsheet programs open within seconds. The format allows
/// 1 048 576 rows per sheet.
const SAMPLES_MAX: usize = 250_000;

const RESULTS: [&str; 16] = [
    "suite",
    "workload",
    "test",
    "filesystem",
    "quantity",
    "better",
    "unit",
    "median",
    "low",
    "high",
    "level",
    "n",
    "letters",
    "top group",
    "warnings",
    "note",
];

/// Table of the results of all filesystems and tests, with filters.
pub(super) fn results(book: &mut Book, view: &View) {
    let caption = ["One row for each filesystem at each test. Low and high are the ends of the \
          confidence interval of the median at the given level; filesystems that share a letter \
          do not differ significantly."
        .to_owned()];
    let mut sheet = book.last("Results", "All results", &caption);
    header(&mut sheet, &RESULTS);
    let head = sheet.row - 1;
    for suite in &view.suites {
        for point in &suite.points {
            for test in &point.tests {
                for entry in &test.entries {
                    let at = [&suite.name, &point.label, &test.name];
                    let name = &view.filesystems[entry.filesystem].name;
                    result(&mut sheet, at, name, test, entry);
                }
            }
        }
    }
    filtered(&mut sheet, head, RESULTS.len());
    sheet.widths([(0, 11.0), (1, 30.0), (2, 18.0), (3, 16.0), (4, 20.0), (5, 17.0)]);
    sheet.widths([(14, 24.0), (15, 40.0)]);
    book.add(sheet);
}

fn result(sheet: &mut Sheet, at: [&String; 3], filesystem: &str, test: &Test, entry: &Entry) {
    let row = sheet.row;
    for (column, text) in at.into_iter().enumerate() {
        sheet.text(row, column, Look::Text, text);
    }
    let better = test.metric.spec().better.label();
    let quantity = metric_label(test.metric);
    for (column, text) in [filesystem, &quantity, better, test.scale.name].into_iter().enumerate() {
        sheet.text(row, column + 3, Look::Text, text);
    }
    if let Some(Summary { n, median, interval, .. }) = entry.summary {
        let mut number = |column, value| sheet.number(row, column, value, Digits::All);
        number(7, test.scale.number(median));
        if let Some(interval) = interval {
            number(8, test.scale.number(interval.low));
            number(9, test.scale.number(interval.high));
            number(10, interval.level);
        }
        number(11, f64::from(n));
    }
    let reason = match &entry.status {
        Status::Nothing(reason) => reason.clone(),
        Status::Measured => entry.failed_repetitions(),
    };
    let top = if entry.top { "yes" } else { "" };
    let rest = [entry.letters.clone(), top.into(), entry.codes.join(", "), reason];
    for (column, text) in rest.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
        sheet.text(row, column + 12, Look::Text, text);
    }
    sheet.row += 1;
}

const SAMPLES: [&str; 14] = [
    "cell",
    "filesystem",
    "suite",
    "workload",
    "scheduler",
    "settings",
    "aa_duplicate",
    "repetition",
    "attempt",
    "outcome",
    "phase",
    "metric",
    "unit",
    "worker",
];

/// Table of the samples as in the CSV, at most [`SAMPLES_MAX`].
pub(super) fn samples(book: &mut Book, record: &RunRecord) {
    let all: usize = record.trials.iter().map(|trial| trial.samples.len()).sum();
    let mut caption = vec![
        "One row for each sample, in the base unit of its row. Rows of failed and \
         invalid trials, and of A/A duplicates, count in no summary."
            .to_owned(),
    ];
    if all > SAMPLES_MAX {
        caption.push(format!(
            "Truncated: the first {SAMPLES_MAX} of {all} samples; fslab report RUN -o FILE.csv or \
             FILE.parquet has them all."
        ));
    }
    let mut sheet = book.last("Samples", "Samples", &caption);
    let titles: Vec<&str> = SAMPLES.into_iter().chain(["value"]).collect();
    header(&mut sheet, &titles);
    let head = sheet.row - 1;
    let cells = samples::cells(record);
    for row in samples::rows(record, &cells).take(SAMPLES_MAX) {
        sample(&mut sheet, &row);
    }
    filtered(&mut sheet, head, titles.len());
    sheet.widths([(0, 18.0), (1, 16.0), (3, 30.0), (10, 18.0), (11, 24.0), (12, 17.0), (14, 20.0)]);
    book.add(sheet);
}

fn sample(sheet: &mut Sheet, sample: &SampleRow<'_>) {
    let SampleRow { cell, repetition, attempt, outcome, phase, metric, worker, value } = sample;
    let row = sheet.row;
    let before = [
        cell.cell.as_str(),
        &cell.filesystem,
        &cell.suite,
        &cell.workload,
        &cell.scheduler,
        &cell.settings,
        if cell.aa_duplicate { "yes" } else { "no" },
    ];
    let after = [*outcome, phase, metric.name(), metric.spec().unit.name()];
    let words = before.into_iter().enumerate();
    let words = words.chain(after.into_iter().enumerate().map(|(at, word)| (at + 9, word)));
    for (column, word) in words.filter(|(_, word)| !word.is_empty()) {
        sheet.text(row, column, Look::Text, word);
    }
    let numbers = [(7, f64::from(*repetition)), (8, f64::from(*attempt)), (14, *value)];
    let worker = worker.map(|worker| (13, f64::from(worker)));
    for (column, number) in numbers.into_iter().chain(worker) {
        sheet.number(row, column, number, Digits::All);
    }
    sheet.row += 1;
}

/// Header row, which stays visible when the sheet is scrolled.
fn header(sheet: &mut Sheet, titles: &[&str]) {
    for (column, title) in titles.iter().enumerate() {
        sheet.text(sheet.row, column, Look::Header, title);
    }
    sheet.row += 1;
    sheet.freeze(sheet.row, 0);
}

/// Adds filters to the headers if there are rows below.
fn filtered(sheet: &mut Sheet, head: u32, columns: usize) {
    let last = sheet.row.saturating_sub(1);
    if last <= head {
        return;
    }
    let columns = super::book::at(columns - 1);
    sheet.write(|sheet| sheet.autofilter(head, 0, last, columns).map(|_| ()));
}

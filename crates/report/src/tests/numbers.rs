//! Number formats in texts: at most four significant digits before a scaled unit, a space before
//! the unit, one unit per column, and a singular noun after 1.

use std::collections::BTreeSet;

use analysis::runs::{self, CompareOptions};
use model::{Environment, RunRecord, metric::Unit};

use super::plain;
use crate::{
    View, bench, comparison,
    document::Section,
    explain, fixture, markdown,
    run::{self, budget::Budget},
    terminal,
    view::{Body, TableCell},
};

/// Scaled units, whose values have few digits.
const UNITS: [&str; 18] = [
    "KiB/s", "MiB/s", "GiB/s", "TiB/s", "KiB", "MiB", "GiB", "TiB", "k ops/s", "M ops/s",
    "k instr", "M instr", "G instr", "µs", "ms", "%", "k", "M",
];

const NOUNS: [&str; 19] = [
    "cells",
    "clients",
    "errors",
    "filesystems",
    "files",
    "findings",
    "lines",
    "operations",
    "phases",
    "questions",
    "repetitions",
    "results",
    "rounds",
    "samples",
    "tests",
    "times",
    "trials",
    "values",
    "warnings",
];

fn records() -> Vec<RunRecord> {
    let mut few = fixture::record();
    few.trials.retain(|trial| trial.repetition < 1);
    let mut single = fixture::record();
    single.trials.retain(|trial| trial.cell == 0 && trial.repetition < 1);
    vec![
        fixture::record(),
        super::study(),
        fixture::tasks::record(),
        fixture::dbench::record(),
        fixture::bonnie::record(),
        fixture::smallfile::record(),
        few,
        single,
        large(),
    ]
}

/// Run with environment facts of many digits and values that hardly vary.
fn large() -> RunRecord {
    let mut record = fixture::record();
    record.environment = Environment(
        record
            .environment
            .0
            .into_iter()
            .map(|(name, value)| match name.ends_with("_bytes") {
                true => (name, (68_691_u64 << 20).to_string()),
                false => (name, value),
            })
            .collect(),
    );
    let samples = record.trials.iter_mut().flat_map(|trial| &mut trial.samples);
    let bounded = [Unit::Fraction, Unit::Ratio];
    for sample in samples.filter(|it| !bounded.contains(&it.metric.spec().unit)) {
        sample.value = 6012.0 * (1.0 + sample.value.log10().fract() * 1e-7);
    }
    record
}

/// Texts in all formats, with their names.
fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (at, record) in records().iter().enumerate() {
        let view = View::new(record);
        for detail in [false, true] {
            texts.push((format!("terminal {at} {detail}"), terminal(&view, &plain(120, detail))));
        }
        texts.push((format!("Markdown {at}"), markdown(&view)));
        let explained = explain(&view, &[]).unwrap().terminal(&plain(120, true));
        texts.push((format!("explanation {at}"), explained));
        let subject = bench::Subject {
            name: "workload".into(),
            title: "title".into(),
            source: "source".into(),
            parameters: Vec::new(),
        };
        texts.push((format!("bench {at}"), bench::bench(record, &subject, &plain(120, true))));
        let mut other = record.clone();
        other.info.id = "other".into();
        let both = [record, &other];
        if let Ok(chain) = runs::chain(&both, &CompareOptions::default()) {
            let shown = comparison::terminal(&both, &chain, &plain(120, true));
            texts.push((format!("comparison {at}"), shown));
            texts.push((format!("comparison, Markdown {at}"), comparison::markdown(&both, &chain)));
        }
    }
    texts
}

/// Numbers in a line (digits with at most one decimal point), each with the text after it. Digits
/// in names, versions, and dates are not numbers.
fn numbers(line: &str) -> Vec<(&str, &str)> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(start) = line[at..].find(|c: char| c.is_ascii_digit()).map(|it| it + at) {
        let rest = &line[start..];
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..length].trim_end_matches('.');
        let before = line[..start].chars().next_back();
        let part = |c: char| c.is_alphanumeric() || ['_', '-', '=', ':', '/', '.'].contains(&c);
        if !before.is_some_and(part) && number.matches('.').count() <= 1 {
            all.push((number, &line[start + number.len()..]));
        }
        at = start + length;
    }
    all
}

/// Number and the text after it, if the format is wrong.
fn malformed((number, after): (&str, &str)) -> Option<String> {
    let digits = number.trim_start_matches(['0', '.']).matches(|c: char| c.is_ascii_digit());
    let shown = || Some(format!("{number}{}", after.chars().take(12).collect::<String>()));
    let ends = |text: &str| !text.starts_with(|c: char| c.is_alphanumeric() || c == '/');
    let unit = |text: &str| UNITS.iter().any(|unit| text.strip_prefix(unit).is_some_and(ends));
    let noun = |text: &str| NOUNS.iter().any(|noun| text.strip_prefix(noun).is_some_and(ends));
    let spaced = after.strip_prefix([' ', '\u{a0}']);
    let many = digits.count() > 4;
    match spaced {
        Some(text) if number == "1" && noun(text) => shown(),
        Some(text) if many && unit(text) => shown(),
        None if many && unit(after) => shown(),
        Some(_) | None => None,
    }
}

#[test]
fn the_scanner_finds_malformed_numbers() {
    let found = |line| numbers(line).into_iter().filter_map(malformed).collect::<Vec<_>>();
    for wrong in ["6.0120 k", "68691MiB", "1 repetitions", "31.0000 %", "12345 ms", "a 1.2345 k"] {
        assert_eq!(found(wrong).len(), 1, "{wrong}");
    }
    for right in ["6.012 k", "64MiB", "1 repetition", "10 tests", "0.01234 ms", "v6.18.12345 k"] {
        assert_eq!(found(right), Vec::<String>::new(), "{right}");
    }
}

#[test]
fn numbers_have_few_digits_and_nouns_agree() {
    let mut wrong = BTreeSet::new();
    for (name, text) in texts() {
        for line in text.lines() {
            let found = numbers(line).into_iter().filter_map(malformed);
            wrong.extend(found.map(|number| format!("{name}: {number}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Unit of a cell that is a number and a unit.
fn unit(text: &str) -> Option<&str> {
    let (number, unit) = text.lines().next()?.split_once(' ')?;
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    (plain && UNITS.iter().chain(&["ns", "s", "B"]).any(|known| *known == unit)).then_some(unit)
}

#[test]
fn a_column_has_one_unit() {
    let mut wrong = BTreeSet::new();
    for (at, record) in records().iter().enumerate() {
        let view = View::new(record);
        let document = run::document(&view, &mut Budget::text());
        for table in document.sections.iter().flat_map(Section::tables) {
            for (index, column) in table.columns.iter().enumerate() {
                let texts = table.rows.iter().filter_map(|row| match &row.body {
                    Body::Cells(cells) => match cells.get(index)? {
                        TableCell::Text(text) => unit(text),
                        TableCell::Value(_) => None,
                    },
                    Body::Missing(_) => None,
                });
                let units: BTreeSet<&str> = texts.collect();
                if units.len() > 1 {
                    wrong.insert(format!("{at}: {} {}: {units:?}", table.title, column.title));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

//! Study of 2009: IOzone on eight filesystems, with mean and deviation of ten runs.
//!
//! Tables 1 to 8 have their original rows. Tables 9 to 12 repeat means of tables 1 to 8 in another
//! arrangement and are shown as printed. Marks at numbers come from the audit of the same data.
//! Intervals assume that the second number of a cell is the standard deviation of its ten runs; the
//! article does not name it.

use std::{collections::BTreeMap, sync::LazyLock};

use analysis::{Interval, moments::Moments};
use model::metric::Unit;

use super::{Extras, MarkedNumber, Published, SUFFIX, trends};
use crate::{
    audit::{
        Audit,
        quality_notes::{QualityNote, QualityNoteKind},
    },
    document::{Body, Column, Row, Table, TableCell, ValueCell},
    units::{distinct, fixed, percent},
};

/// Runs of each test.
pub(crate) const RUNS: u32 = 10;
/// Bytes per KB of the tables: the KB of IOzone are 1,024 bytes.
pub(crate) const KIB: f64 = 1024.0;
/// Confidence level of the intervals.
const LEVEL: f64 = 0.95;
/// Number of the first table that repeats numbers of other tables.
const REGROUPED: u32 = 9;

/// Printed mean with its deviation and marks.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) table: u32,
    pub(crate) filesystem: String,
    /// Record length in KiB.
    pub(crate) record: u32,
    /// Test, such as `random_write`.
    pub(crate) test: String,
    /// Mean in KiB/s.
    pub(crate) mean: f64,
    /// Deviation in KiB/s, and as text with two decimal places; `None` in tables 9 to 12.
    pub(crate) deviation: Option<(f64, String)>,
    /// Quality notes of mean and deviation.
    pub(crate) quality_notes: Vec<(Statistic, QualityNote)>,
}

/// Number within a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    /// First number of the cell.
    Mean,
    /// Second number of the cell.
    Deviation,
}

impl Number {
    /// Mean and deviation in KiB/s; `None` without a deviation.
    pub(crate) fn moments(&self) -> Option<Moments> {
        let (deviation, _) = self.deviation.as_ref()?;
        Some(Moments { mean: self.mean, deviation: *deviation, n: RUNS })
    }

    /// 95 % confidence interval of the mean in KiB/s.
    pub(crate) fn interval(&self) -> Option<Interval> {
        self.moments()?.interval(LEVEL).ok()
    }

    /// Distinct marks of the number.
    pub(crate) fn codes(&self) -> Vec<&'static str> {
        let kinds = QualityNoteKind::ALL.into_iter();
        let own =
            |kind: &QualityNoteKind| self.quality_notes.iter().any(|(_, note)| note.kind == *kind);
        kinds.filter(own).map(QualityNoteKind::code).collect()
    }
}

/// Numbers and audit of the study.
pub(crate) struct Study {
    audit: Audit,
    /// Numbers in the order of the tables.
    pub(crate) numbers: Vec<Number>,
}

/// Computed once, because the audit compares all pairs of cells.
static STUDY: LazyLock<Study> = LazyLock::new(Study::read);

/// Numbers and audit of the study.
pub(crate) fn study() -> &'static Study {
    &STUDY
}

impl Study {
    fn read() -> Self {
        let audit = super::audit::published("iozone-2009");
        let audit = audit.unwrap_or_else(|| unreachable!("built-in data"));
        let mut quality_notes: BTreeMap<usize, Vec<QualityNote>> = BTreeMap::new();
        for note in audit.quality_notes() {
            quality_notes.entry(note.cell).or_default().push(note);
        }
        let mut numbers: Vec<Number> = Vec::new();
        for (index, cell) in audit.cells().iter().enumerate() {
            let at = |name: &str| cell.at.get(name).map_or("", String::as_str);
            let Some(value) = cell.value else { continue };
            let own = quality_notes.remove(&index).unwrap_or_default();
            if at("metric") == "throughput_stddev" {
                // A deviation follows its mean.
                if let Some(number) = numbers.last_mut() {
                    number.deviation = Some((value, fixed(value, 2)));
                    let own = own.into_iter().map(|note| (Statistic::Deviation, note));
                    number.quality_notes.extend(own);
                }
                continue;
            }
            numbers.push(Number {
                table: at("table").parse().unwrap_or(0),
                filesystem: at("filesystem").into(),
                record: at("record_size_kib").parse().unwrap_or(0),
                test: at("test").into(),
                mean: value,
                deviation: None,
                quality_notes: own.into_iter().map(|note| (Statistic::Mean, note)).collect(),
            });
        }
        Self { audit, numbers }
    }

    /// Numbers of tables 1 to 8, each quantity once.
    pub(crate) fn originals(&self) -> impl Iterator<Item = &Number> {
        self.numbers.iter().filter(|number| number.table < REGROUPED)
    }

    /// Filesystems in the order of the tables.
    pub(crate) fn filesystems(&self) -> Vec<&str> {
        distinct(self.numbers.iter().map(|number| number.filesystem.as_str()))
    }

    /// Tests in the order of the tables: those that write, then those that read.
    pub(crate) fn tests(&self) -> Vec<&str> {
        distinct(self.originals().map(|number| number.test.as_str()))
    }

    /// Record lengths in KiB, ascending.
    pub(crate) fn records(&self) -> Vec<u32> {
        distinct(self.originals().map(|number| number.record))
    }

    /// Number in tables 1 to 8.
    pub(crate) fn of(&self, test: &str, filesystem: &str, record: u32) -> Option<&Number> {
        self.originals().find(|number| {
            number.test == test && number.filesystem == filesystem && number.record == record
        })
    }
}

/// Record length, given in KiB, such as `1 MiB`.
pub(crate) fn length(record: u32) -> String {
    format!("{} MiB", record / 1024)
}

/// Name of a test, such as `random write`.
pub(crate) fn test_name(test: &str) -> String {
    test.replace('_', " ")
}

/// The twelve tables of the study.
pub(crate) fn tables(set: &Published) -> Vec<Table> {
    let study = study();
    let ids = distinct(study.numbers.iter().map(|number| number.table));
    ids.into_iter().map(|id| table(set, study, id)).collect()
}

fn table(set: &Published, study: &Study, id: u32) -> Table {
    let own = || study.numbers.iter().filter(|number| number.table == id);
    let tests = distinct(own().map(|number| number.test.as_str()));
    let writes = tests.iter().any(|test| test.ends_with("write"));
    let what = if writes { "Writing" } else { "Reading" };
    let regrouped = id >= REGROUPED;
    let title = |number: &Number| match regrouped {
        true => length(number.record),
        false => number.filesystem.clone(),
    };
    let names = distinct(own().map(title));
    let row = |name: String| {
        let cell = |test: &&str| {
            let found = own().find(|number| title(number) == name && number.test == **test);
            found.map_or_else(|| TableCell::Text("not printed".into()), value)
        };
        let cells = tests.iter().map(cell).collect();
        Row::of(name.clone(), None, Body::Cells(cells))
    };
    let of = own().next().map_or_else(String::new, |first| match regrouped {
        true => format!("{} by record length", first.filesystem),
        false => format!("records of {}", length(first.record)),
    });
    let numbers = match regrouped {
        true => "means as printed, without deviations; they repeat those of tables 1 to 8",
        false => {
            "mean [95 % confidence interval, Student's t, n = 10]; s: printed standard deviation, \
             assumed to be that of the 10 runs"
        }
    };
    Table {
        id: format!("{}-table-{id}", set.name),
        title: format!("Table {id}. {what}, {of}: {}", set.name),
        caption: vec!["Throughput, higher is better ↑".into(), numbers.into()],
        corner: if regrouped { "record" } else { "filesystem" },
        columns: tests.iter().map(|test| Column::new(test_name(test), "KiB/s")).collect(),
        rows: names.into_iter().map(row).collect(),
    }
}

/// Mean with its interval, deviation, and notes on both.
fn value(number: &Number) -> TableCell {
    let interval = number.interval();
    let spread = number
        .deviation
        .as_ref()
        .map(|(deviation, text)| format!("s = {text} ({})", percent(deviation / number.mean)));
    let quality_notes = number.quality_notes.iter().map(|(statistic, note)| match statistic {
        Statistic::Mean => note.short.clone(),
        Statistic::Deviation => format!("s {}", note.short),
    });
    let note: Vec<String> = spread.into_iter().chain(quality_notes).collect();
    let ends = interval.map(|ends| {
        let places = if ends.high - ends.low < 200.0 { 1 } else { 0 };
        (fixed(ends.low, places), fixed(ends.high, places))
    });
    let printed = fixed(number.mean, 2);
    let mut cell = ValueCell::printed(printed, number.mean * KIB, Unit::BytesPerSecond, RUNS);
    cell.shown.interval = ends;
    cell.interval = interval.map(|ends| Interval {
        low: ends.low * KIB,
        high: ends.high * KIB,
        level: ends.level,
    });
    cell.codes = number.codes();
    cell.note = note.join("\n");
    TableCell::Value(cell)
}

/// Findings, charts, and marked numbers.
pub(super) fn extras() -> Extras {
    let study = study();
    let notes = study.audit.quality_notes().into_iter();
    let marked = notes.map(|note| MarkedNumber { code: note.kind.code(), text: note.sentence });
    let marked = distinct(marked);
    let (findings, withheld) = trends::findings(study);
    Extras {
        findings,
        withheld,
        marked,
        groups: super::figures::iozone(study),
        note: format!(
            "The marks {}, {}, and {} refer to the notes below; fslab audit iozone-2009{SUFFIX} \
             lists them with the statements of the article.",
            QualityNoteKind::Malformed.code(),
            QualityNoteKind::Conflicting.code(),
            QualityNoteKind::Repeated.code()
        ),
    }
}

//! Samples as CSV (RFC 4180): one row per sample, in base units, including failed and invalid
//! trials.
//!
//! Spreadsheet programs treat a text as a formula if it begins with certain characters, quoted or
//! not. A formula can run programs. Such text fields get a leading apostrophe, as OWASP recommends
//! (<https://owasp.org/www-community/attacks/CSV_Injection>). Numeric fields are never changed.

use model::RunRecord;

use crate::samples::{self, SampleRow};

const HEADER: &str = "run,cell,filesystem,suite,workload,scheduler,settings,aa_duplicate,\
                      repetition,attempt,outcome,phase,metric,unit,worker,value\r\n";

/// First characters of a formula, as listed by OWASP. The full-width forms are included because
/// Japanese and Chinese versions of spreadsheet programs accept them. Line ends cannot occur,
/// because texts are one line.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// All samples of a run, in the order of measurement. Columns:
///
/// - `value` is in the base unit named by `unit`.
/// - `worker` is empty for all workers together.
/// - `settings` are the system settings that the plan sets.
/// - `aa_duplicate` is `yes` for an A/A duplicate, which only the A/A control uses.
/// - `attempt` is the number of invalid trials of the same repetition before this one.
/// - `outcome` is `measured`, `failed`, `invalid`, or `imported`. Failed and invalid trials are
///   excluded from all summaries.
pub fn csv(record: &RunRecord) -> String {
    let mut text = String::from(HEADER);
    let run = text_field(&record.info.id);
    let cells = samples::cells(record);
    for row in samples::rows(record, &cells) {
        let SampleRow { cell, repetition, attempt, outcome, phase, metric, worker, value } = row;
        text.push_str(&line(&[
            run.clone(),
            cell.cell.clone(),
            text_field(&cell.filesystem),
            text_field(&cell.suite),
            text_field(&cell.workload),
            text_field(&cell.scheduler),
            text_field(&cell.settings),
            if cell.aa_duplicate { "yes" } else { "no" }.to_owned(),
            repetition.to_string(),
            attempt.to_string(),
            outcome.to_owned(),
            text_field(&phase),
            metric.name().to_owned(),
            metric.spec().unit.name().to_owned(),
            worker.map_or(String::new(), |worker| worker.to_string()),
            value.to_string(),
        ]));
    }
    text
}

/// Line of a CSV file. Fields are quoted if necessary.
pub(crate) fn line(fields: &[String]) -> String {
    let quoted = |field: &String| match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.clone(),
    };
    fields.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Text field that is not a formula.
fn text_field(field: &str) -> String {
    if field.starts_with(FORMULA) { format!("'{field}") } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::fixture;

    #[test]
    fn every_sample_is_a_row_of_equally_many_fields() {
        let record = fixture::record();
        let text = csv(&record);
        let samples: usize = record.trials.iter().map(|trial| trial.samples.len()).sum();
        assert_eq!(text.lines().count(), samples + 1);
        let fields = HEADER.trim_end().split(',').count();
        for line in text.lines().take(50) {
            assert_eq!(line.split(',').count(), fields, "{line}");
        }
    }

    #[test]
    fn commas_and_quotes_are_kept() {
        assert_eq!(line(&["a,\"b\"".into()]), "\"a,\"\"b\"\"\"\r\n");
    }

    #[test]
    fn a_text_cannot_become_a_formula_and_numbers_are_unchanged() {
        assert_eq!(text_field("=cmd|'/c calc'!A1"), "'=cmd|'/c calc'!A1");
        assert_eq!(text_field("@SUM(1,1)"), "'@SUM(1,1)");
        assert_eq!(text_field("ext4-64k"), "ext4-64k");
        let mut record = fixture::record();
        record.cells[0].cell.filesystem.name = "\t=HYPERLINK(\"http://example.org\")".into();
        record.cells[0].label = "+1".into();
        record.trials[0].samples[0].value = -1.5;
        let text = csv(&record);
        let line = text.lines().nth(1).unwrap();
        assert!(
            line.contains(",\"'=HYPERLINK(\"\"http://example.org\"\")\",iozone,'+1,"),
            "{line}"
        );
        assert!(line.ends_with(",,-1.5"), "{line}");
    }

    /// Fields of a line (RFC 4180).
    fn fields(line: &str) -> Vec<String> {
        let (mut fields, mut within, mut letters) =
            (vec![String::new()], false, line.chars().peekable());
        while let Some(letter) = letters.next() {
            let last = fields.last_mut().unwrap();
            match letter {
                '"' if within && letters.peek() == Some(&'"') => last.extend(letters.next()),
                '"' => within = !within,
                ',' if !within => fields.push(String::new()),
                other => last.push(other),
            }
        }
        fields
    }

    static SMALL: LazyLock<RunRecord> = LazyLock::new(|| {
        let mut record = fixture::record();
        record.trials.truncate(1);
        record
    });

    proptest! {
        #[test]
        fn any_name_reads_back_and_none_is_a_formula(name in "[=+@'\t\r-]?\\PC{0,9}|.{0,12}") {
            let mut record = SMALL.clone();
            record.cells[0].cell.filesystem.name.clone_from(&name);
            let text = csv(&record);
            let read = fields(text.split("\r\n").nth(1).unwrap());
            prop_assert_eq!(read.len(), fields(HEADER).len());
            let shown = crate::units::one_line(&name);
            prop_assert_eq!(read[2].strip_prefix('\'').unwrap_or(&read[2]),
                shown.strip_prefix('\'').unwrap_or(&shown));
            prop_assert!(!read[2].starts_with(FORMULA), "{}", read[2]);
        }
    }
}

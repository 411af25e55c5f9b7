//! Sanitizes the texts of a run for display.
//!
//! A run file is untrusted, and its texts come from plans, file and device names, kernel messages,
//! and output of programs. Each text becomes one line without terminal control sequences and
//! without changes of text direction ([`one_line`]); the text of the plan keeps its lines. Numbers,
//! IDs, and values without such text are unchanged. Each format escapes its own markup.

use model::{
    Cell, Environment, RunRecord, Value as Parameter,
    record::{CellState, Outcome, RunInfo, TrialRecord},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::units::{is_command, one_line};

/// Sanitizes every text of a run in place.
pub fn plain(record: &mut RunRecord) {
    info(&mut record.info);
    environment(&mut record.environment);
    record.warnings.iter_mut().for_each(whole);
    for cell in &mut record.cells {
        let job = job_text(&mut cell.cell);
        whole(&mut cell.cell);
        if let Some(job) = job {
            cell.cell.workload.parameters.insert(JOB_TEXT.into(), Parameter::Text(job));
        }
        text(&mut cell.label);
        match &mut cell.state {
            CellState::Open => {}
            CellState::Done { reason }
            | CellState::Skipped { reason }
            | CellState::Failed { reason } => text(reason),
        }
        for phase in &mut cell.phases {
            text(&mut phase.name);
            text(&mut phase.group);
        }
    }
    record.trials.iter_mut().for_each(trial);
}

fn info(info: &mut RunInfo) {
    for field in
        [&mut info.id, &mut info.title, &mut info.plan_name, &mut info.storage, &mut info.program]
    {
        text(field);
    }
    for (key, value) in &mut info.overrides {
        text(key);
        text(value);
    }
    if info.plan_text.contains(|c| is_command(c) && c != '\n') {
        info.plan_text = lines(&info.plan_text);
    }
}

/// Text whose line breaks remain.
fn lines(text: &str) -> String {
    let line = |line: &str| line.replace(is_command, " ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Parameter of suite `fio` whose lines have a meaning.
const JOB_TEXT: &str = "text";

/// Removes the text of a job of fio from a cell, and returns it with its line breaks.
fn job_text(cell: &mut Cell) -> Option<String> {
    if cell.workload.suite != "fio" {
        return None;
    }
    let job = cell.workload.parameters.remove(JOB_TEXT)?;
    Some(lines(&job.to_string()))
}

fn environment(environment: &mut Environment) {
    if environment.0.iter().any(|(name, value)| [name, value].iter().any(|text| unfit(text))) {
        let facts = std::mem::take(&mut environment.0);
        let fit = |(name, value): (String, String)| (one_line(&name), one_line(&value));
        environment.0 = facts.into_iter().map(fit).collect();
    }
}

fn trial(trial: &mut TrialRecord) {
    match &mut trial.outcome {
        Outcome::Measured => {}
        Outcome::Failed { reason } | Outcome::Invalid { reason } => text(reason),
    }
    trial.samples.iter_mut().for_each(|sample| text(&mut sample.phase));
    trial.histograms.iter_mut().for_each(|times| text(&mut times.phase));
    trial.series.iter_mut().for_each(|(phase, _)| text(phase));
    for (phase, activity) in &mut trial.activity {
        text(phase);
        whole(activity);
    }
    for (phase, warning) in &mut trial.warnings {
        phase.iter_mut().for_each(text);
        whole(warning);
    }
    for action in &mut trial.actions {
        text(&mut action.description);
        text(&mut action.error);
    }
    environment(&mut trial.environment);
}

fn unfit(text: &str) -> bool {
    text.contains(is_command)
}

fn text(text: &mut String) {
    if unfit(text) {
        *text = one_line(text);
    }
}

/// Sanitizes all texts in a value through its JSON form. A value that cannot be written as JSON or
/// read back is unchanged.
fn whole<T: Serialize + DeserializeOwned>(value: &mut T) {
    let Ok(stored) = serde_json::to_string(value) else { return };
    // JSON writes control characters below U+0020 as escapes.
    if !stored.contains('\\') && !unfit(&stored) {
        return;
    }
    let read = serde_json::from_str(&stored).map(fit).and_then(serde_json::from_value);
    if let Ok(read) = read {
        *value = read;
    }
}

fn fit(value: Value) -> Value {
    match value {
        Value::String(text) if unfit(&text) => Value::String(one_line(&text)),
        Value::Array(values) => values.into_iter().map(fit).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (one_line(&key), fit(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use model::Warning;

    use super::*;
    use crate::fixture;

    #[test]
    fn a_run_of_plain_texts_stays_as_it_is() {
        let (before, mut record) = (fixture::record(), fixture::record());
        plain(&mut record);
        assert_eq!(
            crate::json(&crate::View::new(&record)),
            crate::json(&crate::View::new(&before))
        );
        assert_eq!(crate::csv(&record), crate::csv(&before));
    }

    #[test]
    fn no_text_is_a_command() {
        const BAD: &str = "a\x1b[31m\0b\u{202e}c\r\nd\u{2028}e";
        let mut record = fixture::record();
        record.info.title = BAD.into();
        record.info.plan_text = format!("title = \"{BAD}\"\nrepetitions = 1\n");
        record.environment.set(BAD, BAD);
        record.warnings.push(Warning::SharedStorage { storage: BAD.into(), directory: false });
        record.cells[0].cell.filesystem.mkfs = vec![BAD.into()];
        record.trials[0].outcome = Outcome::Failed { reason: BAD.into() };
        plain(&mut record);
        let shown = "a [31m b c d e";
        assert_eq!(record.info.title, shown);
        assert!(
            record.info.plan_text.ends_with("\nrepetitions = 1"),
            "{:?}",
            record.info.plan_text
        );
        assert!(!record.info.plan_text.contains(|c| is_command(c) && c != '\n'));
        assert_eq!(record.environment.get(shown), Some(shown));
        assert_eq!(
            record.warnings.last(),
            Some(&Warning::SharedStorage { storage: shown.into(), directory: false })
        );
        assert_eq!(record.cells[0].cell.filesystem.mkfs, [shown]);
        assert_eq!(record.trials[0].outcome, Outcome::Failed { reason: shown.into() });
    }
}

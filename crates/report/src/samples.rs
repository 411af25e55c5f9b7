//! Samples as rows, for CSV, Parquet, and the sample sheet of a workbook.
//!
//! There is one row per sample, in the order of measurement, with everything that identifies the
//! sample. Texts are one line without control characters; each format adds its own escapes.

pub(crate) mod csv;

use model::{
    Bytes, Metric, RunRecord, Sample, Value, Warning, WorkloadParameters,
    record::{CellRecord, Outcome, TrialRecord},
};

use crate::units::one_line;

/// Program whose results were imported; `None` if fslab measured the run.
pub(crate) fn imported(record: &RunRecord) -> Option<&str> {
    record.warnings.iter().find_map(|warning| {
        if let Warning::Imported { program } = warning { Some(program.as_str()) } else { None }
    })
}

/// Measured trials of a cell, in the order of measurement.
pub(crate) fn measured(record: &RunRecord, cell: usize) -> impl Iterator<Item = &TrialRecord> {
    let own = move |trial: &&TrialRecord| trial.cell == cell && trial.outcome == Outcome::Measured;
    record.trials.iter().filter(own)
}

/// Value of a metric in a phase or step of a trial, for all workers together.
pub(crate) fn value(trial: &TrialRecord, phase: &str, metric: Metric) -> Option<f64> {
    let own = |sample: &&Sample| {
        sample.phase == phase && sample.metric == metric && sample.worker.is_none()
    };
    trial.samples.iter().find(own).map(|sample| sample.value)
}

/// Integer parameter of a workload.
pub(crate) fn count(point: &WorkloadParameters, name: &str) -> Option<u64> {
    match point.parameters.get(name) {
        Some(Value::Count(count)) => Some(*count),
        _ => None,
    }
}

/// Size parameter of a workload.
pub(crate) fn size(point: &WorkloadParameters, name: &str) -> Option<Bytes> {
    point.parameters.get(name).and_then(Value::as_size)
}

/// True if a boolean parameter of a workload is set.
pub(crate) fn flag(point: &WorkloadParameters, name: &str) -> bool {
    point.parameters.get(name) == Some(&Value::Flag(true))
}

/// Texts of a cell in its rows.
pub(crate) struct CellWords {
    /// Cell ID, which is the same for equal cells of all runs and hosts.
    pub(crate) cell: String,
    pub(crate) filesystem: String,
    pub(crate) suite: String,
    /// Suite, and the parameters that the plan varies.
    pub(crate) workload: String,
    /// All parameters as one JSON object: sizes in bytes, times in nanoseconds, fractions and
    /// counts as numbers.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "a column of Parquet alone"))]
    pub(crate) parameters: String,
    /// Empty if the plan sets none.
    pub(crate) scheduler: String,
    /// System settings of the cell as `name=value`, separated by spaces.
    pub(crate) settings: String,
    /// True for an A/A duplicate, which only the A/A control uses.
    pub(crate) aa_duplicate: bool,
}

/// One sample, in the base unit of its metric.
pub(crate) struct SampleRow<'a> {
    pub(crate) cell: &'a CellWords,
    pub(crate) repetition: u32,
    /// Invalid trials of the same repetition before this one.
    pub(crate) attempt: u32,
    /// `measured`, `failed`, `invalid`, or `imported`.
    pub(crate) outcome: &'static str,
    pub(crate) phase: String,
    pub(crate) metric: Metric,
    /// `None` for all workers together.
    pub(crate) worker: Option<u32>,
    pub(crate) value: f64,
}

/// Texts of all cells, in the order of the record.
pub(crate) fn cells(record: &RunRecord) -> Vec<CellWords> {
    record.cells.iter().map(words).collect()
}

fn words(record: &CellRecord) -> CellWords {
    let cell = &record.cell;
    let settings = cell.settings.iter().map(|(factor, value)| format!("{factor}={value}"));
    let options = cell.options.iter().map(|(option, value)| format!("{option}={value}"));
    let settings: Vec<String> = settings.chain(options).collect();
    let parameters = cell.workload.parameters.iter();
    let parameters: serde_json::Map<String, serde_json::Value> =
        parameters.map(|(name, value)| (one_line(name), plain(value))).collect();
    CellWords {
        cell: record.id.to_string(),
        filesystem: one_line(&cell.filesystem.name),
        suite: one_line(&cell.workload.suite),
        workload: one_line(&record.label),
        parameters: serde_json::Value::Object(parameters).to_string(),
        scheduler: one_line(cell.scheduler.as_deref().unwrap_or("")),
        settings: one_line(&settings.join(" ")),
        aa_duplicate: cell.aa_duplicate,
    }
}

/// Parameter value as JSON, in base units.
fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Size(bytes) => bytes.0.into(),
        Value::Count(count) => (*count).into(),
        Value::Time(time) => time.0.into(),
        Value::Fraction(number) | Value::Number(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::Text(text) | Value::Word(text) => one_line(text).into(),
        Value::Words(words) => words.iter().map(|word| one_line(word)).collect(),
    }
}

/// All samples of a run. `cells` is the result of [`cells`].
pub(crate) fn rows<'a>(
    record: &'a RunRecord,
    cells: &'a [CellWords],
) -> impl Iterator<Item = SampleRow<'a>> {
    let imported = imported(record).is_some();
    record.trials.iter().flat_map(move |trial| {
        let outcome = outcome(trial, imported);
        let cell = cells.get(trial.cell);
        let row = move |sample: &'a Sample| {
            Some(SampleRow {
                cell: cell?,
                repetition: trial.repetition,
                attempt: trial.attempt,
                outcome,
                phase: one_line(&sample.phase),
                metric: sample.metric,
                worker: sample.worker,
                value: sample.value,
            })
        };
        trial.samples.iter().filter_map(row)
    })
}

fn outcome(trial: &TrialRecord, imported: bool) -> &'static str {
    match trial.outcome {
        // Measured by another program, as its records state.
        Outcome::Measured if imported => "imported",
        Outcome::Measured => "measured",
        Outcome::Failed { .. } => "failed",
        Outcome::Invalid { .. } => "invalid",
    }
}

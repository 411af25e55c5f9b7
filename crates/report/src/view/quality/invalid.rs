//! Tables of invalid trials and of results with and without outliers and invalid trials.

use analysis::{
    Summary,
    outliers::{self, Label},
};
use model::{
    RunRecord, Warning,
    record::{Outcome, TrialRecord},
};

use crate::{
    samples::value,
    units::{grouped, one_line},
    view::{
        facts::Filesystem,
        points::{Entry, Suite, Test, WorkPoint},
        sample_index::SampleIndex,
        tables::{Body, Column, Row, Table, TableCell, ValueCell, directions, scale_of},
    },
};

/// Maximum number of reasons listed per cell.
const REASONS: usize = 3;

/// Invalid trials by cell and reason; `None` if there are none.
pub(super) fn invalid(record: &RunRecord, sample_index: &SampleIndex) -> Option<Table> {
    let mut rows = Vec::new();
    for (index, cell) in record.cells.iter().enumerate() {
        let reasons = sample_index.invalid(index).filter_map(reason).map(one_line);
        let reasons = grouped(reasons.map(|reason| (reason, 1_u32)));
        let reasons = reasons.into_iter().map(|(reason, each)| (reason, each.into_iter().sum()));
        let reasons: Vec<(String, u32)> = reasons.collect();
        if reasons.is_empty() {
            continue;
        }
        let count: u32 = reasons.iter().map(|(_, times)| times).sum();
        let all = sample_index.invalid(index).count() + sample_index.measured(index).count();
        let mut lines: Vec<String> = reasons
            .iter()
            .take(REASONS)
            .map(|(reason, times)| format!("{times} × {reason}"))
            .collect();
        if reasons.len() > REASONS {
            lines.push(format!("{} other reasons", reasons.len() - REASONS));
        }
        let aa_duplicate = if cell.cell.aa_duplicate { " (A/A duplicate)" } else { "" };
        // These trials were disturbed as well, but counted because the limit of reruns was reached.
        let counted = |trial: &&TrialRecord| {
            trial.warnings.iter().any(|(_, own)| matches!(own, Warning::ManyInvalidTrials { .. }))
        };
        let counted = match sample_index.measured(index).filter(counted).count() {
            0 => String::new(),
            counted => format!("; {counted} more were counted"),
        };
        let invalid = format!("{count} of {all} rerun{counted}");
        let cells = [invalid, lines.join("; ")].map(TableCell::Text);
        rows.push(Row::of(
            format!("{}{aa_duplicate} · {}", cell.cell.filesystem.name, one_line(&cell.label)),
            None,
            Body::Cells(cells.to_vec()),
        ));
    }
    (!rows.is_empty()).then(|| Table {
        id: "quality-invalid".into(),
        title: "Invalid trials".into(),
        caption: vec![
            "Trials excluded because of a predefined disturbance, regardless of their result, and \
             rerun. If too many trials of a cell are invalid, further ones are counted \
             (many-invalid-trials)"
                .into(),
        ],
        corner: "cell",
        columns: vec![Column::new("invalid", ""), Column::new("reason", "")],
        rows,
    })
}

fn reason(trial: &TrialRecord) -> Option<&str> {
    match &trial.outcome {
        Outcome::Invalid { reason } => Some(reason),
        Outcome::Measured | Outcome::Failed { .. } => None,
    }
}

/// Results with and without outliers and invalid trials; `None` if the run has neither.
pub(super) fn sensitivity(
    suites: &[Suite],
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
) -> Option<Table> {
    let points = suites.iter().flat_map(|suite| &suite.points);
    let tests = points.flat_map(|point| point.tests.iter().map(move |test| (point, test)));
    let mut metrics = Vec::new();
    let mut rows = Vec::new();
    for (point, test) in tests {
        for entry in &test.entries {
            if let Some(row) = with_and_without(point, test, entry, filesystems, sample_index) {
                rows.push(row);
                metrics.push(test.metric);
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut titles = vec!["reported", "without outliers", "with invalid trials"];
    // Columns without any value are removed.
    for at in (1..titles.len()).rev() {
        let value = |row: &Row| match &row.body {
            Body::Cells(cells) => matches!(cells[at], TableCell::Value(_)),
            Body::Missing(_) => false,
        };
        if !rows.iter().any(value) {
            titles.remove(at);
            for row in &mut rows {
                if let Body::Cells(cells) = &mut row.body {
                    cells.remove(at);
                }
            }
        }
    }
    let mut table = Table {
        id: "quality-sensitivity".into(),
        title: "Sensitivity to outliers and invalid trials".into(),
        caption: vec![
            crate::units::capital(&directions(metrics.into_iter())),
            "outliers are more than 10 robust standard deviations from the median; the reported \
             result includes them"
                .into(),
        ],
        corner: "result",
        columns: titles.into_iter().map(|title| Column::new(title, "")).collect(),
        rows,
    };
    table.state_n();
    Some(table)
}

fn with_and_without(
    point: &WorkPoint,
    test: &Test,
    entry: &Entry,
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
) -> Option<Row> {
    let reported = entry.summary.as_ref()?;
    let lines = outliers::label(&entry.values, None);
    let kept = entry.values.iter().zip(&lines).filter(|(_, label)| **label != Label::Severe);
    let kept: Vec<f64> = kept.map(|(value, _)| *value).collect();
    let severe = entry.severe > 0;
    let invalid = sample_index.invalid(entry.cell);
    let invalid: Vec<f64> =
        invalid.filter_map(|trial| value(trial, &test.name, test.metric)).collect();
    if !severe && invalid.is_empty() {
        return None;
    }
    let with: Vec<f64> = entry.values.iter().chain(&invalid).copied().collect();
    let cell = |values: &[f64]| match Summary::new(values) {
        Ok(summary) => {
            let scale = scale_of(test.metric.spec().unit, std::iter::once(reported));
            TableCell::Value(ValueCell::plain(&summary, scale))
        }
        Err(_) => TableCell::Text("none".into()),
    };
    let none = || TableCell::Text("none".into());
    let cells = vec![
        cell(&entry.values),
        if severe { cell(&kept) } else { none() },
        if invalid.is_empty() { none() } else { cell(&with) },
    ];
    let scale = scale_of(test.metric.spec().unit, std::iter::once(reported));
    Some(Row {
        unit: scale.name,
        ..Row::of(
            format!("{} · {}, {}", filesystems[entry.filesystem].name, test.name, point.label),
            Some(entry.filesystem),
            Body::Cells(cells),
        )
    })
}

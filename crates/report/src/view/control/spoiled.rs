//! Repeats that are invalid or lie far from the others: how many and why, and the numbers with and
//! without them.

use analysis::{
    Summary,
    outliers::{self, Label},
};
use model::{
    RunRecord, Warning,
    record::{Outcome, TrialRecord},
};

use crate::{
    units::one_line,
    view::{
        facts::Filesystem,
        points::{Entry, Suite, Test, WorkPoint},
        pool::Pool,
        tables::{Body, Column, Row, Table, TableCell, ValueCell, directions, scale_of},
    },
};

/// Reasons that are told of one cell.
const REASONS: usize = 3;

/// Invalid repeats by cell and reason; `None` where there are none.
pub(super) fn invalid(record: &RunRecord, pool: &Pool) -> Option<Table> {
    let mut rows = Vec::new();
    for (index, cell) in record.cells.iter().enumerate() {
        let mut reasons: Vec<(String, u32)> = Vec::new();
        for reason in pool.invalid(index).filter_map(reason).map(one_line) {
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, times)) => *times += 1,
                None => reasons.push((reason, 1)),
            }
        }
        if reasons.is_empty() {
            continue;
        }
        let count: u32 = reasons.iter().map(|(_, times)| times).sum();
        let all = pool.invalid(index).count() + pool.measured(index).count();
        let mut told: Vec<String> = reasons
            .iter()
            .take(REASONS)
            .map(|(reason, times)| format!("{times} × {reason}"))
            .collect();
        if reasons.len() > REASONS {
            told.push(format!("{} other reasons", reasons.len() - REASONS));
        }
        let twin = if cell.cell.twin { " (twin)" } else { "" };
        // Spoiled as well, but beyond what is made again.
        let counted = |trial: &&TrialRecord| {
            trial.warnings.iter().any(|(_, own)| matches!(own, Warning::Unstable { .. }))
        };
        let counted = match pool.measured(index).filter(counted).count() {
            0 => String::new(),
            counted => format!("; {counted} more of them were counted"),
        };
        let invalid = format!("{count} of {all} made again{counted}");
        let cells = [invalid, told.join("; ")].map(TableCell::Text);
        rows.push(Row::of(
            format!("{}{twin} · {}", cell.cell.filesystem.name, one_line(&cell.label)),
            None,
            Body::Cells(cells.to_vec()),
        ));
    }
    (!rows.is_empty()).then(|| Table {
        id: "control-invalid".into(),
        title: "Invalid repeats".into(),
        caption: vec![
            "Repeats during which the machine did what had been declared before to spoil a \
             measurement; they are kept, made again, and count in no number. Where that would \
             not end, since the machine spoils too many, further ones are counted, with W-MANYINV"
                .into(),
        ],
        corner: "cell",
        columns: vec![Column::new("invalid", ""), Column::new("why", "")],
        rows,
    })
}

fn reason(trial: &TrialRecord) -> Option<&str> {
    match &trial.outcome {
        Outcome::Invalid { reason } => Some(reason),
        Outcome::Measured | Outcome::Failed { .. } => None,
    }
}

/// Numbers with and without outliers and invalid repeats, where there are any; `None` otherwise.
pub(super) fn both(suites: &[Suite], filesystems: &[Filesystem], pool: &Pool) -> Option<Table> {
    let points = suites.iter().flat_map(|suite| &suite.points);
    let tests = points.flat_map(|point| point.tests.iter().map(move |test| (point, test)));
    let mut metrics = Vec::new();
    let mut rows = Vec::new();
    for (point, test) in tests {
        for entry in &test.entries {
            if let Some(row) = with_and_without(point, test, entry, filesystems, pool) {
                rows.push(row);
                metrics.push(test.metric);
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut titles = vec!["as reported", "without outliers", "with invalid repeats"];
    // A column that says "none" throughout says nothing.
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
        id: "control-both".into(),
        title: "With and without doubtful repeats".into(),
        caption: vec![
            crate::units::capital(&directions(metrics.into_iter())),
            "outliers lie more than 10 robust standard deviations from the median, and count in \
             what is reported"
                .into(),
        ],
        corner: "number",
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
    pool: &Pool,
) -> Option<Row> {
    let reported = entry.summary.as_ref()?;
    let labels = outliers::label(&entry.values, None);
    let kept = entry.values.iter().zip(&labels).filter(|(_, label)| **label != Label::Severe);
    let kept: Vec<f64> = kept.map(|(value, _)| *value).collect();
    let severe = entry.severe > 0;
    let spoiled = pool.invalid(entry.cell).flat_map(|trial| &trial.samples).filter(|sample| {
        sample.worker.is_none() && sample.phase == test.name && sample.metric == test.metric
    });
    let spoiled: Vec<f64> = spoiled.map(|sample| sample.value).collect();
    if !severe && spoiled.is_empty() {
        return None;
    }
    let with: Vec<f64> = entry.values.iter().chain(&spoiled).copied().collect();
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
        if spoiled.is_empty() { none() } else { cell(&with) },
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

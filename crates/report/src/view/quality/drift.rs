//! Drift and carry-over of a run, as a sentence and a table.

use analysis::{
    NotEstimable,
    drift::{self, CellSeries, Drift, PositionedValue, SIGNIFICANCE},
};
use model::{
    RunRecord,
    phase::Role,
    record::{CellRecord, Outcome},
};

use super::direction;
use crate::{
    samples::value,
    units::{fixed, percent, percents, probability},
    view::{
        equivalence_margin::EquivalenceMargin,
        facts::Filesystem,
        sample_index::SampleIndex,
        tables::{Body, Column, Row, Table, TableCell},
    },
};

/// ID of the table.
pub(crate) const DRIFT: &str = "quality-drift";

/// Tests for drift over all cells, A/A duplicates included.
///
/// # Errors
/// The reason why drift cannot be estimated; `None` if fewer than two cells have two repetitions.
pub(super) fn of_run(
    record: &RunRecord,
    filesystems: &[Filesystem],
    sample_index: &SampleIndex,
) -> Result<Drift, Option<NotEstimable>> {
    let cells = cells(record, filesystems);
    let twice = |cell: usize| sample_index.measured(cell).nth(1).is_some();
    // With a single cell, the effects of rounds and repetitions cannot be separated.
    if (0..record.cells.len()).filter(|cell| twice(*cell)).count() < 2 {
        return Err(None);
    }
    drift::of_run(&cells, filesystems.len(), record.info.seed).map_err(Some)
}

/// Values of each cell and measured phase, with round and position in the order of trials, and the
/// filesystem of the preceding trial.
fn cells(record: &RunRecord, filesystems: &[Filesystem]) -> Vec<CellSeries> {
    let group = |cell: usize| {
        let name = &record.cells.get(cell)?.cell.filesystem.name;
        filesystems.iter().position(|filesystem| filesystem.name == *name)
    };
    let nothing = |cell: &CellRecord| vec![None; cell.phases.len()];
    let mut found: Vec<Vec<Option<CellSeries>>> = record.cells.iter().map(nothing).collect();
    let mut before = None;
    for (order, trial) in record.trials.iter().enumerate() {
        let after = std::mem::replace(&mut before, group(trial.cell));
        let Some(cell) = record.cells.get(trial.cell) else { continue };
        if trial.outcome != Outcome::Measured {
            continue;
        }
        for (at, phase) in cell.phases.iter().enumerate() {
            let Some(better) = direction(phase.primary).filter(|_| phase.role == Role::Measure)
            else {
                continue;
            };
            let Some(value) = value(trial, &phase.name, phase.primary) else { continue };
            let of_cell = &mut found[trial.cell][at];
            let of_cell =
                of_cell.get_or_insert_with(|| CellSeries { better, repetitions: Vec::new() });
            of_cell.repetitions.push(PositionedValue {
                block: trial.repetition,
                order,
                after,
                value,
            });
        }
    }
    found.into_iter().flatten().flatten().collect()
}

/// Result of the drift test as a sentence.
pub(super) fn line(found: &Drift, fires: bool, margin: EquivalenceMargin) -> String {
    let size = signed(found.size.0, found);
    let (rounds, p, symbol) = (found.blocks, p_value(found.p), margin.symbol());
    let trend = !found.interval.is_some_and(|ends| ends.low <= 0.0 && ends.high >= 0.0);
    match (fires, found.p < SIGNIFICANCE) {
        (_, true) if !trend => format!("Rounds differ ({p}) without a significant trend ({size})."),
        (true, _) => {
            format!("The run drifted by {size} over {rounds} rounds ({p}), more than {symbol}/2.")
        }
        (false, true) => format!("Rounds differ ({p}) by {size}, less than {symbol}/2."),
        (false, false) => format!("No significant drift over {rounds} rounds: {size} ({p})."),
    }
}

/// `+1.2 % [0.8 to 1.6 %]`.
fn signed(size: f64, found: &Drift) -> String {
    let sign = if size > 0.0 { "+" } else { "" };
    format!("{sign}{}", percents(size, found.interval))
}

/// `0.003`, or `< 0.001`.
fn shown(p: f64) -> String {
    probability(p).trim_start_matches("= ").to_owned()
}

fn p_value(p: f64) -> String {
    format!("p {}", probability(p))
}

/// Effect, p-value, and result of each test.
pub(super) fn table(found: &Drift, filesystems: &[Filesystem], margin: EquivalenceMargin) -> Table {
    let row = |title: String, at, cells: [String; 3]| {
        Row::of(title, at, Body::Cells(cells.map(TableCell::Text).to_vec()))
    };
    let result = |significant: bool, text: &str| match significant {
        true => text.to_owned(),
        false => "not significant".into(),
    };
    let rounds = match found.is_detected(margin.ratio()) {
        true => "drift".to_owned(),
        false if found.p < SIGNIFICANCE => format!("less than {}/2", margin.symbol()),
        false => "not significant".into(),
    };
    let mut rows = vec![
        row(
            "first to last round".into(),
            None,
            [signed(found.size.0, found), shown(found.p), rounds],
        ),
        row(
            "trial order (Spearman)".into(),
            None,
            [
                format!("ρ = {}", fixed(found.order.rho, 2)),
                shown(found.order.p),
                result(found.order.p < SIGNIFICANCE, "significant"),
            ],
        ),
    ];
    rows.extend(found.carry_over.iter().map(|carry| {
        let sign = if carry.size.0 > 0.0 { "+" } else { "" };
        row(
            format!("after {}", filesystems[carry.group].name),
            Some(carry.group),
            [
                format!("{sign}{}", percent(carry.size.0)),
                shown(carry.p),
                result(carry.p < SIGNIFICANCE, "carry-over"),
            ],
        )
    }));
    Table {
        id: DRIFT.into(),
        title: "Drift and carry-over".into(),
        caption: vec![
            "Deviation from the median of the cell, over all cells; positive is better; 95 % \
             confidence interval where available"
                .into(),
            format!(
                "n = {} rounds; permutation test within cells, Holm-adjusted over the filesystems; \
                 significant: p < 0.01",
                found.blocks
            ),
        ],
        corner: "test",
        columns: ["effect", "p", "result"].map(|title| Column::new(title, "")).to_vec(),
        rows,
    }
}

#[cfg(test)]
mod tests {
    use analysis::{Interval, drift::Spearman};
    use model::{Profile, Ratio};

    use super::*;

    #[test]
    fn a_trend_is_reported_only_if_its_interval_excludes_zero() {
        let of = |low, high| {
            let found = Drift {
                blocks: 8,
                size: Ratio(-0.36),
                interval: Some(Interval { low, high, level: 0.95 }),
                p: 0.003,
                order: Spearman { rho: 0.0, p: 1.0 },
                carry_over: Vec::new(),
            };
            line(&found, true, EquivalenceMargin::of(Profile::Standard))
        };
        let open = of(-0.94, 1.88);
        assert!(open.starts_with("Rounds differ (p = 0.003) without a significant"), "{open}");
        let shown = of(-0.5, -0.2);
        assert!(shown.starts_with("The run drifted by -36"), "{shown}");
    }
}

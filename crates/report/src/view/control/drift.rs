//! Whether all cells of a run moved together, as a sentence and a small table.

use analysis::{
    Absent,
    drift::{self, Drift, FIRES, OfCell, Placed},
};
use model::{
    RunRecord,
    phase::Role,
    record::{CellRecord, Outcome},
};

use super::judged;
use crate::{
    units::{fixed, percent, percents},
    view::{
        facts::Filesystem,
        pool::Pool,
        tables::{Body, Column, Row, Table, TableCell},
        threshold::Threshold,
    },
};

/// Id of the table.
pub(crate) const DRIFT: &str = "control-drift";

/// Looks for drift over all cells, twins among them: a twin is measured as any other cell.
///
/// # Errors
/// Why there is no answer; `None` where fewer than two cells were measured twice.
pub(super) fn of_run(
    record: &RunRecord,
    filesystems: &[Filesystem],
    pool: &Pool,
) -> Result<Drift, Option<Absent>> {
    let cells = cells(record, filesystems);
    let twice = |cell: usize| pool.measured(cell).nth(1).is_some();
    // Of a single cell, what a block did cannot be told from what one repeat did.
    if (0..record.cells.len()).filter(|cell| twice(*cell)).count() < 2 {
        return Err(None);
    }
    drift::of_run(&cells, filesystems.len(), record.info.seed).map_err(Some)
}

/// The values of each cell and measured phase with their places in the run.
fn cells(record: &RunRecord, filesystems: &[Filesystem]) -> Vec<OfCell> {
    let group = |cell: usize| {
        let name = &record.cells.get(cell)?.cell.filesystem.name;
        filesystems.iter().position(|filesystem| filesystem.name == *name)
    };
    let nothing = |cell: &CellRecord| vec![None; cell.phases.len()];
    let mut found: Vec<Vec<Option<OfCell>>> = record.cells.iter().map(nothing).collect();
    let mut before = None;
    for (order, trial) in record.trials.iter().enumerate() {
        let after = std::mem::replace(&mut before, group(trial.cell));
        let Some(cell) = record.cells.get(trial.cell) else { continue };
        if trial.outcome != Outcome::Measured {
            continue;
        }
        for (at, phase) in cell.phases.iter().enumerate() {
            let Some(better) = judged(phase.primary).filter(|_| phase.role == Role::Measure) else {
                continue;
            };
            let mut samples = trial.samples.iter().filter(|sample| sample.worker.is_none());
            let own =
                samples.find(|sample| sample.phase == phase.name && sample.metric == phase.primary);
            let Some(value) = own.map(|sample| sample.value) else { continue };
            let of_cell = &mut found[trial.cell][at];
            let of_cell = of_cell.get_or_insert_with(|| OfCell { better, repeats: Vec::new() });
            of_cell.repeats.push(Placed { block: trial.repeat, order, after, value });
        }
    }
    found.into_iter().flatten().flatten().collect()
}

/// What was found, in a sentence.
pub(super) fn told(found: &Drift, fires: bool, threshold: Threshold) -> String {
    let size = signed(found.size.0, found);
    let blocks = found.blocks;
    let untold = found.interval.is_some_and(|ends| ends.low <= 0.0 && ends.high >= 0.0);
    match (fires, found.p < FIRES) {
        (_, true) if untold => format!(
            "The {blocks} blocks of the run differ (p = {}); no trend is shown: {size} from the \
             first to the last.",
            probability(found.p)
        ),
        (true, _) => format!(
            "The run drifted by {size} from the first of {blocks} blocks to the last (p = {}), \
             more than half of {}.",
            probability(found.p),
            threshold.symbol()
        ),
        (false, true) => format!(
            "The {blocks} blocks of the run differ (p = {}), by {size} from the first to the \
             last, which is less than half of {}.",
            probability(found.p),
            threshold.symbol()
        ),
        (false, false) => format!(
            "No drift is shown over {blocks} blocks: {size} from the first to the last (p = {}).",
            probability(found.p)
        ),
    }
}

/// `+1.2 % [0.8 to 1.6 %]`.
fn signed(size: f64, found: &Drift) -> String {
    let sign = if size > 0.0 { "+" } else { "" };
    format!("{sign}{}", percents(size, found.interval))
}

/// A p-value with what digits it deserves.
fn probability(p: f64) -> String {
    if p < 0.001 { "below 0.001".into() } else { fixed(p, if p < 0.1 { 3 } else { 2 }) }
}

/// Size, p-value, and answer of each question.
pub(super) fn table(found: &Drift, filesystems: &[Filesystem], threshold: Threshold) -> Table {
    let row = |title: String, at, [size, p, says]: [String; 3]| {
        Row::of(title, at, Body::Cells([size, p, says].map(TableCell::Text).to_vec()))
    };
    let says = |shown: bool, code: &str| if shown { code.to_owned() } else { "not shown".into() };
    let blocks = match found.fires(threshold.ratio()) {
        true => "W-DRIFT".to_owned(),
        false if found.p < FIRES => format!("less than {} / 2", threshold.symbol()),
        false => "not shown".into(),
    };
    let mut rows = vec![
        row(
            "first block to last".into(),
            None,
            [signed(found.size.0, found), probability(found.p), blocks],
        ),
        row(
            "with the order of trials".into(),
            None,
            [
                format!("ρ = {}", fixed(found.order.rho, 2)),
                probability(found.order.p),
                says(found.order.p < FIRES, "shown"),
            ],
        ),
    ];
    rows.extend(found.carry.iter().map(|carry| {
        let sign = if carry.size.0 > 0.0 { "+" } else { "" };
        row(
            format!("right after {}", filesystems[carry.group].name),
            Some(carry.group),
            [
                format!("{sign}{}", percent(carry.size.0)),
                probability(carry.p),
                says(carry.p < FIRES, "W-CARRY"),
            ],
        )
    }));
    Table {
        id: DRIFT.into(),
        title: "Drift and order".into(),
        caption: vec![
            "How far repeats lie from the medians of their cells, all cells together; above zero \
             is better; size with its 95 % interval where there is one"
                .into(),
            format!(
                "n = {} blocks; p against permutations within cells, after Holm’s correction over \
                 the filesystems; shown: p below 0.01",
                found.blocks
            ),
        ],
        corner: "what",
        columns: ["size", "p", "answer"].map(|title| Column::new(title, "")).to_vec(),
        rows,
    }
}

#[cfg(test)]
mod tests {
    use analysis::{Interval, drift::Spearman};
    use model::{Profile, Ratio};

    use super::*;

    #[test]
    fn no_trend_is_told_where_the_interval_of_its_size_holds_none() {
        let of = |low, high| {
            let found = Drift {
                blocks: 8,
                size: Ratio(-0.36),
                interval: Some(Interval { low, high, level: 0.95 }),
                p: 0.003,
                order: Spearman { rho: 0.0, p: 1.0 },
                carry: Vec::new(),
            };
            told(&found, true, Threshold::of(Profile::Standard))
        };
        let open = of(-0.94, 1.88);
        assert!(open.starts_with("The 8 blocks of the run differ (p = 0.003); no trend"), "{open}");
        let shown = of(-0.5, -0.2);
        assert!(shown.starts_with("The run drifted by -36"), "{shown}");
    }
}

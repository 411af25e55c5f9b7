//! Tables as data, independent of the output format.
//!
//! A table is built from summarized points. It has a caption and one unit per column or row. The
//! overview of a suite has tables of filesystems × tests per point and group, and of tests × values
//! per filesystem and swept parameter. If the primary metric of a point is the elapsed time, its
//! tables are tests × filesystems. Each test also has a ranking of filesystems.

mod overview;
mod ranked;
mod side_by_side;
mod tasks;

use analysis::Summary;
use model::{Metric, metric::Unit, phase::Cache};

pub(crate) use overview::{Overview, alike, overview, slices, value_cell};
pub(crate) use ranked::{pair_result, ranked};
pub(crate) use tasks::timed;

pub(crate) use crate::document::{Body, Column, Of, Row, Table, TableCell, ValueCell};
pub(crate) use crate::units::metric_label;
use crate::{
    units::{Scale, distinct, grouped},
    view::points::Test,
};

/// Quantities and directions of some metrics: `throughput, higher is better ↑`.
pub(crate) fn directions(metrics: impl Iterator<Item = Metric>) -> String {
    let each: Vec<String> = distinct(metrics)
        .into_iter()
        .map(|metric| format!("{}, {}", metric_label(metric), metric.spec().better.label()))
        .collect();
    each.join("; ")
}

/// Common display scale of summaries of one unit.
pub(crate) fn scale_of<'a>(unit: Unit, summaries: impl Iterator<Item = &'a Summary>) -> Scale {
    let medians: Vec<f64> = summaries.map(|summary| summary.median).collect();
    Scale::of(unit, medians.into_iter())
}

/// Cache state before tests, if recorded: `caches cold, but warm before reread`.
///
/// The most frequent state comes first, the others with their tests.
pub(crate) fn caches(tests: &[&Test]) -> Option<String> {
    let state = |cache: Cache| match cache {
        Cache::Cold => "cold",
        Cache::Warm => "warm",
        Cache::Unchanged => "unchanged between steps",
    };
    let named = tests.iter().filter_map(|test| Some((state(test.cache?), test.name.as_str())));
    let mut kinds = grouped(named);
    // Stable: equally frequent states keep their order.
    kinds.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let ((usual, _), others) = kinds.split_first()?;
    let others = others.iter();
    let others = others.map(|(state, names)| format!(", but {state} before {}", names.join(", ")));
    Some(format!("caches {usual}{}", others.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_labeled_as_guest_instructions() {
        let metrics = [
            Metric::InstructionsPerOp,
            Metric::AttributedInstructionsPerOp,
            Metric::StepInstructions,
            Metric::InstructionsP999,
            Metric::OpsRate,
        ];
        assert_eq!(
            metrics.map(metric_label),
            [
                "guest instructions per operation",
                "attributed guest instructions per operation",
                "step guest instructions",
                "guest instructions p99.9",
                "ops rate"
            ]
        );
    }
}

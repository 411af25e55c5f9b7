//! Charts of studies: totals by task, time per file set, and rates relative to a reference.

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts,
    units::{Scale, capital, fixed},
    view::{Capped, NORMALIZED, Normalized, Totals, metric_label},
};

/// Maximum number of totals in the title.
const NAMED: usize = 4;

/// Total time: one bar per filesystem, with a segment per task.
pub(super) fn totals(totals: &Totals) -> Figure {
    let measured = totals.rows.iter().filter(|row| !row.pieces.is_empty());
    let each: Vec<String> = measured.map(|row| format!("{} {} s", row.name, row.shown)).collect();
    let title = match each.len() {
        1..=NAMED => format!("{}: total of all tasks {}", capital(&totals.point), each.join(", ")),
        _ => format!("{}: total of all tasks by task", capital(&totals.point)),
    };
    let description = match each.is_empty() {
        true => "No filesystem completed all tasks.".to_owned(),
        false => format!("Totals: {}.", each.join(", ")),
    };
    let axis = "elapsed, s — lower is better ↓";
    let chart = charts::totals::totals(axis, &totals.rows, &totals.tasks);
    let caption = format!(
        "Bar: median of the sum of all tasks; thin line: 95 % confidence interval; segments: \
         median per task, scaled to the total, in this order: {}. {}.{}",
        totals.tasks.join(", "),
        capital(&totals.caption.join("; ")),
        qualified(&totals.codes)
    );
    Figure::new(Kind::Totals, &totals.id, chart, (title, &description), caption)
}

/// Time per file set: bars by operation and filesystem.
pub(super) fn capped(capped: &Capped) -> Figure {
    let title = format!("Time per file set: {}", capped.place);
    let operations = capped.panels.first().map_or(0, |panel| panel.groups.len());
    let description =
        format!("Seconds of {operations} operations, lower is better. The data are in the tables.");
    let axis = format!("elapsed, {} — lower is better ↓", Scale::SECONDS.name);
    let chart = charts::capped::capped(&axis, &capped.panels, capped.cut);
    let cut = match capped.cut {
        Some(cut) => format!(
            "Bars are clipped at {} s, twice the upper quartile of all medians; a clipped bar has \
             a broken end.",
            fixed(cut, if cut < 10.0 { 3 } else { 1 })
        ),
        None => "No bar is clipped.".to_owned(),
    };
    let line = match capped.intervals {
        true => "thin line: 95 % confidence interval",
        false => "too few repetitions for confidence intervals",
    };
    let caption = format!(
        "Bar: median of n = {} repetitions, also printed; {line}. {cut}{}{}",
        capped.repetitions,
        qualified(&capped.codes),
        absent(&capped.absent)
    );
    Figure::new(Kind::ClippedBars, &capped.id, chart, (title, &description), caption)
}

/// Rates relative to a reference configuration: one row per filesystem and scheduler.
pub(super) fn normalized(normalized: &Normalized) -> Figure {
    let (reference, metric) = (&normalized.reference, metric_label(normalized.metric));
    let title = format!("{}: × {reference}", capital(&normalized.what));
    let description =
        format!("{} relative to {reference}. The data are in the table.", capital(&metric));
    let axis = format!("{metric}, × that of {reference} — higher is better ↑ (logarithmic)");
    let chart = charts::normalized::normalized(&axis, &normalized.rows, normalized.margin);
    let caption = format!(
        "Marker and line: {NORMALIZED}; n = {} repetitions on each side. Reference: the first \
         filesystem of the plan with values, with the first scheduler. Shaded: within ±{}.{}{}",
        normalized.repetitions,
        normalized.delta,
        qualified(&normalized.codes),
        absent(&normalized.absent)
    );
    Figure::new(Kind::Normalized, &normalized.id, chart, (title, &description), caption)
}

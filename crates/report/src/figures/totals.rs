//! Chart of the total time by task.

use super::{Figure, Kind, qualified};
use crate::{charts::totals::TotalsChart, units::capital, view::Totals};

/// Maximum number of totals in the title.
const NAMED: usize = 4;

/// One bar per filesystem, with a segment per task.
pub(super) fn figure(totals: &Totals) -> Figure {
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
    let chart = TotalsChart {
        axis: "elapsed, s — lower is better ↓".into(),
        rows: &totals.rows,
        tasks: &totals.tasks,
    };
    let svg = chart.render().finish(&title, &description);
    Figure {
        id: totals.id.clone(),
        kind: Kind::Totals,
        wide: false,
        title,
        svg,
        caption: format!(
            "Bar: median of the sum of all tasks; thin line: 95 % confidence interval; segments: \
             median per task, scaled to the total, in this order: {}. {}.{}",
            totals.tasks.join(", "),
            capital(&totals.caption.join("; ")),
            qualified(&totals.codes)
        ),
    }
}

//! The totals of tasks.

use super::{Figure, Kind, qualified};
use crate::{charts::totals::TotalsChart, units::capital, view::Totals};

/// Totals that the title names.
const NAMED: usize = 4;

/// A bar for each filesystem, made of its tasks.
pub(super) fn figure(totals: &Totals) -> Figure {
    let measured = totals.rows.iter().filter(|row| !row.pieces.is_empty());
    let each: Vec<String> = measured.map(|row| format!("{} {} s", row.name, row.shown)).collect();
    let title = match each.len() {
        1..=NAMED => format!("{}: total of all tasks {}", capital(&totals.point), each.join(", ")),
        _ => format!("{}: total of all tasks, task by task", capital(&totals.point)),
    };
    let description = match each.is_empty() {
        true => "No filesystem has all tasks.".to_owned(),
        false => format!("Totals: {}.", each.join(", ")),
    };
    let chart = TotalsChart {
        id: format!("{}-chart", totals.id),
        title: title.clone(),
        description,
        axis: "elapsed, s — lower is better ↓".into(),
        totals,
    };
    Figure {
        id: totals.id.clone(),
        kind: Kind::Totals,
        title,
        svg: chart.render(),
        caption: format!(
            "Bar: median of the sum of all tasks, from zero; thin line below its end: the 95 % \
             interval of that median. Pieces: the median part of each task in the sum, stretched \
             together to it, in this order: {}. Shades only tell neighbors apart. {}.{}",
            totals.tasks.join(", "),
            capital(&totals.caption.join("; ")),
            qualified(&totals.codes)
        ),
    }
}

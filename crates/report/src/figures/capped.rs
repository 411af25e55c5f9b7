//! Chart of the time per file set.

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::capped::CappedChart,
    units::{Scale, fixed},
    view::Capped,
};

/// Bars by operation and filesystem.
pub(super) fn figure(capped: &Capped) -> Figure {
    let title = format!("Time per file set: {}", capped.place);
    let operations = capped.panels.first().map_or(0, |panel| panel.groups.len());
    let description =
        format!("Seconds of {operations} operations, lower is better. The data are in the tables.");
    let chart = CappedChart {
        axis: format!("elapsed, {} — lower is better ↓", Scale::SECONDS.name),
        panels: &capped.panels,
        cut: capped.cut,
    };
    let svg = chart.render().finish(&title, &description);
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
    Figure {
        id: capped.id.clone(),
        kind: Kind::ClippedBars,
        wide: false,
        title,
        svg,
        caption: format!(
            "Bar: median of n = {} repetitions, also printed; {line}. {cut}{}{}",
            capped.repetitions,
            qualified(&capped.codes),
            absent(&capped.absent)
        ),
    }
}

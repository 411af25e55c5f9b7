//! Chart of scaling with the number of clients.

use super::{Figure, Kind, absent, description, qualified};
use crate::{
    charts::scaling::ScalingChart,
    view::{Scaled, metric_label},
};

/// Values, and ratios to the first level.
pub(super) fn figure(scaled: &Scaled) -> Figure {
    let better = scaled.metric.spec().better.label();
    let quantity = metric_label(scaled.metric);
    let first = scaled.levels.first().map_or("", |level| level.label.as_str());
    let clients = scaled.clients.0;
    let description =
        description(&scaled.findings.findings, "No finding is supported by the data.");
    let chart = ScalingChart {
        y_axis: format!("{quantity}, {} — {better}", scaled.scale.name),
        ratio_axis: format!(
            "{quantity}, ratio to {clients}={first} of the same filesystem — {better}"
        ),
        x_axis: format!("{clients} (tested levels, logarithmic)"),
        levels: &scaled.levels,
        lines: &scaled.lines,
    };
    let svg = chart.render().finish(&scaled.title, &description);
    Figure {
        id: scaled.id.clone(),
        kind: Kind::Scaling,
        wide: false,
        title: scaled.title.clone(),
        svg,
        caption: format!(
            "Top: median of n = {} repetitions and 95 % confidence band; ring: smallest number of \
             {clients} with 95 % of the maximum; thin line: fitted scaling law, if no median \
             deviates by more than 10 %. Bottom: relative to {clients}={first}, 95 % confidence \
             interval by resampling rounds; dashed: linear scaling. Thick lines connect tested \
             levels only.{}{}",
            scaled.repetitions,
            qualified(&scaled.codes),
            absent(&scaled.absent)
        ),
    }
}

//! Chart of rates relative to a reference configuration.

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::normalized::NormalizedChart,
    units::capital,
    view::{NORMALIZED, Normalized, metric_label},
};

/// One row per filesystem and scheduler.
pub(super) fn figure(normalized: &Normalized) -> Figure {
    let reference = &normalized.reference;
    let title = format!("{}: × {reference}", capital(&normalized.what));
    let description = format!(
        "{} relative to {reference}. The data are in the table.",
        capital(&metric_label(normalized.metric))
    );
    let chart = NormalizedChart {
        axis: format!(
            "{}, × that of {reference} — higher is better ↑ (logarithmic)",
            metric_label(normalized.metric)
        ),
        rows: &normalized.rows,
        margin: normalized.margin,
    };
    let svg = chart.render().finish(&title, &description);
    Figure {
        id: normalized.id.clone(),
        kind: Kind::Normalized,
        wide: false,
        title,
        svg,
        caption: format!(
            "Marker and line: {NORMALIZED}; n = {} repetitions on each side. Reference: the first \
             filesystem of the plan with values, with the first scheduler. Shaded: within ±{}.{}{}",
            normalized.repetitions,
            normalized.delta,
            qualified(&normalized.codes),
            absent(&normalized.absent)
        ),
    }
}

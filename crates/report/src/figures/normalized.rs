//! Rates as multiples of one configuration.

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::normalized::NormalizedChart,
    units::capital,
    view::{NORMALIZED, Normalized, words},
};

/// A row for each filesystem and scheduler.
pub(super) fn figure(normalized: &Normalized) -> Figure {
    let reference = &normalized.reference;
    let title = format!("{}: × {reference}", capital(&normalized.what));
    let chart = NormalizedChart {
        id: format!("{}-chart", normalized.id),
        title: title.clone(),
        description: format!(
            "{} as multiples of that of {reference}; the data are in the table beside.",
            capital(&words(normalized.metric))
        ),
        axis: format!(
            "{}, × that of {reference} — higher is better ↑ (logarithmic)",
            words(normalized.metric)
        ),
        normalized,
    };
    Figure {
        id: normalized.id.clone(),
        kind: Kind::Normalized,
        title,
        svg: chart.render(),
        caption: format!(
            "Marker and line: {NORMALIZED}; n = {} repeats on each side. The reference is the \
             first filesystem of the plan with values, under the first scheduler, whoever is \
             best. Shaded: differences below {}.{}{}",
            normalized.repeats,
            normalized.delta,
            qualified(&normalized.codes),
            absent(&normalized.absent)
        ),
    }
}

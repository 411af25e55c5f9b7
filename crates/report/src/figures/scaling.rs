//! One test over the number of clients.

use super::{Figure, Kind, absent, description, qualified};
use crate::{
    charts::scaling::ScalingChart,
    view::{Scaled, words},
};

/// Values, and multiples of the first level.
pub(super) fn figure(scaled: &Scaled) -> Figure {
    let better = scaled.metric.spec().better.words();
    let quantity = words(scaled.metric);
    let first = scaled.levels.first().map_or("", |level| level.label.as_str());
    let clients = scaled.clients.0;
    let chart = ScalingChart {
        id: format!("{}-chart", scaled.id),
        description: description(&scaled.claims.claims, "No sentence is supported by the data."),
        title: scaled.title.clone(),
        y_axis: format!("{quantity}, {} — {better}", scaled.scale.name),
        ratio_axis: format!(
            "{quantity}, × that of {clients}={first} on the same filesystem — {better}"
        ),
        x_axis: format!("{clients} (tested levels, logarithmic)"),
        levels: &scaled.levels,
        lines: &scaled.lines,
    };
    Figure {
        id: scaled.id.clone(),
        kind: Kind::Scaling,
        title: scaled.title.clone(),
        svg: chart.render(),
        caption: format!(
            "Above: median over n = {} repeats with its 95 % interval as a band; ring: the \
             fewest {clients} that reach 95 % of the best; thin line: the law of scaling, \
             where one misses no median by more than 10 %. Below: the same as a multiple of \
             {clients}={first} of each filesystem, from medians, 95 % interval by resampling \
             blocks; broken line: each adds what the first does. Thick lines join tested \
             levels only.{}{}",
            scaled.repeats,
            qualified(&scaled.codes),
            absent(&scaled.absent)
        ),
    }
}

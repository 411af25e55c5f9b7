//! One test over a swept parameter.

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::sweep::SweepChart,
    units::capital,
    view::{Sweep, words},
};

/// All filesystems over the levels of a parameter.
pub(super) fn figure(sweep: &Sweep) -> Figure {
    let better = sweep.metric.spec().better.words();
    let title = format!("{} over {}", capital(&sweep.test), sweep.parameter);
    let chart = SweepChart {
        id: format!("{}-chart", sweep.id),
        description: format!(
            "{} of {} filesystems at {} tested levels; the data are in the tables by filesystem.",
            capital(&words(sweep.metric)),
            sweep.series.len(),
            sweep.levels.len()
        ),
        title: title.clone(),
        y_axis: format!("{}, {} — {better}", words(sweep.metric), sweep.scale.name),
        x_axis: format!("{} (tested levels, logarithmic)", sweep.parameter),
        levels: &sweep.levels,
        series: &sweep.series,
    };
    let withheld = sweep.withheld.iter().map(|reason| format!(" {}.", capital(reason)));
    Figure {
        id: sweep.id.clone(),
        kind: Kind::Sweep,
        title,
        svg: chart.render(),
        caption: format!(
            "Median over n = {} repeats with its 95 % interval as a band; lines join tested levels \
             only.{}{}{}",
            sweep.repeats,
            qualified(&sweep.codes),
            absent(&sweep.absent),
            withheld.collect::<String>()
        ),
    }
}

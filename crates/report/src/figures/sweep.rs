//! Chart of a metric over a swept parameter.

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::sweep::SweepChart,
    units::capital,
    view::{Sweep, metric_label},
};

/// All filesystems over the levels of a parameter.
pub(super) fn figure(sweep: &Sweep) -> Figure {
    let better = sweep.metric.spec().better.label();
    let title = format!("{} by {}", capital(&sweep.test), sweep.parameter);
    let description = format!(
        "{} of {} filesystems at {} tested levels. The data are in the tables by filesystem.",
        capital(&metric_label(sweep.metric)),
        sweep.series.len(),
        sweep.levels.len()
    );
    let chart = SweepChart {
        y_axis: format!("{}, {} — {better}", metric_label(sweep.metric), sweep.scale.name),
        x_axis: format!("{} (tested levels, logarithmic)", sweep.parameter),
        levels: &sweep.levels,
        series: &sweep.series,
    };
    let svg = chart.render().finish(&title, &description);
    let withheld = sweep.withheld.iter().map(|reason| format!(" {}.", capital(reason)));
    Figure {
        id: sweep.id.clone(),
        kind: Kind::ParameterSweep,
        wide: false,
        title,
        svg,
        caption: format!(
            "Median of n = {} repetitions with 95 % confidence band; lines connect tested levels \
             only.{}{}{}",
            sweep.repetitions,
            qualified(&sweep.codes),
            absent(&sweep.absent),
            withheld.collect::<String>()
        ),
    }
}

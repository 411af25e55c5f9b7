//! Data of charts, in display units, as the view computes them.

use analysis::Summary;

use crate::units::Scale;

/// A tested level: position on the logarithmic axis and label.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) number: f64,
    pub(crate) label: String,
}

/// One filesystem.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) filesystem: usize,
    pub(crate) name: String,
    /// One per level; `None` without a result.
    pub(crate) values: Vec<Option<SweepValue>>,
}

/// A median and its confidence interval, in the displayed unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweepValue {
    pub(crate) median: f64,
    pub(crate) ends: Option<(f64, f64)>,
}

impl SweepValue {
    /// Summary in a display scale.
    pub(crate) fn of(summary: &Summary, scale: Scale) -> Self {
        let ends = summary.interval.map(|ends| (scale.number(ends.low), scale.number(ends.high)));
        Self { median: scale.number(summary.median), ends }
    }
}

/// Medians and ends of intervals, which an axis must show.
pub(super) fn ends(values: &[Option<SweepValue>]) -> impl Iterator<Item = f64> {
    values.iter().flatten().flat_map(|SweepValue { median, ends }| {
        let (low, high) = ends.unwrap_or((*median, *median));
        [*median, low, high]
    })
}

/// Line of a filesystem in the chart, in the displayed unit.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) series: Series,
    /// Rate relative to the smallest level; `None` if not available.
    pub(crate) ratios: Vec<Option<SweepValue>>,
    /// Index of the saturation level; `None` if the shape is not known.
    pub(crate) knee: Option<usize>,
    /// Curve of the fitted law, by clients; empty if none fits.
    pub(crate) law: Vec<(f64, f64)>,
}

/// Medians at one combination of the conditions that are not on the horizontal axis.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// `cpu_speed=50%`; empty if there are no other conditions.
    pub(crate) title: String,
    /// One series per filesystem, by level.
    pub(crate) lines: Vec<Series>,
    /// The same relative to the first level.
    pub(crate) ratios: Vec<Series>,
}

/// Operations at one cache state.
#[derive(Clone, Debug)]
pub(crate) struct CappedPanel {
    /// `cache=cold`; empty if there is only one.
    pub(crate) title: String,
    pub(crate) groups: Vec<CappedGroup>,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct CappedGroup {
    pub(crate) name: String,
    pub(crate) bars: Vec<CappedBar>,
}

/// One filesystem, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct CappedBar {
    pub(crate) filesystem: usize,
    pub(crate) name: String,
    /// `None` without a value.
    pub(crate) median: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// Median as text, or the reason why there is none.
    pub(crate) shown: String,
}

/// One configuration relative to the reference.
#[derive(Clone, Debug)]
pub(crate) struct Multiple {
    pub(crate) filesystem: usize,
    pub(crate) name: String,
    /// Scheduler.
    pub(crate) level: String,
    /// Ratio, above 1 is better, and its confidence interval; `None` if not comparable.
    pub(crate) ratio: Option<(f64, Option<(f64, f64)>)>,
    /// Ratio as text, or the reason why there is none.
    pub(crate) shown: String,
}

/// One filesystem, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct TotalRow {
    pub(crate) filesystem: usize,
    pub(crate) name: String,
    /// One segment per task; the sum is `total`. Empty without a total.
    pub(crate) pieces: Vec<f64>,
    pub(crate) total: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// Total as text.
    pub(crate) shown: String,
    pub(crate) top: bool,
    /// Note, or the reason why there is no total.
    pub(crate) note: String,
}

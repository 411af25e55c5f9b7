//! Chart of the rate during a test.

use super::{Figure, Kind, absent_of, qualified, repetitions};
use crate::{
    charts::{
        data::{Series, SweepValue},
        lines,
    },
    units::{Scale, alone, fixed},
    view::{
        View,
        rate_series::{RateLine, RateSeries, moved},
    },
};

/// The change that the title names: the range of the SNIA Solid State Storage Performance Test
/// Specification (v2.0.1, 2.1.24).
const MOVED: f64 = 0.2;

/// Minimum number of intervals for a statement in the title.
const LEAST: usize = 10;

/// Fraction of the repetitions that have to agree with the title.
const AGREEING: f64 = 0.9;

/// Rate of a test over time; `None` if it was too short or not recorded.
pub(super) fn figure(view: &View, suite: usize, point: usize, test: usize) -> Option<Figure> {
    let details = view.details(suite, point, test);
    let own = &view.suites[suite].points[point].tests[test];
    let rate_series = details.rate_series.as_ref()?;
    let medians = rate_series.lines.iter().flat_map(|line| line.rates.iter().map(|rates| rates[0]));
    let scale = Scale::of(rate_series.unit, medians);
    let name = |filesystem: usize| view.filesystems[filesystem].name.clone();
    let codes = own.measured_codes();
    // Short tests and short series get no statement.
    let long = rate_series.lines.iter().all(|line| line.rates.len() >= LEAST);
    let found =
        (long && !codes.contains("short-phase")).then(|| finding(rate_series, &name)).flatten();
    let found = found.unwrap_or_else(|| "rate over time".into());
    let title = format!("{}: {found}", details.ranked.title);
    let bytes = rate_series.unit == model::metric::Unit::BytesPerSecond;
    let quantity = if bytes { "bytes moved" } else { "operations" };
    let series = |line: &RateLine| Series {
        filesystem: line.filesystem,
        name: name(line.filesystem),
        values: line
            .rates
            .iter()
            .map(|rates| rates.map(|rate| scale.number(rate)))
            .map(|[median, low, high]| Some(SweepValue { median, ends: Some((low, high)) }))
            .collect(),
    };
    let interval = rate_series.interval as f64;
    let y_axis = format!("{quantity}, {} — higher is better ↑", scale.name);
    let series: Vec<Series> = rate_series.lines.iter().map(series).collect();
    let chart = lines::rate(&y_axis, interval / 1e9, &series);
    let caption = format!(
        "Rate over the measured time, in intervals of {}. Line: median of {}; band: minimum to \
         maximum (not a confidence interval). A line ends when fewer than half of the repetitions \
         are still running; the last, incomplete interval is omitted. Writes are shown as \
         accepted.{}{}",
        alone(model::metric::Unit::Nanoseconds, interval),
        repetitions(rate_series.lines.iter().map(|line| line.n)),
        qualified(&codes),
        absent_of(view, &rate_series.absent)
    );
    let (id, description) = (format!("{}--rate-over-time", own.id), format!("{title}."));
    Some(Figure::new(Kind::RateOverTime, id, chart, (title, &description), caption))
}

/// Filesystem whose rate changed most from start to end; `None` if its repetitions disagree about
/// the direction.
fn finding(rate_series: &RateSeries, name: &dyn Fn(usize) -> String) -> Option<String> {
    let of = |line| moved(rates(line)).map(|ratio| (line, ratio));
    let all: Vec<(&RateLine, f64)> = rate_series.lines.iter().filter_map(of).collect();
    let size = |(_, ratio): &(&RateLine, f64)| (ratio - 1.0).abs();
    let (line, ratio) = all.into_iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    if (ratio - 1.0).abs() <= MOVED {
        return Some(format!("no rate changes by more than {} % from start to end", MOVED * 100.0));
    }
    let along = if ratio > 1.0 { line.turns.0 } else { line.turns.1 };
    (f64::from(along) >= AGREEING * f64::from(line.n)).then(|| {
        format!(
            "the rate of {} at the end is ×{} of that at the start, {} in {along} of n = {}",
            name(line.filesystem),
            fixed(ratio, 2),
            if ratio > 1.0 { "higher" } else { "lower" },
            line.n
        )
    })
}

/// Medians of a series.
fn rates(line: &RateLine) -> impl ExactSizeIterator<Item = f64> + Clone + '_ {
    line.rates.iter().map(|rates| rates[0])
}

#[cfg(test)]
mod tests;

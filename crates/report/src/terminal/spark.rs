//! Sparklines: medians of a test over a swept parameter, and its repetitions in order.

use crate::{
    document::terminal::{Page, wrapped::width_of},
    units::{capital, percent},
    view::{Level, Series, Table, View, metric_label},
};

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Placeholder of a missing result.
const HOLE: char = ' ';

/// Range relative to the median below which repetitions are shown level. It is smaller than any
/// equivalence margin, and eight steps would exaggerate it.
const LEVEL: f64 = 0.01;

/// Sparkline of values from `low` to `high`.
fn columns(values: impl Iterator<Item = Option<f64>>, low: f64, high: f64) -> String {
    let step = |value: f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        let at = (share.clamp(0.0, 1.0) * 8.0).floor().min(7.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
        let at = at as usize;
        STEPS[at]
    };
    values.map(|value| value.map_or(HOLE, step)).collect()
}

impl Page {
    /// Sparklines of all sweeps.
    pub(super) fn sweeps(&mut self, view: &View) {
        for scaled in &view.scaling {
            let series: Vec<&Series> = scaled.lines.iter().map(|line| &line.series).collect();
            let about = (scaled.scale.name, scaled.metric.spec().better.label());
            let title = format!("{}, {}", scaled.title, metric_label(scaled.metric));
            self.sweep(&title, about, &scaled.levels, &series, &scaled.repetitions);
        }
        for sweep in &view.sweeps {
            let series: Vec<&Series> = sweep.series.iter().collect();
            let about = (sweep.scale.name, sweep.metric.spec().better.label());
            let title = format!(
                "{} over {}, {}",
                capital(&sweep.test),
                sweep.parameter,
                metric_label(sweep.metric)
            );
            self.sweep(&title, about, &sweep.levels, &series, &sweep.repetitions);
        }
    }

    /// One line per filesystem, from zero to the maximum of all.
    fn sweep(
        &mut self,
        title: &str,
        (unit, better): (&str, &str),
        levels: &[Level],
        series: &[&Series],
        repetitions: &str,
    ) {
        let medians = |series: &Series| -> Vec<Option<f64>> {
            series.values.iter().map(|value| value.map(|value| value.median)).collect()
        };
        let all = series.iter().flat_map(|series| medians(series)).flatten();
        let high = all.fold(0.0, f64::max);
        if high <= 0.0 {
            return;
        }
        self.heading(title);
        let width = series.iter().map(|series| width_of(&series.name)).max().unwrap_or(0).min(24);
        for series in series {
            let medians = medians(series);
            let drawn = columns(medians.iter().copied(), 0.0, high);
            let known = medians.iter().flatten();
            let ends = match (known.clone().next(), known.last()) {
                (Some(first), Some(last)) => {
                    format!("{} to {} {unit}", short(*first), short(*last))
                }
                _ => "no result".into(),
            };
            let fill = " ".repeat(width.saturating_sub(width_of(&series.name)));
            // Spaces are missing levels, so the line must not be wrapped as text.
            let line = format!(" {}{fill}  {drawn}  {ends}", series.name);
            match width_of(&line) <= self.width {
                true => self.line(&line),
                false => {
                    self.wrapped(" ", "   ", &series.name);
                    self.wrapped("   ", "   ", &format!("{} {ends}", drawn.replace(HOLE, "·")));
                }
            }
        }
        let labels: Vec<&str> = levels.iter().map(|level| level.label.as_str()).collect();
        self.wrapped(
            "",
            "",
            &format!(
                "Medians at {}, from zero to the maximum of all; {better}; n = {repetitions} \
                 repetitions; the HTML report has the 95 % confidence intervals.",
                labels.join(", ")
            ),
        );
    }

    /// Sparklines of the repetitions of a test, from minimum to maximum per filesystem.
    pub(super) fn repetitions(&mut self, view: &View, suite: usize, table: &str) {
        let tests = view.suites[suite].points.iter().flat_map(|point| &point.tests);
        let position = view.ranked[suite].iter().position(|ranked: &Table| ranked.id == table);
        let Some(test) = position.and_then(|at| tests.clone().nth(at)) else {
            return;
        };
        let shown = test.entries.iter().filter(|entry| entry.values.len() > 1);
        if shown.clone().next().is_none() {
            return;
        }
        self.line("");
        for entry in shown {
            let name = &view.filesystems[entry.filesystem].name;
            let values = &entry.values;
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let middle = entry.summary.as_ref().map_or(high, |summary| summary.median);
            let apart = (high - low) / middle.abs();
            let (from, to) = if apart < LEVEL { (0.0, 0.0) } else { (low, high) };
            let drawn = columns(values.iter().copied().map(Some), from, to);
            let text = format!(
                "{drawn} {} to {} {}, range {}, n = {}",
                test.scale.rough(low),
                test.scale.rough(high),
                test.scale.name,
                percent(apart),
                values.len()
            );
            self.wrapped(&format!(" {} ", cut(name)), "   ", &text);
        }
        self.wrapped(
            "",
            "",
            "Repetitions in order, from minimum to maximum per filesystem; level if the range is \
             less than 1 %.",
        );
    }
}

/// A shortened name. The table above has the full name.
fn cut(name: &str) -> String {
    match name.chars().count() > 24 {
        true => name.chars().take(23).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// A displayed number with three digits.
fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_use_the_full_range() {
        let values = [Some(0.0), None, Some(4.0), Some(8.0)];
        assert_eq!(columns(values.into_iter(), 0.0, 8.0), "▁ ▅█");
        assert_eq!(columns([Some(1.0), Some(1.0)].into_iter(), 0.0, 0.0), "▅▅");
    }
}

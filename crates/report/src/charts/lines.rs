//! Line charts: medians of filesystems with their intervals, over levels, percentiles, or time.

use crate::{
    charts::{
        axis::Axis,
        data::{Level, Line, Panel, Series, SweepValue, ends},
        intervals::shortened,
        plot::{LEFT, Plot, RIGHT, panels},
    },
    svg::{Svg, WIDTH, color},
};

/// Height of the text above a plot, and of the ticks and text below it.
const ABOVE: f64 = 34.0;
const BELOW: f64 = 50.0;
/// Distance of the levels from the ends of a plot.
const PAD: f64 = 14.0;

/// Metric by a numeric parameter: a line per filesystem with its interval as a band.
pub(crate) fn sweep(y_axis: &str, x_axis: &str, levels: &[Level], series: &[Series]) -> Svg {
    let (top, bottom) = (ABOVE, 310.0);
    let mut svg = Svg::new(WIDTH, bottom + BELOW);
    let y = Axis::over(series.iter().flat_map(|series| ends(&series.values)), 5);
    let y_axis = y.titled(y_axis);
    let x = Axis::levels(levels);
    let plot = Plot { left: LEFT, right: RIGHT, top, bottom, pad: PAD, x, y };
    plot.ground(&mut svg, &y_axis, x_axis);
    plot.series(&mut svg, series.iter().map(|series| (series, series.values.as_slice())));
    svg
}

/// Heights of the plots of values and of ratios, and segments of the line of linear scaling.
const SCALING: (f64, f64) = (270.0, 200.0);
const IDEAL_STEPS: u32 = 48;

/// Rate by number of clients: medians with their bands, the fitted law, and a ring at 95 % of the
/// maximum. Below is the ratio to the smallest number of clients, with a line for linear scaling.
pub(crate) fn scaling(
    (y_axis, ratio_axis, x_axis): (&str, &str, &str),
    levels: &[Level],
    lines: &[Line],
) -> Svg {
    let ratios = lines.iter().any(|line| line.ratios.iter().any(Option::is_some));
    let upper = ABOVE + SCALING.0 + BELOW;
    let height = if ratios { upper + ABOVE + SCALING.1 + BELOW } else { upper };
    let mut svg = Svg::new(WIDTH, height);
    // The axis starts at zero.
    let plot = |values: fn(&Line) -> &[Option<SweepValue>], top, height| {
        let all = lines.iter().flat_map(|line| ends(values(line)));
        let (x, y) = (Axis::levels(levels), Axis::over(all.chain([0.0]), 5));
        Plot { left: LEFT, right: RIGHT, top, bottom: top + height, pad: PAD, x, y }
    };
    let above = plot(|line| &line.series.values, ABOVE, SCALING.0);
    above.ground(&mut svg, y_axis, x_axis);
    for line in lines {
        let law: Vec<(f64, f64)> = line.law.iter().map(|(n, rate)| above.at(*n, *rate)).collect();
        if !law.is_empty() {
            svg.polyline(&format!("w {}", color(line.series.filesystem)), &law);
        }
    }
    above.series(&mut svg, lines.iter().map(|line| (&line.series, line.series.values.as_slice())));
    for line in lines {
        let at = line.knee.and_then(|at| Some((levels.get(at)?, line.series.values.get(at)?)));
        if let Some((level, Some(value))) = at {
            let class = format!("o {}", color(line.series.filesystem));
            svg.circle(&class, above.at(level.number, value.median), 9.0);
        }
    }
    if ratios {
        let below = plot(|line| &line.ratios, upper + ABOVE, SCALING.1);
        below.ground(&mut svg, ratio_axis, x_axis);
        ideal(&mut svg, &below, levels);
        below.series(&mut svg, lines.iter().map(|line| (&line.series, line.ratios.as_slice())));
    }
    svg
}

/// Line of linear scaling, up to the edge of the plot.
fn ideal(svg: &mut Svg, plot: &Plot, levels: &[Level]) {
    let first = levels.first().map_or(1.0, |level| level.number);
    let end = levels.last().map_or(first, |level| level.number).min(first * plot.y.high);
    let at = |step: u32| {
        let clients = first * (end / first).powf(f64::from(step) / f64::from(IDEAL_STEPS));
        plot.at(clients, clients / first)
    };
    let points: Vec<(f64, f64)> = (0..=IDEAL_STEPS).map(at).collect();
    svg.polyline("p", &points);
    if let Some((x, y)) = points.last() {
        svg.text("ta", (x + 6.0, y + 12.0), "linear");
    }
}

/// Horizontal distance of panels, panels side by side, and heights of the plots of values and of
/// ratios.
const GAP: f64 = 22.0;
const ACROSS: usize = 3;
const SETTINGS: (f64, f64) = (210.0, 150.0);
/// Height of the text above all panels of a kind, of the title of a panel, and of the names of
/// levels in up to two lines.
const WORDS: f64 = 26.0;
const TITLE: f64 = 22.0;
const TICKS: f64 = 42.0;
/// Horizontal distance of filesystems at the same level, and width of a letter.
const OFFSET: f64 = 5.0;
const LETTER: f64 = 6.6;

/// Effect of a system setting: its levels are on the horizontal axis, and each combination of the
/// other settings has a panel with a line per filesystem. Below is the ratio to the first level;
/// ratios from `1/(1+margin)` to `1+margin` are of no practical importance. Lines that are not
/// parallel indicate an interaction.
pub(crate) fn settings(
    (y_axis, ratio_axis, x_axis): (&str, &str, &str),
    levels: &[String],
    all: &[Panel],
    margin: f64,
) -> Svg {
    let rows = all.len().div_ceil(ACROSS) as f64;
    let block = |plot: f64| WORDS + rows * (TITLE + plot + TICKS);
    let end = block(SETTINGS.0) + block(SETTINGS.1) + 24.0;
    let mut svg = Svg::new(WIDTH, end);
    let columns = all.len().clamp(1, ACROSS);
    let width = (RIGHT - LEFT - (columns - 1) as f64 * GAP) / columns as f64;
    let mut draw = |start: f64, height: f64, title: &str, y: &Axis, ratios: bool| {
        svg.text("ta", (4.0, start + 16.0), title);
        let corner = (LEFT, start + WORDS + TITLE);
        let places = panels(all.len(), ACROSS, corner, (width + GAP, TITLE + height + TICKS));
        for (index, column, left, top) in places {
            let x = Axis::categories(levels.iter().cloned(), 0.5);
            let (right, bottom, y) = (left + width, top + height, y.clone());
            let plot = Plot { left, right, top, bottom, pad: 0.0, x, y };
            let panel = &all[index];
            svg.text("tm tb", (left + width / 2.0, top - 8.0), &panel.title);
            let band = [1.0 / (1.0 + margin), 1.0 + margin].map(|ratio| plot.y(ratio));
            if ratios {
                svg.rect("z", (left, band[1]), (width, band[0] - band[1]));
            }
            plot.grid(&mut svg, column == 0);
            if ratios {
                svg.line("k", (left, plot.y(1.0)), (right, plot.y(1.0)));
            }
            staggered(&mut svg, &plot, levels);
            let lines = if ratios { &panel.ratios } else { &panel.lines };
            for (place, line) in lines.iter().enumerate() {
                let offset = OFFSET * (place as f64 - (lines.len() as f64 - 1.0) / 2.0);
                whiskers(&mut svg, &plot, line, offset);
                plot.line(&mut svg, line.filesystem, &line.values, offset);
            }
            if column + 1 == columns || index + 1 == all.len() {
                plot.names(&mut svg, lines.iter().map(|line| (line, line.values.as_slice())));
            }
        }
    };
    let lines = all.iter().flat_map(|panel| &panel.lines);
    let y = Axis::over(lines.flat_map(|line| ends(&line.values)).chain([0.0]), 5);
    draw(0.0, SETTINGS.0, y_axis, &y, false);
    let lines = all.iter().flat_map(|panel| &panel.ratios);
    let band = [1.0 / (1.0 + margin), 1.0 + margin];
    let y = Axis::over(lines.flat_map(|line| ends(&line.values)).chain(band), 4);
    draw(block(SETTINGS.0), SETTINGS.1, &y.titled(ratio_axis), &y, true);
    svg.text("tm ta", ((LEFT + RIGHT) / 2.0, end - 10.0), x_axis);
    svg
}

/// Names of levels in one line, or in two if they would overlap.
fn staggered(svg: &mut Svg, plot: &Plot, levels: &[String]) {
    let room = (plot.right - plot.left) / levels.len().max(1) as f64;
    let widest = levels.iter().map(|level| level.chars().count()).max().unwrap_or(0);
    let staggered = widest as f64 * LETTER > room;
    for (index, level) in levels.iter().enumerate() {
        let x = plot.across(plot.x.share(index as f64));
        let lower = if staggered && index % 2 == 1 { 15.0 } else { 0.0 };
        svg.line("k", (x, plot.bottom), (x, plot.bottom + 5.0 + lower));
        svg.text("tm", (x, plot.bottom + 19.0 + lower), &shortened(level, 18));
    }
}

/// Intervals of a filesystem as vertical lines, shifted to the right by `offset`.
fn whiskers(svg: &mut Svg, plot: &Plot, line: &Series, offset: f64) {
    for (index, value) in line.values.iter().enumerate() {
        if let Some((low, high)) = value.and_then(|value| value.ends) {
            let x = plot.across(plot.x.share(index as f64)) + offset;
            let class = format!("i {}", color(line.filesystem));
            svg.line(&class, (x, plot.y(low)), (x, plot.y(high)));
        }
    }
}

/// Latency by percentile: percentiles at equal distances on the horizontal axis, time in
/// nanoseconds on a logarithmic vertical axis, with a line and a band per filesystem.
pub(crate) fn percentiles(y_axis: &str, steps: &[&str], lines: &[Series]) -> Svg {
    let (top, bottom) = (ABOVE, 286.0);
    let mut svg = Svg::new(WIDTH, bottom + BELOW);
    let y = Axis::times(lines.iter().flat_map(|line| ends(&line.values)));
    let x = Axis::categories(steps.iter().map(|step| (*step).to_owned()), 0.0);
    let plot = Plot { left: LEFT + 8.0, right: RIGHT, top, bottom, pad: 24.0, x, y };
    plot.ground(&mut svg, y_axis, "percentile of the operations of a repetition");
    plot.series(&mut svg, lines.iter().map(|line| (line, line.values.as_slice())));
    svg
}

/// Time in nanoseconds by a numeric level: a line and a band per filesystem on two logarithmic
/// axes.
pub(crate) fn times(y_axis: &str, x_axis: &str, levels: &[Level], lines: &[Series]) -> Svg {
    let (top, bottom) = (ABOVE, 310.0);
    let mut svg = Svg::new(WIDTH, bottom + BELOW);
    let y = Axis::times(lines.iter().flat_map(|line| ends(&line.values)));
    let x = Axis::levels(levels);
    let plot = Plot { left: LEFT + 8.0, right: RIGHT, top, bottom, pad: PAD, x, y };
    plot.ground(&mut svg, y_axis, x_axis);
    plot.series(&mut svg, lines.iter().map(|line| (line, line.values.as_slice())));
    svg
}

/// Height of the title of a panel of rates, of its plot, and of its ticks.
const RATE: (f64, f64, f64) = (26.0, 112.0, 26.0);
/// Right end of the panels of rates.
const RATE_RIGHT: f64 = WIDTH - 14.0;

/// Rate during a test: a panel per filesystem, all on the same axes. A line is the median of the
/// repetitions, a band their minimum and maximum. `interval` is in seconds.
pub(crate) fn rate(y_axis: &str, interval: f64, series: &[Series]) -> Svg {
    let (title, height, ticks) = RATE;
    let rows = series.len().div_ceil(ACROSS).max(1) as f64;
    let end = WORDS + rows * (title + height + ticks) + 24.0;
    let mut svg = Svg::new(WIDTH, end);
    let y = Axis::over(series.iter().flat_map(|own| ends(&own.values)).chain([0.0]), 4);
    let longest = series.iter().map(|own| own.values.len()).max().unwrap_or(0);
    let last = longest as f64 * interval;
    let (unit, factor) = if last < 1.0 { ("milliseconds", 1000.0) } else { ("seconds", 1.0) };
    let (last, interval) = (last * factor, interval * factor);
    let mut x = Axis::over([0.0, last * 0.95].into_iter(), 4);
    // The last label would overlap the first one of the next panel.
    x.ticks.iter_mut().next_back().into_iter().for_each(|(_, label)| label.clear());
    svg.text("ta", (4.0, 16.0), y_axis);
    let columns = series.len().clamp(1, ACROSS);
    let gap = GAP - 2.0;
    let width = (RATE_RIGHT - LEFT - (columns - 1) as f64 * gap) / columns as f64;
    let step = (width + gap, title + height + ticks);
    for (index, column, left, top) in panels(series.len(), ACROSS, (LEFT, WORDS + title), step) {
        let (right, bottom, x, y) = (left + width, top + height, x.clone(), y.clone());
        let plot = Plot { left, right, top, bottom, pad: 0.0, x, y };
        plot.grid(&mut svg, column == 0);
        plot.ticks(&mut svg);
        let own = &series[index];
        svg.about(&own.name);
        svg.marker(own.filesystem, (left + 6.0, top - 12.0));
        svg.text("tb", (left + 17.0, top - 8.0), &shortened(&own.name, 28));
        let values: Vec<SweepValue> = own.values.iter().copied().flatten().collect();
        let curve = |of: fn(&SweepValue) -> f64| {
            let values = values.iter().enumerate();
            // At the middle of the interval.
            let at = |(at, value)| plot.at((at as f64 + 0.5) * interval, of(value));
            values.map(at).collect::<Vec<(f64, f64)>>()
        };
        let mut band = curve(|value| value.ends.map_or(value.median, |(low, _)| low));
        band.reverse();
        band.splice(0..0, curve(|value| value.ends.map_or(value.median, |(_, high)| high)));
        let class = color(own.filesystem);
        svg.polygon(&format!("a {class}"), &band);
        let line = curve(|value| value.median);
        svg.polyline(&format!("l {class}"), &line);
        if let [only] = line.as_slice() {
            svg.marker(own.filesystem, *only);
        }
        svg.end();
    }
    let text = format!("{unit} from the start of the test");
    svg.text("tm ta", ((LEFT + RATE_RIGHT) / 2.0, end - 8.0), &text);
    svg
}

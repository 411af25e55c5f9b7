//! Ratios of configurations to a reference on a logarithmic axis, with intervals. A band marks
//! differences within the margin. Each filesystem has a row per level.

use crate::{
    charts::{data::Multiple, intervals::shortened},
    svg::{Svg, WIDTH, color},
    units::fixed,
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct NormalizedChart<'a> {
    /// Quantity, reference, and direction.
    pub(crate) axis: String,
    pub(crate) rows: &'a [Multiple],
    /// Ratios from `1/(1+margin)` to `1+margin` are of no practical importance.
    pub(crate) margin: f64,
}

const LEFT: f64 = 232.0;
const RIGHT: f64 = 156.0;
const TOP: f64 = 12.0;
const ROW: f64 = 22.0;
/// Space between two filesystems.
const GROUP: f64 = 10.0;
const BOTTOM: f64 = 46.0;
/// Right end of the names of levels.
const LEVELS: f64 = LEFT - 16.0;
const NAMES: f64 = 24.0;

/// Ratios at ticks, besides their reciprocals, from coarse to fine.
const STEPS: [&[f64]; 4] =
    [&[10.0, 100.0], &[2.0, 5.0, 10.0, 20.0], &[1.5, 2.0, 3.0, 4.0], &[1.1, 1.2, 1.4]];

/// Range of ratios, as logarithms, and the ratios at ticks.
struct Logarithmic {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Logarithmic {
    /// Axis that includes all ratios and 1, with margins at both ends.
    fn over(ratios: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (0.0f64, 0.0f64);
        let logarithms = ratios.map(f64::ln).filter(|logarithm| logarithm.is_finite());
        logarithms.for_each(|value| (low, high) = (low.min(value), high.max(value)));
        let room = (0.06 * (high - low)).max(0.02);
        (low, high) = (low - room, high + room);
        let within = |steps: &[f64]| -> Vec<f64> {
            let below = steps.iter().rev().map(|step| 1.0 / step);
            let ticks = below.chain([1.0]).chain(steps.iter().copied());
            ticks.filter(|tick| (low..=high).contains(&tick.ln())).collect()
        };
        // The coarsest steps with at least three ticks besides 1, or the finest.
        let found = STEPS.iter().map(|steps| within(steps)).find(|ticks| ticks.len() >= 4);
        let ticks = found.unwrap_or_else(|| within(STEPS[STEPS.len() - 1]));
        Self { low, high, ticks }
    }

    fn x(&self, ratio: f64) -> f64 {
        let share = ((ratio.ln() - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }
}

/// `÷1.5`, `1`, `×2`.
fn label(tick: f64) -> String {
    let step = |value: f64| {
        let text = fixed(value, 1);
        text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
    };
    if tick == 1.0 {
        "1".into()
    } else if tick < 1.0 {
        format!("÷{}", step(1.0 / tick))
    } else {
        format!("×{}", step(tick))
    }
}

impl NormalizedChart<'_> {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let rows = self.rows;
        let groups = rows.windows(2).filter(|two| two[0].filesystem != two[1].filesystem).count();
        let bottom = TOP + rows.len() as f64 * ROW + groups as f64 * GROUP;
        let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
        let threshold = 1.0 + self.margin;
        let ratios = rows.iter().filter_map(|row| row.ratio).flat_map(|(ratio, ends)| {
            ends.into_iter().flat_map(|(low, high)| [low, high]).chain([ratio])
        });
        let axis = Logarithmic::over(ratios.chain([threshold, 1.0 / threshold]));
        let (low, high) = (axis.x(1.0 / threshold), axis.x(threshold));
        svg.rect("z", (low, TOP), (high - low, bottom - TOP));
        for tick in &axis.ticks {
            let x = axis.x(*tick);
            svg.line(if *tick == 1.0 { "k" } else { "g" }, (x, TOP), (x, bottom));
            svg.text("tm", (x, bottom + 16.0), &label(*tick));
        }
        let mut y = TOP;
        for (index, row) in rows.iter().enumerate() {
            let fresh = index == 0 || rows[index - 1].filesystem != row.filesystem;
            y += if fresh && index > 0 { GROUP } else { 0.0 };
            draw(&mut svg, &axis, row, y + ROW / 2.0, fresh);
            y += ROW;
        }
        svg.text("tm ta", ((LEFT + WIDTH - RIGHT) / 2.0, bottom + 36.0), &self.axis);
        svg
    }
}

fn draw(svg: &mut Svg, axis: &Logarithmic, row: &Multiple, y: f64, fresh: bool) {
    if fresh {
        svg.marker(row.filesystem, (10.0, y));
        svg.text("tb", (NAMES, y + 4.0), &shortened(&row.name, 15));
    }
    svg.text("te", (LEVELS, y + 4.0), &shortened(&row.level, 12));
    let Some((ratio, ends)) = row.ratio else {
        svg.text("tn", (LEFT + 4.0, y + 4.0), &shortened(&row.shown, 56));
        return;
    };
    let class = color(row.filesystem);
    if let Some((low, high)) = ends {
        svg.line(&format!("i {class}"), (axis.x(low), y), (axis.x(high), y));
    }
    svg.marker(row.filesystem, (axis.x(ratio), y));
    let shown = row.shown.split(" (").next().unwrap_or_default();
    svg.text("", (WIDTH - RIGHT + 12.0, y + 4.0), shown);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_multiples_on_both_sides_of_one() {
        let axis = |ratios: &[f64]| {
            let axis = Logarithmic::over(ratios.iter().copied());
            axis.ticks.iter().map(|tick| label(*tick)).collect::<Vec<_>>()
        };
        assert_eq!(axis(&[0.45, 2.1]), ["÷2", "÷1.5", "1", "×1.5", "×2"]);
        assert_eq!(axis(&[0.9, 1.25]), ["÷1.1", "1", "×1.1", "×1.2"]);
        assert_eq!(axis(&[0.04, 1.1]), ["÷20", "÷10", "÷5", "÷2", "1"]);
        assert_eq!(axis(&[1.0]), ["1"]);
    }
}

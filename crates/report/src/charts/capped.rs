//! Bars from zero with their values. Bars much longer than the others are clipped and have a broken
//! end. There is a panel per cache state, a group per operation, and a bar per filesystem, all on
//! one axis.

use crate::{
    charts::{
        axis::{Across, Axis},
        data::{CappedBar, CappedPanel},
        intervals::shortened,
    },
    svg::{Svg, WIDTH, color},
};

/// Width of the names of filesystems, and of the values right of the bars of a panel.
const LEFT: f64 = 112.0;
const VALUES: f64 = 72.0;
const GAP: f64 = 10.0;
const TOP: f64 = 30.0;
const HEAD: f64 = 26.0;
const ROW: f64 = 21.0;
const BAR: f64 = 13.0;
const BOTTOM: f64 = 46.0;
/// Slant of a broken end, and width of its gap.
const LEAN: f64 = 4.0;
const BREAK: f64 = 4.0;

/// Draws the chart. `cut` is the clipping limit; `None` if no bar is clipped.
pub(crate) fn capped(title: &str, panels: &[CappedPanel], cut: Option<f64>) -> Svg {
    let height = |panel: &CappedPanel| -> f64 {
        panel.groups.iter().map(|group| HEAD + group.bars.len() as f64 * ROW).sum()
    };
    let bottom = TOP + panels.iter().map(height).fold(0.0, f64::max);
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    let most = cut.unwrap_or(f64::INFINITY);
    let bars = panels.iter().flat_map(|panel| &panel.groups).flat_map(|group| &group.bars);
    let ends = bars.flat_map(|bar| {
        let high = bar.interval.map(|(_, high)| high);
        [Some(0.0), bar.median, high].into_iter().flatten().map(|end| end.min(most))
    });
    let across = panels.len().max(1) as f64;
    let axis = Axis::over(ends, if panels.len() > 1 { 3 } else { 6 });
    let room = (WIDTH - LEFT - GAP * (across - 1.0)) / across;
    for (index, panel) in panels.iter().enumerate() {
        let left = LEFT + index as f64 * (room + GAP);
        let right = left + room - VALUES;
        let across = Across::new(axis.clone(), (left, right));
        across.grid(&mut svg, (TOP, bottom));
        svg.text("tm tb", ((left + right) / 2.0, TOP - 12.0), &panel.title);
        draw_panel(&mut svg, &across, cut, panel, index == 0);
    }
    svg.text("tm ta", ((LEFT + WIDTH) / 2.0, bottom + 38.0), title);
    svg
}

fn draw_panel(svg: &mut Svg, across: &Across, cut: Option<f64>, panel: &CappedPanel, first: bool) {
    let mut y = TOP;
    for group in &panel.groups {
        if first {
            svg.text("tb", (4.0, y + HEAD - 8.0), &group.name);
        }
        y += HEAD;
        for bar in &group.bars {
            let middle = y + ROW / 2.0;
            if first {
                svg.marker(bar.filesystem, (LEFT - 14.0, middle));
                svg.text("te", (LEFT - 26.0, middle + 4.0), &shortened(&bar.name, 12));
            }
            draw(svg, across, cut, bar, middle);
            y += ROW;
        }
    }
}

fn draw(svg: &mut Svg, across: &Across, cut: Option<f64>, bar: &CappedBar, y: f64) {
    let Some(median) = bar.median else {
        svg.text("tn", (across.x(0.0) + 4.0, y + 4.0), &shortened(&bar.shown, 24));
        return;
    };
    let cut = cut.filter(|cut| median > *cut);
    let (start, end) = (across.x(0.0), across.x(cut.unwrap_or(median)));
    let (high, low) = (y - BAR / 2.0, y + BAR / 2.0);
    for class in ["st1", "o"] {
        let class = format!("{class} {}", color(bar.filesystem));
        svg.rect(&class, (start, high), (end - start, BAR));
    }
    let mut right = end;
    if cut.is_some() {
        // Two slanted gaps mark a clipped bar.
        for at in [end - 8.0, end - 17.0] {
            let (top, foot) = (high - 2.0, low + 2.0);
            let gap = [
                (at + LEAN, top),
                (at + LEAN + BREAK, top),
                (at - LEAN + BREAK, foot),
                (at - LEAN, foot),
            ];
            svg.polygon("stb", &gap);
        }
    } else if let Some((from, to)) = bar.interval {
        svg.line("ste", (across.x(from), y), (across.x(to), y));
        // Ends outside of the plot are not drawn.
        let ends = [from, to].into_iter().filter(|end| *end <= across.axis.high);
        let ends = ends.map(|end| across.x(end));
        ends.for_each(|x| svg.line("ste", (x, y - 4.0), (x, y + 4.0)));
        right = right.max(across.x(to));
    }
    let class = if cut.is_some() { "tb" } else { "" };
    svg.text(class, (right + 6.0, y + 4.0), &bar.shown);
}

//! Bars from zero with their values. Bars much longer than the others are clipped and have a broken
//! end. There is a panel per cache state, a group per operation, and a bar per filesystem, all on
//! one axis.

use crate::{
    charts::{
        axis::Axis,
        data::{CappedBar, CappedPanel},
        intervals::shortened,
    },
    svg::{Svg, WIDTH, color},
};

/// The chart.
#[derive(Clone, Debug)]
pub(crate) struct CappedChart<'a> {
    /// Quantity, unit and direction.
    pub(crate) axis: String,
    pub(crate) panels: &'a [CappedPanel],
    /// Clipping limit; `None` if no bar is clipped.
    pub(crate) cut: Option<f64>,
}

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

/// Position of a panel.
struct Frame<'a> {
    left: f64,
    width: f64,
    axis: &'a Axis,
    cut: Option<f64>,
}

impl Frame<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left + self.axis.share(value) * self.width
    }
}

impl CappedChart<'_> {
    /// Draws the chart.
    pub(crate) fn render(&self) -> Svg {
        let panels = self.panels;
        let height = |panel: &CappedPanel| -> f64 {
            panel.groups.iter().map(|group| HEAD + group.bars.len() as f64 * ROW).sum()
        };
        let bottom = TOP + panels.iter().map(height).fold(0.0, f64::max);
        let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
        let cut = self.cut.unwrap_or(f64::INFINITY);
        let bars = panels.iter().flat_map(|panel| &panel.groups).flat_map(|group| &group.bars);
        let ends = bars.flat_map(|bar| {
            let high = bar.interval.map(|(_, high)| high);
            [Some(0.0), bar.median, high].into_iter().flatten().map(|end| end.min(cut))
        });
        let across = panels.len().max(1) as f64;
        let axis = Axis::over(ends, if panels.len() > 1 { 3 } else { 6 });
        let room = (WIDTH - LEFT - GAP * (across - 1.0)) / across;
        for (index, panel) in panels.iter().enumerate() {
            let left = LEFT + index as f64 * (room + GAP);
            let cut = self.cut;
            let frame = Frame { left, width: room - VALUES, axis: &axis, cut };
            self.panel(&mut svg, &frame, panel, bottom, index == 0);
        }
        svg.text("tm ta", ((LEFT + WIDTH) / 2.0, bottom + 38.0), &self.axis);
        svg
    }

    fn panel(&self, svg: &mut Svg, frame: &Frame, panel: &CappedPanel, bottom: f64, first: bool) {
        for tick in &frame.axis.ticks {
            let x = frame.x(*tick);
            svg.line("g", (x, TOP), (x, bottom));
            svg.text("tm", (x, bottom + 16.0), &frame.axis.label(*tick));
        }
        svg.text("tm tb", (frame.left + frame.width / 2.0, TOP - 12.0), &panel.title);
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
                draw(svg, frame, bar, middle);
                y += ROW;
            }
        }
    }
}

fn draw(svg: &mut Svg, frame: &Frame, bar: &CappedBar, y: f64) {
    let Some(median) = bar.median else {
        svg.text("tn", (frame.left + 4.0, y + 4.0), &shortened(&bar.shown, 24));
        return;
    };
    let cut = frame.cut.filter(|cut| median > *cut);
    let (start, end) = (frame.x(0.0), frame.x(cut.unwrap_or(median)));
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
        svg.line("ste", (frame.x(from), y), (frame.x(to), y));
        // Ends outside of the plot are not drawn.
        let ends = [from, to].into_iter().filter(|end| *end <= frame.axis.high);
        let ends = ends.map(|end| frame.x(end));
        ends.for_each(|x| svg.line("ste", (x, y - 4.0), (x, y + 4.0)));
        right = right.max(frame.x(to));
    }
    let class = if cut.is_some() { "tb" } else { "" };
    svg.text(class, (right + 6.0, y + 4.0), &bar.shown);
}

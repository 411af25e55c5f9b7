//! Sparklines.

use super::{
    Page,
    wrapped::{cut, width_of},
};
use crate::document::Spark;

/// Maximum width of a name.
const NAME: usize = 24;

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Placeholder of a missing result.
const HOLE: char = ' ';

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
    /// One line per row.
    pub(super) fn spark(&mut self, spark: &Spark) {
        match spark.title.is_empty() {
            true => self.line(""),
            false => self.heading(&spark.title),
        }
        let names: Vec<String> = spark.rows.iter().map(|row| cut(&row.name, NAME)).collect();
        let width = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
        for (row, name) in spark.rows.iter().zip(&names) {
            let drawn = columns(row.values.iter().copied(), row.range.0, row.range.1);
            let fill = " ".repeat(width - width_of(name));
            // Spaces are missing levels, so the line must not be wrapped as text.
            let line = format!(" {name}{fill}  {drawn}  {}", row.text);
            match width_of(&line) <= self.width {
                true => self.line(&line),
                false => {
                    self.wrapped(" ", "   ", name);
                    let text = format!("{} {}", drawn.replace(HOLE, "·"), row.text);
                    self.wrapped("   ", "   ", &text);
                }
            }
        }
        self.wrapped("", "", &spark.caption);
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

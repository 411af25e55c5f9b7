//! Stacked bars: a bar from zero per filesystem, divided into segments. Each kind of segment has a
//! texture and a letter, because colors identify filesystems.

use crate::{
    charts::{
        axis::{Across, Axis},
        intervals::shortened,
        texture::Texture,
    },
    svg::{Svg, WIDTH},
};

/// One filesystem, in display units.
#[derive(Clone, Debug)]
pub(crate) struct OriginBar {
    pub(crate) name: String,
    /// Index of the filesystem.
    pub(crate) series: usize,
    /// One per name of a segment.
    pub(crate) pieces: Vec<f64>,
    /// Label at the end of the bar.
    pub(crate) shown: String,
}

/// Letter, texture, and distance of its lines, for each kind of segment.
const LOOKS: [(&str, Texture, f64); 14] = [
    ("W", Texture::Plain, 0.0),
    ("J", Texture::Rising, 5.0),
    ("B", Texture::Falling, 5.0),
    ("F", Texture::Upright, 4.0),
    ("G", Texture::Level, 4.0),
    ("K", Texture::Crossed, 6.0),
    ("L", Texture::Grid, 5.0),
    ("S", Texture::Rising, 9.0),
    ("R", Texture::Falling, 9.0),
    ("Q", Texture::Upright, 8.0),
    ("O", Texture::Level, 7.0),
    ("P", Texture::Plain, 0.0),
    ("X", Texture::Grid, 9.0),
    ("U", Texture::Crossed, 10.0),
];

const LEFT: f64 = 128.0;
const RIGHT: f64 = 270.0;
const ROW: f64 = 32.0;
const BAR: f64 = 22.0;
const BOTTOM: f64 = 46.0;
/// Key: height of a row, size of a sample, and width of a letter.
const KEY_ROW: f64 = 23.0;
const SAMPLE: (f64, f64) = (22.0, 16.0);
const LETTER: f64 = 6.7;
/// Minimum widths of a segment, and of one with a texture.
const VISIBLE: f64 = 0.5;
const TEXTURED: f64 = 3.0;
/// Minimum width of a segment with a letter.
const LETTERED: f64 = 13.0;

/// Draws the chart. `parts` are the names of the segments that are drawn; further ones are not.
pub(crate) fn origins(title: &str, parts: &[&str], bars: &[OriginBar]) -> Svg {
    let used = |part: &usize| bars.iter().any(|bar| bar.pieces[*part] > 0.0);
    let places = key(parts, (0..parts.len()).filter(used));
    let top = places.last().map_or(0.0, |(_, (_, y))| *y) + KEY_ROW + 10.0;
    let bottom = top + bars.len() as f64 * ROW;
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
    for (part, (x, y)) in places {
        piece(&mut svg, part, (x, y), SAMPLE);
        svg.text("", (x + SAMPLE.0 + 6.0, y + 12.5), parts[part]);
    }
    let sums = bars.iter().map(|bar| bar.pieces[..parts.len()].iter().sum::<f64>());
    let across = Across::new(Axis::over(sums.chain([0.0]), 5), (LEFT, WIDTH - RIGHT));
    across.ground(&mut svg, (top, bottom), title);
    for (index, bar) in bars.iter().enumerate() {
        svg.about(&bar.name);
        draw(&mut svg, &across, (parts, bar), top + index as f64 * ROW);
        svg.end();
    }
    svg
}

/// Positions of the samples in the key, row by row.
fn key(parts: &[&str], used: impl Iterator<Item = usize>) -> Vec<(usize, (f64, f64))> {
    let (mut x, mut y) = (4.0, 4.0);
    let mut places = Vec::new();
    for part in used {
        let width = SAMPLE.0 + 6.0 + parts[part].chars().count() as f64 * LETTER + 18.0;
        if x + width > WIDTH {
            (x, y) = (4.0, y + KEY_ROW);
        }
        places.push((part, (x, y)));
        x += width;
    }
    places
}

fn draw(svg: &mut Svg, across: &Across, (parts, bar): (&[&str], &OriginBar), top: f64) {
    let middle = top + ROW / 2.0;
    svg.marker(bar.series, (LEFT - 14.0, middle));
    svg.text("te", (LEFT - 26.0, middle + 4.0), &shortened(&bar.name, 14));
    let mut before = 0.0;
    for ((part, name), amount) in parts.iter().enumerate().zip(&bar.pieces) {
        let (from, to) = (across.x(before), across.x(before + amount));
        before += amount;
        if to - from < VISIBLE {
            continue;
        }
        svg.titled(&format!("{}, {name}", bar.name));
        piece(svg, part, (from, middle - BAR / 2.0), (to - from, BAR));
        svg.end();
    }
    let (end, reach) = (across.x(before), BAR / 2.0 + 4.0);
    svg.line("ce", (end, middle - reach), (end, middle + reach));
    svg.text("", (end + 8.0, middle + 4.0), &bar.shown);
}

/// Segment of a bar, with its letter if it fits.
fn piece(svg: &mut Svg, part: usize, corner: (f64, f64), size: (f64, f64)) {
    let (letter, texture, distance) = LOOKS[part % LOOKS.len()];
    svg.rect(if part == 0 { "cw" } else { "cp" }, corner, size);
    if size.0 >= TEXTURED {
        svg.strokes("cx", &texture.strokes(corner, size, distance));
    }
    if size.0 >= LETTERED {
        let at = (corner.0 + size.0 / 2.0, corner.1 + size.1 / 2.0 + 4.5);
        svg.text(if part == 0 { "cl tm tb" } else { "ct tm tb" }, at, letter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_distinguishable() {
        for (at, (letter, texture, distance)) in LOOKS.iter().enumerate() {
            for (other, two, apart) in &LOOKS[at + 1..] {
                assert_ne!(letter, other);
                // Plain segments differ in their background, which only the first fills.
                let alike = texture == two && (distance - apart).abs() < 2.0;
                assert!(!alike || at == 0, "{letter} {other}");
            }
        }
    }
}

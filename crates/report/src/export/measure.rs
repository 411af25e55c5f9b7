//! Estimated text width in the font of exported charts, and line breaking.

/// Advance widths of Noto Sans Regular from space to `~`, in thousandths of the font size.
const WIDTHS: [u16; 95] = [
    260, 269, 408, 646, 572, 831, 732, 225, 300, 300, 551, 572, 268, 322, 268, 372, 572, 572, 572,
    572, 572, 572, 572, 572, 572, 572, 268, 268, 572, 572, 572, 434, 899, 639, 650, 632, 730, 556,
    519, 728, 741, 339, 273, 619, 524, 907, 760, 781, 605, 781, 622, 549, 556, 731, 600, 930, 586,
    566, 572, 329, 372, 329, 572, 444, 281, 561, 615, 480, 615, 564, 344, 615, 618, 258, 258, 534,
    258, 935, 618, 605, 615, 615, 413, 479, 361, 618, 508, 786, 529, 510, 470, 380, 551, 380, 572,
];

/// Estimated width of other characters below U+2500 (Latin-1, Greek, arrows, mathematical symbols);
/// most are narrower.
const OTHER: u16 = 700;

/// Estimated width of all other characters, and of the box that replaces a missing glyph.
const FOREIGN: u16 = 1000;

/// Width of bold text relative to regular text. A finding is about 1.06 times as wide in Noto Sans
/// Bold.
const BOLD: f64 = 1.08;

/// Estimated width of a text at a font size, both in units of the SVG.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let thousandths: f64 = text.chars().map(|c| f64::from(advance(c))).sum();
    thousandths / 1000.0 * size * if bold { BOLD } else { 1.0 }
}

fn advance(c: char) -> u16 {
    let at = u32::from(c).checked_sub(0x20).and_then(|at| usize::try_from(at).ok());
    match at.and_then(|at| WIDTHS.get(at)) {
        Some(width) => *width,
        None if u32::from(c) < 0x2500 => OTHER,
        None => FOREIGN,
    }
}

/// Breaks a text into lines of at most this width. Words that are wider are split.
pub(super) fn lines(text: &str, room: f64, size: f64, bold: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = format!("{line}{}{word}", if line.is_empty() { "" } else { " " });
        if width(&longer, size, bold) <= room {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            line.push(c);
            if width(&line, size, bold) > room && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::take(&mut line));
                line.push(c);
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        assert!((width("n = 8", 10.0, false) - (6.18 + 2.6 + 5.72 + 2.6 + 5.72)).abs() < 1e-9);
    }

    #[test]
    fn no_line_exceeds_its_width() {
        let text = "which filesystem is best /a/path/that/has/no/blank/and/goes/on/and/on ×1.07";
        let lines = lines(text, 100.0, 11.0, true);
        assert!(lines.iter().all(|line| width(line, 11.0, true) <= 100.0), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
    }
}

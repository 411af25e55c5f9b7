//! Colors and shapes of filesystems in charts.
//!
//! A chart refers to series 0, 1, 2, … by the class `s0` and the marker `m0`. A page or a file
//! assigns a look to each of them ([`of`]): the common filesystems have the same look in every
//! report.

use std::fmt::Write;

/// Filesystem, and path of its marker around the origin. The style sheet has the color of the look
/// with index i as `--f{i}`.
const LOOKS: [(&str, &str); 9] = [
    ("ext2", "M0-4.3A4.3 4.3 0 1 1 0 4.3A4.3 4.3 0 1 1 0-4.3Z"),
    ("ext3", "M-3.9-3.9H3.9V3.9H-3.9Z"),
    ("ext4", "M0-4.9L4.7 3.7H-4.7Z"),
    ("xfs", "M0-5.2L5.2 0 0 5.2-5.2 0Z"),
    ("btrfs", "M0 4.9L4.7-3.7H-4.7Z"),
    ("jfs", "M-1.7-4.7H1.7V-1.7H4.7V1.7H1.7V4.7H-1.7V1.7H-4.7V-1.7H-1.7Z"),
    ("reiserfs", "M-2.4-4.5H2.4L4.8 0 2.4 4.5H-2.4L-4.8 0Z"),
    ("nilfs2", "M0-5.4L1.4-1.7 5.2-1.6 2.2.7 3.3 4.4 0 2.3-3.3 4.4-2.2.7-5.2-1.6-1.4-1.7Z"),
    (
        "f2fs",
        "M-4.3-2.6L-2.6-4.3 0-1.7 2.6-4.3 4.3-2.6 1.7 0 4.3 2.6 2.6 4.3 0 1.7-2.6 4.3-4.3 2.6-1.7 \
         0Z",
    ),
];

/// Colors of the looks on a light page, as in the style sheet, for programs that draw on their own.
const LIGHT: [u32; LOOKS.len()] = [
    0x04_72FF, 0xD0_8205, 0x15_7973, 0x87_00A4, 0x1B_1E21, 0x82_6200, 0x36_9EC2, 0x21_00DF,
    0x65_3303,
];

/// Number of looks: each shape filled and hollow.
const COUNT: usize = 2 * LOOKS.len();

/// Class of the color of a series.
pub(crate) fn color(series: usize) -> String {
    format!("s{}", series % COUNT)
}

/// ID of the marker of a series.
pub(crate) fn id(series: usize) -> String {
    format!("m{}", series % COUNT)
}

/// Look of each series, given the names of the filesystems: that of the name, if it has one, or the
/// next free one.
pub(crate) fn of(names: &[String]) -> Vec<usize> {
    let named = |name: &String| LOOKS.iter().position(|(own, _)| own == name);
    let reserved: Vec<usize> = names.iter().take(COUNT).filter_map(named).collect();
    let mut free = (0..COUNT).filter(|look| !reserved.contains(look));
    let mut looks: Vec<usize> = Vec::new();
    for series in 0..COUNT {
        let own = names.get(series).and_then(named).filter(|look| !looks.contains(look));
        looks.extend(own.or_else(|| free.next()));
    }
    looks
}

/// Rules of the style sheet that give each series its color.
pub(crate) fn style(looks: &[usize]) -> String {
    let rule = |(series, look): (usize, &usize)| {
        format!(".s{series} {{ --c: var(--f{}); }}\n", look % LOOKS.len())
    };
    looks.iter().enumerate().map(rule).collect()
}

/// Color of a look on a light page: `0xRRGGBB`.
pub(crate) fn light(look: usize) -> u32 {
    LIGHT[look % LIGHT.len()]
}

/// Classes and path of the marker of a series.
pub(crate) fn marker(looks: &[usize], series: usize) -> (String, &'static str) {
    let look = looks.get(series).copied().unwrap_or(series);
    let hollow = if look < LOOKS.len() { "" } else { " mh" };
    (format!("m{hollow} {}", color(series)), LOOKS[look % LOOKS.len()].1)
}

/// Definitions of the markers to which the texts refer.
pub(crate) fn definitions(looks: &[usize], texts: &[&str]) -> String {
    let mut paths = String::new();
    let used = |series: &usize| {
        let reference = format!("\"#{}\"", id(*series));
        texts.iter().any(|text| text.contains(&reference))
    };
    for series in (0..COUNT).filter(used) {
        let (class, path) = marker(looks, series);
        // Writing to a string cannot fail.
        let _ = writeln!(paths, "<path id=\"{}\" class=\"{class}\" d=\"{path}\"/>", id(series));
    }
    match paths.is_empty() {
        true => paths,
        false => format!("<svg class=\"defs\" aria-hidden=\"true\"><defs>\n{paths}</defs></svg>\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: &str = include_str!("../../templates/style.css");

    type Color = [f64; 3];

    /// Simulated protanopia, deuteranopia, and tritanopia (Machado, Oliveira, and Fernandes, A
    /// Physiologically-based Model for Simulation of Color Vision Deficiency, 2009).
    const DEFICIENCIES: [[Color; 3]; 3] = [
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    ];

    /// Colors of the looks and the background, in the light or dark part of the style sheet:
    /// channels from 0 to 1, linear (IEC 61966-2-1).
    fn colors(dark: bool) -> (Vec<Color>, Color) {
        let start = if dark { STYLE.find("prefers-color-scheme: dark").unwrap() } else { 0 };
        let color = |variable: &str| {
            let from = &STYLE[start..];
            let at = from.find(&format!("{variable}: #")).unwrap() + variable.len() + 3;
            [0, 2, 4].map(|digit| {
                let byte = u8::from_str_radix(&from[at + digit..at + digit + 2], 16).unwrap();
                let share = f64::from(byte) / 255.0;
                if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
            })
        };
        ((0..LOOKS.len()).map(|look| color(&format!("--f{look}"))).collect(), color("--paper"))
    }

    fn luminance([red, green, blue]: Color) -> f64 {
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn times(matrix: [Color; 3], color: Color) -> Color {
        matrix.map(|row| row.iter().zip(color).map(|(a, b)| a * b).sum())
    }

    /// OKLab (Ottosson, A perceptual color space for image processing, 2020).
    fn oklab(color: Color) -> Color {
        let cones = times(
            [
                [0.412_221, 0.536_333, 0.051_446],
                [0.211_903, 0.680_7, 0.107_397],
                [0.088_302, 0.281_719, 0.629_979],
            ],
            color,
        );
        times(
            [
                [0.210_454, 0.793_618, -0.004_072],
                [1.977_998, -2.428_592, 0.450_594],
                [0.025_904, 0.782_772, -0.808_676],
            ],
            cones.map(f64::cbrt),
        )
    }

    /// Least distance of two colors.
    fn least(colors: &[Color]) -> f64 {
        let labs: Vec<Color> = colors.iter().map(|color| oklab(*color)).collect();
        let distance = |a: &Color, b: &Color| {
            a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        let pairs = labs
            .iter()
            .enumerate()
            .flat_map(|(at, one)| labs[at + 1..].iter().map(move |other| distance(one, other)));
        pairs.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn colors_differ_from_each_other_and_from_the_page() {
        for (dark, apart) in [(false, 0.14), (true, 0.10)] {
            let (colors, paper) = colors(dark);
            for color in &colors {
                let (one, other) = (luminance(*color) + 0.05, luminance(paper) + 0.05);
                // WCAG 2, 1.4.11.
                assert!(one.max(other) / one.min(other) >= 3.0, "{color:?}");
            }
            assert!(least(&colors) >= apart, "dark {dark}: {}", least(&colors));
            for deficiency in DEFICIENCIES {
                let seen = |color: &Color| times(deficiency, *color).map(|own| own.clamp(0.0, 1.0));
                let seen: Vec<Color> = colors.iter().map(seen).collect();
                assert!(least(&seen) >= 0.04, "dark {dark}: {}", least(&seen));
            }
        }
    }

    #[test]
    fn light_colors_are_those_of_the_style_sheet() {
        for look in 0..LOOKS.len() {
            let rule = format!("--f{look}: #{:06x};", light(look));
            assert!(STYLE.contains(&rule), "{rule}");
        }
    }

    #[test]
    fn names_have_their_look_and_others_a_free_one() {
        let names = ["xfs", "bcachefs", "ext2", "xfs"].map(String::from);
        let looks = of(&names);
        assert_eq!(looks[..4], [3, 1, 0, 2]);
        let mut all = looks.clone();
        all.sort_unstable();
        assert_eq!(all, (0..COUNT).collect::<Vec<_>>());
        assert_eq!(of(&[]), all);
        assert!(style(&looks).starts_with(".s0 { --c: var(--f3); }\n.s1 { --c: var(--f1); }\n"));
    }

    #[test]
    fn only_markers_in_use_are_defined() {
        let looks = of(&[]);
        assert_eq!(definitions(&looks, &["#m1"]), "");
        let defined = definitions(&looks, &["", "<use href=\"#m10\"/>"]);
        assert!(defined.contains("id=\"m10\" class=\"m mh s10\" d=\"M-3.9"), "{defined}");
        assert_eq!(defined.matches("<path").count(), 1);
    }
}

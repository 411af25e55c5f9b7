use super::*;
use crate::fixture;

/// Views that together have charts of all kinds.
fn views() -> [(&'static str, View); 2] {
    [
        ("iozone", View::new(&fixture::record())),
        ("dbench", View::new(&fixture::dbench::with(&[1, 2, 4], 6))),
    ]
}

#[test]
fn every_figure_is_self_contained() {
    for (name, view) in views() {
        let charts: Vec<Chart> = charts(&view).collect();
        assert_eq!(charts.len(), figures::all(&view).count(), "{name}");
        for chart in charts {
            for foreign in [" class=", " style=", "var(", "color-mix", "calc(", "=\"\"", "NaN"] {
                assert!(!chart.svg.contains(foreign), "{name} {}: {foreign}", chart.name);
            }
            // Each line of a caption is a separate element.
            let words = chart.svg.split('<').filter_map(|part| Some(part.split_once('>')?.1));
            let words = words.collect::<Vec<_>>().join(" ");
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            let interval = "95 % confidence interval";
            for label in [interval, "is better", "n = ", view.facts.run.as_str(), "fslab "] {
                assert!(words.contains(label), "{name} {}: no {label}", chart.name);
            }
        }
    }
}

#[test]
fn one_of_each_kind_can_be_drawn() {
    for (name, view) in views() {
        let mut drawn: Vec<Kind> = Vec::new();
        for chart in charts(&view) {
            if drawn.contains(&chart.kind) {
                continue;
            }
            let small = chart.png(0.25).unwrap();
            assert!(small.starts_with(b"\x89PNG\r\n\x1a\n"), "{name} {}", chart.name);
            assert_eq!(small, chart.png(0.25).unwrap(), "the same bytes again");
            drawn.push(chart.kind);
        }
    }
}

/// Characters are compared as rendered PNG files: a missing glyph gives the same file as a space or
/// as an unsupported character.
#[test]
fn letters_arrows_and_marks_are_in_the_fonts() {
    let draw = |text: &str| {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"20\" height=\"20\">\
             <text x=\"2\" y=\"15\" font-size=\"14\" font-family=\"Noto Sans\">{text}</text></svg>"
        );
        png::png(&svg, 1.0).unwrap()
    };
    let nothing = draw(" ");
    let box_of_the_unknown = draw("\u{1f600}");
    for c in "aZ5é×±µδ–—…·’≥≤↑↓→▲▼=?■●".chars() {
        let drawn = draw(&c.to_string());
        assert!(drawn != nothing && drawn != box_of_the_unknown, "{c} is not drawn");
    }
}

#[test]
fn hostile_text_stays_text() {
    let mut record = fixture::record();
    record.info.title = "</text><script>alert(1)</script>\u{1b}[31m\u{0}\u{7}".into();
    record.info.id = "../../etc/passwd\n<b>".into();
    record.info.storage = format!("]]>&quot;\u{ffff}{}", "x".repeat(3000));
    for cell in &mut record.cells {
        if cell.cell.filesystem.name == "xfs" {
            cell.cell.filesystem.name = "x\u{1b}[2J<&\"'>\u{b}fs".into();
        }
    }
    let view = View::new(&record);
    let chart = charts(&view).next().unwrap();
    assert!(!chart.svg.contains("<script") && !chart.svg.contains("<b>"));
    assert!(!chart.svg.chars().any(|c| c.is_control() && c != '\n'));
    assert!(chart.png(0.25).is_ok(), "{}", chart.svg);
}

#[test]
fn a_picture_too_large_is_refused() {
    let view = View::new(&fixture::record());
    let chart = charts(&view).next().unwrap();
    for scale in [1e6, 0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = chart.png(scale).unwrap_err().to_string();
        assert!(error.contains("pixels a unit"), "{error}");
    }
}

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::{
    document::terminal::{ascii, wrapped::width_of},
    fixture,
};

/// Views in which every section has content.
static VIEWS: LazyLock<Vec<View>> = LazyLock::new(|| {
    vec![
        View::new(&fixture::with_records(&[4, 16, 64].map(model::Bytes::kib), "sweep")),
        View::new(&fixture::dbench::with(&[1, 2, 4], 6)),
        View::new(&fixture::tasks::record()),
    ]
});

fn check(view: &View, width: usize, detail: bool) -> Result<(), TestCaseError> {
    for color in [false, true] {
        let text = terminal(view, &TerminalOptions { width, color, detail });
        for line in text.lines() {
            prop_assert!(width_of(line) <= width, "{} > {width}: {line:?}", width_of(line));
            let plain = if color { line.replace('\u{1b}', "") } else { line.to_owned() };
            prop_assert!(!plain.chars().any(char::is_control), "{line:?}");
        }
        prop_assert!(ascii(&text).is_ascii());
    }
    Ok(())
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for view in VIEWS.iter() {
        for width in [60, 80, 120] {
            for detail in [false, true] {
                check(view, width, detail).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_name_keeps_the_layout(
        title in ".{0,200}",
        name in "[^\n]{1,120}",
        reason in ".{0,300}",
        word in "[a-z/]{100,200}",
        width in 60_usize..140,
    ) {
        let mut view = VIEWS[1].clone();
        view.facts.title = title;
        view.facts.conditions = word.clone();
        let name = crate::units::one_line(&name);
        view.filesystems[0].name.clone_from(&name);
        for table in view.details.iter_mut().flatten().map(|own| &mut own.ranked) {
            table.title.clone_from(&word);
            if let Some(row) = table.rows.first_mut() {
                row.title.clone_from(&name);
            }
            if let Some(column) = table.columns.last_mut() {
                column.title.clone_from(&word);
            }
            if let Some(row) = table.rows.last_mut() {
                row.body = crate::view::Body::Missing(format!("{reason} {word}"));
            }
        }
        for scaled in &mut view.scaling {
            scaled.lines[0].series.name.clone_from(&name);
        }
        check(&view, width, true)?;
    }
}

#[test]
fn sweeps_and_repetitions_are_drawn() {
    let options = TerminalOptions { width: 80, color: false, detail: true };
    let text = |options: &TerminalOptions| {
        terminal(&VIEWS[1], options).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = text(&options);
    assert!(text.contains("Repetitions in order, from minimum to maximum"));
    assert!(
        text.contains("from zero to the maximum of all; higher is better ↑; n = 6 repetitions")
    );
}

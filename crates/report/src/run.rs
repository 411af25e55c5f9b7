//! Document of a run.

use crate::{
    document::{Block, Item, Section, Style},
    view::View,
};

/// Missing and incomplete results.
pub(crate) fn missing(view: &View) -> Option<Section> {
    let item = |hole: &crate::view::Missing| {
        let text = format!("{} ({})", hole.reason, hole.workloads.join("; "));
        Item::named(format!("{} {}", hole.filesystem, hole.what), text)
    };
    let list = Block::list(Style::Bullets, view.missing.iter().map(item));
    Section::new("missing", "Missing results", list.into_iter().collect()).some()
}

/// All warnings with their hints.
pub(crate) fn warnings(view: &View) -> Option<Section> {
    let item = |row: &crate::view::WarningRow| {
        let places = match &row.places[..] {
            [place] => place.clone(),
            places => format!("{} times in {} results", row.count, places.len()),
        };
        Item {
            id: format!("warning-{}", row.code),
            term: format!("{} ({}, {places})", row.code, row.severity.name()),
            text: row.message.clone(),
            hint: row.hint.into(),
            ..Item::default()
        }
    };
    let list = Block::list(Style::Bullets, view.warnings.iter().map(item));
    Section::new("warnings", "Warnings", list.into_iter().collect()).some()
}

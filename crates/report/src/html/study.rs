//! Section of a study: its tables and charts in its order, before those of the suites.

use super::tables::{Points, table_html};
use crate::{
    document::Figure,
    figures,
    view::{Part, View},
};

/// Section of the study.
pub(super) struct StudySection<'a> {
    pub(super) title: &'a str,
    pub(super) notes: &'a [String],
    pub(super) parts: Vec<StudyPart<'a>>,
}

/// Part of the section.
pub(super) enum StudyPart<'a> {
    /// Table as HTML.
    Table(String),
    /// Chart.
    Plot(Box<Figure>),
    /// Links to charts in other sections: anchors and labels.
    Links(&'a str, &'a [(String, String)]),
    /// Part that the run does not have, with the reason.
    Missing(&'a str, &'a str),
}

/// Section of the study that the plan names, if any.
pub(super) fn section<'a>(view: &'a View, points: &Points) -> Option<StudySection<'a>> {
    let study = view.study.as_ref()?;
    let parts = study.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(StudyPart::Table(table_html(table, points))),
        Part::Totals(_) | Part::Capped(_) | Part::Normalized(_) => {
            Some(StudyPart::Plot(Box::new(figures::of_part(part)?)))
        }
        Part::Links { title, targets } => Some(StudyPart::Links(title, targets)),
        Part::Absent { title, reason } => Some(StudyPart::Missing(title, reason)),
    });
    Some(StudySection { title: &study.title, notes: &study.notes, parts: parts.collect() })
}

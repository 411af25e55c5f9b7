//! The view of a study: its tables and charts in its order, before those of the suites.

use super::{
    suites::{Plot, plots},
    tables::{Points, table_html},
};
use crate::{
    figures,
    view::{Part, View},
};

/// The section of the study.
pub(super) struct StudySection<'a> {
    pub(super) title: &'a str,
    pub(super) notes: &'a [String],
    pub(super) parts: Vec<StudyPart<'a>>,
}

/// One thing in it.
pub(super) enum StudyPart<'a> {
    /// A table, as markup.
    Table(String),
    /// A chart.
    Plot(Box<Plot<'a>>),
    /// Charts elsewhere: anchors and their words.
    Links(&'a str, &'a [(String, String)]),
    /// What the run has not, and why.
    Absent(&'a str, &'a str),
}

/// The section, where the plan names a study.
pub(super) fn section<'a>(view: &'a View, points: &Points) -> Option<StudySection<'a>> {
    let study = view.study.as_ref()?;
    let parts = study.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(StudyPart::Table(table_html(table, view, points))),
        Part::Totals(_) | Part::Capped(_) | Part::Normalized(_) => {
            let plot = plots(figures::of_part(part).into_iter().collect(), view).pop()?;
            Some(StudyPart::Plot(Box::new(plot)))
        }
        Part::Links { title, targets } => Some(StudyPart::Links(title, targets)),
        Part::Absent { title, reason } => Some(StudyPart::Absent(title, reason)),
    });
    Some(StudySection { title: &study.title, notes: &study.notes, parts: parts.collect() })
}

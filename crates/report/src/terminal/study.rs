//! The view of a study: its tables in its order, before those of the suites.

use super::Page;
use crate::view::{Part, View};

impl Page {
    /// The tables of the study in its order, and what is missing in its place.
    pub(super) fn study(&mut self, view: &View) {
        let Some(study) = &view.study else { return };
        self.heading(&study.title);
        study.notes.iter().for_each(|note| self.wrapped("- ", "  ", &format!("{note}.")));
        for part in &study.parts {
            match part {
                Part::Table(table) => self.matrix(table),
                Part::Absent { title, reason } => {
                    self.line("");
                    self.wrapped("", "", &format!("{title}: {reason}."));
                }
                Part::Links { .. } | Part::Totals(_) | Part::Capped(_) | Part::Normalized(_) => {}
            }
        }
    }
}

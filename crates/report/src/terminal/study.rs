//! Study section: tables in the order of the study, before those of the suites.

use crate::{
    document::terminal::Page,
    view::{Part, View},
};

impl Page {
    /// Tables of the study, with the reasons for missing ones.
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

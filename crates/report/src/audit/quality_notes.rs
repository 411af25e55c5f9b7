//! Quality notes: findings of an audit about single cells, for tables and charts.

use analysis::audit::{Cell, Finding};

use super::Audit;

/// Kind of a quality note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QualityNoteKind {
    /// The text is not a well-formed number.
    Malformed,
    /// Another table prints another value of the same quantity.
    Conflicting,
    /// Another quantity has the same value, which is unlikely by chance.
    Repeated,
}

impl QualityNoteKind {
    /// All kinds in the order of an audit.
    pub(crate) const ALL: [Self; 3] = [Self::Malformed, Self::Conflicting, Self::Repeated];

    /// Mark next to the number.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "malformed-number",
            Self::Conflicting => "conflicting-values",
            Self::Repeated => "repeated-value",
        }
    }
}

/// Quality note about one cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QualityNote {
    pub(crate) kind: QualityNoteKind,
    /// Index in [`Audit::cells`].
    pub(crate) cell: usize,
    /// Short text next to the number.
    pub(crate) short: String,
    /// Sentence that describes the finding.
    pub(crate) sentence: String,
    /// Other readings of a malformed text, unless another cell confirms one.
    pub(crate) others: Vec<f64>,
}

impl Audit {
    /// Audited cells in order.
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.table.cells
    }

    /// Quality notes of all cells, in the order of the findings. Of two conflicting values, the
    /// later one is marked. Of two duplicates, both are marked, because the copy cannot be
    /// identified.
    pub(crate) fn quality_notes(&self) -> Vec<QualityNote> {
        self.findings.iter().flat_map(|finding| self.notes_of(finding)).collect()
    }

    fn notes_of(&self, finding: &Finding) -> Vec<QualityNote> {
        let note = |kind, cell, short| QualityNote {
            kind,
            cell,
            short,
            sentence: self.sentence(finding),
            others: Vec::new(),
        };
        let printed = |cell: usize| self.cells()[cell].printed.clone();
        let table = |cell: usize| {
            let at = self.cells()[cell].at.get("table");
            at.map_or_else(|| self.cell(cell), |table| format!("table {table}"))
        };
        let test = |cell: usize| self.cells()[cell].at.get("test").cloned().unwrap_or_default();
        match finding {
            Finding::Malformed { cell, others, confirmed, .. } => {
                let short = format!("printed {}", printed(*cell));
                let mut own = note(QualityNoteKind::Malformed, *cell, short);
                if confirmed.is_none() {
                    own.others.clone_from(others);
                }
                vec![own]
            }
            Finding::Conflicting { first, second, .. } => {
                let short = format!("{} has {}", table(*first), printed(*first));
                vec![note(QualityNoteKind::Conflicting, *second, short)]
            }
            Finding::Duplicated { first, second, .. } => [(*first, *second), (*second, *first)]
                .map(|(cell, other)| {
                    let short = format!("same as {}, {}", table(other), test(other));
                    note(QualityNoteKind::Repeated, cell, short)
                })
                .into(),
            Finding::DuplicateTest(_) | Finding::MissingCell { .. } | Finding::Granular { .. } => {
                Vec::new()
            }
        }
    }
}

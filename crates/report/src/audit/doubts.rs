//! What an audit found against single cells, for whoever shows them.

use analysis::audit::{Cell, Finding};

use super::Audit;

/// Why a number is doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DoubtKind {
    /// Its text is no well-formed number.
    Malformed,
    /// Another table prints something else for the same thing.
    Differs,
    /// Another thing has the same value, and chance is an unlikely cause.
    Repeated,
}

impl DoubtKind {
    /// All of them, in the order of an audit.
    pub(crate) const ALL: [Self; 3] = [Self::Malformed, Self::Differs, Self::Repeated];

    /// What stands at the number.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "D-MALFORMED",
            Self::Differs => "D-DIFFERS",
            Self::Repeated => "D-REPEATED",
        }
    }
}

/// One doubt about one cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Doubt {
    pub(crate) kind: DoubtKind,
    /// The cell, by its index in [`Audit::cells`].
    pub(crate) cell: usize,
    /// A few words to stand at the number.
    pub(crate) short: String,
    /// The finding in a sentence.
    pub(crate) sentence: String,
    /// What else a malformed text may mean, where no other cell confirms a reading.
    pub(crate) others: Vec<f64>,
}

impl Audit {
    /// The cells that were audited, in their order.
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.table.cells
    }

    /// Every doubt about a single cell, in the order of the findings. Of two that differ the later
    /// is doubted; of two that are equal both are, since which is the copy cannot be seen.
    pub(crate) fn doubts(&self) -> Vec<Doubt> {
        self.findings.iter().flat_map(|finding| self.doubts_of(finding)).collect()
    }

    fn doubts_of(&self, finding: &Finding) -> Vec<Doubt> {
        let doubt = |kind, cell, short| Doubt {
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
                let mut own = doubt(DoubtKind::Malformed, *cell, short);
                if confirmed.is_none() {
                    own.others.clone_from(others);
                }
                vec![own]
            }
            Finding::Differs { first, second, .. } => {
                let short = format!("{} has {}", table(*first), printed(*first));
                vec![doubt(DoubtKind::Differs, *second, short)]
            }
            Finding::Repeats { first, second, .. } => [(*first, *second), (*second, *first)]
                .map(|(cell, other)| {
                    let short = format!("same as {}, {}", table(other), test(other));
                    doubt(DoubtKind::Repeated, cell, short)
                })
                .into(),
            Finding::Repeated(_) | Finding::Hole { .. } | Finding::Granular { .. } => Vec::new(),
        }
    }
}

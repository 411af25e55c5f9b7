//! Warnings of a run, collected by code with the places where they stand.

use std::collections::BTreeMap;

use model::{RunRecord, Warning, warning::Level};

use crate::units::one_line;

/// Too few repeats, which a budget may be the reason of.
const FEW: &str = "W-FEW";

/// All warnings of one code.
#[derive(Clone, Debug)]
pub(crate) struct WarningRow {
    pub(crate) code: &'static str,
    pub(crate) level: Level,
    /// What was seen: the first time, or each different thing where that is what matters.
    pub(crate) message: String,
    pub(crate) cure: &'static str,
    /// How often it was seen.
    pub(crate) count: u32,
    /// Where, without repetition, in the order of the report.
    pub(crate) places: Vec<String>,
}

/// Whether a warning is about a thing with a name rather than an amount, so that one of them does
/// not speak for the others.
fn names_something(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::Amended { .. }
            | Warning::OptionGone { .. }
            | Warning::Lacks { .. }
            | Warning::StandIn { .. }
            | Warning::ReadBack { .. }
    )
}

/// Collects warnings while the view is built.
pub(crate) struct Register {
    rows: BTreeMap<&'static str, WarningRow>,
}

impl Register {
    /// Starts with the warnings about the run as a whole.
    pub(crate) fn new(record: &RunRecord) -> Self {
        let mut register = Self { rows: BTreeMap::new() };
        for warning in &record.warnings {
            register.add(warning, "the whole run");
        }
        register
    }

    /// Notes one warning at one place; not what cannot be seen, which stands among the conditions.
    pub(crate) fn add(&mut self, warning: &Warning, place: &str) {
        if matches!(warning, Warning::Absent { .. }) {
            return;
        }
        let row = self.rows.entry(warning.code()).or_insert_with(|| WarningRow {
            code: warning.code(),
            level: warning.level(),
            message: one_line(&warning.message()),
            cure: warning.cure(),
            count: 0,
            places: Vec::new(),
        });
        row.count += 1;
        let message = one_line(&warning.message());
        if names_something(warning) && !row.message.contains(&message) {
            row.message = format!("{}; {message}", row.message);
        }
        if !row.places.iter().any(|known| known == place) {
            row.places.push(place.to_owned());
        }
    }

    /// The rows, gravest level first, then by code.
    pub(crate) fn into_rows(self) -> Vec<WarningRow> {
        let mut rows: Vec<WarningRow> = self.rows.into_values().collect();
        let budget = rows.iter().find(|row| row.code == Warning::OverBudget.code());
        let places = budget.map_or(Vec::new(), |row| row.places.clone());
        // A plan without `repeats` is not cured by leaving it out.
        for row in rows.iter_mut().filter(|row| row.code == FEW) {
            if row.places.iter().all(|place| places.contains(place)) {
                row.cure = Warning::OverBudget.cure();
            }
        }
        rows.sort_by(|a, b| b.level.cmp(&a.level).then(a.code.cmp(b.code)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_what_cures_too_few_repeats_where_it_ended_them() {
        let few = Warning::Few { n: 4, needed: 6 };
        let cure = |places: &[&str]| {
            let mut register = Register { rows: BTreeMap::new() };
            register.add(&Warning::OverBudget, "ext4, write");
            places.iter().for_each(|place| register.add(&few, place));
            let rows = register.into_rows();
            rows.iter().find(|row| row.code == few.code()).unwrap().cure
        };
        assert_eq!(few.code(), FEW);
        assert_eq!(cure(&["ext4, write"]), Warning::OverBudget.cure());
        assert_eq!(cure(&["ext4, write", "xfs, write"]), few.cure());
    }
}

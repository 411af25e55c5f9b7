//! Warnings of a run, collected by code with the places where they stand.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

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
#[derive(Default)]
pub(crate) struct Register {
    rows: BTreeMap<&'static str, Seen>,
}

/// What was seen of one code.
struct Seen {
    level: Level,
    cure: &'static str,
    /// Whether each different message counts, and not the first one alone.
    each: bool,
    /// The messages that count, in the order of appearance.
    messages: Vec<String>,
    count: u32,
    places: Vec<String>,
    /// The same, to be looked up.
    known: BTreeSet<String>,
}

impl Seen {
    fn message(&mut self, message: String) {
        if self.each && !self.messages.contains(&message) {
            self.messages.push(message);
        }
    }

    fn place(&mut self, place: &str) {
        if self.known.insert(place.to_owned()) {
            self.places.push(place.to_owned());
        }
    }
}

impl Register {
    /// Starts with the warnings about the run as a whole.
    pub(crate) fn new(record: &RunRecord) -> Self {
        let mut register = Self::default();
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
        let message = || one_line(&warning.message());
        let row = self.rows.entry(warning.code()).or_insert_with(|| Seen {
            level: warning.level(),
            cure: warning.cure(),
            each: names_something(warning),
            messages: vec![message()],
            count: 0,
            places: Vec::new(),
            known: BTreeSet::new(),
        });
        row.count += 1;
        if row.each {
            row.message(message());
        }
        row.place(place);
    }

    /// Adds what another one collected after this one.
    pub(crate) fn append(&mut self, other: Self) {
        for (code, seen) in other.rows {
            match self.rows.entry(code) {
                Entry::Vacant(none) => {
                    none.insert(seen);
                }
                Entry::Occupied(mut row) => {
                    let row = row.get_mut();
                    row.count += seen.count;
                    seen.messages.into_iter().for_each(|message| row.message(message));
                    seen.places.iter().for_each(|place| row.place(place));
                }
            }
        }
    }

    /// The rows, gravest level first, then by code.
    pub(crate) fn into_rows(self) -> Vec<WarningRow> {
        let row = |(code, seen): (&'static str, Seen)| WarningRow {
            code,
            level: seen.level,
            message: seen.messages.join("; "),
            cure: seen.cure,
            count: seen.count,
            places: seen.places,
        };
        let mut rows: Vec<WarningRow> = self.rows.into_iter().map(row).collect();
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
            let mut register = Register::default();
            register.add(&Warning::OverBudget, "ext4, write");
            places.iter().for_each(|place| register.add(&few, place));
            let rows = register.into_rows();
            rows.iter().find(|row| row.code == few.code()).unwrap().cure
        };
        assert_eq!(few.code(), FEW);
        assert_eq!(cure(&["ext4, write"]), Warning::OverBudget.cure());
        assert_eq!(cure(&["ext4, write", "xfs, write"]), few.cure());
    }

    #[test]
    fn what_was_collected_apart_is_as_if_it_had_been_together() {
        let lacks = |what: &str| Warning::Lacks { what: what.into(), why: "EOPNOTSUPP".into() };
        let warnings = [
            (Warning::Few { n: 4, needed: 6 }, "a"),
            (lacks("reflinks"), "a"),
            (Warning::Few { n: 3, needed: 6 }, "b"),
            (Warning::Few { n: 2, needed: 6 }, "a"),
            (lacks("reflinks"), "c"),
            (lacks("quota"), "a"),
        ];
        let collected = |warnings: &[(Warning, &str)]| {
            let mut register = Register::default();
            warnings.iter().for_each(|(warning, place)| register.add(warning, place));
            register
        };
        let rows = |register: Register| format!("{:#?}", register.into_rows());
        let together = rows(collected(&warnings));
        assert!(together.contains("reflinks") && together.contains("quota"), "{together}");
        for cut in 0..=warnings.len() {
            let mut first = collected(&warnings[..cut]);
            first.append(collected(&warnings[cut..]));
            assert_eq!(rows(first), together);
        }
    }
}

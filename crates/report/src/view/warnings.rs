//! Warnings of a run by code, with the results they apply to.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use model::{RunRecord, Warning, warning::Severity};

use crate::units::one_line;

/// Code of a warning that the time limit can cause.
const FEW: &str = "too-few-repetitions";

/// Place of a warning about all results.
pub(crate) const WHOLE_RUN: &str = "the whole run";

/// All warnings of one code.
#[derive(Clone, Debug)]
pub(crate) struct WarningRow {
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    /// Message of the result that is affected most; all different messages if they name objects.
    pub(crate) message: String,
    /// True if other results are affected less.
    pub(crate) differs: bool,
    pub(crate) hint: &'static str,
    /// Number of occurrences.
    pub(crate) count: u32,
    /// Affected results in the order of the report, without duplicates.
    pub(crate) places: Vec<String>,
}

/// True if the message of a warning names an object, so that the first message does not represent
/// the others.
fn names_something(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::PlanOverridden { .. }
            | Warning::OptionRemoved { .. }
            | Warning::NotSupported { .. }
            | Warning::SettingEmulated { .. }
            | Warning::SettingNotApplied { .. }
    )
}

/// Size of the effect that a warning states, for the comparison with others of its code; 0 if it
/// states none.
fn extent(warning: &Warning) -> f64 {
    if let Warning::WideInterval { half_width: share, .. }
    | Warning::NotSteadyState { range: share, .. }
    | Warning::OtherCpuLoad { share, .. }
    | Warning::OtherIoLoad { share, .. }
    | Warning::CpuSteal { share }
    | Warning::GeneratorBound { share, .. } = warning
    {
        share.0
    } else {
        0.0
    }
}

/// Collects warnings while the view is built.
#[derive(Default)]
pub(crate) struct WarningCollector {
    rows: BTreeMap<&'static str, Seen>,
}

/// Occurrences of one code.
struct Seen {
    severity: Severity,
    hint: &'static str,
    /// True if all different messages are kept, not only that of the largest extent.
    each: bool,
    /// Extent of the message.
    extent: f64,
    /// True if extents differ.
    differs: bool,
    /// Messages in the order of occurrence.
    messages: Vec<String>,
    count: u32,
    places: Vec<String>,
    /// The same places as a set, for lookup.
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

impl WarningCollector {
    /// Collector with the warnings about the whole run.
    pub(crate) fn new(record: &RunRecord) -> Self {
        let mut collector = Self::default();
        for warning in &record.warnings {
            collector.add(warning, "the whole run");
        }
        collector
    }

    /// Adds a warning about a result. Ignores unavailable data, which is listed with the run
    /// conditions.
    pub(crate) fn add(&mut self, warning: &Warning, place: &str) {
        if matches!(warning, Warning::NotAvailable { .. }) {
            return;
        }
        let message = || one_line(&warning.message());
        let row = self.rows.entry(warning.code()).or_insert_with(|| Seen {
            severity: warning.severity(),
            hint: warning.hint(),
            each: names_something(warning),
            extent: extent(warning),
            differs: false,
            messages: vec![message()],
            count: 0,
            places: Vec::new(),
            known: BTreeSet::new(),
        });
        row.count += 1;
        if row.each {
            row.message(message());
        }
        let extent = extent(warning);
        row.differs |= extent != row.extent;
        if extent > row.extent {
            (row.extent, row.messages) = (extent, vec![message()]);
        }
        row.place(place);
    }

    /// Adds the warnings of another collector after those of this one.
    pub(crate) fn append(&mut self, other: Self) {
        for (code, seen) in other.rows {
            match self.rows.entry(code) {
                Entry::Vacant(none) => {
                    none.insert(seen);
                }
                Entry::Occupied(mut row) => {
                    let row = row.get_mut();
                    row.count += seen.count;
                    row.differs |= seen.differs || seen.extent != row.extent;
                    if seen.extent > row.extent {
                        (row.extent, row.messages) = (seen.extent, seen.messages);
                    } else {
                        seen.messages.into_iter().for_each(|message| row.message(message));
                    }
                    seen.places.iter().for_each(|place| row.place(place));
                }
            }
        }
    }

    /// Rows, most severe first, then by code.
    pub(crate) fn into_rows(self) -> Vec<WarningRow> {
        let row = |(code, seen): (&'static str, Seen)| WarningRow {
            code,
            severity: seen.severity,
            message: seen.messages.join("; "),
            differs: seen.differs,
            hint: seen.hint,
            count: seen.count,
            places: seen.places,
        };
        let mut rows: Vec<WarningRow> = self.rows.into_iter().map(row).collect();
        let limit = rows.iter().find(|row| row.code == Warning::TimeLimitReached.code());
        let places = limit.map_or(Vec::new(), |row| row.places.clone());
        // The default hint, to remove `repetitions` from the plan, does not help if the time limit
        // closed the cells.
        for row in rows.iter_mut().filter(|row| row.code == FEW) {
            if row.places.iter().all(|place| places.contains(place)) {
                row.hint = Warning::TimeLimitReached.hint();
            }
        }
        rows.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.code.cmp(b.code)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_for_too_few_repetitions_names_the_time_limit_if_it_was_reached() {
        let few = Warning::TooFewRepetitions { n: 4, needed: 6 };
        let hint = |places: &[&str]| {
            let mut collector = WarningCollector::default();
            collector.add(&Warning::TimeLimitReached, "ext4, write");
            places.iter().for_each(|place| collector.add(&few, place));
            let rows = collector.into_rows();
            rows.iter().find(|row| row.code == few.code()).unwrap().hint
        };
        assert_eq!(few.code(), FEW);
        assert_eq!(hint(&["ext4, write"]), Warning::TimeLimitReached.hint());
        assert_eq!(hint(&["ext4, write", "xfs, write"]), few.hint());
    }

    #[test]
    fn appended_collectors_equal_a_single_one() {
        let lacks =
            |what: &str| Warning::NotSupported { what: what.into(), why: "EOPNOTSUPP".into() };
        let warnings = [
            (Warning::TooFewRepetitions { n: 4, needed: 6 }, "a"),
            (lacks("reflinks"), "a"),
            (Warning::TooFewRepetitions { n: 3, needed: 6 }, "b"),
            (Warning::TooFewRepetitions { n: 2, needed: 6 }, "a"),
            (lacks("reflinks"), "c"),
            (lacks("quota"), "a"),
        ];
        let collected = |warnings: &[(Warning, &str)]| {
            let mut collector = WarningCollector::default();
            warnings.iter().for_each(|(warning, place)| collector.add(warning, place));
            collector
        };
        let rows = |collector: WarningCollector| format!("{:#?}", collector.into_rows());
        let together = rows(collected(&warnings));
        assert!(together.contains("reflinks") && together.contains("quota"), "{together}");
        for cut in 0..=warnings.len() {
            let mut first = collected(&warnings[..cut]);
            first.append(collected(&warnings[cut..]));
            assert_eq!(rows(first), together);
        }
    }
}

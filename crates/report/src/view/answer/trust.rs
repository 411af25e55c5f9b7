//! Reliability grade of the results.

use model::{Warning, warning::Severity};

use super::{Named, columns, is_contest};
use crate::{
    units::count,
    view::{
        View,
        warnings::{WHOLE_RUN, WarningRow},
    },
};

/// Reliability of the results, by the rule in docs/method/statistics.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grade {
    Good,
    Limited,
    Poor,
}

impl Grade {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Limited => "limited",
            Self::Poor => "poor",
        }
    }
}

/// Grade and its main reason.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    pub(crate) grade: Grade,
    /// Message of the main warning, number of affected results, and number of further warnings;
    /// `None` without a warning.
    pub(crate) reason: Option<String>,
    pub(crate) hint: Option<&'static str>,
}

/// True for warnings that describe the measured object rather than the quality of the measurement.
fn describes(row: &WarningRow) -> bool {
    let of = |warning: Warning| warning.code() == row.code;
    row.severity == Severity::Info
        || of(Warning::SharedStorage { storage: String::new(), directory: false })
        || of(Warning::PlanOverridden { what: String::new() })
}

/// Poor: nothing was measured, no test compares filesystems although several were measured, or at
/// least half of the results have a blocking warning. Limited: a blocking warning, or a warning
/// that applies to at least a quarter of the results or to the whole run, or an imported run.
/// Warnings that describe the measured object do not count.
pub(super) fn trust(view: &View, tests: &[Named<'_>]) -> Trust {
    let entries: Vec<_> = tests
        .iter()
        .flat_map(|named| &named.test.entries)
        .filter(|entry| entry.summary.is_some())
        .collect();
    let all = entries.len();
    let affected = |row: &WarningRow| {
        let own = entries.iter().filter(|entry| entry.codes.contains(&row.code)).count();
        if row.places == [WHOLE_RUN] { all } else { own }
    };
    let mut causes: Vec<(&WarningRow, usize)> = view
        .warnings
        .iter()
        .filter(|row| !describes(row))
        .map(|row| (row, affected(row)))
        .filter(|(row, numbers)| {
            *numbers > 0 && (row.severity == Severity::Blocking || *numbers * 4 >= all)
        })
        .collect();
    let blocked = entries.iter().filter(|entry| !entry.barring.is_empty()).count();
    let compared = tests.iter().any(is_contest) || columns(view, tests).len() < 2;
    let grade = match causes.is_empty() {
        _ if all == 0 || !compared || blocked * 2 >= all => Grade::Poor,
        true => Grade::Good,
        false => Grade::Limited,
    };
    // The last one is the main cause. If too few results are compared, it is the warning that
    // prevents it.
    let prevents = |row: &WarningRow| grade == Grade::Poor && row.severity == Severity::Blocking;
    causes.sort_by_key(|(row, numbers)| (prevents(row), *numbers, row.severity));
    if all == 0 {
        return Trust { grade, reason: Some("nothing was measured".to_owned()), hint: None };
    }
    if view.facts.imported.is_some() {
        let reason = "imported; the conditions of the measurement were not recorded".to_owned();
        return Trust { grade: grade.max(Grade::Limited), reason: Some(reason), hint: None };
    }
    let main = causes.last();
    let reason = |(row, numbers): &(&WarningRow, usize)| {
        let more = match causes.len() - 1 {
            0 => String::new(),
            others => format!("; {}", count(others, "other cause")),
        };
        let worst = if row.differs { "at worst; " } else { "" };
        format!("{} ({worst}{numbers} of {all} results{more})", row.message)
    };
    Trust { grade, reason: main.map(reason), hint: main.map(|(row, _)| row.hint) }
}

//! Filesystems with missing results, by reason.

use super::{Answer, accounts::REASON_MAX};
use crate::{charts::intervals::shortened, view::View};

/// Filesystems that were not measured or failed for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    /// True if trials failed. Other trials of the filesystem may have results.
    pub(crate) failed: bool,
    pub(crate) filesystems: Vec<String>,
    pub(crate) reason: String,
}

/// Failed filesystems with the reason, one text per reason. The whole reasons if nothing was
/// measured.
pub(crate) fn failures(answers: &[Answer]) -> Vec<String> {
    let failed = answers.iter().flat_map(|answer| &answer.missing).filter(|hole| hole.failed);
    let most = match answers.iter().all(|answer| answer.board.filesystems.is_empty()) {
        true => usize::MAX,
        false => REASON_MAX,
    };
    failed
        .map(|hole| format!("{} ({})", hole.filesystems.join(", "), shortened(&hole.reason, most)))
        .collect()
}

/// Filesystems that no part measured, one text per reason.
pub(crate) fn not_measured(answers: &[Answer]) -> Vec<String> {
    let measured =
        |name: &String| answers.iter().any(|answer| answer.board.filesystems.contains(name));
    let mut listed: Vec<&String> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for hole in answers.iter().flat_map(|answer| &answer.missing).filter(|it| !it.failed) {
        let missing = |name: &&String| !measured(name) && !listed.contains(name);
        let names: Vec<&String> = hole.filesystems.iter().filter(missing).collect();
        if names.is_empty() {
            continue;
        }
        let list: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        texts.push(format!("{} ({})", list.join(", "), hole.reason));
        listed.extend(names);
    }
    texts
}

/// Missing results by reason. Unless trials failed, the hint after the first semicolon is removed.
/// `KERNEL does not support NAME` becomes `not in KERNEL`, so that filesystems share the reason.
pub(super) fn holes(view: &View) -> Vec<Hole> {
    let mut holes: Vec<Hole> = Vec::new();
    for missing in &view.missing {
        let name = missing.filesystem.as_str();
        let failed = missing.what.contains("failed");
        let first = match missing.reason.split_once(';') {
            Some((first, _)) if !failed => first.trim(),
            Some(_) | None => missing.reason.as_str(),
        };
        let reason =
            match first.strip_suffix(name).and_then(|rest| rest.strip_suffix(" does not support "))
            {
                Some(kernel) => format!("not in {kernel}"),
                None => format!("{}: {first}", missing.what),
            };
        match holes.iter_mut().find(|hole| hole.reason == reason) {
            Some(hole) if hole.filesystems.iter().any(|other| other == name) => {}
            Some(hole) => hole.filesystems.push(name.to_owned()),
            None => holes.push(Hole { failed, filesystems: vec![name.to_owned()], reason }),
        }
    }
    holes
}

#[cfg(test)]
mod tests {
    use model::{RunRecord, Warning, record::Outcome};

    use super::*;
    use crate::{
        TerminalOptions, fixture,
        terminal::answer,
        view::answer::{Finding, Grade},
    };

    fn page(views: &[&View]) -> String {
        answer(views, &TerminalOptions { width: 80, color: false, detail: false })
    }

    fn grade(record: &RunRecord) -> Grade {
        Answer::new(&View::new(record)).trust.grade
    }

    fn warned(warning: &Warning, every: usize) -> RunRecord {
        let mut record = fixture::record();
        let trials = record.trials.iter_mut().filter(|trial| trial.cell % every == 0);
        for trial in trials {
            trial.warnings.push((None, warning.clone()));
        }
        record
    }

    #[test]
    fn trust_is_graded_by_the_rule_of_the_documentation() {
        assert_eq!(grade(&fixture::record()), Grade::Good);
        let steal = Warning::CpuSteal { share: model::Ratio(0.2) };
        assert_eq!(grade(&warned(&steal, 100)), Grade::Good, "fewer than a quarter");
        assert_eq!(grade(&warned(&steal, 1)), Grade::Limited);
        let guest = Warning::MeasuredInGuest { kind: model::GuestKind::Tcg, latency: None };
        assert_eq!(grade(&warned(&guest, 1)), Grade::Poor, "all results have a blocking warning");
        let mut few = fixture::record();
        few.trials.retain(|trial| trial.repetition < 3);
        assert_eq!(grade(&few), Grade::Poor, "no test has a comparison");
        let mut empty = fixture::record();
        empty.trials.clear();
        let answer = Answer::new(&View::new(&empty));
        assert_eq!(answer.trust.grade, Grade::Poor);
        assert_eq!(answer.trust.reason.as_deref(), Some("nothing was measured"));
        let answer = Answer::new(&View::new(&warned(&steal, 1)));
        assert!(answer.trust.reason.is_some_and(|reason| reason.contains(" results")));
        assert!(answer.trust.hint.is_some());
    }

    #[test]
    fn a_warning_that_prevents_comparisons_is_the_main_cause() {
        let steal = Warning::CpuSteal { share: model::Ratio(0.2) };
        let guest = Warning::MeasuredInGuest { kind: model::GuestKind::Tcg, latency: None };
        let mut record = warned(&steal, 1);
        record.trials.retain(|trial| trial.outcome == Outcome::Measured);
        for trial in &mut record.trials {
            if record.cells[trial.cell].cell.filesystem.name != "ext4" {
                trial.warnings.push((None, guest.clone()));
            }
        }
        let answer = Answer::new(&View::new(&record));
        let reason = answer.trust.reason.unwrap();
        assert_eq!(answer.trust.grade, Grade::Poor);
        assert!(reason.starts_with(&guest.message()), "{reason}");
        let blocked = format!("No comparison: 4 filesystems have warning {}", guest.code());
        assert_eq!(answer.headline, blocked);
    }

    #[test]
    fn a_skipped_filesystem_has_no_column() {
        let view = View::new(&fixture::record());
        let answer = Answer::new(&view);
        assert!(!answer.board.filesystems.contains(&"jfs".to_owned()));
        let hole = answer.missing.iter().find(|hole| hole.filesystems == ["jfs"]).unwrap();
        assert!(!hole.failed && hole.reason.starts_with("not in"), "{hole:?}");
        assert!(page(&[&view]).contains("Not measured: jfs"));
    }

    #[test]
    fn a_filesystem_measured_in_one_part_is_not_missing() {
        let native = View::new(&fixture::record());
        let mut record = fixture::record();
        for cell in &mut record.cells {
            if cell.cell.filesystem.name == "ext4" {
                cell.cell.filesystem.name = "jfs".into();
            }
        }
        let guest = View::new(&record);
        assert!(Answer::new(&guest).board.filesystems.contains(&"jfs".to_owned()));
        assert!(!page(&[&native, &guest]).contains("Not measured: jfs"));
    }

    #[test]
    fn findings_are_sorted_by_effect_size() {
        let answer = Answer::new(&View::new(&fixture::record()));
        let effects: Vec<f64> = answer.findings.iter().map(|finding| finding.effect).collect();
        assert!(effects.windows(2).all(|pair| pair[0] >= pair[1]), "{effects:?}");
        let slowest = |finding: &&Finding| finding.text.contains("is the slowest");
        let text = &answer.findings.iter().find(slowest).unwrap().text;
        assert!(text.contains("(0.") && text.contains(" × xfs ["), "{text}");
        let fastest = |finding: &&Finding| finding.text.contains("is the fastest");
        let text = &answer.findings.iter().find(fastest).unwrap().text;
        assert!(text.contains("(1."), "{text}");
    }
}

use model::Scale;

use super::*;
use crate::fixture;

/// Run of the study plan at full scale.
fn run() -> RunRecord {
    let mut record = fixture::with_records(&[1, 4, 8, 16].map(Bytes::mib), "iozone-2009");
    record.info.scale = Scale::ONE;
    record
}

fn verdicts(audit: &StudyAudit) -> Vec<(String, Verdict)> {
    audit.all().map(|(statement, one)| (statement.id.clone(), one.verdict)).collect()
}

#[test]
fn statements_are_decided_by_the_results_of_the_run() {
    let audit = StudyAudit::new(&run(), "iozone-2009").unwrap();
    let of = |id: &str| verdicts(&audit).into_iter().find(|(own, _)| own == id).unwrap().1;
    // In the fixture, larger blocks are faster, and xfs is 9 % faster than ext4.
    assert_eq!(of("trend-5"), Verdict::Holds, "random write improves with the block size");
    assert_eq!(of("rank-7b"), Verdict::Holds, "xfs is best at random read");
    assert_eq!(of("trend-4"), Verdict::DoesNotHold, "write depends little on the block size");
    assert_eq!(of("rank-5c"), Verdict::Undecided, "xfs is best at fwrite at every size");
    assert_eq!(of("trend-2"), Verdict::DoesNotHold, "random read of ext4 gains 100 %");
    assert_eq!(of("trend-8"), Verdict::DoesNotHold, "random write of btrfs falls by 7.5 %");
    assert_eq!(of("rank-2a"), Verdict::NotTestable, "ext3 was not measured");
    assert!(audit.found());
    let page = audit.markdown();
    assert!(page.contains(&audit.headline()), "{page}");
    assert!(page.contains("without filesystem"), "levels without results are named:\n{page}");
    let json: Json = serde_json::from_str(&audit.json()).unwrap();
    let first = &json["statements"][0];
    assert_eq!(
        (first["id"].as_str(), json["study"].as_str()),
        (Some("trend-1"), Some("iozone-2009"))
    );
    assert_eq!(json["statements"].as_array().unwrap().len(), verdicts(&audit).len());
}

#[test]
fn blocks_of_a_scaled_run_stand_for_those_of_the_study() {
    let mut record = run();
    let full = verdicts(&StudyAudit::new(&record, "iozone-2009").unwrap());
    for cell in &mut record.cells {
        let size = cell.cell.workload.parameters.get_mut("block_size");
        if let Some(model::Value::Size(size)) = size {
            *size = Bytes(size.0 / 64);
        }
    }
    let missing = StudyError::Other { suite: "iozone", study: "iozone-2009" };
    assert_eq!(StudyAudit::new(&record, "iozone-2009").unwrap_err(), missing);
    record.info.scale = Scale::parse("1/64").unwrap();
    let scaled = StudyAudit::new(&record, "iozone-2009@published").unwrap();
    assert_eq!(verdicts(&scaled), full);
}

#[test]
fn filesystems_that_the_study_lacks_do_not_change_a_verdict() {
    let mut record = run();
    let before = verdicts(&StudyAudit::new(&record, "iozone-2009").unwrap());
    let keep = |name: &str| ["ext4", "xfs", "btrfs", "jfs"].contains(&name);
    let kept = |cell: usize| keep(&record.cells[cell].cell.filesystem.name);
    let trials = record.trials.iter().filter(|trial| kept(trial.cell)).cloned().collect();
    record.trials = trials;
    assert_eq!(verdicts(&StudyAudit::new(&record, "iozone-2009").unwrap()), before);
}

#[test]
fn studies_without_statements_are_named_with_those_that_have_some() {
    let error = StudyAudit::new(&fixture::record(), "study-1999").unwrap_err();
    let text = "there are no statements of `study-1999`; available: tasks-2006, iozone-2009, \
                smallfiles-2011, dbench-2012, bonnie-2012";
    assert_eq!(error.to_string(), text);
    assert_eq!(study_of(&fixture::record()), None);
    assert_eq!(study_of(&run()), Some("iozone-2009"));
}

#[test]
fn statements_of_a_study_without_numbers_are_decided_by_settings_and_clients() {
    let clients = [1, 2, 5, 10, 20, 32, 50, 70, 100, 128, 200];
    let audit = StudyAudit::new(&fixture::dbench::with(&clients, 8), "dbench-2012").unwrap();
    let of = |id: &str| verdicts(&audit).into_iter().find(|(own, _)| own == id).unwrap().1;
    // In the fixture, bfq is 2.4 times as fast as none on ext3 and slower on the others, and btrfs
    // has no maximum.
    assert_eq!(of("heavy-equal"), Verdict::DoesNotHold, "ext2 and ext4 differ by a quarter");
    assert_eq!(of("cfq-little"), Verdict::DoesNotHold);
    assert_eq!(of("ext3-slow-noop"), Verdict::DoesNotHold, "140 % instead of 12 %");
    assert_eq!(of("reiserfs-slow"), Verdict::NotTestable, "reiserfs was not measured");
    assert_eq!(of("btrfs-upward"), Verdict::Holds);
    assert_eq!(of("btrfs-saturates"), Verdict::DoesNotHold);
    assert_eq!(verdicts(&audit).len(), 7);
}

#[test]
fn statements_about_file_sets_are_decided_per_operation_and_cache() {
    let mut record = fixture::smallfile::record();
    let audit = StudyAudit::new(&record, "smallfiles-2011").unwrap();
    let expected = [("xfs-slow", Verdict::Holds), ("jfs-xfs", Verdict::NotTestable)];
    assert_eq!(verdicts(&audit), expected.map(|(id, verdict)| (id.to_owned(), verdict)));
    let json: Json = serde_json::from_str(&audit.json()).unwrap();
    assert_eq!(json["statements"][0]["verdict"], "holds");
    // If another filesystem is the slowest in every test, the statement does not hold.
    for cell in &mut record.cells {
        let name = &mut cell.cell.filesystem.name;
        *name = match name.as_str() {
            "xfs" => "ext2".into(),
            "ext2" => "xfs".into(),
            _ => name.clone(),
        };
    }
    let audit = StudyAudit::new(&record, "smallfiles-2011").unwrap();
    assert_eq!(verdicts(&audit)[0].1, Verdict::DoesNotHold);
}

#[test]
fn the_study_section_of_a_report_contains_the_verdicts() {
    let record = fixture::smallfile::record();
    let mut view = crate::View::new(&record);
    let without = crate::run::markdown(&view);
    view.check_statements(&record);
    let page = crate::run::markdown(&view);
    assert!(!without.contains(STATEMENTS) && page.contains(STATEMENTS), "{page}");
    assert!(page.contains("holds: xfs is slow with small files"), "{page}");
    assert!(page.contains("not testable: jfs"), "{page}");
    assert!(page.contains("without filesystem ext3, reiserfs: no results"), "{page}");
}

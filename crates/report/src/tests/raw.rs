//! Reports of runs with the block device without a filesystem.

use crate::view::FindingKind;
use expect_test::expect;

use model::record::CellRecord;

use super::*;
use crate::{fixture, view::answer::Answer};

/// The usual run with btrfs measured as the device: it is slower than the others.
fn record(filesystems: &[&str]) -> RunRecord {
    let mut record = fixture::with_records(&[Bytes::mib(1)], "raw");
    for cell in &mut record.cells {
        let level = &mut cell.cell.filesystem;
        if level.name == "btrfs" {
            "none".clone_into(&mut level.name);
            "none".clone_into(&mut level.fs_type);
        } else if !filesystems.contains(&level.name.as_str()) {
            cell.state = CellState::Skipped { reason: "not asked for".into() };
        }
        cell.phases.retain(|phase| ["write", "read"].contains(&phase.name.as_str()));
        cell.id = cell.cell.id();
    }
    let skipped = |cell: &CellRecord| matches!(cell.state, CellState::Skipped { .. });
    let kept: Vec<bool> = record.cells.iter().map(|cell| !skipped(cell)).collect();
    record.trials.retain(|trial| kept[trial.cell]);
    record
}

#[test]
fn the_device_is_a_reference_and_not_ranked() {
    let view = View::new(&record(&["ext4", "xfs"]));
    let test = &view.suites[0].points[0].tests[0];
    let name = |at: usize| view.filesystems[at].name.as_str();
    let order: Vec<&str> = test.entries.iter().map(|entry| name(entry.filesystem)).collect();
    assert_eq!(order[2], "none", "the device is below the ranked filesystems: {order:?}");
    assert_eq!(test.family.as_ref().unwrap().members.len(), 2);
    let found = view.findings.by_point.iter().flat_map(|point| &point.findings);
    let texts = found.filter(|it| it.kind == FindingKind::C23).map(|it| it.text.clone());
    expect![[r#"
        Speed relative to the block device: xfs ×1.402 [1.378, 1.429], ext4 ×1.194 [1.179, 1.224] on write, iozone block_size=1MiB (n = 8 repetitions).
        Speed relative to the block device: xfs ×1.392 [1.382, 1.417], ext4 ×1.326 [1.316, 1.352] on read, iozone block_size=1MiB (n = 8 repetitions)."#]].assert_eq(&texts.collect::<Vec<_>>().join("\n"));
    let page = Answer::new(&view);
    expect!["xfs is fastest, or not significantly slower, in 2 of 2 tests"]
        .assert_eq(&page.headline);
    assert!(page.title.contains("2 filesystems"), "{}", page.title);
    let table = &view.details[0][0].ranked;
    assert_eq!(table.columns.last().unwrap().title, "vs. device");
    assert!(view.facts.method.iter().any(|text| text.starts_with("Block device: ")));
}

#[test]
fn one_filesystem_is_compared_with_its_device() {
    let view = View::new(&record(&["ext4"]));
    let page = Answer::new(&view);
    expect![[r#"
        One filesystem was measured, and the block device without a filesystem
        Speed relative to the block device: ext4 ×1.326 [1.316, 1.352] in read.
        Speed relative to the block device: ext4 ×1.194 [1.179, 1.224] in write."#]]
    .assert_eq(&format!(
        "{}\n{}",
        page.headline,
        page.findings.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join("\n")
    ));
}

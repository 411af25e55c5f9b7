//! Reports of runs with the axis `device`.

use crate::view::FindingKind;
use expect_test::expect;

use super::*;
use crate::{fixture::devices, view::answer::Answer};

fn answer(filesystems: &[&str], factor: f64) -> Answer {
    Answer::new(&View::new(&devices::record(filesystems, &["write", "read"], factor)))
}

fn page(answer: &Answer) -> String {
    let findings = answer.findings.iter().map(|finding| format!("- {}\n", finding.text));
    format!("{}\n{}", answer.headline, findings.collect::<String>())
}

#[test]
fn a_difference_is_named_as_the_device_s() {
    let one = answer(&["xfs"], 3.0);
    expect![[r#"
        Device ssd is fastest, or not significantly slower, in 2 of 2 comparisons
        - Device ssd is the fastest in write (3.018 × hdd [2.982, 3.055]) and read (3.012 × hdd [2.985, 3.039]).
    "#]].assert_eq(&page(&one));
    assert!(one.title.contains("1 filesystem · 2 devices · 4 tests"), "{}", one.title);
    assert!(
        one.conditions.starts_with(&devices::STORAGE.replacen("device", "Device", 1)),
        "{}",
        one.conditions
    );
    assert_eq!(one.accounts.text(), None, "each test has a finding about its devices");
    expect![[r#"
        xfs is fastest, or not significantly slower, in 4 of 4 tests; device ssd is fastest, or not significantly slower, in 4 of 4 comparisons
        - Device ssd is the fastest in write on xfs (3.024 × hdd [2.988, 3.061]), write on ext4 (3.018 × hdd [2.971, 3.065]), read on xfs (3.018 × hdd [2.991, 3.045]), and 1 more test.
        - xfs is the fastest in write block_size=1MiB device=ssd (1.175 × ext4 [1.156, 1.183]), write block_size=1MiB device=hdd (1.172 × ext4 [1.154, 1.180]), read block_size=1MiB device=ssd (1.052 × ext4 [1.044, 1.059]), and 1 more test.
    "#]].assert_eq(&page(&answer(&["ext4", "xfs"], 3.0)));
}

#[test]
fn equal_devices_have_no_winner() {
    let equal = answer(&["xfs"], 1.0);
    expect![[r#"
        No significant difference of more than 5 % between devices in 2 comparisons
        - No device differs significantly from the best by more than 5 % in write and read.
    "#]]
    .assert_eq(&page(&equal));
}

#[test]
fn findings_about_devices_have_a_template() {
    let record = devices::record(&["ext4", "xfs"], &["write"], 3.0);
    let view = View::new(&record);
    let findings = view.findings.by_point.iter().flat_map(|point| &point.findings);
    let of_devices = findings.filter(|finding| finding.kind == FindingKind::C19);
    let texts: Vec<&str> = of_devices.map(|finding| finding.text.as_str()).collect();
    expect![[r#"
        Device ssd was the fastest of 2 devices on write, iozone block_size=1MiB, ext4: 3.018 × hdd [2.971, 3.065] (n = 8 and 8).
        Device ssd was the fastest of 2 devices on write, iozone block_size=1MiB, xfs: 3.024 × hdd [2.988, 3.061] (n = 8 and 8)."#]].assert_eq(&texts.join("\n"));
    let tests = view.suites.iter().flat_map(|suite| &suite.points).flat_map(|point| &point.tests);
    let ids: Vec<&str> = tests.map(|test| test.id.as_str()).collect();
    assert!(view.devices.iter().all(|contest| ids.contains(&contest.test.as_str())));
    // The device is a factor like other settings.
    assert_eq!(view.interactions.len(), 1);
    assert_eq!(view.interactions[0].conditions, ["device"]);
    assert!(view.facts.method.iter().any(|text| text.starts_with("Devices: ")));
}

#[test]
fn few_repetitions_give_no_finding_about_devices() {
    let mut record = devices::record(&["xfs"], &["write"], 3.0);
    record.trials.retain(|trial| trial.repetition < 3);
    let view = View::new(&record);
    let open = view.findings.by_point.iter().flat_map(|point| &point.open);
    let open: Vec<String> =
        open.filter(|it| it.kind == FindingKind::C19).map(|withheld| withheld.text()).collect();
    expect!["Inconclusive: fastest device on write, iozone block_size=1MiB, xfs. n = 3, 6 needed. Run at least 6 repetitions on each device."].assert_eq(&open.join("\n"));
    assert!(Answer::new(&view).headline.starts_with("Only xfs was measured"));
}

#[test]
fn a_run_on_one_device_has_no_contest() {
    let mut record = devices::record(&["ext4", "xfs"], &["write"], 3.0);
    let own = |cell: usize, record: &RunRecord| record.cells[cell].label.ends_with("ssd");
    let trials: Vec<_> = record.trials.iter().filter(|it| own(it.cell, &record)).cloned().collect();
    record.trials = trials
        .into_iter()
        .map(|it| model::record::TrialRecord { cell: it.cell / 2, ..it })
        .collect();
    record.cells.retain(|cell| cell.label.ends_with("ssd"));
    let view = View::new(&record);
    assert!(view.devices.is_empty());
    assert!(Answer::new(&view).headline.contains(" is fastest"), "filesystems are compared");
}

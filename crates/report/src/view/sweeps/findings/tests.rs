use crate::view::FindingKind;
use expect_test::{Expect, expect};
use model::{Bytes, RunRecord, Warning};

use super::*;
use crate::{fixture, view::View};

/// Fixture with five block sizes. The values of a filesystem at each size are multiplied by the
/// given factors.
fn record(factors: &[(&str, [f64; 5])]) -> RunRecord {
    let sizes = [1, 2, 4, 8, 16].map(Bytes::mib);
    let mut record = fixture::with_records(&sizes, "own");
    // Two of the tests are enough.
    for cell in &mut record.cells {
        cell.phases.retain(|phase| ["write", "read"].contains(&phase.name.as_str()));
    }
    for trial in &mut record.trials {
        trial.outcome = model::record::Outcome::Measured;
        // Removes the trend of the fixture.
        let level = trial.cell / 6;
        let name = record.cells[trial.cell].cell.filesystem.name.as_str();
        let own =
            factors.iter().find(|(other, _)| *other == name).map_or(1.0, |(_, own)| own[level]);
        let gain = 1.0 + 0.08 * f64::from(u32::try_from(level).unwrap());
        trial.samples.iter_mut().for_each(|sample| sample.value *= own / gain);
    }
    record
}

/// Findings and withheld findings of one test.
fn texts(record: &RunRecord, test: &str) -> String {
    let view = View::new(record);
    let sweep = view.sweeps.iter().find(|sweep| sweep.test == test).unwrap();
    let found = sweep
        .findings
        .findings
        .iter()
        .map(|finding| format!("{:?}: {}", finding.kind, finding.text));
    let open =
        sweep.findings.on_request.iter().map(|own| format!("{:?} open: {}", own.kind, own.text()));
    let lines: Vec<String> =
        std::iter::once(sweep.findings.label.clone()).chain(found).chain(open).collect();
    assert!(sweep.findings.open.is_empty());
    assert!(lines.iter().all(|line| !line.contains("NaN") && !line.contains("inf")));
    lines.join("\n") + "\n"
}

fn check(record: &RunRecord, test: &str, expected: Expect) {
    expected.assert_eq(&texts(record, test));
}

const SHAPES: [(&str, [f64; 5]); 5] = [
    ("ext4", [1.0, 1.09, 1.17, 1.25, 1.34]),
    ("xfs", [1.0; 5]),
    ("btrfs", [1.0, 1.5, 2.1, 1.6, 1.2]),
    ("f2fs", [1.0, 0.5, 0.25, 0.12, 0.06]),
    ("bcachefs", [1.0, 1.04, 0.97, 1.06, 1.05]),
];

#[test]
fn findings_for_each_shape() {
    check(
        &record(&SHAPES),
        "write",
        expect![[r#"
            Write: iozone, over block_size
            C6: Increasing block_size from 1MiB to 16MiB increased durable throughput of ext4 on write, iozone by 34.5 % [33.6 to 35.4 %] (from 410.9 MiB/s [408.7, 413.5] to 553.2 MiB/s [549.4, 555.8]; +7.5 % [7.4 to 7.6 %] per doubling; trend p < 0.001, Holm-adjusted over 5 filesystems; n = 8).
            C7: Durable throughput of xfs on write, iozone did not depend on block_size from 1MiB to 16MiB (within 10 %): largest over smallest median ×1.011, upper 95 % bound ×1.019 (bootstrap; n = 8).
            C8: Durable throughput of btrfs on write, iozone was highest at block_size=4MiB: 720 MiB/s [710, 731]; 100 % of bootstrap resamples agree (levels 1MiB to 16MiB; not monotone, p < 0.001; n = 8).
            C6: Increasing block_size from 1MiB to 16MiB decreased durable throughput of f2fs on write, iozone by a factor of ×0.0598 [0.0593, 0.0604] (from 454.9 MiB/s [451.1, 458.7] to 27.18 MiB/s [27.08, 27.39]; -50.6 % [-50.8 to -50.5 %] per doubling; trend p < 0.001, Holm-adjusted over 5 filesystems; n = 8).
            C6: Increasing block_size from 1MiB to 16MiB increased durable throughput of bcachefs on write, iozone by 10.3 % [5.9 to 13.3 %] (from 256.6 MiB/s [248.0, 262.5] to 284 MiB/s [273, 288]; +2.0 % [1.4 to 2.9 %] per doubling; trend p = 0.018, Holm-adjusted over 5 filesystems; n = 8).
        "#]],
    );
}

#[test]
fn a_blocked_level_withholds_the_finding() {
    let mut record = record(&SHAPES);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == 6) {
        trial.warnings = vec![(None, Warning::ImplausibleResult { what: "twice the bus".into() })];
    }
    check(
        &record,
        "read",
        expect![[r#"
            Read: iozone, over block_size
            C7: Throughput of xfs on read, iozone did not depend on block_size from 1MiB to 16MiB (within 10 %): largest over smallest median ×1.009, upper 95 % bound ×1.020 (bootstrap; n = 8).
            C8: Throughput of btrfs on read, iozone was highest at block_size=4MiB: 3.211 GiB/s [3.160, 3.252]; 100 % of bootstrap resamples agree (levels 1MiB to 16MiB; not monotone, p < 0.001; n = 8).
            C6: Increasing block_size from 1MiB to 16MiB decreased throughput of f2fs on read, iozone by a factor of ×0.0599 [0.0594, 0.0604] (from 2.018 GiB/s [2.000, 2.032] to 0.1210 GiB/s [0.1199, 0.1216]; -50.6 % [-50.7 to -50.5 %] per doubling; trend p < 0.001, Holm-adjusted over 4 filesystems; n = 8).
            C6 open: Inconclusive: effect of block_size on throughput of ext4 on read, iozone. A level failed or is blocked by warnings. See the warnings of the level.
            C6 open: Inconclusive: effect of block_size on throughput of bcachefs on read, iozone. Levels differ (largest over smallest median ×1.094, ×1.078 expected by chance) without a significant trend (p = 0.207) or a single turning point. Inspect the results per level.
        "#]],
    );
}

#[test]
fn few_repetitions_give_no_finding_about_a_trend() {
    let mut few = record(&SHAPES);
    few.trials.retain(|trial| trial.repetition < 5);
    assert!(texts(&few, "write").contains("n = 5, 6 needed"), "{}", texts(&few, "write"));
}

#[test]
fn aa_duplicates_do_not_take_part() {
    let plain = record(&SHAPES);
    let mut duplicated = plain.clone();
    for index in [0, 6, 12, 18, 24] {
        let mut cell = duplicated.cells[index].clone();
        cell.cell.aa_duplicate = true;
        cell.id = cell.cell.id();
        duplicated.cells.push(cell);
        let aa_duplicate = duplicated.cells.len() - 1;
        let own: Vec<_> =
            plain.trials.iter().filter(|trial| trial.cell == index).cloned().collect();
        duplicated.trials.extend(
            own.into_iter().map(|trial| model::record::TrialRecord { cell: aa_duplicate, ..trial }),
        );
    }
    assert_eq!(texts(&duplicated, "write"), texts(&plain, "write"));
}

#[test]
fn changes_within_twofold_are_percentages() {
    let ends = |low, high| Some(Interval { low, high, level: 0.95 });
    let change = |of, low, high| {
        let (word, by) = by(Ratio(of), ends(low, high));
        format!("{word} {by}")
    };
    assert_eq!(change(1.342, 1.310, 1.375), "increased by 34.2 % [31.0 to 37.5 %]");
    assert_eq!(change(0.879, 0.847, 0.908), "decreased by 12.1 % [9.2 to 15.3 %]");
    assert_eq!(change(15.6, 15.1, 16.2), "increased by a factor of ×15.60 [15.10, 16.20]");
    assert_eq!(times(Ratio(1.0421)), "×1.043");
    assert_eq!(times(Ratio(1.042)), "×1.042");
    assert_eq!(signed(Ratio(0.97), ends(0.95, 0.99)), "-3.0 % [-5.0 to -1.0 %]");
    assert_eq!(signed(Ratio(1.031), None), "+3.1 %");
}

#[test]
fn findings_are_in_every_format() {
    let view = View::new(&record(&SHAPES));
    let sweep = view.sweeps.iter().find(|sweep| sweep.test == "write").unwrap();
    // A finding without characters that HTML escapes.
    let finding =
        sweep.findings.findings.iter().find(|finding| finding.kind == FindingKind::C7).unwrap();
    let page = crate::html(&view, &[]);
    assert_eq!(page.matches(&finding.text).count(), 1);
    assert!(page.contains(&format!("id=\"{}\"", finding.test)));
    let markdown = crate::markdown(&view);
    assert!(markdown.contains(" did not depend on "));
    let json: serde_json::Value = serde_json::from_str(&crate::json(&view)).unwrap();
    let findings = json["findings"].as_array().unwrap();
    assert!(findings.iter().any(|own| own["text"] == finding.text.as_str()), "{findings:?}");
    // Withheld findings are in the caption of the figure.
    assert!(page.contains(" No finding for bcachefs: "));
}

#[test]
fn levels_of_a_run_that_drifted_are_compared_in_common_rounds() {
    let mut record = record(&SHAPES);
    let ext4 = |cell: usize| record.cells[cell].cell.filesystem.name == "ext4";
    let first = (0..record.cells.len()).find(|cell| ext4(*cell)).unwrap();
    record.trials.retain(|trial| trial.cell != first || trial.repetition < 6);
    for trial in &mut record.trials {
        let by = 1.0 + 0.02 * f64::from(trial.repetition);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let texts = texts(&record, "write");
    let lines = || texts.lines().filter(|line| line.contains(" of ext4 on write"));
    let cut = "n = 6 in common rounds, because the run may have drifted).";
    assert!(lines().any(|line| line.starts_with("C6: ") && line.ends_with(cut)), "{texts}");
    assert_eq!(texts.matches("in common rounds").count(), 1, "{texts}");
}

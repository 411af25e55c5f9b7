use expect_test::{Expect, expect};
use model::{Bytes, RunRecord, Warning};

use super::*;
use crate::{fixture, view::View};

/// The run at five record sizes; each level of a filesystem is so many times what it would be.
fn record(factors: &[(&str, [f64; 5])]) -> RunRecord {
    let sizes = [1, 2, 4, 8, 16].map(Bytes::mib);
    let mut record = fixture::with_records(&sizes, "own");
    // Two of the tests are enough.
    for cell in &mut record.cells {
        cell.phases.retain(|phase| ["write", "read"].contains(&phase.name.as_str()));
    }
    for trial in &mut record.trials {
        trial.outcome = model::record::Outcome::Measured;
        // The fixture gains with the size; that is taken out.
        let level = trial.cell / 6;
        let name = record.cells[trial.cell].cell.filesystem.name.as_str();
        let own =
            factors.iter().find(|(other, _)| *other == name).map_or(1.0, |(_, own)| own[level]);
        let gain = 1.0 + 0.08 * f64::from(u32::try_from(level).unwrap());
        trial.samples.iter_mut().for_each(|sample| sample.value *= own / gain);
    }
    record
}

/// What is said, and what is not, of one test.
fn told(record: &RunRecord, test: &str) -> String {
    let view = View::new(record);
    let sweep = view.sweeps.iter().find(|sweep| sweep.test == test).unwrap();
    let said =
        sweep.claims.claims.iter().map(|claim| format!("{}: {}", claim.template, claim.text));
    let open =
        sweep.claims.unsaid.iter().map(|own| format!("{} open: {}", own.template, own.text()));
    let lines: Vec<String> =
        std::iter::once(sweep.claims.label.clone()).chain(said).chain(open).collect();
    assert!(sweep.claims.open.is_empty());
    assert!(lines.iter().all(|line| !line.contains("NaN") && !line.contains("inf")));
    lines.join("\n") + "\n"
}

fn check(record: &RunRecord, test: &str, expected: Expect) {
    expected.assert_eq(&told(record, test));
}

const SHAPES: [(&str, [f64; 5]); 5] = [
    ("ext4", [1.0, 1.09, 1.17, 1.25, 1.34]),
    ("xfs", [1.0; 5]),
    ("btrfs", [1.0, 1.5, 2.1, 1.6, 1.2]),
    ("f2fs", [1.0, 0.5, 0.25, 0.12, 0.06]),
    ("bcachefs", [1.0, 1.04, 0.97, 1.06, 1.05]),
];

#[test]
fn every_sentence_and_what_is_withheld() {
    check(
        &record(&SHAPES),
        "write",
        expect![[r#"
            Write: iozone, over record
            C6: Changing record from 1MiB to 16MiB raised durable throughput of ext4 on write, iozone by 34.5 % [33.6 to 35.4 %], from 410.9 MiB/s [408.7, 413.5] to 553.2 MiB/s [549.4, 555.8] (+7.5 % [7.4 to 7.6 %] per doubling; trend p < 0.001, Holm over 5 filesystems; n = 8).
            C7: Durable throughput of xfs on write, iozone was insensitive to record within 10 % from 1MiB to 16MiB: its largest median is ×1.011 of its smallest, and at most ×1.019 (95 % bound by resampling; n = 8).
            C8: Durable throughput of btrfs on write, iozone peaked at record=4MiB, with 720 MiB/s [710, 731]; 100 % of resamples agree (tested from 1MiB to 16MiB; not monotone, p < 0.001; n = 8).
            C6: Changing record from 1MiB to 16MiB lowered durable throughput of f2fs on write, iozone to ×0.0598 [0.0593, 0.0604], from 454.9 MiB/s [451.1, 458.7] to 27.18 MiB/s [27.08, 27.39] (-50.6 % [-50.8 to -50.5 %] per doubling; trend p < 0.001, Holm over 5 filesystems; n = 8).
            C6: Changing record from 1MiB to 16MiB raised durable throughput of bcachefs on write, iozone by 10.3 % [5.9 to 13.3 %], from 256.6 MiB/s [248.0, 262.5] to 284 MiB/s [273, 288] (+2.0 % [1.4 to 2.9 %] per doubling; trend p = 0.018, Holm over 5 filesystems; n = 8).
        "#]],
    );
}

#[test]
fn a_level_that_may_carry_no_claim_takes_the_sentence_with_it() {
    let mut record = record(&SHAPES);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == 6) {
        trial.warnings = vec![(None, Warning::Impossible { what: "twice the bus".into() })];
    }
    check(
        &record,
        "read",
        expect![[r#"
            Read: iozone, over record
            C7: Throughput of xfs on read, iozone was insensitive to record within 10 % from 1MiB to 16MiB: its largest median is ×1.009 of its smallest, and at most ×1.020 (95 % bound by resampling; n = 8).
            C8: Throughput of btrfs on read, iozone peaked at record=4MiB, with 3.211 GiB/s [3.160, 3.252]; 100 % of resamples agree (tested from 1MiB to 16MiB; not monotone, p < 0.001; n = 8).
            C6: Changing record from 1MiB to 16MiB lowered throughput of f2fs on read, iozone to ×0.0599 [0.0594, 0.0604], from 2.018 GiB/s [2.000, 2.032] to 0.1210 GiB/s [0.1199, 0.1216] (-50.6 % [-50.7 to -50.5 %] per doubling; trend p < 0.001, Holm over 4 filesystems; n = 8).
            C6 open: No conclusion on what record does to ext4 on read, iozone: a level failed or must not carry a claim; see the warnings there.
            C6 open: No conclusion on what record does to bcachefs on read, iozone: its levels differ, the largest median ×1.094 of the smallest (×1.078 by chance), but neither a trend (p = 0.207) nor one turn is shown; read the points.
        "#]],
    );
}

#[test]
fn few_repetitions_give_no_finding_about_a_trend() {
    let mut few = record(&SHAPES);
    few.trials.retain(|trial| trial.repeat < 5);
    assert!(told(&few, "write").contains("only 5 repeats"), "{}", told(&few, "write"));
}

#[test]
fn twins_do_not_take_part() {
    let plain = record(&SHAPES);
    let mut twinned = plain.clone();
    for index in [0, 6, 12, 18, 24] {
        let mut cell = twinned.cells[index].clone();
        cell.cell.twin = true;
        cell.id = cell.cell.id();
        twinned.cells.push(cell);
        let twin = twinned.cells.len() - 1;
        let own: Vec<_> =
            plain.trials.iter().filter(|trial| trial.cell == index).cloned().collect();
        twinned.trials.extend(
            own.into_iter().map(|trial| model::record::TrialRecord { cell: twin, ..trial }),
        );
    }
    assert_eq!(told(&twinned, "write"), told(&plain, "write"));
}

#[test]
fn a_change_is_told_in_percent_up_to_twice_and_half() {
    let ends = |low, high| Some(Interval { low, high, level: 0.95 });
    let words = |of, low, high| {
        let (word, by) = by(Ratio(of), ends(low, high));
        format!("{word} {by}")
    };
    assert_eq!(words(1.342, 1.310, 1.375), "raised by 34.2 % [31.0 to 37.5 %]");
    assert_eq!(words(0.879, 0.847, 0.908), "lowered by 12.1 % [9.2 to 15.3 %]");
    assert_eq!(words(15.6, 15.1, 16.2), "raised to ×15.60 [15.10, 16.20]");
    assert_eq!(times(Ratio(1.0421)), "×1.043");
    assert_eq!(times(Ratio(1.042)), "×1.042");
    assert_eq!(signed(Ratio(0.97), ends(0.95, 0.99)), "-3.0 % [-5.0 to -1.0 %]");
    assert_eq!(signed(Ratio(1.031), None), "+3.1 %");
}

#[test]
fn the_sentences_stand_in_every_format() {
    let view = View::new(&record(&SHAPES));
    let sweep = view.sweeps.iter().find(|sweep| sweep.test == "write").unwrap();
    // One without signs that HTML writes in another way.
    let claim = sweep.claims.claims.iter().find(|claim| claim.template == "C7").unwrap();
    let page = crate::html(&view);
    // Among the findings, and under the sweep.
    assert_eq!(page.matches(&claim.text).count(), 2);
    assert!(page.contains(&format!("id=\"{}\"", claim.test)));
    let markdown = crate::markdown(&view);
    assert!(markdown.contains("was insensitive to record within 10 %"));
    let json: serde_json::Value = serde_json::from_str(&crate::json(&view)).unwrap();
    let claims = json["claims"].as_array().unwrap();
    assert!(claims.iter().any(|own| own["text"] == claim.text.as_str()), "{claims:?}");
    // What is withheld stands below the figure.
    assert!(page.contains(" No sentence on bcachefs: "));
}

#[test]
fn levels_of_a_run_that_drifted_are_compared_in_the_blocks_that_all_have() {
    let mut record = record(&SHAPES);
    let ext4 = |cell: usize| record.cells[cell].cell.filesystem.name == "ext4";
    let first = (0..record.cells.len()).find(|cell| ext4(*cell)).unwrap();
    record.trials.retain(|trial| trial.cell != first || trial.repeat < 6);
    for trial in &mut record.trials {
        let by = 1.0 + 0.02 * f64::from(trial.repeat);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let told = told(&record, "write");
    let lines = || told.lines().filter(|line| line.contains(" of ext4 on write"));
    let cut = "n = 6 in the blocks that all have, since the run may have drifted).";
    assert!(lines().any(|line| line.starts_with("C6: ") && line.ends_with(cut)), "{told}");
    assert_eq!(told.matches("in the blocks that all have").count(), 1, "{told}");
}

use crate::view::FindingKind;
use model::{Metric, Nanos, RunRecord, Sample, Warning, phase::Series, units::Ratio};

use crate::{
    fixture,
    view::{View, findings::WithheldFinding},
};

fn found(view: &View, kind: FindingKind) -> Vec<String> {
    let findings = view.findings.by_point.iter().flat_map(|group| &group.findings);
    findings.filter(|finding| finding.kind == kind).map(|finding| finding.text.clone()).collect()
}

fn withheld(view: &View, kind: FindingKind) -> Vec<&WithheldFinding> {
    let groups = view.findings.by_point.iter();
    let all = groups.flat_map(|group| group.open.iter().chain(&group.on_request));
    all.filter(|open| open.kind == kind).collect()
}

fn one<'a>(texts: &'a [String], start: &str) -> &'a str {
    let found = texts.iter().find(|text| text.starts_with(start));
    found.unwrap_or_else(|| panic!("no finding starts with {start}: {texts:#?}"))
}

/// Multiplies the values of test `write` of a cell by a factor per repetition.
fn change(record: &mut RunRecord, cell: usize, by: impl Fn(u32) -> f64) {
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == cell) {
        let by = by(trial.repetition);
        let own = trial.samples.iter_mut().filter(|sample| sample.phase == "write");
        own.for_each(|sample| sample.value *= by);
    }
}

#[test]
fn the_slowest_filesystem_is_named_with_the_lower_bound_of_the_difference() {
    let view = View::new(&fixture::record());
    let texts = found(&view, FindingKind::C3);
    let btrfs = one(&texts, "btrfs was the slowest of 4 filesystems on write, iozone ");
    assert!(btrfs.contains(": 342.0 MiB/s ["), "{btrfs}");
    assert!(btrfs.contains(", at least ") && btrfs.ends_with(" % slower than the fastest, xfs."));
    // The two worst filesystems get equal values, so none of them is the slowest.
    let mut record = fixture::record();
    let (from, to) = (2, 3);
    let values: Vec<Vec<Sample>> = record
        .trials
        .iter()
        .filter(|trial| trial.cell == from)
        .map(|trial| trial.samples.clone())
        .collect();
    let own = record.trials.iter_mut().filter(|trial| trial.cell == to);
    own.zip(values).for_each(|(trial, samples)| trial.samples = samples);
    let view = View::new(&record);
    let open = withheld(&view, FindingKind::C3);
    let open = open.iter().find(|open| open.question.contains("on write, iozone "));
    assert!(open.unwrap().reason.starts_with("no significant difference between "), "{open:?}");
}

#[test]
fn equivalent_filesystems_are_reported_with_the_margin() {
    let mut record = fixture::record();
    // The values of xfs become those of ext4, plus at most 0.7 %.
    let ext4: Vec<Vec<Sample>> = record
        .trials
        .iter()
        .filter(|trial| trial.cell == 0)
        .map(|trial| trial.samples.clone())
        .collect();
    let own = record.trials.iter_mut().filter(|trial| trial.cell == 1);
    own.zip(ext4).for_each(|(trial, samples)| trial.samples = samples);
    change(&mut record, 1, |repetition| 1.0 + 0.001 * f64::from(repetition));
    let texts = found(&View::new(&record), FindingKind::C4);
    let text = texts.iter().find(|text| text.contains(" on write, iozone "));
    assert!(text.unwrap().contains("within ±5 %") && text.unwrap().contains("xfs"), "{texts:?}");
}

#[test]
fn the_cost_of_durability_is_paired_within_repetitions() {
    let view = View::new(&fixture::record());
    let texts = found(&view, FindingKind::C16);
    let text = one(&texts, "Cost of durability on write, ");
    assert!(text.contains(": ext4 27.4 % [25.2 to 27.9 %], xfs 25.7 %"), "{text}");
    assert!(text.ends_with("(paired within repetitions, n = 8)."), "{text}");
    assert!(!text.contains("bcachefs"), "one of its repetitions failed");
    assert!(texts.iter().all(|text| !text.contains(" on read, ")));
}

#[test]
fn means_over_workloads_are_relative_to_the_first_filesystem() {
    let view = View::new(&fixture::record());
    let texts = found(&view, FindingKind::C12);
    let xfs = one(&texts, "Over 26 workloads of iozone, xfs had speed ×1.");
    for part in ["relative to ext4", "geometric mean", " wins", " ties", " losses", "range ×"] {
        assert!(xfs.contains(part), "{part}: {xfs}");
    }
    let bcachefs = one(&texts, "Over 13 workloads of iozone, bcachefs had speed ×0.");
    assert!(bcachefs.contains("Excluded: ") && bcachefs.contains("12 others"), "{bcachefs}");
    let jfs = withheld(&view, FindingKind::C12);
    assert!(jfs[0].question.starts_with("mean of jfs relative to ext4") && jfs.len() == 1);
}

#[test]
fn utilized_resources_are_reported_as_bottlenecks() {
    let mut record = fixture::record();
    let bound = Warning::CpuBound { who: "the workers".into(), share: Ratio(0.98) };
    for trial in &mut record.trials {
        let mut add = |metric, value| {
            let phase = "write".into();
            trial.samples.push(Sample { phase, metric, worker: None, value });
        };
        match trial.cell {
            0 => trial.warnings.push((Some("write".into()), bound.clone())),
            1 => add(Metric::DeviceUtilization, 0.99),
            2 => add(Metric::DeviceUtilization, 0.4),
            _ => {}
        }
    }
    let view = View::new(&record);
    assert_eq!(
        found(&view, FindingKind::C21),
        ["Bottleneck on write, iozone block_size=1MiB: ext4: CPU (the workers, 98 % of one CPU); \
          xfs: device (99 % utilized); unknown for btrfs, f2fs."]
    );
    assert!(
        !withheld(&view, FindingKind::C21).is_empty(),
        "the other tests have no known bottleneck"
    );
}

/// Adds rates over time that fall to 60 % after a third of the time, or stay constant.
fn rate_over_time(record: &mut RunRecord, falls: bool) {
    let mut rng = fastrand::Rng::with_seed(8);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell < 2) {
        let level = 0.95 + 0.1 * rng.f64();
        let ops = (0..300_u32).map(|second| {
            let high = second < 100 || !falls;
            let rate = if high { 10_000.0 } else { 6_000.0 };
            let value = rate * level * (0.99 + 0.02 * rng.f64());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let value = value as u64;
            value
        });
        let ops: Vec<u64> = ops.collect();
        let interval = Nanos(1_000_000_000);
        let series = Series { start: Nanos(0), interval, bytes: ops.clone(), ops };
        trial.series.push(("write".into(), series));
    }
}

#[test]
fn sustained_rates_are_relative_to_the_initial_rate() {
    let mut record = fixture::record();
    rate_over_time(&mut record, true);
    let view = View::new(&record);
    let texts = found(&view, FindingKind::C14);
    let text = one(&texts, "Sustained rate on write, iozone ");
    assert!(text.contains("ext4 60") || text.contains("ext4 59"), "{text}");
    assert!(text.contains(" after 1") && text.contains("(in 8 of 8 repetitions)"), "{text}");
    assert_eq!(texts.len(), 1, "no other test has a rate over time");
}

#[test]
fn sustained_rates_of_half_of_the_repetitions_are_withheld() {
    let (mut record, mut flat) = (fixture::record(), fixture::record());
    rate_over_time(&mut record, true);
    rate_over_time(&mut flat, false);
    for (trial, flat) in record.trials.iter_mut().zip(flat.trials) {
        if trial.repetition >= 4 {
            trial.series = flat.series;
        }
    }
    let view = View::new(&record);
    assert!(found(&view, FindingKind::C14).is_empty());
    let open = withheld(&view, FindingKind::C14);
    assert!(open[0].reason.contains("only 4 of 8 repetitions settled"), "{open:?}");
}

#[test]
fn findings_from_common_rounds_state_their_number() {
    // xfs was closed after six rounds of a run that drifted.
    let mut record = fixture::record();
    record.trials.retain(|trial| trial.cell != 1 || trial.repetition < 6);
    for trial in &mut record.trials {
        let by = 1.0 + 0.02 * f64::from(trial.repetition);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let view = View::new(&record);
    assert!(view.quality.suspected);
    let texts = found(&view, FindingKind::C3);
    let btrfs = one(&texts, "btrfs was the slowest of 4 filesystems on write, iozone ");
    assert!(btrfs.ends_with(" the fastest, xfs in the 6 rounds both completed."), "{btrfs}");
    assert!(btrfs.contains("n = 8"), "{btrfs}");
}

#[test]
fn a_constant_rate_varies_between_repetitions_only() {
    let mut record = fixture::record();
    rate_over_time(&mut record, false);
    let view = View::new(&record);
    assert!(found(&view, FindingKind::C14).is_empty());
    assert!(withheld(&view, FindingKind::C14)[0].reason.contains("the rate did not change"));
    let texts = found(&view, FindingKind::C17);
    let text = one(&texts, "Share of the variance on write, iozone ");
    assert!(text.contains("ext4 9") && text.contains("n = 8"), "{text}");
    assert!(text.contains(" between repetitions: "), "{text}");
    // Other processes used the CPUs in most repetitions of ext4.
    let foreign = Warning::OtherCpuLoad { share: Ratio(0.2), who: "make".into() };
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == 0 && trial.repetition < 5) {
        trial.warnings.push((Some("write".into()), foreign.clone()));
    }
    let texts = found(&View::new(&record), FindingKind::C17);
    let text = one(&texts, "Share of the variance on write, iozone ");
    assert!(!text.contains("ext4") && text.contains("xfs"), "{text}");
    for trial in &mut record.trials {
        let by = 1.0 + 0.02 * f64::from(trial.repetition);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let view = View::new(&record);
    assert!(view.quality.suspected && found(&view, FindingKind::C17).is_empty());
    assert!(withheld(&view, FindingKind::C17)[0].reason.contains("may have drifted"));
}

#[test]
fn a_run_that_drifted_is_ranked_after_alignment() {
    let mut record = fixture::record();
    for trial in &mut record.trials {
        let by = 1.0 - 0.04 * f64::from(trial.repetition);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    // Two points of five cells have too few other cells for alignment; four points have enough.
    let view = View::new(&record);
    let families = |view: &View| {
        let points = view.suites[0].points.clone().into_iter();
        let tests = points.flat_map(|point| point.tests);
        tests.filter_map(|test| test.family).map(|family| family.aligned).collect::<Vec<bool>>()
    };
    assert!(view.quality.drifts && families(&view).iter().all(|aligned| !aligned));
    let sizes = [1, 2, 4, 8].map(model::Bytes::mib);
    let mut record = fixture::with_records(&sizes, "own");
    for trial in &mut record.trials {
        let by = 1.0 - 0.04 * f64::from(trial.repetition);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let view = View::new(&record);
    assert!(families(&view).iter().all(|aligned| *aligned));
    let caption = view.details[0][0].ranked.caption.join("; ");
    assert!(caption.contains("aligned by round"), "{caption}");
    // Without drift, the same filesystems have the best medians.
    let still = View::new(&fixture::with_records(&sizes, "own"));
    let tops = |view: &View| {
        let points = view.suites[0].points.iter().flat_map(|point| &point.tests);
        points.map(|test| test.entries[0].filesystem).collect::<Vec<usize>>()
    };
    let same = tops(&view).iter().zip(tops(&still)).filter(|(one, other)| **one == *other).count();
    assert!(same >= 50, "{same} of 52");
}

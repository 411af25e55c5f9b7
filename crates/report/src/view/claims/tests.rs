use model::{Metric, Nanos, RunRecord, Sample, Warning, phase::Series, units::Ratio};

use crate::{
    fixture,
    view::{View, claims::Withheld},
};

fn said(view: &View, template: &str) -> Vec<String> {
    let claims = view.findings.by_point.iter().flat_map(|group| &group.claims);
    claims.filter(|claim| claim.template == template).map(|claim| claim.text.clone()).collect()
}

fn withheld<'a>(view: &'a View, template: &str) -> Vec<&'a Withheld> {
    let groups = view.findings.by_point.iter();
    let all = groups.flat_map(|group| group.open.iter().chain(&group.unsaid));
    all.filter(|open| open.template == template).collect()
}

fn one<'a>(texts: &'a [String], start: &str) -> &'a str {
    let found = texts.iter().find(|text| text.starts_with(start));
    found.unwrap_or_else(|| panic!("no sentence starts with {start}: {texts:#?}"))
}

/// Makes the values of one test of one cell as many times as large.
fn change(record: &mut RunRecord, cell: usize, by: impl Fn(u32) -> f64) {
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == cell) {
        let by = by(trial.repeat);
        let own = trial.samples.iter_mut().filter(|sample| sample.phase == "write");
        own.for_each(|sample| sample.value *= by);
    }
}

#[test]
fn the_last_is_named_with_the_least_it_is_behind() {
    let view = View::new(&fixture::record());
    let texts = said(&view, "C3");
    let btrfs = one(&texts, "btrfs was the slowest of 4 on write, iozone record=1MiB, at least ");
    assert!(btrfs.contains(" % behind the best, xfs: 342.0 MiB/s ["), "{btrfs}");
    // Two that are last together are not one.
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
    let open = withheld(&view, "C3");
    let open = open.iter().find(|open| open.about.ends_with("on write, iozone record=1MiB"));
    assert!(open.unwrap().missing.ends_with("are not told apart"), "{open:?}");
}

#[test]
fn what_is_the_same_is_said_to_be_within_the_threshold() {
    let mut record = fixture::record();
    // xfs becomes as fast as ext4, within half a percent.
    let ext4: Vec<Vec<Sample>> = record
        .trials
        .iter()
        .filter(|trial| trial.cell == 0)
        .map(|trial| trial.samples.clone())
        .collect();
    let own = record.trials.iter_mut().filter(|trial| trial.cell == 1);
    own.zip(ext4).for_each(|(trial, samples)| trial.samples = samples);
    change(&mut record, 1, |repeat| 1.0 + 0.001 * f64::from(repeat));
    let texts = said(&View::new(&record), "C4");
    let text = texts.iter().find(|text| text.contains(" on write, iozone record=1MiB"));
    assert!(text.unwrap().contains("within ±5 %") && text.unwrap().contains("xfs"), "{texts:?}");
}

#[test]
fn durability_is_told_as_what_it_costs() {
    let view = View::new(&fixture::record());
    let texts = said(&view, "C16");
    let text = one(&texts, "Making writes durable cost, of the accepted throughput on write, ");
    assert!(text.contains(": ext4 27.4 % [25.2 to 27.9 %], xfs 25.7 %"), "{text}");
    assert!(text.ends_with("each repeat against itself, n = 8."), "{text}");
    assert!(!text.contains("bcachefs"), "a repeat of it failed");
    assert!(texts.iter().all(|text| !text.contains(" on read, ")));
}

#[test]
fn all_workloads_together_are_told_against_the_first_filesystem() {
    let view = View::new(&fixture::record());
    let texts = said(&view, "C12");
    let xfs = one(&texts, "On 26 workloads of iozone xfs was ×1.");
    for part in ["relative to ext4", "geometric mean", "wins ", "ties ", "losses ", "range ×"] {
        assert!(xfs.contains(part), "{part}: {xfs}");
    }
    let bcachefs = one(&texts, "On 13 workloads of iozone bcachefs was ×0.");
    assert!(bcachefs.contains("Not in it: ") && bcachefs.contains("12 others"), "{bcachefs}");
    let jfs = withheld(&view, "C12");
    assert!(jfs[0].about.starts_with("how jfs compares to ext4") && jfs.len() == 1);
}

#[test]
fn what_was_busy_is_told_as_the_limit() {
    let mut record = fixture::record();
    let bound = Warning::CpuBound { who: "the workers".into(), share: Ratio(0.98) };
    for trial in &mut record.trials {
        let mut add = |metric, value| {
            let phase = "write".into();
            trial.samples.push(Sample { phase, metric, worker: None, value });
        };
        match trial.cell {
            0 => trial.warnings.push((Some("write".into()), bound.clone())),
            1 => add(Metric::DeviceBusy, 0.99),
            2 => add(Metric::DeviceBusy, 0.4),
            _ => {}
        }
    }
    let view = View::new(&record);
    assert_eq!(
        said(&view, "C21"),
        ["Limited on write, iozone record=1MiB: ext4 by a processor (the workers used it for \
          98 % of the time), xfs by the device (it had a request for 99 % of the time); unknown \
          for btrfs, f2fs."]
    );
    assert!(!withheld(&view, "C21").is_empty(), "of the others nothing is known");
}

/// A rate that falls to 60 % after a third, or stays.
fn course(record: &mut RunRecord, falls: bool) {
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
fn what_is_sustained_after_a_burst_is_told() {
    let mut record = fixture::record();
    course(&mut record, true);
    let view = View::new(&record);
    let texts = said(&view, "C14");
    let text = one(&texts, "Of the rate they began with on write, iozone record=1MiB, was sus");
    assert!(text.contains("ext4 60") || text.contains("ext4 59"), "{text}");
    assert!(text.contains(" after 1") && text.contains("in 8 of 8 repeats"), "{text}");
    assert_eq!(texts.len(), 1, "no other test kept its rate");
}

#[test]
fn what_only_half_of_the_repeats_sustain_is_not_told() {
    let (mut record, mut flat) = (fixture::record(), fixture::record());
    course(&mut record, true);
    course(&mut flat, false);
    for (trial, flat) in record.trials.iter_mut().zip(flat.trials) {
        if trial.repeat >= 4 {
            trial.series = flat.series;
        }
    }
    let view = View::new(&record);
    assert!(said(&view, "C14").is_empty());
    let open = withheld(&view, "C14");
    assert!(open[0].missing.contains("only 4 of 8 repeats settled"), "{open:?}");
}

#[test]
fn what_is_told_of_shared_blocks_says_how_many() {
    // xfs was closed after six blocks of a run that drifted.
    let mut record = fixture::record();
    record.trials.retain(|trial| trial.cell != 1 || trial.repeat < 6);
    for trial in &mut record.trials {
        let by = 1.0 + 0.02 * f64::from(trial.repeat);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let view = View::new(&record);
    assert!(view.control.suspected);
    let texts = said(&view, "C3");
    let btrfs = one(&texts, "btrfs was the slowest of 4 on write, iozone record=1MiB, at least ");
    assert!(btrfs.contains(" the best, xfs, in the 6 blocks that both have: "), "{btrfs}");
    assert!(btrfs.contains("n = 8"), "{btrfs}");
}

#[test]
fn a_rate_that_stays_is_no_burst_and_its_variation_is_between_instances() {
    let mut record = fixture::record();
    course(&mut record, false);
    let view = View::new(&record);
    assert!(said(&view, "C14").is_empty());
    assert!(withheld(&view, "C14")[0].missing.contains("went at one rate throughout"));
    let texts = said(&view, "C17");
    let text = one(&texts, "Of the variation of the rate on write, iozone record=1MiB, came ");
    assert!(text.contains("ext4 9") && text.contains("n = 8"), "{text}");
    assert!(text.contains("whatever the machine did meanwhile"), "{text}");
    // Others used the processors in most repeats of one of both.
    let foreign = Warning::ForeignCpu { share: Ratio(0.2), who: "make".into() };
    for trial in record.trials.iter_mut().filter(|trial| trial.cell == 0 && trial.repeat < 5) {
        trial.warnings.push((Some("write".into()), foreign.clone()));
    }
    let texts = said(&View::new(&record), "C17");
    let text = one(&texts, "Of the variation of the rate on write, iozone record=1MiB, came ");
    assert!(!text.contains("ext4") && text.contains("xfs"), "{text}");
    for trial in &mut record.trials {
        let by = 1.0 + 0.02 * f64::from(trial.repeat);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let view = View::new(&record);
    assert!(view.control.suspected && said(&view, "C17").is_empty());
    assert!(withheld(&view, "C17")[0].missing.contains("may have drifted"));
}

#[test]
fn a_run_that_drifted_is_ranked_after_what_all_others_moved_by() {
    let mut record = fixture::record();
    for trial in &mut record.trials {
        let by = 1.0 - 0.04 * f64::from(trial.repeat);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    // Two points of five cells are too few others; two more are enough.
    let view = View::new(&record);
    let families = |view: &View| {
        let points = view.suites[0].points.clone().into_iter();
        let tests = points.flat_map(|point| point.tests);
        tests.filter_map(|test| test.family).map(|family| family.aligned).collect::<Vec<bool>>()
    };
    assert!(view.control.drifts && families(&view).iter().all(|aligned| !aligned));
    let sizes = [1, 2, 4, 8].map(model::Bytes::mib);
    let mut record = fixture::with_records(&sizes, "own");
    for trial in &mut record.trials {
        let by = 1.0 - 0.04 * f64::from(trial.repeat);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let view = View::new(&record);
    assert!(families(&view).iter().all(|aligned| *aligned));
    let caption = view.ranked[0][0].caption.join("; ");
    assert!(caption.contains("after what all other cells moved by"), "{caption}");
    // Without the drift the same filesystems win.
    let still = View::new(&fixture::with_records(&sizes, "own"));
    let tops = |view: &View| {
        let points = view.suites[0].points.iter().flat_map(|point| &point.tests);
        points.map(|test| test.entries[0].filesystem).collect::<Vec<usize>>()
    };
    let same = tops(&view).iter().zip(tops(&still)).filter(|(one, other)| **one == *other).count();
    assert!(same >= 50, "{same} of 52");
}

use model::{
    RunRecord, Warning,
    record::{CellState, Outcome, TrialRecord},
    warning::Level,
};

use crate::{
    fixture,
    view::{Body, Table, TableCell, View},
};

/// The made-up run with the trials of each block in random order, as a run makes them.
fn shuffled() -> RunRecord {
    let mut record = fixture::record();
    let mut rng = fastrand::Rng::with_seed(9);
    let mut order: Vec<(u32, u64, TrialRecord)> =
        record.trials.drain(..).map(|trial| (trial.repeat, rng.u64(..), trial)).collect();
    order.sort_by_key(|(block, place, _)| (*block, *place));
    record.trials.extend(order.into_iter().map(|(_, _, trial)| trial));
    record
}

/// The same with a twin of the first cell, whose values are as many times as large.
fn with_twin(times: f64) -> RunRecord {
    let mut record = shuffled();
    let mut twin = record.cells[0].clone();
    twin.cell.twin = true;
    record.cells.push(twin);
    let of_twin = record.cells.len() - 1;
    let mut rng = fastrand::Rng::with_seed(4);
    let first: Vec<TrialRecord> =
        record.trials.iter().filter(|trial| trial.cell == 0).cloned().collect();
    for mut trial in first {
        trial.cell = of_twin;
        for sample in &mut trial.samples {
            sample.value *= times * (0.99 + 0.02 * rng.f64());
        }
        let at = record.trials.iter().position(|other| other.repeat == trial.repeat).unwrap();
        record.trials.insert(at, trial);
    }
    record
}

fn codes(view: &View) -> Vec<&'static str> {
    view.warnings.iter().map(|row| row.code).collect()
}

fn table<'a>(view: &'a View, id: &str) -> Option<&'a Table> {
    view.control.tables.iter().find(|table| table.id == id)
}

fn words(table: &Table) -> String {
    let cell = |cell: &TableCell| match cell {
        TableCell::Text(text) => text.clone(),
        TableCell::Value(value) => format!("{} n={}", value.shown.value, value.n),
    };
    let line = |row: &crate::view::Row| match &row.body {
        Body::Cells(cells) => {
            let cells: Vec<String> = cells.iter().map(cell).collect();
            format!("{} | {}\n", row.title, cells.join(" | "))
        }
        Body::Missing(reason) => format!("{} | {reason}\n", row.title),
    };
    table.rows.iter().map(line).collect()
}

#[test]
fn twins_that_agree_change_nothing_but_the_control() {
    let (without, with) = (View::new(&shuffled()), View::new(&with_twin(1.0)));
    let all = |view: &View| {
        format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            view.suites, view.ranked, view.lifecycle, view.missing, view.findings
        )
    };
    assert_eq!(all(&without), all(&with));
    assert!(!with.facts.threshold.is_raised());
    let line = &with.control.lines[0];
    assert!(line.starts_with("Twins of ext4: ") && line.contains("0 of 1 twin differed"), "{line}");
    assert!(line.contains("too few twins") && line.contains("largest of the 13 ratios"), "{line}");
    assert!(line.contains("the threshold stays δ = 5 %"), "{line}");
    assert!(!codes(&with).contains(&"W-AA"));
    assert!(crate::csv(&with_twin(1.0)).contains(",yes,0,0,measured,"));
}

#[test]
fn twins_that_differ_raise_the_threshold_everywhere() {
    let view = View::new(&with_twin(1.12));
    assert!(view.facts.threshold.is_raised() && codes(&view).contains(&"W-AA"));
    assert!(view.control.lines[0].contains("δ′ = 1"), "{}", view.control.lines[0]);
    let text =
        crate::terminal(&view, &crate::TerminalOptions { width: 80, color: false, detail: true });
    let judged = text.lines().filter(|line| line.contains("Holm at"));
    assert!(judged.count() > 0 && text.contains("δ′ = 1"));
    // The asked-for threshold stands once in the head, and where the control explains.
    let tables = view.ranked.iter().flatten();
    let mut captions = tables.map(|table| table.caption.join("; "));
    assert!(captions.all(|caption| !caption.contains("δ = 5 %")));
}

#[test]
fn drift_of_all_cells_is_told_and_one_of_none_is_not() {
    let still = View::new(&shuffled());
    assert!(!still.control.drifts && !codes(&still).contains(&"W-DRIFT"));
    assert!(still.control.lines[0].starts_with("No drift is shown over 8 blocks"));
    let mut record = shuffled();
    for trial in &mut record.trials {
        let by = 1.0 - 0.01 * f64::from(trial.repeat);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let view = View::new(&record);
    assert!(view.control.drifts && codes(&view).contains(&"W-DRIFT"));
    let line = &view.control.lines[0];
    assert!(line.starts_with("The run drifted by -"), "{line}");
    let table = words(table(&view, super::drift::DRIFT).unwrap());
    assert!(table.contains("first block to last | -") && table.contains("W-DRIFT"), "{table}");
}

#[test]
fn what_one_filesystem_leaves_to_the_next_is_told() {
    let mut record = shuffled();
    let mut before = None;
    for index in 0..record.trials.len() {
        let after = before.replace(record.trials[index].cell);
        if after.is_some_and(|cell| record.cells[cell].cell.filesystem.name == "btrfs") {
            for sample in &mut record.trials[index].samples {
                sample.value *= 0.9;
            }
        }
    }
    let view = View::new(&record);
    assert!(codes(&view).contains(&"W-CARRY"), "{:?}", codes(&view));
    let table = words(table(&view, super::drift::DRIFT).unwrap());
    let btrfs = table.lines().find(|line| line.starts_with("right after btrfs")).unwrap();
    assert!(btrfs.contains("W-CARRY") && btrfs.contains("| -"), "{btrfs}");
}

/// Changes the samples of one test of one trial.
fn change(record: &mut RunRecord, cell: usize, repeat: u32, by: f64) {
    let trials = record.trials.iter_mut();
    let own = trials.filter(|trial| trial.cell == cell && trial.repeat == repeat);
    for sample in own.flat_map(|trial| &mut trial.samples).filter(|s| s.phase == "write") {
        sample.value *= by;
    }
}

#[test]
fn an_outlier_stays_and_both_numbers_are_told() {
    let mut record = shuffled();
    change(&mut record, 1, 3, 0.4);
    let view = View::new(&record);
    let row = view.warnings.iter().find(|row| row.code == "W-OUTLIER").unwrap();
    assert_eq!(row.level, Level::Info);
    let entry = view.suites[0].points[0].tests[0].entry(1).unwrap();
    assert_eq!((entry.severe, entry.values.len()), (1, 8));
    assert!(entry.ranked, "an outlier is no reason to leave a cell out");
    let both = words(table(&view, "control-both").unwrap());
    let line = both.lines().find(|line| line.starts_with("xfs · write, ")).unwrap();
    assert!(line.contains("n=8") && line.contains("n=7"), "{line}");
}

#[test]
fn two_modes_are_told_at_the_number() {
    let mut record = shuffled();
    (0..4).for_each(|repeat| change(&mut record, 1, repeat, 1.5));
    let view = View::new(&record);
    let entry = view.suites[0].points[0].tests[0].entry(1).unwrap();
    assert!(entry.codes.contains(&"W-BIMODAL"), "{:?}", entry.codes);
    let row = view.warnings.iter().find(|row| row.code == "W-BIMODAL").unwrap();
    assert!(row.message.contains("4 around"), "{}", row.message);
}

/// Repeats of xfs at the first point that were spoiled before they were made again.
fn spoiled(times: u32) -> RunRecord {
    let mut record = shuffled();
    let xfs: Vec<TrialRecord> =
        record.trials.iter().filter(|trial| trial.cell == 1).cloned().collect();
    for (mut trial, times) in xfs.into_iter().zip(0..times) {
        let reason = "the hypervisor gave 3.1 % of the time to others".to_owned();
        trial.outcome = Outcome::Invalid { reason };
        trial.samples.iter_mut().for_each(|sample| sample.value *= 0.5);
        let at = record.trials.iter().position(|other| {
            other.cell == 1 && other.repeat == trial.repeat && other.outcome == Outcome::Measured
        });
        record.trials[at.unwrap()].attempt = 1;
        record.trials.insert(at.unwrap(), trial);
        assert!(times < 8);
    }
    record
}

#[test]
fn invalid_repeats_are_counted_and_take_part_in_nothing() {
    let (sound, view) = (View::new(&shuffled()), View::new(&spoiled(1)));
    assert_eq!(format!("{:?}", sound.ranked), format!("{:?}", view.ranked));
    let invalid = words(table(&view, "control-invalid").unwrap());
    let expected = "xfs · iozone record=1MiB | 1 of 9 made again | 1 × the hypervisor gave 3.1 % \
                    of the time to others\n";
    assert_eq!(invalid, expected);
    let both = words(table(&view, "control-both").unwrap());
    assert!(both.contains("xfs · write, iozone record=1MiB | "), "{both}");
    assert!(both.contains("n=9"), "{both}");
}

#[test]
fn a_cell_with_many_invalid_repeats_makes_no_claim() {
    let view = View::new(&spoiled(5));
    assert!(codes(&view).contains(&"W-MANYINV"));
    let point = &view.suites[0].points[0];
    assert!(point.tests.iter().all(|test| test.entry(1).is_some_and(|entry| !entry.ranked)));
    let claims = &view.findings.by_point.iter().find(|group| group.label == point.label).unwrap();
    assert!(claims.claims.iter().all(|claim| !claim.text.contains("xfs")));
    let open = claims.unsaid.iter().filter(|open| open.about.starts_with("where xfs stands"));
    assert_eq!(open.count(), 13);
}

#[test]
fn more_than_a_fifth_of_eight_trials_is_too_many() {
    assert!(!codes(&View::new(&spoiled(2))).contains(&"W-MANYINV"), "2 of 10");
    assert!(codes(&View::new(&spoiled(3))).contains(&"W-MANYINV"), "3 of 11");
}

#[test]
fn a_run_that_measured_nothing_twice_says_nothing_of_itself() {
    let mut record = shuffled();
    record.trials.retain(|trial| trial.repeat == 0);
    assert!(View::new(&record).control.is_empty());
    record.trials.clear();
    for cell in &mut record.cells {
        cell.state = CellState::Open;
    }
    assert!(View::new(&record).control.is_empty());
    let mut record = with_twin(1.0);
    record.trials.retain(|trial| trial.repeat < 2);
    let view = View::new(&record);
    assert!(view.control.lines[0].starts_with("Twins of ext4 tell nothing yet: only 2 repeats"));
}

#[test]
fn an_imported_run_has_no_control() {
    let mut record = shuffled();
    record.warnings.push(Warning::Imported { program: "bonnie++ 1.98".into() });
    let view = View::new(&record);
    assert!(view.control.is_empty());
    assert!(view.findings.by_point.iter().all(|group| group.unsaid.is_empty()));
}

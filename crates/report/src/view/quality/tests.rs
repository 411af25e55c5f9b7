use model::{
    RunRecord, Warning,
    record::{CellState, Outcome, TrialRecord},
    warning::Severity,
};

use crate::{
    fixture,
    view::{Body, Table, TableCell, View},
};

/// Fixture with the trials of each round in random order, as in a real run.
fn shuffled() -> RunRecord {
    let mut record = fixture::record();
    let mut rng = fastrand::Rng::with_seed(9);
    let mut order: Vec<(u32, u64, TrialRecord)> =
        record.trials.drain(..).map(|trial| (trial.repetition, rng.u64(..), trial)).collect();
    order.sort_by_key(|(block, place, _)| (*block, *place));
    record.trials.extend(order.into_iter().map(|(_, _, trial)| trial));
    record
}

/// [`shuffled`] with an A/A duplicate of the first cell. Its values are multiplied by `times` and a
/// random factor within 1 %.
fn with_aa_duplicate(times: f64) -> RunRecord {
    let mut record = shuffled();
    let mut aa_duplicate = record.cells[0].clone();
    aa_duplicate.cell.aa_duplicate = true;
    record.cells.push(aa_duplicate);
    let of_aa_duplicate = record.cells.len() - 1;
    let mut rng = fastrand::Rng::with_seed(4);
    let first: Vec<TrialRecord> =
        record.trials.iter().filter(|trial| trial.cell == 0).cloned().collect();
    for mut trial in first {
        trial.cell = of_aa_duplicate;
        for sample in &mut trial.samples {
            sample.value *= times * (0.99 + 0.02 * rng.f64());
        }
        let at =
            record.trials.iter().position(|other| other.repetition == trial.repetition).unwrap();
        record.trials.insert(at, trial);
    }
    record
}

fn codes(view: &View) -> Vec<&'static str> {
    view.warnings.iter().map(|row| row.code).collect()
}

fn table<'a>(view: &'a View, id: &str) -> Option<&'a Table> {
    view.quality.tables.iter().find(|table| table.id == id)
}

fn text(table: &Table) -> String {
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
fn aa_duplicates_that_agree_change_only_the_run_quality() {
    let (without, with) = (View::new(&shuffled()), View::new(&with_aa_duplicate(1.0)));
    let all = |view: &View| {
        format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            view.suites, view.details, view.lifecycle, view.missing, view.findings
        )
    };
    assert_eq!(all(&without), all(&with));
    assert!(!with.facts.margin.is_raised());
    let line = &with.quality.lines[0];
    let start = "A/A control of ext4: 0 of 1 duplicates differ significantly";
    assert!(line.starts_with(start), "{line}");
    assert!(line.contains("too few duplicates") && line.contains("all 13 ratios"), "{line}");
    assert!(line.ends_with("equivalence margin δ = 5 %."), "{line}");
    assert!(!codes(&with).contains(&"aa-difference"));
    assert!(crate::csv(&with_aa_duplicate(1.0)).contains(",yes,0,0,measured,"));
}

#[test]
fn aa_duplicates_that_differ_raise_the_margin_everywhere() {
    let view = View::new(&with_aa_duplicate(1.12));
    assert!(view.facts.margin.is_raised() && codes(&view).contains(&"aa-difference"));
    assert!(view.quality.lines[0].contains("δ′ = 1"), "{}", view.quality.lines[0]);
    let text =
        crate::terminal(&view, &crate::TerminalOptions { width: 80, color: false, detail: true });
    let adjusted = text.lines().filter(|line| line.contains("Holm-adjusted"));
    assert!(adjusted.count() > 0 && text.contains("δ′ = 1"));
    // The nominal margin is shown in the header and in the run quality only.
    let tables = view.details.iter().flatten().map(|own| &own.ranked);
    let mut captions = tables.map(|table| table.caption.join("; "));
    assert!(captions.all(|caption| !caption.contains("δ = 5 %")));
}

#[test]
fn drift_of_all_cells_is_reported() {
    let still = View::new(&shuffled());
    assert!(!still.quality.drifts && !codes(&still).contains(&"drift"));
    assert!(still.quality.lines[0].starts_with("No significant drift over 8 rounds"));
    let mut record = shuffled();
    for trial in &mut record.trials {
        let by = 1.0 - 0.01 * f64::from(trial.repetition);
        trial.samples.iter_mut().for_each(|sample| sample.value *= by);
    }
    let view = View::new(&record);
    assert!(view.quality.drifts && codes(&view).contains(&"drift"));
    let line = &view.quality.lines[0];
    assert!(line.starts_with("The run drifted by -"), "{line}");
    let table = text(table(&view, super::drift::DRIFT).unwrap());
    assert!(table.contains("first to last round | -") && table.contains("drift"), "{table}");
}

#[test]
fn carry_over_from_a_filesystem_is_reported() {
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
    assert!(codes(&view).contains(&"carry-over"), "{:?}", codes(&view));
    let table = text(table(&view, super::drift::DRIFT).unwrap());
    let btrfs = table.lines().find(|line| line.starts_with("after btrfs")).unwrap();
    assert!(btrfs.contains("carry-over") && btrfs.contains("| -"), "{btrfs}");
}

/// Multiplies the samples of test `write` of one trial by a factor.
fn change(record: &mut RunRecord, cell: usize, repetition: u32, by: f64) {
    let trials = record.trials.iter_mut();
    let own = trials.filter(|trial| trial.cell == cell && trial.repetition == repetition);
    for sample in own.flat_map(|trial| &mut trial.samples).filter(|s| s.phase == "write") {
        sample.value *= by;
    }
}

#[test]
fn outliers_are_kept_and_both_results_are_shown() {
    let mut record = shuffled();
    change(&mut record, 1, 3, 0.4);
    let view = View::new(&record);
    let row = view.warnings.iter().find(|row| row.code == "outliers").unwrap();
    assert_eq!(row.severity, Severity::Info);
    let entry = view.suites[0].points[0].tests[0].entry(1).unwrap();
    assert_eq!((entry.severe, entry.values.len()), (1, 8));
    assert!(entry.ranked, "outliers do not exclude a cell");
    let both = text(table(&view, "quality-sensitivity").unwrap());
    let line = both.lines().find(|line| line.starts_with("xfs · write, ")).unwrap();
    assert!(line.contains("n=8") && line.contains("n=7"), "{line}");
}

#[test]
fn bimodal_results_have_a_warning() {
    let mut record = shuffled();
    (0..4).for_each(|repetition| change(&mut record, 1, repetition, 1.5));
    let view = View::new(&record);
    let entry = view.suites[0].points[0].tests[0].entry(1).unwrap();
    assert!(entry.codes.contains(&"bimodal"), "{:?}", entry.codes);
    let row = view.warnings.iter().find(|row| row.code == "bimodal").unwrap();
    assert!(row.message.contains("4 "), "{}", row.message);
}

/// Run with this number of invalid trials of xfs at the first point, which were rerun.
fn invalid(times: u32) -> RunRecord {
    let mut record = shuffled();
    let xfs: Vec<TrialRecord> =
        record.trials.iter().filter(|trial| trial.cell == 1).cloned().collect();
    for (mut trial, times) in xfs.into_iter().zip(0..times) {
        let reason = "the hypervisor stole 3.1 % of the CPU time".to_owned();
        trial.outcome = Outcome::Invalid { reason };
        trial.samples.iter_mut().for_each(|sample| sample.value *= 0.5);
        let at = record.trials.iter().position(|other| {
            other.cell == 1
                && other.repetition == trial.repetition
                && other.outcome == Outcome::Measured
        });
        record.trials[at.unwrap()].attempt = 1;
        record.trials.insert(at.unwrap(), trial);
        assert!(times < 8);
    }
    record
}

#[test]
fn invalid_trials_are_listed_and_excluded() {
    let (sound, view) = (View::new(&shuffled()), View::new(&invalid(1)));
    assert_eq!(format!("{:?}", sound.details), format!("{:?}", view.details));
    let invalid = text(table(&view, "quality-invalid").unwrap());
    let expected = "xfs · iozone block_size=1MiB | 1 of 9 rerun | 1 × the hypervisor stole 3.1 % \
                    of the CPU time\n";
    assert_eq!(invalid, expected);
    let both = text(table(&view, "quality-sensitivity").unwrap());
    assert!(both.contains("xfs · write, iozone block_size=1MiB | "), "{both}");
    assert!(both.contains("n=9"), "{both}");
}

#[test]
fn a_cell_with_many_invalid_trials_has_no_findings() {
    let view = View::new(&invalid(5));
    assert!(codes(&view).contains(&"many-invalid-trials"));
    let point = &view.suites[0].points[0];
    assert!(point.tests.iter().all(|test| test.entry(1).is_some_and(|entry| !entry.ranked)));
    let findings = &view.findings.by_point.iter().find(|group| group.label == point.label).unwrap();
    assert!(findings.findings.iter().all(|finding| !finding.text.contains("xfs")));
    let open = findings.on_request.iter().filter(|open| open.question.starts_with("rank of xfs"));
    assert_eq!(open.count(), 13);
}

#[test]
fn more_than_a_fifth_of_eight_trials_is_too_many() {
    assert!(!codes(&View::new(&invalid(2))).contains(&"many-invalid-trials"), "2 of 10");
    assert!(codes(&View::new(&invalid(3))).contains(&"many-invalid-trials"), "3 of 11");
}

#[test]
fn a_run_without_repetitions_has_no_run_quality() {
    let mut record = shuffled();
    record.trials.retain(|trial| trial.repetition == 0);
    assert!(View::new(&record).quality.is_empty());
    record.trials.clear();
    for cell in &mut record.cells {
        cell.state = CellState::Open;
    }
    assert!(View::new(&record).quality.is_empty());
    let mut record = with_aa_duplicate(1.0);
    record.trials.retain(|trial| trial.repetition < 2);
    let view = View::new(&record);
    assert!(view.quality.lines[0].starts_with("A/A control of ext4 not evaluated: "));
}

#[test]
fn an_imported_run_has_no_run_quality() {
    let mut record = shuffled();
    record.warnings.push(Warning::Imported { program: "bonnie++ 1.98".into() });
    let view = View::new(&record);
    assert!(view.quality.is_empty());
    assert!(view.findings.by_point.iter().all(|group| group.on_request.is_empty()));
}

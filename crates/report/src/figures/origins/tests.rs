//! Bars of processor time over the made-up run.

use expect_test::expect_file;
use model::{
    Evidence, Nanos, RunRecord,
    evidence::{CpuWork, HostCpu, KernelThread, Origin},
    record::Outcome,
};

use super::*;
use crate::fixture;

/// The run with evidence at its first test, in a window of so many milliseconds.
fn with(millis: u64) -> RunRecord {
    let mut record = fixture::record();
    record.trials.retain(|trial| trial.cell < 6);
    record.cells.truncate(6);
    for cell in &mut record.cells {
        cell.phases.truncate(1);
    }
    for trial in &mut record.trials {
        let (cell, repeat) = (trial.cell as u64, u64::from(trial.repeat));
        let thread = |origin, micros: u64| KernelThread {
            origin,
            name: "made up".into(),
            time: Nanos(micros * (100 + repeat) * 10),
        };
        let mut kernel = vec![
            thread(Origin::Loop, 900),
            thread(Origin::Writeback, 300 + 40 * cell),
            thread(Origin::Shared, 50),
        ];
        match cell {
            0 => kernel.push(thread(Origin::Journal, 700)),
            2 => kernel.push(thread(Origin::Filesystem, 2600)),
            _ => (),
        }
        let workload = Nanos(3_000_000 + 200_000 * cell + 10_000 * repeat);
        let mut cpu = CpuWork { workload, watching: Nanos(90_000), kernel, ..Default::default() };
        cpu.others_total = Nanos(120_000);
        cpu.host.busy = cpu.known() + Nanos(260_000);
        cpu.host = HostCpu { resolution: Nanos(10_000_000), ..cpu.host };
        let window = Nanos(millis * 1_000_000);
        let evidence = Evidence { window, cpu: Some(cpu), ..Evidence::default() };
        trial.evidence = vec![("write".into(), evidence)];
    }
    record
}

fn made(record: &RunRecord) -> Option<Figure> {
    figure(&View::new(record), 0, 0, 0)
}

#[test]
fn the_bars_are_as_agreed() {
    let figure = made(&with(500)).unwrap();
    expect_file!["../../../golden/processors.svg"].assert_eq(&format!("{}\n", figure.svg));
    assert!(figure.title.contains("CPU time for an operation from "), "{}", figure.title);
    assert!(figure.title.contains("kernel threads have up to 5"), "{}", figure.title);
    assert!(figure.title.ends_with("(btrfs)"), "{}", figure.title);
    for words in ["n = 7 to 8 repeats", "unattributed: interrupts", "Absent: jfs, skipped"] {
        assert!(figure.caption.contains(words), "{words}: {}", figure.caption);
    }
    assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"));
}

#[test]
fn pieces_add_up_to_what_the_machine_was_busy() {
    let view = View::new(&with(500));
    let origins = view.origins[0][0].as_ref().unwrap();
    // The fixture has 256 operations in each repeat.
    let ext4 = &origins.lines[0];
    let busy = 3_035_000.0 + (900.0 + 300.0 + 50.0 + 700.0) * 1035.0 + 90_000.0 + 380_000.0;
    let sum: f64 = ext4.parts.iter().sum();
    assert!((sum * 256.0 / busy - 1.0).abs() < 1e-9, "{} {busy}", sum * 256.0);
    let beside = (900.0 + 300.0 + 700.0) * 1035.0;
    assert!((ext4.beside() - beside / (beside + 3_035_000.0)).abs() < 1e-9);
}

#[test]
fn a_short_test_does_not_tell_what_no_task_accounts_for() {
    let figure = made(&with(50)).unwrap();
    assert!(!figure.svg.contains(">unattributed<"));
    assert!(figure.caption.contains("not told of tests shorter than 0.2 s"));
    // Drawn is only what the work caused; all else is told at the end of the bar.
    let svg = made(&with(500)).unwrap().svg;
    assert!(svg.contains("; others ") && !svg.contains(">unattributed<"));
}

#[test]
fn without_counted_operations_it_is_the_share_of_a_processor() {
    let mut record = with(500);
    record.trials.iter_mut().for_each(|trial| trial.histograms.clear());
    let figure = made(&record).unwrap();
    assert!(figure.svg.contains("% of one processor"), "{}", figure.svg);
}

#[test]
fn a_run_without_evidence_has_no_bars_and_failures_have_their_reasons() {
    assert!(made(&fixture::record()).is_none());
    let mut record = with(500);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell > 0) {
        trial.outcome = Outcome::Failed { reason: "mount: <wrong> type".into() };
    }
    let figure = made(&record).unwrap();
    assert!(figure.caption.contains("xfs, all 8 repeats failed"), "{}", figure.caption);
    let mut record = with(500);
    for trial in &mut record.trials {
        trial.evidence.iter_mut().for_each(|(_, evidence)| evidence.window = Nanos(0));
    }
    assert!(made(&record).is_none());
}

//! Chart of CPU time of the artificial run.

use expect_test::expect_file;
use model::{
    Nanos, RunRecord, SystemActivity,
    activity::{CpuActivity, HostCpu, KernelThread, Origin},
    record::Outcome,
};

use super::*;
use crate::fixture;

/// Run with system activity in its first test, recorded over this many milliseconds.
fn with(millis: u64) -> RunRecord {
    let mut record = fixture::record();
    record.trials.retain(|trial| trial.cell < 6);
    record.cells.truncate(6);
    for cell in &mut record.cells {
        cell.phases.truncate(1);
    }
    for trial in &mut record.trials {
        let (cell, repetition) = (trial.cell as u64, u64::from(trial.repetition));
        let thread = |origin, micros: u64| KernelThread {
            origin,
            name: "made up".into(),
            time: Nanos(micros * (100 + repetition) * 10),
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
        let workload = Nanos(3_000_000 + 200_000 * cell + 10_000 * repetition);
        let mut cpu =
            CpuActivity { workload, monitoring: Nanos(90_000), kernel, ..Default::default() };
        cpu.others_total = Nanos(120_000);
        cpu.host.busy = cpu.accounted() + Nanos(260_000);
        cpu.host = HostCpu { resolution: Nanos(10_000_000), ..cpu.host };
        let window = Nanos(millis * 1_000_000);
        let activity = SystemActivity { window, cpu: Some(cpu), ..SystemActivity::default() };
        trial.activity = vec![("write".into(), activity)];
    }
    record
}

fn made(record: &RunRecord) -> Option<Figure> {
    figure(&View::new(record), 0, 0, 0)
}

#[test]
fn the_bars_match_the_golden_file() {
    let figure = made(&with(500)).unwrap();
    expect_file!["../../../golden/cpu-time.svg"].assert_eq(&format!("{}\n", figure.svg));
    assert!(figure.title.contains("CPU time per operation from "), "{}", figure.title);
    assert!(figure.title.contains("kernel threads have up to 5"), "{}", figure.title);
    assert!(figure.title.ends_with("(btrfs)"), "{}", figure.title);
    for words in ["n = 7 to 8 repetitions", "unattributed: interrupts", "Skipped: jfs."] {
        assert!(figure.caption.contains(words), "{words}: {}", figure.caption);
    }
    let svg = figure.svg.replace("informational", "");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn parts_add_up_to_the_busy_time_of_the_machine() {
    let view = View::new(&with(500));
    let origins = view.details[0][0].origins.as_ref().unwrap();
    // The fixture has 256 operations in each repetition.
    let ext4 = &origins.lines[0];
    let busy = 3_035_000.0 + (900.0 + 300.0 + 50.0 + 700.0) * 1035.0 + 90_000.0 + 380_000.0;
    let sum: f64 = ext4.parts.iter().sum();
    assert!((sum * 256.0 / busy - 1.0).abs() < 1e-9, "{} {busy}", sum * 256.0);
    let kernel_threads = (900.0 + 300.0 + 700.0) * 1035.0;
    assert!(
        (ext4.kernel_thread_fraction() - kernel_threads / (kernel_threads + 3_035_000.0)).abs()
            < 1e-9
    );
}

#[test]
fn a_short_test_has_no_unattributed_time() {
    let figure = made(&with(50)).unwrap();
    assert!(!figure.svg.contains(">unattributed<"));
    assert!(figure.caption.contains("not available for tests shorter than 0.2 s"));
    // Only attributed CPU time is drawn; the rest is printed at the end of the bar.
    let svg = made(&with(500)).unwrap().svg;
    assert!(svg.contains("; others ") && !svg.contains(">unattributed<"));
}

#[test]
fn without_operation_counts_it_is_cpu_utilization() {
    let mut record = with(500);
    record.trials.iter_mut().for_each(|trial| trial.histograms.clear());
    let figure = made(&record).unwrap();
    assert!(figure.svg.contains("% of one CPU"), "{}", figure.svg);
}

#[test]
fn a_run_without_activity_has_no_bars_and_failures_have_their_reasons() {
    assert!(made(&fixture::record()).is_none());
    let mut record = with(500);
    for trial in record.trials.iter_mut().filter(|trial| trial.cell > 0) {
        trial.outcome = Outcome::Failed { reason: "mount: <wrong> type".into() };
    }
    let figure = made(&record).unwrap();
    assert!(figure.caption.contains("xfs, all 8 repetitions failed"), "{}", figure.caption);
    let mut record = with(500);
    for trial in &mut record.trials {
        trial.activity.iter_mut().for_each(|(_, activity)| activity.window = Nanos(0));
    }
    assert!(made(&record).is_none());
}

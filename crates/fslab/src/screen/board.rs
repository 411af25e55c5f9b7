//! Scoreboard of a run in progress, as text of a terminal: medians so far, and the reason why cells
//! are open.

use analysis::{
    Summary,
    summary::{LEVEL, needed},
};
use model::{
    phase::Role,
    record::{CellRecord, CellState},
};
use report::{RunningTest, TerminalOptions};

use crate::runner::{CellProgress, events::RunProgress};

/// Lines of the screen that other text uses.
const OTHER_LINES: usize = 6;
/// Maximum number of open cells in the line about them.
const NAMED: usize = 2;

/// Scoreboard for a screen of this many rows and columns.
pub(super) fn text(run: &RunProgress<'_>, rows: usize, columns: usize) -> String {
    let cells: Vec<(&CellRecord, &CellProgress)> = run
        .cells
        .iter()
        .zip(run.progress)
        .filter(|(record, _)| {
            !record.cell.aa_duplicate && !matches!(record.state, CellState::Skipped { .. })
        })
        .collect();
    let mut filesystems: Vec<&str> = Vec::new();
    let mut tests: Vec<RunningTest<'_>> = Vec::new();
    for (record, _) in &cells {
        let name = record.cell.filesystem.name.as_str();
        if !filesystems.contains(&name) {
            filesystems.push(name);
        }
    }
    for (record, progress) in &cells {
        let workload = workload(record);
        let column = filesystems.iter().position(|name| *name == record.cell.filesystem.name);
        let open = record.state == CellState::Open;
        for (phase, values) in progress.by_phase(&record.phases) {
            let known =
                |test: &&mut RunningTest<'_>| test.workload == workload && test.phase == phase;
            let at = match tests.iter_mut().find(known) {
                Some(test) => test,
                None => {
                    let own = record.phases.iter().find(|own| own.name == phase);
                    let Some(own) = own.filter(|own| own.role == Role::Measure) else { continue };
                    let (workload, metric) = (workload.clone(), own.primary);
                    let cells = vec![None; filesystems.len()];
                    tests.push(RunningTest { workload, phase, metric, cells });
                    let Some(test) = tests.last_mut() else { continue };
                    test
                }
            };
            if let Some(cell) = column.and_then(|column| at.cells.get_mut(column)) {
                *cell = Some((values.as_slice(), open));
            }
        }
    }
    let options = TerminalOptions { width: columns, color: false, detail: false };
    let lines = rows.saturating_sub(OTHER_LINES);
    let mut text = match columns {
        // A wider table would be wrapped.
        ..60 => String::new(),
        _ => report::running(&tests, &filesystems, lines, &options),
    };
    if let Some(line) = open(run, &cells).filter(|_| !text.is_empty()) {
        text.push('\n');
        text.extend(line.chars().take(columns));
    }
    text
}

/// Workload of a cell and its conditions.
fn workload(record: &CellRecord) -> String {
    let cell = &record.cell;
    let mut text = record.label.clone();
    text.extend(cell.scheduler.iter().map(|name| format!(" scheduler={name}")));
    if !cell.fill_level.is_empty() {
        text.push_str(&format!(" fill_percent={}", cell.fill_level));
    }
    let settings = cell.settings.iter();
    text.extend(settings.map(|(setting, value)| format!(" {}={value}", setting.spec().name)));
    text
}

/// Line about the open cells: the reason why they are open.
fn open(run: &RunProgress<'_>, cells: &[(&CellRecord, &CellProgress)]) -> Option<String> {
    let open: Vec<_> = cells.iter().filter(|(record, _)| record.state == CellState::Open).collect();
    let count = format!("~ open: {} of {} cells", open.len(), cells.len());
    let least = open.iter().map(|(_, progress)| progress.repetitions).min()?;
    if let Some(fixed) = run.repetitions {
        return Some(format!("{count}, repetition {} of {fixed}", (least + 1).min(fixed)));
    }
    if least < needed(LEVEL) {
        return Some(format!(
            "{count}, repetition {}; confidence intervals need {}",
            least + 1,
            needed(LEVEL)
        ));
    }
    let target = run.profile.half_width_target().0;
    let percent = |share: f64| format!("±{:.1} %", share * 100.0);
    let mut wide: Vec<(f64, String)> = Vec::new();
    for (record, progress) in &open {
        let width = |values: &Vec<f64>| Some(Summary::new(values).ok()?.half_width()?.0);
        let phases = progress.by_phase(&record.phases);
        let widths = phases.filter_map(|(phase, values)| Some((width(values)?, phase)));
        if let Some((width, phase)) = widths.max_by(|one, other| one.0.total_cmp(&other.0))
            && width > target
        {
            let name = &record.cell.filesystem.name;
            wide.push((width, format!("{name} {phase} {}", percent(width))));
        }
    }
    wide.sort_by(|one, other| other.0.total_cmp(&one.0));
    let named: Vec<&str> = wide.iter().take(NAMED).map(|(_, text)| text.as_str()).collect();
    let reason = match named[..] {
        [] => "until their next evaluation".to_owned(),
        _ => named.join(", "),
    };
    Some(format!("{count} (target {}): {reason}", percent(target)))
}

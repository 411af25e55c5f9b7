//! Table of a run in progress: medians so far, without statistics.

use analysis::Summary;
use model::{Metric, metric::Unit};

use crate::{
    document::terminal::{Page, TerminalOptions},
    units::{Scale, one_line},
    view::answer::{Board, BoardCell, BoardRow, Place, common_unit, titles, unit_of},
};

/// Mark of a cell that gets more repetitions.
const OPEN: &str = "~";

/// Test of a run in progress.
#[derive(Clone, Debug)]
pub struct RunningTest<'a> {
    /// Workload.
    pub workload: String,
    /// Measured phase.
    pub phase: &'a str,
    /// Primary metric of the phase.
    pub metric: Metric,
    /// One cell per filesystem: values so far, and true if more repetitions follow.
    pub cells: Vec<Option<(&'a [f64], bool)>>,
}

/// Table of the medians so far, tests as rows, in at most this many lines. Open cells are marked
/// with `~`. Tests and filesystems without values are omitted.
pub fn running(
    tests: &[RunningTest<'_>],
    filesystems: &[&str],
    lines: usize,
    options: &TerminalOptions,
) -> String {
    let has = |cell: &Option<(&[f64], bool)>| cell.is_some_and(|(values, _)| !values.is_empty());
    let tests: Vec<&RunningTest<'_>> =
        tests.iter().filter(|test| test.cells.iter().any(has)).collect();
    let columns: Vec<usize> = (0..filesystems.len())
        .filter(|column| tests.iter().any(|test| test.cells.get(*column).is_some_and(has)))
        .collect();
    let names: Vec<(&str, &str)> =
        tests.iter().map(|test| (test.workload.as_str(), test.phase)).collect();
    let medians = |test: &RunningTest<'_>| -> Vec<Option<(f64, bool)>> {
        let median = |column: &usize| {
            let (values, open) = (*test.cells.get(*column)?)?;
            Some((Summary::new(values).ok()?.median, open))
        };
        columns.iter().map(median).collect()
    };
    let known = |test: &RunningTest<'_>| -> Vec<f64> {
        medians(test).into_iter().flatten().map(|(median, _)| median).collect()
    };
    let common = |unit: Unit| {
        let own = tests.iter().filter(|test| test.metric.spec().unit == unit);
        let all: Vec<f64> = own.flat_map(|test| known(test)).collect();
        Scale::of_all(unit, all.into_iter())
    };
    let row = |(test, title): (&&RunningTest<'_>, String)| {
        let unit = test.metric.spec().unit;
        let scale = common(unit).unwrap_or_else(|| Scale::of(unit, known(test).into_iter()));
        let cell = |(median, open): (f64, bool)| BoardCell {
            value: format!("{}{}", scale.rough(median), if open { OPEN } else { "" }),
            interval: None,
            place: Place::Below,
            distance: None,
        };
        let cells = medians(test).into_iter().map(|median| median.map(cell)).collect();
        let unit = unit_of(scale, test.metric.spec().better);
        BoardRow { title, is_tail: false, unit, cells }
    };
    let mut rows: Vec<BoardRow> = tests.iter().zip(titles(&names)).map(row).collect();
    let further = rows.len().saturating_sub(lines.saturating_sub(1));
    rows.truncate(rows.len() - further);
    let board = Board {
        writes: None,
        filesystems: columns.iter().map(|column| one_line(filesystems[*column])).collect(),
        unit: common_unit(&rows),
        rows,
        further: 0,
    };
    let mut page = Page::new(options);
    page.board(&board);
    page.text.lines().take(lines).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_so_far_and_open_cells_are_shown() {
        let (fast, slow, none) = ([1e9, 1.1e9, 1.2e9], [5e8], []);
        let options = TerminalOptions { width: 80, color: false, detail: false };
        let tests = ["write", "read"].map(|phase| RunningTest {
            workload: "iozone block_size=1MiB".into(),
            phase,
            metric: Metric::Throughput,
            cells: vec![
                Some((&fast[..], false)),
                None,
                Some((&slow[..], true)),
                Some((&none[..], true)),
            ],
        });
        let names = ["ext4", "xfs", "btrfs", "f2fs"];
        let shown = running(&tests, &names, 20, &options);
        // `expect!` removes common indentation, here the margin.
        assert_eq!(shown, " MiB/s ext4 btrfs\n write 1049  477~\n read  1049  477~");
        assert_eq!(running(&tests, &names, 2, &options).lines().count(), 2);
        assert_eq!(running(&tests, &names, 0, &options), "");
        assert_eq!(running(&[], &names, 20, &options), "");
    }
}

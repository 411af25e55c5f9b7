//! Study of 2012: bonnie++ on ext4, btrfs, and xfs in eleven configurations.
//!
//! Records are stored as printed. In the tables, rows are configurations and columns are phases.

use model::{Nanos, metric::Unit};

use super::Published;
use crate::{
    bonnie::{Figure, PHASES, PhaseFigures, Record, read},
    document::{Body, Column, Row, Table, TableCell, ValueCell},
    units::{Shown, fixed},
};

/// Configuration of the study.
pub(crate) struct Measured {
    pub(crate) configuration: String,
    /// Commands that created the filesystem; empty if not printed.
    commands: String,
    pub(crate) record: Record,
    /// Record as printed.
    pub(crate) printed: String,
}

/// Positions in [`PHASES`]: phases measured in bytes, then seeks and the file phases, then all
/// phases.
const BYTES: std::ops::Range<usize> = 0..5;
const OPERATIONS: std::ops::Range<usize> = 5..12;
const ALL: std::ops::Range<usize> = 0..12;

/// Quantity of a column.
struct Quantity {
    /// Printed unit.
    name: &'static str,
    /// Base unit, and the size of the printed unit in it.
    unit: (Unit, f64),
    /// Decimal places shown.
    places: i32,
}

const KIB: f64 = 1024.0;

/// Tables of throughput, seeks and files per second, CPU %, and the longest operation.
pub(crate) fn tables(set: &Published) -> Vec<Table> {
    let rate = |at: usize, phase: &PhaseFigures| match at {
        // Two decimal places of a MiB preserve the whole KiB of the records.
        1 | 2 | 4 => figure(phase.rate, 1.0 / KIB, &MIB),
        0 | 3 => figure(phase.rate, 1.0, &PER_CHARACTER),
        5 => figure(phase.rate, 1.0, &SEEKS),
        _ => figure(phase.rate, 1.0, &FILES),
    };
    let layouts: [Layout<'_>; 4] = [
        Layout {
            id: "throughput",
            title: "Throughput",
            caption: "Throughput of the large file including fsync and close, higher is better ↑; \
                      putc and getc: one byte per call; rewrite counts its bytes once",
            phases: BYTES,
            unit: |at| if [0, 3].contains(&at) { PER_CHARACTER.name } else { MIB.name },
            cell: &rate,
        },
        Layout {
            id: "operations",
            title: "Seeks and files",
            caption: "Operations per second including a sync after each creation and deletion \
                      phase, higher is better ↑; files are empty, so stat reads no data",
            phases: OPERATIONS,
            unit: |at| if at == 5 { SEEKS.name } else { FILES.name },
            cell: &rate,
        },
        Layout {
            id: "cpu",
            title: "CPU %",
            caption: "CPU time over elapsed time, informational",
            phases: ALL,
            unit: |_| CPU.name,
            cell: &|_, phase| figure(phase.cpu, 1.0, &CPU),
        },
        Layout {
            id: "latency",
            title: "Longest operation",
            caption: "Longest single operation of a phase, lower is better ↓; one block of 8 KiB, \
                      one seek, or one file; digits as in the records",
            phases: ALL,
            unit: |_| LATENCY,
            cell: &|_, phase| latency(phase.latency),
        },
    ];
    let measured = measured(set.data);
    layouts.iter().map(|layout| layout.table(set, &measured)).collect()
}

const PER_CHARACTER: Quantity =
    Quantity { name: "KiB/s", unit: (Unit::BytesPerSecond, KIB), places: 0 };
const MIB: Quantity =
    Quantity { name: "MiB/s", unit: (Unit::BytesPerSecond, KIB * KIB), places: 2 };
const SEEKS: Quantity = Quantity { name: "seeks/s", unit: (Unit::OpsPerSecond, 1.0), places: 1 };
const FILES: Quantity = Quantity { name: "files/s", unit: (Unit::OpsPerSecond, 1.0), places: 0 };
const CPU: Quantity = Quantity { name: "%", unit: (Unit::Fraction, 0.01), places: 0 };
const LATENCY: &str = "ms";

/// Commands of each configuration, in the order of the study.
pub(crate) fn configurations(set: &Published) -> Vec<(String, String)> {
    let made = |measured: Measured| {
        let commands = match measured.commands.is_empty() {
            true => "no commands are printed".to_owned(),
            false => measured.commands,
        };
        (measured.configuration, commands)
    };
    measured(set.data).into_iter().map(made).collect()
}

/// Rates, CPU %, and latencies of all configurations for an audit, with the digits of the records;
/// latencies are in µs.
pub(crate) fn cells(text: &str) -> crate::audit::Table {
    let names = ["configuration", "phase", "metric"];
    let columns = names.map(str::to_owned).to_vec();
    let mut table = crate::audit::Table { columns, ..Default::default() };
    for Measured { configuration, record, .. } in measured(text) {
        for (phase, figures) in PHASES.iter().zip(&record.phases) {
            let known = |figure: Figure| match figure {
                Figure::Known(value) => Some(value.to_string()),
                Figure::Empty | Figure::Short => None,
            };
            let latency = figures.latency.map(|latency| (latency.0 / 1000).to_string());
            let metrics = [
                ("rate", known(figures.rate)),
                ("cpu_percent", known(figures.cpu)),
                ("latency_us", latency),
            ];
            for (metric, printed) in metrics {
                let levels = [configuration.as_str(), phase, metric].map(str::to_owned);
                let at = names.map(str::to_owned).into_iter().zip(levels).collect();
                let cell = |printed| analysis::audit::Cell { at, printed, value: None };
                table.cells.extend(printed.map(cell));
            }
        }
    }
    table
}

/// Rows of the file: configuration, heading in the source, commands, record. A field with a comma
/// is in double quotes (RFC 4180); no field contains a quote. A row whose record cannot be read is
/// skipped.
pub(crate) fn measured(text: &str) -> Vec<Measured> {
    text.lines().skip(1).filter_map(row).collect()
}

fn row(line: &str) -> Option<Measured> {
    let (configuration, rest) = field(line);
    let (_, rest) = field(rest);
    let (commands, rest) = field(rest);
    let (record, _) = field(rest);
    Some(Measured {
        printed: record.into(),
        configuration: configuration.into(),
        commands: commands.into(),
        record: read(record).ok()?.pop()?,
    })
}

/// First field of a line, and the rest after its comma.
fn field(line: &str) -> (&str, &str) {
    match line.strip_prefix('"') {
        Some(quoted) => {
            let (text, rest) = quoted.split_once('"').unwrap_or((quoted, ""));
            (text, rest.strip_prefix(',').unwrap_or(rest))
        }
        None => line.split_once(',').unwrap_or((line, "")),
    }
}

/// Layout of a table.
struct Layout<'a> {
    id: &'static str,
    title: &'static str,
    caption: &'static str,
    /// Positions in [`PHASES`].
    phases: std::ops::Range<usize>,
    /// Unit of the column of a phase.
    unit: fn(usize) -> &'static str,
    cell: &'a dyn Fn(usize, &PhaseFigures) -> TableCell,
}

impl Layout<'_> {
    fn table(&self, set: &Published, measured: &[Measured]) -> Table {
        let row = |measured: &Measured| {
            let phases = self.phases.clone();
            let cells = phases.map(|at| (self.cell)(at, &measured.record.phases[at])).collect();
            Row::of(measured.configuration.clone(), None, Body::Cells(cells))
        };
        let column = |at: usize| Column::new(PHASES[at], (self.unit)(at));
        Table {
            id: format!("{}-{}", set.name, self.id),
            title: format!("{}: {}", self.title, set.name),
            caption: vec![self.caption.into()],
            corner: "configuration",
            columns: self.phases.clone().map(column).collect(),
            rows: measured.iter().map(row).collect(),
        }
    }
}

/// Number of a record, multiplied by `factor` to convert it to the unit of the quantity.
fn figure(figure: Figure, factor: f64, quantity: &Quantity) -> TableCell {
    match figure {
        Figure::Known(printed) => {
            let value = printed * factor;
            cell(fixed(value, quantity.places), value, quantity.unit)
        }
        Figure::Short => TableCell::Text("too short".into()),
        Figure::Empty => TableCell::Text("not printed".into()),
    }
}

/// Time in milliseconds, with three decimal places below 100 ms.
fn latency(time: Option<Nanos>) -> TableCell {
    let Some(time) = time else {
        return TableCell::Text("not printed".into());
    };
    let millis = time.seconds() * 1e3;
    // Records have whole milliseconds from 0.1 s on.
    let places = if millis < 100.0 { 3 } else { 0 };
    cell(fixed(millis, places), millis, (Unit::Nanoseconds, 1e6))
}

/// Number of a single record.
fn cell(text: String, value: f64, (unit, factor): (Unit, f64)) -> TableCell {
    TableCell::Value(ValueCell {
        shown: Shown { value: text, interval: None, relative: None },
        n: 1,
        n_stated: false,
        top: false,
        codes: Vec::new(),
        sort: value * factor,
        interval: None,
        unit,
        note: String::new(),
        of: None,
    })
}

//! Text of IOzone as measurements of suite `iozone`.
//!
//! A file may contain several outputs, each of which begins with a line with `Iozone:`. A pair of
//! file size and block size is a cell, and each test is a phase. Tables of `-R` are preferred to
//! the rows, because wide values of rows are printed without a space between them. Source: outputs
//! of IOzone 3.2 to 3.5; the layout is that of 3.471.

mod head;
mod rows;

use std::collections::BTreeMap;

use model::{Bytes, Metric, Value};

use self::head::{Head, Unit};
use super::{ImportError, Importer, Measurement, label, phase};
use crate::iozone_layout::{COLUMNS, WORKERS};

/// Suite of the cells.
const SUITE: &str = "iozone";

/// Importer of the text of IOzone.
pub(super) const TEXT: Importer = Importer {
    name: "iozone-text",
    program: "IOzone",
    title: "text and -R tables of IOzone 3.2 to 3.5",
    recognized_by: "header with `reclen`, lines with `Children see`, or tables of `-R`",
    cell: "file size, block size, processes, and options that change the timed region",
    metrics: "`throughput` (kB/s × 1024), with `-O` `ops_rate`, with `-N` `latency_mean`; throughput \
              mode: `throughput` (parent), `throughput_worker_sum` (children)",
    omitted: "CPU tables of `-+u`, minimum and maximum per process, the workbook of `-b`",
    suite: SUITE,
    method: "Rates are those of IOzone: bytes over the time of a pass, without the final sync unless \
             fsync is included in the timing. They are printed as integers in kB/s.",
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| {
        text.lines().any(|line| {
            let is_head = line.contains("reclen") && line.to_ascii_lowercase().contains("kb ");
            is_head || line.contains("Children see throughput") || table(line).is_some()
        })
    },
    read,
};

/// Values of the tests of one file size and block size, in the unit of the output.
type Row = BTreeMap<usize, f64>;

/// Rows by file size and block size in KiB.
type Rows = BTreeMap<(u64, u64), Row>;

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).collect();
    let starts = lines.iter().enumerate().filter(|(_, (_, line))| line.contains("Iozone:"));
    let mut bounds: Vec<usize> = starts.map(|(index, _)| index).collect();
    if bounds.first() != Some(&0) {
        bounds.insert(0, 0);
    }
    bounds.push(lines.len());
    let mut measurements = Vec::new();
    for two in bounds.windows(2) {
        measurements.extend(output(&lines[two[0]..two[1]])?);
    }
    match measurements.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no row, table, or throughput line of IOzone",
        }),
        false => Ok(measurements),
    }
}

/// Measurements of one output.
fn output(lines: &[(usize, &str)]) -> Result<Vec<Measurement>, ImportError> {
    let head = Head::new(lines);
    let mut rows = tables(lines)?;
    if rows.is_empty() {
        rows = rows::rows(lines)?;
    }
    let single = rows.into_iter().map(|(sizes, row)| single(&head, sizes, &row));
    let mut measurements: Vec<Measurement> = single.collect();
    measurements.extend(throughput(&head, lines)?);
    Ok(measurements)
}

/// Cell of the single-stream mode.
fn single(head: &Head, (file, block): (u64, u64), row: &Row) -> Measurement {
    let mut measurement = new(head, file, block);
    for (place, value) in row {
        let test = COLUMNS[*place].test;
        let (metric, factor) = match head.unit {
            Unit::KiloBytes => (Metric::Throughput, 1024.0),
            Unit::Operations => (Metric::OpsRate, 1.0),
            Unit::Micros => (Metric::LatencyMean, 1e3),
        };
        measurement.phases.push((*place, phase(test, "tests", metric)));
        measurement.sample(test, metric, value * factor);
    }
    measurement
}

fn new(head: &Head, file: u64, block: u64) -> Measurement {
    let mut parameters = head.parameters.clone();
    for (name, size) in [("file_size", file), ("block_size", block)] {
        if size > 0 {
            parameters.insert(name.into(), Value::Size(Bytes(size.saturating_mul(1024))));
        }
    }
    let label = label(&parameters, &["file_size", "block_size", "workers"]);
    let mut measurement = Measurement {
        name: head.name.clone(),
        ..Measurement::new(SUITE, head.program(), label, parameters)
    };
    measurement.fact("iozone.version", &head.version);
    if let Some(command) = &head.command {
        measurement.fact("iozone.command", command);
    }
    measurement
}

/// Index of the test of a table of `-R`, from its quoted title.
fn table(line: &str) -> Option<usize> {
    let title = line.trim().strip_prefix('"')?.strip_suffix(" report\"")?;
    COLUMNS.iter().position(|column| column.table.eq_ignore_ascii_case(title))
}

/// Quoted numbers at the start of a line, and the rest of the line.
fn quoted(line: &str) -> Option<(Vec<u64>, &str)> {
    let mut rest = line.trim_start();
    let mut numbers = Vec::new();
    while let Some(inner) = rest.strip_prefix('"') {
        let (number, after) = inner.split_once('"')?;
        numbers.push(number.trim().parse().ok()?);
        rest = after.trim_start();
    }
    (!numbers.is_empty()).then_some((numbers, rest))
}

/// Values of the tables of `-R`. A zero is a combination that IOzone skipped.
fn tables(lines: &[(usize, &str)]) -> Result<Rows, ImportError> {
    let mut rows = Rows::new();
    // Test and block sizes of the current table.
    let mut current: Option<(usize, Vec<u64>)> = None;
    for (line, content) in lines {
        if content.trim_start().starts_with('"') && content.contains("report") {
            current = table(content).map(|test| (test, Vec::new()));
            continue;
        }
        let (Some((test, blocks)), Some((numbers, rest))) = (&mut current, quoted(content)) else {
            // Other lines end a table.
            current = current.filter(|(_, blocks)| blocks.is_empty() && content.trim().is_empty());
            continue;
        };
        if blocks.is_empty() {
            *blocks = numbers;
            continue;
        }
        for (place, text) in rest.split_whitespace().enumerate() {
            let wrong = |expected| ImportError::Field {
                place: format!("line {line}, value {}", place + 1),
                expected,
                found: text.chars().take(40).flat_map(char::escape_debug).collect(),
            };
            let block = *blocks.get(place).ok_or_else(|| wrong("one value per block size"))?;
            let value = text.parse::<f64>().ok().filter(|own| own.is_finite() && *own >= 0.0);
            let value = value.ok_or_else(|| wrong("a number"))?;
            if value > 0.0 {
                rows.entry((numbers[0], block)).or_default().insert(*test, value);
            }
        }
    }
    Ok(rows)
}

/// Cells of the throughput mode: one per number of processes.
fn throughput(head: &Head, lines: &[(usize, &str)]) -> Result<Vec<Measurement>, ImportError> {
    let mut cells: Vec<Measurement> = Vec::new();
    for (line, content) in lines {
        let content = content.trim();
        let parts = content.split_once(" throughput for ").and_then(|(who, rest)| {
            let metric = match who {
                "Children see" => Metric::ThroughputWorkerSum,
                "Parent sees" => Metric::Throughput,
                _ => return None,
            };
            let (what, value) = rest.split_once('=')?;
            Some((metric, what.trim(), value.trim()))
        });
        let Some((metric, what, value)) = parts else { continue };
        let wrong = |expected, found: &str| ImportError::Field {
            place: format!("line {line}"),
            expected,
            found: found.chars().take(40).flat_map(char::escape_debug).collect(),
        };
        let (workers, name) = what
            .split_once(char::is_whitespace)
            .ok_or_else(|| wrong("a number of processes", what))?;
        let count: u64 = workers.parse().map_err(|_| wrong("a number of processes", workers))?;
        let name = name.trim();
        let place = WORKERS.iter().position(|(_, known, _)| *known == name);
        let place = place.ok_or_else(|| wrong("workers such as `readers`", name))?;
        let (number, unit) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
        let number = number.parse::<f64>().ok().filter(|own| own.is_finite() && *own >= 0.0);
        let number = number.ok_or_else(|| wrong("a rate", value))?;
        let is_rate = unit.to_ascii_lowercase().starts_with("kb");
        let (metric, number) = match (is_rate, metric) {
            (true, metric) => (metric, number * 1024.0),
            (false, Metric::Throughput) if unit.starts_with("ops") => (Metric::OpsRate, number),
            // There is no metric for the sum of the operations of the processes.
            (false, _) if unit.starts_with("ops") => continue,
            (false, _) => return Err(wrong("a rate in kB/sec or ops/sec", value)),
        };
        let is_new = cells
            .last()
            .is_none_or(|last| last.parameters.get("workers") != Some(&Value::Count(count)));
        if is_new {
            let mut own = head.clone();
            own.parameters.insert("workers".into(), Value::Count(count));
            cells.push(new(&own, head.file, head.block));
        }
        let Some(cell) = cells.last_mut() else { continue };
        let test = WORKERS[place].0;
        if !cell.phases.iter().any(|(_, known)| known.name == test) {
            let primary = if is_rate { Metric::Throughput } else { Metric::OpsRate };
            cell.phases.push((place, phase(test, "throughput mode", primary)));
        }
        cell.sample(test, metric, number);
    }
    Ok(cells)
}

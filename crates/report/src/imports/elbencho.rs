//! CSV of elbencho as measurements of suite `elbencho`.
//!
//! Columns are found by their names, because versions have different ones. Sources: public CSV
//! files of elbencho 3.1.

use std::collections::BTreeMap;

use model::{Bytes, Metric, Value};

use super::{
    ImportError, Importer, Measurement, label, phase,
    text::{MIB, MICROSECOND, count, known, nanos, number, slug},
};

/// Suite of the cells.
const SUITE: &str = "elbencho";

/// Importer of CSV.
pub(super) const CSV: Importer = Importer {
    name: "elbencho-csv",
    program: "elbencho",
    title: "CSV of elbencho (--csvfile)",
    recognized_by: "first column `ISO date`, and a column `operation`",
    cell: "operation, label, kind of paths, hosts, threads, directories, files, sizes, direct I/O, \
           order, queue depth",
    metrics: "`throughput` (MiB/s [last]), `ops_rate` (IOPS [last], or entries/s [last]); \
              `latency_mean` and `latency_max` of I/O, or of entries",
    omitted: "columns [first], which are those of the moment at which the first worker ended; CPU, \
              minimum latency",
    suite: SUITE,
    method: "Rates are those of elbencho: of all workers, up to the end of the last one.",
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| {
        let first = text.lines().next().unwrap_or_default();
        first.starts_with("ISO date,") && first.split(',').any(|name| name == "operation")
    },
    read,
};

/// Columns that identify a cell: name, and name of the parameter.
const PARAMETERS: [(&str, &str); 14] = [
    ("label", "label"),
    ("path type", "path_type"),
    ("paths", "paths"),
    ("hosts", "hosts"),
    ("threads", "workers"),
    ("dirs", "directories"),
    ("files", "files"),
    ("file size", "file_size"),
    ("block size", "block_size"),
    ("direct IO", "direct"),
    ("random", "random"),
    ("random aligned", "random_aligned"),
    ("IO depth", "queue_depth"),
    ("shared paths", "shared_paths"),
];

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut columns: BTreeMap<&str, usize> = BTreeMap::new();
    let mut measurements = Vec::new();
    for (place, content) in (1..).zip(text.lines()) {
        let fields: Vec<&str> = content.trim_end_matches('\r').split(',').collect();
        // A head is repeated if results were appended.
        if fields[0] == "ISO date" {
            columns = fields.iter().enumerate().map(|(at, name)| (name.trim(), at)).collect();
            continue;
        }
        if content.trim().is_empty() {
            continue;
        }
        if fields.len() < columns.len() {
            return Err(ImportError::Nothing {
                place: format!("line {place}"),
                what: "it has fewer fields than the head; the file may be truncated",
            });
        }
        let text = |name: &str| {
            let text =
                columns.get(name).and_then(|at| fields.get(*at)).copied().unwrap_or_default();
            Some(text.trim()).filter(|text| !text.is_empty())
        };
        let value = |name: &str| {
            let place = || format!("line {place}, column `{name}`");
            text(name).map(|text| number(place, text)).transpose()
        };
        measurements.push(row(&text, &value, place)?);
    }
    match measurements.is_empty() {
        true => Err(ImportError::Nothing { place: "the file".into(), what: "it has no results" }),
        false => Ok(measurements),
    }
}

fn row<'a>(
    text: &dyn Fn(&str) -> Option<&'a str>,
    value: &dyn Fn(&str) -> Result<Option<f64>, ImportError>,
    place: usize,
) -> Result<Measurement, ImportError> {
    let Some(operation) = text("operation") else {
        let place = format!("line {place}");
        return Err(ImportError::Nothing { place, what: "it has no operation" });
    };
    let parameter = |name: &str, own: &str| match name {
        "file_size" | "block_size" => own.parse().ok().map(|bytes| Value::Size(Bytes(bytes))),
        "label" | "path_type" => Some(Value::Word(own.to_owned())),
        "direct" | "random" | "random_aligned" | "shared_paths" => Some(Value::Flag(own == "1")),
        _ => count(own),
    };
    let mut parameters = known([("operation", Some(Value::Word(slug(operation))))]);
    for (column, name) in PARAMETERS {
        if let Some(value) = text(column).and_then(|own| parameter(name, own)) {
            parameters.insert(name.into(), value);
        }
    }
    let label = label(&parameters, &["operation", "label", "block_size", "workers"]);
    let mut measurement = Measurement::new(SUITE, "elbencho".into(), label, parameters);
    let elapsed = value("time ms [last]")?.unwrap_or_default() / 1000.0;
    measurement.elapsed = nanos(elapsed);
    if let Some(date) = text("ISO date") {
        measurement.fact("elbencho.date", date);
    }
    let (bytes, calls) = (value("MiB/s [last]")?, value("IOPS [last]")?);
    let (kind, rate) = match calls {
        Some(calls) => ("IO", Some(calls)),
        None => ("Ent", value("entries/s [last]")?),
    };
    let primary = if bytes.is_some() { Metric::Throughput } else { Metric::OpsRate };
    let name = slug(operation);
    measurement.phases.push((0, phase(&name, "operation", primary)));
    let latency = |which: &str| value(&format!("{kind} lat us [{which}]"));
    let all = [
        (Metric::Throughput, bytes.map(|own| own * MIB)),
        (Metric::OpsRate, rate),
        (Metric::LatencyMean, latency("avg")?.map(|own| own * MICROSECOND)),
        (Metric::LatencyMax, latency("max")?.map(|own| own * MICROSECOND)),
    ];
    measurement.samples(&name, all);
    Ok(measurement)
}

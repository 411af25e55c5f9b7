//! Text of fs_mark as measurements of suite `fs_mark`.
//!
//! Each line of results is a cell: the loops of fs_mark (`-L`) fill the filesystem, so that the
//! number of files differs. Sources: outputs of fs_mark 3.3.

use std::collections::BTreeMap;

use model::{Bytes, Metric, Value};

use super::{
    ImportError, Importer, Measurement, label, phase,
    text::{MICROSECOND, count, known, line, number, short, slug},
};

/// Suite of the cells.
const SUITE: &str = "fs_mark";

/// Importer of the text of fs_mark.
pub(super) const TEXT: Importer = Importer {
    name: "fs_mark-text",
    program: "fs_mark",
    title: "text of fs_mark 3.3, and its log",
    recognized_by: "line that begins with `FSUse%`",
    cell: "size of files, threads, sync method, directories, and number of files so far",
    metrics: "`ops_rate` (Files/sec); with `-v`, `latency_mean` and `latency_max` per call",
    omitted: "used space, overhead of the program, minima, averages of several loops",
    suite: SUITE,
    method: "The rate is that of fs_mark: the sum over its processes of files per second of the \
             loop that creates, writes, syncs, and closes files. Removal is not part of it. With \
             `-S` 2 to 6, the latency of fsync includes opening and closing.",
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| text.lines().any(is_head),
    read,
};

fn is_head(line: &str) -> bool {
    line.trim_start_matches(['#', ' ', '\t']).starts_with("FSUse%")
}

/// Columns of each call: minimum, mean, and maximum in microseconds.
struct Call {
    name: String,
    first: usize,
}

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let (mut version, mut method, mut directories) = (String::new(), None, None);
    let mut threads = None;
    let mut calls: Option<Vec<Call>> = None;
    let mut measurements = Vec::new();
    for (place, content) in (1..).zip(text.lines()) {
        let comment = content.trim_start_matches(['#', ' ', '\t']);
        if let Some(rest) = comment.strip_prefix("Version ") {
            let (own, rest) = rest.split_once(',').unwrap_or((rest, ""));
            own.clone_into(&mut version);
            threads = rest.trim().split(' ').next().and_then(count);
        } else if let Some(rest) = comment.strip_prefix("Sync method:") {
            method = rest.trim().split(':').next().map(|own| Value::Word(slug(own)));
        } else if let Some(rest) = comment.strip_prefix("Directories:") {
            directories = Some(Value::Text(short(rest.trim())));
        } else if is_head(content) {
            calls = Some(columns(comment));
        } else if let Some(calls) = &calls {
            let words: Vec<&str> = content.split_whitespace().collect();
            let is_row = words.len() >= 5 && words.iter().all(|own| own.parse::<f64>().is_ok());
            if !is_row {
                continue;
            }
            let value = |at: usize| number(line(place), words[at]);
            let parameters = known([
                ("file_size", words[2].parse().ok().map(|bytes| Value::Size(Bytes(bytes)))),
                ("files", count(words[1])),
                ("workers", threads.clone()),
                ("sync_method", method.clone()),
                ("directories", directories.clone()),
            ]);
            measurements.push(row(&version, parameters, &value, calls, words.len())?);
        }
    }
    match measurements.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "no line of results follows the line `FSUse%`; the output may be truncated",
        }),
        false => Ok(measurements),
    }
}

/// Calls in the head of `-v`, such as `CREAT (Min/Avg/Max)`.
fn columns(head: &str) -> Vec<Call> {
    let names = head.split("(Min/Avg/Max)").filter_map(|part| part.split_whitespace().next_back());
    // fs_mark has twelve calls.
    let names: Vec<&str> = names.take(32).collect();
    let has_calls = head.contains("(Min/Avg/Max)");
    let call = |(at, name): (usize, &&str)| Call { name: slug(name), first: 5 + 3 * at };
    if has_calls { names.iter().enumerate().map(call).collect() } else { Vec::new() }
}

fn row(
    version: &str,
    parameters: BTreeMap<String, Value>,
    value: &dyn Fn(usize) -> Result<f64, ImportError>,
    calls: &[Call],
    columns: usize,
) -> Result<Measurement, ImportError> {
    let label = label(&parameters, &["file_size", "files", "workers"]);
    let mut measurement = Measurement::new(SUITE, format!("fs_mark {version}"), label, parameters);
    measurement.phases.push((0, phase("files", "all calls", Metric::OpsRate)));
    measurement.sample("files", Metric::OpsRate, value(3)?);
    for (place, call) in (1..).zip(calls.iter().filter(|call| call.first + 2 < columns)) {
        let (mean, max) = (value(call.first + 1)?, value(call.first + 2)?);
        if max > 0.0 {
            measurement.phases.push((place, phase(&call.name, "calls", Metric::LatencyMean)));
            measurement.sample(&call.name, Metric::LatencyMean, mean * MICROSECOND);
            measurement.sample(&call.name, Metric::LatencyMax, max * MICROSECOND);
        }
    }
    Ok(measurement)
}

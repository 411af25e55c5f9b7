//! Text of filebench as measurements of suite `filebench`.
//!
//! Sources: public outputs of filebench 1.4.9 and 1.5; the breakdown by operation has the same
//! tokens in both.

use model::{Metric, Value};

use super::{
    ImportError, Importer, Measurement, phase,
    text::{MIB, MILLISECOND, known, line, number, slug},
};

/// Suite of the cells.
const SUITE: &str = "filebench";

/// Importer of the text of filebench.
pub(super) const TEXT: Importer = Importer {
    name: "filebench-text",
    program: "filebench",
    title: "text of filebench 1.4 and 1.5",
    recognized_by: "line with `IO Summary:`, or `Filebench Version`",
    cell: "name of the workload, from the line that it was loaded",
    metrics: "`ops_rate`, `throughput` (mb/s × 2^20), `latency_mean`; the same per operation of the \
              breakdown, with `latency_max`",
    omitted: "minimum latency, number of reads and writes, CPU per operation",
    suite: SUITE,
    method: "Rates and latencies are those of filebench: of all operations of the breakdown, which \
             include opening and closing, over the measured time. Some versions print latencies in \
             steps of 0.1 ms.",
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| {
        text.lines().any(|line| line.contains("IO Summary:") || line.starts_with(START))
    },
    read,
};

const START: &str = "Filebench Version";

/// Numbers of a line.
#[derive(Clone, Copy, Default)]
struct Figures {
    rate: Option<f64>,
    bytes: Option<f64>,
    mean: Option<f64>,
    max: Option<f64>,
}

/// Tokens of a line: `640ops/s`, `8314.540 ops/s`, `49.5mb/s`, `3.1ms/op`, and `[0.00ms - 1.71ms]`.
fn figures(place: usize, text: &str) -> Result<Figures, ImportError> {
    let value = |text: &str| number(line(place), text);
    let (before, range) = text.split_once('[').unwrap_or((text, ""));
    let mut own = Figures::default();
    let mut last = "";
    for word in before.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        let of = |unit: &str| {
            let number = word.strip_suffix(unit)?;
            Some(if number.is_empty() { last } else { number })
        };
        if let Some(text) = of("ops/s") {
            own.rate = Some(value(text)?);
        } else if let Some(text) = of("mb/s") {
            own.bytes = Some(value(text)? * MIB);
        } else if let Some(text) = of("ms/op") {
            own.mean = Some(value(text)? * MILLISECOND);
        } else if word == "latency" {
            own.mean = last.strip_suffix("ms").map(value).transpose()?.map(|own| own * MILLISECOND);
        }
        last = word;
    }
    if let Some((_, max)) = range.trim_end_matches(']').split_once(" - ") {
        own.max = Some(value(max.trim().trim_end_matches("ms"))? * MILLISECOND);
    }
    Ok(own)
}

fn add(measurement: &mut Measurement, place: usize, name: &str, group: &str, own: Figures) {
    measurement.phases.push((place, phase(name, group, Metric::OpsRate)));
    let all = [
        (Metric::OpsRate, own.rate),
        (Metric::Throughput, own.bytes.filter(|bytes| *bytes > 0.0)),
        (Metric::LatencyMean, own.mean),
        (Metric::LatencyMax, own.max),
    ];
    measurement.samples(name, all);
}

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut version = "unknown".to_owned();
    let mut workload = None;
    let mut operations: Vec<(String, Figures)> = Vec::new();
    let mut measurements = Vec::new();
    for (place, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if let Some(rest) = content.strip_prefix(START) {
            version = rest.split_whitespace().next().unwrap_or("unknown").to_owned();
            workload = None;
            operations.clear();
        } else if content.contains("personality successfully loaded") {
            let name = content.split_once(": ").map_or(content, |(_, rest)| rest);
            workload = name.split_whitespace().next().map(slug);
        } else if let Some((_, rest)) = content.split_once("IO Summary:") {
            let own = figures(place, rest)?;
            let parameters = known([("workload", workload.clone().map(Value::Word))]);
            let label = workload.clone().unwrap_or_default();
            let program = format!("filebench {version}");
            let mut measurement = Measurement::new(SUITE, program, label, parameters);
            add(&mut measurement, 0, "operations", "all operations", own);
            let mut names = std::collections::HashSet::from(["operations".to_owned()]);
            operations.retain(|(name, _)| names.insert(name.clone()));
            for (number, (name, own)) in (1..).zip(operations.drain(..)) {
                add(&mut measurement, number, &name, "operations by name", own);
            }
            measurements.push(measurement);
        } else if content.contains("ops/s") {
            let name = content.split_whitespace().next().unwrap_or_default();
            operations.push((slug(name), figures(place, content)?));
        }
    }
    match measurements.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no line `IO Summary:`; the output may be truncated",
        }),
        false => Ok(measurements),
    }
}

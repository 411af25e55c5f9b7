//! Results of the Phoronix Test Suite as measurements of suite `phoronix`.
//!
//! Each result is a phase of its test, and each run of a test is a measurement. Sources: public
//! files `composite.xml`, and the documentation of results of the Phoronix Test Suite.

use model::{Metric, Value};
use roxmltree::{Document, Node};

use super::{
    ImportError, Importer, Measurement, phase,
    text::{GIB, KIB, MIB, MILLISECOND, SECOND, known, number, short},
};

/// Suite of the cells.
const SUITE: &str = "phoronix";

/// Phase of a result.
const RESULT: &str = "result";

/// Importer of `composite.xml`.
pub(super) const XML: Importer = Importer {
    name: "phoronix-xml",
    program: "Phoronix Test Suite",
    title: "composite.xml of the Phoronix Test Suite",
    recognized_by: "element `PhoronixTestSuite`",
    cell: "test with its version, arguments, description, and unit; name of the system",
    metrics: "`reported_throughput`, `reported_rate`, or `reported_time` by the unit of the result; \
              `reported_count` for other units; each run is a repetition",
    omitted: "hardware, software, and logs; results without numbers, such as images; line graphs, \
              such as those of monitors",
    suite: SUITE,
    method: "Values are those that the test printed, whose definitions differ by test. MB/s of the \
             tests of fio and IOzone are units of 2^20 bytes, and those of other tests of 10^6.",
    longest: 16 << 20,
    is_one_configuration: false,
    recognize: |text| text.contains("<PhoronixTestSuite"),
    read,
};

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    // The parser compares each attribute of an element with its others. Results have none.
    let attributes = |part: &str| part.bytes().filter(|byte| *byte == b'=').count();
    if text.split('<').any(|part| attributes(part) > 1000) {
        let what = "an element has more than 1000 attributes".into();
        return Err(ImportError::Contradiction { place: "the file".into(), what });
    }
    let document = Document::parse(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let at = error.pos();
        let text = error.to_string();
        let what = text.rsplit_once(" at ").map_or(text.as_str(), |(what, _)| what).to_owned();
        ImportError::Xml { line: at.row, column: at.col, what }
    })?;
    let root = document.root_element();
    let program = format!("Phoronix Test Suite {}", version(root));
    let mut all = Vec::new();
    for result in root.children().filter(|node| node.has_tag_name("Result")) {
        let of = |name: &str| short(child(result, name).unwrap_or_default());
        if of("DisplayFormat").contains("LINE") {
            continue;
        }
        let (identifier, unit) = (of("Identifier"), of("Scale"));
        let test = identifier.rsplit('/').next().unwrap_or_default().to_owned();
        let (metric, factor) = metric(&test, &unit, of("Proportion") == "LIB");
        let text = |text: String| (!text.is_empty()).then_some(Value::Text(text));
        let parameters = known([
            ("test", text(identifier.clone())),
            ("version", text(of("AppVersion"))),
            ("arguments", text(of("Arguments"))),
            ("description", text(of("Description"))),
            ("unit", text(unit)),
        ]);
        let label = format!("{test} {}", of("Description")).trim_end().to_owned();
        for entry in entries(result) {
            let name = short(child(entry, "Identifier").unwrap_or_default().trim());
            let Some(values) = values(entry) else { continue };
            for value in values {
                let parameters = parameters.clone();
                let mut own = Measurement::new(SUITE, program.clone(), label.clone(), parameters);
                own.name = (!name.is_empty()).then(|| name.clone());
                own.phases.push((0, phase(RESULT, "result", metric)));
                own.sample(RESULT, metric, value * factor);
                all.push(own);
            }
        }
    }
    match all.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no result with a number",
        }),
        false => Ok(all),
    }
}

/// Version in `Phoronix Test Suite v10.8.4` of the head.
fn version(root: Node<'_, '_>) -> String {
    let head = root.children().find(|node| node.has_tag_name("Generated"));
    let client = head.and_then(|head| child(head, "TestClient")).unwrap_or_default();
    let version = client.split_whitespace().next_back().unwrap_or("unknown");
    version.trim_start_matches('v').to_owned()
}

fn child<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.children().find(|own| own.has_tag_name(name)).and_then(|own| own.text())
}

fn entries<'a, 'i>(result: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    let data = result.children().filter(|node| node.has_tag_name("Data"));
    data.flat_map(|data| data.children()).filter(|node| node.has_tag_name("Entry"))
}

/// Values of the runs: `RawString`, separated by `:` or commas, or the only value. `None` if they
/// are not numbers, such as `PASS` or an image.
fn values(entry: Node<'_, '_>) -> Option<Vec<f64>> {
    let raw = child(entry, "RawString").unwrap_or_default();
    let mut runs: Vec<&str> =
        raw.split([':', ',']).map(str::trim).filter(|own| !own.is_empty()).collect();
    if runs.is_empty() {
        runs.push(child(entry, "Value").unwrap_or_default());
    }
    runs.into_iter().map(|own| number(String::new, own).ok()).collect()
}

/// Metric of a unit, and the factor to its base unit.
fn metric(test: &str, unit: &str, lower_is_better: bool) -> (Metric, f64) {
    let binary = test.starts_with("fio") || test.starts_with("iozone");
    let power = |decimal: f64, of_two: f64| if binary { of_two } else { decimal };
    let known = match unit.trim().to_ascii_lowercase().as_str() {
        "kib/s" => Some((Metric::ReportedThroughput, KIB)),
        "mib/s" => Some((Metric::ReportedThroughput, MIB)),
        "gib/s" => Some((Metric::ReportedThroughput, GIB)),
        "kb/s" => Some((Metric::ReportedThroughput, power(1e3, KIB))),
        "mb/s" => Some((Metric::ReportedThroughput, power(1e6, MIB))),
        "gb/s" => Some((Metric::ReportedThroughput, power(1e9, GIB))),
        "seconds" | "second" | "sec" | "s" => Some((Metric::ReportedTime, SECOND)),
        "ms" | "milliseconds" => Some((Metric::ReportedTime, MILLISECOND)),
        "iops" | "tps" | "files/s" | "ops/s" | "ops/sec" | "op/s" => {
            Some((Metric::ReportedRate, 1.0))
        }
        unit if unit.ends_with("per second") || unit.ends_with("/s") || unit.ends_with("/sec") => {
            Some((Metric::ReportedRate, 1.0))
        }
        _ => None,
    };
    // The direction of the metric has to be that of the result.
    let is_lower = |metric| metric == Metric::ReportedTime;
    known
        .filter(|(metric, _)| is_lower(*metric) == lower_is_better)
        .unwrap_or((Metric::ReportedCount, 1.0))
}

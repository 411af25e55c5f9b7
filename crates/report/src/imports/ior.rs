//! Text and JSON of IOR as measurements of suite `ior`.
//!
//! Each iteration is a measurement, whose phases are the accesses `write` and `read`. Sources:
//! IOR's user documentation, and public outputs of IOR 3.0 to 4.1.

use std::collections::BTreeMap;

use model::{Metric, Value};
use serde_json::Value as Json;

use super::{
    ImportError, Importer, Measurement, label, phase,
    text::{MIB, SECOND, arguments, count, known, line, nanos, number, short, size},
};

/// Suite of the cells.
const SUITE: &str = "ior";

const METHOD: &str = "Throughput is that of IOR: bytes of all tasks over the time from the first \
                      open to the last close of an iteration. Operations per second are over the \
                      time of the transfers alone.";

const CELL: &str = "interface, sharing of files, order, tasks, nodes, sizes, and the other \
                    options, without paths";

const METRICS: &str = "`throughput` (MiB/s), `ops_rate` (IOPS), and `elapsed` (total time) of each \
                       iteration";

const OMITTED: &str = "latency, which is that of the fastest task; summary of all tests; times of \
                       open, transfers, and close; removal of files";

/// Importer of text.
pub(super) const TEXT: Importer = Importer {
    name: "ior-text",
    program: "IOR",
    title: "text of IOR 3 and 4",
    recognized_by: "line with `bw(MiB/s)`, the head of the results",
    cell: CELL,
    metrics: METRICS,
    omitted: OMITTED,
    suite: SUITE,
    method: METHOD,
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| {
        text.lines()
            .any(|line| line.trim_start().starts_with("access ") && line.contains("bw(MiB/s)"))
    },
    read: read_text,
};

/// Importer of JSON.
pub(super) const JSON: Importer = Importer {
    name: "ior-json",
    title: "JSON of IOR 3 and 4",
    recognized_by: "key `\"bwMiB\"`",
    recognize: |text| text.contains("\"bwMiB\""),
    longest: 64 << 20,
    read: read_json,
    ..TEXT
};

/// Results of an access in one iteration, in base units.
#[derive(Clone, Copy, Debug, Default)]
struct Access {
    bytes: Option<f64>,
    operations: Option<f64>,
    elapsed: Option<f64>,
}

/// Results of a test: by iteration, those of write and read.
#[derive(Debug, Default)]
struct Test {
    parameters: BTreeMap<String, Value>,
    iterations: BTreeMap<u64, [Option<Access>; 2]>,
    /// Number of results of write and read.
    counts: [u64; 2],
}

impl Test {
    /// Adds results. Without a number of the iteration, it is the next one of this access.
    fn add(&mut self, name: &str, iteration: Option<u64>, own: Access) {
        let place = match name {
            "write" => 0,
            "read" => 1,
            _ => return,
        };
        let iteration = iteration.unwrap_or(self.counts[place]);
        self.counts[place] += 1;
        self.iterations.entry(iteration).or_default()[place] = Some(own);
    }

    fn measurements(self, version: &str) -> Vec<Measurement> {
        let label = label(&self.parameters, &["api", "sharing", "block_size", "workers"]);
        let program = format!("IOR {version}");
        let all = self.iterations.into_values().map(|accesses| {
            let parameters = self.parameters.clone();
            let mut own = Measurement::new(SUITE, program.clone(), label.clone(), parameters);
            let mut seconds = 0.0;
            for (place, name) in ["write", "read"].into_iter().enumerate() {
                let Some(access) = accesses[place] else { continue };
                own.phases.push((place, phase(name, "block I/O", Metric::Throughput)));
                let samples = [
                    (Metric::Throughput, access.bytes),
                    (Metric::OpsRate, access.operations),
                    (Metric::Elapsed, access.elapsed),
                ];
                own.samples(name, samples);
                seconds += access.elapsed.unwrap_or_default() / SECOND;
            }
            own.elapsed = nanos(seconds);
            own
        });
        all.collect()
    }
}

fn nothing() -> ImportError {
    let what = "it has no result of write or read; the output may be truncated";
    ImportError::Nothing { place: "the file".into(), what }
}

fn read_text(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let (mut version, mut options) = ("unknown".to_owned(), String::new());
    let mut columns: Vec<&str> = Vec::new();
    let mut test = Test::default();
    let mut all = Vec::new();
    for (place, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        let words: Vec<&str> = content.split_whitespace().collect();
        if let Some(rest) = content.strip_prefix("IOR-") {
            all.extend(std::mem::take(&mut test).measurements(&version));
            columns.clear();
            options.clear();
            rest.split(':').next().unwrap_or_default().clone_into(&mut version);
        } else if content == "Options:" {
            all.extend(std::mem::take(&mut test).measurements(&version));
            columns.clear();
        } else if words.first() == Some(&"access") && content.contains("bw(MiB/s)") {
            columns = words;
            if !options.is_empty() {
                let own = Value::Text(options.clone());
                test.parameters.insert("options".into(), own);
            }
        } else if columns.is_empty() {
            if let Some((name, value)) = content.split_once(':') {
                match name.trim() {
                    "Command line" | "Command line used" => {
                        options = arguments(value.trim(), &["-o"])
                    }
                    name => option(&mut test.parameters, name, value.trim()),
                }
            }
        } else if matches!(words.first(), Some(&"write" | &"read")) && words.len() == columns.len()
        {
            let value = |name: &str| {
                let at = columns.iter().position(|own| own.starts_with(name));
                at.map(|at| number(line(place), words[at])).transpose()
            };
            let iteration = columns.iter().position(|own| *own == "iter");
            let own = Access {
                bytes: value("bw(")?.map(|own| own * MIB),
                operations: value("IOPS")?,
                elapsed: value("total(")?.map(|own| own * SECOND),
            };
            test.add(words[0], iteration.and_then(|at| words[at].parse().ok()), own);
        }
    }
    all.extend(test.measurements(&version));
    if all.is_empty() { Err(nothing()) } else { Ok(all) }
}

/// Option of the head: name and parameter.
fn option(parameters: &mut BTreeMap<String, Value>, name: &str, text: &str) {
    let word = || Some(Value::Word(text.to_owned())).filter(|_| !text.is_empty());
    let (name, value) = match name {
        "api" => ("api", word()),
        "access" => ("sharing", word()),
        "type" => ("type", word()),
        "ordering in a file" => ("order", word()),
        "ordering inter file" => ("order_of_tasks", Some(Value::Text(text.to_owned()))),
        "segments" => ("segments", count(text)),
        "nodes" => ("hosts", count(text)),
        "tasks" => ("workers", count(text)),
        "xfersize" => ("block_size", size(text)),
        "blocksize" => ("segment_size", size(text)),
        "aggregate filesize" => ("total_size", size(text)),
        _ => return,
    };
    if let Some(value) = value {
        parameters.insert(name.into(), value);
    }
}

fn read_json(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let document: Json = serde_json::from_slice(bytes).map_err(|error| match error.is_eof() {
        true => ImportError::Truncated { line: error.line() },
        false => ImportError::Json {
            line: error.line(),
            column: error.column(),
            what: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        },
    })?;
    let version = text_of(document.get("Version").or_else(|| document.get("version")));
    let version = version.trim_start_matches("IOR-").to_owned();
    let tests = document.get("tests").and_then(Json::as_array).map(Vec::as_slice);
    let mut all = Vec::new();
    for (place, own) in tests.unwrap_or_default().iter().enumerate() {
        let options = own.get("Options").unwrap_or(&Json::Null);
        let results = own.get("Results").or_else(|| options.get("Results"));
        let mut test = Test { parameters: parameters(own, options), ..Test::default() };
        for result in results.and_then(Json::as_array).into_iter().flatten() {
            let value = |name: &str| {
                let place = || format!("test {place}, key `{name}`");
                let text = text_of(result.get(name));
                (!text.is_empty()).then(|| number(place, &text)).transpose()
            };
            let own = Access {
                bytes: value("bwMiB")?.map(|own| own * MIB),
                operations: value("iops")?,
                elapsed: value("totalTime")?.map(|own| own * SECOND),
            };
            let iteration = result.get("iter").and_then(Json::as_u64);
            test.add(&text_of(result.get("access")), iteration, own);
        }
        all.extend(test.measurements(&version));
    }
    if all.is_empty() { Err(nothing()) } else { Ok(all) }
}

/// Text of a number or string.
fn text_of(value: Option<&Json>) -> String {
    match value {
        Some(Json::String(text)) => text.trim().to_owned(),
        Some(value @ (Json::Number(_) | Json::Bool(_))) => value.to_string(),
        _ => String::new(),
    }
}

/// Parameters of a test. Those without a name here are one text.
fn parameters(test: &Json, options: &Json) -> BTreeMap<String, Value> {
    let own = test.get("Parameters").and_then(Json::as_object);
    let find = |name: &str| text_of(own.and_then(|own| own.get(name)));
    let shared = match find("filePerProc").as_str() {
        "" => None,
        "0" | "false" => Some(Value::Word("single-shared-file".into())),
        _ => Some(Value::Word("file-per-process".into())),
    };
    let tasks = [find("numTasks"), text_of(options.get("tasks"))];
    let mut parameters = known([
        ("api", Some(Value::Word(find("api"))).filter(|_| !find("api").is_empty())),
        ("sharing", shared),
        ("segments", count(&find("segmentCount"))),
        ("hosts", count(&text_of(options.get("nodes")))),
        ("workers", tasks.iter().find_map(|own| count(own))),
        ("block_size", size(&find("transferSize"))),
        ("segment_size", size(&find("blockSize"))),
    ]);
    const NAMED: [&str; 9] = [
        "api",
        "filePerProc",
        "segmentCount",
        "numTasks",
        "transferSize",
        "blockSize",
        "testID",
        "refNum",
        "repetitions",
    ];
    let is_other = |name: &str, value: &str| {
        let path = value.contains('/') || name.contains("FileName");
        !NAMED.contains(&name) && !path && !matches!(value, "" | "0" | "false")
    };
    let others: Vec<String> = own
        .into_iter()
        .flatten()
        .map(|(name, value)| (name, text_of(Some(value))))
        .filter(|(name, value)| is_other(name, value))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if !others.is_empty() {
        parameters.insert("options".into(), Value::Text(short(&others.join(" "))));
    }
    parameters
}

//! Text of dbench as measurements of suite `dbench`.
//!
//! A file may contain several outputs, each of which begins with a line with `dbench version`.
//! Sources: dbench(1) and outputs of dbench 4.00; the formats of 3.x, 5.0, and its option
//! `--machine-readable` by their definition.

use std::collections::BTreeMap;

use model::{Metric, Nanos, Value, record::Outcome};

use super::{ImportError, Importer, Measurement, label, phase};

/// Suite of the cells.
const SUITE: &str = "dbench";

/// Phase of the whole replay.
const REPLAY: &str = "replay";

/// Start of an output of fslab, before the version.
const OF_FSLAB: &str = "dbench workload, measured by fslab ";

/// Bytes per MB of dbench.
const MB: f64 = 1e6;

/// Importer of the text of dbench.
pub(super) const TEXT: Importer = Importer {
    name: "dbench-text",
    program: "dbench",
    title: "text of dbench 3, 4, and 5",
    recognized_by: "line with `dbench version`, or a line `Throughput … MB/sec … procs`",
    cell: "clients, loadfile, run time, synchronous open and directories",
    metrics: "`throughput_dbench` (MB/sec × 10^6), `latency_max`; table of operations: \
              `latency_mean` and `latency_max` per operation",
    omitted: "throughput of each second, counts of operations, results per client",
    suite: SUITE,
    method: "Throughput is that of dbench: the requested bytes of reads and writes up to the last \
             full second, in units of 10^6 bytes. The maximum latency also includes the time \
             between operations of a client.",
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| {
        let is_start =
            |line: &str| line.starts_with("dbench version") || line.starts_with(OF_FSLAB);
        text.lines().any(|line| is_start(line) || summary(line).is_some())
    },
    read,
};

/// Results of the last line of an output.
#[derive(Clone, Copy)]
struct Summary<'a> {
    rate: &'a str,
    clients: &'a str,
    latency: Option<&'a str>,
    o_sync: bool,
    sync_directories: bool,
}

/// Summary in a line: `Throughput X MB/sec (sync open) N clients N procs max_latency=Y ms`, without
/// clients and latency in 3.x, or `;X;clients;procs;Y;`.
fn summary(line: &str) -> Option<Summary<'_>> {
    if let Some(rest) = line.strip_prefix("Throughput ") {
        let (rate, rest) = rest.split_once(" MB/sec")?;
        let word_before =
            |unit: &str| rest.split(unit).next().filter(|before| before.len() < rest.len());
        let processes = word_before(" procs")?.split_whitespace().next_back()?;
        let clients = word_before(" clients").and_then(|own| own.split_whitespace().next_back());
        let latency = rest.split_once("max_latency=").and_then(|(_, rest)| rest.split_once(" ms"));
        return Some(Summary {
            rate: rate.trim(),
            clients: clients.unwrap_or(processes),
            latency: latency.map(|(latency, _)| latency),
            o_sync: rest.contains("(sync open)"),
            sync_directories: rest.contains("(sync dirs)"),
        });
    }
    let fields: Vec<&str> = line.strip_prefix(';')?.strip_suffix(';')?.split(';').collect();
    let [rate, clients, _, latency] = fields[..] else { return None };
    let latency = Some(latency);
    Some(Summary { rate, clients, latency, o_sync: false, sync_directories: false })
}

/// Operation with mean and maximum latency in milliseconds: `Close  9962  0.001  0.057`, or
/// `:Close:9962:0.001:0.057:`.
fn operation(line: &str) -> Option<[&str; 3]> {
    let words: Vec<&str> = match line.strip_prefix(':').and_then(|own| own.strip_suffix(':')) {
        Some(fields) => fields.split(':').collect(),
        None => line.split_whitespace().collect(),
    };
    let [name, count, mean, max] = words[..] else { return None };
    let named = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let numbers = count.parse::<u64>().is_ok() && is_number(mean) && is_number(max);
    (named && numbers && mean.contains('.')).then_some([name, mean, max])
}

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut measurements = Vec::new();
    let mut output = Output::default();
    for (line, content) in (1..).zip(text.lines()) {
        if content.starts_with("dbench version") || content.starts_with(OF_FSLAB) {
            measurements.extend(std::mem::take(&mut output).measurement());
        }
        output.read(line, content.trim_end())?;
    }
    measurements.extend(output.measurement());
    match measurements.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no line `Throughput` of dbench; the output may be truncated",
        }),
        false => Ok(measurements),
    }
}

/// Output of one run of dbench.
#[derive(Default)]
struct Output {
    version: Option<String>,
    /// True if fslab measured.
    is_of_fslab: bool,
    parameters: BTreeMap<String, Value>,
    /// Rate in the last full second of the machine-readable format.
    last_rate: Option<f64>,
    /// Operations with mean and maximum latency in nanoseconds.
    operations: Vec<(String, f64, f64)>,
    /// True within the tables of single clients, which follow the table of all clients.
    is_of_client: bool,
    /// Rate in bytes per second, and maximum latency in nanoseconds.
    result: Option<(f64, Option<f64>)>,
}

impl Output {
    fn read(&mut self, line: usize, content: &str) -> Result<(), ImportError> {
        let number = |text: &str| {
            let number = text.parse::<f64>().ok().filter(|own| (0.0..=1e15).contains(own));
            number.ok_or_else(|| ImportError::Field {
                place: format!("line {line}"),
                expected: "a number",
                found: text.chars().take(40).flat_map(char::escape_debug).collect(),
            })
        };
        if let Some(rest) = content.strip_prefix(OF_FSLAB) {
            self.version = rest.split([',', ' ']).next().map(str::to_owned);
            self.is_of_fslab = true;
        } else if let Some(version) = content.strip_prefix("dbench version ") {
            self.version = version.split_whitespace().next().map(str::to_owned);
        } else if let Some(rest) = content.strip_prefix("Running for ") {
            self.start(rest);
        } else if let Some(rest) = content.strip_prefix("@R@") {
            self.last_rate = rest.split('@').nth(2).map(number).transpose()?;
        } else if content.starts_with("Client ") && content.contains(" lines and ") {
            self.is_of_client = true;
        } else if let Some([name, mean, max]) = operation(content) {
            if !self.is_of_client {
                let times = (number(mean)? * 1e6, number(max)? * 1e6);
                self.operations.push((name.to_owned(), times.0, times.1));
            }
        } else if let Some(summary) = summary(content) {
            let rate = number(summary.rate)? * MB;
            let latency = summary.latency.map(number).transpose()?.map(|latency| latency * 1e6);
            self.result = Some((rate, latency));
            if let Ok(clients) = summary.clients.parse() {
                self.parameters.insert("clients".into(), Value::Count(clients));
            }
            for (set, name) in
                [(summary.o_sync, "o_sync"), (summary.sync_directories, "sync_directories")]
            {
                if set {
                    self.parameters.insert(name.into(), Value::Flag(true));
                }
            }
        }
        Ok(())
    }

    /// Parameters in the line `Running for 60 seconds with load 'client.txt' and minimum warmup 12
    /// secs`.
    fn start(&mut self, rest: &str) {
        let seconds = |text: &str| {
            let seconds: u64 = text.split_whitespace().next()?.parse().ok()?;
            seconds.checked_mul(1_000_000_000).map(|nanos| Value::Time(Nanos(nanos)))
        };
        let load = rest.split('\'').nth(1).and_then(|path| path.rsplit('/').next());
        let ramp = rest.split_once("warmup ").and_then(|(_, rest)| seconds(rest));
        let known = [
            ("runtime", seconds(rest)),
            ("ramp_time", ramp),
            ("loadfile", load.map(|load| Value::Word(load.to_owned()))),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        self.parameters.extend(known);
    }

    /// Measurement, if the output has a result.
    fn measurement(self) -> Option<Measurement> {
        let (rate, latency) = self.result?;
        let version = self.version.unwrap_or_else(|| "unknown".into());
        let program = match self.is_of_fslab {
            true => format!("fslab {version}, dbench format"),
            false => format!("dbench {version}"),
        };
        let label = label(&self.parameters, &["clients", "loadfile"]);
        let mut measurement = Measurement {
            phases: vec![(0, phase(REPLAY, "all clients", Metric::ThroughputDbench))],
            ..Measurement::new(SUITE, program, label, self.parameters)
        };
        measurement.fact("dbench.version", &version);
        // The summary of the machine-readable format of dbench 5.0 has the rate 0.
        let rate = if rate > 0.0 { rate } else { self.last_rate.unwrap_or_default() * MB };
        if rate <= 0.0 {
            let reason = "dbench reported a throughput of 0".to_owned();
            measurement.outcome = Outcome::Failed { reason };
            return Some(measurement);
        }
        let results = [(Metric::ThroughputDbench, Some(rate)), (Metric::LatencyMax, latency)];
        measurement.samples(REPLAY, results);
        for (place, (name, mean, max)) in (1..).zip(self.operations) {
            measurement.phases.push((place, phase(&name, "operations", Metric::LatencyMean)));
            measurement.sample(&name, Metric::LatencyMean, mean);
            measurement.sample(&name, Metric::LatencyMax, max);
        }
        Some(measurement)
    }
}

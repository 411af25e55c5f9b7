//! Text of sysbench fileio as measurements of suite `sysbench`.
//!
//! Sources: output of sysbench 1.0.20; the layouts of 0.4 and 1.1 by their definition.

use std::collections::BTreeMap;

use model::{Metric, Value};

use super::{
    ImportError, Importer, Measurement, label, phase,
    text::{MIB, MILLISECOND, count, line, nanos, number, short, size},
};

/// Suite of the cells.
const SUITE: &str = "sysbench";

/// Importer of the text of sysbench.
pub(super) const TEXT: Importer = Importer {
    name: "sysbench-text",
    program: "sysbench",
    title: "text of sysbench fileio 0.4, 1.0, and 1.1",
    recognized_by: "line that begins with `sysbench` and a version",
    cell: "test mode, threads, number and total size of files, block size, mode of I/O, flags of \
           open, ratio of reads and writes, syncs",
    metrics: "`throughput` (MiB/s; `Mb/sec` of 0.4) and `ops_rate` of reads and of writes; \
              `ops_rate` of syncs; of all events: `latency_mean`, `latency_max`, and with \
              `--percentile=99` `latency_p99`",
    omitted: "other percentiles, fairness of threads, intermediate reports, tests other than fileio",
    suite: SUITE,
    method: "Rates are those of sysbench: operations and bytes over the total time, which includes a \
             final fsync of each file if it was requested. Latencies are of reads, writes, and \
             periodic syncs together; the final syncs are in the rate of syncs only.",
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| text.lines().any(is_start),
    read,
};

fn is_start(line: &str) -> bool {
    let rest = line.strip_prefix("sysbench ").unwrap_or_default();
    rest.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit())
}

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut measurements = Vec::new();
    let mut output = Output::default();
    for (number, content) in (1..).zip(text.lines()) {
        if is_start(content) {
            measurements.extend(std::mem::take(&mut output).measurement());
        }
        output.read(number, content.trim())?;
    }
    measurements.extend(output.measurement());
    match measurements.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no rates of reads or writes; only fileio is imported, and the output may \
                   be truncated",
        }),
        false => Ok(measurements),
    }
}

/// Test modes by their titles.
const MODES: [(&str, &str); 6] = [
    ("random r/w test", "rndrw"),
    ("random read test", "rndrd"),
    ("random write test", "rndwr"),
    ("sequential read test", "seqrd"),
    ("sequential write (creation) test", "seqwr"),
    ("sequential rewrite test", "seqrewr"),
];

/// One output.
#[derive(Default)]
struct Output {
    version: String,
    parameters: BTreeMap<String, Value>,
    /// Rates in bytes and operations per second, of reads and of writes.
    bytes: [f64; 2],
    operations: [f64; 2],
    syncs: f64,
    mean: Option<f64>,
    max: Option<f64>,
    percentile: Option<f64>,
    elapsed: f64,
    /// Numbers of operations of 0.4, which prints no rates of them.
    totals: [f64; 2],
}

impl Output {
    fn set(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.parameters.insert(name.into(), value);
        }
    }

    fn read(&mut self, place: usize, content: &str) -> Result<(), ImportError> {
        let value = |text: &str| number(line(place), text);
        if is_start(content) {
            let version = content["sysbench ".len()..].split([' ', ':']).next().unwrap_or_default();
            version.trim_start_matches('v').clone_into(&mut self.version);
        } else if let Some(rest) = content.strip_prefix("Number of threads:") {
            self.set("workers", count(rest));
        } else if let Some((files, _)) = content.split_once(" files, ") {
            self.set("files", count(files));
        } else if let Some(rest) = content.strip_suffix(" total file size") {
            self.set("file_size", size(rest));
        } else if let Some(rest) = content.strip_prefix("Block size ") {
            self.set("block_size", size(rest));
        } else if let Some(rest) = content.strip_prefix("Doing ") {
            let mode = MODES.into_iter().find(|(title, _)| *title == rest);
            self.set("mode", mode.map(|(_, mode)| Value::Word(mode.into())));
        } else if content.starts_with("Using ") || content.starts_with("Calling fsync") {
            let name = if content.starts_with('U') { "io_mode" } else { "fsync" };
            self.set(name, Some(Value::Text(content.trim_end_matches('.').to_owned())));
        } else if let Some(rest) =
            content.strip_prefix("Periodic FSYNC enabled, calling fsync() each ")
        {
            self.set(
                "fsync_every",
                count(rest.trim_end_matches('.').trim_end_matches(" requests")),
            );
        } else if let Some((name, rest)) = content.split_once(':') {
            let rest = rest.trim();
            let first = rest.split([' ', 's']).next().unwrap_or_default();
            match name.trim() {
                "Extra file open flags" if !matches!(rest, "(none)" | "0") => {
                    self.set("open_flags", Some(Value::Text(short(rest))));
                }
                "Read/Write ratio for combined random IO test" => {
                    self.set("read_write_ratio", Some(Value::Number(value(rest)?)));
                }
                "reads/s" => self.operations[0] = value(rest)?,
                "writes/s" => self.operations[1] = value(rest)?,
                "fsyncs/s" => self.syncs = value(rest)?,
                "read, MiB/s" => self.bytes[0] = value(rest)? * MIB,
                "written, MiB/s" => self.bytes[1] = value(rest)? * MIB,
                "read" | "write" | "fsync" if rest.contains("IOPS=") => {
                    self.rates(place, name, rest)?
                }
                "total time" => self.elapsed = value(first)?,
                "Operations performed" => self.performed(place, rest)?,
                "avg" => self.mean = Some(self.time(place, rest)?),
                "max" => self.max = Some(self.time(place, rest)?),
                "99th percentile" => self.percentile = Some(self.time(place, rest)?),
                _ => {}
            }
        } else if content.starts_with("Read ") && content.contains("Total transferred") {
            self.transferred(place, content)?;
        }
        Ok(())
    }

    /// Time in milliseconds, with a unit in 0.4.
    fn time(&self, place: usize, text: &str) -> Result<f64, ImportError> {
        Ok(number(line(place), text.trim_end_matches("ms"))? * MILLISECOND)
    }

    /// Rates of 1.1: `IOPS=30590.75 477.98 MiB/s (501.20 MB/s)`.
    fn rates(&mut self, place: usize, name: &str, rest: &str) -> Result<(), ImportError> {
        let mut words = rest.split_whitespace();
        let operations = words.next().unwrap_or_default().trim_start_matches("IOPS=");
        let operations = number(line(place), operations)?;
        let bytes = words.next().map(|own| number(line(place), own)).transpose()?;
        match name.trim() {
            "fsync" => self.syncs = operations,
            name => {
                let direction = usize::from(name == "write");
                self.operations[direction] = operations;
                self.bytes[direction] = bytes.unwrap_or_default() * MIB;
            }
        }
        Ok(())
    }

    /// Counts of 0.4: `6000 Read, 4000 Write, 12800 Other = 22800 Total`.
    fn performed(&mut self, place: usize, rest: &str) -> Result<(), ImportError> {
        for part in rest.split([',', '=']) {
            match part.trim().split_once(' ') {
                Some((own, name)) if name.starts_with("Read") => {
                    self.totals[0] = number(line(place), own)?;
                }
                Some((own, name)) if name.starts_with("Write") => {
                    self.totals[1] = number(line(place), own)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Amounts of 0.4, in which `Mb` is MiB: `Read 93.75Mb  Written 62.5Mb  Total transferred …`.
    fn transferred(&mut self, place: usize, content: &str) -> Result<(), ImportError> {
        let words: Vec<&str> = content.split_whitespace().collect();
        for (name, direction) in [("Read", 0), ("Written", 1)] {
            let at = words.iter().position(|word| *word == name);
            let Some(amount) = at.and_then(|at| words.get(at + 1)) else { continue };
            let Some(Value::Size(bytes)) = size(amount) else {
                number(line(place), amount)?;
                continue;
            };
            #[expect(clippy::cast_precision_loss, reason = "below 2^60")]
            let bytes = bytes.0 as f64;
            self.bytes[direction] = bytes;
        }
        Ok(())
    }

    fn measurement(mut self) -> Option<Measurement> {
        if self.totals.iter().any(|total| *total > 0.0) && self.elapsed > 0.0 {
            self.operations = self.totals.map(|total| total / self.elapsed);
            self.bytes = self.bytes.map(|bytes| bytes / self.elapsed);
        }
        if self.operations.iter().all(|own| *own <= 0.0) {
            return None;
        }
        let label = label(&self.parameters, &["mode", "block_size", "workers"]);
        let program = format!("sysbench {}", self.version);
        let mut measurement = Measurement {
            elapsed: nanos(self.elapsed),
            ..Measurement::new(SUITE, program, label, self.parameters)
        };
        for (place, name) in ["read", "write"].into_iter().enumerate() {
            if self.operations[place] > 0.0 {
                measurement.phases.push((place, phase(name, "block I/O", Metric::Throughput)));
                let rates = [
                    (Metric::Throughput, Some(self.bytes[place])),
                    (Metric::OpsRate, Some(self.operations[place])),
                ];
                measurement.samples(name, rates);
            }
        }
        if self.syncs > 0.0 {
            measurement.phases.push((2, phase("fsync", "syncs", Metric::OpsRate)));
            measurement.sample("fsync", Metric::OpsRate, self.syncs);
        }
        let latencies = [
            (Metric::LatencyMean, self.mean),
            (Metric::LatencyMax, self.max),
            (Metric::LatencyP99, self.percentile),
        ];
        if latencies.iter().any(|(_, value)| value.is_some()) {
            measurement.phases.push((3, phase("events", "all events", Metric::LatencyMean)));
            measurement.samples("events", latencies);
        }
        Some(measurement)
    }
}

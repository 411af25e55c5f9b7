//! Terse output of fio, version 3: one line per job, with fields separated by semicolons.
//!
//! Fields, from 0: version, version of fio, job, group, error; reads from 5, writes from 46 (KiB,
//! KiB/s, IOPS, run time in ms; minimum, maximum, mean, and deviation of slat and clat in us; 20
//! percentiles of clat; four fields of lat; five of the bandwidth); user and system CPU in percent,
//! context switches, major and minor faults from 87; depths from 92, latency classes from 99; nine
//! fields per disk from 121.

use std::collections::BTreeMap;

use model::{Metric, Nanos, Value, record::Outcome};

use super::{SUITE, program, times::whole};
use crate::imports::{ImportError, Measurement, phase};

/// Number of fields without disks.
const FIELDS: usize = 121;

/// Positions of the reads and the writes.
const SIDES: [(&str, usize); 2] = [("read", 5), ("write", 46)];

/// Position of the CPU fields.
const CPU: usize = 87;

/// True for a line of terse output of any version.
pub(super) fn is_record(line: &str) -> bool {
    let mut fields = line.split(';');
    let version = fields.next().unwrap_or_default();
    let program = fields.next().unwrap_or_default();
    version.len() == 1
        && version.bytes().all(|byte| byte.is_ascii_digit())
        && ["fio-", "fio ", "fslab-"].iter().any(|prefix| program.starts_with(prefix))
}

/// Reads the measurements of a file.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut measurements = Vec::new();
    for (line, content) in (1..).zip(text.lines()).filter(|(_, content)| is_record(content)) {
        let record = Record::new(line, content)?;
        let key = (record.fields[2].to_owned(), record.fields[3].to_owned());
        if let Some(first) = seen.get(&key) {
            let (job, group) = key;
            return Err(ImportError::Ambiguous { first: *first, second: line, job, group });
        }
        seen.insert(key, line);
        measurements.push(record.measurement()?);
    }
    match measurements.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no line of terse output; export it with --output-format=terse",
        }),
        false => Ok(measurements),
    }
}

/// Fields of a line.
struct Record<'a> {
    line: usize,
    fields: Vec<&'a str>,
}

impl<'a> Record<'a> {
    fn new(line: usize, content: &'a str) -> Result<Self, ImportError> {
        let version = content.chars().next().unwrap_or_default();
        if version != '3' {
            return Err(ImportError::TerseVersion { line, version });
        }
        // Limits memory: the fields of disks are not used.
        let fields: Vec<&str> = content.split(';').take(FIELDS).map(str::trim).collect();
        if fields.len() < FIELDS {
            return Err(ImportError::Field {
                place: format!("line {line}"),
                expected: "at least 121 fields of terse version 3",
                found: format!("{} fields", fields.len()),
            });
        }
        Ok(Self { line, fields })
    }

    /// Number in a field.
    fn number(&self, at: usize) -> Result<f64, ImportError> {
        let text = self.fields[at].trim_end_matches('%');
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
            Ok(_) | Err(_) => Err(self.wrong(at, "a number")),
        }
    }

    fn wrong(&self, at: usize, expected: &'static str) -> ImportError {
        ImportError::Field {
            // As in cut(1), fields are counted from 1.
            place: format!("line {}, field {}", self.line, at + 1),
            expected,
            found: self.fields[at].chars().take(40).flat_map(char::escape_debug).collect(),
        }
    }

    fn measurement(&self) -> Result<Measurement, ImportError> {
        let job = self.fields[2];
        let parameters = BTreeMap::from([("job".to_owned(), Value::Word(job.into()))]);
        let program = program(self.fields[1]);
        let mut measurement = Measurement::new(SUITE, program, job.into(), parameters);
        measurement.fact("fio.version", self.fields[1]);
        measurement.fact("fio.job", job);
        let error = self.number(4)?;
        if error != 0.0 {
            let reason = format!("fio reported error {error} for job {job}");
            measurement.outcome = Outcome::Failed { reason };
            return Ok(measurement);
        }
        for (place, (name, at)) in SIDES.into_iter().enumerate() {
            if self.number(at)? > 0.0 {
                measurement.phases.push((place, phase(name, "I/O", Metric::Throughput)));
                self.add(&mut measurement, name, at)?;
            }
        }
        if measurement.phases.is_empty() {
            let reason = format!("job {job} completed no operation");
            measurement.outcome = Outcome::Failed { reason };
        }
        Ok(measurement)
    }

    /// Adds the samples of a direction whose fields begin at `at`.
    fn add(&self, measurement: &mut Measurement, name: &str, at: usize) -> Result<(), ImportError> {
        let runtime = self.number(at + 3)?;
        measurement.elapsed = measurement.elapsed.max(Nanos(whole(runtime * 1e6)));
        match runtime < 1.0 {
            true => measurement.not_available(
                Some(name),
                "rate of a job shorter than 1 ms",
                "fio measures the run time in milliseconds",
            ),
            false => {
                measurement.sample(name, Metric::Throughput, self.number(at + 1)? * 1024.0);
                measurement.sample(name, Metric::OpsRate, self.number(at + 2)?);
            }
        }
        let (max, mean) = (self.number(at + 33)? * 1e3, self.number(at + 34)? * 1e3);
        // fio writes zeros for a latency that it did not measure.
        if mean > 0.0 {
            measurement.sample(name, Metric::LatencyMax, max);
            measurement.sample(name, Metric::LatencyMean, mean);
        }
        for (metric, percent) in [
            (Metric::CompletionLatencyP50, 50.0),
            (Metric::CompletionLatencyP99, 99.0),
            (Metric::CompletionLatencyP999, 99.9),
        ] {
            if let Some(micros) = self.percentile(at + 12, percent)? {
                measurement.sample(name, metric, micros * 1e3);
            }
        }
        for (metric, field) in
            [(Metric::UserCpuUtilization, CPU), (Metric::SystemCpuUtilization, CPU + 1)]
        {
            measurement.sample(name, metric, self.number(field)? / 100.0);
        }
        measurement.sample(name, Metric::MajorFaults, self.number(CPU + 3)?);
        measurement.sample(name, Metric::MinorFaults, self.number(CPU + 4)?);
        Ok(())
    }

    /// Percentile in microseconds from 20 fields such as `99.000000%=123`.
    fn percentile(&self, from: usize, percent: f64) -> Result<Option<f64>, ImportError> {
        for at in from..from + 20 {
            let expected = "a percentile such as 99.000000%=123";
            let (key, value) =
                self.fields[at].split_once("%=").ok_or_else(|| self.wrong(at, expected))?;
            let number = |text: &str| text.parse::<f64>().ok().filter(|own| own.is_finite());
            let (key, value) =
                number(key).zip(number(value)).ok_or_else(|| self.wrong(at, expected))?;
            if (key - percent).abs() < 1e-6 {
                return Ok(Some(value).filter(|value| *value > 0.0));
            }
        }
        Ok(None)
    }
}

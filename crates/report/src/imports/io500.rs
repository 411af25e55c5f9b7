//! Summaries of IO500 as measurements of suite `io500`.
//!
//! Sources: public files `result_summary.txt` and `result.txt`.

use model::{Metric, Warning};

use super::{
    ImportError, Importer, Measurement, phase,
    text::{GIB, line, nanos, number, slug},
};

/// Suite of the cells.
const SUITE: &str = "io500";

/// Importer of summaries and results of IO500.
pub(super) const TEXT: Importer = Importer {
    name: "io500-text",
    program: "IO500",
    title: "result_summary.txt and result.txt of IO500",
    recognized_by: "line that begins with `[RESULT]`, or a section `[ior-easy-write]`",
    cell: "all results of a file are one cell",
    metrics: "`throughput` (GiB/s) of phases of IOR, `ops_rate` (kIOPS × 1000) of phases of mdtest \
              and find; total score as `reported_count`",
    omitted: "phases without a part in the score; options of the run, which a summary lacks",
    suite: SUITE,
    method: "Values are those of IO500. Phases that write and create include the wear-out after the \
             stonewall; the others process the files of these phases. A phase that IO500 marked \
             `[INVALID]` has a warning.",
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| text.lines().any(|line| row(line).is_some() || line.trim() == SECTION),
    read,
};

/// First section of `result.txt`.
const SECTION: &str = "[ior-easy-write]";

/// Result of a phase.
struct Row<'a> {
    name: &'a str,
    value: &'a str,
    unit: &'a str,
    seconds: &'a str,
    is_valid: bool,
}

/// Line such as `[RESULT] ior-easy-write 0.016383 GiB/s : time 35.387 seconds [INVALID]`.
fn row(line: &str) -> Option<Row<'_>> {
    let rest = line.trim().strip_prefix("[RESULT]")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let [name, value, unit, ..] = words[..] else { return None };
    let seconds = words.iter().position(|word| *word == "time").and_then(|at| words.get(at + 1));
    let is_valid = !rest.contains("[INVALID]");
    Some(Row { name, value, unit, seconds: seconds.copied().unwrap_or("0"), is_valid })
}

/// Total in `[SCORE ] Bandwidth 0.1 GiB/s : IOPS 4.5 kiops : TOTAL 0.7 [INVALID]`.
fn total(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim().strip_prefix("[SCORE ]")?;
    let value = rest.split_once("TOTAL ")?.1.split_whitespace().next()?;
    Some((value, !rest.contains("[INVALID]")))
}

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut output = Output { done: Vec::new(), measurement: empty(), seconds: 0.0 };
    let mut section = "";
    for (place, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if let Some(version) = content.strip_prefix("IO500 version ") {
            output.finish();
            output.measurement.fact("io500.version", version);
        } else if let Some(row) = row(content) {
            let value = number(line(place), row.value)?;
            let seconds = number(line(place), row.seconds)?;
            output.add(row.name, value, row.unit == "GiB/s", row.is_valid);
            output.seconds += seconds;
        } else if let Some((value, is_valid)) = total(content) {
            output.score(number(line(place), value)?, is_valid);
        } else if content.starts_with('[') && content.ends_with(']') {
            section = content.trim_matches(['[', ']']);
        } else if let Some((name, value)) = content.split_once('=') {
            let is_phase = section.starts_with("ior-") || section.starts_with("mdtest-");
            let value = value.trim();
            match name.trim() {
                "score" if is_phase || section == "find" => {
                    let value = number(line(place), value)?;
                    output.add(section, value, section.starts_with("ior-"), true);
                }
                "t_delta" if is_phase => output.seconds += number(line(place), value)?,
                "SCORE" => {
                    let valid = !value.contains("[INVALID]");
                    let value = value.split_whitespace().next().unwrap_or_default();
                    output.score(number(line(place), value)?, valid);
                }
                _ => {}
            }
        }
    }
    output.finish();
    match output.done.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no result of a phase; the output may be truncated",
        }),
        false => Ok(output.done),
    }
}

fn empty() -> Measurement {
    Measurement::new(SUITE, "IO500".into(), String::new(), Default::default())
}

struct Output {
    /// Results of earlier runs in the same file.
    done: Vec<Measurement>,
    measurement: Measurement,
    seconds: f64,
}

impl Output {
    /// Ends the results of a run, if it has any.
    fn finish(&mut self) {
        let mut own = std::mem::replace(&mut self.measurement, empty());
        own.elapsed = nanos(std::mem::take(&mut self.seconds));
        if !own.phases.is_empty() {
            self.done.push(own);
        }
    }

    /// Adds a phase. A second result of the same phase is that of another run.
    fn phase(&mut self, name: &str, group: &str, metric: Metric) -> &mut Measurement {
        if self.measurement.phases.iter().any(|(_, own)| own.name == name) {
            self.finish();
        }
        let own = &mut self.measurement;
        own.phases.push((own.phases.len(), phase(name, group, metric)));
        own
    }

    fn add(&mut self, name: &str, value: f64, is_bytes: bool, is_valid: bool) {
        let (metric, unit) =
            if is_bytes { (Metric::Throughput, GIB) } else { (Metric::OpsRate, 1000.0) };
        let name = slug(name);
        let name = name.as_str();
        let group = name.split('-').next().unwrap_or_default();
        let own = self.phase(name, group, metric);
        own.sample(name, metric, value * unit);
        if !is_valid {
            let what = format!("a valid result of {name}");
            let why = "IO500 marked it [INVALID]".into();
            own.warnings.push((Some(name.to_owned()), Warning::NotAvailable { what, why }));
        }
    }

    fn score(&mut self, value: f64, is_valid: bool) {
        let own = self.phase("score", "score", Metric::ReportedCount);
        own.sample("score", Metric::ReportedCount, value);
        if !is_valid {
            own.not_available(Some("score"), "a valid score", "IO500 marked it [INVALID]");
        }
        self.finish();
    }
}

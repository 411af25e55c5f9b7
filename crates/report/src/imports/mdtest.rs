//! Text of mdtest as measurements of suite `mdtest`.
//!
//! Sources: outputs of mdtest 4.1, and those of 1.9 and 3 by their definition.

use std::collections::BTreeMap;

use model::{Metric, Value};

use super::{
    ImportError, Importer, Measurement, label, phase,
    text::{arguments, count, known, line, number, slug},
};
use crate::mdtest_layout::ROWS;

/// Suite of the cells.
const SUITE: &str = "mdtest";

/// Start of an output of fslab, before the version.
const OF_FSLAB: &str = "mdtest workload, measured by fslab ";

/// Importer of text.
pub(super) const TEXT: Importer = Importer {
    name: "mdtest-text",
    program: "mdtest",
    title: "text of mdtest 1.9, 3, and 4",
    recognized_by: "line that begins with `SUMMARY rate`, or `SUMMARY:`",
    cell: "tasks, nodes, and options, without paths",
    metrics: "`ops_rate` by phase: the mean over the iterations of the file",
    omitted: "maximum, minimum, and deviation; tables of times; results of single iterations",
    suite: SUITE,
    method: "Rates are those of mdtest: the mean over the iterations of a file, each of the \
             operations of all tasks over the time of a phase.",
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| text.lines().any(|line| iterations(line).is_some()),
    read,
};

/// Number of iterations in `SUMMARY rate (in ops/sec): (of 2 iterations)`, the title of a table of
/// rates.
fn iterations(line: &str) -> Option<u64> {
    let rest = line.trim().strip_prefix("SUMMARY")?;
    let is_rate = rest.starts_with(" rate") || rest.starts_with(':');
    let count = rest.split_once("(of ")?.1.split(' ').next()?.parse().ok()?;
    is_rate.then_some(count)
}

/// Name and mean of a row: name, maximum, minimum, mean, and deviation.
fn row(line: &str) -> Option<(&str, [&str; 4])> {
    let mut words = line.split_whitespace().rev();
    let mut next = || words.next().filter(|word| word.parse::<f64>().is_ok());
    let (deviation, mean, min, max) = (next()?, next()?, next()?, next()?);
    let name = line[..line.find(max)?].trim().trim_end_matches(':').trim();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
    is_name.then_some((name, [max, min, mean, deviation]))
}

fn read(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut program = "mdtest".to_owned();
    let mut parameters: BTreeMap<String, Value> = BTreeMap::new();
    let mut table: Option<Measurement> = None;
    let mut all = Vec::new();
    for (place, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if let Some(rest) = content.strip_prefix(OF_FSLAB) {
            let version = rest.split(',').next().unwrap_or_default();
            program = format!("fslab {version}, mdtest format");
            parameters.clear();
            all.extend(table.take());
        } else if let Some((version, rest)) = content.split_once(" was launched with ") {
            program = format!("mdtest {}", version.trim_start_matches("mdtest-"));
            let numbers: Vec<&str> =
                rest.split(' ').filter(|own| own.parse::<u64>().is_ok()).collect();
            let number = |at: usize| numbers.get(at).and_then(|own| count(own));
            parameters = known([("workers", number(0)), ("hosts", number(1))]);
            all.extend(table.take());
        } else if let Some(rest) = content.strip_prefix("Command line used:") {
            let options = arguments(rest.trim(), &["-d"]);
            parameters.insert("options".into(), Value::Text(options));
        } else if let Some((tasks, _)) = content.split_once(" tasks, ") {
            if let Some(tasks) = count(tasks) {
                parameters.insert("workers".into(), tasks);
            }
        } else if content.starts_with("SUMMARY") {
            all.extend(table.take());
            table = iterations(content).map(|count| begin(&program, &parameters, count));
        } else if let (Some(table), Some((name, [_, _, mean, _]))) = (&mut table, row(content)) {
            let known = ROWS.iter().find(|(_, title)| *title == name);
            let phase_name = known.map_or_else(|| slug(name), |(own, _)| (*own).to_owned());
            let rate = number(line(place), mean)?;
            // Phases that did not run have zeros.
            let is_new = table.phases.iter().all(|(_, own)| own.name != phase_name);
            if rate > 0.0 && is_new {
                let group = phase_name.split('-').next().unwrap_or_default().to_owned();
                let at = table.phases.len();
                table.phases.push((at, phase(&phase_name, &group, Metric::OpsRate)));
                table.sample(&phase_name, Metric::OpsRate, rate);
            }
        }
    }
    all.extend(table);
    all.retain(|own| !own.phases.is_empty());
    match all.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "no rate follows the line `SUMMARY rate`; the output may be truncated",
        }),
        false => Ok(all),
    }
}

fn begin(program: &str, parameters: &BTreeMap<String, Value>, iterations: u64) -> Measurement {
    let label = label(parameters, &["workers", "options"]);
    let mut own = Measurement::new(SUITE, program.to_owned(), label, parameters.clone());
    own.fact("mdtest.iterations", &iterations.to_string());
    if iterations > 1 {
        let what = "results of the iterations";
        let why = format!(
            "mdtest printed the mean of {iterations} iterations; they are one \
                           repetition here"
        );
        own.not_available(None, what, &why);
    }
    own
}

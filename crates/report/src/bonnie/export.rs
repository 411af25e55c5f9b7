//! Export of a run as bonnie++ records: one per measured repetition of each cell of suite `bonnie`.
//!
//! For compatibility, rates are truncated to integers, and phases shorter than 0.5 s have plus
//! signs. Reports show the full values.

use model::{
    Bytes, Metric, Nanos, RunRecord, Value, Warning, WorkloadParameters,
    record::{CellRecord, Outcome, TrialRecord},
};

use super::{Figure, Format, IO_PHASES, Largest, PHASES, PhaseFigures, Record, SEEKS, write};
use crate::{
    program_layout::NotInLayout,
    samples::{count, size, value},
};

/// Suite whose cells are exported.
pub(crate) const SUITE: &str = "bonnie";

/// Shorter phases get plus signs as in bonnie++, because its clock and the accounting of CPU time
/// in ticks are too coarse for them.
const SHORTEST: Nanos = Nanos(500_000_000);

/// Bytes per I/O call if a record does not state them: the defaults of bonnie++.
const CHUNK: Bytes = Bytes::kib(8);

/// Tolerance for rounding errors before truncation to an integer.
const ROUNDING: f64 = 1e-6;

/// Maximum length of a name, in characters, so that it fits into tables made of records.
const NAME: usize = 64;

/// All measured repetitions of suite `bonnie`, one line each in the order of measurement.
///
/// # Errors
/// [`NotInLayout`] if there are none.
pub fn export(run: &RunRecord, format: Format) -> Result<String, NotInLayout> {
    let lines = records(run, format)?.iter().map(|record| write(record) + "\n").collect();
    Ok(lines)
}

/// All measured repetitions of suite `bonnie` in the order of measurement.
///
/// # Errors
/// [`NotInLayout`] if there are none.
pub fn records(run: &RunRecord, format: Format) -> Result<Vec<Record>, NotInLayout> {
    if !run.cells.iter().any(|cell| cell.cell.workload.suite == SUITE) {
        return Err(NotInLayout::OtherSuite { suites: &[SUITE], program: "bonnie++" });
    }
    let measured = run.trials.iter().filter(|trial| trial.outcome == Outcome::Measured);
    let records: Vec<Record> = measured
        .filter_map(|trial| {
            let cell = run.cells.get(trial.cell)?;
            let is_ours = cell.cell.workload.suite == SUITE;
            is_ours.then(|| record(run, cell, trial, format))
        })
        .collect();
    if records.is_empty() { Err(NotInLayout::NothingMeasured(SUITE)) } else { Ok(records) }
}

/// First record with the median of each number over all records. A number that most records do not
/// contain keeps its plus signs. `None` without records.
pub fn median(records: &[Record]) -> Option<Record> {
    let mut middle = records.first()?.clone();
    for (at, phase) in middle.phases.iter_mut().enumerate() {
        let all = |figure: fn(&PhaseFigures) -> Figure| {
            let mut values: Vec<f64> =
                records.iter().filter_map(|own| figure(&own.phases[at]).known()).collect();
            values.sort_by(f64::total_cmp);
            let known = 2 * values.len() > records.len();
            known.then(|| f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]))
        };
        let figure = |value: Option<f64>, first: Figure| match (value, first) {
            (Some(value), _) => Figure::Known(value),
            (None, Figure::Empty) => Figure::Empty,
            (None, Figure::Short | Figure::Known(_)) => Figure::Short,
        };
        phase.rate = figure(all(|own| own.rate), phase.rate);
        phase.cpu = figure(all(|own| own.cpu), phase.cpu);
        let mut times: Vec<Nanos> =
            records.iter().filter_map(|own| own.phases[at].latency).collect();
        times.sort_unstable();
        phase.latency = times.get(times.len() / 2).copied();
    }
    Some(middle)
}

fn record(run: &RunRecord, cell: &CellRecord, trial: &TrialRecord, format: Format) -> Record {
    let fact = |name: &str| trial.environment.get(name).or_else(|| run.environment.get(name));
    let point = &cell.cell.workload;
    let phases: Vec<PhaseFigures> =
        (0..PHASES.len()).map(|at| figures(trial, PHASES[at], at)).collect();
    let phases: [PhaseFigures; 12] = phases.try_into().unwrap_or_default();
    let ran =
        |phases: &[PhaseFigures]| phases.iter().any(|phase| *phase != PhaseFigures::default());
    let (io, files) = (ran(&phases[..IO_PHASES]), ran(&phases[IO_PHASES..]));
    let more = |name: &str, than: Bytes| size(point, name).filter(|size| *size != than);
    let file_chunk = more("small_file_block_size", CHUNK).filter(|_| files).map(|size| size.0);
    // Written if there are several directories, or if the next field would otherwise be misread as
    // their number.
    let spread = |directories: &u64| *directories > 1 || file_chunk.is_some();
    let workers = count(point, "workers").unwrap_or(1);
    Record {
        format,
        version: fact("bonnie.version").map_or_else(|| version(&run.info.program), str::to_owned),
        name: match fact("bonnie.name") {
            Some(name) => name.to_owned(),
            None => name(fact("host.name").or(fact("host.product")), &cell.cell.filesystem.name),
        },
        concurrency: fact("bonnie.concurrency")
            .and_then(|text| text.parse().ok())
            .or(count(point, "workers")),
        seed: fact("bonnie.seed").map_or_else(|| run.info.seed.to_string(), str::to_owned),
        file: size(point, "file_size").filter(|_| io),
        chunk: more("block_size", CHUNK).filter(|_| io),
        // With several workers, each one seeks in a separate file.
        seeks: count(point, "seeks").filter(|_| io).map(|seeks| seeks * workers),
        seekers: count(point, "seekers").filter(|_| io).map(|seekers| match workers {
            1 => seekers,
            _ => workers,
        }),
        files: count(point, "files").filter(|_| files).map(|files| files.div_ceil(1024)),
        largest: largest(point).filter(|_| files),
        smallest: more("small_file_size_min", Bytes(0)).filter(|_| files).map(|size| size.0),
        directories: count(point, "directories").filter(|_| files).filter(spread),
        file_chunk,
        phases,
    }
}

fn largest(point: &WorkloadParameters) -> Option<Largest> {
    match (point.parameters.get("links"), point.parameters.get("small_file_size_max")) {
        (Some(Value::Word(kind)), _) if kind == "hard" => Some(Largest::Link),
        (Some(Value::Word(kind)), _) if kind == "symbolic" => Some(Largest::Symlink),
        (_, Some(Value::Size(size))) if size.0 > 0 => Some(Largest::Bytes(size.0)),
        _ => None,
    }
}

/// Rate, CPU %, and longest operation of a phase, from the samples for all workers together.
fn figures(trial: &TrialRecord, phase: &str, at: usize) -> PhaseFigures {
    let sample = |metric| value(trial, phase, metric);
    let rate = if at < SEEKS { Metric::Throughput } else { Metric::OpsRate };
    let unit = if at < SEEKS { 1024.0 } else { 1.0 };
    let elapsed = sample(Metric::Elapsed);
    let short = elapsed.is_some_and(|elapsed| elapsed < SHORTEST.seconds() * 1e9);
    let figure = |value: Option<f64>| match value {
        _ if short => Figure::Short,
        Some(value) => Figure::Known(value),
        None if withheld(trial, phase) => Figure::Short,
        None => Figure::Empty,
    };
    let work = sample(Metric::UserTime).zip(sample(Metric::SystemTime));
    let cpu = match (sample(Metric::CpuUtilization), work, elapsed) {
        (_, Some((user, system)), Some(elapsed)) if elapsed > 0.0 => {
            Some(100.0 * (user + system) / elapsed)
        }
        (Some(share), ..) => Some(100.0 * share),
        _ => None,
    };
    let cpu = cpu.map(|percent| percent + ROUNDING);
    PhaseFigures {
        rate: figure(sample(rate).map(|value| value / unit + ROUNDING)),
        cpu: figure(cpu),
        latency: sample(Metric::LatencyMax).map(|nanos| Nanos(whole(nanos))),
    }
}

/// Warning instead of a number that the record does not contain. It is the same for all phases, so
/// that a report shows it once.
pub(crate) fn short_phase() -> Warning {
    Warning::NotAvailable {
        what: "rate of a phase shorter than 0.5 s".into(),
        why: "the record has plus signs instead".into(),
    }
}

/// True if the record that was imported has plus signs for the phase.
fn withheld(trial: &TrialRecord, phase: &str) -> bool {
    let withheld = short_phase();
    trial.warnings.iter().any(|(at, warning)| at.as_deref() == Some(phase) && *warning == withheld)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time, not negative")]
fn whole(nanos: f64) -> u64 {
    nanos.max(0.0).round() as u64
}

/// Version field of fslab: `fslab-0.1.0` for `fslab 0.1.0 (abcdef0)`. It differs from all versions
/// of bonnie++.
fn version(program: &str) -> String {
    program.split_whitespace().take(2).collect::<Vec<_>>().join("-")
}

/// Name `FILESYSTEM-MACHINE` of letters, digits, dots, dashes, and underscores. The filesystem
/// comes first, because programs that print tables of records truncate names at the end, some after
/// eight characters.
fn name(machine: Option<&str>, filesystem: &str) -> String {
    let plain = |text: &str| {
        let kept = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        text.trim().chars().map(kept).collect::<String>()
    };
    let name = match machine {
        Some(machine) => format!("{}-{}", plain(filesystem), plain(machine)),
        None => plain(filesystem),
    };
    name.chars().take(NAME).collect()
}

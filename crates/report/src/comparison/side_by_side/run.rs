//! Run as one side of a comparison: its results, with the test names of the published source.

use analysis::{Summary, moments::Moments};
use model::{
    Cell, Metric, RunRecord, Value as Parameter,
    phase::Role,
    record::{CellRecord, PhaseInfo},
    setting::SystemSetting,
};

use super::{Center, Key, NOT_RECORDED, Side, Value};
use crate::{
    samples::{self, imported, measured},
    units::{bytes, distinct, one_line, span},
};

/// Results of a run for one suite, without A/A duplicates.
pub(super) fn side(run: &RunRecord, suite: &'static str) -> Side {
    let own = |cell: &&CellRecord| cell.cell.workload.suite == suite && !cell.cell.aa_duplicate;
    let mut values = Vec::new();
    for (index, cell) in run.cells.iter().enumerate().filter(|(_, cell)| own(cell)) {
        let phases = cell.phases.iter().filter(|phase| phase.role == Role::Measure);
        for phase in phases {
            let metrics = metrics(suite).iter();
            values.extend(metrics.filter_map(|metric| value(run, index, phase, *metric)));
        }
    }
    let cells: Vec<&CellRecord> = run.cells.iter().filter(own).collect();
    let foreign = imported(run).map(one_line);
    let about = match &foreign {
        Some(program) => format!("imported from {program}, not measured by fslab"),
        None => "measured by fslab".to_owned(),
    };
    Side {
        name: one_line(&run.info.id),
        about: format!("{} ({about})", one_line(&run.info.title)),
        measured_by_fslab: foreign.is_none(),
        suite,
        conditions: conditions(run, &cells, &values, foreign),
        values,
    }
}

/// Metrics of the published numbers of a suite. The times of the 2009 IOzone study exclude the
/// final sync; those of bonnie++ include it.
fn metrics(suite: &str) -> &'static [Metric] {
    match suite {
        "iozone" => &[Metric::Throughput],
        "tasks" => &[Metric::Elapsed, Metric::CpuUtilization],
        "dbench" => &[Metric::Throughput],
        "small-files" => &[Metric::OpsRate],
        _ => &[Metric::Throughput, Metric::OpsRate, Metric::CpuUtilization, Metric::LatencyMax],
    }
}

fn value(run: &RunRecord, index: usize, phase: &PhaseInfo, metric: Metric) -> Option<Value> {
    let cell = &run.cells[index];
    let trials = measured(run, index);
    let values: Vec<f64> =
        trials.filter_map(|trial| samples::value(trial, &phase.name, metric)).collect();
    let summary = Summary::new(&values).ok()?;
    let suite = cell.cell.workload.suite.as_str();
    let block_size = samples::size(&cell.cell.workload, "block_size");
    Some(Value {
        key: Key {
            test: test(suite, &phase.name),
            label: phase.name.clone(),
            block_size: block_size.filter(|_| suite == "iozone").map(|size| size.0),
            filesystem: cell.cell.filesystem.name.clone(),
            metric,
        },
        named: one_line(&cell.cell.filesystem.name),
        workload: one_line(&cell.label),
        at: coordinates(&cell.cell),
        center: Center::Median,
        value: summary.median,
        interval: summary.interval,
        n: summary.n,
        moments: Moments::of(&values),
        fits: fits(run, cell),
        marks: Vec::new(),
    })
}

/// Coordinates of a result of a study without printed numbers. A setting that the workload does not
/// change is `default`.
fn coordinates(cell: &Cell) -> Vec<(&'static str, String)> {
    let parameter = |name: &'static str| {
        let value = cell.workload.parameters.get(name);
        (name, value.map_or_else(String::new, Parameter::to_string))
    };
    let set = |value: Option<String>| value.unwrap_or_else(|| "default".to_owned());
    match cell.workload.suite.as_str() {
        "dbench" => vec![
            parameter("clients"),
            ("scheduler", set(cell.scheduler.clone())),
            (
                "cpu_speed",
                set(cell.settings.get(&SystemSetting::CpuSpeed).map(Parameter::to_string)),
            ),
        ],
        "small-files" => vec![parameter("cache"), parameter("workers")],
        _ => Vec::new(),
    }
}

/// True if the single file of a cell is smaller than memory or the memory limit; `None` if unknown
/// or if the test does not use a single file.
fn fits(run: &RunRecord, cell: &CellRecord) -> Option<bool> {
    let size = |name: &str| run.environment.get(name)?.parse::<u64>().ok();
    let memory = size("memory.limit_bytes").or_else(|| size("memory.total_bytes"))?;
    let one_file = matches!(cell.cell.workload.suite.as_str(), "iozone" | "bonnie");
    let file = samples::size(&cell.cell.workload, "file_size");
    file.filter(|_| one_file && imported(run).is_none()).map(|file| file.0 < memory)
}

/// Short name of a phase in the published source.
fn test(suite: &str, phase: &str) -> String {
    match (suite, phase) {
        ("iozone", "backward-read") => "backwards_read".into(),
        ("iozone", phase) => phase.replace('-', "_"),
        // `001` for `001-touch-files`.
        ("tasks", phase) => phase.split('-').next().unwrap_or(phase).to_owned(),
        (_, phase) => phase.to_owned(),
    }
}

/// Texts without duplicates, joined by semicolons; [`NOT_RECORDED`] without any.
fn joined(all: impl Iterator<Item = String>) -> String {
    let each = distinct(all);
    if each.is_empty() { NOT_RECORDED.into() } else { each.join("; ") }
}

fn conditions(
    run: &RunRecord,
    cells: &[&CellRecord],
    values: &[Value],
    foreign: Option<String>,
) -> Vec<(String, String)> {
    let unknown = || NOT_RECORDED.to_owned();
    let fact = |name: &str| run.environment.get(name).map_or_else(unknown, one_line);
    let size = |name: &str| {
        let found = run.environment.get(name).and_then(|text| text.parse().ok());
        found.map(|own| bytes(model::Bytes(own)))
    };
    let memory = match (size("memory.total_bytes"), size("memory.limit_bytes")) {
        (_, Some(limit)) => format!("limited to {limit}"),
        (Some(total), None) => total,
        (None, None) => unknown(),
    };
    let options = cells.iter().map(|cell| {
        let own = &cell.cell.filesystem;
        let all = [own.mkfs.join(" "), own.mount.clone()];
        let given: Vec<String> = all.into_iter().filter(|text| !text.is_empty()).collect();
        match (given.is_empty() && own.setup.is_empty(), own.setup.is_empty()) {
            (true, _) => "defaults".to_owned(),
            (false, true) => one_line(&format!("{}: {}", own.name, given.join(" "))),
            (false, false) => one_line(&format!("{}: {} and setup", own.name, given.join(" "))),
        }
    });
    let caches = cells.iter().flat_map(|cell| &cell.phases).filter_map(|phase| phase.cache);
    let caches = joined(caches.map(|cache| cache.name().to_owned()));
    let sizes = cells.iter().map(|cell| {
        let all = cell.cell.workload.parameters.iter();
        let sized =
            all.filter(|(_, value)| matches!(value, Parameter::Size(_) | Parameter::Count(_)));
        sized.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    });
    let sizes = format!("{}; scale {}", one_line(&joined(sizes)), run.info.scale);
    let repetitions = format!("{}, medians", span(values.iter().map(|value| value.n)));
    let options = joined(options);
    let foreign_or = |text: String| if foreign.is_some() { unknown() } else { text };
    let all = [
        ("machine", foreign_or(fact("cpu.model"))),
        ("memory", foreign_or(memory)),
        ("disk", one_line(&run.info.storage)),
        ("kernel", foreign_or(format!("Linux {}", fact("kernel.release")))),
        ("options", foreign_or(options)),
        ("caches", caches),
        ("sizes", sizes),
        ("timing", timing(cells).to_owned()),
        ("repetitions", repetitions),
        ("program", foreign.clone().unwrap_or_else(|| one_line(&run.info.program))),
    ];
    all.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

fn timing(cells: &[&CellRecord]) -> &'static str {
    match cells.first().map(|cell| cell.cell.workload.suite.as_str()) {
        Some("iozone") => {
            "accepted throughput, without final sync; the report has the durable throughput"
        }
        Some("tasks") => "until the task returned; the report has the time including sync",
        Some("dbench") => "of the replay, with the flushes of the loadfile",
        Some("small-files") => "until the last operation returned, without sync",
        Some(_) | None => "including fsync and close",
    }
}

//! Header of a report: the run, its conditions, filesystems, missing results, and method.

use std::collections::BTreeSet;

use model::{
    Bytes, Clock, Profile, RunRecord, SetupStep, SystemSetting, Value, Warning,
    metric::Unit,
    record::{CellState, Outcome, TrialRecord},
    units::plural,
};

use super::{equivalence_margin::EquivalenceMargin, run_conditions};
pub(super) use crate::samples::imported;
use crate::{
    imports,
    units::{Scale, capital, count, distinct, duration, one_line, utc},
};

/// Run, program, conditions, and method.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) title: String,
    pub(crate) run: String,
    pub(crate) plan_name: String,
    pub(crate) plan_text: String,
    pub(crate) overrides: Vec<(String, String)>,
    pub(crate) profile: Profile,
    pub(crate) margin: EquivalenceMargin,
    pub(crate) program: String,
    /// Start and, if the run has ended, duration.
    pub(crate) when: String,
    /// True if the run has ended.
    pub(crate) ended: bool,
    /// Conditions of all results: storage, kernel, CPU, memory, scale.
    pub(crate) conditions: String,
    /// `in a guest (uml)`; `None` for runs on the host.
    pub(crate) guest: Option<String>,
    /// Further conditions: deferred work, monitoring overhead, unavailable data.
    pub(crate) run_conditions: Vec<String>,
    /// Conditions that were not tested.
    pub(crate) untested: &'static str,
    /// Method, one paragraph per entry.
    pub(crate) method: Vec<String>,
    /// Program that measured an imported run.
    pub(crate) imported: Option<String>,
    /// Environment facts by name.
    pub(crate) environment: Vec<(String, String)>,
}

/// One level of the filesystem axis.
#[derive(Clone, Debug)]
pub(crate) struct Filesystem {
    pub(crate) name: String,
    /// Type, if it differs from the name, and options; empty for a catalog entry with its defaults.
    pub(crate) options: String,
    /// True for the block device without a filesystem.
    pub(crate) is_raw: bool,
}

/// Cells of one filesystem that were not measured or have failed repetitions, for one reason.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    pub(crate) filesystem: String,
    /// Affected workload points.
    pub(crate) workloads: Vec<String>,
    /// `skipped`, `open`, or `1 of 8 repetitions failed`.
    pub(crate) what: String,
    pub(crate) reason: String,
}

impl Facts {
    /// Adds method paragraphs before the last one, which lists what was not tested.
    pub(crate) fn add_methods<const N: usize>(&mut self, methods: [Option<&str>; N]) {
        let last = self.method.len().saturating_sub(1);
        let methods = methods.into_iter().flatten().map(str::to_owned);
        self.method.splice(last..last, methods);
    }

    /// Facts of a run whose A/A control gives this equivalence margin.
    pub(crate) fn new(record: &RunRecord, margin: EquivalenceMargin) -> Self {
        let info = &record.info;
        let imported = imported(record);
        let when = match info.ended_unix {
            _ if imported.is_some() => imported_when(record),
            Some(end) if is_resumed(record) => {
                format!("{} to {}, with an interruption", utc(info.started_unix), utc(end))
            }
            Some(end) => {
                format!("{}, took {}", utc(info.started_unix), duration(end - info.started_unix))
            }
            None => format!("{}, not ended", utc(info.started_unix)),
        };
        let environment =
            record.environment.0.iter().map(|(name, value)| (name.clone(), one_line(value)));
        Self {
            title: one_line(&info.title),
            run: one_line(&info.id),
            plan_name: one_line(&info.plan_name),
            plan_text: info.plan_text.clone(),
            overrides: info.overrides.clone(),
            profile: info.profile,
            margin,
            program: one_line(&info.program),
            when,
            ended: info.ended_unix.is_some() || imported.is_some(),
            conditions: conditions(record),
            guest: guest(record),
            imported: imported.map(one_line),
            run_conditions: run_conditions::lines(record),
            untested: untested(record),
            method: method(record),
            environment: environment.collect(),
        }
    }
}

/// Conditions of all results in one line, shown below every table and figure.
pub(crate) fn conditions(record: &RunRecord) -> String {
    if let Some(program) = imported(record) {
        return format!(
            "Imported from {}, not measured by fslab · storage {} · kernel, memory, and options \
             not recorded",
            one_line(program),
            one_line(&record.info.storage)
        );
    }
    let fact = |name: &str| record.environment.get(name);
    let memory = fact("memory.total_bytes").and_then(|bytes| bytes.parse::<f64>().ok());
    let memory = memory.map(|bytes| {
        let scale = Scale::of(Unit::Bytes, std::iter::once(bytes));
        format!("{} {} memory", scale.rough(bytes), scale.name)
    });
    let parts = [
        Some(storage(record)),
        below(record),
        (Clock::of(&record.environment) == Clock::Virtual)
            .then(|| fact("guest.unit").map(|unit| format!("times are {}", one_line(unit))))
            .flatten(),
        fact("kernel.release").map(|release| format!("kernel {}", one_line(release))),
        fact("cpu.model").map(one_line),
        memory,
        Some(format!("scale {}", record.info.scale)),
        Some(format!("new {} per repetition", instance(record))),
    ];
    let parts = parts.into_iter().flatten().chain(run_conditions::conditions(record));
    capital(&parts.collect::<Vec<_>>().join(" · "))
}

/// Storage, with the range of sizes if the size of the image files is an axis. The run file has the
/// text of the largest.
fn storage(record: &RunRecord) -> String {
    let text = one_line(&record.info.storage);
    let settings = record.cells.iter().map(|cell| &cell.cell.settings);
    let sizes: BTreeSet<Bytes> = settings
        .filter_map(|settings| settings.get(&SystemSetting::Size).and_then(Value::as_size))
        .collect();
    match (sizes.first(), sizes.last()) {
        (Some(first), Some(last)) if first < last => {
            let (first, last) = (first.rough(), last.rough());
            text.replacen(&format!(" of {last}"), &format!(" of {first} to {last}"), 1)
        }
        _ => text,
    }
}

/// Kind and clock of the guest; `None` for runs on the host.
fn guest(record: &RunRecord) -> Option<String> {
    let engine = one_line(record.environment.get("guest.engine")?);
    let clock = match Clock::of(&record.environment) {
        Clock::Wall => String::new(),
        Clock::Virtual | Clock::Instructions => {
            let unit = record.environment.get("guest.unit").map(one_line).unwrap_or_default();
            format!(", {unit}")
        }
    };
    Some(format!("in a guest ({engine}{clock})"))
}

/// Method paragraph on the clock of an icount guest.
fn icount_method(clock: Clock) -> Option<&'static str> {
    match clock {
        Clock::Wall => None,
        Clock::Virtual => Some(
            "Times are virtual: the guest has one emulated CPU that takes one nanosecond per \
             instruction, and a disk with a fixed latency per request. Caches, memory latency, and \
             lock contention are not simulated. The duration of the run is host time.",
        ),
        Clock::Instructions => Some(
            "Results are instructions of a guest with one emulated CPU and a disk in memory \
             without latency. They include the kernel, fslab, and reading the clock. Caches, \
             memory latency, and lock contention are not simulated: the results measure CPU work, \
             and times may rank filesystems differently. Kernel threads contribute to the counts, \
             so the last digits vary. The duration of the run is host time.",
        ),
    }
}

/// Filesystem of a measured directory, such as `ext4 on /dev/sda1 (rw,relatime)`; `None` if the
/// plan formats its filesystems.
fn below(record: &RunRecord) -> Option<String> {
    let directory = |cell: &model::record::CellRecord| cell.cell.filesystem.fs_type == "directory";
    if !record.cells.iter().any(directory) {
        return None;
    }
    let fact = |name: &str| record.environment.get(name).map(one_line);
    let (kind, source) = (fact("backing.fstype")?, fact("backing.source")?);
    let options = fact("backing.options").map(|options| format!(" ({options})"));
    Some(format!("{kind} on {source}{}", options.unwrap_or_default()))
}

/// Conditions that were not tested. The fill level may be an axis of the plan.
fn untested(record: &RunRecord) -> &'static str {
    if imported(record).is_some() {
        return "anything that its records do not contain";
    }
    let filled = record.cells.iter().any(|cell| !cell.cell.fill_level.is_empty());
    match filled {
        true => "other devices, kernels, memory sizes, and ages",
        false => "other devices, kernels, memory sizes, fill levels, and ages",
    }
}

/// Object that each repetition creates: a filesystem, or a directory on a mounted one.
fn instance(record: &RunRecord) -> &'static str {
    let found = record.cells.iter().any(|cell| cell.cell.filesystem.fs_type == "directory");
    if found { "directory on the same filesystem" } else { "filesystem" }
}

/// Method of a run, with its parameters.
fn method(record: &RunRecord) -> Vec<String> {
    if let Some(program) = imported(record) {
        return imported_method(record, program);
    }
    let (info, percent) = (&record.info, |share: f64| format!("{:.1} %", share * 100.0));
    let profile = info.profile;
    let analyses: Vec<String> = profile.interim_analyses().iter().map(u32::to_string).collect();
    let repetitions = match info.repetitions {
        Some(repetitions) => {
            format!("The plan sets {} per cell.", plural(repetitions, "repetition"))
        }
        None => format!(
            "The stopping rule was evaluated after {} repetitions: a cell was closed when the \
             confidence intervals of all measured phases were within ±{} of their medians, and at \
             {} repetitions at the latest.",
            analyses.join(", "),
            percent(profile.half_width_target().0),
            analyses.last().map_or("", String::as_str)
        ),
    };
    let icount = icount_method(Clock::of(&record.environment)).map(str::to_owned);
    let usual = [
        format!(
            "Each repetition (n) has a new {}, which is removed afterwards. Trials ran in rounds \
             in random order (seed {}). {repetitions}",
            instance(record),
            info.seed
        ),
        "The result of a cell is the median of its repetitions with a 95 % confidence interval \
         from interpolated order statistics (Hettmansperger and Sheather). With fewer than six \
         repetitions there is no interval and no finding. The half-width of the interval has two \
         significant digits and determines the digits of the median."
            .into(),
        format!(
            "Cells are compared with the two-sided Brunner–Munzel permutation test, Holm-adjusted \
             over all pairs of a test at a workload point (family-wise error rate 5 %). Ratios are \
             Hodges–Lehmann estimates with the interval of the inverted test (not adjusted). The \
             equivalence margin is δ = {}; “equivalent” means that the 90 % confidence interval of \
             the ratio is within ±δ. Cells with a failed repetition or a blocking warning are \
             shown but not ranked.",
            percent(profile.equivalence_margin().0)
        ),
        "The top group of a test contains the best median, every filesystem that does not differ \
         significantly from it, and every filesystem that is significantly worse by less than δ. \
         Filesystems that share a letter do not differ significantly. Ranks are never averaged \
         over tests."
            .into(),
        "Latency percentiles are computed per repetition from a histogram with a relative error of \
         at most 0.4 % and then summarized. A percentile is shown only if at least 10 operations \
         of every repetition exceed it. Latency is measured from the start of the operation, in \
         open loops from its scheduled start."
            .into(),
        "System activity was recorded during each phase: CPU time per task from the scheduler, \
         kernel threads attributed by name, and device counters. Values that the kernel does not \
         provide are reported as not available, never as zero."
            .into(),
        format!("Not tested and not implied: {} of the filesystem.", untested(record)),
    ];
    icount.into_iter().chain(usual).collect()
}

/// True if the run was interrupted and resumed, so that its time includes a pause.
fn is_resumed(record: &RunRecord) -> bool {
    record.warnings.iter().any(|warning| matches!(warning, Warning::Resumed { .. }))
}

/// Time of the import, and of the measurements as far as recorded.
fn imported_when(record: &RunRecord) -> String {
    let import = record.info.started_unix;
    let starts = record.trials.iter().map(|trial| trial.started_unix).filter(|at| *at < import);
    let measured = match (starts.clone().min().map(utc), starts.max().map(utc)) {
        (Some(first), Some(last)) if first == last => format!("measured {first}"),
        (Some(first), Some(last)) => format!("measured {first} to {last}"),
        _ => "time of measurement unknown".into(),
    };
    format!("imported {}; {measured}", utc(import))
}

/// Method of an imported run, as far as known.
fn imported_method(record: &RunRecord, program: &str) -> Vec<String> {
    let suites = distinct(record.cells.iter().map(|cell| cell.cell.workload.suite.as_str()));
    let usual = [
        format!(
            "These results were imported from {} and not measured by fslab. Filesystem creation \
             and system activity were not recorded, so there are no findings.",
            one_line(program)
        ),
        "Each record is one repetition (n); the result of a cell is the median of the records with \
         the same name and workload. With six records or more, there is a 95 % confidence interval \
         from interpolated order statistics. It is unknown if the conditions of the records were \
         the same, so cells are neither compared nor ranked."
            .into(),
    ];
    let numbers = suites.into_iter().filter_map(imports::method).map(str::to_owned);
    usual.into_iter().chain(numbers).collect()
}

/// Filesystems in plan order.
pub(crate) fn filesystems(record: &RunRecord) -> Vec<Filesystem> {
    let mut found: Vec<Filesystem> = Vec::new();
    for cell in &record.cells {
        let level = &cell.cell.filesystem;
        if found.iter().any(|filesystem| filesystem.name == level.name) {
            continue;
        }
        let mut options = Vec::new();
        if level.fs_type != level.name {
            options.push(level.fs_type.clone());
        }
        if !level.mkfs.is_empty() {
            options.push(format!("mkfs {}", level.mkfs.join(" ")));
        }
        options.extend(level.setup.iter().map(|step| match step {
            SetupStep::Populate { directory, files } => {
                format!("source tree of {files} files written to {directory}")
            }
            SetupStep::Remove { directory } => format!("{directory} removed"),
            SetupStep::Unmounted { argv } | SetupStep::Mounted { argv } => argv.join(" "),
        }));
        if let Some(becomes) = &level.converted_to {
            options.push(format!("then {becomes}"));
        }
        if !level.commands.mount.is_empty() {
            options.push(level.commands.mount.join(" "));
        }
        if !level.commands.source.is_empty() {
            options.push(format!("source {}", level.commands.source));
        }
        if !level.mount.is_empty() {
            let gone = record.trials.iter().any(|trial| {
                let own = record.cells[trial.cell].cell.filesystem.name == level.name;
                let gone =
                    |(_, warning): &(_, Warning)| matches!(warning, Warning::OptionRemoved { .. });
                own && trial.warnings.iter().any(gone)
            });
            let note = if gone { " (some removed, see option-removed)" } else { "" };
            options.push(format!("mount -o {}{note}", level.mount));
        }
        let (name, options) = (level.name.clone(), one_line(&options.join(", ")));
        found.push(Filesystem { name, options, is_raw: level.is_raw() });
    }
    found
}

/// Missing results in the order of cells, without A/A duplicates. Cells of a filesystem with the
/// same status and reason are merged.
pub(crate) fn missing(record: &RunRecord) -> Vec<Missing> {
    let mut holes: Vec<Missing> = Vec::new();
    let mut add = |filesystem: &str, workload: &str, what: String, reason: &str| {
        let reason = one_line(reason);
        let same = holes.iter_mut().find(|hole| {
            hole.filesystem == filesystem && hole.what == what && hole.reason == reason
        });
        match same {
            Some(hole) => hole.workloads.push(workload.into()),
            None => holes.push(Missing {
                filesystem: filesystem.into(),
                workloads: vec![workload.into()],
                what,
                reason,
            }),
        }
    };
    let mut of_cell: Vec<Vec<&TrialRecord>> = vec![Vec::new(); record.cells.len()];
    for trial in &record.trials {
        if let Some(own) = of_cell.get_mut(trial.cell) {
            own.push(trial);
        }
    }
    let cells = record.cells.iter().enumerate().filter(|(_, cell)| !cell.cell.aa_duplicate);
    for (index, cell) in cells {
        let (name, label) = (&cell.cell.filesystem.name, &cell.label);
        match &cell.state {
            CellState::Skipped { reason } => add(name, label, "skipped".into(), reason),
            // A failed cell is listed below with its failed repetitions.
            CellState::Failed { .. } => {}
            CellState::Open => add(
                name,
                label,
                "open".into(),
                "the run ended before its repetitions were complete",
            ),
            CellState::Done { .. } => {}
        }
        let trials = &of_cell[index];
        let reasons: Vec<&String> = trials
            .iter()
            .filter_map(|trial| match &trial.outcome {
                Outcome::Failed { reason } => Some(reason),
                Outcome::Measured | Outcome::Invalid { .. } => None,
            })
            .collect();
        if let Some(first) = reasons.first() {
            let valid =
                trials.iter().filter(|trial| !matches!(trial.outcome, Outcome::Invalid { .. }));
            let what =
                format!("{} of {} failed", reasons.len(), count(valid.count(), "repetition"));
            add(name, label, what, first);
        }
    }
    holes
}

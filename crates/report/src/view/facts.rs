//! What stands around the numbers: the run, its conditions, its filesystems, its holes.

use model::{
    Clock, Profile, RunRecord, SetupStep, Warning,
    metric::Unit,
    record::{CellState, Outcome, TrialRecord},
};

use super::{regimes, threshold::Threshold};
use crate::units::{Scale, capital, duration, one_line, utc};

/// What was run, when, by what, under which conditions.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) title: String,
    pub(crate) run: String,
    pub(crate) plan_name: String,
    pub(crate) plan_text: String,
    pub(crate) amendments: Vec<(String, String)>,
    pub(crate) profile: Profile,
    /// The smallest difference that matters.
    pub(crate) threshold: Threshold,
    pub(crate) program: String,
    /// Start, and length if the run came to its end.
    pub(crate) when: String,
    /// Whether it came to its end.
    pub(crate) ended: bool,
    /// What qualifies every number: storage, kernel, memory, scale.
    pub(crate) conditions: String,
    /// `in a guest (uml)`; `None` of runs on the machine itself.
    pub(crate) guest: Option<String>,
    /// What else stands beside them once: background work, the cost of looking, what could not be
    /// seen.
    pub(crate) regimes: Vec<String>,
    /// What the numbers do not hold for.
    pub(crate) untested: &'static str,
    /// How it was done, from the actual parameters, one paragraph each.
    pub(crate) method: Vec<String>,
    /// The program that measured, where it was not fslab: a run read from its records.
    pub(crate) imported: Option<String>,
    /// Facts of the host by name.
    pub(crate) environment: Vec<(String, String)>,
}

/// One level of the filesystem axis.
#[derive(Clone, Debug)]
pub(crate) struct Filesystem {
    pub(crate) name: String,
    /// Base and options, if it is not the plain catalogue entry.
    pub(crate) options: String,
}

/// A cell that was not measured, or lost repeats.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    pub(crate) filesystem: String,
    /// The workload points concerned.
    pub(crate) workloads: Vec<String>,
    /// `skipped`, `failed`, or the count of failed repeats.
    pub(crate) what: String,
    pub(crate) reason: String,
}

impl Facts {
    /// Adds what stands for one kind of result each, before the note on what was not tested, which
    /// stands last.
    pub(crate) fn add_methods<const N: usize>(&mut self, methods: [Option<&str>; N]) {
        let last = self.method.len().saturating_sub(1);
        let methods = methods.into_iter().flatten().map(str::to_owned);
        self.method.splice(last..last, methods);
    }

    /// Of a run that is judged by a threshold.
    pub(crate) fn new(record: &RunRecord, threshold: Threshold) -> Self {
        let info = &record.info;
        let imported = imported(record);
        let when = match info.ended_unix {
            _ if imported.is_some() => {
                format!("read in {}; when it was measured is not told", utc(info.started_unix))
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
            amendments: info.amendments.clone(),
            profile: info.profile,
            threshold,
            program: one_line(&info.program),
            when,
            ended: info.ended_unix.is_some() || imported.is_some(),
            conditions: conditions(record),
            guest: guest(record),
            imported: imported.map(one_line),
            regimes: regimes::lines(record),
            untested: untested(record),
            method: method(record),
            environment: environment.collect(),
        }
    }
}

/// The program that a run was imported from.
pub(crate) fn imported(record: &RunRecord) -> Option<&str> {
    record.warnings.iter().find_map(|warning| {
        if let Warning::Imported { program } = warning { Some(program.as_str()) } else { None }
    })
}

/// The line that stands under every table and figure.
pub(crate) fn conditions(record: &RunRecord) -> String {
    if let Some(program) = imported(record) {
        return format!(
            "Imported from {}, not measured by fslab · storage {} · kernel, memory, and options \
             not told",
            one_line(program),
            one_line(&record.info.storage)
        );
    }
    let fact = |name: &str| record.environment.get(name);
    let memory = fact("memory.total_bytes").and_then(|bytes| bytes.parse::<f64>().ok());
    let memory = memory.map(|bytes| {
        let scale = Scale::of(Unit::Bytes, std::iter::once(bytes));
        format!("{} {} of memory", scale.rough(bytes), scale.name)
    });
    let parts = [
        Some(one_line(&record.info.storage)),
        below(record),
        (Clock::of(&record.environment) == Clock::Virtual)
            .then(|| fact("guest.unit").map(|unit| format!("times are {}", one_line(unit))))
            .flatten(),
        fact("kernel.release").map(|release| format!("kernel {}", one_line(release))),
        fact("cpu.model").map(one_line),
        memory,
        Some(format!("scale {}", record.info.scale)),
        Some(format!("a fresh {} for every repeat", instance(record))),
    ];
    let parts = parts.into_iter().flatten().chain(regimes::conditions(record));
    capital(&parts.collect::<Vec<_>>().join(" · "))
}

/// Where it was measured, if that is a guest.
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

/// How a guest counts, and what that leaves out.
fn counted(clock: Clock) -> Option<&'static str> {
    match clock {
        Clock::Wall => None,
        Clock::Virtual => Some(
            "The clock is that of a guest with one emulated processor, for which each instruction \
             takes one virtual nanosecond, and of its disk, which takes a chosen time for each \
             request. There are no caches, no waiting for memory, and no contention for locks. \
             What the run itself took is told by the clock of the host.",
        ),
        Clock::Instructions => Some(
            "Numbers are instructions of a guest with one emulated processor, whose clock counts \
             them; the disk is in its memory and answers at once. They are those of the kernel, of \
             this program, and of reading the clock. There are no caches, no waiting for memory, \
             and no contention for locks: the numbers say what the processor has to do, and a \
             clock may rank filesystems otherwise. Kernel threads share the count, so it is not \
             the same to the last digit. What the run itself took is told by the clock of the host.",
        ),
    }
}

/// What a measured directory is on: `ext4 on /dev/sda1 (rw,relatime)`.
fn below(record: &RunRecord) -> Option<String> {
    let directory = |cell: &model::record::CellRecord| cell.cell.filesystem.base == "directory";
    if !record.cells.iter().any(directory) {
        return None;
    }
    let fact = |name: &str| record.environment.get(name).map(one_line);
    let (kind, source) = (fact("backing.fstype")?, fact("backing.source")?);
    let options = fact("backing.options").map(|options| format!(" ({options})"));
    Some(format!("{kind} on {source}{}", options.unwrap_or_default()))
}

/// What the numbers do not hold for. How full a filesystem is may have been an axis.
fn untested(record: &RunRecord) -> &'static str {
    if imported(record).is_some() {
        return "anything that its records do not tell";
    }
    let filled = record.cells.iter().any(|cell| !cell.cell.fullness.is_empty());
    match filled {
        true => "other devices, kernels, memory sizes, and ages",
        false => "other devices, kernels, memory sizes, fill levels, and ages",
    }
}

/// What a repeat has for itself: a filesystem, unless whatever is mounted there was measured.
fn instance(record: &RunRecord) -> &'static str {
    let found = record.cells.iter().any(|cell| cell.cell.filesystem.base == "directory");
    if found { "directory of one and the same filesystem" } else { "filesystem" }
}

/// The method in sentences, with the parameters that were used.
fn method(record: &RunRecord) -> Vec<String> {
    if let Some(program) = imported(record) {
        return imported_method(program);
    }
    let (info, percent) = (&record.info, |share: f64| format!("{:.1} %", share * 100.0));
    let profile = info.profile;
    let looks: Vec<String> = profile.looks().iter().map(u32::to_string).collect();
    let repeats = match info.repeats {
        Some(repeats) => format!("Each cell was repeated {repeats} times, as the plan sets."),
        None => format!(
            "After {} repeats the intervals of all measured phases of a cell were looked at; it \
             was closed when all were within ±{} of their medians, and at {} repeats in any case.",
            looks.join(", "),
            percent(profile.half_width_target().0),
            looks.last().map_or("", String::as_str)
        ),
    };
    let counted = counted(Clock::of(&record.environment)).map(str::to_owned);
    let usual = [
        format!(
            "A repeat (n) has a fresh {}, which is taken away after it. Repeats ran in random order \
             with seed {}, in one session. {repeats}",
            instance(record),
            info.seed
        ),
        "The value of a cell is the median over repeats. Its interval is the 95 % interval from \
         interpolated order statistics (Hettmansperger and Sheather); below six repeats there is \
         none, and no claim is made. Digits are limited by the interval: its half-width has two \
         significant digits."
            .into(),
        format!(
            "Cells are compared by the Brunner–Munzel statistic under permutation, two-sided, with \
             Holm's correction over all pairs of one test at one workload point (family-wise error \
             5 %). Ratios are Hodges–Lehmann estimates with the interval of the inverted test, \
             uncorrected. Differences below δ = {} are of no practical meaning; “equivalent” means \
             that the 90 % interval of the ratio lies within ±δ. Cells with a failed repeat or a \
             warning of the level “no claim” are shown and not ranked.",
            percent(profile.threshold().0)
        ),
        "The top group of a test holds the best median, every cell not told apart from it, and \
         every cell that differs from it by less than δ for certain. Cells that share a letter \
         were not told apart. Ranks are never averaged over tests."
            .into(),
        "Latency percentiles are taken for each repeat from a histogram with a relative error of \
         at most 0.4 %, then summarized over repeats; one is shown only where at least ten \
         operations of every repeat lie beyond it. They count from when the \
         worker turned to an operation, and in open loops from when it was due."
            .into(),
        "Beside each number stands what the machine did meanwhile: CPU time of each task as the \
         scheduler sums it, kernel threads attributed by their names, and the counters of the \
         devices. What the kernel does not tell is said to be not told; it is never a zero."
            .into(),
        format!("Not tested here, and not implied: {} of the filesystem.", untested(record)),
    ];
    counted.into_iter().chain(usual).collect()
}

/// What is known of how imported numbers came about.
fn imported_method(program: &str) -> Vec<String> {
    vec![
        format!(
            "These numbers were read from records of {}. fslab has measured nothing here: it \
             neither made the filesystems nor looked at the machine, and makes no claim.",
            one_line(program)
        ),
        "Each record is one repeat (n); the value of a cell is the median over records of one name \
         and one workload. Whether they were made under the same conditions is not told, so cells \
         are neither compared nor ranked."
            .into(),
        "Rates are bytes, seeks, or files over the time of a phase, its fsync and close included; \
         CPU is the time of the process in user mode and in the kernel over elapsed time; latency \
         is the longest single operation, which no number of repeats makes comparable."
            .into(),
    ]
}

/// The filesystems in the order of the plan.
pub(crate) fn filesystems(record: &RunRecord) -> Vec<Filesystem> {
    let mut found: Vec<Filesystem> = Vec::new();
    for cell in &record.cells {
        let level = &cell.cell.filesystem;
        if found.iter().any(|filesystem| filesystem.name == level.name) {
            continue;
        }
        let mut options = Vec::new();
        if level.base != level.name {
            options.push(level.base.clone());
        }
        if !level.mkfs.is_empty() {
            options.push(format!("mkfs {}", level.mkfs.join(" ")));
        }
        options.extend(level.setup.iter().map(|step| match step {
            SetupStep::Populate { directory, files } => {
                format!("a source tree of {files} files written into {directory}")
            }
            SetupStep::Remove { directory } => format!("{directory} removed"),
            SetupStep::Unmounted { argv } | SetupStep::Mounted { argv } => argv.join(" "),
        }));
        if let Some(becomes) = &level.becomes {
            options.push(format!("then {becomes}"));
        }
        if !level.mount.is_empty() {
            let gone = record.trials.iter().any(|trial| {
                let own = record.cells[trial.cell].cell.filesystem.name == level.name;
                let gone =
                    |(_, warning): &(_, Warning)| matches!(warning, Warning::OptionGone { .. });
                own && trial.warnings.iter().any(gone)
            });
            let note = if gone { " (in part gone, see W-OPTION)" } else { "" };
            options.push(format!("mount -o {}{note}", level.mount));
        }
        found.push(Filesystem { name: level.name.clone(), options: one_line(&options.join(", ")) });
    }
    found
}

/// Every hole, equal ones of a filesystem put together.
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
    let cells = record.cells.iter().enumerate().filter(|(_, cell)| !cell.cell.twin);
    for (index, cell) in cells {
        let (name, label) = (&cell.cell.filesystem.name, &cell.label);
        match &cell.state {
            CellState::Skipped { reason } => add(name, label, "skipped".into(), reason),
            // The failed repeat that ended it is told below.
            CellState::Failed { .. } => {}
            CellState::Open => add(name, label, "open".into(), "the run ended before its repeats"),
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
            let what = format!("{} of {} repeats failed", reasons.len(), valid.count());
            add(name, label, what, first);
        }
    }
    holes
}

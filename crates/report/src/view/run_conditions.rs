//! Run conditions: memory limit, fill level, deferred work, external directory, nilfs2 cleaner,
//! monitoring overhead, and unavailable data.

use analysis::Summary;
use model::{
    Metric, RunRecord, Warning,
    metric::Unit,
    record::{CellRecord, TrialRecord},
    sample::lifecycle,
};

use crate::units::{alone, distinct, one_line, percent};

/// Conditions that apply to the whole run, for the line of conditions.
pub(crate) fn conditions(record: &RunRecord) -> Vec<String> {
    let limit = record.environment.get("memory.limit_bytes");
    let limit = limit.and_then(|bytes| bytes.parse::<f64>().ok());
    let limit = limit.map(|bytes| format!("memory limited to {}", alone(Unit::Bytes, bytes)));
    let full = match &levels(record)[..] {
        [level] if !level.is_empty() => {
            Some(format!("{level} of the available space filled beforehand"))
        }
        _ => None,
    };
    let elsewhere = match (
        &values(record, "external_directory.fstype")[..],
        &values(record, "external_directory.source")[..],
    ) {
        ([kind], [source]) if kind != source => Some(format!("{kind} on {source}")),
        ([kind], _) => Some(kind.clone()),
        _ => None,
    };
    let elsewhere = elsewhere.map(|what| format!("external directory on {what}"));
    let background = match &values(record, "deferred_work")[..] {
        [one] => Some(format!("deferred work: {one}")),
        _ => None,
    };
    let cleaners = values(record, "filesystem.nilfs2.cleaner");
    let cleaner =
        (!cleaners.is_empty()).then(|| format!("nilfs2 cleaner: {}", cleaners.join(" or ")));
    [limit, full, elsewhere, background, cleaner].into_iter().flatten().collect()
}

/// Lines below the line of conditions, without duplicates: deferred work if filesystems differ,
/// monitoring overhead, and unavailable data.
pub(crate) fn lines(record: &RunRecord) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(background(record));
    lines.extend(monitoring_overhead(record));
    lines.extend(absent(record));
    lines
}

/// Fill levels, without duplicates.
fn levels(record: &RunRecord) -> Vec<model::FillLevel> {
    let mut levels: Vec<model::FillLevel> =
        record.cells.iter().map(|cell| cell.cell.fill_level).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// Values of a fact in the run and in its trials, in this order, without duplicates.
fn values(record: &RunRecord, fact: &str) -> Vec<String> {
    let trials = record.trials.iter().map(|trial| &trial.environment);
    let all = std::iter::once(&record.environment).chain(trials);
    distinct(all.filter_map(|environment| environment.get(fact)).map(one_line))
}

/// `deferred work: ext4: disabled by mkfs; xfs, btrfs: none`, if filesystems differ.
fn background(record: &RunRecord) -> Option<String> {
    let answers = values(record, "deferred_work");
    if answers.len() < 2 {
        return None;
    }
    let of = |answer: &String| {
        let mut names: Vec<&str> = Vec::new();
        for trial in &record.trials {
            let own = trial.environment.get("deferred_work");
            let said = own.or_else(|| record.environment.get("deferred_work")).map(one_line);
            let cell: Option<&CellRecord> = record.cells.get(trial.cell);
            let name = cell.map(|cell| cell.cell.filesystem.name.as_str());
            if let Some(name) = name.filter(|name| !names.contains(name))
                && said.as_ref() == Some(answer)
            {
                names.push(name);
            }
        }
        (!names.is_empty()).then(|| format!("{}: {answer}", names.join(", ")))
    };
    let each: Vec<String> = answers.iter().filter_map(of).collect();
    Some(format!("deferred work: {}", each.join("; ")))
}

/// `monitoring overhead: 0.12 % of one CPU per trial (median), at most 12.1 MiB memory`. The
/// utilization is per step if the run has no values per trial.
fn monitoring_overhead(record: &RunRecord) -> Option<String> {
    let samples = || {
        let all = record.trials.iter().flat_map(|trial| &trial.samples);
        all.filter(|sample| sample.worker.is_none())
    };
    let values = |metric: Metric, whole: bool| -> Vec<f64> {
        let wanted = samples().filter(|sample| sample.metric == metric);
        let wanted = wanted.filter(|sample| (sample.phase == lifecycle::TRIAL) == whole);
        wanted.map(|sample| sample.value).collect()
    };
    let share = [(true, "per trial"), (false, "per step")].into_iter();
    let mut share = share.filter_map(|(whole, scope)| {
        let share = Summary::new(&values(Metric::MonitoringCpuUtilization, whole)).ok()?;
        Some(format!("{} of one CPU {scope} (median)", percent(share.median)))
    });
    let share = share.next();
    let memory = [true, false].map(|whole| values(Metric::MonitoringMemory, whole));
    let memory = memory.into_iter().flatten().reduce(f64::max);
    let memory = memory.map(|bytes| format!("at most {} memory", alone(Unit::Bytes, bytes)));
    let parts: Vec<String> = share.into_iter().chain(memory).collect();
    (!parts.is_empty()).then(|| format!("monitoring overhead: {}", parts.join(", ")))
}

/// Messages about unavailable data, without duplicates: those of the run, then those of its trials.
fn absent(record: &RunRecord) -> Vec<String> {
    let of_trial = |trial: &TrialRecord| {
        let lacks = trial.activity.iter().flat_map(|(_, activity)| &activity.unavailable);
        let lacks = lacks.map(|lack| {
            let (what, why) = (lack.what.clone(), lack.why.clone());
            Warning::NotAvailable { what, why }
        });
        let own = trial.warnings.iter().map(|(_, warning)| warning.clone());
        own.chain(lacks).collect::<Vec<_>>()
    };
    let all = record.warnings.iter().cloned().chain(record.trials.iter().flat_map(of_trial));
    let all = all.filter(|warning| matches!(warning, Warning::NotAvailable { .. }));
    distinct(all.map(|warning| one_line(&warning.message())))
}

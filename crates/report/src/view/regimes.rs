//! Under which regime the numbers came about: memory, fullness, what the filesystem had put off,
//! the other filesystem of copies; what could not be seen, and what looking cost.

use analysis::Summary;
use model::{Metric, RunRecord, Warning, metric::Unit, record::CellRecord, sample::lifecycle};

use crate::units::{alone, one_line, percent};

/// Parts of the line of conditions, where they hold for the whole run.
pub(crate) fn conditions(record: &RunRecord) -> Vec<String> {
    let limit = record.environment.get("memory.limit_bytes");
    let limit = limit.and_then(|bytes| bytes.parse::<f64>().ok());
    // Whoever set it said so in the words of the storage.
    let limit = limit.filter(|_| !record.info.storage.contains("memory limited"));
    let limit = limit.map(|bytes| format!("memory limited to {}", alone(Unit::Bytes, bytes)));
    let full = match &levels(record)[..] {
        [level] if !level.is_empty() => Some(format!("{level} of the usable space filled before")),
        _ => None,
    };
    let elsewhere =
        match (&told(record, "elsewhere.fstype")[..], &told(record, "elsewhere.source")[..]) {
            ([kind], [source]) if kind != source => Some(format!("{kind} on {source}")),
            ([kind], _) => Some(kind.clone()),
            _ => None,
        };
    let elsewhere = elsewhere.map(|what| format!("copies from and to {what}"));
    let background = match &told(record, "background")[..] {
        [one] => Some(format!("background work: {one}")),
        _ => None,
    };
    let cleaners = told(record, "filesystem.nilfs2.cleaner");
    let cleaner =
        (!cleaners.is_empty()).then(|| format!("cleaner of nilfs2: {}", cleaners.join(" or ")));
    [limit, full, elsewhere, background, cleaner].into_iter().flatten().collect()
}

/// Lines below the conditions: background work where filesystems differ, what looking cost, and
/// once each what could not be seen.
pub(crate) fn lines(record: &RunRecord) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(background(record));
    lines.extend(looking(record));
    lines.extend(absent(record));
    lines
}

/// How full filesystems were, each level once.
fn levels(record: &RunRecord) -> Vec<model::Fullness> {
    let mut levels: Vec<model::Fullness> =
        record.cells.iter().map(|cell| cell.cell.fullness).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// What the run and its trials say of a fact, each answer once, in their order.
fn told(record: &RunRecord, fact: &str) -> Vec<String> {
    let trials = record.trials.iter().map(|trial| &trial.environment);
    let all = std::iter::once(&record.environment).chain(trials);
    let mut told: Vec<String> = Vec::new();
    for answer in all.filter_map(|environment| environment.get(fact)).map(one_line) {
        if !told.contains(&answer) {
            told.push(answer);
        }
    }
    told
}

/// `background work: ext4: switched off at mkfs; xfs, btrfs: none`.
fn background(record: &RunRecord) -> Option<String> {
    let answers = told(record, "background");
    if answers.len() < 2 {
        return None;
    }
    let of = |answer: &String| {
        let mut names: Vec<&str> = Vec::new();
        for trial in &record.trials {
            let own = trial.environment.get("background");
            let said = own.or_else(|| record.environment.get("background")).map(one_line);
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
    Some(format!("background work: {}", each.join("; ")))
}

/// `cost of looking: 0.12 % of one processor over whole repeats (median), at most 12.1 MiB of
/// memory`; of runs that did not keep that, over single steps.
fn looking(record: &RunRecord) -> Option<String> {
    let samples = || {
        let all = record.trials.iter().flat_map(|trial| &trial.samples);
        all.filter(|sample| sample.worker.is_none())
    };
    let values = |metric: Metric, whole: bool| -> Vec<f64> {
        let wanted = samples().filter(|sample| sample.metric == metric);
        let wanted = wanted.filter(|sample| (sample.phase == lifecycle::TRIAL) == whole);
        wanted.map(|sample| sample.value).collect()
    };
    let share = [(true, "over whole repeats"), (false, "over single steps")].into_iter();
    let mut share = share.filter_map(|(whole, words)| {
        let share = Summary::new(&values(Metric::OverheadShare, whole)).ok()?;
        Some(format!("{} of one processor {words} (median)", percent(share.median)))
    });
    let share = share.next();
    let memory = [true, false].map(|whole| values(Metric::OverheadMemory, whole));
    let memory = memory.into_iter().flatten().reduce(f64::max);
    let memory = memory.map(|bytes| format!("at most {} of memory", alone(Unit::Bytes, bytes)));
    let words: Vec<String> = share.into_iter().chain(memory).collect();
    (!words.is_empty()).then(|| format!("cost of looking: {}", words.join(", ")))
}

/// Every text once, in the order of the run: its warnings, then what the evidence lacks.
fn absent(record: &RunRecord) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut add = |warning: &Warning| {
        if matches!(warning, Warning::Absent { .. }) {
            let text = one_line(&warning.message());
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    };
    record.warnings.iter().for_each(&mut add);
    for trial in &record.trials {
        trial.warnings.iter().for_each(|(_, warning)| add(warning));
        for lack in trial.evidence.iter().flat_map(|(_, evidence)| &evidence.absent) {
            add(&Warning::Absent { what: lack.what.clone(), why: lack.why.clone() });
        }
    }
    texts
}

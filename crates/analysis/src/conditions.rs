//! Differences between the conditions of two runs.
//!
//! Lists every fact that differs between two [`RunRecord`]s, the most severe differences first, and
//! the cells that both runs have. Facts that always differ are omitted: names and times of runs,
//! seeds, and measurements of the clock and the generator. Loop devices are identified by their
//! position (`device.loop[0].…`), because their numbers always differ.
//!
//! Numbers of two runs are comparable if there is no severe difference, or if all severe
//! differences belong to one [`Aspect`]. [`crate::runs`] compares them.

mod aspect;

use std::collections::{BTreeMap, BTreeSet};

use model::{FilesystemLevel, RunRecord, Warning, record::CellRecord};

pub use aspect::Aspect;
use aspect::Condition;

/// Severity of a difference for a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The difference can affect the results by itself.
    Severe,
    /// Informational.
    Other,
}

impl Severity {
    /// Name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Severe => "severe",
            Self::Other => "other",
        }
    }
}

/// Condition that differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Severity.
    pub severity: Severity,
    /// Name of a fact, or description of a condition.
    pub what: String,
    /// Value in the first run; `None` if not recorded.
    pub first: Option<String>,
    /// Value in the second run; `None` if not recorded.
    pub second: Option<String>,
    /// Aspect to which the condition belongs; `None` if the difference is not severe.
    pub aspect: Option<Aspect>,
}

impl Difference {
    /// Filesystem and name of a fact of one filesystem, from `filesystem.FILESYSTEM.NAME`.
    pub fn filesystem_fact(&self) -> Option<(&str, &str)> {
        self.what.strip_prefix("filesystem.").and_then(|rest| rest.rsplit_once('.'))
    }
}

/// Differences between the conditions of two runs, and their cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Differences, severe ones first, then by name.
    pub differences: Vec<Difference>,
    /// Cells that both runs have, in the order of the first run.
    pub shared: Vec<String>,
    /// Cells only in the first run.
    pub only_first: Vec<String>,
    /// Cells only in the second run.
    pub only_second: Vec<String>,
}

impl Conditions {
    /// Compares the conditions of two runs.
    pub fn between(first: &RunRecord, second: &RunRecord) -> Self {
        let (before, after) = (facts(first), facts(second));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changed = |name: &str| before.get(name) != after.get(name);
        let directories = [first, second].into_iter().all(of_directories);
        let imported = [first, second].into_iter().any(is_imported);
        let mut differences: Vec<Difference> = names
            .into_iter()
            .filter(|name| changed(name))
            // Facts of a filesystem that only one run has are omitted: its cells are listed
            // instead.
            .filter(|name| {
                let both = before.contains_key(*name) && after.contains_key(*name);
                both || !name.starts_with("filesystem.")
            })
            .map(|name| {
                let (first, second) = (before.get(name).cloned(), after.get(name).cloned());
                let condition = Condition {
                    name,
                    first: first.as_deref(),
                    second: second.as_deref(),
                    directories,
                    imported,
                    changed: &changed,
                };
                let aspect = condition.aspect();
                Difference { severity: aspect.into(), what: name.clone(), first, second, aspect }
            })
            .collect();
        differences.sort();
        let ids = |run: &RunRecord| run.cells.iter().map(|cell| cell.id).collect::<BTreeSet<_>>();
        let (here, there) = (ids(first), ids(second));
        let list = |run: &RunRecord, keep: &dyn Fn(&CellRecord) -> bool| {
            run.cells.iter().filter(|cell| keep(cell)).map(named).collect()
        };
        Self {
            differences,
            shared: list(first, &|cell| there.contains(&cell.id)),
            only_first: list(first, &|cell| !there.contains(&cell.id)),
            only_second: list(second, &|cell| !here.contains(&cell.id)),
        }
    }

    /// Aspects in which the runs differ.
    pub fn aspects(&self) -> BTreeSet<Aspect> {
        self.differences.iter().filter_map(|difference| difference.aspect).collect()
    }

    /// Differences of one severity.
    pub fn with_severity(&self, severity: Severity) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(move |difference| difference.severity == severity)
    }
}

/// True if a run was imported from the output of another program.
pub(crate) fn is_imported(run: &RunRecord) -> bool {
    run.warnings.iter().any(|warning| matches!(warning, Warning::Imported { .. }))
}

pub(crate) fn named(cell: &CellRecord) -> String {
    format!("{} · {}", cell.cell.filesystem.name, cell.label)
}

/// True for facts that differ between any two runs, or that identify a file or device of one run.
fn always_differs(name: &str) -> bool {
    let measured = ["generator.", "boot.id", "clock.cost_ns", "clock.resolution_ns"];
    measured.iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with(".loop.backing_file")
        || name.ends_with(".below")
        || matches!(name, "backing.usable_bytes" | "backing.device" | "program")
}

/// All conditions of a run by name.
fn facts(run: &RunRecord) -> BTreeMap<String, String> {
    let info = &run.info;
    let mut facts = BTreeMap::new();
    let places = Places::new(run);
    for (name, value) in &run.environment.0 {
        if !always_differs(name) {
            facts.insert(places.place(name), value.clone());
        }
    }
    let repetitions =
        info.repetitions.map_or_else(|| "as the profile has it".into(), |n| n.to_string());
    let text = [
        ("run.program", info.program.clone()),
        ("run.profile", info.profile.name().to_owned()),
        ("run.scale", info.scale.to_string()),
        ("run.repetitions", repetitions),
        ("run.storage", info.storage.clone()),
    ];
    facts.extend(text.map(|(name, value)| (name.to_owned(), value)));
    for (key, value) in info.overrides.iter().filter(|(key, _)| !is_cell_setting(key)) {
        facts.insert(format!("set.{key}"), value.clone());
    }
    for cell in &run.cells {
        let level = &cell.cell.filesystem;
        facts.insert(format!("filesystem.{}.options", level.name), level_options(level));
    }
    facts.extend(mounted(run));
    facts
}

/// Options of a filesystem in the plan, as text.
fn level_options(level: &FilesystemLevel) -> String {
    let mkfs = if level.mkfs.is_empty() { "defaults".into() } else { level.mkfs.join(" ") };
    let mount = if level.mount.is_empty() { "defaults" } else { &level.mount };
    let mut text = format!("{}, mkfs {mkfs}, mount {mount}", level.fs_type);
    let further = [
        level.devices.map(|devices| format!("on {devices} devices")),
        (!level.layers.is_empty()).then(|| format!("layers {:?}", level.layers)),
        (!level.setup.is_empty()).then(|| format!("then {:?}", level.setup)),
        (!level.commands.mount.is_empty()).then(|| level.commands.mount.join(" ")),
        (!level.commands.source.is_empty()).then(|| format!("from {}", level.commands.source)),
        level.converted_to.as_ref().map(|becomes| format!("becomes {becomes}")),
    ];
    for part in further.into_iter().flatten() {
        text.push_str(", ");
        text.push_str(&part);
    }
    text
}

/// True for settings that are part of the cells or are compared under another name.
fn is_cell_setting(key: &str) -> bool {
    matches!(
        key,
        "seed" | "repetitions" | "profile" | "filesystem" | "image_size" | "device" | "directory"
    )
}

/// Facts of trials that are compared by filesystem, with their names in the comparison.
const OF_TRIALS: [(&str, &str); 3] = [
    ("mount.options", "mounted"),
    ("filesystem.features", "features"),
    ("filesystem.nilfs2.cleaner", "cleaner"),
];

/// Effective mount options and filesystem parameters: the values in all trials of a filesystem.
fn mounted(run: &RunRecord) -> BTreeMap<String, String> {
    let mut seen: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for trial in &run.trials {
        let Some(cell) = run.cells.get(trial.cell) else { continue };
        for (fact, word) in OF_TRIALS {
            let Some(value) = trial.environment.get(fact) else { continue };
            let name = format!("filesystem.{}.{word}", cell.cell.filesystem.name);
            seen.entry(name).or_default().insert(value);
        }
    }
    let joined = |values: BTreeSet<&str>| values.into_iter().collect::<Vec<_>>().join(" | ");
    seen.into_iter().map(|(name, values)| (name, joined(values))).collect()
}

/// Names by which the devices of a run are compared. A loop device is named by its position in the
/// order of the numbers, and the device that holds the images or the directory is `backing`. Other
/// devices keep their names.
struct Places(BTreeMap<String, String>);

impl Places {
    fn new(run: &RunRecord) -> Self {
        let facts = &run.environment;
        let devices = facts.0.keys().filter_map(|name| name.strip_prefix("device."));
        let names = devices.filter_map(|rest| rest.split('.').next());
        let number = |name: &str| name.strip_prefix("loop")?.parse::<u64>().ok();
        let loops: BTreeSet<u64> = names.filter_map(number).collect();
        let loops = loops.into_iter().enumerate();
        let mut places: BTreeMap<String, String> =
            loops.map(|(at, number)| (format!("loop{number}"), format!("loop[{at}]"))).collect();
        if let Some(device) = facts.get("backing.device") {
            places.insert(device.to_owned(), "backing".into());
        }
        Self(places)
    }

    fn place(&self, name: &str) -> String {
        let found = name.strip_prefix("device.").and_then(|rest| {
            let (device, fact) = rest.split_once('.')?;
            Some(format!("device.{}.{fact}", self.0.get(device)?))
        });
        found.unwrap_or_else(|| name.to_owned())
    }
}

/// Relative difference up to which memory sizes count as equal. The memory that the kernel reserves
/// varies slightly between boots.
const SAME_MEMORY: f64 = 0.01;

/// True if a run only measured mounted directories.
fn of_directories(run: &RunRecord) -> bool {
    !run.cells.is_empty()
        && run.cells.iter().all(|cell| cell.cell.filesystem.fs_type == "directory")
}

#[cfg(test)]
mod tests;

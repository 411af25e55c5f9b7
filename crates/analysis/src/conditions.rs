//! What differed between the conditions of two runs, apart from their numbers.
//!
//! Two [`RunRecord`]s enter; a [`Conditions`] leaves: every fact that is not the same in both, the
//! gravest first, and which cells both have. What always differs says nothing and is left out:
//! names and times of runs, seeds, what was measured of the clock and the generator, and the
//! numbers of loop devices, which are told by their place instead (`device.loop[0].…`).
//!
//! Two numbers of different runs may be compared as far as nothing severe differs, or as far as all
//! that does belongs to one [`Way`]; [`crate::runs`] does that.

mod way;

use std::collections::{BTreeMap, BTreeSet};

use model::{FilesystemLevel, RunRecord, record::CellRecord};

use way::Condition;
pub use way::Way;

/// How much a difference does to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A difference between the numbers may come from it alone.
    Severe,
    /// Worth knowing.
    Other,
}

impl Severity {
    /// One word for tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Severe => "severe",
            Self::Other => "other",
        }
    }
}

/// One condition that is not the same in both runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// How much it does.
    pub severity: Severity,
    /// What differs: the name of a fact, or words.
    pub what: String,
    /// How it was in the first run; `None` where that does not tell.
    pub first: Option<String>,
    /// How it was in the second run; `None` where that does not tell.
    pub second: Option<String>,
    /// The way of differing that it belongs to; `None` if it is not severe.
    pub way: Option<Way>,
}

/// What two runs have in common, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// What differed, severe differences first, then by name.
    pub differences: Vec<Difference>,
    /// Cells of both runs, in the order of the first.
    pub shared: Vec<String>,
    /// Cells of the first run alone.
    pub only_first: Vec<String>,
    /// Cells of the second run alone.
    pub only_second: Vec<String>,
}

impl Conditions {
    /// Compares two runs.
    pub fn of(first: &RunRecord, second: &RunRecord) -> Self {
        let (before, after) = (facts(first), facts(second));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changed = |name: &str| before.get(name) != after.get(name);
        let directories = [first, second].into_iter().all(of_directories);
        let mut differences: Vec<Difference> = names
            .into_iter()
            .filter(|name| changed(name))
            // A filesystem that only one run has shows in the cells.
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
                    changed: &changed,
                };
                let way = condition.way();
                Difference { severity: way.into(), what: name.clone(), first, second, way }
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

    /// The ways in which the runs differ, each once, in the order of [`Way`].
    pub fn ways(&self) -> BTreeSet<Way> {
        self.differences.iter().filter_map(|difference| difference.way).collect()
    }

    /// The differences of one severity.
    pub fn at(&self, severity: Severity) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(move |difference| difference.severity == severity)
    }
}

pub(crate) fn named(cell: &CellRecord) -> String {
    format!("{} · {}", cell.cell.filesystem.name, cell.label)
}

/// Facts that differ between any two runs, or name what a run made for itself.
fn always_differs(name: &str) -> bool {
    let measured = ["generator.", "boot.id", "clock.cost_ns", "clock.resolution_ns"];
    measured.iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with(".loop.backing_file")
        || name.ends_with(".below")
        || matches!(name, "backing.usable_bytes" | "backing.device" | "program")
}

/// Every condition of a run by name.
fn facts(run: &RunRecord) -> BTreeMap<String, String> {
    let info = &run.info;
    let mut facts = BTreeMap::new();
    let places = Places::new(run);
    for (name, value) in &run.environment.0 {
        if !always_differs(name) {
            facts.insert(places.place(name), value.clone());
        }
    }
    let repeats = info.repeats.map_or_else(|| "as the profile has it".into(), |n| n.to_string());
    let words = [
        ("run.program", info.program.clone()),
        ("run.profile", info.profile.name().to_owned()),
        ("run.scale", info.scale.to_string()),
        ("run.repeats", repeats),
        ("run.storage", info.storage.clone()),
    ];
    facts.extend(words.map(|(name, value)| (name.to_owned(), value)));
    for (key, value) in info.amendments.iter().filter(|(key, _)| !told_apart(key)) {
        facts.insert(format!("set.{key}"), value.clone());
    }
    for cell in &run.cells {
        let level = &cell.cell.filesystem;
        facts.insert(format!("filesystem.{}.options", level.name), asked(level));
    }
    facts.extend(mounted(run));
    facts
}

/// What a plan asks of a filesystem, in words.
fn asked(level: &FilesystemLevel) -> String {
    let mkfs = if level.mkfs.is_empty() { "defaults".into() } else { level.mkfs.join(" ") };
    let mount = if level.mount.is_empty() { "defaults" } else { &level.mount };
    let mut words = format!("{}, mkfs {mkfs}, mount {mount}", level.base);
    let further = [
        level.devices.map(|devices| format!("on {devices} devices")),
        (!level.layers.is_empty()).then(|| format!("layers {:?}", level.layers)),
        (!level.setup.is_empty()).then(|| format!("then {:?}", level.setup)),
        level.becomes.as_ref().map(|becomes| format!("becomes {becomes}")),
    ];
    for part in further.into_iter().flatten() {
        words.push_str(", ");
        words.push_str(&part);
    }
    words
}

/// Settings that show elsewhere: in the cells, or under a name of their own.
fn told_apart(key: &str) -> bool {
    matches!(key, "seed" | "repeats" | "profile" | "filesystem" | "image" | "device" | "directory")
}

/// Facts of trials that are told by filesystem, and under which names.
const OF_TRIALS: [(&str, &str); 3] = [
    ("mount.options", "mounted"),
    ("filesystem.features", "features"),
    ("filesystem.nilfs2.cleaner", "cleaner"),
];

/// The mount options in force and what the filesystems were made with: all that their trials had.
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

/// The devices of a run by their place: loop devices in the order of their numbers, and the one
/// that holds images or the directory. Others keep their names.
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

/// Part by which sizes of memory may differ: the kernel keeps a little more or less for itself from
/// one boot to the next.
const SAME_MEMORY: f64 = 0.01;

/// Whether a run measured whatever is mounted at a directory, and nothing else.
fn of_directories(run: &RunRecord) -> bool {
    !run.cells.is_empty() && run.cells.iter().all(|cell| cell.cell.filesystem.base == "directory")
}

#[cfg(test)]
mod tests;

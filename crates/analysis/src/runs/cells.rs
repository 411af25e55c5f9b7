//! Which cells of two runs belong together.

use std::collections::BTreeSet;

use model::{
    Cell, RunRecord,
    phase::Role,
    record::{CellRecord, PhaseInfo},
};

use super::{Pairs, Refused, Way, Which, numbers::Numbers};
use crate::{
    Conditions,
    conditions::{Difference, Severity, named},
    count,
};

/// By what two cells were paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// They are the same cell.
    Identity,
    /// The same workload, conditions, and name of the filesystem, which has other options.
    Options,
    /// The same workload and conditions on another filesystem.
    Workload,
}

/// A cell that is paired with none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lone {
    /// Its filesystem and workload.
    pub name: String,
    /// How many tests of it have values.
    pub tests: u32,
    /// Why.
    pub why: Why,
}

/// Why a cell is paired with none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It is a control.
    #[error("a twin, which is compared with its own cell alone")]
    Twin,
    /// The other run has no such filesystem.
    #[error("the other run has no {0}")]
    Filesystem(String),
    /// The filesystem was compared with another one.
    #[error("its filesystem there is compared with another one")]
    Taken,
    /// The other run has no such workload on the filesystem.
    #[error("the other run does not have this workload on it")]
    Workload,
    /// The other run has the workload under other conditions.
    #[error("the other run has it under other conditions: {0}")]
    Conditions(&'static str),
}

/// Two cells that belong together, by their indexes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) by: By,
}

impl Match {
    /// Whether other options of filesystems cannot have touched it: it is the same cell, and
    /// nothing that is known of its filesystem differed.
    pub(super) fn untouched(&self, first: &RunRecord, conditions: &Conditions) -> bool {
        let level = &first.cells[self.first].cell.filesystem;
        let kinds = [Some(&level.base), level.becomes.as_ref()];
        let own = |difference: &Difference| {
            let what = &difference.what;
            let of = what.strip_prefix("filesystem.").and_then(|rest| rest.rsplit_once('.'));
            let fact = of.is_some_and(|(name, fact)| match OF_KINDS.contains(&fact) {
                true => kinds.iter().flatten().any(|kind| *kind == name),
                false => name == level.name,
            });
            // What is mounted at a directory is under all of its cells.
            fact || difference.way == Some(Way::Filesystem) && what.starts_with("backing.")
        };
        self.by == By::Identity && !conditions.differences.iter().any(own)
    }
}

/// Facts that are told of a kind of filesystem, not of a level of the axis: all levels that are
/// made of it have them in common, whatever they are called.
const OF_KINDS: [&str; 2] = ["tools", "mkfs"];

/// All cells of two runs.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) pairs: Vec<Match>,
    pub(super) only_first: Vec<Lone>,
    pub(super) only_second: Vec<Lone>,
    /// Names of filesystems that were compared with others.
    names: BTreeSet<(String, String)>,
}

impl Matched {
    /// The cells of the first run that are compared with a cell of the same filesystem.
    pub(super) fn shared(&self, first: &RunRecord) -> Vec<String> {
        let same = self.pairs.iter().filter(|pair| pair.by != By::Workload);
        same.map(|pair| named(&first.cells[pair.first])).collect()
    }

    /// The filesystems that are compared with others, as differences.
    pub(super) fn renamed(&self) -> Vec<Difference> {
        let difference = |(first, second): &(String, String)| Difference {
            severity: Severity::Severe,
            what: "filesystem".into(),
            first: Some(first.clone()),
            second: Some(second.clone()),
            way: Some(Way::Filesystem),
        };
        self.names.iter().map(difference).collect()
    }
}

/// Pairs the cells of two runs; pairs stand in the order of the first.
pub(super) fn matched(
    first: &RunRecord,
    second: &RunRecord,
    how: &Pairs,
) -> Result<Matched, Refused> {
    let names = [filesystems(first), filesystems(second)];
    for (at, (one, other)) in how.rename.iter().enumerate() {
        let before = &how.rename[..at];
        for (which, name, names, twice) in [
            (Which::First, one, &names[0], before.iter().any(|pair| pair.0 == *one)),
            (Which::Second, other, &names[1], before.iter().any(|pair| pair.1 == *other)),
        ] {
            if twice {
                return Err(Refused::PairedTwice { name: name.clone(), which });
            }
            if !names.contains(name.as_str()) {
                let known = names.iter().copied().collect::<Vec<_>>().join(", ");
                return Err(Refused::NoSuchFilesystem { name: name.clone(), which, known });
            }
        }
    }
    let single = match (Vec::from_iter(&names[0]).as_slice(), Vec::from_iter(&names[1]).as_slice())
    {
        ([one], [other]) if one != other => vec![((**one).to_owned(), (**other).to_owned())],
        _ => Vec::new(),
    };
    let renames = if how.rename.is_empty() { &single } else { &how.rename };
    let mut pairs: Vec<Match> = Vec::new();
    let mut taken = BTreeSet::new();
    for (index, record) in first.cells.iter().enumerate() {
        let found = candidates(record, second, renames);
        if let Some((other, by)) = found.into_iter().find(|(other, _)| !taken.contains(other)) {
            taken.insert(other);
            pairs.push(Match { first: index, second: other, by });
        }
    }
    let own: BTreeSet<usize> = pairs.iter().map(|pair| pair.first).collect();
    let renamed = pairs.iter().filter(|pair| pair.by == By::Workload);
    let name = |run: &RunRecord, cell: usize| run.cells[cell].cell.filesystem.name.clone();
    let renamed = renamed.map(|pair| (name(first, pair.first), name(second, pair.second)));
    Ok(Matched {
        only_first: lone(first, &own, second, renames.iter().map(|(_, other)| other)),
        only_second: lone(second, &taken, first, renames.iter().map(|(one, _)| one)),
        names: renamed.collect(),
        pairs,
    })
}

/// The cells that one of the first run may be paired with, the closest first. A filesystem that is
/// renamed is paired under its new name alone, and what it is renamed to with nothing else.
fn candidates(
    record: &CellRecord,
    second: &RunRecord,
    renames: &[(String, String)],
) -> Vec<(usize, By)> {
    let cell = &record.cell;
    if cell.twin {
        return Vec::new();
    }
    let name = &cell.filesystem.name;
    let mut wanted = renames.iter().filter(|(one, _)| one == name).map(|(_, other)| other);
    let others = second.cells.iter().enumerate().filter(|(_, other)| !other.cell.twin);
    if let Some(wanted) = wanted.next() {
        let fits = |other: &CellRecord| {
            other.cell.filesystem.name == *wanted && apart(cell, &other.cell).is_none()
        };
        return others.filter(|(_, other)| fits(other)).map(|(at, _)| (at, By::Workload)).collect();
    }
    let free =
        |other: &CellRecord| renames.iter().all(|(_, taken)| *taken != other.cell.filesystem.name);
    let mut found: Vec<(usize, By)> = others
        .filter(|(_, other)| free(other))
        .filter_map(|(at, other)| {
            let options =
                || other.cell.filesystem.name == *name && apart(cell, &other.cell).is_none();
            match other.id == record.id {
                true => Some((at, By::Identity)),
                false => options().then_some((at, By::Options)),
            }
        })
        .collect();
    found.sort_by_key(|(_, by)| *by != By::Identity);
    found
}

/// What beside the filesystem two cells differ in; `None` if in nothing.
fn apart(one: &Cell, other: &Cell) -> Option<Option<&'static str>> {
    if one.workload != other.workload {
        return Some(None);
    }
    let what = [
        (one.scheduler != other.scheduler, "scheduler"),
        (one.fullness != other.fullness, "how full it is"),
        (one.factors != other.factors, "settings of the machine"),
    ];
    what.into_iter().find(|(differs, _)| *differs).map(|(_, what)| Some(what))
}

/// Names of the filesystems of a run, controls left out.
fn filesystems(run: &RunRecord) -> BTreeSet<&str> {
    let cells = run.cells.iter().filter(|cell| !cell.cell.twin);
    cells.map(|cell| cell.cell.filesystem.name.as_str()).collect()
}

/// The cells that are not paired, and why. `renamed` are the filesystems of the other run that are
/// compared with those of other names.
fn lone<'a>(
    run: &RunRecord,
    paired: &BTreeSet<usize>,
    other: &RunRecord,
    renamed: impl Iterator<Item = &'a String> + Clone,
) -> Vec<Lone> {
    let there = filesystems(other);
    let why = |cell: &Cell| {
        let name = &cell.filesystem.name;
        let own = || other.cells.iter().filter(|other| !other.cell.twin).map(|other| &other.cell);
        let same = own().filter(|other| other.filesystem.name == *name);
        let close = same.filter_map(|other| apart(cell, other)).find_map(|apart| apart);
        match () {
            () if cell.twin => Why::Twin,
            () if renamed.clone().any(|other| other == name) => Why::Taken,
            () if !there.contains(name.as_str()) => Why::Filesystem(name.clone()),
            () => close.map_or(Why::Workload, Why::Conditions),
        }
    };
    let cells = run.cells.iter().enumerate().filter(|(index, _)| !paired.contains(index));
    let numbers = Numbers::new(run);
    let tests = |index: usize, cell: &CellRecord| {
        let measured = cell.phases.iter().filter(|phase| phase.role == Role::Measure);
        let known =
            |phase: &&PhaseInfo| !numbers.repeats(index, &phase.name, phase.primary).is_empty();
        count(measured.filter(known).count())
    };
    let lone = |(index, cell): (usize, &CellRecord)| Lone {
        name: named(cell),
        tests: tests(index, cell),
        why: why(&cell.cell),
    };
    cells.map(lone).collect()
}

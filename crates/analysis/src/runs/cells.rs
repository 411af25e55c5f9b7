//! Pairing of the cells of two runs.

use std::collections::BTreeSet;

use model::{
    Cell, RunRecord,
    phase::Role,
    record::{CellRecord, PhaseInfo},
};

use super::{Aspect, CompareError, CompareOptions, Which, numbers::Numbers};
use crate::{
    Conditions,
    conditions::{Difference, Severity, named},
    count,
};

/// Criterion by which two cells were paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairedBy {
    /// The same cell.
    Identity,
    /// The same workload, conditions, and filesystem name, but other filesystem options.
    Options,
    /// The same workload and conditions on a filesystem with another name.
    Workload,
}

/// Cell without a counterpart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpaired {
    /// Filesystem and workload.
    pub name: String,
    /// Number of tests of the cell that have values.
    pub tests: u32,
    /// Reason.
    pub reason: UnpairedReason,
}

/// Reason that a cell is unpaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpairedReason {
    /// A/A duplicate.
    #[error("A/A duplicate, compared with its original only")]
    AaDuplicate,
    /// The other run does not have this filesystem.
    #[error("the other run has no {0}")]
    Filesystem(String),
    /// The filesystem was compared with another one.
    #[error("its filesystem is compared with another one")]
    Taken,
    /// The other run does not have this workload on the filesystem.
    #[error("the other run does not have this workload on the filesystem")]
    Workload,
    /// The other run has the workload under other conditions.
    #[error("the other run has the workload under other conditions: {0}")]
    Conditions(&'static str),
}

/// Paired cells, by index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) by: PairedBy,
}

impl Match {
    /// True if both cells are identical and no fact of their filesystem differs. Different
    /// filesystem options in the two runs then cannot have affected the pair.
    pub(super) fn unaffected(&self, first: &RunRecord, conditions: &Conditions) -> bool {
        let level = &first.cells[self.first].cell.filesystem;
        let kinds = [Some(&level.fs_type), level.converted_to.as_ref()];
        let own = |difference: &Difference| {
            let what = &difference.what;
            let fact = difference.filesystem_fact().is_some_and(|(name, fact)| {
                match OF_KINDS.contains(&fact) {
                    true => kinds.iter().flatten().any(|kind| *kind == name),
                    false => name == level.name,
                }
            });
            // The filesystem mounted at a directory affects all of its cells.
            fact || difference.aspect == Some(Aspect::Filesystem) && what.starts_with("backing.")
        };
        self.by == PairedBy::Identity && !conditions.differences.iter().any(own)
    }
}

/// Facts of a filesystem type, which apply to all filesystems of that type regardless of their
/// names in the plan.
const OF_KINDS: [&str; 2] = ["tools", "mkfs"];

/// All cells of two runs.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) pairs: Vec<Match>,
    pub(super) only_first: Vec<Unpaired>,
    pub(super) only_second: Vec<Unpaired>,
    /// Names of filesystems that were compared under different names.
    names: BTreeSet<(String, String)>,
}

impl Matched {
    /// Cells of the first run that are compared with a cell of the same filesystem name.
    pub(super) fn shared(&self, first: &RunRecord) -> Vec<String> {
        let same = self.pairs.iter().filter(|pair| pair.by != PairedBy::Workload);
        same.map(|pair| named(&first.cells[pair.first])).collect()
    }

    /// Pairs of filesystems with different names, as differences.
    pub(super) fn renamed(&self) -> Vec<Difference> {
        let difference = |(first, second): &(String, String)| Difference {
            severity: Severity::Severe,
            what: "filesystem".into(),
            first: Some(first.clone()),
            second: Some(second.clone()),
            aspect: Some(Aspect::Filesystem),
        };
        self.names.iter().map(difference).collect()
    }
}

/// Pairs the cells of two runs, in the order of the first run.
pub(super) fn matched(
    first: &RunRecord,
    second: &RunRecord,
    how: &CompareOptions,
) -> Result<Matched, CompareError> {
    let names = [filesystems(first), filesystems(second)];
    for (at, (one, other)) in how.rename.iter().enumerate() {
        let before = &how.rename[..at];
        for (which, name, names, twice) in [
            (Which::First, one, &names[0], before.iter().any(|pair| pair.0 == *one)),
            (Which::Second, other, &names[1], before.iter().any(|pair| pair.1 == *other)),
        ] {
            if twice {
                return Err(CompareError::PairedTwice { name: name.clone(), which });
            }
            if !names.contains(name.as_str()) {
                let known = names.iter().copied().collect::<Vec<_>>().join(", ");
                return Err(CompareError::NoSuchFilesystem { name: name.clone(), which, known });
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
    let renamed = pairs.iter().filter(|pair| pair.by == PairedBy::Workload);
    let name = |run: &RunRecord, cell: usize| run.cells[cell].cell.filesystem.name.clone();
    let renamed = renamed.map(|pair| (name(first, pair.first), name(second, pair.second)));
    Ok(Matched {
        only_first: unpaired(first, &own, second, renames.iter().map(|(_, other)| other)),
        only_second: unpaired(second, &taken, first, renames.iter().map(|(one, _)| one)),
        names: renamed.collect(),
        pairs,
    })
}

/// Cells of the second run that a cell of the first run may be paired with, the best match first. A
/// renamed filesystem is paired under its new name only. A filesystem that has this new name in the
/// second run is paired with no other.
fn candidates(
    record: &CellRecord,
    second: &RunRecord,
    renames: &[(String, String)],
) -> Vec<(usize, PairedBy)> {
    let cell = &record.cell;
    if cell.aa_duplicate {
        return Vec::new();
    }
    let name = &cell.filesystem.name;
    let mut wanted = renames.iter().filter(|(one, _)| one == name).map(|(_, other)| other);
    let others = second.cells.iter().enumerate().filter(|(_, other)| !other.cell.aa_duplicate);
    if let Some(wanted) = wanted.next() {
        let fits = |other: &CellRecord| {
            other.cell.filesystem.name == *wanted && apart(cell, &other.cell).is_none()
        };
        return others
            .filter(|(_, other)| fits(other))
            .map(|(at, _)| (at, PairedBy::Workload))
            .collect();
    }
    let free =
        |other: &CellRecord| renames.iter().all(|(_, taken)| *taken != other.cell.filesystem.name);
    let mut found: Vec<(usize, PairedBy)> = others
        .filter(|(_, other)| free(other))
        .filter_map(|(at, other)| {
            let options =
                || other.cell.filesystem.name == *name && apart(cell, &other.cell).is_none();
            match other.id == record.id {
                true => Some((at, PairedBy::Identity)),
                false => options().then_some((at, PairedBy::Options)),
            }
        })
        .collect();
    found.sort_by_key(|(_, by)| *by != PairedBy::Identity);
    found
}

/// Difference between two cells besides the filesystem: the name of the differing condition, or
/// `Some(None)` for the workload. `None` if there is no difference.
fn apart(one: &Cell, other: &Cell) -> Option<Option<&'static str>> {
    if one.workload != other.workload {
        return Some(None);
    }
    let what = [
        (one.scheduler != other.scheduler, "scheduler"),
        (one.fill_level != other.fill_level, "fill level"),
        (one.settings != other.settings, "system settings"),
        (one.options != other.options, "options"),
    ];
    what.into_iter().find(|(differs, _)| *differs).map(|(_, what)| Some(what))
}

/// Names of the filesystems of a run, without A/A duplicates.
fn filesystems(run: &RunRecord) -> BTreeSet<&str> {
    let cells = run.cells.iter().filter(|cell| !cell.cell.aa_duplicate);
    cells.map(|cell| cell.cell.filesystem.name.as_str()).collect()
}

/// Unpaired cells with reasons. `renamed` lists filesystems of this run that are compared under
/// another name.
fn unpaired<'a>(
    run: &RunRecord,
    paired: &BTreeSet<usize>,
    other: &RunRecord,
    renamed: impl Iterator<Item = &'a String> + Clone,
) -> Vec<Unpaired> {
    let there = filesystems(other);
    let reason = |cell: &Cell| {
        let name = &cell.filesystem.name;
        let own =
            || other.cells.iter().filter(|other| !other.cell.aa_duplicate).map(|other| &other.cell);
        let same = own().filter(|other| other.filesystem.name == *name);
        let close = same.filter_map(|other| apart(cell, other)).find_map(|apart| apart);
        match () {
            () if cell.aa_duplicate => UnpairedReason::AaDuplicate,
            () if renamed.clone().any(|other| other == name) => UnpairedReason::Taken,
            () if !there.contains(name.as_str()) => UnpairedReason::Filesystem(name.clone()),
            () => close.map_or(UnpairedReason::Workload, UnpairedReason::Conditions),
        }
    };
    let cells = run.cells.iter().enumerate().filter(|(index, _)| !paired.contains(index));
    let numbers = Numbers::new(run);
    let tests = |index: usize, cell: &CellRecord| {
        let measured = cell.phases.iter().filter(|phase| phase.role == Role::Measure);
        let known =
            |phase: &&PhaseInfo| !numbers.repetitions(index, &phase.name, phase.primary).is_empty();
        count(measured.filter(known).count())
    };
    let unpaired = |(index, cell): (usize, &CellRecord)| Unpaired {
        name: named(cell),
        tests: tests(index, cell),
        reason: reason(&cell.cell),
    };
    cells.map(unpaired).collect()
}

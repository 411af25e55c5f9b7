//! The cells of a plan on this host: each open, or skipped with the reason.

use std::collections::BTreeMap;

use model::{
    Bytes, Cell, Environment, FilesystemLevel, Point, Twins,
    record::{CellRecord, CellState, PhaseInfo},
    storage::Place,
};
use rig::{Ability, Availability, Catalogue, Host, catalogue::Kind, layers};

use crate::{exit::Failure, plans::Chosen};

/// What makes and checks the plan's filesystems: versions and commands, by filesystem. Defaults
/// depend on them, so a run names them, and goes on only with the same.
pub(crate) fn tools(chosen: &Chosen, catalogue: &Catalogue, host: &dyn Host) -> Environment {
    let mut facts = Environment::default();
    let levels = chosen.plan.filesystems.iter();
    for name in levels.flat_map(|level| [Some(&level.base), level.becomes.as_ref()]).flatten() {
        let Ok(filesystem) = catalogue.get(name) else { continue };
        if let Availability::Usable { version: Some(version) } =
            catalogue.availability(filesystem, host)
        {
            facts.set(format!("filesystem.{name}.tools"), version);
        }
        if !filesystem.mkfs.is_empty() {
            facts.set(format!("filesystem.{name}.mkfs"), filesystem.mkfs.join(" "));
        }
    }
    let layers: Vec<_> =
        chosen.plan.filesystems.iter().flat_map(|level| level.layers.iter().cloned()).collect();
    facts.merge(layers::versions(&layers, host));
    facts
}

/// Every cell of the plan, in its order, and then the twins; those whose filesystem cannot be had
/// here are skipped with the reason.
pub(crate) fn of(
    chosen: &Chosen,
    catalogue: &Catalogue,
    host: &dyn Host,
    seed: u64,
) -> Vec<CellRecord> {
    let mut known = BTreeMap::new();
    let state = |level: &FilesystemLevel| match catalogue.level(level, host) {
        Err(error) => CellState::Skipped { reason: error.to_string() },
        Ok(Availability::Usable { .. }) => unfit(chosen, catalogue, level),
        Ok(Availability::Missing { reason, cure }) => {
            CellState::Skipped { reason: format!("{reason}; {cure}") }
        }
    };
    let abilities = match chosen.cells.iter().all(|labelled| labelled.cell.factors.is_empty()) {
        true => Vec::new(),
        false => rig::abilities(host),
    };
    let cells = chosen.cells.iter().map(|labelled| {
        let cell = labelled.cell.clone();
        let level = &cell.filesystem;
        let (state, room) = known
            .entry(level.name.clone())
            .or_insert_with(|| (state(level), room(chosen, catalogue, level)));
        let obstacle = crowded(room.as_deref(), &cell.workload);
        let state = match obstacle.or_else(|| unsettable(&cell, &abilities)) {
            Some(reason) if *state == CellState::Open => CellState::Skipped { reason },
            Some(_) | None => state.clone(),
        };
        let phases = suites::find(&cell.workload.suite)
            .map(|suite| (suite.phases)(&cell.workload, seed))
            .unwrap_or_default();
        let phases = phases.iter().map(|phase| PhaseInfo {
            name: phase.name.clone(),
            group: phase.group.clone(),
            role: phase.role,
            primary: chosen.plan.clock().judged(phase.primary()),
            cache: Some(phase.cache),
        });
        CellRecord {
            id: cell.id(),
            label: labelled.label.clone(),
            phases: phases.collect(),
            cell,
            state,
        }
    });
    let mut cells: Vec<CellRecord> = cells.collect();
    let twins = twins(&cells, chosen.plan.twins(), seed);
    cells.extend(twins);
    cells
}

/// The twins of some open cells, as [`Twins`] has it: second cells of the same, which come last.
///
/// Where each workload has one, its filesystem is another from workload to workload, beginning at
/// one drawn by the seed: what chance does is then seen on all of them.
pub(crate) fn twins(cells: &[CellRecord], twins: Twins, seed: u64) -> Vec<CellRecord> {
    let open = || cells.iter().filter(|record| record.state == CellState::Open);
    let firsts: Vec<&CellRecord> = match twins {
        Twins::None => Vec::new(),
        Twins::One => open().take(1).collect(),
        Twins::Each => {
            let mut points: Vec<&Point> = Vec::new();
            for record in open() {
                if !points.contains(&&record.cell.workload) {
                    points.push(&record.cell.workload);
                }
            }
            let of_point = |(turn, point): (usize, &&Point)| {
                let alike: Vec<_> =
                    open().filter(|record| record.cell.workload == **point).collect();
                let first = usize::try_from(seed % alike.len() as u64).unwrap_or(0);
                alike[(first + turn) % alike.len()]
            };
            points.iter().enumerate().map(of_point).collect()
        }
    };
    let twin = |first: &CellRecord| {
        let cell = Cell { twin: true, ..first.cell.clone() };
        CellRecord { id: cell.id(), cell, ..first.clone() }
    };
    firsts.into_iter().map(twin).collect()
}

/// Why a setting of a cell cannot be made on this machine.
fn unsettable(cell: &Cell, abilities: &[Ability]) -> Option<String> {
    cell.factors.keys().find_map(|factor| {
        let name = factor.spec().name;
        let why = abilities.iter().find(|ability| ability.name == name)?.here.as_ref().err()?;
        Some(format!("{name} cannot be set: {why}"))
    })
}

/// Makes sure that what a workload makes finds room beside what fills the image up beforehand, with
/// an eighth to spare for the filesystem's own structures.
///
/// # Errors
/// Wrong usage, where it does not.
pub(crate) fn roomy(chosen: &Chosen, catalogue: &Catalogue) -> Result<(), Failure> {
    for labelled in &chosen.cells {
        let (cell, full) = (&labelled.cell, labelled.cell.fullness);
        let Some(suite) = suites::find(&cell.workload.suite) else { continue };
        let Some(room) = room(chosen, catalogue, &cell.filesystem) else { continue };
        let Bytes(all) = room.into_iter().sum();
        let needs = (suite.footprint)(&cell.workload).0;
        let free = all / 100 * u64::from(100u8.saturating_sub(full.0));
        if !full.is_empty() && needs.saturating_add(needs / 8) > free {
            return Err(Failure::usage(anyhow::anyhow!(
                "{}: the workload needs {} and an eighth to spare, and of {} only {} are free when \
                 they are {full} full; make the files smaller, the image larger, or `full` less",
                labelled.label,
                report::bytes(Bytes(needs)),
                report::bytes(Bytes(all)),
                report::bytes(Bytes(free)),
            )));
        }
    }
    Ok(())
}

/// How many devices the storage has; 1 stands for a directory.
fn devices(chosen: &Chosen) -> usize {
    match &chosen.storage.place {
        Place::Image { count, .. } => *count as usize,
        Place::Devices { paths } => paths.len(),
        Place::Directory { .. } => 1,
    }
}

/// The sizes of the images that a level finds, after its layers; `None` for other storage, whose
/// sizes the plan does not say, and for a level that does not fit.
fn room(chosen: &Chosen, catalogue: &Catalogue, level: &FilesystemLevel) -> Option<Vec<Bytes>> {
    let Place::Image { size, .. } = &chosen.storage.place else { return None };
    let filesystem = catalogue.get(&level.base).ok()?;
    let footing = layers::footing(level, filesystem, None, devices(chosen)).ok()?;
    Some(layers::room(&level.layers, &vec![*size; footing.devices]))
}

/// Whether what a cell's workload makes finds room on the devices of its level, with an eighth to
/// spare: a level may lie on fewer than the plan names, or find less of them through its layers.
fn crowded(room: Option<&[Bytes]>, point: &Point) -> Option<String> {
    let has: Bytes = room?.iter().copied().sum();
    let needs = (suites::find(&point.suite)?.footprint)(point);
    (needs.0.saturating_add(needs.0 / 8) > has.0).then(|| {
        let (needs, has) = (report::bytes(needs), report::bytes(has));
        format!(
            "the workload needs {needs} and an eighth to spare, and its devices have {has}; make \
             the files smaller, or `storage.image` larger"
        )
    })
}

/// Whether a level can be made on the plan's storage at all.
fn unfit(chosen: &Chosen, catalogue: &Catalogue, level: &FilesystemLevel) -> CellState {
    let becomes = level.becomes.as_deref().and_then(|name| catalogue.get(name).ok());
    let Ok(filesystem) = catalogue.get(&level.base) else { return CellState::Open };
    let name = &filesystem.name;
    let least = [Some(filesystem), becomes].into_iter().flatten().max_by_key(|it| it.min);
    let smallest = room(chosen, catalogue, level).and_then(|room| room.into_iter().min());
    let small = least.filter(|it| smallest.is_some_and(|size| size < it.min));
    let reason = if let Err(unfit) = layers::footing(level, filesystem, becomes, devices(chosen)) {
        unfit.to_string()
    } else if !level.setup.is_empty() && filesystem.kind != Kind::Block {
        format!("a setup needs a filesystem on a device, and {name} has none; take `setup` out")
    } else if let (Some(least), Some(size)) = (small, smallest) {
        format!(
            "{} needs {} at least and the image has {size}; make `storage.image` larger",
            least.name, least.min
        )
    } else {
        return CellState::Open;
    };
    CellState::Skipped { reason }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::{Bytes, Fullness, Value};

    use super::*;

    fn cell(filesystem: &str, mib: u64, state: CellState) -> CellRecord {
        let record = BTreeMap::from([("record".to_owned(), Value::Size(Bytes::mib(mib)))]);
        let cell = Cell {
            filesystem: FilesystemLevel::plain(filesystem),
            workload: Point { suite: "iozone".into(), parameters: record },
            scheduler: None,
            fullness: Fullness(0),
            factors: Default::default(),
            twin: false,
        };
        let label = format!("iozone record={mib}MiB");
        CellRecord { id: cell.id(), cell, label, state, phases: Vec::new() }
    }

    /// Four filesystems, the first of which cannot be had, and four workloads.
    fn cells() -> Vec<CellRecord> {
        let missing = CellState::Skipped { reason: "gone".into() };
        let of = |name, state: &CellState| [1, 2, 3, 4].map(|mib| cell(name, mib, state.clone()));
        let open = CellState::Open;
        [of("jfs", &missing), of("ext4", &open), of("xfs", &open), of("btrfs", &open)].concat()
    }

    fn names(twins: &[CellRecord]) -> Vec<(&str, &str)> {
        twins.iter().map(|twin| (twin.cell.filesystem.name.as_str(), twin.label.as_str())).collect()
    }

    #[test]
    fn one_twin_is_of_the_first_cell_that_can_be_had() {
        let cells = cells();
        assert!(twins(&cells, Twins::None, 1).is_empty());
        let one = twins(&cells, Twins::One, 1);
        assert_eq!(names(&one), [("ext4", "iozone record=1MiB")]);
        assert!(one[0].cell.twin && one[0].state == CellState::Open);
        assert_eq!(one[0].id, one[0].cell.id());
        assert_ne!(one[0].id, cells[4].id, "the cell it is a second of has another id");
        assert!(twins(&cells[..4], Twins::One, 1).is_empty(), "nothing can be had");
    }

    #[test]
    fn each_workload_has_a_twin_and_they_are_spread_over_the_filesystems() {
        let cells = cells();
        for seed in 0..9 {
            let each = twins(&cells, Twins::Each, seed);
            let names = names(&each);
            let filesystems: BTreeSet<_> =
                names.iter().map(|(filesystem, _)| *filesystem).collect();
            let labels: BTreeSet<_> = names.iter().map(|(_, label)| *label).collect();
            assert_eq!((each.len(), filesystems.len(), labels.len()), (4, 3, 4), "{names:?}");
            assert_eq!(self::names(&twins(&cells, Twins::Each, seed)), names);
        }
        let first = |seed| twins(&cells, Twins::Each, seed)[0].cell.filesystem.name.clone();
        assert_ne!(first(0), first(1));
    }
}

//! Cells of a plan on this host. Each cell is open, or skipped with a reason.

mod programs;

use std::{collections::BTreeMap, path::Path};

use model::{
    AaControl, Allocation, Bytes, Cell, Environment, FilesystemLevel, Phase, SystemSetting,
    WorkloadParameters,
    phase::{Action, Maintenance, Work},
    record::{CellRecord, CellState, PhaseInfo},
    storage::StorageKind,
};
use rig::{Availability, Catalog, CatalogError, Filesystem, Host, Support, catalog::Kind, layers};

use crate::{
    exit::Failure,
    plans::{ResolvedPlan, fits},
};

/// Directory of image files if the plan does not specify one.
pub(crate) const IMAGE_DIRECTORY: &str = "/var/tmp";

/// Versions of the tools and mkfs commands of each filesystem of the plan, versions of the tools of
/// its layers, and the programs of its commands. A run records these facts because defaults of
/// filesystems depend on them, and can be resumed only with the same versions and commands.
pub(crate) fn tools(chosen: &ResolvedPlan, catalog: &Catalog, host: &dyn Host) -> Environment {
    let mut facts = Environment::default();
    let levels = chosen.plan.filesystems.iter();
    for name in
        levels.flat_map(|level| [Some(&level.fs_type), level.converted_to.as_ref()]).flatten()
    {
        let Ok(filesystem) = catalog.get(name) else { continue };
        if let Availability::Usable { version: Some(version) } =
            catalog.availability(filesystem, host)
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
    let points = chosen.cells.iter().map(|labelled| &labelled.cell.workload);
    let phases =
        points.filter_map(|point| suites::find(&point.suite).map(|suite| (suite.phases)(point, 0)));
    facts.merge(programs::facts(&phases.flatten().collect::<Vec<_>>()));
    facts
}

/// All cells in the order of the plan, then the A/A duplicates. Cells that cannot be measured on
/// this host are skipped with a reason.
pub(crate) fn of(
    chosen: &ResolvedPlan,
    catalog: &Catalog,
    host: &dyn Host,
    seed: u64,
) -> Vec<CellRecord> {
    let supports = match chosen.cells.iter().all(|labelled| labelled.cell.settings.is_empty()) {
        true => Vec::new(),
        false => rig::setting_support(host),
    };
    let mut cells =
        available(chosen, catalog, seed, |level| catalog.level(level, host), &supports, false);
    for record in cells.iter_mut().filter(|record| record.state == CellState::Open) {
        let storage = chosen.storage.kind.of(&record.cell.settings);
        let reason = too_much_metadata(&storage, catalog, &record.cell, host);
        let reason = reason.or_else(|| too_much_fill(&storage, &record.cell, host));
        if let Some(reason) = reason {
            record.state = CellState::Skipped { reason };
        }
    }
    cells
}

/// Cells of a plan that is measured in guests, as far as this host knows them: the kernel of the
/// guest determines the filesystems and settings that it supports.
pub(crate) fn in_guests(
    chosen: &ResolvedPlan,
    catalog: &Catalog,
    host: &dyn Host,
    seed: u64,
) -> Vec<CellRecord> {
    available(chosen, catalog, seed, |level| catalog.level_in_guest(level, host), &[], true)
}

/// Cells, with the availability of their filesystems, settings, and programs.
fn available(
    chosen: &ResolvedPlan,
    catalog: &Catalog,
    seed: u64,
    availability: impl Fn(&FilesystemLevel) -> Result<Availability, CatalogError>,
    supports: &[Support],
    guests: bool,
) -> Vec<CellRecord> {
    let mut known = BTreeMap::new();
    let state = |level: &FilesystemLevel, storage: &StorageKind| match availability(level) {
        Err(error) => CellState::Skipped { reason: error.to_string() },
        Ok(Availability::Usable { .. }) => unfit(storage, catalog, level),
        Ok(Availability::Missing { reason, hint, .. }) => {
            CellState::Skipped { reason: format!("{reason}; {hint}") }
        }
    };
    let cells = chosen.cells.iter().map(|labelled| {
        let cell = labelled.cell.clone();
        let level = &cell.filesystem;
        let storage = &chosen.storage.kind.of(&cell.settings);
        let place = [SystemSetting::Device, SystemSetting::Size]
            .map(|setting| cell.settings.get(&setting).map(ToString::to_string));
        let (state, room) = known
            .entry((level.name.clone(), place))
            .or_insert_with(|| (state(level, storage), image_sizes(storage, catalog, level)));
        let raw = level.is_raw().then(|| unfit_for_device(&cell)).flatten();
        let obstacle = raw
            .or_else(|| crowded(room.as_deref(), &cell.workload))
            .or_else(|| small_device(&chosen.storage.kind, &cell));
        let phases = suites::find(&cell.workload.suite)
            .map(|suite| (suite.phases)(&cell.workload, seed))
            .unwrap_or_default();
        let obstacle = obstacle.or_else(|| unsettable(&cell, supports));
        let obstacle = obstacle.or_else(|| programs::missing(&phases, guests));
        let obstacle = obstacle.or_else(|| intrusive(storage, &phases));
        let state = match obstacle {
            Some(reason) if *state == CellState::Open => CellState::Skipped { reason },
            Some(_) | None => state.clone(),
        };
        let phases = phases.iter().flat_map(|phase| {
            let own = (phase.name.clone(), phase.primary());
            let tests = std::iter::once(own).chain(phase.numbers());
            tests.map(|(name, primary)| PhaseInfo {
                name,
                group: phase.group.clone(),
                role: phase.result_role(),
                primary: chosen.plan.clock().primary_metric(primary),
                cache: Some(phase.cache),
            })
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
    let aa_duplicates = aa_duplicates(&cells, chosen.plan.aa_control(), seed);
    cells.extend(aa_duplicates);
    cells
}

/// A/A duplicates of the open cells that [`AaControl`] selects.
///
/// With one duplicate per workload, each workload uses the next filesystem, starting at a random
/// one, so that the noise of all filesystems is measured.
pub(crate) fn aa_duplicates(
    cells: &[CellRecord],
    aa_duplicates: AaControl,
    seed: u64,
) -> Vec<CellRecord> {
    let open = || cells.iter().filter(|record| record.state == CellState::Open);
    let firsts: Vec<&CellRecord> = match aa_duplicates {
        AaControl::None => Vec::new(),
        AaControl::One => open().take(1).collect(),
        AaControl::PerWorkload => {
            let mut points: Vec<&WorkloadParameters> = Vec::new();
            for record in open() {
                if !points.contains(&&record.cell.workload) {
                    points.push(&record.cell.workload);
                }
            }
            let of_point = |(turn, point): (usize, &&WorkloadParameters)| {
                let alike: Vec<_> =
                    open().filter(|record| record.cell.workload == **point).collect();
                let first = usize::try_from(seed % alike.len() as u64).unwrap_or(0);
                alike[(first + turn) % alike.len()]
            };
            points.iter().enumerate().map(of_point).collect()
        }
    };
    let aa_duplicate = |first: &CellRecord| {
        let cell = Cell { aa_duplicate: true, ..first.cell.clone() };
        CellRecord { id: cell.id(), cell, ..first.clone() }
    };
    firsts.into_iter().map(aa_duplicate).collect()
}

/// Reason why a setting of a cell is not supported by this machine.
fn unsettable(cell: &Cell, supports: &[Support]) -> Option<String> {
    cell.settings.keys().find_map(|factor| {
        let name = factor.spec().name;
        let why = supports.iter().find(|support| support.name == name)?.support.as_ref().err()?;
        Some(format!("{name} is not supported: {why}"))
    })
}

/// Checks that each workload fits the space above the fill level. 12.5 % of the size of the
/// workload is added for filesystem metadata.
///
/// # Errors
/// A usage error if a workload does not fit.
pub(crate) fn check_space(chosen: &ResolvedPlan, catalog: &Catalog) -> Result<(), Failure> {
    for labelled in &chosen.cells {
        let (cell, full) = (&labelled.cell, labelled.cell.fill_level);
        let storage = &chosen.storage.kind.of(&cell.settings);
        let Some(suite) = suites::find(&cell.workload.suite) else { continue };
        let Some(sizes) = image_sizes(storage, catalog, &cell.filesystem) else { continue };
        let Bytes(all) = sizes.into_iter().sum();
        let needs = (suite.footprint)(&cell.workload).0;
        let free = all / 100 * u64::from(100u8.saturating_sub(full.0));
        if !full.is_empty() && needs.saturating_add(needs / 8) > free {
            return Err(Failure::usage(anyhow::anyhow!(
                "{}: the workload needs {} plus 12.5 % for metadata, but only {} of {} are \
                 available at fill level {full}; use smaller files, a larger \
                 `storage.image_size`, or a lower `fill_percent`",
                labelled.label,
                report::bytes(Bytes(needs)),
                report::bytes(Bytes(free)),
                report::bytes(Bytes(all)),
            )));
        }
    }
    Ok(())
}

/// Number of storage devices; 1 for a directory.
fn devices(storage: &StorageKind) -> usize {
    match storage {
        StorageKind::Image { count, .. } => *count as usize,
        StorageKind::Devices { paths } => paths.len(),
        // A cell has one level.
        StorageKind::Directory { .. } | StorageKind::Levels { .. } => 1,
    }
}

/// Sizes of the devices below the filesystem of an entry of `filesystem`, if the storage is images.
/// `None` for other storage, whose sizes are not in the plan, and for an entry that cannot use the
/// images.
fn image_sizes(
    storage: &StorageKind,
    catalog: &Catalog,
    level: &FilesystemLevel,
) -> Option<Vec<Bytes>> {
    let StorageKind::Image { size, .. } = storage else { return None };
    let filesystem = catalog.get(&level.fs_type).ok()?;
    let requirement = layers::device_requirement(level, filesystem, None, devices(storage)).ok()?;
    Some(layers::capacity(&level.layers, &vec![*size; requirement.devices]))
}

/// Reason why a workload does not fit the devices of a cell. 12.5 % of the size of the workload is
/// added for filesystem metadata. An entry of `filesystem` may use fewer devices than the plan has,
/// and its layers may reduce the space.
fn crowded(room: Option<&[Bytes]>, point: &WorkloadParameters) -> Option<String> {
    let has: Bytes = room?.iter().copied().sum();
    let needs = (suites::find(&point.suite)?.footprint)(point);
    (needs.0.saturating_add(needs.0 / 8) > has.0).then(|| {
        let (needs, has) = (report::bytes(needs), report::bytes(has));
        format!(
            "the workload needs {needs} plus 12.5 % for metadata, but its devices have {has}; use \
             smaller files or a larger `storage.image_size`"
        )
    })
}

/// Reason why a workload does not fit its level of the axis `device`. Storage that is not an axis
/// was checked with the plan.
fn small_device(storage: &StorageKind, cell: &Cell) -> Option<String> {
    let StorageKind::Levels { .. } = storage else { return None };
    let error = fits(&cell.workload, &storage.of(&cell.settings)).err()?;
    let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    Some(format!("{}{hint}", error.message))
}

/// Reason why a cell cannot be measured on a block device without a filesystem.
fn unfit_for_device(cell: &Cell) -> Option<String> {
    let fills = !cell.fill_level.is_empty();
    let reason = fills.then(|| "`fill_percent` requires a filesystem".to_owned());
    reason.or_else(|| suites::on_device(&cell.workload, 0, "").err())
}

/// Reason why mkfs would write more to a sparse image than its directory has space for. mke2fs
/// writes the inode tables, unless a plan with its own `-E` leaves this to the kernel.
fn too_much_metadata(
    storage: &StorageKind,
    catalog: &Catalog,
    cell: &Cell,
    host: &dyn Host,
) -> Option<String> {
    let StorageKind::Image { size, directory, allocation: Allocation::Sparse, .. } = storage else {
        return None;
    };
    let level = cell.level();
    let lazy = level.mkfs.iter().any(|argument| argument.contains("lazy_itable_init=1"));
    let writes = catalog.get(&level.fs_type).ok()?.mkfs_writes;
    let needs = Bytes(size.0.checked_div(writes)?);
    let directory = Path::new(directory.as_deref().unwrap_or(IMAGE_DIRECTORY));
    let free = host.statistics(directory).ok()?.available;
    (needs > free && !lazy).then(|| {
        format!(
            "mkfs writes {}, but {} has {} free; set mkfs_options = [\"-E\", \
             \"nodiscard,lazy_itable_init=1\"], or use another `image_directory`",
            needs.rough(),
            directory.display(),
            free.rough()
        )
    })
}

/// Reason why an action `fill` would write more to sparse images than fits in their directory.
fn too_much_fill(storage: &StorageKind, cell: &Cell, host: &dyn Host) -> Option<String> {
    let StorageKind::Image { size, count, directory, allocation: Allocation::Sparse, .. } = storage
    else {
        return None;
    };
    let suite = suites::find(&cell.workload.suite)?;
    let percents = (suite.phases)(&cell.workload, 0).into_iter().filter_map(|phase| {
        let Work::Maintenance(Maintenance { action: Action::Fill(percent), .. }) = phase.work
        else {
            return None;
        };
        Some(u64::from(percent))
    });
    let percent = percents.max()?;
    let needs = Bytes(size.0.saturating_mul(u64::from(*count)) / 100 * percent);
    let directory = Path::new(directory.as_deref().unwrap_or(IMAGE_DIRECTORY));
    let free = host.statistics(directory).ok()?.available;
    (needs > free).then(|| {
        format!(
            "the action fill would write {}, but {} has {} free; use a smaller `image_size`, \
             a lower `percent`, or another `image_directory`",
            needs.rough(),
            directory.display(),
            free.rough()
        )
    })
}

/// Reason why maintenance actions must not run on a filesystem that others use.
fn intrusive(storage: &StorageKind, phases: &[Phase]) -> Option<String> {
    let StorageKind::Directory { path } = storage else { return None };
    let action = phases.iter().find_map(|phase| {
        let Work::Maintenance(maintenance) = &phase.work else { return None };
        Some(&maintenance.action).filter(|action| action.is_intrusive())
    })?;
    Some(format!(
        "the action {} would affect other users of the filesystem of {}; use image_size or a device",
        action.name(),
        path
    ))
}

/// State of the cells of an entry of `filesystem`: skipped if the storage of the plan is not
/// suitable.
fn unfit(storage: &StorageKind, catalog: &Catalog, level: &FilesystemLevel) -> CellState {
    let becomes = level.converted_to.as_deref().and_then(|name| catalog.get(name).ok());
    let Ok(filesystem) = catalog.get(&level.fs_type) else { return CellState::Open };
    let name = &filesystem.name;
    let least = [Some(filesystem), becomes].into_iter().flatten().max_by_key(|it| it.min_size);
    let smallest = image_sizes(storage, catalog, level).and_then(|sizes| sizes.into_iter().min());
    let small = least.filter(|it| smallest.is_some_and(|size| size < it.min_size));
    let reason = if let Err(unfit) =
        layers::device_requirement(level, filesystem, becomes, devices(storage))
    {
        unfit.to_string()
    } else if let Some(reason) = misplaced(storage, filesystem, level) {
        reason
    } else if !level.setup.is_empty() && !matches!(filesystem.kind, Kind::Block | Kind::Command) {
        format!("setup steps need a filesystem on a device, and {name} has none; remove `setup`")
    } else if let (Some(least), Some(size)) = (small, smallest) {
        format!(
            "{} needs at least {}, but the image has {size}; use a larger `storage.image_size`",
            least.name, least.min_size
        )
    } else {
        return CellState::Open;
    };
    CellState::Skipped { reason }
}

/// Reason why a filesystem that a command mounts cannot be measured on the storage of the plan.
fn misplaced(
    storage: &StorageKind,
    filesystem: &Filesystem,
    level: &FilesystemLevel,
) -> Option<String> {
    let name = &level.name;
    let on_devices = !matches!(storage, StorageKind::Directory { .. });
    match filesystem.kind {
        Kind::Block | Kind::Device if !on_devices => Some(format!(
            "{name} needs a device, but the storage is a directory; set `storage.image_size`"
        )),
        Kind::Command if on_devices => {
            Some(format!("{name} needs a directory; set `storage.directory`"))
        }
        Kind::Command if level.commands.source.is_empty() && filesystem.needs_source() => {
            Some(format!("{name} needs a server; set `source`, such as \"server:/export\""))
        }
        Kind::Block | Kind::Device | Kind::Memory | Kind::Directory | Kind::Command => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::{Bytes, FillLevel, Value};

    use super::*;

    fn cell(filesystem: &str, mib: u64, state: CellState) -> CellRecord {
        let record = BTreeMap::from([("block_size".to_owned(), Value::Size(Bytes::mib(mib)))]);
        let cell = Cell {
            filesystem: FilesystemLevel::plain(filesystem),
            workload: WorkloadParameters { suite: "iozone".into(), parameters: record },
            scheduler: None,
            fill_level: FillLevel(0),
            settings: Default::default(),
            options: Default::default(),
            aa_duplicate: false,
        };
        let label = format!("iozone record={mib}MiB");
        CellRecord { id: cell.id(), cell, label, state, phases: Vec::new() }
    }

    /// Four filesystems, the first of which is not available, and four workloads.
    fn cells() -> Vec<CellRecord> {
        let missing = CellState::Skipped { reason: "gone".into() };
        let of = |name, state: &CellState| [1, 2, 3, 4].map(|mib| cell(name, mib, state.clone()));
        let open = CellState::Open;
        [of("jfs", &missing), of("ext4", &open), of("xfs", &open), of("btrfs", &open)].concat()
    }

    fn names(aa_duplicates: &[CellRecord]) -> Vec<(&str, &str)> {
        aa_duplicates
            .iter()
            .map(|aa_duplicate| {
                (aa_duplicate.cell.filesystem.name.as_str(), aa_duplicate.label.as_str())
            })
            .collect()
    }

    #[test]
    fn a_single_duplicate_is_of_the_first_available_cell() {
        let cells = cells();
        assert!(aa_duplicates(&cells, AaControl::None, 1).is_empty());
        let one = aa_duplicates(&cells, AaControl::One, 1);
        assert_eq!(names(&one), [("ext4", "iozone record=1MiB")]);
        assert!(one[0].cell.aa_duplicate && one[0].state == CellState::Open);
        assert_eq!(one[0].id, one[0].cell.id());
        assert_ne!(
            one[0].id, cells[4].id,
            "the ID of a duplicate differs from that of its original"
        );
        assert!(aa_duplicates(&cells[..4], AaControl::One, 1).is_empty(), "no cell is available");
    }

    #[test]
    fn duplicates_per_workload_are_spread_over_the_filesystems() {
        let cells = cells();
        for seed in 0..9 {
            let each = aa_duplicates(&cells, AaControl::PerWorkload, seed);
            let names = names(&each);
            let filesystems: BTreeSet<_> =
                names.iter().map(|(filesystem, _)| *filesystem).collect();
            let labels: BTreeSet<_> = names.iter().map(|(_, label)| *label).collect();
            assert_eq!((each.len(), filesystems.len(), labels.len()), (4, 3, 4), "{names:?}");
            assert_eq!(self::names(&aa_duplicates(&cells, AaControl::PerWorkload, seed)), names);
        }
        let first = |seed| {
            aa_duplicates(&cells, AaControl::PerWorkload, seed)[0].cell.filesystem.name.clone()
        };
        assert_ne!(first(0), first(1));
    }
}

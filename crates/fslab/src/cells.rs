//! The cells of a plan on this host: each open, or skipped with the reason.

use std::collections::BTreeMap;

use model::{
    Bytes, Environment, FilesystemLevel,
    record::{CellRecord, CellState, PhaseInfo},
    storage::Place,
};
use rig::{Availability, Catalogue, Host, catalogue::Kind};

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
    facts
}

/// Every cell of the plan; those whose filesystem cannot be had here are skipped with the reason.
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
    let cells = chosen.cells.iter().map(|labelled| {
        let cell = labelled.cell.clone();
        let level = &cell.filesystem;
        let state = known.entry(level.name.clone()).or_insert_with(|| state(level)).clone();
        let phases = suites::find(&cell.workload.suite)
            .map(|suite| (suite.phases)(&cell.workload, seed))
            .unwrap_or_default();
        let phases = phases.iter().map(|phase| PhaseInfo {
            name: phase.name.clone(),
            group: phase.group.clone(),
            role: phase.role,
            primary: phase.primary(),
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
    cells.collect()
}

/// Makes sure that what a workload makes finds room beside what fills the image up beforehand, with
/// an eighth to spare for the filesystem's own structures.
///
/// # Errors
/// Wrong usage, where it does not.
pub(crate) fn roomy(chosen: &Chosen) -> Result<(), Failure> {
    let Place::Image { size, count, .. } = &chosen.storage.place else { return Ok(()) };
    let all = size.0.saturating_mul(u64::from(*count));
    for labelled in &chosen.cells {
        let (cell, full) = (&labelled.cell, labelled.cell.fullness);
        let Some(suite) = suites::find(&cell.workload.suite) else { continue };
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

/// Whether a level can be made on the plan's storage at all.
fn unfit(chosen: &Chosen, catalogue: &Catalogue, level: &FilesystemLevel) -> CellState {
    let becomes = level.becomes.as_deref().and_then(|name| catalogue.get(name).ok());
    let Ok(filesystem) = catalogue.get(&level.base) else { return CellState::Open };
    let name = &filesystem.name;
    let (devices, size) = match &chosen.storage.place {
        Place::Image { size, count, .. } => (*count as usize, Some(*size)),
        Place::Devices { paths } => (paths.len(), None),
        Place::Directory { .. } => (1, None),
    };
    let least = [Some(filesystem), becomes].into_iter().flatten().max_by_key(|it| it.min);
    let small = least.filter(|it| size.is_some_and(|size| size < it.min));
    let reason = if devices > 1 && filesystem.many.is_none() {
        format!("{name} lies on one device and the plan names {devices}; give it a plan of its own")
    } else if devices > 1 && becomes.is_some() {
        format!(
            "what becomes another filesystem lies on one device and the plan names {devices}; give \
             it a plan of its own"
        )
    } else if !level.setup.is_empty() && filesystem.kind != Kind::Block {
        format!("a setup needs a filesystem on a device, and {name} has none; take `setup` out")
    } else if let (Some(least), Some(size)) = (small, size) {
        format!(
            "{} needs {} at least and the image has {size}; make `storage.image` larger",
            least.name, least.min
        )
    } else {
        return CellState::Open;
    };
    CellState::Skipped { reason }
}

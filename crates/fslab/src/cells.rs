//! The cells of a plan on this host: each open, or skipped with the reason.

use std::collections::BTreeMap;

use model::{
    Environment,
    record::{CellRecord, CellState, PhaseInfo},
    storage::Place,
};
use rig::{Availability, Catalogue, Host};

use crate::plans::Chosen;

/// What makes and checks the plan's filesystems: versions and commands, by filesystem. Defaults
/// depend on them, so a run names them, and goes on only with the same.
pub(crate) fn tools(chosen: &Chosen, catalogue: &Catalogue, host: &dyn Host) -> Environment {
    let mut facts = Environment::default();
    for level in &chosen.plan.filesystems {
        let Ok(filesystem) = catalogue.get(&level.base) else { continue };
        let name = &level.base;
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
    let state = |base: &str| match catalogue.get(base) {
        Err(error) => CellState::Skipped { reason: error.to_string() },
        Ok(filesystem) => match catalogue.availability(filesystem, host) {
            Availability::Usable { .. } => unfit(chosen, filesystem),
            Availability::Missing { reason, cure } => {
                CellState::Skipped { reason: format!("{reason}; {cure}") }
            }
        },
    };
    let cells = chosen.cells.iter().map(|labelled| {
        let cell = labelled.cell.clone();
        let base = cell.filesystem.base.clone();
        let state = known.entry(base.clone()).or_insert_with(|| state(&base)).clone();
        let phases = suites::find(&cell.workload.suite)
            .map(|suite| (suite.phases)(&cell.workload, seed))
            .unwrap_or_default();
        let phases = phases.iter().map(|phase| PhaseInfo {
            name: phase.name.clone(),
            group: phase.group.clone(),
            role: phase.role,
            primary: phase.primary(),
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

/// Whether a filesystem can be made on the plan's storage at all.
fn unfit(chosen: &Chosen, filesystem: &rig::Filesystem) -> CellState {
    let name = &filesystem.name;
    let (devices, size) = match &chosen.storage.place {
        Place::Image { size, count, .. } => (*count as usize, Some(*size)),
        Place::Devices { paths } => (paths.len(), None),
        Place::Directory { .. } => (1, None),
    };
    let reason = match size {
        _ if devices > 1 && filesystem.many.is_none() => {
            format!(
                "{name} lies on one device and the plan names {devices}; give it a plan of its own"
            )
        }
        Some(size) if size < filesystem.min => format!(
            "{name} needs {} at least and the image has {size}; make `storage.image` larger",
            filesystem.min
        ),
        Some(_) | None => return CellState::Open,
    };
    CellState::Skipped { reason }
}

//! Runs in a throw-away guest: the same session as on this machine, but its trials come from a
//! kernel that was booted for them. And `fslab guest`, which says what guests there can be.

mod build;
mod check;
mod lanes;
mod machines;
mod messages;
mod trials;
mod wants;
mod worker;

use std::{path::Path, sync::atomic::AtomicBool};

use guest::Engine;
use model::{
    Cell, Environment, Factor, GuestKind, Nanos, RunRecord, Warning,
    record::{CellState, RunInfo},
};
use store::Store;

use self::{machines::Machines, messages::Begin};
pub(crate) use self::{
    trials::{Guests, InGuest},
    worker::work,
};
use super::{
    keeping::{self, Keeping},
    session::{self, Ground, Prepared, Surroundings},
};
use crate::{
    cells,
    cli::{Guest, GuestCommand, KernelCommand},
    exit::{Exit, Failure},
    plans::Chosen,
};

/// Does what was asked of `fslab guest`.
///
/// # Errors
/// When a kernel cannot be built, or nothing be printed.
pub(super) fn run(guest: &Guest) -> Result<Exit, Failure> {
    match &guest.command {
        GuestCommand::Check => check::run(),
        GuestCommand::Kernel(kernel) => match &kernel.command {
            KernelCommand::Build(build) => build::run(build),
            KernelCommand::List => check::kernels(),
        },
    }
}

/// The kinds of guests that run here, for `fslab doctor`.
pub(super) fn summary() -> Vec<String> {
    check::summary()
}

/// The kernel that a cell names.
fn kernel_of(cell: &Cell) -> Option<String> {
    cell.factors.get(&Factor::Kernel).map(ToString::to_string)
}

/// The kind of guest that a plan is measured in. One that names kernels is, without being told.
pub(super) fn kind(chosen: &Chosen) -> Option<GuestKind> {
    let kernels = chosen.cells.iter().any(|labelled| kernel_of(&labelled.cell).is_some());
    chosen.plan.guest.or(kernels.then_some(GuestKind::Auto))
}

/// Checks that a guest of a kind can run here with the kernel that is named, or with the newest.
///
/// # Errors
/// What is missing, and how to get it.
pub(super) fn possible(
    kind: GuestKind,
    kernel: Option<&str>,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    machines::possible(kind, kernel, interrupt)
}

/// Makes a new run in guests ready: each kernel is booted once, to see what it can measure.
///
/// # Errors
/// When something that a guest takes is missing, one does not come up, or nothing can be measured.
pub(super) fn begin(
    chosen: &Chosen,
    kind: GuestKind,
    path: &Path,
    mut warnings: Vec<Warning>,
    filesystems: Option<String>,
    surroundings: &Surroundings<'_>,
) -> Result<Prepared, Failure> {
    keeping::writable(path)?;
    cells::roomy(chosen, surroundings.catalogue)?;
    let mut keeping = Keeping::choose(path, &chosen.storage.place)?;
    keeping.free()?;
    let seed = chosen.plan.seed.unwrap_or_else(|| fastrand::u64(..));
    let id = session::run_id(seed);
    let catalogue = surroundings.catalogue;
    let machines = Machines::new(chosen, kind, catalogue, &id, surroundings.interrupt)?;
    let info = session::info(chosen, id, seed, machines.describe());
    let mut guests = guests(machines, info.clone(), filesystems, chosen);
    let (mut found, mut environment) = (Vec::new(), Environment::default());
    for (kernel, begun) in guests.begin()? {
        if environment.0.is_empty() {
            environment = begun.environment;
            environment.merge(host(surroundings));
            guests.know(environment.clone());
            warnings.extend(begun.warnings.into_iter().filter(trials::about_storage));
        }
        found.push((kernel, begun.cells));
    }
    let mut cells = trials::cells(&chosen.cells, guests.machines(), &found);
    let twins = cells::twins(&cells, chosen.plan.twins(), seed);
    cells.extend(twins);
    if cells.iter().all(|cell| cell.state != CellState::Open) {
        return Err(session::nothing_to_measure(&cells));
    }
    keeping.begin()?;
    let store = Store::create(&keeping.working, &info, &cells, &environment, &warnings)?;
    let record = RunRecord { info, environment, cells, trials: Vec::new(), warnings };
    Ok(Prepared::new(Ground::Guests(Box::new(guests)), store, record, keeping, chosen))
}

/// Makes the guests of a run that goes on ready.
///
/// # Errors
/// As [`begin`].
pub(super) fn again(
    chosen: &Chosen,
    kind: GuestKind,
    record: &RunRecord,
    now: &str,
    filesystems: Option<String>,
    surroundings: &Surroundings<'_>,
) -> Result<Guests, Failure> {
    let catalogue = surroundings.catalogue;
    let machines = Machines::new(chosen, kind, catalogue, now, surroundings.interrupt)?;
    let mut guests = guests(machines, record.info.clone(), filesystems, chosen);
    guests.know(record.environment.clone());
    Ok(guests)
}

fn guests(
    machines: Machines,
    info: RunInfo,
    filesystems: Option<String>,
    chosen: &Chosen,
) -> Guests {
    let place = machines.place();
    let begin = Begin { info, filesystems, place, environment: Environment::default() };
    Guests::new(machines, begin, chosen.plan.isolation)
}

/// What the host is, as far as it matters to a guest.
fn host(surroundings: &Surroundings<'_>) -> Environment {
    let mut facts = Environment::default();
    for (name, value) in rig::probe::machine(surroundings.host.as_ref()).0 {
        if ["kernel.release", "cpu.model", "memory.total_bytes"].contains(&name.as_str()) {
            facts.set(format!("host.{name}"), value);
        }
    }
    facts
}

/// What is to be said of whatever such a guest measures.
fn warnings(
    engine: Engine,
    latency: Option<Nanos>,
    phases: &[String],
) -> Vec<(Option<String>, Warning)> {
    let kind = match engine {
        Engine::Kvm => GuestKind::Kvm,
        Engine::Counted => GuestKind::Counted,
        Engine::Uml => GuestKind::Uml,
        Engine::Tcg => GuestKind::Tcg,
    };
    let mut warnings = vec![(None, Warning::InGuest { kind, latency })];
    if engine == Engine::Uml && !phases.is_empty() {
        warnings.push((None, Warning::HostNotFlushed));
    }
    warnings
}

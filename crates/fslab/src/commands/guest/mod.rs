//! Runs whose trials run in temporary guests, and the command `fslab guest`.

mod build;
mod check;
mod disks;
mod factory;
mod messages;
mod pool;
mod requirements;
mod trials;
mod worker;

use std::{path::Path, sync::atomic::AtomicBool};

use guest::Engine;
use model::{
    Cell, Environment, GuestKind, Nanos, RunRecord, SystemSetting, Warning,
    record::{CellState, RunInfo},
};
use store::Store;

use self::{factory::GuestFactory, messages::StartRun};
pub(crate) use self::{
    factory::PlannedGuests,
    trials::{Guests, InGuest},
    worker::work,
};
use super::{
    run_file::{self, RunFilePath},
    run_setup::{self, Backend, Prepared, RunEnvironment},
};
use crate::{
    cells,
    cli::{Guest, GuestCommand, KernelCommand},
    exit::{Exit, Failure},
    plans::ResolvedPlan,
};

/// Runs `fslab guest`.
///
/// # Errors
/// If a kernel cannot be built, or the output cannot be printed.
pub(super) fn run(guest: &Guest) -> Result<Exit, Failure> {
    match &guest.command {
        GuestCommand::Check => check::run(),
        GuestCommand::Kernel(kernel) => match &kernel.command {
            KernelCommand::Build(build) => build::run(build),
            KernelCommand::List => check::kernels(),
        },
    }
}

/// Kinds of guests. An unsupported kind has a reason.
pub(super) fn support() -> Vec<(&'static str, Result<(), String>)> {
    check::support()
}

/// Supported kinds of guests, for `fslab doctor`.
pub(super) fn summary() -> Vec<String> {
    check::summary()
}

/// Kernel of a cell.
fn kernel_of(cell: &Cell) -> Option<String> {
    cell.settings.get(&SystemSetting::Kernel).map(ToString::to_string)
}

/// Kind of guest of a plan. A plan with kernels runs in guests by default.
pub(super) fn kind(chosen: &ResolvedPlan) -> Option<GuestKind> {
    let kernels = chosen.cells.iter().any(|labelled| kernel_of(&labelled.cell).is_some());
    chosen.plan.guest.or(kernels.then_some(GuestKind::Auto))
}

/// Checks that a kind of guest can run on this host with a kernel. Default: the newest kernel.
///
/// # Errors
/// The missing component, with a hint.
pub(super) fn check_available(
    kind: GuestKind,
    kernel: Option<&str>,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    factory::check_available(kind, kernel, interrupt)
}

/// Guests that a plan would use; `None` if it is measured on the host.
/// The error is a missing requirement, or a reason why the plan cannot be measured in a guest.
pub(super) fn planned(chosen: &ResolvedPlan) -> Option<Result<PlannedGuests, Failure>> {
    Some(factory::planned(chosen, kind(chosen)?, &AtomicBool::new(false)))
}

/// Prepares a new run in guests. Each kernel is booted once to detect what it can measure.
///
/// # Errors
/// If a requirement of a guest is missing, a guest does not boot, or nothing can be measured.
pub(super) fn begin(
    chosen: &ResolvedPlan,
    kind: GuestKind,
    path: &Path,
    mut warnings: Vec<Warning>,
    filesystems: Option<String>,
    env: &RunEnvironment<'_>,
) -> Result<Prepared, Failure> {
    run_file::writable(path)?;
    cells::check_space(chosen, env.catalog)?;
    let mut keeping = RunFilePath::choose(path, &chosen.storage.kind)?;
    keeping.free()?;
    let seed = chosen.plan.seed.unwrap_or_else(|| fastrand::u64(..));
    let id = run_setup::run_id(seed);
    let catalog = env.catalog;
    let factory = GuestFactory::new(chosen, kind, catalog, &id, env.interrupt)?;
    let info = run_setup::info(chosen, id, seed, factory.describe());
    let mut guests = guests(factory, info.clone(), filesystems, chosen);
    let (mut found, mut environment) = (Vec::new(), Environment::default());
    for (kernel, begun) in guests.begin()? {
        if environment.0.is_empty() {
            environment = begun.environment;
            environment.merge(host(env));
            guests.set_facts(environment.clone());
            warnings.extend(begun.warnings.into_iter().filter(trials::about_storage));
        }
        found.push((kernel, begun.cells));
    }
    let mut cells = trials::cells(&chosen.cells, guests.factory(), &found);
    let aa_duplicates = cells::aa_duplicates(&cells, chosen.plan.aa_control(), seed);
    cells.extend(aa_duplicates);
    if cells.iter().all(|cell| cell.state != CellState::Open) {
        return Err(run_setup::nothing_to_measure(&cells));
    }
    keeping.begin()?;
    let store = Store::create(&keeping.working, &info, &cells, &environment, &warnings)?;
    let record = RunRecord { info, environment, cells, trials: Vec::new(), warnings };
    Ok(Prepared::new(Backend::Guests(Box::new(guests)), store, record, keeping, chosen))
}

/// Prepares the guests of a resumed run.
///
/// # Errors
/// As [`begin`].
pub(super) fn resume(
    chosen: &ResolvedPlan,
    kind: GuestKind,
    record: &RunRecord,
    now: &str,
    filesystems: Option<String>,
    env: &RunEnvironment<'_>,
) -> Result<Guests, Failure> {
    let catalog = env.catalog;
    let factory = GuestFactory::new(chosen, kind, catalog, now, env.interrupt)?;
    let mut guests = guests(factory, record.info.clone(), filesystems, chosen);
    guests.set_facts(record.environment.clone());
    Ok(guests)
}

fn guests(
    factory: GuestFactory,
    info: RunInfo,
    filesystems: Option<String>,
    chosen: &ResolvedPlan,
) -> Guests {
    let place = factory.place();
    let begin = StartRun { info, filesystems, place, environment: Environment::default() };
    Guests::new(factory, begin, chosen.plan.isolation)
}

/// Environment facts of the host that affect a guest.
fn host(env: &RunEnvironment<'_>) -> Environment {
    let mut facts = Environment::default();
    for (name, value) in rig::probe::machine(env.host.as_ref()).0 {
        if ["kernel.release", "cpu.model", "memory.total_bytes"].contains(&name.as_str()) {
            facts.set(format!("host.{name}"), value);
        }
    }
    facts
}

/// Warnings that apply to all results of a kind of guest.
fn warnings(
    engine: Engine,
    latency: Option<Nanos>,
    phases: &[String],
) -> Vec<(Option<String>, Warning)> {
    let kind = match engine {
        Engine::Kvm => GuestKind::Kvm,
        Engine::Icount => GuestKind::Icount,
        Engine::Uml => GuestKind::Uml,
        Engine::Tcg => GuestKind::Tcg,
    };
    let mut warnings = vec![(None, Warning::MeasuredInGuest { kind, latency })];
    if engine == Engine::Uml && !phases.is_empty() {
        warnings.push((None, Warning::FlushNotPassed));
    }
    warnings
}

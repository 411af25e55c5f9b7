//! Worker inside a guest: runs single trials on request, with the same code as on a host.

use std::{
    cell::RefCell,
    fs,
    path::Path,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use engine::Progress;
use guest::in_guest::GuestChannel;
use model::{SystemSetting, record::CellRecord};
use rig::{Catalog, Host, RealHost, Rig};

use super::{
    messages::{Answer, Request, RunStarted, StartRun},
    requirements::GuestRequirements,
};
use crate::{
    cells,
    commands::run_setup::{self, RunEnvironment},
    exit::{Failure, chain},
    plans::ResolvedPlan,
    runner::{Conditions, LocalTrials, Reboots, RunObserver, Trials, events::Event},
};

/// Directory of the undo journals, which is lost when the guest ends.
const STATE: &str = "/run/fslab";
/// Path of the additional filesystem definitions.
const CATALOG_FILE: &str = "/run/fslab-filesystems.toml";

/// Serves requests until the host sends an empty request.
pub(crate) fn work(channel: GuestChannel) -> ExitCode {
    match serve(&RefCell::new(channel)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::output::message(&format!("fslab: {}", chain(error.as_ref())));
            ExitCode::FAILURE
        }
    }
}

fn serve(channel: &RefCell<GuestChannel>) -> anyhow::Result<()> {
    let Some(request) = next(channel)? else { return Ok(()) };
    let Request::StartRun(begin) = request else {
        anyhow::bail!(
            "a trial was requested before the \
                                                                 start of the run"
        )
    };
    let catalog = match catalog(&begin) {
        Ok(catalog) => catalog,
        Err(failure) => return refuse(channel, failure),
    };
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let interrupt = Arc::new(AtomicBool::new(false));
    let env = RunEnvironment {
        catalog: &catalog,
        host: &host,
        state: Path::new(STATE),
        destroy: &[],
        interrupt: &interrupt,
    };
    let (rig, chosen, begun) = match ready(&begin, &env) {
        Ok(ready) => ready,
        Err(failure) => return refuse(channel, failure),
    };
    let known = match begin.environment.0.is_empty() {
        true => begun.environment.clone(),
        false => begin.environment.clone(),
    };
    answer(channel, &Answer::RunStarted(Box::new(begun)))?;
    let progress = Progress::default();
    let notify = |event: &Event<'_>| {
        if let Event::PhaseStarted { name, .. } = event {
            channel.borrow().set_step(name);
        }
    };
    let observer = RunObserver { notify: &notify, progress: &progress, interrupt: &interrupt };
    let conditions = Conditions {
        seed: begin.info.seed,
        clock: chosen.plan.clock(),
        fsck: chosen.plan.fsck,
        // The memory limit of the workload is the memory size of the guest.
        memory_limited: true,
        // The host handles reboots.
        reboots: Reboots::No,
        isolation: model::Isolation::Remount,
        crash_state: None,
        worker_command: ["/proc/self/exe", "worker"].map(Into::into).into(),
    };
    let record = begin.record(known);
    // A guest has no directories under test.
    let catalog = catalog.clone().with_levels(&chosen.plan.filesystems, false);
    let mut trials = LocalTrials::new(rig, &record, &catalog, conditions, observer);
    while let Some(request) = next(channel)? {
        let Request::Trial { cell, index, repetition } = request else {
            anyhow::bail!("the run was started twice")
        };
        // Modules are loaded first, so that the time of mount does not include their loading.
        let modules = GuestRequirements::of_level(&cell.filesystem, &catalog).modules;
        guest::in_guest::load(&modules.into_iter().collect::<Vec<_>>());
        let trial = trials.measure(&cell, index, repetition);
        let trial = trial.context("a trial was interrupted without a signal")?;
        answer(channel, &Answer::Trial(Box::new(trial)))?;
    }
    trials.close()
}

/// Claims the disks and detects what can be measured on them.
fn ready(
    begin: &StartRun,
    env: &RunEnvironment<'_>,
) -> Result<(Rig, ResolvedPlan, RunStarted), Failure> {
    let info = &begin.info;
    let mut chosen = ResolvedPlan::read(
        info.plan_name.clone(),
        "the plan of the run",
        info.plan_text.clone(),
        info.overrides.clone(),
        info.scale,
        env.catalog,
    )?;
    // The kernel and the memory size are properties of the guest.
    for labelled in &mut chosen.cells {
        labelled.cell.settings.remove(&SystemSetting::Kernel);
    }
    let cells = cells::of(&chosen, env.catalog, env.host.as_ref(), info.seed);
    chosen.storage.kind = begin.place.clone();
    chosen.storage.memory_limit = None;
    let mut rig = env.rig(&chosen, &info.id, Path::new("/run/not-here"))?;
    run_setup::external_directory(&mut rig, &cells, info.seed)?;
    let environment = env.facts(&rig, &chosen);
    let mut distinct: Vec<CellRecord> = Vec::new();
    for cell in cells.into_iter().filter(|cell| !cell.cell.aa_duplicate) {
        if !distinct.iter().any(|known| known.id == cell.id) {
            distinct.push(cell);
        }
    }
    let begun = RunStarted { cells: distinct, environment, warnings: rig.warnings() };
    Ok((rig, chosen, begun))
}

fn catalog(begin: &StartRun) -> Result<Catalog, Failure> {
    match &begin.filesystems {
        None => Ok(Catalog::embedded()),
        Some(text) => {
            fs::write(CATALOG_FILE, text).context("writing the filesystem catalog")?;
            crate::commands::catalog(Some(Path::new(CATALOG_FILE)))
        }
    }
}

/// Reports a failure to the host and waits for the shutdown.
fn refuse(channel: &RefCell<GuestChannel>, failure: Failure) -> anyhow::Result<()> {
    answer(channel, &Answer::Failed(failure.message()))?;
    next(channel).map(drop)
}

fn next(channel: &RefCell<GuestChannel>) -> anyhow::Result<Option<Request>> {
    let Some(payload) = channel.borrow_mut().wait()? else { return Ok(None) };
    serde_json::from_slice(&payload).map(Some).context("reading a request")
}

fn answer(channel: &RefCell<GuestChannel>, answer: &Answer) -> anyhow::Result<()> {
    let payload = serde_json::to_vec(answer).context("writing a reply")?;
    Ok(channel.borrow_mut().reply(&payload)?)
}

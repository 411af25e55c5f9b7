//! Inside a guest: the same trials on the same rig as anywhere, asked for one by one.

use std::{
    cell::RefCell,
    fs,
    path::Path,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use engine::Progress;
use guest::inside::Door;
use model::{Factor, record::CellRecord};
use rig::{Catalogue, Host, RealHost, Rig};

use super::{
    messages::{Answer, Begin, Begun, Request},
    wants::Wants,
};
use crate::{
    cells,
    commands::session::{self, Surroundings},
    conductor::{Conditions, OnRig, Reboots, Trials, Watch, events::Event},
    exit::{Failure, chain},
    plans::Chosen,
};

/// Where journals are kept; everything here is gone with the guest.
const STATE: &str = "/run/fslab";
/// Where the user's catalogue is put.
const CATALOGUE: &str = "/run/fslab-filesystems.toml";

/// Serves requests until the host has no more.
pub(crate) fn work(door: Door) -> ExitCode {
    match serve(&RefCell::new(door)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::output::message(&format!("fslab: {}", chain(error.as_ref())));
            ExitCode::FAILURE
        }
    }
}

fn serve(door: &RefCell<Door>) -> anyhow::Result<()> {
    let Some(request) = next(door)? else { return Ok(()) };
    let Request::Begin(begin) = request else { anyhow::bail!("a trial was asked for too early") };
    let catalogue = match catalogue(&begin) {
        Ok(catalogue) => catalogue,
        Err(failure) => return refuse(door, failure),
    };
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let interrupt = Arc::new(AtomicBool::new(false));
    let surroundings = Surroundings {
        catalogue: &catalogue,
        host: &host,
        state: Path::new(STATE),
        destroy: &[],
        interrupt: &interrupt,
    };
    let (rig, chosen, begun) = match ready(&begin, &surroundings) {
        Ok(ready) => ready,
        Err(failure) => return refuse(door, failure),
    };
    let known = match begin.environment.0.is_empty() {
        true => begun.environment.clone(),
        false => begin.environment.clone(),
    };
    answer(door, &Answer::Begun(Box::new(begun)))?;
    let progress = Progress::default();
    let observer = |event: &Event<'_>| {
        if let Event::PhaseStarted { name, .. } = event {
            door.borrow().doing(name);
        }
    };
    let watch = Watch { observer: &observer, progress: &progress, interrupt: &interrupt };
    let conditions = Conditions {
        seed: begin.info.seed,
        clock: chosen.plan.clock(),
        fsck: chosen.plan.fsck,
        // The guest has no more memory than the workload may use.
        memory_limited: true,
        // The host boots.
        reboots: Reboots::No,
        isolation: model::Isolation::Remount,
        crash_state: None,
        worker_command: ["/proc/self/exe", "worker"].map(Into::into).into(),
    };
    let record = begin.record(known);
    let mut trials = OnRig::new(rig, &record, &catalogue, conditions, watch);
    while let Some(request) = next(door)? {
        let Request::Trial { cell, index, repeat } = request else {
            anyhow::bail!("the run was begun twice")
        };
        // A mount that is timed is not to wait for them.
        let modules = Wants::of_level(&cell.filesystem, &catalogue).modules;
        guest::inside::load(&modules.into_iter().collect::<Vec<_>>());
        let trial = trials.measure(&cell, index, repeat);
        let trial = trial.context("a trial was interrupted, and nothing interrupts here")?;
        answer(door, &Answer::Trial(Box::new(trial)))?;
    }
    trials.close()
}

/// Claims the disks and looks at what can be measured on them.
fn ready(begin: &Begin, surroundings: &Surroundings<'_>) -> Result<(Rig, Chosen, Begun), Failure> {
    let info = &begin.info;
    let mut chosen = Chosen::read(
        info.plan_name.clone(),
        "the plan of the run",
        info.plan_text.clone(),
        info.amendments.clone(),
        info.scale,
        surroundings.catalogue,
    )?;
    // What boots the guest settles its kernel, and how much memory there is.
    for labelled in &mut chosen.cells {
        labelled.cell.factors.remove(&Factor::Kernel);
    }
    let cells = cells::of(&chosen, surroundings.catalogue, surroundings.host.as_ref(), info.seed);
    chosen.storage.place = begin.place.clone();
    chosen.storage.memory = None;
    let mut rig = surroundings.rig(&chosen, &info.id, Path::new("/run/not-here"))?;
    session::elsewhere(&mut rig, &cells, info.seed)?;
    let environment = surroundings.facts(&rig, &chosen);
    let mut distinct: Vec<CellRecord> = Vec::new();
    for cell in cells.into_iter().filter(|cell| !cell.cell.twin) {
        if !distinct.iter().any(|known| known.id == cell.id) {
            distinct.push(cell);
        }
    }
    let begun = Begun { cells: distinct, environment, warnings: rig.warnings() };
    Ok((rig, chosen, begun))
}

fn catalogue(begin: &Begin) -> Result<Catalogue, Failure> {
    match &begin.filesystems {
        None => Ok(Catalogue::embedded()),
        Some(text) => {
            fs::write(CATALOGUE, text).context("keeping the catalogue of filesystems")?;
            crate::commands::catalogue(Some(Path::new(CATALOGUE)))
        }
    }
}

/// Says that it cannot be done, and waits to be switched off.
fn refuse(door: &RefCell<Door>, failure: Failure) -> anyhow::Result<()> {
    answer(door, &Answer::Failed(failure.text()))?;
    next(door).map(drop)
}

fn next(door: &RefCell<Door>) -> anyhow::Result<Option<Request>> {
    let Some(payload) = door.borrow_mut().wait()? else { return Ok(None) };
    serde_json::from_slice(&payload).map(Some).context("reading a request")
}

fn answer(door: &RefCell<Door>, answer: &Answer) -> anyhow::Result<()> {
    let payload = serde_json::to_vec(answer).context("writing an answer")?;
    Ok(door.borrow_mut().answer(&payload)?)
}

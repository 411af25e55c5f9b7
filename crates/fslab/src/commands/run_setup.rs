//! Setup and execution of one session of a run.
//!
//! Input: a checked plan and the name of a run file. Output: a [`Prepared`] run and, after its
//! execution, its [`RunEnd`]. This module prints no messages and writes no reports.

mod warnings;

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use engine::{CrashState, Progress};
use model::{
    Bytes, Cell, Clock, Isolation, Nanos, RunRecord, Warning,
    plan::InvalidTrials,
    record::{CellRecord, CellState, RunInfo},
    storage::StorageKind,
};
use rig::{
    Catalog, Host, Rig, RigOptions,
    undo::{self, OtherRun},
};
use store::{Store, StoreError};

use super::{
    cluster::{Cluster, OnHosts},
    guest::{Guests, InGuest},
    run_file::{self, RunFilePath},
};
use crate::{
    cells,
    exit::Failure,
    plans::ResolvedPlan,
    runner::{
        BOOT, Conditions, LocalTrials, MEMORY_RATE, Reboots, RunObserver, RunSummary, Runner,
        Settings, events::Event, now_unix,
    },
    screen::Screen,
};

/// Run that is ready for its first trial.
pub(super) struct Prepared {
    /// Host or guests.
    pub(super) backend: Backend,
    /// Open run file.
    pub(super) store: Store,
    /// Current content of the run file.
    pub(super) record: RunRecord,
    /// Final and working path of the run file.
    pub(super) keeping: RunFilePath,
    /// Kind of storage.
    pub(super) place: StorageKind,
    /// Filesystem definitions.
    pub(super) catalog: Catalog,
    /// True to check each filesystem with fsck after its trial.
    pub(super) fsck: bool,
    /// True if the memory of the workload is limited.
    pub(super) memory_limited: bool,
    /// Isolation between trials.
    pub(super) isolation: Isolation,
    /// Time limit for all trials.
    pub(super) time_limit: Option<Nanos>,
    /// Handling of invalid trials.
    pub(super) invalid_trials: InvalidTrials,
}

impl Prepared {
    /// Prepared run of a plan.
    pub(super) fn new(
        backend: Backend,
        store: Store,
        record: RunRecord,
        keeping: RunFilePath,
        chosen: &ResolvedPlan,
    ) -> Self {
        Self {
            backend,
            store,
            record,
            keeping,
            place: chosen.storage.kind.clone(),
            catalog: chosen.catalog.clone(),
            fsck: chosen.plan.fsck,
            memory_limited: chosen.storage.memory_limit.is_some(),
            isolation: chosen.plan.isolation,
            time_limit: chosen.plan.time_limit,
            invalid_trials: chosen.plan.invalid_trials(),
        }
    }
}

/// Place where the trials run.
pub(super) enum Backend {
    /// This machine, with claimed storage.
    Local(Box<Rig>),
    /// Guests.
    Guests(Box<Guests>),
    /// Several hosts.
    Cluster(Box<Cluster>),
}

/// Context of a run.
pub(super) struct RunEnvironment<'a> {
    /// Filesystem definitions.
    pub(super) catalog: &'a Catalog,
    /// Host access.
    pub(super) host: &'a Arc<dyn Host>,
    /// Directory of the undo journals.
    pub(super) state: &'a Path,
    /// Devices that may be overwritten, by model or serial number.
    pub(super) destroy: &'a [String],
    /// Set by a signal.
    pub(super) interrupt: &'a Arc<AtomicBool>,
}

/// Prepares a new run. The machine is changed only after the storage and the run file have been
/// checked.
///
/// # Errors
/// If the run file is not writable, the storage is rejected, or nothing can be measured.
pub(super) fn begin(
    chosen: &ResolvedPlan,
    path: &Path,
    mut warnings: Vec<Warning>,
    env: &RunEnvironment<'_>,
) -> Result<Prepared, Failure> {
    run_file::writable(path)?;
    let host = env.host;
    cells::check_space(chosen, &chosen.catalog)?;
    super::loadfile::of(chosen)?;
    if chosen.plan.isolation == Isolation::Reboot {
        check_survives_reboot(host.as_ref(), path)?;
        if host.boot_id().is_none() {
            return Err(Failure::usage(anyhow::anyhow!(
                "the kernel does not identify its boot (/proc/sys/kernel/random/boot_id), which \
                 isolation = \"reboot\" requires; use \"remount\""
            )));
        }
    }
    let mut keeping = RunFilePath::choose(path, &chosen.storage.kind)?;
    keeping.free()?;
    let seed = chosen.plan.seed.unwrap_or_else(|| fastrand::u64(..));
    let id = run_id(seed);
    let mut rig = env.rig(chosen, &id, &keeping.working)?;
    warnings.extend(rig.warnings());
    let cells = cells::of(chosen, &chosen.catalog, host.as_ref(), seed);
    external_directory(&mut rig, &cells, seed)?;
    let mut environment = env.facts(&rig, chosen);
    environment.merge(super::fio_loop::facts(&cells));
    warnings.extend(warnings::fits_memory(chosen, &environment));
    warnings.extend(warnings::empty_filesystems(chosen));
    warnings.extend(warnings::closed_loops(chosen));
    let info = info(chosen, id, seed, rig.describe());
    if cells.iter().all(|cell| cell.state != CellState::Open) {
        drop(rig);
        return Err(nothing_to_measure(&cells));
    }
    keeping.begin()?;
    let store = Store::create(&keeping.working, &info, &cells, &environment, &warnings)?;
    let record = RunRecord { info, environment, cells, trials: Vec::new(), warnings };
    Ok(Prepared::new(Backend::Local(Box::new(rig)), store, record, keeping, chosen))
}

/// Metadata of a new run.
pub(super) fn info(chosen: &ResolvedPlan, id: String, seed: u64, storage: String) -> RunInfo {
    RunInfo {
        id,
        title: chosen.plan.title.clone(),
        plan_name: chosen.name.clone(),
        plan_text: chosen.text.clone(),
        overrides: chosen.overrides.clone(),
        scale: chosen.scale,
        profile: chosen.plan.profile,
        repetitions: chosen.plan.repetitions,
        seed,
        study: chosen.plan.study,
        storage,
        started_unix: now_unix(),
        ended_unix: None,
        program: super::version::program(),
    }
}

/// Creates the external directory if a task needs it, so that the run does not start if the
/// directory cannot be created.
///
/// # Errors
/// If the directory cannot be created.
pub(super) fn external_directory(
    rig: &mut Rig,
    cells: &[CellRecord],
    seed: u64,
) -> Result<(), Failure> {
    let open = cells.iter().filter(|cell| cell.state == CellState::Open);
    let mut suites = open.filter_map(|cell| {
        let workload = &cell.cell.workload;
        suites::find(&workload.suite).map(|suite| (suite.phases)(workload, seed))
    });
    if suites.any(|phases| phases.iter().any(crate::runner::task_files::needs_external_directory)) {
        rig.external_directory().context("creating the external directory")?;
    }
    Ok(())
}

/// Control of a session: observer, signal, and options.
pub(super) struct RunControl<'a> {
    /// Display.
    pub(super) screen: &'a Screen,
    /// Progress of the current phase, updated by its workers.
    pub(super) progress: &'a Progress,
    /// Set by a signal.
    pub(super) interrupt: &'a AtomicBool,
    /// Stop at the first failed cell.
    pub(super) fail_fast: bool,
    /// File for the state that `fslab verify` reads after a crash.
    pub(super) crash_state: Option<&'a Arc<CrashState>>,
    /// Continue without the reboots that the plan requests.
    pub(super) no_reboot: bool,
    /// Stop after the pilot rounds.
    pub(super) pilot: bool,
}

/// Result of a session.
pub(super) struct RunEnd {
    /// Path of the run file.
    pub(super) keeping: RunFilePath,
    /// Kind of storage.
    pub(super) place: StorageKind,
    /// Number of trials and cells by outcome.
    pub(super) tally: RunSummary,
}

/// Runs a prepared session to its end and moves the run file to its final path.
///
/// # Errors
/// If the run file cannot be written, or the changes to the machine cannot be undone.
pub(super) fn execute(prepared: Prepared, with: &RunControl<'_>) -> anyhow::Result<RunEnd> {
    let Prepared { backend, store, record, keeping, place, isolation, .. } = prepared;
    let notify = |event: &Event<'_>| with.screen.show(event);
    let conditions = Conditions {
        seed: record.info.seed,
        // Clock of trials on this machine. Trials in an icount guest use the clock of the guest.
        clock: Clock::Wall,
        fsck: prepared.fsck,
        memory_limited: prepared.memory_limited,
        reboots: match isolation {
            Isolation::Reboot if with.no_reboot => Reboots::Waived,
            Isolation::Reboot => Reboots::Needed,
            Isolation::Remount | Isolation::Reattach => Reboots::No,
        },
        isolation,
        crash_state: with.crash_state.cloned(),
        worker_command: ["/proc/self/exe", "worker"].map(Into::into).into(),
    };
    let settings = Settings {
        profile: record.info.profile,
        repetitions: record.info.repetitions,
        seed: record.info.seed,
        time_limit: prepared.time_limit,
        invalid_trials: prepared.invalid_trials,
        own_devices: place.is_devices(),
        pilot: with.pilot,
        fail_fast: with.fail_fast,
    };
    let observer =
        RunObserver { notify: &notify, progress: with.progress, interrupt: with.interrupt };
    let tally = match backend {
        Backend::Local(rig) => {
            let trials = LocalTrials::new(*rig, &record, &prepared.catalog, conditions, observer);
            Runner::new(trials, store, record, settings, observer).run()?
        }
        Backend::Cluster(cluster) => {
            let trials = OnHosts::new(*cluster, &record, conditions.memory_limited, observer);
            Runner::new(trials, store, record, settings, observer).run()?
        }
        Backend::Guests(guests) => {
            let trials = InGuest { guests: *guests, observer };
            Runner::new(trials, store, record, settings, observer).run()?
        }
    };
    keeping.end()?;
    Ok(RunEnd { keeping, place, tally })
}

impl RunEnvironment<'_> {
    /// Claims the storage of a plan.
    ///
    /// # Errors
    /// If the storage is rejected or not available.
    pub(super) fn rig(
        &self,
        chosen: &ResolvedPlan,
        run_id: &str,
        store_file: &Path,
    ) -> Result<Rig, Failure> {
        self.check_other_runs(chosen)?;
        let options = RigOptions {
            state_directory: Some(self.state.into()),
            run_id: run_id.into(),
            overwrite: self.destroy.to_vec(),
            store_file: std::path::absolute(store_file)?,
            default_image_directory: cells::IMAGE_DIRECTORY.into(),
            interrupt: Arc::clone(self.interrupt),
        };
        let rig = Rig::open(Arc::clone(self.host), &chosen.storage, options);
        Ok(rig.context("preparing the storage")?)
    }

    /// Checks for other runs, because system settings affect all runs on the machine. A run does
    /// not start while another run has changed settings, and does not change settings while another
    /// run is in progress.
    fn check_other_runs(&self, chosen: &ResolvedPlan) -> Result<(), Failure> {
        let sets = |cell: &Cell| {
            cell.scheduler.is_some() || cell.settings.keys().any(|setting| !setting.is_storage())
        };
        let sets = chosen.cells.iter().any(|labelled| sets(&labelled.cell));
        for OtherRun { run, alive, settings } in undo::others(self.host.as_ref(), self.state) {
            let list = settings.join(", ");
            match (alive, settings.is_empty()) {
                (false, _) => {
                    return Err(Failure::usage(anyhow::anyhow!(
                        "the killed run {run} left changed settings ({list}); run `fslab clean` \
                         first"
                    )));
                }
                (true, false) => {
                    return Err(Failure::usage(anyhow::anyhow!(
                        "run {run} is in progress with changed settings ({list}); wait until it \
                         ends"
                    )));
                }
                (true, true) if sets => {
                    return Err(Failure::usage(anyhow::anyhow!(
                        "run {run} is in progress, and this plan changes system settings; wait \
                         until it ends"
                    )));
                }
                (true, true) => {}
            }
        }
        Ok(())
    }

    /// Environment facts of a run about the host.
    pub(super) fn facts(&self, rig: &Rig, chosen: &ResolvedPlan) -> model::Environment {
        let mut environment = rig.environment();
        environment.merge(cells::tools(chosen, &chosen.catalog, self.host.as_ref()));
        environment.set("program", super::version::program());
        environment.set("isolation", chosen.plan.isolation.name());
        if let Some(boot) = rig.boot_id() {
            environment.set(BOOT, boot);
        }
        let clock = engine::clock();
        // Rates of the generator have no meaning on an instruction clock, and measuring them takes
        // 5·10^11 instructions.
        if chosen.plan.clock() == Clock::Instructions {
            environment.set("clock.cost_instructions", clock.cost.0.to_string());
            return environment;
        }
        environment.set("clock.resolution_ns", clock.resolution.0.to_string());
        environment.set("clock.cost_ns", clock.cost.0.to_string());
        // Cost of the loop at a common block size, although the plan may use other block sizes.
        if let Ok(ceiling) = engine::write_generator_limit(Bytes::kib(4)) {
            let cost = format!("{:.0}", ceiling.nanos_per_op());
            environment.set("generator.null_engine_4KiB_ns_per_op", cost);
        }
        // At most a quarter of the memory limit, which also applies to this process.
        let most =
            chosen.storage.memory_limit.map_or(Bytes(u64::MAX), |memory| Bytes(memory.0 / 4));
        if let Some(rate) = engine::memory_copy_rate(most) {
            environment.set(MEMORY_RATE, format!("{rate:.0}"));
        }
        environment
    }
}

/// Rejects an existing run file, with a message for each kind of file.
///
/// # Errors
/// If the file exists.
pub(super) fn check_new_file(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let shown = path.display();
    let other = |what: &str, hint: String| {
        Err(Failure::usage(anyhow::anyhow!("{shown} {what}; use another path with -o{hint}")))
    };
    if path.is_dir() {
        return other("is a directory", format!(", such as {}", path.join("run.fslab").display()));
    }
    match store::read(path) {
        Ok(run) if run.info.ended_unix.is_some() => {
            let hint = format!(", or show the run: fslab report {shown}");
            other("contains a complete run", hint)
        }
        Ok(_) | Err(StoreError::Busy(_)) => Err(Failure::usage(StoreError::Exists(path.into()))),
        Err(StoreError::Damaged { .. }) => other("is a damaged run file", String::new()),
        Err(_) => other("exists and is not a run file of this version", String::new()),
    }
}

pub(super) fn nothing_to_measure(cells: &[CellRecord]) -> Failure {
    let mut reasons: Vec<_> = cells
        .iter()
        .filter_map(|cell| match &cell.state {
            CellState::Skipped { reason } => {
                Some(format!("\n  {}: {reason}", cell.cell.filesystem.name))
            }
            CellState::Open | CellState::Done { .. } | CellState::Failed { .. } => None,
        })
        .collect();
    reasons.dedup();
    anyhow::anyhow!("cannot measure any filesystem of the plan:{}", reasons.concat()).into()
}

/// Rejects a run file in memory for a run that requires reboots.
fn check_survives_reboot(host: &dyn Host, path: &Path) -> Result<(), Failure> {
    // TMPFS_MAGIC and RAMFS_MAGIC of statfs(2).
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let directory = std::path::absolute(path)?.parent().map(Path::to_path_buf).unwrap_or_default();
    match host.statistics(&directory) {
        Ok(space) if IN_MEMORY.contains(&space.magic) => Err(Failure::usage(anyhow::anyhow!(
            "{} is in memory and would not survive the reboots of the plan; use a path on a disk \
             with -o",
            path.display()
        ))),
        Ok(_) | Err(_) => Ok(()),
    }
}

pub(super) fn run_id(seed: u64) -> String {
    let stamp = report::stamp(now_unix());
    format!("{stamp}-{:04x}", (seed ^ u64::from(fastrand::u16(..))) & 0xffff)
}

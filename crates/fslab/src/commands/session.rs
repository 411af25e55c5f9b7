//! One session of a run: what it needs before its first trial, and how it is conducted.
//!
//! A plan that is checked and the name of a run file enter; a [`Prepared`] run, and then how it
//! [`Ended`], leave. What is said about it on the way, and reported afterwards, is up to the
//! commands.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use anyhow::Context;
use engine::{CrashState, Progress};
use model::{
    Bytes, Cell, Clock, Isolation, Nanos, Phase, RunRecord, Warning,
    phase::{Cache, Role, Work},
    plan::Spoiled,
    record::{CellRecord, CellState, RunInfo},
    storage::Place,
};
use rig::{
    Catalogue, Host, Rig, RigOptions,
    undo::{self, Other},
};
use store::{Store, StoreError};

use super::{
    guest::{Guests, InGuest},
    keeping::{self, Keeping},
};
use crate::{
    cells,
    conductor::{
        BOOT, Conditions, Conductor, MEMORY_RATE, OnRig, Reboots, Settings, Tally, Watch,
        events::Event, now_unix,
    },
    exit::Failure,
    output,
    plans::Chosen,
    screen::Screen,
};

/// All that a run needs before its first trial.
pub(super) struct Prepared {
    /// Where it is measured.
    pub(super) ground: Ground,
    /// The run file.
    pub(super) store: Store,
    /// What it holds so far.
    pub(super) record: RunRecord,
    /// Where it is and where it goes.
    pub(super) keeping: Keeping,
    /// What is measured on.
    pub(super) place: Place,
    /// Check each filesystem after its trial.
    pub(super) fsck: bool,
    /// Whether the memory of the workload is limited.
    pub(super) memory_limited: bool,
    /// What separates one trial from the next.
    pub(super) isolation: Isolation,
    /// How long all trials may take together.
    pub(super) budget: Option<Nanos>,
    /// What becomes of trials that the machine spoiled.
    pub(super) spoiled: Spoiled,
}

impl Prepared {
    /// What was made ready for a plan.
    pub(super) fn new(
        ground: Ground,
        store: Store,
        record: RunRecord,
        keeping: Keeping,
        chosen: &Chosen,
    ) -> Self {
        Self {
            ground,
            store,
            record,
            keeping,
            place: chosen.storage.place.clone(),
            fsck: chosen.plan.fsck,
            memory_limited: chosen.storage.memory.is_some(),
            isolation: chosen.plan.isolation,
            budget: chosen.plan.budget,
            spoiled: chosen.plan.spoiled(),
        }
    }
}

/// Where a run is measured.
pub(super) enum Ground {
    /// On this machine; its storage is claimed.
    Here(Box<Rig>),
    /// In guests.
    Guests(Box<Guests>),
}

/// What a run is made in.
pub(super) struct Surroundings<'a> {
    /// The filesystems.
    pub(super) catalogue: &'a Catalogue,
    /// The machine.
    pub(super) host: &'a Arc<dyn Host>,
    /// Where undo journals are kept.
    pub(super) state: &'a Path,
    /// Devices that may be overwritten, by model or serial.
    pub(super) destroy: &'a [String],
    /// Set by a signal.
    pub(super) interrupt: &'a Arc<AtomicBool>,
}

/// Makes a new run ready. Nothing is changed on the machine before the storage and the run file are
/// known to be good.
///
/// # Errors
/// When the run could not keep its results, the storage is refused, or nothing can be measured.
pub(super) fn begin(
    chosen: &Chosen,
    path: &Path,
    mut warnings: Vec<Warning>,
    surroundings: &Surroundings<'_>,
) -> Result<Prepared, Failure> {
    keeping::writable(path)?;
    let Surroundings { catalogue, host, .. } = surroundings;
    cells::roomy(chosen, catalogue)?;
    super::loadfile::of(chosen)?;
    if chosen.plan.isolation == Isolation::Reboot {
        outlives_a_boot(host.as_ref(), path)?;
        if host.boot_id().is_none() {
            return Err(Failure::usage(anyhow::anyhow!(
                "the kernel does not tell one boot from another (/proc/sys/kernel/random/boot_id), \
                 which isolation = \"reboot\" needs; take \"remount\""
            )));
        }
    }
    let mut keeping = Keeping::choose(path, &chosen.storage.place)?;
    keeping.free()?;
    let seed = chosen.plan.seed.unwrap_or_else(|| fastrand::u64(..));
    let id = run_id(seed);
    let mut rig = surroundings.rig(chosen, &id, &keeping.working)?;
    warnings.extend(rig.warnings());
    let cells = cells::of(chosen, catalogue, host.as_ref(), seed);
    elsewhere(&mut rig, &cells, seed)?;
    let environment = surroundings.facts(&rig, chosen);
    warnings.extend(fits_memory(chosen, &environment));
    let info = info(chosen, id, seed, rig.describe());
    if cells.iter().all(|cell| cell.state != CellState::Open) {
        drop(rig);
        return Err(nothing_to_measure(&cells));
    }
    keeping.begin()?;
    let store = Store::create(&keeping.working, &info, &cells, &environment, &warnings)?;
    let record = RunRecord { info, environment, cells, trials: Vec::new(), warnings };
    Ok(Prepared::new(Ground::Here(Box::new(rig)), store, record, keeping, chosen))
}

/// What a run that begins now says of itself.
pub(super) fn info(chosen: &Chosen, id: String, seed: u64, storage: String) -> RunInfo {
    RunInfo {
        id,
        title: chosen.plan.title.clone(),
        plan_name: chosen.name.clone(),
        plan_text: chosen.text.clone(),
        amendments: chosen.amendments.clone(),
        scale: chosen.scale,
        profile: chosen.plan.profile,
        repeats: chosen.plan.repeats,
        seed,
        view: chosen.plan.view,
        storage,
        started_unix: now_unix(),
        ended_unix: None,
        program: super::version::program(),
    }
}

/// Makes the second place that some tasks need, so that a run that cannot have it does not begin.
///
/// # Errors
/// When it cannot be had.
pub(super) fn elsewhere(rig: &mut Rig, cells: &[CellRecord], seed: u64) -> Result<(), Failure> {
    let open = cells.iter().filter(|cell| cell.state == CellState::Open);
    let mut suites = open.filter_map(|cell| {
        let workload = &cell.cell.workload;
        suites::find(&workload.suite).map(|suite| (suite.phases)(workload, seed))
    });
    if suites.any(|phases| phases.iter().any(crate::conductor::deeds::needs_elsewhere)) {
        rig.elsewhere().context("making a directory on another filesystem")?;
    }
    Ok(())
}

/// Whoever watches a session, and how it is told to stop.
pub(super) struct Conducting<'a> {
    /// The filesystems.
    pub(super) catalogue: &'a Catalogue,
    /// Shows what happens.
    pub(super) screen: &'a Screen,
    /// Filled by the workers.
    pub(super) progress: &'a Progress,
    /// Set by a signal.
    pub(super) interrupt: &'a AtomicBool,
    /// Stop at the first cell that fails.
    pub(super) fail_fast: bool,
    /// Where to keep what is needed to judge the files after a crash.
    pub(super) crash_state: Option<&'a Arc<CrashState>>,
    /// Go on without the boots that the plan asks for.
    pub(super) without_reboot: bool,
    /// End after the pilot.
    pub(super) pilot: bool,
}

/// How a session ended.
pub(super) struct Ended {
    /// Where the run file is now.
    pub(super) keeping: Keeping,
    /// What was measured on.
    pub(super) place: Place,
    /// How the cells fared.
    pub(super) tally: Tally,
}

/// Runs what was prepared to its end, and brings the run file to its place.
///
/// # Errors
/// When the run file cannot be written, or the machine not be put back.
pub(super) fn conduct(prepared: Prepared, with: &Conducting<'_>) -> anyhow::Result<Ended> {
    let Prepared { ground, store, record, keeping, place, isolation, .. } = prepared;
    let observer = |event: &Event<'_>| with.screen.show(event);
    let conditions = Conditions {
        seed: record.info.seed,
        // Guests that count have a session of their own inside.
        clock: Clock::Wall,
        fsck: prepared.fsck,
        memory_limited: prepared.memory_limited,
        reboots: match isolation {
            Isolation::Reboot if with.without_reboot => Reboots::Waived,
            Isolation::Reboot => Reboots::Needed,
            Isolation::Remount | Isolation::Reattach => Reboots::No,
        },
        isolation,
        crash_state: with.crash_state.cloned(),
        worker_command: ["/proc/self/exe", "worker"].map(Into::into).into(),
    };
    let settings = Settings {
        profile: record.info.profile,
        repeats: record.info.repeats,
        seed: record.info.seed,
        budget: prepared.budget,
        spoiled: prepared.spoiled,
        own_devices: matches!(place, Place::Devices { .. }),
        pilot: with.pilot,
        fail_fast: with.fail_fast,
    };
    let watch = Watch { observer: &observer, progress: with.progress, interrupt: with.interrupt };
    let tally = match ground {
        Ground::Here(rig) => {
            let trials = OnRig::new(*rig, &record, with.catalogue, conditions, watch);
            Conductor::new(trials, store, record, settings, watch).run()?
        }
        Ground::Guests(guests) => {
            let trials = InGuest { guests: *guests, watch };
            Conductor::new(trials, store, record, settings, watch).run()?
        }
    };
    keeping.end()?;
    Ok(Ended { keeping, place, tally })
}

/// Signals that come within so long of the first are the same wish to stop.
const ONE_WISH: Duration = Duration::from_millis(500);

/// Lets a signal end the run in good order, and a second one at once.
///
/// A hang-up counts, since a run outlives the terminal it was started from only in disorder.
///
/// # Errors
/// When the handlers cannot be set.
pub(super) fn listen() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]);
    let mut signals = signals.context("listening for signals")?;
    let interrupt = Arc::new(AtomicBool::new(false));
    // Set by the handler itself: a terminal signals the programs that a trial runs as well, and
    // their end must not be taken for a failure of the trial.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupt))
            .context("listening for signals")?;
    }
    std::thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for signal in &mut signals {
            match first {
                None => {
                    first = Some(Instant::now());
                    output::message(
                        "stopping and putting the machine back; once more to stop at once",
                    );
                }
                // timeout(1) and others signal the process and then its group: that is one wish.
                Some(first) if first.elapsed() < ONE_WISH => {}
                Some(_) => {
                    output::message("stopped at once; `fslab clean` puts the machine back");
                    let _cannot = signal_hook::low_level::emulate_default_handler(signal);
                }
            }
        }
    });
    Ok(interrupt)
}

impl Surroundings<'_> {
    /// Claims the storage of a plan.
    ///
    /// # Errors
    /// When it is refused or cannot be had.
    pub(super) fn rig(
        &self,
        chosen: &Chosen,
        run_id: &str,
        store_file: &Path,
    ) -> Result<Rig, Failure> {
        self.alone(chosen)?;
        let options = RigOptions {
            state_directory: Some(self.state.into()),
            run_id: run_id.into(),
            destroy: self.destroy.to_vec(),
            store_file: std::path::absolute(store_file)?,
            default_image_directory: IMAGE_DIRECTORY.into(),
            interrupt: Arc::clone(self.interrupt),
        };
        let rig = Rig::open(Arc::clone(self.host), &chosen.storage, options);
        Ok(rig.context("preparing the storage")?)
    }

    /// Settings of the machine hold for everyone on it: a run neither starts under those of another
    /// one, nor changes them while another one measures.
    fn alone(&self, chosen: &Chosen) -> Result<(), Failure> {
        let sets = |cell: &Cell| cell.scheduler.is_some() || !cell.factors.is_empty();
        let sets = chosen.cells.iter().any(|labelled| sets(&labelled.cell));
        for Other { run, alive, settings } in undo::others(self.host.as_ref(), self.state) {
            let list = settings.join(", ");
            match (alive, settings.is_empty()) {
                (false, _) => {
                    return Err(Failure::usage(anyhow::anyhow!(
                        "the killed run {run} has left the machine changed ({list}), so that \
                         nothing can be measured; run `fslab clean` first"
                    )));
                }
                (true, false) => {
                    return Err(Failure::usage(anyhow::anyhow!(
                        "the run {run} is measuring with settings of its own ({list}); wait until \
                         it has ended"
                    )));
                }
                (true, true) if sets => {
                    return Err(Failure::usage(anyhow::anyhow!(
                        "the run {run} is measuring, and this plan would change the machine under \
                         it; wait until it has ended"
                    )));
                }
                (true, true) => {}
            }
        }
        Ok(())
    }

    /// The facts about the host that a run names.
    pub(super) fn facts(&self, rig: &Rig, chosen: &Chosen) -> model::Environment {
        let mut environment = rig.environment();
        environment.merge(cells::tools(chosen, self.catalogue, self.host.as_ref()));
        environment.set("program", super::version::program());
        environment.set("isolation", chosen.plan.isolation.name());
        if let Some(boot) = rig.boot_id() {
            environment.set(BOOT, boot);
        }
        let clock = engine::clock();
        // Rates and times of the generator mean nothing where instructions are counted, and finding
        // them out takes half a thousand million of those.
        if chosen.plan.clock() == Clock::Instructions {
            environment.set("clock.cost_instructions", clock.cost.0.to_string());
            return environment;
        }
        environment.set("clock.resolution_ns", clock.resolution.0.to_string());
        environment.set("clock.cost_ns", clock.cost.0.to_string());
        // The loop's own cost at a size common in storage; the plan's records may be of others.
        if let Ok(ceiling) = engine::write_ceiling(Bytes::kib(4)) {
            let cost = format!("{:.0}", ceiling.nanos_per_op());
            environment.set("generator.null_engine_4KiB_ns_per_op", cost);
        }
        // A quarter of the limit, which holds for this process too.
        let most = chosen.storage.memory.map_or(Bytes(u64::MAX), |memory| Bytes(memory.0 / 4));
        if let Some(rate) = engine::memory_ceiling(most) {
            environment.set(MEMORY_RATE, format!("{rate:.0}"));
        }
        environment
    }
}

/// The directory of image files if the plan names none.
pub(super) const IMAGE_DIRECTORY: &str = "/var/tmp";

/// Refuses a run file that is there already.
///
/// # Errors
/// When it is.
pub(super) fn free(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Ok(_) => Err(Failure::usage(StoreError::Exists(path.into()))),
        Err(_) => Ok(()),
    }
}

/// Files below twice the memory can be served and accepted from memory alone, unless they are moved
/// around it, or are meant to be there.
fn fits_memory(chosen: &Chosen, environment: &model::Environment) -> Option<Warning> {
    let total = environment.get("memory.total_bytes").and_then(|text| text.parse::<u64>().ok());
    let whole_mib = |bytes: u64| Bytes(bytes / Bytes::MIB * Bytes::MIB);
    let memory = chosen.storage.memory.or(total.map(whole_mib))?;
    let points = chosen.cells.iter().map(|labelled| &labelled.cell.workload);
    let concerned = points.filter_map(|point| {
        let suite = suites::find(&point.suite)?;
        let phases = (suite.phases)(point, 0);
        phases.iter().any(meets_memory).then(|| (suite.footprint)(point))
    });
    let working_set = concerned.max()?;
    (working_set.0 > 0 && working_set.0 < memory.0.saturating_mul(2))
        .then_some(Warning::FitsMemory { working_set, memory })
}

/// Whether a result of this phase depends on how much memory there is.
fn meets_memory(phase: &Phase) -> bool {
    let around = match &phase.work {
        Work::Stream(stream) => stream.open.direct || !stream.moves(),
        Work::Tree(_)
        | Work::Mix(_)
        | Work::Replay(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Remove { .. } => false,
    };
    phase.role == Role::Measure && phase.cache != Cache::Warm && !around
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
    anyhow::anyhow!("none of the plan's filesystems can be measured here:{}", reasons.concat())
        .into()
}

/// A run that goes on after a boot must not lie in memory.
fn outlives_a_boot(host: &dyn Host, path: &Path) -> Result<(), Failure> {
    // TMPFS_MAGIC and RAMFS_MAGIC of statfs(2).
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let directory = std::path::absolute(path)?.parent().map(Path::to_path_buf).unwrap_or_default();
    match host.statistics(&directory) {
        Ok(told) if IN_MEMORY.contains(&told.magic) => Err(Failure::usage(anyhow::anyhow!(
            "{} lies in memory and would not outlive the boots that the plan asks for; name a \
             place on a disk with -o",
            path.display()
        ))),
        Ok(_) | Err(_) => Ok(()),
    }
}

pub(super) fn run_id(seed: u64) -> String {
    let stamp = report::stamp(now_unix());
    format!("{stamp}-{:04x}", (seed ^ u64::from(fastrand::u16(..))) & 0xffff)
}

#[cfg(test)]
mod tests {
    use model::phase::{Files, Open, Stream, Timed};

    use super::*;

    #[test]
    fn memory_matters_to_what_goes_through_it_and_is_not_meant_to_stay_there() {
        let stream = Stream::new(Files::One("f".into()), Bytes::mib(1), Bytes::kib(4));
        let mut phase = Phase {
            name: "read".into(),
            group: "reading".into(),
            role: Role::Measure,
            cache: Cache::Cold,
            work: Work::Stream(stream.clone()),
            timed: Timed::default(),
        };
        assert!(meets_memory(&phase));
        phase.cache = Cache::Warm;
        assert!(!meets_memory(&phase));
        let open = Open { direct: true, ..Open::default() };
        let direct = Work::Stream(Stream { open, ..stream });
        assert!(!meets_memory(&Phase { cache: Cache::Cold, work: direct, ..phase }));
    }
}

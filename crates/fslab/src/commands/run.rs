//! `fslab run`: a plan, or the rest of an interrupted run.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context;
use engine::Progress;
use model::{
    Bytes, RunRecord, Warning,
    record::{CellRecord, CellState, RunInfo},
    storage::Place,
};
use report::{TerminalOptions, View};
use rig::{Catalogue, Host, RealHost, Rig, RigOptions};
use store::{Store, StoreError};

use super::keeping::Keeping;
use crate::{
    cells,
    cli::Run,
    conductor::{Conductor, Settings, Tally, Watch, events::Event, now_unix},
    exit::{Exit, Failure},
    output,
    plans::Chosen,
    screen::Screen,
};

pub(super) fn run(arguments: &Run, state: &Path) -> Result<Exit, Failure> {
    let catalogue = super::catalogue(arguments.changes.filesystems.as_deref())?;
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let interrupt = Arc::new(AtomicBool::new(false));
    listen(&interrupt).context("listening for signals")?;
    let prepared = match &arguments.resume {
        Some(path) if has_ended(path)? => {
            output::message(&format!("{} has ended; nothing is left to do", path.display()));
            return Ok(Exit::Done);
        }
        Some(path) => resume(path, arguments, &catalogue, &host, state)?,
        None => start(arguments, &catalogue, &host, state)?,
    };
    let (keeping, place) = (prepared.keeping, prepared.place);
    let progress = Progress::default();
    let screen = Screen::new(&arguments.view, &progress);
    let observer = |event: &Event<'_>| screen.show(event);
    let settings = Settings {
        profile: prepared.record.info.profile,
        repeats: prepared.record.info.repeats,
        seed: prepared.record.info.seed,
        fsck: prepared.fsck,
        fail_fast: arguments.fail_fast,
        worker_command: ["/proc/self/exe", "worker"].map(Into::into).into(),
    };
    let watch = Watch { observer: &observer, progress: &progress, interrupt: &interrupt };
    let conductor =
        Conductor::new(prepared.rig, prepared.store, prepared.record, &catalogue, settings, watch);
    let tally = conductor.run()?;
    drop(screen);
    keeping.end()?;
    end(&keeping.place, &place, arguments, tally)
}

/// Lets a signal end the run in good order, and a second one at once.
///
/// A hang-up counts, since a run outlives the terminal it was started from only in disorder.
fn listen(interrupt: &Arc<AtomicBool>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let interrupt = Arc::clone(interrupt);
    std::thread::spawn(move || {
        for signal in &mut signals {
            if !interrupt.swap(true, Ordering::Relaxed) {
                output::message("stopping and putting the machine back; once more to stop at once");
                continue;
            }
            output::message("stopped at once; `fslab clean` puts the machine back");
            let _cannot = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// All that a run needs before its first trial.
struct Prepared {
    rig: Rig,
    store: Store,
    record: RunRecord,
    keeping: Keeping,
    place: Place,
    fsck: bool,
}

/// A new run. Nothing is changed on the machine before the plan, the storage and the run file are
/// all known to be good.
fn start(
    arguments: &Run,
    catalogue: &Catalogue,
    host: &Arc<dyn Host>,
    state: &Path,
) -> Result<Prepared, Failure> {
    let chosen =
        Chosen::new(arguments.plan.as_deref().unwrap_or_default(), &arguments.changes, catalogue)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => free_name(&chosen.name),
    };
    if path.exists() {
        return Err(Failure::usage(StoreError::Exists(path)));
    }
    writable(&path)?;
    let html = arguments.html(&path)?;
    if arguments.view.html.is_none() && html.exists() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} exists already, which is where the report would go; name another place with --html",
            html.display()
        )));
    }
    let mut keeping = Keeping::choose(&path, &chosen.storage.place)?;
    let seed = chosen.plan.seed.unwrap_or_else(|| fastrand::u64(..));
    let id = run_id(seed);
    let rig = open(&chosen, host, state, &id, &keeping.working, arguments.destroy.clone())?;
    let mut warnings = amended(&chosen);
    warnings.extend(rig.warnings());
    let environment = environment(&rig, &chosen, catalogue, host.as_ref());
    warnings.extend(fits_memory(&chosen, &environment));
    let cells = cells::of(&chosen, catalogue, host.as_ref(), seed);
    let info = RunInfo {
        id,
        title: chosen.plan.title.clone(),
        plan_name: chosen.name.clone(),
        plan_text: chosen.text.clone(),
        amendments: chosen.amendments.clone(),
        scale: chosen.scale,
        profile: chosen.plan.profile,
        repeats: chosen.plan.repeats,
        seed,
        storage: rig.describe(),
        started_unix: now_unix(),
        ended_unix: None,
        program: super::version::program(),
    };
    if cells.iter().all(|cell| cell.state != CellState::Open) {
        drop(rig);
        return Err(nothing_to_measure(&cells));
    }
    keeping.begin()?;
    let store = Store::create(&keeping.working, &info, &cells, &environment, &warnings)?;
    let record = RunRecord { info, environment, cells, trials: Vec::new(), warnings };
    let (place, fsck) = (chosen.storage.place, chosen.plan.fsck);
    Ok(Prepared { rig, store, record, keeping, place, fsck })
}

fn has_ended(path: &Path) -> Result<bool, Failure> {
    let record = super::report::read(&Keeping::find(path))?;
    Ok(record.cells.iter().all(|cell| cell.state != CellState::Open))
}

/// The rest of a run: its plan, seed and cells are those of the file.
fn resume(
    path: &Path,
    arguments: &Run,
    catalogue: &Catalogue,
    host: &Arc<dyn Host>,
    state: &Path,
) -> Result<Prepared, Failure> {
    arguments.html(path)?;
    let record = super::report::read(&Keeping::find(path))?;
    let info = &record.info;
    let origin = format!("the plan in {}", path.display());
    let chosen = Chosen::read(
        info.plan_name.clone(),
        &origin,
        info.plan_text.clone(),
        info.amendments.clone(),
        info.scale,
        catalogue,
    )?;
    let now = format!("{}-{:x}", info.id, fastrand::u16(..));
    let mut keeping = Keeping::choose(path, &chosen.storage.place)?;
    keeping.begin()?;
    // Takes the lock, and reads again what may have been kept since.
    let (mut store, record) = Store::resume(&keeping.working)?;
    let rig = open(&chosen, host, state, &now, &keeping.working, arguments.destroy.clone())?;
    let fresh = resumed(&record, &environment(&rig, &chosen, catalogue, host.as_ref()))?;
    let known = |warning: &Warning| record.warnings.contains(warning);
    let rigged: Vec<_> = rig.warnings().into_iter().filter(|warning| !known(warning)).collect();
    store.warn(&[rigged, fresh].concat())?;
    let (place, fsck) = (chosen.storage.place, chosen.plan.fsck);
    Ok(Prepared { rig, store, record, keeping, place, fsck })
}

/// What must be said of a run that goes on in a second session: whatever is wrong now and was not
/// before, and the facts about the host that have changed.
///
/// Another kernel, other tools or other commands are no change of conditions but another subject,
/// and are refused.
fn resumed(record: &RunRecord, now: &model::Environment) -> Result<Vec<Warning>, Failure> {
    let beyond = now.beyond(&record.environment);
    let subject = |name: &str| name == "kernel.release" || name.starts_with("filesystem.");
    if let Some((name, found)) = beyond.0.iter().find(|(name, _)| subject(name)) {
        let before = record.environment.get(name).unwrap_or("not told");
        return Err(Failure::usage(anyhow::anyhow!(
            "{name} was `{before}` when the run began and is `{found}`; one run speaks of one: \
             go back to the old one, or start a new run"
        )));
    }
    // Facts that name the run's own loop device or image differ by design.
    let of_the_host = |name: &str| {
        let measured = ["generator.", "clock.", "device."];
        !measured.iter().any(|prefix| name.starts_with(prefix)) && name != "backing.usable_bytes"
    };
    let differs: Vec<_> = beyond.0.into_keys().filter(|name| of_the_host(name)).collect();
    let known = |warning: &Warning| record.warnings.contains(warning);
    let resumed = Warning::Resumed { differs: differs.join(", ") };
    Ok(if known(&resumed) { Vec::new() } else { vec![resumed] })
}

fn open(
    chosen: &Chosen,
    host: &Arc<dyn Host>,
    state: &Path,
    run_id: &str,
    store_file: &Path,
    destroy: Vec<String>,
) -> Result<Rig, Failure> {
    let options = RigOptions {
        state_directory: Some(state.into()),
        run_id: run_id.into(),
        destroy,
        store_file: std::path::absolute(store_file)?,
        default_image_directory: "/var/tmp".into(),
    };
    let rig = Rig::open(Arc::clone(host), &chosen.storage, options);
    Ok(rig.context("preparing the storage")?)
}

/// What was changed on the command line is said in every report.
fn amended(chosen: &Chosen) -> Vec<Warning> {
    let scale = (chosen.scale != model::Scale::ONE).then(|| format!("--scale {}", chosen.scale));
    let settings = chosen.amendments.iter().map(|(key, value)| format!("{key} = {value}"));
    scale.into_iter().chain(settings).map(|what| Warning::Amended { what }).collect()
}

/// Files below twice the memory can be served and accepted from memory alone.
fn fits_memory(chosen: &Chosen, environment: &model::Environment) -> Option<Warning> {
    let total = environment.get("memory.total_bytes").and_then(|text| text.parse::<u64>().ok());
    let whole_mib = |bytes: u64| Bytes(bytes / Bytes::MIB * Bytes::MIB);
    let memory = chosen.storage.memory.or(total.map(whole_mib))?;
    let working_set = chosen.footprint();
    (working_set.0 < memory.0.saturating_mul(2))
        .then_some(Warning::FitsMemory { working_set, memory })
}

fn environment(
    rig: &Rig,
    chosen: &Chosen,
    catalogue: &Catalogue,
    host: &dyn Host,
) -> model::Environment {
    let mut environment = rig.environment();
    environment.merge(cells::tools(chosen, catalogue, host));
    let clock = engine::clock();
    environment.set("clock.resolution_ns", clock.resolution.0.to_string());
    environment.set("clock.cost_ns", clock.cost.0.to_string());
    environment.set("program", super::version::program());
    // The loop's own cost at a size common in storage; the plan's records may be of others.
    if let Ok(ceiling) = engine::ceiling(Bytes::kib(4)) {
        let cost = format!("{:.0}", ceiling.nanos_per_op());
        environment.set("generator.null_engine_4KiB_ns_per_op", cost);
    }
    environment
}

fn nothing_to_measure(cells: &[CellRecord]) -> Failure {
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

/// A run that could not keep its results would measure for nothing.
fn writable(path: &Path) -> Result<(), Failure> {
    let probe = path.with_extension(format!("probe-{}", std::process::id()));
    let written = fs::File::create_new(&probe).and_then(|_| fs::remove_file(&probe));
    written.map_err(|source| {
        Failure::usage(anyhow::Error::new(source).context(format!(
            "the run file {} cannot be written; name another place with -o",
            path.display()
        )))
    })
}

/// A run file's name that is not taken: the plan's name and the second.
pub(super) fn free_name(plan: &str) -> PathBuf {
    PathBuf::from(format!("{plan}-{}.fslab", report::stamp(now_unix())))
}

fn run_id(seed: u64) -> String {
    let stamp = report::stamp(now_unix());
    format!("{stamp}-{:04x}", (seed ^ u64::from(fastrand::u16(..))) & 0xffff)
}

/// A device, or an image that is kept, now carries the run's own filesystem, and is named again.
fn destroy_again(place: &Place) -> &'static str {
    match place {
        Place::Devices { .. } | Place::Image { file: Some(_), .. } => {
            " --destroy MODEL-or-SERIAL (it carries the run's own filesystem now)"
        }
        Place::Image { file: None, .. } | Place::Directory { .. } => "",
    }
}

/// The report of a run that ended, and the ending it leads to.
fn end(path: &Path, place: &Place, arguments: &Run, tally: Tally) -> Result<Exit, Failure> {
    if tally.interrupted {
        output::message(&format!(
            "interrupted, and undone. Go on with: fslab run --resume {}{}",
            path.display(),
            destroy_again(place)
        ));
        return Ok(Exit::Interrupted);
    }
    let view = View::new(&store::read(path)?);
    // The page first: a reader of stdout may have gone away.
    let html = arguments.html(path)?;
    fs::write(&html, report::html(&view)).with_context(|| {
        format!("writing the report {}; try `fslab report --html FILE`", html.display())
    })?;
    let options = TerminalOptions { width: output::width(), color: output::color(), detail: false };
    let paths = format!("\nrun file  {}\nreport    {}", path.display(), html.display());
    output::result(&(report::terminal(&view, &options) + &paths))?;
    if tally.stopped {
        output::message(&format!(
            "stopped at the first failure. Go on with: fslab run --resume {}{}",
            path.display(),
            destroy_again(place)
        ));
    }
    match (tally.measured, tally.failed) {
        (0, _) => Ok(Exit::Rig),
        (_, 0) => Ok(Exit::Done),
        _ => Ok(Exit::Incomplete),
    }
}

impl Run {
    /// Where the HTML report of a run file goes.
    ///
    /// # Errors
    /// When that is the run file itself.
    fn html(&self, run_file: &Path) -> Result<PathBuf, Failure> {
        let html = self.view.html.clone().unwrap_or_else(|| run_file.with_extension("html"));
        super::report::apart(&html, run_file)?;
        Ok(html)
    }
}

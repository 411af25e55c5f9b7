//! `fslab run`: a plan, or the rest of an interrupted run.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use engine::Progress;
use model::{Isolation, RunRecord, Warning, record::CellState, storage::Place};
use report::{TerminalOptions, View};
use rig::{Catalogue, Host, RealHost};
use store::Store;

use super::{
    guest,
    keeping::{self, Keeping},
    session::{self, Conducting, Ended, Ground, Prepared, Surroundings},
};
use crate::{
    cli::Run,
    conductor::{Tally, now_unix},
    exit::{Exit, Failure},
    output,
    plans::Chosen,
    screen::Screen,
};

pub(super) fn run(arguments: &Run, state: &Path) -> Result<Exit, Failure> {
    match measure(&session::listen()?, arguments, state)? {
        Measured::Early(exit) => Ok(exit),
        Measured::Run(finished) => {
            show(&[&finished])?;
            Ok(finished.exit())
        }
    }
}

/// How a session ended.
pub(super) enum Measured {
    /// Without a report: nothing was left to do, it was interrupted, or it is to be resumed.
    Early(Exit),
    /// With one.
    Run(Box<Finished>),
}

/// A run whose report is written as a page, and is yet to be shown on the terminal.
pub(super) struct Finished {
    view: View,
    run_file: PathBuf,
    html: PathBuf,
    tally: Tally,
}

impl Finished {
    /// The ending that the trials lead to.
    pub(super) fn exit(&self) -> Exit {
        match (self.tally.measured, self.tally.failed) {
            (0, _) => Exit::Rig,
            (_, 0) => Exit::Done,
            _ => Exit::Incomplete,
        }
    }
}

/// Prints the first page of one or more runs, and where their files are.
///
/// # Errors
/// When nothing can be printed.
pub(super) fn show(finished: &[&Finished]) -> anyhow::Result<()> {
    let views: Vec<&View> = finished.iter().map(|run| &run.view).collect();
    let options = TerminalOptions { width: output::width(), color: output::color(), detail: false };
    let mut text = output::legible(report::answer(&views, &options));
    let shown = |path: &Path| output::line(&path.display().to_string());
    for run in finished {
        let (run_file, html) = (shown(&run.run_file), shown(&run.html));
        text.push_str(&format!("\nreport {html}, run file {run_file}"));
    }
    output::styled(&text)?;
    Ok(())
}

/// Measures a plan, or the rest of a run, until `interrupt` is set; writes the page of the report.
///
/// # Errors
/// When something that it takes is missing or refused, or the report cannot be written.
pub(super) fn measure(
    interrupt: &Arc<AtomicBool>,
    arguments: &Run,
    state: &Path,
) -> Result<Measured, Failure> {
    let catalogue = super::catalogue(arguments.changes.filesystems.as_deref())?;
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let surroundings = Surroundings {
        catalogue: &catalogue,
        host: &host,
        state,
        destroy: &arguments.destroy,
        interrupt,
    };
    if arguments.reboot {
        rig::resume::available(host.as_ref()).map_err(Failure::usage)?;
    }
    // The unit that started this session has done its work; before anything else, so that a crash
    // of the kernel starts nothing.
    if let Some(path) = &arguments.resume {
        let path = std::path::absolute(path)?.display().to_string();
        rig::resume::disarm(host.as_ref(), Some(&path))?;
    }
    let prepared = match &arguments.resume {
        Some(path) if has_ended(path)? => {
            settle(path)?;
            output::message(&format!("{} has ended; nothing is left to do", path.display()));
            return Ok(Measured::Early(Exit::Done));
        }
        Some(path) => resume(path, arguments, &surroundings)?,
        None => start(arguments, &surroundings)?,
    };
    let progress = Progress::default();
    let screen = Screen::new(&arguments.view, &progress);
    let conducting = Conducting {
        catalogue: &catalogue,
        screen: &screen,
        progress: &progress,
        interrupt,
        fail_fast: arguments.fail_fast,
        crash_state: None,
        without_reboot: arguments.without_reboot,
        pilot: arguments.pilot,
    };
    bootable(&prepared, arguments)?;
    let ended = session::conduct(prepared, &conducting)?;
    drop(screen);
    if ended.tally.awaits_boot {
        return awaits_boot(&ended, arguments, state, host.as_ref()).map(Measured::Early);
    }
    if ended.tally.pilot {
        output::message(&format!(
            "the pilot's {} trials are kept and count. Go on with: fslab run --resume {}{}",
            ended.tally.measured,
            ended.keeping.place.display(),
            destroy_again(&ended.place)
        ));
        return Ok(Measured::Early(Exit::Done));
    }
    end(&ended.keeping.place, &ended.place, arguments, ended.tally)
}

/// A new run. Nothing is changed on the machine before the plan, the storage and the run file are
/// all known to be good.
fn start(arguments: &Run, surroundings: &Surroundings<'_>) -> Result<Prepared, Failure> {
    let catalogue = surroundings.catalogue;
    let chosen =
        Chosen::new(arguments.plan.as_deref().unwrap_or_default(), &arguments.changes, catalogue)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => free_name(&chosen.name),
    };
    session::free(&path)?;
    let html = arguments.html(&path)?;
    if arguments.view.html.is_none() && html.symlink_metadata().is_ok() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} exists already, which is where the report would go; name another place with --html",
            html.display()
        )));
    }
    let amended = amended(&chosen);
    match guest::kind(&chosen) {
        None => session::begin(&chosen, &path, amended, surroundings),
        Some(kind) => {
            let filesystems = own_catalogue(arguments)?;
            guest::begin(&chosen, kind, &path, amended, filesystems, surroundings)
        }
    }
}

/// The text of the user's own catalogue, for a guest, which does not have the file.
fn own_catalogue(arguments: &Run) -> Result<Option<String>, Failure> {
    let read = |file: &PathBuf| Catalogue::text_of(file).map_err(Failure::usage);
    arguments.changes.filesystems.as_ref().map(read).transpose()
}

fn has_ended(path: &Path) -> Result<bool, Failure> {
    let file = Keeping::find(path);
    let record = super::report::stored(&file)?;
    keeping::trusted(&file)?;
    if record.warnings.iter().any(|warning| matches!(warning, Warning::Imported { .. })) {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} was imported, and what another program measured cannot be gone on with; `fslab \
             report {}` shows it, and a plan with suite bonnie measures anew",
            path.display(),
            path.display()
        )));
    }
    Ok(record.cells.iter().all(|cell| cell.state != CellState::Open))
}

/// Completes what a kill after the last trial has left undone: the run gets its end, SQLite's log
/// is written back, and a run file in memory gets to its place.
fn settle(path: &Path) -> anyhow::Result<()> {
    let working = Keeping::find(path);
    let mut log = working.clone().into_os_string();
    log.push("-wal");
    let ended = store::read(&working).is_ok_and(|record| record.info.ended_unix.is_some());
    if ended && !Path::new(&log).exists() && working == path {
        return Ok(());
    }
    // Closing the file writes the log back. What another process has open, that process closes.
    if let Ok((store, record)) = Store::resume(&working)
        && record.info.ended_unix.is_none()
    {
        store.finish(now_unix())?;
    }
    if working == path {
        return Ok(());
    }
    let directory = std::path::absolute(path)?.parent().map(|it| it.display().to_string());
    let storage = Place::Directory { path: directory.unwrap_or_default() };
    let mut keeping = Keeping::choose(path, &storage)?;
    keeping.begin()?;
    keeping.end()
}

/// The rest of a run: its plan, seed and cells are those of the file.
fn resume(
    path: &Path,
    arguments: &Run,
    surroundings: &Surroundings<'_>,
) -> Result<Prepared, Failure> {
    arguments.html(path)?;
    let record = super::report::stored(&Keeping::find(path))?;
    let planned = record.info.clone();
    let info = &record.info;
    let origin = format!("the plan in {}", path.display());
    let chosen = Chosen::read(
        info.plan_name.clone(),
        &origin,
        info.plan_text.clone(),
        info.amendments.clone(),
        info.scale,
        surroundings.catalogue,
    )?;
    let now = format!("{}-{:x}", info.id, fastrand::u16(..));
    let mut keeping = Keeping::choose(path, &chosen.storage.place)?;
    keeping.begin()?;
    // Takes the lock, and reads again what may have been kept since.
    let (mut store, record) = Store::resume(&keeping.working)?;
    if record.info != planned {
        return Err(anyhow::anyhow!("{} was replaced; resume it again", path.display()).into());
    }
    if let Some(kind) = guest::kind(&chosen) {
        let own = own_catalogue(arguments)?;
        let guests = guest::again(&chosen, kind, &record, &now, own, surroundings)?;
        let ground = Ground::Guests(Box::new(guests));
        return Ok(Prepared::new(ground, store, record, keeping, &chosen));
    }
    let mut rig = surroundings.rig(&chosen, &now, &keeping.working)?;
    session::elsewhere(&mut rig, &record.cells, record.info.seed)?;
    let fresh = resumed(&record, &surroundings.facts(&rig, &chosen))?;
    let known = |warning: &Warning| record.warnings.contains(warning);
    let rigged: Vec<_> = rig.warnings().into_iter().filter(|warning| !known(warning)).collect();
    store.warn(&[rigged, fresh].concat())?;
    Ok(Prepared::new(Ground::Here(Box::new(rig)), store, record, keeping, &chosen))
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
        let measured = ["generator.", "clock.", "device.", "boot."];
        !measured.iter().any(|prefix| name.starts_with(prefix)) && name != "backing.usable_bytes"
    };
    let differs: Vec<_> = beyond.0.into_keys().filter(|name| of_the_host(name)).collect();
    let known = |warning: &Warning| record.warnings.contains(warning);
    let resumed = Warning::Resumed { differs: differs.join(", ") };
    Ok(if known(&resumed) { Vec::new() } else { vec![resumed] })
}

/// What was changed on the command line is said in every report.
fn amended(chosen: &Chosen) -> Vec<Warning> {
    let scale = (chosen.scale != model::Scale::ONE).then(|| format!("--scale {}", chosen.scale));
    let settings = chosen.amendments.iter().map(|(key, value)| format!("{key} = {value}"));
    scale.into_iter().chain(settings).map(|what| Warning::Amended { what }).collect()
}

/// A run file's name that is not taken: the plan's name and the second.
pub(super) fn free_name(plan: &str) -> PathBuf {
    PathBuf::from(format!("{plan}-{}.fslab", report::stamp(now_unix())))
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

/// Whether what is asked of boots goes with the plan.
fn bootable(prepared: &Prepared, arguments: &Run) -> Result<(), Failure> {
    let reboots = prepared.isolation == Isolation::Reboot;
    let refuse = |why: &str| Err(Failure::usage(anyhow::anyhow!("{why}")));
    if (arguments.reboot || arguments.without_reboot) && !reboots {
        return refuse(
            "the plan does not ask for boots; add isolation = \"reboot\", or leave --reboot and \
             --without-reboot out",
        );
    }
    let device = !destroy_again(&prepared.place).is_empty();
    if arguments.reboot && device && arguments.destroy.is_empty() {
        return refuse(
            "after the first boot the device carries the run's own filesystem, and has to be named \
             again: add --destroy MODEL-or-SERIAL",
        );
    }
    Ok(())
}

/// A run that goes on after a boot: brings it about if asked to, else says how to go on.
fn awaits_boot(
    ended: &Ended,
    arguments: &Run,
    state: &Path,
    host: &dyn Host,
) -> Result<Exit, Failure> {
    let path = std::path::absolute(&ended.keeping.place)?;
    let trials = ended.tally.measured;
    if !arguments.reboot {
        output::message(&format!(
            "{trials} trials kept; the plan wants the machine booted before the next. Boot it, then \
             go on with: fslab run --resume {}{} (or boot by itself with --reboot, or go on as it \
             is with --without-reboot)",
            path.display(),
            destroy_again(&ended.place)
        ));
        return Ok(Exit::Boot);
    }
    let program = std::env::current_exe().context("looking for this program")?;
    let mut argv = vec![program.display().to_string()];
    argv.extend(["run", "--quiet", "--reboot", "--resume"].map(String::from));
    argv.push(path.display().to_string());
    argv.extend(arguments.destroy.iter().flat_map(|name| ["--destroy".to_owned(), name.clone()]));
    argv.extend([
        "--state-directory".to_owned(),
        std::path::absolute(state)?.display().to_string(),
    ]);
    if let Some(html) = &arguments.view.html {
        argv.extend(["--html".to_owned(), std::path::absolute(html)?.display().to_string()]);
    }
    if let Some(file) = &arguments.changes.filesystems {
        let file = std::path::absolute(file)?.display().to_string();
        argv.extend(["--filesystems".to_owned(), file]);
    }
    if arguments.fail_fast {
        argv.push("--fail-fast".into());
    }
    if arguments.pilot {
        argv.push("--pilot".into());
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    rig::resume::arm(host, &argv, directory)?;
    output::message(&format!("{trials} trials kept; booting the machine, then the run goes on"));
    rig::resume::reboot(host)?;
    Ok(Exit::Boot)
}

/// The page of the report of a run that ended.
fn end(path: &Path, place: &Place, arguments: &Run, tally: Tally) -> Result<Measured, Failure> {
    if tally.interrupted {
        output::message(&format!(
            "interrupted, and undone. Go on with: fslab run --resume {}{}",
            path.display(),
            destroy_again(place)
        ));
        return Ok(Measured::Early(Exit::Interrupted));
    }
    let view = View::new(&super::report::read(path)?);
    // Before anything is printed: a reader of stdout may have gone away.
    let html = arguments.html(path)?;
    super::report::write(&html, report::html(&view).as_bytes())?;
    if tally.stopped {
        output::message(&format!(
            "stopped at the first failure. Go on with: fslab run --resume {}{}",
            path.display(),
            destroy_again(place)
        ));
    }
    Ok(Measured::Run(Box::new(Finished { view, run_file: path.into(), html, tally })))
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

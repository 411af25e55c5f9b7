//! `fslab run`: runs a plan, or continues an interrupted run.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use engine::Progress;
use model::{Isolation, RunRecord, Warning, record::CellState, storage::StorageKind};
use report::{Part, TerminalOptions, View};
use rig::{Catalog, Host, RealHost};
use store::Store;

use super::{
    cluster, guest,
    run_file::{self, RunFilePath},
    run_setup::{self, Backend, Prepared, RunControl, RunEnd, RunEnvironment},
    signals,
};
use crate::{
    cli::Run,
    exit::{Exit, Failure},
    output,
    plans::ResolvedPlan,
    runner::{RunSummary, now_unix},
    screen::Screen,
};

pub(super) fn run(arguments: &Run, state: &Path) -> Result<Exit, Failure> {
    match measure(&signals::handle_signals()?, arguments, state)? {
        Measured::Early(exit) => Ok(exit),
        Measured::Run(finished) => show(&[&finished], arguments.view.json),
    }
}

/// End of a session.
pub(super) enum Measured {
    /// No report: there was nothing left to do, nothing was measured, or the run has to be resumed.
    Early(Exit),
    /// Session with a report.
    Run(Box<Finished>),
}

/// Run whose HTML report is written and whose results are not yet printed.
pub(super) struct Finished {
    view: View,
    run_file: PathBuf,
    html: PathBuf,
    tally: RunSummary,
    /// Message with the command that continues an interrupted or stopped run.
    next: Option<String>,
}

impl Finished {
    /// Exit status of the session.
    fn exit(&self) -> Exit {
        match (self.tally.measured, self.tally.failed) {
            _ if self.tally.interrupted => Exit::Interrupted,
            (0, _) => Exit::Environment,
            (_, 0) => Exit::Success,
            _ => Exit::Incomplete,
        }
    }
}

/// Prints the results of one or more runs, and how to continue them. Returns the exit status: that
/// of an interrupted run, otherwise of the first run that was not successful.
///
/// # Errors
/// If the results cannot be printed. After an interruption this is not an error, because the
/// terminal may be gone.
pub(super) fn show(finished: &[&Finished], json: bool) -> Result<Exit, Failure> {
    let printed = print(finished, json);
    finished.iter().filter_map(|run| run.next.as_ref()).for_each(|next| output::message(next));
    let exits: Vec<Exit> = finished.iter().map(|run| run.exit()).collect();
    if exits.contains(&Exit::Interrupted) {
        return Ok(Exit::Interrupted);
    }
    printed?;
    Ok(exits.into_iter().find(|exit| *exit != Exit::Success).unwrap_or(Exit::Success))
}

/// A page with the paths of the files of each run, or one JSON object per run.
fn print(finished: &[&Finished], json: bool) -> Result<(), Failure> {
    if let [first, others @ ..] = finished
        && !others.is_empty()
    {
        let name =
            |run: &Finished| run.html.file_name().map(|name| name.to_string_lossy().into_owned());
        let pages: Vec<String> = others.iter().map(|run| name(run).unwrap_or_default()).collect();
        let parts: Vec<Part<'_>> =
            others.iter().zip(&pages).map(|(run, page)| Part { view: &run.view, page }).collect();
        super::report::write(&first.html, report::html(&first.view, &parts).as_bytes())?;
    }
    if json {
        finished.iter().try_for_each(|run| output::json(&report::json(&run.view)))?;
        return Ok(());
    }
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

/// Runs a plan or continues a run, until the run ends or `interrupt` is set. Writes the HTML report
/// of a run that ended.
///
/// # Errors
/// If a requirement is missing or rejected, or the report cannot be written.
pub(super) fn measure(
    interrupt: &Arc<AtomicBool>,
    arguments: &Run,
    state: &Path,
) -> Result<Measured, Failure> {
    let catalog = super::catalog(arguments.changes.catalog.as_deref())?;
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let env = RunEnvironment {
        catalog: &catalog,
        host: &host,
        state,
        destroy: &arguments.overwrite_device,
        interrupt,
    };
    if arguments.reboot {
        rig::resume::available(host.as_ref()).map_err(Failure::usage)?;
    }
    // The unit that started this session is removed before anything else, so that a kernel crash
    // does not start it again.
    if let Some(path) = &arguments.resume {
        let path = std::path::absolute(path)?.display().to_string();
        rig::resume::remove_unit(host.as_ref(), Some(&path))?;
    }
    let prepared = match &arguments.resume {
        Some(path) if has_ended(path)? => {
            settle(path)?;
            say(arguments, &format!("{} is complete; nothing is left to do", path.display()));
            return Ok(Measured::Early(Exit::Success));
        }
        Some(path) => resume(path, arguments, &env)?,
        None => start(arguments, &env)?,
    };
    let progress = Progress::default();
    let screen = Screen::new(&arguments.view, &progress);
    let conducting = RunControl {
        screen: &screen,
        progress: &progress,
        interrupt,
        fail_fast: arguments.fail_fast,
        crash_state: None,
        no_reboot: arguments.no_reboot,
        pilot: arguments.pilot,
    };
    bootable(&prepared, arguments)?;
    let ended = run_setup::execute(prepared, &conducting)?;
    drop(screen);
    if ended.tally.reboot_required {
        return reboot_required(&ended, arguments, state, host.as_ref()).map(Measured::Early);
    }
    if ended.tally.pilot {
        let text = format!(
            "{} trials of the pilot are stored and count; continue with: fslab run --resume {}{}",
            ended.tally.measured,
            ended.keeping.place.display(),
            destroy_again(&ended.place)
        );
        say(arguments, &text);
        return Ok(Measured::Early(Exit::Success));
    }
    end(&ended.keeping.place, &ended.place, arguments, ended.tally)
}

/// Message of a successful session.
fn say(arguments: &Run, text: &str) {
    if !arguments.view.quiet {
        output::message(text);
    }
}

/// Starts a new run. The machine is changed only after the plan, the storage, and the run file have
/// been checked.
fn start(arguments: &Run, env: &RunEnvironment<'_>) -> Result<Prepared, Failure> {
    let catalog = env.catalog;
    let mut changes = arguments.changes.clone();
    changes.set.extend(cluster::overrides(&arguments.hosts)?);
    let chosen = ResolvedPlan::new(&arguments.plan, &changes, catalog)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => free_name(&chosen.name),
    };
    run_setup::check_new_file(&path)?;
    let html = arguments.html(&path)?;
    if arguments.view.html.is_none() && html.symlink_metadata().is_ok() {
        return Err(Failure::usage(anyhow::anyhow!(
            "the report file {} already exists; use another path with --html",
            html.display()
        )));
    }
    let amended = amended(&chosen);
    if let Some(hosts) = &chosen.plan.cluster {
        let filesystems = own_catalog(arguments)?;
        return cluster::begin(&chosen, hosts, &path, amended, filesystems, env);
    }
    match guest::kind(&chosen) {
        None => run_setup::begin(&chosen, &path, amended, env),
        Some(kind) => {
            let filesystems = own_catalog(arguments)?;
            guest::begin(&chosen, kind, &path, amended, filesystems, env)
        }
    }
}

/// Text of an additional catalog file, for a guest without access to the file.
fn own_catalog(arguments: &Run) -> Result<Option<String>, Failure> {
    let read = |file: &PathBuf| Catalog::text_of(file).map_err(Failure::usage);
    arguments.changes.catalog.as_ref().map(read).transpose()
}

fn has_ended(path: &Path) -> Result<bool, Failure> {
    let file = RunFilePath::find(path);
    let record = super::report::stored(&file)?;
    run_file::trusted(&file)?;
    if record.warnings.iter().any(|warning| matches!(warning, Warning::Imported { .. })) {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} was imported and cannot be resumed; show it with `fslab report {}`, or measure \
             with a plan of suite bonnie",
            path.display(),
            path.display()
        )));
    }
    Ok(record.cells.iter().all(|cell| cell.state != CellState::Open))
}

/// Completes a run that was killed after its last trial: sets the end time of the run, writes back
/// the SQLite log, and moves a run file from memory to its final path.
fn settle(path: &Path) -> anyhow::Result<()> {
    let working = RunFilePath::find(path);
    let mut log = working.clone().into_os_string();
    log.push("-wal");
    let ended = store::read(&working).is_ok_and(|record| record.info.ended_unix.is_some());
    if ended && !Path::new(&log).exists() && working == path {
        return Ok(());
    }
    // Closing the file writes the log back. If another process has the file open, that process
    // writes the log back.
    if let Ok((store, record)) = Store::resume(&working)
        && record.info.ended_unix.is_none()
    {
        store.finish(now_unix())?;
    }
    if working == path {
        return Ok(());
    }
    let directory = std::path::absolute(path)?.parent().map(|it| it.display().to_string());
    let storage = StorageKind::Directory { path: directory.unwrap_or_default() };
    let mut keeping = RunFilePath::choose(path, &storage)?;
    keeping.begin()?;
    keeping.end()
}

/// Continues a run with the plan, seed, and cells of its file.
fn resume(path: &Path, arguments: &Run, env: &RunEnvironment<'_>) -> Result<Prepared, Failure> {
    arguments.html(path)?;
    let record = super::report::stored(&RunFilePath::find(path))?;
    let planned = record.info.clone();
    let info = &record.info;
    let origin = format!("the plan in {}", path.display());
    let chosen = ResolvedPlan::read(
        info.plan_name.clone(),
        &origin,
        info.plan_text.clone(),
        info.overrides.clone(),
        info.scale,
        env.catalog,
    )?;
    let now = format!("{}-{:x}", info.id, fastrand::u16(..));
    let mut keeping = RunFilePath::choose(path, &chosen.storage.kind)?;
    keeping.begin()?;
    // Takes the lock and rereads trials stored in the meantime.
    let (mut store, record) = Store::resume(&keeping.working)?;
    if record.info != planned {
        return Err(anyhow::anyhow!("{} was replaced; resume it again", path.display()).into());
    }
    if let Some(named) = &chosen.plan.cluster {
        let mut named = named.clone();
        for (key, value) in cluster::overrides(&arguments.hosts)? {
            match key.as_str() {
                "launcher" => named.launcher = Some(value),
                _ => named.hosts = value.split(',').map(str::to_owned).collect(),
            }
        }
        let own = own_catalog(arguments)?;
        let cluster = cluster::resume(&chosen, &named, &record, own, env)?;
        let backend = Backend::Cluster(Box::new(cluster));
        return Ok(Prepared::new(backend, store, record, keeping, &chosen));
    }
    if let Some(kind) = guest::kind(&chosen) {
        let own = own_catalog(arguments)?;
        let guests = guest::resume(&chosen, kind, &record, &now, own, env)?;
        let backend = Backend::Guests(Box::new(guests));
        return Ok(Prepared::new(backend, store, record, keeping, &chosen));
    }
    let mut rig = env.rig(&chosen, &now, &keeping.working)?;
    run_setup::external_directory(&mut rig, &record.cells, record.info.seed)?;
    let fresh = resumed(&record, &env.facts(&rig, &chosen))?;
    let known = |warning: &Warning| record.warnings.contains(warning);
    let rigged: Vec<_> = rig.warnings().into_iter().filter(|warning| !known(warning)).collect();
    store.warn(&[rigged, fresh].concat())?;
    Ok(Prepared::new(Backend::Local(Box::new(rig)), store, record, keeping, &chosen))
}

/// Warning about a run that continues in another session, with the names of host facts that
/// changed.
///
/// Another kernel release, filesystem tool, or mkfs command is an error, because later trials would
/// measure something else.
fn resumed(record: &RunRecord, now: &model::Environment) -> Result<Vec<Warning>, Failure> {
    let beyond = now.beyond(&record.environment);
    let subject = |name: &str| name == "kernel.release" || name.starts_with("filesystem.");
    if let Some((name, found)) = beyond.0.iter().find(|(name, _)| subject(name)) {
        let before = record.environment.get(name).unwrap_or("not available");
        return Err(Failure::usage(anyhow::anyhow!(
            "{name} was `{before}` at the start of the run and is now `{found}`; restore the \
             previous one, or start a new run"
        )));
    }
    // Measured facts, and facts that contain the run's loop device or image, may differ.
    let of_the_host = |name: &str| {
        let measured = ["generator.", "clock.", "device.", "boot."];
        !measured.iter().any(|prefix| name.starts_with(prefix)) && name != "backing.usable_bytes"
    };
    let differs: Vec<_> = beyond.0.into_keys().filter(|name| of_the_host(name)).collect();
    let known = |warning: &Warning| record.warnings.contains(warning);
    let resumed = Warning::Resumed { differs: differs.join(", ") };
    Ok(if known(&resumed) { Vec::new() } else { vec![resumed] })
}

/// Warnings about overrides on the command line, which every report shows.
fn amended(chosen: &ResolvedPlan) -> Vec<Warning> {
    let scale = (chosen.scale != model::Scale::ONE).then(|| format!("--scale {}", chosen.scale));
    let settings = chosen.overrides.iter().map(|(key, value)| format!("{key} = {value}"));
    scale.into_iter().chain(settings).map(|what| Warning::PlanOverridden { what }).collect()
}

/// Unused run file name: the name of the plan and the time.
pub(super) fn free_name(plan: &str) -> PathBuf {
    PathBuf::from(format!("{plan}-{}.fslab", report::stamp(now_unix())))
}

/// Option that a resumed run requires: a device or a kept image now contains a filesystem of the
/// run, so overwriting must be allowed again.
fn destroy_again(place: &StorageKind) -> &'static str {
    let kept = |kind: &StorageKind| {
        matches!(kind, StorageKind::Devices { .. } | StorageKind::Image { file: Some(_), .. })
    };
    match place.each().iter().any(|(_, kind)| kept(kind)) {
        true => " --overwrite-device ID (the device or image now contains a filesystem of the run)",
        false => "",
    }
}

/// Checks that the reboot options match the plan.
fn bootable(prepared: &Prepared, arguments: &Run) -> Result<(), Failure> {
    let reboots = prepared.isolation == Isolation::Reboot;
    let refuse = |why: &str| Err(Failure::usage(anyhow::anyhow!("{why}")));
    if (arguments.reboot || arguments.no_reboot) && !reboots {
        return refuse(
            "the plan does not request reboots; add isolation = \"reboot\", or remove --reboot and \
             --no-reboot",
        );
    }
    let device = !destroy_again(&prepared.place).is_empty();
    if arguments.reboot && device && arguments.overwrite_device.is_empty() {
        return refuse(
            "after the first reboot the device contains the run's filesystem and must be specified \
             again; add --overwrite-device ID",
        );
    }
    Ok(())
}

/// Ends a session before a reboot: reboots if the user requested it, otherwise prints how to
/// continue.
fn reboot_required(
    ended: &RunEnd,
    arguments: &Run,
    state: &Path,
    host: &dyn Host,
) -> Result<Exit, Failure> {
    let path = std::path::absolute(&ended.keeping.place)?;
    let trials = match ended.tally.measured {
        1 => "1 trial is".to_owned(),
        trials => format!("{trials} trials are"),
    };
    if !arguments.reboot {
        output::message(&format!(
            "{trials} stored; reboot before the next one, then continue with: fslab run \
             --resume {}{} (or use --reboot to reboot automatically, or --no-reboot to continue \
             without)",
            path.display(),
            destroy_again(&ended.place)
        ));
        return Ok(Exit::RebootRequired);
    }
    let program = std::env::current_exe().context("locating the program")?;
    let mut argv = vec![program.display().to_string()];
    argv.extend(["run", "--quiet", "--reboot", "--resume"].map(String::from));
    argv.push(path.display().to_string());
    argv.extend(
        arguments
            .overwrite_device
            .iter()
            .flat_map(|name| ["--overwrite-device".to_owned(), name.clone()]),
    );
    argv.extend([
        "--state-directory".to_owned(),
        std::path::absolute(state)?.display().to_string(),
    ]);
    if let Some(html) = &arguments.view.html {
        argv.extend(["--html".to_owned(), std::path::absolute(html)?.display().to_string()]);
    }
    if let Some(file) = &arguments.changes.catalog {
        let file = std::path::absolute(file)?.display().to_string();
        argv.extend(["--catalog".to_owned(), file]);
    }
    if arguments.fail_fast {
        argv.push("--fail-fast".into());
    }
    if arguments.pilot {
        argv.push("--pilot".into());
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    rig::resume::install_unit(host, &argv, directory)?;
    output::message(&format!("{trials} stored; rebooting, then the run continues"));
    rig::resume::reboot(host)?;
    Ok(Exit::RebootRequired)
}

/// HTML report of a run that ended, or of the trials before an interrupt.
fn end(
    path: &Path,
    place: &StorageKind,
    arguments: &Run,
    tally: RunSummary,
) -> Result<Measured, Failure> {
    let next = |what: &str| {
        let path = path.display();
        format!("{what}. Continue with: fslab run --resume {path}{}", destroy_again(place))
    };
    let next = match (tally.interrupted, tally.stopped) {
        (true, _) => Some(next("interrupted; changes were undone")),
        (false, true) => Some(next("stopped at the first failed cell")),
        (false, false) => None,
    };
    if tally.interrupted && tally.measured == 0 {
        next.iter().for_each(|next| output::message(next));
        return Ok(Measured::Early(Exit::Interrupted));
    }
    let finished = finished(path, arguments);
    if let (Err(failure), true) = (&finished, tally.interrupted) {
        output::message(&failure.message());
        next.iter().for_each(|next| output::message(next));
        return Ok(Measured::Early(Exit::Interrupted));
    }
    let (view, html) = finished?;
    Ok(Measured::Run(Box::new(Finished { view, run_file: path.into(), html, tally, next })))
}

/// View of a run file, and its HTML report, which is written before anything is printed because
/// stdout may be closed.
fn finished(path: &Path, arguments: &Run) -> Result<(View, PathBuf), Failure> {
    let view = super::report::viewed(path, &super::report::read(path)?);
    let html = arguments.html(path)?;
    super::report::write(&html, report::html(&view, &[]).as_bytes()).inspect_err(|_| {
        output::message(&format!(
            "all results are in {0}; report: fslab report {0} --html FILE",
            path.display()
        ));
    })?;
    Ok((view, html))
}

impl Run {
    /// Path of the HTML report of a run file.
    ///
    /// # Errors
    /// If the path is that of the run file itself, or its directory does not exist.
    fn html(&self, run_file: &Path) -> Result<PathBuf, Failure> {
        let html = self.view.html.clone().unwrap_or_else(|| run_file.with_extension("html"));
        super::report::apart(&html, run_file)?;
        Ok(html)
    }
}

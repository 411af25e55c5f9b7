//! `fslab bench`: one workload in one directory.
//!
//! The arguments are converted to the text of a plan with overrides, which runs like any plan. The
//! output is the report of [`report::bench`]. Nothing is formatted. Without `-o` the run file is
//! temporary ([`super::scratch`]).

mod comparison;
mod job;
mod kept;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use engine::{CrashState, EngineError, Progress};
use model::{Nanos, Plan, PlanError, RunRecord, SuiteSpec, WorkloadParameters};
use report::{Subject, TerminalOptions, View};
use rig::{Catalog, Host, RealHost};

pub(super) use kept::Kept;

use super::{
    run_setup::{self, RunControl, RunEnd, RunEnvironment},
    signals,
};
use crate::{
    cli::{Bench, View as Shown},
    exit::{Exit, Failure},
    output,
    plans::{self, ResolvedPlan, near_workloads as near, quoted},
    screen::Screen,
};

pub(super) fn run(arguments: &Bench, state: &Path) -> Result<Exit, Failure> {
    let arguments = &of_command(arguments)?;
    let workload = Workload::find(arguments)?;
    let (ended, place) = measure(arguments, &workload, state)?;
    end(arguments, &workload, &ended, &place)
}

/// Measures the workload. The result includes the path of the run file.
///
/// # Errors
/// If the arguments contradict each other, or the run cannot start or end.
pub(super) fn measure(
    arguments: &Bench,
    workload: &Workload<'_>,
    state: &Path,
) -> Result<(RunEnd, Kept), Failure> {
    comparison::check(arguments, workload.name)?;
    let directory = directory(arguments)?;
    if let Some(state) = &arguments.crash_state {
        if state.symlink_metadata().is_ok() {
            return Err(Failure::usage(EngineError::StateExists { path: state.clone() }));
        }
        outside(state, &directory)?;
    }
    let catalog = Catalog::embedded();
    let chosen = chosen(arguments, workload, &directory, &catalog)?;
    let place = Kept::new(arguments.output.as_deref(), state, &directory)?;
    run_setup::check_new_file(&place.path())?;
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let interrupt = signals::handle_signals()?;
    let (catalog, host, interrupt) = (&catalog, &host, &interrupt);
    let env = RunEnvironment { catalog, host, state, destroy: &[], interrupt };
    // The arguments are the plan, so no override is reported.
    let prepared = run_setup::begin(&chosen, &place.path(), Vec::new(), &env)?;
    let state = arguments.crash_state.as_deref().map(CrashState::create).transpose();
    let state = state.map_err(Failure::usage)?.map(Arc::new);
    let progress = Progress::default();
    if !arguments.quiet && !arguments.json {
        let jobs = job::lines(chosen.cells.iter().map(|cell| &cell.cell.workload));
        output::message(&jobs.lines().map(output::wrapped).collect::<Vec<_>>().join("\n"));
    }
    let view = Shown { html: None, quiet: arguments.quiet, json: arguments.json };
    let screen = Screen::of_one(&view, &progress, workload.name);
    let conducting = RunControl {
        screen: &screen,
        progress: &progress,
        interrupt,
        fail_fast: false,
        crash_state: state.as_ref(),
        no_reboot: false,
        pilot: false,
    };
    let ended = run_setup::execute(prepared, &conducting)?;
    if let Some(state) = &state {
        // There was no crash, and the files that the state describes are removed.
        state.remove().context("removing the state after the run")?;
    }
    drop(screen);
    Ok((ended, place))
}

/// Arguments with the suite `command` as the workload if --command is given, or the suite `fio` for
/// a job file. With --command, the directory is the only positional argument.
///
/// # Errors
/// If a workload is given as well.
pub(super) fn of_command(arguments: &Bench) -> Result<Bench, Failure> {
    let Bench { workload, directory, command, .. } = arguments;
    let mut arguments = arguments.clone();
    if let Some(command) = command {
        if let (Some(workload), Some(_)) = (workload, directory) {
            return Err(wrong(format!(
                "both `{workload}` and --command are workloads; use `fslab bench --command PROGRAM \
                 DIRECTORY`"
            )));
        }
        arguments.directory = workload.as_ref().map(PathBuf::from);
        arguments.workload = Some("command".into());
        arguments.set.insert(0, ("run".into(), command.clone()));
    }
    if let Some(job) = arguments.workload.as_ref().filter(|name| plans::is_job(Path::new(name))) {
        arguments.set.insert(0, (suites::fio::JOB.into(), job.clone()));
        arguments.workload = Some(suites::fio::NAME.into());
    }
    Ok(arguments)
}

/// Workload given on the command line.
pub(super) struct Workload<'a> {
    name: &'a str,
    title: &'static str,
    source: &'static str,
    suite: &'static SuiteSpec,
    /// Parameters of the workload.
    workload: WorkloadParameters,
    /// True for a preset, false for a suite.
    preset: bool,
}

impl<'a> Workload<'a> {
    /// Finds the workload.
    ///
    /// # Errors
    /// If no workload is given or the name is unknown. The message suggests similar names.
    pub(super) fn find(arguments: &'a Bench) -> Result<Self, Failure> {
        let hint = "`fslab list workloads` lists all workloads";
        let Some(name) = arguments.workload.as_deref() else {
            return Err(wrong(format!(
                "WORKLOAD and DIRECTORY are missing; use for example `fslab bench {} /srv`; {hint}",
                EXAMPLES[0]
            )));
        };
        if let Some(found) = named(name) {
            return Ok(found);
        }
        let second = arguments.directory.as_ref().and_then(|path| path.to_str());
        if let Some(workload) = second.filter(|workload| named(workload).is_some()) {
            return Err(wrong(format!(
                "WORKLOAD and DIRECTORY are swapped; use `fslab bench {workload} {name}`"
            )));
        }
        if name.contains('/') || (second.is_none() && Path::new(name).exists()) {
            let path = second.unwrap_or(name);
            return Err(wrong(format!(
                "`{name}` is a path, but WORKLOAD comes first, such as `fslab bench {} {path}`; \
                 workloads are {}, and others (`fslab list workloads`)",
                EXAMPLES[0],
                EXAMPLES.join(", ")
            )));
        }
        let near = near(name);
        let near = match &near[..] {
            [] => String::new(),
            _ => format!("did you mean {}? ", near.join(" or ")),
        };
        Err(wrong(format!("unknown workload `{name}`; {near}{hint}")))
    }

    /// Parameters of the workload.
    pub(super) fn parameters(&self) -> &WorkloadParameters {
        &self.workload
    }

    /// Checks that the suite has the parameter that an option sets.
    ///
    /// # Errors
    /// If the suite has no such parameter.
    fn has(&self, parameter: &str, option: &str) -> Result<(), Failure> {
        let error = match self.suite.parameter(parameter) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let near = error.hint.filter(|hint| hint.starts_with("did you mean"));
        let near = near.map(|near| format!("{near} ")).unwrap_or_default();
        let subject = match self.preset {
            true => format!("workload {} (suite {})", self.name, self.suite.name),
            false => format!("suite {}", self.suite.name),
        };
        Err(wrong(format!(
            "{option}: {subject} has no parameter `{parameter}`; {near}`fslab list suites` lists \
             the parameters"
        )))
    }

    /// Rejects --runtime for a workload that ends after a number of operations.
    ///
    /// # Errors
    /// If the number of operations is not set with `--set`, or if the time is 0.
    fn is_bound_by_time(&self, arguments: &Bench, time: &str) -> Result<(), Failure> {
        if time.split(',').any(|time| Nanos::parse(time) == Ok(Nanos(0))) {
            return Err(wrong(format!(
                "--runtime {time}: the measured time must be greater than 0; use for example \
                 --runtime 10s"
            )));
        }
        let Some(model::Value::Count(operations @ 1..)) =
            self.workload.parameters.get("operations")
        else {
            return Ok(());
        };
        if arguments.set.iter().any(|(key, _)| key == "operations") {
            return Ok(());
        }
        Err(wrong(format!(
            "--runtime {time}: workload {} ends after {operations} operations, not after a time; \
             set their number with --set operations=N",
            self.name
        )))
    }

    /// Entry of the workload axis.
    fn entry(&self) -> String {
        let key = if self.preset { "preset" } else { "suite" };
        format!("{{ {key} = {} }}", quoted(self.name))
    }

    /// Description of the workload for the report, with parameters that differ from the defaults.
    /// Parameters with several values are omitted.
    fn subject(&self, record: &RunRecord) -> Subject {
        let points: Vec<_> =
            record.cells.iter().map(|cell| &cell.cell.workload.parameters).collect();
        // In cells, parameters without effect have their default values. The defaults are therefore
        // refined in the same way before they are compared.
        let settled = suites::refine(self.workload.clone()).ok();
        let settled = settled.as_ref().and_then(|points| points.first()).unwrap_or(&self.workload);
        let parameters = settled.parameters.iter().filter_map(|(name, default)| {
            let (first, others) = points.split_first()?;
            let value = first.get(name)?;
            let same = others.iter().all(|other| other.get(name) == Some(value));
            let shown = || value.to_string().replace('\n', "; ");
            (same && value != default).then(|| (name.clone(), shown()))
        });
        Subject {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            source: self.source.to_owned(),
            parameters: parameters.collect(),
        }
    }
}

/// Workloads that messages name as examples.
const EXAMPLES: [&str; 5] = ["randread-4k", "seqwrite-1m", "fsync-4k", "oltp-8k", "mail-spool"];

/// Workload of this name: a preset, or a suite with its defaults.
fn named(name: &str) -> Option<Workload<'_>> {
    if let Some(preset) = suites::preset(name) {
        let suite = suites::find(&preset.workload.suite)?.spec;
        let (title, source) = (preset.title.as_str(), preset.source.as_str());
        return Some(Workload {
            name,
            title,
            source,
            suite,
            workload: preset.workload.clone(),
            preset: true,
        });
    }
    let suite = suites::find(name)?.spec;
    let (title, source, point) = (suite.title, suite.source, suite.defaults());
    Some(Workload { name, title, source, suite, workload: point, preset: false })
}

/// Absolute path of the directory.
///
/// # Errors
/// If the argument is missing, not a directory, or not writable.
fn directory(arguments: &Bench) -> Result<PathBuf, Failure> {
    let Some(path) = &arguments.directory else {
        return Err(wrong(format!(
            "DIRECTORY is missing: the directory to measure; use `fslab bench {} DIRECTORY`",
            arguments.workload.as_deref().unwrap_or("WORKLOAD")
        )));
    };
    writable(path)
}

/// Absolute path of a directory in which fslab can create files.
///
/// # Errors
/// If it is not a writable directory, or its path is not UTF-8.
pub(super) fn writable(path: &Path) -> Result<PathBuf, Failure> {
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|source| {
        wrong(format!("cannot measure {shown}: {source}; use an existing directory"))
    })?;
    if !metadata.is_dir() {
        return Err(wrong(format!("{shown} is not a directory; use the directory to measure in")));
    }
    // Permissions do not show that a filesystem is read-only or cannot create directories.
    let probe = path.join(format!(".fslab-probe-{}", std::process::id()));
    let written = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
    written.map_err(|source| {
        wrong(format!("cannot write to {shown}: {source}; use a writable directory"))
    })?;
    let absolute = fs::canonicalize(path)?;
    match absolute.to_str() {
        Some(_) => Ok(absolute),
        None => Err(wrong(format!("the path {shown} is not UTF-8, as plans require; rename it"))),
    }
}

/// Checks that the crash state is not on the filesystem under test.
///
/// # Errors
/// If the crash state is on the filesystem under test, or if its filesystem cannot be determined.
fn outside(state: &Path, directory: &Path) -> Result<(), Failure> {
    let shown = state.display();
    rig::guard::store_outside(state, directory).map_err(|refusal| {
        if matches!(refusal, rig::guard::Refusal::StoreOnTarget { .. }) {
            return wrong(format!(
                "--crash-state {shown} is on the filesystem under test and would not survive its \
                 crash; use a file on another filesystem"
            ));
        }
        Failure::usage(refusal)
    })
}

/// Plan for the arguments. Its text sets repetitions, storage, and workload; overrides set the
/// rest. Nothing is compared, so the plan has no A/A control.
fn chosen(
    arguments: &Bench,
    workload: &Workload<'_>,
    directory: &Path,
    catalog: &Catalog,
) -> Result<ResolvedPlan, Failure> {
    let mut settings = Vec::new();
    if let Some(time) = &arguments.runtime {
        workload.has("runtime", &format!("--runtime {time}"))?;
        workload.is_bound_by_time(arguments, time)?;
        settings.push(("runtime".to_owned(), time.clone()));
    }
    if let Some(size) = &arguments.file_size {
        workload.has("file_size", &format!("--file-size {size}"))?;
        settings.push(("file_size".to_owned(), size.clone()));
    }
    for (key, value) in arguments.set.iter().filter(|(key, _)| !Plan::is_key(key)) {
        workload.has(key, &plans::set(key, value))?;
    }
    settings.extend(arguments.set.iter().cloned());
    let text = format!(
        "title = {}\nrepetitions = {}\naa_control = \"none\"\n\n[storage]\ndirectory = {}\n\n[axes]\nworkload = [{}]\n",
        quoted(&format!("{} on {}", workload.name, directory.display())),
        arguments.repetitions,
        quoted(&directory.display().to_string()),
        workload.entry(),
    );
    let name = format!("bench-{}", workload.name);
    let asked = settings.clone();
    let typed = |key: &str, value: &str| match key {
        "runtime" if arguments.runtime.as_deref() == Some(value) => format!("--runtime {value}"),
        "file_size" if arguments.file_size.as_deref() == Some(value) => {
            format!("--file-size {value}")
        }
        _ => plans::set(key, value),
    };
    // Errors do not quote lines of the plan, because the user did not write it.
    let error = |error: PlanError| {
        let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        wrong(format!("{}{hint}", error.message))
    };
    let scale = model::Scale::ONE;
    let chosen = ResolvedPlan::parse(name, text, settings, scale, catalog, &error, &typed)?;
    for (key, value) in &asked {
        heeded(&chosen, workload.suite, key, value, &typed(key, value))?;
    }
    Ok(chosen)
}

/// Checks that a given parameter has an effect with the other parameters. A parameter without
/// effect gets its default value, which the user would not notice.
///
/// # Errors
/// If no cell has the given value.
fn heeded(
    chosen: &ResolvedPlan,
    suite: &SuiteSpec,
    key: &str,
    value: &str,
    typed: &str,
) -> Result<(), Failure> {
    let Ok(parameter) = suite.parameter(key) else { return Ok(()) };
    // The path of a recording becomes absolute, that of a job file its name.
    if matches!((suite.name, key), ("replay", "trace") | (suites::fio::NAME, suites::fio::JOB)) {
        return Ok(());
    }
    // A list of values is not checked: it expands to several cells, and was parsed before.
    let Ok(asked) = parameter.kind.read(value) else { return Ok(()) };
    let cells = || chosen.cells.iter().map(|cell| &cell.cell.workload.parameters);
    let found = cells().find_map(|parameters| parameters.get(key));
    match found {
        Some(found) if cells().all(|parameters| parameters.get(key) != Some(&asked)) => {
            Err(wrong(format!(
                "{typed} has no effect: the other parameters of the workload set `{key}` to \
                 {found}; `fslab list suites` describes the parameters"
            )))
        }
        _ => Ok(()),
    }
}

/// Prints the report and returns the exit status.
fn end(
    arguments: &Bench,
    workload: &Workload<'_>,
    ended: &RunEnd,
    place: &Kept,
) -> Result<Exit, Failure> {
    let RunEnd { tally, .. } = ended;
    if tally.interrupted {
        output::message(&place.interrupted());
        return Ok(Exit::Interrupted);
    }
    let record = super::report::read(&place.path())?;
    match arguments.json {
        true => output::json(&report::json(&View::new(&record)))?,
        false => {
            let (width, color) = (output::width(), output::color());
            let options = TerminalOptions { width, color, detail: false };
            let sheet = report::bench(&record, &workload.subject(&record), &options);
            place.print(sheet)?;
        }
    }
    match (tally.measured, tally.failed) {
        (0, _) => Ok(Exit::Environment),
        (_, 0) => Ok(Exit::Success),
        _ => Ok(Exit::Incomplete),
    }
}

fn wrong(message: String) -> Failure {
    Failure::usage(anyhow::Error::msg(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_survives_a_toml_round_trip() {
        let suites = suites::specs();
        let vocabulary = model::KnownNames {
            suites: &suites,
            presets: &[],
            filesystems: &["directory"],
            mounted: &[],
        };
        for text in ["/srv/data", "a \"quoted\" \\ path", "line\nbreak\u{7f}", "größe"] {
            let plan = format!(
                "title = {}\n[storage]\ndirectory = \".\"\n[axes]\nworkload = [{{ suite = {} }}]",
                quoted(text),
                quoted("iozone")
            );
            assert_eq!(model::Plan::parse(&plan, vocabulary).unwrap().title, text);
        }
    }

    #[test]
    fn misspelled_and_partial_names_are_recognized() {
        assert_eq!(near("iozon"), ["`iozone`"]);
        assert_eq!(near("oltp"), ["`oltp-8k`", "`oltp-log`"]);
        assert_eq!(near(""), Vec::<String>::new());
    }
}

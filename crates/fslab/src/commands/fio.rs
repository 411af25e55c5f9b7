//! `fslab fio`: runs jobs of fio with its command line, in the current directory.
//!
//! The arguments are those of fio, and the output is in its formats. Jobs become a plan of suite
//! `fio` with one cell, which runs like any plan. Files are at the paths that the job names and
//! stay there. Messages are on stderr only.

mod arguments;
mod safety;

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use engine::Progress;
use model::Scale;
use rig::{Catalog, Host, RealHost};
use suites::fio::{self, Changes, Job, Line, Mistakes};

use self::arguments::Arguments;
use super::{
    run_file,
    run_setup::{self, RunControl, RunEnvironment},
    scratch::Scratch,
    signals,
};
use crate::{
    cli::{self, View},
    exit::{Exit, Failure},
    output,
    plans::{ResolvedPlan, jobs, quoted},
    screen::Screen,
};

/// Runs the command. The exit status is that of fio: 0 or 1, and 130 after an interruption.
pub(super) fn run(command: &cli::Fio, state: &Path) -> Result<Exit, Failure> {
    match measure(command, state) {
        Ok(exit) => Ok(exit),
        Err(failure) if failure.is_interrupted() => Err(failure),
        Err(failure) => {
            output::message(&format!("fslab fio: {}", failure.message()));
            Ok(Exit::Program(1))
        }
    }
}

fn measure(command: &cli::Fio, state: &Path) -> Result<Exit, Failure> {
    let arguments = match Arguments::parse(&command.arguments)? {
        arguments::Parsed::Print(text) => {
            output::result(&text)?;
            return Ok(Exit::Success);
        }
        arguments::Parsed::Run(arguments) => *arguments,
    };
    let directory = std::env::current_dir().context("reading the current directory")?;
    let Some(directory) = directory.to_str().map(str::to_owned) else {
        return Err(anyhow::anyhow!("the path of the current directory is not UTF-8").into());
    };
    let lines = arguments.job_lines()?;
    let changes = Changes {
        variables: jobs::variables(),
        set: Vec::new(),
        drop: arguments.drop.clone(),
        map: arguments.map.clone(),
        section: arguments.section.clone(),
        directory: directory.clone(),
    };
    let job = fio::parse(&lines, &changes)?;
    for (name, reason) in &job.unused {
        output::message(&format!("fslab fio: {name} has no effect: {reason}"));
    }
    if arguments.parse_only {
        return Ok(Exit::Success);
    }
    if arguments.read_only
        && let Some(file) = job.files().iter().find(|file| file.written)
    {
        return Err(anyhow::anyhow!("--readonly, but the job writes {}", file.path).into());
    }
    safety::check(&job, arguments.reuse)?;
    execute(&arguments, &job, &changes, state)
}

/// Plan with the job as its only cell.
fn plan(
    arguments: &Arguments,
    job: &Job,
    changes: &Changes,
    catalog: &Catalog,
) -> Result<ResolvedPlan, Failure> {
    let names: Vec<&str> = job.sections.iter().map(|section| section.name.as_str()).collect();
    let title = format!("fio job {}", names.first().copied().unwrap_or_default());
    let directory = quoted(&changes.directory);
    let mut entry =
        format!("suite = \"fio\", text = {}, directory = {directory}", quoted(&job.text()));
    for (key, words) in [("drop", &changes.drop), ("map", &changes.map)] {
        if !words.is_empty() {
            entry.push_str(&format!(", {key} = {}", quoted(&words.join(","))));
        }
    }
    let text = format!(
        "title = {}\nrepetitions = {}\naa_control = \"none\"\n\n[storage]\ndirectory = {directory}\n\n\
         [axes]\nworkload = [{{ {entry} }}]\n",
        quoted(&title),
        arguments.repetitions,
    );
    let error = |error: model::PlanError| {
        let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        Failure::usage(anyhow::anyhow!("{}{hint}", error.message))
    };
    let typed = |key: &str, value: &str| format!("{key}={value}");
    ResolvedPlan::parse("fio".into(), text, Vec::new(), Scale::ONE, catalog, &error, &typed)
}

fn execute(
    arguments: &Arguments,
    job: &Job,
    changes: &Changes,
    state: &Path,
) -> Result<Exit, Failure> {
    let catalog = Catalog::embedded();
    let chosen = plan(arguments, job, changes, &catalog)?;
    let directory = PathBuf::from(&changes.directory);
    let place = match &arguments.run {
        Some(path) => Place::Kept(path.clone()),
        None => Place::Scratch(run_file::scratch(state, &directory)?),
    };
    run_setup::check_new_file(place.path().as_path())?;
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let interrupt = signals::handle_signals()?;
    let env = RunEnvironment {
        catalog: &catalog,
        host: &host,
        state,
        destroy: &[],
        interrupt: &interrupt,
    };
    let prepared = run_setup::begin(&chosen, &place.path(), Vec::new(), &env)?;
    let progress = Progress::default();
    // Without a terminal, scripts expect an empty stderr.
    let quiet = !std::io::IsTerminal::is_terminal(&std::io::stderr());
    let view = View { html: None, quiet, json: false };
    let screen = Screen::of_one(&view, &progress, "fio");
    let control = RunControl {
        screen: &screen,
        progress: &progress,
        interrupt: &interrupt,
        fail_fast: true,
        crash_state: None,
        no_reboot: false,
        pilot: false,
    };
    let ended = run_setup::execute(prepared, &control)?;
    drop(screen);
    if ended.tally.interrupted {
        output::message("fslab fio: interrupted");
        return Ok(Exit::Interrupted);
    }
    let record = super::report::read(&place.path())?;
    for trial in &record.trials {
        if let model::record::Outcome::Failed { reason } = &trial.outcome {
            output::message(&format!("fslab fio: {reason}"));
        }
    }
    if ended.tally.measured == 0 || ended.tally.failed > 0 {
        return Ok(Exit::Program(1));
    }
    let mut text = String::new();
    for format in &arguments.formats {
        text.push_str(&report::fio(&record, *format).map_err(Failure::usage)?);
    }
    match &arguments.output {
        Some(path) => sys::whole::write(path, text.as_bytes())
            .with_context(|| format!("writing {}", path.display()))?,
        None => output::result(&text)?,
    }
    Ok(Exit::Success)
}

/// Run file.
enum Place {
    Kept(PathBuf),
    Scratch(Scratch),
}

impl Place {
    fn path(&self) -> PathBuf {
        match self {
            Self::Kept(path) => path.clone(),
            Self::Scratch(scratch) => scratch.run_file(),
        }
    }
}

impl Arguments {
    /// Lines of the job files, and of the options that define jobs.
    fn job_lines(&self) -> Result<Vec<Line>, Mistakes> {
        let mut lines = Vec::new();
        for file in &self.files {
            lines.extend(match file.as_str() {
                "-" => standard_input()?,
                file => jobs::read(Path::new(file))?,
            });
        }
        let own = fio::of_arguments(&self.options)?;
        let global = own.first().is_some_and(|line| line.text == "[global]");
        if global && !self.files.is_empty() {
            let message = "options and a job file exclude each other; write the options into its \
                           [global]";
            return Err(Mistakes::one("argument 1", 0, message));
        }
        lines.extend(own);
        Ok(lines)
    }
}

fn standard_input() -> Result<Vec<Line>, Mistakes> {
    let mut text = String::new();
    let most = fio::MOST_BYTES as u64 + 1;
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_string(&mut text)
        .map_err(|error| Mistakes::one("stdin", 0, error.to_string()))?;
    let mut include = |_: &str, _: &str| Err("stdin cannot include files".to_owned());
    fio::expand("stdin", &text, &mut include)
}

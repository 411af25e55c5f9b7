//! Measurement for the command line of another program: a plan with one directory, its run, and the
//! record of the run.

use std::{path::Path, sync::Arc};

use engine::Progress;
use model::{RunRecord, Scale, record::Outcome};
use rig::{Catalog, Host, RealHost};

use super::{
    super::{
        bench::Kept,
        report,
        run_setup::{self, RunControl, RunEnvironment},
        signals,
    },
    options::{Given, Parsed, Program, wrong},
};
use crate::{
    cli::View,
    exit::{Exit, Failure},
    output,
    plans::{ResolvedPlan, quoted},
    screen::Screen,
};

/// Plan for a command line of another program.
pub(in crate::commands) struct Order<'a> {
    /// Name of the program.
    pub(in crate::commands) program: &'a str,
    pub(in crate::commands) title: &'a str,
    pub(in crate::commands) repetitions: u32,
    pub(in crate::commands) seed: Option<u64>,
    /// Absolute path of the directory to measure.
    pub(in crate::commands) directory: &'a str,
    /// Keys and values of each workload, such as `suite = "bonnie", files = 1024`.
    pub(in crate::commands) workloads: Vec<String>,
    /// Run file to keep.
    pub(in crate::commands) run: Option<&'a Path>,
}

/// Result of a measurement.
pub(in crate::commands) enum Measured {
    /// All trials were measured.
    Complete(Box<RunRecord>),
    /// The messages are printed, and the command ends.
    Ended(Exit),
}

impl Order<'_> {
    /// Text of the plan.
    fn text(&self) -> String {
        let seed = self.seed.map_or(String::new(), |seed| format!("seed = {seed}\n"));
        let entries: Vec<String> =
            self.workloads.iter().map(|entry| format!("    {{ {entry} }},\n")).collect();
        format!(
            "title = {}\nrepetitions = {}\n{seed}aa_control = \"none\"\n\n[storage]\ndirectory = \
             {}\n\n[axes]\nworkload = [\n{}]\n",
            quoted(self.title),
            self.repetitions,
            quoted(self.directory),
            entries.concat(),
        )
    }

    /// Plan with its cells.
    ///
    /// # Errors
    /// If a suite rejects the parameters.
    pub(in crate::commands) fn plan(&self, catalog: &Catalog) -> Result<ResolvedPlan, Failure> {
        let error = |error: model::PlanError| {
            let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            wrong(format!("{}{hint}", error.message))
        };
        let typed = |key: &str, value: &str| format!("{key}={value}");
        let name = self.program.to_owned();
        ResolvedPlan::parse(name, self.text(), Vec::new(), Scale::ONE, catalog, &error, &typed)
    }

    /// Measures the plan. Progress is shown on a terminal only, because scripts expect an empty
    /// stderr.
    ///
    /// # Errors
    /// If the run cannot start or end.
    pub(in crate::commands) fn measure(&self, state: &Path) -> Result<Measured, Failure> {
        let catalog = Catalog::embedded();
        let chosen = self.plan(&catalog)?;
        let place = Kept::new(self.run, state, Path::new(self.directory))?;
        run_setup::check_new_file(&place.path())?;
        let host: Arc<dyn Host> = Arc::new(RealHost);
        let interrupt = signals::handle_signals()?;
        let (catalog, host, interrupt) = (&catalog, &host, &interrupt);
        let env = RunEnvironment { catalog, host, state, destroy: &[], interrupt };
        let prepared = run_setup::begin(&chosen, &place.path(), Vec::new(), &env)?;
        let progress = Progress::default();
        let quiet = !std::io::IsTerminal::is_terminal(&std::io::stderr());
        let view = View { html: None, quiet, json: false };
        let screen = Screen::of_one(&view, &progress, self.program);
        let control = RunControl {
            screen: &screen,
            progress: &progress,
            interrupt,
            fail_fast: true,
            crash_state: None,
            no_reboot: false,
            pilot: false,
        };
        let ended = run_setup::execute(prepared, &control)?;
        drop(screen);
        if ended.tally.interrupted {
            output::message(&format!("fslab {}: interrupted", self.program));
            return Ok(Measured::Ended(Exit::Interrupted));
        }
        let record = report::read(&place.path())?;
        for trial in &record.trials {
            if let Outcome::Failed { reason } = &trial.outcome {
                output::message(&format!("fslab {}: {reason}", self.program));
            }
        }
        if ended.tally.measured == 0 || ended.tally.failed > 0 {
            return Ok(Measured::Ended(Exit::Program(1)));
        }
        Ok(Measured::Complete(Box::new(record)))
    }
}

/// Runs the command line of a program.
///
/// # Errors
/// Only after an interruption; other errors are printed, and the exit status is 1.
pub(in crate::commands) fn run(
    program: &'static Program,
    arguments: &[String],
    execute: impl FnOnce(&Given) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let result = program.parse(arguments).and_then(|parsed| match parsed {
        Parsed::Print(text) => {
            output::result(&text)?;
            Ok(Exit::Success)
        }
        Parsed::Run(given) => {
            for (name, reason) in given.without_effect() {
                output::message(&format!("fslab {}: {name} has no effect: {reason}", program.name));
            }
            execute(&given)
        }
    });
    ended(program.name, result)
}

/// Result with the exit status of other programs: 0 or 1.
///
/// # Errors
/// After an interruption, or if stdout was closed.
pub(in crate::commands) fn ended(
    program: &str,
    result: Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    match result {
        Err(failure) if failure.has_own_status() => Err(failure),
        Err(failure) => {
            // The run file of other commands is given by -o.
            let message = failure.message().replace("with -o", "with --fslab-run");
            output::message(&format!("fslab {program}: {message}"));
            Ok(Exit::Program(1))
        }
        Ok(exit) => Ok(exit),
    }
}

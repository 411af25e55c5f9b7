//! Commands: one module each, which maps arguments to calls and an exit status.

mod audit;
mod bench;
mod clean;
mod cluster;
mod compare;
mod completions;
mod crosscheck;
mod demo;
mod docs;
mod doctor;
mod explain;
mod export;
mod fio;
mod fio_loop;
pub(crate) mod front_ends;
pub(crate) mod guest;
mod import;
mod list;
mod loadfile;
mod published;
mod record;
mod report;
mod run;
mod run_file;
mod run_setup;
mod scratch;
mod settings;
mod show;
mod signals;
mod trace;
mod verify;
mod version;

use std::path::{Path, PathBuf};

use rig::{Catalog, RealHost};

use crate::{
    cli::{Arguments, Command},
    exit::{Exit, Failure},
};

/// Runs the command.
///
/// # Errors
/// A [`Failure`] with its exit status.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Command::Bonnie(bonnie) = &arguments.command {
        // Before the state directory is created, because it belongs to the user.
        front_ends::bonnie::change_user(&bonnie.arguments)?;
    }
    let variable = std::env::var_os("FSLAB_STATE").map(PathBuf::from);
    let state = match arguments.state_directory.clone().or(variable) {
        Some(directory) => directory,
        None => rig::undo::default_state_directory(&RealHost)?,
    };
    if matches!(
        arguments.command,
        Command::Bench(_)
            | Command::Bonnie(_)
            | Command::Crosscheck(_)
            | Command::Dbench(_)
            | Command::Fio(_)
            | Command::Iozone(_)
            | Command::Mdtest(_)
    ) {
        rig::undo::make_state_directory(&state)?;
    } else if matches!(arguments.command, Command::Demo(_) | Command::Run(_) | Command::Clean) {
        rig::undo::check_state_directory(&state)?;
    }
    match &arguments.command {
        Command::Demo(demo) => demo::run(demo, &state),
        Command::Run(run) => run::run(run, &state),
        Command::Bench(bench) => bench::run(bench, &state),
        Command::Fio(fio) => fio::run(&fio.arguments, &state),
        Command::Bonnie(bonnie) => front_ends::bonnie::run(&bonnie.arguments, &state),
        Command::Dbench(dbench) => front_ends::dbench::run(&dbench.arguments, &state),
        Command::Iozone(iozone) => front_ends::iozone::run(&iozone.arguments, &state),
        Command::Mdtest(mdtest) => front_ends::mdtest::run(&mdtest.arguments, &state),
        Command::Show(show) => show::run(show),
        Command::Report(report) => report::run(report),
        Command::Explain(explain) => explain::run(explain),
        Command::Import(import) => import::run(import),
        Command::Loadfile(loadfile) => loadfile::run(loadfile),
        Command::Record(record) => record::run(record),
        Command::Trace(trace) => trace::run(trace),
        Command::Compare(compare) => compare::run(compare),
        Command::Crosscheck(crosscheck) => crosscheck::run(crosscheck, &state),
        Command::Export(export) => export::run(export),
        Command::Audit(audit) => audit::run(audit),
        Command::List(list) => list::run(list),
        Command::Doctor(doctor) => doctor::run(doctor),
        Command::Guest(guest) => guest::run(guest),
        Command::Cluster(arguments) => cluster::run(arguments, &state),
        Command::Agent => cluster::agent(&state),
        Command::Verify(verify) => verify::run(verify),
        Command::Clean => clean::run(&state),
        Command::Version => version::run(arguments.verbose > 0),
        Command::Completions(shell) => completions::run(shell),
        Command::Docs(docs) => docs::run(docs),
        Command::Complete(words) => completions::candidates(words),
        Command::Worker => {
            engine::worker_process()?;
            Ok(Exit::Success)
        }
    }
}

/// Filesystem catalog, with an additional file if given.
fn catalog(file: Option<&Path>) -> Result<Catalog, Failure> {
    match file {
        None => Ok(Catalog::embedded()),
        Some(path) => Catalog::with_file(path).map_err(Failure::usage),
    }
}

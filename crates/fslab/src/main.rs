//! Program `fslab`: commands, and the runner that executes a plan.
#![forbid(unsafe_code)]

mod cells;
mod cli;
mod commands;
mod exit;
mod output;
mod plans;
mod runner;
mod screen;

use std::{ffi::OsString, path::Path, process::ExitCode};

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Arguments with the command of another program if fslab was started by the name of that program,
/// through a link.
fn as_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|name| Path::new(name).file_name());
    let linked =
        commands::front_ends::LINKS.iter().find(|link| name.is_some_and(|own| own == **link));
    if let Some(link) = linked {
        arguments.insert(1, link.into());
    }
    arguments
}

fn main() -> ExitCode {
    // Called before any thread starts, because this process may be the init process of a guest.
    if let Some(code) = guest::in_guest::run_if_guest(commands::guest::work) {
        return code;
    }
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == guest::supervisor::COMMAND => {
            return guest::supervisor::main(arguments);
        }
        Some(first) if first == rig::programs::COMMAND => return rig::programs::main(arguments),
        Some(_) | None => {}
    }
    let given = as_command(std::env::args_os().collect());
    let arguments = match cli::parse_arguments(&given) {
        Ok(arguments) => arguments,
        Err(error) => return output::usage(&error, cli::message(&error, &given)),
    };
    output::start_log(arguments.verbose);
    match commands::run(&arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

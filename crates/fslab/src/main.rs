//! The binary: commands on one side, the conductor that runs a plan on the other.
#![forbid(unsafe_code)]

mod cells;
mod cli;
mod commands;
mod conductor;
mod exit;
mod output;
mod plans;
mod screen;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    output::start_log(arguments.verbose);
    match commands::run(&arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

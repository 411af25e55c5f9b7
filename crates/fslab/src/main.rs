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
    // Before there are threads: what this process is may be settled by who started it.
    if let Some(code) = guest::inside::take_over(commands::guest::work) {
        return code;
    }
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == guest::cage::COMMAND) {
        return guest::cage::main(arguments);
    }
    let arguments = match cli::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::usage(&error),
    };
    output::start_log(arguments.verbose);
    match commands::run(&arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

//! `fslab fio`: runs jobs of fio with its command line, in the current directory.
//!
//! The arguments are those of fio, and the output is in its formats. Jobs become a plan of suite
//! `fio` with one cell, which runs like any plan. Files are at the paths that the job names and
//! stay there. Messages are on stderr only.

mod arguments;
mod safety;

use std::{io::Read, path::Path};

use anyhow::Context;
use suites::fio::{self, Changes, Job, Line, Mistakes};

use self::arguments::Arguments;
use super::front_ends::measure::{Measured, Order, ended};
use crate::{
    exit::{Exit, Failure},
    output,
    plans::{jobs, quoted},
};

/// Runs the command. The exit status is that of fio: 0 or 1, and 130 after an interruption.
pub(super) fn run(arguments: &[String], state: &Path) -> Result<Exit, Failure> {
    ended("fio", measure(arguments, state))
}

/// Size of a regular file.
fn size_of(path: &str) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
}

fn measure(given: &[String], state: &Path) -> Result<Exit, Failure> {
    let arguments = match Arguments::parse(given)? {
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
        size_of: Some(size_of),
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

fn execute(
    arguments: &Arguments,
    job: &Job,
    changes: &Changes,
    state: &Path,
) -> Result<Exit, Failure> {
    let names: Vec<&str> = job.sections.iter().map(|section| section.name.as_str()).collect();
    let directory = quoted(&changes.directory);
    let mut workload =
        format!("suite = \"fio\", text = {}, directory = {directory}", quoted(&job.text()));
    for (key, words) in [("drop", &changes.drop), ("map", &changes.map)] {
        if !words.is_empty() {
            workload.push_str(&format!(", {key} = {}", quoted(&words.join(","))));
        }
    }
    let order = Order {
        program: "fio",
        title: &format!("fio job {}", names.first().copied().unwrap_or_default()),
        repetitions: arguments.repetitions,
        seed: None,
        directory: &changes.directory,
        workloads: vec![workload],
        run: arguments.run.as_deref(),
    };
    let record = match order.measure(state)? {
        Measured::Complete(record) => record,
        Measured::Ended(exit) => return Ok(exit),
    };
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

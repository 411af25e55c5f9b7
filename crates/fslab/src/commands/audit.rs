//! `fslab audit`: checks published tables, and statements about them or about a run.
//!
//! [`report::audit`] and [`StudyAudit`] perform the checks; this module reads the files.

use std::{io, path::Path};

use anyhow::Context;
use report::{
    AUDITED, Audited, PUBLISHED_SUFFIX, TerminalOptions,
    audit::{Audit, Statements, Table, csv},
    comparison::{StudyAudit, study_of},
};

use super::{report::read, run_file::RunFilePath};
use crate::{
    cli,
    exit::{Exit, Failure},
    output,
};

/// File name for stdin.
const STDIN: &str = "-";

/// Maximum width of the output, which is mostly sentences.
const WIDTH: usize = 80;

pub(super) fn run(arguments: &cli::Audit) -> Result<Exit, Failure> {
    let run = RunFilePath::find(&arguments.table);
    if store::is_database(&run) {
        return on_run(arguments, &run);
    }
    let table = arguments.table.to_str();
    let audit = match table.filter(|name| name.ends_with(PUBLISHED_SUFFIX)) {
        Some(name) => published(name, arguments.statements.as_deref())?,
        None => of_files(&arguments.table, arguments.statements.as_deref())?,
    };
    printed(arguments, || audit.json(), || audit.markdown(), |options| audit.terminal(options))?;
    Ok(if audit.found() { Exit::DifferenceFound } else { Exit::Success })
}

/// Checks the statements of a study on a run.
fn on_run(arguments: &cli::Audit, run: &Path) -> Result<Exit, Failure> {
    let record = read(run)?;
    let named = arguments.statements.as_ref().map(|name| name.to_string_lossy());
    let own = || study_of(&record).map(Into::into);
    let Some(study) = named.or_else(own) else {
        let known: Vec<&str> = AUDITED.iter().map(|set| set.name).collect();
        return Err(Failure::usage(anyhow::anyhow!(
            "{} does not belong to a study with statements; select statements with \
             --statements: {}",
            run.display(),
            known.join(", ")
        )));
    };
    let audit = StudyAudit::new(&record, &study).map_err(Failure::usage)?;
    printed(arguments, || audit.json(), || audit.markdown(), |options| audit.terminal(options))?;
    Ok(if audit.found() { Exit::DifferenceFound } else { Exit::Success })
}

/// Prints a result in the format of the arguments.
fn printed(
    arguments: &cli::Audit,
    json: impl FnOnce() -> String,
    markdown: impl FnOnce() -> String,
    terminal: impl FnOnce(&TerminalOptions) -> String,
) -> Result<(), Failure> {
    match arguments.format {
        Some(cli::ComparisonFormat::Json) => output::json(&json())?,
        Some(cli::ComparisonFormat::Md) => output::result(&markdown())?,
        None => {
            let (width, color) = (output::width().min(WIDTH), output::color());
            let options = TerminalOptions { width, color, detail: arguments.detail };
            output::styled(&output::legible(terminal(&options)))?;
        }
    }
    Ok(())
}

fn published(name: &str, statements: Option<&Path>) -> Result<Audit, Failure> {
    if statements.is_some() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{name} includes its statements; remove --statements"
        )));
    }
    report::audited(name).ok_or_else(|| {
        let printed = AUDITED.iter().filter(|set| set.is_printed());
        let known: Vec<String> = printed.map(Audited::full_name).collect();
        Failure::usage(anyhow::anyhow!(
            "there are no published results `{name}` that can be audited; available: {}",
            known.join(", ")
        ))
    })
}

fn of_files(table: &Path, statements: Option<&Path>) -> Result<Audit, Failure> {
    let mut read = match statements {
        None => Statements::read("").map_err(Failure::usage)?,
        Some(path) => {
            let bytes = bytes(path)?;
            let text = String::from_utf8(bytes).ok();
            let text = text.with_context(|| {
                format!("{} is not UTF-8; save the file as UTF-8", path.display())
            });
            let read = Statements::read(&text.map_err(Failure::usage)?);
            read.with_context(|| format!("reading the statements in {}", path.display()))
                .map_err(Failure::usage)?
        }
    };
    let name = shown(table);
    let cells = Table::read(&bytes(table)?, &read.columns);
    let cells = cells.with_context(|| format!("reading the table in {name}"));
    if read.title.is_empty() {
        read.title = name;
    }
    let audit = Audit::new(cells.map_err(Failure::usage)?, read);
    let file = statements.map_or_else(|| shown(table), |path| path.display().to_string());
    audit.with_context(|| format!("reading the statements in {file}")).map_err(Failure::usage)
}

/// Content of a file or of stdin.
fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let most = csv::LIMITS.bytes as u64;
    let read = match path.to_str() {
        Some(STDIN) => sys::input::of(io::stdin().lock(), most),
        Some(_) | None => sys::input::bytes(path, most),
    };
    read.with_context(|| format!("cannot read {}; check the path and its permissions", shown(path)))
        .map_err(Failure::usage)
}

fn shown(path: &Path) -> String {
    if path == Path::new(STDIN) { "stdin".into() } else { path.display().to_string() }
}
